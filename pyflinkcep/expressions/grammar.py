# SPDX-License-Identifier: Apache-2.0
"""Reads Spark SQL's expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, ClassVar

import attrs

from pyflinkcep.expressions.tokens import (
    UNITS,
    ExpressionReader,
    SqlSyntaxError,
    TokenKind,
    slip,
    tokenized,
)
from pyflinkcep.expressions.tree import joined


class Form(Enum):
    """The form of a part of an expression."""

    LITERAL = "literal"
    """A number, string, true, false or null; `value` is how it is written."""
    TYPED = "typed literal"
    """``DATE '2026-01-01'``; `value` is the type and the string, as they are written."""
    INTERVAL = "interval"
    """``INTERVAL '5' MINUTE``; `value` is the text after the word."""
    COLUMN = "column"
    """Names with dots between; `value` is the tuple of them."""
    STAR = "star"
    """``*`` or ``a.*``; `value` is the tuple of names before the star."""
    WORD = "word"
    """A keyword used as an argument, such as a unit; `value` is the word."""
    CALL = "call"
    """A function; `value` is its name in lower case, or a postfix: ``cast [] . :``."""
    OPERATION = "operation"
    """An operator; `value` is it, in lower case."""
    CASE = "case"
    """CASE; `value` is (has a subject, has ELSE); operands are in the order of the text."""
    PAREN = "paren"
    """Parentheses around one operand."""
    LAMBDA = "lambda"
    """``x -> …``; `value` is the tuple of its variables."""
    OPAQUE = "opaque"
    """What only Spark reads: a subquery; a function with OVER, whose `value` is ``over``; one with
    FILTER and the like, whose `value` is its name and whose `detail` is ``distinct`` or ``other``.
    The operands of the last are its arguments, then calls of ``filter`` or ``order by``."""


@attrs.frozen(eq=False)
class Syntax:
    """A part of an expression."""

    form: Form  # Its form
    value: Any  # See :class:`Form`
    operands: tuple[Syntax, ...]  # The parts inside
    # Its position in the text.
    start: int
    end: int
    # For a cast the type; for a field its name; for a call ``distinct``; for LIKE the escape
    # literal.
    detail: str = ""
    inner: int = -1  # The position of the second name of a column or star; -1 if it has one name

    def walk(self) -> Iterator[Syntax]:
        """Yield this part and all parts inside, in the order of the text."""
        yield self
        for operand in self.operands:
            yield from operand.walk()

    def bare(self) -> Syntax:
        """Return the part without the parentheses around it."""
        part = self
        while part.form is Form.PAREN:
            part = part.operands[0]
        return part


# --- what is computed only in some cases


@attrs.frozen(eq=False)
class Guard:
    """A condition under which a part is computed."""

    # The condition; a value and what it is compared with, for CASE with a subject.
    parts: tuple[Syntax, ...]
    form: tuple[str, str, str]  # What stands before, between and after the condition and the value

    def around(self, sql: Callable[[Syntax], str], value: str) -> str:
        """Return SQL that computes another only if it is asked for."""
        compared = [joined(("(", sql(part), ")")) for part in self.parts]
        condition = compared[0] if len(compared) == 1 else joined((compared[0], " = ", compared[1]))
        before, then, after = self.form
        return joined((before, condition, then, value, after))


_IF_TRUE = ("CASE WHEN ", " THEN ", " END")
_UNLESS_TRUE = ("CASE WHEN ", " THEN NULL ELSE ", " END")
_UNLESS_FALSE = ("CASE WHEN NOT ", " THEN NULL ELSE ", " END")
_IF_NULL = ("CASE WHEN ", " IS NULL THEN ", " END")
_AFTER = {"and": _UNLESS_FALSE, "or": _UNLESS_TRUE}
_CHOOSING = ("coalesce", "ifnull", "nvl")
_FAILING_CALLS = frozenset({
    "cast", "[]", "element_at", "mod", "pmod", "sqrt", "to_date", "to_timestamp", "date",
    "timestamp", "int", "integer", "bigint", "smallint", "tinyint", "double", "float", "decimal",
    "boolean", "to_number", "to_char", "make_date", "make_timestamp", "make_interval",
    "from_json", "parse_json", "elt", "conv", "assert_true", "raise_error", "unix_timestamp",
    "date_from_unix_date", "timestamp_seconds", "timestamp_millis", "timestamp_micros",
    "parse_url", "url_decode", "from_csv", "width_bucket", "next_day", "chr", "to_binary",
})  # fmt: skip
_FAILING = ("/", "%", "div")


def may_fail(part: Syntax) -> bool:
    """Whether a part divides, converts or looks up, which fails for some values."""
    return any(
        (node.form is Form.OPERATION and node.value in _FAILING)
        or (node.form is Form.CALL and node.value in _FAILING_CALLS)
        for node in part.walk()
    )


def divides(part: Syntax) -> bool:
    """Whether operators divide by something that may be 0: a part that can be taken apart there."""
    node = part.bare()
    if node.form not in (Form.OPERATION, Form.CASE):
        return False
    is_quotient = node.form is Form.OPERATION and node.value in _FAILING
    if is_quotient and node.operands[1].bare().form is not Form.LITERAL:
        return True
    return any(map(divides, node.operands))


def guards_of(tree: Syntax) -> dict[Syntax, tuple[Guard, ...]]:
    """Return the parts that SQL computes only in some cases, with their guards, outermost first."""
    found: dict[Syntax, tuple[Guard, ...]] = {}
    waiting: list[tuple[Syntax, tuple[Guard, ...]]] = [(tree, ())]
    while waiting:
        part, guards = waiting.pop()
        if guards:
            found[part] = guards
        for operand, more in zip(part.operands, _guards_inside(part), strict=True):
            waiting.append((operand, (*guards, *more)))
    return found


def _guards_inside(part: Syntax) -> list[tuple[Guard, ...]]:
    """Return the guards that a part puts before each of its operands."""
    operands = part.operands
    if part.form is Form.OPERATION and part.value in _AFTER:
        return [(), _guards(operands[:1], _AFTER[part.value])]
    if part.form is Form.CALL and part.value in ("if", "iff") and len(operands) == 3:
        return [(), _guards(operands[:1], _IF_TRUE), _guards(operands[:1], _UNLESS_TRUE)]
    if part.form is Form.CALL and part.value in _CHOOSING:
        before = [Guard((operand,), _IF_NULL) for operand in operands]
        return [tuple(before[:at]) for at in range(len(operands))]
    if part.form is not Form.CASE:
        return [()] * len(operands)
    subject = operands[:1] if part.value[0] else ()
    found: list[tuple[Guard, ...]] = [()] * len(subject)
    passed: tuple[Guard, ...] = ()
    rest = operands[len(subject) :]
    for when in rest[0 : len(rest) - len(rest) % 2 : 2]:
        condition = (*subject, when)
        found += [passed, (*passed, *_guards(condition, _IF_TRUE))]
        passed = (*passed, *_guards(condition, _UNLESS_TRUE))
    return found + [passed] * (len(rest) % 2)


def _guards(condition: tuple[Syntax, ...], form: tuple[str, str, str]) -> tuple[Guard, ...]:
    """Return guards that are one condition: each part of an AND or OR says something by itself."""
    bare = condition[0].bare()
    joint = "or" if form is _UNLESS_TRUE else "and"
    if len(condition) > 1 or bare.form is not Form.OPERATION or bare.value != joint:
        return (Guard(condition, form),)
    return tuple(guard for part in bare.operands for guard in _guards((part,), form))


def parsed(text: str) -> Syntax:
    """Read an expression."""
    parser = _Parser(text)
    try:
        part = parser.expression()
    except RecursionError:  # parentheses take several frames each
        raise parser.too_deep() from None
    if parser.here.kind is not TokenKind.END:
        raise parser.unexpected("an operator or the end")
    if _depth(part) > _MOST_LEVELS:
        raise parser.too_deep()
    return part


_MOST_LEVELS = 250
"""What functions that follow a tree have room for on Python's stack."""


