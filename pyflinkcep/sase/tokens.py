# SPDX-License-Identifier: Apache-2.0
"""Splits the text of a query into tokens that know their offset."""

from __future__ import annotations

import re
from typing import NamedTuple

from pyflinkcep.errors import InvalidArgumentError

__all__ = [
    "END",
    "KEYWORDS",
    "NAME",
    "NUMBER",
    "OPERATOR",
    "TEXT",
    "Token",
    "failure",
    "text_literal",
    "text_value",
    "tokens",
]

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
    """
    A piece of a query's text.

    Attributes
    ----------
    kind : str
        NUMBER, TEXT, NAME, OPERATOR or END.
    text : str
        The piece as it was written; empty at the end.
    at : int
        The offset of its first character.
    word : str
        The text to compare with keywords: names in lower case, empty for anything quoted.
    """

    kind: str
    text: str
    at: int
    word: str

    @property
    def name(self) -> str:
        """The name that a piece is, without its backticks."""
        return self.text[1:-1].replace("``", "`") if self.text.startswith("`") else self.text


def tokens(text: str) -> list[Token]:
    """
    Return the tokens of a text, including the end.

    Raises
    ------
    InvalidArgumentError
        If a character belongs to no token or a quoted text does not end.
    """
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
