# SPDX-License-Identifier: Apache-2.0
"""HAVING and RETURN of complete matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.expressions.tree import Column, Leaf, Tree
from pyflinkcep.expressions.values import aggregated, value_of
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.tree import ALL, FIRST, LAST

__all__ = ["Returns"]

Match = Mapping[str, Sequence[Any]]
"""Variable to events, oldest first."""


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

    def holds(self, condition: Tree, match: Match, each: Mapping[str, Any] | None = None) -> bool:
        """Whether a condition is true of a match; `each` says which event of a loop is meant."""
        return _Values(self.attribute_of, match, each or {}).of(condition) is True

    def row(self, match: Match) -> dict[str, Any]:
        """Return the columns of RETURN; without RETURN the match itself."""
        if self.query.columns is None:
            return {variable: list(events) for variable, events in match.items()}
        return {c.name: self._column(c.value, match) for c in self.query.columns}

    def _column(self, value: Tree, match: Match) -> Any:
        values = _Values(self.attribute_of, match, {})
        if not isinstance(value, Column) or value.index in (FIRST, LAST):
            return values.of(value)
        repeats = self.query.component(value.variable).repeats
        return values.all(value) if repeats else values.of(value)


@attrs.frozen
class _Values:
    """The values of events of a match, None for NULL."""

    attribute_of: Callable[[Any, str], Any]
    match: Match
    each: Mapping[str, Any]

    def of(self, tree: Tree) -> Any:
        return value_of(tree, self._leaf)

    def all(self, over: Column) -> list[Any]:
        return [self._value(event, over) for event in self.match[over.variable]]

    def _leaf(self, leaf: Leaf) -> Any:
        if isinstance(leaf, Column):
            return self._value(self._event(leaf), leaf)
        if leaf.argument is None:
            return len(self.match[leaf.stage])
        return aggregated(leaf.function, self.all(leaf.over))

    def _value(self, event: Any, column: Column) -> Any:
        name = column.attribute
        return event if name is None else self.attribute_of(event, name)

    def _event(self, reference: Column) -> Any:
        if reference.index in (None, ALL) and reference.variable in self.each:
            return self.each[reference.variable]
        return self.match[reference.variable][-1 if reference.index == LAST else 0]
