# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet that are read while they are matched: the answers are those of their tables."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyflinkcep import Pattern, funnel, match
from pyflinkcep.errors import InputError, TimeUnitWarning
from pyflinkcep.tables import column_match, placing, row_groups, stored
from tests.kernel_harness import needs_kernel

pytestmark = needs_kernel

SIZE = 900


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deal a few hundred events to several threads, in several batches."""
    monkeypatch.setattr(placing, "_LEAST_PART", 20)
    monkeypatch.setattr(placing, "_AT_ONCE", 17)
    monkeypatch.setattr(row_groups, "_AT_ONCE", 23)
    monkeypatch.setattr(column_match, "LEAST_SHARE", 16)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How events are read: by row groups, as a table, or first the one and then the other."""
    found: list[str] = []
    batches, columns_of = row_groups.RowGroups.batches, stored.columns_of

    def by_groups(groups: Any, *args: Any) -> Any:
        if "groups" not in found:
            found.append("groups")
        return batches(groups, *args)

    def as_table(*args: Any) -> Any:
        found.append("table")
        return columns_of(*args)

    monkeypatch.setattr(row_groups.RowGroups, "batches", by_groups)
    monkeypatch.setattr(stored, "columns_of", as_table)
    return found


def events(seed: int, **others: Any) -> pa.Table:
    random = np.random.default_rng(seed)
    own = {
        "key": random.integers(-4, 9, SIZE).astype(np.int32),
        "at": pa.array(np.sort(random.integers(0, 900_000, SIZE)), pa.timestamp("us", "UTC")),
        "kind": random.integers(0, 6, SIZE).astype(np.int32),
        "price": random.random(SIZE),
        "note": [f"n{number}" for number in range(SIZE)],
    }
    return pa.table({**own, **others})


A = Pattern.begin("a").where("kind = 0")
PATTERNS = {
    "strict": A.next("b").where("kind > 3"),
    "relaxed": A.followedBy("b").where("kind = 1 AND price < 0.5"),
    "any": A.followedByAny("b").where("kind = 1").followedBy("c").where("kind IN (2, 3)"),
    "loop": A.followedBy("b").where("price > 0.7").oneOrMore().followedBy("c").where("kind = 4"),
    "stock": A.followedBy("b")
    .where("price > avg(match.price)")
    .oneOrMore()
    .followedBy("c")
    .where("kind > last(b.kind) - 2"),
    "not": A.notFollowedBy("b").where("kind = 1").followedBy("c").where("kind = 2"),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("count", [1, 3])
def test_answers_are_those_of_the_table(
    tmp_path: Path, ways: list[str], name: str, count: int
) -> None:
    """Matches and timeouts in their order, what they show, and funnels, on any number of threads."""
    pattern = PATTERNS[name].within(timedelta(milliseconds=40))
    for seed in range(3):
        table, path = events(seed), str(tmp_path / f"{seed}.parquet")
        pq.write_table(table, path, row_group_size=200, data_page_size=300, write_batch_size=40)
        ways.clear()
        found = match(pattern, path, timestamp="at", key="key", threads=count)
        assert ways == ["groups"]
        usual = match(pattern, table, timestamp="at", key="key", threads=1)
        assert found == usual
        assert len(found) > 0
        assert found.timeouts == usual.timeouts
        assert found.toArrow().equals(usual.toArrow())
        assert ways == ["groups", "table"]  # which is read once
        ways.clear()
        counted = funnel(pattern, path, timestamp="at", key="key", threads=count)
        assert counted.rows == funnel(pattern, table, timestamp="at", key="key").rows
        assert ways == ["groups"]


def test_a_folder_is_read_file_by_file(tmp_path: Path, ways: list[str]) -> None:
    """Row groups of several files are those of one."""
    table = events(5)
    for number in range(3):
        part = table.slice(number * 300, 300)
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=110)
    pattern = PATTERNS["relaxed"]
    found = match(pattern, tmp_path, timestamp="at", key="key", threads=2)
    assert ways == ["groups"]
    assert found == match(pattern, table, timestamp="at", key="key")


