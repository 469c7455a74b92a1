# SPDX-License-Identifier: Apache-2.0
"""Words and symbols of SQL and of queries, with their positions, and what reads them in turn."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from enum import Enum
from typing import ClassVar, Generic, NamedTuple, TypeVar

from pyflinkcep.errors import CepError, InvalidArgumentError
from pyflinkcep.expressions.numbers import LEAST, MOST, UNITS_US


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
    # What keywords and signs are compared with: the text in capitals; empty for strings, and for
    # names in backquotes, which are never keywords.
    word: str = ""


_STRING = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\""""
_SQL = re.compile(
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
    "quoted": TokenKind.NAME,
    "number": TokenKind.NUMBER,
    "name": TokenKind.NAME,
    "sign": TokenKind.SIGN,
}


_SLIPS = tuple(
    (re.compile(found, re.IGNORECASE | re.DOTALL), hint)
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
        (r"\bbetween\b([^()]*,|(?!.*\band\b))", "write BETWEEN 1 AND 5"),
        (r"^\s*(where|select|if)\b(?!\s*\()", "write the condition alone"),
        (r"^\s*$", "write a condition, such as n > 1"),
        (r"\b(and|or)\s+(and|or)\b", "leave out one of AND and OR"),
        (r"^\s*(and|or)\b|\b(and|or|not|in|like)\s*$|[-+*/%=<>|,]\s*$", "complete the condition"),
        (r"\bin\s*\(\s*\)", "write at least one value: IN (1, 5)"),
        (r"\bcase\b(?!.*\bend\b)", "write END after CASE"),
        (r"'\w+'\w", "double a quote inside of a text: 'it''s'"),
    )
)


def place(text: str, at: int) -> str:
    """Return the line and column of a position in words, both counted from 1."""
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return f"line {line}, column {column}"


def slip(text: str) -> str | None:
    """Return what to write instead if a text that is not SQL has a well-known slip; None if not."""
    code = re.sub(r"--[^\n]*", "", re.sub(_STRING, "''", text))
    known = next((hint for found, hint in _SLIPS if found.search(code)), None)
    if known is None and re.search("['\"]", code.replace("''", "")):
        return "close strings with '"
    if known is None and code.count("(") != code.count(")"):
        return "close each parenthesis once"
    return known


def _unreadable(text: str, at: int) -> SqlSyntaxError:
    return SqlSyntaxError(
        f"{text!r}: expected a word or sign at position {at + 1}, got {text[at]!r}",
        slip(text) or "close strings with ' and quoted names with `",
        problem=f"expected a word or sign, got {text[at]!r}",
        span=(at, at + 1),
    )


