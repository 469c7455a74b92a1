# SPDX-License-Identifier: Apache-2.0
"""The machine on columns: offers and matches of many events and rules as arrays of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.latest.machine import KeyState, LatestMachine, LatestMatch, LatestRule
from pyflinkcep.errors import StateFormatError
from pyflinkcep.kernel.module import compiled_module, naming_memory_errors

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


Ints = np.ndarray[Any, np.dtype[np.int64]]
Shorts = np.ndarray[Any, np.dtype[np.int32]]


@attrs.frozen(eq=False)
class Offers:
    """
    Which events satisfy which steps, with which keys, in any order; keys of one step in their own.

    A step's code is `step_codes` of its rule and its number; keys are codes of the caller's.
    """

    events: Shorts  # The index of the event
    steps: Shorts  # The code of the step
    keys: Ints

    def between(self, low: int, high: int) -> Offers:
        """Return the offers of some events, numbered from the first of them."""
        own = (self.events >= low) & (self.events < high)
        return Offers(self.events[own] - np.int32(low), self.steps[own], self.keys[own])

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int]]) -> Offers:
        """Return offers of (event, code of step, key)."""
        events, steps, keys = np.array([*rows], np.int64).reshape(-1, 3).T
        return cls(events.astype(np.int32), steps.astype(np.int32), np.ascontiguousarray(keys))


@attrs.frozen(eq=False)
class FoundRuns:
    """Matches, by rule and within a rule in their order."""

    rules: Shorts  # The rule of each
    keys: Ints  # Its key
    handles: Ints  # The events of all, those of a match side by side
    ends: Ints  # Where the events of each match end

    @classmethod
    def of(cls, matches: Iterable[LatestMatch]) -> FoundRuns:
        """Return matches of handles as arrays."""
        found = sorted(matches, key=lambda match: (match.rule, match.number))
        return cls(
            np.array([match.rule for match in found], np.int32),
            np.array([match.key for match in found], np.int64),
            np.array([handle for match in found for handle in match.events], np.int64),
            np.cumsum([len(match.events) for match in found], dtype=np.int64),
        )

    def listed(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """Return the matches as tuples: rule, key, handles."""
        events = (tuple(own.tolist()) for own in np.split(self.handles, self.ends[:-1]))
        return list(zip(self.rules.tolist(), self.keys.tolist(), events, strict=False))


@attrs.frozen(eq=False)
class KeyStates:
    """The states of keys as numbers; the events that they hold are known by handle."""

    rules: Ints  # By state its rule
    keys: Ints  # Its key
    numbers: Ints  # Those of all states, as `KeyState.written`
    number_ends: Ints  # Where those of each state end
    handles: Ints
    handle_ends: Ints

    @classmethod
    def of(cls, states: Mapping[tuple[int, int], tuple[list[int], list[int]]]) -> KeyStates:
        """Return written states by rule and key."""
        numbers = [own for own, _ in states.values()]
        handles = [own for _, own in states.values()]
        return cls(
            np.array([rule for rule, _ in states], np.int64),
            np.array([key for _, key in states], np.int64),
            np.array([*chain.from_iterable(numbers)], np.int64),
            np.cumsum([*map(len, numbers)], dtype=np.int64),
            np.array([*chain.from_iterable(handles)], np.int64),
            np.cumsum([*map(len, handles)], dtype=np.int64),
        )

    def rows(self) -> Iterator[tuple[tuple[int, int], tuple[list[int], list[int]]]]:
        """Yield for each state its rule and key, its numbers and handles."""
        at = zip(self.rules.tolist(), self.keys.tolist(), strict=True)
        numbers = np.split(self.numbers, self.number_ends[:-1])
        handles = np.split(self.handles, self.handle_ends[:-1])
        for place, own, events in zip(at, numbers, handles, strict=False):
            yield place, (own.tolist(), events.tolist())

    def __len__(self) -> int:
        return len(self.rules)


@attrs.frozen(eq=False)
class LatestColumns:
    """
    Rules over events in columns, batch after batch; matches that wait are told when decided.

    Examples
    --------
    >>> rules = LatestColumns([LatestRule.of(2, maxspan=10)])
    >>> rules.process(np.array([0, 10]), Offers.of([(0, 0, 7), (1, 1, 7)])).listed()
    [(0, 7, (0, 1))]
    """

    rules: Sequence[LatestRule]
    _machine: LatestMachine = attrs.field(init=False)

    @_machine.default
    def _make_machine(self) -> LatestMachine:
        return LatestMachine(self.rules)

    def process(
        self, times: Ints, offers: Offers, first: int = 0, *, is_last: bool = False
    ) -> FoundRuns:
        """
        Offer events to rules, and return the matches that this decides.

        The times of a key's events ascend, and if one has events after those of another, so do all
        or the other has no more. The first event has the handle `first`, the others those that
        follow; after the last ones no match has to wait.
        """
        places = self._places()
        rows = sorted(
            zip(offers.events.tolist(), offers.steps.tolist(), offers.keys.tolist(), strict=True),
            key=lambda row: row[0],
        )
        found: list[LatestMatch] = []
        for event, own in groupby(rows, key=lambda row: row[0]):
            wanted = [(*places[step], key) for _, step, key in own]
            found += self._machine.process(first + event, int(times[event]), wanted)
        if is_last:
            found += self._machine.finish()
        elif len(times):
            found += self._machine.advance(int(times[-1]) - 1)
        return FoundRuns.of(found)

    def _places(self) -> list[tuple[int, int]]:
        """Return the rule and the number of each code of a step."""
        return [
            (number, step)
            for number, rule in enumerate(self.rules)
            for step in range(len(rule.missing) + 1)
        ]

    def advance(self, time: int) -> FoundRuns:
        """Return the matches decided by that no event up to `time`, or after `END`, will come."""
        return FoundRuns.of(self._machine.advance(time))

    def prune(self, time: int) -> None:
        """Drop what is garbage if no event up to `time` will still come; `advance` comes first."""
        self._machine.prune(time)

    def clear(self) -> None:
        """Drop the state of all keys."""
        self._machine.clear()

    def written(self) -> KeyStates:
        """Return the state of all keys, by rule and key."""
        states = self._machine.states
        return KeyStates.of({at: states[at].written() for at in sorted(states)})

    def read(self, states: KeyStates, time_of: Callable[[Ints], Ints]) -> None:
        """Go on from the state of keys; `time_of` tells the times of handles."""
        handles = states.handles.tolist()
        times = dict(zip(handles, time_of(states.handles).tolist(), strict=True))
        for (rule, key), (numbers, events) in states.rows():
            state = KeyState.read(self.rules[rule], numbers, events, times.__getitem__)
            self._machine.restore(rule, key, state)


# --- in the kernel


_DOING = "runs of rules are kept"


def latest_rules(rules: Sequence[LatestRule]) -> RunningRules:
    """Return rules ready to run on columns: in the kernel, if there is one."""
    module = compiled_module()
    if module is None:
        return LatestColumns(rules)
    specs = tuple((-1 if rule.maxspan is None else rule.maxspan, rule.roles) for rule in rules)
    with naming_memory_errors(_DOING):
        return KernelColumns(rules, module.Latest(specs))


@attrs.frozen(eq=False)
class KernelColumns:
    """Rules over events in columns, as `LatestColumns`."""

    rules: Sequence[LatestRule]
    _latest: _kernel.Latest

    def process(
        self, times: Ints, offers: Offers, first: int = 0, *, is_last: bool = False
    ) -> FoundRuns:
        """Offer events to rules, and return the matches that this decides."""
        with naming_memory_errors(_DOING):
            found = self._process(times, offers, first, is_last)
            if found is None:  # the events of a step are not in order
                order = np.argsort(offers.events, kind="stable")
                by_event = Offers(offers.events[order], offers.steps[order], offers.keys[order])
                found = self._process(times, by_event, first, is_last)
        assert found is not None
        return _found(found)

    def _process(
        self, times: Ints, offers: Offers, first: int, is_last: bool
    ) -> tuple[bytes, bytes, bytes, bytes] | None:
        contiguous = np.ascontiguousarray
        return self._latest.process(
            contiguous(times),
            contiguous(offers.events),
            contiguous(offers.steps),
            contiguous(offers.keys),
            first,
            is_last,
        )

    def advance(self, time: int) -> FoundRuns:
        """Return the matches decided by that no event up to `time` will still come."""
        with naming_memory_errors(_DOING):
            return _found(self._latest.advance(time))

    def prune(self, time: int) -> None:
        """Drop what is garbage if no event up to `time` will still come."""
        self._latest.prune(time)

    def clear(self) -> None:
        """Drop the state of all keys."""
        self._latest.clear()

    def written(self) -> KeyStates:
        """Return the state of all keys, by rule; keys are in the order in which they came."""
        with naming_memory_errors(_DOING):
            arrays = [np.frombuffer(data, np.int64) for data in self._latest.written()]
        return KeyStates(*arrays)

    def read(self, states: KeyStates, time_of: Callable[[Ints], Ints]) -> None:
        """Go on from the state of keys; `time_of` tells the times of handles."""
        times = np.ascontiguousarray(time_of(states.handles), np.int64)
        try:
            with naming_memory_errors(_DOING):
                self._latest.read(
                    states.rules,
                    states.keys,
                    states.numbers,
                    states.number_ends,
                    states.handles,
                    states.handle_ends,
                    times,
                )
        except ValueError as error:
            raise StateFormatError(f"the state of a rule {error}", "restore a backup") from None


def _found(arrays: tuple[bytes, bytes, bytes, bytes]) -> FoundRuns:
    kinds: tuple[Any, ...] = (np.int32, np.int64, np.int64, np.int64)
    return FoundRuns(*(np.frombuffer(data, kind) for data, kind in zip(arrays, kinds, strict=True)))


RunningRules = LatestColumns | KernelColumns
"""Rules ready to run on columns."""
