# SPDX-License-Identifier: Apache-2.0
"""Spark SQL's words and symbols, each with its position in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from enum import Enum
from typing import NamedTuple

from pyflinkcep.errors import InvalidArgumentError


class SqlSyntaxError(InvalidArgumentError):
    """SQL that cannot be parsed; the message and the span say where."""


class TokenKind(Enum):
    """The kind of a token."""

    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    SIGN = "sign"
    END = "end of text"


class Token(NamedTuple):
    """A word or symbol."""

    kind: TokenKind  # Its kind; names in backquotes are names
    text: str  # Its text as written; names in backquotes without these
    # Its position: ``text[start:end]``.
    start: int
    end: int
    quoted: bool = False  # Whether it is a name in backquotes, and so never a keyword

    def is_word(self, *words: str) -> bool:
        """Whether the token is one of these keywords, in upper case."""
        return self.kind is TokenKind.NAME and not self.quoted and self.text.upper() in words

    def is_sign(self, *signs: str) -> bool:
        """Whether the token is one of these signs."""
        return self.kind is TokenKind.SIGN and self.text in signs


_STRING = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\""""
_TOKENS = re.compile(
    rf"""
      (?P<space>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<string>{_STRING})
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDFlsydf]|bd)?(?![\w]))
    | (?P<name>\w+)
    | (?P<sign><=>|>>>|<<|>>|<>|!=|<=|>=|==|=>|->|::|\|\||\|>|[-+*/%=<>!~&|^.,:;()\[\]{{}}?@\#$])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "raw": TokenKind.STRING,
    "string": TokenKind.STRING,
    "number": TokenKind.NUMBER,
    "name": TokenKind.NAME,
    "sign": TokenKind.SIGN,
}


_SLIPS = tuple(
    (re.compile(found, re.IGNORECASE), hint)
    for found, hint in (
        (r";\s*$", "leave out the semicolon"),
        (r"[‘’“”„«»]", "write straight quotes: 'text'"),
        (r"&&", "write AND for &&"),
        (r"={3}", "write = for ==="),
        (r"=!|!\s+=|<\s+>|/=", "write <> or !="),
        (r"=>", "write >= for =>"),
        (r"=<", "write <= for =<"),
        (r"\bin\s*[\[{]", "write a list in parentheses: IN (1, 5)"),
        (r"\bis\s+none\b|\bisnull\b(?!\s*\()|[!=]=?\s*none\b", "write IS NULL, or IS NOT NULL"),
        (r"\bis\s+not\s+none\b|\bnotnull\b", "write IS NOT NULL"),
        (r"\?\?", "write coalesce(a, b) for a ?? b"),
        (r"=?~", "write RLIKE, or LIKE"),
        (r"\bbetween\b[^()]*,", "write BETWEEN 1 AND 5"),
        (r"^\s*(where|if)\b(?!\s*\()", "write the condition alone"),
        (r"'\w+'\w", "double a quote inside of a text: 'it''s'"),
    )
)


def slip(text: str) -> str | None:
    """
    Return what to write instead if a text that is not SQL has a well-known slip; None if not.

    Examples
    --------
    >>> slip("n in [1, 5]"), slip("s = 'a;'")
    ('write a list in parentheses: IN (1, 5)', None)
    """
    code = re.sub(_STRING, "''", text)
    return next((hint for found, hint in _SLIPS if found.search(code)), None)


def tokenized(text: str) -> list[Token]:
    """
    Return the tokens of a text without spaces and comments; the last is of kind END.

    Examples
    --------
    >>> [token.text for token in tokenized("`a b`.x >= 1.5D -- so")]
    ['a b', '.', 'x', '>=', '1.5D', '']
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKENS.match(text, at)
        if found is None:
            raise SqlSyntaxError(
                f"{text!r}: expected a word or sign at position {at + 1}, got {text[at]!r}",
                slip(text) or "close strings with ' and quoted names with `",
                problem=f"expected a word or sign, got {text[at]!r}",
                span=(at, at + 1),
            )
        kind = str(found.lastgroup)
        if kind == "quoted":
            name = found[0][1:-1].replace("``", "`")
            tokens.append(Token(TokenKind.NAME, name, at, found.end(), True))
        elif kind != "space":
            tokens.append(Token(_KINDS[kind], found[0], at, found.end()))
        at = found.end()
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return tokens


_ESCAPES = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7]|.)", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def string_value(written: str) -> str:
    r"""
    Return the value of a string literal, with escapes resolved as in Spark.

    Examples
    --------
    >>> string_value(r"'it''s \u0041\%'")
    "it's A\\%"
    """
    if written[0] in "rR":
        return written[2:-1]
    quote = written[0]
    return _ESCAPES.sub(_unescaped, written[1:-1].replace(quote * 2, quote))


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16)) if escape[0] in "uU" else chr(int(escape, 8))
    if escape in "%_":
        return "\\" + escape  # resolved by LIKE
    return _CONTROLS.get(escape, escape)


