# SPDX-License-Identifier: Apache-2.0
"""The matches of EQL queries on events in columns: conditions, keys, and the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from math import prod
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.latest.columns import Offers, latest_rules
from pyflinkcep.eql.conditions import Conditions
from pyflinkcep.eql.model import Field
from pyflinkcep.eql.query import Eql
from pyflinkcep.expressions.sql_types import DOUBLE, TIMESTAMP
from pyflinkcep.expressions.tree import Tree
from pyflinkcep.matching.columns import Ints, ranks_of_values
from pyflinkcep.matching.latest import bits_of, rule_of
from pyflinkcep.tables.field_values import EventFields, FieldValues, fraction
from pyflinkcep.tables.order import Times
from pyflinkcep.tables.records import records
from pyflinkcep.tables.rows import rows_of, table_or_rest
from pyflinkcep.tables.values import exact_times_of, grouping_key


@attrs.frozen(eq=False, slots=False)
class EqlEvents:
    """Events in the order of matching."""

    fields: EventFields
    times: Ints  # In milliseconds, in order
    order: Ints  # The place of each event as given

    @classmethod
    def of(
        cls, fields: EventFields, times: Sequence[Ints], ms: Ints, tiebreaker: str | None
    ) -> EqlEvents:
        """Return events with fields, and times, which are by parts, the least first."""
        ties = [] if tiebreaker is None else [_ranks(fields, tiebreaker)]
        order = np.lexsort([*ties, *times])
        return cls(fields, ms[order], order)

    @cached_property
    def places(self) -> Ints:
        """The place in order of each event as given."""
        places = np.empty(len(self.order), np.int64)
        places[self.order] = np.arange(len(self.order))
        return places


def _ranks(fields: EventFields, path: str) -> Ints:
    """Return numbers by which events are ordered by a field, those without it last."""
    fields.fields.named("tiebreaker", path)
    values = fields.values_of(path)
    assert isinstance(values, FieldValues)
    values = values.smallest
    return ranks_of_values(values.distinct)[values.codes]


@attrs.frozen(eq=False)
class Narrowed:
    """Which values of one part of the key events offer: those of a number."""

    position: int  # Of the part
    number_of: Callable[[Any], int]  # Returns the number of a value, or of None
    numbers: Ints  # The number of each event


def matches_of(
    query: Eql, events: Any, timestamp: str, category: str, tiebreaker: str | None
) -> list[list[Any]]:
    """Return the matches of a query."""
    table, rest = table_or_rest(events)
    if table is not None:
        times = Times.of(table, timestamp)
        fields = EventFields.of_table(table)
        ordered = EqlEvents.of(fields, [times.exact()], times.ms(), tiebreaker)
        found = _found(query, ordered, category)
        used = sorted({place for match in found for place in match if place is not None})
        taken = np.asarray(used, np.int64)
        shown: dict[int, Any] = dict(zip(used, records(table, taken), strict=True))
        return [[None if at is None else shown[at] for at in match] for match in found]
    given = rest if isinstance(rest, list) and all(type(e) is dict for e in rest) else rows_of(rest)
    if not given:
        return []  # whose fields nobody knows
    exact = exact_times_of(given, timestamp)  # which may be beyond 64 bits
    ms = np.fromiter((time // 1000 for time in exact), np.int64, len(exact))
    micros = np.fromiter((time % 1000 for time in exact), np.int64, len(exact))
    fields = EventFields.of_rows(given)
    tie = tiebreaker if tiebreaker in fields else None  # no event has it
    ordered = EqlEvents.of(fields, [micros, ms], ms, tie)
    found = _found(query, ordered, category)
    return [[None if at is None else given[at] for at in match] for match in found]


def _found(query: Eql, events: EqlEvents, category: str) -> list[list[int | None]]:
    fields = events.fields
    trees = trees_of(query, fields, category)
    holding = [np.flatnonzero(fields.holds(tree)) for tree in trees]
    found: list[list[int]] = places_of(query, events, holding, KeyNumbers(fields, query))[
        0
    ].tolist()
    placed = rule_of(query.model).placed if query.model.is_sequence else list[int | None]
    return [placed(match) for match in found]


def trees_of(query: Eql, fields: EventFields, category: str) -> list[Tree]:
    """Return the condition of each step, and of ``until``."""
    conditions = Conditions(fields.fields.of(query.text), category)
    known = {step.filter: conditions.of(step.filter) for step in query.model.every}
    return [known[step.filter] for step in query.model.every]


def places_of(
    query: Eql, events: EqlEvents, holding: Sequence[Ints], numbers: KeyNumbers
) -> tuple[Ints, Ints]:
    """
    Return the matches of a query, a row of events for each, and the keys of a sequence by number.

    Given are the events of each step and of ``until``, ascending. They are known by their places.
    """
    model = query.model
    keys: Ints = np.zeros(0, np.int64)
    if model.is_sequence:
        rule = rule_of(model)
        offers = _offers(query, events, holding, numbers)
        runs = latest_rules([rule]).process(events.times, offers, is_last=True)
        found, keys = events.order[runs.handles].reshape(-1, rule.size), runs.keys
    else:
        (rows,) = holding
        found = rows[np.argsort(events.places[rows])].reshape(-1, 1)
    for pipe in model.pipes:
        first = 0 if pipe.is_head else max(len(found) - pipe.count, 0)
        taken = slice(first, first + pipe.count)
        found, keys = found[taken], keys[taken]
    return found, keys


def _offers(query: Eql, events: EqlEvents, holding: Sequence[Ints], numbers: KeyNumbers) -> Offers:
    """Return which events satisfy which steps, with the numbers of their keys."""
    model = query.model
    # Steps with repetitions written out have the events and keys of the one that is repeated.
    own = [numbers.of(step.keys, rows) for step, rows in zip(model.every, holding, strict=True)]
    which = bits_of(model)
    places = np.concatenate([events.places[own[number][0]] for number in which])
    steps = np.concatenate([np.full(len(own[n][0]), step) for step, n in enumerate(which)])
    keys = np.concatenate([own[number][1] for number in which])
    return Offers(places.astype(np.int32), steps.astype(np.int32), keys)


class KeyNumbers:
    """Numbers for keys: equal ones of different fields have one."""

    def __init__(self, fields: EventFields, query: Eql, narrowed: Narrowed | None = None) -> None:
        self._fields = fields
        self._known = fields.fields.of(query.text)
        self._narrowed = narrowed
        every = query.model.every
        self._paths: list[list[str]] = []  # The fields that a part of the key is
        for position in range(len(every[0].keys)):
            own = dict.fromkeys(step.keys[position] for step in every)
            found = dict.fromkeys(key.path for key in own if self._known.find(key) is not None)
            self._paths.append(list(found))
        # Whether whole numbers are compared with others.
        self._are_doubles = [
            any(self._of(path).type == DOUBLE for path in paths) for paths in self._paths
        ]
        self._values: list[dict[Any, int]] = [{} for _ in self._paths]
        # How many numbers a part of the key may have.
        self._widths = [1 + sum(self._of(path).count for path in paths) for paths in self._paths]
        self._tuples: dict[tuple[int, ...], int] | None = None
        if prod(self._widths) >= 1 << 62:
            self._tuples = {}

    def of(self, keys: Sequence[Field], rows: Ints) -> tuple[Ints, Ints]:
        """Return some events and the numbers of their keys: one for each choice of values."""
        rows, parts = self._chosen(keys, rows)
        return rows, self._number(keys, parts, len(rows))

    def have_several(self, keys: Sequence[Field]) -> bool:
        """Whether an event may have several keys."""
        return any(
            key.path in paths and self._of(key.path).bounds is not None
            for key, paths in zip(keys, self._paths, strict=True)
        )

    def values(self, keys: Sequence[Field], rows: Ints, numbers: Ints) -> list[dict[str, Any]]:
        """Return the values of keys, each that of an event which has one of this number."""
        own, parts = self._chosen(keys, np.unique(rows))
        pairs = zip(own.tolist(), self._number(keys, parts, len(own)).tolist(), strict=True)
        places = {pair: place for place, pair in enumerate(pairs)}
        asked = zip(rows.tolist(), numbers.tolist(), strict=True)
        chosen = np.asarray([places[pair] for pair in asked], np.int64)
        columns: dict[str, list[Any]] = {}
        for key, codes in zip(keys, parts, strict=True):
            used, inverse = np.unique(codes[chosen], return_inverse=True)
            known = self._values_at(key, used)
            columns.setdefault(key.path, [known[at] for at in inverse.reshape(-1).tolist()])
        return [dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True)]

    def _chosen(self, keys: Sequence[Field], rows: Ints) -> tuple[Ints, list[Ints]]:
        """Return some events for each choice of values, and the codes of the parts of the key."""
        parts: list[Ints] = []
        for position, key in enumerate(keys):
            at, codes = self._choices(position, key, rows)
            rows, parts = rows[at], [*(part[at] for part in parts), codes]
        return rows, parts

    def _number(self, keys: Sequence[Field], parts: Sequence[Ints], size: int) -> Ints:
        pairs = enumerate(zip(keys, parts, strict=True))
        return self._joined([self._numbers(at, key, codes) for at, (key, codes) in pairs], size)

    def _joined(self, parts: Sequence[Ints], size: int) -> Ints:
        """Return one number for the parts of each key."""
        if self._tuples is not None:
            listed = zip(*(part.tolist() for part in parts), strict=True)
            known = self._tuples
            return np.asarray([known.setdefault(one, len(known)) for one in listed], np.int64)
        own = np.zeros(size, np.int64)
        for part, width in zip(parts, self._widths, strict=True):
            own = own * width + part
        return own

    def _of(self, path: str) -> FieldValues:
        values = self._fields.values_of(path)
        assert isinstance(values, FieldValues)
        return values

    def _choices(self, position: int, key: Field, rows: Ints) -> tuple[Ints, Ints]:
        """Return places in some rows, ascending, and the codes of the values there; -1 of none."""
        at, codes = np.arange(len(rows)), np.full(len(rows), -1)
        if key.path in self._paths[position]:
            values = self._of(key.path)
            if values.bounds is None:
                codes = values.codes[rows]
            else:
                events, chosen = values.choices
                begins = np.searchsorted(events, rows, "left")
                counts = np.searchsorted(events, rows, "right") - begins
                # An event without values has one choice: none of them.
                sizes = np.maximum(counts, 1)
                at = np.repeat(at, sizes)
                within = np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
                codes = np.append(chosen, -1)[
                    np.where(np.repeat(counts, sizes) > 0, np.repeat(begins, sizes) + within, -1)
                ]
        if not key.optional:
            at, codes = at[codes >= 0], codes[codes >= 0]
        narrowed = self._narrowed
        if narrowed is not None and narrowed.position == position:
            used, inverse = np.unique(codes, return_inverse=True)
            own = list(map(narrowed.number_of, self._values_at(key, used)))
            is_own = np.asarray(own, np.int64)[inverse.reshape(-1)] == narrowed.numbers[rows[at]]
            at, codes = at[is_own], codes[is_own]
        return at, codes

    def _numbers(self, position: int, key: Field, codes: Ints) -> Ints:
        """Return the numbers of values by their codes in a field."""
        paths = self._paths[position]  # none if the input has none of the fields
        # Two codes of fractions may be one value: of 0.0 and -0.0.
        if not paths or (len(paths) < 2 and self._of(paths[0]).type not in (DOUBLE, TIMESTAMP)):
            return codes + 1
        used, inverse = np.unique(codes, return_inverse=True)
        known = self._values[position]
        own = [
            # True is not 1.
            0 if value is None else known.setdefault((type(value) is bool, value), len(known) + 1)
            for value in self._compared(position, self._values_at(key, used))
        ]
        return np.asarray(own, np.int64)[inverse.reshape(-1)]

    def _compared(self, position: int, values: Iterable[Any]) -> Iterator[Any]:
        """Yield values of fields as they are compared as keys."""
        is_double = self._are_doubles[position]
        for value in values:
            if isinstance(value, datetime):
                yield key_time(value)
            else:
                yield grouping_key(fraction(value) if is_double and type(value) is int else value)

    def _values_at(self, key: Field, codes: Ints) -> list[Any]:
        """Return values of a field by their codes, ascending; None for -1."""
        nothing = int((codes < 0).sum())
        known = self._of(key.path).take(codes[nothing:]) if nothing < len(codes) else []
        return [None] * nothing + known


def key_time(time: datetime) -> datetime:
    """Return a time as it is compared as a key: by the millisecond, in UTC if it has no zone."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000, tzinfo=time.tzinfo or UTC)
