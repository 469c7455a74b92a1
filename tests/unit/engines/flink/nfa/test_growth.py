# SPDX-License-Identifier: Apache-2.0
"""What is known of an automaton before it runs: bits of conditions, growth, edges that are never taken."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep import AfterMatchSkipStrategy, Pattern, match
from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep.engines.flink.nfa import NFACompiler, analysis
from pyflinkcep.engines.flink.nfa.analysis import (
    Relevance,
    doubling_stages,
    outcomes,
    splitting_stages,
    untaken_events,
    warnings_of,
)
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.partial_matches import heap_add, heap_poll, heap_remove_if
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.matching.results import Results
from pyflinkcep.testing import NFATestHarness
from pyflinkcep.time import MAX_WATERMARK
from tests.shorthand import matches, parse, run


@pytest.mark.parametrize(
    ("pattern", "stages"),
    [
        ("a+:any -> b", ["a"]),
        ("s -> a{2,}:any -> b", ["a"]),
        ("a+:any ->> b[a]+:any", ["a", "b"]),
        ("s[a] -> a+:any? -> b", ["a"]),
        ("a+ ->> b", []),
        ("a ->> b[a] ->> c[a]", []),
        ("a{2,4}:any -> b", []),
        ("a+:cons -> b", []),
    ],
)
def test_stages_that_double(pattern: str, stages: list[str]) -> None:
    """Loops that allow combinations double the partial matches with each event, and no others."""
    before, after = (run(pattern, "s" + " a" * n).harness.partialMatches for n in (7, 10))

    assert doubling_stages(NFACompiler.compile(parse(pattern))) == stages
    assert (after > 4 * before) == bool(stages)


@pytest.mark.parametrize(
    ("pattern", "stages"),
    [
        ("(a+)+ >> b", ["a"]),
        ("(a+:cons)+:cons >> b", ["a"]),
        ("((a >> b[a])+:cons)+:cons >> c", ["a"]),
        ("(a+:cons >> b)+:cons", []),
        ("(a >> b+:cons)+:cons", []),
        ("(a+){2} >> b", []),
        ("(a)+ >> b", []),
        ("(a >> b?)+", []),
        ("a+ >> b[a]+", []),
    ],
)
def test_stages_of_loops_within_loops(pattern: str, stages: list[str]) -> None:
    """A loop in a loop takes equal events in twice as many ways with each, and no other does."""
    before, after = (run(pattern, "s" + " a" * n).harness.partialMatches for n in (6, 10))

    assert splitting_stages(NFACompiler.compile(parse(pattern))) == stages
    assert (after > 4 * max(1, before)) == bool(stages)


def test_what_is_said_of_a_loop_within_a_loop() -> None:
    """The warning names the stage, what grows, and what bounds it."""
    line, bound = warnings_of(NFACompiler.compile(parse("(a+)+ >> b within[5000]")))

    assert line.startswith("stage 'a' loops within a loop: ")
    assert line.endswith("n such events of a key within 5 s make up to 2ⁿ partial matches")
    assert "maxPartialMatches" in bound


def test_what_is_said() -> None:
    """The warning says what grows, within what, and what bounds it; then how to count."""
    line, bound = warnings_of(NFACompiler.compile(parse("a+:any -> b within[5000]")))

    assert line.startswith("stage 'a' may take or leave each event that fits")
    assert line.endswith("n such events of a key within 5 s make up to 2ⁿ partial matches")
    assert "maxPartialMatches" in bound
    assert bound.endswith("; .compressed() counts the matches without listing them")


def test_a_skip_strategy_cannot_count() -> None:
    """What compressed() refuses is not proposed."""
    skips = parse("a+:any -> b within[5000]", Skip.skipPastLastEvent())
    _, bound = warnings_of(NFACompiler.compile(skips))

    assert bound.endswith("maxPartialMatches=... bounds them")


def test_patterns_with_a_window_that_do_not_double() -> None:
    """Nothing is said of a pattern whose window bounds it well."""
    assert not list(warnings_of(NFACompiler.compile(parse("a+ ->> b within[9]"))))


# --- which conditions have bits, and which are answered otherwise


STAGES = 200


def chain(condition: Any) -> Pattern:
    """Return a pattern of stages that follow each other, each with a condition of its own."""
    pattern: Any = Pattern.begin("s0").where(condition(0))
    for number in range(1, STAGES):
        pattern = pattern.next(f"s{number}").where(condition(number))
    result: Pattern = pattern
    return result


def test_conditions_in_python_have_any_number_of_bits() -> None:
    """Python's integers have no bound; what an event fulfils is remembered for all of them."""
    nfa = NFACompiler.compile(chain(lambda number: lambda event: event == number))

    assert [atom.bit for atom in nfa.atoms] == [1 << place for place in range(STAGES)]
    assert known_bits(nfa.atoms) == 0


