# SPDX-License-Identifier: Apache-2.0
"""The kernel and the plain path are the same: results, state to the last number, errors."""

from __future__ import annotations

import gc
import random
import weakref
from contextlib import suppress
from datetime import timedelta
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.observer import StageObserver
from pyflinkcep.engines.flink.nfa.partial_matches import EndCounts
from pyflinkcep.engines.flink.operator import CepOperator, PartialMatchLimit
from pyflinkcep.engines.flink.stored_state import NO_START, StateCounts, StateWriter, count_states
from pyflinkcep.errors import CepError, ConditionError, StateFormatError, StateLimitError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.testing import OperatorTestHarness
from tests.kernel_harness import MANY, Found, KernelOperatorHarness, KernelRun, needs_kernel
from tests.property.strategies import Event, NameIn, PatternSpec, is_buildable, patterns
from tests.shorthand import parse

pytestmark = needs_kernel

EXAMPLES = settings.default.max_examples * 5


class Collect:
    """Results of the plain path, as the kernel gives them."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.dropped_count = 0

    def match(self, key: Any, timestamp: int, match: Any) -> None:
        self.found.append((1, timestamp, match))

    def timeout(self, key: Any, timestamp: int, match: Any) -> None:
        self.found.append((0, timestamp, match))

    def dropped(self, key: Any, count: int) -> None:
        self.dropped_count += count


class Both:
    """One key on both paths."""

    def __init__(
        self, nfa: NFA, limit: PartialMatchLimit | None = None, by_windows: bool = False
    ) -> None:
        nfa.open(RuntimeContext())
        self.nfa = nfa
        self.rules = CepOperator(nfa, limit=limit, by_windows=by_windows)
        self.state = self.rules.new_key()
        self.output = Collect()
        self.run = KernelRun(nfa, limit, by_windows=by_windows)
        self.key = self.run.kernel.new_key()

    def process(self, times: list[int], events: list[Any]) -> None:
        self.rules.process_events(None, self.state, times, events, self.output)
        self.run.process(self.key, times, events)

    def advance(self, time: int) -> None:
        self.rules.advance_time(None, self.state, time, self.output)
        self.run.kernel.advance(self.key, time)

    def found(self) -> tuple[list[Found], list[Found]]:
        """Return the results of the plain path and of the kernel since this was last asked."""
        plain, self.output.found = self.output.found, []
        return plain, self.run.results()

    def states(self) -> tuple[tuple[list[int], list[Any]], tuple[list[int], list[Any]]]:
        """Return the state as the plain path and the kernel write it."""
        writer = StateWriter(self.nfa)
        writer.write(self.state)
        return (writer.numbers, writer.events), self.run.written(self.key)

    def ended(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many partial matches ended, by reason, since this was last asked."""
        ended, self.state.nfa_state.ended = self.state.nfa_state.ended, EndCounts()
        plain = ended.window, ended.skipped, *ended.by_event
        return plain, self.run.kernel.take_ended()

    def counted(self) -> tuple[tuple[int, ...], ...]:
        """Return what the state holds: counted in its numbers on both paths, and in the key."""
        numbers = self.states()[0][0]
        lengths = [len(numbers), len(numbers)]
        plain = count_states(numbers * 2, lengths, self.nfa.stages)
        arrays = np.asarray(numbers * 2, np.int64), np.asarray(lengths, np.int64)
        own = self.run.kernel.count_states(*arrays)
        return flat(plain), own, flat(self._of_key())

    def _of_key(self) -> StateCounts:
        state = self.state.nfa_state
        begun = [p for p in state.partial_matches if p.start_event_id is not None]
        starts = [p.start_event_id.timestamp for p in begun + state.completed_matches]
        stages = [p.previous_node.stage for p in begun]
        by_stage = [2 * stages.count(stage) for stage in self.nfa.stages]
        held, oldest = 2 * len(state.completed_matches), min(starts, default=NO_START)
        return StateCounts(held, len(begun), oldest, by_stage)

    def exchange(self) -> None:
        """Let each path go on from what the other has written."""
        plain, own = self.run.plain(self.key), self.run.read(self.state)
        plain.nfa_state.is_new_start_partial_match = self.key.is_new_start
        own.is_new_start = self.state.nfa_state.is_new_start_partial_match
        self.state, self.key = plain, own


