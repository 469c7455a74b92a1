# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow in the types and values that programs have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.errors import ConditionError, did_you_mean
from pyflinkcep.expressions.arrays import (
    Array,
    EventTree,
    Program,
    Range,
    TextRanks,
    Values,
    computed,
    holding,
    never_fails,
)
from pyflinkcep.expressions.evaluator import RowTypes
from pyflinkcep.expressions.numbers import MOST_DIGITS, Digits
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.expressions.sql_types import (
    ARRAY,
    BIGINT,
    INTERVAL,
    MAP,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
)
from pyflinkcep.expressions.sql_values import zone_of
from pyflinkcep.expressions.tokens import slip
from pyflinkcep.expressions.tree import Column, Operation
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.matching.columns import Ints, doubles, in_one_piece, integers, plain_numbers

_US = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}


_SQL = {
    pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
    pa.uint8(): "smallint", pa.uint16(): "int", pa.uint32(): "bigint", pa.null(): "void",
    pa.bool_(): "boolean", pa.float16(): "float", pa.float32(): "float", pa.float64(): "double",
    pa.large_string(): "string", pa.string(): "string", pa.large_binary(): "binary",
    pa.binary(): "binary", pa.date64(): "date", pa.date32(): "date",
}  # fmt: skip
_ARROW = {
    **{name: type_ for type_, name in _SQL.items() if not pa.types.is_unsigned_integer(type_)},
    "timestamp_ntz": pa.timestamp("us"), "interval": pa.duration("us"),
    "interval day": pa.duration("us"),
}  # fmt: skip


def sql_type(type_: pa.DataType) -> SqlType | None:
    """Return the type that Spark gives a column; None for one that it lacks."""
    if type_ in _SQL:
        return SqlType(_SQL[type_])
    if pa.types.is_timestamp(type_):
        return TIMESTAMP if type_.tz else TIMESTAMP_NTZ
    if pa.types.is_decimal(type_):
        is_short = 0 <= type_.scale <= type_.precision <= MOST_DIGITS
        return SqlType("decimal", type_.precision, type_.scale) if is_short else None
    if pa.types.is_map(type_):
        return SqlType(MAP, inner=(sql_type(type_.key_type), sql_type(type_.item_type)))
    if (
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    ):
        return SqlType(ARRAY, inner=(sql_type(type_.value_type),))
    if pa.types.is_struct(type_):
        own = [type_.field(place) for place in range(type_.num_fields)]
        inner = tuple(sql_type(field.type) for field in own)
        return SqlType(STRUCT, inner=inner, fields=tuple(field.name for field in own))
    return INTERVAL if pa.types.is_duration(type_) else None


def arrow_type(type_: SqlType | None, zone: str) -> pa.DataType | None:
    """Return the type of columns of values; None if it is not known."""
    if type_ is None:
        return None
    if type_ == TIMESTAMP:
        return pa.timestamp("us", zone)
    if type_.name == "decimal":
        return pa.decimal128(*type_.of_decimal) if type_.of_decimal else None
    inner = [arrow_type(part, zone) for part in type_.inner]
    if None in inner:
        return None
    if type_.name == ARRAY:
        return pa.list_(inner[0])
    if type_.name == MAP:
        return pa.map_(*inner)
    if type_.name == STRUCT:
        return pa.struct(list(zip(type_.fields, inner, strict=True)))
    return _ARROW.get(type_.name)


def clock_zone(schema: pa.Schema) -> str:
    """Return the zone of a table: that of its first column that has one, otherwise UTC."""
    zones = (field.type.tz for field in schema if pa.types.is_timestamp(field.type))
    return next((zone for zone in zones if zone), "UTC")


def row_types(schema: pa.Schema, zone: str = "") -> RowTypes:
    """Return the types of a table's columns."""
    types = {field.name: sql_type(field.type) for field in schema}
    return RowTypes(types, zone_of(zone or clock_zone(schema)))


def as_column(values: Iterable[Any], type_: SqlType | None, zone: str) -> pa.ChunkedArray:
    """Return values of Python as a column: of their type, if it is known."""
    listed = list(values)
    if type_ is not None and _has_map(type_):
        listed = [_with_pairs(value, type_) for value in listed]
    own = arrow_type(type_, zone)
    if own is not None and pa.types.is_floating(own):
        listed = [None if value is None else float(value) for value in listed]
    return pa.chunked_array([pa.array(listed, own, from_pandas=False)])


