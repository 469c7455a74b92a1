# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import attrs

from pyflinkcep.expressions import tree
from pyflinkcep.sase.composed_checks import check_query
from pyflinkcep.sase.computed import is_computed, path_names
from pyflinkcep.sase.conditions import ConditionReader
from pyflinkcep.sase.cursor import Cursor
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Column, Query
from pyflinkcep.sase.pattern_reader import SHAPE, PatternReader
from pyflinkcep.sase.tokens import END, NAME, TEXT
from pyflinkcep.sase.where import WhereReader
from pyflinkcep.sase.windows import read_aggregates, read_totals, read_within

__all__ = ["parsed", "parsed_columns", "parsed_condition"]

_CHAIN = "write PATTERN … RETURN EVENT Rise(a.x AS x) THEN PATTERN SEQ(Rise r, Rise s) …"

_OF_EVENTS = EVENT_TYPE, EVENT_TIME
"""The columns that events made of matches have already."""

_CLAUSES = {
    "then": _CHAIN,
    "slide": "write WITHIN 10 minutes SLIDE 5 minutes",
    "group": "write WITHIN 10 minutes SLIDE 5 minutes GROUP BY attribute",
}
"""What to write in place of a clause that has no place there."""


def parsed(text: str) -> Query:
    """
    Parse the text of a query.

    Raises
    ------
    InvalidArgumentError
        If the text is not a query; the message says where and why.
    """
    return _QueryReader(text).query()


def parsed_condition(text: str, query: Query) -> Query:
    """Return a query with one more condition; see :func:`parsed`."""
    cursor = Cursor(text)
    condition = ConditionReader(cursor, query.components).condition()
    if cursor.here.kind != END:
        raise cursor.unexpected("the end", "write one condition; join several with AND or OR")
    query = attrs.evolve(query, conditions=(*query.conditions, condition))
    check_query(query, cursor.failure)
    return query


def parsed_columns(text: str, query: Query) -> Query:
    """Return a query with other columns; see :func:`parsed`."""
    cursor = Cursor(text)
    if query.totals is not None:
        totals = attrs.evolve(query.totals, aggregates=read_aggregates(cursor, query.components))
        return attrs.evolve(query, totals=totals)
    reserved = () if query.event is None else _OF_EVENTS
    columns = tuple(_columns(cursor, ConditionReader(cursor, query.components), reserved))
    if cursor.here.kind != END:
        raise cursor.unexpected("the end", "write a value, or value AS name")
    query = attrs.evolve(query, columns=columns)
    check_query(query, cursor.failure)
    return query


class _QueryReader:
    """Reads a query clause by clause."""

    def __init__(self, text: str) -> None:
        self._cursor = Cursor(text)

    def query(self) -> Query:
        cursor = self._cursor
        source = cursor.name("a table", "write FROM table").name if cursor.take("from") else None
        query = self._one()
        while query.event is not None and cursor.take("then"):
            query = attrs.evolve(self._one(), before=query)
        if cursor.here.kind != END:
            hint = _CLAUSES.get(cursor.here.word, SHAPE)
            raise cursor.unexpected("the end", hint)
        return query if source is None else attrs.evolve(query, source=source)

    def _one(self) -> Query:
        """Read a query up to THEN or the end."""
        cursor = self._cursor
        cursor.need("pattern", SHAPE)
        pattern = PatternReader(cursor)
        form, shape = pattern.read()
        components = tuple(pattern.components)
        values = ConditionReader(cursor, components)
        where = WhereReader(cursor, values, components)
        if cursor.take("where"):
            where.read()
        within = cursor.take("within")
        window, most_events = read_within(cursor) if within else (None, None)
        slide = within and cursor.take("slide")
        totals = read_totals(cursor, components, window) if slide else None
        having = _having(values) if totals is None and cursor.take("having") else None
        returns = totals is None and cursor.take("return")
        event, columns = _returned(cursor, values) if returns else (None, None)
        query = Query(
            form,
            components,
            where.in_order,
            tuple(dict.fromkeys(where.same)),
            tuple(where.constants),
            tuple(where.conditions),
            window,
            having,
            columns,
            shape=shape,
            most_events=most_events,
            event=event,
            totals=totals,
        )
        check_query(query, cursor.failure)
        return query


def _returned(cursor: Cursor, values: ConditionReader) -> tuple[str | None, tuple[Column, ...]]:
    """Read RETURN: the type of the events that matches become, if any, and the columns."""
    follows = cursor.ahead()
    is_event = cursor.here.word == "event" and follows.kind in (NAME, TEXT)
    if not is_event or follows.word == "as":
        return None, tuple(_columns(cursor, values))
    cursor.next()
    type_ = cursor.type(_CHAIN)
    cursor.need("(", _CHAIN)
    columns = tuple(_columns(cursor, values, _OF_EVENTS))
    cursor.need(")", _CHAIN)
    return type_, columns


def _having(values: ConditionReader) -> tree.Tree:
    values.on_matches = True
    return values.condition()


def _columns(
    cursor: Cursor, values: ConditionReader, reserved: Iterable[str] = ()
) -> Iterator[Column]:
    taken = set(reserved)
    number = 0
    values.on_matches = True
    while number == 0 or cursor.take(","):
        number += 1
        at = cursor.here.at
        value = values.value()
        given = cursor.take("as") is not None
        name = _name_of(value, number)
        if given:
            name = cursor.name("a column name", "write value AS name").name
        if name in taken:
            raise cursor.failure(
                at, f"two columns of RETURN are named {name!r}", "name one of them with AS"
            )
        taken.add(name)
        yield Column(value, name, given)


def _name_of(value: tree.Tree, number: int) -> str:
    if not isinstance(value, tree.Column) or value.index is not None:
        return f"_{number}"
    if value.attribute is None:
        return value.text or value.variable
    if is_computed(value.attribute):
        words = [word for name in path_names(value) for word in re.findall(r"\w+", name)]
        return "_".join(words) or f"_{number}"
    return f"{value.variable}_{value.attribute}"
