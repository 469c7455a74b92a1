# SPDX-License-Identifier: Apache-2.0
"""
A sample of recorded cases that has as much of the pattern language as it can.

With ``PYFLINKCEP_CASES=all`` there are no samples, and all recorded cases run wherever some do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any

from tests.conformance.cases import Case
from tests.kernel_harness import HAS_KERNEL

_SAMPLE = 100


def covering(cases: Sequence[Case], count: int) -> list[Case]:
    """
    Return `count` cases, each the one that adds the most features to those before it.

    Once all features are there, it begins again with the cases that are left.
    """
    numbers: dict[Any, int] = {}
    left = [
        (case, sum(1 << numbers.setdefault(one, len(numbers)) for one in features(case)))
        for case in cases
    ]
    chosen: list[Case] = []
    missing = 0  # A bit for each feature
    while left and len(chosen) < count:
        added = [(missing & own).bit_count() for _, own in left]
        if not any(added):
            missing = reduce(or_, (own for _, own in left))
            added = [own.bit_count() for _, own in left]
        case, own = left.pop(added.index(max(added)))
        chosen.append(case)
        missing &= ~own
    return chosen


def sample(cases: Sequence[Case], count: int) -> Sequence[Case]:
    """Return cases that cover the language, or all if that is asked for."""
    return cases if os.environ.get("PYFLINKCEP_CASES") == "all" else covering(cases, count)


def enough(cases: Sequence[Case]) -> Sequence[Case]:
    """
    Return the cases for what is around the matching: a sample if the kernel is off, but there.

    The rules themselves are tested on all cases, with and without the kernel, in this folder.
    """
    is_plain = os.environ.get("PYFLINKCEP_KERNEL") == "0"
    return sample(cases, _SAMPLE) if is_plain and HAS_KERNEL else cases


def features(case: Case) -> frozenset[Any]:
    """Return what a case uses: operators and their modifiers, conditions, skips, outputs, a key."""
    found: set[Any] = {("skip", (case["skip"] or {}).get("type")), ("keyed", case.get("keyed"))}
    found.update(_of_stages(case["pattern"]))
    expected = case["expect"]
    found.update(row["kind"] for row in expected.get("out", ()))
    found.update(kind for kind in ("matches", "timeouts") if expected.get(kind))
    return frozenset(found)


def _of_stages(stages: Sequence[Any]) -> Iterator[Any]:
    for stage in stages:
        kind = (stage["op"], "group" in stage)
        yield kind
        for name, *arguments in stage.get("mods", ()):
            yield (*kind, name)
            if name == "within":
                yield name, *arguments[1:]
            for argument in arguments:
                if isinstance(argument, list):
                    yield from ((name, word) for word in _words(argument))
        yield from _of_stages(stage.get("group", ()))


def _words(condition: Sequence[Any]) -> Iterator[str]:
    yield condition[0]
    for part in condition[1:]:
        if isinstance(part, list):
            yield from _words(part)