def _has_map(type_: SqlType | None) -> bool:
    return type_ is not None and (type_.name == MAP or any(map(_has_map, type_.inner)))


def _with_pairs(value: Any, type_: SqlType | None) -> Any:
    """Return a value with its maps as the lists of pairs that Arrow takes."""
    if value is None or type_ is None or not _has_map(type_):
        return value
    if type_.name == ARRAY:
        return [_with_pairs(one, type_.inner[0]) for one in value]
    if type_.name == STRUCT:
        fields = zip(type_.fields, type_.inner, strict=True)
        return {name: _with_pairs(value[name], own) for name, own in fields}
    return [(key, _with_pairs(one, type_.inner[1])) for key, one in value.items()]


def widest(schema: pa.Schema) -> pa.Table:
    """Return two rows with the extremes of all whole numbers and times: what holds of any rows."""
    columns = {}
    for field in schema:
        bits = 0
        if pa.types.is_integer(field.type) or pa.types.is_temporal(field.type):
            bits = field.type.bit_width
        if not bits:
            columns[field.name] = pa.nulls(2, field.type)
            continue
        ends = np.array([-(1 << (bits - 1)), (1 << (bits - 1)) - 1], f"int{bits}")
        columns[field.name] = integers(ends).view(field.type)
    return pa.table(columns)


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the type that a column has in SQL; None for one that programs lack."""
    if pa.types.is_decimal(type_):
        return Kind.decimal(Digits(max(type_.precision, type_.scale), max(type_.scale, 0)))
    own = BIGINT if pa.types.is_uint64(type_) else sql_type(type_)
    return None if own is None else own.kind


def is_exact(column: pa.ChunkedArray) -> bool:
    """Whether programs compare a column's values exactly: no decimals, no parts of microseconds."""
    type_ = column.type
    if pa.types.is_decimal(type_):
        return False
    if getattr(type_, "unit", None) != "ns" or not len(column):
        return True
    whole = column.cast(pa.int64())
    return not any(((chunk.fill_null(0).to_numpy() % 1_000) != 0).any() for chunk in whole.chunks)


