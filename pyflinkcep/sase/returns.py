# SPDX-License-Identifier: Apache-2.0
"""HAVING and RETURN of complete matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.evaluator import UNTYPED, RowTypes, event_value
from pyflinkcep.expressions.sql_types import WITHOUT_KIND, SqlType, aggregate_type
from pyflinkcep.expressions.tree import ALL, Aggregate, Call, Column, Leaf, Operation, Tree, shown
from pyflinkcep.expressions.values import Function, TimeText, Typed, aggregated, function_of
from pyflinkcep.sase.attributes import FIRST, LAST, is_computed, outputs
from pyflinkcep.sase.model import Query

Match = Mapping[str, Sequence[Any]]
"""Variable to events, oldest first."""


def failed(what: str, cause: ArithmeticError) -> InputError:
    """Return the error that something cannot be computed."""
    return InputError(f"{what}: {cause}", "test for it, with CASE or nullif")


@attrs.frozen
class Returns:
    """The output of a query's matches."""

    query: Query  # The query
    attribute_of: Callable[[Any, str], Any]  # Returns an attribute of an event
    types: RowTypes = UNTYPED  # The types of attributes, as far as they are known
    _functions: dict[Tree, Function] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    _computed: dict[str, Typed] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def refused(self) -> Iterator[tuple[Leaf, SqlType]]:
        """Yield what can only fail, with its type: sums of what is no number, compared maps."""
        for leaf in (leaf for tree in outputs(self.query) for leaf in _computed_with(tree)):
            own = self._own_type(leaf)
            is_sum = isinstance(leaf, Aggregate) and AGGREGATES[leaf.function].of_numbers
            if own is not None and (own.has_map or (is_sum and own.name in WITHOUT_KIND)):
                yield leaf, own

    def keeps(self, match: Match) -> bool:
        """Whether a match satisfies HAVING."""
        return self.query.having is None or self.holds(self.query.having, match)

    def holds(self, condition: Tree, match: Match, each: Mapping[str, Any] | None = None) -> bool:
        """Whether a condition is true of a match; `each` says which event of a loop is meant."""
        return self._value(condition, _Events(self._attribute, match, each or {})) is True

    def row(self, match: Match) -> dict[str, Any]:
        """Return the columns of RETURN; without RETURN the match itself."""
        if self.query.columns is None:
            return {variable: list(events) for variable, events in match.items()}
        events = _Events(self._attribute, match, {})
        return {c.name: self._column(c.value, events) for c in self.query.columns}

    def _column(self, value: Tree, events: _Events) -> Any:
        if not isinstance(value, Column) or value.index in (FIRST, LAST):
            found = self._value(value, events)
            return found.time if isinstance(found, TimeText) else found
        is_list = self.query.component(value.variable).takes_many
        return events.all(value) if is_list else self._value(value, events)

    def _attribute(self, event: Any, name: str) -> Any:
        """Return an attribute of an event, or what SQL computes from it."""
        if not is_computed(name):
            return self.attribute_of(event, name)
        try:
            return self._of_sql(name).function(event)
        except ArithmeticError as cause:
            raise failed(name, cause) from cause

    def _of_sql(self, name: str) -> Typed:
        if name not in self._computed:
            self._computed[name] = event_value(name, self.types)
        return self._computed[name]

    def _value(self, tree: Tree, events: _Events) -> Any:
        function = self._functions.get(tree)
        if function is None:
            function = function_of(
                tree, self._leaf, zero_is_null=True, types=self._type, zone=self.types.zone
            )
            self._functions[tree] = function
        try:
            return function(events)
        except ArithmeticError as cause:
            raise failed(shown(tree), cause) from cause

    def _leaf(self, leaf: Leaf) -> Function:
        """Return the function of a value of a match's events."""
        if isinstance(leaf, Aggregate):
            own = self._own_type(leaf)
            return lambda events: events.aggregate(leaf, own)
        return lambda events: events.one(leaf)

    def _type(self, leaf: Leaf) -> SqlType | None:
        own = self._own_type(leaf)
        return aggregate_type(leaf.function, own) if isinstance(leaf, Aggregate) else own

    def _own_type(self, leaf: Leaf) -> SqlType | None:
        """Return the type of the attribute of a value, or over which an aggregate is."""
        name = leaf.over.attribute
        if name is None:
            return None
        return self._of_sql(name).type if is_computed(name) else self.types.types.get(name)


def _computed_with(tree: Tree, is_given: bool = True) -> Iterator[Leaf]:
    """Yield the values that a tree does not only give out, count, or test for NULL."""
    if isinstance(tree, Operation | Call):
        operator = tree.operator if isinstance(tree, Operation) else ""
        last = len(tree.operands) - 1
        for place, operand in enumerate(tree.operands):
            is_value = operator == "case" and (place % 2 == 1 or place == last)
            gives = is_given and (is_value or operator == "coalesce")
            yield from _computed_with(operand, gives or operator in ("is null", "is not null"))
    elif isinstance(tree, Aggregate):
        if tree.function != "count" and not (is_given and tree.function in ("first", "last")):
            yield tree
    elif isinstance(tree, Column) and not is_given:
        yield tree


@attrs.frozen
class _Events:
    """The events of a match, whose values are None for NULL."""

    attribute_of: Callable[[Any, str], Any]
    match: Match
    each: Mapping[str, Any]

    def all(self, over: Column) -> list[Any]:
        return [self._value(event, over) for event in self.match.get(over.variable, ())]

    def one(self, column: Column) -> Any:
        return self._value(self._event(column), column)

    def aggregate(self, part: Aggregate, own: SqlType | None) -> Any:
        if part.argument is None:
            return len(self.match.get(part.stage, ()))
        return aggregated(part.function, self.all(part.over), own)

    def _value(self, event: Any, column: Column) -> Any:
        name = column.attribute
        return event if name is None or event is None else self.attribute_of(event, name)

    def _event(self, reference: Column) -> Any:
        if reference.index in (None, ALL) and reference.variable in self.each:
            return self.each[reference.variable]
        events = self.match.get(reference.variable)  # None if it is absent from the match
        return events[-1 if reference.index == LAST else 0] if events else None
