# SPDX-License-Identifier: Apache-2.0
"""Names of variables in groups that repeat, as the reference has them: ``a@2`` and ``a@2.1``."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.sase.model import One, Optional, Repeated

Taken = tuple[tuple[str, tuple[int, ...]], ...]
"""The variables of a run, in the order of their events, and the positions of these."""


@attrs.frozen
class Iteration:
    """What is left of an iteration of a group."""

    number: int
    part: Any


@attrs.frozen
class Begun:
    """What is left of parts in any order; `absent` must not come before the next event of one."""

    parts: tuple[Any, ...]
    absent: tuple[str, ...]


@attrs.frozen
class Further:
    """The iterations of a group from a number on."""

    number: int
    group: Repeated


def base(name: str) -> str:
    """Return the variable of a name."""
    return name.partition("@")[0]


def path(name: str) -> tuple[str, ...]:
    """Return the iterations of a name, the outermost first."""
    numbers = name.partition("@")[2]
    return tuple(numbers.split(".")) if numbers else ()


def inside(name: str, number: int) -> str:
    """Return a name in an iteration."""
    return f"{base(name)}@{'.'.join((str(number), *path(name)))}"


def around(shape: Any, groups: tuple[Any, ...] = ()) -> dict[str, tuple[Any, ...]]:
    """Return for each variable the groups around it that repeat."""
    if isinstance(shape, One):
        return {shape.variable: groups}
    if isinstance(shape, Repeated):
        return around(shape.part, (*groups, id(shape)))
    inner = (shape.part,) if isinstance(shape, Optional) else shape.parts
    return {name: own for part in inner for name, own in around(part, groups).items()}


def merged(match: Taken) -> Taken:
    """Return a match with the events of all iterations by variable."""
    found: dict[str, list[int]] = {}
    for name, own in match:
        found.setdefault(base(name), []).extend(own)
    return tuple(sorted(((n, tuple(sorted(own))) for n, own in found.items()), key=lambda p: p[1]))
