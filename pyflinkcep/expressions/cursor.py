# SPDX-License-Identifier: Apache-2.0
"""A position in the tokens of a text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyflinkcep.expressions.tokens import SqlSyntaxError, Token, TokenKind, slip, tokenized

__all__ = ["Cursor"]

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MOST_DEPTH = 60


class Cursor:
    """
    Reads tokens one by one.

    Parameters
    ----------
    text : str
        The text.
    """

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
