# SPDX-License-Identifier: Apache-2.0
"""Matches without listing them: a graph of shared nodes, counts, and sums over them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Protocol

import attrs
import numpy as np

from pyflinkcep.expressions.numbers import UNBOUNDED, digits_of_value, of_units


@attrs.frozen(eq=False)
class MatchArrays:
    """Matches of a SEQ query, one after another."""

    positions: Any  # The positions of their events; those of a match from the oldest to the newest
    ends: Any  # Where each match's events end; they begin where those of the match before it end
    components: Any  # The component of each event; each match has events of all

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self.ends)

    def first(self, count: int) -> MatchArrays:
        """Return the first `count` matches."""
        if count >= len(self):
            return self
        events = int(self.ends[count - 1]) if count else 0
        return MatchArrays(self.positions[:events], self.ends[:count], self.components[:events])

    def matches(self, variables: Sequence[str]) -> Iterator[dict[str, list[int]]]:
        """Yield the matches as variable to positions; `variables` are those of the components."""
        taken = self.positions.tolist()
        width = len(variables)
        if len(taken) == width * len(self):  # single events
            for at in range(0, len(taken), width):
                yield {name: [taken[at + n]] for n, name in enumerate(variables)}
            return
        bounds = [*self._begins().tolist(), len(taken)]
        for at in range(0, len(bounds) - 1, width):
            ranges = pairwise(bounds[at : at + width + 1])
            yield {name: taken[a:b] for name, (a, b) in zip(variables, ranges, strict=True)}

    def _begins(self) -> Any:
        """Return where the events of each component of each match begin."""
        begins = np.ones(len(self.positions), bool)
        begins[1:] = self.components[1:] != self.components[:-1]
        begins[self.ends[:-1]] = True
        return np.flatnonzero(begins)


Node = tuple[int, Any, Any]
"""``(component, position, previous node or None)``, or ``(-1, node, node)`` for a union of two."""

UNION = -1


@attrs.frozen(eq=False)
class NodePayloads:
    """Lets merged runs carry the node of their last event."""

    numbers: Sequence[int] | None = None  # What stands in nodes for components; None for themselves

    def begun(self, component: int, at: int) -> Node:
        """Return the node of a first event."""
        return self.taken(None, component, at)

    def taken(self, payload: Node | None, component: int, at: int) -> Node:
        """Return the node of a further event."""
        number = component if self.numbers is None else self.numbers[component]
        return number, at, payload

    def merged(self, one: Node, other: Node) -> Node:
        """Return the union of two nodes, one that is not a union first if there is one."""
        return (UNION, one, other) if other[0] == UNION else (UNION, other, one)


def paths(root: Node) -> Iterator[list[tuple[int, int]]]:
    """
    Yield the paths to a node, each as (component, position) from its first event on.

    The time between two of them grows only with the length of a path, apart from chains of unions,
    each walked once.
    """
    waiting: list[tuple[Node | None, Any]] = [(root, None)]
    while waiting:
        node, after = waiting.pop()
        while node is not None:
            if node[0] == UNION:
                waiting.append((node[2], after))
                node = node[1]
            else:
                after = (node[0], node[1], after)
                node = node[2]
        way = []
        while after is not None:
            component, at, after = after
            way.append((component, at))
        yield way


PackedNode = tuple[int, int, list[int]]
"""(stage, event, next); stage and event are -1 for a union of the nodes in `next`."""


@attrs.frozen
class Packed:
    """Matches in packed form."""

    events: list[int]  # The positions of all events in them, each once, in order
    # Each has the indexes of its stage, of its event, and of the nodes that may come next on the
    # path from a match's last event to its first, whose `next` is empty. Those come before it in
    # the list.
    nodes: list[PackedNode]
    roots: list[int]  # The indexes of the nodes at which reading a match begins
    count: int  # The number of matches


def packed(roots: Iterable[Node]) -> Packed:
    """
    Return nodes, and all nodes they lead to, in packed form.

    >>> found = packed([(1, 7, (-1, (0, 3, None), (0, 5, None)))])
    >>> found.events, found.nodes, found.roots, found.count
    ([3, 5, 7], [(0, 1, []), (0, 0, []), (-1, -1, [1, 0]), (1, 2, [2])], [3], 2)
    """
    roots = list(roots)
    order = _in_order(roots)
    events = sorted({node[1] for node in order if node[0] != UNION})
    event_of = {at: number for number, at in enumerate(events)}
    numbers = {id(node): number for number, node in enumerate(order)}
    nodes: list[PackedNode] = []
    counts: list[int] = []
    for node in order:
        following = [numbers[id(other)] for other in _following(node)]
        stage, event = (UNION, -1) if node[0] == UNION else (node[0], event_of[node[1]])
        nodes.append((stage, event, following))
        counts.append(sum(counts[n] for n in following) if following else 1)
    firsts = [numbers[id(root)] for root in roots]
    return Packed(events, nodes, firsts, sum(counts[n] for n in firsts))


def _in_order(roots: Sequence[Node]) -> list[Node]:
    """Return all nodes, each after those that it leads to."""
    order: list[Node] = []
    seen: set[int] = set()
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += [(other, False) for other in _following(node)]
    return order


def _following(node: Node) -> list[Node]:
    if node[0] == UNION:
        return [node[1], node[2]]
    return [] if node[2] is None else [node[2]]


# --- counts and sums


_PLACES = 64
"""How many more binary digits a root has than the number below it."""

Total = tuple[int, Any, Any, Any]
"""
Number, sum, least and greatest of values; :data:`NOTHING` without values. For a standard deviation
the sum is a :class:`Spread`.
"""

NOTHING: Total = (0, 0, None, None)

Whole = tuple[int, tuple[Total, ...]]
"""The number of matches, and totals over them."""


@attrs.frozen
class Spread:
    """Exact sums for a standard deviation, which do not depend on the order of addition."""

    # The sums of the finite values and of their squares.
    sum: Fraction
    squares: Fraction
    is_nan: bool = False  # Whether there are other values, NaN and infinities

    def __add__(self, other: Spread) -> Spread:
        """Return the sums of both."""
        sums = self.sum + other.sum, self.squares + other.squares
        return Spread(*sums, self.is_nan or other.is_nan)

    def deviation(self, number: int) -> float:
        """
        Return the standard deviation of a sample of `number` values, at least 2.

        >>> Spread(Fraction(12), Fraction(50)).deviation(3)
        1.0
        """
        if self.is_nan:
            return math.nan
        variance = (self.squares - self.sum**2 / number) / (number - 1)
        root = math.isqrt((variance.numerator * variance.denominator) << 2 * _PLACES)
        try:
            return root / (variance.denominator << _PLACES)
        except OverflowError:  # beyond the largest double
            return math.inf


class CountPayloads:
    """Lets merged runs carry their number and the totals of the measures."""

    def __init__(self, measures: Sequence[RequestedTotal] = ()) -> None:
        self._measures = measures
        self._nothing = (NOTHING,) * len(measures)

    def begun(self, component: int, at: int) -> Whole:
        """Return the number of a run that begins."""
        return self.taken((1, self._nothing), component, at)

    def taken(self, payload: Whole, component: int, at: int) -> Whole:
        """Return the numbers after each run takes an event."""
        if not self._measures:
            return payload
        runs, totals = payload
        return runs, tuple(
            _with(total, runs, 1 if values is None else values[at]) if own == component else total
            for (own, values, _), total in zip(self._measures, totals, strict=True)
        )

    def merged(self, one: Whole, other: Whole) -> Whole:
        """Return the numbers of both combined."""
        totals = tuple(map(combined, one[1], other[1]))
        return one[0] + other[0], totals


def _with(total: Total, runs: int, value: Any) -> Total:
    """Return a total after each of some runs takes an event with a value."""
    if value is None:
        return total
    return combined(total, (runs, runs * value, value, value))


def combined(one: Total, other: Total) -> Total:
    """Return the two totals combined; NaN is above all other values, as in Spark."""
    if not one[0]:
        return other
    if not other[0]:
        return one
    number, sum_, low, high = one
    low = other[2] if other[2] < low or low != low else low
    high = other[3] if other[3] > high or other[3] != other[3] else high
    add = UNBOUNDED.add if isinstance(sum_, Decimal) else operator.add
    return number + other[0], add(sum_, other[1]), low, high


def added(parts: Iterable[tuple[int, int, tuple[Total, ...]]], size: int) -> Whole:
    """Return the sums of counts and totals, `size` of them, of events."""
    count, totals = 0, (NOTHING,) * size
    for _, number, found in parts:
        count += number
        totals = tuple(map(combined, totals, found))
    return count, totals


MeasuredValues = tuple[str, Sequence[Any] | None, str]
"""A variable, the values of the table's events or None to count them, and the requested aggregate:
"count", "sum", "avg", "min", "max" or "stddev"; the other parts of the total are undefined."""

Ended = tuple[int, int, tuple[Total, ...]]
"""The position of an event, the number of matches that it completes, and totals over them."""

Roots = tuple[int, list[Node]]
"""Where matches end, and their nodes."""

Weighing = tuple[Any, int, bool]
"""Weights or None, the component of their events, and whether to find the greatest."""

NO_WEIGHTS: Weighing = (None, -1, False)


class Payloads(Protocol):
    """What runs carry: their path, or their number."""

    def begun(self, component: int, at: int) -> Any:
        """Return the payload of a run that begins with an event."""

    def taken(self, payload: Any, component: int, at: int) -> Any:
        """Return the payload after one more event."""

    def merged(self, one: Any, other: Any) -> Any:
        """Return the payload of both runs merged."""


RequestedTotal = tuple[int, Sequence[Any] | None, str]
"""A component, the values of events or None to count them, and an aggregate; also "rank", the
greatest of ranks from 1 on."""

_DIGITS = 63
_WEIGHT = 1 << _DIGITS
"""The bound of weights in the kernel."""

_MOST_PARTS = 8
"""How many weights at most a value becomes."""


Counting = Callable[[Weighing], Iterator[tuple[int, int, int]]]
"""Yields where matches end, their number, and the weight of a component's events in them, or the
greatest; any number without weights."""


@attrs.frozen(eq=False)
class Exact:
    """Values as whole numbers, so that sums do not depend on the order of addition."""

    values: Sequence[Any] | None  # The values, None for NULL; None to count events
    scale: int = 1  # What each was multiplied by
    back: Callable[[int], Any] | None = None  # Returns the value of a whole number; None for itself

    @classmethod
    def of(cls, values: Sequence[Any] | None) -> Exact:
        """Return finite floats and decimals as whole numbers, other values unchanged."""
        known = [value for value in values or () if value is not None]
        back: Callable[[int], Any]
        if any(isinstance(value, Decimal) for value in known):
            places = max(digits_of_value(value).scale for value in known)
            scale, back = 10**places, partial(of_units, places=places)
        elif known and all(type(v) is float and math.isfinite(v) for v in known):
            scale = max(value.as_integer_ratio()[1] for value in set(known))
            back = partial(_divided, by=scale)
        else:
            return cls(values)
        ratios = {value: value.as_integer_ratio() for value in set(known)}
        whole = {value: above * scale // below for value, (above, below) in ratios.items()}
        return cls([None if v is None else whole[v] for v in values or ()], scale, back)

    def total(self, total: Total) -> Total:
        """Convert a total of whole numbers back to the values' type."""
        number, *others = total
        if self.back is None or not number:
            return total
        sum_, low, high = map(self.back, others)
        return number, sum_, low, high


