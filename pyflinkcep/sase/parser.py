# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import count
from typing import TypeVar

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions import tree
from pyflinkcep.expressions.tokens import Token, TokenKind
from pyflinkcep.expressions.tree import Literal, Tree, written_name
from pyflinkcep.sase.attributes import is_computed, path_names
from pyflinkcep.sase.checks import check_query
from pyflinkcep.sase.conditions import KEYWORDS, ConditionReader, made
from pyflinkcep.sase.model import (
    EVENT_TIME,
    EVENT_TYPE,
    MOST_WINDOWS,
    TOTALS,
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
    Totals,
    default_variable,
    ones,
)
from pyflinkcep.time import UNITS_MS

SHAPE = "write PATTERN SEQ(A a, B+ b[]) or PATTERN A;B^2;C, then WHERE, WITHIN, HAVING, RETURN"
_COMPONENT = "a component is a type and a variable: Stock a"
_NEGATED = "negate a component, ~(B b), or a sequence of single ones, ~(SEQ(B b, C c))"
_COUNTS = "write {2}, {2,} or {2,5}"
_MOST_DEPTH = 50
_MOST_DIGITS = 9

_T = TypeVar("_T")
_STRATEGIES = {strategy.name: strategy for strategy in Strategy}
_NO_UNITS = {*KEYWORDS, "SLIDE", "GROUP", "THEN"}
_AGGREGATE = "write count(*), count(b), sum(b.volume) AS v, or avg, min, max, stddev"
_CHAIN = "write PATTERN … RETURN EVENT Rise(a.x AS x) THEN PATTERN SEQ(Rise r, Rise s) …"
_OF_EVENTS = EVENT_TYPE, EVENT_TIME
"""The columns that events made of matches have already."""
_CLAUSES = {
    "THEN": _CHAIN,
    "SLIDE": "write WITHIN 10 minutes SLIDE 5 minutes",
    "GROUP": "write WITHIN 10 minutes SLIDE 5 minutes GROUP BY attribute",
}
"""What to write in place of a clause that has no place there."""


@attrs.define(eq=False)
class _Where:
    """What WHERE says."""

    strategies: dict[str, Strategy] = attrs.field(factory=dict)  # By variable
    same: list[str] = attrs.field(factory=list)  # The attributes of the tests ``[attr]``
    constants: list[tuple[str, Literal]] = attrs.field(factory=list)  # ``[attr = literal]``
    conditions: list[Tree] = attrs.field(factory=list)