def _shuffled(column: Any) -> Any:
    return column.take(pa.array(np.random.default_rng(6).permutation(SIZE)))


def _apart(first: int = 0) -> Any:
    """Return times, of which those of a batch are up to years apart, or next to each other."""
    numbers = np.arange(SIZE) + first
    days = np.where(numbers % 300 < 150, numbers, numbers // 150 * 150)
    return pa.array(days * 86_400_000_000 + numbers, pa.timestamp("us"))


def _texts(count: int) -> Any:
    """Return texts of any length, in another order in each row group."""
    numbers = np.random.default_rng(7).integers(0, count, SIZE)
    return pa.array([f"ü{number % 7 * 'x'}{number}" if number else "" for number in numbers])


OTHERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "times out of order": ({"at": _shuffled(events(4).column("at"))}, ["groups"]),
    "times years apart": ({"at": _apart()}, ["groups"]),
    "times years apart, out of order": ({"at": _shuffled(_apart())}, ["groups"]),
    "times before and after 1970": ({"at": _apart(-450)}, ["groups"]),
    "times as milliseconds": ({"at": np.arange(SIZE)}, ["groups"]),
    "times in nanoseconds": (
        {"at": pa.array(np.arange(SIZE) * 1_500, pa.timestamp("ns"))},
        ["table"],
    ),
    "wide keys": (
        {"key": events(4).column("key").to_numpy().astype(np.int64) * (1 << 55)},
        ["groups"],
    ),
    "texts as keys": ({"key": _texts(9)}, ["groups"]),
    "large texts": ({"key": _texts(9).cast(pa.large_string())}, ["groups"]),
    "categories": ({"key": _texts(9).dictionary_encode()}, ["groups"]),
    "a key for each event": ({"key": _texts(SIZE)}, ["groups"]),
    "a missing text": ({"key": pa.array([None, *_texts(9).to_pylist()[1:]])}, ["table"]),
    "bytes as keys": ({"key": _texts(9).cast(pa.binary())}, ["table"]),
    "keys of 16 bits": ({"key": events(4).column("key").cast(pa.int16())}, ["table"]),
    "a missing key": ({"key": pa.array([None, *range(1, SIZE)])}, ["table"]),
    "a missing price": ({"price": pa.array([None, *range(1, SIZE)], pa.float64())}, ["table"]),
    "floats with NaN": ({"price": np.where(np.arange(SIZE) % 5 == 0, np.nan, 0.2)}, ["groups"]),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_columns_are_read_as_a_table(tmp_path: Path, ways: list[str], what: str) -> None:
    """What C does not read, or has to see twice, is read by Arrow, with the same answers."""
    columns, expected = OTHERS[what]
    table, path = events(4, **columns), str(tmp_path / "events.parquet")
    pq.write_table(table, path, row_group_size=200)
    for name in ("relaxed", "stock"):  # which drops events, and which does not
        ways.clear()
        found = match(PATTERNS[name], path, timestamp="at", key="key", threads=2)
        assert ways == expected
        usual = match(PATTERNS[name], table, timestamp="at", key="key")
        assert repr(found) == repr(usual)  # NaN is not equal to NaN


@pytest.mark.parametrize("what", ["sorted", "times out of order", "texts as keys"])
@pytest.mark.parametrize("name", ["strict", "loop", "stock"])
def test_some_keys_are_matched_after_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: list[str], what: str, name: str
) -> None:
    """Where all events in their order would take too much memory, as many keys as do not."""
    columns, _ = OTHERS.get(what, ({}, []))
    table, path = events(8, **columns), str(tmp_path / "events.parquet")
    pq.write_table(table, path, row_group_size=200)
    pattern = PATTERNS[name].within(timedelta(milliseconds=40))
    usual = match(pattern, table, timestamp="at", key="key", threads=1)
    rounds: list[int] = []
    some = placing._Work._scattered

    def seen(*args: Any) -> Any:
        for placed in some(*args):
            rounds.append(placed.size)
            yield placed

    monkeypatch.setattr(placing._Work, "_scattered", seen)
    monkeypatch.setattr(placing, "_MOST_BYTES", 4_000)
    for given, expected in ((path, ["groups"]), (table, [])):
        ways.clear()
        rounds.clear()
        found = match(pattern, given, timestamp="at", key="key", threads=2)
        assert ways == expected
        assert len(rounds) > 1
        assert found == usual
        assert found.timeouts == usual.timeouts