def flat(counts: StateCounts) -> tuple[int, ...]:
    """Return counts as the kernel does."""
    return counts.held, counts.largest, counts.oldest, *counts.by_stage


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[int, list[tuple[int, Event]], bool]]:
    """Draw what happens: watermarks after some events, and when to exchange states."""
    time, number, drawn = draw(st.sampled_from([-5, 0, 1, 100])), 0, []
    for _ in range(draw(st.integers(1, 6))):
        events = []
        for _ in range(draw(st.integers(0, 5))):
            time += draw(st.sampled_from([0, 1, 2, 3, 0, 1, -2]))  # a clock may step back
            number += 1
            price = draw(st.integers(0, 5))
            events.append((time, Event(draw(st.sampled_from("abcx")), number, price)))
        time += draw(st.integers(0, 4))
        drawn.append((time, events, draw(st.booleans())))
    return drawn


@settings(max_examples=EXAMPLES)
@given(
    spec=patterns().filter(is_buildable),
    timeouts=st.booleans(),
    todo=steps(),
    by_windows=st.booleans(),
)
def test_results_and_state(spec: PatternSpec, timeouts: bool, todo: Any, by_windows: bool) -> None:
    """After every step results and state are equal, and each path can go on from the other's."""
    both = Both(NFACompiler.compile(spec.build(), timeouts), by_windows=by_windows)

    for time, events, exchange in todo:
        both.process([at for at, _ in events], [event for _, event in events])
        both.advance(time)
        plain, kernel = both.found()
        assert kernel == plain
        plain_state, kernel_state = both.states()
        assert kernel_state == plain_state
        ended, kernel_ended = both.ended()
        assert kernel_ended == ended
        counts, kernel_counts, expected = both.counted()
        assert kernel_counts == counts == expected
        if exchange:
            both.exchange()
    both.advance((1 << 63) - 1)
    plain, kernel = both.found()
    assert kernel == plain
    ended, kernel_ended = both.ended()
    assert kernel_ended == ended


@needs_kernel
def test_what_ended_by_reason() -> None:
    """A window, a skip strategy and an event that does not fit end partial matches, and are told
    apart.
    """
    skip = AfterMatchSkipStrategy.skipPastLastEvent()
    is_a, is_b = NameIn(frozenset("a")), NameIn(frozenset("b"))
    pattern = Pattern.begin("a", skip).where(is_a).next("b").where(is_b)
    both = Both(NFACompiler.compile(pattern.within(timedelta(milliseconds=10))))

    both.process([0, 1, 2], [Event("a", 0, 0), Event("x", 1, 0), Event("a", 2, 0)])
    assert both.ended() == ((0, 0, 1, 0, 0), (0, 0, 1, 0, 0))
    both.advance(12)
    assert both.ended() == ((1, 0, 0, 0, 0), (1, 0, 0, 0, 0))
    loop = Pattern.begin("a", skip).where(is_a).oneOrMore().next("b").where(is_b)
    both = Both(NFACompiler.compile(loop))
    both.process([0, 1, 2], [Event("a", 0, 0), Event("a", 1, 0), Event("b", 2, 0)])
    # a0 a1 b comes out: the loops from a0 and from a1, and the match a1 b, are superfluous
    assert both.ended() == ((0, 3, 0, 0, 0), (0, 3, 0, 0, 0))


