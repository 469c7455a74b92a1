# SPDX-License-Identifier: Apache-2.0
"""A position that moves through the tokens of a text."""

from __future__ import annotations

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.sase.tokens import END, NAME, TEXT, Token, failure, text_value, tokens

__all__ = ["Cursor"]


class Cursor:
    """
    Reads tokens one after another.

    Parameters
    ----------
    text : str
        The text.
    """

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
