# SPDX-License-Identifier: Apache-2.0
"""HAVING and RETURN of complete matches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.sase.model import Query
from pyflinkcep.sase.tree import (
    ALL,
    FIRST,
    LAST,
    Arithmetic,
    Comparison,
    Expression,
    Function,
    Literal,
    Logical,
    Negation,
    NullTest,
    Reference,
)

__all__ = ["Returns"]

Match = Mapping[str, Sequence[Any]]
"""Variable to events, oldest first."""

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@attrs.frozen
class Returns:
    """
    The output of a query's matches.

    Attributes
    ----------
    query : Query
        The query.
    attribute_of : callable
        Returns an attribute of an event.
    """

    query: Query
    attribute_of: Callable[[Any, str], Any]

    def keeps(self, match: Match) -> bool:
        """Whether a match satisfies HAVING."""
        return self.query.having is None or self.holds(self.query.having, match)

    def holds(
        self, condition: Expression, match: Match, each: Mapping[str, Any] | None = None
    ) -> bool:
        """Whether a condition is true of a match; `each` says which event of a loop is meant."""
        return _Values(self.attribute_of, match, each or {}).of(condition) is True

    def row(self, match: Match) -> dict[str, Any]:
        """Return the columns of RETURN; without RETURN the match itself."""
        if self.query.columns is None:
            return {variable: list(events) for variable, events in match.items()}
        return {c.name: self._column(c.value, match) for c in self.query.columns}

    def _column(self, value: Expression, match: Match) -> Any:
        values = _Values(self.attribute_of, match, {})
        if not isinstance(value, Reference) or value.index in (FIRST, LAST):
            return values.of(value)
        repeats = self.query.component(value.variable).repeats
        return values.all(value) if repeats else values.of(value)


@attrs.frozen
class _Values:
    """The values of expressions over a match, None for NULL."""

    attribute_of: Callable[[Any, str], Any]
    match: Match
    each: Mapping[str, Any]

    def all(self, over: Reference) -> list[Any]:
        events = self.match[over.variable]
        if over.attribute is None:
            return list(events)
        return [self.attribute_of(event, over.attribute) for event in events]

    def of(self, tree: Expression) -> Any:
        if isinstance(tree, Literal):
            return tree.value
        if isinstance(tree, Reference):
            event = self._event(tree)
            return event if tree.attribute is None else self.attribute_of(event, tree.attribute)
        if isinstance(tree, Function):
            return _aggregate(tree.name, self.all(tree.over), tree.over.attribute)
        if isinstance(tree, Logical):
            return _joined(tree.operator, [self.of(part) for part in tree.operands])
        if isinstance(tree, Negation):
            held = self.of(tree.operand)
            return None if held is None else not held
        if isinstance(tree, NullTest):
            return (self.of(tree.value) is None) != tree.negated
        if isinstance(tree, Comparison):
            left, right = self.of(tree.left), self.of(tree.right)
            return None if left is None or right is None else _COMPARED[tree.operator](left, right)
        return _computed(tree, [self.of(part) for part in tree.operands])

    def _event(self, reference: Reference) -> Any:
        if reference.index in (None, ALL) and reference.variable in self.each:
            return self.each[reference.variable]
        return self.match[reference.variable][-1 if reference.index == LAST else 0]


def _aggregate(name: str, values: list[Any], attribute: str | None) -> Any:
    if attribute is None:
        return len(values)
    if name in ("first", "last"):
        return values[0 if name == "first" else -1]
    known = [value for value in values if value is not None]
    if name == "count":
        return len(known)
    if not known:
        return None
    if name == "avg":
        return sum(known) / len(known)
    functions: dict[str, Callable[[list[Any]], Any]] = {"sum": sum, "min": min, "max": max}
    return functions[name](known)


def _joined(word: str, values: list[Any]) -> bool | None:
    decides = word == "or"
    if any(value is decides for value in values):
        return decides
    return None if None in values else not decides


def _computed(tree: Arithmetic, values: list[Any]) -> Any:
    if any(value is None for value in values):
        return None
    if len(values) == 1:
        return -values[0]
    left, right = values
    if tree.operator in "/%" and right == 0:
        return None
    if tree.operator == "%":
        remainder = abs(left) % abs(right)
        return -remainder if left < 0 else remainder
    functions = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv
    }  # fmt: skip
    return functions[tree.operator](left, right)
