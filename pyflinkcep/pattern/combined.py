# SPDX-License-Identifier: Apache-2.0
"""Several patterns as one stage: one of them, or all of them in any order."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

from pyflinkcep.errors import InvalidArgumentError, MalformedPatternException, NotSupportedError
from pyflinkcep.pattern.display import one_line
from pyflinkcep.pattern.quantifier import Combination, ConsumingStrategy, Quantifier, WithinType
from pyflinkcep.pattern.stage import Stage

__all__ = ["combined", "joined_by"]

_MOST_PARTS = 6
"""The most patterns of ``allOf``; it has that many factorial orders."""

_STRATEGIES = {
    "next": ConsumingStrategy.STRICT,
    "followedBy": ConsumingStrategy.SKIP_TILL_NEXT,
    "followedByAny": ConsumingStrategy.SKIP_TILL_ANY,
}


def joined_by(name: object) -> ConsumingStrategy:
    """Return the contiguity that a method of ``Pattern`` stands for."""
    if isinstance(name, str) and name in _STRATEGIES:
        return _STRATEGIES[name]
    raise InvalidArgumentError(
        f"allOf: expected joinedBy to be one of {list(_STRATEGIES)}, got {name!r}",
        "write joinedBy='next' for patterns directly after one another",
    )


def combined(combination: Combination, chains: Sequence[tuple[Stage, ...]]) -> Stage:
    """
    Return the stage that combines patterns.

    Parameters
    ----------
    combination : Combination
        How they are combined.
    chains : sequence of tuple of Stage
        The stages of each, first to last.

    Raises
    ------
    InvalidArgumentError
        If there is no pattern, or more than six of ``allOf``.
    MalformedPatternException
        If what a part says is not about that part alone.
    NotSupportedError
        If a part is what Flink's automaton cannot say.
    """
    method = combination.method
    if not chains:
        raise InvalidArgumentError(
            f"{method}: expected at least one Pattern", f"write Pattern.{method}(p, q)"
        )
    quantifier = Quantifier.one(ConsumingStrategy.STRICT)
    parts = tuple(Stage("GroupPattern", quantifier, inside=chain) for chain in chains)
    for part in parts:
        _check_part(part, f"{method}: ({one_line(part.inside)})")
    if combination.in_any_order:
        _check_orders(parts)
    elif sum(part.may_be_empty for part in parts) > 1:
        raise MalformedPatternException(
            "oneOf: several alternatives may match without an event, and so match alike",
            "leave optional() out of them, and write oneOf(...).optional()",
        )
    return Stage("GroupPattern", quantifier, inside=parts, combination=combination)


def _check_part(part: Stage, where: str) -> None:
    for stage in _with_groups(part):
        if WithinType.FIRST_AND_LAST in stage.windows:
            raise NotSupportedError(
                f"{where} has a window of its own: Flink's automaton has one window for a match",
                "write within(...) after the whole pattern",
            )
    last = part
    while last.inside and last.combination is None:
        last = last.inside[-1]
    if last.quantifier.consumingStrategy is ConsumingStrategy.NOT_FOLLOW:
        raise NotSupportedError(
            f"{where} ends with the NOT stage {last.name!r}, which only a whole pattern may",
            "write notFollowedBy after the whole, or between stages",
        )


def _check_orders(parts: Sequence[Stage]) -> None:
    if len(parts) > _MOST_PARTS:
        raise InvalidArgumentError(
            f"allOf: {len(parts)} patterns have {factorial(len(parts)):,} orders: expected at most "
            f"{_MOST_PARTS} patterns ({factorial(_MOST_PARTS)} orders)",
            "write one stage with times(n) and a condition that covers them, and check the events "
            "of a match afterwards",
        )
    for part in parts:
        where = f"allOf: ({one_line(part.inside)})"
        if part.may_be_empty:
            raise MalformedPatternException(
                f"{where} may match without an event, and has no place in an order then",
                "leave optional() out, and write oneOf(allOf(p, q), …) with the shorter pattern",
            )
        for stage in part.singles():
            if stage.times is not None and stage.times.window_ms is not None:
                raise NotSupportedError(
                    f"{where}: stage {stage.name!r} has a window for the gaps of its repetitions",
                    "write within(...) after the whole pattern",
                )


def _with_groups(stage: Stage) -> list[Stage]:
    return [stage, *(found for part in stage.inside for found in _with_groups(part))]
