# SPDX-License-Identifier: Apache-2.0
"""Extracts the clauses of a statement, each with its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import attrs

from pyflinkcep.match_recognize.parser import parse_clause
from pyflinkcep.match_recognize.tokens import Source, Token, closing, is_at, tokenize
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.match_recognize.with_queries import named_queries

__all__ = ["VIEW", "Statement", "Use", "view_tokens"]

VIEW = "__cep_view_"
"""The prefix of the names of views that replace clauses."""

_KEYWORDS = ("AS", "FROM", "IN", "JOIN", "LATERAL", "ON", "SELECT", "TABLE", "WHERE")


@attrs.frozen
class Use:
    """
    One MATCH_RECOGNIZE of a statement.

    Attributes
    ----------
    clause : Clause
        The text between its parentheses.
    query : str
        The query of its source: ``[WITH …] SELECT * FROM source``.
    alias : str or None
        The source's name in the statement; None if it has none.
    start, end : int
        The range of source and clause among the statement's tokens.
    span : (int, int)
        The range of the clause in the text.
    queries : str
        The WITH before it, which its query begins with too; empty if there is none.
    """

    clause: Clause
    query: str
    alias: str | None
    start: int
    end: int
    span: tuple[int, int]
    queries: str = ""


class Statement:
    """
    A statement whose clauses are replaced by views, one after another.

    Parameters
    ----------
    text : str
        The statement.

    Raises
    ------
    InvalidArgumentError
        If the text ends inside a string, name or comment, or a clause is wrong.
    """

    def __init__(self, text: str) -> None:
        self.source = Source(text)
        self._tokens = tokenize(self.source)
        if self._tokens and self._tokens[-1].is_symbol(";"):
            self._tokens.pop()

    @property
    def text(self) -> str:
        """The statement as it is now."""
        return self._joined(0, len(self._tokens))

    @property
    def first_words(self) -> list[str]:
        """The words that the statement begins with, in capitals."""
        words = takewhile(lambda token: token.kind == "word", self._tokens)
        return [token.text.upper() for token in words]

    def next_use(self) -> Use | None:
        """Return the next clause, an inner one before an outer one; None if there is none."""
        for at in range(len(self._tokens)):
            if is_at(self._tokens, at, "MATCH_RECOGNIZE", "("):
                return self._use(at)
        return None

    def replaced(self, use: Use, view: str) -> None:
        """Replace a clause and its source by the name of a view."""
        first, last = self._tokens[use.start], self._tokens[use.end - 1]
        self._tokens[use.start : use.end] = [Token(view, first.start, last.end, "word")]

    def _use(self, at: int) -> Use:
        end = closing(self._tokens, at + 1, self.source)
        inner = self._tokens[at + 2 : end]
        clause = parse_clause(inner, self.source, self._tokens[end].start)
        start, stop = self._input(at)
        last = self._tokens[at - 1 if self._tokens[at - 1].is_identifier else self._begins(at - 1)]
        alias = last.text if last.is_identifier else None
        with_queries = ", ".join(self._joined(*query) for query in self._queries_before(start))
        head = f"WITH {with_queries} " if with_queries else ""
        query = f"{head}SELECT * FROM {self._joined(start, stop)}"
        span = (self._tokens[at].start, self._tokens[end].end)
        return Use(clause, query, alias, start, end + 1, span, head)

    def _input(self, at: int) -> tuple[int, int]:
        """Return where the source of a clause begins and ends, including its alias."""
        start = self._begins(at - 1)
        before = start - 1
        if is_at(self._tokens, before, "AS"):
            start = self._begins(before - 1)
        elif before >= 0 and self._may_end_table(self._tokens[before]):
            start = self._begins(before)
        if start < 0 or start >= at or not self._may_end_table(self._tokens[at - 1]):
            raise self.source.error(
                "MATCH_RECOGNIZE without a table before it",
                "write SELECT … FROM events MATCH_RECOGNIZE (…)",
                self._tokens[at].start,
                self._tokens[at].end,
            )
        return start, at

    def _begins(self, last: int) -> int:
        """Return where the table, or alias, begins that ends with a token."""
        tokens, at = self._tokens, last
        if at > 0 and tokens[at].is_symbol(")"):
            at = self._opening(at)
            if (
                at == 0
                or not tokens[at - 1].is_identifier
                or not self._may_end_table(tokens[at - 1])
            ):
                return at
            at -= 1
        while at > 1 and tokens[at - 1].is_symbol("."):
            at -= 2
        return at

    def _may_end_table(self, token: Token) -> bool:
        """Whether a table or an alias may end with a token."""
        if token.kind == "word":
            return token.text.upper() not in _KEYWORDS
        return token.kind == "name" or token.is_symbol(")")

    def _opening(self, at: int) -> int:
        depth = 0
        for position in range(at, -1, -1):
            if self._tokens[position].is_symbol(")"):
                depth += 1
            elif self._tokens[position].is_symbol("("):
                depth -= 1
                if not depth:
                    return position
        token = self._tokens[at]
        raise self.source.error(
            "the parenthesis was never opened", "write the missing (", token.start, token.end
        )

    # --- WITH

    def _queries_before(self, at: int) -> Iterator[tuple[int, int]]:
        """Yield the named queries visible at a position, from the outermost WITH on."""
        scopes, position = [0], 0
        while position < at:
            if self._tokens[position].is_symbol("("):
                scopes.append(position + 1)
            elif self._tokens[position].is_symbol(")"):
                scopes.pop()
            position += 1
            if not scopes:
                return
        for scope in scopes:
            if is_at(self._tokens, scope, "WITH"):
                yield from named_queries(self._tokens, scope + 1, at, self.source)

    def _joined(self, start: int, stop: int) -> str:
        """Return tokens as text, including what is between them."""
        return "".join(self._pieces(self._tokens[start:stop]))

    def _pieces(self, tokens: Sequence[Token]) -> Iterator[str]:
        end = tokens[0].start if tokens else 0
        for token in tokens:
            yield self.source.text[end : token.start]
            yield token.text if _is_view(token) else self.source.text[token.start : token.end]
            end = token.end


def view_tokens(text: str) -> list[Token]:
    """Return the names of views in a statement whose clauses are replaced."""
    return [token for token in tokenize(Source(text)) if _is_view(token)]


def _is_view(token: Token) -> bool:
    return token.kind == "word" and token.text.startswith(VIEW)
