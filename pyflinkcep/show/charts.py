# SPDX-License-Identifier: Apache-2.0
"""Charts of what patterns find: as Vega-Lite specifications, and as SVG."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from pyflinkcep.errors import (
    Field,
    InputError,
    InvalidArgumentError,
    KeyFields,
    NotSupportedError,
    counted,
    did_you_mean,
    suggesting,
)
from pyflinkcep.show.diagram import DrawnPicture
from pyflinkcep.show.model import Plotted
from pyflinkcep.show.svg import Drawing, text_width, wrapped
from pyflinkcep.time import exact_moment, is_calendar, moment_text, plain

_COLOURS = ("#3b82d0", "#3a9a52", "#b8860b", "#9a6ce0", "#dd4f56", "#2a9d9d", "#d05aa0", "#808890")
"""Seen on white and on dark paper alike, since a specification cannot know which there is."""
_TEXT = "#737b85"
_MARGIN = 22.0
_SCRIPT = re.compile(r"<(?=[/!]|script)", re.IGNORECASE)


@attrs.frozen(repr=False)
class Chart(DrawnPicture):
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


def _specification(title: str, **parts: Any) -> dict[str, Any]:
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
            "range": {"category": list(_COLOURS)},
        },
        **parts,
    }


_AS_DICTS: Mapping[str, tuple[str, ...]] = {
    "to_pylist": (), "to_dicts": (), "to_dict": ("records",)
}  # fmt: skip
"""The methods by which tables of Arrow, polars and pandas become dicts, and their arguments."""
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def _dicts(name: str, rows: Any, most: int | None = None) -> list[dict[str, Any]]:
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


def _check_text(name: str, argument: str, value: object) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise InvalidArgumentError(
            f"{name}: expected {argument} to be text, got {value!r}", f"write {argument}='text'"
        )


def _check_count(name: str, argument: str, value: object, most: float = math.inf) -> None:
    """Refuse what is no number of things, or too many."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        wanted = "at least 1" if most == math.inf else f"from 1 to {most:,}"
        raise InvalidArgumentError(
            f"{name}: expected {argument} to be a whole number, {wanted}, got {value!r}",
            f"write {argument}=20",
        )


def _fields(row: Any) -> Mapping[str, Any] | None:
    method = getattr(row, "asDict", None)
    return method() if callable(method) else None


@attrs.frozen
class _Points:
    """A match as points in time."""

    label: str  # Its key, or its number
    name: str  # The same, of one match alone
    # The stage and the time of each event, in epoch milliseconds, in order of time.
    events: tuple[tuple[str, int], ...]

    @property
    def length_ms(self) -> int:
        """The time from the first event to the last."""
        return self.events[-1][1] - self.events[0][1]


def _matches_of(
    chart: str,
    matches: Any,
    time: Field | None,
    key: KeyFields | None,
    most: int,
) -> list[_Points]:
    """Return matches as points in time."""
    if isinstance(matches, Plotted):
        matches, time, key = matches.plotted(time, key)
    if not isinstance(time, str) and not callable(time):
        raise InvalidArgumentError(
            f"{chart}: expected time to be a field or a function of an event, got {time!r}",
            "write time='ts', or give match() its timestamp='ts'",
        )
    keys = [key] if isinstance(key, str) or callable(key) else key
    is_named = isinstance(keys, list | tuple) and keys and all(isinstance(k, str) for k in keys)
    if keys is not None and not is_named and not callable(key):
        raise InvalidArgumentError(
            f"{chart}: expected key to be the name of a column or a list of names, got {key!r}",
            "write key='user', or key=['user', 'shop']",
        )
    found: list[_Points] = []
    for number, row in enumerate(_dicts(chart, matches, most)):
        stages = {stage: [*own] for stage, own in row.items() if _is_array(own)}
        if not stages:
            raise InvalidArgumentError(
                f"{chart}: expected matches, each with a list of events for each stage, "
                f"got {row!r}",
                "pass what toDF() or match() return",
            )
        events = [
            (stage, _milliseconds(chart, event, time))
            for stage, taken in stages.items()
            for event in taken
        ]
        if events:
            first = next(taken[0] for taken in stages.values() if taken)
            events.sort(key=lambda event: event[1])
            label = name = f"match {number}"
            if keys:
                label = ", ".join(str(_named(chart, column, row, first)) for column in keys)
                name = f"{label} ({len(found)})"
            found.append(_Points(label, name, tuple(events)))
    return found


