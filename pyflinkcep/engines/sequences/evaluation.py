# SPDX-License-Identifier: Apache-2.0
"""SEQ queries by their automaton, on a table of events, in the kernel if it can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np

from pyflinkcep.engines.compressed.counting import (
    NO_WEIGHTS,
    Compressed,
    Ended,
    MatchArrays,
    MeasuredValues,
    NodePayloads,
    Payloads,
    RequestedTotal,
    Total,
    Weighed,
    Weighing,
    paths,
    weighed_totals,
)
from pyflinkcep.engines.lists.clauses import column_of
from pyflinkcep.engines.lists.frame import TypeCodes
from pyflinkcep.engines.lists.matching import RARER, spans
from pyflinkcep.engines.sequences.compiler import (
    Absent,
    EdgeConditions,
    SaseAutomaton,
    compile_query,
    equality_of,
    live_slots,
)
from pyflinkcep.engines.sequences.runs import (
    DepthFirstSearch,
    MergedRuns,
    RunCounts,
    RunLimit,
    Track,
)
from pyflinkcep.engines.table import EventTable, listed
from pyflinkcep.expressions.program import Code, Function, Op, Slot, Type
from pyflinkcep.kernel.module import (
    CompiledModule,
    compiled_module,
    instruction,
    naming_memory_errors,
    slot_spec,
)
from pyflinkcep.sase.model import Query, Strategy

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


Stream = tuple[Any, Any, Any, Any, Any, Any, Any]
"""Times, handles, codes and starts of a partition's events, and the three masks."""

_STRATEGIES = (
    Strategy.STRICT_CONTIGUITY,
    Strategy.PARTITION_CONTIGUITY,
    Strategy.SKIP_TILL_NEXT_MATCH,
    Strategy.SKIP_TILL_ANY_MATCH,
)
"""In the order of ``automaton.h``."""

_Made = TypeVar("_Made", bound="_kernel._Query")

_NONE = np.empty(0, np.int64)
_NO_WINDOW = -1
_MOST_BITS = 62


def is_native(automaton: SaseAutomaton) -> bool:
    """Whether the kernel runs a query: negated sequences only between components, few of both."""
    between = range(1, automaton.size)
    events = sum(len(part.events) for part in automaton.negatives)
    return max(automaton.size, events) <= _MOST_BITS and not any(
        part.is_sequence and part.gap not in between for part in automaton.negatives
    )


def query_spec(automaton: SaseAutomaton) -> tuple[Any, ...]:
    """Return a query as the arguments of the kernel's ``automaton_read``."""
    stages = _stages(automaton)
    return (
        tuple(_components(automaton)),
        tuple(_negatives(automaton, stages)),
        _codes(automaton.partition),
        tuple(slot_spec(slot, stages) for slot in automaton.expressions.slots),
        _NO_WINDOW if automaton.query.window is None else automaton.query.window,
    )


def _as_array(positions: Sequence[int]) -> Any:
    """Return positions as an array."""
    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)
    return np.asarray(positions, np.int64)


# --- the query


def _components(automaton: SaseAutomaton) -> Iterator[tuple[Any, ...]]:
    live = live_slots(automaton)
    for number in range(automaton.size):
        edges = (automaton.begin, automaton.take)
        conditions = [code for edge in edges for code in _codes(edge[number])]
        equal = [equality_of(edge[number].codes[1]) for edge in edges]
        yield (
            automaton.loops[number],
            _STRATEGIES.index(automaton.strategies[number]),
            live[4 * number : 4 * number + 4],
            (*conditions, _codes(automaton.leave[number])[1]),
            *((-1, -1) if one is None else (one.field, one.slot) for one in equal),
        )


def _codes(conditions: EdgeConditions) -> tuple[Any, Any]:
    alone, joint = (
        tuple(instruction(op, operand, ansi=False) for op, operand in code)
        for code in conditions.codes
    )
    return alone, joint


def _negatives(automaton: SaseAutomaton, stages: Mapping[str, int]) -> Iterator[tuple[Any, ...]]:
    for part, components in zip(automaton.negatives, automaton.query.negations, strict=True):
        events = zip(part.events, components, strict=True)
        yield (
            part.gap,
            part.needs,
            tuple(
                (stages[own.variable] if event.update else -1, *_codes(event.conditions))
                for event, own in events
            ),
        )


