# SPDX-License-Identifier: Apache-2.0
"""Literal dates, timestamps and intervals of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs

from pyflinkcep.expressions.literals import UNITS_US, interval_us
from pyflinkcep.expressions.tree import Interval, Literal, Moment, Operation, Tree, parts
from pyflinkcep.sase.cursor import Cursor
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.tokens import NAME, NUMBER, TEXT, Token, text_value

__all__ = ["literal_moments", "read_interval", "read_moment", "with_instants"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTERVAL = (
    "write INTERVAL '5' MINUTE or INTERVAL '1 02:00:00' DAY TO SECOND; months have no length"
)


def read_moment(cursor: Cursor, word: Token) -> Literal:
    """Read the text after DATE or TIMESTAMP."""
    token = cursor.next()
    written, is_date = text_value(token), word.word == "date"
    try:
        time = _with_zone(written.strip())
        if is_date and len(written.strip()) != len(date.min.isoformat()):
            raise ValueError(written)
    except ValueError:
        example = "'2026-01-31'" if is_date else "'2026-01-31 12:00:00'"
        raise cursor.failure(
            token.at,
            f"expected a {word.word}, got {token.text}",
            f"write {word.word.upper()} {example}" + ("" if is_date else "; a zone may follow"),
        ) from None
    if isinstance(time.tzinfo, ZoneInfo):
        written = time.astimezone(UTC).isoformat(" ")  # which every evaluation reads
    local = (time.replace(tzinfo=UTC) if time.tzinfo is None else time) - _EPOCH
    moment = Moment(written, is_date, local // timedelta(microseconds=1))
    return Literal(moment, f"{word.word.upper()} {token.text}", cursor.span(word.at))


def _with_zone(text: str) -> datetime:
    """Return a time, whose zone may be an offset or a name."""
    clock, _, name = text.rpartition(" ")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(clock).replace(tzinfo=_zone(name))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as cause:
        raise ValueError(name) from cause


def read_interval(cursor: Cursor, word: Token) -> Literal:
    """Read the rest of an interval."""
    begin = cursor.here.at
    while True:
        cursor.take("-", "+")
        if cursor.here.kind not in (TEXT, NUMBER):
            raise cursor.unexpected("the length of an interval", _INTERVAL)
        cursor.next()
        _units(cursor)
        if cursor.here.kind not in (TEXT, NUMBER) or not _is_unit(cursor.ahead()):
            break
    _, end = cursor.span(begin)
    written = cursor.text[begin:end]
    length = interval_us(written)
    if length is None:
        raise cursor.failure(begin, f"INTERVAL {written} has no length", _INTERVAL)
    return Literal(Interval(length), f"INTERVAL {written}", cursor.span(word.at))


def _units(cursor: Cursor) -> None:
    if _is_unit(cursor.here):
        cursor.next()
        if cursor.take("to"):
            cursor.next()


def _is_unit(token: Token) -> bool:
    word = token.word.upper()
    return token.kind == NAME and (
        word.removesuffix("S") in UNITS_US or word.removesuffix("S") in ("MONTH", "YEAR")
    )


# --- in the zone of a session


def literal_moments(query: Query) -> Iterator[Moment]:
    """Yield the literal dates and timestamps of WHERE."""
    literals = [literal for _, literal in query.constants]
    literals += [p for c in query.conditions for p in parts(c) if isinstance(p, Literal)]
    yield from (p.value for p in literals if isinstance(p.value, Moment))


def with_instants(query: Query, known: Callable[[Moment], Moment]) -> Query:
    """Return a query whose literal dates and timestamps in WHERE are replaced by known ones."""

    def replaced(tree: Tree) -> Tree:
        if isinstance(tree, Literal):
            return literal(tree)
        if isinstance(tree, Operation):
            return attrs.evolve(tree, operands=tuple(map(replaced, tree.operands)))
        return tree

    def literal(own: Literal) -> Literal:
        value = own.value
        return attrs.evolve(own, value=known(value)) if isinstance(value, Moment) else own

    return attrs.evolve(
        query,
        constants=tuple((name, literal(value)) for name, value in query.constants),
        conditions=tuple(map(replaced, query.conditions)),
    )
