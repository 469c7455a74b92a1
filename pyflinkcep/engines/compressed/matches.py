# SPDX-License-Identifier: Apache-2.0
"""The matches of a query, counted, aggregated or enumerated without being listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, Protocol, overload

import attrs

from pyflinkcep.engines.compressed.counting import NOTHING, Total
from pyflinkcep.engines.compressed.windows import WINDOW_END, WINDOW_START, TimeWindows
from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.rules import LEAST_VALUES
from pyflinkcep.expressions.tree import attribute_of
from pyflinkcep.sase.windows import TOTALS

__all__ = [
    "COUNT",
    "CompressedMatches",
    "Measured",
    "Pieces",
    "check_measure",
    "check_names",
    "read_measure",
]

COUNT = "count"
"""The output column with the number of matches."""

_ADDING = ("sum", "avg", "stddev")
"""Those of numbers only."""
_NAME = r"(?:\w+|`(?:[^`]|``)+`)"
_MEASURE = re.compile(
    rf"\s*(?P<function>\w+)\s*\(\s*(?:(?P<all>\*)|(?P<variable>{_NAME})(?:\s*\[\s*\])?"
    rf"(?:\s*\.\s*(?P<attribute>{_NAME}))?)\s*\)\s*(?:as\s+(?P<name>{_NAME})\s*)?",
    re.IGNORECASE,
)


@attrs.frozen
class Measured:
    """
    An aggregate over a variable's events in all matches.

    Attributes
    ----------
    function : str
        count, sum, avg, min, max or stddev.
    variable : str or None
        The variable; None for ``count(*)``.
    attribute : str or None
        The attribute; None to count events.
    name : str
        Its key in the result.
    """

    function: str
    variable: str | None
    attribute: str | None
    name: str

    def result(self, count: int, total: Total) -> Any:
        """Return the aggregate, given the number of matches and the total of the events."""
        if self.variable is None:
            return count
        number, sum_, low, high = total
        if number < LEAST_VALUES[self.function]:
            return None
        if self.function == "count":
            return number
        if self.function == "avg":
            return sum_ / number
        if self.function == "stddev":
            return sum_.deviation(number)
        return {"sum": sum_, "min": low, "max": high}[self.function]


def read_measure(text: str, variables: Sequence[str]) -> Measured:
    """
    Parse an aggregate.

    Raises
    ------
    InvalidArgumentError
        If it is not one, or names no variable of the pattern.
    """
    found = _MEASURE.fullmatch(text) if isinstance(text, str) else None
    function = found["function"].lower() if found else ""
    counts = found is not None and (found["all"] or not found["attribute"])
    if found is None or function not in TOTALS or (counts and function != "count"):
        raise InvalidArgumentError(
            f"expected an aggregate over matches, got {text!r}",
            'write "count(*)", "count(b)", "sum(b.volume) AS v", or avg, min, max, stddev',
        )
    variable, attribute, name = (
        None if found[part] is None else attribute_of(found[part])
        for part in ("variable", "attribute", "name")
    )
    if variable is not None and variable not in variables:
        raise InvalidArgumentError(
            f"expected a variable of the pattern in {text!r}, got {variable!r}",
            f"the variables are {', '.join(variables)}",
        )
    return Measured(function, variable, attribute, name or text)


def check_measure(measured: Measured, kind: Kind | None, found: str = "") -> None:
    """
    Refuse an aggregate of values that it cannot add or order.

    Parameters
    ----------
    measured : Measured
        The aggregate.
    kind : Kind or None
        The type of the attribute; None if it is another one.
    found : str
        The name of the type; by default that of `kind`.

    Raises
    ------
    InputError
        If ``sum``, ``avg`` or ``stddev`` is not of numbers, or ``min`` or ``max`` of values without
        an order.
    """
    adds = measured.function in _ADDING
    if measured.attribute is None or measured.function == "count":
        return
    if kind is None or (adds and kind not in (Kind.BIGINT, Kind.DOUBLE)):
        wanted = "numbers" if adds else "numbers, texts, booleans or times"
        raise InputError(
            f"{measured.function}({measured.variable}.{measured.attribute}): expected {wanted}, "
            f"got {found or str(kind and kind.value)}",
            "use count, or cast the attribute before matching",
        )


def check_names(others: Iterable[str], measured: Iterable[Measured]) -> None:
    """
    Refuse aggregates of which one would take the place of another, or of another column.

    Case is ignored, as in Spark's columns.

    Parameters
    ----------
    others : iterable of str
        The other columns.
    measured : iterable of Measured
        The aggregates.

    Raises
    ------
    InvalidArgumentError
        If two columns have one name.
    """
    known: set[str] = set()
    for name in (*others, *(one.name for one in measured)):
        if name.lower() in known:
            raise InvalidArgumentError(
                f"two columns of the result are named {name!r}",
                "give the aggregate another name with AS, or rename the attribute",
            )
        known.add(name.lower())


class Pieces(Protocol):
    """What :class:`CompressedMatches` needs from an evaluation."""

    @property
    def variables(self) -> Sequence[str]:
        """The variables of matches."""

    @property
    def groups(self) -> Sequence[str]:
        """The attributes that the events of a window have in common."""

    def totals(self, measures: Sequence[Measured]) -> tuple[int, tuple[Total, ...]]:
        """Return the number of matches, and the requested totals."""

    def matches(self) -> Iterator[dict[str, list[Any]]]:
        """Yield the matches one after another."""

    def window_totals(
        self, windows: TimeWindows, measures: Sequence[Measured]
    ) -> Iterator[tuple[dict[str, Any], int, Sequence[Total]]]:
        """Yield for each window with matches its columns, their number and the totals."""


class CompressedMatches:
    """
    The matches of a query or a pattern on a list, compressed.

    Nothing is listed: work and memory grow with the events and the states of the query, not
    with the number of matches.

    Parameters
    ----------
    pieces : Pieces
        The evaluation.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def count(self) -> int:
        """Return the number of matches, exactly, however large."""
        return self._pieces.totals(())[0]

    @overload
    def aggregate(self, *texts: str, window: None = None, slide: None = None) -> dict[str, Any]: ...

    @overload
    def aggregate(
        self, *texts: str, window: timedelta | str, slide: timedelta | str | None = None
    ) -> list[dict[str, Any]]: ...

    def aggregate(
        self,
        *texts: str,
        window: timedelta | str | None = None,
        slide: timedelta | str | None = None,
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """
        Return aggregates over the events of variables in all matches, or in those of each window.

        Parameters
        ----------
        *texts : str
            ``count(*)``, ``count(b)``, ``count(b.x)``, ``sum(b.x)``, ``avg``, ``min``, ``max``,
            ``stddev``; ``AS name`` renames the result. An event counts once for every match it is
            in; NULL is skipped.
        window : timedelta or str, optional
            The length of windows, such as ``"10 minutes"``; one of them begins at the epoch. A
            match is in a window if all of its events are, from the start to before the end.
        slide : timedelta or str, optional
            The time from the start of a window to that of the next; by default `window`.

        Returns
        -------
        dict or list of dict
            The aggregates. With `window` those of each window with matches, in order of time, by
            the query's ``[attr]`` and GROUP BY, with ``windowStart`` and ``windowEnd``, epoch
            milliseconds, and ``count``, the number of matches.

        Raises
        ------
        InvalidArgumentError
            If a text is not an aggregate over a variable of the pattern, two columns have one
            name, or the windows leave out events.
        NotSupportedError
            If there are windows, and a query about which events outside of them decide.

        Examples
        --------
        >>> from pyflinkcep.testing import matchSase
        >>> events = [{"type": t, "ts": n} for n, t in enumerate("ABABB")]
        >>> found = matchSase("PATTERN SEQ(A a, B b)", events, "ts", compressed=True)
        >>> found.aggregate("count(*)"), found.aggregate(window="4 milliseconds")
        ({'count(*)': 5}, [{'windowStart': 0, 'windowEnd': 4, 'count': 3}])
        """
        wanted = [read_measure(text, self._pieces.variables) for text in texts]
        windows = TimeWindows.of(window, slide)
        if windows is None:
            check_names((), wanted)
            return self._row(wanted, *self._pieces.totals(_of_events(wanted)))
        return self.of_windows(windows, wanted)

    def of_windows(self, windows: TimeWindows, wanted: Sequence[Measured]) -> list[dict[str, Any]]:
        """Return the rows of windows."""
        check_names([*self._pieces.groups, WINDOW_START, WINDOW_END, COUNT], wanted)
        return [
            {**window, COUNT: count, **self._row(wanted, count, totals)}
            for window, count, totals in self._pieces.window_totals(windows, _of_events(wanted))
        ]

    def _row(
        self, wanted: Sequence[Measured], count: int, totals: Sequence[Total]
    ) -> dict[str, Any]:
        found = iter(totals)
        return {
            w.name: w.result(count, NOTHING if w.variable is None else next(found)) for w in wanted
        }

    def unpack(self, limit: int | None = None) -> list[dict[str, list[Any]]]:
        """
        Enumerate matches lazily.

        Parameters
        ----------
        limit : int, at least 0, optional
            The most to return; all by default.
        """
        if limit is not None and limit < 0:
            raise InvalidArgumentError(f"unpack(limit={limit})", "pass 0 or more, or no limit")
        return list(islice(self._pieces.matches(), limit))

    def __iter__(self) -> Iterator[dict[str, list[Any]]]:
        return self._pieces.matches()


def _of_events(wanted: Sequence[Measured]) -> list[Measured]:
    """Return the aggregates over events, not just over matches."""
    return [one for one in wanted if one.variable is not None]
