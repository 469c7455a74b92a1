# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import attrs

from pyflinkcep.expressions import tree
from pyflinkcep.expressions.tree import Literal, Tree
from pyflinkcep.sase.checks import check_query
from pyflinkcep.sase.computed import is_computed, path_names
from pyflinkcep.sase.conditions import ConditionReader, made
from pyflinkcep.sase.model import (
    EVENT_TIME,
    EVENT_TYPE,
    AnyOrder,
    Choice,
    Column,
    Component,
    Form,
    One,
    Optional,
    Query,
    Repeated,
    Sequence,
    Shape,
    Strategy,
    default_variable,
    ones,
)
from pyflinkcep.sase.tokens import END, KEYWORDS, NAME, TEXT, Cursor, Token
from pyflinkcep.sase.windows import read_aggregates, read_totals, read_within

SHAPE = "write PATTERN SEQ(A a, B+ b[]) or PATTERN A;B^2;C, then WHERE, WITHIN, HAVING, RETURN"
_COMPONENT = "a component is a type and a variable: Stock a"
_NEGATED = "negate a component, ~(B b), or a sequence of single ones, ~(SEQ(B b, C c))"
_COUNTS = "write {2}, {2,} or {2,5}"
_MOST_DEPTH = 50
_MOST_DIGITS = 9


@attrs.define(eq=False)
class PatternReader:
    """Reads PATTERN, after the word."""

    _cursor: Cursor
    # The components, in the order of the text.
    components: list[Component] = attrs.field(factory=list, init=False)
    _depth: int = attrs.field(default=0, init=False)

    def read(self) -> tuple[Form, Shape | None]:
        """Return the form of the pattern, and its shape if it is composed."""
        cursor = self._cursor
        if cursor.take("("):  # as the OptiSeq paper writes it: PATTERN(A;B)
            found = self.read()
            cursor.need(")", "close the parenthesis of PATTERN(")
        elif self._at_group("seq", "and"):
            shape = self._choice()
            found = Form.SEQ, None if self._is_plain(shape) else shape
        else:
            self._elements()
            found = Form.LIST, None
        self._refuse_same_names()
        return found

    def _is_plain(self, shape: Shape) -> bool:
        parts = shape.parts if isinstance(shape, Sequence) else (shape,)
        return all(isinstance(part, One) for part in parts)

    # --- SEQ

    def _at_group(self, *words: str) -> bool:
        return self._cursor.here.word in words and self._cursor.ahead().text == "("

    def _choice(self) -> Shape:
        """Read alternatives."""
        cursor = self._cursor
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise cursor.unexpected(f"at most {_MOST_DEPTH} nested groups", "simplify the pattern")
        parts = [self._part()]
        while cursor.take("|"):
            parts.append(self._part())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _part(self) -> Shape:
        cursor, begin = self._cursor, len(self.components)
        if self._at_group("seq"):
            shape = _sequence(self._parts("separate components by commas: SEQ(A a, B+ b[])"))
        elif self._at_group("and"):
            parts = self._parts("separate components by commas: AND(A a, B b)")
            shape = parts[0] if len(parts) == 1 else AnyOrder(tuple(parts))
        elif cursor.here.text == "(":
            cursor.next()
            shape = self._choice()
            cursor.need(")", "close the parenthesis")
        else:
            return self._component()
        if cursor.here.text in ("+", "*", "{"):
            _, least, most = self._repetition()
            inside = self.components[begin:]
            self.components[begin:] = [attrs.evolve(part, in_group=True) for part in inside]
            return Repeated(shape, least, most)
        return Optional(shape) if cursor.take("?") else shape

    def _parts(self, hint: str) -> list[Shape]:
        cursor = self._cursor
        cursor.next()
        cursor.next()
        parts = [self._choice()]
        while cursor.take(","):
            parts.append(self._choice())
        cursor.need(")", hint)
        return parts

    def _component(self) -> Shape:
        cursor = self._cursor
        at = cursor.here.at
        negated = cursor.take("~", "!") is not None
        in_brackets = cursor.take("(") is not None
        if negated and self._at_group("seq"):
            shape = self._negated_sequence()
            if in_brackets:
                cursor.need(")", "close the parenthesis")
            return shape
        if negated and (self._at_group("and") or cursor.here.text == "("):
            raise cursor.unexpected("a component or SEQ after ~", _NEGATED)
        type_ = cursor.type(_COMPONENT)
        repeats, least, most = self._repetition()
        optional = least == 0
        variable = cursor.name("a variable", f"name the events: {type_} a")
        if cursor.take("["):
            cursor.need("]", f"write {type_}+ {variable.text}[]")
            if not repeats:
                raise cursor.failure(
                    variable.at,
                    f"{variable.text}[] without + after its type",
                    f"write {type_}+ {variable.text}[]",
                )
        if in_brackets:
            neither = ", or negate each by itself: ~(B b), ~(C c)" if negated else ""
            cursor.need(")", f"close the parenthesis{neither}")
        self._refuse_negated_loop(negated and (repeats or optional), variable.name, at)
        part = Component(
            type_, variable.name, repeats, negated, least=max(1, least), most=most, at=at
        )
        self.components.append(part)
        return Optional(One(part.variable)) if optional else One(part.variable)

    def _negated_sequence(self) -> Shape:
        """Read SEQ after ~: events which must not come one after another."""
        begin = len(self.components)
        shape = _sequence(self._parts("separate components by commas: SEQ(B b, C c)"))
        inside = self.components[begin:]
        for part in shape.parts if isinstance(shape, Sequence) else (shape,):
            own = next(c for c in inside if c.variable == next(ones(part)).variable)
            if own.negated or own.repeats or not isinstance(part, One):
                what = "negated" if own.negated else "not a single component"
                raise self._cursor.failure(own.at, f"{own.variable!r} is {what} in ~SEQ", _NEGATED)
        self.components[begin:] = [
            attrs.evolve(part, negated=True, goes_on=number > 0)
            for number, part in enumerate(inside)
        ]
        return shape

    def _repetition(self) -> tuple[bool, int, int | None]:
        """Read whether a component's type repeats, how often at least and at most."""
        cursor = self._cursor
        sign = cursor.take("+", "*", "?", "{")
        if sign is None:
            return False, 1, None
        if sign.text == "?":
            return False, 0, None
        if sign.text != "{":
            return True, int(sign.text == "+"), None
        least = self._count()
        most: int | None = least
        if cursor.take(","):
            most = None if cursor.here.text == "}" else self._count()
        if most is not None and (most < least or most == 0):
            raise cursor.failure(
                sign.at,
                f"{{{least},{most}}} has no number of events",
                f"{_COUNTS}, the least first",
            )
        cursor.need("}", _COUNTS)
        return True, least, most

    def _count(self) -> int:
        number = self._cursor.here
        if not (number.text.isdigit() and len(number.text) <= _MOST_DIGITS):
            raise self._cursor.unexpected("a number of events", _COUNTS)
        return int(self._cursor.next().text)

    # --- elements

    def _elements(self) -> None:
        self._element()
        while self._cursor.take(";"):
            self._element()

    def _element(self) -> None:
        cursor = self._cursor
        at = cursor.here.at
        negated = cursor.take("!", "~") is not None
        type_ = cursor.type(SHAPE)
        repeats, least = False, 1
        if cursor.take("^"):
            number = cursor.here
            if not (number.text.isdigit() and len(number.text) < 10 and int(number.text) > 0):
                raise cursor.unexpected(
                    f"a number from 1 to 999999999 after {type_}^",
                    f"write {type_}^2 for two events or more",
                )
            repeats, least = True, int(cursor.next().text)
        elif cursor.take("+"):
            repeats = True
        variable = default_variable(type_)
        if cursor.here.kind == NAME and cursor.here.word not in KEYWORDS:
            variable = cursor.next().name
        self._refuse_negated_loop(negated and repeats, variable, at)
        self.components.append(Component(type_, variable, repeats, negated, least, at=at))

    # --- refusals

    def _refuse_negated_loop(self, is_one: bool, variable: str, at: int) -> None:
        if is_one:
            raise self._cursor.failure(
                at,
                f"{variable!r} is negated and repeats",
                "one event is enough to forbid a match: leave out the repetition",
            )

    def _refuse_same_names(self) -> None:
        seen = set()
        for part in self.components:
            if part.variable in seen:
                raise self._cursor.failure(
                    part.at,
                    f"two components are named {part.variable!r}",
                    f"give each its own name, as in {part.type} {part.variable}2",
                )
            seen.add(part.variable)