def _stages(automaton: SaseAutomaton) -> dict[str, int]:
    """Return the number of each component, those that take events first."""
    query = automaton.query
    absent = (part.variable for parts in query.negations for part in parts)
    return {name: number for number, name in enumerate((*query.variables, *absent))}


# --- the events


def _fields(automaton: SaseAutomaton, table: EventTable) -> Iterator[tuple[Any, Any, bool]]:
    for field, values in zip(automaton.expressions.fields, automaton.columns(table), strict=True):
        kind = field.kind
        if kind.type in (Type.TEXT, Type.DECIMAL):
            yield list(values), None, False
            continue
        column = column_of(values, kind)
        valid = None if column.nulls is False else ~np.asarray(column.nulls, bool)
        yield np.ascontiguousarray(column.data), valid, kind.type == Type.FLOAT


def _absent(automaton: SaseAutomaton) -> Iterator[Absent]:
    """Yield the events of negated components."""
    return (event for part in automaton.negatives for event in part.events)


def _types(automaton: SaseAutomaton) -> list[str]:
    """Return the types that the query names, each once."""
    return list(dict.fromkeys([*automaton.types, *(event.type for event in _absent(automaton))]))


def _masks(automaton: SaseAutomaton) -> tuple[Any, Any, Any]:
    begins, takes, absents = [], [], []
    for type_ in _types(automaton):
        own = [n for n, component in enumerate(automaton.types) if component == type_]
        begins.append(sum(1 << n for n in own))
        takes.append(sum(1 << n for n in own if automaton.loops[n]))
        negated = (n for n, event in enumerate(_absent(automaton)) if event.type == type_)
        absents.append(sum(1 << n for n in negated))
    return np.array(begins, np.int64), np.array(takes, np.int64), np.array(absents, np.int64)


_LISTING, _SEARCHING = "matches are listed", "matches are searched for"
_INSTEAD = (
    "count or aggregate them with compressed(), which lists none, write a shorter WITHIN, or "
)
_OUTPUTS = ("all", "onePerStart", "nonOverlapping")
"""In the order of ``backtracking.h``."""

MOST_EVENTS = (1 << 31) - 3
"""How many events a search can tell apart."""

_FIRST, _MOST = 1 << 10, 1 << 17
"""How many events of matches to hand over at a time: few at first, since the caller may stop
early."""


