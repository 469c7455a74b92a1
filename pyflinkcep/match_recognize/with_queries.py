# SPDX-License-Identifier: Apache-2.0
"""The named queries of WITH: their positions, and the text without unused ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyflinkcep.match_recognize.tokens import Source, Token, closing, is_at, tokenize

__all__ = ["named_queries", "without_unused"]


def named_queries(
    tokens: Sequence[Token], at: int, limit: int, source: Source
) -> Iterator[tuple[int, int]]:
    """
    Yield the queries of a WITH that end before a position.

    Parameters
    ----------
    tokens : sequence of Token
        The statement.
    at : int
        The token after WITH.
    limit : int
        The position.
    source : Source
        The statement's text, for errors.
    """
    while True:
        opens = at + 1
        while opens < limit and not is_at(tokens, opens, "AS", "("):
            opens += 1
        if opens >= limit:
            return
        end = closing(tokens, opens + 1, source) + 1
        if end > limit:
            return
        yield at, end
        if not (end < len(tokens) and tokens[end].is_symbol(",")):
            return
        at = end + 1


def without_unused(text: str) -> str:
    """Return a statement without the unused named queries of a plain WITH."""
    while True:
        cut = _unused(text)
        if cut is None:
            return text
        text = f"{text[: cut[0]]} {text[cut[1] :]}"


def _unused(text: str) -> tuple[int, int] | None:
    """Return the range of an unused query; None if there is none."""
    source = Source(text)
    tokens = tokenize(source)
    for at, token in enumerate(tokens):
        begins = at == 0 or tokens[at - 1].is_symbol("(")
        if not begins or not is_at(tokens, at, "WITH") or is_at(tokens, at, "WITH", "RECURSIVE"):
            continue
        queries = list(named_queries(tokens, at + 1, len(tokens), source))
        for number, (start, end) in enumerate(queries):
            if _is_named(tokens, start, end):
                continue
            if len(queries) == 1:
                return token.start, tokens[end - 1].end
            if number == 0:
                return tokens[start].start, tokens[queries[1][0]].start
            return tokens[queries[number - 1][1] - 1].end, tokens[end - 1].end
    return None


def _is_named(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Whether the name of a query appears anywhere outside the query."""
    name = tokens[start].text.lower()
    return any(
        token.is_identifier and token.text.lower() == name
        for at, token in enumerate(tokens)
        if not start <= at < end
    )
