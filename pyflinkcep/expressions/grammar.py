# SPDX-License-Identifier: Apache-2.0
"""Reads Spark SQL's expressions."""

from __future__ import annotations

from collections.abc import Callable

from pyflinkcep.expressions.cursor import Cursor
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.tokens import TokenKind

__all__ = ["parsed"]


def parsed(text: str) -> Syntax:
    """
    Read an expression.

    Raises
    ------
    SqlSyntaxError
        If it is not one; the message names the position.

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
            self._sign("-", "+")
            if self._now.kind not in (TokenKind.STRING, TokenKind.NUMBER):
                break
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
        if place == 0 and token.kind is TokenKind.NAME and not token.quoted:
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
