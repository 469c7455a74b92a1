# SPDX-License-Identifier: Apache-2.0
"""Logs of rules: what is published, by whom and what is refused; processes that race or are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pyflinkcep import (
    AfterMatchSkipStrategy,
    Eql,
    InputError,
    InvalidArgumentError,
    NotSupportedError,
    Pattern,
    SimpleCondition,
    parse,
)
from pyflinkcep.rules import Rule, RuleFileError, RuleLog, SigmaCorrelation
from pyflinkcep.rules.rules_in_force import Publication, RulesInForce

ROOT = Path(__file__).parents[3]
FAILED = {"type": "event_count", "rules": ["f"], "timespan": "1m", "condition": {"gte": 2}}


def rule(name: str, most: int = 1, version: int = 1, **more: Any) -> Rule:
    """Return a rule."""
    return Rule(name, Pattern.begin("a").where(f"n > {most}"), version=version, **more)


def known(log: RuleLog, at: int | None = None) -> list[tuple[str, int, bool]]:
    """Return names, versions and whether they are paused."""
    return [(one.rule.name, one.rule.version, one.isPaused) for one in log.rules(at)]


@pytest.fixture
def log(tmp_path: Path) -> RuleLog:
    """Return a log whose folder is not there yet."""
    return RuleLog(tmp_path / "deep" / "log")


def test_rules_of_all_languages_come_back(log: RuleLog) -> None:
    """A rule of any language is read from the log as what it was when it was published."""
    skip = AfterMatchSkipStrategy.skipPastLastEvent()
    pattern = (
        Pattern.begin("small", skip).where("amount < 2").times(3)
        .followedBy("large").where("amount > 5 * avg(small.amount)").within(timedelta(minutes=10))
    )  # fmt: skip
    rules = [
        Rule("pattern", pattern, ("card", "bank"), 7, "at"),
        Rule(
            "eql",
            Eql('sequence by u with maxspan=1m [a where n > 1] [b where x : "*y"]'),
            type="kind",
            whenReplaced="finish",
        ),
        Rule("query", parse("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 5 minutes"), ("k",)),
        Rule("sigma", SigmaCorrelation({**FAILED, "group-by": ["u"]}, {"f": "ok = false"})),
    ]
    log.publish(rules)
    found = {one.rule.name: one.rule for one in log.rules()}
    assert found.keys() == {one.name for one in rules}
    for one in rules:
        own = found[one.name]
        assert own.fingerprint == one.fingerprint
        for name in ("key", "version", "timestamp", "type", "whenReplaced"):
            assert getattr(own, name) == getattr(one, name)


def test_changes_and_what_was_in_force(log: RuleLog) -> None:
    """Rules are added, replaced, paused, resumed and removed; each number has its own state."""
    assert (log.number, log.rules(), log.history()) == (0, [], [])
    december = datetime(2026, 12, 1)
    assert log.publish([rule("a"), rule("b")]) == 1
    assert log.pause("b") == 2
    assert log.publish({"a": rule("", 2, 2)}, validFrom=december) == 3
    assert log.resume("b") == 4
    assert log.remove("a") == 5
    assert [known(log, at) for at in range(6)] == [
        [],
        [("a", 1, False), ("b", 1, False)],
        [("a", 1, False), ("b", 1, True)],
        [("a", 2, False), ("b", 1, True)],
        [("a", 2, False), ("b", 1, False)],
        [("b", 1, False)],
    ]
    assert [one.since for one in log.rules()] == [4]
    assert [(one.number, one.change, one.name, one.version) for one in log.history()] == [
        (1, "publish", "a", 1), (1, "publish", "b", 1), (2, "pause", "b", 1),
        (3, "publish", "a", 2), (4, "resume", "b", 1), (5, "remove", "a", 2),
    ]  # fmt: skip
    assert log.history()[3].validFrom == december.replace(tzinfo=UTC)
    with pytest.raises(InputError, match="there is no publication 6"):
        log.rules(at=6)


def test_what_is_there_is_not_published_again(log: RuleLog) -> None:
    """Rules that mean what the log has leave it as it is, paused ones too, however written."""
    log.publish([rule("a"), rule("b")])
    log.pause("b")
    other_layout = Rule("a", Pattern.begin("a").where("(n)  >  1"), description="more")
    assert log.publish([other_layout, rule("b")]) == log.pause("b") == log.resume("a") == 2
    assert log.publish([]) == log.pause() == 2


def test_versions_have_64_bits() -> None:
    """A version that matches could not show is refused before a stream reads it."""
    with pytest.raises(InvalidArgumentError, match="a whole number of 64 bits as version"):
        rule("a", version=20261128_123456_123456)


def test_versions_only_rise(log: RuleLog) -> None:
    """A version stands for one meaning for ever, also after its rule was removed."""
    log.publish([rule("a", version=2)])
    log.publish([rule("a", 5, version=4)])
    with pytest.raises(
        InvalidArgumentError, match="rule 'a': its version 4 is another version 4"
    ) as e:
        log.publish([rule("a", 6, version=4)])
    assert e.value.hint == "give it version 5"
    with pytest.raises(InvalidArgumentError, match="version 2 is older than version 4"):
        log.publish([rule("a", version=2)])
    with pytest.raises(InvalidArgumentError, match="another validFrom or whenReplaced"):
        log.publish([rule("a", 5, 4)], validFrom=datetime(2027, 1, 1))
    log.remove("a")
    with pytest.raises(InvalidArgumentError, match="is another version 4"):
        log.publish([rule("a", 6, version=4)])
    assert log.publish([rule("a", 5, version=4)]) == 4
    assert known(log) == [("a", 4, False)]


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a function": (
        lambda: [Rule("bad", Pattern.begin("a").where(SimpleCondition.of(bool)))],
        InvalidArgumentError,
        "rule 'bad': .*function|rule 'bad': .*Python",
    ),
    "a function of a correlation": (
        lambda: [Rule("bad", SigmaCorrelation(FAILED, {"f": bool}))],
        InvalidArgumentError,
        "rule 'bad': the condition 'f' is a function",
    ),
    "nothing that begins it once": (
        lambda: [Rule("bad", Pattern.begin("a").where("n > 1").times(2), whenReplaced="finish")],
        InvalidArgumentError,
        "rule 'bad': whenReplaced: finish is for patterns and EQL whose first stage is one event",
    ),
    "nothing that ends it": (
        lambda: [Rule("bad", Pattern.begin("a").where("n > 1").next("b"), whenReplaced="finish")],
        InvalidArgumentError,
        "rule 'bad': whenReplaced: finish needs a window",
    ),
    "half a character": (
        lambda: [Rule("bad", Pattern.begin("a").where("s = '\ud800'"))],
        InvalidArgumentError,
        "rule 'bad': .* is no character",
    ),
    "select": (lambda: [rule("bad", select=dict)], InvalidArgumentError, "rule 'bad': .*select"),
    "two of one name": (lambda: [rule("bad"), rule("bad")], InvalidArgumentError, "'bad' is the name"),
    "no rule": (lambda: ["bad"], InvalidArgumentError, "expected a Rule, got 'bad'"),
    "a row without a rule": (
        lambda: [{"document": "{rule: bad}"}], InvalidArgumentError, "rule 'bad': row 1:1: expected one of",
    ),
    "a row of another kind": (
        lambda: [{"documents": "x"}], InvalidArgumentError, "row 1: expected a column 'document'",
    ),
    "a row that is no YAML": (
        lambda: [{"document": "a: ["}], InvalidArgumentError, "row 1:1: no YAML",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_rules_are_refused_by_name(log: RuleLog, what: str) -> None:
    """Of rules among which one is bad none is published, and the message names the bad one."""
    make, error, message = BAD[what]
    given = make()
    good: Any = {"document": "{rule: good, pattern: [{begin: a}]}"}
    with pytest.raises(error, match=message):
        log.publish([*given, good if isinstance(given[0], dict) else rule("good")])
    assert (log.number, log.rules()) == (0, [])


def test_files_are_read_and_tested(log: RuleLog, tmp_path: Path) -> None:
    """Files of rules are refused with file and line, and for what their tests do not find."""
    file = tmp_path / "rules.yml"
    text = "rule: a\npattern:\n- begin: a\n  where: n > 1\n"
    test = "tests:\n- events: {e: {timestamp: 0s, n: 1}}\n  matches: [{a: e}]\n"
    file.write_text(text.replace("where", "wher"))
    with pytest.raises(RuleFileError, match=r"rules\.yml:4: the key 'wher' is not known"):
        log.publish(file)
    file.write_text(text + test)
    with pytest.raises(InvalidArgumentError, match="rule 'a': test '1': expected the matches"):
        log.publish(f"{file}")
    file.write_text(text + test.replace("n: 1", "n: 2"))
    assert (log.publish(tmp_path), known(log)) == (1, [("a", 1, False)])


ROWS = [
    {"document": "{rule: a, pattern: [{begin: a, where: n > 1}]}", "enabled": True, "other": 1},
    {"document": '{"rule": "b", "pattern": [{"begin": "a"}]}', "enabled": False, "other": 2},
]


@pytest.mark.parametrize(
    "table", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist], ids=lambda one: one.__name__
)
def test_tables_of_rules(log: RuleLog, table: Callable[[Any], Any]) -> None:
    """A table of any library has a rule in each row; what is not enabled is paused."""
    log.publish(table(ROWS))
    assert known(log) == [("a", 1, False), ("b", 1, True)]
    log.publish(table([{**row, "enabled": not row["enabled"]} for row in ROWS]))
    assert known(log) == [("a", 1, True), ("b", 1, False)]
    assert log.number == 2


def test_rows_say_from_when_they_are_valid(log: RuleLog) -> None:
    """A column validFrom, in whatever capitals, has the time of a rule's first events."""
    document = {"rule": "a", "pattern": [{"begin": "a"}]}
    log.publish([{"document": document, "VALIDFROM": datetime(2027, 1, 1)}], datetime(2026, 1, 1))
    assert log.history()[0].validFrom == datetime(2027, 1, 1, tzinfo=UTC)
    for bad, message in (({"validFrom": "now"}, "as validFrom"), ({"enabled": 1}, "as enabled")):
        with pytest.raises(InvalidArgumentError, match=f"rule 'a': expected .* {message}"):
            log.publish([{"document": document, **bad}])


