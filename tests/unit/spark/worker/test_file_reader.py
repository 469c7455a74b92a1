# SPDX-License-Identifier: Apache-2.0
"""Workers read chunks of files of Parquet: each row once, in order, or an error with a way out."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.errors import InputError
from pyflinkcep.spark.worker import file_reader
from pyflinkcep.spark.worker.file_reader import CHUNK, HAVE_SPARK_READ, FileReader

ROWS = 3 * CHUNK + 100
EVENTS = pa.table({"id": range(ROWS), "name": [f"n{row % 7}" for row in range(ROWS)]})
ZONED, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


def _chunks(*of: tuple[Path, int]) -> Iterator[pa.RecordBatch]:
    """Yield the first rows of chunks as Spark sends them, two in a batch."""
    files = [f"file:{quote(str(path))}" for path, _ in of]
    table = pa.table({"file": files, "row": pa.array([row for _, row in of], pa.int64())})
    yield from table.to_batches(max_chunksize=2)


def _reader(is_case_sensitive: bool = False, **types: pa.DataType) -> FileReader:
    return FileReader(pa.schema(types.items()), is_case_sensitive, "a → b")


def _column(path: Path, type_: pa.DataType, name: str = "x") -> list[Any]:
    """Return a column of a small file."""
    batches = list(_reader(**{name: type_}).read(_chunks((path, 0))))
    assert {str(batch.schema) for batch in batches} == {str(pa.schema({name: type_}))}
    return pa.Table.from_batches(batches).column(0).to_pylist()


def _written(path: Path, values: Any, type_: pa.DataType, **more: Any) -> Path:
    """Write a column."""
    pq.write_table(pa.table({"x": pa.array(values, type_)}), path, **more)
    return path


def _refusal(path: Path, type_: pa.DataType, name: str = "x", sensitive: bool = False) -> str:
    """Return the message for a file that is not read."""
    with pytest.raises(InputError) as caught:
        list(_reader(sensitive, **{name: type_}).read(_chunks((path, 0))))
    assert caught.value.hint == HAVE_SPARK_READ
    assert caught.value.message.startswith(f"pattern a → b: {str(path)!r} ")
    return caught.value.message.removeprefix(f"pattern a → b: {str(path)!r} ")


@pytest.fixture(scope="module", params=[100, 1_000, CHUNK, 10_000, ROWS])
def events(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with row groups of some size."""
    path: Path = tmp_path_factory.mktemp("events") / "part 0%.parquet"
    pq.write_table(EVENTS, path, row_group_size=request.param)
    return path


