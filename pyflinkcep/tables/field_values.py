# SPDX-License-Identifier: Apache-2.0
"""Fields of events by their distinct values, and conditions on them: asked once for each value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.eql.conditions import FieldColumn, Fields
from pyflinkcep.eql.patterns import LOWER, UPPER
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.sql_functions import fitting, plain_regex
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    TIMESTAMP,
    VOID,
    SqlType,
)
from pyflinkcep.expressions.tree import (
    EACH,
    Call,
    Column,
    Literal,
    Operation,
    Tree,
    attribute_of,
    mapped,
    parts,
    quoted_name,
)
from pyflinkcep.expressions.values import typed_function
from pyflinkcep.matching.columns import Flags, Ints, ranks_of_values, values_of
from pyflinkcep.time import plain

Answers = np.ndarray[Any, np.dtype[np.int8]]
"""What a condition says of each event: AND is the least answer, OR the greatest."""

NO, UNKNOWN, YES = 0, 1, 2


_MANY = 64
"""From how many values on Arrow is faster."""

_FEW = 8
"""Of what part of the events, at most, the values are asked anew for each condition."""


_OF_TEXTS: dict[str, Callable[[Any, str], Any]] = {
    "=": pc.equal,
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
}
_OF_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


@attrs.frozen(eq=False, slots=False)
class DistinctValues:
    """Distinct values of one type, none of them null."""

    array: pa.Array

    @cached_property
    def _numbers(self) -> Any:
        return self.array.to_numpy(zero_copy_only=False)

    @cached_property
    def _folded(self) -> pa.Array:
        return pc.ascii_lower(self.array)

    @cached_property
    def is_text(self) -> bool:
        """Whether they are texts."""
        return bool(
            pa.types.is_string(self.array.type) or pa.types.is_large_string(self.array.type)
        )

    @property
    def is_number(self) -> bool:
        """Whether they are numbers that NumPy has."""
        return self.array.type in (pa.int64(), pa.float64())

    def holding(self, tree: Tree) -> Flags | None:
        """Return for which values a test holds; None for one that is asked value by value."""
        match tree:
            case Operation("and" | "or" as word, operands):
                found = [self.holding(part) for part in operands]
                known = [flags for flags in found if flags is not None]
                if len(known) < len(found):
                    return None
                every = np.stack(known)
                return np.asarray(every.all(axis=0) if word == "and" else every.any(axis=0))
            case Operation("=" | "<" | "<=" | ">" | ">=" as sign, (Column(), Literal(value))):
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if self.is_number and is_number:
                    compared: Flags = _OF_NUMBERS[sign](self._numbers, value)
                    # NaN is greater than all other numbers.
                    return compared | np.isnan(self._numbers) if sign in (">", ">=") else compared
            case Operation("in", (Column(), *items)) if self.is_number:
                values: list[Any] = [item.value for item in items if isinstance(item, Literal)]
                among: Flags = np.isin(self._numbers, [v for v in values if v is not None])
                return among
        return self._of_text(tree) if self.is_text else None

    def _of_text(self, tree: Tree) -> Flags | None:
        if not isinstance(tree, Operation | Call) or not tree.operands:
            return None
        texts = self._texts(tree.operands[0])
        given = [part.value for part in tree.operands[1:] if isinstance(part, Literal)]
        if texts is None or len(given) < len(tree.operands) - 1:
            return None
        name = tree.operator if isinstance(tree, Operation) else tree.function
        if name == "in" and all(isinstance(value, str) for value in given):
            return _flags(pc.is_in(texts, pa.array(given, texts.type)))
        if len(given) != 1 or not isinstance(given[0], str):
            return None
        if name == "rlike":
            return _fitting(texts, given[0])
        test = _OF_TEXTS.get(name)
        return None if test is None else _flags(test(texts, given[0]))

    def _texts(self, tree: Tree) -> pa.Array | None:
        """Return the texts that a test is about: those themselves, or in lower case."""
        match tree:
            case Column():
                return self.array
            case Call("translate", (Column(), Literal(old), Literal(new))):
                return self._folded if (old, new) == (UPPER, LOWER) else None
        return None


def _flags(found: pa.Array) -> Flags:
    flags: Flags = found.to_numpy(zero_copy_only=False).astype(np.bool_)
    return flags


def _fitting(texts: pa.Array, pattern: str) -> Flags:
    fits, plain = fitting(pattern), plain_regex(pattern)
    if plain is not None:
        # Arrow's expressions know no more than 1000 repetitions, and nothing of what is around.
        with suppress(pa.ArrowInvalid):
            return _flags(pc.match_substring_regex(texts, plain))
    listed: Sequence[str] = texts.to_pylist()
    return np.fromiter(map(fits, listed), np.bool_, len(listed))


@attrs.frozen(eq=False, slots=False)
class FieldValues:
    """The values of one field in many events."""

    given: Sequence[Any] | None  # Each value once, unless they are encoded
    codes: Ints  # The number of each value among them; -1 of null
    type: SqlType  # Of the values
    # Of a field with arrays: where the codes of each event begin, and where the last ones end.
    bounds: Ints | None = None
    encoded: pa.Array | None = None  # Each value once

    @cached_property
    def distinct(self) -> Sequence[Any]:
        """Each value once."""
        if self.given is not None:
            return self.given
        assert self.encoded is not None
        listed: list[Any] = values_of(self.encoded)
        return listed

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> FieldValues | str:
        """Return a field by its values in events, some of them lists; the type of other fields."""
        is_array = any(isinstance(value, list | tuple) for value in values)
        bounds, flat = None, list(values)
        if is_array:
            listed = [list(v) if isinstance(v, list | tuple) else [v] for v in values]
            flat = [value for own in listed for value in own]
            bounds = np.cumsum([0, *map(len, listed)])
        flat = list(map(plain, flat))
        kinds = {type(value) for value in flat if value is not None}
        type_ = _type_of(kinds)
        if type_ is None:
            return " and ".join(sorted(kind.__name__ for kind in kinds))
        if type_ == DOUBLE:
            flat = [value if value is None else fraction(value) for value in flat]
        elif type_ == TIMESTAMP:
            flat = [v if v is None or v.tzinfo else v.replace(tzinfo=UTC) for v in flat]
        numbers: dict[Any, int] = {}
        codes = [-1 if v is None else numbers.setdefault(v, len(numbers)) for v in flat]
        return cls(list(numbers), np.asarray(codes, np.int64), type_, bounds)

    @classmethod
    def of_column(cls, column: pa.ChunkedArray) -> FieldValues | str:
        """Return a field by a column of Arrow; the type of one that is no field."""
        bounds, type_ = None, column.type
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
            bounds = np.concatenate([[0], np.cumsum(lengths)])
            column = pc.list_flatten(column)
            type_ = type_.value_type
        found = _type_of_arrow(type_)
        if found is None:
            return str(column.type)
        if found == DOUBLE and not pa.types.is_float64(type_):
            column = pc.cast(column, pa.float64(), safe=False)
        if found == DOUBLE:
            column = pc.add(column, 0.0)  # -0.0 is 0.0
        elif found == TIMESTAMP:
            unit_type = pa.timestamp("us", getattr(type_, "tz", None))
            column = pc.cast(column, unit_type, safe=False)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(whole, pa.ChunkedArray):  # more than two gigabytes, or no chunk
            return cls._listed(values_of(column), found, bounds)
        if found == VOID:
            return cls([], np.full(len(whole), -1), VOID, bounds)
        coded = whole.dictionary_encode()
        codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return cls(None, codes, found, bounds, coded.dictionary)

    @classmethod
    def _listed(cls, values: list[Any], type_: SqlType, bounds: Ints | None) -> FieldValues:
        found = cls.of_values(values)
        assert isinstance(found, FieldValues)
        return cls(found.distinct, found.codes, type_, bounds)

    def take(self, codes: Ints) -> list[Any]:
        """Return some of the distinct values."""
        if self.encoded is not None:
            listed: list[Any] = values_of(self.encoded.take(pa.array(codes)))
            return listed
        return [self.distinct[code] for code in codes.tolist()]

    def answers(self, tree: Tree, column: Column) -> Answers:
        """Return what a condition on a column says of each value, and of null at the end."""
        flags = None if self.values is None else self.values.holding(tree)
        if flags is not None:  # such a test of null is null
            return np.append(flags.astype(np.int8) * YES, np.int8(UNKNOWN))
        holds = _function(tree, [(column, self.type)])
        asked = (*self.distinct, None)
        return np.fromiter((_answer(holds(value)) for value in asked), np.int8, len(asked))

    @cached_property
    def values(self) -> DistinctValues | None:
        """The values as an array of Arrow; None of those of few events, which are asked alone."""
        if self.encoded is not None:
            return DistinctValues(self.encoded)
        if len(self.distinct) < _MANY or self.type not in (STRING, BIGINT, DOUBLE):
            return None
        try:
            return DistinctValues(pa.array(self.distinct))
        except (pa.ArrowException, OverflowError):
            return None

    def of_events(self, answers: Answers) -> Answers:
        """Return what a condition says of the value of each event."""
        return answers[self.codes]

    def any_of_events(self, answers: Answers) -> Answers:
        """Return whether a condition holds for any value of each event; false without one."""
        assert self.bounds is not None
        holds = np.concatenate([[0], np.cumsum(answers[self.codes] == YES)])
        found = holds[self.bounds[1:]] > holds[self.bounds[:-1]]
        return found.astype(np.int8) * YES

    def among(self, rows: Ints) -> FieldValues:
        """Return the values of some events."""
        bounds = None
        if self.bounds is None:
            codes = self.codes[rows]
        else:
            begins = self.bounds[rows]
            sizes = self.bounds[rows + 1] - begins
            bounds = np.r_[0, np.cumsum(sizes)]
            codes = self.codes[np.repeat(begins - bounds[:-1], sizes) + np.arange(bounds[-1])]
        used, places = np.unique(codes, return_inverse=True)
        nothing = int((used < 0).sum())
        codes = places.reshape(-1) - nothing
        if self.encoded is None:
            return FieldValues(self.take(used[nothing:]), codes, self.type, bounds)
        encoded = self.encoded.take(pa.array(used[nothing:]))
        return FieldValues(None, codes, self.type, bounds, encoded)

    @cached_property
    def smallest(self) -> FieldValues:
        """The smallest value of each event with arrays."""
        if self.bounds is None:
            return self
        ranks = ranks_of_values(self.distinct)
        order = np.argsort(ranks[:-1])
        own = np.append(ranks[self.codes], len(order))
        starts, ends = self.bounds[:-1], self.bounds[1:]
        least = np.full(len(starts), len(order))
        filled = np.flatnonzero(ends > starts)
        if len(filled):
            least[filled] = np.minimum.reduceat(own, starts[filled])
            # Between two filled events are only empty ones, so each stretch ends where it should.
        codes = np.append(order, -1).astype(np.int64)[least]
        return FieldValues(self.distinct, codes, self.type)

    @property
    def count(self) -> int:
        """The number of distinct values."""
        return len(self.encoded) if self.given is None else len(self.given)  # type: ignore[arg-type]

    @cached_property
    def choices(self) -> tuple[Ints, Ints]:
        """The events that have values, and the numbers of these, each once for an event."""
        if self.bounds is None:
            events = np.flatnonzero(self.codes >= 0)
            return events, self.codes[events]
        events = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))
        known = self.codes >= 0
        events, codes = events[known], self.codes[known]
        pairs = events * (self.count + 1) + codes
        firsts = np.sort(np.unique(pairs, return_index=True)[1])
        return events[firsts], codes[firsts]


def fraction(number: float | Decimal) -> float:
    """Return a number as a fraction; every NaN is one value."""
    try:
        found = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:  # a NaN of Decimal's that signals
        return math.nan
    return math.nan if found != found else found


def _answer(found: bool | None) -> int:
    return UNKNOWN if found is None else YES if found else NO


_TYPES: tuple[tuple[frozenset[type], SqlType], ...] = (
    (frozenset(), VOID),
    (frozenset({bool}), BOOLEAN),
    (frozenset({int}), BIGINT),
    (frozenset({int, float, Decimal}), DOUBLE),
    (frozenset({str}), STRING),
    (frozenset({datetime}), TIMESTAMP),
)


def _type_of(kinds: set[type]) -> SqlType | None:
    return next((type_ for known, type_ in _TYPES if kinds <= known), None)


_ARROW: tuple[tuple[Callable[[Any], bool], SqlType], ...] = (
    (pa.types.is_null, VOID),
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_integer, BIGINT),
    (pa.types.is_floating, DOUBLE),
    (pa.types.is_decimal, DOUBLE),
    (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING),
    (pa.types.is_timestamp, TIMESTAMP),
)


def _type_of_arrow(type_: pa.DataType) -> SqlType | None:
    return next((found for is_own, found in _ARROW if is_own(type_)), None)


# --- the fields of events


def _paths(event: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in event.items():
        if isinstance(value, Mapping):
            yield from _paths(value, f"{before}{name}.")
        else:
            yield before + str(name)


def _value_at(event: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field, whose path may be a name or go into what is nested."""
    found = event.get(path)
    if found is None and "." in path:
        at: Any = event
        for part in path.split("."):
            at = at.get(part) if isinstance(at, Mapping) else None
        found = at
    return None if isinstance(found, Mapping) else found


