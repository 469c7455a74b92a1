# SPDX-License-Identifier: Apache-2.0
"""Random events for a translated pattern, made of what its conditions compare with."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyflinkcep.migrate.check.flink import Checked, Written
from pyflinkcep.migrate.java.project import Project, columns_of
from pyflinkcep.migrate.java.source import comma_parts

_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[fFdDlL]?(?![\w.])")
_WINDOW = re.compile(r"timedelta\((\w+)=(\d+)\)")


def random_events(
    project: Project, file: Written, checked: Checked, seed: int, number: int = 60
) -> list[dict[str, Any]]:
    """Return events with the columns of a pattern's class, in order of time."""
    chosen = random.Random(seed)
    java = Path(file.file).read_text(encoding="utf-8")
    pools = Pools(project, checked, java, chosen)
    step = _step(file.text, checked.name)
    time, rows = 0, []
    for _ in range(number):
        time += chosen.randrange(step)
        row = {
            name: pools.value(name, type_)
            for name, type_ in columns_of(checked.schema or "").items()
        }
        if checked.time in row:
            row[checked.time] = _time_of(row[checked.time], time // checked.scale)
        for key in checked.keys:
            if isinstance(row.get(key), str):
                row[key] = chosen.choice("ab")
            elif key in row:
                row[key] = chosen.randrange(2)
        rows.append(row)
    return rows


def _time_of(before: Any, time: int) -> Any:
    """Return a time in milliseconds, or as text if its column has moments."""
    if not isinstance(before, str):
        return time
    moment = datetime(2024, 5, 6, tzinfo=UTC) + timedelta(milliseconds=time)
    return moment.isoformat(timespec="milliseconds").replace(
        "+00:00", before[-1:].strip("0123456789")
    )


def _step(text: str, function: str) -> int:
    """Return the longest time between two events: a fraction of the pattern's window."""
    body = text.split(f"def {function}(", 1)[-1].split("\ndef ", 1)[0]
    windows = [timedelta(**{unit: int(n)}) for unit, n in _WINDOW.findall(body)]
    shortest = min(windows, default=timedelta(seconds=4))
    return max(shortest // timedelta(milliseconds=1) // 3, 2)


class Pools:
    """Values that conditions of a file tell apart."""

    def __init__(
        self, project: Project, checked: Checked, java: str, chosen: random.Random
    ) -> None:
        self.chosen = chosen
        self.java = java
        texts = [t for t in re.findall(r'"((?:[^"\\]|\\.)*)"', java) if len(t) < 20]
        self.texts = sorted({*texts, *(t.upper() for t in texts), "x", "/x"})
        numbers = sorted({float(n) for n in _NUMBER.findall(java)} | {0.0, 1.0, 2.0})
        self.numbers = [n for n in numbers if n < 200_000]
        self.enums: dict[str, list[str]] = {}
        self.kinds: list[str] = []
        self.near: dict[str, list[str]] = {}
        declared = project.find(checked.event_type or "", checked.site.source)
        if declared is not None:
            kinds = [declared, *project.subclasses(declared)]
            self.kinds = [one.name for one in kinds if "abstract" not in one.annotations]
            self.kinds = [k.name for k in kinds[1:]] or self.kinds
            for one in kinds:
                for name, field in project.all_fields(one).items():
                    of = project.find(field.type.name, one.source)
                    if of is not None and of.kind == "enum":
                        self.enums[name] = of.constants
                    if field.type.name in ("char", "Character"):
                        self.enums[name] = sorted(
                            set(re.findall(r"'(\w)'", java)) | {"a", "B", "1"}
                        )

    def value(self, name: str, type_: str) -> Any:
        """Return a value of a column."""
        chosen = self.chosen
        null = rf"(?i)\.(?:get)?{name}(\(\))? [!=]= null"
        if re.search(null, self.java) and chosen.random() < 0.15:
            return None
        if name in self.enums:
            return chosen.choice(self.enums[name])
        if name in ("type", "className") and len(self.kinds) > 0:
            return chosen.choice(self.kinds)
        if type_.startswith("struct<"):
            parts = [part.split(":", 1) for part in comma_parts(type_[7:-1])]
            return {inner.strip(): self.value(inner.strip(), kind) for inner, kind in parts}
        if type_.startswith("array<"):
            return [self.value(name, type_[6:-1]) for _ in range(chosen.randrange(3))]
        if type_.startswith("map<"):
            keys = [text for text in self.texts if text.isidentifier()][:8]
            return {key: self._text(key) for key in keys}
        if type_ == "string":
            return self._text(name)
        if type_ == "boolean":
            return chosen.random() < 0.5
        if type_ in ("double", "float") or type_.startswith("decimal"):
            return chosen.choice(self.numbers) + chosen.choice([0, 0, 0.25, -0.5, 1, 3])
        if type_ in ("int", "bigint", "smallint", "tinyint"):
            most = {"smallint": 32_000, "tinyint": 120}.get(type_, 200_000)
            whole = [int(n) for n in self.numbers if n < most]
            return chosen.choice(whole) + chosen.choice([0, 0, 0, 1, -1, 3])
        if type_.startswith("timestamp"):
            moment = datetime(2024, 5, 6, tzinfo=UTC) + timedelta(seconds=chosen.randrange(600))
            return moment.strftime("%Y-%m-%dT%H:%M:%S") + "Z" * (type_ == "timestamp")
        raise ValueError(f"{name} {type_}")

    def _text(self, name: str) -> str:
        """Return a text: more often one that stands near the column's name."""
        if name not in self.near:
            self.near[name] = sorted(set(_near(self.java, name)))
        if self.near[name] and self.chosen.random() < 0.85:
            return self.chosen.choice(self.near[name])
        return self.chosen.choice(self.texts)


def _near(java: str, name: str) -> Iterator[str]:
    """Yield the texts of the lines of a program that stand beside a column's name."""
    for line in java.splitlines():
        for found in re.finditer(r'"((?:[^"\\]|\\.)*)"', line):
            before, after = line[: found.start()][-45:], line[found.end() :][:30]
            if len(found[1]) < 30 and re.search(rf"(?i){name}\W", f"{before} {after} "):
                yield found[1]
