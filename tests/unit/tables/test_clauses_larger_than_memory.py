# SPDX-License-Identifier: Apache-2.0
"""Queries and clauses on files that do not fit memory: the same output in the same order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyflinkcep import Progress, matchRecognize, matchSase
from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError
from pyflinkcep.matching import memory as machine
from pyflinkcep.tables.found_rows import SpilledOutput, SpilledRows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("memory_is_kept")]

SIZE = 4_000
SMALL = "300KB"  # of which events may need 60 KB, a fifth of the table


def events(seed: int, size: int = SIZE, hot: float = 0) -> pa.Table:
    """Return random events; keys may be null, and times equal, with fractions of milliseconds."""
    rng = np.random.default_rng(seed)
    users = [
        f"u{number}" for number in np.where(rng.random(size) < hot, 0, rng.integers(0, 40, size))
    ]
    is_null = pa.array(rng.random(size) < (0.02 if hot == 0 else 0))
    kinds = rng.integers(0, 6, size)
    return pa.table(
        {
            "user": pc.if_else(is_null, pa.scalar(None, pa.string()), pa.array(users)),
            "at": pa.array(rng.integers(0, 1_000_000, size) // 50 * 50, pa.timestamp("us", "UTC")),
            "n": pa.array(np.arange(size) // 3),
            "kind": pa.array(kinds, pa.int8()),
            "type": pa.array([f"t{kind}" for kind in kinds]),
            "price": pa.array(np.round(rng.random(size), 2)),
            "cost": pa.array([None if n % 9 == 0 else n % 50 for n in range(size)], pa.int32()),
            "note": pa.array([f"n{number % 7}" * (number % 3) for number in range(size)]),
        }
    )


def stored(table: pa.Table, folder: Path) -> str:
    for number in range(4):
        part = table.slice(number * len(table) // 4, len(table) // 4)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=400)
    return str(folder)


def assert_same(found: Any, usual: Any) -> None:
    """All that can be asked of rows on disk has the answer of rows in memory."""
    assert isinstance(getattr(found, "_lookup", None) or found._table, SpilledRows | SpilledOutput)
    assert len(found) == len(usual) > 0
    assert found == list(usual)
    assert found[-1] == usual[-1]
    assert found[len(usual) // 2 :] == list(usual[len(usual) // 2 :])
    batches = list(found.toBatches())
    assert sum(batch.num_rows for batch in batches) == len(usual)
    if hasattr(usual, "toArrow"):
        assert found.toArrow().equals(usual.toArrow())
        assert pa.Table.from_batches(batches).equals(usual.toArrow())


FLINK = [
    """PARTITION BY user ORDER BY at MEASURES A.at AS since, LAST(B.price) AS top, SUM(B.cost) AS cost,
    B.note || 'x' AS note PATTERN (A B+ C) WITHIN INTERVAL '1' SECOND
    DEFINE A AS A.kind = 1, B AS B.price > A.price, C AS C.kind = 3""",
    """PARTITION BY user, kind ORDER BY at, price DESC MEASURES A.price AS p, B.price AS q,
    MATCH_ROWTIME() AS t AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS B.price < A.price""",
    """ORDER BY at MEASURES A.at AS a, AVG(B.price) AS mean PATTERN (A B+? C)
    WITHIN INTERVAL '0.1' SECOND DEFINE A AS A.kind = 1, C AS C.kind = 2 AND C.price > A.price""",
]
STANDARD = [
    """PARTITION BY user ORDER BY at MEASURES A.at AS since, AVG(B.price) AS mean, SUM(B.cost) AS cost,
    MATCH_NUMBER() AS number ONE ROW PER MATCH PATTERN (A B+ C?)
    DEFINE A AS A.kind = 1, B AS B.price > PREV(B.price), C AS C.kind = 3""",
    """PARTITION BY user ORDER BY at MEASURES CLASSIFIER() AS c, FINAL LAST(B.note) AS last
    ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B+)
    DEFINE A AS A.kind = 1, B AS B.price > A.price""",
    """PARTITION BY upper(note), kind % 3 ORDER BY price DESC, n MEASURES A.price AS p, B.n AS n
    AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS B.kind = A.kind""",
]
CLAUSES: list[tuple[str, Any]] = [
    *((clause, "flink") for clause in FLINK),
    *((clause, "standard") for clause in STANDARD),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("clause", "dialect"), CLAUSES)
def test_clauses(clause: str, dialect: Any, threads: int, tmp_path: Path) -> None:
    """The rows of a clause, in both dialects, do not tell how many files events were dealt to."""
    table = events(threads)
    path = stored(table, tmp_path)
    found = matchRecognize(path, clause, dialect, threads=threads, memory=SMALL)
    assert_same(found, matchRecognize(table, clause, dialect))


QUERIES = [
    "SEQ(t1 a, t2 b) WHERE skip_till_any_match AND [user] AND b.price > a.price "
    "WITHIN 60 milliseconds",
    "SEQ(t1 a, t2+ b[], !(t4 x), t3 c) WHERE skip_till_next_match AND [user] "
    "WITHIN 90 milliseconds",
    "SEQ(t1 a, t2 b) WHERE partition_contiguity AND [user]",
    "SEQ(t1 a, t2 b) WHERE skip_till_next_match AND [user, note] AND b.price > a.price "
    "WITHIN 900 milliseconds HAVING b.price - a.price > 0.3",
    "SEQ(t1 a, t2+ b[], t3 c) WHERE skip_till_next_match AND [user] WITHIN 90 milliseconds "
    "RETURN a.user, a.at AS since, avg(b[].price) AS mean, sum(b[].cost) AS cost, c.note, b[].kind",
    "SEQ(t1 a, t2 b) WHERE skip_till_next_match AND [cost] WITHIN 900 milliseconds "
    "RETURN EVENT Up(a.price AS p, b.at AS t)",
]


OUTPUTS = ("all", "onePerStart", "nonOverlapping")
TIMES: tuple[Any, ...] = ("at", lambda e: e.at, "n")


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_queries(number: int, turn: int, tmp_path: Path) -> None:
    """
    The matches of a query, and what it returns of them, are those in memory, in their order.

    Each query has each output and each time, and each output each time of some query.
    """
    query = f"PATTERN {QUERIES[number]}"
    table = events(len(query))
    asked: Any = {"timestamp": TIMES[(number + turn) % 3], "output": OUTPUTS[turn]}
    found = matchSase(query, stored(table, tmp_path), memory=SMALL, **asked)
    assert_same(found, matchSase(query, table, **asked))


@pytest.mark.parametrize("evaluation", ["nfa", "backtracking"])
def test_evaluations(evaluation: Any, tmp_path: Path) -> None:
    """Matches in the order of their partitions are in that order in files too."""
    table = events(3)
    path = stored(table, tmp_path)
    query = f"PATTERN {QUERIES[0]}"
    found = matchSase(query, path, "at", evaluation=evaluation, memory=SMALL)
    assert_same(found, matchSase(query, table, "at", evaluation=evaluation))


def test_a_partition_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Flink's dialect it is matched by stretches; elsewhere refused, unless memory is usual."""
    table = events(4, hot=0.8)
    path = stored(table, tmp_path)
    found = matchRecognize(path, FLINK[0], memory=SMALL)
    assert_same(found, matchRecognize(table, FLINK[0]))
    query = f"PATTERN {QUERIES[0]}"
    for ask in (
        lambda **of: matchRecognize(path, STANDARD[0], "standard", **of),
        lambda **of: matchSase(query, path, "at", **of),
    ):
        with pytest.raises(NotSupportedError, match=r"memory='300KB'.* events of one key"):
            ask(memory=SMALL)
    monkeypatch.setattr(machine, "machine_bytes", lambda: 4 * 300_000)
    found = matchRecognize(path, STANDARD[0], "standard")
    assert_same(found, matchRecognize(table, STANDARD[0], "standard"))
    assert_same(matchSase(query, path, "at"), matchSase(query, table, "at"))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("SEQ(t1 a, t2 b) WITHIN 3 milliseconds", {}, "one partition for all"),
    ("SEQ(t1 a, t2 b) WHERE strict_contiguity AND [user]", {}, "one partition for all"),
    (QUERIES[0], {"evaluation": "eventLists"}, "order"),
    (QUERIES[0], {"compressed": True}, "not listed"),
    (QUERIES[0] + " AND upper(a.note) = b.note", {}, "event by event"),
    (f"{QUERIES[5]} THEN PATTERN SEQ(Up a, Up b)", {}, "THEN"),
]


