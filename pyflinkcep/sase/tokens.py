# SPDX-License-Identifier: Apache-2.0
"""The words and symbols of queries, and what reads them one by one."""

from __future__ import annotations

import re

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.tokens import Cursor, Token, TokenKind, place, tokenized

KEYWORDS = frozenset(
    "FROM PATTERN WHERE WITHIN HAVING RETURN AND OR NOT IS NULL AS".split()  # noqa: SIM905
)

_QUERY = re.compile(
    r"(?P<space>\s+|/\*.*?\*/|--[^\n]*)"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<string>'(?:[^']|'')*')"
    r"|(?P<quoted>`(?:[^`]|``)+`)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\.\.|<=|>=|<>|!=|==|\|\||/(?!\*)|[-+*%(){}\[\],.;=<>~!^|?])",
    re.DOTALL,
)


def text_value(token: Token) -> str:
    """Return the value of a quoted text."""
    return token.text[1:-1].replace("''", "'")


def text_literal(value: str) -> str:
    """Return a quoted text of a value."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _unreadable(text: str, at: int) -> InvalidArgumentError:
    rest = text[at : at + 20].split("\n")[0]
    for opening, what, closing in (("'", "text", "'"), ("`", "name", "`"), ("/*", "comment", "*/")):
        if rest.startswith(opening):
            return failure(text, at, f"the {what} {rest} does not end", f"close it with {closing}")
    return failure(
        text,
        at,
        f"{rest[:1]} has no meaning here",
        "quote texts with ' and names with `, enclose comments in /* */",
    )


def failure(text: str, at: int, what: str, hint: str) -> InvalidArgumentError:
    """Return the error for a problem at an offset of a text."""
    return InvalidArgumentError(f"{place(text, at)}: {what}", hint)


class QueryCursor(Cursor):
    """Reads the tokens of a query one by one."""

    def __init__(self, text: str) -> None:
        super().__init__(text, tokenized(text, _QUERY, _unreadable))

    def written(self, token: Token) -> str:
        """Return a token as it was written, backquotes included."""
        return self.text[token.start : token.end]

    def name(self, what: str, hint: str) -> Token:
        """Move past a name."""
        if self.here.kind is not TokenKind.NAME:
            raise self.unexpected(what, hint)
        return self.next()

    def type(self, hint: str) -> str:
        """Move past an event type, which may be dotted or quoted, and return it."""
        if self.here.kind is TokenKind.STRING:
            return text_value(self.next())
        name = self.name("an event type", hint).text
        while self.here.word == "." and self.ahead().kind is TokenKind.NAME:
            self.next()
            name += f".{self.next().text}"
        if self.here.word in ("-", "/"):
            whole = f"{name}{self.here.text}{self.written(self.ahead())}"
            raise self.unexpected("the end of a type", f"quote the type: '{whole}'")
        return name

    def expect_end(self, hint: str) -> None:
        """Raise if there are more tokens."""
        if self.here.kind is not TokenKind.END:
            raise self.unexpected("the end", hint)

    def unexpected(self, wanted: str, hint: str = "") -> InvalidArgumentError:
        """Return the error for an unexpected token."""
        token = self.here
        got = "the end" if token.kind is TokenKind.END else repr(self.written(token))
        return self.failure(token.start, f"expected {wanted}, got {got}", hint)

    def failure(self, at: int, what: str, hint: str) -> InvalidArgumentError:
        """Return the error for a problem at an offset of the text."""
        return failure(self.text, at, what, hint)
