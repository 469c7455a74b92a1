# SPDX-License-Identifier: Apache-2.0
"""Patterns among the rules on a stream, all at once: keys with events, or whose time came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.conditions import Evaluated, ExpressionCondition
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import CepError, ConditionError
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.columns import Flags, Ints, field_names, integers
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import as_integers
from pyflinkcep.matching.matcher import (
    NO_DEADLINE,
    Items,
    PatternMatcher,
    Wanted,
    Written,
    make_matcher,
)
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events
from pyflinkcep.pattern.aftermatch import SkipToElementStrategy
from pyflinkcep.rules.event_needs import Form
from pyflinkcep.rules.page_events import PageEvents, RuleEvents
from pyflinkcep.rules.pattern_rules import WantingPattern
from pyflinkcep.rules.rule_states import (
    Kept,
    PageStates,
    RuleStates,
    changes,
    kept_of,
    positions_of,
)
from pyflinkcep.rules.wanting_rule import FoundByRule, naming
from pyflinkcep.tables.column_match import StageSql, as_values
from pyflinkcep.tables.records import ROW
from pyflinkcep.tables.row_sql import OnlyByRow


@attrs.frozen(eq=False, slots=False)
class StreamPattern:
    """A pattern on a stream, compiled when there is work for it; travels to the workers."""

    wanting: WantingPattern
    sql: StageSql | None  # Its SQL over stages

    @cached_property
    def _matcher(self) -> PatternMatcher:
        expressions = None if self.sql is None else self.sql.expressions
        nfa = self.wanting.nfa
        return make_matcher(nfa, Wanted(by_windows=True), expressions, is_stream=True)

    @contextmanager
    def running(self) -> Iterator[PatternMatcher]:
        """Give what matches its events; it is of no more use after an error."""
        try:
            yield self._matcher
        except BaseException:
            vars(self).pop("_matcher", None)
            raise

    @property
    def is_data(self) -> bool:
        """Whether it has no functions of users, whose state a task has to itself."""
        atoms = self.wanting.nfa.atoms
        return all(isinstance(atom.condition, ExpressionCondition | Evaluated) for atom in atoms)

    @cached_property
    def form(self) -> tuple[Form, int] | None:
        """What patterns that its automaton serves have in common; None if it is for itself."""
        form = self.wanting.form
        # One whose matches may be errors is alone, so that these are not of others.
        skip = self.wanting.nfa.skip_strategy
        throws = isinstance(skip, SkipToElementStrategy) and skip.shouldThrowException
        if form is None or self.sql is not None or throws:
            return None
        return form, self.wanting.window  # of which states know the end

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of its stages, by number."""
        return tuple(self.wanting.nfa.stages)

    @cached_property
    def _operator(self) -> CepOperator:
        return CepOperator(self.wanting.nfa)

    @cached_property
    def _begins(self) -> dict[int, bool]:
        return {}

    def may_begin(self, bits: int) -> bool:
        """Whether an event for which some conditions hold may begin a match."""
        if bits not in self._begins:
            known = known_bits(self.wanting.nfa.atoms)
            self._begins[bits] = self._operator.may_begin(bits, known)
        return self._begins[bits]

    def __getstate__(self) -> dict[str, Any]:
        return {"wanting": self.wanting, "sql": self.sql}