def _is_array(value: Any) -> bool:
    """Whether a value of a row is a list, or the array that pandas reads from a file."""
    return isinstance(value, list) or type(value).__name__ == "ndarray"


def _named(name: str, column: Field, row: Mapping[str, Any], event: Any) -> Any:
    """Return a column of a match, or the field of its first event if it has none."""
    if callable(column):
        return _called(name, "key", column, event)
    if column in row and not _is_array(row[column]):
        return row[column]
    fields = dict(event) if isinstance(event, Mapping) else _fields(event)
    if fields is None:
        fields = {own: getattr(event, own) for own in dir(event) if not own.startswith("_")}
    if column in fields:
        return fields[column]
    known = [*(own for own, value in row.items() if not _is_array(value)), *fields]
    raise InvalidArgumentError(
        f"{name}: key={column!r}: neither the matches nor their events have {column!r}",
        did_you_mean(column, known, f"they have {', '.join(known)}"),
    )


def _called(name: str, argument: str, function: Callable[[Any], Any], event: Any) -> Any:
    """Return what a function makes of an event."""
    try:
        return function(event)
    except Exception as cause:
        raise InvalidArgumentError(
            f"{name}: the function for {argument} raised {type(cause).__name__}: {cause}, "
            f"for the event {event!r}",
            f"write {argument}=lambda event: event.name, which every event has",
        ) from cause


def _milliseconds(name: str, event: Any, time: Field) -> int:
    try:
        if not isinstance(time, str):
            value = _called(name, "time", time, event)
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


# --- funnels

_BAR, _ROW, _MOST_GROUPS = 380.0, 32.0, 20
_NEEDED = ("stage", "step", "keys", "partialMatches")


@suggesting
def funnel_chart(rows: Any, title: str = "funnel", by: str | Sequence[str] = ()) -> Chart:
    """
    Return a funnel as a chart.

    Parameters
    ----------
    rows : DataFrame or iterable
        What ``funnel`` returns, or rows of it; or what ``trace`` or ``whyNot`` returns.
    title : str
        What stands above it.
    by : str or list of str
        The columns of the group; the picture has the first twenty groups.

    Returns
    -------
    Chart
        Bars of keys, or of partial matches if no stage has more than one key.

    Raises
    ------
    InvalidArgumentError
        If the rows are none of a funnel.

    Examples
    --------
    >>> rows = [{"stage": "view", "step": 1, "keys": 5, "partialMatches": 9, "ofFirst": 1.0}]
    >>> funnel_chart(rows).spec["data"]["values"][0]["label"]
    '5 · 100 % of the first'
    """
    _check_text("funnel_chart", "title", title)
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, list | tuple):
        raise InvalidArgumentError(
            f"funnel_chart: expected by to be names of columns, got {by!r}",
            "write by='country', what funnel() was given",
        )
    given = _dicts("funnel_chart", rows.funnel_rows if isinstance(rows, Plotted) else rows)
    for row in given:
        missing = [name for name in (*_NEEDED, *names) if name not in row]
        if missing:
            raise InvalidArgumentError(
                f"funnel_chart: expected rows of a funnel, got one without {missing[0]!r}",
                "pass what funnel() returns, and as by what it was given",
            )
        for name in ("step", "keys", "partialMatches", "p50Ms"):
            value = _known(row.get(name))
            if not (isinstance(value, int | float) or (value is None and name == "p50Ms")):
                raise InvalidArgumentError(
                    f"funnel_chart: expected {name} to be a number, got {value!r}",
                    "pass what funnel() returns",
                )
    unit = "keys" if any(row["keys"] > 1 for row in given) else "partialMatches"
    first: dict[str, int] = {}
    bars = []
    for row in sorted(given, key=lambda row: int(row["step"])):
        group = ", ".join(f"{name}: {row[name]}" for name in names)
        bars.append(_bar(row, group, unit, first.setdefault(group, row[unit])))
    drawn = partial(_funnel_svg, bars, list(first), title)
    return Chart(title=title, spec=_funnel_spec(bars, title, unit, bool(names)), draw=drawn)


