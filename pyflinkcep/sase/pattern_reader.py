# SPDX-License-Identifier: Apache-2.0
"""Reads the pattern of a query: its components, and how they follow one another."""

from __future__ import annotations

import attrs

from pyflinkcep.sase.cursor import Cursor
from pyflinkcep.sase.model import Component, Form, default_variable
from pyflinkcep.sase.shapes import (
    AnyOrder,
    Choice,
    One,
    Optional,
    Repeated,
    Sequence,
    Shape,
    ones,
)
from pyflinkcep.sase.tokens import KEYWORDS, NAME

__all__ = ["SHAPE", "PatternReader"]

SHAPE = "write PATTERN SEQ(A a, B+ b[]) or PATTERN A;B^2;C, then WHERE, WITHIN, HAVING, RETURN"
_COMPONENT = "a component is a type and a variable: Stock a"
_NEGATED = "negate a component, ~(B b), or a sequence of single ones, ~(SEQ(B b, C c))"
_COUNTS = "write {2}, {2,} or {2,5}"
_MOST_DEPTH = 50
_MOST_DIGITS = 9


@attrs.define(eq=False)
class PatternReader:
    """
    Reads PATTERN, after the word.

    Attributes
    ----------
    components : list of Component
        The components, in the order of the text.
    """

    _cursor: Cursor
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
