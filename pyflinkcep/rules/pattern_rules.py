# SPDX-License-Identifier: Apache-2.0
"""The matches of one pattern among many on shared events: it sees only those that it wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.conditions import Evaluated, ExpressionCondition, IterativeCondition
from pyflinkcep.engines.flink.nfa import NFA, EventMatch, NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import KeyNeeds
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
from pyflinkcep.rules.event_needs import Form, shape_of
from pyflinkcep.rules.shared_events import Route, SharedEvents
from pyflinkcep.rules.wants import Wants
from pyflinkcep.tables.column_match import as_values, expressions_on
from pyflinkcep.tables.match import Run
from pyflinkcep.tables.order import lazily
from pyflinkcep.tables.records import ROW
from pyflinkcep.tables.row_sql import OnlyByRow
from pyflinkcep.tables.sql import evaluated_by, over_stages


def pattern_texts(pattern: Pattern) -> Iterator[str]:
    """Yield the SQL of a pattern about single events."""
    found: list[ExpressionCondition] = []

    def noted(condition: ExpressionCondition) -> IterativeCondition:
        found.append(condition)
        return condition

    evaluated_by(pattern, noted)
    yield from (one.text for one in found if isinstance(one.expression, str))


@attrs.frozen(eq=False, slots=False)
class WantingPattern:
    """A pattern whose SQL about single events is known before it is matched."""

    pattern: Pattern  # SQL that is not known beforehand is a function
    wants: Wants
    needs: KeyNeeds | None = None  # What a key needs to have a match
    stages: tuple[str, ...] = ()  # Their names, by number
    window: int = 0  # Its length in milliseconds; 0 for none
    # What it has in common with patterns that its automaton serves, too; None if it is for itself.
    form: Form | None = None

    @cached_property
    def nfa(self) -> NFA:
        """The pattern, compiled."""
        return NFACompiler.compile(self.pattern, timeoutHandling=False)

    def __getstate__(self) -> dict[str, Any]:
        # An automaton knows conditions by their identity, which another process does not.
        return {name: value for name, value in vars(self).items() if name != "nfa"}

    @classmethod
    def of(cls, pattern: Pattern, events: SharedEvents) -> WantingPattern | None:
        """Return a pattern on some events; None if it can only be matched event by event."""

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

        try:
            made = cls(evaluated_by(pattern, evaluated), Wants())
        except OnlyByRow:
            return None
        asked = {
            atom.bit: events.conditions.number(atom.condition.text)
            for atom in made.nfa.atoms
            if isinstance(atom.condition, ExpressionCondition)
        }
        nfa = made.nfa
        shape = shape_of(nfa)
        needs = events.needs(shape, nfa)
        wants = Wants(tuple(asked.values()), tuple(asked), needs.droppable)
        is_known = len(asked) == len(list(nfa.atoms))
        form = events.form_of(shape, nfa) if is_known and wants.are_any else None
        found = cls(made.pattern, wants, needs.of_key, nfa.stages, nfa.window_time, form)
        found.__dict__["nfa"] = nfa
        return found


def pattern_found(
    pattern: Pattern, wanting: WantingPattern | None, key: Sequence[str], events: SharedEvents
) -> Found:
    """Return the matches of a pattern; handles are rows."""
    try:
        if wanting is not None:
            return _found(wanting, events.route(key), events)
    except OnlyByRow:
        pass
    return _by_row(pattern, key, events)


def _found(wanting: WantingPattern, route: Route, events: SharedEvents) -> Found:
    nfa, table = wanting.nfa, events.table
    wanted = wanting.wants.of(lambda n: route.places_of(events.holding(n)), len(route.rows))
    places = wanted.places.astype(np.int64)
    rows: Ints = places if route.are_in_order else route.rows.take(places).astype(np.int64)
    taken = rows
    if len(rows) * 4 < table.num_rows and over_stages(nfa):
        table, taken = table.take(integers(rows)), np.arange(len(rows))
    expressions, fields = expressions_on(wanting.pattern, nfa, table)
    columns = {ROW: integers(rows)}
    values = (as_values(field, taken) for field in fields)
    columns |= zip(field_names(expressions), values, strict=True)
    shown = pa.table(columns)
    store = EventStore(events.reader, shown.schema)
    store.add(shown)
    nfa.open(RuntimeContext())
    matcher = make_matcher(nfa, Wanted(by_windows=True), expressions)
    matcher.set_events(store)
    stretches = _stretches(nfa, wanting.needs, wanted.bits, places, route)
    parts = list(matcher.run(stretches, False, None))
    parts.append(matcher.finish(None))
    found = Found.concat(parts)
    return attrs.evolve(found, handles=rows[found.handles])


def _stretches(
    nfa: NFA, needs: KeyNeeds | None, bits: Ints | None, places: Ints, route: Route
) -> Stretches:
    """Return the events of each key."""
    groups = route.groups.take(places)
    firsts = np.append(0, np.flatnonzero(groups[1:] != groups[:-1]) + 1)[: len(groups)]
    needed = needed_stretches(CepOperator(nfa), bits, firsts, needs)

    def key_of(number: int) -> Any:
        return route.keys.value_of(int(route.rows[places[firsts[number]]]))

    matched = Events(route.times.take(places), None, 0, bits)
    return Stretches(matched, np.r_[firsts, len(places)], needed, key_of)


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
