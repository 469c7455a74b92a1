# SPDX-License-Identifier: Apache-2.0
"""SVG by hand: escaped elements, colours for light and dark, and how wide text is."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

import attrs

_COLOURS = {
    "paper": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "dim": ("#59636e", "#9198a1"),
    "line": ("#6e7781", "#8b949e"),
    "box": ("#f6f8fa", "#1c2128"),
    "edge": ("#afb8c1", "#444c56"),
    "frame": ("#fbfcfd", "#13181f"),
    "blue": ("#0969da", "#6cb6ff"),
    "violet": ("#8250df", "#c297ff"),
    "red": ("#cf222e", "#ff7b72"),
    "rose": ("#fff5f4", "#2a1618"),
    "green": ("#1a7f37", "#57d364"),
    "amber": ("#9a6700", "#e3b341"),
    "sky": ("#ddf4ff", "#12304f"),
    "mint": ("#dafbe1", "#12331d"),
    "sand": ("#fff8c5", "#332a0c"),
}
_DARK = (
    '[data-jp-theme-light="false"]',
    '[data-theme="dark"]',
    '[data-vscode-theme-kind="vscode-dark"]',
)
_LIGHT = (
    '[data-jp-theme-light="true"]',
    '[data-theme="light"]',
    '[data-vscode-theme-kind="vscode-light"]',
)
_SANS = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
_MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace"
_NARROW = frozenset("iljtfrI.,:;|!'()[]{}` ")
_WIDE = frozenset("mwMWQO@%ABCDGHKNRUVXYZ&<>+=~→⇒⇢↛⇏—…")


_WIDEST = 1200
"""What is wider cannot be read when it is shrunk to a page: it scrolls."""


def clean(text: str) -> str:
    """Return text without characters that XML cannot hold, and with breaks as spaces."""
    return "".join(
        " " if c in "\n\r\t" else c if c.isprintable() or c == "\u2003" else "\ufffd" for c in text
    )


def text_width(text: str, size: float, *, mono: bool = False, bold: bool = False) -> float:
    """Return about how wide text is; rather too much than too little."""
    total = 0.0
    for c in text:
        if unicodedata.east_asian_width(c) in "WF":
            total += 1.05
        elif mono:
            total += 0.61
        else:
            total += 0.38 if c in _NARROW else 0.82 if c in _WIDE else 0.62
    return total * size * (1.06 if bold else 1)


def wrapped(text: str, width: int, most: int = 0) -> list[str]:
    """Return text as lines of at most `width` characters, a wide character counting twice."""
    if any(unicodedata.east_asian_width(c) in "WF" for c in text):
        width = max(width // 2, 1)
    lines = textwrap.wrap(clean(text), width, break_long_words=True) or [""]
    if most and len(lines) > most:
        lines = lines[:most]
        lines[-1] = lines[-1][: width - 1] + "…"
    return lines


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@attrs.define(eq=False)
class Drawing:
    """Elements of a picture; every text in it is escaped."""

    elements: list[str] = attrs.field(factory=list)  # The elements so far

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        stroke: str = "",
        radius: float = 6,
        dash: str = "",
        title: str = "",
    ) -> None:
        """Add a rectangle; colours are names of the palette."""
        sizes = _attributes(x=x, y=y, width=width, height=height, rx=radius)
        self._add("rect", sizes + _painted(fill, stroke, 1.2, dash), title)

    def circle(self, x: float, y: float, radius: float, fill: str, stroke: str = "") -> None:
        """Add a circle."""
        self._add("circle", _attributes(cx=x, cy=y, r=radius) + _painted(fill, stroke, 1.6, ""))

    def line(
        self,
        points: Sequence[tuple[float, float]],
        stroke: str,
        width: float = 1.6,
        dash: str = "",
        arrow: bool = False,
        radius: float = 8,
        title: str = "",
    ) -> None:
        """Add a line through points, with round corners and an arrow at its end if wanted."""
        path = _rounded(points, radius)
        self._add("path", f' d="{path}"' + _painted("", stroke, width, dash), title)
        if arrow:
            self._head(points[-2], points[-1], stroke)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str = "ink",
        size: float = 12,
        anchor: str = "start",
        mono: bool = False,
        bold: bool = False,
        title: str = "",
    ) -> None:
        """Add a line of text at its baseline."""
        font = f' class="cep-{"mono" if mono else "sans"} cep-{colour}"'
        family = _MONO if mono else _SANS
        font += f' font-family="{family}" font-size="{_number(size)}" fill="{_COLOURS[colour][0]}"'
        font += f' text-anchor="{anchor}"' if anchor != "start" else ""
        font += ' font-weight="600"' if bold else ""
        inner = escape(clean(text)) + (f"<title>{escape(clean(title))}</title>" if title else "")
        where = _attributes(x=x, y=y)
        self.elements.append(f'<text{where}{font} xml:space="preserve">{inner}</text>')

    def moved(self, other: Drawing, x: float, y: float) -> None:
        """Add another drawing at a place."""
        inside = "".join(other.elements)
        self.elements.append(f'<g transform="translate({_number(x)} {_number(y)})">{inside}</g>')

    def svg(self, width: float, height: float, title: str) -> str:
        """Return the picture on its own paper, readable on light and on dark pages."""
        label = escape(clean(title), quote=True)
        w, h = _number(width), _number(height)
        style = "max-width:100%;height:auto" if width <= _WIDEST else "max-width:none"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="cep" viewBox="0 0 {w} {h}" '
            f'width="{w}" height="{h}" role="img" aria-label="{label}" '
            f'style="{style}">'
            f"<style>{_style()}</style>"
            f'<rect width="{w}" height="{h}" rx="8"{_painted("paper", "", 0, "")}/>'
            + "".join(self.elements)
            + "</svg>"
        )

    def _head(self, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        """Add the head of an arrow along the last part of a line, level or upright."""
        (x0, y0), (x, y) = start, end
        dx, dy = _sign(x - x0), _sign(y - y0)
        corners = [
            (x, y),
            (x - 8 * dx - 4.5 * dy, y - 8 * dy - 4.5 * dx),
            (x - 8 * dx + 4.5 * dy, y - 8 * dy + 4.5 * dx),
        ]
        path = "M" + "L".join(f"{_number(a)} {_number(b)}" for a, b in corners) + "Z"
        self._add("path", f' d="{path}"' + _painted(colour, "", 0, ""))

    def _add(self, name: str, attributes: str, title: str = "") -> None:
        inside = f"><title>{escape(clean(title))}</title></{name}>" if title else "/>"
        self.elements.append(f"<{name}{attributes}{inside}")


def _attributes(**values: float) -> str:
    return "".join(f' {name}="{_number(value)}"' for name, value in values.items())


def _painted(fill: str, stroke: str, width: float, dash: str) -> str:
    """Return classes for pages with styles, and the light colours for programs without."""
    classes = [f"cep-{fill}"] if fill else []
    classes += [f"cep-s-{stroke}"] if stroke else []
    text = f' class="{" ".join(classes)}" fill="{_COLOURS[fill][0] if fill else "none"}"'
    if stroke:
        text += f' stroke="{_COLOURS[stroke][0]}" stroke-width="{_number(width)}"'
    return text + (f' stroke-dasharray="{dash}"' if dash else "")


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _rounded(points: Sequence[tuple[float, float]], radius: float) -> str:
    """Return the path through points, its right angles rounded."""
    (x, y), *rest = points
    path = f"M{_number(x)} {_number(y)}"
    for number, (px, py) in enumerate(rest):
        if number == len(rest) - 1:
            path += f"L{_number(px)} {_number(py)}"
            break
        nx, ny = rest[number + 1]
        r = min(radius, max(abs(px - x), abs(py - y)) / 2, max(abs(nx - px), abs(ny - py)) / 2)
        bx, by = px - r * _sign(px - x), py - r * _sign(py - y)
        ax, ay = px + r * _sign(nx - px), py + r * _sign(ny - py)
        path += f"L{_number(bx)} {_number(by)}Q{_number(px)} {_number(py)} "
        path += f"{_number(ax)} {_number(ay)}"
        x, y = px, py
    return path


def _style() -> str:
    light, dark = (
        "".join(f"--cep-{name}:{colours[shade]};" for name, colours in _COLOURS.items())
        for shade in (0, 1)
    )
    rules = [
        f".cep{{{light}}}",
        f"@media (prefers-color-scheme:dark){{.cep{{{dark}}}}}",
        f"{_of(_DARK)}{{{dark}}}",
        f"{_of(_LIGHT)}{{{light}}}",
    ]
    for name in _COLOURS:
        rules.append(f".cep-{name}{{fill:var(--cep-{name})}}")
        rules.append(f".cep-s-{name}{{stroke:var(--cep-{name})}}")
    return "".join(rules)


def _of(places: Iterable[str]) -> str:
    return ",".join(f"{place} .cep" for place in places)
