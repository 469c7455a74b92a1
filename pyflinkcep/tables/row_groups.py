# SPDX-License-Identifier: Apache-2.0
"""Events of Parquet that are read while they are matched, and what footers tell of them before."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.matching import keys as identity
from pyflinkcep.matching.columns import Ints, plain_numbers
from pyflinkcep.matching.threads import heed
from pyflinkcep.tables.files import EventFiles
from pyflinkcep.time import MIN_WATERMARK, wrong_unit

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

_AT_ONCE = 1 << 17  # Events, whose columns fit the caches of a processor


class Unfit(Exception):
    """The events have to be read before they are matched after all."""


@attrs.frozen(eq=False)
class _Column:
    """Where the pages of a column are in a file."""

    begin: int
    size: int
    is_packed: bool  # Whether they are compressed, by Snappy
    has_levels: bool  # Whether values could be missing
    ends: tuple[int, int] | None  # The least and the greatest integer, if they are told
    dictionary: int  # How many bytes of pages come before those of data
    texts: pa.Array | None = None  # Of a column of texts, those of its dictionary
    codes: Any = None  # A number for each of these

    @classmethod
    def of(
        cls, told: _kernel._StoredColumn | None, rows: int, own: Any, file_size: int
    ) -> _Column | None:
        """Return those of a column that C can read, in which no value is missing; else None."""
        if told is None:
            return None
        codec, encodings, values, size, begin, dictionary, nulls, ends = told
        is_flat = own.max_repetition_level == 0 and own.max_definition_level <= 1
        if codec not in (_PLAIN, _SNAPPY) or not is_flat or encodings & ~_ENCODINGS:
            return None
        before = begin - min(begin, dictionary or begin)
        begin -= before
        if values != rows or nulls != 0 or not 0 < begin <= begin + size <= file_size or size < 0:
            return None
        return cls(begin, size, codec == _SNAPPY, own.max_definition_level > 0, ends, before)

    def with_texts(self, path: str) -> _Column | None:
        """Return the column with the texts of its dictionary; None if it has none, or very many."""
        module = compiled_module()
        assert module is not None
        if not 0 < self.dictionary <= min(self.size, _MOST_TEXTS):
            return None
        found = None
        with suppress(OSError), open(path, "rb") as file:
            file.seek(self.begin)
            found = module.texts(file.read(self.dictionary), self.is_packed)
        if found is None or len(found[0]) < 8 or len(found[1]) > _MOST_TEXTS:
            return None
        buffers = [None, *map(pa.py_buffer, found)]
        texts = pa.Array.from_buffers(pa.binary(), len(found[0]) // 4 - 1, buffers)
        return attrs.evolve(self, texts=texts, ends=None)


@attrs.frozen(eq=False)
class _Group:
    """A row group of a file."""

    path: str
    begin: int  # Its first event's place among all
    size: int
    columns: Sequence[_Column]
    ends: Mapping[str, tuple[int, int]]  # The least and the greatest integer of columns

    def with_numbers(self, place: int, name: str, of_texts: Mapping[str, int]) -> _Group:
        """Return the row group with numbers for the texts of a column."""
        texts: Any = self.columns[place].texts
        numbers = [of_texts.get(text, 0) for text in texts.cast(pa.string()).to_pylist()]
        return self.with_codes(place, name, np.array(numbers, np.int32))

    def with_codes(self, place: int, name: str, codes: Any) -> _Group:
        """Return the row group with codes for the texts of a column."""
        columns = list(self.columns)
        columns[place] = attrs.evolve(columns[place], codes=codes)
        ends = int(codes.min()), int(codes.max())
        return attrs.evolve(self, columns=columns, ends={**self.ends, name: ends})

    @classmethod
    def all_of(
        cls, fragment: Any, fields: Sequence[pa.Field], places: Sequence[int], begin: int
    ) -> Iterator[_Group]:
        """Yield those of a file of which C can read all columns, as no value is missing."""
        leaves = [fragment.metadata.schema.column(place) for place in places]
        found, file_size = _told(fragment.path, tuple(places))
        for rows, told in found:
            pairs = zip(told, leaves, strict=True)
            columns = [_Column.of(own, rows, leaf, file_size) for own, leaf in pairs]
            for place, field in enumerate(fields):
                column = columns[place]
                if column is not None and _is_text(field.type):
                    columns[place] = column.with_texts(fragment.path)
            known = {
                field.name: column
                for field, column in zip(fields, columns, strict=True)
                if column is not None
            }
            if rows > 0 and len(known) == len(fields):
                ends = {name: column.ends for name, column in known.items() if column.ends}
                yield cls(fragment.path, begin, rows, list(known.values()), ends)
                begin += rows


@attrs.frozen(eq=False)
class RowGroups:
    """The events of files of Parquet."""

    groups: Sequence[_Group]
    # The least and the greatest value of each needed column, and the texts of others; a key that is
    # a text has a code.
    extremes: pa.Table
    named: tuple[str, str | None]  # The columns of time and key
    size: int
    has_codes: bool = False  # Whether the key is a text

    @classmethod
    def of(
        cls, files: EventFiles, names: Sequence[str], timestamp: str, key: str | None
    ) -> RowGroups | None:
        """Return events of which C can read some columns; None if footers do not tell enough."""
        schema = files.dataset.schema
        if compiled_module() is None or not {timestamp, key or timestamp} <= set(names):
            return None
        fields = [schema.field(name) for name in names]
        has_codes = key not in (None, timestamp) and _is_text(schema.field(key).type)
        are_known = all(_is_known(field.type) or _is_text(field.type) for field in fields)
        if not files.is_parquet or files.rows < 1 or not are_known:
            return None
        groups: list[_Group] = []
        begin = 0
        for fragment in files.dataset.get_fragments():
            places = _places(fragment, fields)
            for group in _Group.all_of(fragment, fields, places, begin) if places else ():
                groups.append(group)
                begin += group.size
        if begin != files.rows:
            return None
        if has_codes:
            place = names.index(key)
            groups = _coded(groups, place, key)
            fields[place] = fields[place].with_type(pa.int32())
        found = {
            field.name: _texts(groups, place)
            if _is_text(field.type)
            else _extremes(field.type, [one.ends.get(field.name) for one in groups])
            for place, field in enumerate(fields)
        }
        if None in found.values():
            return None
        table = _of_one_length(found)
        is_keyed = key is None or pa.types.is_integer(table.column(key).type)
        if not (is_keyed and _is_plain(table.column(timestamp))):
            return None
        return cls(groups, table, (timestamp, key), begin, has_codes)

    def with_numbers(self, of_texts: Mapping[str, int]) -> RowGroups:
        """Return the events with a number in place of each text."""
        groups = self.groups
        for place, field in enumerate(self.extremes.schema):
            if pa.types.is_string(field.type):
                groups = [group.with_numbers(place, field.name, of_texts) for group in groups]
        return attrs.evolve(self, groups=groups)

    @property
    def _schema(self) -> pa.Schema:
        """The columns as they are read."""
        known = self.extremes.schema
        return pa.schema(
            [f.with_type(pa.int32()) if pa.types.is_string(f.type) else f for f in known]
        )

    def times_of(self, table: pa.Table) -> Ints:
        """Return the times of a batch, in their own unit."""
        column = table.column(self.named[0])
        numbers = plain_numbers(column.chunk(0).view(f"int{column.type.bit_width}"))
        return numbers.astype(np.int64, copy=False)

    def without(self, is_needless: Callable[[Mapping[str, tuple[int, int]]], bool]) -> RowGroups:
        """Return the events without row groups that are needless by the ends of their columns."""
        return attrs.evolve(self, groups=[one for one in self.groups if not is_needless(one.ends)])

    def cuts(self, count: int) -> list[int]:
        """Return where to cut the events into so many parts of whole row groups, or fewer."""
        before = np.cumsum([0, *(group.size for group in self.groups)])
        wanted = [before[-1] * part // count for part in range(1, count)]
        chosen = {int(np.abs(before - at).argmin()) for at in wanted} - {0, len(self.groups)}
        first, last = self.groups[0], self.groups[-1]
        inside = (self.groups[place].begin for place in sorted(chosen))
        return [first.begin, *inside, last.begin + last.size]

    def batches(
        self, begin: int, end: int, names: Container[str | None]
    ) -> Iterator[tuple[int, pa.Table]]:
        """
        Yield the events between two cuts, some at a time, each with the place of its first.

        Of their columns, only those with some names are read.
        """
        # A batch is overwritten by the next one, which is then in the caches of the processor.
        places = [place for place, field in enumerate(self._schema) if field.name in names]
        schema = pa.schema([self._schema.field(place) for place in places])
        widths = [field.type.bit_width // 8 for field in schema]
        room = [np.empty(_AT_ONCE, np.int32 if width == 4 else np.int64) for width in widths]
        own = [group for group in self.groups if begin <= group.begin < end]
        chosen = [[group.columns[place] for place in places] for group in own]
        most = np.max([[one.size for one in columns] for columns in chosen], axis=0)
        stored = [np.empty(size, np.uint8) for size in most.tolist()]
        for group, columns in zip(own, chosen, strict=True):
            pages = list(map(partial(_pages, group.path), columns, widths, stored))
            for at in range(0, group.size, _AT_ONCE):
                heed()
                arrays = [array[: group.size - at] for array in room]
                for column, array in zip(pages, arrays, strict=True):
                    _read(column, array)
                yield group.begin + at, _table(schema, arrays)


def _table(schema: pa.Schema, arrays: Sequence[Any]) -> pa.Table:
    """Return numbers as columns, without a copy."""
    columns = [
        pa.Array.from_buffers(field.type, len(array), [None, pa.py_buffer(array)])
        for field, array in zip(schema, arrays, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _texts(groups: Sequence[_Group], place: int) -> pa.Array | None:
    """Return the texts of a column, each once; None if they are none in UTF-8."""
    texts: list[Any] = [group.columns[place].texts for group in groups]
    with suppress(pa.ArrowInvalid):
        return pa.chunked_array(texts).cast(pa.string()).unique()
    return None


def _of_one_length(columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return columns with the last value of each repeated, so that they are as long as others."""
    size = max(map(len, columns.values()))
    return pa.table(
        {
            name: column.take(pa.array(np.minimum(np.arange(size), len(column) - 1)))
            for name, column in columns.items()
        }
    )


