# SPDX-License-Identifier: Apache-2.0
"""
Rules change under load while the job is killed: no match is lost, and none is there twice.

The large run: ``CHANGES=1000 KILLS=20 python -m tests.sinks -k rules_kill``; another: ``SEED=8``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from pyflinkcep import Eql, Pattern, Time, matchMany
from pyflinkcep.rules import Rule, RuleLog
from tests.sinks.rules_job import SCHEMA
from tests.spark.streams import FileSource

pytestmark = pytest.mark.skipif(
    "PYFLINKCEP_TEST_SINKS" not in os.environ, reason="takes minutes: make sinks"
)

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("KILLS", "1"))  # each costs the start of a JVM
CHANGES = int(os.environ.get("CHANGES", "12"))
SEED = int(os.environ.get("SEED", "7"))
FILES, ROWS = max(14, 8 * KILLS), 40
NAMES = [f"rule {number}" for number in range(max(4, CHANGES // 50))]


@attrs.define
class Rules:
    """What changes, and what it changes."""

    log: RuleLog
    choose: random.Random
    versions: Counter[str] = attrs.field(factory=Counter)
    on: set[str] = attrs.field(factory=set)
    off: set[str] = attrs.field(factory=set)

    def change(self) -> None:
        """Change a rule at random."""
        name, kind = self.choose.choice(NAMES), self.choose.randrange(5)
        if kind == 0 and name in self.on:
            self.log.pause(name)
            self.on.remove(name)
            self.off.add(name)
        elif kind == 1 and name in self.off:
            self.log.resume(name)
            self.off.remove(name)
            self.on.add(name)
        elif kind == 2 and name in self.on:
            self.log.remove(name)
            self.on.remove(name)
        else:
            self.versions[name] += 1
            self.log.publish([self._rule(name, self.versions[name])])
            self.on.add(name)
            self.off.discard(name)

    def _rule(self, name: str, version: int) -> Rule:
        low = self.choose.randrange(2, 7)
        if self.choose.random() < 0.5:
            query = f"sequence by k with maxspan=90ms [A where x > {low}] [any where x < {low}]"
            return Rule(name, Eql(query), version=version)
        begin = Pattern.begin("a").where(f"x < {low}")
        # What wants all events, since they have to be next to each other, comes late: from then on
        # none stays behind.
        if version > 3:
            pattern = begin.next("b").where("x > last(a.x)")
        else:
            pattern = begin.followedBy("b").where(f"x = {low + 1}")
        return Rule(name, pattern.within(Time.milliseconds(90)), ("k",), version)


@contextmanager
def started(folder: Path) -> Iterator[Any]:
    """Start the job in a process group of its own, up to the start of its stream; kill it after."""
    job = subprocess.Popen(
        [sys.executable, "-m", "tests.sinks.rules_job", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert job.stdout is not None
        lines = iter(job.stdout)
        assert "started\n" in lines, "it ended before it was started"
        yield job
    finally:
        # With its JVM and its workers, at once, also where the test has failed.
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()


def committed(folder: Path) -> int:
    """Return the number of micro-batches that Spark has noted as done."""
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def taken(folder: Path, source: int) -> dict[str, int]:
    """Return the micro-batch of each file of a source, as Spark has noted it."""
    # A source counts by itself; which of its numbers a micro-batch ends with is in its offsets.
    ends: dict[int, int] = {}
    offsets = (folder / "checkpoint" / "offsets").glob("[0-9]*")
    for file in sorted(offsets, key=lambda file: int(file.name)):
        text = file.read_text(encoding="utf-8").splitlines()[2 + source]
        ends[int(file.name)] = -1 if text == "-" else json.loads(text)["logOffset"]
    found: dict[str, int] = {}
    for file in (folder / "checkpoint" / "sources" / str(source)).glob("[0-9]*"):
        for line in file.read_text(encoding="utf-8").splitlines()[1:]:
            entry = json.loads(line)
            own = [number for number, end in ends.items() if end >= entry["batchId"]]
            if own:
                found[Path(entry["path"]).name] = min(own)
    return found


def expected(log: RuleLog, folder: Path, batches: list[list[dict[str, Any]]]) -> Counter[str]:
    """Return the ids of the matches of each version on the events of its micro-batches."""
    of_publication = taken(folder, 1)
    last, lives, on = 0, list[tuple[Rule, list[dict[str, Any]]]](), dict[str, Any]()
    off: dict[str, Rule] = {}
    waiting = 0  # publications come in order, also where Spark saw a later one first
    publications = list(log.publications())
    for number, batch in enumerate(batches):
        while last < len(publications):
            waiting = max(waiting, of_publication[f"{last + 1:010d}.json"])
            if waiting > number:
                break
            for change in publications[last].changes:
                name, life = change.name, on.pop(change.name, None)
                if change.change == "publish":
                    on[name] = (change.rule, [])
                elif change.change == "resume":
                    on[name] = (off[name], [])
                elif change.change == "pause":
                    off[name] = life[0]
                if name in on:
                    lives.append(on[name])
            last += 1
        for _, own in on.values():
            own += batch
    found: Counter[str] = Counter()
    for rule, own in lives:
        if own:
            matches = matchMany([rule], own, timestamp="time", type="kind")
            found.update(match.matchId for match in matches)
    assert last == len(publications)
    return found


def test_changes_under_load_with_kills(tmp_path: Path) -> None:
    """Whenever it is killed, the output is that of each version on its micro-batches' events."""
    choose, log = random.Random(SEED), RuleLog(tmp_path / "log")
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    made = [
        (n, 1000 + 3 * n, choose.choice("AABC"), choose.choice("pqr"), choose.randrange(9))
        for n in range(FILES * ROWS)
    ]
    made.sort(key=lambda row: row[1] + choose.randrange(8))
    source = FileSource(tmp_path / "events", SCHEMA)
    source.add(*(made[at : at + ROWS] for at in range(0, len(made), ROWS)))
    source.add([(-1, 10**9, "Z", "p", None)])
    (tmp_path / "found").mkdir()
    rules = Rules(log, choose)
    rules.change()
    changed = 1
    for run in range(KILLS + 1):
        before, is_last = committed(tmp_path), run == KILLS
        share = CHANGES * (run + 1) // (KILLS + 1)
        moment = before + 2 + choose.random() * 4
        with started(tmp_path) as job:
            while job.poll() is None and (is_last or committed(tmp_path) < moment):
                if changed < share:
                    rules.change()
                    changed += 1
                if is_last and changed >= share and _is_done(tmp_path, log):
                    break
                time.sleep(0.02)
            if not is_last:
                time.sleep(choose.random() * 0.3)
                assert job.poll() is None, job.stdout.read()[-4000:]
                continue  # which kills it
            (tmp_path / "stop").touch()
            output, _ = job.communicate(timeout=240)
            assert job.returncode == 0, output[-6000:]
    of_file = taken(tmp_path, 0)
    count = max(*of_file.values(), *taken(tmp_path, 1).values()) + 1
    batches: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for file, number in of_file.items():
        at = int(file.split(".")[0]) * ROWS
        rows = made[at : at + ROWS]
        batches[number] += [
            {
                **dict(zip(names, row, strict=True)),
                "time": datetime.fromtimestamp(row[1] / 1000, UTC),
            }
            for row in rows
        ]
    found: Counter[str] = Counter()
    for file in (tmp_path / "found").glob("[0-9]*.json"):
        found.update(json.loads(file.read_text()))
    wanted = expected(log, tmp_path, batches)
    assert found == wanted
    assert max(wanted.values()) == 1
    assert changed == CHANGES


def _is_done(folder: Path, log: RuleLog) -> bool:
    """Whether all files are read, and all micro-batches that were planned are done."""
    if len(taken(folder, 0)) <= FILES or len(taken(folder, 1)) < log.number:
        return False
    return committed(folder) == len(list((folder / "checkpoint" / "offsets").glob("[0-9]*")))
