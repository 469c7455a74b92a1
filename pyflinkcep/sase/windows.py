# SPDX-License-Identifier: Apache-2.0
"""Reads windows: WITHIN, and SLIDE with GROUP BY and the aggregates of RETURN."""

from __future__ import annotations

from collections.abc import Iterable

from pyflinkcep.expressions.text import written_name
from pyflinkcep.sase.model import Component, Totals
from pyflinkcep.sase.tokens import END, KEYWORDS, NAME, NUMBER, Cursor, Token
from pyflinkcep.time import UNITS_MS

MOST_WINDOWS = 1440
"""In how many windows an event may be, each with a copy of it: those of a day by minutes."""

TOTALS = ("count", "sum", "avg", "min", "max", "stddev")
"""The aggregates over all matches."""

_NO_UNITS = {*KEYWORDS, "slide", "group", "then"}
_AGGREGATE = "write count(*), count(b), sum(b.volume) AS v, or avg, min, max, stddev"


def read_within(cursor: Cursor) -> tuple[int | None, int | None]:
    """Read what follows WITHIN: a window in milliseconds, or in events."""
    number = _number(cursor, "WITHIN")
    if cursor.take("events", "event"):
        return None, _events(cursor, number)
    return _milliseconds(cursor, number, "WITHIN"), None


def read_totals(cursor: Cursor, components: tuple[Component, ...], window: int | None) -> Totals:
    """Read what follows SLIDE, to the end."""
    number = _number(cursor, "SLIDE")
    if window is None:
        raise cursor.failure(
            number.at, "SLIDE after a window of events", "write WITHIN 10 minutes SLIDE 5 minutes"
        )
    slide = _milliseconds(cursor, number, "SLIDE")
    if slide > window:
        raise cursor.failure(
            number.at,
            "SLIDE is longer than WITHIN, so events between windows would be in none",
            "write a slide that is at most the window",
        )
    if window > slide * MOST_WINDOWS:
        raise cursor.failure(
            number.at,
            f"expected at most {MOST_WINDOWS} windows at a time, got {-(-window // slide)}, each "
            "with a copy of its events",
            "write a longer slide",
        )
    groups = _groups(cursor) if cursor.take("group") else ()
    if cursor.here.word == "having":
        raise cursor.unexpected(
            "RETURN with aggregates", "leave HAVING out: filter the rows of windows"
        )
    return Totals(
        slide, groups, read_aggregates(cursor, components) if cursor.take("return") else ()
    )


def read_aggregates(cursor: Cursor, components: Iterable[Component]) -> tuple[str, ...]:
    """Read aggregates over all matches, to the end."""
    variables = [part.variable for part in components if not part.negated]
    found: dict[str, str] = {}
    while not found or cursor.take(","):
        at = cursor.here.at
        text, name = _aggregate(cursor, variables)
        if name in found:
            raise cursor.failure(
                at, f"two columns of RETURN are named {name!r}", "name one of them with AS"
            )
        found[name] = text
    if cursor.here.kind != END:
        raise cursor.unexpected("the end", _AGGREGATE)
    return tuple(found.values())


def _aggregate(cursor: Cursor, variables: list[str]) -> tuple[str, str]:
    """Return the text of an aggregate, and its name."""
    function = cursor.here
    if function.word not in TOTALS or cursor.ahead().text != "(":
        raise cursor.unexpected("an aggregate over all matches of a window", _AGGREGATE)
    cursor.next()
    cursor.next()
    over = "*"
    if not cursor.take("*"):
        variable = cursor.name("a variable", _AGGREGATE)
        if variable.name not in variables:
            raise cursor.failure(
                variable.at,
                f"expected a variable that takes events, got {variable.text!r}",
                f"the variables are {', '.join(map(repr, variables))}",
            )
        over = written_name(variable.name)
        if cursor.take("["):
            cursor.need("]", f"an aggregate is over all events: {variable.text}[]")
            over += "[]"
        if cursor.take("."):
            over += f".{written_name(cursor.name('an attribute', _AGGREGATE).name)}"
    if function.word != "count" and "." not in over:
        raise cursor.failure(function.at, f"{function.text}({over}) needs an attribute", _AGGREGATE)
    cursor.need(")", _AGGREGATE)
    text = f"{function.word}({over})"
    if not cursor.take("as"):
        return text, text
    name = cursor.name("a column name", "write count(*) AS name").name
    return f"{text} AS {written_name(name)}", name


def _groups(cursor: Cursor) -> tuple[str, ...]:
    hint = "write GROUP BY attribute"
    cursor.need("by", hint)
    groups = [cursor.name("an attribute", hint).name]
    while cursor.take(","):
        groups.append(cursor.name("an attribute", hint).name)
    return tuple(dict.fromkeys(groups))


def _number(cursor: Cursor, clause: str) -> Token:
    if cursor.here.kind != NUMBER:
        raise cursor.unexpected(f"a number after {clause}", f"write {clause} 10 minutes")
    return cursor.next()


def _milliseconds(cursor: Cursor, number: Token, clause: str) -> int:
    factor = 1
    if cursor.here.kind == NAME and cursor.here.word not in _NO_UNITS:
        unit = cursor.here.word
        if unit not in UNITS_MS and unit.endswith("s"):
            unit = unit[:-1]
        if unit not in UNITS_MS:
            raise cursor.unexpected(
                "a unit of time",
                "the units are ms, s, m, h, d, seconds, minutes, hours, days, and EVENTS",
            )
        factor = UNITS_MS[unit]
        cursor.next()
    milliseconds = float(number.text) * factor
    if not 1 <= milliseconds < 1 << 53:
        raise cursor.failure(
            number.at,
            f"{clause} {number.text} is out of range",
            "a window is longer than 0 ms and shorter than 285,000 years",
        )
    return int(milliseconds)


def _events(cursor: Cursor, number: Token) -> int:
    if not (number.text.isdigit() and 0 < int(number.text) < 1 << 53):
        raise cursor.failure(
            number.at,
            f"WITHIN {number.text} EVENTS is out of range",
            "write how many events, from the first event of a match to its last",
        )
    return int(number.text)
