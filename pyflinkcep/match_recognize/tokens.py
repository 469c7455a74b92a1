# SPDX-License-Identifier: Apache-2.0
"""A statement as tokens that know their position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError
from pyflinkcep.expressions.tokens import SqlSyntaxError, TokenKind, tokenized

_NAMES = {TokenKind.NAME: "word", TokenKind.STRING: "string", TokenKind.NUMBER: "number"}
_MOST_SHOWN = 60


@attrs.frozen
class Token:
    """A word, name in backquotes, number, string, or one character of anything else."""

    text: str  # The token; a name without its backquotes
    # Its place in the statement.
    start: int
    end: int
    kind: str  # Its kind; a *name* is in backquotes and never a keyword

    def is_word(self, word: str) -> bool:
        """Whether it is one of some keywords, ignoring case."""
        return self.kind == "word" and self.text.upper() == word

    def is_symbol(self, symbol: str) -> bool:
        """Whether it is a character."""
        return self.kind == "symbol" and self.text == symbol

    @property
    def is_identifier(self) -> bool:
        """Whether it may name something."""
        return self.kind in ("word", "name")


@attrs.frozen
class Source:
    """The text of the statement, for errors."""

    text: str  # The statement

    def place(self, start: int) -> str:
        """Return line and column of an offset as text, both counted from 1."""
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1) + 1
        return f"line {line}, column {column}"

    def shown(self, start: int, end: int) -> str:
        """Return a part of the text on one line, cut if it is long."""
        text = " ".join(self.text[start:end].split())
        return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"

    def error(
        self,
        message: str,
        hint: str,
        start: int,
        end: int,
        kind: type[CepError] = InvalidArgumentError,
    ) -> CepError:
        """Make the error for a part of the text."""
        where = f"at {self.place(start)}"
        shown = self.shown(start, end)
        text = f"{message} ({where}: {shown})" if shown else f"{message} ({where})"
        return kind(text, hint, problem=message, span=(start, end))


def tokenize(source: Source) -> list[Token]:
    """Split a statement into tokens, without comments."""
    try:
        found = tokenized(source.text)
    except SqlSyntaxError as cause:
        at, end = cause.span or (0, 1)
        raise source.error(cause.problem, cause.hint or "", at, end) from cause
    tokens = []
    for token in found[:-1]:
        if token.kind is TokenKind.SIGN:  # a pattern's symbols are single characters
            places = range(token.start, token.end)
            tokens += [Token(source.text[at], at, at + 1, "symbol") for at in places]
        else:
            kind = "name" if token.quoted else _NAMES[token.kind]
            tokens.append(Token(token.text, token.start, token.end, kind))
    return tokens


def as_name(token: Token) -> Token:
    """Return a text in double quotes, where only a name can stand, as that name."""
    is_double = token.kind == "string" and token.text[0] == '"' and len(token.text) > 2
    if not is_double or set(token.text[1:-1]) & set('"`\\'):
        return token
    return Token(token.text[1:-1], token.start, token.end, "name")


def with_names(text: str) -> str:
    """Return a text in which what stands in double quotes is a name, in backquotes."""
    pieces, at = [], 0
    for token in tokenize(Source(text)):
        if as_name(token) is not token:
            pieces += [text[at : token.start], f"`{token.text[1:-1]}`"]
            at = token.end
    return "".join(pieces) + text[at:]


def is_at(tokens: Sequence[Token], at: int, *words: str) -> bool:
    """Whether keywords, or characters, stand at a position."""
    if at < 0 or at + len(words) > len(tokens):
        return False
    pairs = zip(tokens[at:], words, strict=False)
    return all(token.is_word(word) or token.is_symbol(word) for token, word in pairs)


def closing(tokens: Sequence[Token], at: int, source: Source) -> int:
    """Return the position of the parenthesis that closes the one at a position."""
    depth = 0
    for position in range(at, len(tokens)):
        if tokens[position].is_symbol("("):
            depth += 1
        elif tokens[position].is_symbol(")"):
            depth -= 1
            if not depth:
                return position
    raise source.error(
        "the parenthesis is not closed", "write the missing )", tokens[at].start, tokens[at].end
    )


def with_array_calls(text: str, is_column: Callable[[str], bool]) -> str:
    """Return SQL with ARRAY[…] as Spark writes it, array(…)."""
    tokens, opened = tokenized(text), list[bool]()
    for before, token in pairwise(tokens):
        if token.is_sign("["):
            opened.append(before.is_word("ARRAY") and not is_column(before.text))
        sign = {"[": "(", "]": ")"}.get(token.text) if opened and opened[-1] else None
        if sign is not None and token.is_sign(token.text):
            text = f"{text[: token.start]}{sign}{text[token.end :]}"
        if token.is_sign("]") and opened:
            opened.pop()
    return text
