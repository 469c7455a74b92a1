# SPDX-License-Identifier: Apache-2.0
"""The matches of many rules: numbers of rows until they are looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, overload

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.eql import Eql
from pyflinkcep.errors import CepError, FunctionError, InvalidArgumentError
from pyflinkcep.matching.columns import integers, structs
from pyflinkcep.matching.results import MATCH_TIME, Found
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.wanting_rule import FoundByRule, WantingRule, shared_events
from pyflinkcep.sase import SaseQuery
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
        return _id(self.rule, self.version, self.key, self.events)


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


def _id(rule: str, version: int, key: Any, events: Any) -> str:
    text = json.dumps([rule, version, key, events], default=_plain, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)  # whatever clock shows it
    return value.isoformat() if hasattr(value, "isoformat") else f"{value}"


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
        for (_, _, events), time in zip(results, times, strict=True):
            row = None if part.row is None else _row(rule, part.row, events)
            yield RuleMatch(rule.name, rule.version, _key(rule, events), time, events, row)

    def toArrow(self) -> pa.Table:
        """
        Return the matches as a table.

        Returns
        -------
        pyarrow.Table
            ``rule``, ``version``, ``key`` (a map of texts), ``matchId``, ``matchTimestamp``, and
            ``events``: a map of stages to lists of events.
        """
        texts = pa.map_(pa.string(), pa.string())
        if self._events is None or not self._parts:
            nothing = pa.map_(pa.string(), pa.list_(pa.null()))
            types = [pa.string(), pa.int64(), texts, pa.string(), pa.null(), nothing]
            names = ["rule", "version", "key", "matchId", MATCH_TIME, "events"]
            return pa.schema(zip(names, types, strict=True)).empty_table()
        matches = list(self)
        keys = [[(n, None if v is None else f"{v}") for n, v in m.key.items()] for m in matches]
        times = [match_times(part.found, self._events.times) for part in self._parts]
        return pa.table(
            {
                "rule": pa.array([match.rule for match in matches], pa.string()),
                "version": pa.array([match.version for match in matches], pa.int64()),
                "key": pa.array(keys, texts),
                "matchId": pa.array([match.matchId for match in matches], pa.string()),
                MATCH_TIME: pa.chunked_array(times),
                "events": pa.chunked_array([self._lists(part.found) for part in self._parts]),
            }
        )

    def _lists(self, found: Found) -> pa.MapArray:
        """Return for each match a map of stages to lists of events."""
        assert self._events is not None
        # The events of a stage side by side, stages in the order of their first events.
        order: list[int] = []
        stages: list[str] = []
        begins, ends = [0], [0]
        for _, _, match in found.results(range(len(found.handles))):
            for stage, places in match.items():
                order += places
                stages.append(stage)
                ends.append(len(order))
            begins.append(len(stages))
        own = structs(self._events.table.take(integers(found.handles[np.asarray(order, np.int64)])))
        lists = pa.ListArray.from_arrays(integers(np.asarray(ends, np.int32)), own)
        return pa.MapArray.from_arrays(pa.array(begins, pa.int32()), pa.array(stages, pa.string()),
                                       lists)  # fmt: skip


def _key(rule: Rule, events: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the columns of the key of a match."""
    if not events:
        return {}
    first = next(iter(events.values()))[0]
    definition = rule.definition
    if isinstance(definition, Eql):
        number = int(next(iter(events))) - 1
        steps = (
            definition.model.expanded if definition.model.is_sequence else definition.model.steps
        )
        return {key.path: _value_at(first, key.path) for key in steps[number].keys}
    if isinstance(definition, SigmaCorrelation):
        names = definition.read.group_by  # an alias is no field
        return {name: _value_at(first, name) for name in names}
    names = rule.key
    if isinstance(definition, SaseQuery):
        names = tuple(dict.fromkeys((*names, *definition.key)))
    return {name: first[name] for name in names}


def _value_at(event: Any, path: str) -> Any:
    """Return a field of an event, or of a struct in it."""
    if path in event or "." not in path:
        return event.get(path)
    first, _, rest = path.partition(".")
    inner = event.get(first)
    return None if inner is None else _value_at(inner, rest)


def found_on(rules: Sequence[Rule], events: Any, timestamp: str | None, type_: str) -> RuleMatches:
    """Return the matches of rules on events."""
    table = _table(events)
    if table is None:
        return RuleMatches(None, ())
    shared = shared_events(rules, table, timestamp, type_)
    wanting = [WantingRule.of(rule, shared) for rule in rules]
    return RuleMatches(shared, [rule.found(shared) for rule in wanting])


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
