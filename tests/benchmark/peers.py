# SPDX-License-Identifier: Apache-2.0
"""Flink beside us: in a process of its own, one workload at a time."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmark.clauses import Clause
from tests.benchmark.events import PendingEvents, RandomEvents
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory

_PEERS = Path(__file__).parent / "peer"
_OPEN = ("lang", "util", "util.concurrent", "time", "io", "net", "nio", "math", "text")


def measure_flink(command: str, source: RandomEvents, workload: str, cores: int) -> Measurement:
    """Run a workload on Flink."""
    numbers = (source.events, source.keys, source.types, cores, source.seed)
    answer, peaks = _run([*shlex.split(command), workload, *map(str, numbers)])
    return _measurement(workload, source, source.keys, answer, peaks)


def measure_flink_pending(jars: Path, source: PendingEvents) -> Measurement:
    """Run the pattern with many partial matches on Flink, whose jars are in a folder."""
    answer, peaks = _compiled(
        jars, "PendingPeer", [source.partials, source.others], with_tables=False
    )
    return _measurement("pending", source, 1, answer, peaks)


def measure_flink_sql(
    jars: Path, source: RandomEvents | PendingEvents, clause: Clause, cores: int
) -> Measurement:
    """Run a clause on Flink SQL, whose jars are in a folder."""
    if isinstance(source, RandomEvents):
        numbers = ["random", source.events, source.keys, source.types, source.seed]
        keys = source.keys
    else:
        numbers, keys = ["loop", source.others], 1
    arguments = [clause.query, cores, *numbers]
    answer, peaks = _compiled(jars, "SqlPeer", arguments, with_tables=True)
    return _measurement(f"sql {clause.name}", source, keys, answer, peaks)


def measure_flink_rules(
    jars: Path, source: RandomEvents, cores: int, rules: int, window_s: int
) -> Measurement:
    """Run the selective rules of `rule_sets` on Flink, with an operator for each in one job."""
    numbers = [source.events, source.keys, source.types, source.seed, cores, rules, window_s]
    answer, peaks = _compiled(jars, "RulesPeer", numbers, with_tables=False)
    return _measurement(f"selective, {rules} rules", source, source.keys, answer, peaks)


def _measurement(
    workload: str,
    source: RandomEvents | PendingEvents,
    keys: int,
    answer: dict[str, Any],
    peaks: dict[str, int],
) -> Measurement:
    return Measurement(
        engine="flink",
        workload=workload,
        variant="",
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=answer["seconds"],
        matches=answer["matches"],
        checksum=answer["checksum"],
        details={"peak_mib": peaks},
    )


def _compiled(
    jars: Path, name: str, arguments: Sequence[Any], with_tables: bool
) -> tuple[dict[str, Any], dict[str, int]]:
    """Compile one of the programs beside this module and run it."""
    paths = [path for path in sorted(jars.glob("*.jar")) if with_tables or "table" not in path.name]
    if not paths:
        sys.exit(f"{jars} has no jars of Flink")
    jar_path = ":".join(map(str, paths))
    with tempfile.TemporaryDirectory() as classes:
        program = str(_PEERS / f"{name}.java")
        compiler = ["javac", "-nowarn", "-cp", jar_path, "-d", classes, program]
        subprocess.run(compiler, check=True, stderr=subprocess.DEVNULL)
        java = ["java", *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPEN)]
        java += ["-Xmx4g", "-Dlog4j2.level=OFF", "-cp", f"{jar_path}:{classes}", name]
        return _run([*java, *map(str, arguments)])


def _run(command: Sequence[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Run a command; give the JSON of its last line, and the memory it had."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    with PeakMemory(process.pid) as memory:
        output, errors = process.communicate()
    lines = output.strip().splitlines()
    if process.returncode or not lines:
        causes = [line for line in errors.splitlines() if "Caused by" in line]
        reason = causes[-1] if causes else errors[-500:]
        sys.exit(f"{shlex.join(command)}\nfailed with status {process.returncode}: {reason}")
    return json.loads(lines[-1]), memory.peaks
