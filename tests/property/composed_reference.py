# SPDX-License-Identifier: Apache-2.0
"""The meaning of composed SEQ patterns, by brute force: slow and obvious.

A run has taken events for a prefix of some word of the pattern. What may come next is read off the
pattern, not off a list of words: :func:`following` is the derivative of a regular expression. The
edges are those of docs/sase.md: begin, take, leave and ignore. In a group that repeats a variable is
named with its iterations, as in ``a@2`` and ``a@2.1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import attrs

from pyflinkcep.expressions.evaluator import event_function
from pyflinkcep.expressions.tree import Aggregate, Column, Literal, Operation, Tree, leaves
from pyflinkcep.sase.model import (
    AnyOrder,
    Choice,
    Component,
    One,
    Optional,
    Query,
    Repeated,
    Sequence,
    Shape,
    Strategy,
)
from pyflinkcep.sase.placement import clauses

NOTHING: Shape = Sequence(())


def matches(query: Query, events: list[Event]) -> set[Taken]:
    """Return all matches of a SEQ query on events with ``type`` and ``ts``, in order of time."""
    shape = query.shape or Sequence(tuple(One(part.variable) for part in query.components))
    whole = [list(range(len(events)))]
    if query.equal and not query.is_global:
        groups: dict[Any, list[int]] = {}
        for at, event in enumerate(events):
            key = tuple(event[name] for name in query.equal)
            groups.setdefault(at if None in key else key, []).append(at)
        whole = list(groups.values())
    groups = around(shape)
    found = (m for own in whole for m in _Machine(query, events, own, groups).matches(shape))
    return {merged(match) for match in set(found)}


@attrs.frozen
class _Machine:
    """A query on the events of a partition."""

    query: Query
    events: list[Event]
    own: list[int]
    groups: dict[str, tuple[Any, ...]]

    # --- the pattern

    def following(self, shape: Any) -> Iterator[tuple[str, tuple[str, ...], Any]]:
        """Yield what may come next: a variable, the negated ones before it, and what is left."""
        if isinstance(shape, One):
            if not self.part(shape.variable).negated:
                yield shape.variable, (), NOTHING
        elif isinstance(shape, Optional):
            yield from self.following(shape.part)
        elif isinstance(shape, Repeated):
            yield from self.following(Further(1, shape))
        elif isinstance(shape, Further):
            number, group = shape.number, shape.group
            if group.most is None or number <= group.most:
                for variable, absent, left in self.following(Iteration(number, group.part)):
                    yield variable, absent, Sequence((left, Further(number + 1, group)))
        elif isinstance(shape, Iteration):
            for variable, absent, left in self.following(shape.part):
                names = tuple(inside(name, shape.number) for name in absent)
                yield inside(variable, shape.number), names, Iteration(shape.number, left)
        elif isinstance(shape, Choice):
            for part in shape.parts:
                yield from self.following(part)
        elif isinstance(shape, AnyOrder):
            yield from self.following(Begun(shape.parts, ()))
        elif isinstance(shape, Begun):
            everywhere = tuple(n for part in shape.parts for n in self.absent_in(part))
            for number, part in enumerate(shape.parts):
                others = shape.parts[:number] + shape.parts[number + 1 :]
                for variable, absent, rest in self.following(part):
                    yield variable, shape.absent + absent, Begun((rest, *others), everywhere)
        elif shape.parts:
            first, rest = shape.parts[0], Sequence(shape.parts[1:])
            for variable, absent, left in self.following(first):
                yield variable, absent, Sequence((left, *rest.parts))
            if self.may_end(first):
                passed = self.absent_in(first)
                for variable, absent, left in self.following(rest):
                    yield variable, passed + absent, left

    def may_end(self, shape: Any) -> bool:
        """Whether nothing more is needed."""
        if isinstance(shape, Repeated):
            return self.may_end(Further(1, shape))
        if isinstance(shape, Further):
            return shape.number > shape.group.least or self.may_end(shape.group.part)
        if isinstance(shape, Iteration):
            return self.may_end(shape.part)
        if isinstance(shape, One):
            return self.part(shape.variable).negated
        if isinstance(shape, Optional):
            return True
        every = any if isinstance(shape, Choice) else all
        return every(map(self.may_end, shape.parts))

    def absent_in(self, shape: Any) -> tuple[str, ...]:
        """Return the negated components of what is passed without an event."""
        if isinstance(shape, Iteration):
            return tuple(inside(name, shape.number) for name in self.absent_in(shape.part))
        if isinstance(shape, One):
            return (shape.variable,) if self.part(shape.variable).negated else ()
        if isinstance(shape, Sequence):
            return tuple(name for part in shape.parts for name in self.absent_in(part))
        return ()

    def part(self, variable: str) -> Component:
        return self.query.component(base(variable))

    # --- runs

    def matches(self, shape: Shape) -> Iterator[Taken]:
        for place, at in enumerate(self.own):
            for variable, absent, rest in self.following(shape):
                if self.begins((), variable, at):
                    gaps = {0: absent}
                    yield from self.entered(((variable, (at,)),), gaps, rest, place)

    def entered(
        self, taken: Taken, gaps: dict[int, tuple[str, ...]], rest: Shape, place: int
    ) -> Iterator[Taken]:
        """Continue a run that has just taken an event."""
        last = taken[-1][0]
        if self.may_end(rest) and self.leaves(taken):
            whole = {**gaps, len(taken): self.absent_in(rest)}
            if not any(
                self.forbidden(taken, gap, names)
                for gap, absent in whole.items()
                for names in self.negations(absent)
            ):
                yield taken
        alive = frozenset(variable for variable, _, _ in self.following(rest))
        yield from self.walk(taken, gaps, rest, place + 1, alive, looping=self.part(last).repeats)

    def walk(
        self,
        taken: Taken,
        gaps: dict[int, tuple[str, ...]],
        rest: Shape,
        place: int,
        alive: frozenset[str],
        looping: bool,
    ) -> Iterator[Taken]:
        """Go on with a run that loops, or waits for those of the next components that are alive."""
        if place == len(self.own):
            return
        at = self.own[place]
        if not self.in_window(taken[0][1][0], at):
            return
        last = taken[-1][0]
        begun = [
            (variable, absent, left)
            for variable, absent, left in self.following(rest)
            if self.begins(taken, variable, at)
        ]
        takes = stays = False
        waiting = alive
        if looping:
            takes = self.takes(taken, last, at)
            stays = self.ignores(last, taken, at, takes)
            if not self.leaves(taken):
                begun = []
            if not begun and (takes or stays or not self.leaves(taken)):
                waiting = frozenset()
        waiting = frozenset(v for v in waiting if self.ignores(v, taken, at, bool(begun)))
        for variable, absent, left in begun:
            if variable not in alive:
                continue
            more = (*taken, (variable, (at,)))
            yield from self.entered(more, {**gaps, len(taken): absent}, left, place)
        if takes:
            more = (*taken[:-1], (last, (*taken[-1][1], at)))
            yield from self.entered(more, gaps, rest, place)
        if stays:
            yield from self.walk(taken, gaps, rest, place + 1, alive, looping=True)
        if waiting:
            yield from self.walk(taken, gaps, rest, place + 1, waiting, looping=False)

    # --- edges

    def in_window(self, first: int, at: int) -> bool:
        window, most = self.query.window, self.query.most_events
        if most is not None:
            return abs(self.own.index(at) - self.own.index(first)) < most
        return window is None or self.events[at]["ts"] - self.events[first]["ts"] <= window

    def ignores(self, variable: str, taken: Taken, at: int, consumed: bool) -> bool:
        """Whether a run that waits for a component, or for more of it, skips an event."""
        strategy = self.query.strategy_of(base(variable))
        if strategy is Strategy.STRICT_CONTIGUITY:
            return False
        if strategy is Strategy.PARTITION_CONTIGUITY:
            return not self.passes_tests(taken, at)
        return strategy is Strategy.SKIP_TILL_ANY_MATCH or not consumed

    def passes_tests(self, taken: Taken, at: int) -> bool:
        event = self.events[at]
        if any(event[name] != literal.value for name, literal in self.query.constants):
            return False
        first = self.events[taken[0][1][0]] if taken else None
        return first is None or all(
            event[name] is not None and event[name] == first[name] for name in self.query.equal
        )

    def fits(self, taken: Taken, variable: str, at: int) -> bool:
        is_type = self.events[at]["type"] == self.part(variable).type
        return is_type and self.passes_tests(taken, at)

    def begins(self, taken: Taken, variable: str, at: int) -> bool:
        return self.fits(taken, variable, at) and self.hold("begin", taken, variable, at)

    def takes(self, taken: Taken, variable: str, at: int) -> bool:
        most = self.part(variable).most
        has_room = most is None or len(taken[-1][1]) < most
        return (
            has_room and self.fits(taken, variable, at) and self.hold("take", taken, variable, at)
        )

    def leaves(self, taken: Taken) -> bool:
        variable, positions = taken[-1]
        enough = len(positions) >= self.part(variable).least
        return enough and self.hold("leave", taken, variable, positions[-1])

    def negations(self, absent: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the negated components of a gap, those of a negated sequence together."""
        found: list[tuple[str, ...]] = []
        for name in absent:
            if self.part(name).goes_on:
                found[-1] = (*found[-1], name)
            else:
                found.append((name,))
        return found

    def forbidden(self, taken: Taken, gap: int, names: tuple[str, ...]) -> bool:
        """Whether events of negated components stand one after another in a gap of a match."""
        first, last = taken[0][1][0], taken[-1][1][-1]
        low = taken[gap - 1][1][-1] if gap else -1
        high = taken[gap][1][0] if gap < len(taken) else len(self.events)
        free = [
            at
            for at in self.own
            if low < at < high and (self.in_window(first, at) if gap else self.in_window(at, last))
        ]
        return any(self.stand(taken, names, chosen) for chosen in combinations(free, len(names)))

    def stand(self, taken: Taken, names: tuple[str, ...], chosen: tuple[int, ...]) -> bool:
        """Whether events are ones that negated components forbid."""
        before = taken
        for name, at in zip(names, chosen, strict=True):
            if not (self.fits(before, name, at) and self.hold("absent", before, name, at)):
                return False
            before = (*before, (name, (at,)))
        return True

    # --- conditions

    def hold(self, edge: str, taken: Taken, variable: str, at: int) -> bool:
        """Whether the clauses of an edge hold; those that name an absent component are void."""
        present = {name for name, _ in taken} | {variable}
        known = set(map(base, present))
        for condition in self.query.conditions:
            for clause in clauses(condition):
                found = [leaf for leaf in leaves(clause) if not self.is_before(leaf)]
                named = {leaf.over.variable for leaf in found}
                mine = [leaf for leaf in found if leaf.over.variable == base(variable)]
                # A clause with negated components is about these, and asked at the last.
                waits = any(self.part(n).negated and n not in known for n in named)
                if not mine or waits or edge not in self.edges(variable, mine):
                    continue
                for names in self.iterations(named, present, variable):
                    if not all(
                        self.before(leaf, names) in present
                        for leaf in leaves(clause)
                        if self.is_before(leaf)
                    ):
                        continue
                    if not self.value(clause, taken, variable, at, edge, names):
                        return False
        return True

    def is_before(self, leaf: Any) -> bool:
        """Whether a value is of the iteration before."""
        over = leaf.over
        part = self.part(over.variable)
        return over.index == "i-1" and part.in_group and not part.repeats

    def before(self, leaf: Any, names: dict[str, str]) -> str:
        """Return what a variable is named in the iteration before."""
        groups = self.groups[leaf.over.variable]
        own = next(n for v, n in names.items() if self.groups[v][: len(groups)] == groups)
        *outer, last = path(own)[: len(groups)]
        return f"{leaf.over.variable}@{'.'.join((*outer, str(int(last) - 1)))}"

    def iterations(
        self, named: set[str], present: set[str], variable: str
    ) -> Iterator[dict[str, str]]:
        """Yield which iterations of variables a condition is about, this one's among them."""
        order = sorted(named)
        for names in product(*([n for n in present if base(n) == v] for v in order)):
            if variable in names and all(self.same(one, other) for one in names for other in names):
                yield dict(zip(order, names, strict=True))

    def same(self, one: str, other: str) -> bool:
        """Whether two names are of the same iterations of the groups around both."""
        groups, others = self.groups[base(one)], self.groups[base(other)]
        common = [
            n for n, pair in enumerate(zip(groups, others, strict=False)) if pair[0] == pair[1]
        ]
        return all(path(one)[n] == path(other)[n] for n in common)

    def edges(self, variable: str, mine: list[Any]) -> tuple[str, ...]:
        part = self.part(variable)
        if part.negated:
            return ("absent",)
        indexes = {
            "over " + leaf.index if isinstance(leaf, Aggregate) else leaf.index for leaf in mine
        }
        if not part.repeats or indexes == {"1"}:
            return ("begin",)
        if indexes == {""}:
            return ("begin", "take")
        return ("take",) if indexes & {"i", "i-1", "over ..i-1"} else ("leave",)

    def value(
        self, tree: Tree, taken: Taken, variable: str, at: int, edge: str, names: dict[str, str]
    ) -> Any:
        if isinstance(tree, Literal):
            return tree.value
        if isinstance(tree, Column | Aggregate):
            return self.leaf(tree, dict(taken), variable, at, edge, names)
        assert isinstance(tree, Operation)
        values = [self.value(part, taken, variable, at, edge, names) for part in tree.operands]
        return computed(tree.operator, values)

    def leaf(
        self,
        leaf: Column | Aggregate,
        taken: dict[str, tuple[int, ...]],
        variable: str,
        at: int,
        edge: str,
        names: dict[str, str],
    ) -> Any:
        over = leaf.over
        is_before = self.is_before(leaf)
        name = self.before(leaf, names) if is_before else names[over.variable]
        positions = taken.get(name, ())
        if isinstance(leaf, Aggregate):
            values = (
                [attribute(self.events[p], over.attribute) for p in positions]
                if over.attribute
                else []
            )
            known = [value for value in values if value is not None]
            if leaf.function == "count":
                return len(known) if over.attribute else len(positions)
            if not known:
                return None
            return {"sum": sum, "min": min, "max": max, "avg": lambda v: sum(v) / len(v)}[
                leaf.function
            ](known)
        is_at_hand = name == variable and edge != "leave"
        if is_at_hand and (leaf.index in (None, "i", "") or not positions):
            return attribute(self.events[at], str(leaf.attribute))
        which = positions[-1] if is_before or leaf.index in ("i-1", "LEN") else positions[0]
        return attribute(self.events[which], str(leaf.attribute))


