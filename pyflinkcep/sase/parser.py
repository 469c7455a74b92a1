# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from pyflinkcep.sase.checks import check
from pyflinkcep.sase.computed import refuse_computed
from pyflinkcep.sase.conditions import ConditionReader
from pyflinkcep.sase.cursor import Cursor
from pyflinkcep.sase.model import Column, Component, Form, Query, Strategy
from pyflinkcep.sase.tokens import END, KEYWORDS, NAME, NUMBER, Token
from pyflinkcep.sase.tree import Expression, Literal, Logical, Reference

__all__ = ["parsed", "parsed_columns", "parsed_condition"]

_UNITS = {
    "millisecond": 1, "ms": 1, "second": 1000, "sec": 1000, "minute": 60_000, "min": 60_000,
    "hour": 3_600_000, "day": 86_400_000,
}  # fmt: skip
_STRATEGIES = {strategy.value: strategy for strategy in Strategy}
_SHAPE = "write PATTERN SEQ(A a, B+ b[]) or PATTERN A;B^2;C, then WHERE, WITHIN, HAVING, RETURN"


def parsed(text: str) -> Query:
    """
    Parse the text of a query.

    Raises
    ------
    InvalidArgumentError
        If the text is not a query; the message says where and why.
    """
    return _QueryReader(text).query()


def parsed_condition(text: str, query: Query) -> Query:
    """Return a query with one more condition; see :func:`parsed`."""
    cursor = Cursor(text)
    condition = ConditionReader(cursor, query.components).condition()
    if cursor.here.kind != END:
        raise cursor.unexpected("the end", "write one condition; join several with AND or OR")
    query = attrs.evolve(query, conditions=(*query.conditions, condition))
    check(query, cursor.failure)
    return query


def parsed_columns(text: str, query: Query) -> Query:
    """Return a query with other columns; see :func:`parsed`."""
    cursor = Cursor(text)
    columns = tuple(_columns(cursor, ConditionReader(cursor, query.components)))
    if cursor.here.kind != END:
        raise cursor.unexpected("the end", "write a value, or value AS name")
    query = attrs.evolve(query, columns=columns)
    check(query, cursor.failure)
    return query


class _QueryReader:
    """Reads a query clause by clause."""

    def __init__(self, text: str) -> None:
        self._cursor = Cursor(text)

    def query(self) -> Query:
        cursor = self._cursor
        source = cursor.name("a table", "write FROM table").text if cursor.take("from") else None
        cursor.need("pattern", _SHAPE)
        if cursor.here.word == "seq" and cursor.ahead().text == "(":
            form, components = Form.SEQ, tuple(self._sequence())
        else:
            form, components = Form.LIST, tuple(self._elements())
        self._refuse_same_names(components)
        values = ConditionReader(cursor, components)
        where = _WhereReader(cursor, values, components)
        if cursor.take("where"):
            where.read()
        query = Query(
            form,
            components,
            tuple(
                (name, where.strategies[name]) for name in _names(components) if where.strategies
            ),
            tuple(dict.fromkeys(where.same)),
            tuple(where.constants),
            tuple(where.conditions),
            self._window() if cursor.take("within") else None,
            _having(cursor, values) if cursor.take("having") else None,
            tuple(_columns(cursor, values)) if cursor.take("return") else None,
            source,
        )
        if cursor.here.kind != END:
            raise cursor.unexpected("the end", _SHAPE)
        check(query, cursor.failure)
        return query

    # --- PATTERN

    def _sequence(self) -> Iterator[Component]:
        cursor = self._cursor
        cursor.next()
        cursor.next()
        yield self._component()
        while cursor.take(","):
            yield self._component()
        cursor.need(")", "separate components by commas: SEQ(A a, B+ b[])")

    def _component(self) -> Component:
        cursor = self._cursor
        at = cursor.here.at
        negated = cursor.take("~", "!") is not None
        in_brackets = cursor.take("(") is not None
        type_ = cursor.name("an event type", "a component is a type and a variable: Stock a")
        repeats = cursor.take("+") is not None
        variable = cursor.name("a variable", f"name the events: {type_.text} a")
        if cursor.take("["):
            cursor.need("]", f"write {type_.text}+ {variable.text}[]")
            if not repeats:
                raise cursor.failure(
                    variable.at,
                    f"{variable.text}[] without + after its type",
                    f"write {type_.text}+ {variable.text}[]",
                )
        if in_brackets:
            cursor.need(")", "close the parenthesis")
        self._refuse_negated_loop(negated and repeats, variable.text, at)
        return Component(type_.text, variable.text, repeats, negated, 1, at)

    def _elements(self) -> Iterator[Component]:
        yield self._element()
        while self._cursor.take(";"):
            yield self._element()

    def _element(self) -> Component:
        cursor = self._cursor
        at = cursor.here.at
        negated = cursor.take("!", "~") is not None
        type_ = cursor.name("an event type", _SHAPE).text
        repeats, least = False, 1
        if cursor.take("^"):
            number = cursor.here
            if not (number.text.isdigit() and len(number.text) < 10 and int(number.text) > 0):
                raise cursor.unexpected(
                    f"a number from 1 after {type_}^", f"write {type_}^2 for two events or more"
                )
            repeats, least = True, int(cursor.next().text)
        elif cursor.take("+"):
            repeats = True
        variable = type_.lower()
        if cursor.here.kind == NAME and cursor.here.word not in KEYWORDS:
            variable = cursor.next().text
        self._refuse_negated_loop(negated and repeats, variable, at)
        return Component(type_, variable, repeats, negated, least, at)

    def _refuse_negated_loop(self, is_one: bool, variable: str, at: int) -> None:
        if is_one:
            raise self._cursor.failure(
                at,
                f"{variable!r} is negated and repeats",
                "one event is enough to forbid a match: leave out the repetition",
            )

    def _refuse_same_names(self, components: tuple[Component, ...]) -> None:
        seen = set()
        for part in components:
            if part.variable in seen:
                raise self._cursor.failure(
                    part.at,
                    f"two components are named {part.variable!r}",
                    f"give each its own name, as in {part.type} {part.variable}2",
                )
            seen.add(part.variable)

    # --- WITHIN

    def _window(self) -> int:
        cursor = self._cursor
        number = cursor.here
        if number.kind != NUMBER:
            raise cursor.unexpected("a number after WITHIN", "write WITHIN 10 minutes")
        cursor.next()
        factor = 1
        if cursor.here.kind == NAME and cursor.here.word not in KEYWORDS:
            unit = cursor.here.word
            if unit not in _UNITS and unit.endswith("s"):
                unit = unit[:-1]
            if unit not in _UNITS:
                raise cursor.unexpected(
                    "a unit of time", "the units are ms, seconds, minutes, hours and days"
                )
            factor = _UNITS[unit]
            cursor.next()
        milliseconds = float(number.text) * factor
        if not 1 <= milliseconds < 1 << 53:
            raise cursor.failure(
                number.at,
                f"WITHIN {number.text} is out of range",
                "a window is longer than 0 ms and shorter than 285,000 years",
            )
        return int(milliseconds)