@attrs.frozen(eq=False)
class KernelQuery:
    """A SEQ query on a table of events, for the kernel."""

    module: CompiledModule  # The kernel
    spec: tuple[Any, ...]  # The query
    # The events' times, and their types as indexes into `masks`.
    times: Any
    codes: Any
    # Which events may begin a match, and end one; None for all.
    starts: Any
    ends: Any
    # By type, a bit for each component that may begin with it, for each that may take it, and for
    # each event of negated ones.
    masks: tuple[Any, Any, Any]
    fields: tuple[tuple[Any, Any, bool], ...]  # The columns that conditions read

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable) -> KernelQuery | None:
        """Return a query; None if only the plain path can run it."""
        module = compiled_module()
        if module is None or not is_native(automaton):
            return None
        starts, ends = (
            None if flags is None else np.asarray(flags, np.uint8)
            for flags in (table.starts, table.ends)
        )
        try:
            with naming_memory_errors(_LISTING):
                times = np.ascontiguousarray(table.times, np.int64)
                codes = TypeCodes.of(table.types, _types(automaton)).numbers
                fields = tuple(_fields(automaton, table))
        except OverflowError:  # a number of more than 64 bits
            return None
        spec, masks = query_spec(automaton), _masks(automaton)
        return cls(module, spec, times, codes, starts, ends, masks, fields)

    def made(self, kind: Callable[..., _Made]) -> _Made:
        """Return a lister, a search or a counter of the kernel, on the events."""
        own = kind(*self.spec)
        own.set_events(len(self.times), self.fields)
        return own

    def lister(self) -> _kernel.Lister:
        """Return a new lister; several may be used in turn."""
        return self.made(self.module.Lister)

    def stream(self, positions: Sequence[int]) -> Stream:
        """Return a partition, given by the positions of its events, for ``automaton_open``."""
        if isinstance(positions, range) and positions == range(len(self.times)):
            return self.times, None, self.codes, self.starts, *self.masks
        own = _as_array(positions)
        starts = None if self.starts is None else self.starts[own]
        return self.times[own], own, self.codes[own], starts, *self.masks

    def streams(self, partitions: Iterable[Sequence[int]]) -> tuple[Any, ...]:
        """Return concatenated partitions, in the form that the kernel opens."""
        own = list(partitions)
        bounds = np.cumsum([0, *map(len, own)], dtype=np.int64)
        positions: Any = own[0] if len(own) == 1 else np.concatenate([_NONE, *map(_as_array, own)])
        may_end = None if self.ends is None else self.ends[_as_array(positions)]
        return bounds, may_end, *self.stream(positions)

    def listed(
        self,
        partitions: Iterable[Sequence[int]],
        begun: list[int] | None = None,
        limit: RunLimit | None = None,
        watched: Callable[[bytes], None] | None = None,
    ) -> Iterator[MatchArrays]:
        """Yield the matches of partitions that the automaton finds, lazily and many at a time."""
        with naming_memory_errors(_LISTING, _INSTEAD):
            lister = self.lister()
            if watched is not None:
                lister.watch()
            if limit is not None:
                lister.set_limit(limit.most, limit.exceeded)
            lister.open(begun is not None, *self.streams(partitions))
        yield from _portions(lister.next, _LISTING, _INSTEAD)
        if begun is not None:
            begun += np.frombuffer(lister.begun(), np.int64).tolist()
        if watched is not None:
            watched(lister.watched())

    def searched(
        self,
        partitions: Iterable[Sequence[int]],
        output: str,
        watermark: int | None = None,
        undecided: list[int] | None = None,
        met: Callable[[int], None] | None = None,
    ) -> Iterator[MatchArrays]:
        """Yield the matches that a search finds, of at most `MOST_EVENTS` events."""
        with naming_memory_errors(_SEARCHING):
            search = self.made(self.module.Backtracker)
            given = None if output == "all" else watermark
            search.turn_to(_OUTPUTS.index(output), given, *self.streams(partitions))
        yield from _portions(search.find, _SEARCHING, "")
        if undecided is not None:
            undecided += np.frombuffer(search.undecided(), np.int64).tolist()
        if met is not None:
            met(search.met())


def _portions(
    find: Callable[[int], _kernel.Match], doing: str, instead: str
) -> Iterator[MatchArrays]:
    """Yield the kernel's matches in growing portions."""
    most = _FIRST
    while True:
        with naming_memory_errors(doing, instead):
            found = find(most)
        matches = MatchArrays(*map(np.frombuffer, found, (np.int64, np.int64, np.int32)))
        if not len(matches):
            return
        yield matches
        most = min(2 * most, _MOST)


_OPPOSITE = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}

_COUNTING = "matches are counted"


@attrs.frozen(eq=False)
class KernelCounter:
    """A SEQ query on a table of events, ready to count."""

    query: KernelQuery
    _counter: _kernel.Counter

    @classmethod
    def of(
        cls, automaton: SaseAutomaton, table: EventTable, rises: bool = True
    ) -> KernelCounter | None:
        """Return the counter of a query; None if only the plain path can run it."""
        query = KernelQuery.of(automaton, table) if _can_count(automaton) else None
        if query is None:
            return None
        with naming_memory_errors(_COUNTING):
            counter = query.made(query.module.Counter)
            for component in range(automaton.size if rises else 0):
                rise = rise_of(automaton, component)
                if rise is not None:
                    ranks = _ranks(automaton, table, rise)
                    counter.set_rising(component, rise.or_equal, ranks)
        return cls(query, counter)

    def count(self, positions: Sequence[int]) -> int:
        """Return the number of matches in a partition, given by the positions of its events."""
        with naming_memory_errors(_COUNTING):
            number: int = self._counter.count(*self.query.stream(positions), False, *NO_WEIGHTS)
        return number

    def by_event(
        self, positions: Sequence[int], weighing: Weighing = NO_WEIGHTS
    ) -> Iterator[tuple[int, int, int]]:
        """Yield the position of each event that completes matches, their number and weight."""
        with naming_memory_errors(_COUNTING):
            found = self._counter.count(*self.query.stream(positions), True, *weighing)
        places, counts, weights = found
        places = np.frombuffer(places, np.int64).tolist()
        for place, count, weight in zip(places, counts, weights or counts, strict=True):
            yield positions[place], count, weight


