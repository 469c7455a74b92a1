# SPDX-License-Identifier: Apache-2.0
"""Events in columns of any library as a table of Arrow: the one place that knows the libraries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.matching.columns import has_part, values_of
from pyflinkcep.tables.events import library
from pyflinkcep.tables.files import EventFiles, Wanted, attempted
from pyflinkcep.time import MISSING

_PLAIN = (bool, int, float, str, bytes, datetime, date, Decimal, timedelta)
_UNITS = ("s", "ms", "us", "ns")


def columns_of(source: Any, wanted: Wanted | None = None) -> pa.Table | dict[Any, list[Any]] | None:
    """Return events as a table, in types of which matchers know all; of files, wanted columns."""
    kind = library(source)
    if isinstance(source, pa.RecordBatch):
        return checked(pa.Table.from_batches([source]))
    if isinstance(source, pa.Table):
        return checked(source)
    if hasattr(source, "to_table") and kind == "pyarrow":  # a dataset
        return checked(source.to_table())
    if isinstance(source, EventFiles):
        return checked(source.table(wanted))
    if isinstance(source, str | os.PathLike):
        return checked(EventFiles.of(os.fspath(source)).table(wanted))
    if kind == "pandas" and hasattr(source, "itertuples"):
        names = list(map(str, source.columns))
        return _of_columns(names, [source.iloc[:, place] for place in range(len(names))])
    if kind == "polars" and hasattr(source, "iter_rows"):
        return _of_columns(source.columns, source.get_columns())
    if isinstance(source, Mapping):
        return _of_columns(list(source), list(source.values()))
    if isinstance(source, list | tuple) and source and isinstance(source[0], pa.RecordBatch):
        return checked(pa.Table.from_batches(source))
    if hasattr(source, "__arrow_c_stream__"):
        reader = attempted(lambda: pa.RecordBatchReader.from_stream(source))
        if reader is not None:  # otherwise it is one column, whose values are events
            return checked(reader.read_all())
    return None


# --- columns of Arrow


def checked(table: pa.Table) -> pa.Table:
    """Return a table in types of which matchers know all."""
    _check_names(table.column_names)
    for place, column in enumerate(table.columns):
        plain = _usable(column)
        if plain is not column:
            table = table.set_column(place, table.column_names[place], plain)
    return table


def _check_names(names: Sequence[Any]) -> None:
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidArgumentError(
            f"two columns are named {', '.join(map(repr, repeated))}", "rename one of them"
        )


def _usable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in a type that all of Arrow's functions know."""
    type_ = column.type
    if pa.types.is_run_end_encoded(type_):
        parts = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return _usable(pa.chunked_array(parts, type_.value_type))
    plain = _usable_type(type_)
    if plain == type_:
        return column
    if type_ == pa.uuid() or has_part(type_, _is_rebuilt):
        values = [None if value is None else str(value) for value in column.to_pylist()]
        values = values if type_ == pa.uuid() else column.to_pylist()
        return pa.chunked_array([pa.array(values, plain)])
    return column.cast(plain)


def _is_rebuilt(type_: pa.DataType) -> bool:
    """Whether Arrow cannot cast a type, or does so with errors."""
    is_view = pa.types.is_list_view(type_) or pa.types.is_large_list_view(type_)
    return bool(is_view or pa.types.is_run_end_encoded(type_))


def _usable_type(type_: pa.DataType) -> pa.DataType:
    """Return the type without codes, views, runs, extensions, and numbers of few functions."""
    if isinstance(type_, pa.BaseExtensionType):
        known = {pa.uuid(): pa.string(), pa.bool8(): pa.bool_()}
        return known.get(type_) or _usable_type(type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return _usable_type(type_.value_type)
    if pa.types.is_decimal(type_) and type_.precision <= 38:
        return pa.decimal128(type_.precision, type_.scale)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_usable_type(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_usable_type(type_.key_type), _usable_type(type_.item_type))
    for is_own, made in _LISTS:
        if is_own(type_):
            return made(type_.value_field.with_type(_usable_type(type_.value_type)))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_usable_type(type_.value_type), type_.list_size)
    return next((made for is_own, made in _REPLACED if is_own(type_)), type_)