def _divided(value: int, by: int) -> float:
    try:
        return value / by
    except OverflowError:  # beyond the largest double
        return math.copysign(math.inf, value)


@attrs.frozen(eq=False)
class Ranked:
    """Values by rank, such that the least or the greatest of them has the greatest rank."""

    values: Sequence[Any]  # The distinct values; the first has rank 1
    ranks: Sequence[int | None]  # The rank of each event, None for NULL

    @classmethod
    def of(cls, values: Sequence[Any], least: bool) -> Ranked | None:
        """Return the values of events, ranked for the least or the greatest; NaN is above all."""
        try:
            distinct = {value for value in values if value is not None and value == value}
            ordered = sorted(distinct)
        except TypeError:
            return None
        if any(value != value for value in values):
            ordered.append(math.nan)
        if least:
            ordered.reverse()
        by_value = {value: rank for rank, value in enumerate(ordered, 1) if value == value}
        nan = 1 if least else len(ordered)
        ranks = [None if value is None else by_value.get(value, nan) for value in values]
        return cls(ordered, ranks)

    def total(self, found: Iterator[Total]) -> Total:
        """Return the total of values, given that of ranks, the greatest of which is meant."""
        number, _, _, rank = next(found)
        if not number:
            return NOTHING
        value = self.values[rank - 1]
        return number, 0, value, value


