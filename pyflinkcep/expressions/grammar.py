# SPDX-License-Identifier: Apache-2.0
"""Reads Spark SQL's expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import attrs

from pyflinkcep.expressions.tokens import Cursor, TokenKind
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
    """
    Return the parts that SQL computes only in some cases, each with its guards, outermost first.

    Examples
    --------
    >>> from pyflinkcep.expressions.grammar import parsed
    >>> text = "v = 0 OR n > 1 / v"
    >>> tree = parsed(text)
    >>> (quotient,) = (part for part in tree.walk() if part.value == "/")
    >>> (guard,) = guards_of(tree)[quotient]
    >>> guard.around(lambda part: text[part.start : part.end], "1 / v")
    'CASE WHEN (v = 0) THEN NULL ELSE 1 / v END'
    """
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
    """
    Read an expression.

    Examples
    --------
    >>> parsed("a + b * 2 > 1").operands[0].value
    '+'
    """
    parser = _Parser(text)
    try:
        part = parser.expression()
    except RecursionError:  # parentheses take several frames each
        raise parser.too_deep() from None
    parser.expect_end()
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


_COMPARISONS = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=")
_NAMES = {"==": "=", "!=": "<>", "unknown": "null"}
_LEVELS: tuple[tuple[str, ...], ...] = (
    _COMPARISONS, ("|",), ("^",), ("&",), ("<<", ">>", ">>>"), ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)  # fmt: skip
_UNIT_FIRST = (
    "extract", "timestampdiff", "timestampadd", "datediff", "dateadd", "date_diff", "date_add",
)  # fmt: skip
_SEPARATORS = ("FROM", "FOR", "PLACING", "IN")
_WINDOWS = ("OVER", "FILTER", "IGNORE", "RESPECT", "WITHIN")


class _Parser(Cursor):
    """Reads Spark SQL's expressions by recursive descent, precedence as in its grammar."""

    # --- booleans

    def expression(self) -> Syntax:
        """Read an expression of any kind."""
        with self._deeper():
            return self._chain("OR", lambda: self._chain("AND", self._negated))

    def _chain(self, word: str, operand: Callable[[], Syntax]) -> Syntax:
        """Read AND or OR; of many, each half is a part, so that long chains are not deep."""
        operands = [operand()]
        while self._word(word):
            operands.append(operand())
        while len(operands) > 1:
            pairs = zip(operands[::2], operands[1::2], strict=False)
            rest = operands[len(operands) // 2 * 2 :]
            operands = [
                Syntax(Form.OPERATION, word.lower(), (left, right), left.start, right.end)
                for left, right in pairs
            ] + rest
        return operands[0]

    def _negated(self) -> Syntax:
        start = self._now.start
        if self._now.is_word("NOT") and not self._ahead().is_sign(".", ")", ","):
            self._at += 1
        elif not self._sign("!"):
            return self._predicate()
        with self._deeper():
            operand = self._negated()
        return Syntax(Form.OPERATION, "not", (operand,), start, operand.end)

    def _predicate(self) -> Syntax:
        """Read a value and a following BETWEEN, IN, LIKE or IS."""
        part = self._value(0)
        start, at = part.start, self._at
        negated = self._word("NOT")
        found = self._is(part) if not negated and self._word("IS") else self._tested(part)
        if found is None:
            self._at = at
            return part
        if negated:
            return Syntax(Form.OPERATION, "not", (found,), start, found.end)
        return found

    def _tested(self, part: Syntax) -> Syntax | None:
        if self._word("BETWEEN"):
            low = self._value(0)
            if not self._word("AND"):
                raise self._unexpected("AND")
            high = self._value(0)
            return Syntax(Form.OPERATION, "between", (part, low, high), part.start, high.end)
        if self._now.is_word("IN") and self._ahead().is_sign("("):
            self._at += 1
            if self._is_query(1):
                query = self._opaque(self._now.start)
                return Syntax(Form.OPAQUE, None, (part,), part.start, query.end)
            items = self._items()
            return Syntax(Form.OPERATION, "in", (part, *items), part.start, self._end())
        for word in ("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            if self._word(word):
                return self._like(part, word.lower())
        return None

    def _like(self, part: Syntax, operator: str) -> Syntax:
        if self._now.is_word("ANY", "SOME", "ALL") and self._ahead().is_sign("("):
            operator += " " + self._next().text.lower()
            items = self._items()
            return Syntax(Form.OPERATION, operator, (part, *items), part.start, self._end())
        pattern = self._value(0)
        escape = self._next().text if self._word("ESCAPE") else ""
        return Syntax(Form.OPERATION, operator, (part, pattern), part.start, self._end(), escape)

    def _is(self, part: Syntax) -> Syntax:
        negated = self._word("NOT")
        if self._word("DISTINCT"):
            if not self._word("FROM"):
                raise self._unexpected("FROM")
            other = self._value(0)
            found = Syntax(Form.OPERATION, "<=>", (part, other), part.start, other.end)
            negated = not negated
        elif self._now.is_word("NULL", "TRUE", "FALSE", "UNKNOWN"):
            operator = "is " + _NAMES.get(word := self._next().text.lower(), word)
            found = Syntax(Form.OPERATION, operator, (part,), part.start, self._end())
        else:
            raise self._unexpected("NULL, TRUE, FALSE or DISTINCT FROM")
        return Syntax(Form.OPERATION, "not", (found,), part.start, found.end) if negated else found

    # --- values

    def _value(self, level: int) -> Syntax:
        """Read operators of a precedence level, and all that bind more tightly."""
        if level == len(_LEVELS):
            return self._signed()
        signs = _LEVELS[level]
        left = self._value(level + 1)
        while self._now.is_sign(*signs) or ("DIV" in signs and self._now.is_word("DIV")):
            operator = self._next().text.lower()
            right = self._value(level + 1)
            name = _NAMES.get(operator, operator)
            left = Syntax(Form.OPERATION, name, (left, right), left.start, right.end)
        return left

    def _signed(self) -> Syntax:
        token = self._now
        if not token.is_sign("-", "+", "~"):
            return self._postfix(self._primary())
        self._at += 1
        if token.text == "-" and self._now.kind is TokenKind.NUMBER:
            number = self._next()
            literal = Syntax(Form.LITERAL, "-" + number.text, (), token.start, number.end)
            return self._postfix(literal)
        with self._deeper():
            operand = self._signed()
        name = {"-": "neg", "+": "pos", "~": "~"}[token.text]
        return Syntax(Form.OPERATION, name, (operand,), token.start, operand.end)

    def _postfix(self, part: Syntax) -> Syntax:
        while True:
            if self._sign("["):
                index = self.expression()
                self._expect("]")
                part = Syntax(Form.CALL, "[]", (part, index), part.start, self._end())
            elif self._sign("::"):
                type_ = self._type()
                part = Syntax(Form.CALL, "cast", (part,), part.start, self._end(), type_)
            elif self._now.is_sign(".") and self._ahead().kind is TokenKind.NAME:
                name = self._ahead()
                part = Syntax(Form.CALL, ".", (part,), part.start, name.end, name.text)
                self._at += 2
            elif self._sign(":"):
                self._next()
                part = Syntax(Form.CALL, ":", (part,), part.start, self._end())
            else:
                return part

    def _type(self) -> str:
        """Read the name of a type; return its text."""
        start, depth = self._now.start, 0
        if self._now.kind is not TokenKind.NAME:
            raise self._unexpected("a type")
        self._next()
        while True:
            token = self._now
            if token.is_sign("<", "("):
                depth += 1
            elif token.is_sign(">", ">>", ">>>", ")") and depth > 0:
                depth -= len(token.text)
            elif depth <= 0:
                return self._text[start : self._end()]
            elif token.kind is TokenKind.END:
                raise self._unexpected("the end of a type")
            self._next()

    def _primary(self) -> Syntax:
        token = self._now
        start = token.start
        if token.kind in (TokenKind.NUMBER, TokenKind.STRING):
            self._next()
            return Syntax(Form.LITERAL, token.text, (), start, token.end)
        if token.is_sign("("):
            return self._parenthesized()
        if token.is_sign("*"):
            self._next()
            return Syntax(Form.STAR, (), (), start, token.end)
        if token.kind is not TokenKind.NAME:
            raise self._unexpected("a value")
        if token.quoted:
            return self._named()
        following = self._ahead()
        if token.is_word("NULL", "TRUE", "FALSE") and not following.is_sign("."):
            self._next()
            return Syntax(Form.LITERAL, token.text.lower(), (), start, token.end)
        if token.is_word("CASE") and not following.is_sign(".", ")", ","):
            return self._case()
        if token.is_word("INTERVAL") and (
            following.kind in (TokenKind.STRING, TokenKind.NUMBER) or following.is_sign("-", "+")
        ):
            return self._interval()
        if following.kind is TokenKind.STRING:
            self._at += 2
            return Syntax(Form.TYPED, (token.text, following.text), (), start, following.end)
        return self._named()

    def _parenthesized(self) -> Syntax:
        start = self._now.start
        if self._is_query(1):
            return self._opaque(start)
        self._next()
        items = [self.expression()]
        while self._sign(","):
            items.append(self.expression())
        self._expect(")")
        if self._now.is_sign("->"):
            return self._lambda(items, start)
        if len(items) > 1:
            return Syntax(Form.CALL, "struct", tuple(items), start, self._end())
        return Syntax(Form.PAREN, None, (items[0],), start, self._end())

    def _named(self) -> Syntax:
        """Read a column, a star after names, or a function."""
        start = self._now.start
        names, inner = [self._next().text], -1
        while self._now.is_sign("."):
            if len(names) == 1:
                inner = self._ahead().start
            if self._ahead().is_sign("*"):
                self._at += 2
                return Syntax(Form.STAR, tuple(names), (), start, self._end(), inner=inner)
            if self._ahead().kind is not TokenKind.NAME:
                break
            self._at += 1
            names.append(self._next().text)
        if self._now.is_sign("("):
            return self._call(names[-1].lower(), start)
        column = Syntax(Form.COLUMN, tuple(names), (), start, self._end(), inner=inner)
        return self._lambda([column], start) if self._now.is_sign("->") else column

    def _lambda(self, variables: list[Syntax], start: int) -> Syntax:
        if any(v.form is not Form.COLUMN or len(v.value) > 1 for v in variables):
            raise self._unexpected("an operator")
        self._expect("->")
        body = self.expression()
        names = tuple(variable.value[0] for variable in variables)
        return Syntax(Form.LAMBDA, names, (body,), start, body.end)

    def _case(self) -> Syntax:
        start = self._next().start
        operands: list[Syntax] = []
        has_subject = not self._now.is_word("WHEN")
        if has_subject:
            operands.append(self.expression())
        if not self._now.is_word("WHEN"):
            raise self._unexpected("WHEN")
        while self._word("WHEN"):
            operands.append(self.expression())
            if not self._word("THEN"):
                raise self._unexpected("THEN")
            operands.append(self.expression())
        has_else = self._word("ELSE")
        if has_else:
            operands.append(self.expression())
        if not self._word("END"):
            raise self._unexpected("END")
        return Syntax(Form.CASE, (has_subject, has_else), tuple(operands), start, self._end())

    def _interval(self) -> Syntax:
        """Read an interval: a string or number with its unit, or several."""
        start = self._next().start
        first = self._now.start
        while True:
            is_signed = self._now.is_sign("-", "+")
            number = self._ahead() if is_signed else self._now
            if number.kind not in (TokenKind.STRING, TokenKind.NUMBER):
                break
            self._sign("-", "+")
            self._next()
            if self._word(*_UNITS) and self._now.is_word("TO") and self._ahead().is_word(*_UNITS):
                self._at += 2
        return Syntax(Form.INTERVAL, self._text[first : self._end()], (), start, self._end())

    # --- calls

    def _call(self, name: str, start: int) -> Syntax:
        if self._is_query(1):
            return self._opaque(start)
        self._expect("(")
        operands: list[Syntax] = []
        distinct = "distinct" if self._word("DISTINCT") else ""
        self._word("ALL")
        type_ = ""
        while not self._now.is_sign(")"):
            operands.append(self._argument(name, len(operands)))
            if self._word("AS"):
                type_ = self._type()
            elif not self._sign(",") and not self._word(*_SEPARATORS):
                break
        self._expect(")")
        if self._now.is_word(*_WINDOWS):
            return self._windowed(name, tuple(operands), start, distinct)
        if len(operands) == 2 and operands[0].form is Form.WORD and name.startswith("date"):
            column = operands[0]  # datediff(end, start), without a unit
            names = (column.value,)
            operands[0] = Syntax(Form.COLUMN, names, (), column.start, column.end)
        end = self._end()
        return Syntax(Form.CALL, name, tuple(operands), start, end, type_ or distinct)

    def _argument(self, function: str, place: int) -> Syntax:
        token, following = self._now, self._ahead()
        is_constant = token.is_word("NULL", "TRUE", "FALSE")
        if place == 0 and token.kind is TokenKind.NAME and not token.quoted and not is_constant:
            if function in _UNIT_FIRST and (following.is_sign(",") or following.is_word("FROM")):
                self._next()
                return Syntax(Form.WORD, token.text, (), token.start, token.end)
            if function == "trim" and token.is_word("BOTH", "LEADING", "TRAILING"):
                self._next()
                if self._now.is_word("FROM"):
                    return Syntax(Form.WORD, token.text, (), token.start, token.end)
        if token.kind is TokenKind.NAME and following.is_sign("=>"):
            self._at += 2
        return self._value(0) if function == "position" else self.expression()

    def _items(self) -> tuple[Syntax, ...]:
        self._expect("(")
        items = [] if self._now.is_sign(")") else [self.expression()]
        while self._sign(","):
            items.append(self.expression())
        self._expect(")")
        return tuple(items)

    def _windowed(
        self, name: str, operands: tuple[Syntax, ...], start: int, distinct: str
    ) -> Syntax:
        """Read the suffixes of Spark's own aggregates: OVER, FILTER, IGNORE NULLS."""
        is_window, inside = False, list(operands)
        while self._now.is_word(*_WINDOWS):
            is_window = is_window or self._now.is_word("OVER")
            self._next()
            self._word("NULLS", "GROUP")
            if self._now.is_sign("(") and is_window:
                self._skip_brackets()
            elif self._now.is_sign("("):
                inside += self._suffix()
            elif is_window:
                self._next()
        # With OVER, Spark computes it; otherwise it is an unsupported aggregate over a stage.
        if is_window:
            return Syntax(Form.OPAQUE, "over", (), start, self._end())
        return Syntax(Form.OPAQUE, name, tuple(inside), start, self._end(), distinct or "other")

    def _suffix(self) -> list[Syntax]:
        """Read what stands in brackets after FILTER or WITHIN GROUP: WHERE …, ORDER BY …."""
        self._expect("(")
        suffix = "filter" if self._word("WHERE") else "order by"
        if suffix == "order by" and not (self._word("ORDER") and self._word("BY")):
            raise self._unexpected("WHERE or ORDER BY")
        parts = [self.expression()]
        while not self._now.is_sign(")"):
            if not self._word("ASC", "DESC", "NULLS", "FIRST", "LAST"):
                if not self._sign(","):
                    raise self._unexpected("')'")
                parts.append(self.expression())
        self._expect(")")
        return [Syntax(Form.CALL, suffix, (part,), part.start, part.end) for part in parts]

    def _is_query(self, ahead: int) -> bool:
        return self._now.is_sign("(") and self._ahead(ahead).is_word("SELECT", "WITH", "VALUES")

    def _opaque(self, start: int) -> Syntax:
        self._skip_brackets()
        return Syntax(Form.OPAQUE, None, (), start, self._end())


_UNITS = {
    unit + plural
    for unit in (
        "YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
    )
    for plural in ("", "S")
}  # fmt: skip
