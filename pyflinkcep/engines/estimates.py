# SPDX-License-Identifier: Apache-2.0
"""The choice of an evaluation where the events are, by estimated costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from math import exp, factorial, inf, prod
from operator import itemgetter
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.choice import (
    AUTO,
    AUTOMATON,
    BACKTRACKING,
    EVENT_LISTS,
    Evaluation,
    alternatives,
    chosen,
)
from pyflinkcep.engines.lists.ranges import Ints, TypeCodes
from pyflinkcep.engines.sequences.compiler import (
    LOOPING,
    WAITING,
    Equality,
    Fields,
    Liveness,
    SaseAutomaton,
    Slots,
    compiled_once,
    equality_of,
)
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.program import Function
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase.alternatives import alternatives as words_of
from pyflinkcep.sase.model import CONTIGUOUS, Query, Strategy

SAMPLE = 64
"""So many events, and pairs of events, are asked."""

_SOUGHT = 1 << 11
"""Where events for the sample are sought."""

_RARE = 32
"""Types with fewer events in a sample are counted exactly."""

_TOO_FEW = 16
"""If fewer are found there, all events of the type are listed."""


@attrs.frozen
class Facts:
    """What is known of a table without evaluating a condition."""

    events: int  # The number of events
    partitions: float  # The number of partitions
    share: float  # Which share of a partition a window covers
    counts: dict[str, float]  # By positive variable, the number of its events
    places: Places = attrs.field(eq=False, repr=False)  # Where they are

    @classmethod
    def of(cls, query: Query, table: EventTable) -> Facts:
        """Return the facts of a table with at least one event."""
        places = Places.of(query, table)
        size = len(table.times)
        if table.keys is None:
            partitions = _distinct_tests(query, table)
            span = float(table.times[-1]) - float(table.times[0])  # as integers it may not fit
        else:
            times = np.asarray(table.times, np.int64)
            keys = np.asarray(table.keys)  # which go up one by one
            some = keys[:: size // SAMPLE + 1]
            firsts, ends = np.searchsorted(keys, some), np.searchsorted(keys, some, "right")
            partitions = float(keys[-1] - keys[0] + 1)
            span = float(np.mean(times[ends - 1].astype(float) - times[firsts].astype(float)))
        share = 1.0
        if query.window is not None:
            share = min(1.0, (query.window + 1) / (span + 1))
        elif query.most_events is not None:
            share = min(1.0, query.most_events * partitions / size)
        return cls(size, partitions, share, places.counts(), places)

    def counted(self) -> Facts:
        """Return the same with exact counts of what is rare."""
        return attrs.evolve(self, counts={**self.counts, **self.places.exactly(list(self.counts))})

    def passing(self, shares: Mapping[str, float]) -> Facts:
        """Return the same as if only a share of each variable's events were there."""
        return attrs.evolve(self, counts={v: n * shares[v] for v, n in self.counts.items()})


@attrs.frozen(eq=False, slots=False)
class Places:
    """Where the events of variables are, by their types."""

    _codes: TypeCodes
    _types: Mapping[str, str]
    _sample: Mapping[str, int]
    _known: dict[str, Ints] = attrs.field(factory=dict)
    _sought: list[tuple[Ints, Ints]] = attrs.field(factory=list)

    @classmethod
    def of(cls, query: Query, table: EventTable) -> Places:
        """Return where the events of a query's variables are."""
        types = {part.variable: part.type for part in query.positive}
        codes = TypeCodes.of(table.types, types.values())
        return cls(codes, types, codes.sampled())

    def counts(self) -> dict[str, float]:
        """Return about how many events there are, by variable."""
        size = len(self._codes.codes)
        scale = size / len(range(0, size, self._codes.step))
        return {v: max(self._sample[type_], 0.5) * scale for v, type_ in self._types.items()}

    def exactly(self, rare: Sequence[str]) -> dict[str, float]:
        """Return exactly how many events some variables have if `counts` may be far off."""
        if self._codes.step == 1:
            return {}
        own = {v: self._types[v] for v in rare if self._sample[self._types[v]] < _RARE}
        return {v: float(len(self._positions(type_))) for v, type_ in own.items()}

    def some(self, variable: str) -> Ints:
        """Return the places of some events at random, all if there are few."""
        at, types = self._at_random()
        type_ = self._types[variable]
        own: Ints = at[types == self._codes.names.index(type_)]
        if len(own) < _TOO_FEW and len(at) < len(self._codes.codes):
            own = self._positions(type_)
            if len(own) > SAMPLE:
                own = own[at_random(SAMPLE, len(own))]
        return own[:SAMPLE]

    def _positions(self, type_: str) -> Ints:
        if type_ not in self._known:
            self._known[type_] = self._codes.positions_of(type_)
        return self._known[type_]

    def _at_random(self) -> tuple[Ints, Ints]:
        """Return some events at random, and their types as indexes of the types' names, or -1."""
        if not self._sought:
            codes, size = self._codes, len(self._codes.codes)
            at = at_random(_SOUGHT, size) if size > _SOUGHT else np.arange(size)
            own = codes.codes[at]
            self._sought.append((at, np.where(own >= 0, codes.lists[own], -1)))
        return self._sought[0]