def _coded(groups: Sequence[_Group], place: int, name: Any) -> list[_Group]:
    """Return row groups with a code for each text of a column, the same in all."""
    texts: list[Any] = [group.columns[place].texts for group in groups]
    codes = identity.codes(pa.chunked_array(texts)).astype(np.int32)
    cuts = np.cumsum([len(own) for own in texts])[:-1]
    pairs = zip(groups, np.split(codes, cuts), strict=True)
    return [group.with_codes(place, name, np.ascontiguousarray(own)) for group, own in pairs]


def _places(fragment: Any, fields: Sequence[pa.Field]) -> list[int]:
    """Return the places of columns among all of a file; none if it has others of these names."""
    own, leaves = fragment.physical_schema, fragment.metadata.schema
    names = [leaves.column(place).path for place in range(len(leaves))]
    for field in fields:
        at = own.get_field_index(field.name)
        if at < 0 or own.field(at).type != field.type or names.count(field.name) != 1:
            return []
    return [names.index(field.name) for field in fields]


def _told(path: str, places: tuple[int, ...]) -> tuple[Any, int]:
    """Return what the footer of a file tells of columns in its row groups, and the file's size."""
    module = compiled_module()
    assert module is not None
    try:
        with open(path, "rb") as file:
            size = file.seek(-8, os.SEEK_END) + 8
            length = int.from_bytes(file.read(4), "little")
            file.seek(-min(length + 8, size), os.SEEK_END)
            return module.row_groups(file.read(length), places) or (), size
    except OSError:  # what is wrong with a file is told where a table is read from it
        return (), 0


