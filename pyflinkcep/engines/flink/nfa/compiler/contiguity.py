# SPDX-License-Identifier: Apache-2.0
"""The conditions of edges: contiguity, until conditions and greediness."""

from __future__ import annotations

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
)
from pyflinkcep.engines.flink.nfa.state import State
from pyflinkcep.pattern.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.quantifier import ConsumingStrategy

__all__ = [
    "extend_with_until",
    "ignore_condition",
    "inner_ignore_condition",
    "make_greedy",
    "take_condition",
    "true_condition",
]


def take_condition(stage: Pattern, group: GroupPattern | None) -> IterativeCondition:
    """Return the condition to take an event for the stage, false once its group's loop ends."""
    return _unless_group_ends(stage.getCondition(), group)


def true_condition(group: GroupPattern | None) -> IterativeCondition:
    """Return the condition that holds until the loop of the group ends."""
    return _unless_group_ends(BooleanConditions.trueFunction(), group)


def ignore_condition(
    stage: Pattern, group: GroupPattern | None, first_of_loop: bool
) -> IterativeCondition | None:
    """
    Return the condition to ignore an event before the stage; None if that is not allowed.

    Parameters
    ----------
    stage : Pattern
        The stage.
    group : GroupPattern or None
        The group around it.
    first_of_loop : bool
        Whether this is the group's first repetition, which follows the stage before the group.
    """
    quantifier = stage.getQuantifier()
    strategy = quantifier.consumingStrategy
    if group is not None and stage.getPrevious() is None:
        quantifier = group.getQuantifier()
        strategy = (
            quantifier.consumingStrategy if first_of_loop else quantifier.innerConsumingStrategy
        )
    return _ignore_by_strategy(stage, group, strategy)


def inner_ignore_condition(stage: Pattern, group: GroupPattern | None) -> IterativeCondition | None:
    """
    Return the condition to ignore an event between repetitions; None if that is not allowed.

    As in Flink the first stage of a group repeats like the group; in alternatives like itself.
    """
    is_head = group is not None and group.combination is None and stage.getPrevious() is None
    source = group if group is not None and is_head else stage
    return _ignore_by_strategy(stage, group, source.getQuantifier().innerConsumingStrategy)


def extend_with_until(
    condition: IterativeCondition | None, until: IterativeCondition | None, is_take: bool
) -> IterativeCondition | None:
    """Return the condition of a loop's edge, which the loop's until condition closes."""
    if until is None:
        return condition
    if condition is None:
        return RichNotCondition(until) if is_take else None
    return RichAndCondition(RichNotCondition(until), condition)


def make_greedy(state: State, take: IterativeCondition) -> None:
    """Give the loop before `state` every event that it could take."""
    for t in state.transitions:
        old = t.condition or BooleanConditions.trueFunction()
        t.condition = RichAndCondition(old, RichNotCondition(take))


def _ignore_by_strategy(
    stage: Pattern, group: GroupPattern | None, strategy: ConsumingStrategy
) -> IterativeCondition | None:
    if strategy is ConsumingStrategy.SKIP_TILL_NEXT:
        return _unless_group_ends(RichNotCondition(stage.getCondition()), group)
    if strategy is ConsumingStrategy.SKIP_TILL_ANY:
        return _unless_group_ends(BooleanConditions.trueFunction(), group)
    return None


def _unless_group_ends(
    condition: IterativeCondition, group: GroupPattern | None
) -> IterativeCondition:
    until = None if group is None else group.getUntilCondition()
    return condition if until is None else RichAndCondition(RichNotCondition(until), condition)