def at_random(number: int, size: int) -> Ints:
    """Return numbers below a size, the same each time."""
    chosen: Ints = (_uniform(number) * size).astype(np.int64)
    return chosen


@lru_cache(maxsize=8)
def _uniform(number: int) -> Any:
    return np.random.default_rng(0).random(number)


def _distinct_tests(query: Query, table: EventTable) -> float:
    """Return the number of partitions by ``[attr]``, estimated."""
    if query.is_global or not query.equal:
        return 1.0
    at = np.linspace(0, len(table.times) - 1, min(_SOUGHT, len(table.times))).astype(int)
    columns = [values_at(table.columns[name], at) for name in query.equal]
    return distinct_values(list(zip(*columns, strict=True)), len(table.times))


def distinct_values(values: Sequence[Any], size: float) -> float:
    """Return how many distinct values there are among `size`, given some at random."""
    number, distinct = len(values), len(set(values))
    if not number:
        return 1.0
    if number >= size:
        return float(distinct)
    twice = number - distinct  # pairs that are equal, about number ** 2 / (2 * all)
    least = float(distinct)
    return min(size, max(least, number * number / 2 / (twice + 0.5))) if twice < distinct else least


def values_at(column: Any, at: Any) -> list[Any]:
    """Return the values of a column at some places."""
    if isinstance(column, np.ndarray):
        values: list[Any] = column[at].tolist()
        return values
    return [column[place] for place in at.tolist()]


_TURNS = 64
"""After so many draws the random numbers begin anew."""


@attrs.frozen
class Edges:
    """The edges of a component, by sample."""

    alone: float = 1.0  # The share of the events of its type that may begin it by themselves
    # The share of pairs of runs and such events for which the conditions on both hold.
    joint: float = 1.0
    # The share of runs that an event meets to begin it; less than 1 if they are found by value.
    found: float = 1.0
    taken: float = 1.0  # As `joint`, of a loop's next event
    repeated: float = 1.0  # As `found`, of a loop's next event
    alike: float = 1.0  # How many runs that have taken the same event can be told apart later
    distinct: float = 1.0  # How many runs at all can be told apart at the component