def _pages(path: str, column: _Column, width: int, room: Any) -> _kernel.Pages:
    """Read the pages of a column into some room, and return them."""
    module = compiled_module()
    assert module is not None
    data = room[: column.size]
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(column.begin)
            if file.readinto(data) < column.size:
                raise Unfit
    except OSError as cause:
        raise Unfit from cause
    return module.Pages(data, width, column.is_packed, column.has_levels, column.codes)


def _read(pages: _kernel.Pages, numbers: Any) -> None:
    try:
        if pages.read(numbers) == len(numbers):
            return
    except ValueError:
        pass
    raise Unfit


# As footers number them
_PLAIN, _SNAPPY = 0, 1
_MOST_TEXTS = 1 << 19  # bytes; of larger dictionaries writers go on without
_ENCODINGS = (
    1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8
)  # Of numbers as they are, and of dictionaries


def _is_known(type_: pa.DataType) -> bool:
    """Whether values are numbers of 4 or 8 bytes, of which analysis needs only the extremes."""
    if pa.types.is_timestamp(type_):
        return type_.unit in ("ms", "us")
    return type_ in (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32())


def _is_text(type_: pa.DataType) -> bool:
    """Whether values are texts, or categories of them."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    kinds = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
    return any(is_own(type_) for is_own in kinds)


def _is_plain(times: pa.ChunkedArray) -> bool:
    """Whether times are moments, or such milliseconds that there is nothing to say about."""
    if pa.types.is_timestamp(times.type):
        return True
    if not pa.types.is_integer(times.type):
        return False
    least, most = times.slice(0, 2).to_pylist()
    return least > MIN_WATERMARK and wrong_unit(least, most, "") is None


def _extremes(type_: pa.DataType, ends: Sequence[tuple[int, int] | None]) -> pa.Array | None:
    """Return the least and the greatest value of a column; None if they are not known."""
    if pa.types.is_floating(type_):  # of which analysis needs none
        return pa.array([0.0, 0.0], type_)
    known = [own for own in ends if own is not None]
    if len(known) < len(ends):
        return None
    least, most = min(own[0] for own in known), max(own[1] for own in known)
    return pa.array([least, most], f"int{type_.bit_width}").view(type_)
