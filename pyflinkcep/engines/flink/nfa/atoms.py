# SPDX-License-Identifier: Apache-2.0
"""Users' conditions; those that read a single event have a bit each."""

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
    single_conditions,
)
from pyflinkcep.expressions.grammar import may_fail, parsed
from pyflinkcep.expressions.tokens import SqlSyntaxError
from pyflinkcep.expressions.tree import Column, MatchExpression, joined, leaves

WORD = 63
"""The number of bits in a word of bounded integers."""


@attrs.frozen(eq=False)
class Atom:
    """A condition as the user wrote it, without the surrounding and, or and not."""

    condition: IterativeCondition  # The condition
    stage: str  # The stage it was written for, for errors
    # A unique power of two if the condition reads one event only, so that results can be kept per
    # event; 0 if it reads the partial match.
    bit: int
    # The SQL that comes before it in its stage, and whether it is only asked if that holds.
    guards: tuple[tuple[str, bool], ...] = ()
    # Called with the event, and also with the context if there is no bit.
    function: Callable[..., Any] = attrs.field(init=False)
    # The key of a match expression's program; None for all other conditions.
    expression: str | None = attrs.field(init=False)

    @expression.default
    def _key(self) -> str | None:
        return self.condition.key if isinstance(self.condition, MatchExpression) else None

    @function.default
    def _the_users_own(self) -> Callable[..., Any]:
        # Calling through the condition would double the cost.
        condition = self.condition
        if isinstance(condition, FUNCTION_CONDITIONS):
            return condition.function
        return condition.filter


class Atoms:
    """
    The user's conditions of one pattern, each with its bit.

    Two stages with the same condition object share one atom, and so one evaluation per event.
    """

    def __init__(self) -> None:
        self._by_identity: dict[object, Atom] = {}
        self._untils: list[IterativeCondition] = []

    def __iter__(self) -> Iterator[Atom]:
        return iter(self._by_identity.values())

    def register(
        self, condition: IterativeCondition, stage: str, guards: tuple[tuple[str, bool], ...] = ()
    ) -> None:
        """Add every condition inside `condition`, which is asked if `guards` allow it."""
        if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
            for part in condition.nestedConditions:
                self.register(part, stage, guards)
                guards += tuple(_known(part, isinstance(condition, RichAndCondition)))
        elif not isinstance(condition, BooleanConditions):
            key = _identity(condition)
            old = self._by_identity.get(key)
            if old is None:
                bit = 1 << len(self._by_identity) if isinstance(condition, SimpleCondition) else 0
                self._by_identity[key] = Atom(condition, stage, bit, guards)
            elif old.guards != guards:
                common = tuple(guard for guard in old.guards if guard in guards)
                self._by_identity[key] = attrs.evolve(old, guards=common)

    def register_until(self, until: IterativeCondition, stage: str) -> None:
        """Add every condition inside a stage's condition of ``until``."""
        self._untils.append(until)
        self.register(until, stage)

    def is_until(self, condition: IterativeCondition | None) -> bool:
        """Whether a condition is that of an ``until``, not a part of one."""
        return any(condition is until for until in self._untils)

    def inside(self, condition: IterativeCondition) -> Iterator[Atom]:
        """Return the atoms inside a registered condition."""
        return map(self.of, single_conditions(condition))

    def of(self, condition: IterativeCondition) -> Atom:
        """Return the atom of a registered condition."""
        return self._by_identity[_identity(condition)]


def known_value(
    condition: IterativeCondition | None, answer: Callable[[IterativeCondition], bool | None]
) -> tuple[bool | None, tuple[IterativeCondition, ...]]:
    """
    Return a condition's value as far as known, and the user's conditions that decide it.

    `answer` returns that of one of these, None if it is not known.
    """
    if condition is None or isinstance(condition, BooleanConditions):
        return condition is None or condition.value, ()
    if isinstance(condition, RichNotCondition):
        value, why = known_value(condition.nestedConditions[0], answer)
        return (None if value is None else not value), why
    if not isinstance(condition, RichAndCondition | RichOrCondition):
        value = answer(condition)
        return value, () if value is None else (condition,)
    decisive = isinstance(condition, RichOrCondition)
    reasons: tuple[IterativeCondition, ...] = ()
    is_known = True
    for part in condition.nestedConditions:
        value, why = known_value(part, answer)
        if value is decisive:
            return value, why
        is_known = is_known and value is not None
        reasons += why
    return (not decisive if is_known else None), reasons


def _known(condition: IterativeCondition, holds: bool) -> Iterator[tuple[str, bool]]:
    """Yield the SQL whose answer is known if that of a condition is."""
    if isinstance(condition, ExpressionCondition) and isinstance(condition.expression, str):
        yield condition.text, holds
    elif isinstance(condition, RichNotCondition):
        yield from _known(condition.nestedConditions[0], not holds)
    elif isinstance(condition, RichAndCondition if holds else RichOrCondition):
        for part in condition.nestedConditions:
            yield from _known(part, holds)


def guarded(sql: str, guards: Iterable[tuple[str, bool]]) -> str:
    """Return SQL that may fail as NULL for the events for which guards do not ask it."""
    known = list(guards)
    try:
        if not known or not may_fail(parsed(sql)):
            return sql
    except SqlSyntaxError:  # Spark knows more
        return sql
    for guard, holds in reversed(known):
        asked = joined(("(", guard, ")"))
        parts = ("CASE WHEN ", asked, " THEN ", sql, " END")
        if not holds:
            parts = ("CASE WHEN ", asked, " THEN NULL ELSE ", sql, " END")
        sql = joined(parts)
    return sql


def guarded_parts(atoms: Iterable[Atom]) -> dict[str, str]:
    """
    Return what SQL over stages reads of events, and how it is computed for all of them.

    What an aggregate reads is of events that other conditions have let pass: it has no guards.
    """
    guards: dict[str, list[tuple[str, bool]]] = {}
    for atom in atoms:
        if isinstance(atom.condition, MatchExpression):
            for leaf in leaves(atom.condition.tree):
                is_own = isinstance(leaf, Column) and not leaf.variable
                sql = leaf.sql if isinstance(leaf, Column) else leaf.argument
                if sql is not None:
                    known = atom.guards if is_own else ()
                    guards[sql] = [guard for guard in guards.get(sql, known) if guard in known]
    return {sql: guarded(sql, known) for sql, known in guards.items()}


def _identity(condition: IterativeCondition) -> object:
    return id(condition.function if isinstance(condition, FUNCTION_CONDITIONS) else condition)


def atom_of(atoms: Iterable[Atom], condition: IterativeCondition) -> Atom:
    """Return the atom of a condition among those of its pattern."""
    wanted = _identity(condition)
    return next(atom for atom in atoms if _identity(atom.condition) == wanted)


def known_bits(atoms: Iterable[Atom]) -> int:
    """Return the bits of the conditions that an engine answers before matching: SQL and Columns."""
    return sum(atom.bit for atom in atoms if isinstance(atom.condition, ExpressionCondition))


def in_word(bit: int) -> tuple[int, int]:
    """
    Return the index of a bit's word, and the bit within it.

    >>> in_word(4), in_word(1 << 64)
    ((0, 4), (1, 2))
    """
    word = max(bit.bit_length() - 1, 0) // WORD
    return word, bit >> (word * WORD)


def words(bits: int, count: int) -> tuple[int, ...]:
    """
    Return the words of an integer, the lowest bits first.

    >>> words((1 << 63) + 5, 3)
    (5, 1, 0)
    """
    return tuple(bits >> (WORD * word) & ((1 << WORD) - 1) for word in range(count))