@attrs.frozen(eq=False)
class Weighed:
    """A measure as weights of a component's events."""

    component: int  # The component
    # 1 for each event that counts; None if the number of matches is the number of events.
    flags: Any = None
    # The weights of events, the first with the lowest digits of their values, the next with those
    # above and so on; empty if no sum is requested.
    weights: tuple[Any, ...] = ()
    least: int = 1  # The value that a weight of 0 stands for
    ranks: Any = None  # The rank of each event if the greatest is requested

    @classmethod
    def of(cls, requested: RequestedTotal, loops: bool, size: int) -> Weighed | None:
        """Return a measure over `size` events as weights."""
        component, values, function = requested
        if values is None:
            return cls(component, np.ones(size, np.uint64) if loops else None)
        if function == "rank":
            return cls(component, ranks=np.asarray([rank or 0 for rank in values], np.uint64))
        if function in ("min", "max"):  # of values without an order
            return None
        known = [value for value in values if value is not None]
        flags = None
        if loops or len(known) < len(values):
            flags = np.fromiter((value is not None for value in values), np.uint64, size)
        if function == "count":
            return cls(component, flags)
        if any(type(value) is not int for value in known):
            return None
        least, most = min(known, default=0), max(known, default=0)
        least = min(least, 0) if most < _WEIGHT else least
        weights = [0 if value is None else value - least for value in values]
        parts = range(0, max(1, (most - least).bit_length()), _DIGITS)
        if len(parts) > _MOST_PARTS:
            return None
        arrays = (np.asarray([w >> n & (_WEIGHT - 1) for w in weights], np.uint64) for n in parts)
        return cls(component, flags, tuple(arrays), least)

    @classmethod
    def all_of(
        cls, requested: Sequence[RequestedTotal], loops: Sequence[bool], size: int
    ) -> list[Weighed] | None:
        """Return several measures as weights, `loops` by component; None if one cannot be."""
        found = [cls.of(one, loops[one[0]], size) for one in requested]
        known = [measure for measure in found if measure is not None]
        return known if len(known) == len(found) else None

    def totals(self, counting: Counting) -> Iterator[tuple[int, int, Total]]:
        """Yield where matches end, their number, and the requested total."""
        if self.ranks is not None:
            for at, count, rank in counting((self.ranks, self.component, True)):
                yield at, count, (count, 0, rank, rank) if rank else NOTHING
            return
        numbers: Iterator[int] | None = None
        if self.flags is not None:
            numbers = (n for _, _, n in counting((self.flags, self.component, False)))
        parts = [counting((part, self.component, False)) for part in self.weights]
        for found in zip(*parts or [counting(NO_WEIGHTS)], strict=True):
            at, count, _ = found[0]
            weight = 0
            if self.weights:
                weight = sum(part << _DIGITS * n for n, (_, _, part) in enumerate(found))
            number = count if numbers is None else next(numbers)
            yield at, count, (number, weight + self.least * number, 0, 0) if number else NOTHING


