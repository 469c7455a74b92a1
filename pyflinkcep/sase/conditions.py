# SPDX-License-Identifier: Apache-2.0
"""Reads the words and symbols of a query, and its conditions."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import ClassVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyflinkcep.errors import InvalidArgumentError, counted
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.numbers import MOST
from pyflinkcep.expressions.tokens import (
    UNITS,
    ExpressionReader,
    Token,
    TokenKind,
    interval_us,
    place,
    tokenized,
)
from pyflinkcep.expressions.tree import (
    ALL,
    CONDITIONS,
    FUNCTIONS,
    Aggregate,
    Call,
    Column,
    Interval,
    Leaf,
    Literal,
    Moment,
    Operation,
    Tree,
    called,
    leaves,
    quoted_name,
    shown,
    text_sql,
    written_name,
)
from pyflinkcep.sase.attributes import (
    BEFORE,
    CURRENT,
    FIRST,
    LAST,
    PREVIOUS,
    column_sql,
    computed,
    is_computed,
)
from pyflinkcep.sase.model import Component

KEYWORDS = frozenset(
    "FROM PATTERN WHERE WITHIN HAVING RETURN AND OR NOT IS NULL AS".split()  # noqa: SIM905
)

_QUERY = re.compile(
    r"(?P<space>\s+|/\*.*?\*/|--[^\n]*)"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<string>'(?:[^']|'')*')"
    r"|(?P<quoted>`(?:[^`]|``)+`)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\.\.|<=|>=|<>|!=|==|\|\||/(?!\*)|[-+*%(){}\[\],.;=<>~!^|?])",
    re.DOTALL,
)


def text_value(token: Token) -> str:
    """Return the value of a quoted text."""
    return token.text[1:-1].replace("''", "'")


def text_literal(value: str) -> str:
    """Return a quoted text of a value."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _unreadable(text: str, at: int) -> InvalidArgumentError:
    rest = text[at : at + 20].split("\n")[0]
    for opening, what, closing in (("'", "text", "'"), ("`", "name", "`"), ("/*", "comment", "*/")):
        if rest.startswith(opening):
            return failure(text, at, f"the {what} {rest} does not end", f"close it with {closing}")
    return failure(
        text,
        at,
        f"{rest[:1]} has no meaning here",
        "quote texts with ' and names with `, enclose comments in /* */",
    )


def failure(text: str, at: int, what: str, hint: str) -> InvalidArgumentError:
    """Return the error for a problem at an offset of a text."""
    return InvalidArgumentError(f"{place(text, at)}: {what}", hint)