def _names(components: Iterable[Component]) -> list[str]:
    return [part.variable for part in components if not part.negated]


def _having(cursor: Cursor, values: ConditionReader) -> Expression:
    condition = values.condition()
    refuse_computed(cursor, condition)
    return condition


def _columns(cursor: Cursor, values: ConditionReader) -> Iterator[Column]:
    taken: set[str] = set()
    number = 0
    while number == 0 or cursor.take(","):
        number += 1
        at = cursor.here.at
        value = values.value()
        refuse_computed(cursor, value)
        given = cursor.take("as") is not None
        name = _name_of(value, number)
        if given:
            name = cursor.name("a column name", "write value AS name").text
        if name in taken:
            raise cursor.failure(
                at, f"two columns of RETURN are named {name!r}", "name one of them with AS"
            )
        taken.add(name)
        yield Column(value, name, given)


def _name_of(value: Expression, number: int) -> str:
    if not isinstance(value, Reference) or value.index is not None:
        return f"_{number}"
    if value.attribute is None:
        return value.shown or value.variable
    return f"{value.variable}_{value.attribute}"


@attrs.define(eq=False)
class _WhereReader:
    """Reads WHERE: strategies, tests and conditions, joined by AND."""

    _cursor: Cursor
    _values: ConditionReader
    _components: tuple[Component, ...]
    strategies: dict[str, Strategy] = attrs.field(factory=dict)
    same: list[str] = attrs.field(factory=list)
    constants: list[tuple[str, Literal]] = attrs.field(factory=list)
    conditions: list[Expression] = attrs.field(factory=list)

    def read(self) -> None:
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

    def _plain_strategy(self) -> Strategy | None:
        """Read a strategy for all variables: ``skip-till-next-match`` or with underscores."""
        cursor = self._cursor
        if cursor.here.word in _STRATEGIES and cursor.ahead().text != "(":
            return _STRATEGIES[cursor.next().word]
        for strategy in Strategy:
            words = strategy.value.replace("_", " - ").split()
            if [cursor.ahead(number).word for number in range(len(words))] == words:
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
        part = next((p for p in self._components if p.variable == token.text), None)
        if part is None:
            raise cursor.failure(
                token.at,
                f"{strategy.value} names {token.text!r}, which is not in PATTERN",
                f"the variables are {', '.join(repr(p.variable) for p in self._components)}",
            )
        if part.negated:
            return
        if token.text in self.strategies:
            raise cursor.failure(
                token.at, f"{token.text!r} has two strategies", "name it in one of them"
            )
        self.strategies[token.text] = strategy

    def _conjunction(self) -> bool:
        """
        Read conditions and tests joined by AND; an OR applies to all of them and what follows.

        Returns
        -------
        bool
            Whether a strategy comes next.
        """
        cursor = self._cursor
        group: list[Expression] = []
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
            left = group[0] if len(group) == 1 else Logical("and", tuple(group))
            group = [Logical("or", (left, self._values.condition()))]
        self.conditions.extend(group)
        return joined is not None

    def _test(self) -> None:
        cursor = self._cursor
        hint = "write [attribute] or [attribute = literal]"
        cursor.next()
        while True:
            attribute = cursor.name("an attribute", hint).text
            if cursor.take("=", "=="):
                self.constants.append((attribute, self._values.literal()))
            else:
                self.same.append(attribute)
            if not cursor.take(","):
                break
        cursor.need("]", hint)