@attrs.frozen(eq=False, slots=False)
class Sample:
    """Some events of each variable; all its events are equally likely."""

    automaton: SaseAutomaton  # The query, compiled
    table: EventTable  # The events
    facts: Facts  # Where those of each variable are
    _every: dict[str, list[Fields]] = attrs.field(factory=dict)
    _turn: list[int] = attrs.field(factory=lambda: [0])

    @classmethod
    def of(cls, query: Query, table: EventTable, facts: Facts) -> Sample:
        """Return a sample, which is drawn as it is asked."""
        return cls(compiled_once(query, table.kinds), table, facts)

    @cached_property
    def alone(self) -> dict[str, float]:
        """By variable, the share of its events that pass the conditions on them alone."""
        return {variable: self._passing(n)[1] for n, variable in enumerate(self._variables)}

    @cached_property
    def edges(self) -> list[Edges]:
        """The edges of each component."""
        automaton = self.automaton
        runs: list[Slots] = [automaton.functions.initial] * SAMPLE
        live = Liveness.of(automaton).slots
        found: list[Edges] = []
        for number, variable in enumerate(self._variables):
            begin = automaton.begin[number]
            own, alone = self._passing(number)
            every = self._events(variable)
            own = own or every
            if not own:
                return [*found, Edges(alone=0.0), *([Edges()] * (automaton.size - number - 1))]
            joint, equal = self._share(begin.joint, equality_of(begin.codes[1]), own, runs)
            taken, repeated = 1.0, 1.0
            runs = self._after(number, own, runs)
            if automaton.loops[number]:
                take = automaton.take[number]
                likely = [f for f in every if take.alone is None or take.alone(f, ())] or every
                alone_too = len(likely) / len(every)
                taken, repeated = self._share(take.joint, equality_of(take.codes[1]), likely, runs)
                taken *= alone_too
                runs = self._after(number, own, runs) if taken > 0.25 else runs
            mode = LOOPING | WAITING if automaton.loops[number] else WAITING
            alike = self._alike(number, live[4 * number + mode], runs)
            distinct = _told_apart(live[4 * number + mode], runs)
            found.append(Edges(alone, joint, equal, taken, repeated, alike, distinct))
        return found

    @property
    def _variables(self) -> list[str]:
        return self.automaton.query.variables

    def _passing(self, number: int) -> tuple[list[Fields], float]:
        """Return the events that pass conditions on them alone, if there are any; their share."""
        asked = self.automaton.begin[number].alone
        if asked is None:
            return [], 1.0
        every = self._events(self._variables[number])
        initial = self.automaton.functions.initial
        own = [fields for fields in every if asked(fields, initial)]
        return own, (len(own) + 0.5) / (len(every) + 0.5)

    def _events(self, variable: str) -> list[Fields]:
        """Return the fields of some events of a variable."""
        if variable not in self._every:
            at = self.facts.places.some(variable)
            columns = [values_at(own, at) for own in self.automaton.columns(self.table)]
            self._every[variable] = list(zip(*columns, strict=True)) or [()] * len(at)
        return self._every[variable]

    def _drawn(self, own: Sequence[Fields]) -> list[Fields]:
        """Return as many events as there are runs, at random."""
        self._turn[0] += 1
        size = len(own)
        return [own[number % size] for number in _numbers(self._turn[0] % _TURNS)]

    def _share(
        self,
        joint: Callable[[Fields, Slots], bool] | None,
        equality: Equality | None,
        own: Sequence[Fields],
        runs: Sequence[Slots],
    ) -> tuple[float, float]:
        """Return for which share of pairs a condition holds, and its equality alone."""
        if joint is None:
            return 1.0, 1.0
        if equality is None:
            held = sum(map(joint, self._drawn(own), runs))
            return (held + 0.5) / (len(runs) + 1), 1.0
        field, slot, size = equality.field, equality.slot, self.facts.events
        values = [fields[field] for fields in own if fields[field] is not None]
        known = [slots[slot] for slots in runs if slots[slot] is not None]
        distinct = max(distinct_values(values, size), distinct_values(known, size))
        return 1 / distinct, 1 / distinct

    def _after(self, number: int, own: Sequence[Fields], runs: Sequence[Slots]) -> list[Slots]:
        """Return the slots of runs that have taken an event for a component."""
        update = self.automaton.updates[number]
        return list(runs) if update is None else list(map(update, runs, self._drawn(own)))

    def _alike(self, number: int, live: Sequence[int], runs: Sequence[Slots]) -> float:
        """Return how many runs with one last event the slots of other events tell apart."""
        automaton = self.automaton
        name = self._variables[number]
        single = not automaton.loops[number]
        others = []
        for slot in live:
            own = automaton.expressions.slots[slot]
            follows = own.stage == name and (single or own.function is Function.LAST)
            if not follows or own.offset > 1:
                others.append(slot)
        return _told_apart(others, runs)


@lru_cache(maxsize=_TURNS)
def _numbers(turn: int) -> list[int]:
    """Return numbers at random, the same each time."""
    numbers: list[int] = np.random.default_rng(turn).integers(0, 1 << 30, SAMPLE).tolist()
    return numbers


