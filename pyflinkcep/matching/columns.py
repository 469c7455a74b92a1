# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow as arrays and values, and the names of those that a job adds to the events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.program import EXACT_DIGITS, CompiledExpressions


def in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copied only if it is in several pieces."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    if not isinstance(whole, pa.ChunkedArray):
        return whole
    return whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)


def ranks_of_values(values: Sequence[Any]) -> Ints:
    """Return the rank of each of some values, NaN last, and then that of null, which is higher."""
    ranks = np.empty(len(values) + 1, np.int64)
    order = sorted(range(len(values)), key=lambda at: (values[at] != values[at], values[at]))
    ranks[order] = np.arange(len(values))
    ranks[-1] = len(values)
    return ranks


def structs(table: pa.Table) -> pa.StructArray:
    """Return the rows of a table as structs."""
    return pa.StructArray.from_arrays(
        [in_one_piece(column) for column in table.columns], fields=list(table.schema)
    )


def integers(numbers: np.ndarray[Any, Any]) -> pa.Array:
    """Return numbers as Arrow, without a copy; ``pyarrow.array`` would load pandas to do so."""
    # Aligned too: a single number out of records is contiguous wherever it is.
    whole = np.require(numbers, requirements=["C", "A"])
    return pa.Array.from_buffers(_TYPES[whole.dtype.name], len(whole), [None, pa.py_buffer(whole)])


def plain_numbers(column: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Return numbers without nulls as an array, which ``to_numpy`` would load pandas to do."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    dtype = np.dtype(column.type.to_pandas_dtype())
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize)
        for chunk in chunks
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype), *parts])


def taken(array: pa.Array, rows: pa.Array) -> pa.Array:
    """
    Return some rows of an array; lists of numbers as the bytes that they are.

    Arrow takes bytes five times as fast as lists, whose numbers it takes one by one.

    Examples
    --------
    >>> taken(pa.array([[1, 2], [3], None]), pa.array([2, 0])).to_pylist()
    [None, [1, 2]]
    """
    type_ = array.type
    if not pa.types.is_list(type_) or array.values.null_count or rows.null_count:
        return array.take(rows)
    if not (pa.types.is_integer(type_.value_type) or pa.types.is_floating(type_.value_type)):
        return array.take(rows)
    width, values = type_.value_type.bit_width // 8, array.values
    offsets = plain_numbers(array.offsets).astype(np.int64) * width
    own = plain_numbers(rows)
    if len(array) and max(int(offsets[-1]), int(np.diff(offsets)[own].sum())) > _MOST_BYTES:
        return array.take(rows)
    start = values.offset * width
    data = values.buffers()[1]
    parts = [None, pa.py_buffer(offsets.astype(np.int32)), data and data.slice(start)]
    if array.null_count:
        parts[0] = array.is_valid().buffers()[1]
    found = pa.Array.from_buffers(pa.binary(), len(array), parts).take(rows)
    valid, ends, data = found.buffers()
    ends = np.frombuffer(ends, np.int32, len(found) + 1) // width
    inner = pa.Array.from_buffers(type_.value_type, int(ends[-1]), [None, data])
    buffers = [valid, pa.py_buffer(ends)]
    return pa.Array.from_buffers(type_, len(found), buffers, -1, 0, [inner])


_MOST_BYTES = (1 << 31) - 1  # of all values of an array of binaries