def _sequence(parts: list[Shape]) -> Shape:
    """Return parts one after another; those of a sequence inside stand on their own."""
    flat: list[Shape] = []
    for part in parts:
        flat += part.parts if isinstance(part, Sequence) else (part,)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


_STRATEGIES = {strategy.value: strategy for strategy in Strategy}
_WITH_HYPHENS = {strategy: strategy.value.replace("_", " - ").split() for strategy in Strategy}


@attrs.define(eq=False)
class WhereReader:
    """Reads WHERE: strategies, tests and conditions, joined by AND."""

    _cursor: Cursor
    _values: ConditionReader
    _components: tuple[Component, ...]
    # The strategies by variable; empty if none is named.
    strategies: dict[str, Strategy] = attrs.field(factory=dict)
    same: list[str] = attrs.field(factory=list)  # The attributes of the tests ``[attr]``
    # The tests ``[attr = literal]``.
    constants: list[tuple[str, Literal]] = attrs.field(factory=list)
    conditions: list[Tree] = attrs.field(factory=list)  # The conditions

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
        Read conditions and tests joined by AND; an OR applies to all of them and what
        follows.
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


_CHAIN = "write PATTERN … RETURN EVENT Rise(a.x AS x) THEN PATTERN SEQ(Rise r, Rise s) …"

_OF_EVENTS = EVENT_TYPE, EVENT_TIME
"""The columns that events made of matches have already."""