def _bar(row: Mapping[str, Any], group: str, unit: str, first: int) -> dict[str, Any]:
    """Return what is drawn of a row, in columns whose names need no escapes."""
    parts = [str(row[unit])]
    if first:
        parts.append(f"{row[unit] / first:.0%} of the first".replace("%", " %"))
    if _known(row.get("p50Ms")) is not None:
        parts.append(f"median {readable(row['p50Ms'])}")
    return {
        "stage": str(row["stage"]),
        "step": row["step"],
        "group": group,
        "value": row[unit],
        "label": " · ".join(parts),
    }


def _funnel_spec(
    bars: list[dict[str, Any]], title: str, unit: str, is_grouped: bool
) -> dict[str, Any]:
    order = {"field": "step", "op": "min", "order": "ascending"}
    y = {"field": "stage", "type": "nominal", "sort": order, "title": None}
    words = {"keys": "keys", "partialMatches": "partial matches"}[unit]
    axis = {"grid": False, "tickMinStep": 1}
    x = {"field": "value", "type": "quantitative", "title": words, "axis": axis}
    layers = [
        {"mark": {"type": "bar", "color": _COLOURS[0]}, "encoding": {"x": x}},
        {
            "mark": {"type": "text", "align": "left", "dx": 5},
            "encoding": {"x": x, "text": {"field": "label"}},
        },
    ]
    chart: dict[str, Any] = {"encoding": {"y": y}, "layer": layers}
    data = {"values": bars}
    if not is_grouped:
        return _specification(title, data=data, width=480, **chart)
    header = {"labelOrient": "top", "labelAnchor": "start", "labelFontWeight": "bold"}
    row = {"field": "group", "type": "nominal", "title": None, "sort": None, "header": header}
    return _specification(title, data=data, facet={"row": row}, spec={"width": 480, **chart})


def _funnel_svg(bars: list[dict[str, Any]], groups: list[str], title: str) -> str:
    page = Drawing()
    stages = {bar["stage"]: wrapped(bar["stage"], 32, 1)[0] for bar in bars}
    start = _MARGIN + max([60.0, *(text_width(n, 13, bold=True) for n in stages.values())]) + 12
    longest = max([1, *(bar["value"] for bar in bars)])
    y, right = _MARGIN, start + _BAR
    page.text(_MARGIN, y + 8, wrapped(title, 90, 1)[0], "dim", 12, title=title)
    y += 24
    for group in groups[:_MOST_GROUPS] or [""]:
        if group:
            page.text(
                _MARGIN, y + 12, wrapped(group, 80, 1)[0], "ink", 12.5, bold=True, title=group
            )
            y += 22
        for bar in (bar for bar in bars if bar["group"] == group):
            name = stages[bar["stage"]]
            page.text(start - 12, y + 16, name, "ink", 13, "end", bold=True, title=bar["stage"])
            width = max(_BAR * bar["value"] / longest, 2) if bar["value"] else 0
            page.rect(start, y, _BAR, 22, "box", "edge", 4)
            if width:
                page.rect(start, y, width, 22, "blue", "", 4)
            page.text(start + _BAR + 10, y + 16, bar["label"], "ink", 12)
            right = max(right, start + _BAR + 10 + text_width(bar["label"], 12))
            y += _ROW
        y += 8
    if len(groups) > _MOST_GROUPS:
        more = f"the first {_MOST_GROUPS} of {len(groups)} groups"
        page.text(_MARGIN, y + 12, more, "dim", 12)
        y += 24
    if not bars:
        page.text(_MARGIN, y + 12, "no rows", "dim", 12)
        y += 24
    return page.svg(right + _MARGIN, y + 6, title)


# --- durations

_LEFT, _BARS_TOP, _BARS_WIDTH, _HEIGHT = 62.0, 48.0, 520.0, 180.0
_MOST_BINS = 1_000


