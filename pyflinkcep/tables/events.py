# SPDX-License-Identifier: Apache-2.0
"""Events in any form: objects, dicts, columns, frames of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pyflinkcep.functions import no_such_column
from pyflinkcep.time import MISSING

EventT = TypeVar("EventT")


class Timeout(NamedTuple, Generic[EventT]):
    """
    A partial match whose window ended.

    Attributes
    ----------
    match : dict of str to list
        Stage name to events.
    timestamp : int, epoch milliseconds
        The end of its window.
    """

    match: dict[str, list[EventT]]
    timestamp: int


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
file or folder of Parquet, CSV or JSON lines."""


def library(value: Any) -> str:
    """Return the name of the library that a value's class is from, without loading it."""
    return type(value).__module__.split(".", 1)[0]


def as_event(event: Any) -> Any:
    """Return an event as conditions see it: a dict as :class:`Record`, anything else unchanged."""
    return _record(event.items()) if type(event) is dict else event


def _record(fields: Iterable[tuple[Any, Any]]) -> Record:
    """Return fields as an event; the missing values of pandas are None, NaN stays."""
    return Record((name, None if type(v).__name__ in MISSING else v) for name, v in fields)
