# SPDX-License-Identifier: Apache-2.0
"""Reads the text of an EQL query."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from math import isinf
from typing import ClassVar

from pyflinkcep.eql.functions import FUNCTIONS, REFUSED
from pyflinkcep.eql.model import OPTIONAL, EqlModel, Field, Filter, Pipe, Step
from pyflinkcep.eql.tokens import eql_tokens, failure, string_value
from pyflinkcep.errors import CepError, did_you_mean
from pyflinkcep.expressions.numbers import LEAST, MOST
from pyflinkcep.expressions.tokens import ExpressionReader, Token, TokenKind
from pyflinkcep.expressions.tree import Call, Column, Literal, Operation, Tree, quoted_name

SHAPE = 'write process where name == "cmd.exe", or sequence by user [file where …] [any where …]'
TESTS = (":", "LIKE", "LIKE~", "REGEX", "REGEX~")
COMPARISONS = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MOST_RUNS, _MOST_DEPTH, _MOST_DIGITS = 100, 60, 15
_MOST_DAYS = timedelta.max.days
_MOST_MILLISECONDS = _MOST_DAYS * 86_400_000
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_SPAN = "write with maxspan=5m: a whole number and one of ms, s, m, h, d"


def parsed(text: str) -> EqlModel:
    """Read a query."""
    reader = _Reader(text, eql_tokens(text))
    try:
        return reader.query()
    except RecursionError:
        raise reader.too_deep() from None


class _Reader(ExpressionReader[Tree]):
    """Reads queries; conditions by the grammar of the language."""

    powers: ClassVar = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}

    def unexpected(self, wanted: str, hint: str = "") -> CepError:
        """Return the error for an unexpected token."""
        token = self.here
        got = "the end" if token.kind is TokenKind.END else repr(self.written(token))
        if token.word == "=":
            hint = "write == to compare"
        return self.failure(token, f"expected {wanted}, got {got}", hint or SHAPE)

    def failure(
        self, at: Token | tuple[int, int], what: str, hint: str, *, supported: bool = True
    ) -> CepError:
        """Return the error for a problem."""
        span = (at.start, at.end) if isinstance(at, Token) else at
        return failure(self.text, span, what, hint, supported=supported)

    def unsupported(self, at: Token, what: str, hint: str) -> CepError:
        """Return the error for a part of the language that is not supported."""
        return self.failure(at, f"{what} is not supported", hint, supported=False)

    def too_deep(self) -> CepError:
        """Return the error for a condition that is nested too deep."""
        hint = "write lists as in (…), or split the rule"
        return self.failure(self.here, f"nested more than {_MOST_DEPTH} deep", hint)

    def written(self, token: Token) -> str:
        """Return a token as it was written."""
        return self.text[token.start : token.end]

    # --- queries

    def query(self) -> EqlModel:
        """Read all of the text."""
        for word in ("SAMPLE", "JOIN"):
            if self.here.word == word:
                what = self.here.text
                raise self.unsupported(self.here, what, "write sequence by …")
        if self.take("SEQUENCE"):
            model = self._sequence()
        else:
            model = EqlModel((Step(self._filter(), ()),), False)
        pipes = []
        while self.take("|"):
            pipes.append(self._pipe())
        if self.here.kind is not TokenKind.END:
            raise self.unexpected("the end")
        return EqlModel(model.steps, model.is_sequence, model.until, model.maxspan, tuple(pipes))

    def _pipe(self) -> Pipe:
        token = self.here
        if token.text not in ("head", "tail"):
            if token.kind is not TokenKind.NAME:
                raise self.unexpected("head or tail")
            hint = "write | head 5 or | tail 5, and filter, sort and count the result"
            raise self.unsupported(token, f"the pipe {token.text}", hint)
        self.next()
        return Pipe(token.text == "head", self._whole(f"write | {token.text} 5"))

    def _whole(self, hint: str) -> int:
        if not (self.here.text.isdecimal() and len(self.here.text) <= _MOST_DIGITS):
            raise self.unexpected("a whole number", hint)
        return int(self.next().text)

    def _sequence(self) -> EqlModel:
        begin = self.here
        by, span = self._keys(), self._maxspan()
        steps: list[Step] = []
        while self.here.word in ("[", "!["):
            steps.append(self._step(by))
        until = None
        if self.take("UNTIL"):
            if self.here.word == "![":
                raise self.failure(self.here, "until of missing events", "write until [ … ]")
            until = self._step(by)
        self._check_steps(begin, steps, until, span)
        return EqlModel(tuple(steps), True, until, span)

    def _check_steps(
        self, begin: Token, steps: list[Step], until: Step | None, span: int | None
    ) -> None:
        if not steps:
            raise self.unexpected("[", SHAPE)
        if sum(step.runs for step in steps) < 2:
            what = "a sequence of one step"
            raise self.failure(begin, what, "write a second [ … ], or the condition alone")
        counts = {len(step.keys) for step in (*steps, *([until] if until else []))}
        if len(counts) > 1:
            what = f"steps with {' and '.join(map(str, sorted(counts)))} keys"
            raise self.failure(begin, what, "give each step, and until, as many keys after by")
        if all(step.is_missing for step in steps):
            raise self.failure(begin, "a sequence of missing events alone", "write one step as [")
        if any(step.is_missing for step in steps) and span is None:
            raise self.failure(begin, "missing events without a maxspan", _SPAN)

    def _maxspan(self) -> int | None:
        if not self.take("WITH"):
            return None
        self.need("MAXSPAN", _SPAN)
        self.need("=", _SPAN)
        number = self._whole(_SPAN)
        if self.here.text not in _UNITS or not number:
            raise self.unexpected("a unit" if number else "more than 0", _SPAN)
        milliseconds = number * _UNITS[self.here.text]
        if milliseconds > _MOST_MILLISECONDS:
            what = f"the maxspan {number}{self.here.text} is longer than any calendar"
            raise self.failure(self.here, what, f"write at most {_MOST_DAYS}d, or leave it out")
        self.next()
        return milliseconds

    def _keys(self) -> tuple[Field, ...]:
        return tuple(self.listed(self._key)) if self.take("BY") else ()

    def _key(self) -> Field:
        token = self.here
        if not (token.word == "?" or (token.kind is TokenKind.NAME and not token.word)):
            raise self.unexpected("a field", "keys are fields: by user, host.id")
        field = self._field()
        if self.here.word == "(":
            raise self.unexpected("a field", "keys are fields, never expressions")
        return Field.of(field)

    def _step(self, by: tuple[Field, ...]) -> Step:
        is_missing = self.next().word == "!["
        if self.here.word == "]":
            raise self.unexpected("a category and a condition")
        filter_ = self._filter()
        self.need("]", "close the step with ]")
        keys, runs = (*by, *self._keys()), 1
        if self.take("WITH"):
            hint = f"write with runs=3, from 1 to {_MOST_RUNS}"
            if self.here.text != "runs":
                raise self.unexpected("runs", hint)
            self.next()
            self.need("=", hint)
            at, runs = self.here, self._whole(hint)
            if not 1 <= runs <= _MOST_RUNS:
                what = f"expected a number of runs from 1 to {_MOST_RUNS}, got {runs}"
                raise self.failure(at, what, hint)
        if self.here.text == "fork":
            raise self.unsupported(self.here, "fork", "leave it out")
        return Step(filter_, keys, is_missing, runs)

    def _filter(self) -> Filter:
        category, token = None, self.here
        if not self.take("ANY"):
            if token.kind is TokenKind.STRING:
                category = string_value(self.text, self.next())
            elif token.kind is TokenKind.NAME and not token.word:
                category = self.next().text
            else:
                raise self.unexpected("a category of events, or any")
        self.need("WHERE", "write a category, or any, then where and a condition")
        return Filter(category, self.expression())

    # --- conditions

    def expression(self) -> Tree:
        """Read a condition or a value."""
        with self.deeper(_MOST_DEPTH, self.too_deep):
            return super().expression()

    def _inside(self, *, is_condition: bool) -> Tree:
        return self.expression()

    def _joined(self, operator: str, operands: list[Tree]) -> Tree:
        return Operation(operator, tuple(operands))

    def factor(self) -> Tree:
        """Read a condition without and, or."""
        token = self.take("NOT")
        if token is not None:
            with self.deeper(_MOST_DEPTH, self.too_deep):
                return Operation("not", (self.factor(),), span=self.span(token.start))
        start = self.here.start
        left = self.value()
        sign = self.take(*COMPARISONS)
        if sign is None:
            if self.here.word == "=":
                raise self.unexpected("a comparison")
            return left
        made = Operation(COMPARISONS[sign.word], (left, self.value()), span=self.span(start))
        if self.here.word in COMPARISONS:
            hint = "write a < b and b < c"
            raise self.failure(self.here, "comparisons one after another", hint)
        return made

    def _operation(self, operator: str, left: Tree, right: Tree) -> Tree:
        return Call(_ARITHMETIC[operator], (left, right), span=(left.span[0], right.span[1]))

    def _signed(self) -> Tree:
        sign = self.take("-", "+")
        if sign is None:
            return self._tested(self._primary())
        with self.deeper(_MOST_DEPTH, self.too_deep):
            value = self._signed()
        if sign.word == "+":
            return value
        if isinstance(value, Literal):
            if isinstance(value.value, bool) or not isinstance(value.value, int | float):
                raise self.failure(sign, "- before what is no number", "leave it out")
            return Literal(-value.value, span=self.span(sign.start))
        return Call("subtract", (Literal(0), value), span=self.span(sign.start))

    def _tested(self, value: Tree) -> Tree:
        start = value.span[0]
        is_negated = self.here.word == "NOT" and self.ahead().word in ("IN", "IN~")
        if is_negated:
            self.next()
        token = self.take("IN", "IN~", *TESTS)
        if token is None:
            return value
        name = token.text
        if token.word in TESTS:
            literals = self._enclosed(self._pattern) if self.here.word == "(" else [self._pattern()]
            found: Tree = Call(name, (value, *literals), span=self.span(start))
        else:
            found = Call(name, (value, *self._enclosed(self.expression)), span=self.span(start))
        if self.here.word in TESTS:
            raise self.failure(self.here, "tests one after another", "join them with and")
        return Operation("not", (found,), span=self.span(start)) if is_negated else found

    def _pattern(self) -> Tree:
        if self.here.kind is not TokenKind.STRING:
            raise self.unexpected(
                "a text", 'compare with a text, or with ==: pid == 4, name : "a*"'
            )
        return self._primary()

    def _enclosed(self, item: Callable[[], Tree]) -> list[Tree]:
        self.need("(", 'write a list: name in ("a", "b")')
        if self.here.word == ")":
            raise self.unexpected("a value", "write at least one value")
        items = self.listed(item)
        self.need(")", "close the list with )")
        return items

    def _primary(self) -> Tree:
        token = self.here
        if self.take("("):
            inner = self.expression()
            self.need(")", "close the parenthesis")
            return inner
        if token.kind is TokenKind.STRING:
            self.next()
            return Literal(string_value(self.text, token), span=(token.start, token.end))
        if token.kind is TokenKind.NUMBER:
            return self._number()
        if token.word in _CONSTANTS:
            self.next()
            return Literal(_CONSTANTS[token.word], span=(token.start, token.end))
        if token.kind is TokenKind.NAME and not token.word:
            if self.ahead().word == "(" and self.text[token.start] != "`":
                return self._call()
            if self.ahead().word == "OF":
                what = f"{token.text} of"
                raise self.unsupported(token, what, "write a sequence by the id of the process")
        elif token.word != "?":
            raise self.unexpected("a value")
        return self._field()

    def _number(self) -> Tree:
        token = self.next()
        is_whole = token.text.isdecimal()
        # Python reads no whole numbers of thousands of digits.
        value = int(token.text[-100:]) if is_whole else float(token.text)
        if is_whole and (len(token.text) > 100 or not LEAST <= value <= MOST):
            raise self.failure(token, f"{token.text} does not fit 64 bits", "write a fraction")
        if isinf(value):
            raise self.failure(token, f"{token.text} is beyond fractions", "write up to 1.79e308")
        return Literal(value, span=(token.start, token.end))

    def _field(self) -> Column:
        start = self.here.start
        variable = OPTIONAL if self.take("?") else ""
        path: list[str] = []
        while not path or self.take("."):
            token = self.here
            if token.kind is not TokenKind.NAME or (token.word and not path):
                raise self.unexpected("a name", "write a name that is a keyword in backquotes")
            path.append(self.next().text)
        if self.here.word == "[" and self.ahead().kind is TokenKind.NUMBER:
            hint = "test any value of it: a field is about all of its values"
            raise self.unsupported(self.here, "a position in an array", hint)
        span = self.span(start)
        return Column(
            quoted_name(".".join(path)), variable, text=self.text[slice(*span)], span=span
        )

    def _call(self) -> Tree:
        token = self.next()
        name, detail = token.text.rstrip("~").lower(), "~" if token.text.endswith("~") else ""
        if name in REFUSED:
            raise self.unsupported(token, f"the function {token.text}", REFUSED[name])
        function = FUNCTIONS.get(name)
        if function is None:
            known = [function.written for function in FUNCTIONS.values()]
            hint = did_you_mean(token.text, known, f"the functions are {', '.join(known)}")
            raise self.failure(token, f"the function {token.text} is unknown", hint)
        if detail and not function.folds:
            raise self.failure(token, f"{token.text}: no ~", f"write {function.written}(…)")
        operands = [] if self.sees("(", ")") else self._enclosed(self.expression)
        if not operands:
            self.next()
            self.next()
        if not function.least <= len(operands) <= function.most:
            hint = f"write {function.written}({function.arguments})"
            raise self.failure(token, f"{token.text} with {len(operands)} arguments", hint)
        return Call(name, tuple(operands), detail, span=self.span(token.start))


_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo"}