def test_a_file_that_changes_between_rounds_is_read_as_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: list[str]
) -> None:
    """What was found until a page could not be read any more is found again."""
    table, path = events(8), str(tmp_path / "events.parquet")
    pq.write_table(table, path)
    monkeypatch.setattr(placing, "_MOST_BYTES", 4_000)
    rounds, read = column_match.ColumnMatch.rounds, row_groups._read

    def failing(*_: Any) -> None:
        raise row_groups.Unfit

    def seen(*args: Any, **options: Any) -> Any:
        for number, job in enumerate(rounds(*args, **options)):
            yield job
            if not number:
                monkeypatch.setattr(row_groups, "_read", failing)
        monkeypatch.setattr(row_groups, "_read", read)

    monkeypatch.setattr(column_match.ColumnMatch, "rounds", seen)
    found = match(PATTERNS["stock"], path, timestamp="at", key="key")
    assert ways == ["groups", "table"]
    assert found == match(PATTERNS["stock"], table, timestamp="at", key="key")


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": ["kind"]},
        {"dictionary_pagesize_limit": 40, "write_batch_size": 20, "data_page_size": 50},
        {"data_page_version": "2.0", "compression": "none"},
        {"row_group_size": 7},
    ],
    ids=["plain", "partly plain", "second", "small"],
)
def test_texts_that_dictionaries_do_not_have(
    tmp_path: Path, ways: list[str], options: dict[str, Any]
) -> None:
    """Where a text is not in the dictionary of its row group, events are read as a table."""
    table, path = events(4, key=_texts(300)), str(tmp_path / "events.parquet")
    pq.write_table(table, path, **options)
    expected = {
        "use_dictionary": ["table"],
        "dictionary_pagesize_limit": ["groups", "table"],
    }.get(next(iter(options)), ["groups"])
    for name in ("relaxed", "strict"):
        ways.clear()
        found = match(PATTERNS[name], path, timestamp="at", key="key", threads=2)
        assert ways == expected
        assert found == match(PATTERNS[name], table, timestamp="at", key="key")