@attrs.frozen(eq=False, slots=False)
class NumberColumn:
    """A column as numbers, for programs: times are microseconds, texts their ranks."""

    column: pa.ChunkedArray  # The numbers, in any type
    is_float: bool  # Whether they are floats
    # What each is multiplied by, and what divided by.
    factor: int = 1
    divisor: int = 1
    name: str = ""  # The column of a table that it is; empty for what was computed

    def on(self, table: pa.Table) -> NumberColumn:
        """Return the same column of other rows, whose numbers are in the same range."""
        column = table.column(self.name)
        kind = kind_of(column.type)
        found = None if kind is None else numbers(column, kind)
        assert found is not None
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return np.dtype(np.float64 if self.is_float else np.int64)

    def values(self, begin: int, size: int) -> Values:
        """Return the values of some rows."""
        part = self.column.slice(begin, size)
        nulls = part.is_null().to_numpy() if part.null_count else False
        known = part.fill_null(0) if part.null_count else part
        return Values(self._scaled(plain_numbers(known).astype(self.dtype, copy=False)), nulls)

    def taken(self, rows: Ints) -> Values:
        """Return the values of some rows in any order."""
        part = attrs.evolve(self, column=self.column.take(integers(rows)))
        return part.values(0, len(rows))

    def as_column(self) -> pa.ChunkedArray:
        """Return the numbers as a column of programs."""
        return pa.chunked_array([as_array(self.values(0, len(self.column)))])

    def few(self, rows: int) -> NumberColumn | None:
        """Return the numbers from the least to the greatest, if they are few beside the rows."""
        if self.is_float or self.column.null_count or not self.factor == self.divisor == 1:
            return None
        low, high = self.range or (0, 0)
        if high - low >= min(_FEW, rows // 4):
            return None
        numbers = np.arange(high - low + 1, dtype=np.int64) + low  # `high + 1` may not fit
        return NumberColumn(pa.chunked_array([integers(numbers)]), is_float=False)

    def _scaled(self, data: Array) -> Array:
        if self.divisor != 1:
            return np.floor_divide(data, self.divisor)
        return data if self.factor == 1 else data * self.factor

    @cached_property
    def range(self) -> Range:
        """The least and the greatest of whole numbers."""
        if self.is_float:
            return None
        found = pc.min_max(self.column).as_py()
        if found["min"] is None:
            return (0, 0)
        low, high = (found[end] * self.factor // self.divisor for end in ("min", "max"))
        return (low, high)


def as_array(values: Values) -> pa.Array:
    """Return values of programs as Arrow has them."""
    if values.nulls is False and values.data.dtype != bool:
        return integers(values.data)
    mask = None if values.nulls is False else np.ascontiguousarray(values.nulls)
    return pa.array(np.ascontiguousarray(values.data), mask=mask)


def numbers(column: pa.ChunkedArray, kind: Kind) -> NumberColumn | None:
    """Return a column that is not of texts as numbers."""
    type_ = column.type
    if kind is Kind.BOOLEAN:
        return NumberColumn(column.cast(pa.int8()), is_float=False)
    if pa.types.is_decimal(type_):
        return NumberColumn(doubles(column), is_float=True)
    factor = divisor = 1
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        factor, divisor = _US[type_.unit], 1_000 if type_.unit == "ns" else 1
        column = column.cast(pa.int64())
    elif pa.types.is_date32(type_):
        column = column.cast(pa.int32())
    found = NumberColumn(column, kind.type is Type.FLOAT, factor, divisor)
    bounds = found.range if factor > 1 or pa.types.is_uint64(type_) else None
    if bounds is not None and not -(2**63) <= bounds[0] <= bounds[1] < 2**63:
        return None
    return found


def ranked(
    columns: Iterable[pa.ChunkedArray], texts: Iterable[str]
) -> tuple[TextRanks, list[NumberColumn]]:
    """Return columns of texts as numbers that compare as the texts do."""
    encoded = [_encoded(column) for column in columns]
    known = [dictionary.to_pylist() for dictionary, _ in encoded]
    distinct = {text for texts_ in (*known, texts) for text in texts_ if text is not None}
    ranks = {text: rank for rank, text in enumerate(sorted(distinct))}
    found = []
    for (_, codes), own in zip(encoded, known, strict=True):
        places: Array = np.asarray([ranks.get(text, 0) for text in own] or [0], np.int32)
        if codes.null_count:
            nulls = codes.is_null().to_numpy(zero_copy_only=False)
            data = places[codes.fill_null(0).to_numpy(zero_copy_only=False)]
            array = as_array(Values(data, nulls))
        else:
            array = integers(places[plain_numbers(codes)])
        found.append(NumberColumn(pa.chunked_array([array]), is_float=False))
    return TextRanks(ranks), found


def _encoded(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Return the distinct texts of a column, and for each row the index of its own."""
    whole = in_one_piece(column.dictionary_encode())
    return whole.dictionary, whole.indices


_AT_ONCE = 1 << 17
_FEW = 1 << 12  # values, of which a table fits the caches of a processor
_BITS = 63  # in a word


class SqlColumns:
    """Expressions of SQL about one event, on a table."""

    def __init__(
        self, table: pa.Table, texts: Iterable[str], types: RowTypes | None = None
    ) -> None:
        self._table = table
        self.types = row_types(table.schema) if types is None else types
        self._numbers: dict[str, NumberColumn | None] = {}
        self._trees: dict[str, EventTree] = {}
        self._names: dict[str, str] = {}
        for text in texts:
            tree = EventTree.of(text)
            if tree is not None:
                self._trees[text] = tree
                for written in tree.columns.values():
                    if written not in self._names:
                        self._names[written] = self._found(written, text)

    def _found(self, written: str, text: str) -> str:
        """Return the column of a name, which is compared as in Spark."""
        names = self._table.column_names
        if written in names:
            return written
        same = [name for name in names if name.casefold() == written.casefold()]
        if len(same) == 1:
            return str(same[0])
        raise ConditionError(
            f"the condition {text!r}: the events have no column {written!r}",
            slip(text) or did_you_mean(written, names, f"the columns are {names}"),
        )

    def tree(self, text: str) -> EventTree | None:
        """Return what a text means; None if programs do not have what it consists of."""
        return self._trees.get(text)

    def name_of(self, written: str) -> str:
        """Return the column of a name in the SQL."""
        return self._names[written]

    def program(self, text: str, *, is_condition: bool) -> Program | None:
        """Return the program of an expression; None if it has none, or could fail on a row."""
        tree = self._trees.get(text)
        return None if tree is None else self.program_of(tree, is_condition=is_condition)

    def program_of(self, tree: EventTree, *, is_condition: bool) -> Program | None:
        """Return the program of an expression that is read; see :meth:`program`."""
        if not all(map(self._is_known, tree.columns.values())):
            return None
        found = tree.program(self._kinds, self.ranks, is_condition=is_condition)
        if found is None or not tree.is_plain(self.types, self._range):
            return None
        fields = [self._of(name) for name in found.columns]
        if any(field is None for field in fields):
            return None
        ranges = {place: field.range for place, field in enumerate(fields) if field is not None}
        return found if never_fails(found.code, ranges) else None

    def _range(self, leaf: Column) -> Range:
        column = self._of(str(leaf.attribute))
        return None if column is None else column.range

    @property
    def used(self) -> set[str]:
        """The columns that the expressions read."""
        return set(self._names.values())

    def own_column(self, text: str) -> pa.ChunkedArray | None:
        """Return the column that an expression is; None for any other expression."""
        tree = self._trees.get(text)
        if tree is None or not isinstance(tree.tree, Column):
            return None
        return self._table.column(self._names[str(tree.tree.attribute)])

    def plain(self, text: str, kind: Kind) -> NumberColumn | pa.ChunkedArray | None:
        """Return the values of an expression that is only a column: numbers, or texts."""
        column = self.own_column(text)
        own = None if column is None else kind_of(column.type)
        if own is not kind and (own is None or own.digits is None or own.digits != kind.digits):
            return None
        if kind is Kind.STRING or kind.type is Type.DECIMAL:
            return column
        found, (written,) = numbers(column, kind), self._trees[text].columns.values()
        return None if found is None else attrs.evolve(found, name=self._names[written])

    def _is_known(self, written: str) -> bool:
        """Whether a column is always NULL, or has a type and exact values in programs."""
        column = self._table.column(self._names[written])
        if pa.types.is_null(column.type):
            return True
        return kind_of(column.type) is not None and is_exact(column)

    @cached_property
    def _kinds(self) -> Mapping[str, Kind]:
        """The types of columns, by the name in the SQL."""
        schema = self._table.schema
        kinds = {name: kind_of(schema.field(own).type) for name, own in self._names.items()}
        return {name: kind for name, kind in kinds.items() if kind is not None}

    @cached_property
    def ranks(self) -> TextRanks:
        """The numbers of all texts; those of columns are kept."""
        of_texts = [name for name, kind in self._kinds.items() if kind is Kind.STRING]
        texts = (text for tree in self._trees.values() for text in tree.texts)
        columns = [self._table.column(self._names[name]) for name in of_texts]
        ranks, found = ranked(columns, texts)
        self._numbers.update(zip(of_texts, found, strict=True))
        return ranks

    def _of(self, name: str) -> NumberColumn | None:
        if name not in self._numbers:
            column = self._table.column(self._names[name])
            self._numbers[name] = numbers(column, self._kinds[name])
        return self._numbers[name]

    def values(self, program: Program) -> Values:
        """Return the value of a program for each row."""
        size = self._table.num_rows

        def field(place: int) -> Values:
            return self.number_column(program.columns[place]).values(0, size)

        found = computed(program.code, field, self.ranks)
        return Values(
            np.broadcast_to(np.asarray(found.data), size),
            found.nulls if found.nulls is False else np.broadcast_to(found.nulls, size),
        )

    def conjuncts(self, text: str) -> list[EventTree] | None:
        """Return the parts of a condition all of which have to hold; None if it has no program."""
        whole = self._trees.get(text)
        if whole is None:
            return None
        waiting, found = [whole.tree], []
        while waiting:
            part = waiting.pop()
            if isinstance(part, Operation) and part.operator == "and":
                waiting += part.operands
            else:
                found.append(EventTree.of_tree(part))
        return found

    def on(self, table: pa.Table) -> SqlColumns:
        """
        Return the same expressions on other rows, whose numbers are in the same ranges.

        Texts are their numbers there.
        """
        found = copy(self)
        found._table, found._numbers = table, {}
        return found

    def of_rows(self, table: pa.Table) -> SqlColumns:
        """Return the same expressions on any other rows of the same columns."""
        found = self.on(table)
        vars(found).pop("ranks", None)
        return found

    def column_name(self, written: str) -> str:
        """Return the column of a name in SQL."""
        return self._names[written]

    def number_column(self, name: str) -> NumberColumn:
        """Return a column that programs read."""
        found = self._of(name)
        assert found is not None
        return found

    def holding_of(self, program: Program, size: int, values: Callable[[str], Values]) -> Array:
        """Return whether a condition holds for some values of each column."""
        return holding(program.code, size, lambda place: values(program.columns[place]), self.ranks)

    def bits(self, programs: Mapping[int, Program], rows: int | None = None) -> ConditionBits:
        """Return which conditions hold for rows, each as a bit; for so many if not for its own."""
        size = self._table.num_rows if rows is None else rows
        most = max(programs, default=0).bit_length()
        tables, waiting = [], dict(programs)
        for name in {program.columns[0]: None for program in programs.values() if program.columns}:
            few = self.number_column(name).few(size)
            if few is not None:
                own = {bit: of for bit, of in programs.items() if of.columns == (name,)}
                table = ConditionBits(self, own, most, few=few).array(0, len(few.column))
                tables.append((name, int(few.column[0].as_py()), table))
                waiting = {bit: of for bit, of in waiting.items() if bit not in own}
        return ConditionBits(self, waiting, most, tables)


@attrs.frozen(eq=False)
class ConditionBits:
    """Which conditions hold for the rows of a table, each as a bit."""

    columns: SqlColumns
    programs: Mapping[int, Program]  # The conditions that are computed row by row, by bit
    most: int  # How many bits there are
    # Columns of few values, the least of these, and the bits of the others by value.
    tables: Sequence[tuple[str, int, Array]] = ()
    few: NumberColumn | None = None  # What the only column of all conditions has; None for its own

    @property
    def names(self) -> set[str]:
        """The columns that the conditions read."""
        written = {name for name, *_ in self.tables}
        written.update(*(program.columns for program in self.programs.values()))
        return set(map(self.columns.column_name, written))

    def on(self, table: pa.Table) -> ConditionBits:
        """Return the same conditions for other rows; see :meth:`SqlColumns.on`."""
        return attrs.evolve(self, columns=self.columns.on(table))

    def possible(self, ends: Mapping[str, tuple[int, int]]) -> set[int] | None:
        """Return the bits that rows may have whose columns are between some ends; None if any."""
        found: set[int] | None = None if self.programs else {0}
        for name, least, table in self.tables:
            own = ends.get(self.columns.column_name(name))
            if own is None or table.ndim > 1 or found is None:
                return None
            values = set(table[own[0] - least : own[1] - least + 1].tolist())
            found = {bits | others for bits in found for others in values}
        return found

    def some(self, first: int, size: int) -> Array | None:
        """Return the bits of some rows: a number for each, or one for each word; None for none."""
        return self.array(first, size).T if self.most else None

    def array(self, first: int, size: int) -> Array:
        """Return the bits of some rows, by word if there are several."""
        words = -(-self.most // _BITS)
        dtype = np.uint8 if self.most <= 8 else np.int32 if self.most <= 31 else np.int64
        found: Array = np.zeros((words, size) if words > 1 else size, dtype)
        for begin in range(0, size, _AT_ONCE):
            rows = min(_AT_ONCE, size - begin)
            self._add(first + begin, rows, found[..., begin : begin + rows])
        return found

    def _add(self, first: int, size: int, found: Array) -> None:
        for name, least, table in self.tables:
            column = self.columns.number_column(name).column
            own_values = plain_numbers(column.slice(first, size))
            width, module = own_values.itemsize, compiled_module()
            if module is not None and found.dtype == np.uint8 and width in (4, 8):
                module.add_bits(own_values, width, least, table, found)
                continue
            places = own_values.astype(np.intp)
            places -= least
            found |= np.take(table, places, -1, mode="clip")

        def values(name: str) -> Values:
            column = self.columns.number_column(name) if self.few is None else self.few
            return column.values(first, size)

        for bit, program in self.programs.items():
            word, shift = divmod(bit.bit_length() - 1, _BITS)
            held = self.columns.holding_of(program, size, values)
            if not held.strides[0]:
                held = held.copy()
            is_small = found.dtype == np.uint8
            truths = held.view(np.uint8) if is_small else held.astype(found.dtype)
            own = found if found.ndim == 1 else found[word]
            own |= np.left_shift(truths, shift)