def _told_apart(live: Sequence[int], runs: Sequence[Slots]) -> float:
    if not live:
        return 1.0
    return distinct_values(list(map(itemgetter(*live), runs)), inf)


@attrs.frozen
class _Prices:
    """Nanoseconds, measured: of a query, a partition, an event, and what is done with it."""

    query: float
    partition: float
    event: float
    named: float
    met: float
    made: float
    match: float


_KERNEL = {
    "nfa": _Prices(1e5, 1800, 4, 40, 30, 90, 40),
    "backtracking": _Prices(1e5, 1800, 14, 15, 18, 10, 40),
    "eventLists": _Prices(2.5e5, 0, 1, 25, 1.2, 5, 4),
}
_PLAIN = {
    "nfa": _Prices(1e5, 9000, 900, 700, 900, 3000, 2500),
    "backtracking": _Prices(1e5, 9000, 1200, 700, 900, 2000, 1500),
    "eventLists": _Prices(3e5, 0, 3, 60, 12, 60, 900),
}


@attrs.frozen
class Costs:
    """Estimates for a query on a table."""

    milliseconds: dict[str, float]  # By evaluation
    partial: tuple[float, ...]  # By component, how many partial matches reach it
    live: tuple[float, ...]  # By component, how many runs of the automaton are alive at a time
    matches: float  # How many matches there are
    order: tuple[str, ...]  # The order in which lists are joined


def is_small(every: Sequence[Facts], runs: str, has_kernel: bool) -> bool:
    """Whether an evaluation by runs is done before lists are made, if one in six pairs joins."""
    prices = _KERNEL if has_kernel else _PLAIN
    by_runs, lists = prices[runs], prices["eventLists"]
    spare = (lists.query - by_runs.query) * len(every)
    for facts in every:
        spare -= facts.events * by_runs.event + sum(facts.counts.values()) * by_runs.named
        if spare > 0:
            spare -= pairs_without_conditions(facts) * (by_runs.met + by_runs.made) / 6
    return spare > 0


def is_tiny(size: int, components: int, runs: str, has_kernel: bool) -> bool:
    """Whether an evaluation by runs is at most twice as slow as lists, whatever the events are."""
    prices = _KERNEL if has_kernel else _PLAIN
    by_runs, lists = prices[runs], prices["eventLists"]
    most = (size / components) ** components / factorial(components)
    return most * (by_runs.met + by_runs.made) / 6 < 2 * (lists.query - by_runs.query)


def pairs_without_conditions(facts: Facts) -> float:
    """Return how many candidates a join of single events has if all conditions hold."""
    counts = sorted(facts.counts.values())
    total, rows = 0.0, counts[0]
    for number, count in enumerate(counts[1:], 1):
        rows *= 2 * count / facts.partitions * facts.share / (number + 1)
        total += rows
    return total


def estimated(
    query: Query,
    facts: Facts,
    edges: Sequence[Edges],
    candidates: Sequence[str],
    has_kernel: bool,
    is_all: bool,
) -> Costs:
    """Return what evaluations would cost."""
    model = _Model(query, facts, edges, is_all)
    prices = _KERNEL if has_kernel else _PLAIN
    costs = {name: model.cost(name, prices[name]) / 1e6 for name in candidates}
    partial, live = tuple(model.partial), tuple(model.live)
    return Costs(costs, partial, live, partial[-1], model.joins.order)


@attrs.frozen
class _Joins:
    """How many candidates and rows a join has, and in which order."""

    candidates: float
    rows: float
    order: tuple[str, ...]