@needs_kernel
def test_counting_damaged_states() -> None:
    """Numbers that no key could have are counted as far as they go, and read nothing beyond."""
    nfa = NFACompiler.compile(Pattern.begin("a").followedBy("b"))
    both = Both(nfa)
    both.process([0, 1], [Event("a", 0, 0), Event("a", 1, 0)])
    numbers = both.states()[0][0]
    huge = (1 << 63) - 1
    for place in range(len(numbers)):
        for wrong in (-1, huge, -huge):
            damaged = [*numbers[:place], wrong, *numbers[place + 1 :]]
            counts = count_states(damaged, [len(damaged)], nfa.stages)
            arrays = np.asarray(damaged, np.int64), np.asarray([len(damaged)], np.int64)
            own = both.run.kernel.count_states(*arrays)
            assert own[0] <= 2
            assert counts.held <= 2
    with pytest.raises(ValueError, match="lengths"):
        both.run.kernel.count_states(arrays[0], np.asarray([len(numbers) + 1]))


def test_a_clock_that_steps_back() -> None:
    """A window of what began later, but at an earlier time, ends before others."""
    both = Both(NFACompiler.compile(parse("a -> b within[2]"), True))
    both.process([5, 5, 3], ["a1", "a2", "a3"])
    both.advance(5)
    plain, kernel = both.found()

    assert kernel == plain == [(0, 5, {"a": ["a3"]})]
    assert both.states()[0] == both.states()[1]


def test_a_match_that_a_dropped_one_held_back() -> None:
    """It comes at once, as no later event may come that would release it."""
    pattern = Pattern.begin("a", Skip.skipToNext()).where(lambda e: e[0] in "ab")
    pattern = pattern.followedByAny("b").where(lambda e: e[0] in "ac").times(3)
    both = Both(NFACompiler.compile(pattern, True), PartialMatchLimit(4, "dropOldest"))
    both.process([5] * 5, ["a1", "a2", "c3", "c4", "a5"])

    match = {"a": ["a2"], "b": ["c3", "c4", "a5"]}
    assert both.found() == ([(1, 5, match)], [(1, 5, match)])
    assert both.states()[0] == both.states()[1]


@settings(max_examples=EXAMPLES)
@given(spec=patterns().filter(is_buildable), most=st.integers(1, 4), todo=steps())
def test_a_bound_that_drops_the_oldest(spec: PatternSpec, most: int, todo: Any) -> None:
    """The same partial matches are dropped when there are too many."""
    limit = PartialMatchLimit(most, "dropOldest")
    both = Both(NFACompiler.compile(spec.build(), True), limit)

    for time, events, _ in todo:
        both.process([at for at, _ in events], [event for _, event in events])
        both.advance(time)

    assert both.states()[1] == both.states()[0]
    assert both.run.kernel.take_found()[-1] == both.output.dropped_count


def _raises(event: Any) -> bool:
    raise ZeroDivisionError("no")


_THROWING = AfterMatchSkipStrategy.skipToFirst("b").throwExceptionOnMiss()


@pytest.mark.parametrize(
    ("pattern", "limit"),
    [
        (parse("a").followedBy("b").where(_raises), None),
        (parse("a").followedBy("b").where(lambda event: "yes"), None),
        (parse("a").followedBy("b").where(lambda event: np.asarray([True, False])), None),
        (parse("a").followedBy("b").where(lambda event, ctx: event.nothing), None),
        (parse("a").followedBy("b").where(lambda event, ctx: None), None),
        (parse("a").followedBy("b").where(lambda e, ctx: ctx.getEventsForPattern(None)), None),
        (
            Pattern.begin("a", _THROWING)
            .where(lambda e: e.startswith("a"))
            .followedBy("b")
            .where(lambda e: e.startswith("x"))
            .optional()
            .followedBy("c")
            .where(lambda e: e.startswith("b")),
            None,
        ),
        (parse("a -> b"), PartialMatchLimit(1)),
    ],
    ids=[
        "raises",
        "no bool",
        "many bools",
        "no attribute",
        "None",
        "no stage",
        "nothing to skip to",
        "limit",
    ],
)
def test_errors(pattern: Pattern, limit: PartialMatchLimit | None) -> None:
    """What goes wrong is said in the same words: stage, key, time, hint and cause."""
    errors = []
    for harness in (OperatorTestHarness, KernelOperatorHarness):
        most = {} if limit is None else {"maxPartialMatches": limit.most}
        with pytest.raises(CepError) as caught:
            feed(harness(pattern, **most))
        errors.append((type(caught.value), str(caught.value), repr(caught.value.__cause__)))

    assert errors[0] == errors[1]


