# SPDX-License-Identifier: Apache-2.0
"""Matches on an axis of time: a line for each, with its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyflinkcep.charts.model import (
    COLOURS,
    Chart,
    Points,
    check_count,
    check_text,
    matches_of,
    readable,
    specification,
)
from pyflinkcep.errors import suggesting
from pyflinkcep.show.svg import Drawing, text_width, wrapped
from pyflinkcep.time import is_calendar, moment_text

_TOP, _WIDTH, _LANE, _MARGIN = 78.0, 560.0, 24.0, 22.0
_PAINTS = ("blue", "green", "amber", "violet", "red")


@suggesting
def timeline_chart(
    matches: Any,
    time: str | Callable[[Any], Any],
    key: str | Sequence[str] | None = None,
    title: str = "matches",
    most: int = 100,
) -> Chart:
    """
    Return matches on an axis of time.

    Parameters
    ----------
    matches : DataFrame or iterable
        What ``toDF()`` or ``match`` returns.
    time : str or callable
        The field or function of an event's time: epoch milliseconds or a datetime.
    key : str or list of str, optional
        The columns of ``toDF()``, or fields of a match's first event, that name a match.
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
    check_text("timeline_chart", "title", title)
    check_count("timeline_chart", "most", most)
    found = matches_of("timeline_chart", matches, time, key, most)
    text = f"{title}, the first {most}" if len(found) == most else title
    stages = list(dict.fromkeys(stage for one in found for stage, _ in one.events))
    values = [
        {"match": f"{one.label} ({number})" if key else one.label, "stage": stage, "time": at}
        for number, one in enumerate(found)
        for stage, at in one.events
    ]
    return Chart(title=text, spec=_spec(values, text), drawn=partial(_svg, found, stages, text))


def _is_calendar(times: Sequence[int]) -> bool:
    return bool(times) and all(map(is_calendar, (min(times), max(times))))


def _spec(values: list[dict[str, Any]], title: str) -> dict[str, Any]:
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
    return specification(
        title,
        data={"values": values},
        width=560,
        encoding={"y": lanes},
        layer=[
            {"mark": {"type": "rule", "strokeWidth": 2, "color": COLOURS[-1]}, "encoding": ends},
            {
                "mark": {"type": "point", "filled": True, "opacity": 1, "size": 60},
                "encoding": points,
            },
        ],
    )


def _svg(found: Sequence[Points], stages: Sequence[str], title: str) -> str:
    page = Drawing()
    page.text(_MARGIN, 24, wrapped(title, 90, 1)[0], "dim", 12, title=title)
    right = _legend(page, stages)
    names = [wrapped(one.label, 28, 1)[0] for one in found]
    left = _MARGIN + max([40.0, *(text_width(name, 12) for name in names)]) + 16
    times = [at for one in found for _, at in one.events]
    low, high = min(times, default=0), max(times, default=0)
    scale = _WIDTH / max(high - low, 1)
    y = _TOP
    for name, one in zip(names, found, strict=True):
        places = [left + (at - low) * scale for _, at in one.events]
        page.text(left - 12, y + 4, name, "ink", 12, "end", title=one.label)
        page.line([(places[0], y), (places[-1] + 0.1, y)], "line", 2)
        for (stage, _), x in zip(one.events, places, strict=True):
            page.circle(x, y, 4.5, _PAINTS[stages.index(stage) % len(_PAINTS)])
        y += _LANE
    if found:
        page.text(left, y + 10, _moment(low, times), "dim", 11)
        page.text(left + _WIDTH, y + 10, f"{_moment(high, times)}", "dim", 11, "end")
        middle = left + _WIDTH / 2
        page.text(middle, y + 10, f"{readable(high - low)} in all", "dim", 11, "middle")
    else:
        page.text(_MARGIN, y, "no matches", "dim", 12)
    return page.svg(max(left + _WIDTH, right) + _MARGIN, y + 30, title)


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