def test_very_many_texts_are_read_as_a_table(
    tmp_path: Path, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary that is nearly full is one of which later pages may do without."""
    table, path = events(4, key=_texts(300)), str(tmp_path / "events.parquet")
    pq.write_table(table, path)
    monkeypatch.setattr(row_groups, "_MOST_TEXTS", 1_000)
    found = match(PATTERNS["strict"], path, timestamp="at", key="key")
    assert ways == ["table"]
    assert found == match(PATTERNS["strict"], table, timestamp="at", key="key")


@pytest.mark.parametrize("condition", ["key = 'üxxx3'", "KEY <> ''", "length(key) > 2"])
def test_conditions_on_keys_that_are_texts(tmp_path: Path, ways: list[str], condition: str) -> None:
    """A condition sees the text of a key, not its code."""
    table, path = events(4, key=_texts(9)), str(tmp_path / "events.parquet")
    pq.write_table(table, path)
    pattern = A.followedBy("b").where(f"kind = 1 AND {condition}")
    found = match(pattern, path, timestamp="at", key="key")
    assert ways == ["table"]
    assert found == match(pattern, table, timestamp="at", key="key")
    assert len(found) > 0


TEXTS = {
    "equal": "name = 'üxxx3'",
    "different": "name <> 'üxxx3' AND name <> ''",
    "a text that no event has": "name = 'nothing'",
    "any of some": "name IN ('', 'üx1', 'nothing')",
    "like": "name LIKE '%xx%'",
    "not like": "name NOT LIKE 'ü%'",
    "begins with": "startswith(name, 'üxx')",
    "less": "name < 'üxx' AND name >= 'ü'",
    "with numbers": "name > 'ü' AND price < 0.5 OR kind = 2",
    "of two columns": "name = other",
    "missing": "name IS NULL OR name = 'üx1'",
    "chosen": "CASE WHEN name = 'üx1' THEN kind < 3 ELSE other = 'ü0' END",
}


@pytest.mark.parametrize("what", TEXTS)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary("int8", "string")])
def test_conditions_on_texts(tmp_path: Path, ways: list[str], what: str, kind: Any) -> None:
    """They are decided by the texts of the dictionaries, which differ by row group."""
    names = _texts(9).cast(kind) if kind != pa.dictionary("int8", "string") else _texts(9)
    table = events(3, name=names, other=_texts(400)).append_column("more", _texts(5))
    path = str(tmp_path / "events.parquet")
    pq.write_table(table, path, row_group_size=130)
    first = Pattern.begin("a").where(TEXTS[what])
    pattern = first.followedBy("b").where("name LIKE 'ü%' AND kind < 4")
    found = match(pattern, path, timestamp="at", key="key", threads=2)
    assert ways == ["groups"]
    usual = match(pattern, table, timestamp="at", key="key")
    assert found == usual
    assert found.timeouts == usual.timeouts
    assert (len(found) > 0) == (what != "a text that no event has")


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        (pa.array([None, *_texts(9).to_pylist()[1:]]), "name = 'üx1'"),
        (_texts(9), "upper(name) = 'ÜX1'"),
    ],
    ids=["a missing text", "a function"],
)
def test_other_conditions_on_texts(
    tmp_path: Path, ways: list[str], name: Any, condition: str
) -> None:
    """What texts of dictionaries do not decide is read as a table."""
    table, path = events(3, name=name), str(tmp_path / "events.parquet")
    pq.write_table(table, path, row_group_size=130)
    pattern = Pattern.begin("a").where(condition).followedBy("b").where("kind < 4")
    found = match(pattern, path, timestamp="at", key="key")
    assert ways[-1] == "table"
    assert found == match(pattern, table, timestamp="at", key="key")


def test_texts_beside_keys_that_are_texts(tmp_path: Path, ways: list[str]) -> None:
    """Each has numbers of its own."""
    table = events(3, key=_texts(9), name=_texts(9), other=_texts(400))
    path = str(tmp_path / "events.parquet")
    pq.write_table(table, path, row_group_size=130)
    first = Pattern.begin("a").where("name = 'üx1'")
    pattern = first.followedByAny("b").where("other > name")
    found = match(pattern, path, timestamp="at", key="key", threads=2)
    assert ways == ["groups"]
    assert found == match(pattern, table, timestamp="at", key="key")
    assert len(found) > 0


@pytest.mark.parametrize("compression", ["zstd", "gzip", "none"])
def test_other_compressions_are_read_too(tmp_path: Path, ways: list[str], compression: str) -> None:
    """Arrow decompresses what is neither plain nor Snappy."""
    table, path = events(3), str(tmp_path / "events.parquet")
    pq.write_table(table, path, compression=compression)
    found = match(PATTERNS["strict"], path, timestamp="at", key="key")
    assert ways == ["groups" if compression == "none" else "table"]
    assert found == match(PATTERNS["strict"], table, timestamp="at", key="key")


def test_files_without_statistics_are_read_as_a_table(tmp_path: Path, ways: list[str]) -> None:
    """Footers that tell no extremes do not tell whether conditions may fail."""
    table, path = events(3), str(tmp_path / "events.parquet")
    pq.write_table(table, path, write_statistics=False)
    found = match(PATTERNS["strict"], path, timestamp="at", key="key")
    assert ways == ["table"]
    assert found == match(PATTERNS["strict"], table, timestamp="at", key="key")


@pytest.mark.parametrize("name", ["key", "kind"])
def test_footers_that_are_wrong_are_not_believed(
    tmp_path: Path, ways: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that are not between the extremes that are told have the events read as a table."""
    table, path = events(3), str(tmp_path / "events.parquet")
    pq.write_table(table, path)
    of = row_groups.RowGroups.of

    def wrong(*args: Any) -> Any:
        groups = of(*args)
        ends, place = groups.extremes, groups.extremes.column_names.index(name)
        ends = ends.set_column(place, name, pa.array([0, 1], pa.int32()))
        return attrs.evolve(groups, extremes=ends)

    monkeypatch.setattr(row_groups.RowGroups, "of", wrong)
    found = match(PATTERNS["strict"], path, timestamp="at", key="key")
    assert ways == ["groups", "table"]
    assert found == match(PATTERNS["strict"], table, timestamp="at", key="key")


def test_a_footer_that_is_wrong_about_what_is_moved_is_not_believed(
    tmp_path: Path, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that does not fit the bytes that the told extremes take is not cut."""
    random = np.random.default_rng(2)
    table, path = events(3, amount=random.integers(0, 9, SIZE)), str(tmp_path / "events.parquet")
    pq.write_table(table, path)
    up = A.followedBy("b").where("amount > last(match.amount)").oneOrMore()
    pattern = up.followedBy("c").where("amount < first(b.amount)")
    found = match(pattern, path, timestamp="at", key="key")
    assert ways == ["groups"]
    assert found == match(pattern, table, timestamp="at", key="key")
    assert len(found) > 0
    place = table.column_names.index("amount")
    table = table.set_column(place, "amount", pc.multiply(table.column("amount"), 1 << 31))
    pq.write_table(table, path)
    told = row_groups._told

    def wrong(path: str, places: tuple[int, ...]) -> Any:
        groups, size = told(path, places)
        at = places.index(place)
        return [
            (rows, (*own[:at], (*own[at][:-1], (0, 9)), *own[at + 1 :])) for rows, own in groups
        ], size

    ways.clear()
    monkeypatch.setattr(row_groups, "_told", wrong)
    found = match(pattern, path, timestamp="at", key="key")
    assert ways == ["groups", "table"]
    assert found == match(pattern, table, timestamp="at", key="key")


def test_dates_of_any_year_are_read(tmp_path: Path, ways: list[str]) -> None:
    """Extremes that Python has no date for are numbers as others are, of a row group as of all."""
    days = pa.array([*range(SIZE - 1), 2**31 - 1], pa.int32()).view(pa.date32())
    table, path = events(3, day=days), str(tmp_path / "events.parquet")
    pq.write_table(table, path, row_group_size=100)
    pattern = A.followedBy("b").where("kind = 1 AND day IS NOT NULL")
    found = match(pattern, path, timestamp="at", key="key")
    assert ways == ["groups"]
    assert found == match(pattern, table, timestamp="at", key="key")


def test_a_row_group_that_tells_no_extremes_has_any_values(
    tmp_path: Path, ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of the others does not hold of it."""
    table, path = events(3), str(tmp_path / "events.parquet")
    table = table.append_column("amount", pa.array(np.arange(SIZE) * (1 << 53)))
    pq.write_table(table, path, row_group_size=SIZE // 2)
    told = row_groups._told

    def less_told(path: str, places: tuple[int, ...]) -> Any:
        first, (rows, columns) = told(path, places)[0]
        return [first, (rows, tuple((*own[:-1], None) for own in columns))], told(path, places)[1]

    monkeypatch.setattr(row_groups, "_told", less_told)
    pattern = A.followedBy("b").where("amount > 5 AND price > 0")
    found = match(pattern, path, timestamp="at", key="key")
    assert ways == ["table"]
    assert found == match(pattern, table, timestamp="at", key="key")


def test_damaged_pages_are_told_by_arrow(tmp_path: Path) -> None:
    """The error names the file, as that of any file that cannot be read."""
    path = tmp_path / "events.parquet"
    pq.write_table(events(3), path)
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(1)
    begin = column.dictionary_page_offset
    data[begin : begin + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"events.parquet' cannot be read as Parquet"):
        match(PATTERNS["strict"], path, timestamp="at", key="key")


def test_a_damaged_name_is_told_of(tmp_path: Path) -> None:
    """Bytes that are no text where a column's name is have the file refused by its name."""
    path = tmp_path / "events.parquet"
    pq.write_table(events(3), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"\x04note", b"\x04no\xd2e"))
    with pytest.raises(InputError, match=r"events.parquet' cannot be read as Parquet"):
        match(PATTERNS["strict"], path, timestamp="at", key="key")


def test_seconds_are_warned_of_once(tmp_path: Path) -> None:
    """Times that look like seconds are told of as those of tables are."""
    path = tmp_path / "events.parquet"
    pq.write_table(events(3, at=np.arange(SIZE) + 1_700_000_000), path)
    with pytest.warns(TimeUnitWarning) as warned:
        match(PATTERNS["strict"], path, timestamp="at", key="key")
    assert len(warned) == 1


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Where the columns begin that are read by row groups."""
    found: set[int] = set()
    pages = row_groups._pages

    def seen(path: str, column: Any, *others: Any) -> Any:
        found.add(column.begin)
        return pages(path, column, *others)

    monkeypatch.setattr(row_groups, "_pages", seen)
    return found


def _groups(opened: set[int], path: str) -> list[int]:
    """Return the row groups of which a column was read."""
    metadata = pq.read_metadata(path)
    return [
        number
        for number in range(metadata.num_row_groups)
        if any(
            begin in opened
            for place in range(metadata.num_columns)
            for column in [metadata.row_group(number).column(place)]
            for begin in (column.dictionary_page_offset, column.data_page_offset)
        )
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_row_groups_that_no_stage_can_use_are_not_read(
    tmp_path: Path, opened: set[int], count: int
) -> None:
    """Without a key, where the extremes of a column tell that matching needs none of its events."""
    kind = np.repeat(np.arange(9, dtype=np.int32), SIZE // 9)
    kind[::50] += 1
    table, path = events(8, kind=kind), str(tmp_path / "events.parquet")
    pq.write_table(table, path, row_group_size=100)
    b = A.followedBy("b").where("kind = 6")
    for pattern, expected in (
        (b.within(timedelta(milliseconds=800)), [0, 5, 6]),
        (b.followedBy("c").where("kind = 8 AND price > 0.5"), None),  # prices may be any
        (A.followedBy("b").where("kind IN (2, 9)"), [0, 1, 2, 8]),
        (Pattern.begin("a").where("kind = 77").followedBy("b").where("kind = 78"), []),
        (A.next("b").where("kind = 6"), []),  # needs all events, as a table
        (A.notFollowedBy("b").where("kind = 3").followedBy("c").where("kind = 8"), [0, 2, 3, 7, 8]),
    ):
        opened.clear()
        found = match(pattern, path, timestamp="at", threads=count)
        every = list(range(9))
        assert _groups(opened, path) == (every if expected is None else expected)
        usual = match(pattern, table, timestamp="at")
        assert found == usual
        assert found.timeouts == usual.timeouts
    opened.clear()
    match(b, path, timestamp="at", key="key", threads=count)  # in the order of their first events
    assert _groups(opened, path) == list(range(9))