@pytest.mark.parametrize(("query", "options", "message"), REFUSED)
def test_queries_that_have_all_events_in_memory(
    query: str,
    options: dict[str, Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are refused by name where memory is bounded, and are answered in memory otherwise."""
    table = events(5, 400)
    path = stored(table, tmp_path)
    query = query.replace(" WITHIN 60 milliseconds AND", " AND")
    with pytest.raises(NotSupportedError, match=message):
        matchSase(f"PATTERN {query}", path, "at", memory="30KB", **options)
    monkeypatch.setattr(machine, "machine_bytes", lambda: 4 * 30_000)
    found = matchSase(f"PATTERN {query}", path, "at", **options)
    assert list(found) == list(matchSase(f"PATTERN {query}", table, "at", **options))


def test_a_clause_without_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the standard's dialect its rows have one order, and so are in memory, or refused."""
    table = events(6)
    path = stored(table, tmp_path)
    clause = STANDARD[0].replace("PARTITION BY user", "")
    with pytest.raises(NotSupportedError, match="PARTITION BY"):
        matchRecognize(path, clause, "standard", memory=SMALL)
    monkeypatch.setattr(machine, "machine_bytes", lambda: 4 * 300_000)
    assert matchRecognize(path, clause, "standard") == matchRecognize(table, clause, "standard")


def test_memory_of_what_is_not_in_files(tmp_path: Path) -> None:
    """Of tables memory is not bounded, and of files what is no memory is refused."""
    table = events(7, 100)
    path = stored(table, tmp_path)
    query = f"PATTERN {QUERIES[0]}"
    for source, memory, kind in (
        (table, "1GB", NotSupportedError),
        (path, "much", InvalidArgumentError),
    ):
        with pytest.raises(kind, match="memory="):
            matchSase(query, source, "at", memory=memory)
        with pytest.raises(kind, match="memory="):
            matchRecognize(source, FLINK[0], memory=memory)


WRONG = [
    (FLINK[0].replace("user", "usr"), "flink", "usr"),
    (STANDARD[0].replace("B.price >", "B.prize >"), "standard", "prize"),
    (FLINK[0].replace("A.at AS since", "1 / (A.kind - 1) AS since"), "flink", "since"),
    (STANDARD[0].replace("A.at AS since", "1 / (A.kind - 1) AS since"), "standard", "since"),
]


@pytest.mark.parametrize(("clause", "dialect", "message"), WRONG)
def test_what_is_wrong(clause: str, dialect: Any, message: str, tmp_path: Path) -> None:
    """Errors in a clause, and in what it computes, say what to do as those in memory do."""
    table = events(8)
    path = stored(table, tmp_path)
    with pytest.raises(CepError, match=message) as usual:
        matchRecognize(table, clause, dialect)
    with pytest.raises(CepError, match=message) as found:
        matchRecognize(path, clause, dialect, memory=SMALL)
    assert (found.value.hint, found.value.args[1:]) == (usual.value.hint, usual.value.args[1:])


def test_no_output(tmp_path: Path) -> None:
    """What has no rows has their columns."""
    table = events(9)
    path = stored(table, tmp_path)
    for clause, dialect in CLAUSES[:1] + CLAUSES[3:4]:
        none = clause.replace("A.kind = 1", "A.kind = 77")
        usual = matchRecognize(table, none, dialect)
        found = matchRecognize(path, none, dialect, memory=SMALL)
        assert (len(found), found == [], list(found.toBatches())) == (0, True, [])
        assert found.toArrow().equals(usual.toArrow())
    query = f"PATTERN {QUERIES[4]}".replace("[user]", "[user] AND a.price > 2")
    nothing = matchSase(query, path, "at", memory=SMALL)
    assert nothing == []
    assert nothing.toArrow().column_names == ["a_user", "since", "mean", "cost", "c_note", "_6"]  # type: ignore[attr-defined]


def test_values_that_have_no_type_in_columns(tmp_path: Path) -> None:
    """What a query returns is in columns on disk, so that a mixture of types is refused."""
    table = events(10)
    query = "PATTERN SEQ(t1 a, t2 b) WHERE skip_till_next_match AND [user] RETURN a.odd AS odd"
    odd = [{"x": number} if number % 2 else {} for number in range(SIZE)]
    path = stored(table.append_column("odd", pa.array(odd)), tmp_path)
    found = matchSase(query, path, "at", memory=SMALL)
    assert_same(found, matchSase(query, path, "at"))


def test_progress_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How far it is, is shown, and the output written to a file is that in memory."""
    table = events(11)
    (tmp_path / "events").mkdir()
    path = stored(table, tmp_path / "events")
    with Progress() as progress:
        rows = matchRecognize(path, STANDARD[0], "standard", memory=SMALL)
    so_far = progress.soFar
    keys = len(set(table["user"].to_pylist()))
    assert (so_far.events, so_far.matches, so_far.keys) == (SIZE, len(rows), keys)
    assert so_far.tasks > 1
    assert f"{SIZE:,} events read" in capsys.readouterr().err
    rows.toParquet(tmp_path / "rows.parquet")
    usual = matchRecognize(table, STANDARD[0], "standard").toArrow()
    assert pq.read_table(tmp_path / "rows.parquet").equals(usual)
    with Progress() as progress:
        found = matchSase(f"PATTERN {QUERIES[0]}", path, "at", memory=SMALL)
    assert (progress.soFar.events, progress.soFar.matches) == (SIZE, len(found))
    assert progress.soFar.keys == keys


KILLED = """
import sys
from pyflinkcep import matchRecognize, matchSase
from pyflinkcep.tables import clauses, query_match
def wait(*_):
    print("matching", flush=True)
    import time; time.sleep(60)
query_match.SpilledQuery._found = wait
clauses.OutputWriter.write = wait
path, what, text = sys.argv[1:]
if what == "query":
    matchSase(text, path, "at", memory="300KB")
else:
    matchRecognize(path, text, "standard", memory="300KB")
"""


@pytest.mark.parametrize(
    ("what", "text"), [("query", f"PATTERN {QUERIES[0]}"), ("clause", STANDARD[0])]
)
def test_nothing_is_left_after_a_kill(what: str, text: str, tmp_path: Path) -> None:
    """Events are on disk while a process matches, and gone when it is killed."""
    (tmp_path / "events").mkdir()
    (tmp_path / "scratch").mkdir()
    path = stored(events(12), tmp_path / "events")
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
    command = [sys.executable, "-c", KILLED, path, what, text]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "matching\n"
        open_files = Path(f"/proc/{process.pid}/fd")
        held = [os.readlink(file) for file in open_files.iterdir()]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [name for name in held if name.startswith(str(tmp_path / "scratch"))]
    assert os.listdir(tmp_path / "scratch") == []


@pytest.fixture(scope="module")
def wide_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of six million events."""
    path, size = tmp_path_factory.mktemp("wide") / "events.parquet", 1 << 20
    rng = np.random.default_rng(13)
    plain: Any = {"use_dictionary": False, "compression": "none"}  # which is soon written
    with pq.ParquetWriter(path, _wide(0, 1, rng).schema, **plain) as writer:
        for number in range(6):
            writer.write_table(_wide(number * size, size, rng), row_group_size=size // 8)
    return path


@pytest.mark.parametrize("what", ["query", "clause"])
def test_memory_stays_within_the_budget(what: str, wide_file: Path) -> None:
    """A process that matches more than the budget keeps to it, Python and Arrow included."""
    program = (
        "import sys; from pathlib import Path; from pyflinkcep import matchRecognize, matchSase;"
        "what, path = sys.argv[1:];"
        "query = 'PATTERN SEQ(A a, B b) WHERE skip_till_next_match AND [k] AND a.x = 1 '"
        "'AND b.x = 2 WITHIN 9 minutes';"
        "clause = 'PARTITION BY k ORDER BY n MEASURES A.n AS a, B.n AS b PATTERN (A B) '"
        "'DEFINE A AS A.x < 40, B AS B.x < 40';"
        "found = matchSase(query, path, 'n', memory='450MiB') if what == 'query' else "
        "matchRecognize(path, clause, 'standard', memory='450MiB');"
        "print(len(found));"
        'print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])'
    )
    command = [sys.executable, "-c", program, what, str(wide_file)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    count, peak = map(int, outcome.stdout.split())
    assert count > 0
    assert peak < 450 << 10


def _wide(begin: int, size: int, rng: Any) -> pa.Table:
    n = np.arange(begin, begin + size)
    types = pa.array(np.array(["A", "B", "C"])[rng.integers(0, 3, size)])
    return pa.table({"n": n, "k": n // 7 % 50_000, "x": rng.integers(0, 900, size), "type": types})