def _can_count(automaton: SaseAutomaton) -> bool:
    """Whether runs may be counted by start: no negated component at an end reads others."""
    between = range(1, automaton.size)
    return is_native(automaton) and all(
        part.gap in between or not part.judges for part in automaton.negatives
    )


@attrs.frozen
class Rise:
    """The order that each event of a loop must keep with the one before."""

    field: int  # The compared field
    falls: bool  # Whether it must be less instead
    or_equal: bool  # Whether it may be equal


def rise_of(automaton: SaseAutomaton, component: int) -> Rise | None:
    """Return the order of a loop if nothing else distinguishes its runs, otherwise None."""
    last = automaton.size - 1
    around = automaton.strategies[component : component + 2]
    if any(strategy is not Strategy.SKIP_TILL_ANY_MATCH for strategy in around):
        return None
    if automaton.leave[component].joint is not None:
        return None
    if any(part.judges or part.gap == component + 1 <= last for part in automaton.negatives):
        return None
    rise = _inequality(automaton.take[component].codes[1])
    if rise is None:
        return None
    slot, found = rise
    own = automaton.expressions.slots[slot]
    names = automaton.query.variables
    if own != Slot(Function.LAST, names[component], found.field, own.type):
        return None
    edges = (automaton.begin, automaton.take, automaton.leave)
    later = [conditions for edge in edges for conditions in edge[component + 1 :]]
    read = frozenset().union(*(conditions.reads for conditions in later), automaton.partition.reads)
    taken = {n for n in read if automaton.expressions.slots[n].stage in names[: component + 1]}
    return None if taken else found


def _inequality(code: Code) -> tuple[int, Rise] | None:
    """Return the slot and the order if a program compares a slot to a field."""
    if len(code) != 3 or code[2][0] not in _OPPOSITE:
        return None
    (first, a), (second, b), (op, _) = code
    if (first, second) == (Op.SLOT, Op.FIELD):
        a, b, op = b, a, _OPPOSITE[op]
    elif (first, second) != (Op.FIELD, Op.SLOT):
        return None
    assert isinstance(a, int)
    assert isinstance(b, int)
    return b, Rise(a, op in (Op.LT, Op.LE), op in (Op.LE, Op.GE))


# --- the events


def _ranks(automaton: SaseAutomaton, table: EventTable, rise: Rise) -> Any:
    """Return the ranks of the events by a field; negative for NULL."""
    kind = automaton.expressions.fields[rise.field].kind
    values = table.field(automaton.fields[rise.field], kind)
    if kind.type in (Type.TEXT, Type.DECIMAL):
        order = {value: n for n, value in enumerate(sorted({v for v in values if v is not None}))}
        ranks = np.array([order.get(value, -1) for value in values], np.int32)
        nulls: Any = ranks < 0
    else:
        column = column_of(values, kind)
        ranks = np.unique(column.data, return_inverse=True)[1].astype(np.int32)
        nulls = np.broadcast_to(column.nulls, len(ranks))
    if rise.falls:
        ranks = ranks.max(initial=0) - ranks
    return np.where(nulls, np.int32(-1), ranks).astype(np.int32)


# --- on a table of events


_MANY = 1024
"""Partitions of fewer events are not taken apart."""


