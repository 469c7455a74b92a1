# SPDX-License-Identifier: Apache-2.0
"""Reads SVG as a browser does: what is where, and which text it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
Rectangle = tuple[float, float, float, float]


def placed(svg: str) -> Iterator[tuple[ElementTree.Element, float, float]]:
    """Yield each element, with how far it is moved to the right and down."""
    return _placed(ElementTree.fromstring(svg), 0, 0)


def _placed(
    element: ElementTree.Element, x: float, y: float
) -> Iterator[tuple[ElementTree.Element, float, float]]:
    moved = re.fullmatch(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    yield element, x, y
    for inner in element:
        yield from _placed(inner, x, y)


def texts(svg: str) -> list[str]:
    """Return the lines of text that are shown."""
    return [element.text or "" for element, _, _ in placed(svg) if element.tag == f"{SVG}text"]


def boxes(svg: str) -> list[Rectangle]:
    """Return the rectangles of stages: left, top, right, bottom."""
    found = []
    for element, x, y in placed(svg):
        kinds = element.get("class", "").split()
        if element.tag == f"{SVG}rect" and {"cep-box", "cep-rose"} & set(kinds):
            left, top = x + float(element.get("x", 0)), y + float(element.get("y", 0))
            width, height = float(element.get("width", 0)), float(element.get("height", 0))
            found.append((left, top, left + width, top + height))
    return found


def points(svg: str) -> list[tuple[float, float]]:
    """Return the corners of rectangles and lines, and where texts begin."""
    found = [(left, top) for left, top, _, _ in boxes(svg)]
    found += [(right, bottom) for _, _, right, bottom in boxes(svg)]
    for element, x, y in placed(svg):
        numbers = list(map(float, re.findall(r"-?\d+(?:\.\d+)?", element.get("d", ""))))
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        found += [(x + px, y + py) for px, py in pairs]
        if element.tag == f"{SVG}text":
            found.append((x + float(element.get("x", 0)), y + float(element.get("y", 0))))
    return found


def size(svg: str) -> tuple[float, float]:
    """Return width and height."""
    _, _, width, height = map(float, ElementTree.fromstring(svg).get("viewBox", "").split())
    return width, height


def overlapping(rectangles: list[Rectangle]) -> list[tuple[Rectangle, Rectangle]]:
    """Return the pairs of rectangles that share a place."""
    return [
        (a, b)
        for number, a in enumerate(rectangles)
        for b in rectangles[number + 1 :]
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]
