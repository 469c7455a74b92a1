# SPDX-License-Identifier: Apache-2.0
"""What is known of an automaton before it runs: bits of conditions, growth, edges that are never taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep import Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.emission import heap_add, heap_poll, heap_remove_if
from pyflinkcep.engines.flink.nfa.growth import doubling_stages, splitting_stages, warnings_of
from pyflinkcep.engines.flink.nfa.relevance import untaken_events
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
