# SPDX-License-Identifier: Apache-2.0
"""A funnel as bars: how many keys reached each stage, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyflinkcep.charts.model import COLOURS, Chart, check_text, dicts, readable, specification
from pyflinkcep.errors import InvalidArgumentError, suggesting
from pyflinkcep.show.svg import Drawing, text_width, wrapped

_LEFT, _BAR, _ROW, _MARGIN, _MOST_GROUPS = 22.0, 380.0, 32.0, 22.0, 20
_NEEDED = ("stage", "step", "keys", "partialMatches")


@suggesting
def funnel_chart(rows: Any, title: str = "funnel", by: str | Sequence[str] = ()) -> Chart:
    """
    Return a funnel as a chart.

    Parameters
    ----------
    rows : DataFrame or iterable
        What :meth:`pyflinkcep.PatternStream.funnel` returns, or rows of it.
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
    check_text("funnel_chart", "title", title)
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, list | tuple):
        raise InvalidArgumentError(
            f"funnel_chart: expected by to be names of columns, got {by!r}",
            "write by='country', what funnel() was given",
        )
    given = dicts("funnel_chart", rows)
    for row in given:
        missing = [name for name in (*_NEEDED, *names) if name not in row]
        if missing:
            raise InvalidArgumentError(
                f"funnel_chart: expected rows of a funnel, got one without {missing[0]!r}",
                "pass what funnel() returns, and as by what it was given",
            )
    unit = "keys" if any(row["keys"] > 1 for row in given) else "partialMatches"
    first: dict[str, int] = {}
    bars = []
    for row in sorted(given, key=lambda row: int(row["step"])):
        group = ", ".join(f"{name}: {row[name]}" for name in names)
        bars.append(_bar(row, group, unit, first.setdefault(group, row[unit])))
    drawn = partial(_svg, bars, list(first), title)
    return Chart(title=title, spec=_spec(bars, title, unit, bool(names)), drawn=drawn)


def _bar(row: Mapping[str, Any], group: str, unit: str, first: int) -> dict[str, Any]:
    """Return what is drawn of a row, in columns whose names need no escapes."""
    parts = [str(row[unit])]
    if first:
        parts.append(f"{row[unit] / first:.0%} of the first".replace("%", " %"))
    if row.get("p50Ms") is not None:
        parts.append(f"median {readable(row['p50Ms'])}")
    return {
        "stage": str(row["stage"]),
        "step": row["step"],
        "group": group,
        "value": row[unit],
        "label": " · ".join(parts),
    }


def _spec(bars: list[dict[str, Any]], title: str, unit: str, is_grouped: bool) -> dict[str, Any]:
    order = {"field": "step", "op": "min", "order": "ascending"}
    y = {"field": "stage", "type": "nominal", "sort": order, "title": None}
    words = {"keys": "keys", "partialMatches": "partial matches"}[unit]
    axis = {"grid": False, "tickMinStep": 1}
    x = {"field": "value", "type": "quantitative", "title": words, "axis": axis}
    layers = [
        {"mark": {"type": "bar", "color": COLOURS[0]}, "encoding": {"x": x}},
        {
            "mark": {"type": "text", "align": "left", "dx": 5},
            "encoding": {"x": x, "text": {"field": "label"}},
        },
    ]
    chart: dict[str, Any] = {"encoding": {"y": y}, "layer": layers}
    data = {"values": bars}
    if not is_grouped:
        return specification(title, data=data, width=480, **chart)
    header = {"labelOrient": "top", "labelAnchor": "start", "labelFontWeight": "bold"}
    row = {"field": "group", "type": "nominal", "title": None, "sort": None, "header": header}
    return specification(title, data=data, facet={"row": row}, spec={"width": 480, **chart})


def _svg(bars: list[dict[str, Any]], groups: list[str], title: str) -> str:
    page = Drawing()
    stages = {bar["stage"]: wrapped(bar["stage"], 32, 1)[0] for bar in bars}
    start = _LEFT + max([60.0, *(text_width(n, 13, bold=True) for n in stages.values())]) + 12
    longest = max([1, *(bar["value"] for bar in bars)])
    y, right = _MARGIN, start + _BAR
    page.text(_LEFT, y + 8, wrapped(title, 90, 1)[0], "dim", 12, title=title)
    y += 24
    for group in groups[:_MOST_GROUPS] or [""]:
        if group:
            page.text(_LEFT, y + 12, wrapped(group, 80, 1)[0], "ink", 12.5, bold=True, title=group)
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
        page.text(_LEFT, y + 12, more, "dim", 12)
        y += 24
    if not bars:
        page.text(_LEFT, y + 12, "no rows", "dim", 12)
        y += 24
    return page.svg(right + _MARGIN, y + 6, title)