def test_only_these(log: RuleLog) -> None:
    """On request all other rules are removed."""
    log.publish([rule("a"), rule("b")])
    log.publish([rule("b"), rule("c")], onlyThese=True)
    assert known(log) == [("b", 1, False), ("c", 1, False)]


def test_names_of_rules_that_are_none(log: RuleLog) -> None:
    """What pauses, resumes or removes an unknown rule is refused with the nearest name."""
    log.publish([rule("fall")])
    for change in (log.pause, log.resume, log.remove):
        with pytest.raises(InvalidArgumentError, match="no rule 'fal'") as error:
            change("fall", "fal")
        assert error.value.hint == "did you mean 'fall'?"
    log.remove("fall")
    with pytest.raises(InvalidArgumentError, match="no rule 'fall'"):
        log.remove("fall")
    assert log.number == 2


def test_paths(tmp_path: Path) -> None:
    """A log is a folder of this machine; other paths are refused with what to do."""
    RuleLog(f"file://{tmp_path}/log").publish([rule("a")])
    assert known(RuleLog(tmp_path / "log")) == [("a", 1, False)]
    with pytest.raises(NotSupportedError, match="files of a local disk, got 's3://b/log'"):
        RuleLog("s3://b/log")
    with pytest.raises(InvalidArgumentError, match="expected the path of a folder, got 7"):
        RuleLog(7)  # type: ignore[arg-type]