_INDEXES = "write [1], [i], [i-1], [LEN] or []; aggregates take [..i-1] too"
_INTERVAL = (
    "write INTERVAL '5' MINUTE or INTERVAL '1 02:00:00' DAY TO SECOND; months have no length"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_DEPTH = 100
_CONSTANTS = (TokenKind.STRING, TokenKind.NUMBER)
_COMPARISONS = {
    "=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_LIKES = ("LIKE", "ILIKE", "RLIKE")
_CONDITION_WORDS = ("AND", "OR", "NOT", "IS", "IN", "BETWEEN", *_LIKES)
_CASE_WORDS = ("WHEN", "THEN", "ELSE", "END")
_OF_EVENTS = ("||", "case")
_OF_ONE = ("first", "last", "min", "max")
_CHOICES = ("case", "coalesce", "greatest", "least")


class ConditionReader(ExpressionReader[Tree]):
    """Reads conditions and values, which name the variables of a pattern."""

    powers: ClassVar = {"+": 1, "-": 1, "||": 1, "*": 2, "/": 2, "%": 2}
    on_matches = False
    """Whether values are of whole matches, as in HAVING and RETURN."""

    def __init__(self, text: str, components: tuple[Component, ...] = ()) -> None:
        super().__init__(text, tokenized(text, _QUERY, _unreadable))
        self._declare(components)

    def _declare(self, components: tuple[Component, ...]) -> None:
        self._declared = components
        self._by_name = {part.variable: part for part in components}

    # --- words and symbols

    def written(self, token: Token) -> str:
        """Return a token as it was written, backquotes included."""
        return self.text[token.start : token.end]

    def name(self, what: str, hint: str) -> Token:
        """Move past a name."""
        if self.here.kind is not TokenKind.NAME:
            raise self.unexpected(what, hint)
        return self.next()

    def type(self, hint: str) -> str:
        """Move past an event type, which may be dotted or quoted, and return it."""
        if self.here.kind is TokenKind.STRING:
            return text_value(self.next())
        name = self.name("an event type", hint).text
        while self.here.word == "." and self.ahead().kind is TokenKind.NAME:
            self.next()
            name += f".{self.next().text}"
        if self.here.word in ("-", "/"):
            whole = f"{name}{self.here.text}{self.written(self.ahead())}"
            raise self.unexpected("the end of a type", f"quote the type: '{whole}'")
        return name

    def expect_end(self, hint: str) -> None:
        """Raise if there are more tokens."""
        if self.here.kind is not TokenKind.END:
            raise self.unexpected("the end", hint)

    def unexpected(self, wanted: str, hint: str = "") -> InvalidArgumentError:
        """Return the error for an unexpected token."""
        token = self.here
        got = "the end" if token.kind is TokenKind.END else repr(self.written(token))
        return self.failure(token.start, f"expected {wanted}, got {got}", hint)

    def failure(self, at: int, what: str, hint: str) -> InvalidArgumentError:
        """Return the error for a problem at an offset of the text."""
        return failure(self.text, at, what, hint)

    # --- references

    def _reference(self) -> Column:
        return self._rest_of_reference(self.name("a variable", "name a variable of PATTERN"))

    def _rest_of_reference(self, token: Token) -> Column:
        name, begin = token.text, token.start
        part, shown = self._by_name.get(name), ""
        if part is None and self.here.word not in (".", "["):
            part = next((p for p in self._declared if p.type == name), None)
            shown = self.written(token)
        if part is None:
            known = ", ".join(map(repr, self._by_name))
            what = f"expected a variable of PATTERN, got {name!r}"
            raise self.failure(begin, what, f"the variables are {known}")
        variable = part.variable
        index = self._index(part) if self.here.word == "[" else None
        if not self.take("."):
            return Column(None, variable, index, shown, self.span(begin))
        attribute = self.name("an attribute", f"write {self.written(token)}.attribute")
        if attribute.word == "LEN" and index is None and part.takes_many:
            return Column(column_sql("LEN"), variable, index, "", self.span(begin))
        column = Column(quoted_name(attribute.text), variable, index, "", self.span(begin))
        path, written = self._path(column, attribute.text)
        if path is column and not is_computed(attribute.text):
            return column
        at = "" if index is None else f"[{index}]"
        text = f"{written_name(variable)}{at}.{written_name(attribute.text)}{written}"
        return computed(path, column, text, self.span(begin))

    def _path(self, column: Column, attribute: str) -> tuple[Tree, str]:
        """Read the fields and elements of an attribute; return them and how they are written."""
        found, written = cast(Tree, column), ""
        hint = f"write {attribute}.field, {attribute}['key'] or {attribute}[0]"
        while True:
            if self.take("."):
                field = self.name("a field", hint).text
                found = Call(".", (found,), field)
                written += f".{written_name(field)}"
            elif self.take("["):
                key = self.here
                if key.kind is TokenKind.STRING:
                    value = Literal(text_value(key), key.text)
                elif key.word.isdecimal():
                    value = Literal(int(key.text), key.text)
                else:
                    raise self.unexpected("a 'key' or a number", hint)
                self.next()
                found = Call("[]", (found, value))
                self.need("]", hint)
                written += f"[{key.text}]"
            else:
                return found, written

    def _index(self, part: Component) -> str:
        variable, opened = part.variable, self.next()
        index = self._index_inside(part)
        if index is None:
            got = f"{variable}[{self.written(self.here)}]"
            raise self.failure(self.here.start, f"expected an index, got {got}", _INDEXES)
        self.need("]", _INDEXES)
        if not part.takes_many:
            what = f"{variable!r} does not repeat, so it has no [{index}]"
            hint = f"write {variable}.attribute, or {part.type}+ {variable}[] in PATTERN"
            raise self.failure(opened.start, what, hint)
        return index

    def _index_inside(self, part: Component) -> str | None:
        if self.here.word == "]":
            return ALL
        if self.take(".."):
            for word in "I-1":
                self.need(word, _INDEXES)
            return BEFORE
        if self.take("1"):
            return FIRST
        if self.take("LEN"):
            return LAST
        if self.sees(part.variable.upper(), "."):
            self.next()
            self.next()
            self.need("LEN", _INDEXES)
            return LAST
        if not self.take("I"):
            return None
        if not self.take("-"):
            return CURRENT
        self.need("1", _INDEXES)
        return PREVIOUS

    # --- operators

    def _joined(self, operator: str, operands: list[Tree]) -> Tree:
        return made(operator, *operands)

    def _operation(self, operator: str, left: Tree, right: Tree) -> Tree:
        return self._of_event(made(operator, left, right))

    def _inside(self, *, is_condition: bool) -> Tree:
        with self.deeper(_MOST_DEPTH, self._too_deep):
            return self.expression() if is_condition else self.value()

    def _too_deep(self) -> InvalidArgumentError:
        what = f"at most {_MOST_DEPTH} nested parentheses, signs and NOTs"
        return self.unexpected(what, "simplify the condition")

    # --- conditions

    def factor(self) -> Tree:
        """Read a condition without AND or OR, except in parentheses."""
        if self.take("NOT"):
            with self.deeper(_MOST_DEPTH, self._too_deep):
                return made("not", self.factor())
        if self.here.word == "(" and self._holds_condition():
            return self._parenthesized(is_condition=True)
        return self._comparison()

    def _parenthesized(self, *, is_condition: bool) -> Tree:
        self.next()
        inner = self._inside(is_condition=is_condition)
        self.need(")", "close the parenthesis")
        return inner

    def _holds_condition(self) -> bool:
        """Whether the parenthesis that opens here holds a condition, not a number."""
        depth = ahead = cases = 0
        while True:
            token = self.ahead(ahead)
            ahead += 1
            if token.kind is TokenKind.SIGN:
                depth += (token.word == "(") - (token.word == ")")
                if token.word in _COMPARISONS and not cases:
                    return True
            elif token.word in ("CASE", "END") and self.ahead(ahead).word not in (".", "["):
                cases = max(0, cases + (1 if token.word == "CASE" else -1))
            elif token.word in _CONDITION_WORDS and not cases:
                return True
            if depth == 0 or token.kind is TokenKind.END:
                return False

    def _comparison(self) -> Tree:
        left = self.value()
        if self.take("IS"):
            return self._is(left)
        operator = self.take(*_COMPARISONS)
        is_condition = isinstance(left, Operation) and left.operator in CONDITIONS
        if operator is not None and is_condition:
            what = f"{shown(left)} is a condition"
            raise self.failure(operator.start, what, "write it alone, or NOT before it")
        if operator is not None:
            return made(_COMPARISONS[operator.word], left, self.value())
        if is_condition:
            return left
        negated = self.take("NOT") is not None
        if not negated and self.here.word not in ("IN", "BETWEEN", *_LIKES) and _may_be_true(left):
            operands = left, Literal(True, "TRUE", left.span)
            return Operation("=", operands, shown(left), left.span)
        test = self._sql_test(left)
        return made("not", test) if negated else test

    def _is(self, left: Tree) -> Tree:
        """Read what follows IS; NULL IS TRUE is false, not NULL."""
        negated = self.take("NOT") is not None
        truth = self.take("TRUE", "FALSE")
        if truth is None:
            self.need("NULL", "write IS NULL, IS TRUE or IS FALSE, or IS NOT …")
            return made("is not null" if negated else "is null", left)
        literal = Literal(truth.word == "TRUE", truth.word, self.span(truth.start))
        if negated:
            return made("or", made("is null", left), made("<>", left, literal))
        return made("and", made("is not null", left), made("=", left, literal))

    def _sql_test(self, left: Tree) -> Tree:
        """Read IN, BETWEEN or LIKE; return it as comparisons."""
        if (operator := self.take(*_LIKES)) is not None:
            return self._like(left, operator)
        if self.take("BETWEEN"):
            low = made(">=", left, self.value())
            self.need("AND", "write BETWEEN low AND high")
            return made("and", low, made("<=", left, self.value()))
        if not self.take("IN"):
            raise self.unexpected(
                "a comparison", "compare the value: = <> < <= > >=, IN, BETWEEN, LIKE or IS NULL"
            )
        self.need("(", "write IN (1, 2)")
        tests = [made("=", left, value) for value in self.listed(self.value)]
        self.need(")", "close the parenthesis of IN (")
        return tests[0] if len(tests) == 1 else made("or", *tests)

    def _like(self, left: Tree, operator: Token) -> Operation:
        """Read the pattern after LIKE or a similar operator; return the test as a comparison."""
        token, word = self.here, operator.word.lower()
        if token.kind is not TokenKind.STRING:
            raise self.unexpected("a 'text'", f"write {operator.word} 'pattern'")
        if not isinstance(left, Column) or left.sql is None:
            what = f"{operator.word} tests an attribute of an event"
            raise self.failure(operator.start, what, f"write a.name {operator.word} {token.text}")
        self.next()
        span = self.span(left.at)
        text = f"cast({shown(left)} {word} {token.text} as int)"
        after = f" {word} {text_sql(text_value(token))} as int )"
        cast = Call("", (left,), text=text, between=("cast ( ", after))
        tested = computed(cast, left, text, span)
        return Operation("=", (tested, Literal(1, "1", span)), span=span)

    # --- values

    def _signed(self) -> Tree:
        if not self.take("-"):
            return self._primary()
        with self.deeper(_MOST_DEPTH, self._too_deep):
            operand = self._signed()
        if isinstance(operand, Literal) and not operand.text.startswith("-"):
            value = operand.value
            if isinstance(value, int | float):
                return Literal(-value, f"-{operand.text}", operand.span)
        return made("neg", operand)

    def _primary(self) -> Tree:
        token, following = self.here, self.ahead()
        if token.kind is TokenKind.NUMBER:
            return self._number()
        if token.kind is TokenKind.STRING:
            return Literal(text_value(self.next()), token.text, self.span(token.start))
        if token.word == "(":
            return self._parenthesized(is_condition=False)
        if self.take("NULL"):
            return Literal(None, "NULL", self.span(token.start))
        if token.word in ("DATE", "TIMESTAMP") and following.kind is TokenKind.STRING:
            return self._moment()
        if token.word == "INTERVAL" and (
            following.kind in _CONSTANTS or following.word in ("+", "-")
        ):
            return self._interval()
        if token.text not in self._by_name and following.word not in (".", "["):
            if self.take("TRUE", "FALSE"):
                return Literal(token.word == "TRUE", token.word, self.span(token.start))
            if token.word == "CASE":
                return self._of_event(self._choice())
        name = self.name("a value", "a value is a number, a 'text', NULL or variable.attribute")
        if self.here.word == "(" and name.word.lower() in AGGREGATES:
            self.next()
            is_counted = AGGREGATES[name.word.lower()].condition
            over = self._counted(name) if is_counted else self._aggregated()
            self.need(")", "an aggregate is over one variable: avg(a[].x)")
            return self._function(name, over)
        if self.here.word == "(" and name.text not in self._by_name:
            called = self._function_of(name)
            return self._call(name) if called is None else called
        found = self._rest_of_reference(name)
        if found.attribute == "LEN":
            return Aggregate("count", found.variable, None, span=found.span)
        return found

    def _number(self) -> Literal:
        token = self.next()
        written = token.text
        value: int | float = float(written)
        if written.isdigit() and abs(value) <= MOST:
            value = int(written)
        if abs(value) > MOST and (written.isdigit() or value == math.inf):
            what = f"the number {written} is too large"
            raise self.failure(token.start, what, "whole numbers have 64 bits")
        if self.here.word == "%" and not self._begins_operand():
            self.next()
            value, written = value / 100, f"{written}%"
        return Literal(value, written, self.span(token.start))

    def _begins_operand(self) -> bool:
        """Whether an operand follows the percent sign, so that it is a remainder."""
        token = self.ahead()
        if token.word in _CASE_WORDS:
            return self.ahead(2).word in (".", "[")
        if token.kind is TokenKind.NAME:
            return token.word not in KEYWORDS or token.word == "NULL"
        return token.kind in _CONSTANTS or token.word == "("

    def literal(self) -> Literal:
        """Read a literal."""
        token = self.here
        value = self._signed()
        if not isinstance(value, Literal) or value.value is None:
            what = f"expected a literal, got {self.written(token)!r}"
            raise self.failure(token.start, what, "write a number, a 'text' or TRUE")
        return value

    def _choice(self) -> Operation:
        begin = self.here.start
        subject, parts = self._case()
        if subject is not None:
            last = len(parts) - len(parts) % 2
            parts[:last:2] = [made("=", subject, part) for part in parts[:last:2]]
        return Operation("case", tuple(parts), span=self.span(begin))

    def _of_event(self, made: Operation) -> Tree:
        """Return a text or a choice; of one event it is computed by SQL, as functions of it are."""
        if made.operator not in _OF_EVENTS or self.on_matches:
            return made
        event = _event(list(leaves(made)))
        return made if event is None else computed(made, event, f"({shown(made)})", made.span)

    # --- aggregates and functions

    def _aggregated(self) -> Column:
        """Read what an aggregate is over: an attribute, or a function of one event."""
        name = self.here
        is_call = name.kind is TokenKind.NAME and self.ahead().word == "("
        if is_call and name.text not in self._by_name and name.word.lower() not in AGGREGATES:
            return self._call(self.next())
        return self._reference()

    def _counted(self, name: Token) -> Column:
        """Read a condition on each event of a variable; return what is NULL unless it is true."""
        condition = self.expression()
        event = _event(list(leaves(condition)))
        if event is None:
            called = self.written(name)
            what = f"{called}(…) needs a condition on the attributes of one variable"
            raise self.failure(name.start, what, f"write {called}(b[].x > 1)")
        one = Operation("case", (condition, Literal(1, "1")), span=condition.span)
        return computed(one, event, shown(condition), condition.span)

    def _function(self, called: Token, over: Column) -> Aggregate:
        name = called.word.lower()
        shown = f"{over.variable}[{over.index}]"
        if over.index not in (None, ALL, BEFORE):
            raise self.failure(
                over.at,
                f"{name}({shown}) is over one event, expected {over.variable}[] or "
                f"{over.variable}[..i-1]",
                f"leave out the aggregate: {shown} is one event",
            )
        if over.attribute is None and name != "count":
            what = f"{name}({over.variable}) needs an attribute"
            hint = f"write {name}({over.variable}[].attribute); only count goes without"
            raise self.failure(over.at, what, hint)
        text = f"{name}({over.text})" if over.sql and over.text else ""
        name = "count" if AGGREGATES[name].condition else name
        return Aggregate(
            name, over.variable, over.sql, text, index=over.index or ALL,
            span=self.span(over.at), computed=over.computed,
        )  # fmt: skip

    def _function_of(self, name: Token) -> Tree | None:
        """Read a function of values of several events; None of one event, which SQL computes."""
        function, start, called_as = name.word.lower(), self._at, self.written(name)
        if function not in FUNCTIONS:
            return None
        operator, least, most = FUNCTIONS[function]
        try:
            self.next()
            operands = [self.expression() if operator == "case" else self.value()]
            if self.take(","):
                operands += self.listed(self.value)
            self.need(")", f"close the parenthesis of {called_as}(")
        except InvalidArgumentError:
            self._at = start
            return None
        of_date = function == "trunc" and any(type(_constant(n)) is not int for n in operands[1:])
        found = [leaf for operand in operands for leaf in leaves(operand)]
        events = {(leaf.over.variable, leaf.over.index) for leaf in found}
        is_one = len(events) == 1 and all(isinstance(leaf, Column) for leaf in found)
        if of_date or not events or (is_one and not self.on_matches):
            self._at = start
            return None
        if not least <= len(operands) <= most:
            what = f"{called_as}(…) has {counted(len(operands), 'argument')}"
            raise self.failure(name.start, what, "see Spark's documentation of the function")
        span = self.span(name.start)
        if operator == "||":
            return reduce(lambda a, b: self._of_event(Operation("||", (a, b), span=span)), operands)
        return called(operator, tuple(operands), "", span)

    def _call(self, name: Token) -> Column:
        """Read the rest of a call to a SQL function of one event."""
        function, found = self.written(name), list[Column]()
        between, depth = [f"{function} "], 0
        while True:
            token = self.here
            if token.kind is TokenKind.END:
                raise self.unexpected("')'", f"close the parenthesis of {function}(")
            is_name = token.kind is TokenKind.NAME and token.text in self._by_name
            if is_name and self.ahead().word in (".", "["):
                part = self._reference()
                self._check_event(part, found, function)
                found.append(part)
                between.append(" ")
                continue
            self.next()
            depth += (token.word == "(") - (token.word == ")")
            is_text = token.kind is TokenKind.STRING
            between[-1] += text_sql(text_value(token)) if is_text else self.written(token)
            if not depth:
                break
            is_arrow = self.here.word == ">" and token.word in ("-", "<=")  # -> and <=>
            between[-1] += "" if is_arrow and self.here.start == token.end else " "
        if not found:
            what = f"{function}(…) reads no event"
            hint = f"write {function}(variable.attribute); aggregates are {', '.join(AGGREGATES)}"
            raise self.failure(name.start, what, hint)
        span = self.span(name.start)
        text = self.text[slice(*span)]
        call = Call("", tuple(found), text=text, between=tuple(between))
        return computed(call, found[0], text, span)

    def _check_event(self, part: Column, found: list[Column], function: str) -> None:
        if part.attribute is None or part.attribute == "LEN" or part.index == BEFORE:
            what = f"expected an attribute of an event in {function}(…)"
            raise self.failure(part.at, what, f"write {function}(a.attribute)")
        if found and (part.variable, part.index) != (found[0].variable, found[0].index):
            hint = "a function reads one event: compare or compute outside it"
            raise self.failure(part.at, f"{function}(…) reads two events", hint)

    # --- times

    def _moment(self) -> Literal:
        """Read DATE or TIMESTAMP and the text after it."""
        word, token = self.next(), self.next()
        written, is_date = text_value(token), word.word == "DATE"
        try:
            time = _with_zone(written.strip())
            if is_date and len(written.strip()) != len(date.min.isoformat()):
                raise ValueError(written)
        except ValueError:
            example = "DATE '2026-01-31'"
            if not is_date:
                example = "TIMESTAMP '2026-01-31 12:00:00'; a zone may follow"
            what = f"expected a {word.word.lower()}, got {token.text}"
            raise self.failure(token.start, what, f"write {example}") from None
        if isinstance(time.tzinfo, ZoneInfo):
            written = time.astimezone(UTC).isoformat(" ")  # which every evaluation reads
        local = (time.replace(tzinfo=UTC) if time.tzinfo is None else time) - _EPOCH
        moment = Moment(written, is_date, local // timedelta(microseconds=1))
        return Literal(moment, f"{word.word} {token.text}", self.span(word.start))

    def _interval(self) -> Literal:
        """Read INTERVAL and its lengths."""
        word, begin = self.next(), self.here.start
        while True:
            self.take("-", "+")
            if self.here.kind not in _CONSTANTS:
                raise self.unexpected("the length of an interval", _INTERVAL)
            self.next()
            if self.here.word in UNITS:
                self.next()
                if self.take("TO"):
                    self.next()
            if self.here.kind not in _CONSTANTS or self.ahead().word not in UNITS:
                break
        written = self.text[slice(*self.span(begin))]
        length = interval_us(written)
        if length is None:
            raise self.failure(begin, f"INTERVAL {written} has no length", _INTERVAL)
        return Literal(Interval(length), f"INTERVAL {written}", self.span(word.start))


def _with_zone(text: str) -> datetime:
    """Return a time, whose zone may be an offset or a name."""
    clock, _, name = text.rpartition(" ")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(clock).replace(tzinfo=_zone(name))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as cause:
        raise ValueError(name) from cause


def _event(found: list[Leaf]) -> Column | None:
    """Return one of some values if all are attributes of one event."""
    events = {(leaf.over.variable, leaf.over.index) for leaf in found}
    is_one = len(events) == 1 and all(isinstance(leaf, Column) and leaf.sql for leaf in found)
    return found[0].over if is_one else None


def _constant(tree: Tree) -> object:
    """Return the value of a literal, with or without a sign; None of others."""
    if isinstance(tree, Operation) and tree.operator == "neg":
        return _constant(tree.operands[0])
    return tree.value if isinstance(tree, Literal) else None


def made(operator: str, *operands: Tree) -> Operation:
    """Return an operation on operands that stand beside each other in the text."""
    return Operation(operator, operands, span=(operands[0].span[0], operands[-1].span[1]))


def _may_be_true(value: Tree) -> bool:
    """Whether a value may be a boolean, and so a condition by itself."""
    if isinstance(value, Literal):
        return isinstance(value.value, bool)
    if isinstance(value, Column):
        return value.sql is not None
    if isinstance(value, Aggregate):
        return value.function in _OF_ONE
    return isinstance(value, Operation) and value.operator in _CHOICES
