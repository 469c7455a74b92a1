# SPDX-License-Identifier: Apache-2.0
"""The matches of many rules: numbers of rows until they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, overload

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.errors import CepError, FunctionError, InvalidArgumentError
from pyflinkcep.matching.results import MATCH_TIME
from pyflinkcep.rules.alike_patterns import AlikePatterns
from pyflinkcep.rules.match_columns import columns_of_matches, key_names, match_id, value_at
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.wanting_rule import FoundByRule, WantingRule, shared_events
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.files import attempted
from pyflinkcep.tables.found_rows import match_times
from pyflinkcep.tables.records import records
from pyflinkcep.tables.rows import table_or_rest


@attrs.frozen(slots=False)
class RuleMatch:
    """
    A match of a rule.

    Parameters
    ----------
    rule : str
        The name of the rule.
    version : int
        Its version.
    key : dict
        The columns of the key, with their values.
    time : int or datetime
        The time of the match: of its last event, or when a window ended.
    events : dict
        For each stage, variable or number of a step the events.
    row : dict, optional
        What the rule selects of it, or what a query returns.
    """

    rule: str
    version: int
    key: Mapping[str, Any]
    time: Any
    events: Mapping[str, Sequence[Record]]
    row: Mapping[str, Any] | None = None

    @cached_property
    def matchId(self) -> str:
        """A hash of rule, version, key and events: 64 hexadecimal digits, the same in each run."""
        return match_id(self.rule, self.version, self.key, self.events)


def _row(rule: Rule, select: Callable[[Any], Any], events: Any) -> Mapping[str, Any] | None:
    """Return what a rule selects of a match."""
    hint = "write a function that returns a dict of {stage: list of events}"
    try:
        row = select(events)
    except CepError:
        raise
    except Exception as cause:
        what = f"rule {rule.name!r}: its select raised {type(cause).__name__}: {cause}"
        raise FunctionError(what, hint) from cause
    if not isinstance(row, Mapping | None):
        raise FunctionError(f"rule {rule.name!r}: its select returned {row!r:.80}, no dict", hint)
    return row


class RuleMatches(Sequence[RuleMatch]):
    """
    The matches of many rules, rule by rule; they are made when they are looked at.

    Examples
    --------
    >>> from pyflinkcep import Pattern, matchMany
    >>> high = Pattern.begin("high").where("n > 7")
    >>> found = matchMany({"high": high}, {"n": [1, 9, 8]})
    >>> len(found), found[-1].events, len(found.of("high"))
    (2, {'high': [{'n': 8}]}, 2)
    """

    def __init__(self, events: SharedEvents | None, parts: Sequence[FoundByRule]) -> None:
        self._events = events
        self._parts = parts
        self._ends = np.cumsum([len(part.found) for part in parts])

    def __len__(self) -> int:
        """Return the number of matches."""
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, at: int) -> RuleMatch: ...
    @overload
    def __getitem__(self, at: slice) -> list[RuleMatch]: ...
    def __getitem__(self, at: int | slice) -> Any:
        """Return a match, or a list of some."""
        places = range(len(self))[at]
        if isinstance(places, range):
            return [self[place] for place in places]
        number = int(np.searchsorted(self._ends, places, "right"))
        begin = places - (int(self._ends[number - 1]) if number else 0)
        return next(self._made(self._parts[number], begin, begin + 1))

    def __iter__(self) -> Iterator[RuleMatch]:
        """Yield the matches."""
        for part in self._parts:
            for begin in range(0, len(part.found), 1024):
                yield from self._made(part, begin, begin + 1024)

    def __repr__(self) -> str:
        """Return how many matches each rule has."""
        counts = {part.rule.name: len(part.found) for part in self._parts if len(part.found)}
        return f"RuleMatches({counts})"

    def of(self, rule: str) -> list[RuleMatch]:
        """Return the matches of a rule."""
        return [m for part in self._parts if part.rule.name == rule
                for m in self._made(part, 0, len(part.found))]  # fmt: skip

    def _made(self, part: FoundByRule, begin: int, end: int) -> Iterator[RuleMatch]:
        assert self._events is not None
        rule, found = part.rule, part.found.between(begin, min(end, len(part.found)))
        rows, places = np.unique(found.handles, return_inverse=True)
        taken = records(self._events.table, rows)
        times = match_times(found, self._events.times).to_pylist()
        results = found.results([taken[place] for place in places.tolist()])
        for place, ((_, _, events), time) in enumerate(zip(results, times, strict=True), begin):
            row = None if part.row is None else _row(rule, part.row, events)
            key = _key(rule, events) if part.keys is None else part.keys[place]
            yield RuleMatch(rule.name, rule.version, key, time, events, row)

    def toArrow(self) -> pa.Table:
        """
        Return the matches as a table.

        Returns
        -------
        pyarrow.Table
            ``rule``, ``version``, ``key`` (a map of texts, moments in UTC), ``matchId``,
            ``matchTimestamp``, and ``events``: a map of stages to lists of events.
        """
        if self._events is None or not self._parts:
            texts, nothing = (pa.map_(pa.string(), to) for to in (pa.string(), pa.list_(pa.null())))
            types = [pa.string(), pa.int64(), texts, pa.string(), pa.null(), nothing]
            names = ["rule", "version", "key", "matchId", MATCH_TIME, "events"]
            return pa.schema(zip(names, types, strict=True)).empty_table()
        return columns_of_matches(self._parts, self._events)


def _key(rule: Rule, events: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the columns of the key of a match."""
    if not events:
        return {}
    stage, (first, *_) = next(iter(events.items()))
    return {name: value_at(first, name) for name in key_names(rule, stage)}


