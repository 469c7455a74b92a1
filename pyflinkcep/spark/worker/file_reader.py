# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet that workers read themselves, with the values that Spark would give them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.errors import InputError

CHUNK = 8192
"""How many rows of a file one row of Spark stands for."""

READ_FILES = "spark.pyflinkcep.readFiles"
"""Spark's setting that says who reads files: ``workers`` or ``spark``."""

HAVE_SPARK_READ = f'have Spark read the files: spark.conf.set("{READ_FILES}", "spark")'
"""The way out for every file that workers do not read."""

_MOST_ROWS = 1 << 17  # that are decoded at once
_MOST_BYTES = 64 << 20

_Chunks = tuple[str, int, int]  # A file, its first row that is wanted, and the row after the last


@attrs.frozen(eq=False)
class FileReader:
    """Reads the rows of files that Spark gave a task, as Spark does with its default settings."""

    schema: pa.Schema  # The columns wanted, in the types that Spark hands to Python
    is_case_sensitive: bool  # Whether Spark tells columns apart by capitals
    pattern: str  # The pattern on one line, for errors

    def read(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events of chunks of files, each a file's URI and the first row of the chunk."""
        for uri, chunks in groupby(_merged(rows), itemgetter(0)):
            with _File.opened(uri, self) as file:
                for _, start, stop in chunks:
                    yield from file.events(start, stop)

    def refused(self, path: str, problem: str) -> InputError:
        """Return the error for a file."""
        return InputError(f"pattern {self.pattern}: {path!r} {problem}", HAVE_SPARK_READ)


def _merged(rows: Iterator[pa.RecordBatch]) -> Iterator[_Chunks]:
    """Yield chunks of files, those that follow each other as one."""
    last, start, stop = "", 0, 0
    for batch in rows:
        files, firsts = batch.column("file").to_pylist(), batch.column("row").to_pylist()
        for file, first in zip(files, firsts, strict=True):
            if file != last or first != stop:
                if stop:
                    yield last, start, stop
                last, start = file, first
            stop = first + CHUNK
    if stop:
        yield last, start, stop


@attrs.frozen(eq=False)
class _File:
    """A file that is open."""

    reader: FileReader
    path: str
    parquet: Any  # The file as Arrow opens it
    columns: tuple[_Column | None, ...]  # In the order of the schema; None if the file lacks one
    ends: Any  # The rows up to and with each row group

    @classmethod
    @contextmanager
    def opened(cls, uri: str, reader: FileReader) -> Iterator[_File]:
        """Open a file."""
        import pyarrow.parquet as pq  # which takes as long to load as the rest of Arrow

        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc:
            raise reader.refused(uri, "is not a file of this machine")
        path = unquote(parts.path)
        with _naming(reader, path):
            parquet = pq.ParquetFile(path, pre_buffer=False, coerce_int96_timestamp_unit="us")
        with parquet:
            groups = map(parquet.metadata.row_group, range(parquet.num_row_groups))
            ends = np.cumsum([group.num_rows for group in groups], dtype=np.int64)
            yield cls(reader, path, parquet, _columns(reader, path, parquet), ends)

    def events(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range, as far as the file has them."""
        ends, total = self.ends, self.parquet.metadata.num_rows
        if start >= total:
            problem = f"has {total} rows, and had more than {start} when Spark planned the job"
            raise self.reader.refused(self.path, problem)
        stop = min(stop, total)
        first, last = (int(np.searchsorted(ends, row, "right")) for row in (start, stop - 1))
        at = int(ends[first - 1]) if first else 0
        whole = last if stop < ends[last] else last + 1  # Of the last group, not all may be decoded
        for some in (range(first, whole), range(whole, last + 1)):
            if some:
                end = min(int(ends[some[-1]]), stop)
                for batch in self._decoded(list(some), end - at):
                    skipped = max(start - at, 0)
                    at += batch.num_rows
                    if skipped < batch.num_rows:
                        yield self._wanted(batch.slice(skipped, min(stop, at) - start))
                        start = min(stop, at)
                    if at >= end:
                        break

    def _decoded(self, groups: list[int], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the first rows of groups, and what else is in the last batch."""
        columns = [column for column in self.columns if column is not None]
        size, names = 1, [column.name for column in columns]
        for group in map(self.parquet.metadata.row_group, groups):
            own = sum(group.column(each.place).total_uncompressed_size for each in columns)
            size = max(size, own // max(group.num_rows, 1))
        rows = max(min(rows, _MOST_ROWS, _MOST_BYTES // size), 1)
        with _naming(self.reader, self.path):
            batches = self.parquet.iter_batches(rows, groups, names, use_threads=False)
        while True:
            with _naming(self.reader, self.path):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _wanted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the wanted columns of decoded rows."""
        arrays = []
        for field, column in zip(self.reader.schema, self.columns, strict=True):
            if column is None:
                arrays.append(pa.nulls(batch.num_rows, field.type))
                continue
            try:
                arrays.append(column.values(batch.column(column.name)))
            except (pa.ArrowException, _TwoCalendarsError) as cause:
                problem = f"has values in column {column.name!r} of {column.type} that workers "
                problem += f"do not read as {field.type}: {cause}"
                raise self.reader.refused(self.path, problem) from cause
        if not arrays:
            return batch
        return pa.RecordBatch.from_arrays(arrays, schema=self.reader.schema)


@contextmanager
def _naming(reader: FileReader, path: str) -> Iterator[None]:
    """Say of errors while a file is read which one it is."""
    try:
        yield
    except FileNotFoundError as cause:
        raise reader.refused(path, "was there when Spark planned the job, and is gone") from cause
    except (pa.ArrowException, OSError) as cause:
        raise reader.refused(path, f"cannot be read as Parquet: {cause}") from cause


# --- columns


@attrs.frozen(eq=False)
class _Column:
    """How a column of a file is read."""

    name: str  # In the file
    place: int  # Of its values in a row group
    type: str  # As Parquet says it
    stored: pa.DataType  # What Parquet says that it holds, of lists each value
    wanted: pa.DataType
    oldest: int | None  # The first value that has one meaning; None if all have

    def values(self, array: pa.Array) -> pa.Array:
        """Return values as Spark reads them."""
        if not pa.types.is_list(self.wanted):
            return self._flat(array, self.wanted)
        if not pa.types.is_list(array.type):  # what wrote the file left a note for Arrow
            array = array.cast(pa.list_(array.type.value_type))
        # An array that is a slice has the values of the whole.
        own = [self._flat(array.values, self.wanted.value_type)]
        buffers, offset = array.buffers()[:2], array.offset
        return pa.Array.from_buffers(self.wanted, len(array), buffers, -1, offset, own)

    def _flat(self, array: pa.Array, wanted: pa.DataType) -> pa.Array:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if array.type != self.stored:  # what wrote the file left a note for Arrow
            array = array.cast(self.stored)
        first = None if self.oldest is None else pc.min(array).value
        if first is not None and first < self.oldest:
            raise _TwoCalendarsError("old ones are in the Julian calendar")
        is_text = pa.types.is_string(wanted)  # Spark takes any bytes for a text
        return array if array.type == wanted else array.cast(wanted, safe=not is_text)


class _TwoCalendarsError(ValueError):
    """Dates and times of a file are in a calendar that workers do not know."""


def _columns(reader: FileReader, path: str, parquet: Any) -> tuple[_Column | None, ...]:
    """Return how the wanted columns of a file are read."""
    fold = str if reader.is_case_sensitive else str.lower
    parts = (part.partition("=") for part in path.split("/")[:-1])
    folders = {fold(unquote(name)) for name, sign, _ in parts if sign}
    own: dict[str, list[pa.Field]] = {}
    for field in parquet.schema_arrow:
        own.setdefault(fold(field.name), []).append(field)
    known = _known_columns(parquet)
    found: list[_Column | None] = []
    for wanted in reader.schema:
        fields = own.get(fold(wanted.name), [])
        if fold(wanted.name) in folders:
            problem = f"is in a folder whose name has a value of column {wanted.name!r}"
            raise reader.refused(path, problem)
        if len(fields) > 1:
            names = ", ".join(repr(field.name) for field in fields)
            raise reader.refused(path, f"has columns {names}, each of which may be {wanted.name!r}")
        is_list = pa.types.is_list(wanted.type)
        value = wanted.type.value_type if is_list else wanted.type
        for field in fields:
            place, leaf = known.get(field.name, (0, None))
            stored = None if leaf is None else _stored(leaf)
            is_other = leaf is None or bool(leaf.max_repetition_level) != is_list
            type_ = str(field.type) if is_other else _parquet_type(leaf)
            if is_other or stored is None or not _reads(stored, value):
                problem = f"has column {field.name!r} of {type_}, which workers do not read as"
                raise reader.refused(path, f"{problem} {wanted.type}")
            oldest = _oldest(leaf, stored, value, parquet.metadata.metadata or {})
            found.append(_Column(field.name, place, type_, stored, wanted.type, oldest))
        if not fields:
            found.append(None)
    return tuple(found)


def _known_columns(parquet: Any) -> dict[str, tuple[int, Any]]:
    """Return the columns of a file that are plain values or lists of these, and their places."""
    found, place = {}, 0
    for field in parquet.schema_arrow:
        type_, count = field.type, _count(field.type)
        if pa.types.is_nested(type_) and not pa.types.is_struct(type_):
            type_ = type_.field(0).type
        if count == 1 and not pa.types.is_nested(type_):
            found[field.name] = place, parquet.schema.column(place)
        place += count
    return found


def _count(type_: pa.DataType) -> int:
    """Return how many columns of Parquet there are for one of Arrow."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if not pa.types.is_nested(type_):
        return 1
    return sum(_count(type_.field(place).type) for place in range(type_.num_fields))


def _parquet_type(leaf: Any) -> str:
    """Return the type of a column as Parquet says it."""
    logical = str(leaf.logical_type)
    return str(leaf.physical_type) if logical == "None" else f"{leaf.physical_type} {logical}"


# --- calendars


def _oldest(
    leaf: Any, stored: pa.DataType, wanted: pa.DataType, metadata: dict[bytes, bytes]
) -> int | None:
    """Return the first value of a column that is the same in all calendars; None if all are."""
    is_date, is_int96 = pa.types.is_date(stored), leaf.physical_type == "INT96"
    version = metadata.get(b"org.apache.spark.version")
    if version is None or not (is_date or _zoned(wanted) == _ZONED):
        return None
    # Before Spark 3 all files had the Julian calendar; later ones that have it are marked.
    legacy = b"org.apache.spark.legacy" + (b"INT96" if is_int96 else b"DateTime")
    if legacy not in metadata and version >= (b"3.1.0" if is_int96 else b"3.0.0"):
        return None
    if is_date:
        return -141_427  # 1582-10-15
    return -2_208_988_800 * (1000 if stored.unit == "ms" else 1_000_000)  # 1900-01-01


# --- types


_ZONED = pa.timestamp("us", "UTC")
_NANOS = pa.timestamp("ns", "UTC")

_OF_INT32 = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_INSTANTS = (pa.timestamp("ms", "UTC"), _ZONED)
_LOCAL_TIMES = (pa.timestamp("ms"), pa.timestamp("us"))

_READ_AS = {
    pa.bool_(): (pa.bool_(),),
    # Spark wraps what does not fit; the cast here fails.
    pa.int8(): _OF_INT32,
    pa.int16(): _OF_INT32,
    pa.int32(): _OF_INT32,
    pa.int64(): (pa.int64(), *_OF_INT32, pa.uint32(), pa.timestamp("ns"), _NANOS),
    pa.float32(): (pa.float32(),),
    pa.float64(): (pa.float64(), pa.float32(), *_OF_INT32),
    pa.string(): (pa.string(), pa.binary()),
    pa.binary(): (pa.string(), pa.binary()),
    pa.date32(): (pa.date32(),),
    _ZONED: (*_INSTANTS, *_LOCAL_TIMES),
    pa.timestamp("us"): (*_LOCAL_TIMES, pa.date32()),
}
"""The types of files that can be read as a type, apart from decimals."""


def _zoned(type_: pa.DataType) -> pa.DataType:
    """Return a type, the time zone of a timestamp aside: the same instants."""
    return _ZONED if pa.types.is_timestamp(type_) and type_.tz is not None else type_


def _reads(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads a type of files as another one, and workers do so too."""
    if not pa.types.is_decimal(wanted):
        is_bytes = pa.types.is_fixed_size_binary(stored) and wanted == pa.binary()
        return is_bytes or stored in _READ_AS.get(_zoned(wanted), ())
    whole = wanted.precision - wanted.scale
    if pa.types.is_decimal(stored):
        return bool(wanted.scale >= stored.scale and whole >= stored.precision - stored.scale)
    if stored == pa.uint64():
        return bool(wanted == pa.decimal128(20, 0))
    least = {pa.int8(): 10, pa.int16(): 10, pa.int32(): 10, pa.int64(): 20}
    return stored in least and bool(whole >= least[stored])


_INTEGERS = {
    (8, True): pa.int8(),
    (16, True): pa.int16(),
    (32, True): pa.int32(),
    (64, True): pa.int64(),
    (8, False): pa.uint8(),
    (16, False): pa.uint16(),
    (32, False): pa.uint32(),
    (64, False): pa.uint64(),
}

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}

_STORED = {
    ("BOOLEAN", "None"): pa.bool_(),
    ("INT32", "None"): pa.int32(),
    ("INT32", "Date"): pa.date32(),
    ("INT64", "None"): pa.int64(),
    ("INT96", "None"): _ZONED,
    ("FLOAT", "None"): pa.float32(),
    ("DOUBLE", "None"): pa.float64(),
    ("BYTE_ARRAY", "None"): pa.binary(),
    ("BYTE_ARRAY", "BSON"): pa.binary(),
    ("BYTE_ARRAY", "Enum"): pa.binary(),
    ("BYTE_ARRAY", "String"): pa.string(),
    ("BYTE_ARRAY", "JSON"): pa.string(),
}
"""What columns hold, by their physical and logical types."""


def _stored(leaf: Any) -> pa.DataType | None:
    """Return what a column of Parquet holds; None of types that workers do not read."""
    logical = json.loads(leaf.logical_type.to_json())
    kind = logical["Type"]
    if kind == "Decimal" and logical["precision"] <= 38:
        return pa.decimal128(logical["precision"], logical["scale"])
    if kind == "Int":
        return _INTEGERS[logical["bitWidth"], logical["isSigned"]]
    if kind == "Timestamp":
        zone = "UTC" if logical["isAdjustedToUTC"] else None
        return pa.timestamp(_UNITS[logical["timeUnit"]], zone)
    if (leaf.physical_type, kind) == ("FIXED_LEN_BYTE_ARRAY", "None"):
        return pa.binary(leaf.length)
    return _STORED.get((leaf.physical_type, kind))
