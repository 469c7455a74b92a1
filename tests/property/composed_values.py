# SPDX-License-Identifier: Apache-2.0
"""Values of events and operations on them, as the reference computes them."""

from __future__ import annotations

from typing import Any

from pyflinkcep.expressions.evaluator import event_function

Event = dict[str, Any]


def attribute(event: Event, name: str) -> Any:
    """Return an attribute of an event, or what SQL computes from it."""
    return event_function(name)(event) if name.startswith("(") else event[name]


def computed(operator: str, values: list[Any]) -> Any:
    """Return an operation on values, by the rules of SQL."""
    if operator == "case":
        pairs = zip(values[::2], values[1::2], strict=False)
        otherwise = values[-1] if len(values) % 2 else None
        return next((then for condition, then in pairs if condition is True), otherwise)
    if operator == "coalesce":
        return next((value for value in values if value is not None), None)
    if operator in ("is null", "is not null"):
        return (values[0] is None) is (operator == "is null")
    if operator == "or":
        return True if True in values else None if None in values else False
    if operator == "and":
        return False if False in values else None if None in values else True
    if None in values:
        return None
    if operator in ("not", "abs"):
        return not values[0] if operator == "not" else abs(values[0])
    a, b = values
    return {
        "=": lambda: a == b, "<>": lambda: a != b, "<": lambda: a < b, "<=": lambda: a <= b,
        ">": lambda: a > b, ">=": lambda: a >= b, "+": lambda: a + b, "-": lambda: a - b,
    }[operator]()  # fmt: skip