def tokenized(
    text: str,
    language: re.Pattern[str] = _SQL,
    unreadable: Callable[[str, int], CepError] = _unreadable,
) -> list[Token]:
    """Return the tokens of a text without spaces and comments; the last is of kind END."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = language.match(text, at)
        if found is None:
            raise unreadable(text, at)
        kind, written, end = str(found.lastgroup), found[0], found.end()
        if kind == "quoted":
            tokens.append(Token(TokenKind.NAME, written[1:-1].replace("``", "`"), at, end))
        elif kind != "space":
            word = "" if _KINDS[kind] is TokenKind.STRING else written.upper()
            tokens.append(Token(_KINDS[kind], written, at, end, word))
        at = end
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return tokens


_ESCAPES = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7]|.)", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def string_value(written: str) -> str:
    r"""Return the value of a string literal, with escapes resolved as in Spark."""
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


Node = TypeVar("Node")


class Cursor:
    """Reads tokens one by one, the last of which is of kind END."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def here(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    def ahead(self, count: int = 1) -> Token:
        """Return a token after the next one, or the end if there are too few."""
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Move past a token and return it."""
        token = self._tokens[self._at]
        if token.kind is not TokenKind.END:
            self._at += 1
        return token

    def sees(self, *words: str, ahead: int = 0) -> bool:
        """Whether these keywords or signs come next, one after another."""
        return is_at(self._tokens, self._at + ahead, *words)

    def take(self, *words: str) -> Token | None:
        """Move past the next token if it is one of these keywords or signs."""
        token = self._tokens[self._at]
        if token.word not in words:
            return None
        self._at += 1
        return token

    def take_all(self, *words: str) -> bool:
        """Move past these keywords or signs if they come next, one after another."""
        found = self.sees(*words)
        self._at += len(words) if found else 0
        return found

    def need(self, word: str, hint: str = "") -> Token:
        """Move past a keyword or sign, which must come next."""
        token = self.take(word)
        if token is None:
            raise self.unexpected(word if word.isalpha() else repr(word), hint)
        return token

    def listed(self, item: Callable[[], Node]) -> list[Node]:
        """Read items with commas between."""
        items = [item()]
        while self.take(","):
            items.append(item())
        return items

    def span(self, start: int) -> tuple[int, int]:
        """Return the span from a position to the end of the last token that was read."""
        return start, self._tokens[self._at - 1].end

    @abstractmethod
    def unexpected(self, wanted: str, hint: str = "") -> CepError:
        """Make the error for the next token, in whose place something else is wanted."""

    @contextmanager
    def deeper(self, most: int, error: Callable[[], CepError]) -> Iterator[None]:
        """Count the nesting depth of the text; raise an error if it is too deep."""
        self._depth += 1
        if self._depth > most:
            raise error()
        yield
        self._depth -= 1


def is_at(tokens: Sequence[Token], at: int, *words: str) -> bool:
    """Whether keywords or signs stand at a position."""
    found = tokens[max(at, 0) : at + len(words)]
    return len(found) == len(words) and all(t.word == w for t, w in zip(found, words, strict=True))


class ExpressionReader(Cursor, Generic[Node]):
    """Reads expressions by precedence climbing; what is made of them is each language's own."""

    powers: ClassVar[Mapping[str, int]]
    """How tightly operators between values bind, from 1 on."""

    def expression(self) -> Node:
        """Read conditions joined by OR and AND, which binds more tightly."""
        return self._chain("OR", lambda: self._chain("AND", self.factor))

    def _chain(self, word: str, part: Callable[[], Node]) -> Node:
        operands = [part()]
        while self.take(word):
            operands.append(part())
        return operands[0] if len(operands) == 1 else self._joined(word.lower(), operands)

    def value(self, power: int = 0) -> Node:
        """Read operators that bind more tightly than some power, and what they are between."""
        left = self._signed()
        while (own := self.powers.get(self.here.word, 0)) > power:
            sign = self.next().word
            left = self._operation(sign.lower(), left, self.value(own))
        return left

    def _case(self) -> tuple[Node | None, list[Node]]:
        """Read CASE: its subject; conditions and values in turn, and what follows ELSE."""
        self.next()
        hint = "write CASE WHEN condition THEN value ELSE value END"
        subject = None if self.here.word == "WHEN" else self._inside(is_condition=False)
        parts: list[Node] = []
        if self.here.word != "WHEN":
            raise self.unexpected("WHEN", hint)
        while self.take("WHEN"):
            parts.append(self._inside(is_condition=subject is None))
            self.need("THEN", hint)
            parts.append(self._inside(is_condition=False))
        if self.take("ELSE"):
            parts.append(self._inside(is_condition=False))
        self.need("END", "close CASE with END")
        return subject, parts

    @abstractmethod
    def factor(self) -> Node:
        """Read a condition without AND or OR, except in parentheses."""

    @abstractmethod
    def _signed(self) -> Node:
        """Read a value without operators, except signs before it."""

    @abstractmethod
    def _inside(self, *, is_condition: bool) -> Node:
        """Read a condition or a value inside of another one."""

    @abstractmethod
    def _joined(self, operator: str, operands: list[Node]) -> Node:
        """Return several conditions under AND or OR."""

    @abstractmethod
    def _operation(self, operator: str, left: Node, right: Node) -> Node:
        """Return an operator between values."""


UNITS = frozenset(unit + s for unit in (*UNITS_US, "MONTH", "YEAR") for s in ("", "S"))
"""The words for units in intervals."""

_SUFFIX = re.compile(r"(.*?)(BD|[LSYDF])?", re.IGNORECASE)
_CLOCK = r"(?P<hour>\d+):(?P<minute>\d+):(?P<second>\d+(?:\.\d*)?)"
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
    """Return the value of a literal: of a whole number that does not fit bigint a decimal."""
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
    """Return the microseconds of an interval; None of months and years, and beyond 64 bits."""
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
    r"""Return a LIKE pattern with ``\`` as its escape character; None if its escapes are wrong."""
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
