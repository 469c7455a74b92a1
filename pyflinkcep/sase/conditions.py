# SPDX-License-Identifier: Apache-2.0
"""Reads the conditions and values of a query."""

from __future__ import annotations

import math
from collections.abc import Callable

from pyflinkcep.errors import InvalidArgumentError, counted
from pyflinkcep.expressions.tree import (
    AGGREGATES,
    ALIASES,
    CONDITIONS,
    FUNCTIONS,
    Aggregate,
    Column,
    Literal,
    Operation,
    Tree,
    leaves,
)
from pyflinkcep.sase.computed import LIKES, column_sql, like, read_call
from pyflinkcep.sase.cursor import Cursor
from pyflinkcep.sase.model import Component
from pyflinkcep.sase.tokens import KEYWORDS, NAME, NUMBER, OPERATOR, TEXT, Token, text_value
from pyflinkcep.sase.tree import (
    ALL,
    BEFORE,
    CURRENT,
    FIRST,
    LAST,
    PREVIOUS,
)

__all__ = ["ConditionReader", "made"]

_COMPARISONS = {
    "=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_CONDITION_WORDS = ("and", "or", "not", "is", "in", "between", *LIKES)
_INDEXES = "write [1], [i], [i-1], [LEN] or []; aggregates take [..i-1] too"
_MOST_DEPTH = 100


class ConditionReader:
    """
    Reads conditions and values from a cursor.

    Parameters
    ----------
    cursor : Cursor
        Where to read.
    components : tuple of Component
        The components that names refer to.

    Attributes
    ----------
    on_matches : bool
        Whether values are computed of matches, where SQL sees no single event.
    """

    def __init__(self, cursor: Cursor, components: tuple[Component, ...]) -> None:
        self._cursor = cursor
        self._components = components
        self._by_name = {part.variable: part for part in components}
        self._depth = 0
        self.on_matches = False

    def condition(self) -> Tree:
        """Read a condition: AND binds before OR."""
        return self._joined("or", lambda: self._joined("and", self.factor))

    def _joined(self, word: str, part: Callable[[], Tree]) -> Tree:
        operands = [part()]
        while self._cursor.take(word):
            operands.append(part())
        return operands[0] if len(operands) == 1 else made(word, *operands)

    def factor(self) -> Tree:
        """Read a condition without AND or OR, except in parentheses."""
        cursor = self._cursor
        if cursor.take("not"):
            return made("not", self._deeper(self.factor))
        if cursor.here.word == "(" and self._holds_condition():
            cursor.next()
            inner = self._deeper(self.condition)
            cursor.need(")", "close the parenthesis")
            return inner
        return self._comparison()

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

    def _holds_condition(self) -> bool:
        """Whether the parenthesis that opens here holds a condition, not a number."""
        depth = ahead = 0
        while True:
            token = self._cursor.ahead(ahead)
            ahead += 1
            if token.kind == OPERATOR:
                depth += (token.text == "(") - (token.text == ")")
                if token.text in _COMPARISONS:
                    return True
            elif token.kind == NAME and token.word in _CONDITION_WORDS:
                return True
            if depth == 0 or token.kind not in (OPERATOR, NAME, NUMBER, TEXT):
                return False

    def _comparison(self) -> Tree:
        cursor = self._cursor
        left = self.value()
        if cursor.take("is"):
            negated = cursor.take("not") is not None
            cursor.need("null", "write IS NULL or IS NOT NULL")
            return made("is not null" if negated else "is null", left)
        operator = cursor.take(*_COMPARISONS)
        if operator is not None:
            return made(_COMPARISONS[operator.text], left, self.value())
        if isinstance(left, Operation) and left.operator in CONDITIONS:
            return left
        negated = cursor.take("not") is not None
        test = self._sql_test(left)
        return made("not", test) if negated else test

    def _sql_test(self, left: Tree) -> Tree:
        """Read IN, BETWEEN or LIKE; return it as comparisons."""
        cursor = self._cursor
        if (operator := cursor.take(*LIKES)) is not None:
            return like(cursor, left, operator)
        if cursor.take("between"):
            low = made(">=", left, self.value())
            cursor.need("and", "write BETWEEN low AND high")
            return made("and", low, made("<=", left, self.value()))
        if not cursor.take("in"):
            raise cursor.unexpected(
                "a comparison", "compare the value: = <> < <= > >=, IN, BETWEEN, LIKE or IS NULL"
            )
        cursor.need("(", "write IN (1, 2)")
        tests = [made("=", left, self.value())]
        while cursor.take(","):
            tests.append(made("=", left, self.value()))
        cursor.need(")", "close the parenthesis of IN (")
        return tests[0] if len(tests) == 1 else made("or", *tests)

    # --- values

    def value(self) -> Tree:
        """Read a value."""
        return self._binary(("+", "-"), lambda: self._binary(("*", "/", "%"), self._signed))

    def _binary(self, signs: tuple[str, ...], part: Callable[[], Tree]) -> Tree:
        left = part()
        while (sign := self._cursor.take(*signs)) is not None:
            left = made(sign.text, left, part())
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
        name = cursor.name("a value", "a value is a number, a 'text', NULL or variable.attribute")
        if cursor.here.text == "(" and name.word in AGGREGATES:
            cursor.next()
            over = self._reference("a variable")
            if cursor.here.text == "(":
                raise cursor.unexpected("')'", "an aggregate is over one variable: avg(a[].x)")
            cursor.need(")", "an aggregate is over one variable: avg(a[].x)")
            return self._function(name, over)
        if cursor.here.text == "(" and name.name not in self._by_name:
            called = self._function_of(ALIASES.get(name.word, name.word), name)
            if called is not None:
                return called
            return read_call(cursor, name, self._by_name, lambda: self._reference("a variable"))
        found = self._rest_of_reference(name)
        if found.attribute == "LEN":
            return Aggregate("count", found.variable, None, span=found.span)
        return found

    def _function_of(self, function: str, name: Token) -> Operation | None:
        """Read a function of values of several events; None of one event, which SQL computes."""
        if function not in FUNCTIONS:
            return None
        cursor, (least, most) = self._cursor, FUNCTIONS[function]
        start = cursor.mark()
        try:
            cursor.next()
            operands = [self.value()]
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
        return Operation(function, tuple(operands), span=cursor.span(name.at))

    def _number(self) -> Literal:
        cursor = self._cursor
        token = cursor.next()
        written = token.text
        value: int | float = float(written)
        if written.isdigit() and abs(value) < 1 << 63:
            value = int(written)
        if abs(value) >= 1 << 63 and (written.isdigit() or value == math.inf):
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
                at.at, f"expected a literal, got {at.text!r}", "write a number or a 'text'"
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
        return Aggregate(
            name, over.variable, over.sql, index=over.index or ALL, span=self._cursor.span(over.at)
        )

    # --- references

    def _reference(self, what: str) -> Column:
        name = self._cursor.name(what, "name a variable of PATTERN")
        return self._rest_of_reference(name)

    def _rest_of_reference(self, token: Token) -> Column:
        cursor, name = self._cursor, token.name
        part, shown = self._by_name.get(name), ""
        if part is None and cursor.here.text not in (".", "["):
            part, shown = next((p for p in self._components if p.type == name), None), token.text
        if part is None:
            raise self._unknown(name, token.at)
        index = self._index(part) if cursor.here.text == "[" else None
        if not cursor.take("."):
            return Column(None, part.variable, index, shown, cursor.span(token.at))
        attribute = cursor.name("an attribute", f"write {token.text}.attribute")
        if attribute.word == "len" and index is None and part.repeats:
            sql = column_sql("LEN")
        else:
            sql = column_sql(attribute.name)
        return Column(sql, part.variable, index, shown, cursor.span(token.at))

    def _unknown(self, name: str, at: int) -> InvalidArgumentError:
        known = ", ".join(map(repr, self._by_name))
        return self._cursor.failure(
            at, f"expected a variable of PATTERN, got {name!r}", f"the variables are {known}"
        )

    def _index(self, part: Component) -> str:
        cursor, variable = self._cursor, part.variable
        opened = cursor.next()
        index = self._index_inside(part)
        if index is None:
            token = cursor.here
            raise cursor.failure(
                token.at, f"expected an index, got {variable}[{token.text}]", _INDEXES
            )
        cursor.need("]", _INDEXES)
        if not part.repeats:
            raise cursor.failure(
                opened.at,
                f"{variable!r} does not repeat, so it has no [{index}]",
                f"write {variable}.attribute, or {part.type}+ {variable}[] in PATTERN",
            )
        return index

    def _index_inside(self, part: Component) -> str | None:
        cursor = self._cursor
        if cursor.here.text == "]":
            return ALL
        if cursor.take(".."):
            cursor.need("i", _INDEXES)
            cursor.need("-", _INDEXES)
            cursor.need("1", _INDEXES)
            return BEFORE
        if cursor.take("1"):
            return FIRST
        if cursor.take("len"):
            return LAST
        if cursor.ahead().text == "." and cursor.take(part.variable.lower()):
            cursor.next()
            cursor.need("len", _INDEXES)
            return LAST
        if not cursor.take("i"):
            return None
        if not cursor.take("-"):
            return CURRENT
        cursor.need("1", _INDEXES)
        return PREVIOUS


def _begins_operand(cursor: Cursor) -> bool:
    """Whether an operand follows the percent sign, so that it is a remainder."""
    token = cursor.ahead()
    if token.kind == NAME:
        return token.word not in KEYWORDS or token.word == "null"
    return token.kind in (NUMBER, TEXT) or token.text == "("


def made(operator: str, *operands: Tree) -> Operation:
    """Return an operation on operands that stand beside each other in the text."""
    return Operation(operator, operands, span=(operands[0].span[0], operands[-1].span[1]))
