# SPDX-License-Identifier: Apache-2.0
"""A statement as tokens that know their position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError
from pyflinkcep.expressions.tokens import SqlSyntaxError, Token, TokenKind, place, tokenized

_MOST_SHOWN = 60


@attrs.frozen
class Source:
    """The text of the statement, for errors."""

    text: str  # The statement

    def place(self, start: int) -> str:
        """Return line and column of an offset as text, both counted from 1."""
        return place(self.text, start)

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
    """Split a statement into tokens, without comments and the end; signs are single characters."""
    try:
        found = tokenized(source.text)
    except SqlSyntaxError as cause:
        at, end = cause.span or (0, 1)
        raise source.error(cause.problem, cause.hint or "", at, end) from cause
    tokens = []
    for token in found[:-1]:
        if token.kind is TokenKind.SIGN:
            signs = enumerate(token.text, token.start)
            tokens += [Token(token.kind, sign, at, at + 1, sign) for at, sign in signs]
        else:
            tokens.append(token)
    return tokens


def is_word(token: Token) -> bool:
    """Whether a token is a keyword or a name without backquotes."""
    return token.kind is TokenKind.NAME and bool(token.word)


def as_name(token: Token) -> Token:
    """Return a text in double quotes, where only a name can stand, as that name."""
    is_double = token.kind is TokenKind.STRING and token.text[0] == '"' and len(token.text) > 2
    if not is_double or set(token.text[1:-1]) & set('"`\\'):
        return token
    return Token(TokenKind.NAME, token.text[1:-1], token.start, token.end)


def with_names(text: str) -> str:
    """Return a text in which what stands in double quotes is a name, in backquotes."""
    pieces, at = [], 0
    for token in tokenize(Source(text)):
        if as_name(token) is not token:
            pieces += [text[at : token.start], f"`{token.text[1:-1]}`"]
            at = token.end
    return "".join(pieces) + text[at:]


def partner(tokens: Sequence[Token], at: int, source: Source) -> int:
    """Return the position of the parenthesis that closes, or opens, the one at a position."""
    depth, opens = 0, tokens[at].word == "("
    for position in range(at, len(tokens)) if opens else range(at, -1, -1):
        depth += (tokens[position].word == "(") - (tokens[position].word == ")")
        if not depth:
            return position
    what, missing = ("is not closed", ")") if opens else ("was never opened", "(")
    raise source.error(
        f"the parenthesis {what}", f"write the missing {missing}", tokens[at].start, tokens[at].end
    )


def with_array_calls(text: str, is_column: Callable[[str], bool]) -> str:
    """Return SQL with ARRAY[…] as Spark writes it, array(…)."""
    tokens, opened = tokenized(text), list[bool]()
    for before, token in pairwise(tokens):
        if token.word == "[":
            opened.append(before.word == "ARRAY" and not is_column(before.text))
        sign = {"[": "(", "]": ")"}.get(token.word) if opened and opened[-1] else None
        if sign is not None:
            text = f"{text[: token.start]}{sign}{text[token.end :]}"
        if token.word == "]" and opened:
            opened.pop()
    return text