class _Model:
    """Expected numbers, as if events of each type came evenly and conditions were independent."""

    def __init__(self, query: Query, facts: Facts, edges: Sequence[Edges], is_all: bool) -> None:
        self._facts, self._edges, self._is_all = facts, edges, is_all
        self._query = query
        names = query.variables
        self._loops = [part.repeats for part in query.positive]
        self._own = [facts.counts[n] * e.alone for n, e in zip(names, edges, strict=True)]
        # An event follows another in a window anywhere; without one, half of them on average.
        half = 1.0 if query.has_window and facts.share < 0.5 else 0.5
        within = [own / facts.partitions * facts.share * half for own in self._own]
        self._strategies = [query.strategy_of(name) for name in names]
        contiguous = facts.events / facts.partitions
        self._within = [
            own / (contiguous * facts.partitions) if strategy in CONTIGUOUS else w
            for w, own, strategy in zip(within, self._own, self._strategies, strict=True)
        ]
        near = min(within)
        self._near = min(1.0, 1 - exp(-2 * near)) if query.has_window else 1.0
        self._met_by_search = 0.0
        self._met_by_runs = 0.0
        self._made = 0.0
        self.partial: list[float] = []
        self.live: list[float] = []
        for number in range(len(names)):
            self._add(number)

    def _add(self, number: int) -> None:
        """Add what a component costs search and runs."""
        edge, own, within = self._edges[number], self._own[number], self._within[number]
        if not number:
            ends = prod(1 - exp(-w) for w in self._within[1:])
            reached = own * max(ends, 1e-6)
            entered = own * self._near
        else:
            before = self.partial[-1]
            tries = self._tries(within, edge.joint, self._strategies[number])
            order = (
                max(1, number) if self._strategies[number] is Strategy.SKIP_TILL_ANY_MATCH else 1
            )
            self._met_by_search += before * tries / order
            reached = before * self._passed(within, edge.joint, self._strategies[number]) / order
            if self._strategies[number] is Strategy.SKIP_TILL_NEXT_MATCH:  # goes on with the first
                self.live[-1] /= max(1.0, within * min(1.0, edge.joint))
            met = own * self._near * self.live[-1] * edge.found
            self._met_by_runs += met
            kept = edge.joint / edge.found
            entered = min(met * min(1.0, kept), own * self._near * edge.alike)
        is_any = self._strategies[number] is Strategy.SKIP_TILL_ANY_MATCH
        if self._loops[number]:
            reached = self._looped(number, reached, within)
            if is_any:
                entered = min(max(entered, own * self._near), own * self._near * edge.alike)
        self.partial.append(reached)
        self._made += entered
        share = self._facts.share if self._strategies[number] not in CONTIGUOUS else 0.0
        alive = entered / self._facts.partitions * share / max(self._near, 1e-9)
        alive = min(max(alive, 1e-3), edge.distinct)
        if self._loops[number]:
            again = own * self._near * alive * edge.repeated
            self._met_by_runs += again
            if not is_any:
                self._made += again * min(1.0, edge.taken / edge.repeated)
        self.live.append(alive)

    def _looped(self, number: int, begun: float, within: float) -> float:
        """Return how many ways there are through a loop, and add what their search costs."""
        edge, strategy = self._edges[number], self._strategies[number]
        if strategy is not Strategy.SKIP_TILL_ANY_MATCH:
            longer = within * min(1.0, edge.taken)
            self._met_by_search += begun * within
            return begun * (1 + longer)
        ways = exp(min(60.0, within * min(1.0, edge.taken) * 0.6))
        self._met_by_search += begun * ways * max(1.0, within / 2)
        return begun * ways

    def _tries(self, within: float, joint: float, strategy: Strategy) -> float:
        """Return how many events a run is shown until it goes on."""
        if strategy in CONTIGUOUS:
            return min(1.0, within)
        if strategy is Strategy.SKIP_TILL_NEXT_MATCH or not self._is_all:
            return min(within, 1 / joint)
        return within

    def _passed(self, within: float, joint: float, strategy: Strategy) -> float:
        """Return in how many ways a run goes on."""
        if strategy is Strategy.SKIP_TILL_ANY_MATCH and self._is_all:
            return within * joint
        return 1 - exp(-within * joint)

    def cost(self, name: str, prices: _Prices) -> float:
        """Return the nanoseconds that an evaluation would take."""
        named = sum(self._own)
        facts = self._facts
        listed = prices.query + facts.partitions * prices.partition
        listed += facts.events * prices.event + self.partial[-1] * prices.match
        if name == "eventLists":
            joins = self.joins
            made = joins.candidates * prices.met + joins.rows * prices.made
            return listed + named * prices.named + made
        listed += named * self._near * prices.named
        if name == "backtracking":
            return listed + self._met_by_search * prices.met + sum(self.partial) * prices.made
        return listed + self._met_by_runs * prices.met + self._made * prices.made

    @cached_property
    def joins(self) -> _Joins:
        """A join that begins with the rarest element."""
        names, size = self._query.variables, len(self._own)
        left = right = min(range(size), key=self._own.__getitem__)
        rows = every = self._own[left]
        candidates, order = 0.0, [names[left]]
        for number in range(2, size + 1):
            is_left = left > 0 and (
                right + 1 == size or self._grows(left) <= self._grows(right + 1)
            )
            edge = self._edges[left if is_left else right + 1]
            left, right = (left - 1, right) if is_left else (left, right + 1)
            next_ = left if is_left else right
            order.append(names[next_])
            tried = rows * self._within[next_] * 2 / number
            candidates += tried
            rows = tried * edge.joint
            every += rows
        return _Joins(candidates, every, tuple(order))

    def _grows(self, number: int) -> float:
        """Return by how much an edge multiplies rows: that into a component, or out of it."""
        return self._within[number] * self._edges[number].joint


