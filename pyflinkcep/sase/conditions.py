# SPDX-License-Identifier: Apache-2.0
"""Reads the conditions of a query."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyflinkcep.errors import InvalidArgumentError, counted
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.text import quoted_name, shown, written_name
from pyflinkcep.expressions.tokens import MOST, UNITS_US, interval_us
from pyflinkcep.expressions.tree import (
    ALL,
    CONDITIONS,
    FUNCTIONS,
    Aggregate,
    Call,
    Column,
    Interval,
    Literal,
    Moment,
    Operation,
    Tree,
    called,
    leaves,
)
from pyflinkcep.sase.computed import (
    BEFORE,
    CURRENT,
    FIRST,
    LAST,
    LIKES,
    PREVIOUS,
    column_sql,
    computed,
    is_computed,
    like,
    read_call,
)
from pyflinkcep.sase.model import Component
from pyflinkcep.sase.tokens import KEYWORDS, NAME, NUMBER, OPERATOR, TEXT, Cursor, Token, text_value

_INDEXES = "write [1], [i], [i-1], [LEN] or []; aggregates take [..i-1] too"


class ReferenceReader:
    """Reads references from a cursor."""

    def __init__(self, cursor: Cursor, components: tuple[Component, ...]) -> None:
        self._cursor = cursor
        self._components = components
        self._by_name = {part.variable: part for part in components}

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
        if attribute.word == "len" and index is None and part.takes_many:
            return Column(column_sql("LEN"), part.variable, index, "", cursor.span(token.at))
        column = Column(
            quoted_name(attribute.name), part.variable, index, "", cursor.span(token.at)
        )
        path, written = self._path(column, attribute.name)
        if path is column and not is_computed(attribute.name):
            return column
        at = "" if index is None else f"[{index}]"
        text = f"{written_name(part.variable)}{at}.{written_name(attribute.name)}{written}"
        return computed(path, column, text, cursor.span(token.at))

    def _path(self, column: Column, attribute: str) -> tuple[Tree, str]:
        """Read the fields and elements of an attribute; return them and how they are written."""
        cursor, found, written = self._cursor, cast(Tree, column), ""
        hint = f"write {attribute}.field, {attribute}['key'] or {attribute}[0]"
        while True:
            if cursor.take("."):
                field = cursor.name("a field", hint).name
                found = Call(".", (found,), field)
                written += f".{written_name(field)}"
            elif cursor.take("["):
                key = cursor.here
                if key.kind == TEXT:
                    value = Literal(text_value(key), key.text)
                elif key.kind == NUMBER and key.text.isdigit():
                    value = Literal(int(key.text), key.text)
                else:
                    raise cursor.unexpected("a 'key' or a number", hint)
                found = Call("[]", (found, value))
                cursor.next()
                cursor.need("]", hint)
                written += f"[{key.text}]"
            else:
                return found, written

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
        if not part.takes_many:
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


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTERVAL = (
    "write INTERVAL '5' MINUTE or INTERVAL '1 02:00:00' DAY TO SECOND; months have no length"
)


def read_moment(cursor: Cursor, word: Token) -> Literal:
    """Read the text after DATE or TIMESTAMP."""
    token = cursor.next()
    written, is_date = text_value(token), word.word == "date"
    try:
        time = _with_zone(written.strip())
        if is_date and len(written.strip()) != len(date.min.isoformat()):
            raise ValueError(written)
    except ValueError:
        example = "'2026-01-31'" if is_date else "'2026-01-31 12:00:00'"
        raise cursor.failure(
            token.at,
            f"expected a {word.word}, got {token.text}",
            f"write {word.word.upper()} {example}" + ("" if is_date else "; a zone may follow"),
        ) from None
    if isinstance(time.tzinfo, ZoneInfo):
        written = time.astimezone(UTC).isoformat(" ")  # which every evaluation reads
    local = (time.replace(tzinfo=UTC) if time.tzinfo is None else time) - _EPOCH
    moment = Moment(written, is_date, local // timedelta(microseconds=1))
    return Literal(moment, f"{word.word.upper()} {token.text}", cursor.span(word.at))


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


def read_interval(cursor: Cursor, word: Token) -> Literal:
    """Read the rest of an interval."""
    begin = cursor.here.at
    while True:
        cursor.take("-", "+")
        if cursor.here.kind not in (TEXT, NUMBER):
            raise cursor.unexpected("the length of an interval", _INTERVAL)
        cursor.next()
        _units(cursor)
        if cursor.here.kind not in (TEXT, NUMBER) or not _is_unit(cursor.ahead()):
            break
    _, end = cursor.span(begin)
    written = cursor.text[begin:end]
    length = interval_us(written)
    if length is None:
        raise cursor.failure(begin, f"INTERVAL {written} has no length", _INTERVAL)
    return Literal(Interval(length), f"INTERVAL {written}", cursor.span(word.at))


def _units(cursor: Cursor) -> None:
    if _is_unit(cursor.here):
        cursor.next()
        if cursor.take("to"):
            cursor.next()


def _is_unit(token: Token) -> bool:
    word = token.word.upper()
    return token.kind == NAME and (
        word.removesuffix("S") in UNITS_US or word.removesuffix("S") in ("MONTH", "YEAR")
    )


# --- in the zone of a session


_MOST_DEPTH = 100
_OF_EVENTS = ("||", "case")
_CASE_WORDS = ("when", "then", "else", "end")


class ValueReader(ReferenceReader):
    """Reads values from a cursor."""

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
            condition = AGGREGATES[name.word].condition
            over = self._counted(name) if condition else self._aggregated()
            if cursor.here.text == "(":
                raise cursor.unexpected("')'", "an aggregate is over one variable: avg(a[].x)")
            cursor.need(")", "an aggregate is over one variable: avg(a[].x)")
            return self._function(name, over)
        if cursor.here.text == "(" and name.name not in self._by_name:
            called = self._function_of(name)
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

    def _counted(self, name: Token) -> Column:
        """Read a condition on each event of a variable; return what is NULL unless it is true."""
        condition = self.condition()
        found = list(leaves(condition))
        events = {(leaf.over.variable, leaf.over.index) for leaf in found}
        if len(events) != 1 or not all(isinstance(leaf, Column) and leaf.sql for leaf in found):
            raise self._cursor.failure(
                name.at,
                f"{name.text}(…) needs a condition on the attributes of one variable",
                f"write {name.text}(b[].x > 1)",
            )
        one = Operation("case", (condition, Literal(1, "1")), span=condition.span)
        return computed(one, found[0].over, shown(condition), condition.span)

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

    def _function_of(self, name: Token) -> Tree | None:
        """Read a function of values of several events; None of one event, which SQL computes."""
        if name.word not in FUNCTIONS:
            return None
        cursor, (operator, least, most) = self._cursor, FUNCTIONS[name.word]
        start = cursor.mark()
        try:
            cursor.next()
            operands = [self.condition() if operator == "case" else self.value()]
            while cursor.take(","):
                operands.append(self.value())
            cursor.need(")", f"close the parenthesis of {name.text}(")
        except InvalidArgumentError:
            cursor.turn_to(start)
            return None
        if name.word == "trunc" and any(type(_constant(one)) is not int for one in operands[1:]):
            cursor.turn_to(start)  # of a date
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
        if operator == "||":
            return reduce(lambda a, b: self._of_event(Operation("||", (a, b), span=span)), operands)
        return called(operator, tuple(operands), "", span)

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
        name = "count" if AGGREGATES[name].condition else name
        span = self._cursor.span(over.at)
        return Aggregate(
            name, over.variable, over.sql, text, index=over.index or ALL, span=span,
            computed=over.computed,
        )  # fmt: skip


def _constant(tree: Tree) -> object:
    """Return the value of a literal, with or without a sign; None of others."""
    if isinstance(tree, Operation) and tree.operator == "neg":
        return _constant(tree.operands[0])
    return tree.value if isinstance(tree, Literal) else None


def _begins_operand(cursor: Cursor) -> bool:
    """Whether an operand follows the percent sign, so that it is a remainder."""
    token = cursor.ahead()
    if token.kind == NAME and token.word in _CASE_WORDS:
        return cursor.ahead(2).text in (".", "[")
    if token.kind == NAME:
        return token.word not in KEYWORDS or token.word == "null"
    return token.kind in (NUMBER, TEXT) or token.text == "("


def made(operator: str, *operands: Tree) -> Operation:
    """Return an operation on operands that stand beside each other in the text."""
    return Operation(operator, operands, span=(operands[0].span[0], operands[-1].span[1]))


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