def test_sql_has_any_number_of_bits() -> None:
    """So have the answers that come with the events."""
    nfa = NFACompiler.compile(chain(lambda number: f"n = {number}"))
    by_text = {atom.condition.text: atom.bit for atom in nfa.atoms}  # type: ignore[attr-defined]
    rules = CepOperator(nfa)
    results, state = Results(nfa.stages, False), rules.new_key()
    numbers = [0, *range(STAGES), 5]
    bits = [by_text[f"n = {number}"] for number in numbers]
    known = known_bits(nfa.atoms)

    handles = list(range(len(numbers)))
    rules.process_events(None, state, handles, handles, results, known, bits)
    rules.advance_time(None, state, MAX_WATERMARK, results)

    assert known == (1 << STAGES) - 1
    ((_, _, match),) = results.take().results()
    assert [numbers[h] for taken in match.values() for h in taken] == list(range(STAGES))


@pytest.mark.parametrize("place", [0, STAGES - 1])
def test_no_place_changes_how_a_condition_is_called(place: int) -> None:
    """Messages and explain() have the text as it was written."""
    nfa = NFACompiler.compile(chain(lambda number: f"n = {number}"))
    found = {repr(atom.condition) for atom in nfa.atoms}

    assert f"n = {place}" in found


# --- which events no stage can take, by the answers to conditions known beforehand


A, B, C = 1, 2, 4


def untaken(pattern: str, unknown: str = "") -> set[int]:
    """Return the events that no stage takes, of a pattern with a condition for each stage."""
    nfa = NFACompiler.compile(parse(pattern))
    bits = {atom.stage: atom.bit for atom in nfa.atoms}
    known = sum(bit for stage, bit in bits.items() if stage not in unknown.split())
    ours = {bits[stage]: own for stage, own in zip("abc", (A, B, C), strict=True) if stage in bits}
    return {
        sum(own for bit, own in ours.items() if event & bit) for event in untaken_events(nfa, known)
    }


@pytest.mark.parametrize(
    "pattern", ["a >> b", "a -> b", "a ->> b", "a+ >> b", "a >> b?", "(a >> b)+"]
)
def test_an_event_without_an_answer_is_taken_by_no_stage(pattern: str) -> None:
    """Whatever the contiguity, a stage takes an event only if its condition holds."""
    assert untaken(pattern) == {0}


def test_a_not_stage_takes_nothing() -> None:
    """What ends a partial match is not in it."""
    assert untaken("a !>> b >> c") == {0, B}


def test_what_is_not_known_may_hold() -> None:
    """A condition that is evaluated while matching may take any event."""
    assert untaken("a >> b", unknown="b") == set()


@given(
    st.sampled_from(
        [
            "a >> b >> c",
            "a+ >> b? -> c",
            "a !>> b >> c",
            "(a >> b)+ -> c",
            "a !-> b -> c",
            "a ->> b+ >> c",
        ]
    ),
    st.lists(st.sampled_from(["a", "b", "c", "x"]), max_size=12),
)
def test_no_match_has_such_an_event(pattern: str, names: list[str]) -> None:
    """An event that satisfies one condition alone is in a match only if it is not untaken."""
    left_out = {
        name for name, bit in {"a": A, "b": B, "c": C, "x": 0}.items() if bit in untaken(pattern)
    }
    found = matches(pattern, " ".join(f"{name}{place}" for place, name in enumerate(names)))

    assert not left_out & set(found)


# --- ties come out of the heap in the order of Java's priority queue