class EventFields(Mapping[str, FieldColumn | str]):
    """The fields of events in memory, each read when it is asked for."""

    def __init__(self, size: int, names: Iterable[str], read: Callable[[str], Any]) -> None:
        self.size = size
        self._names = dict.fromkeys(names)
        self._read = read
        self._found: dict[str, FieldValues | str] = {}
        self._answers: dict[Tree, Answers] = {}

    @classmethod
    def of_rows(cls, events: Sequence[Mapping[str, Any]]) -> EventFields:
        """Return the fields of events one by one."""
        for event in events:
            if not isinstance(event, Mapping):
                raise InputError(
                    f"expected events that are dicts, got {type(event).__name__}: {event!r:.80}",
                    "pass dicts, columns by name, a DataFrame or an Arrow table",
                )
        names = dict.fromkeys(path for event in events for path in _paths(event))

        def read(path: str) -> FieldValues | str:
            return FieldValues.of_values([_value_at(event, path) for event in events])

        return cls(len(events), names, read)

    @classmethod
    def of_table(cls, table: pa.Table) -> EventFields:
        """Return the fields of a table."""
        columns: dict[str, pa.ChunkedArray] = {}
        for path, column in _columns(table):
            columns.setdefault(path, column)
        return cls(table.num_rows, columns, lambda path: FieldValues.of_column(columns[path]))

    def __getitem__(self, path: str) -> FieldColumn | str:
        if path not in self._names:
            raise KeyError(path)
        found = self.values_of(path)
        if isinstance(found, str):
            return found
        return FieldColumn(Column(quoted_name(path)), found.type, found.bounds is not None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, path: object) -> bool:
        return path in self._names

    def values_of(self, path: str) -> FieldValues | str:
        """Return the values of a field that there is; the type of one that is none."""
        if path not in self._found:
            self._found[path] = self._read(path)
        return self._found[path]

    @property
    def fields(self) -> Fields:
        """The fields, as conditions ask for them."""
        return Fields(self)

    # --- conditions

    def holds(self, tree: Tree) -> Flags:
        """Return for which events a condition holds; equal conditions are asked once."""
        held: Flags = np.equal(self.answers(tree), YES)
        return held

    def answers(self, tree: Tree) -> Answers:
        """Return what a condition says of each event."""
        known = self._answers.get(tree)
        if known is None:
            known = self._answers[tree] = self._asked(tree)
        return known

    def answers_of(self, tree: Tree, rows: Ints) -> Answers:
        """Return what a condition says of some events: of few, their values alone are asked."""
        if tree not in self._answers and len(rows) * _FEW < self.size:
            return self._among(rows).answers(tree)
        return self.answers(tree)[rows]

    def _among(self, rows: Ints) -> EventFields:
        """Return the fields of some events."""

        def read(path: str) -> FieldValues | str:
            values = self.values_of(path)
            return values if isinstance(values, str) else values.among(rows)

        return EventFields(len(rows), self._names, read)

    def _asked(self, tree: Tree) -> Answers:
        match tree:
            case Literal(bool() | None as value):
                return np.full(self.size, _answer(value), np.int8)
            case Operation("and" | "or" as word, operands):
                found: Answers = np.stack([self.answers(part) for part in operands])
                joined: Answers = found.min(axis=0) if word == "and" else found.max(axis=0)
                return joined
            case Operation("not", (inner,)):
                opposite: Answers = np.subtract(YES, self.answers(inner), dtype=np.int8)
                return opposite
            case Operation("coalesce", (inner, Literal(False))):
                return self.holds(inner).astype(np.int8) * YES
            case Operation("is not null", (Column() as column,)) if column != EACH:
                return (self._values(column).codes >= 0).astype(np.int8) * YES
            case Call("exists", (Column() as column, inner)):
                values = self._values(column)
                return values.any_of_events(values.answers(inner, EACH))
            case Operation("case", (when, then)) if any(map(_is_exists, parts(tree))):
                known: Answers = np.where(self.holds(when), self.answers(then), UNKNOWN)
                return known
        return self._computed(tree)

    def _values(self, column: Column) -> FieldValues:
        found = self.values_of(attribute_of(column.sql or ""))
        assert isinstance(found, FieldValues)
        return found

    def _computed(self, tree: Tree) -> Answers:
        """Return the answers of a condition on one value of each of some fields."""
        read: dict[Column, FieldValues] = {}

        def smallest(part: Tree) -> Tree:
            if isinstance(part, Column):
                read[part] = self._values(part).smallest
            elif isinstance(part, Call) and part.function == "array_min":
                return part.operands[0]
            return part

        tree = mapped(tree, smallest)
        fields = list(read.items())
        if len(fields) == 1:
            ((column, values),) = fields
            return values.of_events(values.answers(tree, column))
        function = _function(tree, [(column, values.type) for column, values in fields])
        if not fields:
            return np.full(self.size, _answer(function(())), np.int8)
        columns = [[*values.distinct, None] for _, values in fields]
        rows = np.stack([values.codes for _, values in fields])
        distinct, place = np.unique(rows, axis=1, return_inverse=True)
        asked = [
            _answer(function([of[code] for of, code in zip(columns, codes, strict=True)]))
            for codes in distinct.T.tolist()
        ]
        return np.asarray(asked, np.int8)[place.reshape(-1)]


def _is_exists(tree: Tree) -> bool:
    return isinstance(tree, Call) and tree.function == "exists"


def _function(tree: Tree, columns: list[tuple[Column, SqlType]]) -> Callable[[Any], Any]:
    """Return the function of a tree of the value of its column, or of those of several."""
    places = {column: place for place, (column, _) in enumerate(columns)}
    types = dict(columns)

    def leaf(column: Any) -> Callable[[Any], Any]:
        place = places[column]
        return (lambda value: value) if len(columns) == 1 else (lambda values: values[place])

    return typed_function(tree, leaf, types=lambda column: types[column]).function  # type: ignore[index]


def _columns(table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the columns of a table, and then the fields of structs, by path."""
    columns = zip(table.column_names, table.columns, strict=True)
    for name, column in sorted(columns, key=lambda one: bool(pa.types.is_struct(one[1].type))):
        yield from _fields(name, column)


def _fields(path: str, column: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray]]:
    if pa.types.is_struct(column.type):
        for place in range(column.type.num_fields):
            name = column.type.field(place).name
            yield from _fields(f"{path}.{name}", pc.struct_field(column, place))
    else:
        yield path, column