# --- values of events and operations on them, as the reference computes them


Event = dict[str, Any]


def attribute(event: Event, name: str) -> Any:
    """Return an attribute of an event, or what SQL computes from it."""
    return event_function(name)(event) if name.startswith("(") else event[name]


def computed(operator: str, values: list[Any]) -> Any:
    """Return an operation on values, by the rules of SQL."""
    if operator == "case":
        pairs = zip(values[::2], values[1::2], strict=False)
        otherwise = values[-1] if len(values) % 2 else None
        return next((then for condition, then in pairs if condition is True), otherwise)
    if operator == "coalesce":
        return next((value for value in values if value is not None), None)
    if operator in ("is null", "is not null"):
        return (values[0] is None) is (operator == "is null")
    if operator == "or":
        return True if True in values else None if None in values else False
    if operator == "and":
        return False if False in values else None if None in values else True
    if None in values:
        return None
    if operator in ("not", "abs"):
        return not values[0] if operator == "not" else abs(values[0])
    a, b = values
    return {
        "=": lambda: a == b, "<>": lambda: a != b, "<": lambda: a < b, "<=": lambda: a <= b,
        ">": lambda: a > b, ">=": lambda: a >= b, "+": lambda: a + b, "-": lambda: a - b,
    }[operator]()  # fmt: skip