@suggesting
def durations_chart(
    matches: Any,
    time: Field | None = None,
    title: str = "durations of matches",
    bins: int = 20,
    most: int = 10_000,
) -> Chart:
    """
    Return how long matches are as a histogram.

    Parameters
    ----------
    matches : DataFrame or iterable
        What ``toDF()``, ``match``, ``trace`` or ``whyNot`` returns.
    time : str or callable, optional
        The field or function of an event's time: epoch milliseconds or a datetime. What is made
        with a `timestamp` in memory knows it.
    title : str
        What stands above it.
    bins : int, from 1 to 1,000
        The number of bars.
    most : int
        The most matches to collect: the first ones.

    Examples
    --------
    >>> matches = [{"a": [{"ts": 0}], "b": [{"ts": ts}]} for ts in (10, 12, 90)]
    >>> chart = durations_chart(matches, time="ts", bins=2)
    >>> [(bar["from"], bar["to"], bar["count"]) for bar in chart.spec["data"]["values"]]
    [(10.0, 50.0, 2), (50.0, 90.0, 1)]
    """
    _check_text("durations_chart", "title", title)
    _check_count("durations_chart", "bins", bins, _MOST_BINS)
    _check_count("durations_chart", "most", most)
    found = _matches_of("durations_chart", matches, time, None, most)
    lengths = [one.length_ms for one in found]
    size, unit = unit_of(max(lengths, default=0))
    bars = _bars(lengths, bins, size)
    text = f"{title}: {counted(len(lengths), 'match', 'matches')}"
    text += ", the first ones" if len(lengths) == most else ""
    x = {"field": "from", "type": "quantitative", "title": f"first to last event, {unit}"}
    spec = _specification(
        text,
        data={"values": bars},
        width=520,
        mark={"type": "bar", "color": _COLOURS[0]},
        encoding={
            "x": {**x, "bin": {"binned": True}},
            "x2": {"field": "to"},
            "y": {"field": "count", "type": "quantitative", "title": "matches"},
        },
    )
    return Chart(title=text, spec=spec, draw=partial(_durations_svg, bars, size, text))


def _bars(lengths: list[int], bins: int, size: int) -> list[dict[str, float]]:
    if not lengths:
        return []
    low, high = min(lengths), max(lengths)
    width = (high - low) / bins or 1
    counts = [0] * (bins if high > low else 1)
    for length in lengths:
        counts[min(int((length - low) / width), len(counts) - 1)] += 1
    return [
        {"from": (low + at * width) / size, "to": (low + (at + 1) * width) / size, "count": count}
        for at, count in enumerate(counts)
    ]


