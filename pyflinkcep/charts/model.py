# SPDX-License-Identifier: Apache-2.0
"""A chart that users hold: a Vega-Lite specification, and the same as SVG."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError, did_you_mean
from pyflinkcep.show import Picture
from pyflinkcep.time import exact_moment, plain

COLOURS = ("#3b82d0", "#3a9a52", "#b8860b", "#9a6ce0", "#dd4f56", "#2a9d9d", "#d05aa0", "#808890")
"""Seen on white and on dark paper alike, since a specification cannot know which there is."""
_TEXT = "#737b85"
_SCRIPT = re.compile(r"<(?=[/!]|script)", re.IGNORECASE)


@attrs.frozen(repr=False)
class Chart(Picture):
    """
    A chart, which notebooks show.

    Attributes
    ----------
    spec : dict
        The chart as a Vega-Lite specification, with its data.

    Examples
    --------
    >>> from pyflinkcep.charts import funnel_chart
    >>> rows = [{"stage": "view", "step": 1, "keys": 5, "partialMatches": 9, "ofFirst": 1.0}]
    >>> chart = funnel_chart(rows)
    >>> chart.spec["data"]["values"][0]["stage"], chart.svg[:4]
    ('view', '<svg')
    """

    spec: dict[str, Any] = attrs.field(kw_only=True)
    _drawn: Callable[[], str] = attrs.field(kw_only=True, eq=False)

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        return self._drawn()

    def altair(self) -> Any:
        """
        Return the chart as one of Altair's, to change it or to save it in other forms.

        In names and values that would end or begin a script in Altair's pages, which do not escape
        them, a character without a width follows ``<``.

        Raises
        ------
        NotSupportedError
            If Altair is not installed.
        """
        try:
            import altair
        except ImportError as cause:
            raise NotSupportedError(
                "altair() needs the package altair",
                "pip install 'pyflinkcep[charts]'; chart.svg and chart.spec need no package",
            ) from cause
        return altair.Chart.from_dict(_harmless(self.spec))

    def _forms(self) -> Mapping[str, Callable[[], str]]:
        return {**super()._forms(), ".json": lambda: json.dumps(self.spec, indent=2)}

    def _repr_html_(self) -> str:
        return self.svg

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {
            "application/vnd.vegalite.v5+json": self.spec,
            "text/html": self.svg,
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        return f"Chart({self.title!r})"


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return _SCRIPT.sub("<\u200b", value)
    if isinstance(value, dict):
        return {_harmless(name): _harmless(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_harmless(part) for part in value]
    return value


def specification(title: str, **parts: Any) -> dict[str, Any]:
    """Return a Vega-Lite specification that is readable on light and dark pages."""
    axis = {
        "labelColor": _TEXT, "titleColor": _TEXT, "domainColor": _TEXT, "tickColor": _TEXT,
        "gridColor": _TEXT, "gridOpacity": 0.25, "labelLimit": 240,
    }  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": title, "anchor": "start"},
        "background": "transparent",
        "config": {
            "view": {"stroke": "transparent"},
            "axis": axis,
            "title": {"color": _TEXT},
            "header": {"labelColor": _TEXT, "titleColor": _TEXT},
            "legend": {"labelColor": _TEXT, "titleColor": _TEXT},
            "text": {"color": _TEXT},
            "range": {"category": list(COLOURS)},
        },
        **parts,
    }


_AS_DICTS: Mapping[str, tuple[str, ...]] = {
    "to_pylist": (), "to_dicts": (), "to_dict": ("records",)
}  # fmt: skip
"""The methods by which tables of Arrow, polars and pandas become dicts, and their arguments."""
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def dicts(name: str, rows: Any, most: int | None = None) -> list[dict[str, Any]]:
    """Return rows, or those of a DataFrame of any library, as dicts: at most `most`."""
    if callable(getattr(rows, "collect", None)):
        rows = (rows if most is None else rows.limit(most)).collect()
    elif isinstance(getattr(rows, "rows", None), list):  # what funnel() returns
        rows = rows.rows
    for method, arguments in _AS_DICTS.items():
        if callable(getattr(rows, method, None)) and hasattr(rows, "columns"):
            given = getattr(rows[:most], method)(*arguments)
            rows = [{name: _known(value) for name, value in row.items()} for row in given]
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise InvalidArgumentError(
            f"{name}: expected rows or a DataFrame, got {rows!r}",
            "pass what funnel(), toDF() or match() return",
        )
    found: list[dict[str, Any]] = []
    for row in rows:
        if most is not None and len(found) == most:
            break
        own = row if isinstance(row, Mapping) else _fields(row)
        if own is None:
            raise InvalidArgumentError(
                f"{name}: expected rows as dicts or Rows, got {row!r}",
                "pass what funnel(), toDF() or match() return",
            )
        found.append(dict(own))
    return found


def _known(value: Any) -> Any:
    """Return a value of a table; None for NaN, which has no place in a chart."""
    return None if isinstance(value, float) and value != value else plain(value)


def check_text(name: str, argument: str, value: object) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise InvalidArgumentError(
            f"{name}: expected {argument} to be text, got {value!r}", f"write {argument}='text'"
        )


def check_count(name: str, argument: str, value: object) -> None:
    """Refuse what is no number of things."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgumentError(
            f"{name}: expected {argument} to be a whole number, at least 1, got {value!r}",
            f"write {argument}=20",
        )


