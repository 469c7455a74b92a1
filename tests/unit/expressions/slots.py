# SPDX-License-Identifier: Apache-2.0
"""Slots of match expressions, each computed anew from all events that were taken."""

from __future__ import annotations

import math
from typing import Any

from pyflinkcep.expressions.program import ALL, CompiledExpressions, Function, Slot, Type
from pyflinkcep.expressions.tree import WHOLE


def order(a: Any, b: Any) -> int:
    """Compare as Spark does: NaN is equal to itself and greater than all other numbers."""
    if isinstance(a, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) - math.isnan(b)
    return (a > b) - (a < b)


def fitted(number: int, ansi: bool) -> int:
    """Let an integer overflow."""
    if -(2**63) <= number < 2**63:
        return number
    if ansi:
        raise OverflowError
    return (number + 2**63) % 2**64 - 2**63


def accumulated(expressions: CompiledExpressions, events: Any) -> tuple[Any, ...]:
    """Return every slot, from all events (stage, fields)."""
    return tuple(_slot(expressions, slot, events) for slot in expressions.slots)


def _slot(expressions: CompiledExpressions, slot: Slot, events: Any) -> Any:
    seen = [fields for stage, fields in events if slot.stage in (stage, WHOLE)]
    if slot.field == ALL:
        return len(seen)
    given = [fields[slot.field] for fields in seen]
    if slot.type == Type.FLOAT and expressions.fields[slot.field].kind.type == Type.INT:
        given = [None if v is None else float(v) for v in given]
    if slot.function in (Function.FIRST, Function.LAST):
        in_order = given if slot.function is Function.FIRST else given[::-1]
        return in_order[slot.offset] if slot.offset < len(given) else None
    known = [v for v in given if v is not None]
    if slot.function is Function.COUNT:
        return len(known)
    if not known:
        return None
    if slot.function is Function.LIST:
        return tuple(known)
    if slot.function in (Function.MEAN, Function.MOMENT):
        mean, moment = known[0], known[0] * (known[0] - known[0])
        for count, value in enumerate(known[1:], 2):
            far, mean = value - mean, mean + (value - mean) / count
            moment += far * (far - far / count)
        return mean if slot.function is Function.MEAN else moment
    found = known[0]
    for value in known[1:]:
        if slot.function is Function.SUM:
            found = found + value
            found = fitted(found, expressions.ansi) if slot.type == Type.INT else found
        else:
            wanted = -1 if slot.function is Function.MIN else 1
            found = value if order(value, found) == wanted else found
    return found