def _durations_svg(bars: list[dict[str, float]], size: int, title: str) -> str:
    page = Drawing()
    page.text(_MARGIN, 26, wrapped(title, 80, 1)[0], "dim", 12, title=title)
    most = max((bar["count"] for bar in bars), default=1)
    bottom = _BARS_TOP + _HEIGHT
    page.line([(_LEFT, bottom), (_LEFT + _BARS_WIDTH, bottom)], "line", 1.2)
    page.text(_LEFT - 8, _BARS_TOP + 10, f"{most:g}", "dim", 11, "end")
    page.text(_LEFT - 8, bottom, "0", "dim", 11, "end")
    step = _BARS_WIDTH / max(len(bars), 1)
    for at, bar in enumerate(bars):
        height = _HEIGHT * bar["count"] / most
        if height:
            left, words = _LEFT + at * step, f"{readable(bar['from'] * size)} or more"
            label = f"{bar['count']:g}: {words}"
            page.rect(left + 1, bottom - height, step - 2, height, "blue", "", 2, title=label)
    for at in (0, len(bars) // 2, len(bars)) if bars else ():
        value = bars[at]["from"] if at < len(bars) else bars[-1]["to"]
        page.text(_LEFT + at * step, bottom + 18, readable(value * size), "dim", 11, "middle")
    words = "from the first event of a match to the last" if bars else "no matches"
    page.text(_LEFT + _BARS_WIDTH / 2, bottom + 38, words, "dim", 11.5, "middle")
    return page.svg(_LEFT + _BARS_WIDTH + 50, bottom + 56, title)


# --- matches on an axis of time

_LANES_TOP, _LANES_WIDTH, _LANE = 78.0, 560.0, 24.0
_PAINTS = ("blue", "green", "amber", "violet", "red")


@suggesting
def timeline_chart(
    matches: Any,
    time: Field | None = None,
    key: KeyFields | None = None,
    title: str = "matches",
    most: int = 100,
) -> Chart:
    """
    Return matches on an axis of time.

    Parameters
    ----------
    matches : DataFrame or iterable
        What ``toDF()``, ``match``, ``trace`` or ``whyNot`` returns.
    time : str or callable, optional
        The field or function of an event's time: epoch milliseconds or a datetime. What is made
        with a `timestamp` in memory knows it.
    key : str, list of str or callable, optional
        The columns of ``toDF()``, or fields or function of a match's first event, that name a
        match; by default the `key` given to ``match`` or ``trace``.
    title : str
        What stands above it.
    most : int
        The most matches to collect and draw: the first ones.

    Examples
    --------
    >>> matches = [{"a": [{"ts": 0}], "b": [{"ts": 5}, {"ts": 8}]}]
    >>> values = timeline_chart(matches, time="ts").spec["data"]["values"]
    >>> [(value["stage"], value["time"]) for value in values]
    [('a', 0), ('b', 5), ('b', 8)]
    """
    _check_text("timeline_chart", "title", title)
    _check_count("timeline_chart", "most", most)
    found = _matches_of("timeline_chart", matches, time, key, most)
    text = f"{title}, the first {most}" if len(found) == most else title
    stages = list(dict.fromkeys(stage for one in found for stage, _ in one.events))
    values = [
        {"match": one.name, "stage": stage, "time": at} for one in found for stage, at in one.events
    ]
    return Chart(
        title=text,
        spec=_timeline_spec(values, text),
        draw=partial(_timeline_svg, found, stages, text),
    )


def _is_calendar(times: Sequence[int]) -> bool:
    return bool(times) and all(map(is_calendar, (min(times), max(times))))


def _timeline_spec(values: list[dict[str, Any]], title: str) -> dict[str, Any]:
    x: dict[str, Any] = {"field": "time", "type": "quantitative", "title": "milliseconds"}
    if _is_calendar([value["time"] for value in values]):
        x = {"field": "time", "type": "temporal", "title": "UTC", "scale": {"type": "utc"}}
    lanes = {"field": "match", "type": "nominal", "title": None, "sort": None}
    shown = {name: x[name] for name in ("field", "type", "title")}
    ends = {"x": {**x, "aggregate": "min"}, "x2": {"aggregate": "max", "field": "time"}}
    points = {
        "x": x,
        "color": {"field": "stage", "type": "nominal", "sort": None},
        "tooltip": [{"field": "match"}, {"field": "stage"}, shown],
    }
    return _specification(
        title,
        data={"values": values},
        width=560,
        encoding={"y": lanes},
        layer=[
            {"mark": {"type": "rule", "strokeWidth": 2, "color": _COLOURS[-1]}, "encoding": ends},
            {
                "mark": {"type": "point", "filled": True, "opacity": 1, "size": 60},
                "encoding": points,
            },
        ],
    )


def _timeline_svg(found: Sequence[_Points], stages: Sequence[str], title: str) -> str:
    page = Drawing()
    page.text(_MARGIN, 24, wrapped(title, 90, 1)[0], "dim", 12, title=title)
    right = _legend(page, stages)
    names = [wrapped(one.label, 28, 1)[0] for one in found]
    left = _MARGIN + max([40.0, *(text_width(name, 12) for name in names)]) + 16
    times = [at for one in found for _, at in one.events]
    low, high = min(times, default=0), max(times, default=0)
    scale = _LANES_WIDTH / max(high - low, 1)
    y = _LANES_TOP
    for name, one in zip(names, found, strict=True):
        places = [left + (at - low) * scale for _, at in one.events]
        page.text(left - 12, y + 4, name, "ink", 12, "end", title=one.label)
        page.line([(places[0], y), (places[-1] + 0.1, y)], "line", 2)
        for (stage, _), x in zip(one.events, places, strict=True):
            page.circle(x, y, 4.5, _PAINTS[stages.index(stage) % len(_PAINTS)])
        y += _LANE
    if found:
        page.text(left, y + 10, _moment(low, times), "dim", 11)
        page.text(left + _LANES_WIDTH, y + 10, f"{_moment(high, times)}", "dim", 11, "end")
        middle = left + _LANES_WIDTH / 2
        page.text(middle, y + 10, f"{readable(high - low)} in all", "dim", 11, "middle")
    else:
        page.text(_MARGIN, y, "no matches", "dim", 12)
    return page.svg(max(left + _LANES_WIDTH, right) + _MARGIN, y + 30, title)


def _legend(page: Drawing, stages: Sequence[str]) -> float:
    x = _MARGIN
    for number, stage in enumerate(stages[:12]):
        name = wrapped(stage, 24, 1)[0]
        page.circle(x + 5, 46, 4.5, _PAINTS[number % len(_PAINTS)])
        page.text(x + 15, 50, name, "ink", 12, title=stage)
        x += 15 + text_width(name, 12) + 18
    return x


def _moment(milliseconds: int, times: Sequence[int]) -> str:
    moment = moment_text(milliseconds) if _is_calendar(times) else None
    return moment or f"{milliseconds} ms"
