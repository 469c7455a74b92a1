# SPDX-License-Identifier: Apache-2.0
"""Events in any form: objects, dicts, columns, frames of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from os import PathLike
from typing import Any, Protocol

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.runtime import no_such_column

__all__ = ["MISSING", "Record", "Table", "as_event", "events_of", "is_objects", "objects_of"]


MISSING = ("NaTType", "NAType")
"""The types of missing values of pandas."""


class Record(dict[str, Any]):
    """
    An event with its fields as attributes, as keys and by position, like Spark's ``Row``.

    It is a dict, and equal to every dict of the same fields.

    Examples
    --------
    >>> event = Record(user="anna", price=3)
    >>> event.price, event["price"], event[1], event == {"user": "anna", "price": 3}
    (3, 3, 3, True)
    """

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("__") and dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(no_such_column(name, list(dict.keys(self))))

    def __getitem__(self, name: str | int) -> Any:
        if isinstance(name, int) and not dict.__contains__(self, name):
            return list(dict.values(self))[name]
        return super().__getitem__(name)  # type: ignore[index]

    def __missing__(self, name: Any) -> Any:
        raise KeyError(no_such_column(str(name), list(dict.keys(self))))


class _Pandas(Protocol):
    def itertuples(self, index: bool = ..., name: str | None = ...) -> Any: ...


class _Polars(Protocol):
    def iter_rows(self, *, named: Any = ...) -> Any: ...


class _Reader(Protocol):
    schema: Any

    def read_all(self) -> Any: ...


class _Arrow(Protocol):
    def to_pylist(self) -> list[dict[str, Any]]: ...


Table = _Pandas | _Polars | _Arrow | _Reader | Mapping[str, Iterable[Any]] | str | PathLike[str]
"""A pandas or polars DataFrame, an Arrow table, batch or dataset, columns by name, or the path of a
file or folder of Parquet."""


def events_of(source: Any) -> Iterator[Any]:
    """
    Return the events of a source, one at a time.

    Parameters
    ----------
    source : iterable, mapping or table
        Objects, which are used unchanged; dicts, which become :class:`Record`; columns by name;
        a pandas or polars DataFrame; an Arrow table or record batch.

    Raises
    ------
    InvalidArgumentError
        If it is none of these; Spark DataFrames are refused.
    """
    kind = type(source).__module__.split(".", 1)[0]
    if kind == "pyspark":
        raise InvalidArgumentError(
            f"expected events in memory, got a {type(source).__name__} of Spark",
            "write match(pattern, frame.collect(), ...), or CEP.pattern(frame, pattern) for a job",
        )
    if kind == "pandas" and hasattr(source, "itertuples"):
        names = [str(name) for name in source.columns]
        columns = [objects_of(source.iloc[:, place]) for place in range(len(names))]
        rows = zip(*columns, strict=True) if columns else repeat((), len(source))
        return (_record(zip(names, row, strict=True)) for row in rows)
    if kind == "polars" and hasattr(source, "iter_rows"):
        return (Record(row) for row in source.iter_rows(named=True))
    if kind == "pyarrow" and hasattr(source, "to_pylist"):
        return (Record(row) for row in source.to_pylist())
    if isinstance(source, Mapping):
        return _rows(source)
    if not isinstance(source, Iterable):
        raise InvalidArgumentError(
            f"expected events, got {source!r}",
            "pass a list, columns by name, a pandas or polars DataFrame, or an Arrow table",
        )
    return map(as_event, source)


def objects_of(column: Any) -> list[Any]:
    """
    Return the values of a column of pandas.

    NaN stays, but is None where pandas writes it for a missing value: among texts, and for no
    category.
    """
    values: list[Any] = column.astype(object).tolist()
    if column.dtype.kind != "O":
        return values
    known = [None if type(value) is float and value != value else value for value in values]
    is_missing = type(column.dtype).__name__ == "CategoricalDtype"
    return known if is_missing or set(map(type, known)) == {str, type(None)} else values


def is_objects(source: Any) -> bool:
    """Whether events are a list, or another iterable, of objects, rather than columns."""
    if isinstance(source, Mapping):
        return False
    own = ("pandas", "polars", "pyarrow")
    if isinstance(source, list | tuple) and source:
        return type(source[0]).__module__.split(".", 1)[0] != "pyarrow"
    is_path = isinstance(source, str) or hasattr(source, "__fspath__")
    return not is_path and type(source).__module__.split(".", 1)[0] not in own


def as_event(event: Any) -> Any:
    """Return an event as conditions see it: a dict as :class:`Record`, anything else unchanged."""
    return _record(event.items()) if type(event) is dict else event


def _record(fields: Iterable[tuple[Any, Any]]) -> Record:
    """Return fields as an event; the missing values of pandas are None, NaN stays."""
    return Record((name, None if type(v).__name__ in MISSING else v) for name, v in fields)


def _rows(columns: Mapping[str, Any]) -> Iterator[Record]:
    lists = {name: _listed(values) for name, values in columns.items()}
    if len({len(values) for values in lists.values()}) > 1:
        lengths = {name: len(values) for name, values in lists.items()}
        raise InvalidArgumentError(
            f"expected columns of one length, got {lengths}",
            "pass one value per event",
        )
    return (_record(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))


def _listed(values: Any) -> list[Any]:
    of_pandas = type(values).__module__.split(".", 1)[0] == "pandas" and hasattr(values, "dtype")
    return objects_of(values) if of_pandas else list(values)