@attrs.frozen(eq=False)
class _Keys:
    """The due events that patterns want, rule by rule and key by key."""

    events: RuleEvents
    leaders: Ints  # The leader of each event's rule, which are in order
    bounds: Ints  # Where those of each key begin, and where the last ones end
    rules: Ints  # The rule of each key
    owners: Ints  # Its item
    keys: Ints  # Its number

    @classmethod
    def of(cls, run: PageEvents, events: RuleEvents, leaders: Ints) -> _Keys:
        """Return those that some rules want."""
        owners = run.owner_of(events.rows)
        keys = np.zeros(len(events.rows), np.int64)
        for number, begin, end in _stretches(events.rules):
            names = run.rules.rules[number].rule.rule.key
            keys[begin:end] = run.keys(names)[events.rows[begin:end]]
        order = np.lexsort([keys, owners, events.rules, leaders[events.rules]])
        events, owners, keys = events.taken(order), owners[order], keys[order]
        is_first = changes(events.rules, owners, keys)
        firsts = np.flatnonzero(is_first)
        bounds = np.append(firsts, len(keys))
        of_events = leaders[events.rules]
        return cls(events, of_events, bounds, events.rules[firsts], owners[firsts], keys[firsts])

    def positions(self, rules: Ints, states: RuleStates) -> Ints:
        """Return the number of each key's state, given the rules of states; -1 for a new key."""
        known = (states.keys, states.items, rules)
        return positions_of(known, (self.keys, self.owners, self.rules))

    def may_begin(self, patterns: Mapping[int, StreamPattern]) -> Flags:
        """Return for each key whether one of its events may begin a match."""
        events, size = self.events, len(self.events.rows)
        if not size:
            return np.zeros(0, bool)
        kinds, inverse = np.unique(events.bits, return_inverse=True)
        pairs, of_pair = np.unique(
            events.rules * len(kinds) + inverse.reshape(-1), return_inverse=True
        )
        begins = [
            patterns[number].may_begin(int(kinds[kind]))
            for number, kind in zip(*map(np.ndarray.tolist, divmod(pairs, len(kinds))), strict=True)
        ]
        flags = np.asarray(begins, bool)[of_pair.reshape(-1)]
        for number in events.apart:
            begin, end = np.searchsorted(self.leaders, [number, number + 1]).tolist()
            bits = events.bits_of(number, begin, end)
            flags[begin:end] = bits is None or [
                patterns[number].may_begin(own) for own in as_integers(bits)
            ]
        found: Flags = np.logical_or.reduceat(flags, self.bounds[:-1])
        return found


class RunningPatterns:
    """Runs patterns for keys of pages."""

    # The numbers of a key's state are its deadline, and what a stream of this pattern alone stores.

    def __init__(
        self,
        patterns: Mapping[int, StreamPattern],
        codes: Ints,
        context: RuntimeContext,
        stack: ExitStack,
    ) -> None:
        self._patterns = patterns
        self._codes = codes  # Those of rules, by number
        self._context = context
        self._stack = stack  # Ends the life of rich conditions
        self._opened: set[int] = set()

    @cached_property
    def _leaders(self) -> Ints:
        """For each rule the first of those that run together, since one automaton serves all."""
        found = np.arange(len(self._codes))
        firsts: dict[tuple[Form, int], int] = {}
        for number, pattern in self._patterns.items():
            if pattern.form is not None:
                found[number] = firsts.setdefault(pattern.form, number)
        return found

    def run(
        self, run: PageEvents, rules: Ints, states: RuleStates
    ) -> tuple[list[Kept], list[FoundByRule]]:
        """Match the events that patterns want, given the rules of states; return what is kept."""
        due = _Keys.of(run, run.wanted_by(self._patterns), self._leaders)
        begins = np.cumsum(states.lengths) - states.lengths
        deadlines = states.numbers[begins]
        positions = due.positions(rules, states)
        chosen = np.flatnonzero((positions >= 0) | due.may_begin(self._patterns))
        has_events = np.zeros(len(states), bool)
        has_events[positions[positions >= 0]] = True
        is_over = ~has_events & (deadlines <= run.watermark) & (deadlines != NO_DEADLINE)
        rests = ~has_events & ~is_over
        kept: list[Kept] = [(states.only(rests), deadlines[rests])] if rests.any() else []
        waiting = np.flatnonzero(is_over)
        if not len(chosen) and not len(waiting):
            return kept, []
        work = _Work.of(run, due, chosen, rules, states, positions, waiting, self._leaders)
        parts: list[Written] = []
        found: list[FoundByRule] = []
        for number, begin, end in _stretches(work.leaders):
            one = work.one(number, begin, end, is_apart=self._patterns[number].sql is not None)
            with one.naming(run), self._patterns[number].running() as matcher:
                self._open(number)
                matcher.set_events(self._store(run, work, one, number))
                written = matcher.run_page(one.events, one.items, one.page, one.at, run.watermark)
                own = matcher.take()
            moved = one.first - one.at
            parts.append(
                attrs.evolve(written, items=written.items + begin, handles=written.handles + moved)
            )
            if len(own):
                found += self._by_rule(run, work, attrs.evolve(own, handles=own.handles + moved))
        return [*kept, work.kept(parts, self._codes)], found

    def _by_rule(self, run: PageEvents, work: _Work, found: Found) -> Iterator[FoundByRule]:
        """Yield matches, whose handles are places of events, rule by rule."""
        rules = work.of_rows[found.handles[found.firsts]]
        if (rules[1:] < rules[:-1]).any():
            order = np.argsort(rules, kind="stable")
            found, rules = found.taken(order), rules[order]
        found = attrs.evolve(found, handles=work.rows[found.handles])
        for number, begin, end in _stretches(rules):
            own = found if end - begin == len(found) else found.between(begin, end)
            named = attrs.evolve(own, stages=self._patterns[number].stages)
            yield FoundByRule(run.rules.rules[number].rule.rule, named)

    def _open(self, number: int) -> None:
        """Open the conditions of a pattern, once in a task."""
        if number not in self._opened:
            nfa = self._patterns[number].wanting.nfa
            self._stack.enter_context(opened(nfa, self._context, "a condition"))
            self._opened.add(number)

    def _store(self, run: PageEvents, work: _Work, one: _One, number: int) -> EventStore:
        """Return the events of a pattern as its conditions see them."""
        sql = self._patterns[number].sql
        if sql is None:
            return work.store
        rows = work.rows[one.first : one.first + one.size]
        try:
            fields = sql.fields(run.shared.table.take(integers(rows)))
        except OnlyByRow as raised:
            raise ConditionError(
                f"SQL over stages failed on an event: {raised.__cause__}",
                "write what cannot fail, such as try_cast(x AS int)",
            ) from raised.__cause__
        every = np.arange(len(rows))
        values = (as_values(field, every) for field in fields)
        names = field_names(sql.expressions)
        return _stored(run, {ROW: integers(rows), **dict(zip(names, values, strict=True))})


