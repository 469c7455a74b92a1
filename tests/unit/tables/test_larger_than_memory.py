# SPDX-License-Identifier: Apache-2.0
"""Files that do not fit memory: the same matches in the same order, and nothing left on disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern, Progress, match
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError, StateLimitError
from pyflinkcep.matching.keys import hashes
from pyflinkcep.matching.memory import memory_bytes
from pyflinkcep.matching.spill import SpillFile
from pyflinkcep.tables import spilled_match, spilling
from pyflinkcep.tables.given import checked
from pyflinkcep.tables.order import Keys
from pyflinkcep.tables.spilled_match import SpilledMatch
from pyflinkcep.tables.spilling import _hash

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("memory_is_kept")]

RNG = np.random.default_rng(5)
SIZE = 6_000
TABLE = pa.table(
    {
        "user": pc.if_else(
            pa.array(RNG.random(SIZE) < 0.02),
            pa.scalar(None, pa.string()),
            pa.array([f"u{number}" for number in RNG.integers(0, 60, SIZE)]),
        ),
        "at": pa.array(RNG.integers(0, 4_000_000, SIZE), pa.timestamp("us", "UTC")),
        "kind": pa.array(RNG.integers(0, 6, SIZE), pa.int8()),
        "price": pa.array(RNG.random(SIZE)),
        "note": pa.array([f"n{number % 7}" * (number % 3) for number in range(SIZE)]),
    }
)
SMALL = "1MB"  # of which events may need 100 KB, a tenth of the table
RISE = (
    Pattern.begin("low")
    .where("kind = 1")
    .followedBy("more")
    .where("kind = 2")
    .oneOrMore()
    .greedy()
    .optional()
    .followedBy("high")
    .where("kind = 3 AND price > last(low.price)")
    .within(timedelta(milliseconds=90))
)
PYTHON = Pattern.begin("a").where(lambda e: e.kind == 1).next("b").where("kind IN (2, 3)")


@pytest.fixture
def path(tmp_path: Path) -> str:
    for number in range(4):
        part = TABLE.slice(number * 1_500, 1_500)
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=400)
    return str(tmp_path)


def is_spilled(found: Any) -> bool:
    return type(found._lookup).__name__ == "SpilledRows"


def assert_same(found: Any, usual: Any) -> None:
    """All that can be asked of matches has the same answer."""
    assert is_spilled(found)
    assert len(found) == len(usual) > 0
    assert found == usual
    assert repr(found[:50]) == repr(usual[:50])
    assert found[len(usual) // 2] == usual[len(usual) // 2]
    assert found[-1] == usual[-1]
    assert found.timeouts == usual.timeouts
    assert found.toArrow().equals(usual.toArrow())
    batches = list(found.toBatches())
    assert pa.Table.from_batches(batches).equals(usual.toArrow())


HIGH = Pattern.begin("a").where("kind > 1").within(timedelta(milliseconds=1))
ASKED = {
    **{
        f"{name} of {language}": (key, pattern)
        for name, key in (("text", "user"), ("none", None), ("function", lambda e: (e.user or "")[-1:]))
        for language, pattern in (("sql", RISE), ("python", PYTHON))
    },
    "several": (["user", "kind"], HIGH),
    "double": ("price", HIGH),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("asked", ASKED)
def test_answers_are_those_in_memory(asked: str, threads: int, path: str) -> None:
    """Matches, timeouts and their order do not tell how many files events were dealt to."""
    key, pattern = ASKED[asked]
    found = match(pattern, path, "at", key, threads=threads, memory=SMALL)
    assert_same(found, match(pattern, TABLE, "at", key))


@pytest.mark.parametrize("pattern", [RISE, PYTHON], ids=["sql", "python"])
@pytest.mark.parametrize("memory", ["300KB", "1MB", "4MB"])
def test_a_key_larger_than_memory(pattern: Pattern, memory: str, tmp_path: Path) -> None:
    """A key with most events is matched by stretches of time, and its partial matches go on."""
    hot = pc.if_else(pa.array(RNG.random(SIZE) < 0.8), "hot", TABLE["user"])
    table = TABLE.set_column(0, "user", hot)
    pq.write_table(table, tmp_path / "events.parquet")
    found = match(pattern, tmp_path, "at", "user", memory=memory)
    assert_same(found, match(pattern, table, "at", "user"))


@pytest.mark.parametrize("key", ["zero", lambda e: e.zero or (0, 0.0)[e.kind % 2]])
def test_a_key_larger_than_memory_has_values_that_differ(key: Any, tmp_path: Path) -> None:
    """Zeros of both signs, and whole ones, are one key in all stretches of its time."""
    size = 600
    at = np.r_[39, 0, 0, RNG.integers(0, 40, size - 3)]
    zeros = np.r_[0.0, 1.5, -0.0, RNG.choice([0.0, -0.0, 0.0, -0.0, 1.5], size - 3)]
    table = pa.table({"kind": RNG.integers(0, 3, size), "at": at, "zero": zeros})
    pq.write_table(table, tmp_path / "events.parquet")
    pattern = Pattern.begin("a").where("kind = 1").next("b").where("kind = 2")
    found = match(pattern.within(timedelta(milliseconds=3)), tmp_path, "at", key, memory="2KB")
    assert_same(found, match(pattern.within(timedelta(milliseconds=3)), table, "at", key))


def test_keys_that_happen_to_have_one_number(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are dealt by time, since their numbers do not tell them apart, stay in order."""
    monkeypatch.setattr(
        spilling.Dealing, "_hashes", lambda _, table: np.zeros(len(table), np.uint64)
    )
    found = match(RISE, path, "at", "user", memory=SMALL)
    assert_same(found, match(RISE, TABLE, "at", "user"))


