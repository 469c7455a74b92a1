# SPDX-License-Identifier: Apache-2.0
"""The matches of EQL queries on events in columns: conditions, keys, and the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.latest.bridge import latest_rules
from pyflinkcep.engines.latest.columns import Offers
from pyflinkcep.eql.conditions import Conditions
from pyflinkcep.eql.model import EqlModel, Field, Filter, Step
from pyflinkcep.eql.query import Eql
from pyflinkcep.matching.columns import Flags, Ints
from pyflinkcep.matching.latest import rule_of
from pyflinkcep.tables.field_values import EventFields, FieldValues
from pyflinkcep.tables.order import Times
from pyflinkcep.tables.records import records
from pyflinkcep.tables.rows import rows_of, table_or_rest
from pyflinkcep.tables.values import exact_times_of


@attrs.frozen(eq=False, slots=False)
class EqlEvents:
    """Events in the order of matching."""

    fields: EventFields
    times: Ints  # In milliseconds, in order
    order: Ints  # The place of each event as given

    @classmethod
    def of(cls, fields: EventFields, exact: Ints, ms: Ints, tiebreaker: str | None) -> EqlEvents:
        """Return events with fields, and times, in the order given."""
        by = [exact]
        if tiebreaker is not None:
            by.insert(0, _ranks(fields, tiebreaker))
        order = np.lexsort(by)
        return cls(fields, ms[order], order)

    @cached_property
    def places(self) -> Ints:
        """The place in order of each event as given."""
        places = np.empty(len(self.order), np.int64)
        places[self.order] = np.arange(len(self.order))
        return places


def _ranks(fields: EventFields, path: str) -> Ints:
    """Return numbers by which events are ordered by a field, those without it last."""
    column = Conditions(fields.fields, path).fields.find(Field(path))
    assert column is not None
    values = fields.values_of(path)
    assert isinstance(values, FieldValues)
    values = values.smallest
    ranks = np.full(len(values.distinct) + 1, len(values.distinct))
    order = sorted(range(len(values.distinct)), key=values.distinct.__getitem__)
    ranks[order] = np.arange(len(order))
    return ranks[values.codes]


def matches_of(
    query: Eql, events: Any, timestamp: str, category: str, tiebreaker: str | None
) -> list[list[Any]]:
    """Return the matches of a query."""
    table, rest = table_or_rest(events)
    if table is not None:
        times = Times.of(table, timestamp)
        fields = EventFields.of_table(table)
        ordered = EqlEvents.of(fields, times.exact(), times.ms(), tiebreaker)
        found = places_of(query, ordered, category)
        used = sorted({place for match in found for place in match if place is not None})
        taken = np.asarray(used, np.int64)
        shown: dict[int, Any] = dict(zip(used, records(table, taken), strict=True))
        return [[None if at is None else shown[at] for at in match] for match in found]
    given = rest if isinstance(rest, list) and all(type(e) is dict for e in rest) else rows_of(rest)
    exact = np.asarray(exact_times_of(given, timestamp), np.int64)
    fields = EventFields.of_rows(given)
    tie = tiebreaker if tiebreaker in fields else None  # no event has it
    ordered = EqlEvents.of(fields, exact, exact // 1000, tie)
    found = places_of(query, ordered, category)
    return [[None if at is None else given[at] for at in match] for match in found]


def places_of(query: Eql, events: EqlEvents, category: str) -> list[list[int | None]]:
    """Return the matches of a query, by the places of events as given."""
    model, fields = query.model, events.fields
    conditions = Conditions(fields.fields.of(query.text), category)
    holding = {step.filter: fields.holds(conditions.of(step.filter)) for step in model.every}
    found: list[list[int | None]]
    if model.is_sequence:
        rule = rule_of(model)
        offers = _offers(model, events, conditions, holding)
        runs = latest_rules([rule]).process(events.times, offers, is_last=True)
        order = events.order.tolist()
        found = [
            rule.placed(order[handle] for handle in handles) for _, _, handles in runs.listed()
        ]
    else:
        own = events.order[holding[model.steps[0].filter][events.order]]
        found = [[place] for place in own.tolist()]
    for pipe in model.pipes:
        found = found[: pipe.count] if pipe.is_head else found[max(len(found) - pipe.count, 0) :]
    return found


def _offers(
    model: EqlModel, events: EqlEvents, conditions: Conditions, holding: Mapping[Filter, Flags]
) -> Offers:
    """Return which events satisfy which steps, with the numbers of their keys."""
    steps: list[Step] = [*model.expanded, *([] if model.until is None else [model.until])]
    numbers = KeyNumbers(events.fields, conditions, steps)
    wanted: dict[tuple[Field, ...], Flags] = {}
    for step in steps:
        flags = wanted.setdefault(step.keys, np.zeros(events.fields.size, np.bool_))
        np.logical_or(flags, holding[step.filter], out=flags)
    keys = {fields: numbers.of(fields, flags) for fields, flags in wanted.items()}
    places = events.places
    found: list[tuple[Ints, Ints, Ints]] = []
    for number, step in enumerate(steps):
        rows, own = keys[step.keys]
        holds = holding[step.filter][rows]
        rows, own = places[rows[holds]], own[holds]
        found.append((rows, np.full(len(rows), number), own))
    every = [np.concatenate(column) for column in zip(*found, strict=True)]
    return Offers(every[0].astype(np.int32), every[1].astype(np.int32), every[2])


class KeyNumbers:
    """Numbers for keys: equal ones of different fields have one."""

    def __init__(self, fields: EventFields, conditions: Conditions, steps: Sequence[Step]) -> None:
        self._fields = fields
        self._conditions = conditions
        count = len(steps[0].keys)
        self._values: list[dict[Any, int]] = [{} for _ in range(count)]
        self._tuples: dict[tuple[int, ...], int] = {}

    def of(self, keys: Sequence[Field], wanted: Flags) -> tuple[Ints, Ints]:
        """Return some events and the numbers of their keys: one for each choice of values."""
        rows = np.flatnonzero(wanted)
        own = np.zeros((len(rows), 0), np.int64)
        for position, key in enumerate(keys):
            events, numbers = self._choices(position, key, wanted)
            # Both are in order of events: each choice so far is paired with each of this field's.
            begins = np.searchsorted(events, rows, "left")
            counts = np.searchsorted(events, rows, "right") - begins
            rows, own = np.repeat(rows, counts), np.repeat(own, counts, axis=0)
            within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
            chosen = numbers[np.repeat(begins, counts) + within]
            own = np.column_stack([own, chosen])
        distinct, inverse = np.unique(own, axis=0, return_inverse=True)
        found = [
            self._tuples.setdefault(tuple(one), len(self._tuples)) for one in distinct.tolist()
        ]
        return rows, np.asarray(found, np.int64)[inverse.reshape(-1)]

    def _choices(self, position: int, key: Field, wanted: Flags) -> tuple[Ints, Ints]:
        """Return events, in order, and the numbers of the values that a field of the key has."""
        nothing = np.zeros(0, np.int64)
        events, codes = nothing, nothing
        if self._conditions.fields.find(key) is not None:
            values = self._fields.values_of(key.path)
            assert isinstance(values, FieldValues)
            events, codes = values.choices()
            is_wanted = wanted[events]
            events, codes = events[is_wanted], codes[is_wanted]
            used, codes = np.unique(codes, return_inverse=True)
            known = self._values[position]
            # True is not 1.
            named = [(type(value) is bool, value) for value in values.take(used)]
            numbers = [known.setdefault(one, len(known) + 1) for one in named]
            codes = np.asarray(numbers, np.int64)[codes]
        if key.optional:
            without = np.setdiff1d(np.flatnonzero(wanted), events)
            events, codes = np.append(events, without), np.append(codes, np.zeros_like(without))
            order = np.argsort(events, kind="stable")
            events, codes = events[order], codes[order]
        return events, codes