def feed(harness: OperatorTestHarness) -> None:
    for time, event in enumerate(["a1", "a2", "b1", "b2"]):
        harness.processElement(event, time, key="k")
    harness.processWatermark(99)


def test_the_context_of_a_condition() -> None:
    """An iterative condition sees the events taken, the event's time, and the clock."""
    seen: dict[type, list[Any]] = {}

    def look(event: Any, ctx: Any) -> bool:
        seen[kind].append((ctx.getEventsForPattern("a"), ctx.timestamp(), event))
        return len(ctx.getEventsForPattern("b")) < 3

    pattern = parse("a").followedByAny("b").where(look).oneOrMore().allowCombinations()
    for kind in (OperatorTestHarness, KernelOperatorHarness):
        seen[kind] = []
        feed(kind(pattern))

    assert seen[KernelOperatorHarness] == seen[OperatorTestHarness] != []


@given(cut=st.integers(0, 200), change=st.integers(-3, 1 << 40), at=st.integers(0, 200))
@example(cut=0, change=0, at=22)  # a version that fits no path, which only its use tells
def test_damaged_state(cut: int, change: int, at: int) -> None:
    """Numbers that are no state are refused, at the latest in use, or are another; none crash."""
    both = Both(NFACompiler.compile(parse("a -> b+ -> c"), True))
    both.process([1, 2, 3, 4], ["a1", "a2", "b1", "b2"])
    numbers, events = both.run.written(both.key)
    damaged = numbers[: len(numbers) - cut % len(numbers)]
    if damaged:
        damaged[at % len(damaged)] = change

    try:
        key = both.run.kernel.read(np.asarray(damaged, np.int64), 0, len(events))
    except ValueError:
        key = None
    assert key is None or key.partial_count > 0
    if key is not None:
        with suppress(StateFormatError):
            both.run.process(key, [5, 6], ["b3", "c"])
            both.run.kernel.advance(key, (1 << 63) - 1)
            assert both.run.kernel.write(key)


def test_a_long_loop_needs_no_stack() -> None:
    """A loop over very many events can be matched, written, read and freed."""
    pattern = parse("a").followedBy("b").where(lambda e: e == "b").oneOrMore().greedy()
    pattern = pattern.followedBy("c").where(lambda e: e == "c")
    run = KernelRun(NFACompiler.compile(pattern))
    key, size = run.kernel.new_key(), 200_000
    run.process(key, range(size + 1), ["a", *["b"] * size])

    copy = run.kernel.read(np.frombuffer(run.kernel.write(key)[0], np.int64), 0, size + 1)
    run.process(copy, [size + 1], ["c"])

    (_, _, match), *_ = run.results()
    assert len(match["b"]) == size


def test_an_interrupt_is_no_failed_condition() -> None:
    """What is no ordinary exception comes through as it is, and says where it was."""

    def interrupted(event: Any) -> bool:
        raise KeyboardInterrupt

    for harness in (OperatorTestHarness, KernelOperatorHarness):
        with pytest.raises(KeyboardInterrupt) as caught:
            feed(harness(parse("a").followedBy("b").where(interrupted)))
        assert isinstance(where := caught.value.__cause__, ConditionError)
        assert (where.stage, where.timestamp_ms) == ("b", 1)


