# SPDX-License-Identifier: Apache-2.0
"""Reads the conditions of a query."""

from __future__ import annotations

from collections.abc import Callable

from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import CONDITIONS, Aggregate, Column, Literal, Operation, Tree
from pyflinkcep.sase.computed import LIKES, like
from pyflinkcep.sase.tokens import NAME, NUMBER, OPERATOR, TEXT
from pyflinkcep.sase.values import ValueReader, made

__all__ = ["ConditionReader"]

_COMPARISONS = {
    "=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_CONDITION_WORDS = ("and", "or", "not", "is", "in", "between", *LIKES)
_OF_ONE = ("first", "last", "min", "max")
_CHOICES = ("case", "coalesce", "greatest", "least")


class ConditionReader(ValueReader):
    """Reads conditions and values from a cursor; see :class:`ValueReader`."""

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

    def _holds_condition(self) -> bool:
        """Whether the parenthesis that opens here holds a condition, not a number."""
        depth = ahead = cases = 0
        while True:
            token = self._cursor.ahead(ahead)
            ahead += 1
            if token.kind == OPERATOR:
                depth += (token.text == "(") - (token.text == ")")
                if token.text in _COMPARISONS and not cases:
                    return True
            elif token.word in ("case", "end") and self._cursor.ahead(ahead).text not in (".", "["):
                cases = max(0, cases + (1 if token.word == "case" else -1))
            elif token.kind == NAME and token.word in _CONDITION_WORDS and not cases:
                return True
            if depth == 0 or token.kind not in (OPERATOR, NAME, NUMBER, TEXT):
                return False

    def _comparison(self) -> Tree:
        cursor = self._cursor
        left = self.value()
        if cursor.take("is"):
            return self._is(left)
        operator = cursor.take(*_COMPARISONS)
        is_condition = isinstance(left, Operation) and left.operator in CONDITIONS
        if operator is not None and is_condition:
            raise cursor.failure(
                operator.at, f"{shown(left)} is a condition", "write it alone, or NOT before it"
            )
        if operator is not None:
            return made(_COMPARISONS[operator.text], left, self.value())
        if is_condition:
            return left
        negated = cursor.take("not") is not None
        if not negated and cursor.here.word not in ("in", "between", *LIKES) and _may_be_true(left):
            return _is_true(left)
        test = self._sql_test(left)
        return made("not", test) if negated else test

    def _is(self, left: Tree) -> Tree:
        """Read what follows IS; NULL IS TRUE is false, not NULL."""
        cursor = self._cursor
        negated = cursor.take("not") is not None
        truth = cursor.take("true", "false")
        if truth is None:
            cursor.need("null", "write IS NULL, IS TRUE or IS FALSE, or IS NOT …")
            return made("is not null" if negated else "is null", left)
        literal = Literal(truth.word == "true", truth.word.upper(), cursor.span(truth.at))
        if negated:
            return made("or", made("is null", left), made("<>", left, literal))
        return made("and", made("is not null", left), made("=", left, literal))

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


def _may_be_true(value: Tree) -> bool:
    """Whether a value may be a boolean, and so a condition by itself."""
    if isinstance(value, Literal):
        return isinstance(value.value, bool)
    if isinstance(value, Column):
        return value.sql is not None
    if isinstance(value, Aggregate):
        return value.function in _OF_ONE
    return isinstance(value, Operation) and value.operator in _CHOICES


def _is_true(value: Tree) -> Operation:
    operands = value, Literal(True, "TRUE", value.span)
    return Operation("=", operands, shown(value), value.span)
