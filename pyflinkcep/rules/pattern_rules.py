# SPDX-License-Identifier: Apache-2.0
"""The matches of one pattern among many on shared events: it sees only those that it wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.conditions import Evaluated, ExpressionCondition, IterativeCondition
from pyflinkcep.engines.flink.nfa import NFA, EventMatch, NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.relevance import KeyNeeds
from pyflinkcep.engines.flink.operator import CepOperator, KeyedCepOperator
from pyflinkcep.errors import CepError
from pyflinkcep.expressions.evaluator import event_condition
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import Ints, field_names, integers
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.matcher import Wanted, make_matcher
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.matching.stretches import Events, Stretches, needed_stretches
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.shared_events import Route, SharedEvents
from pyflinkcep.tables.column_match import as_values, expressions_on
from pyflinkcep.tables.match import Run
from pyflinkcep.tables.order import Rows, lazily
from pyflinkcep.tables.records import ROW, RecordReader
from pyflinkcep.tables.row_sql import OnlyByRow
from pyflinkcep.tables.sql import evaluated_by

_WORD = 62
"""The most conditions of a rule that are asked beforehand, one bit each."""


def pattern_texts(pattern: Pattern) -> Iterator[str]:
    """Yield the SQL of a pattern about single events."""
    found: list[ExpressionCondition] = []

    def noted(condition: ExpressionCondition) -> IterativeCondition:
        found.append(condition)
        return condition

    evaluated_by(pattern, noted)
    yield from (one.text for one in found if isinstance(one.expression, str))


def pattern_found(pattern: Pattern, key: Sequence[str], events: SharedEvents) -> Found:
    """Return the matches of a pattern; handles are rows."""
    try:
        return _found(pattern, events.route(key), events)
    except OnlyByRow:
        return _by_row(pattern, key, events)


@attrs.frozen(eq=False)
class _Wanted:
    """The events that a pattern wants, in the order of matching, with the conditions that hold."""

    places: Rows
    bits: Ints | None


def _found(pattern: Pattern, route: Route, events: SharedEvents) -> Found:
    def evaluated(condition: ExpressionCondition) -> IterativeCondition:
        text = condition.text
        if not isinstance(condition.expression, str):
            raise OnlyByRow("a Column can only be evaluated by Spark")
        if events.computes(text):
            return condition
        try:
            return Evaluated(text, event_condition(text, events.sql.types))
        except CepError as cause:
            raise OnlyByRow from cause

    nfa = NFACompiler.compile(evaluated_by(pattern, evaluated), timeoutHandling=False)
    if known_bits(nfa.atoms) >> _WORD:
        raise OnlyByRow
    needs = events.needs(nfa)
    expressions, fields = expressions_on(pattern, nfa, events.table)
    wanted = _wanted(nfa, needs.droppable, route, events)
    rows: Ints = route.rows[wanted.places].astype(np.int64)
    columns = {ROW: integers(rows)}
    taken = (as_values(field, rows) for field in fields)
    columns |= zip(field_names(expressions), taken, strict=True)
    table = pa.table(columns)
    store = EventStore(RecordReader(events.table), table.schema)
    store.add(table)
    nfa.open(RuntimeContext())
    matcher = make_matcher(nfa, Wanted(by_windows=True), expressions)
    matcher.set_events(store)
    parts = list(matcher.run(_stretches(nfa, needs.of_key, wanted, route), False, None))
    parts.append(matcher.finish(None))
    found = Found.concat(parts)
    return attrs.evolve(found, handles=rows[found.handles])


def _stretches(nfa: NFA, needs: KeyNeeds | None, wanted: _Wanted, route: Route) -> Stretches:
    """Return the events of each key."""
    places = wanted.places
    groups = route.groups[places]
    firsts = np.flatnonzero(np.r_[len(groups) > 0, groups[1:] != groups[:-1]][: len(groups)])
    needed = needed_stretches(CepOperator(nfa), wanted.bits, firsts, needs)

    def key_of(number: int) -> Any:
        return route.keys.value_of(int(route.rows[places[firsts[number]]]))

    matched = Events(route.times[places], None, 0, wanted.bits)
    return Stretches(matched, np.r_[firsts, len(places)], needed, key_of)


def _wanted(nfa: NFA, droppable: frozenset[int], route: Route, events: SharedEvents) -> _Wanted:
    """Return what a pattern wants: all events, if one without any condition could matter."""
    asked = [
        (atom.bit, route.places[events.holding(atom.condition.text)])
        for atom in nfa.atoms
        if isinstance(atom.condition, ExpressionCondition)
    ]
    if 0 not in droppable:
        bits = np.zeros(len(route.rows), np.int64)
        for bit, places in asked:
            bits[places] |= bit
        return _Wanted(np.arange(len(bits), dtype=np.int32), bits if asked else None)
    pairs = np.concatenate(
        [places.astype(np.int64) << 32 | n for n, (_, places) in enumerate(asked)]
    )
    pairs.sort()
    places = (pairs >> 32).astype(np.int32)
    begins = np.flatnonzero(np.r_[True, places[1:] != places[:-1]][: len(places)])
    numbered = np.asarray([bit for bit, _ in asked])
    own = numbered[pairs & 0xFFFFFFFF]
    bits = np.bitwise_or.reduceat(own, begins) if len(own) else own
    places = places[begins]
    if len(droppable) > 1:
        kept = ~np.isin(bits, list(droppable))
        places, bits = places[kept], bits[kept]
    return _Wanted(places, bits)


def _by_row(pattern: Pattern, key: Sequence[str], events: SharedEvents) -> Found:
    """Return the matches of a pattern that can only be matched event by event."""
    given = lazily(events.table)
    run = Run.of(pattern, given, events.timestamp, list(key) or None, None)
    found = _ByRow(run.nfa.stages, {id(event): row for row, event in enumerate(given)})
    rules = CepOperator(run.nfa, expressions=run.expressions, by_windows=True)
    run.given.feed(KeyedCepOperator(rules, found, run.given.order), by_number=False)
    return found.take()


class _ByRow(Results):
    """Receives matches of events, and keeps their rows."""

    def __init__(self, stages: Sequence[str], rows: dict[int, int]) -> None:
        super().__init__(stages, wants_timeouts=False)
        self._rows = rows

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a match."""
        rows = {stage: [self._rows[id(event)] for event in own] for stage, own in match.items()}
        super().match(key, timestamp, rows)

    def dropped(self, key: Any, count: int) -> None:
        """Receive nothing: no partial matches are dropped."""

    def late(self, key: Any, event: Any) -> None:
        """Receive nothing: no event is late."""
