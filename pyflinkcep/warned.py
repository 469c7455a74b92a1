# SPDX-License-Identifier: Apache-2.0
"""Warnings, shown at the user's line instead of this package's."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import attrs

__all__ = [
    "LongDecimalWarning",
    "MicroBatchWarning",
    "Place",
    "TimeUnitWarning",
    "UnusedResultWarning",
    "already_said",
    "caller",
]


class UnusedResultWarning(UserWarning):
    """
    The result of a pattern's method was discarded, and the pattern used without it.

    In Flink ``start.where(condition)`` changes `start`, so it can stand on a line of its own. Here
    patterns are immutable: write ``start = start.where(condition)``.
    """


class TimeUnitWarning(UserWarning):
    """
    Whole numbers that are read as epoch milliseconds look like another unit.

    Epoch seconds, read as milliseconds, all lie in January 1970, so that a window of five minutes
    spans three and a half days. Convert the column first.
    """


class LongDecimalWarning(UserWarning):
    """
    Decimals of a type with more than 15 digits are compared as the nearest doubles.

    Long numbers that differ in their last digits only, such as keys of a database, are then equal.
    """


class MicroBatchWarning(UserWarning):
    """
    A pattern is applied to a micro-batch, in a function for ``foreachBatch``.

    It finds no match that spans two micro-batches. Apply the pattern to the stream, and use
    ``foreachBatch`` on its result.
    """


@contextmanager
def already_said(category: type[Warning]) -> Iterator[None]:
    """Leave out warnings of a category: a worker does again what the driver has warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


@attrs.frozen
class Place:
    """
    A line of the user's code, where a warning is shown.

    Attributes
    ----------
    file : str
        The file.
    line : int
        The line, from 1.
    module : str
        The module, for warning filters.
    """

    file: str
    line: int
    module: str

    @classmethod
    def here(cls) -> Place:
        """Return the line that called this package."""
        frame = caller()
        if frame is None:
            return cls("<unknown>", 1, "<unknown>")
        module = str(frame.f_globals.get("__name__", "<unknown>"))
        return cls(frame.f_code.co_filename, frame.f_lineno, module)

    def warn(self, text: str, category: type[Warning]) -> None:
        """Show a warning, once for this line under Python's default filters."""
        module = sys.modules.get(self.module)
        registry = {} if module is None else vars(module).setdefault("__warningregistry__", {})
        warnings.warn_explicit(text, category, self.file, self.line, self.module, registry)


def caller() -> FrameType | None:
    """Return the nearest frame outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".", 1)[0] == "pyflinkcep"