def test_the_context_can_ask_and_do_nothing_else() -> None:
    """Conditions name the stage as an argument or by its keyword; they get no way to the kernel."""
    contexts = []

    def look(event: Any, ctx: Any) -> bool:
        contexts.append(ctx)
        with pytest.raises(TypeError):
            ctx.getEventsForPattern(stage="a")
        with pytest.raises(TypeError):
            ctx.getEventsForPattern()
        return ctx.getEventsForPattern(name="a") == ctx.getEventsForPattern("a") == ["a2"]

    harness = KernelOperatorHarness(parse("a").followedBy("b").where(look))
    feed(harness)

    assert [match["a"] for _, _, match in harness.matches] == [["a2"]]
    public = {name for name in dir(contexts[0]) if not name.startswith("_")}
    assert public == {"getEventsForPattern", "timestamp", "currentProcessingTime"}


class Tracked:
    """An event that can be watched."""


def test_events_that_conditions_saw_are_not_kept() -> None:
    """Once a key is done, or handles mean other events, nothing holds on to what was shown."""
    pattern = Pattern.begin("a").next("b").where(lambda e, ctx: bool(ctx.getEventsForPattern("a")))
    for ends in (True, False):
        run = KernelRun(NFACompiler.compile(pattern))
        key = run.kernel.new_key()
        run.process(key, [1, 2, 3], [Tracked(), Tracked(), Tracked()])
        seen = weakref.ref(run.events[0])
        run.events.clear()
        if ends:
            run.kernel.advance(key, (1 << 63) - 1)
        else:
            run.kernel.set_events(run.events.__getitem__, 0, 0, ())
        run.kernel.take_found()

        assert seen() is None


def test_a_condition_that_keeps_its_context_is_collected() -> None:
    """A circle through a user's function is garbage like any other."""

    def used() -> weakref.ref[Any]:
        contexts: list[Any] = []
        keeps = Pattern.begin("a").where(lambda e, ctx: contexts.append(ctx) is None)
        run = KernelRun(NFACompiler.compile(keeps))
        run.process(run.kernel.new_key(), [1], ["x"])
        assert len(contexts) == 1
        return weakref.ref(run.kernel.helper)

    helper = used()
    gc.collect()

    assert helper() is None


# --- any number of conditions, whose answers take several words of bits


STAGES = 200


def chain(condition: Any) -> NFA:
    """Compile stages of which each takes one event, by a condition of its own."""
    pattern: Any = Pattern.begin("s0").where(condition(0))
    for number in range(1, STAGES):
        pattern = pattern.followedBy(f"s{number}").where(condition(number))
    return NFACompiler.compile(pattern)


def test_functions() -> None:
    """Conditions in Python beyond the first word are asked once an event, and remembered."""
    nfa = chain(lambda number: lambda event: event == number)
    run, output = KernelRun(nfa), Collect()
    events = [number for number in range(STAGES) for _ in range(2)]
    rules = CepOperator(nfa)
    rules.process_events(None, rules.new_key(), range(len(events)), events, output)

    run.process(run.kernel.new_key(), range(len(events)), events)

    assert run.results() == output.found != []


@pytest.mark.parametrize("words", [1, 2, 4])
def test_answers_that_come_with_the_events(words: int) -> None:
    """A row of bits for each event brings answers; words that are missing hold nothing."""
    nfa = chain(lambda number: lambda event: event == number)
    by_stage = {atom.stage: atom.bit for atom in nfa.atoms}
    bits = [by_stage[f"s{number}"] for number in range(STAGES)]
    known = sum(bits)
    kernel = make_kernel(nfa, known)
    assert kernel is not None
    kernel.set_events(lambda handle: handle, 0, 0, ())
    rows = [[bit >> (63 * word) & ((1 << 63) - 1) for word in range(words)] for bit in bits]
    answers = np.asarray(rows, np.int64)
    times, bounds = np.arange(STAGES), np.asarray([0, STAGES])

    kernel.run(None, times, None, 0, answers, bounds, np.asarray([True]), 0, 0, MANY)

    ends = np.frombuffer(kernel.take_found()[2], np.int64)
    assert ends.tolist() == ([STAGES] if words == 4 else [])


