# SPDX-License-Identifier: Apache-2.0
"""Events with decimals of many types, and conditions of queries on them, for every place that answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

Event = dict[str, Any]

TYPES = ((4, 2), (10, 2), (15, 5), (16, 0), (18, 3), (20, 0), (28, 10), (38, 18), (38, 0))
"""Precisions and scales."""

_WIDE = Context(prec=200, rounding=ROUND_HALF_UP)


def decimals(chance: random.Random, precision: int, scale: int) -> list[Decimal | None]:
    """Return a few values of a type that differ in their last digits only, 0, NULL, and its ends."""
    most = 10**precision - 1
    near = chance.randrange(most // 2, most - 3)
    units = (near, near, near + 1, -near, 0, most, -most, chance.randrange(most))
    return [None, *(Decimal(unit).scaleb(-scale, _WIDE) for unit in units)]


def pairs(precision: int, scale: int, count: int = 60) -> list[Event]:
    """Return events of A and B by turns, of one key a pair: `p` of the type, `q` of another, `n`."""
    chance = random.Random(f"{precision},{scale}")
    own, others = decimals(chance, precision, scale), decimals(chance, 12, 4)
    return [
        {
            "k": number, "type": type_, "p": chance.choice(own),
            "q": chance.choice(others), "n": chance.choice([None, 0, 1, 2, -3]),
        }
        for number in range(count)
        for type_ in "AB"
    ]  # fmt: skip


def as_table(events: list[Event], precision: int, scale: int) -> pa.Table:
    """Return events as a table whose decimals have their types."""
    types = {
        "k": pa.int64(), "type": pa.string(), "p": pa.decimal128(precision, scale),
        "q": pa.decimal128(12, 4), "n": pa.int64(),
    }  # fmt: skip
    return pa.table({n: pa.array([e[n] for e in events], types[n]) for n in events[0]})


def groups(precision: int, scale: int, count: int = 15) -> list[list[Decimal | None]]:
    """Return values of the B events of matches of A, B+, C; small enough that averages fit."""
    chance = random.Random(f"groups {precision},{scale}")
    own = decimals(chance, max(precision - 5, 2), scale) if precision > scale + 5 else [
        None, Decimal(1).scaleb(-scale, _WIDE), Decimal(-7).scaleb(-scale, _WIDE)
    ]  # fmt: skip
    return [[chance.choice(own) for _ in range(chance.randrange(1, 6))] for _ in range(count)]


def _known(rule: Callable[[Event, Event], bool], *names: str) -> Callable[[Event, Event], bool]:
    def holds(a: Event, b: Event) -> bool:
        known = all({"a": a, "b": b}[name[0]][name[2]] is not None for name in names)
        return known and rule(a, b)

    return holds


COMPARISONS: dict[str, Callable[[Event, Event], bool]] = {
    **{
        f"b.p {sign} a.p": _known(rule, "a.p", "b.p")
        for sign, rule in {
            "=": lambda a, b: a["p"] == b["p"], "<>": lambda a, b: a["p"] != b["p"],
            "<": lambda a, b: (a["p"] < b["p"] and False) or b["p"] < a["p"],
            ">=": lambda a, b: b["p"] >= a["p"],
        }.items()
    },
    "b.p > a.q": _known(lambda a, b: b["p"] > a["q"], "b.p", "a.q"),
    "b.p = a.n": _known(lambda a, b: b["p"] == a["n"], "b.p", "a.n"),
    "b.p IN (a.p, 0)": lambda a, b: b["p"] is not None
    and (b["p"] == 0 or (a["p"] is not None and b["p"] == a["p"])),
    "b.p IS NULL": lambda a, b: b["p"] is None,
    "abs(b.p) = abs(a.p)": _known(lambda a, b: b["p"].copy_abs() == a["p"].copy_abs(), "a.p", "b.p"),
    "greatest(a.p, b.p) > 0": lambda a, b: max(
        (e["p"] for e in (a, b) if e["p"] is not None), default=0) > 0,
    "-b.p < a.p": _known(lambda a, b: b["p"].copy_negate() < a["p"], "a.p", "b.p"),
}  # fmt: skip
"""What needs no digits of results, as plain Python says it."""

CALCULATIONS = (
    "b.p + a.p > b.q", "b.p - a.p = 0", "b.p - a.p > a.q", "b.p * a.n > 0", "b.p * a.q > b.p",
    "b.p / a.n > a.p", "(b.p + a.p) / 3 > 1", "b.p % 7 > 1", "round((b.p - a.p) / 7, 2) > 0",
    "b.p + a.p IS NULL", "b.p * a.p IS NULL", "pmod(b.p - a.p, 5) > 2", "floor((b.p + a.q) / 3) > 1",
    "coalesce(a.p, b.p) = b.p", "if(a.n > 0, a.p, b.q) < b.p", "nullif(b.p, a.p) > 0",
    "sign(b.p + a.p) > 0", "b.p / a.q > 1", "b.q = a.q * 1.1", "b.p - a.p >= 0.01",
    "b.q * 1.05 > a.p", "b.q % 0.3 = a.q % 0.3", "round(b.q * 1.15, 1) > a.q + 0.05",
    "b.p > 10% * a.p", "(abs(b.q - a.q) < 0.0001 OR b.p < -0.5)",
)  # fmt: skip
"""What depends on the digits of results, which Spark says."""


def total(values: list[Decimal | None]) -> Decimal | None:
    """Return the exact sum."""
    known = [value for value in values if value is not None]
    found = Decimal(0)
    for value in known:
        found = _WIDE.add(found, value)
    return found if known else None


def mean(values: list[Decimal | None], scale: int) -> Decimal | None:
    """Return the average with four more digits, as Spark."""
    found, count = total(values), sum(value is not None for value in values)
    if found is None:
        return None
    unit = Decimal(1).scaleb(-min(scale + 4, 38), _WIDE)
    return _WIDE.divide(found, Decimal(count)).quantize(unit, ROUND_HALF_UP, _WIDE)
