# SPDX-License-Identifier: Apache-2.0
"""Numbers over time as small pictures."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pyflinkcep.show.svg import Drawing, text_width

__all__ = ["Line", "chart", "in_words"]

COLOURS = ("blue", "violet", "green", "amber", "red", "dim")
_WIDTH, _HEIGHT = 404, 198
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 14, 44, 40
_ROW, _MOST_ROWS = 17, 6


@attrs.frozen
class Line:
    """
    A line of a chart.

    Attributes
    ----------
    name : str
        What it is called in the legend.
    values : sequence of float or None
        A value for each time; None for a gap.
    """

    name: str
    values: Sequence[float | None]


def chart(title: str, times: Sequence[float], lines: Sequence[Line], unit: str = "") -> str:
    """
    Return a chart as SVG.

    Parameters
    ----------
    title : str
        What it shows.
    times : sequence of float, epoch seconds
        The times, ascending.
    lines : sequence of Line
        The lines; those beyond the sixth share the last colour.
    unit : str, optional
        The unit of the values.
    """
    drawing = Drawing()
    drawing.text(14, 22, title, size=13, bold=True)
    known = [value for line in lines for value in line.values if value is not None]
    low = min([*known, 0.0])
    top = max([*known, 0.0]) or float(low == 0)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for part in (0.0, 0.5, 1.0):
        y = bottom - part * (bottom - _TOP)
        drawing.line([(_LEFT, y), (right, y)], "edge", 1)
        drawing.text(_LEFT - 6, y + 4, in_words(low + part * (top - low), unit), "dim", 10, "end")
    for number, line in enumerate(lines):
        colour = COLOURS[min(number, len(COLOURS) - 1)]
        for points in _pieces(times, line.values, low, top):
            if len(points) > 1:
                drawing.line(points, colour, 1.8, radius=0)
            else:
                drawing.circle(*points[0], 2.2, colour)
    return drawing.svg(_WIDTH, _legend(drawing, lines, unit), title)


def in_words(value: float | None, unit: str = "") -> str:
    """
    Return a number in few characters.

    Examples
    --------
    >>> in_words(1234567), in_words(0.25, "s"), in_words(7_200, "s"), in_words(None)
    ('1.23M', '0.25 s', '2 h', '–')
    """
    if value is None:
        return "–"
    if unit == "s":
        for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
            if abs(value) >= 2 * size:
                return f"{value / size:.3g} {name}"
    for power, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= power:
            return f"{value / power:.3g}{letter}" + (f" {unit}" if unit else "")
    return f"{value:.3g}" + (f" {unit}" if unit else "")


def _pieces(
    times: Sequence[float], values: Sequence[float | None], low: float, top: float
) -> list[list[tuple[float, float]]]:
    """Return the points of a line, cut where there is no value."""
    first, span = times[0], (times[-1] - times[0]) or 1.0
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    pieces: list[list[tuple[float, float]]] = [[]]
    for time, value in zip(times, values, strict=True):
        if value is None:
            pieces.append([])
            continue
        x = _LEFT + (time - first) / span * width
        y = _TOP + (1 - (value - low) / ((top - low) or 1.0)) * height
        pieces[-1].append((x, y))
    return [piece for piece in pieces if piece]


def _legend(drawing: Drawing, lines: Sequence[Line], unit: str) -> float:
    """Add the names of the lines with their last values; return the height of all its rows."""
    x, y = 14.0, _HEIGHT - 14.0
    for number, line in enumerate(lines):
        last = in_words(line.values[-1] if line.values else None, unit)
        name = line.name if len(line.name) <= 24 else line.name[:23] + "…"
        text = f"{name} {last}"
        width = text_width(text, 11) + 24
        if x + width > _WIDTH and x > 14:
            x, y = 14.0, y + _ROW
        if y > _HEIGHT + (_MOST_ROWS - 1) * _ROW:
            drawing.text(x, y, f"and {len(lines) - number} more", "dim", 11)
            break
        drawing.circle(x + 4, y - 4, 4, COLOURS[min(number, len(COLOURS) - 1)])
        drawing.text(x + 13, y, text, "dim", 11, title=line.name)
        x += width
    return y + 14