def test_too_many_words_are_refused() -> None:
    """Bits that no condition has do not fit."""
    kernel = make_kernel(NFACompiler.compile(Pattern.begin("a").where("n = 1")), 1)
    assert kernel is not None
    with pytest.raises(ValueError, match="differ in length"):
        kernel.run(
            None, np.arange(2), None, 0, np.zeros((2, 2), np.int64), np.asarray([0, 2]),
            np.asarray([True]), 0, 0, MANY,
        )  # fmt: skip


# --- nodes that hundreds of runs reached, in the kernel as on the plain path


@pytest.mark.parametrize(
    ("pattern", "skip"),
    [
        ("a+:any ->> b", None),
        ("a+:any ->> b within[9]", None),
        ("s[a] ->> a+:any ->> b within[9]", None),
        ("a[a|b]+ ->> b[a|b]+ -> c within[14]", None),
        ("a{2,}:any -> b within[8]", None),
        ("(a -> b)+:any ->> c within[12]", None),
        ("a+:any ->> b within[8]", Skip.skipToFirst("a")),
        ("a+:any ->> b within[8]", Skip.skipToLast("a")),
        ("a+:any ->> b within[8]", Skip.skipPastLastEvent()),
        ("a[a|b]+:any -> b within[7]", Skip.skipToNext()),
    ],
)
def test_results_and_state_of_many_edges(pattern: str, skip: Skip | None) -> None:
    """Edges come and go by hundreds: after each event, the kernel has what the plain path has."""
    chance = random.Random(7)
    limit = PartialMatchLimit(600, "dropOldest")
    both = Both(NFACompiler.compile(parse(pattern, skip), True), limit)
    for time in range(1, 25):
        both.process([time], [f"{chance.choice('aaaabbc')}{time}"])
        plain, kernel = both.found()
        assert kernel == plain
        plain_state, kernel_state = both.states()
        assert kernel_state == plain_state
        if time % 8 == 0:
            both.exchange()
    both.advance(99)

    plain, kernel = both.found()
    assert kernel == plain


def test_a_bound_is_reached_in_time() -> None:
    """A hundred thousand partial matches take a moment: none looks at the ways of the others."""
    limit = PartialMatchLimit(100_000)
    run = KernelRun(NFACompiler.compile(parse("a+:any ->> b")), limit)

    with pytest.raises(StateLimitError, match="196606 partial matches"):
        run.process(run.kernel.new_key(), range(40), ["a"] * 40)


# --- the kernel and the plain path tell of the same stages that partial matches reach


_REACHED = 2


class BothTelling(Both):
    """One key on both paths, which tell of stages."""

    def __init__(self, nfa: NFA) -> None:
        super().__init__(nfa)
        self.rules = CepOperator(attrs.evolve(nfa, observer=StageObserver(self._reached)))
        self.state = self.rules.new_key()
        self.run = KernelRun(nfa, gives_reached=True)
        self.key = self.run.kernel.new_key()

    def _reached(self, timestamp: int, match: Any) -> None:
        self.output.found.append((_REACHED, timestamp, match))


@given(spec=patterns().filter(is_buildable), todo=steps())
def test_stages_reached(spec: PatternSpec, todo: Any) -> None:
    """Both tell of the same stages in the same order, and find what they find without."""
    nfa = NFACompiler.compile(spec.build())
    both, silent = BothTelling(nfa), Both(nfa)

    for time, events, exchange in todo:
        for one in (both, silent):
            one.process([at for at, _ in events], [event for _, event in events])
            one.advance(time)
        assert both.states() == silent.states()
        plain, kernel = map(_apart, both.found())
        assert kernel == plain
        assert kernel[1] == silent.found()[1]
        if exchange:
            both.exchange()
            silent.exchange()


def _apart(found: list[Found]) -> tuple[list[Found], list[Found]]:
    """Return stages reached, and the other results."""
    return (
        [one for one in found if one[0] == _REACHED],
        [one for one in found if one[0] != _REACHED],
    )