# Recorded from java.util.PriorityQueue (JDK 17): items are ordered by their digit alone.
# Added in this order; the array then; the items removed; the array then; the order of polls.
RECORDED = [
    ("1a 1b 1c 1d 1e 1f 1g", "1a 1b 1c 1d 1e 1f 1g", "", "1a 1b 1c 1d 1e 1f 1g", "agfedcb"),
    ("2a 2b 1c 1d", "1c 1d 2a 2b", "a", "1c 1d 2b", "cdb"),
    ("0a 1b 1c 2d 2e", "0a 1b 1c 2d 2e", "a", "1b 1c 2d 2e", "bcde"),
    ("3a 1b 2c 1d 2e 3f 1g 2h", "1b 1d 1g 2h 2e 3f 2c 3a", "bd", "1g 2h 2e 3f 2c 3a", "ghcefa"),
    ("1a 1b 2c 2d 3e", "1a 1b 2c 2d 3e", "a", "1b 2c 2d 3e", "bcde"),
    (
        "2a 1b 2c 1d 2e 1f 2g 1h 2i",
        "1b 1d 1f 1h 2e 2c 2g 2a 2i",
        "bfh",
        "1d 2e 2c 2g 2a 2i",
        "diagce",
    ),
    ("5a 4b 3c 2d 1e 0f", "0f 2d 1e 5a 3c 4b", "f", "1e 2d 5a 3c 4b", "edcba"),
]


def _digit(item: str) -> int:
    return int(item[0])


@pytest.mark.parametrize(("added", "filled", "removed", "left", "polled"), RECORDED)
def test_recorded_orders(added: str, filled: str, removed: str, left: str, polled: str) -> None:
    """Adding, removing and polling keep the array, and so the ties, as Java does."""
    heap: list[str] = []
    for item in added.split():
        heap_add(heap, item, _digit)
    after_adding = " ".join(heap)
    heap_remove_if(heap, lambda item: item[1] in removed, _digit)
    after_removing = " ".join(heap)
    order = "".join(heap_poll(heap, _digit)[1] for _ in range(len(heap)))

    assert (after_adding, after_removing, order) == (filled, left, polled)


# --- what counts as a change of a key's state, so that it must be written


def test_only_events_that_change_something_count() -> None:
    """An event nobody waits for, or that is only passed by again, changes nothing."""
    pattern = "start[a] ->> middle[b]+:any? -> middle2[d] -> end[e] within[10]"
    harness = NFATestHarness(parse(pattern), timeoutHandling=True)
    changes = []
    for event, time in [("b", 1), ("a", 2), ("f", 3), ("f", 4), ("b", 5), ("d", 6)]:
        harness.process(event, time)
        changes.append(harness.stateChanged)

    assert changes == [False, True, True, False, True, True]


def test_time_that_ends_nothing_changes_nothing() -> None:
    """Advancing time is a change only where a window ends."""
    harness = NFATestHarness(parse("a -> b within[10]"), timeoutHandling=True)
    harness.process("a", 2)
    changes = [harness.stateChanged]
    for time in (8, 11, 12):
        timed_out = harness.advanceTime(time)[1]
        changes.append(harness.stateChanged)

    assert (changes, timed_out) == ([True, False, False, True], [({"a": ["a"]}, 12)])


def test_one_new_partial_match_is_a_change() -> None:
    """A partial match that goes on as exactly one other has changed."""
    harness = NFATestHarness(parse("start -> m[a]+? >> end[b] within[10]"))
    changes = []
    for event, time in [("start", 6), ("a", 7)]:
        harness.process(event, time)
        changes.append(harness.stateChanged)

    assert changes == [True, True]


def test_an_expired_match_without_pruning_is_a_change() -> None:
    """A window that ends changes the state whatever the skip strategy."""
    for skip in (Skip.noSkip(), Skip.skipToNext()):
        harness = NFATestHarness(parse("start -> end within[10]", skip))
        harness.process("start", 6)
        before = harness.stateChanged
        harness.advanceTime(17)

        assert (before, harness.stateChanged) == (True, True)


def test_a_match_is_a_change() -> None:
    """A pattern of one stage changes with every match."""
    harness = NFATestHarness(parse("a"))
    found = harness.process("a", 1)

    assert (len(found), harness.stateChanged, harness.stateChanged) == (1, True, False)