def doubles(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals as the nearest doubles, which those of Arrow's cast are not."""
    scale = column.type.scale
    if column.type.precision > EXACT_DIGITS or scale < 0:
        listed = [None if value is None else float(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(listed, pa.float64())])
    return pa.chunked_array(
        [_quotients(chunk, scale) for chunk in column.cast(pa.decimal128(38, scale)).chunks],
        pa.float64(),
    )


def _quotients(decimals: pa.Array, scale: int) -> pa.Array:
    """Return decimals, whose units of the last digit a double holds, as doubles."""
    data = decimals.buffers()[1]
    words = np.frombuffer(b"" if data is None else data, np.int64)
    lower = words[2 * decimals.offset :: 2][: len(decimals)]
    nulls = decimals.is_null().to_numpy(zero_copy_only=False) if decimals.null_count else None
    return pa.array(lower / 10.0**scale, mask=nulls)


def has_part(type_: pa.DataType, test: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type, or one inside of it, passes a test."""
    inside = [type_.field(place).type for place in range(type_.num_fields)]
    return test(type_) or any(has_part(part, test) for part in inside)


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return values as Spark's Rows have them: maps are dicts."""
    try:
        values: list[Any] = column.to_pylist()
    except OverflowError:
        raise InputError(
            f"a value of type {column.type} is before the year 1 or after 9999, which Python has "
            "no date for",
            "leave such events out, or pass the times as whole numbers, such as milliseconds",
        ) from None
    read = _map_reader(column.type)
    return values if read is None else list(map(read, values))


def pandas_of(table: pa.Table) -> Any:
    """Return a table as a DataFrame of pandas, with Python's values inside of lists and structs."""
    inside = [pa.types.is_nested(column.type) for column in table.columns]
    frame = table.to_pandas(ignore_metadata=True)
    for place, column in enumerate(table.columns):
        if inside[place]:
            frame.isetitem(place, values_of(column))
    return frame


def _map_reader(type_: pa.DataType) -> Callable[[Any], Any] | None:
    """Return what makes dicts of the pairs in a value; None for a type without maps."""
    inside = [type_.field(place) for place in range(type_.num_fields)]
    if pa.types.is_map(type_):
        if pa.types.is_nested(type_.key_type):
            return None  # which cannot be the key of a dict
        item = _map_reader(type_.item_type)
        return lambda pairs: (
            None if pairs is None else {k: v if item is None else item(v) for k, v in pairs}
        )
    readers = [_map_reader(field.type) for field in inside]
    if not any(readers) or pa.types.is_union(type_):
        return None
    if pa.types.is_struct(type_):
        named = {field.name: read for field, read in zip(inside, readers, strict=True) if read}
        return lambda fields: (
            None if fields is None else fields | {n: read(fields[n]) for n, read in named.items()}
        )
    (element,) = readers
    return lambda items: None if items is None else list(map(element, items))  # type: ignore[arg-type]


_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_TYPES = {name: getattr(pa, name)() for name in (*_INTEGERS, "float64")}
PREFIX = "__cep_"  # The prefix of our own columns

# The column with a bit for each condition that Spark evaluated; set if it holds. Further columns,
# with a number after the name, have the bits that do not fit.
BITS = f"{PREFIX}bits"
HASH = f"{PREFIX}hash"  # The column with the key's hash
# The column that tells whether a row is of a match, if the output has others as well.
MATCHED = f"{PREFIX}matched"
# The column with an event's position in the source, which orders equal times.
POSITION = f"{PREFIX}position"

# The column with an event's place among those of its key, if an engine that keeps no order has
# numbered them.
RANK = f"{PREFIX}rank"
VALUE = f"{PREFIX}value"  # The prefix of the columns of fields; the field's number follows
SLICE = f"{PREFIX}slice"  # The column with the number of an event's time slice
# The column that tells whether the event is in the slice itself, not only around it.
OWN = f"{PREFIX}own"
# The column with most columns of an event: a list of one struct, null if no stage can take it.
WHOLE = f"{PREFIX}whole"
# The column with the start of a window that the event is in, in epoch milliseconds.
WINDOW = f"{PREFIX}window"
Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


def owned(events: pa.Table) -> Any:
    """Return which events a slice has itself; None if they are not cut into slices."""
    is_cut = OWN in events.column_names
    return events.column(OWN).to_numpy(zero_copy_only=False) if is_cut else None


def quoted(name: str) -> str:
    """Return a column name quoted for Spark's parser, including dots."""
    return "`" + name.replace("`", "``") + "`"


def refuse_reserved(names: Iterable[str], where: str) -> None:
    """Refuse columns of the user's with names of our own."""
    reserved = [name for name in names if name.startswith(PREFIX)]
    if reserved:
        raise InputError(
            f"{where}: the column names {reserved} begin with {PREFIX!r}",
            "rename them: names like that are used inside the job",
        )


def field_names(expressions: CompiledExpressions | None) -> tuple[str, ...]:
    """Return the names of the columns of the fields that match expressions use."""
    return tuple(
        f"{VALUE}{number}" for number in range(len(expressions.fields) if expressions else 0)
    )


def spark_atoms(nfa: NFA) -> list[Atom]:
    """Return the conditions of a pattern that Spark evaluates; each has a bit in :data:`BITS`."""
    return [atom for atom in nfa.atoms if isinstance(atom.condition, ExpressionCondition)]


# A field's values, as int64 or float64; which of them are not NULL; whether they are floats. Texts
# and decimals are a list.
FieldArray = tuple[np.ndarray[Any, Any] | list[Any], np.ndarray[Any, Any] | None, bool]


def field_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the fields of each event of a table that has only their columns."""
    if not table.num_columns:  # nothing is needed of an event but that it is there
        return [()] * table.num_rows
    return list(zip(*map(_plain, table.columns), strict=True))


def field_columns(table: pa.Table) -> dict[str, list[Any]]:
    """Return the fields in columns, by name, of a table that has only fields."""
    return {name: _plain(table.column(name)) for name in table.column_names}


def field_array(column: pa.ChunkedArray) -> FieldArray:
    """Return a column as an array or list, its validity mask, and its type."""
    if _is_object(column.type):
        return column.to_pylist(), None, False
    is_float = pa.types.is_floating(column.type)
    plain = column if is_float else column.cast(_integers(column.type)).cast(pa.int64())
    valid = column.is_valid().to_numpy() if column.null_count else None
    if valid is not None:
        plain = plain.fill_null(0)
    return plain_numbers(plain), valid, is_float


def _integers(type_: pa.DataType) -> pa.DataType:
    """Return the integer type that represents values of a type."""
    return pa.int32() if pa.types.is_date(type_) else pa.int64()


def _is_object(type_: pa.DataType) -> bool:
    """Whether values are objects of Python: texts, and decimals that no double is enough for."""
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    return bool(is_text or pa.types.is_decimal(type_))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values, times as integers."""
    if pa.types.is_temporal(column.type):
        column = column.cast(_integers(column.type))
    values: list[Any]
    if column.null_count or _is_object(column.type) or pa.types.is_boolean(column.type):
        values = column.to_pylist()
    else:
        values = plain_numbers(column).tolist()
    return values


def retyped(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return an array as one of another type."""
    # Arrow's own cast refuses a null struct that contains a NOT NULL field, because that is then
    # null too, and does not slice columns without values in structs.
    if array.type == type_:
        return array
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([retyped(chunk, type_) for chunk in array.chunks], type_)
    if pa.types.is_struct(type_):
        columns = [retyped(array.field(at), field.type) for at, field in enumerate(type_)]
        return pa.StructArray.from_arrays(columns, fields=list(type_), mask=array.is_null())
    if pa.types.is_list(type_):
        values = retyped(array.flatten(), type_.value_type)
        ends = np.cumsum(array.value_lengths().fill_null(0).to_numpy())
        offsets = pa.array(np.r_[0, ends], pa.int32())
        return pa.ListArray.from_arrays(offsets, values, type=type_, mask=array.is_null())
    if pa.types.is_map(type_):
        places = plain_numbers(array.offsets)
        first, size = int(places[0]), int(places[-1] - places[0])
        keys = retyped(array.keys.slice(first, size), type_.key_type)
        items = retyped(array.items.slice(first, size), type_.item_type)
        offsets = pa.array(
            places - first, pa.int32(), mask=np.append(np.asarray(array.is_null()), False)
        )
        return pa.MapArray.from_arrays(offsets, keys, items, type=type_)
    return array.cast(type_)


def table_of(columns: Iterable[Any], schema: pa.Schema) -> pa.Table:
    """Return columns as those of a schema; see :func:`retyped`."""
    made = [retyped(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(made, schema=schema)