def _stored(run: PageEvents, columns: dict[str, Any]) -> EventStore:
    shown = pa.table(columns)
    store = EventStore(run.shared.reader, shown.schema)
    store.add(shown)
    return store


def _stretches(numbers: Ints) -> Iterator[tuple[int, int, int]]:
    """Yield numbers that are in order, each with where it begins and where it ends."""
    firsts = np.flatnonzero(changes(numbers))
    bounds = np.append(firsts, len(numbers)).tolist()
    yield from zip(numbers[firsts].tolist(), bounds[:-1], bounds[1:], strict=True)


@attrs.frozen(eq=False)
class _One:
    """What one pattern has to do, or several that run together."""

    rules: Ints  # The rule of each item
    failed: list[int]  # The item with an error
    events: Events  # The due ones
    items: Items
    page: PageStates
    at: int  # The handle of its first event
    first: int  # The place of that among the events of all patterns
    size: int  # How many events it has

    @contextmanager
    def naming(self, run: PageEvents) -> Iterator[None]:
        """Name the rule in errors."""
        try:
            yield
        except CepError:
            number = self.rules[self.failed[-1] if self.failed else 0]
            with naming(run.rules.rules[number].rule.rule):
                raise


@attrs.frozen(eq=False, slots=False)
class _Work:
    """What patterns have to do: items, rule by rule, for keys with events and those that wait."""

    run: PageEvents
    due: _Keys
    leaders: Ints  # The leader of each item's rule
    rules: Ints  # The rule of each item
    owners: Ints
    keys: Ints
    groups: Ints  # The key of each item among the due ones; -1 for one that waits
    has_state: Flags
    own: RuleStates  # The states of items that have some, in their order
    page: PageStates  # The same
    # The events of all patterns: of those that run together those of states, then the due ones.
    rows: Ints
    of_rows: Ints  # The rule of each

    @classmethod
    def of(
        cls,
        run: PageEvents,
        due: _Keys,
        chosen: Ints,
        rules: Ints,
        states: RuleStates,
        positions: Ints,
        waiting: Ints,
        leaders: Ints,
    ) -> _Work:
        """Return the work for some keys, given their states, and for some states that wait."""
        every = np.concatenate([due.rules[chosen], rules[waiting]])
        order = np.lexsort([every, leaders[every]])
        groups = np.concatenate([chosen, np.full(len(waiting), -1)])[order]
        of_states = np.concatenate([positions[chosen], waiting])[order]
        has_state = of_states >= 0
        own = states.take(of_states[has_state])
        owners = np.concatenate([due.owners[chosen], states.items[waiting]])[order]
        keys = np.concatenate([due.keys[chosen], states.keys[waiting]])[order]
        item_rules = every[order]
        held_rules = np.repeat(item_rules[has_state], own.counts)
        of_handles, wanted = leaders[held_rules], due.events
        rows = np.empty(len(of_handles) + len(wanted.rows), np.int64)
        of_rows = np.empty_like(rows)
        held = np.arange(len(of_handles)) + np.searchsorted(due.leaders, of_handles)
        rows[held], of_rows[held] = own.handles, held_rules
        at = np.arange(len(wanted.rows)) + np.searchsorted(of_handles, due.leaders, "right")
        rows[at], of_rows[at] = wanted.rows, wanted.rules
        return cls(
            run,
            due,
            leaders[item_rules],
            item_rules,
            owners,
            keys,
            groups,
            has_state,
            own,
            PageStates.of(own),
            rows,
            of_rows,
        )

    @cached_property
    def store(self) -> EventStore:
        """The events of all patterns."""
        return _stored(self.run, {ROW: integers(self.rows)})

    @cached_property
    def _times(self) -> Ints:
        return self.run.shared.ms[self.due.events.rows]

    @cached_property
    def _before(self) -> tuple[list[int], list[int], list[int]]:
        """How many states there are before each item, numbers before each state, and handles."""
        states = np.append(0, np.cumsum(self.has_state))
        numbers, handles = (
            np.append(0, np.cumsum(own)) for own in (self.page.lengths, self.own.counts)
        )
        return states.tolist(), numbers.tolist(), handles.tolist()

    @cached_property
    def _items(self) -> tuple[Ints, Ints, Ints]:
        """For each item where its state is among those that run, and where its events are."""
        firsts = np.flatnonzero(changes(self.leaders))
        sizes = np.diff(firsts, append=len(self.rules))
        before: Ints = np.cumsum(self.has_state) - self.has_state
        own: Ints = before - np.repeat(before[firsts], sizes)
        at = np.repeat(np.searchsorted(self.due.leaders, self.leaders[firsts]), sizes)
        is_due, bounds = self.groups >= 0, self.due.bounds
        starts, ends = (np.where(is_due, bounds[self.groups + n] - at, 0) for n in (0, 1))
        return np.where(self.has_state, own, -1), starts, ends

    def one(self, number: int, begin: int, end: int, is_apart: bool) -> _One:
        """Return the work of a leader: some items. Its events may be in a store of their own."""
        states, numbers, handles = self._before
        first, last = states[begin], states[end]
        held = handles[last] - handles[first]
        events, groups, bounds = self.due.events, self.groups, self.due.bounds
        at, at_end = self.due.leaders.searchsorted([number, number + 1]).tolist()
        rules, failed = self.rules[begin:end], list[int]()
        place = handles[first] + at
        base = 0 if is_apart else place
        page = PageStates(
            self.page.lengths[first:last],
            self.own.counts[first:last],
            self.page.numbers[numbers[first] : numbers[last]],
        )

        def key_of(item: int) -> Any:
            failed.append(item)
            group = int(groups[begin + item])
            is_due = group >= 0
            row = events.rows[bounds[group]] if is_due else self.own.handles[
                handles[states[begin + item]]
            ]  # fmt: skip
            names = self.run.rules.rules[rules[item]].rule.rule.key
            table = self.run.shared.table
            return {name: table.column(name)[int(row)].as_py() for name in names} or None

        due = Events(self._times[at:at_end], None, base + held, events.bits_of(number, at, at_end))
        positions, starts, ends = (own[begin:end] for own in self._items)
        items = Items(positions, starts, ends, key_of)
        return _One(rules, failed, due, items, page, base, place, held + at_end - at)

    def kept(self, parts: list[Written], codes: Ints) -> Kept:
        """Return the states of items that go on."""
        columns = zip(*(attrs.astuple(part, recurse=False) for part in parts), strict=True)
        written = Written(*map(np.concatenate, columns))
        return kept_of(written, self.owners, codes[self.rules], self.keys, self.rows)
