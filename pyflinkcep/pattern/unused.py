# SPDX-License-Identifier: Apache-2.0
"""Warns of ``start.where(...)`` on a line of its own, which has no effect."""

from __future__ import annotations

import weakref
from pathlib import PurePath
from typing import Any

import attrs

from pyflinkcep.warned import Place, UnusedResultWarning, caller

__all__ = ["UnusedResultWarning", "Usage"]


@attrs.define(eq=False)
class _Result:
    """The result of one call, its caller, and its later use."""

    call: str
    place: str
    pattern: weakref.ref[Any]
    used: bool = False
    shown: bool = False
    told: bool = False
    changed: list[_Result] = attrs.field(factory=list)

    def is_lost(self) -> bool:
        """Whether neither it nor a copy can still be used; notebooks keep what they show."""
        is_away = self.shown or self.pattern() is None
        return not self.used and is_away and all(copy.is_lost() for copy in self.changed)


class Usage:
    """
    The use of one pattern and of its changed copies.

    A copy is lost if it is gone, or was only shown at a prompt, and was used at most for copies
    that are lost too. Using the original after that suggests a forgotten assignment.
    """

    __slots__ = ("_origin", "_results")

    def __init__(self) -> None:
        self._origin: _Result | None = None
        self._results: list[_Result] = []

    def returned(self, call: str, copy: Any, usage: Usage) -> None:
        """Record that a call returned a changed copy, and the usage of the copy."""
        self._tell_lost()
        frame = caller()
        place = f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else "?"
        usage._origin = _Result(call, place, weakref.ref(copy))
        self._results = [result for result in self._results if not (result.used or result.told)]
        self._results.append(usage._origin)
        if self._origin is not None:
            self._origin.changed.append(usage._origin)

    def used(self) -> None:
        """Record that the pattern is used, and warn of lost copies."""
        if self._origin is not None:
            self._origin.used = True
        self._tell_lost()

    def shown(self) -> None:
        """Record that the pattern is shown at a prompt."""
        if self._origin is not None:
            self._origin.shown = True

    def __reduce__(self) -> tuple[type[Usage], tuple[()]]:
        return Usage, ()

    def _tell_lost(self) -> None:
        for result in self._results:
            if result.is_lost() and not result.told:
                result.told = True
                _warn(result)


def _warn(result: _Result) -> None:
    Place.here().warn(
        f"the result of {result.call}(...) at {result.place} was dropped, and the pattern is "
        f"used without it: patterns are immutable. Write pattern = pattern.{result.call}(...).",
        UnusedResultWarning,
    )
