# SPDX-License-Identifier: Apache-2.0
"""User code: its name in errors, its life cycle, and its runtime context."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from inspect import unwrap
from pathlib import PurePath
from typing import Any, Protocol

from pyflinkcep.errors import CepError, CepRuntimeError, NotSupportedError, nearest_names


def function_name(function: Any) -> str:
    """
    Return the name, file and line of a function, or object with a method, for errors.

    Examples
    --------
    >>> function_name(len)
    'len'
    >>> function_name(function_name).split(":")[0]
    'function_name at runtime.py'
    """
    if isinstance(function, partial):
        return f"partial of {function_name(function.func)}"
    own = function if hasattr(function, "__qualname__") else type(function)
    name = str(own.__qualname__).rsplit("<locals>.", 1)[-1]
    place = _place(own)
    if not place:
        return name
    return f"{'lambda' if name.endswith('<lambda>') else name} at {place}"


def _place(function: Any) -> str:
    """Return the file and line of a function, or of the first method of a class."""
    members = vars(function).values() if isinstance(function, type) else [function]
    codes = [getattr(unwrap(member), "__code__", None) for member in members]
    places = [(c.co_firstlineno, _file(c.co_filename)) for c in codes if c is not None]
    return "{1}:{0}".format(*min(places)) if places else ""


def _file(path: str) -> str:
    """Return the name of a file; of a notebook's cell the number, if this is its process."""
    name = PurePath(path).name
    if not (name.startswith("<ipython-input-") or "ipykernel" in path):
        return name
    cells: dict[str, int] = {}
    if "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
        cells = getattr(getattr(shell, "compile", None), "_filename_map", cells)
    return f"cell [{cells[path]}]" if path in cells else "a notebook cell"


def no_such_column(name: str, columns: Sequence[str]) -> str:
    """
    Return the message for a name that is not a column.

    Examples
    --------
    >>> no_such_column("prise", ["id", "price"])
    "no column 'prise'; did you mean 'price'? The columns are ['id', 'price']"
    """
    near = nearest_names(name, columns, 3)
    meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    return f"no column {name!r}{meant} The columns are {list(columns)}"


class RuntimeContext:
    """
    What a rich function can know about its task.

    Parameters
    ----------
    taskName : str
        A name for the running pattern.
    indexOfThisSubtask : int, at least 0
        The number of the partition.

    Notes
    -----
    Ports ``CepRuntimeContext`` (Flink 2.3.0): as there, a pattern's functions cannot have state or
    accumulators.
    """

    def __init__(self, taskName: str = "CEP", indexOfThisSubtask: int = 0) -> None:
        self._taskName = taskName
        self._index = indexOfThisSubtask

    def getTaskName(self) -> str:
        """Return the name of the running pattern."""
        return self._taskName

    def getIndexOfThisSubtask(self) -> int:
        """Return the number of the partition, from 0."""
        return self._index

    def getState(self, *_: Any) -> Any:
        """Raise: state is not supported."""
        raise NotSupportedError("State is not supported.", "use the events of the match instead")

    getListState = getMapState = getReducingState = getAggregatingState = getState

    def addAccumulator(self, *_: Any) -> Any:
        """Raise: accumulators are not supported."""
        raise NotSupportedError("Accumulators are not supported.", "count on the resulting rows")

    getAccumulator = addAccumulator


class RichFunction:
    """
    A function with a life cycle.

    ``setRuntimeContext`` and ``open`` are called on the worker before the first event,
    ``close`` after the last.
    """

    _runtimeContext: RuntimeContext | None = None

    def setRuntimeContext(self, context: RuntimeContext) -> None:
        """Keep the context for :meth:`getRuntimeContext`."""
        self._runtimeContext = context

    def getRuntimeContext(self) -> RuntimeContext:
        """Return the context; raise CepRuntimeError before ``open``."""
        if self._runtimeContext is None:
            raise CepRuntimeError(
                "The runtime context has not been initialized.",
                "ask for it in open() or later, not in __init__",
            )
        return self._runtimeContext

    def open(self, context: RuntimeContext | None = None) -> None:
        """Prepare for work; nothing by default."""

    def close(self) -> None:
        """Release what ``open`` acquired; nothing by default."""


class _Openable(Protocol):
    def open(self, context: RuntimeContext) -> None: ...

    def close(self) -> None: ...


@contextmanager
def opened(user_code: _Openable, context: RuntimeContext, what: str) -> Iterator[None]:
    """
    Open user code for the duration of a ``with``, and close it in any case.

    Parameters
    ----------
    user_code : object
        Has ``open(context)`` and ``close()``.
    context : RuntimeContext
        The context of its task.
    what : str
        Its name in errors.

    Raises
    ------
    CepRuntimeError
        If opening or closing it fails.
    """
    try:
        user_code.open(context)
    except Exception as cause:
        with suppress(Exception):  # close what was opened; the first error is the one to report
            user_code.close()
        raise _failure(cause, f"{what} could not be opened") from cause
    try:
        yield
    finally:
        try:
            user_code.close()
        except Exception as cause:
            raise _failure(cause, f"{what} could not be closed") from cause


def _failure(cause: Exception, message: str) -> CepError:
    if isinstance(cause, CepError):
        return cause
    return CepRuntimeError(f"{message}. {type(cause).__name__}: {cause}")