@pytest.mark.parametrize(
    "key",
    [
        lambda e: e.user or 0,
        lambda e: (e.user, e.note),
        lambda e: len(e.note) if e.user else None,
        lambda e: len(e.note) or 5.5,
    ],
    ids=["mixed", "tuple", "null", "double"],
)
@pytest.mark.parametrize("kind", [2, 77])
def test_keys_of_functions(key: Any, kind: int, tmp_path: Path) -> None:
    """Keys that a function returns have one type in all files, not that of a column `key`."""
    table = TABLE.append_column("key", pa.array(range(SIZE)))
    pq.write_table(table, tmp_path / "named.parquet")
    pattern = Pattern.begin("a").where("kind = 1").followedBy("b").where(f"kind = {kind}")
    found = match(pattern, str(tmp_path / "named.parquet"), "at", key, memory=SMALL)
    usual = match(pattern, table, "at", key)
    assert is_spilled(found)
    assert found == usual
    assert (len(found) == 0) is (kind == 77)
    assert found.toArrow().equals(usual.toArrow())


def test_many_blocks_of_matches(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches are in the order of all keys also if those of a key are in many blocks."""
    monkeypatch.setattr(spilled_match, "MOST_EVENTS", 32)
    pattern = Pattern.begin("a").where("kind > 1").followedByAny("b").where("kind = 0")
    pattern = pattern.within(timedelta(milliseconds=40))
    for key in ("user", "at"):
        found = match(pattern if key != "at" else Pattern.begin("a"), path, "at", key, memory=SMALL)
        usual = match(pattern if key != "at" else Pattern.begin("a"), TABLE, "at", key)
        assert len(found) == len(usual)
        assert found == usual
        assert found.toArrow().equals(usual.toArrow())


def test_without_times(path: str) -> None:
    """Events without a time are a millisecond apart, in all files."""
    pattern = RISE.within(timedelta(milliseconds=300))
    for key in (None, "user"):
        found = match(pattern, path, key=key, memory=SMALL)
        assert_same(found, match(pattern, TABLE, key=key))


def test_conditions_that_have_no_program_in_some_stretch(tmp_path: Path) -> None:
    """Sums that could overflow in a part of the events are not computed for its whole columns."""
    size = 4_000
    n = np.r_[np.arange(size - 1), 2**31 - 1].astype(np.int32)
    kinds = np.r_[np.arange(size - 1) % 3, 7].astype(np.int32)
    table = pa.table({"n": n, "kind": kinds, "text": ["x" * 40] * size})
    pq.write_table(table, tmp_path / "events.parquet")
    pattern = Pattern.begin("a").where("kind < 2 AND n + 1 > 5").next("b").where("kind = 2")
    found = match(pattern, tmp_path, memory=SMALL)
    assert_same(found, match(pattern, table))


def test_skipping_and_bounds(path: str) -> None:
    """Skip strategies and bounds on partial matches hold in each bucket; drops are added up."""
    skip = AfterMatchSkipStrategy.skipPastLastEvent()
    pattern = Pattern.begin("a", skip).where("kind = 1").followedByAny("b").where("kind = 2")
    pattern = pattern.within(timedelta(milliseconds=200))
    bound: Any = {"maxPartialMatches": 2, "onTooManyPartialMatches": "dropOldest"}
    found = match(pattern, path, "at", "user", memory=SMALL, **bound)
    usual = match(pattern, TABLE, "at", "user", **bound)
    assert_same(found, usual)
    assert found.numPartialMatchesDropped == usual.numPartialMatchesDropped > 0
    with pytest.raises(StateLimitError, match="key"):
        match(pattern, path, "at", "user", memory=SMALL, maxPartialMatches=1)


def test_files_of_text_in_folders_of_partitions(tmp_path: Path) -> None:
    """Files of CSV, and columns that folders are named after, are dealt as they are read."""
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        part = TABLE.select(["user", "kind"]).slice((day - 1) * 3_000, 3_000)
        csv.write_csv(part, tmp_path / f"day={day}" / "events.csv")
    pattern = Pattern.begin("a").where("kind = 1").next("b").where("kind = 2 AND day = 2")
    usual = match(pattern, tmp_path, key="user", memory="1GB")
    assert not is_spilled(usual)
    assert_same(match(pattern, tmp_path, key="user", memory="100KB"), usual)


def test_several_files(path: str) -> None:
    """A pattern of names stands for the files that have them, in their order."""
    part = TABLE.slice(1_500, 3_000)
    usual = match(RISE, part, "at", "user")
    assert match(RISE, f"{path}/[12].par*", "at", "user") == usual
    assert_same(match(RISE, f"{path}/[12].par*", "at", "user", memory=SMALL), usual)
    with pytest.raises(InvalidArgumentError, match="where there is nothing"):
        match(RISE, f"{path}/x*.parquet", "at", "user")


def test_what_fits_is_matched_as_ever(path: str) -> None:
    """Only events that need more memory are dealt; the default is enough for small files."""
    assert not is_spilled(match(RISE, path, "at", "user"))
    assert not is_spilled(match(RISE, path, "at", "user", memory="1GB"))


def test_progress(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """How far a match of files is, is shown on request, and unasked only on a terminal."""
    with Progress() as progress:
        found = match(RISE, path, "at", "user", memory=SMALL)
    so_far = progress.soFar
    assert (so_far.events, so_far.matches) == (SIZE, len(found))
    assert so_far.tasks > 1
    assert so_far.keys == len(set(TABLE["user"].to_pylist()))
    assert f"{SIZE:,} events read" in capsys.readouterr().err
    match(RISE, path, "at", "user", memory=SMALL)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal is told how far a match is, and a file, such as a log, nothing."""
    for is_terminal in (True, False):
        shown = StringIO()
        shown.isatty = lambda answer=is_terminal: answer  # type: ignore[method-assign,misc]
        monkeypatch.setattr(sys, "stderr", shown)
        match(RISE, path, "at", "user", memory=SMALL)
        assert (f"{SIZE:,} events read" in shown.getvalue()) is is_terminal


def test_no_matches(path: str) -> None:
    """What has no matches has the columns of those."""
    pattern = Pattern.begin("a").where("kind = 77")
    found, usual = (
        match(pattern, path, "at", "user", memory=SMALL),
        match(pattern, TABLE, "at", "user"),
    )
    assert is_spilled(found)
    assert (len(found), found == [], found.timeouts, list(found.toBatches())) == (0, True, [], [])
    assert found.toArrow().equals(usual.toArrow())


def test_matches_as_a_file(path: str, tmp_path: Path) -> None:
    """A file of Parquet has what a table has, of memory and of files, and is there when whole."""
    usual = match(RISE, TABLE, "at", "user")
    for number, found in enumerate([usual, match(RISE, path, "at", "user", memory=SMALL)]):
        target = tmp_path / "found" / f"{number}.parquet"
        target.parent.mkdir(exist_ok=True)
        found.toParquet(target)
        assert pq.read_table(target).equals(usual.toArrow())
    with pytest.raises(NotSupportedError, match="columns"):
        match(Pattern.begin("a"), [1, 2]).toParquet(tmp_path / "found" / "2.parquet")
    assert sorted(os.listdir(tmp_path / "found")) == ["0.parquet", "1.parquet"]


def test_what_is_wrong_is_said_before_events_are_dealt(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that no column has, and conditions that only Spark knows, are errors at once."""
    monkeypatch.setattr(SpilledMatch, "_match", None)
    with pytest.raises(InputError, match="no column"):
        match(RISE, path, "at", "usr", memory=SMALL)
    only_spark = Pattern.begin("a").where("regexp_count(note, 'n') > 1")
    with pytest.raises(NotSupportedError, match="event by event"):
        match(only_spark, path, "at", "user", memory=SMALL)


@pytest.mark.parametrize(
    ("text", "number"),
    [("2GB", 2 * 10**9), ("512 MiB", 512 << 20), ("1.5k", 1500), (7, 7), ("3g", 3 * 10**9)],
)
def test_memory_in_bytes_or_text(text: Any, number: int) -> None:
    """Texts have units of 1000 or, with an i, of 1024."""
    assert memory_bytes(text) == number


@pytest.mark.parametrize("memory", ["much", 0, -1, "2 gallons", True, 1.5])
def test_memory_that_is_none(memory: Any, path: str) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidArgumentError, match="memory="):
        match(RISE, path, memory=memory)


@pytest.mark.parametrize("key", [None, "user"])
def test_hardly_any_memory(key: str | None, tmp_path: Path) -> None:
    """A budget that no event fits is one: of a few events, each is in a file of its own."""
    pq.write_table(TABLE.slice(0, 60), tmp_path / "events.parquet")
    pattern = Pattern.begin("a").where("kind > 1").followedBy("b").where("kind < 3")
    found = match(pattern, tmp_path, "at", key, memory=1)
    assert_same(found, match(pattern, TABLE.slice(0, 60), "at", key))


def test_memory_where_it_cannot_be_bounded() -> None:
    """Of what is not a file, and of what is matched event by event, memory is not bounded."""
    with pytest.raises(NotSupportedError, match="memory="):
        match(RISE, TABLE, "at", "user", memory="1GB")


VALUES = [
    pa.array([0.0, -0.0, float("nan"), None, float("nan"), 1.0]),
    pa.array(["a", "", None, "a", "b", "ab"]),
    pa.array(["a", "", None, "a", "b", "ab"]).dictionary_encode(),
    pa.array([True, False, None, True, False, None]),
    pa.array([1, 2, None, 1, 2**62, -1]),
    pa.array([[1], [2, None], None, [1], [], [1]]),
    pa.array([b"a", b"", None, b"a", b"b", b"ab"]),
    pa.array([1, 2, None, 1, 3, 2], pa.date32()),
    pa.array([1, 2, None, 1, 3, 2], pa.decimal128(20, 3)),
    pa.nulls(6),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
def test_one_key_has_one_number(values: pa.Array) -> None:
    """Values that are one key have one number, in whatever chunks, and few others have it."""
    column = pa.chunked_array([values, values.slice(2)])
    codes = Keys.of(checked(pa.table({"k": column})), "k").codes
    found = hashes([column], _hash)
    pairs = {(code, number) for code, number in zip(codes.tolist(), found.tolist(), strict=True)}
    assert len(pairs) == len(set(codes.tolist())) == len(set(found.tolist()))


KILLED = """
import sys
from pyflinkcep import Pattern, match
from pyflinkcep.tables import spilled_match, spilling
def wait(*_):
    print("matching", flush=True)
    import time; time.sleep(60)
spilled_match.SpilledMatch._match = wait
match(Pattern.begin("a").where("kind = 1"), sys.argv[1], "at", "user", memory="1MB")
"""


def test_nothing_is_left_after_a_kill(path: str, tmp_path: Path) -> None:
    """Events are on disk while a process matches, and gone when it is killed."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, path], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "matching\n"
        open_files = Path(f"/proc/{process.pid}/fd")
        held = [os.readlink(file) for file in open_files.iterdir()]
        held = [name for name in held if name.startswith(str(scratch))]
        sizes = [file.stat().st_size for file in open_files.iterdir() if file.exists()]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert held
    assert sum(sizes) > TABLE.nbytes
    assert os.listdir(scratch) == []


def test_tables_of_a_spill_file() -> None:
    """Tables come back as they were, in their order and one by one, until the file is closed."""
    file = SpillFile()
    blocks = [file.add(TABLE.slice(begin, 100)) for begin in (0, 700)]
    for table, begin in zip(file.tables(), (0, 700), strict=True):
        assert table.equals(TABLE.slice(begin, 100))
    assert file.read(blocks[1]).equals(TABLE.slice(700, 100))
    assert file.rows == 200
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(blocks[0])


def test_memory_stays_within_the_budget(tmp_path: Path) -> None:
    """A process that matches more than the budget keeps to it, Python and Arrow included."""
    size = 1 << 20
    plain: Any = {"use_dictionary": False, "compression": "none"}  # which is soon written
    with pq.ParquetWriter(tmp_path / "events.parquet", _wide(0, 1).schema, **plain) as writer:
        for number in range(4):
            writer.write_table(_wide(number * size, size), row_group_size=size // 8)
    program = (
        "import sys; from pathlib import Path; from pyflinkcep import Pattern, match;"
        'p = Pattern.begin("a").where("n % 4096 = 1").followedBy("b").where("n % 4096 = 2");'
        'print(len(match(p, sys.argv[1], "n", "k", memory="450MiB")));'
        'print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])'
    )
    command = [sys.executable, "-c", program, str(tmp_path / "events.parquet")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    count, peak = map(int, outcome.stdout.split())
    assert count > 0
    assert peak < 450 << 10


def _wide(begin: int, size: int) -> pa.Table:
    n = np.arange(begin, begin + size)
    return pa.table({"n": n, "k": n // 7 % 50_000, **{f"c{i}": n + i for i in range(8)}})
