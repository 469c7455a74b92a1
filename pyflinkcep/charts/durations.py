# SPDX-License-Identifier: Apache-2.0
"""How long matches are, from their first event to their last, as a histogram."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyflinkcep.charts.model import (
    COLOURS,
    Chart,
    check_count,
    check_text,
    matches_of,
    readable,
    specification,
    unit_of,
)
from pyflinkcep.errors import counted, suggesting
from pyflinkcep.show.svg import Drawing, wrapped

_LEFT, _TOP, _WIDTH, _HEIGHT, _MARGIN = 62.0, 48.0, 520.0, 180.0, 22.0


@suggesting
def durations_chart(
    matches: Any,
    time: str | Callable[[Any], Any],
    title: str = "durations of matches",
    bins: int = 20,
    most: int = 10_000,
) -> Chart:
    """
    Return how long matches are as a histogram.

    Parameters
    ----------
    matches : DataFrame or iterable
        What ``toDF()`` or ``match`` returns.
    time : str or callable
        The field or function of an event's time: epoch milliseconds or a datetime.
    title : str
        What stands above it.
    bins : int
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
    check_text("durations_chart", "title", title)
    check_count("durations_chart", "bins", bins)
    check_count("durations_chart", "most", most)
    found = matches_of("durations_chart", matches, time, None, most)
    lengths = [one.length_ms for one in found]
    size, unit = unit_of(max(lengths, default=0))
    bars = _bars(lengths, bins, size)
    text = f"{title}: {counted(len(lengths), 'match', 'matches')}"
    text += ", the first ones" if len(lengths) == most else ""
    x = {"field": "from", "type": "quantitative", "title": f"first to last event, {unit}"}
    spec = specification(
        text,
        data={"values": bars},
        width=520,
        mark={"type": "bar", "color": COLOURS[0]},
        encoding={
            "x": {**x, "bin": {"binned": True}},
            "x2": {"field": "to"},
            "y": {"field": "count", "type": "quantitative", "title": "matches"},
        },
    )
    return Chart(title=text, spec=spec, drawn=partial(_svg, bars, size, text))


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


def _svg(bars: list[dict[str, float]], size: int, title: str) -> str:
    page = Drawing()
    page.text(_MARGIN, 26, wrapped(title, 80, 1)[0], "dim", 12, title=title)
    most = max((bar["count"] for bar in bars), default=1)
    bottom = _TOP + _HEIGHT
    page.line([(_LEFT, bottom), (_LEFT + _WIDTH, bottom)], "line", 1.2)
    page.text(_LEFT - 8, _TOP + 10, f"{most:g}", "dim", 11, "end")
    page.text(_LEFT - 8, bottom, "0", "dim", 11, "end")
    step = _WIDTH / max(len(bars), 1)
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
    page.text(_LEFT + _WIDTH / 2, bottom + 38, words, "dim", 11.5, "middle")
    return page.svg(_LEFT + _WIDTH + 50, bottom + 56, title)