def _fields(row: Any) -> Mapping[str, Any] | None:
    method = getattr(row, "asDict", None)
    return method() if callable(method) else None


@attrs.frozen
class Points:
    """
    A match as points in time.

    Attributes
    ----------
    label : str
        Its key, or its number.
    events : tuple of (str, int)
        The stage and the time of each event, in epoch milliseconds, in order of time.
    """

    label: str
    events: tuple[tuple[str, int], ...]

    @property
    def length_ms(self) -> int:
        """The time from the first event to the last."""
        return self.events[-1][1] - self.events[0][1]


def matches_of(
    name: str,
    matches: Any,
    time: str | Callable[[Any], Any],
    key: str | Sequence[str] | None,
    most: int,
) -> list[Points]:
    """
    Return matches as points in time.

    Parameters
    ----------
    name : str
        The chart, for errors.
    matches : DataFrame or iterable
        Rows of ``toDF()``, or what ``match`` returns.
    time : str or callable
        The field or function of an event's time.
    key : str or list of str, optional
        The columns of the rows, or the fields of events, that name a match.
    most : int
        The most matches.
    """
    if not isinstance(time, str) and not callable(time):
        raise InvalidArgumentError(
            f"{name}: expected time to be a field or a function of an event, got {time!r}",
            "write time='ts', or time=lambda event: event.ts",
        )
    keys = [key] if isinstance(key, str) else key
    is_named = isinstance(keys, list | tuple) and keys and all(isinstance(k, str) for k in keys)
    if keys is not None and not is_named:
        raise InvalidArgumentError(
            f"{name}: expected key to be the name of a column or a list of names, got {key!r}",
            "write key='user', or key=['user', 'shop']",
        )
    found = []
    for number, row in enumerate(dicts(name, matches, most)):
        stages = {stage: [*own] for stage, own in row.items() if _is_array(own)}
        if not stages:
            raise InvalidArgumentError(
                f"{name}: expected matches, each with a list of events for each stage, got {row!r}",
                "pass what toDF() or match() return",
            )
        events = [
            (stage, _milliseconds(name, event, time))
            for stage, taken in stages.items()
            for event in taken
        ]
        if events:
            first = next(taken[0] for taken in stages.values() if taken)
            label = ", ".join(str(_named(name, column, row, first)) for column in keys or ())
            events.sort(key=lambda event: event[1])
            found.append(Points(label if keys else f"match {number}", tuple(events)))
    return found


def _is_array(value: Any) -> bool:
    """Whether a value of a row is a list, or the array that pandas reads from a file."""
    return isinstance(value, list) or type(value).__name__ == "ndarray"


def _named(name: str, column: str, row: Mapping[str, Any], event: Any) -> Any:
    """Return a column of a match, or the field of its first event if it has none."""
    if column in row and not _is_array(row[column]):
        return row[column]
    fields = event if isinstance(event, Mapping) else _fields(event)
    if fields is None:
        fields = {own: getattr(event, own) for own in dir(event) if not own.startswith("_")}
    if column in fields:
        return fields[column]
    known = [*(own for own, value in row.items() if not _is_array(value)), *fields]
    raise InvalidArgumentError(
        f"{name}: key={column!r}: neither the matches nor their events have {column!r}",
        did_you_mean(column, known, f"they have {', '.join(known)}"),
    )


def _milliseconds(name: str, event: Any, time: str | Callable[[Any], Any]) -> int:
    try:
        if not isinstance(time, str):
            value = time(event)
        else:
            value = event[time] if isinstance(event, Mapping) else getattr(event, time)
    except (LookupError, AttributeError) as cause:
        raise InvalidArgumentError(
            f"{name}: the event {event!r} has no time {time!r}",
            "write time='ts' with the field that has it, or time=lambda event: event.ts",
        ) from cause
    try:
        return exact_moment(value, "") // 1000
    except InputError as cause:
        raise InvalidArgumentError(
            f"{name}: expected times in epoch milliseconds or datetimes, got {value!r}",
            "name the field with the event's time",
        ) from cause


def unit_of(longest_ms: float) -> tuple[int, str]:
    """Return a unit for durations up to a length: its milliseconds, and its name."""
    return next(((ms, name) for ms, name in _UNITS if longest_ms >= 2 * ms), (1, "ms"))


def readable(milliseconds: float) -> str:
    """
    Return a duration to three digits.

    Examples
    --------
    >>> readable(90), readable(90_000), readable(5_400_000)
    ('90 ms', '90 s', '90 min')
    """
    size, unit = unit_of(milliseconds)
    return f"{milliseconds / size:.3g} {unit}"