def test_what_others_wrote_is_told_and_left_out(log: RuleLog) -> None:
    """A bad rule that got into a log has a problem, and leaves all other rules as they are."""
    log.publish([rule("a"), rule("b")])
    good = rule("a", 2, 2)
    log.publish([good])
    text = json.loads(next(log.path.glob("*2.json")).read_text())
    change = text["changes"][0]
    broken = {**change, "rule": "b", "version": 2, "document": {"rule": "b", "pattern": 7}}
    older, misnamed = {**change, "version": 1}, {**change, "rule": "d"}
    other = {**change, "rule": "c", "document": {**change["document"], "rule": "c"}}
    for number, written in enumerate((
        "{", '{"format": 2}', "[]", '{"format": 1, "published": "now", "changes": []}',
        json.dumps({**text, "changes": [broken, {"change": "stop"}, older, misnamed, other]}),
    ), 3):  # fmt: skip
        (log.path / f"{number:010d}.json").write_text(written)
    now, problems = RulesInForce(), []
    for publication in log.publications():
        problems += now.apply(publication, lambda change: change.rule)[1]
    assert sorted((one.number, one.rule or "") for one in problems) == [
        (3, ""), (4, ""), (5, ""), (6, ""), (7, ""), (7, "a"), (7, "b"), (7, "d"),
    ]  # fmt: skip
    assert known(log) == [("a", 2, False), ("b", 1, False), ("c", 2, False)]
    assert log.publish([rule("d")]) == 8


def test_only_publications_are_numbered(log: RuleLog) -> None:
    """A file whose name is not that of a publication to the digit is none, however it sorts."""
    log.publish([rule("a")])
    text = (log.path / "0000000001.json").read_text()
    for name in ("7", "000000009", "00000000011", "+000000012", "0000000013 copy", "9" * 250):
        (log.path / f"{name}.json").write_text(text)
    assert log.number == 1
    assert log.publish([rule("b")]) == 2
    assert known(log) == [("a", 1, False), ("b", 1, False)]


