# SPDX-License-Identifier: Apache-2.0
"""The patterns of the benchmark, each with Spark's conditions and with Python's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import attrs

from pyflinkcep import IterativeCondition, Pattern

VARIANTS = ("columns", "python")
"""Conditions as SQL, which Spark evaluates, or as functions of an event."""

Conditions = Mapping[str, Any]
"""The condition of each stage, by its name."""


class AboveAverage(IterativeCondition):
    """The price is above the average of what the match has so far."""

    def filter(self, value, ctx):
        prices = [e.price for e in ctx.getEventsForPattern("a")]
        prices += [e.price for e in ctx.getEventsForPattern("up")]
        return value.price > sum(prices) / len(prices)


class VolumeDrop(IterativeCondition):
    """The volume is a fifth below that of the last event of the rise."""

    def filter(self, value, ctx):
        *_, last = ctx.getEventsForPattern("up")
        return value.volume < 0.8 * last.volume


@attrs.frozen
class Workload:
    """A pattern in all variants."""

    name: str  # what reports call it
    conditions: Mapping[str, tuple[Any, Any]]
    build: Callable[[Conditions], Pattern]  # makes the pattern from the conditions of one variant

    def pattern(self, variant: str) -> Pattern:
        """Return the pattern of a variant."""
        position = VARIANTS.index(variant)
        return self.build({stage: both[position] for stage, both in self.conditions.items()})


def of_type(number: int) -> tuple[str, Callable[[Any], bool]]:
    """Return the condition that an event is of a type, in each variant."""
    return f"type = {number}", lambda e: e.type == number


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def _begin(c: Conditions) -> Pattern:
    return Pattern.begin("a").where(c["a"])


def _strict(c: Conditions) -> Pattern:
    return _begin(c).next("b").where(c["b"]).next("c").where(c["c"]).within(seconds(1000))


def _relaxed(c: Conditions) -> Pattern:
    b = _begin(c).followedBy("b").where(c["b"])
    return b.followedBy("c").where(c["c"]).within(seconds(60))


def _any(c: Conditions, window_s: float = 20) -> Pattern:
    b = _begin(c).followedByAny("b").where(c["b"])
    return b.followedByAny("c").where(c["c"]).within(seconds(window_s))


def _kleene(c: Conditions) -> Pattern:
    b = _begin(c).followedBy("b").where(c["b"]).oneOrMore()
    return b.followedBy("c").where(c["c"]).within(seconds(20))


def _stock(c: Conditions) -> Pattern:
    up = _begin(c).followedBy("up").where(c["up"]).oneOrMore()
    return up.followedBy("b").where(c["b"]).within(seconds(20))


def _absence(c: Conditions) -> Pattern:
    return _begin(c).notFollowedBy("b").where(c["b"]).within(seconds(5))


_ABC = {"a": of_type(0), "b": of_type(1), "c": of_type(2)}
_STOCK = {
    "a": ("volume > 1900", lambda e: e.volume > 1900),
    "up": ("price > avg(match.price)", AboveAverage()),
    "b": ("volume < 0.8 * last(up.volume)", VolumeDrop()),
}

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("strict", _ABC, _strict),
        Workload("relaxed", _ABC, _relaxed),
        Workload("any", _ABC, _any),
        Workload("kleene", _ABC, _kleene),
        Workload("stock", _STOCK, _stock),
        Workload("absence", _ABC, _absence),
    )
}
"""The workloads that are set against Flink."""

PENDING = Workload(
    "pending", {"a": of_type(0), "b": of_type(1)}, lambda c: _begin(c).followedBy("b").where(c["b"])
)
"""What :class:`~tests.benchmark.events.PendingEvents` is for."""


def any_within(window_s: float) -> Workload:
    """Return the workload ``any`` with another window."""
    return Workload(f"any, {window_s:g} s", _ABC, lambda c: _any(c, window_s))


def chain(length: int) -> Workload:
    """Return a relaxed pattern of so many stages, each with a type of event."""
    stages = {f"s{number}": of_type(number) for number in range(length)}

    def build(c: Conditions) -> Pattern:
        first, *others = stages
        pattern = Pattern.begin(first).where(c[first])
        for name in others:
            pattern = pattern.followedBy(name).where(c[name])
        return pattern.within(seconds(60))

    return Workload(f"chain of {length}", stages, build)
