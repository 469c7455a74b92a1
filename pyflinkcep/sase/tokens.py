# SPDX-License-Identifier: Apache-2.0
"""Splits the text of a query into tokens that know their offset."""

from __future__ import annotations

import re

import attrs

from pyflinkcep.errors import InvalidArgumentError

__all__ = ["END", "KEYWORDS", "NAME", "NUMBER", "OPERATOR", "TEXT", "Token", "failure", "tokens"]

NUMBER, TEXT, NAME, OPERATOR, END = "number", "text", "name", "operator", "end"

KEYWORDS = frozenset(
    "from pattern where within having return and or not is null as".split()  # noqa: SIM905
)
"""The keywords, in lower case."""

_BLANK = r"(?>(?:\s+|/\*.*?\*/|--[^\n]*)*)"
_TOKEN = re.compile(
    _BLANK + r"(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator>\.\.|<=|>=|<>|!=|==|/(?!\*)|[-+*%(){}\[\],.;=<>~!^])|(?P<end>\Z))",
    re.DOTALL,
)


@attrs.frozen
class Token:
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
        The text to compare with keywords: names in lower case, empty for quoted text.
    """

    kind: str
    text: str
    at: int
    word: str


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
        piece = token.group(kind)
        word = piece.lower() if kind == NAME else "" if kind == TEXT else piece
        found.append(Token(kind, piece, token.start(kind), word))
        if kind == END:
            return found
        at = token.end()


def _unreadable(text: str, at: int) -> InvalidArgumentError:
    blank = re.compile(_BLANK, re.DOTALL).match(text, at)
    at = blank.end() if blank else at
    rest = text[at : at + 20].split("\n")[0]
    if rest.startswith("'"):
        return failure(text, at, f"the text {rest} does not end", "close it with '")
    if rest.startswith("/*"):
        return failure(text, at, f"the comment {rest} does not end", "close it with */")
    return failure(
        text, at, f"{rest[:1]} has no meaning here", "quote texts with ', enclose comments in /* */"
    )


def failure(text: str, at: int, what: str, hint: str) -> InvalidArgumentError:
    """Return the error for a problem at an offset of a text."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return InvalidArgumentError(f"line {line}, column {column}: {what}", hint)