_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MOST_DEPTH = 60


class Cursor:
    """Reads tokens one by one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenized(text)
        self._at = 0
        self._depth = 0

    # --- tokens

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _ahead(self, count: int = 1) -> Token:
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._now
        if token.kind is not TokenKind.END:
            self._at += 1
        return token

    def _end(self) -> int:
        """Return the end of the last token read."""
        return self._tokens[self._at - 1].end

    def _sign(self, *signs: str) -> bool:
        """Whether the next token is one of these symbols; if so, read it."""
        if self._now.is_sign(*signs):
            self._at += 1
            return True
        return False

    def _word(self, *words: str) -> bool:
        """Whether the next token is one of these keywords; if so, read it."""
        if self._now.is_word(*words):
            self._at += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._sign(sign):
            raise self._unexpected(repr(sign))

    def expect_end(self) -> None:
        """Raise if there are more tokens."""
        if self._now.kind is not TokenKind.END:
            raise self._unexpected("an operator or the end")

    def _unexpected(self, expected: str) -> SqlSyntaxError:
        token = self._now
        got = "the end" if token.kind is TokenKind.END else repr(token.text)
        return SqlSyntaxError(
            f"{self._text!r}: expected {expected} at position {token.start + 1}, got {got}",
            slip(self._text) or "write it as Spark SQL",
            problem=f"expected {expected}, got {got}",
            span=(token.start, token.end),
        )

    def _skip_brackets(self) -> None:
        """Read from an opening bracket to its closing one."""
        closing = [_CLOSING[self._next().text]]
        while closing:
            token = self._now
            if token.kind is TokenKind.END:
                raise self._unexpected(repr(closing[-1]))
            if token.is_sign(*_CLOSING):
                closing.append(_CLOSING[token.text])
            elif token.is_sign(closing[-1]):
                closing.pop()
            self._next()

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Count the nesting depth of the text; raise if it is too deep."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise self.too_deep()
        yield
        self._depth -= 1

    def too_deep(self) -> SqlSyntaxError:
        """Make the error for a text that is nested too deep."""
        return SqlSyntaxError(
            f"{self._text[:60]!r}… is nested more than {_MOST_DEPTH} deep, "
            "or chains hundreds of operators",
            "split it into several conditions",
        )


LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The range of whole numbers."""


def wrapped(number: int) -> int:
    """Return a whole number as 64 bits have it."""
    return (number - LEAST) % (1 << 64) + LEAST


_US = 1_000_000
UNITS_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": _US,
    "MINUTE": 60 * _US,
    "HOUR": 3_600 * _US,
    "DAY": 86_400 * _US,
    "WEEK": 7 * 86_400 * _US,
}
"""The units of time that always have the same length, in microseconds."""

_SUFFIX = re.compile(r"(.*?)(BD|[LSYDF])?", re.IGNORECASE)
_CLOCK = r"(?P<hour>\d+):(?P<minute>\d+)(?::(?P<second>\d+(?:\.\d*)?))?"
_TO_FORMS = {
    ("DAY", "HOUR"): r"(?P<day>\d+) (?P<hour>\d+)",
    ("DAY", "MINUTE"): r"(?P<day>\d+) (?P<hour>\d+):(?P<minute>\d+)",
    ("DAY", "SECOND"): rf"(?P<day>\d+) {_CLOCK}",
    ("HOUR", "MINUTE"): r"(?P<hour>\d+):(?P<minute>\d+)",
    ("HOUR", "SECOND"): _CLOCK,
    ("MINUTE", "SECOND"): r"(?P<minute>\d+):(?P<second>\d+(?:\.\d*)?)",
}
_PIECE = re.compile(
    r"""\s*(?P<sign>[-+]?)\s*(?P<quote>['"]?)\s*(?P<inner>[-+]?)\s*(?P<number>\d+(?:\.\d*)?|\.\d+)
    \s*(?P=quote)\s*(?P<unit>[A-Za-z]+?)S?(?![A-Za-z])""",
    re.VERBOSE | re.IGNORECASE,
)


