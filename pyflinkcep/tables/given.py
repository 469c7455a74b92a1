# SPDX-License-Identifier: Apache-2.0
"""Events in any form as a table of Arrow, if Arrow has types for all of their values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.tables.events import MISSING, objects_of

__all__ = ["table_of"]

_PLAIN = (bool, int, float, str, bytes, datetime, date, Decimal, timedelta)


def table_of(source: Any) -> pa.Table | None:
    """
    Return events as a table; None for objects, and for columns that Arrow has no type for.

    Parameters
    ----------
    source : object
        A table or record batches of Arrow, a dataset, a DataFrame of pandas or polars, columns by
        name, or the path of a file or folder of Parquet.

    Raises
    ------
    InvalidArgumentError
        If two columns have one name, columns differ in length, or there is nothing at a path.
    """
    kind = type(source).__module__.split(".", 1)[0]
    if kind == "pyarrow":
        return _checked(_of_arrow(source))
    if isinstance(source, str | os.PathLike):
        return _checked(_of_path(os.fspath(source)))
    if kind == "pandas" and hasattr(source, "itertuples"):
        names = list(map(str, source.columns))
        columns = [source.iloc[:, place] for place in range(len(names))]
        return _of_columns(names, columns, len(source))
    if kind == "polars" and hasattr(source, "iter_rows"):
        return _of_polars(source)
    if isinstance(source, Mapping):
        values = list(source.values())
        return _of_columns(list(source), values, len(values[0]) if values else 0)
    if isinstance(source, list | tuple) and source and isinstance(source[0], pa.RecordBatch):
        return _checked(pa.Table.from_batches(source))
    return None


def _of_arrow(source: Any) -> pa.Table | None:
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if hasattr(source, "to_table"):  # a dataset
        return source.to_table()
    return source if isinstance(source, pa.Table) else None


def _of_path(path: str) -> pa.Table:
    import pyarrow.dataset as ds  # which takes as long to load as the rest of Arrow

    if not os.path.exists(path):
        raise InvalidArgumentError(
            f"expected events, got the path {path!r}, where there is nothing",
            "pass the path of a file or folder of Parquet",
        )
    try:
        return ds.dataset(path, format="parquet").to_table()
    except (pa.ArrowInvalid, OSError) as cause:
        raise InputError(
            f"{path!r} cannot be read as Parquet: {cause}", "read it yourself, and pass the table"
        ) from cause


def _of_polars(frame: Any) -> pa.Table | None:
    try:
        return _checked(frame.to_arrow())
    except Exception as cause:  # of Rust too: a column of Python objects
        if isinstance(cause, InvalidArgumentError):
            raise
        return None


def _checked(table: pa.Table | None) -> pa.Table | None:
    if table is None:
        return None
    _check_names(table.column_names)
    return _usable(table)


def _usable(table: pa.Table) -> pa.Table:
    """Return a table with columns in layouts of which Arrow can take some rows."""
    for place, column in enumerate(table.columns):
        plain = _plain(column)
        if plain is not column:
            table = table.set_column(place, table.column_names[place], plain)
    return table


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if pa.types.is_run_end_encoded(type_):
        parts = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return _plain(pa.chunked_array(parts, type_.value_type))
    plain = _without_views(type_)
    return column if plain == type_ else column.cast(plain)


def _without_views(type_: pa.DataType) -> pa.DataType:
    """Return a type whose texts and bytes are not views."""
    if pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_binary_view(type_):
        return pa.large_binary()
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_without_views(field.type)) for field in type_])
    for is_own, made in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_own(type_):
            return made(type_.value_field.with_type(_without_views(type_.value_type)))
    return type_


def _check_names(names: Sequence[Any]) -> None:
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidArgumentError(
            f"two columns are named {', '.join(map(repr, repeated))}", "rename one of them"
        )


# --- columns


def _of_columns(names: list[Any], columns: Sequence[Any], size: int) -> pa.Table | None:
    _check_names(names)
    if not all(isinstance(name, str) for name in names):
        return None
    arrays: list[Any] = []
    for column in columns:
        array = _array(column)
        if array is None or len(array) != size:
            return None  # what reads rows says what is wrong
        arrays.append(array)
    return _usable(pa.table(dict(zip(names, arrays, strict=True))))


def _array(column: Any) -> Any:
    """Return a column of any library as Arrow; None if it has values of no type or of several."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    kind = type(column).__module__.split(".", 1)[0]
    if kind == "polars" and hasattr(column, "to_arrow"):
        return _attempted(column.to_arrow)
    if kind == "pandas" and hasattr(column, "dtype"):
        return _of_pandas(column)
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return _of_numpy(column)
    return None if isinstance(column, str) else _of_values(list(column))


def _of_pandas(column: Any) -> Any:
    dtype = column.dtype
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        return _of_values(objects_of(column))
    if isinstance(dtype, np.dtype):
        return _of_numpy(column.to_numpy())
    if type(dtype).__name__ in ("PeriodDtype", "IntervalDtype", "SparseDtype"):
        return None
    return _attempted(lambda: pa.array(column))


def _of_numpy(column: Any) -> Any:
    if column.dtype == object:
        return _of_values(column.tolist())
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] not in (
        "s",
        "ms",
        "us",
        "ns",
    ):
        column = column.astype(f"{column.dtype.kind}8[s]")
    return _attempted(lambda: pa.array(column, from_pandas=False))


def _of_values(values: list[Any]) -> Any:
    """Return values of one type as Arrow, which would make them alike otherwise."""
    missing = ("NoneType", *MISSING)
    kinds = {kind for kind in set(map(type, values)) if kind.__name__ not in missing}
    if len(kinds) > 1 or not kinds <= {*_PLAIN}:
        return None
    if any(kind.__name__ in MISSING for kind in set(map(type, values))):
        values = [None if type(value).__name__ in missing else value for value in values]
    if kinds == {datetime} and len({value.tzinfo for value in values if value is not None}) > 1:
        return None
    return _attempted(lambda: pa.array(values, from_pandas=False))


def _attempted(convert: Callable[[], Any]) -> Any:
    try:
        return convert()
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None
