# SPDX-License-Identifier: Apache-2.0
"""The machine for rules of which the latest run at each step lives."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import attrs
import numpy as np
import pytest

from pyflinkcep.engines.latest.columns import Ints, LatestColumns, Offers, latest_rules
from pyflinkcep.engines.latest.machine import (
    END,
    KeyState,
    LatestMachine,
    LatestRule,
    Offer,
    step_codes,
)
from pyflinkcep.errors import InvalidArgumentError, StateFormatError
from pyflinkcep.kernel.module import compiled_module
from tests.seeds import each_seed

needs_latest = pytest.mark.skipif(compiled_module() is None, reason="no kernel")


@attrs.frozen(eq=False)
class Case:
    """Rules, times of events, and for each event its offers."""

    rules: list[LatestRule]
    times: list[int]
    offers: list[list[Offer]]

    @classmethod
    @cache
    def random(cls, seed: int) -> Case:
        """Return rules of any form on a few keys."""
        rng = random.Random(seed)
        rules = []
        for _ in range(rng.choice([1, 1, 3])):
            missing = [rng.random() < 0.25 for _ in range(rng.choice([1, 2, 2, 3, 4]))]
            missing[rng.randrange(len(missing))] = False
            span = rng.choice([2, 5, 9]) if any(missing) or rng.random() < 0.7 else None
            rules.append(LatestRule(tuple(missing), span, rng.random() < 0.3))
        time, times, offers = 0, [], []
        for _ in range(rng.choice([10, 30])):
            time += rng.choice([0, 0, 1, 1, 2, 4])
            own = [
                Offer(number, step, key)
                for number, rule in enumerate(rules)
                for step in range(len(rule.missing) + rule.has_until)
                for key in range(2)
                if rng.random() < (0.35 if step < rule.until else 0.08)
            ]
            rng.shuffle(own)
            times.append(time)
            offers.append(own)
        return cls(rules, times, offers)

    @property
    def array(self) -> Ints:
        """The times as an array."""
        return np.array(self.times, np.int64)

    def columns(self, low: int = 0, high: int | None = None) -> Offers:
        """Return the offers of some events as arrays."""
        codes = step_codes(self.rules)
        return Offers.of(
            (event, codes[rule] + step, key)
            for event, own in enumerate(self.offers[low:high])
            for rule, step, key in own
        )


@cache
def expected(case: Case) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return the matches by the definition: all events are asked for each match."""
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for number, rule in enumerate(case.rules):
        taking = [step for step, missing in enumerate(rule.missing) if not missing]
        slots: dict[int, list[list[int] | None]] = {}
        for event, time in enumerate(case.times):
            own = [(step, key) for of, step, key in case.offers[event] if of == number]
            for rank in reversed(range(len(taking))):
                for key in [key for step, key in own if step == taking[rank]]:
                    row = slots.setdefault(key, [None] * len(taking))
                    run: list[int] | None = []
                    if rank:
                        run, row[rank - 1] = row[rank - 1], None
                    if run is None or (run and _beyond(rule, time - case.times[run[0]])):
                        continue
                    run = [*run, event]
                    if rank < len(taking) - 1:
                        row[rank] = run
                    elif _is_match(case, number, key, run):
                        found.append((number, key, tuple(run)))
            for step, key in own:
                if step == rule.until:
                    slots.pop(key, None)
    return found


def _beyond(rule: LatestRule, time: int) -> bool:
    return rule.maxspan is not None and time > rule.maxspan


def _is_match(case: Case, number: int, key: int, run: Sequence[int]) -> bool:
    rule, times = case.rules[number], [case.times[event] for event in run]
    before, after = [], []
    rank = -1
    for step, missing in enumerate(rule.missing):
        rank += not missing
        if not missing:
            continue
        seen = [
            t for t, own in zip(case.times, case.offers, strict=True) if (number, step, key) in own
        ]
        if rank < 0:
            before += [time for time in seen if time < times[0]]
        elif rank == len(run) - 1:
            after += [time for time in seen if time > times[-1]]
        elif any(times[rank] < time < times[rank + 1] for time in seen):
            return False
    if not before and not after:
        return True
    if (rule.missing[0] and not before) or (rule.missing[-1] and not after):
        return True
    end = min(after) if rule.missing[-1] else times[-1]
    return _beyond(rule, end - (max(before) if rule.missing[0] else times[0]))


def _ordered(found: Iterable[Any]) -> list[tuple[int, int, tuple[int, ...]]]:
    matches = sorted(found, key=lambda match: (match.rule, match.number))
    return [(match.rule, match.key, match.events) for match in matches]


@each_seed(400)
def test_matches_are_those_of_the_definition(seed: int) -> None:
    """Event by event the machine finds what asking all events would."""
    case = Case.random(seed)
    machine = LatestMachine(case.rules)
    found = []
    for event, (time, own) in enumerate(zip(case.times, case.offers, strict=True)):
        found += machine.process(event, time, own)
    found += machine.finish()

    assert _ordered(found) == expected(case)


RUNNING = {"plain": LatestColumns, "kernel": latest_rules}