def _depth(part: Syntax) -> int:
    """Return how many parts are inside each other, without following them on the stack."""
    level, depth = [part], 0
    while level:
        level, depth = [inner for node in level for inner in node.operands], depth + 1
    return depth


_NAMES = {"==": "=", "!=": "<>", "unknown": "null"}
_LEVELS = (
    ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="), ("|",), ("^",), ("&",),
    ("<<", ">>", ">>>"), ("+", "-", "||"), ("*", "/", "%", "DIV"),
)  # fmt: skip
_UNIT_FIRST = (
    "extract", "timestampdiff", "timestampadd", "datediff", "dateadd", "date_diff", "date_add",
)  # fmt: skip
_SEPARATORS = ("FROM", "FOR", "PLACING", "IN")
_WINDOWS = ("OVER", "FILTER", "IGNORE", "RESPECT", "WITHIN")


_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MOST_DEPTH = 60
_NUMBERS = (TokenKind.STRING, TokenKind.NUMBER)


class _Parser(ExpressionReader[Syntax]):
    """Reads Spark SQL's expressions, precedence as in its grammar."""

    powers: ClassVar = {sign: n for n, signs in enumerate(_LEVELS, 1) for sign in signs}

    def __init__(self, text: str) -> None:
        super().__init__(text, tokenized(text))

    def unexpected(self, wanted: str, hint: str = "") -> SqlSyntaxError:
        """Make the error for the next token, in whose place something else is wanted."""
        token = self.here
        got = "the end" if token.kind is TokenKind.END else repr(token.text)
        return SqlSyntaxError(
            f"{self.text!r}: expected {wanted} at position {token.start + 1}, got {got}",
            slip(self.text) or "write it as Spark SQL",
            problem=f"expected {wanted}, got {got}",
            span=(token.start, token.end),
        )

    def too_deep(self) -> SqlSyntaxError:
        """Make the error for a text that is nested too deep."""
        return SqlSyntaxError(
            f"{self.text[:60]!r}… is nested more than {_MOST_DEPTH} deep, "
            "or chains hundreds of operators",
            "split it into several conditions",
        )

    # --- booleans

    def expression(self) -> Syntax:
        """Read an expression of any kind."""
        with self.deeper(_MOST_DEPTH, self.too_deep):
            return super().expression()

    def _inside(self, *, is_condition: bool) -> Syntax:
        return self.expression()

    def _joined(self, operator: str, operands: list[Syntax]) -> Syntax:
        """Return AND or OR; of many, each half is a part, so that long chains are not deep."""
        while len(operands) > 1:
            pairs = zip(operands[::2], operands[1::2], strict=False)
            rest = operands[len(operands) // 2 * 2 :]
            operands = [self._operation(operator, *pair) for pair in pairs] + rest
        return operands[0]

    def _operation(self, operator: str, left: Syntax, right: Syntax) -> Syntax:
        name = _NAMES.get(operator, operator)
        return Syntax(Form.OPERATION, name, (left, right), left.start, right.end)

    def factor(self) -> Syntax:
        """Read a condition without AND or OR."""
        start = self.here.start
        if not self._takes_not():
            return self._predicate()
        with self.deeper(_MOST_DEPTH, self.too_deep):
            operand = self.factor()
        return Syntax(Form.OPERATION, "not", (operand,), start, operand.end)

    def _takes_not(self) -> bool:
        if self.here.word == "NOT" and self.ahead().word in (".", ")", ","):
            return False  # a column
        return self.take("NOT", "!") is not None

    def _predicate(self) -> Syntax:
        """Read a value and a following BETWEEN, IN, LIKE or IS."""
        part = self.value()
        start, at = part.start, self._at
        negated = self.take("NOT")
        found = self._is(part) if not negated and self.take("IS") else self._tested(part)
        if found is None:
            self._at = at
            return part
        return Syntax(Form.OPERATION, "not", (found,), start, found.end) if negated else found

    def _tested(self, part: Syntax) -> Syntax | None:
        if self.take("BETWEEN"):
            low = self.value()
            self.need("AND")
            high = self.value()
            return Syntax(Form.OPERATION, "between", (part, low, high), part.start, high.end)
        if self.sees("IN", "("):
            self.next()
            if self._is_query(1):
                query = self._opaque(self.here.start)
                return Syntax(Form.OPAQUE, None, (part,), part.start, query.end)
            if self.sees("(", ")"):
                self.next()
                raise self.unexpected("a value")
            items = self._items()
            return Syntax(Form.OPERATION, "in", (part, *items), *self.span(part.start))
        operator = self.take("LIKE", "ILIKE", "RLIKE", "REGEXP")
        return None if operator is None else self._like(part, operator.word.lower())

    def _like(self, part: Syntax, operator: str) -> Syntax:
        if self.here.word in ("ANY", "SOME", "ALL") and self.ahead().word == "(":
            operator += " " + self.next().text.lower()
            items = self._items()
            return Syntax(Form.OPERATION, operator, (part, *items), *self.span(part.start))
        pattern = self.value()
        escape = self.next().text if self.take("ESCAPE") else ""
        return Syntax(Form.OPERATION, operator, (part, pattern), *self.span(part.start), escape)

    def _is(self, part: Syntax) -> Syntax:
        negated = self.take("NOT") is not None
        if self.take("DISTINCT"):
            self.need("FROM")
            found = self._operation("<=>", part, self.value())
            negated = not negated
        else:
            constant = self.take("NULL", "TRUE", "FALSE", "UNKNOWN")
            if constant is None:
                raise self.unexpected("NULL, TRUE, FALSE or DISTINCT FROM")
            operator = "is " + _NAMES.get(word := constant.word.lower(), word)
            found = Syntax(Form.OPERATION, operator, (part,), *self.span(part.start))
        return Syntax(Form.OPERATION, "not", (found,), part.start, found.end) if negated else found

    # --- values

    def _signed(self) -> Syntax:
        token = self.take("-", "+", "~")
        if token is None:
            return self._postfix(self._primary())
        if token.word == "-" and self.here.kind is TokenKind.NUMBER:
            text = "-" + self.next().text
            return self._postfix(self._read(Form.LITERAL, text, (), token.start))
        with self.deeper(_MOST_DEPTH, self.too_deep):
            operand = self._signed()
        name = {"-": "neg", "+": "pos", "~": "~"}[token.word]
        return Syntax(Form.OPERATION, name, (operand,), token.start, operand.end)

    def _read(
        self, form: Form, value: Any, operands: Iterable[Syntax], start: int, detail: str = ""
    ) -> Syntax:
        """Return what was read from a position on."""
        return Syntax(form, value, tuple(operands), *self.span(start), detail)

    def _postfix(self, part: Syntax) -> Syntax:
        start = part.start
        while True:
            if self.take("["):
                index = self.expression()
                self.need("]")
                part = self._read(Form.CALL, "[]", (part, index), start)
            elif self.take("::"):
                type_ = self._type()
                part = self._read(Form.CALL, "cast", (part,), start, type_)
            elif self.here.word == "." and self.ahead().kind is TokenKind.NAME:
                self.next()
                field = self.next().text
                part = self._read(Form.CALL, ".", (part,), start, field)
            elif self.take(":"):
                self.next()
                part = self._read(Form.CALL, ":", (part,), start)
            else:
                return part

    def _type(self) -> str:
        """Read the name of a type; return its text."""
        start, depth = self.here.start, 0
        if self.here.kind is not TokenKind.NAME:
            raise self.unexpected("a type")
        self.next()
        while True:
            token = self.here
            if token.word in ("<", "("):
                depth += 1
            elif token.word in (">", ">>", ">>>", ")") and depth > 0:
                depth -= len(token.text)
            elif depth <= 0:
                return self.text[slice(*self.span(start))]
            elif token.kind is TokenKind.END:
                raise self.unexpected("the end of a type")
            self.next()

    def _primary(self) -> Syntax:
        token, following = self.here, self.ahead()
        start = token.start
        if token.kind in _NUMBERS:
            return self._read(Form.LITERAL, self.next().text, (), start)
        if token.word == "(":
            return self._parenthesized()
        if self.take("*"):
            return self._read(Form.STAR, (), (), start)
        if token.kind is not TokenKind.NAME:
            raise self.unexpected("a value")
        if not token.word:  # in backquotes
            return self._named()
        if token.word in ("NULL", "TRUE", "FALSE") and following.word != ".":
            return self._read(Form.LITERAL, self.next().text.lower(), (), start)
        if token.word == "CASE" and following.word not in (".", ")", ","):
            subject, parts = self._case()
            asked = subject is not None, len(parts) % 2 == 1
            operands = parts if subject is None else [subject, *parts]
            return self._read(Form.CASE, asked, operands, start)
        if token.word == "INTERVAL" and (
            following.kind in _NUMBERS or following.word in ("-", "+")
        ):
            return self._interval()
        if following.kind is TokenKind.STRING:
            self.next()
            self.next()
            return self._read(Form.TYPED, (token.text, following.text), (), start)
        return self._named()

    def _parenthesized(self) -> Syntax:
        start = self.here.start
        if self._is_query(1):
            return self._opaque(start)
        self.next()
        items = self.listed(self.expression)
        self.need(")")
        if self.here.word == "->":
            return self._lambda(items, start)
        if len(items) > 1:
            return self._read(Form.CALL, "struct", items, start)
        return self._read(Form.PAREN, None, items, start)

    def _named(self) -> Syntax:
        """Read a column, a star after names, or a function."""
        start = self.here.start
        names, inner = [self.next().text], -1
        while self.here.word == ".":
            following = self.ahead()
            if len(names) == 1:
                inner = following.start
            if following.word != "*" and following.kind is not TokenKind.NAME:
                break
            self.next()
            self.next()
            if following.word == "*":
                return attrs.evolve(self._read(Form.STAR, tuple(names), (), start), inner=inner)
            names.append(following.text)
        if self.here.word == "(":
            return self._call(names[-1].lower(), start)
        column = attrs.evolve(self._read(Form.COLUMN, tuple(names), (), start), inner=inner)
        return self._lambda([column], start) if self.here.word == "->" else column

    def _lambda(self, variables: list[Syntax], start: int) -> Syntax:
        if any(v.form is not Form.COLUMN or len(v.value) > 1 for v in variables):
            raise self.unexpected("an operator")
        self.need("->")
        body = self.expression()
        names = tuple(variable.value[0] for variable in variables)
        return Syntax(Form.LAMBDA, names, (body,), start, body.end)

    def _interval(self) -> Syntax:
        """Read an interval: a string or number with its unit, or several."""
        start = self.next().start
        first = self.here.start
        while (self.ahead() if self.here.word in ("-", "+") else self.here).kind in _NUMBERS:
            self.take("-", "+")
            self.next()
            if self.take(*UNITS) and self.here.word == "TO" and self.ahead().word in UNITS:
                self.next()
                self.next()
        text = self.text[slice(*self.span(first))]
        return self._read(Form.INTERVAL, text, (), start)

    # --- calls

    def _call(self, name: str, start: int) -> Syntax:
        if self._is_query(1):
            return self._opaque(start)
        self.need("(")
        operands: list[Syntax] = []
        distinct = "distinct" if self.take("DISTINCT") else ""
        self.take("ALL")
        type_ = ""
        while self.here.word != ")":
            operands.append(self._argument(name, len(operands)))
            if self.take("AS"):
                type_ = self._type()
            elif not self.take(",", *_SEPARATORS):
                break
        self.need(")")
        if self.here.word in _WINDOWS:
            return self._windowed(name, operands, start, distinct)
        if len(operands) == 2 and operands[0].form is Form.WORD and name.startswith("date"):
            column = operands[0]  # datediff(end, start), without a unit
            operands[0] = attrs.evolve(column, form=Form.COLUMN, value=(column.value,))
        return self._read(Form.CALL, name, operands, start, type_ or distinct)

    def _argument(self, function: str, place: int) -> Syntax:
        token, following = self.here, self.ahead()
        is_name = token.kind is TokenKind.NAME
        if place == 0 and is_name and token.word not in ("", "NULL", "TRUE", "FALSE"):
            if function in _UNIT_FIRST and following.word in (",", "FROM"):
                return self._read(Form.WORD, self.next().text, (), token.start)
            is_side = function == "trim" and self.take("BOTH", "LEADING", "TRAILING")
            if is_side and self.here.word == "FROM":
                return self._read(Form.WORD, token.text, (), token.start)
        if is_name and following.word == "=>":
            self.next()
            self.next()
        return self.value() if function == "position" else self.expression()

    def _items(self) -> list[Syntax]:
        self.need("(")
        items = [] if self.here.word == ")" else self.listed(self.expression)
        self.need(")")
        return items

    def _windowed(self, name: str, operands: list[Syntax], start: int, distinct: str) -> Syntax:
        """Read the suffixes of Spark's own aggregates: OVER, FILTER, IGNORE NULLS."""
        is_window = False
        while self.here.word in _WINDOWS:
            is_window = self.next().word == "OVER" or is_window
            self.take("NULLS", "GROUP")
            if self.here.word == "(" and is_window:
                self._skip_brackets()
            elif self.here.word == "(":
                operands += self._suffix()
            elif is_window:
                self.next()
        # With OVER, Spark computes it; otherwise it is an unsupported aggregate over a stage.
        if is_window:
            return self._read(Form.OPAQUE, "over", (), start)
        return self._read(Form.OPAQUE, name, operands, start, distinct or "other")

    def _suffix(self) -> list[Syntax]:
        """Read what stands in brackets after FILTER or WITHIN GROUP: WHERE …, ORDER BY …."""
        self.need("(")
        suffix = "filter" if self.take("WHERE") else "order by"
        if suffix == "order by" and not (self.take("ORDER") and self.take("BY")):
            raise self.unexpected("WHERE or ORDER BY")
        parts = [self.expression()]
        while not self.take(")"):
            if not self.take("ASC", "DESC", "NULLS", "FIRST", "LAST"):
                if not self.take(","):
                    raise self.unexpected("')'")
                parts.append(self.expression())
        return [Syntax(Form.CALL, suffix, (part,), part.start, part.end) for part in parts]

    def _is_query(self, ahead: int) -> bool:
        return self.here.word == "(" and self.ahead(ahead).word in ("SELECT", "WITH", "VALUES")

    def _opaque(self, start: int) -> Syntax:
        self._skip_brackets()
        return self._read(Form.OPAQUE, None, (), start)

    def _skip_brackets(self) -> None:
        """Read from an opening bracket to its closing one."""
        closing = [_CLOSING[self.next().word]]
        while closing:
            token = self.here
            if token.kind is TokenKind.END:
                raise self.unexpected(repr(closing[-1]))
            if token.word in _CLOSING:
                closing.append(_CLOSING[token.word])
            elif token.word == closing[-1]:
                closing.pop()
            self.next()
