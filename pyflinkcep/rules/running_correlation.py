# SPDX-License-Identifier: Apache-2.0
"""A Sigma correlation among the rules on a stream: the groups with events, or whose time came."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.correlations import PENDING, Chain, Reading, Stored
from pyflinkcep.engines.flink.stored_state import damaged_state
from pyflinkcep.errors import StateFormatError
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.matcher import NO_DEADLINE
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.rules.page_events import PageEvents
from pyflinkcep.rules.query_rules import satisfied_rules
from pyflinkcep.rules.rule_keys import number_of_value
from pyflinkcep.rules.rule_states import Kept, RuleStates
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.records import records
from pyflinkcep.tables.sigma import CorrelationFields, told_apart

_VERSION = 1
"""Of the numbers of a group: its deadline, a head, then those of the engine."""

# The head is the version in 8 bits, whether it is what waits for alerts of other correlations in
# the next, and the place of the correlation in its chain above them.
_PENDING, _PLACE = 1 << 8, 9
_HEAD = 2

_MANY = 4
"""Groups of events are looked at first if there are so many states for each."""


@attrs.frozen(eq=False)
class RunningCorrelation:
    """Runs a correlation for groups of pages."""

    sigma: SigmaCorrelation
    code: int

    @classmethod
    def of(cls, rules: StreamRules, number: int) -> RunningCorrelation:
        """Return that of a rule."""
        sigma = rules.routed.rules[number].rule.rule.definition
        assert isinstance(sigma, SigmaCorrelation)
        return cls(sigma, int(rules.codes[number]))

    def run(self, run: PageEvents, number: int, states: RuleStates) -> tuple[list[Kept], Found]:
        """Show the events that the rule wants; return what is kept, and matches."""
        rows, _ = run.wanted(number)
        rows = rows.astype(np.int64)
        owners = run.owner_of(rows)
        deadlines = states.numbers[np.cumsum(states.lengths) - states.lengths]
        is_due = (deadlines <= run.watermark) & (deadlines != NO_DEADLINE)
        items = np.unique(np.concatenate([owners, states.items[is_due]]))
        wants = run.rules.rules[number].rule.wants
        satisfied = satisfied_rules(
            self.sigma, wants, rows, lambda n: run.holding(number, n), run.shared
        )
        is_read = np.isin(states.items, items)  # some of them only if an event comes
        events = _Events(self.sigma, run, rows)
        reading = events.reading
        if len(self.sigma.links) == 1 and np.count_nonzero(is_read) > _MANY * len(rows):
            (link,) = self.sigma.links.values()
            groups = {
                reading.group_of("", rule, row)
                for row, own in zip(rows.tolist(), satisfied, strict=True)
                for rule in own
                if rule in link.correlation.group_fields  # not of one that nothing refers to
            } - {None}
            is_read &= is_due | np.isin(states.keys, np.array([*groups], np.int64))
        read = states.only(is_read)
        events.held = read.handles
        stored = _Stored.of(read, is_due[is_read], [*self.sigma.links])
        results, made = Results(["events"], wants_timeouts=False), _Made(self.sigma, self.code)
        at = np.r_[np.searchsorted(owners, items), len(rows)]
        for place, item in enumerate(items.tolist()):
            chain = Chain(self.sigma.links, reading, stored.of_item.get(item, {}))
            own = range(int(at[place]), int(at[place + 1]))
            new = [(int(rows[n]), satisfied[n]) for n in own]
            for match in chain.run(new, run.watermark, stored.due.get(item, ())):
                results.match(None, reading.time_of(match[-1]), {"events": list(match)})
            made.add(item, chain, run.watermark)
        rests = ~is_read
        rests[np.flatnonzero(is_read)] = stored.are_left()
        kept = [(states.only(rests), deadlines[rests]), made.states()]
        return kept, results.take()


@attrs.frozen(eq=False)
class _Stored:
    """The states of some items, until they are read."""

    of_item: Mapping[int, dict[tuple[str, Hashable], Stored]]
    due: Mapping[int, list[tuple[str, Hashable]]]  # Those whose time has come
    _names: Sequence[tuple[int, tuple[str, Hashable]]]  # The item of each state, and its place

    @classmethod
    def of(cls, states: RuleStates, is_due: Any, links: Sequence[str]) -> _Stored:
        """Read states."""
        found: dict[int, dict[tuple[str, Hashable], Stored]] = {}
        due: dict[int, list[tuple[str, Hashable]]] = {}
        names: list[tuple[int, tuple[str, Hashable]]] = []
        numbers, handles = states.numbers.tolist(), states.handles.tolist()
        number = handle = 0
        columns = (states.items, states.keys, states.lengths, states.counts, is_due)
        for item, key, length, count, has_time in zip(
            *(own.tolist() for own in columns), strict=True
        ):
            head = numbers[number + 1]
            if head & (_PENDING - 1) != _VERSION:
                raise StateFormatError(
                    f"the state of a correlation in format {head & (_PENDING - 1)}, "
                    f"this release reads format {_VERSION}",
                    "restore with the release that wrote it, or start from empty state",
                )
            if head >> _PLACE >= len(links):
                raise damaged_state("a correlation has fewer parts than its state")
            at = (links[head >> _PLACE], PENDING if head & _PENDING else key)
            own = numbers[number + _HEAD : number + length], handles[handle : handle + count]
            found.setdefault(item, {})[at] = own
            names.append((item, at))
            if has_time:
                due.setdefault(item, []).append(at)
            number, handle = number + length, handle + count
        return cls(found, due, names)

    def are_left(self) -> list[bool]:
        """Return which states were not read."""
        return [at in self.of_item[item] for item, at in self._names]


@attrs.define(eq=False, slots=False)
class _Events:
    """The events of a run as correlations read them."""

    sigma: SigmaCorrelation
    run: PageEvents
    due: Ints  # Those that may be asked for: the new ones
    held: Ints = attrs.field(factory=lambda: np.zeros(0, np.int64))  # And those of states

    @property
    def reading(self) -> Reading:
        """What correlations read."""
        fields = {
            name: CorrelationFields(link.correlation) for name, link in self.sigma.links.items()
        }
        numbers: dict[Hashable, int] = {}

        def group_of(name: str, rule: str, row: int) -> Hashable | None:
            found = fields[name].group(rule, self._record(row))
            if found is None:
                return None
            own = told_apart(found)
            known = numbers.get(own)
            if known is None:
                known = numbers[own] = number_of_value(found)
            return known

        return Reading(
            self._time,
            group_of,
            lambda name, row: fields[name].value(self._record(row)),
        )

    def _time(self, row: int) -> int:
        return int(self.run.shared.ms[row])

    def _record(self, row: int) -> Record:
        # Of held events correlations read values, if they read any.
        return (self._held if row < self.run.held else self._due)[row]

    @cached_property
    def _held(self) -> dict[int, Record]:
        return self._records(np.unique(self.held))

    @cached_property
    def _due(self) -> dict[int, Record]:
        return self._records(self.due)

    def _records(self, rows: Ints) -> dict[int, Record]:
        return dict(zip(rows.tolist(), records(self.run.shared.table, rows), strict=True))


class _Made:
    """Collects states."""

    def __init__(self, sigma: SigmaCorrelation, code: int) -> None:
        self._places = {name: place for place, name in enumerate(sigma.links)}
        self._code = code
        self._rows: list[tuple[int, int, int, int]] = []  # Item, key, and how many are its own of
        self._numbers: list[int] = []
        self._handles: list[int] = []
        self._deadlines: list[int] = []

    def add(self, item: int, chain: Chain, watermark: int) -> None:
        """Add the states of an item."""
        for name, group, (numbers, handles, deadline) in chain.written(watermark):
            deadline = min(deadline, NO_DEADLINE - 1)
            key, is_pending = (group, False) if isinstance(group, int) else (0, True)
            head = _VERSION | is_pending * _PENDING | self._places[name] << _PLACE
            self._rows.append((item, key, _HEAD + len(numbers), len(handles)))
            self._numbers += [deadline, head, *numbers]
            self._handles += handles
            self._deadlines.append(deadline)

    def states(self) -> Kept:
        """Return them with their deadlines."""
        items, keys, lengths, counts = np.array(self._rows, np.int64).reshape(-1, 4).T
        codes = np.full(len(items), self._code, np.int64)
        numbers, handles = (np.array(own, np.int64) for own in (self._numbers, self._handles))
        states = RuleStates(items, codes, keys, lengths, counts, numbers, handles)
        return states, np.array(self._deadlines, np.int64)