# --- which events of a pattern may be dropped, and why not others


SKIP = AfterMatchSkipStrategy.skipPastLastEvent()


def decide(
    pattern: str | Pattern,
    skip: AfterMatchSkipStrategy | None = None,
    timeouts: bool = False,
    shows_next: bool = True,
    unknown: str = "",
) -> Relevance:
    """Decide about a pattern whose conditions are known beforehand, but for some stages'."""
    built = parse(pattern, skip) if isinstance(pattern, str) else pattern
    nfa = NFACompiler.compile(built, timeouts)
    known = sum(atom.bit for atom in nfa.atoms if atom.stage not in unknown.split())
    return Relevance.of(nfa, known, shows_next)


NOTHING_HOLDS = frozenset({0})


@pytest.mark.parametrize(
    "pattern",
    [
        "a -> b -> c",
        "a ->> b",
        "a -> b within[9]",
        "a -> b? -> c",
        "a -> b+ -> c",
        "a -> b+:any -> c",
        "a -> b+:greedy -> c",
        "a -> b{2,4}:greedy -> c within[9]",
        "a -> b+ until[u] -> c",
        "a+",
        "a !-> b -> c",
        "a !-> b -> c? -> d",
        "a -> (b -> c)? -> d",
    ],
)
def test_relaxed_patterns_do_without_what_fulfils_no_condition(pattern: str) -> None:
    """Where events may come in between, those that fulfil no condition may be dropped."""
    assert decide(pattern) == Relevance(NOTHING_HOLDS)


def test_conditions_that_count_only_together() -> None:
    """An event that fulfils one of two conditions of a stage is as good as one that has none."""
    nfa = NFACompiler.compile(Pattern.begin("a").where("x").where("y").followedBy("b").where("z"))
    z, x, y = (atom.bit for atom in nfa.atoms)

    assert Relevance.of(nfa, x | y | z, True).droppable == {0, x, y}


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a >> b", "stage 'b' must follow directly: any event in between ends the partial match"),
        ("a{2}:cons", "stage 'a' must follow directly"),
        ("a -> b+:cons -> c", "an ignored event changes what stage 'b' does"),
        ("a !>> b", "the event right before stage 'b' decides, whatever it is (notNext)"),
        ("a !>> b -> c", "the event right after the one before stage 'b' decides (notNext)"),
        ("a -> x[*]", "stage 'x' may take an event that satisfies no condition"),
        ("a -> b gap[4]", "stage 'b' has a window since the previous event"),
        ("a -> (b -> c)+ -> d", "ignored events keep changing partial matches at stage 'b'"),
        ("a -> b+ !-> c within[9]", "a match that ends with notFollowedBy('c') carries the time"),
    ],
)
def test_patterns_that_need_every_event(pattern: str, reason: str) -> None:
    """Where any event at all can make a difference, nothing is dropped, and the stage is named."""
    decided = decide(pattern)

    assert decided.droppable == frozenset()
    assert reason in decided.reason


def test_a_python_condition_may_hold_for_any_event() -> None:
    """While a stage takes what only Python can tell, every event is needed."""
    decided = decide("a -> b -> c", unknown="b")

    assert decided.droppable == frozenset()
    assert decided.reason.startswith("the condition b of stage 'b' is in Python")


def test_a_python_condition_beside_one_in_spark() -> None:
    """A stage whose condition in Spark fails does not take an event, whatever Python says."""
    pattern = Pattern.begin("a").where("x").where(lambda e: True).followedBy("b").where("y")
    nfa = NFACompiler.compile(pattern)
    known = sum(a.bit for a in nfa.atoms if type(a.condition).__name__ == "ExpressionCondition")

    assert Relevance.of(nfa, known, True) == Relevance(NOTHING_HOLDS)


def test_without_conditions_in_spark() -> None:
    """With no condition known beforehand there is nothing to tell events apart by."""
    assert decide("a -> b", unknown="a b").reason.startswith("no condition is evaluated before")


def test_timeouts_of_a_loop() -> None:
    """An ignored event makes two partial matches of a satisfied loop, and so two timeouts."""
    assert decide("a -> b+ -> c within[9]").droppable
    assert decide("a -> b within[9]", timeouts=True).droppable
    assert "timeouts are requested" in decide("a -> b+ -> c within[9]", timeouts=True).reason