_FEW = 512
"""Events of the query's types that are too few to be worth a sample."""

_CHEAP = 40
"""So many candidates for each event are joined sooner than a sample is asked."""

_FEW_CANDIDATES = 3e6
"""And so many in all."""

_QUICK = 15.0
"""So many milliseconds of runs are not worth a sample."""

_SURELY = 1.3
"""How many times more another evaluation must cost than what the form suggests."""


@attrs.frozen
class Estimate:
    """
    What is known about the events of a query, and what its evaluations would cost.

    A composed query is the sum of the plain ones that it stands for.
    """

    events: int  # The number of events
    counts: dict[str, float]  # By variable, the number of events of its type
    # By variable, the share of these that pass the conditions on them alone.
    alone: dict[str, float]
    # By variable, the share of pairs of runs and such events that pass the other conditions.
    joint: dict[str, float]
    partial: dict[str, float]  # By variable, how many partial matches reach it
    # The order in which lists would be joined; of a composed query, the longest of its words. It
    # begins with the rarest.
    order: tuple[str, ...]
    matches: float  # How many matches there are
    milliseconds: dict[str, float]  # By evaluation, what it would cost

    @property
    def least(self) -> str:
        """The evaluation that costs least."""
        return min(self.milliseconds, key=self.milliseconds.__getitem__)


def resolved(query: Query, table: EventTable, evaluation: str, output: str = "all") -> str:
    """Return an evaluation, chosen by the events of a table if it is "auto"."""
    if evaluation != AUTO:
        return evaluation
    return chosen_by_data(query, table, output).name


def chosen_by_data(query: Query, table: EventTable, output: str = "all") -> Evaluation:
    """
    Return how a query is evaluated on a table.

    The answer is the same whatever is chosen. Only evaluations that the form of the query allows
    are compared. What the form suggests is taken if it is quick whatever the conditions are, and
    sampled are first the conditions on single events, then the others if these do not suffice.
    """
    usual, words = _by_form(query, output)
    candidates, size = usual.candidates, len(table.times)
    if not candidates or not size or (size < _FEW and EVENT_LISTS not in candidates):
        return usual
    has_kernel = _is_native(query)
    runs = AUTOMATON if AUTOMATON in candidates else BACKTRACKING
    if size < _FEW and is_tiny(size, len(query.components), runs, has_kernel):
        return Evaluation(runs, "there are few events")
    plain = [_Plain(word, table) for word in words]
    if EVENT_LISTS in candidates:
        every = [own.facts for own in plain]
        if is_small(every, runs, has_kernel):
            return Evaluation(runs, "there are few events")
        if all(map(_is_joined_quickly, every)):
            return Evaluation(EVENT_LISTS, "there are few candidates")
        if usual.name == EVENT_LISTS and all(map(_is_joined_quickly, [o.passing for o in plain])):
            return usual
    elif _runs_quickly([(own.query, own.counted) for own in plain], usual.name, output):
        return usual
    milliseconds = _summed([own.costs(candidates, output) for own in plain])
    least = min(milliseconds, key=milliseconds.__getitem__)
    if milliseconds[least] * _SURELY > milliseconds[usual.name]:
        return usual
    return Evaluation(least, "estimated to cost least")