def weighed_totals(counting: Counting, measures: Sequence[Weighed]) -> Iterator[Ended]:
    """Yield where matches end, their number, and the requested total of each measure."""
    if not measures:
        yield from ((at, count, ()) for at, count, _ in counting(NO_WEIGHTS))
        return
    for found in zip(*(measure.totals(counting) for measure in measures), strict=True):
        at, count, _ = found[0]
        yield at, count, tuple(total for _, _, total in found)


def exact_totals(
    requested: Sequence[RequestedTotal],
    weighed: Callable[[Sequence[RequestedTotal]], Iterator[Ended] | None],
    counted: Callable[[Sequence[RequestedTotal]], Iterator[Ended]],
) -> Iterator[Ended]:
    """Yield where matches end, their number, and the requested totals."""
    readings = [_reading(one) for one in requested]
    whole = [one for reading in readings for one in reading.requests]
    found = weighed(whole)
    for at, count, totals in counted(whole) if found is None else found:
        own = iter(totals)
        yield at, count, tuple(reading.total(own) for reading in readings)


@attrs.frozen(eq=False)
class _Reading:
    """How a total is computed from totals of whole numbers."""

    requests: tuple[RequestedTotal, ...]  # What is requested instead
    # Returns the total; what it is given begins with the totals of `requests`.
    total: Callable[[Iterator[Total]], Total]