class _QueryReader(ConditionReader):
    """Reads a query, clause by clause."""

    # --- PATTERN

    def pattern(self) -> tuple[Form, tuple[Component, ...], Shape | None]:
        """Return the form of the pattern, its components, and its shape if it is composed."""
        self._components: list[Component] = []
        form, shape = self._form()
        names = set()
        for part in self._components:
            if part.variable in names:
                what = f"two components are named {part.variable!r}"
                hint = f"give each its own name, as in {part.type} {part.variable}2"
                raise self.failure(part.at, what, hint)
            names.add(part.variable)
        parts = shape.parts if isinstance(shape, Sequence) else (shape,)
        is_plain = all(isinstance(part, One) for part in parts)
        return form, tuple(self._components), None if is_plain else shape

    def _form(self) -> tuple[Form, Shape | None]:
        if self.take("("):  # as the OptiSeq paper writes it: PATTERN(A;B)
            found = self._form()
            self.need(")", "close the parenthesis of PATTERN(")
            return found
        if self.sees("SEQ", "(") or self.sees("AND", "("):
            return Form.SEQ, self._alternatives()
        self._element()
        while self.take(";"):
            self._element()
        return Form.LIST, None

    # --- SEQ

    def _alternatives(self) -> Shape:
        """Read alternatives."""
        with self.deeper(_MOST_DEPTH, self._too_many_groups):
            parts = [self._part()]
            while self.take("|"):
                parts.append(self._part())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _too_many_groups(self) -> InvalidArgumentError:
        return self.unexpected(f"at most {_MOST_DEPTH} nested groups", "simplify the pattern")

    def _part(self) -> Shape:
        begin = len(self._components)
        if self.sees("SEQ", "("):
            shape = _sequence(self._parts("SEQ(A a, B+ b[])"))
        elif self.sees("AND", "("):
            parts = self._parts("AND(A a, B b)")
            shape = parts[0] if len(parts) == 1 else AnyOrder(tuple(parts))
        elif self.take("("):
            shape = self._alternatives()
            self.need(")", "close the parenthesis")
        else:
            return self._component()
        if self.here.word in ("+", "*", "{"):
            _, least, most = self._repetition()
            inside = self._components[begin:]
            self._components[begin:] = [attrs.evolve(part, in_group=True) for part in inside]
            return Repeated(shape, least, most)
        return Optional(shape) if self.take("?") else shape

    def _parts(self, example: str) -> list[Shape]:
        self.next()
        self.next()
        parts = self.listed(self._alternatives)
        self.need(")", f"separate components by commas: {example}")
        return parts

    def _component(self) -> Shape:
        at = self.here.start
        negated = self.take("~", "!") is not None
        in_brackets = self.take("(") is not None
        if negated and self.sees("SEQ", "("):
            shape = self._negated_sequence()
            if in_brackets:
                self.need(")", "close the parenthesis")
            return shape
        if negated and (self.sees("AND", "(") or self.here.word == "("):
            raise self.unexpected("a component or SEQ after ~", _NEGATED)
        type_ = self.type(_COMPONENT)
        repeats, least, most = self._repetition()
        name = self.name("a variable", f"name the events: {type_} a")
        if self.take("["):
            brackets = f"{self.written(name)}[]"
            self.need("]", f"write {type_}+ {brackets}")
            if not repeats:
                what = f"{brackets} without + after its type"
                raise self.failure(name.start, what, f"write {type_}+ {brackets}")
        if in_brackets:
            neither = ", or negate each by itself: ~(B b), ~(C c)" if negated else ""
            self.need(")", f"close the parenthesis{neither}")
        self._add(Component(type_, name.text, repeats, negated, max(1, least), most, at=at), least)
        one = One(name.text)
        return one if least else Optional(one)

    def _add(self, part: Component, least: int) -> None:
        if part.negated and (part.repeats or not least):
            what = f"{part.variable!r} is negated and repeats"
            hint = "one event is enough to forbid a match: leave out the repetition"
            raise self.failure(part.at, what, hint)
        self._components.append(part)

    def _negated_sequence(self) -> Shape:
        """Read SEQ after ~: events which must not come one after another."""
        begin = len(self._components)
        shape = _sequence(self._parts("SEQ(B b, C c)"))
        inside = self._components[begin:]
        for part in shape.parts if isinstance(shape, Sequence) else (shape,):
            own = next(c for c in inside if c.variable == next(ones(part)).variable)
            if own.negated or own.repeats or not isinstance(part, One):
                what = "negated" if own.negated else "not a single component"
                raise self.failure(own.at, f"{own.variable!r} is {what} in ~SEQ", _NEGATED)
        self._components[begin:] = [
            attrs.evolve(part, negated=True, goes_on=number > 0)
            for number, part in enumerate(inside)
        ]
        return shape

    def _repetition(self) -> tuple[bool, int, int | None]:
        """Read whether a component's type repeats, how often at least and at most."""
        sign = self.take("+", "*", "?", "{")
        if sign is None or sign.word == "?":
            return False, int(sign is None), None
        if sign.word != "{":
            return True, int(sign.word == "+"), None
        least = self._count()
        most: int | None = least
        if self.take(","):
            most = None if self.here.word == "}" else self._count()
        if most is not None and (most < least or most == 0):
            what = f"{{{least},{most}}} has no number of events"
            raise self.failure(sign.start, what, f"{_COUNTS}, the least first")
        self.need("}", _COUNTS)
        return True, least, most

    def _count(self) -> int:
        if not (self.here.word.isdecimal() and len(self.here.word) <= _MOST_DIGITS):
            raise self.unexpected("a number of events", _COUNTS)
        return int(self.next().word)

    # --- elements

    def _element(self) -> None:
        at = self.here.start
        negated = self.take("!", "~") is not None
        type_ = self.type(SHAPE)
        repeats, least = False, 1
        if self.take("^"):
            number = self.here.word
            if not (number.isdecimal() and len(number) <= _MOST_DIGITS and int(number) > 0):
                raise self.unexpected(
                    f"a number from 1 to 999999999 after {type_}^",
                    f"write {type_}^2 for two events or more",
                )
            repeats, least = True, int(self.next().word)
        elif self.take("+"):
            repeats = True
        variable = default_variable(type_)
        if self.here.kind is TokenKind.NAME and self.here.word not in KEYWORDS:
            variable = self.next().text
        self._add(Component(type_, variable, repeats, negated, least, at=at), least)

    # --- WHERE: strategies, tests and conditions, joined by AND

    def where(self) -> _Where:
        """Read all of WHERE, after the word."""
        self._found = found = _Where()
        positive = [part for part in self._declared if not part.negated]
        plain = self._plain_strategy()
        if plain is not None:
            found.strategies = dict.fromkeys((part.variable for part in positive), plain)
            if not self.take("AND"):
                return found
        while True:
            if self._at_strategy():
                self._strategy()
                if self.here.word == "OR":
                    raise self.unexpected(
                        "AND after a strategy", "join a strategy to conditions with AND, not OR"
                    )
                if not self.take("AND"):
                    break
            elif not self._conjunction():
                break
        for part in positive if found.strategies else ():
            if part.variable not in found.strategies:
                what = f"{part.variable!r} has no strategy, though other variables have one"
                raise self.failure(part.at, what, "name every variable in a strategy, or none")
        return found

    def _plain_strategy(self) -> Strategy | None:
        """Read a strategy for all variables: ``skip-till-next-match`` or with underscores."""
        if self.here.word in _STRATEGIES and self.ahead().word != "(":
            return _STRATEGIES[self.next().word]
        for name, strategy in _STRATEGIES.items():
            if self.take_all(*name.replace("_", " - ").split()):
                return strategy
        return None

    def _at_strategy(self) -> bool:
        return self.here.word in _STRATEGIES and self.ahead().word == "("

    def _strategy(self) -> None:
        strategy = _STRATEGIES[self.next().word]
        hint = f"write {strategy.value}(a, b[]) {{ conditions }}"
        self.next()
        self.listed(lambda: self._strategy_of(strategy, hint))
        self.need(")", "separate variables by commas")
        self.need("{", hint)
        if self.take("}"):
            return
        self.listed(self._conjunction)
        self.need("}", "join conditions with AND and close the braces")

    def _strategy_of(self, strategy: Strategy, hint: str) -> None:
        self.take("~", "!")
        token = self.name("a variable", hint)
        written, strategies = self.written(token), self._found.strategies
        if self.take("["):
            self.need("]", f"write {written}[]")
        part = self._by_name.get(token.text)
        if part is None:
            what = f"{strategy.value} names {written!r}, which is not in PATTERN"
            hint = f"the variables are {', '.join(map(repr, self._by_name))}"
            raise self.failure(token.start, what, hint)
        if part.negated:
            return
        if token.text in strategies:
            what = f"{written!r} has two strategies"
            raise self.failure(token.start, what, "name it in one of them")
        strategies[token.text] = strategy

    def _conjunction(self) -> bool:
        """
        Read conditions and tests joined by AND; an OR applies to all of them and what
        follows.
        """
        group: list[Tree] = []
        has_test = False
        while True:
            if self.here.word == "[":
                has_test = True
                self._test()
            else:
                group.append(self.factor())
            joined = self.take("AND")
            if not joined or self._at_strategy():
                break
        if self.here.word == "OR":
            if has_test:
                what = "an equivalence test joined by OR"
                hint = "put the operands of OR in parentheses: [a] AND (b.x = 1 OR c.x = 1)"
                raise self.failure(self.here.start, what, hint)
            self.next()
            left = group[0] if len(group) == 1 else made("and", *group)
            group = [made("or", left, self.expression())]
        self._found.conditions += group
        return joined is not None

    def _test(self) -> None:
        hint = "write [attribute] or [attribute = literal]"
        self.next()
        self.listed(lambda: self._tested(self.name("an attribute", hint)))
        self.need("]", hint)

    def _tested(self, named: Token) -> None:
        attribute = named.text
        if is_computed(attribute) or self.here.word == ".":
            raise self.failure(
                named.start,
                f"expected a column in a test, got {self.written(named)}{self.written(self.here)}",
                "add a column of a plain name for it, or write a condition: b.x.y = a.x.y",
            )
        if self.take("=", "=="):
            self._found.constants.append((attribute, self.literal()))
        else:
            self._found.same.append(attribute)

    # --- windows: WITHIN, and SLIDE with GROUP BY and the aggregates of RETURN

    def within(self) -> tuple[int | None, int | None]:
        """Read what follows WITHIN: a window in milliseconds, or in events."""
        number = self._length("WITHIN")
        if not self.take("EVENTS", "EVENT"):
            return self._milliseconds(number, "WITHIN"), None
        if not (number.text.isdigit() and 0 < int(number.text) < 1 << 53):
            what = f"WITHIN {number.text} EVENTS is out of range"
            hint = "write how many events, from the first event of a match to its last"
            raise self.failure(number.start, what, hint)
        return None, int(number.text)

    def totals(self, window: int | None) -> Totals:
        """Read what follows SLIDE, to the end."""
        number = self._length("SLIDE")
        if window is None:
            hint = "write WITHIN 10 minutes SLIDE 5 minutes"
            raise self.failure(number.start, "SLIDE after a window of events", hint)
        slide = self._milliseconds(number, "SLIDE")
        if slide > window:
            what = "SLIDE is longer than WITHIN, so events between windows would be in none"
            raise self.failure(number.start, what, "write a slide that is at most the window")
        if window > slide * MOST_WINDOWS:
            raise self.failure(
                number.start,
                f"expected at most {MOST_WINDOWS} windows at a time, got {-(-window // slide)}, "
                "each with a copy of its events",
                "write a longer slide",
            )
        groups: list[str] = []
        if self.take("GROUP"):
            hint = "write GROUP BY attribute"
            self.need("BY", hint)
            groups = self.listed(lambda: self.name("an attribute", hint).text)
        if self.here.word == "HAVING":
            raise self.unexpected(
                "RETURN with aggregates", "leave HAVING out: filter the rows of windows"
            )
        aggregates = self.aggregates() if self.take("RETURN") else ()
        return Totals(slide, tuple(dict.fromkeys(groups)), aggregates)

    def aggregates(self) -> tuple[str, ...]:
        """Read aggregates over all matches, to the end."""
        found = self._named_once(self._aggregate)
        self.expect_end(_AGGREGATE)
        return tuple(text for text, _ in found)

    def _named_once(
        self, read: Callable[[], tuple[_T, str]], reserved: Iterable[str] = ()
    ) -> list[tuple[_T, str]]:
        """Read columns of RETURN, each with a name of its own."""
        taken = set(reserved)

        def column() -> tuple[_T, str]:
            at = self.here.start
            found, name = read()
            if name in taken:
                what = f"two columns of RETURN are named {name!r}"
                raise self.failure(at, what, "name one of them with AS")
            taken.add(name)
            return found, name

        return self.listed(column)

    def _aggregate(self) -> tuple[str, str]:
        """Return the text of an aggregate, and its name."""
        function, name = self.here, self.here.word.lower()
        if name not in TOTALS or self.ahead().word != "(":
            raise self.unexpected("an aggregate over all matches of a window", _AGGREGATE)
        self.next()
        self.next()
        over = "*" if self.take("*") else self._totalled()
        if name != "count" and "." not in over:
            what = f"{function.text}({over}) needs an attribute"
            raise self.failure(function.start, what, _AGGREGATE)
        self.need(")", _AGGREGATE)
        text = f"{name}({over})"
        if not self.take("AS"):
            return text, text
        name = self.name("a column name", "write count(*) AS name").text
        return f"{text} AS {written_name(name)}", name

    def _totalled(self) -> str:
        variable = self.name("a variable", _AGGREGATE)
        written = self.written(variable)
        known = [part.variable for part in self._declared if not part.negated]
        if variable.text not in known:
            what = f"expected a variable that takes events, got {written!r}"
            hint = f"the variables are {', '.join(map(repr, known))}"
            raise self.failure(variable.start, what, hint)
        over = written_name(variable.text)
        if self.take("["):
            self.need("]", f"an aggregate is over all events: {written}[]")
            over += "[]"
        if self.take("."):
            over += f".{written_name(self.name('an attribute', _AGGREGATE).text)}"
        return over

    def _length(self, clause: str) -> Token:
        if self.here.kind is not TokenKind.NUMBER:
            raise self.unexpected(f"a number after {clause}", f"write {clause} 10 minutes")
        return self.next()

    def _milliseconds(self, number: Token, clause: str) -> int:
        factor = 1
        if self.here.kind is TokenKind.NAME and self.here.word not in _NO_UNITS:
            unit = self.here.word.lower()
            if unit not in UNITS_MS and unit.endswith("s"):
                unit = unit[:-1]
            if unit not in UNITS_MS:
                raise self.unexpected(
                    "a unit of time",
                    "the units are ms, s, m, h, d, seconds, minutes, hours, days, and EVENTS",
                )
            factor = UNITS_MS[unit]
            self.next()
        milliseconds = float(number.text) * factor
        if not 1 <= milliseconds < 1 << 53:
            what = f"{clause} {number.text} is out of range"
            hint = "a window is longer than 0 ms and shorter than 285,000 years"
            raise self.failure(number.start, what, hint)
        return int(milliseconds)

    # --- all clauses

    def query(self) -> Query:
        source = self.name("a table", "write FROM table").text if self.take("FROM") else None
        query = self._one()
        while query.event is not None and self.take("THEN"):
            query = attrs.evolve(self._one(), before=query)
        self.expect_end(_CLAUSES.get(self.here.word, SHAPE))
        return query if source is None else attrs.evolve(query, source=source)

    def _one(self) -> Query:
        """Read a query up to THEN or the end."""
        self.need("PATTERN", SHAPE)
        form, components, shape = self.pattern()
        self._declare(components)
        self.on_matches = False
        where = self.where() if self.take("WHERE") else _Where()
        strategies = where.strategies
        within = self.take("WITHIN") is not None
        window, most_events = self.within() if within else (None, None)
        totals = self.totals(window) if within and self.take("SLIDE") else None
        having, event, columns = None, None, None
        if totals is None:
            self.on_matches = True
            having = self.expression() if self.take("HAVING") else None
            if self.take("RETURN"):
                event, columns = self._returned()
        query = Query(
            form,
            components,
            tuple((name, strategies[name]) for name in self._by_name if name in strategies),
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
        check_query(query, self.failure)
        return query

    def _returned(self) -> tuple[str | None, tuple[Column, ...]]:
        """Read RETURN: the type of the events that matches become, if any, and the columns."""
        follows = self.ahead()
        is_type = follows.kind in (TokenKind.NAME, TokenKind.STRING) and follows.word != "AS"
        if self.here.word != "EVENT" or not is_type:
            return None, self.columns()
        self.next()
        type_ = self.type(_CHAIN)
        self.need("(", _CHAIN)
        columns = self.columns(_OF_EVENTS)
        self.need(")", _CHAIN)
        return type_, columns

    def columns(self, reserved: Iterable[str] = ()) -> tuple[Column, ...]:
        """Read columns of RETURN."""
        self.on_matches = True
        numbers = count(1)
        found = self._named_once(lambda: self._column(next(numbers)), reserved)
        return tuple(column for column, _ in found)

    def _column(self, number: int) -> tuple[Column, str]:
        value = self.value()
        given = self.take("AS") is not None
        name = _name_of(value, number)
        if given:
            name = self.name("a column name", "write value AS name").text
        return Column(value, name, given), name


def _sequence(parts: list[Shape]) -> Shape:
    """Return parts one after another; those of a sequence inside stand on their own."""
    flat: list[Shape] = []
    for part in parts:
        flat += part.parts if isinstance(part, Sequence) else (part,)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def parsed(text: str) -> Query:
    """Parse the text of a query."""
    return _QueryReader(text).query()


def parsed_condition(text: str, query: Query) -> Query:
    """Return a query with one more condition; see :func:`parsed`."""
    reader = _QueryReader(text, query.components)
    condition = reader.expression()
    reader.expect_end("write one condition; join several with AND or OR")
    query = attrs.evolve(query, conditions=(*query.conditions, condition))
    check_query(query, reader.failure)
    return query


def parsed_columns(text: str, query: Query) -> Query:
    """Return a query with other columns; see :func:`parsed`."""
    reader = _QueryReader(text, query.components)
    if query.totals is not None:
        totals = attrs.evolve(query.totals, aggregates=reader.aggregates())
        return attrs.evolve(query, totals=totals)
    columns = reader.columns(() if query.event is None else _OF_EVENTS)
    reader.expect_end("write a value, or value AS name")
    query = attrs.evolve(query, columns=columns)
    check_query(query, reader.failure)
    return query


def _name_of(value: Tree, number: int) -> str:
    if not isinstance(value, tree.Column) or value.index is not None:
        return f"_{number}"
    if value.attribute is None:
        return value.text or value.variable
    if is_computed(value.attribute):
        words = [word for name in path_names(value) for word in re.findall(r"\w+", name)]
        return "_".join(words) or f"_{number}"
    return f"{value.variable}_{value.attribute}"