# --- names of variables in groups that repeat, as the reference has them: ``a@2`` and ``a@2.1``


Taken = tuple[tuple[str, tuple[int, ...]], ...]
"""The variables of a run, in the order of their events, and the positions of these."""


@attrs.frozen
class Iteration:
    """What is left of an iteration of a group."""

    number: int
    part: Any


@attrs.frozen
class Begun:
    """What is left of parts in any order; `absent` must not come before the next event of one."""

    parts: tuple[Any, ...]
    absent: tuple[str, ...]


@attrs.frozen
class Further:
    """The iterations of a group from a number on."""

    number: int
    group: Repeated


def base(name: str) -> str:
    """Return the variable of a name."""
    return name.partition("@")[0]


def path(name: str) -> tuple[str, ...]:
    """Return the iterations of a name, the outermost first."""
    numbers = name.partition("@")[2]
    return tuple(numbers.split(".")) if numbers else ()


def inside(name: str, number: int) -> str:
    """Return a name in an iteration."""
    return f"{base(name)}@{'.'.join((str(number), *path(name)))}"


def around(shape: Any, groups: tuple[Any, ...] = ()) -> dict[str, tuple[Any, ...]]:
    """Return for each variable the groups around it that repeat."""
    if isinstance(shape, One):
        return {shape.variable: groups}
    if isinstance(shape, Repeated):
        return around(shape.part, (*groups, id(shape)))
    inner = (shape.part,) if isinstance(shape, Optional) else shape.parts
    return {name: own for part in inner for name, own in around(part, groups).items()}


def merged(match: Taken) -> Taken:
    """Return a match with the events of all iterations by variable."""
    found: dict[str, list[int]] = {}
    for name, own in match:
        found.setdefault(base(name), []).extend(own)
    return tuple(sorted(((n, tuple(sorted(own))) for n, own in found.items()), key=lambda p: p[1]))