def literal_value(written: str) -> int | float | str | bool | Decimal | None:
    """
    Return the value of a literal.

    Integers without a suffix that do not fit bigint are decimals, as in Spark; so are numbers with
    a point, but with an exponent or a suffix D or F they are floats.

    Examples
    --------
    >>> [literal_value(text) for text in ("7", "-7L", "0.80", "1e3", ".5D", "true", "null")]
    [7, -7, Decimal('0.80'), 1000.0, 0.5, True, None]
    """
    constants = {"null": None, "true": True, "false": False}
    if written in constants:
        return constants[written]
    if written[0] in "'\"rR":
        return string_value(written)
    found = _SUFFIX.fullmatch(written)
    assert found is not None
    digits, suffix = found[1], (found[2] or "").upper()
    if suffix == "BD":
        return Decimal(digits)
    if suffix in ("D", "F") or "e" in digits.lower():
        return float(digits)
    if "." in digits:
        return Decimal(digits)
    value = int(digits)
    return value if LEAST <= value <= MOST else Decimal(value)


def interval_us(written: str) -> int | None:
    """
    Return the microseconds of an interval; None if it has months or years, does not fit 64 bits,
    or is not one.

    Examples
    --------
    >>> interval_us("'5' MINUTE"), interval_us("'1 02:00:00' DAY TO SECOND"), interval_us("2 YEARS")
    (300000000, 93600000000, None)
    """
    field = re.fullmatch(
        r"(?P<sign>[-+]?)\s*['\"](?P<inner>[-+]?)(?P<text>[^'\"]*)['\"]\s*(\w+)\s+TO\s+(\w+)",
        written.strip(),
        re.IGNORECASE,
    )
    if field is not None:
        form = _TO_FORMS.get((field[4].upper(), field[5].upper()))
        found = form and re.fullmatch(form, field["text"].strip())
        if not found:
            return None
        parts = found.groupdict()
        total = sum(
            Decimal(number) * UNITS_US[unit.upper()] for unit, number in parts.items() if number
        )
        return _in_range(_signed(int(total), field["sign"], field["inner"]))
    return _in_range(_pieces_us(written))


def _in_range(number: int | None) -> int | None:
    return number if number is not None and LEAST <= number <= MOST else None


def _pieces_us(written: str) -> int | None:
    """Return the microseconds of numbers with units: ``5 MINUTES``, ``'1 day 2 hours'``."""
    text = written.strip()
    whole = re.fullmatch(r"(['\"])(.*)\1", text)  # all of it in one string
    if whole is not None:
        text = re.sub(r"^\s*interval\s", "", whole[2], flags=re.IGNORECASE)
    total, at = 0, 0
    while at < len(text) and text[at:].strip():
        found = _PIECE.match(text, at)
        if found is None or found["unit"].upper() not in UNITS_US:
            return None
        amount = Decimal(found["number"]) * UNITS_US[found["unit"].upper()]
        total += _signed(int(amount), found["sign"], found["inner"])
        at = found.end()
    return total if at else None


def _signed(amount: int, *signs: str) -> int:
    return -amount if signs.count("-") == 1 else amount


def like_pattern(pattern: str, escape: str) -> str | None:
    r"""
    Return a LIKE pattern with ``\`` as its escape character; None if its escapes are wrong.

    Examples
    --------
    >>> like_pattern("50!%_", "!")
    '50\\%_'
    """
    if len(escape) != 1:
        return None
    result, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("%", "_", escape):
                return None
            result += "\\" + pattern[at] if pattern[at] in "%_\\" else pattern[at]
        else:
            result += "\\\\" if char == "\\" else char
        at += 1
    return result


def like_regex(pattern: str) -> re.Pattern[str]:
    r"""Return the regular expression of a LIKE pattern whose escape character is ``\``."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    forms = {"%": ".*", "_": "."}
    text = "".join(forms.get(part, re.escape(part[-1])) for part in parts)
    return re.compile(text, re.DOTALL)