def near_the_rarest(
    query: Query, table: EventTable, partitions: Iterable[Sequence[int]]
) -> Iterator[Sequence[int]]:
    """
    Yield the stretches of partitions that hold all matches, each a partition of its own.

    All events of a match, those that a negated component must not have, and those between them,
    are within the window of each of its events, so also of one of the rarest component.
    """
    codes = TypeCodes.of(table.types, [part.type for part in query.positive])
    sample = codes.sampled()
    rarest = min(codes.names, key=sample.__getitem__)
    if len(table.times) < _MANY or sample[rarest] * RARER > max(sample.values()):
        yield from partitions
        return
    times, is_rare = np.asarray(table.times, np.int64), np.zeros(len(table.times), bool)
    is_rare[codes.positions_of(rarest)] = True
    for positions in partitions:
        at: Any = positions
        at = slice(at.start, at.stop) if isinstance(at, range) else np.asarray(at, np.int64)
        rare = np.flatnonzero(is_rare[at])
        if query.window is None or len(positions) < _MANY:
            if len(rare):
                yield positions
            continue
        begins, ends = spans(query.window, times[at], rare)
        if 2 * int((ends - begins).sum()) > len(positions):
            yield positions
        else:
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                yield positions[begin:end]


MatchPositions = dict[str, list[int]]
"""Variable to the positions of its events, oldest first."""