def _reading(requested: RequestedTotal) -> _Reading:
    component, values, function = requested
    if values is None or function == "count":  # values of any type
        known = None if values is None else [None if value is None else 1 for value in values]
        return _Reading(((component, known, function),), next)
    if function == "stddev":
        return _spread(component, values)
    ranked = Ranked.of(values, function == "min") if function in ("min", "max") else None
    if ranked is not None:
        return _Reading(((component, ranked.ranks, "rank"),), ranked.total)
    if function in ("sum", "avg") and not all(map(_is_finite, values)):
        return _infinite_sum(component, values)
    exact = Exact.of(values)
    whole = component, exact.values, function
    return _Reading((whole,), lambda found: exact.total(next(found)))


def _is_finite(value: Any) -> bool:
    """Whether a value is neither NaN nor infinite."""
    return not isinstance(value, float) or math.isfinite(value)


def _infinite_sum(component: int, values: Sequence[Any]) -> _Reading:
    """Return the reading of a sum: that of finite values, and the numbers of all others."""
    finite = [float(v) if v is not None and _is_finite(v) else None for v in values]
    exact = Exact.of(finite)
    others = [
        [1 if value is not None and is_other(value) else None for value in values]
        for is_other in (math.inf.__eq__, (-math.inf).__eq__, math.isnan)
    ]

    def total(found: Iterator[Total]) -> Total:
        number, sum_, *_ = exact.total(next(found))
        counts = [next(found)[0] for _ in others]
        for value, count in zip((math.inf, -math.inf, math.nan), counts, strict=True):
            sum_ += value if count else 0
        whole = number + sum(counts)
        return (whole, sum_, 0, 0) if whole else NOTHING

    counted = ((component, flags, "count") for flags in others)
    return _Reading(((component, exact.values, "sum"), *counted), total)


def _spread(component: int, values: Sequence[Any]) -> _Reading:
    """Return the reading of a spread: the sums of values and squares, the number of others."""
    if any(isinstance(value, float | Decimal) for value in values):
        values = [None if value is None else float(value) for value in values]
    finite = [None if value is None or not math.isfinite(value) else value for value in values]
    exact = Exact.of(finite)
    whole, one = exact.values or (), exact.scale
    squares = [None if value is None else value * value for value in whole]
    pairs = zip(values, finite, strict=True)
    others = [1 if value is not None and own is None else None for value, own in pairs]

    def total(found: Iterator[Total]) -> Total:
        (number, sum_, *_), (_, squared, *_), (more, *_) = (next(found) for _ in range(3))
        spread = Spread(Fraction(sum_, one), Fraction(squared, one * one), more > 0)
        return (number + more, spread, 0, 0) if number + more else NOTHING

    requests = (component, whole, "sum"), (component, squares, "sum"), (component, others, "count")
    return _Reading(requests, total)


class Compressed:
    """Matches that are not listed: merged runs carry what is asked of them."""

    @property
    def variables(self) -> Sequence[str]:
        """The variables of matches."""
        raise NotImplementedError

    def ended(self, payloads: Payloads) -> Iterator[tuple[int, Any]]:
        """Yield where matches end, and what the runs carry that are these matches."""
        raise NotImplementedError

    def weighed(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended] | None:
        """Return the totals of whole numbers, computed without runs; None if that is not known."""
        raise NotImplementedError

    def totals(self, measures: Sequence[MeasuredValues]) -> Whole:
        """Return the number of matches, and the requested totals of the measures."""
        return added(self.totals_by_event(measures), len(measures))

    def totals_by_event(self, measures: Sequence[MeasuredValues]) -> Iterator[Ended]:
        """Yield where matches end, their number, and the requested totals of the measures."""
        asked = [(self.variables.index(v), values, function) for v, values, function in measures]
        return exact_totals(asked, self.weighed, self._counted)

    def _counted(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended]:
        """Yield the same of whole numbers, from merged runs."""
        for at, ended in groupby(self.ended(CountPayloads(measures)), itemgetter(0)):
            counted: Iterator[Ended] = ((at, *payload) for _, payload in ended)
            yield at, *added(counted, len(measures))

    def roots_by_event(self, numbers: Sequence[int] | None = None) -> Iterator[Roots]:
        """Yield where matches end, and their nodes; these have `numbers` for the variables."""
        for at, ended in groupby(self.ended(NodePayloads(numbers)), itemgetter(0)):
            yield at, [node for _, node in ended]