@lru_cache(maxsize=64)
def _by_form(query: Query, output: str) -> tuple[Evaluation, tuple[Query, ...]]:
    """Return what the form suggests, and the plain queries."""
    usual = chosen(query, AUTO, output)
    return usual, words_of(query) if usual.candidates else ()


def estimate(query: Query, table: EventTable, output: str = "all") -> Estimate | None:
    """Return the estimates for a table; None without events, or if there is nothing to choose."""
    candidates = alternatives(query, output)
    if not candidates or not len(table.times):
        return None
    plain = [_Plain(word, table) for word in words_of(query)]
    every = [own.costs(candidates, output) for own in plain]
    counts: dict[str, float] = {}
    alone: dict[str, float] = {}
    joint: dict[str, float] = {}
    partial: dict[str, float] = {}
    for own, costs in zip(plain, every, strict=True):
        for number, variable in enumerate(own.query.variables):
            edges = own.sample.edges[number]
            counts[variable] = own.counted.counts[variable]
            alone[variable] = edges.alone
            joint[variable] = min(joint.get(variable, 1.0), edges.joint)
            partial[variable] = partial.get(variable, 0.0) + costs.partial[number]
    in_order = [variable for variable in query.variables if variable in counts]
    return Estimate(
        events=len(table.times),
        counts={variable: counts[variable] for variable in in_order},
        alone={variable: alone[variable] for variable in in_order},
        joint={variable: joint[variable] for variable in in_order},
        partial={variable: partial[variable] for variable in in_order},
        order=max((costs.order for costs in every), key=len),
        matches=sum(costs.matches for costs in every),
        milliseconds=_summed(every),
    )


@attrs.frozen(eq=False, slots=False)
class _Plain:
    """What is known of a plain query on a table; each is found out when it is asked."""

    query: Query
    table: EventTable

    @cached_property
    def facts(self) -> Facts:
        """Counts by sample."""
        return Facts.of(self.query, self.table)

    @cached_property
    def counted(self) -> Facts:
        """The same with exact counts of what is rare."""
        return self.facts.counted()

    @cached_property
    def sample(self) -> Sample:
        """Some events."""
        return Sample.of(self.query, self.table, self.counted)

    @cached_property
    def passing(self) -> Facts:
        """The facts without the events that conditions on single events exclude."""
        return self.counted.passing(self.sample.alone)

    def costs(self, candidates: Sequence[str], output: str) -> Costs:
        """Return what evaluations would cost."""
        native, edges = _is_native(self.query), self.sample.edges
        return estimated(self.query, self.counted, edges, candidates, native, output == "all")


def _is_native(query: Query) -> bool:
    """Whether the kernel has all evaluations of a query: not of negated sequences at an end."""
    has_sequences = any(len(parts) > 1 for parts in query.negations)
    is_plain = has_sequences and (query.looks_back or query.looks_ahead)
    return compiled_module() is not None and not is_plain


def _is_joined_quickly(facts: Facts) -> bool:
    """Whether a join has few candidates even if all conditions hold."""
    named = sum(facts.counts.values())
    return pairs_without_conditions(facts) < max(_CHEAP * named, _FEW_CANDIDATES)


def _runs_quickly(known: Sequence[tuple[Query, Facts]], evaluation: str, output: str) -> bool:
    """Whether an automaton is quick even if all conditions hold and no runs are merged."""
    if all(sum(facts.counts.values()) < _FEW for _, facts in known):
        return True
    least = 0.0
    for query, facts in known:
        edges = [Edges(alike=inf, distinct=inf)] * len(query.positive)
        native = _is_native(query)
        costs = estimated(query, facts, edges, (evaluation,), native, output == "all")
        least += costs.milliseconds[evaluation]
    return least < _QUICK


def _summed(every: Sequence[Costs]) -> dict[str, float]:
    """Return what evaluations of all plain queries together would cost."""
    return {
        name: sum(costs.milliseconds[name] for costs in every) for name in every[0].milliseconds
    }