@pytest.mark.parametrize("running", RUNNING)
@each_seed(400)
def test_columns_give_the_matches_of_the_definition(seed: int, running: str) -> None:
    """All events at once, plain and in the kernel, give what asking all events would."""
    case = Case.random(seed)
    found = RUNNING[running](case.rules).process(case.array, case.columns(), is_last=True)

    assert found.listed() == expected(case)


@needs_latest
@each_seed(300)
def test_the_kernel_is_the_plain_machine(seed: int) -> None:
    """Batch by batch both decide the same matches and keep the same state, number by number."""
    case = Case.random(seed)
    both = LatestColumns(case.rules), latest_rules(case.rules)
    size = random.Random(seed).choice([1, 3, 7])
    for low in range(0, len(case.times), size):
        high = min(low + size, len(case.times))
        offers, until = case.columns(low, high), case.times[high - 1] - 1
        told, kept = [], []
        for running in both:
            told.append(running.process(case.array[low:high], offers, low).listed())
            told[-1] = sorted(told[-1] + running.advance(until).listed())
            running.prune(until)
            states = running.written()
            kept.append(sorted(states.rows()))
            running.clear()
            running.read(states, case.array.__getitem__)
        assert told[0] == told[1]
        assert kept[0] == kept[1]
    assert sorted(both[0].advance(END).listed()) == sorted(both[1].advance(END).listed())


@needs_latest
@each_seed(30)
def test_long_rules_are_kept_apart(seed: int) -> None:
    """Rules of more steps than a number has bits match, and are written and read."""
    rng = random.Random(seed)
    rules = [LatestRule.of(70, 10_000)]
    times = np.sort(np.array([rng.randrange(5_000) for _ in range(3_000)], np.int64))
    rows = [
        (n, step, key) for n in range(3_000) for key in range(2) for step in (n * 7 // 9 % 70, 0)
    ]
    plain, kernel = LatestColumns(rules), latest_rules(rules)
    for low, high in ((0, 900), (900, 3_000)):
        own = Offers.of((n - low, step, key) for n, step, key in rows if low <= n < high)
        found = [one.process(times[low:high], own, low).listed() for one in (plain, kernel)]
        assert found[0] == found[1]
        states = kernel.written()
        assert sorted(states.rows()) == sorted(plain.written().rows())
        kernel.clear()
        kernel.read(states, times.__getitem__)
    assert len(found[0]) > 0


@each_seed(200)
def test_state_is_written_and_read_between_events(seed: int) -> None:
    """State that is written, read and rid of garbage after each event gives the same matches."""
    case = Case.random(seed)
    found, machine = [], LatestMachine(case.rules)
    for event, (time, own) in enumerate(zip(case.times, case.offers, strict=True)):
        found += machine.process(event, time, own)
        found += machine.advance(time - 1)
        machine.prune(time - 1)
        stored = {at: state.written() for at, state in machine.states.items()}
        for (rule, key), (numbers, events) in stored.items():
            state = KeyState.read(case.rules[rule], numbers, events, case.times.__getitem__)
            machine.restore(rule, key, state)
    found += machine.finish()

    assert sorted(_ordered(found)) == sorted(expected(case))


def test_state_is_constant() -> None:
    """A key keeps one run for each rank but the last: one number and the events themselves."""
    machine = LatestMachine([LatestRule.of(4, maxspan=1_000_000)])
    for event in range(1_000):
        machine.process(event, event, [Offer(0, event * 7 % 4, "key")])
    numbers, events = machine.states[0, "key"].written()

    assert len(numbers) == 1
    assert len(events) <= 1 + 2 + 3


def test_garbage_is_dropped() -> None:
    """A run older than maxspan is gone after the watermark has passed its end."""
    machine = LatestMachine([LatestRule.of(2, maxspan=10)])
    machine.process("a", 0, [Offer(0, 0, "key")])
    machine.prune(9)
    assert machine.states
    machine.prune(10)
    assert not machine.states


def test_a_trailing_step_is_decided_by_the_watermark() -> None:
    """A match that no event may follow is told when maxspan from its first event has passed."""
    machine = LatestMachine([LatestRule((False, False, True), maxspan=10)])
    machine.process("a", 0, [Offer(0, 0, "key")])
    assert machine.process("b", 4, [Offer(0, 1, "key")]) == []
    assert machine.advance(9) == []
    assert [match.events for match in machine.advance(10)] == [("a", "b")]


def test_damaged_state_is_refused() -> None:
    """Numbers without their events are an error of the format."""
    with pytest.raises(StateFormatError, match="ends early"):
        KeyState.read(LatestRule.of(2), [1], [], int)


@pytest.mark.parametrize(
    ("missing", "maxspan", "why"),
    [
        ((True,), 5, "no step"),
        ((False, True), None, "without a maxspan"),
        ((False,), -1, "0 or more"),
    ],
)
def test_rules_are_checked(missing: tuple[bool, ...], maxspan: int | None, why: str) -> None:
    """A rule needs a step that takes an event, and a maxspan if a step is missing."""
    with pytest.raises(InvalidArgumentError, match=why):
        LatestRule(missing, maxspan)