_CLAUSES = {
    "then": _CHAIN,
    "slide": "write WITHIN 10 minutes SLIDE 5 minutes",
    "group": "write WITHIN 10 minutes SLIDE 5 minutes GROUP BY attribute",
}
"""What to write in place of a clause that has no place there."""


def parsed(text: str) -> Query:
    """Parse the text of a query."""
    return _QueryReader(text).query()


def parsed_condition(text: str, query: Query) -> Query:
    """Return a query with one more condition; see :func:`parsed`."""
    cursor = Cursor(text)
    condition = ConditionReader(cursor, query.components).condition()
    if cursor.here.kind != END:
        raise cursor.unexpected("the end", "write one condition; join several with AND or OR")
    query = attrs.evolve(query, conditions=(*query.conditions, condition))
    check_query(query, cursor.failure)
    return query


def parsed_columns(text: str, query: Query) -> Query:
    """Return a query with other columns; see :func:`parsed`."""
    cursor = Cursor(text)
    if query.totals is not None:
        totals = attrs.evolve(query.totals, aggregates=read_aggregates(cursor, query.components))
        return attrs.evolve(query, totals=totals)
    reserved = () if query.event is None else _OF_EVENTS
    columns = tuple(_columns(cursor, ConditionReader(cursor, query.components), reserved))
    if cursor.here.kind != END:
        raise cursor.unexpected("the end", "write a value, or value AS name")
    query = attrs.evolve(query, columns=columns)
    check_query(query, cursor.failure)
    return query


class _QueryReader:
    """Reads a query clause by clause."""

    def __init__(self, text: str) -> None:
        self._cursor = Cursor(text)

    def query(self) -> Query:
        cursor = self._cursor
        source = cursor.name("a table", "write FROM table").name if cursor.take("from") else None
        query = self._one()
        while query.event is not None and cursor.take("then"):
            query = attrs.evolve(self._one(), before=query)
        if cursor.here.kind != END:
            hint = _CLAUSES.get(cursor.here.word, SHAPE)
            raise cursor.unexpected("the end", hint)
        return query if source is None else attrs.evolve(query, source=source)

    def _one(self) -> Query:
        """Read a query up to THEN or the end."""
        cursor = self._cursor
        cursor.need("pattern", SHAPE)
        pattern = PatternReader(cursor)
        form, shape = pattern.read()
        components = tuple(pattern.components)
        values = ConditionReader(cursor, components)
        where = WhereReader(cursor, values, components)
        if cursor.take("where"):
            where.read()
        within = cursor.take("within")
        window, most_events = read_within(cursor) if within else (None, None)
        slide = within and cursor.take("slide")
        totals = read_totals(cursor, components, window) if slide else None
        having = _having(values) if totals is None and cursor.take("having") else None
        returns = totals is None and cursor.take("return")
        event, columns = _returned(cursor, values) if returns else (None, None)
        query = Query(
            form,
            components,
            where.in_order,
            tuple(dict.fromkeys(where.same)),
            tuple(where.constants),
            tuple(where.conditions),
            window,
            having,
            columns,
            shape=shape,
            most_events=most_events,
            event=event,
            totals=totals,
        )
        check_query(query, cursor.failure)
        return query


def _returned(cursor: Cursor, values: ConditionReader) -> tuple[str | None, tuple[Column, ...]]:
    """Read RETURN: the type of the events that matches become, if any, and the columns."""
    follows = cursor.ahead()
    is_event = cursor.here.word == "event" and follows.kind in (NAME, TEXT)
    if not is_event or follows.word == "as":
        return None, tuple(_columns(cursor, values))
    cursor.next()
    type_ = cursor.type(_CHAIN)
    cursor.need("(", _CHAIN)
    columns = tuple(_columns(cursor, values, _OF_EVENTS))
    cursor.need(")", _CHAIN)
    return type_, columns


def _having(values: ConditionReader) -> tree.Tree:
    values.on_matches = True
    return values.condition()


def _columns(
    cursor: Cursor, values: ConditionReader, reserved: Iterable[str] = ()
) -> Iterator[Column]:
    taken = set(reserved)
    number = 0
    values.on_matches = True
    while number == 0 or cursor.take(","):
        number += 1
        at = cursor.here.at
        value = values.value()
        given = cursor.take("as") is not None
        name = _name_of(value, number)
        if given:
            name = cursor.name("a column name", "write value AS name").name
        if name in taken:
            raise cursor.failure(
                at, f"two columns of RETURN are named {name!r}", "name one of them with AS"
            )
        taken.add(name)
        yield Column(value, name, given)


def _name_of(value: tree.Tree, number: int) -> str:
    if not isinstance(value, tree.Column) or value.index is not None:
        return f"_{number}"
    if value.attribute is None:
        return value.text or value.variable
    if is_computed(value.attribute):
        words = [word for name in path_names(value) for word in re.findall(r"\w+", name)]
        return "_".join(words) or f"_{number}"
    return f"{value.variable}_{value.attribute}"
