# SPDX-License-Identifier: Apache-2.0
"""What a run gave, and whether all runs of the same question gave the same answer."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import psutil

_FORMAT = 1


@attrs.frozen
class Measurement:
    """One run."""

    engine: str  # what ran: batch, stream, latency, flink
    workload: str  # which pattern
    variant: str  # which kind of conditions; empty where there is no choice
    source: str  # the name of the stream of events
    events: int  # how many events and keys it has
    keys: int
    seconds: float  # how long it took, without start-up
    # The number of matches, and the sum of the times in ms of all events in them.
    matches: int | None = None
    checksum: int | None = None
    details: dict[str, Any] = attrs.field(factory=dict)  # what only this engine has to tell

    @property
    def rate(self) -> float:
        """Return events a second."""
        return self.events / self.seconds

    @property
    def question(self) -> tuple[str, str]:
        """Return what the answer depends on."""
        return self.workload, self.source

    @property
    def answer(self) -> tuple[int | None, int | None]:
        """Return what must be the same for the same question."""
        return self.matches, self.checksum

    def __str__(self) -> str:
        what = f"{self.engine} {self.workload} {self.variant}"
        found = "" if self.matches is None else f"{self.matches:12,} matches"
        return (
            f"{what:32} {self.events:12,} events {self.keys:9,} keys "
            f"{self.seconds:8.2f} s {self.rate:12,.0f}/s {found}"
        )


def disagreements(measurements: Iterable[Measurement]) -> list[str]:
    """Return which runs differ in their answer from an earlier one, Flink's first."""
    answered = [m for m in measurements if m.matches is not None]
    expected: dict[tuple[str, str], Measurement] = {}
    for m in sorted(answered, key=lambda m: m.engine != "flink"):
        expected.setdefault(m.question, m)
    wrong = [
        f"WRONG: {m.workload} on {m.source}: {m.engine} {m.variant} found (matches, checksum) = "
        f"{m.answer}, {expected[m.question].engine} {expected[m.question].answer}"
        for m in answered
        if m.answer != expected[m.question].answer
    ]
    return wrong + [
        f"WRONG: {m.workload} on {m.source}: {m.answer}, in the set {m.details['in_the_set']}"
        for m in answered
        if m.details.get("in_the_set", [*m.answer]) != [*m.answer]
    ]


def machine() -> dict[str, Any]:
    """Return what figures depend on: the machine's kind, versions, the date."""
    return {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / (1 << 30)),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("pyspark", "pyarrow", "numpy")},
    }


def save(path: Path, measurements: Sequence[Measurement], settings: dict[str, Any]) -> None:
    """Write runs as JSON."""
    document = {
        "format": _FORMAT,
        "machine": machine(),
        "settings": settings,
        "measurements": [attrs.asdict(m) for m in measurements],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> tuple[dict[str, Any], list[Measurement]]:
    """Read what :func:`save` wrote; give the document and its runs."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("format") != _FORMAT:
        sys.exit(f"{path} is not of format {_FORMAT}: run the benchmark again")
    return document, [Measurement(**m) for m in document["measurements"]]