def found_on(rules: Sequence[Rule], events: Any, timestamp: str | None, type_: str) -> RuleMatches:
    """Return the matches of rules on events."""
    table = _table(events)
    if table is None:
        return RuleMatches(None, ())
    shared = shared_events(rules, table, timestamp, type_)
    wanting = [WantingRule.of(rule, shared) for rule in rules]
    alike = AlikePatterns.among((number, rule, 0) for number, rule in enumerate(wanting))
    found: dict[int, FoundByRule] = {}
    for own in alike:
        found.update(own.found(shared))
    together = {number for own in alike for number in own.numbers}
    for number, rule in enumerate(wanting):
        if number not in together:
            found[number] = rule.found(shared)
        elif number not in found:
            found[number] = rule.nothing()
    return RuleMatches(shared, [found[number] for number in range(len(wanting))])


def _table(events: Any) -> pa.Table | None:
    """Return events as a table; None if there are none."""
    table, rest = table_or_rest(events)
    if table is None and isinstance(rest, Iterable) and not isinstance(rest, Mapping):
        rows = list(rest)
        if not rows:
            return None
        if all(isinstance(row, Mapping) for row in rows):
            names = dict.fromkeys(name for row in rows for name in row)
            columns = {name: [row.get(name) for row in rows] for name in names}
            table, rest = table_or_rest(columns)
    if table is None and isinstance(rest, Mapping) and all(isinstance(name, str) for name in rest):
        return table_or_rest({name: _alike(name, list(own)) for name, own in rest.items()})[0]
    if table is None:
        raise InvalidArgumentError(
            "matchMany: expected events in columns, or dicts",
            "pass a table, columns by name, or a list of dicts",
        )
    return table


def _alike(name: str, values: list[Any]) -> Any:
    """Return values as Arrow, which has one type for numbers, and for clocks."""
    kinds = {type(value) for value in values if value is not None}
    type_ = None
    if kinds == {datetime}:
        type_ = pa.timestamp("us", "UTC")
        values = [v if v is None or v.tzinfo else v.replace(tzinfo=UTC) for v in values]
    found = attempted(lambda: pa.array(values, type_))
    if found is None or (bool in kinds and len(kinds) > 1):
        shown = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidArgumentError(
            f"matchMany: expected values of one type in the field {name!r}, got {shown}",
            "give all events numbers of 64 bits, texts, lists or dicts there, or leave it out",
        )
    return found
