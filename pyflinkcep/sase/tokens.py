# SPDX-License-Identifier: Apache-2.0
"""Splits the text of a query into tokens that know their offset."""

from __future__ import annotations

import re
from typing import NamedTuple

from pyflinkcep.errors import InvalidArgumentError

NUMBER, TEXT, NAME, OPERATOR, END = "number", "text", "name", "operator", "end"
_QUOTED = "quoted"

KEYWORDS = frozenset(
    "from pattern where within having return and or not is null as".split()  # noqa: SIM905
)
"""The keywords, in lower case."""

_BLANK = r"(?>(?:\s+|/\*.*?\*/|--[^\n]*)*)"
_TOKEN = re.compile(
    _BLANK + r"(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^']|'')*')"
    r"|(?P<quoted>`(?:[^`]|``)+`)|(?P<name>[^\W\d]\w*)"
    r"|(?P<operator>\.\.|<=|>=|<>|!=|==|\|\||/(?!\*)|[-+*%(){}\[\],.;=<>~!^|?])|(?P<end>\Z))",
    re.DOTALL,
)


class Token(NamedTuple):
    """A piece of a query's text."""

    kind: str  # NUMBER, TEXT, NAME, OPERATOR or END
    text: str  # The piece as it was written; empty at the end
    at: int  # The offset of its first character
    word: str  # The text to compare with keywords: names in lower case, empty for anything quoted

    @property
    def name(self) -> str:
        """The name that a piece is, without its backticks."""
        return self.text[1:-1].replace("``", "`") if self.text.startswith("`") else self.text


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text, including the end."""
    found = []
    at = 0
    match = _TOKEN.match
    while True:
        token = match(text, at)
        if token is None:
            raise _unreadable(text, at)
        kind = token.lastgroup
        assert kind is not None
        piece, begin = token.group(kind), token.start(kind)
        if kind == _QUOTED:
            found.append(Token(NAME, piece, begin, ""))
        else:
            word = piece.lower() if kind == NAME else "" if kind == TEXT else piece
            found.append(Token(kind, piece, begin, word))
        if kind == END:
            return found
        at = token.end()


def text_value(token: Token) -> str:
    """Return the value of a quoted text."""
    return token.text[1:-1].replace("''", "'")


def text_literal(value: str) -> str:
    """Return a quoted text of a value."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _unreadable(text: str, at: int) -> InvalidArgumentError:
    blank = re.compile(_BLANK, re.DOTALL).match(text, at)
    at = blank.end() if blank else at
    rest = text[at : at + 20].split("\n")[0]
    if rest.startswith("'"):
        return failure(text, at, f"the text {rest} does not end", "close it with '")
    if rest.startswith("`"):
        return failure(text, at, f"the name {rest} does not end", "close it with `")
    if rest.startswith("/*"):
        return failure(text, at, f"the comment {rest} does not end", "close it with */")
    return failure(
        text,
        at,
        f"{rest[:1]} has no meaning here",
        "quote texts with ' and names with `, enclose comments in /* */",
    )


def failure(text: str, at: int, what: str, hint: str) -> InvalidArgumentError:
    """Return the error for a problem at an offset of a text."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return InvalidArgumentError(f"line {line}, column {column}: {what}", hint)


class Cursor:
    """Reads tokens one after another."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens(text)
        self._at = 0

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
        if token.kind != END:
            self._at += 1
        return token

    def mark(self) -> int:
        """Return the position, for :meth:`turn_to`."""
        return self._at

    def turn_to(self, mark: int) -> None:
        """Return to a position."""
        self._at = mark

    def span(self, at: int) -> tuple[int, int]:
        """Return the span from an offset to the end of the last token that was read."""
        before = self._tokens[self._at - 1]
        return at, before.at + len(before.text)

    def take(self, *words: str) -> Token | None:
        """Move on if the next token is one of these words."""
        token = self._tokens[self._at]
        return self.next() if token.word in words and token.kind != TEXT else None

    def need(self, word: str, hint: str) -> Token:
        """Move past a word, which must come next."""
        token = self.take(word)
        if token is None:
            raise self.unexpected(word.upper() if word.isalpha() else repr(word), hint)
        return token

    def name(self, what: str, hint: str) -> Token:
        """Move past a name."""
        if self.here.kind != NAME:
            raise self.unexpected(what, hint)
        return self.next()

    def type(self, hint: str) -> str:
        """Move past an event type, which may be dotted or quoted, and return it."""
        if self.here.kind == TEXT:
            return text_value(self.next())
        name = self.name("an event type", hint).name
        while self.here.text == "." and self.ahead().kind == NAME:
            self.next()
            name += f".{self.next().name}"
        if self.here.text in ("-", "/", ":"):
            whole = f"{name}{self.here.text}{self.ahead().text}"
            raise self.unexpected("the end of a type", f"quote the type: '{whole}'")
        return name

    def unexpected(self, wanted: str, hint: str) -> InvalidArgumentError:
        """Return the error for an unexpected token."""
        token = self.here
        got = "the end" if token.kind == END else repr(token.text)
        return self.failure(token.at, f"expected {wanted}, got {got}", hint)

    def failure(self, at: int, what: str, hint: str) -> InvalidArgumentError:
        """Return the error for a problem at an offset of the text."""
        return failure(self.text, at, what, hint)
