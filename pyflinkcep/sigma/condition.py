# SPDX-License-Identifier: Apache-2.0
"""Conditions on the rules of a temporal correlation, as alternatives."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import product

import attrs

from pyflinkcep.errors import InvalidArgumentError, did_you_mean

_WORD = re.compile(r"\s*(\(|\)|[^\s()]+)")
_WORDS = ("and", "or", "not", "(", ")")


def _in_order(names: frozenset[str]) -> str:
    # Stored state is known by this text, and a set's own order is another in each process.
    return f"frozenset({{{', '.join(map(repr, sorted(names)))}}})" if names else "frozenset()"


@attrs.frozen
class Alternative:
    """One way to satisfy a temporal correlation."""

    present: frozenset[str] = attrs.field(repr=_in_order)  # The rules that count
    # The rules of which no event may be near.
    absent: frozenset[str] = attrs.field(default=frozenset(), repr=_in_order)
    least: int = 0  # How many of those that count must be there


def alternatives_of(condition: str, rules: Collection[str], where: str) -> tuple[Alternative, ...]:
    """Return what a condition such as ``a and (b or not c)`` allows."""
    words: list[str] = _WORD.findall(condition)
    for word in words:
        if word not in _WORDS and word not in rules:
            hint = did_you_mean(word, rules, f"the rules are {', '.join(rules)}")
            raise InvalidArgumentError(f"{where}: the condition names no rule: {word!r}", hint)
    reader = _Reader(condition, where, [*words])
    found = reader.either()
    if reader.words:
        raise reader.unexpected()
    for one in found:
        if not one.present:
            raise InvalidArgumentError(
                f"{where}: the condition {condition!r} has an alternative of absent rules only",
                "join each `not` by `and` with a rule that occurs",
            )
    return tuple(attrs.evolve(one, least=len(one.present)) for one in found)


@attrs.define
class _Reader:
    condition: str
    where: str
    words: list[str]

    def unexpected(self) -> InvalidArgumentError:
        """Return the error for a word that cannot stand where it is."""
        word = repr(self.words[0]) if self.words else "its end"
        return InvalidArgumentError(
            f"{self.where}: the condition {self.condition!r} is wrong at {word}",
            "write rules with and, or, parentheses, and `not` before the name of a rule",
        )

    def _took(self, word: str) -> bool:
        if self.words[:1] != [word]:
            return False
        del self.words[0]
        return True

    def either(self) -> list[Alternative]:
        """Read alternatives."""
        found = self._both()
        while self._took("or"):
            found += self._both()
        return found

    def _both(self) -> list[Alternative]:
        found = self._one()
        while self._took("and"):
            found = _joined(found, self._one())
        return found

    def _one(self) -> list[Alternative]:
        if self._took("("):
            inner = self.either()
            if not self._took(")"):
                raise self.unexpected()
            return inner
        negated = self._took("not")
        if not self.words or self.words[0] in _WORDS:
            raise self.unexpected()
        name = frozenset([self.words.pop(0)])
        return [Alternative(frozenset(), name) if negated else Alternative(name)]


def _joined(left: Sequence[Alternative], right: Sequence[Alternative]) -> list[Alternative]:
    return [
        Alternative(one.present | other.present, one.absent | other.absent)
        for one, other in product(left, right)
    ]
