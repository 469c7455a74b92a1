# SPDX-License-Identifier: Apache-2.0
"""Reads WHERE: selection strategies, equivalence tests and conditions."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from pyflinkcep.expressions.tree import Literal, Tree
from pyflinkcep.sase.computed import is_computed
from pyflinkcep.sase.conditions import ConditionReader
from pyflinkcep.sase.cursor import Cursor
from pyflinkcep.sase.model import Component, Strategy
from pyflinkcep.sase.tokens import NAME, Token
from pyflinkcep.sase.values import made

__all__ = ["WhereReader"]

_STRATEGIES = {strategy.value: strategy for strategy in Strategy}
_WITH_HYPHENS = {strategy: strategy.value.replace("_", " - ").split() for strategy in Strategy}


@attrs.define(eq=False)
class WhereReader:
    """
    Reads WHERE: strategies, tests and conditions, joined by AND.

    Attributes
    ----------
    strategies : dict of str to Strategy
        The strategies by variable; empty if none is named.
    same : list of str
        The attributes of the tests ``[attr]``.
    constants : list of (str, Literal)
        The tests ``[attr = literal]``.
    conditions : list of Tree
        The conditions.
    """

    _cursor: Cursor
    _values: ConditionReader
    _components: tuple[Component, ...]
    strategies: dict[str, Strategy] = attrs.field(factory=dict)
    same: list[str] = attrs.field(factory=list)
    constants: list[tuple[str, Literal]] = attrs.field(factory=list)
    conditions: list[Tree] = attrs.field(factory=list)

    def read(self) -> None:
        """Read all of WHERE, after the word."""
        cursor = self._cursor
        plain = self._plain_strategy()
        if plain is not None:
            self.strategies = dict.fromkeys(_names(self._components), plain)
            if not cursor.take("and"):
                return
        while True:
            if self._at_strategy():
                self._strategy()
                if cursor.here.word == "or":
                    raise cursor.unexpected(
                        "AND after a strategy", "join a strategy to conditions with AND, not OR"
                    )
                if not cursor.take("and"):
                    break
            elif not self._conjunction():
                break
        missing = [name for name in _names(self._components) if name not in self.strategies]
        if self.strategies and missing:
            part = next(part for part in self._components if part.variable == missing[0])
            raise cursor.failure(
                part.at,
                f"{missing[0]!r} has no strategy, though other variables have one",
                "name every variable in a strategy, or none",
            )

    @property
    def in_order(self) -> tuple[tuple[str, Strategy], ...]:
        """The strategies by variable, in the order of PATTERN; none if none was named."""
        if not self.strategies:
            return ()
        return tuple((name, self.strategies[name]) for name in _names(self._components))

    def _plain_strategy(self) -> Strategy | None:
        """Read a strategy for all variables: ``skip-till-next-match`` or with underscores."""
        cursor = self._cursor
        if cursor.here.word in _STRATEGIES and cursor.ahead().text != "(":
            return _STRATEGIES[cursor.next().word]
        for strategy, words in _WITH_HYPHENS.items():
            if all(cursor.ahead(number).word == word for number, word in enumerate(words)):
                for _ in words:
                    cursor.next()
                return strategy
        return None

    def _at_strategy(self) -> bool:
        return self._cursor.here.word in _STRATEGIES and self._cursor.ahead().text == "("

    def _strategy(self) -> None:
        cursor = self._cursor
        strategy = _STRATEGIES[cursor.next().word]
        cursor.next()
        self._name(strategy)
        while cursor.take(","):
            self._name(strategy)
        cursor.need(")", "separate variables by commas")
        cursor.need("{", f"write {strategy.value}(a, b[]) {{ conditions }}")
        if cursor.take("}"):
            return
        self._conjunction()
        while cursor.take(","):
            self._conjunction()
        cursor.need("}", "join conditions with AND and close the braces")

    def _name(self, strategy: Strategy) -> None:
        cursor = self._cursor
        cursor.take("~", "!")
        token = cursor.name("a variable", f"write {strategy.value}(a, b[]) {{ conditions }}")
        if cursor.take("["):
            cursor.need("]", f"write {token.text}[]")
        part = next((p for p in self._components if p.variable == token.name), None)
        if part is None:
            raise cursor.failure(
                token.at,
                f"{strategy.value} names {token.text!r}, which is not in PATTERN",
                f"the variables are {', '.join(repr(p.variable) for p in self._components)}",
            )
        if part.negated:
            return
        if token.name in self.strategies:
            raise cursor.failure(
                token.at, f"{token.text!r} has two strategies", "name it in one of them"
            )
        self.strategies[token.name] = strategy

    def _conjunction(self) -> bool:
        """
        Read conditions and tests joined by AND; an OR applies to all of them and what follows.

        Returns
        -------
        bool
            Whether a strategy comes next.
        """
        cursor = self._cursor
        group: list[Tree] = []
        test: Token | None = None
        while True:
            if cursor.here.text == "[":
                test = cursor.here
                self._test()
            else:
                group.append(self._values.factor())
            joined = cursor.take("and")
            if not joined or self._at_strategy():
                break
        if cursor.here.word == "or" and cursor.here.kind == NAME:
            if test is not None or not group:
                raise cursor.failure(
                    cursor.here.at,
                    "an equivalence test joined by OR",
                    "put the operands of OR in parentheses: [a] AND (b.x = 1 OR c.x = 1)",
                )
            cursor.next()
            left = group[0] if len(group) == 1 else made("and", *group)
            group = [made("or", left, self._values.condition())]
        self.conditions.extend(group)
        return joined is not None

    def _test(self) -> None:
        cursor = self._cursor
        hint = "write [attribute] or [attribute = literal]"
        cursor.next()
        while True:
            named = cursor.name("an attribute", hint)
            attribute = named.name
            if is_computed(attribute) or cursor.here.text == ".":
                raise cursor.failure(
                    named.at,
                    f"expected a column in a test, got {named.text}{cursor.here.text}",
                    "add a column of a plain name for it, or write a condition: b.x.y = a.x.y",
                )
            if cursor.take("=", "=="):
                self.constants.append((attribute, self._values.literal()))
            else:
                self.same.append(attribute)
            if not cursor.take(","):
                break
        cursor.need("]", hint)


def _names(components: Iterable[Component]) -> list[str]:
    return [part.variable for part in components if not part.negated]
