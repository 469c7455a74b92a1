# SPDX-License-Identifier: Apache-2.0
"""Reads the values of a query: literals, references, functions and calculations."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import reduce

from pyflinkcep.errors import InvalidArgumentError, counted
from pyflinkcep.expressions.literals import MOST
from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import (
    AGGREGATES,
    ALIASES,
    FUNCTIONS,
    Aggregate,
    Column,
    Literal,
    Operation,
    Span,
    Tree,
    leaves,
)
from pyflinkcep.sase.computed import computed, read_call
from pyflinkcep.sase.cursor import Cursor
from pyflinkcep.sase.model import Component
from pyflinkcep.sase.moments import read_interval, read_moment
from pyflinkcep.sase.references import ReferenceReader
from pyflinkcep.sase.tokens import KEYWORDS, NAME, NUMBER, TEXT, Token, text_value
from pyflinkcep.sase.tree import ALL, BEFORE

__all__ = ["ValueReader", "made"]

_MOST_DEPTH = 100
_MOST_ARGUMENTS = 50
_FUNCTIONS = {
    **FUNCTIONS, "abs": (1, 1), "coalesce": (1, _MOST_ARGUMENTS), "ifnull": (2, 2), "nvl": (2, 2),
    "greatest": (2, _MOST_ARGUMENTS), "least": (2, _MOST_ARGUMENTS), "if": (3, 3), "nullif": (2, 2),
    "concat": (1, _MOST_ARGUMENTS), "datediff": (2, 2),
}  # fmt: skip
"""The functions of values of several events, with the least and most arguments of each."""

_OF_EVENTS = ("||", "case")
_CASE_WORDS = ("when", "then", "else", "end")


class ValueReader(ReferenceReader):
    """
    Reads values from a cursor.

    Parameters
    ----------
    cursor, components
        See :class:`ReferenceReader`.

    Attributes
    ----------
    on_matches : bool
        Whether values are computed of matches, where SQL sees no single event.
    """

    def __init__(self, cursor: Cursor, components: tuple[Component, ...]) -> None:
        super().__init__(cursor, components)
        self._depth = 0
        self.on_matches = False

    @abstractmethod
    def condition(self) -> Tree:
        """Read a condition."""

    def _deeper(self, read: Callable[[], Tree]) -> Tree:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise self._cursor.unexpected(
                f"at most {_MOST_DEPTH} nested parentheses, signs and NOTs",
                "simplify the condition",
            )
        inner = read()
        self._depth -= 1
        return inner

    def value(self) -> Tree:
        """Read a value."""
        return self._binary(("+", "-", "||"), lambda: self._binary(("*", "/", "%"), self._signed))

    def _binary(self, signs: tuple[str, ...], part: Callable[[], Tree]) -> Tree:
        left = part()
        while (sign := self._cursor.take(*signs)) is not None:
            left = self._of_event(made(sign.text, left, part()))
        return left

    def _signed(self) -> Tree:
        if not self._cursor.take("-"):
            return self._primary()
        operand = self._deeper(self._signed)
        if isinstance(operand, Literal) and not operand.text.startswith("-"):
            value = operand.value
            if isinstance(value, int | float):
                return Literal(-value, f"-{operand.text}", operand.span)
        return made("neg", operand)

    def _primary(self) -> Tree:
        cursor = self._cursor
        token = cursor.here
        if token.kind == NUMBER:
            return self._number()
        if token.kind == TEXT:
            cursor.next()
            return Literal(text_value(token), token.text, cursor.span(token.at))
        if cursor.take("("):
            inner = self._deeper(self.value)
            cursor.need(")", "close the parenthesis")
            return inner
        if cursor.take("null"):
            return Literal(None, "NULL", cursor.span(token.at))
        if token.word in ("date", "timestamp") and cursor.ahead().kind == TEXT:
            return read_moment(cursor, cursor.next())
        if token.word == "interval" and (
            cursor.ahead().kind in (TEXT, NUMBER) or cursor.ahead().text in ("+", "-")
        ):
            return read_interval(cursor, cursor.next())
        if token.text not in self._by_name and cursor.ahead().text not in (".", "["):
            if cursor.take("true", "false"):
                return Literal(token.word == "true", token.word.upper(), cursor.span(token.at))
            if cursor.take("case"):
                return self._of_event(self._case(token))
        name = cursor.name("a value", "a value is a number, a 'text', NULL or variable.attribute")
        if cursor.here.text == "(" and name.word in AGGREGATES:
            cursor.next()
            over = self._aggregated()
            if cursor.here.text == "(":
                raise cursor.unexpected("')'", "an aggregate is over one variable: avg(a[].x)")
            cursor.need(")", "an aggregate is over one variable: avg(a[].x)")
            return self._function(name, over)
        if cursor.here.text == "(" and name.name not in self._by_name:
            called = self._function_of(ALIASES.get(name.word, name.word), name)
            return self._call(name) if called is None else called
        found = self._rest_of_reference(name)
        if found.attribute == "LEN":
            return Aggregate("count", found.variable, None, span=found.span)
        return found

    def _call(self, name: Token) -> Column:
        """Read the rest of a call to a SQL function of one event."""
        return read_call(self._cursor, name, self._by_name, lambda: self._reference("a variable"))

    def _aggregated(self) -> Column:
        """Read what an aggregate is over: an attribute, or a function of one event."""
        name = self._cursor.here
        is_call = name.kind == NAME and name.name not in self._by_name
        if is_call and name.word not in AGGREGATES and self._cursor.ahead().text == "(":
            self._cursor.next()
            return self._call(name)
        return self._reference("a variable")

    def _case(self, begin: Token) -> Operation:
        """Read the rest of CASE."""
        cursor, parts = self._cursor, list[Tree]()
        subject = None if cursor.here.word == "when" else self.value()
        while cursor.take("when"):
            if subject is None:
                condition = self._deeper(self.condition)
            else:
                condition = made("=", subject, self.value())
            cursor.need("then", "write CASE WHEN condition THEN value ELSE value END")
            parts += [condition, self._deeper(self.value)]
        if not parts:
            raise cursor.unexpected("WHEN", "write CASE WHEN condition THEN value ELSE value END")
        if cursor.take("else"):
            parts.append(self._deeper(self.value))
        cursor.need("end", "close CASE with END")
        return Operation("case", tuple(parts), span=cursor.span(begin.at))

    def _of_event(self, made: Operation) -> Tree:
        """Return a text or a choice; of one event it is computed by SQL, as functions of it are."""
        if made.operator not in _OF_EVENTS or self.on_matches:
            return made
        found = list(leaves(made))
        if (
            not all(isinstance(leaf, Column) and leaf.sql for leaf in found)
            or len({(leaf.over.variable, leaf.over.index) for leaf in found}) != 1
        ):
            return made
        return computed(made, found[0].over, f"({shown(made)})", made.span)

    def _function_of(self, function: str, name: Token) -> Tree | None:
        """Read a function of values of several events; None of one event, which SQL computes."""
        if function not in _FUNCTIONS:
            return None
        cursor, (least, most) = self._cursor, _FUNCTIONS[function]
        start = cursor.mark()
        try:
            cursor.next()
            operands = [self.condition() if function == "if" else self.value()]
            while cursor.take(","):
                operands.append(self.value())
            cursor.need(")", f"close the parenthesis of {name.text}(")
        except InvalidArgumentError:
            cursor.turn_to(start)
            return None
        found = [leaf for operand in operands for leaf in leaves(operand)]
        events = {(leaf.over.variable, leaf.over.index) for leaf in found}
        is_one = len(events) == 1 and all(isinstance(leaf, Column) for leaf in found)
        if not events or (is_one and not self.on_matches):
            cursor.turn_to(start)
            return None
        if not least <= len(operands) <= most:
            raise cursor.failure(
                name.at,
                f"{name.text}(…) has {counted(len(operands), 'argument')}",
                "see Spark's documentation of the function",
            )
        span = cursor.span(name.at)
        if function == "concat":
            return reduce(lambda a, b: self._of_event(Operation("||", (a, b), span=span)), operands)
        return _called(function, tuple(operands), span)

    def _number(self) -> Literal:
        cursor = self._cursor
        token = cursor.next()
        written = token.text
        value: int | float = float(written)
        if written.isdigit() and abs(value) <= MOST:
            value = int(written)
        if abs(value) > MOST and (written.isdigit() or value == math.inf):
            raise cursor.failure(
                token.at, f"the number {written} is too large", "whole numbers have 64 bits"
            )
        if cursor.here.text == "%" and not _begins_operand(cursor):
            cursor.next()
            return Literal(value / 100, f"{written}%", cursor.span(token.at))
        return Literal(value, written, cursor.span(token.at))

    def literal(self) -> Literal:
        """Read a literal."""
        at = self._cursor.here
        value = self._signed()
        if not isinstance(value, Literal) or value.value is None:
            raise self._cursor.failure(
                at.at, f"expected a literal, got {at.text!r}", "write a number, a 'text' or TRUE"
            )
        return value

    def _function(self, called: Token, over: Column) -> Aggregate:
        name = called.word
        shown = f"{over.variable}[{over.index}]"
        if over.index not in (None, ALL, BEFORE):
            raise self._cursor.failure(
                over.at,
                f"{name}({shown}) is over one event, expected {over.variable}[] or "
                f"{over.variable}[..i-1]",
                f"leave out the aggregate: {shown} is one event",
            )
        if over.attribute is None and name != "count":
            raise self._cursor.failure(
                over.at,
                f"{name}({over.variable}) needs an attribute",
                f"write {name}({over.variable}[].attribute); only count goes without",
            )
        text = f"{name}({over.text})" if over.sql and over.text else ""
        span = self._cursor.span(over.at)
        return Aggregate(
            name, over.variable, over.sql, text, index=over.index or ALL, span=span,
            computed=over.computed,
        )  # fmt: skip


def _begins_operand(cursor: Cursor) -> bool:
    """Whether an operand follows the percent sign, so that it is a remainder."""
    token = cursor.ahead()
    if token.kind == NAME and token.word in _CASE_WORDS:
        return cursor.ahead(2).text in (".", "[")
    if token.kind == NAME:
        return token.word not in KEYWORDS or token.word == "null"
    return token.kind in (NUMBER, TEXT) or token.text == "("


def _called(function: str, operands: tuple[Tree, ...], span: Span) -> Operation:
    """Return a call to a function as an operation that every evaluation has."""
    if function in ("ifnull", "nvl"):
        return Operation("coalesce", operands, span=span)
    if function == "if":
        return Operation("case", operands, span=span)
    if function == "nullif":
        value, other = operands
        same = Operation("=", operands, span=span)
        return Operation("case", (same, Literal(None, "NULL", other.span), value), span=span)
    return Operation(function, operands, span=span)


def made(operator: str, *operands: Tree) -> Operation:
    """Return an operation on operands that stand beside each other in the text."""
    return Operation(operator, operands, span=(operands[0].span[0], operands[-1].span[1]))
