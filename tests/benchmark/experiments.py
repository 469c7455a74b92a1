# SPDX-License-Identifier: Apache-2.0
"""
OptiSeq's three experiments as plots: conditions, lengths and windows, by each evaluation.

Each writes a plot (SVG), and all of them the numbers (CSV). The counts of matches must agree.

usage: python -m tests.benchmark.experiments FOLDER [--events N]
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np

from tests.benchmark.optiseq import (
    EXPERIMENTS,
    by_event_lists,
    by_kernel,
    by_nfa,
    fastest,
    stream,
    text,
)

EVALUATIONS: Mapping[str, Callable[[str, np.ndarray, np.ndarray], tuple[float, int]]] = {
    "eventLists": by_event_lists,
    "nfa": by_nfa,
    "as a pattern": by_kernel,
}
"""What runs a query on types and prices: its seconds, and the number of matches."""
TITLES = {"1": "conditions", "2": "length of the pattern", "3": "window in seconds"}
COLOURS = ("#0969da", "#9a6700", "#1a7f37", "#8250df", "#cf222e")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 320, 64, 120, 40, 48


@attrs.frozen
class Plot:
    """Times on a logarithmic axis, a line for each evaluation."""

    title: str  # what changes from point to point
    points: Sequence[str]  # the points, from left to right
    lines: Mapping[str, Sequence[float]]  # the milliseconds at each point, by evaluation

    def svg(self) -> str:
        """Return the picture."""
        shown = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{LEFT}" y="20" font-size="14">milliseconds by {self.title}</text>',
        ]
        for power in range(self._low, self._high + 1):
            y = self._y(10.0**power)
            shown.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#d0d7de"/>')
            shown.append(
                f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
            )
        for number, name in enumerate(self.points):
            place = f'x="{self._x(number):.1f}" y="{HEIGHT - BOTTOM + 20}"'
            shown.append(f'<text {place} text-anchor="middle">{name}</text>')
        for (name, values), colour in zip(self.lines.items(), COLOURS, strict=False):
            places = [(self._x(n), self._y(value)) for n, value in enumerate(values)]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            shown.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
            shown += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places
            ]
            x, y = places[-1]
            shown.append(f'<text x="{x + 10:.1f}" y="{y + 4:.1f}" fill="{colour}">{name}</text>')
        return "\n".join([*shown, "</svg>", ""])

    @property
    def _low(self) -> int:
        return math.floor(math.log10(min(map(min, self.lines.values()))))

    @property
    def _high(self) -> int:
        return max(self._low + 1, math.ceil(math.log10(max(map(max, self.lines.values())))))

    def _x(self, number: int) -> float:
        return LEFT + (number + 0.5) * (WIDTH - LEFT - RIGHT) / len(self.points)

    def _y(self, milliseconds: float) -> float:
        above = (self._high - math.log10(milliseconds)) / (self._high - self._low)
        return TOP + above * (HEIGHT - TOP - BOTTOM)


def measured(events: int, times: int = 3) -> list[tuple[str, str, int, dict[str, float]]]:
    """Return experiment, point, number of matches, and milliseconds by evaluation."""
    types, prices = stream(events)
    rows = []
    for name, length, conditions, seconds in EXPERIMENTS:
        query, number = text(length, conditions, seconds), name[0]
        point = {"1": name[2:], "2": str(length), "3": str(seconds)}[number]
        took: dict[str, float] = {}
        counts = set()
        for evaluation, run in EVALUATIONS.items():
            best, count = fastest(lambda run=run: run(query, types, prices), times)  # type: ignore[misc]
            took[evaluation] = max(best * 1000, 0.001)
            counts.add(count)
        assert len(counts) == 1, (query, counts)
        rows.append((number, point, counts.pop(), took))
    return rows


def write(folder: Path, events: int, times: int = 3) -> list[Path]:
    """Write the plots and the numbers; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = measured(events, times)
    files = [folder / "experiments.csv"]
    with files[0].open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(["experiment", "point", "matches", *EVALUATIONS])
        table.writerows([n, point, count, *took.values()] for n, point, count, took in rows)
    for number, title in TITLES.items():
        own = [(point, took) for n, point, _, took in rows if n == number]
        lines = {name: [took[name] for _, took in own] for name in EVALUATIONS}
        files.append(folder / f"experiment{number}.svg")
        files[-1].write_text(Plot(title, [p for p, _ in own], lines).svg(), encoding="utf-8")
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    given = parser.parse_args()
    for file in write(given.folder, given.events):
        print(file)


if __name__ == "__main__":
    main()
