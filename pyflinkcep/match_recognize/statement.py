# SPDX-License-Identifier: Apache-2.0
"""Extracts the clauses of a statement, each with its source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import takewhile
from typing import Any

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError, counted
from pyflinkcep.expressions.tokens import Token, TokenKind, is_at
from pyflinkcep.match_recognize.parser import parse_clause
from pyflinkcep.match_recognize.tokens import Source, is_word, partner, tokenize
from pyflinkcep.match_recognize.tree import Clause


def named_queries(
    tokens: Sequence[Token], at: int, limit: int, source: Source
) -> Iterator[tuple[int, int]]:
    """Yield the queries of a WITH that end before a position."""
    while True:
        opens = at + 1
        while opens < limit and not is_at(tokens, opens, "AS", "("):
            opens += 1
        if opens >= limit:
            return
        end = partner(tokens, opens + 1, source) + 1
        if end > limit:
            return
        yield at, end
        if not (end < len(tokens) and tokens[end].word == ","):
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
        begins = at == 0 or tokens[at - 1].word == "("
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
        token.kind is TokenKind.NAME and token.text.lower() == name
        for at, token in enumerate(tokens)
        if not start <= at < end
    )


def with_parameters(text: str, args: Mapping[str, Any] | Sequence[Any] | None) -> str:
    r"""Return a statement with its parameters replaced."""
    if args is None:
        return text
    if isinstance(args, str) or not isinstance(args, Mapping | Sequence):
        raise InvalidArgumentError(
            f"args: expected a dict or a list, got {type(args).__name__}",
            'write args={"low": 3} for :low, or args=[3] for ?',
        )
    source = Source(text)
    values = iter(()) if isinstance(args, Mapping) else iter(args)
    pieces, at = [], 0
    for token, name in _markers(tokenize(source), source):
        value = _named(args, name, token, source) if name else _next(args, values, token, source)
        pieces += [text[at : token.start], _literal(value, token, source)]
        at = token.end + len(name)
    left = list(values)
    if left:
        raise InvalidArgumentError(
            f"args has {counted(len(left), 'value')} more than the statement has ?",
            "leave them out",
        )
    return "".join(pieces) + text[at:]


def _markers(tokens: Sequence[Token], source: Source) -> Iterator[tuple[Token, str]]:
    """Yield the signs that begin parameters, each with its name; none for ``?``."""
    at = 0
    while at < len(tokens):
        if is_at(tokens, at, "PATTERN", "("):
            at = partner(tokens, at + 1, source)
        token, following = tokens[at], tokens[at + 1 : at + 2]
        if token.word == "?":
            yield token, ""
        elif token.word == ":" and not (at and _goes_on(tokens[at - 1], token)):
            for name in following:
                if is_word(name) and name.start == token.end:
                    yield token, name.text
        at += 1


def _goes_on(before: Token, colon: Token) -> bool:
    """Whether a colon is a path into the value before it, or part of a cast."""
    ends_value = before.kind is not TokenKind.SIGN or before.text in ")]:"
    return before.end == colon.start and ends_value


def _named(args: Any, name: str, token: Token, source: Source) -> Any:
    if isinstance(args, Mapping) and name in args:
        return args[name]
    known = ", ".join(map(str, args)) if isinstance(args, Mapping) else "without names"
    raise _error(f"no value for :{name}", f"args are {known or 'empty'}", token, source)


def _next(args: Any, values: Iterator[Any], token: Token, source: Source) -> Any:
    for value in values:
        return value
    what = (
        "names, and none for ?" if isinstance(args, Mapping) else f"{counted(len(args), 'value')}"
    )
    raise _error("no value for ?", f"args has {what}", token, source)


def _error(message: str, hint: str, token: Token, source: Source) -> CepError:
    return source.error(message, hint, token.start, token.end)


def _literal(value: Any, token: Token, source: Source) -> str:
    """Return a value as Spark's SQL; naive times are local, as in PySpark."""
    item = getattr(value, "item", None)
    if item is not None and type(value).__module__ == "numpy":
        value = item()
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return f"{value}L" if abs(value) >= 1 << 31 else str(value)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"
        case Decimal() if value.is_finite():
            return f"{value:f}BD"
        case str():
            written = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{written}'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"TIMESTAMP '{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case timedelta():
            return f"INTERVAL '{value / timedelta(seconds=1):.6f}' SECOND"
        case list() | tuple():
            return f"array({', '.join(_literal(one, token, source) for one in value)})"
    raise _error(
        f"a parameter is {type(value).__name__}",
        "pass a number, string, boolean, date, datetime, timedelta, Decimal, bytes or a list",
        token,
        source,
    )


VIEW = "__cep_view_"
"""The prefix of the names of views that replace clauses."""

_KEYWORDS = ("AS", "FROM", "IN", "JOIN", "LATERAL", "ON", "SELECT", "TABLE", "WHERE")


@attrs.frozen
class Use:
    """One MATCH_RECOGNIZE of a statement."""

    clause: Clause  # The text between its parentheses
    query: str  # The query of its source: ``[WITH …] SELECT * FROM source``
    alias: str | None  # The source's name in the statement; None if it has none
    # The range of source and clause among the statement's tokens.
    start: int
    end: int
    span: tuple[int, int]  # The range of the clause in the text
    # The WITH before it, which its query begins with too; empty if there is none.
    queries: str = ""


class Statement:
    """A statement whose clauses are replaced by views, one after another."""

    def __init__(self, text: str) -> None:
        self.source = Source(text)
        self._tokens = tokenize(self.source)
        if self._tokens and self._tokens[-1].word == ";":
            self._tokens.pop()

    @property
    def text(self) -> str:
        """The statement as it is now."""
        return self._joined(0, len(self._tokens))

    @property
    def first_words(self) -> list[str]:
        """The words that the statement begins with, in capitals."""
        words = takewhile(is_word, self._tokens)
        return [token.word for token in words]

    def next_use(self) -> Use | None:
        """Return the next clause, an inner one before an outer one; None if there is none."""
        for at in range(len(self._tokens)):
            if is_at(self._tokens, at, "MATCH_RECOGNIZE", "("):
                return self._use(at)
        return None

    def replaced(self, use: Use, view: str) -> None:
        """Replace a clause and its source by the name of a view."""
        first, last = self._tokens[use.start], self._tokens[use.end - 1]
        self._tokens[use.start : use.end] = [
            Token(TokenKind.NAME, view, first.start, last.end, view.upper())
        ]

    def _use(self, at: int) -> Use:
        end = partner(self._tokens, at + 1, self.source)
        inner = self._tokens[at + 2 : end]
        clause = parse_clause(inner, self.source, self._tokens[end].start)
        start, stop = self._input(at)
        last = self._tokens[
            at - 1 if self._tokens[at - 1].kind is TokenKind.NAME else self._begins(at - 1)
        ]
        alias = last.text if last.kind is TokenKind.NAME else None
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
        if at > 0 and tokens[at].word == ")":
            at = partner(tokens, at, self.source)
            if (
                at == 0
                or tokens[at - 1].kind is not TokenKind.NAME
                or not self._may_end_table(tokens[at - 1])
            ):
                return at
            at -= 1
        while at > 1 and tokens[at - 1].word == ".":
            at -= 2
        return at

    def _may_end_table(self, token: Token) -> bool:
        """Whether a table or an alias may end with a token."""
        is_name = token.kind is TokenKind.NAME and token.word not in _KEYWORDS
        return is_name or token.word == ")"

    # --- WITH

    def _queries_before(self, at: int) -> Iterator[tuple[int, int]]:
        """Yield the named queries visible at a position, from the outermost WITH on."""
        scopes, position = [0], 0
        while position < at:
            if self._tokens[position].word == "(":
                scopes.append(position + 1)
            elif self._tokens[position].word == ")":
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
    return is_word(token) and token.text.startswith(VIEW)