def test_the_time_of_a_match_that_waited() -> None:
    """In process(), a trailing notFollowedBy's match has the next event's time."""
    assert not decide("a !-> b within[9]").droppable
    assert decide("a !-> b within[9]", shows_next=False).droppable


def test_a_loop_before_a_trailing_absence() -> None:
    """Only an ignored event begins the wait after a loop, so that it is needed."""
    reason = decide("a -> b+ !-> c within[9]", shows_next=False).reason

    assert reason == "an event ignored at stage 'b' begins the wait for an absent event"


def test_skip_strategies_and_windows() -> None:
    """What a window releases shows when it was seen to end; without windows all is the same."""
    assert decide("a -> b+ -> c", SKIP).droppable
    assert decide("a -> b within[9]", SKIP, shows_next=False).droppable
    assert "held back" in decide("a -> b within[9]", SKIP).reason
    assert "held back" in decide("a -> b within[9]", SKIP, timeouts=True, shows_next=False).reason


def test_many_conditions() -> None:
    """With very many conditions only events that fulfil none of them are looked at."""
    pattern = Pattern.begin("s0").where("x0").where("y")
    for number in range(1, 20):
        pattern = pattern.followedBy(f"s{number}").where(f"x{number}")

    assert decide(pattern) == Relevance(NOTHING_HOLDS)


@pytest.mark.parametrize(
    ("text", "skip"),
    [("a -> b within[9]", SKIP), ("a !-> b within[9]", None), ("a -> b -> c+ within[7]", SKIP)],
)
def test_a_match_has_the_time_of_its_window_with_and_without_dropped_events(
    text: str, skip: AfterMatchSkipStrategy | None
) -> None:
    """Where the end of a window is the time of what it released, no other event shows."""
    pattern = of_kinds(text, skip)
    nfa = NFACompiler.compile(pattern)
    known = sum(atom.bit for atom in nfa.atoms)
    bits = {repr(atom.condition): atom.bit for atom in nfa.atoms}
    droppable = Relevance.of(nfa, known, shows_next=False).droppable
    chance, dropped = random.Random(6), 0
    for _ in range(60):
        times = sorted(chance.choices(range(30), k=12))
        events = [{"t": t, "k": chance.choice("abcxy")} for t in times]
        few = [e for e in events if bits.get(f"k = '{e['k']}'", 0) not in droppable]
        dropped += len(events) - len(few)

        assert found(pattern, few) == found(pattern, events)
    assert dropped > 60


def of_kinds(text: str, skip: AfterMatchSkipStrategy | None) -> Pattern:
    """Return a pattern whose stages take the events that are named as they are."""
    first = Pattern.begin("a", skip or AfterMatchSkipStrategy.noSkip()).where("k = 'a'")
    window = timedelta(milliseconds=int(text[-2]))
    if "!" in text:
        return first.notFollowedBy("b").where("k = 'b'").within(window)
    pattern = first.followedBy("b").where("k = 'b'")
    if "c" in text:
        pattern = pattern.followedBy("c").where("k = 'c'").oneOrMore()
    return pattern.within(window)


def found(pattern: Pattern, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return matches with their times."""
    table = pa.table(
        {"t": pa.array([e["t"] for e in events], pa.int64()), "k": [e["k"] for e in events]}
    )
    return match(pattern, table, timestamp="t").toArrow().to_pylist()


@pytest.mark.slow
def test_many_optional_stages_are_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Combinations of conditions double with each stage: no more than a few thousand are tried."""
    pattern = Pattern.begin("a").where("x = 0")
    for number in range(40):
        pattern = pattern.followedBy(f"s{number}").where(f"x = {number}").optional()
    nfa = NFACompiler.compile(pattern.followedBy("z").where("x = -1"))
    tried = []

    def counted(*arguments: Any) -> Any:
        for found in outcomes(*arguments):
            tried.append(1)
            yield found

    monkeypatch.setattr(analysis, "outcomes", counted)
    found = Relevance.of(nfa, known_bits(nfa.atoms), shows_next=False)

    assert "too many conditions" in found.reason
    assert len(tried) < 10_000