@attrs.frozen(eq=False, slots=False)
class Sequences(Compressed):
    """A SEQ query on a table of events."""

    _query: Query
    _table: EventTable
    # Returns the positions of a partition's events in another order.
    _order: Callable[[Sequence[int]], Sequence[int]] | None = None
    _limit: RunLimit | None = None
    _narrows: bool = False  # Whether events that are in no match are left out
    _automaton: SaseAutomaton = attrs.field(init=False)

    @_automaton.default
    def _compiled(self) -> SaseAutomaton:
        return compile_query(self._query, self._table.kinds)

    @property
    def variables(self) -> list[str]:
        """The variables that take events."""
        return self._query.variables

    @cached_property
    def _counter(self) -> KernelCounter | None:
        return KernelCounter.of(self._automaton, self._table)

    @cached_property
    def _summing(self) -> KernelCounter | None:
        return KernelCounter.of(self._automaton, self._table, rises=False)

    @cached_property
    def _kernel(self) -> KernelQuery | None:
        return KernelQuery.of(self._automaton, self._table)

    def matches(self, begun: list[int] | None = None) -> Iterator[MatchPositions]:
        """Return all matches, found lazily by the automaton."""
        arrays = self.arrays(begun)
        return self._unpacked(begun) if arrays is None else self._of_arrays(arrays)

    def arrays(self, begun: list[int] | None = None) -> Iterator[MatchArrays] | None:
        """Return all matches from the kernel, lazily and many at a time."""
        if self._kernel is None:
            return None
        return self._kernel.listed(self._positions(), begun, self._limit)

    def _of_arrays(self, arrays: Iterator[MatchArrays]) -> Iterator[MatchPositions]:
        return chain.from_iterable(found.matches(self.variables) for found in arrays)

    def searched(
        self, output: str, watermark: int | None = None, undecided: list[int] | None = None
    ) -> Iterator[MatchPositions]:
        """Return matches found by depth-first search."""
        arrays = self.searched_arrays(output, watermark, undecided)
        if arrays is not None:
            return self._of_arrays(arrays)
        return self._searched(output, watermark, undecided)

    def searched_arrays(
        self,
        output: str,
        watermark: int | None = None,
        undecided: list[int] | None = None,
        met: Callable[[int], None] | None = None,
    ) -> Iterator[MatchArrays] | None:
        """Return the same from the kernel, lazily and many at a time."""
        if self._kernel is None or len(self._table.times) > MOST_EVENTS:
            return None
        return self._kernel.searched(self._positions(), output, watermark, undecided, met)

    def watched_runs(self) -> tuple[int, RunCounts]:
        """Return how many matches the automaton finds, and what became of its runs."""
        if self._kernel is not None:
            told: list[bytes] = []
            arrays = self._kernel.listed(self._positions(), watched=told.append)
            return sum(map(len, arrays)), RunCounts.of_kernel(told[0])
        counts = RunCounts.none(self._automaton.size)
        return sum(1 for _ in self._unpacked(counts=counts)), counts

    def watched_search(self, output: str) -> tuple[int, int]:
        """Return how many matches a search finds, and how often it tried an event on a run."""
        met: list[int] = []
        arrays = self.searched_arrays(output, met=met.append)
        if arrays is not None:
            return sum(map(len, arrays)), sum(met)
        return sum(1 for _ in self._searched(output, met=met.append)), sum(met)

    def _searched(
        self,
        output: str,
        watermark: int | None = None,
        undecided: list[int] | None = None,
        met: Callable[[int], None] | None = None,
    ) -> Iterator[MatchPositions]:
        """Yield the matches that the plain search finds."""
        for track in self._tracks():
            search = DepthFirstSearch(track, watermark)
            for way in search.ways(output):
                if self._may_end(way[-1][1]):
                    yield self._match(way)
            if undecided is not None and search.undecided is not None:
                undecided.append(search.undecided)
            if met is not None:
                met(search.met)

    # --- compressed

    def _unpacked(
        self, begun: list[int] | None = None, counts: RunCounts | None = None
    ) -> Iterator[MatchPositions]:
        """Yield all matches, found by merged runs."""
        for _, root in self.ended(NodePayloads(), begun, counts):
            yield from map(self._match, paths(root))

    def ended(
        self,
        payloads: Payloads,
        begun: list[int] | None = None,
        counts: RunCounts | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield the position of each event that completes matches, and what runs carry."""
        for track in self._tracks():
            runs = MergedRuns(track, payloads, self._limit, counts)
            yield from (ended for ended in runs.matches() if self._may_end(ended[0]))
            first = runs.earliest_start()
            if begun is not None and first is not None:
                begun.append(first)

    def _may_end(self, at: int) -> bool:
        """Whether an event may be the last of a match."""
        return self._table.ends is None or self._table.ends[at]

    def totals(self, measures: Sequence[MeasuredValues]) -> tuple[int, tuple[Total, ...]]:
        """Return the number of matches, and the requested totals of the measures."""
        counter = None if measures else self._counter
        if counter is not None:
            return sum(map(counter.count, self._positions())), ()
        return super().totals(measures)

    def weighed(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended] | None:
        """Return the numbers and totals of each event from the kernel; None if it cannot."""
        counter = self._summing if measures else self._counter
        if counter is None:
            return None
        size, loops = len(self._table.times), self._automaton.loops
        weighed = Weighed.all_of(measures, loops, size)
        return None if weighed is None else self._summed(counter, weighed)

    def _summed(self, counter: KernelCounter, measures: Sequence[Weighed]) -> Iterator[Ended]:
        for positions in self._positions():
            ended = weighed_totals(partial(counter.by_event, positions), measures)
            yield from (event for event in ended if self._may_end(event[0]))

    # --- partitions

    def _positions(self) -> Iterator[Sequence[int]]:
        """Yield the positions of each partition's events that can matter."""
        every = self._all_positions()
        narrows = self._narrows and self._limit is None
        return near_the_rarest(self._query, self._table, every) if narrows else every

    def _all_positions(self) -> Iterator[Sequence[int]]:
        for positions, is_null in self._table.partitions(self._query):
            if not is_null:
                yield positions if self._order is None else self._order(positions)
            elif self._automaton.size == 1:  # nothing equals NULL, so a match has one event
                yield from ([at] for at in positions)

    def _tracks(self) -> Iterator[Track]:
        """Yield the events of each partition."""
        table, automaton = self._table, self._automaton
        columns = list(map(listed, automaton.columns(table)))
        all_types, all_times = listed(table.types), listed(table.times)
        for own in self._positions():
            fields = [tuple([column[at] for column in columns]) for at in own]
            types = [all_types[at] for at in own]
            times = [all_times[at] for at in own]
            starts = None if table.starts is None else [table.starts[at] for at in own]
            yield Track.of(automaton, types, times, fields, starts, own)

    def _match(self, way: Iterable[tuple[int, int]]) -> MatchPositions:
        match: MatchPositions = {variable: [] for variable in self.variables}
        for component, at in way:
            match[self.variables[component]].append(at)
        return match
