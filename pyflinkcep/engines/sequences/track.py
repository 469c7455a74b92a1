# SPDX-License-Identifier: Apache-2.0
"""The events of one partition, with the conditions on single events evaluated beforehand."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import attrs

from pyflinkcep.engines.sequences.compiler import (
    EdgeConditions,
    Fields,
    Negative,
    SaseAutomaton,
    Slots,
)
from pyflinkcep.engines.sequences.liveness import LOOPING, WAITING
from pyflinkcep.sase.model import Strategy

__all__ = ["Step", "Track"]

_STRICT, _PARTITION = Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY
_ANY = Strategy.SKIP_TILL_ANY_MATCH

Step = tuple[bool, bool, int]
"""Whether the next component begins, whether the loop takes, and the mode without the event."""


@attrs.define(eq=False)
class Track:
    """
    The events of a partition, in order.

    Attributes
    ----------
    automaton : SaseAutomaton
        The query.
    times : sequence of int, milliseconds
        The events' times.
    fields : sequence of Fields
        What conditions read.
    begins, takes : list of int
        For each event a bit for each component whose begin or take edge it passes by itself.
    mine : list of bool
        For each event whether it passes the tests of the partition by itself.
    absent : tuple of tuple of list of int
        For each negated component the positions of events that pass its conditions by themselves;
        of a negated sequence those of each of its events.
    """

    automaton: SaseAutomaton
    times: Sequence[int]
    fields: Sequence[Fields]
    begins: list[int]
    takes: list[int]
    mine: list[bool]
    absent: tuple[tuple[list[int], ...], ...]

    @classmethod
    def of(
        cls,
        automaton: SaseAutomaton,
        types: Sequence[str],
        times: Sequence[int],
        fields: Sequence[Fields],
        starts: Sequence[bool] | None = None,
    ) -> Track:
        """Return the track of events, column by column; `starts` says which may begin a match."""
        nothing = automaton.functions.initial

        def passes(conditions: EdgeConditions, at: int) -> bool:
            return conditions.alone is None or conditions.alone(fields[at], nothing)

        bits = [(type_, 1 << number) for number, type_ in enumerate(automaton.types)]
        begins, takes = [0] * len(times), [0] * len(times)
        places = {
            type_: [n for n, t in enumerate(automaton.types) if t == type_] for type_, _ in bits
        }
        for at, type_ in enumerate(types):
            for number in places.get(type_, ()):
                if passes(automaton.begin[number], at):
                    begins[at] |= 1 << number
                if automaton.loops[number] and passes(automaton.take[number], at):
                    takes[at] |= 1 << number
            if starts is not None and not starts[at]:
                begins[at] &= ~1
        absent = tuple(
            tuple(
                [at for at, t in enumerate(types) if t == own.type and passes(own.conditions, at)]
                for own in part.events
            )
            for part in automaton.negatives
        )
        mine = [True] * len(times)
        if automaton.partition.alone is not None:
            mine = [passes(automaton.partition, at) for at in range(len(times))]
        return cls(automaton, times, fields, begins, takes, mine, absent)

    # --- edges

    def may_begin(self, component: int, slots: Slots, at: int) -> bool:
        """Whether an event begins a component of a run."""
        if not self.begins[at] >> component & 1:
            return False
        joint = self.automaton.begin[component].joint
        return joint is None or joint(self.fields[at], slots)

    def may_take(self, component: int, slots: Slots, at: int) -> bool:
        """Whether a loop takes an event."""
        if not self.takes[at] >> component & 1:
            return False
        joint = self.automaton.take[component].joint
        return joint is None or joint(self.fields[at], slots)

    def may_leave(self, component: int, slots: Slots) -> bool:
        """Whether a run may leave a component unchanged."""
        joint = self.automaton.leave[component].joint
        return joint is None or joint((), slots)

    def ignores(self, component: int, slots: Slots, at: int, consumed: bool) -> bool:
        """Whether a run skips an event."""
        strategy = self.automaton.strategies[component]
        if strategy is _ANY:
            return True
        if strategy is _STRICT:
            return False
        if strategy is _PARTITION:
            return not self.in_partition(slots, at)
        return not consumed

    def in_partition(self, slots: Slots, at: int) -> bool:
        """Whether an event belongs to a run's partition."""
        joint = self.automaton.partition.joint
        return self.mine[at] and (joint is None or joint(self.fields[at], slots))

    def step(self, component: int, mode: int, slots: Slots, at: int) -> Step:
        """
        Return the effect of an event on a run whose last event is of a component.

        A run that both loops and waits is one run, so it reaches each match once.
        """
        begins = takes = False
        after = 0
        following = component + 1
        if mode & LOOPING:
            takes = self.may_take(component, slots, at)
            stays = self.ignores(component, slots, at, takes)
            if stays:
                after = LOOPING
            if following < self.automaton.size and self.may_leave(component, slots):
                begins = self.may_begin(following, slots, at)
                peeks = begins or not (takes or stays)
                if peeks and self.ignores(following, slots, at, begins):
                    after |= WAITING
        if mode & WAITING:
            begun = self.may_begin(following, slots, at)
            begins = begins or begun
            if self.ignores(following, slots, at, begun):
                after |= WAITING
        return begins, takes, after

    def end_of(self, time: int) -> int:
        """Return the position after the events up to a time."""
        return bisect_right(self.times, time)

    # --- negation

    def forbidden(self, negative: int, low: int, high: int, slots: Slots) -> bool:
        """
        Whether candidates of a negated component forbid a match.

        Parameters
        ----------
        negative : int
            The number of the component, or of the sequence.
        low, high : int
            The first candidate, and the one after the last: of the first and the last event of a
            sequence.
        slots : tuple
            What the match has taken.
        """
        part: Negative = self.automaton.negatives[negative]
        if part.is_sequence:
            may = self.may_forbid(negative, low, high)
            return may and self._follow(negative, low, high, slots)
        joint = part.events[0].conditions.joint
        if joint is None:
            return low < high
        candidates = self.absent[negative][0][low:high]
        return any(joint(self.fields[at], slots) for at in candidates)

    def may_forbid(self, negative: int, low: int, high: int) -> bool:
        """Whether there are such candidates, whatever conditions on the match say."""
        first, last = self.absent[negative][0], self.absent[negative][-1]
        if first is last:
            return low < high
        return low < len(first) and high > 0 and first[low] < last[high - 1]

    def _follow(self, negative: int, low: int, high: int, slots: Slots) -> bool:
        """Whether candidates of a negated sequence come one after another."""
        part, candidates = self.automaton.negatives[negative], self.absent[negative]
        end = candidates[-1][high - 1]
        reached = {slots: candidates[0][low] - 1}  # by slots, the earliest last event
        for own, event in zip(candidates, part.events, strict=True):
            before, reached = reached, {}
            for known, since in before.items():
                for at in own[bisect_right(own, since) : bisect_right(own, end)]:
                    joint = event.conditions.joint
                    if joint is None or joint(self.fields[at], known):
                        after = event.update(known, self.fields[at]) if event.update else known
                        reached[after] = min(at, reached.get(after, at))
                        if event.update is None:
                            break
        return bool(reached)

    def candidates_before(self, negative: int, at: int) -> int:
        """Return how many candidates of a negated component come before a position."""
        return bisect_left(self.absent[negative][-1], at)

    def candidates_to(self, negative: int, at: int) -> int:
        """Return how many come up to a position; of a sequence, how many that may begin it."""
        return bisect_right(self.absent[negative][0], at)

    def before_first(self, negative: int, start: int, last: int) -> tuple[int, int]:
        """Return the candidates before a match that are in the window of its last event."""
        window = self.automaton.query.window
        assert window is not None
        first, times = self.absent[negative][0], self.times
        low = bisect_left(first, times[last] - window, key=times.__getitem__)
        return low, self.candidates_before(negative, start)

    def after_last(self, negative: int, start: int, last: int) -> tuple[int, int]:
        """Return the candidates after a match that are in the window of its first event."""
        window = self.automaton.query.window
        assert window is not None
        final, times = self.absent[negative][-1], self.times
        high = bisect_right(final, times[start] + window, key=times.__getitem__)
        return self.candidates_to(negative, last), high