# --- processes

PUBLISHER = """
import sys
from pyflinkcep import CepError, Pattern
from pyflinkcep.rules import Rule, RuleLog
log, own = RuleLog(sys.argv[1]), sys.argv[2]
for number in range(1, int(sys.argv[3]) + 1):
    pattern = Pattern.begin("a").where(f"n > {number}").where("x = '" + "y" * 2_000 + "'")
    log.publish([Rule(own, pattern, version=number)])
    while True:
        last = max([one.rule.version for one in log.rules() if one.rule.name == "shared"] or [0])
        try:
            log.publish([Rule("shared", Pattern.begin(own + str(number)), version=last + 1)])
        except CepError:
            continue  # another process was faster
        break
    print(number, flush=True)
"""


def publisher(log: RuleLog, name: str, count: int) -> subprocess.Popen[str]:
    """Start a process that publishes."""
    return subprocess.Popen(
        [sys.executable, "-c", PUBLISHER, str(log.path), name, str(count)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def checked(log: RuleLog) -> Iterator[Publication]:
    """Yield all publications, each of which is whole."""
    for number, publication in enumerate(log.publications(), 1):
        assert (publication.number, list(publication.problems)) == (number, [])
        yield publication


def test_no_update_is_lost(log: RuleLog) -> None:
    """Processes that publish at the same time lose nothing, and none takes another's version."""
    processes, count = 3, 5
    running = [publisher(log, f"p{number}", count) for number in range(processes)]
    for process in running:
        process.communicate()
    assert [process.returncode for process in running] == [0] * processes
    changes = [change for one in checked(log) for change in one.changes]
    for number in range(processes):
        own = [change.version for change in changes if change.name == f"p{number}"]
        assert own == list(range(1, count + 1))
    shared = [change.version for change in changes if change.name == "shared"]
    assert shared == list(range(1, processes * count + 1))


def test_killed_publishers(log: RuleLog) -> None:
    """Whenever a process is killed, each publication is there whole or not at all."""
    rng = random.Random(3)
    told = 0
    for number in range(3):
        process = publisher(log, f"p{number}", 1000)
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + rng.uniform(0, 0.3)
        try:
            while time.monotonic() < deadline:
                told = max(told, len(list(checked(log))))
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert len(list(checked(log))) >= told
    assert not [name for name in os.listdir(log.path) if name[0] != "." and len(name) != 15]


# --- tables that are followed


def test_following_a_table(log: RuleLog) -> None:
    """The log has what the source has; a bad row leaves the rule of its name as it was."""
    rows: list[dict[str, Any]] = [dict(row) for row in ROWS]
    with log.follow(lambda: rows, every=timedelta(hours=1)) as following:
        following.look()
        assert (known(log), following.problems) == ([("a", 1, False), ("b", 1, True)], ())
        rows[0]["document"] = "{rule: a, version: 2, pattern: [{begin: a, wher: n > 1}]}"
        rows[1:] = [{"document": "{rule: c, pattern: [{begin: c}]}"}]
        following.look()
        assert known(log) == [("a", 1, False), ("c", 1, False)]
        assert [one.rule for one in following.problems] == ["a"]
        rows[0]["document"] = "{rule: a, version: 2, pattern: [{begin: a, where: n > 2}]}"
        rows[1]["document"] = "{rule"
        following.look()  # whose rule the second row is, nobody knows
        assert known(log) == [("a", 2, False), ("c", 1, False)]
        rows[1:] = []
        following.look()
        assert (known(log), following.problems) == ([("a", 2, False)], ())
        rows[0]["document"] = "{rule: a, version: 2, pattern: [{begin: a, where: n > 3}]}"
        following.look()
        assert "give it version 3" in str(following.problems[0].hint)
    assert known(log) == [("a", 2, False)]


def test_following_what_fails(log: RuleLog) -> None:
    """A source that cannot be read is asked again, and changes nothing until then."""
    log.publish([rule("a")])
    answers: list[Any] = [OSError("no database"), [ROWS[0]]]

    def source() -> Any:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    following = log.follow(source, every=timedelta(milliseconds=1))
    deadline = time.monotonic() + 20
    while len(answers) > 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    following.stop()
    following.look()
    assert known(log) == [("a", 1, False)]
    answers[:] = [OSError("no database")]
    following.look()
    assert following.problems[0].problem == "OSError: no database"
    with pytest.raises(InvalidArgumentError, match="every"):
        log.follow(source, every=timedelta(0))