@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [0], [3], [1, 2], [0, 2, 3], [2, 0], []])
def test_the_rows_of_chunks_come_in_order(events: Path, numbers: Sequence[int]) -> None:
    """Whatever the row groups are, each row of the chunks comes once and no other does."""
    reader = pickle.loads(pickle.dumps(_reader(id=pa.int64(), name=pa.string())))
    found = list(reader.read(_chunks(*((events, number * CHUNK) for number in numbers))))

    expected = [EVENTS.slice(number * CHUNK, CHUNK) for number in numbers]
    assert pa.Table.from_batches(found, EVENTS.schema) == pa.concat_tables(
        [EVENTS.slice(0, 0), *expected]
    )


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=8),
    st.sets(st.integers(0, 20)),
    st.integers(1, 60),
)
def test_chunks_and_row_groups_of_any_size(
    tmp_path: Path, groups: list[int], numbers: set[int], most: int
) -> None:
    """Row groups of different sizes, empty ones too, give the rows of the chunks."""
    rows, chunk = sum(groups), 8
    path, schema = tmp_path / "events.parquet", pa.schema({"id": pa.int64()})
    with pq.ParquetWriter(path, schema) as writer:
        for number, size in enumerate(groups):
            first = sum(groups[:number])
            writer.write_table(pa.table({"id": pa.array(range(first, first + size), pa.int64())}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_reader, "CHUNK", chunk)
        patch.setattr(file_reader, "_MOST_ROWS", most)
        wanted = [number * chunk for number in sorted(numbers) if number * chunk < rows]
        batches = list(_reader(id=pa.int64()).read(_chunks(*((path, row) for row in wanted))))

    found = pa.Table.from_batches(batches, schema).column("id").to_pylist()
    assert found == [row for first in wanted for row in range(first, min(first + chunk, rows))]
    assert all(0 < batch.num_rows <= most for batch in batches)


def test_several_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    """Chunks of another file open it, those of the same file do not open it again."""
    one, other = (_written(tmp_path / name, [name], pa.string()) for name in ("a", "b"))
    found = _reader(x=pa.string()).read(_chunks((one, 0), (other, 0), (one, 0)))

    assert [batch.column("x").to_pylist() for batch in found] == [["a"], ["b"], ["a"]]


def test_only_row_groups_and_columns_that_are_needed_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the last row group of a chunk, no more rows are decoded than the chunk has."""
    path, asked = tmp_path / "events", []
    pq.write_table(EVENTS, path, row_group_size=5_000)
    real = pq.ParquetFile.iter_batches

    def noted(self: Any, rows: int, groups: list[int], names: list[str], **more: Any) -> Any:
        asked.append((rows, groups, names))
        return real(self, rows, groups, names, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    list(_reader(ID=pa.int64()).read(_chunks((path, CHUNK))))

    assert asked == [(10_000, [1, 2], ["id"]), (2 * CHUNK - 15_000, [3], ["id"])]


def test_batches_of_long_values_have_few_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch takes about as much memory as is allowed, however long the values are."""
    monkeypatch.setattr(file_reader, "_MOST_BYTES", 100_000)
    texts = [f"{row:010}" * 1_000 for row in range(100)]
    path = _written(tmp_path / "x", texts, pa.string(), use_dictionary=False)
    found = list(_reader(x=pa.string()).read(_chunks((path, 0))))

    assert [batch.num_rows for batch in found] == [9] * 11 + [1]


@pytest.mark.parametrize("name", ["a b", "50%", "c#d", "ä€", "a%20b", "q?x", "x;y", "[1]"])
def test_any_name_of_a_file_is_found(tmp_path: Path, name: str) -> None:
    """Spark writes paths as URIs; they are read back."""
    (tmp_path / name).mkdir()

    assert _column(_written(tmp_path / name / name, [1], pa.int32()), pa.int32()) == [1]


def test_columns_that_a_file_lacks_are_null(tmp_path: Path) -> None:
    """As Spark has it, whatever the type is; the others of the same rows are read."""
    path = _written(tmp_path / "x", [1, 2], pa.int64())

    assert _column(path, pa.string(), "y") == [None, None]
    (found,) = _reader(x=pa.int64(), y=LOCAL, z=pa.list_(pa.int8())).read(_chunks((path, 0)))
    assert found.to_pylist() == [{"x": x, "y": None, "z": None} for x in (1, 2)]
    (found,) = _reader().read(_chunks((path, 0)))
    assert (found.num_rows, found.num_columns) == (2, 0)


def test_columns_are_found_as_spark_finds_them(tmp_path: Path) -> None:
    """By any capitals, or by the same ones; a name that fits two columns is refused."""
    path = tmp_path / "x"
    columns = {"a": [1], "A": [2], "b": [3], "c.d": [4], "c": [{"d": 5}]}
    pq.write_table(pa.table(columns), path)

    assert _column(path, pa.int64(), "B") == [3]
    assert _column(path, pa.int64(), "c.d") == [4]
    assert _refusal(path, pa.int64(), "a") == "has columns 'a', 'A', each of which may be 'a'"
    for name, expected in {"A": [2], "B": [None]}.items():
        (found,) = _reader(True, **{name: pa.int64()}).read(_chunks((path, 0)))
        assert found.column(name).to_pylist() == expected
    nested = "has column 'c' of struct<d: int64>, which workers do not read as int64"
    assert _refusal(path, pa.int64(), "C") == nested


LISTS: dict[str, Any] = {
    "ints": [[1, None], None, []],
    "a.list.element": [[1], [], [2, 3]],
    "x.a": [[2], [], None],
    "lists": [[[1]], [], None],
    "structs": [[{"x": 1}], [], None],
    "pairs": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "flat": [1, 2, 3],
    "x": [{"a": [1]}, None, {"a": None}],
}


def test_lists(tmp_path: Path) -> None:
    """Lists of plain values are read; others, and what is a list in one of two only, are refused."""
    path = tmp_path / "x"
    pq.write_table(pa.table(LISTS), path)
    wanted = pa.list_(pa.int64())

    assert _column(path, wanted, "A.LIST.element") == LISTS["a.list.element"]
    for name in ("ints", "x.a"):
        assert _column(path, wanted, name) == LISTS[name]
    for name in list(LISTS)[3:]:
        assert _refusal(path, wanted, name).startswith(f"has column {name!r} of ")
    assert "has column 'ints' of list" in _refusal(path, pa.int64(), "ints")


def test_columns_of_folders_are_left_to_spark(tmp_path: Path) -> None:
    """A folder named after a column has its value, in types that Spark finds out."""
    (tmp_path / "Day=1").mkdir()
    path = _written(tmp_path / "Day=1" / "x", [1], pa.int64())

    message = "is in a folder whose name has a value of column 'day'"
    assert _refusal(path, pa.int32(), "day") == message
    assert _column(path, pa.int64()) == [1]


WIDENED = {
    "tinyint as int": ([-128, None], pa.int8(), pa.int32(), [-128, None]),
    "int as tinyint": ([-128, None], pa.int32(), pa.int8(), [-128, None]),
    "unsigned int as bigint": ([2**32 - 1], pa.uint32(), pa.int64(), [2**32 - 1]),
    "unsigned bigint": ([2**64 - 1], pa.uint64(), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
    "int as double": ([7], pa.int32(), pa.float64(), [7.0]),
    "float as double": ([0.1], pa.float32(), pa.float64(), [0.10000000149011612]),
    "int as decimal": ([7], pa.int32(), pa.decimal128(12, 2), [Decimal("7.00")]),
    "decimal": ([Decimal("1.5")], pa.decimal128(3, 1), pa.decimal128(5, 2), [Decimal("1.50")]),
    "binary as string": ([b"a"], pa.binary(), pa.string(), ["a"]),
    "string as binary": (["ä"], pa.string(), pa.binary(), ["ä".encode()]),
    "bytes of a length": ([b"ab"], pa.binary(2), pa.binary(), [b"ab"]),
    "large string": (["a"], pa.large_string(), pa.string(), ["a"]),
    "dictionary": (["a"], pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a"]),
    "duration as bigint": ([5], pa.duration("us"), pa.int64(), [5]),
    "nanoseconds as bigint": ([5], pa.timestamp("ns"), pa.int64(), [5]),
    "milliseconds": ([1], pa.timestamp("ms"), LOCAL, [dt.datetime(1970, 1, 1, 0, 0, 0, 1000)]),
    "date as time": ([dt.date(2020, 1, 2)], pa.date32(), LOCAL, [dt.datetime(2020, 1, 2)]),
}


@pytest.mark.parametrize(("values", "stored", "wanted", "expected"), WIDENED.values(), ids=WIDENED)
def test_types_are_widened_as_by_spark(
    tmp_path: Path, values: list[Any], stored: Any, wanted: Any, expected: list[Any]
) -> None:
    """tests/spark/test_file_reader.py compares all types with Spark's."""
    assert _column(_written(tmp_path / "x", values, stored), wanted) == expected


@pytest.mark.parametrize(
    ("stored", "more"),
    [
        (pa.timestamp("ms"), {}),
        (LOCAL, {}),
        (pa.timestamp("ms", "Europe/Berlin"), {}),
        (ZONED, {}),
        (pa.timestamp("ns"), {"use_deprecated_int96_timestamps": True}),
        (pa.timestamp("ns", "UTC"), {"use_deprecated_int96_timestamps": True}),
    ],
)
def test_timestamps_of_files_are_instants_in_utc(
    tmp_path: Path, stored: pa.DataType, more: Any
) -> None:
    """Whatever unit and zone a file has, Spark takes its numbers for times since 1970 in UTC."""
    time = dt.datetime(2024, 2, 29, 12, 30, 15, 123_000, tzinfo=dt.UTC)
    values = [time if stored.tz else time.replace(tzinfo=None), None]

    assert _column(_written(tmp_path / "x", values, stored, **more), ZONED) == [time, None]


REFUSED = {
    "bigint as int": ([1], pa.int64(), pa.int32(), "of INT64, which workers do not read as int32"),
    "double as float": ([1.0], pa.float64(), pa.float32(), "of DOUBLE"),
    "int as float": ([1], pa.int32(), pa.float32(), "of INT32"),
    "bigint as double": ([1], pa.int64(), pa.float64(), "of INT64"),
    "bytes of a length as string": ([b"a"], pa.binary(1), pa.string(), "of FIXED_LEN_BYTE_ARRAY"),
    "nanoseconds": ([1], pa.timestamp("ns"), ZONED, "of INT64 Timestamp(isAdjustedToUTC=false"),
    "instants as local times": ([1], ZONED, LOCAL, "of INT64 Timestamp(isAdjustedToUTC=true"),
    "fewer digits": ([Decimal("1.5")], pa.decimal128(5, 1), pa.decimal128(5, 2), "Decimal("),
    "nothing": ([None], pa.null(), pa.string(), "of INT32 Null"),
    "time": ([dt.time(1)], pa.time64("us"), pa.int64(), "of INT64 Time("),
    "half": ([1.0], pa.float16(), pa.float32(), "of FIXED_LEN_BYTE_ARRAY Float16"),
    "list": ([[1]], pa.list_(pa.int64()), pa.int64(), "of list<element: int64>"),
}


@pytest.mark.parametrize(("values", "stored", "wanted", "text"), REFUSED.values(), ids=REFUSED)
def test_other_types_are_refused(
    tmp_path: Path, values: list[Any], stored: Any, wanted: Any, text: str
) -> None:
    """The error names file, column and both types."""
    message = _refusal(_written(tmp_path / "x", values, stored), wanted)

    assert message.startswith("has column 'x' of ")
    assert text in message
    assert message.endswith(f", which workers do not read as {wanted}")


def test_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Spark would wrap them without a word."""
    message = _refusal(_written(tmp_path / "x", [300], pa.int32()), pa.int8())

    assert "in column 'x' of INT32 that workers do not read as int8" in message


OLD = {
    "date": (dt.date(1582, 10, 14), dt.date(1582, 10, 15), pa.date32(), pa.date32(), {}),
    "timestamp": (dt.datetime(1899, 12, 31), dt.datetime(1900, 1, 1), LOCAL, ZONED, {}),
    "INT96": (
        dt.datetime(1899, 12, 31),
        dt.datetime(1900, 1, 1),
        pa.timestamp("ns"),
        ZONED,
        {"use_deprecated_int96_timestamps": True},
    ),
}


@pytest.mark.parametrize(("old", "new", "stored", "wanted", "more"), OLD.values(), ids=OLD)
@pytest.mark.parametrize(
    ("metadata", "is_read"),
    [
        ({}, True),
        ({"version": "2.4.8"}, False),
        ({"version": "4.0.0", "legacyDateTime": "", "legacyINT96": ""}, False),
        ({"version": "3.1.0"}, True),
    ],
)
def test_old_times_of_the_julian_calendar_are_refused(
    tmp_path: Path, metadata: Any, is_read: bool, old: Any, new: Any, stored: Any, wanted: Any,
    more: Any,
) -> None:  # fmt: skip
    """Spark shifts those of files that say that it has written them so, by tables of its own."""
    keys = {f"org.apache.spark.{key}": value for key, value in metadata.items()}
    path = tmp_path / "x"
    table = pa.table({"x": pa.array([old, None, new], stored)}).replace_schema_metadata(keys)
    pq.write_table(table, path, **more)

    if is_read:
        assert len(_column(path, wanted)) == 3
    else:
        assert "old ones are in the Julian calendar" in _refusal(path, wanted)
        assert len(_column(_written(path, [None, new], stored, **more), wanted)) == 2


def test_files_that_are_gone_or_damaged_are_named(tmp_path: Path) -> None:
    """Also if the damage shows while rows are decoded, or the file is another one by now."""
    path = tmp_path / "x"
    assert "is gone" in _refusal(path, pa.int64())
    path.write_bytes(b"no Parquet at all")
    assert "cannot be read as Parquet" in _refusal(path, pa.int64())
    _written(path, [f"{row}" for row in range(10_000)], pa.string(), compression="snappy")
    content = bytearray(path.read_bytes())
    content[4:2_000] = bytes(1_996)
    path.write_bytes(content)
    assert "cannot be read as Parquet" in _refusal(path, pa.string())
    with pytest.raises(InputError, match="has 1 rows, and had more than 8192 when Spark planned"):
        list(_reader(x=pa.int8()).read(_chunks((_written(path, [1], pa.int32()), CHUNK))))


@pytest.mark.parametrize("uri", ["hdfs://host/a", "s3a://bucket/a", "file://host/a", "/a"])
def test_files_elsewhere_are_left_to_spark(uri: str) -> None:
    """A worker knows the files of its machine."""
    rows = pa.record_batch({"file": [uri], "row": [0]})

    with pytest.raises(InputError, match="is not a file of this machine"):
        list(_reader(x=pa.int8()).read(iter([rows])))