_LISTS: tuple[tuple[Callable[[Any], bool], Callable[[Any], pa.DataType]], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_),
    (pa.types.is_large_list_view, pa.large_list),
)
_REPLACED: tuple[tuple[Callable[[Any], bool], pa.DataType], ...] = (
    (pa.types.is_string_view, pa.large_string()),
    (pa.types.is_binary_view, pa.large_binary()),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_date64, pa.date32()),
)


# --- columns of other libraries


def _of_columns(names: list[Any], columns: Sequence[Any]) -> pa.Table | dict[Any, list[Any]]:
    _check_names(names)
    arrays = [_array(name, column) for name, column in zip(names, columns, strict=True)]
    lengths = {name: len(array) for name, array in zip(names, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InvalidArgumentError(
            f"expected columns of one length, got {lengths}", "pass one value per event"
        )
    has_types = not any(isinstance(array, list) for array in arrays)
    if has_types and all(isinstance(name, str) for name in names):
        return checked(pa.table(dict(zip(names, arrays, strict=True))))
    listed = [array if isinstance(array, list) else values_of(array) for array in arrays]
    return dict(zip(names, listed, strict=True))


def _array(name: Any, column: Any) -> pa.Array | pa.ChunkedArray | list[Any]:
    """Return a column of any library as Arrow; as a list if Arrow has no type for its values."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    kind = library(column)
    if kind == "polars" and hasattr(column, "to_arrow"):
        return _of_polars(column)
    if kind == "pandas" and hasattr(column, "dtype"):
        return _of_pandas(column)
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return _of_numpy(column)
    if isinstance(column, bytes | Mapping) or not isinstance(column, Iterable):
        raise InvalidArgumentError(
            f"the column {name!r}: expected a list of values, got {column!r}",
            "pass columns as {'name': [value, …]}, or events as [{'name': value}, …]",
        )
    return _of_values(list(column))


def _of_pandas(column: Any) -> Any:
    """Return what ``pyarrow.Table.from_pandas`` makes of a column: NaN is a missing value."""
    if hasattr(column.dtype, "fill_value"):
        column = column.sparse.to_dense()
    is_object = isinstance(column.dtype, np.dtype) and column.dtype.kind == "O"
    # Of dates beside times Arrow makes dates.
    if not is_object or not {date, datetime} <= set(map(type, column)):
        found = attempted(lambda: pa.array(column, from_pandas=True))
        is_own = isinstance(getattr(found, "type", None), pa.ExtensionType)  # periods, intervals
        if found is not None and not is_own:
            return found
    pairs = zip(column.astype(object).tolist(), column.isna().tolist(), strict=True)
    return [None if is_missing else value for value, is_missing in pairs]


def _of_polars(column: Any) -> Any:
    """Return a column as Arrow; that of Python objects by their values, not their addresses."""
    found = attempted(column.to_arrow)
    if found is None or has_part(found.type, pa.types.is_fixed_size_binary):
        return _of_values(column.to_list())
    return found


def _of_numpy(column: Any) -> Any:
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] not in _UNITS:
        column = column.astype(f"{column.dtype.kind}8[s]")
    found = None if column.dtype == object else attempted(lambda: pa.array(column))
    return _of_values(column.tolist()) if found is None else found


def _of_values(values: list[Any]) -> Any:
    """Return values of one type as Arrow, which would make them alike otherwise."""
    kinds = {kind for kind in set(map(type, values)) if kind is not type(None)}
    if any(kind.__name__ in MISSING for kind in kinds):
        values = [None if type(value).__name__ in MISSING else value for value in values]
        kinds = {kind for kind in kinds if kind.__name__ not in MISSING}
    if len(kinds) > 1 or not kinds <= {*_PLAIN}:
        return values
    if kinds == {datetime} and len({value.tzinfo for value in values if value is not None}) > 1:
        return values
    found = attempted(lambda: pa.array(values, from_pandas=False))
    return values if found is None else found
