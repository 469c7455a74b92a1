# SPDX-License-Identifier: Apache-2.0
"""Users' conditions, each with a bit of its own if it looks at one event only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from pyflinkcep.conditions import (
    FUNCTION_CONDITIONS,
    BooleanConditions,
    ExpressionCondition,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
    SimpleCondition,
)
from pyflinkcep.expressions.tree import MatchExpression

__all__ = ["WORD", "Atom", "Atoms", "atom_of", "in_word", "known_bits", "words"]

WORD = 63
"""How many bits are in a word, where integers have a bound."""


@attrs.frozen(eq=False)
class Atom:
    """
    A condition as a user wrote it, without the and, or and not around it.

    Attributes
    ----------
    condition : IterativeCondition
        The condition.
    stage : str
        The stage it was written for; named in errors.
    bit : int
        A power of two of its own when the condition looks at one event only, so that results
        are kept for the event; 0 when it looks at the partial match.
    function : callable
        What to call with the event, and with the context too if there is no bit.
    expression : str or None
        What the program of a match expression is known by; None for every other condition.
    """

    condition: IterativeCondition
    stage: str
    bit: int
    function: Callable[..., Any] = attrs.field(init=False)
    expression: str | None = attrs.field(init=False)

    @expression.default
    def _key(self) -> str | None:
        return self.condition.key if isinstance(self.condition, MatchExpression) else None

    @function.default
    def _the_users_own(self) -> Callable[..., Any]:
        # The call through the condition costs as much again.
        condition = self.condition
        if isinstance(condition, FUNCTION_CONDITIONS):
            return condition.function
        return condition.filter


class Atoms:
    """
    The users' conditions of one pattern, each with its bit.

    Two stages that were given the same object share one atom, and so one evaluation per event.
    """

    def __init__(self) -> None:
        self._by_identity: dict[object, Atom] = {}

    def __iter__(self) -> Iterator[Atom]:
        return iter(self._by_identity.values())

    def register(self, condition: IterativeCondition, stage: str) -> None:
        """Add every condition inside `condition`."""
        if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
            for part in condition.nestedConditions:
                self.register(part, stage)
        elif not isinstance(condition, BooleanConditions):
            key = _identity(condition)
            if key not in self._by_identity:
                bit = 1 << len(self._by_identity) if isinstance(condition, SimpleCondition) else 0
                self._by_identity[key] = Atom(condition, stage, bit)

    def inside(self, condition: IterativeCondition) -> Iterator[Atom]:
        """Yield the atoms of the conditions inside one registered before."""
        if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
            for part in condition.nestedConditions:
                yield from self.inside(part)
        elif not isinstance(condition, BooleanConditions):
            yield self.of(condition)

    def of(self, condition: IterativeCondition) -> Atom:
        """Return the atom of a condition registered before."""
        return self._by_identity[_identity(condition)]


def _identity(condition: IterativeCondition) -> object:
    return id(condition.function if isinstance(condition, FUNCTION_CONDITIONS) else condition)


def atom_of(atoms: Iterable[Atom], condition: IterativeCondition) -> Atom:
    """Return the atom of a condition among those of its pattern."""
    wanted = _identity(condition)
    return next(atom for atom in atoms if _identity(atom.condition) == wanted)


def known_bits(atoms: Iterable[Atom]) -> int:
    """Return the bits of the conditions that an engine answers before matching: SQL, Columns."""
    return sum(atom.bit for atom in atoms if isinstance(atom.condition, ExpressionCondition))


def in_word(bit: int) -> tuple[int, int]:
    """
    Return the number of the word that a bit is in, and the bit in that word.

    Examples
    --------
    >>> in_word(4), in_word(1 << 64)
    ((0, 4), (1, 2))
    """
    word = max(bit.bit_length() - 1, 0) // WORD
    return word, bit >> (word * WORD)


def words(bits: int, count: int) -> tuple[int, ...]:
    """
    Return the words of an integer, the lowest bits first.

    Examples
    --------
    >>> words((1 << 63) + 5, 3)
    (5, 1, 0)
    """
    return tuple(bits >> (WORD * word) & ((1 << WORD) - 1) for word in range(count))
