# SPDX-License-Identifier: Apache-2.0
"""
Conditions in AviatorScript, as documents of dynamic Flink CEP have them, from and to SQL.

Only what compares values of one event is read; nothing is evaluated. ``nil`` is SQL's NULL.
"""

from __future__ import annotations

import re
from decimal import Decimal

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError
from pyflinkcep.expressions.parser import event_tree
from pyflinkcep.expressions.tokens import Cursor, Token, TokenKind, tokenized
from pyflinkcep.expressions.tree import (
    Call,
    Column,
    Literal,
    Operation,
    Tree,
    attribute_of,
    quoted_name,
    text_sql,
)

_AVIATOR = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<raw>=~\s*/(?:[^/\\\n]|\\.)+/)
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<number>(?:\d+\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
    | (?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%<>=!(),;:?\[\]{}|&\#~])
    """,
    re.VERBOSE | re.DOTALL,
)
_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_POWERS = {sign: power for power, signs in enumerate(_LEVELS, 1) for sign in signs}
_SIGNED, _WHOLE = 7, 8
_OR, _AND, _NOT, _COMPARED, _ADDED, _MULTIPLIED = range(1, 7)
_IN_SQL = {
    "||": ("OR", _OR), "&&": ("AND", _AND), "==": ("=", _COMPARED), "!=": ("<>", _COMPARED),
    **{sign: (sign, _COMPARED) for sign in ("<", "<=", ">", ">=")},
    **{sign: (sign, _ADDED) for sign in ("+", "-")},
    **{sign: (sign, _MULTIPLIED) for sign in ("*", "/", "%")},
}  # fmt: skip
"""Operators of Aviator: those of SQL, and how tightly these bind, which is not the same."""

_MOST_DEPTH = 60
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_QUOTED = frozenset({
    "and", "or", "not", "in", "is", "like", "ilike", "rlike", "regexp", "between", "case", "when",
    "then", "else", "end", "null", "true", "false", "unknown", "interval", "div", "distinct",
    "escape", "exists", "any", "all", "some", "from", "for", "over", "filter", "collate", "at",
    "select", "with", "ignore", "respect", "within",
})  # fmt: skip
"""Words that are columns in SQL only in backticks."""

_HINT = "write ==, !=, >, >=, <, <=, &&, ||, !, + - * / %, =~ /…/, literals and names of columns"


def sql_of_aviator(text: str) -> str:
    """
    Return an Aviator expression as a SQL condition.

    Examples
    --------
    >>> sql_of_aviator("price >= 8 && !(user == 'ann' || note == nil)")
    "price >= 8 AND NOT (user = 'ann' OR note IS NULL)"
    """
    reader = _Reader(text, tokenized(text, _AVIATOR, _unreadable))
    try:
        found = reader.value()
    except RecursionError:
        raise reader.too_deep() from None
    if reader.here.kind is not TokenKind.END:
        raise reader.unexpected("an operator or the end")
    return found.sql


def _unreadable(text: str, at: int) -> CepError:
    return _refused(text, at, at + 1, f"expected a condition, got {text[at]!r}", _HINT)


def _refused(text: str, start: int, end: int, problem: str, hint: str) -> CepError:
    return InvalidArgumentError(
        f"{text!r}: {problem} at position {start + 1}",
        hint,
        problem=problem,
        condition=text,
        span=(start, end),
    )


@attrs.frozen
class _Sql:
    """SQL, how tightly its operator binds, and whether it is NULL, or a text."""

    sql: str
    power: int = _WHOLE
    is_nil: bool = False
    is_text: bool = False

    def inside(self, power: int) -> str:
        """Return it as an operand of what binds with some power."""
        return self.sql if self.power > power else f"({self.sql})"


class _Reader(Cursor):
    """Reads Aviator's expressions, precedence as there, and writes them as SQL."""

    def value(self, power: int = 0) -> _Sql:
        """Read operators that bind more tightly than some power, and what they are between."""
        left = self._signed()
        while True:
            sign = self.here
            if sign.text.startswith("=~") and _POWERS["=="] > power:
                written = self.next().text[2:].strip()[1:-1].replace("\\/", "/")
                whole = text_sql(rf"^(?:{written})\z")
                left = _Sql(f"{left.inside(_COMPARED)} RLIKE {whole}", _COMPARED)
            elif (own := _POWERS.get(sign.word, 0)) > power:
                self.next()
                left = self._between(sign, left, self.value(own))
            else:
                return left

    def _between(self, sign: Token, left: _Sql, right: _Sql) -> _Sql:
        word, power = _IN_SQL[sign.word]
        if word == "+" and (left.is_text or right.is_text):
            raise self._refuse(sign, "+ of a text is not read", "compare it alone")
        if sign.word in ("==", "!=") and (left.is_nil or right.is_nil):
            tested = left if right.is_nil else right
            is_null = "IS NULL" if sign.word == "==" else "IS NOT NULL"
            return _Sql(f"{tested.inside(power)} {is_null}", power)
        before = power if power == _COMPARED else power - 1
        return _Sql(f"{left.inside(before)} {word} {right.inside(power)}", power)

    def _signed(self) -> _Sql:
        with self.deeper(_MOST_DEPTH, self.too_deep):
            if self.take("!"):
                return _Sql(f"NOT {self._signed().inside(_SIGNED)}", _NOT)
            if self.take("-"):
                return _Sql(f"-{self._signed().inside(_SIGNED)}", _SIGNED)
            return self._primary()

    def _primary(self) -> _Sql:
        token = self.next()
        if token.word == "(":
            inner = self.value()
            self.need(")")
            return inner
        match token.kind:
            case TokenKind.NUMBER:
                return _Sql(token.text)
            case TokenKind.STRING if token.text[0] != "=":
                return _Sql(text_sql(self._string(token)), is_text=True)
            case TokenKind.NAME:
                return self._name(token)
        raise self._refuse(token, f"expected a value, got {token.text or 'the end'!r}", _HINT)

    def _name(self, token: Token) -> _Sql:
        if self.sees("("):
            raise self._refuse(
                token, f"the call of {token.text!r} is not read", "write the condition as SQL"
            )
        if token.text in ("true", "false", "nil"):
            is_nil = token.text == "nil"
            return _Sql("NULL" if is_nil else token.text, is_nil=is_nil)
        return _Sql(".".join(map(_column, token.text.split("."))))

    def _string(self, token: Token) -> str:
        written = token.text[1:-1]
        if "#{" in written:
            raise self._refuse(token, "#{…} in a text is not read", "write the text itself")

        def unescaped(found: re.Match[str]) -> str:
            if found[1].isalnum() and found[1] not in _ESCAPES:
                problem = f"the escape {found[0]} is not read"
                raise self._refuse(token, problem, "write the character itself")
            return _ESCAPES.get(found[1], found[1])

        return re.sub(r"\\(.)", unescaped, written, flags=re.DOTALL)

    def _refuse(self, token: Token, problem: str, hint: str) -> CepError:
        return _refused(self.text, token.start, token.end, problem, hint)

    def too_deep(self) -> CepError:
        """Make the error for a condition with too many parentheses."""
        return _refused(self.text, 0, len(self.text), "too many parentheses", "write fewer")

    def unexpected(self, wanted: str, hint: str = "") -> CepError:
        """Make the error for the next token, in whose place something else is wanted."""
        found = self.here.text or "the end"
        return self._refuse(self.here, f"expected {wanted}, got {found!r}", hint or _HINT)


def _column(name: str) -> str:
    return quoted_name(name) if name.lower() in _QUOTED else name


# --- SQL as Aviator

_NAME = re.compile(r"[^\W\d]\w*")
_WHOLE_TEXT = re.compile(r"\^\(\?:(.+)\)\\z", re.DOTALL)
_WRITTEN = {
    "or": "||", "and": "&&", "=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "+": "+", "-": "-", "*": "*", "%": "%",
}  # fmt: skip


def aviator_of_sql(sql: str) -> str | None:
    """
    Return a SQL condition about one event in Aviator; None if Aviator cannot say the same.

    Division is not among what it says: that of whole numbers is another one there.

    Examples
    --------
    >>> aviator_of_sql("price >= 8 AND (user = 'ann' OR note IS NULL)")
    "price >= 8 && (user == 'ann' || note == nil)"
    >>> aviator_of_sql("upper(user) = 'ANN'") is None
    True
    """
    try:
        tree = event_tree(sql)
        written = _written(tree)
        is_same = written is not None and event_tree(sql_of_aviator(written[0])) == tree
    except CepError:
        return None
    return written[0] if written is not None and is_same else None


def _written(tree: Tree) -> tuple[str, int] | None:
    """Return a tree in Aviator, and how tightly its operator binds."""
    if isinstance(tree, Literal):
        return _literal(tree)
    if isinstance(tree, Call) and tree.function == "rlike":
        return _matching(*tree.operands)
    if isinstance(tree, Column | Call):
        name = _path(tree)
        return None if name is None else (name, _WHOLE)
    if not isinstance(tree, Operation):
        return None
    tested, sign = _nil_test(tree)
    if tested is not None:
        return f"{_inside(tested, _POWERS[sign])} {sign} nil", _POWERS[sign]
    parts = [_written(part) for part in tree.operands]
    operands = [part for part in parts if part is not None]
    if len(operands) < len(parts):
        return None
    if tree.operator in ("not", "neg"):
        sign = "!" if tree.operator == "not" else "-"
        return f"{sign}{_inside(operands[0], _SIGNED)}", _SIGNED
    if tree.operator not in _WRITTEN or len(operands) != 2:
        return None
    sign = _WRITTEN[tree.operator]
    power = _POWERS[sign]
    left, right = _inside(operands[0], power - 1), _inside(operands[1], power)
    return f"{left} {sign} {right}", power


def _nil_test(tree: Operation) -> tuple[tuple[str, int] | None, str]:
    """Return what a test for NULL tests, if a tree is one, and the sign of the comparison."""
    inner = tree.operands[0]
    if tree.operator == "not" and isinstance(inner, Operation) and inner.operator == "is null":
        return _written(inner.operands[0]), "!="
    return (_written(inner) if tree.operator == "is null" else None), "=="


def _matching(value: Tree, pattern: Tree) -> tuple[str, int] | None:
    """Return a comparison of a whole text with a regular expression."""
    written = _written(value)
    regex = pattern.value if isinstance(pattern, Literal) else None
    if written is None or not isinstance(regex, str) or not (found := _WHOLE_TEXT.fullmatch(regex)):
        return None
    inner = re.sub(r"(?<!\\)/", r"\/", found[1])
    return f"{_inside(written, _POWERS['=='])} =~ /{inner}/", _POWERS["=="]


def _inside(written: tuple[str, int], power: int) -> str:
    text, own = written
    return text if own > power else f"({text})"


def _literal(tree: Literal) -> tuple[str, int] | None:
    value = tree.value
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "nil"}[value], _WHOLE
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{escaped}'", _WHOLE
    if isinstance(value, int | Decimal) and tree.text == f"{value}":
        return f"{value}", _WHOLE if value >= 0 else _SIGNED
    return None


def _path(tree: Tree) -> str | None:
    """Return the name of a column, or of a field of one; None if Aviator has no such name."""
    if isinstance(tree, Column):
        name = attribute_of(tree.sql or "")
        is_name = _NAME.fullmatch(name) and name not in ("true", "false", "nil")
        return name if is_name else None
    if isinstance(tree, Call) and tree.function == "." and _NAME.fullmatch(tree.detail):
        first = _path(tree.operands[0])
        return None if first is None else f"{first}.{tree.detail}"
    return None
