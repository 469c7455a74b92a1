# SPDX-License-Identifier: Apache-2.0
"""What the compiler refuses, and what it makes of windows, names and empty matches."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep import MalformedPatternException, NotSupportedError, Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler, StateType
from pyflinkcep.engines.flink.nfa.compiler import NFAStateNameHandler
from tests.shorthand import parse

_SKIP_NOT_FOUND = (
    "The pattern name specified in AfterMatchSkipStrategy can not be found in the given Pattern"
)
_GAP_TOO_LONG = (
    "The window length between the previous and current event cannot be larger than the window "
    "length between the first and last event for a Pattern."
)
_OPEN_END = "NotFollowedBy is not supported without windowTime as a last part of a Pattern!"

REFUSED: list[tuple[str, Any, str]] = [
    ("start -> middle -> start", None, "Duplicate pattern name: start. Names must be unique."),
    ("a -> (b -> a)", None, "Duplicate pattern name: a. Names must be unique."),
    ("(a -> (b -> a))", None, "Duplicate pattern name: a. Names must be unique."),
    ("start -> middle -> end", Skip.skipToLast("midd"), _SKIP_NOT_FOUND),
    ("start -> middle -> end", Skip.skipToFirst("midd"), _SKIP_NOT_FOUND),
    ("a -> (b -> c)", Skip.skipToFirst("b"), _SKIP_NOT_FOUND),
    ("a -> b gap[3000] -> c gap[1000] within[2]", None, _GAP_TOO_LONG),
    ("a -> b{2}<5> -> c within[4]", None, _GAP_TOO_LONG),
    ("start !-> end", None, _OPEN_END),
    ("a gap[5] !-> b", None, _OPEN_END),
]


@pytest.mark.parametrize(("pattern", "skip", "message"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused_as_in_flink(pattern: str, skip: Any, message: str) -> None:
    """A pattern that Flink's compiler refuses is refused with its message and a hint."""
    with pytest.raises(MalformedPatternException) as caught:
        NFACompiler.compile(parse(pattern, skip))

    assert (caught.value.message, bool(caught.value.hint)) == (message, True)


def test_refused_names() -> None:
    """A name that Flink reserves is refused."""
    with pytest.raises(MalformedPatternException) as caught:
        NFACompiler.compile(Pattern.begin("$endState$"))

    message = "Duplicate pattern name: $endState$. Names must be unique."
    assert (caught.value.message, bool(caught.value.hint)) == (message, True)


@pytest.mark.parametrize(
    "pattern",
    [
        "a !-> b within[1]",
        "a !-> b gap[1]",
        "a within[1] !-> b",
        "a -> (b !-> c)",
        "a !>> b",
        "GroupPattern -> (b -> c)",
        "a -> b gap[5] within[5]",
        "a -> b{0,2}:greedy -> c{0,1}",
    ],
)
def test_accepted_as_in_flink(pattern: str) -> None:
    """A pattern that Flink compiles is compiled, odd as it may be."""
    nfa = NFACompiler.compile(parse(pattern))

    assert nfa.start.kind is StateType.START


def test_skip_to_the_name_of_groups() -> None:
    """``GroupPattern``, the name of every group, may be skipped to."""
    nfa = NFACompiler.compile(parse("a -> (b -> c)", Skip.skipToFirst("GroupPattern")))

    assert nfa.skip_strategy == Skip.skipToFirst("GroupPattern")


@pytest.mark.parametrize(
    ("pattern", "window"),
    [
        ("a -> middle within[10000] -> then within[20000]", 10_000),
        ("a -> middle within[20000] -> then within[10000]", 10_000),
        ("a within[7] -> b", 7),
        ("a -> (b within[3] -> c within[2]) -> d within[9]", 3),
        ("a -> (b -> c within[2]) -> d within[9]", 9),
        ("a -> (b -> c) within[4] -> d within[9]", 4),
        ("a -> b", 0),
    ],
)
def test_smallest_window_counts(pattern: str, window: int) -> None:
    """Of several FIRST_AND_LAST windows the smallest holds, except a group's last stage's."""
    nfa = NFACompiler.compile(parse(pattern))

    assert nfa.window_time == window


def test_no_unnecessary_copies_of_states() -> None:
    """A NOT stage before a loop does not multiply the states after the loop."""
    nfa = NFACompiler.compile(parse("start !-> not -> oneOrMore+ -> end"))
    ends = [name for name in nfa.tables if name.split(":")[0] == "end"]

    assert ends == ["end"]


def test_timeout_handling_is_a_flag_of_the_automaton() -> None:
    """Asking for timeouts changes no state."""
    plain, handling = (NFACompiler.compile(parse("a -> b"), flag) for flag in (False, True))

    assert (list(plain.tables), plain.handle_timeout, handling.handle_timeout) == (
        list(handling.tables),
        False,
        True,
    )


def test_compiling_leaves_the_pattern_alone() -> None:
    """A pattern compiled twice gives the same automaton, greedy edges included."""
    pattern = parse("a -> b+:greedy -> c")
    first, second = (
        [str(table.state) for table in NFACompiler.compile(pattern).tables.values()]
        for _ in range(2)
    )

    assert first == second


@pytest.mark.parametrize(
    "pattern",
    [
        Pattern.begin("a").times(10**9),
        Pattern.begin("a").times(0, 10**9),
        Pattern.begin("a").timesOrMore(10**9).optional(),
        Pattern.begin("s").next("a").times(10**5),
        Pattern.begin(Pattern.begin("a").times(1000).next("b")).times(1000),
    ],
    ids=str,
)
def test_more_states_than_memory_holds(pattern: Pattern) -> None:
    """A state for each repetition, of each repetition of a group: too many are refused at once."""
    with pytest.raises(NotSupportedError, match="states, one for each of the times") as caught:
        NFACompiler.compile(pattern)
    assert "oneOrMore()" in str(caught.value.hint)


def test_many_states() -> None:
    """Long repetitions are compiled."""
    assert len(NFACompiler.compile(Pattern.begin("a").times(20_000)).tables) == 20_001


# --- internal state names


def test_counters_begin_at_the_second_use() -> None:
    """The first state of a stage has the bare name, the next ones the smallest free counter."""
    names = NFAStateNameHandler()

    assert [names.unique_internal_name(n) for n in ("b", "b", "c", "b", "b:0")] == [
        "b",
        "b:0",
        "c",
        "b:1",
        "b:0:0",
    ]


def test_a_reserved_name_is_refused() -> None:
    """A name can be checked in once; a state of its own gets another."""
    names = NFAStateNameHandler()
    names.check_name_uniqueness("a")

    with pytest.raises(MalformedPatternException, match="Duplicate pattern name: a"):
        names.check_name_uniqueness("a")

    assert names.unique_internal_name("a") == "a:0"
