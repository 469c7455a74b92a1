# SPDX-License-Identifier: Apache-2.0
"""The states and transitions of compiled patterns are those of Flink's compiler."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, CepError
from pyflinkcep.conditions import RichAndCondition, RichNotCondition
from pyflinkcep.engines.flink.nfa import NFACompiler, StateType
from tests.shorthand import matches, parse, run

# Flink 2.3.0's graphs. T take, I ignore, P proceed, F the final state; states in creation order,
# edges in the order in which they are tried.
GRAPHS = {
    "a >> b": """
        b: T→F[b]
        a(start): T→b[a]
    """,
    "a -> b": """
        b: T→F[b] I→b[¬b]
        a(start): T→b[a]
    """,
    "a ->> b": """
        b: T→F[b] I→b[true]
        a(start): T→b[a]
    """,
    "a !>> b -> c": """
        c: T→F[c] I→c[¬c]
        b: P→c[¬b] P→b:0[b]
        b:0(stop): T→b:0[b]
        a(start): T→b[a]
    """,
    "a !>> b": """
        b: I→F[¬b] P→b:0[b]
        b:0(stop): T→b:0[b]
        a(start): T→b[a]
    """,
    "a !-> b -> c": """
        c: T→F[c] I→c[¬c] P→b[b]
        b(stop): T→b[b]
        a(start): T→c[a]
    """,
    "a !-> b within[10]": """
        b(pending): P→b:0[b] I→b[¬b]
        b:0(stop): T→b:0[b]
        a(start): T→b[a]
    """,
    "a !-> b gap[10]": """
        b(pending): P→b:0[b] I→b[¬b]
        b:0(stop): T→b:0[b]
        a(start): T→b[a]
    """,
    "a -> b? -> c": """
        c: T→F[c] I→c[¬c]
        b: T→c[b] P→c[true] I→b:0[¬b]
        b:0: T→c[b] I→b:0[¬b]
        a(start): T→b[a]
    """,
    "a >> b? >> c": """
        c: T→F[c]
        b: T→c[b] P→c[true]
        a(start): T→b[a]
    """,
    "a -> b+ -> c": """
        c: T→F[c] I→c[¬c]
        b: P→c[true] T→b[b] I→b:0[¬b]
        b:0: T→b[b] I→b:0[¬b]
        b:1: T→b[b] I→b:1[¬b]
        a(start): T→b:1[a]
    """,
    "a >> b+:cons >> c": """
        c: T→F[c]
        b: P→c[true] T→b[b]
        b:0: T→b[b]
        a(start): T→b:0[a]
    """,
    "a -> b+:any -> c": """
        c: T→F[c] I→c[¬c]
        b: P→c[true] T→b[b] I→b:0[true]
        b:0: T→b[b] I→b:0[true]
        b:1: T→b[b] I→b:1[¬b]
        a(start): T→b:1[a]
    """,
    "a -> b+? -> c": """
        c: T→F[c] I→c[¬c]
        b: P→c[true] T→b[b] I→b:0[¬b]
        b:0: T→b[b] I→b:0[¬b]
        b:1: T→b[b] P→c[true] I→b:2[¬b]
        b:2: T→b[b] I→b:2[¬b]
        a(start): T→b:1[a]
    """,
    "a -> b+:greedy -> c": """
        c: T→F[c∧¬b] I→c[¬c∧¬b]
        b: P→c[true] T→b[b] I→b:0[¬b]
        b:0: T→b[b] I→b:0[¬b]
        b:1: T→b[b] I→b:1[¬b]
        a(start): T→b:1[a]
    """,
    "a -> b{3} -> c": """
        c: T→F[c] I→c[¬c]
        b: T→c[b] I→b[¬b]
        b:0: T→b[b] I→b:0[¬b]
        b:1: T→b:0[b] I→b:1[¬b]
        a(start): T→b:1[a]
    """,
    "a -> b{2,4} -> c": """
        c: T→F[c] I→c[¬c]
        b: T→c[b] P→c[true] I→b:0[¬b]
        b:0: T→c[b] I→b:0[¬b]
        b:1: T→b[b] P→c[true] I→b:2[¬b]
        b:2: T→b[b] I→b:2[¬b]
        b:3: T→b:1[b] I→b:3[¬b]
        b:4: T→b:3[b] I→b:4[¬b]
        a(start): T→b:4[a]
    """,
    "a -> b{2,4}:greedy -> c": """
        c: T→F[c∧¬b] I→c[¬c∧¬b]
        b: T→c[b] P→c[true] I→b:0[¬b]
        b:0: T→c[b] I→b:0[¬b]
        b:1: T→b[b] P→c[true] I→b:2[¬b]
        b:2: T→b[b] I→b:2[¬b]
        b:3: T→b:1[b] I→b:3[¬b]
        b:4: T→b:3[b] I→b:4[¬b]
        a(start): T→b:4[a]
    """,
    "a -> b{0,2} -> c": """
        c: T→F[c] I→c[¬c]
        b: T→c[b] P→c[true] I→b:0[¬b]
        b:0: T→c[b] I→b:0[¬b]
        b:1: T→b[b] P→c[true] I→b:2[¬b]
        b:2: T→b[b] I→b:2[¬b]
        a(start): T→b:1[a]
    """,
    "a -> b{3,} -> c": """
        c: T→F[c] I→c[¬c]
        b: P→c[true] T→b[b] I→b:0[¬b]
        b:0: T→b[b] I→b:0[¬b]
        b:1: T→b[b] I→b:1[¬b]
        b:2: T→b:1[b] I→b:2[¬b]
        b:3: T→b:2[b] I→b:3[¬b]
        a(start): T→b:3[a]
    """,
    "a -> b{2,}<5> -> c": """
        c: T→F[c] I→c[¬c]
        b: P→c[true] T→b[b] I→b:0[¬b]
        b:0: T→b[b] I→b:0[¬b]
        b:1: T→b[b] I→b:1[¬b]
        b:2: T→b:1[b] I→b:2[¬b]
        a(start): T→b:2[a]
    """,
    "a -> b{2}<5> -> c": """
        c: T→F[c] I→c[¬c]
        b: T→c[b] I→b[¬b]
        b:0: T→b[b] I→b:0[¬b]
        a(start): T→b:0[a]
    """,
    "a{3}<5>": """
        a: T→F[a] I→a[¬a]
        a:0: T→a[a] I→a:0[¬a]
        a:1(start): T→a:0[a]
    """,
    "a -> b+ until[u] -> c": """
        c: T→F[c] I→c[¬c]
        b: P→c[true] T→b[¬u∧b] I→b:0[¬u∧¬b]
        b:0: T→b[¬u∧b] I→b:0[¬u∧¬b]
        b:1: T→b[¬u∧b] I→b:1[¬b]
        a(start): T→b:1[a]
    """,
    "a -> b+:greedy until[u] -> c": """
        c: T→F[c∧¬b] I→c[¬c∧¬b]
        b: P→c:0[true∧u] P→c[true∧¬u] T→b[¬u∧b] I→b:0[¬u∧¬b]
        c:0: T→F[c] I→c:0[¬c]
        b:0: T→b[¬u∧b] I→b:0[¬u∧¬b]
        b:1: T→b[¬u∧b] I→b:1[¬b]
        a(start): T→b:1[a]
    """,
    "a -> b+?:greedy until[u] -> c": """
        c: T→F[c∧¬b] I→c[¬c∧¬b]
        b: P→c:0[true∧u] P→c[true∧¬u] T→b[¬u∧b] I→b:0[¬u∧¬b]
        c:0: T→F[c] I→c:0[¬c]
        b:0: T→b[¬u∧b] I→b:0[¬u∧¬b]
        b:1: T→b[¬u∧b] P→c:0[true∧u] P→c[true∧¬u] I→b:2[¬b]
        b:2: T→b[¬u∧b] I→b:2[¬b]
        a(start): T→b:1[a]
    """,
    "a+": """
        a: P→F[true] T→a[a] I→a:0[¬a]
        a:0: T→a[a] I→a:0[¬a]
        a:1(start): T→a[a]
    """,
    "a+?": """
        a: P→F[true] T→a[a] I→a:0[¬a]
        a:0: T→a[a] I→a:0[¬a]
        a:1(start): T→a[a] P→F[true]
    """,
    "a?": """
        a(start): T→F[a] P→F[true]
    """,
    "a -> (b -> c) -> d": """
        d: T→F[d] I→d[¬d]
        c: T→d[c] I→c[¬c]
        b: T→c[b] I→b[¬b]
        a(start): T→b[a]
    """,
    "a -> (b -> c){2} -> d": """
        d: T→F[d] I→d[¬d]
        c: T→d[c] I→c[¬c]
        b: T→c[b] I→b[¬b]
        c:0: T→b[c] I→c:0[¬c]
        b:0: T→c:0[b] I→b:0[¬b]
        a(start): T→b:0[a]
    """,
    "a -> (b -> c)+ -> d": """
        d: T→F[d] I→d[¬d]
        GroupPattern: P→b[true]
        c: T→GroupPattern[c] I→c[¬c]
        b: T→c[b] I→b[¬b] P→d[true]
        c:0: T→b[c] I→c:0[¬c]
        b:0: T→c:0[b] I→b:0[¬b]
        a(start): T→b:0[a]
    """,
    "a -> (b -> c)? -> d": """
        d: T→F[d] I→d[¬d]
        c: T→d[c] I→c[¬c]
        b: T→c[b] I→b:0[¬b] P→d[true]
        b:0: T→c[b] I→b:0[¬b]
        a(start): T→b[a]
    """,
    "a -> (b -> c)+? -> d": """
        d: T→F[d] I→d[¬d]
        GroupPattern: P→b[true]
        c: T→GroupPattern[c] I→c[¬c]
        b: T→c[b] I→b[¬b] P→d[true]
        c:0: T→b[c] I→c:0[¬c]
        b:0: T→c:0[b] I→b:1[¬b] P→d[true]
        b:1: T→c:0[b] I→b:1[¬b]
        a(start): T→b:0[a]
    """,
    "a -> (b -> c)+ until[u] -> d": """
        d: T→F[d] I→d[¬d]
        GroupPattern: P→b[true]
        c: T→GroupPattern[¬u∧c] I→c[¬u∧¬c]
        b: T→c[¬u∧b] I→b[¬u∧¬b] P→d[true]
        c:0: T→b[¬u∧c] I→c:0[¬u∧¬c]
        b:0: T→c:0[¬u∧b] I→b:0[¬u∧¬b]
        a(start): T→b:0[a]
    """,
    "a !-> b -> c? -> d": """
        d: T→F[d] I→d[¬d] P→b[b]
        b(stop): T→b[b]
        c: T→d:0[c] P→d[true] I→c:0[¬c] P→b[b]
        d:0: T→F[d] I→d:0[¬d]
        c:0: T→d:0[c] I→c:0[¬c] P→b[b]
        a(start): T→c[a]
    """,
    "a !-> b -> c+? -> d": """
        d: T→F[d] I→d[¬d] P→b[b]
        b(stop): T→b[b]
        d:0: T→F[d] I→d:0[¬d]
        c: P→d:0[true] T→c[c] I→c:0[¬c]
        c:0: T→c[c] I→c:0[¬c]
        c:1: T→c:2[c] P→d[true] I→c:3[¬c] P→b[b]
        c:2: P→d:0:0[true] T→c:2[c] I→c:0[¬c]
        d:0:0: T→F[d] I→d:0:0[¬d]
        c:3: T→c:2[c] I→c:3[¬c] P→b[b]
        a(start): T→c:1[a]
    """,
    "a -> b+ !-> c -> d": """
        d: T→F[d] I→d[¬d] P→c[c]
        c(stop): T→c[c]
        b: P→d[true] T→b[b] P→c[c] I→b:0[¬b]
        b:0: T→b[b] I→b:0[¬b] P→c[c]
        b:1: T→b[b] I→b:1[¬b]
        a(start): T→b:1[a]
    """,
    "a -> b gap[5] -> c gap[7]": """
        c: T→F[c] I→c[¬c]
        b: T→c[b] I→b[¬b]
        a(start): T→b[a]
    """,
}

WINDOWS = [
    ("a -> b", 0, {}),
    ("a !-> b within[10]", 10, {}),
    ("a !-> b gap[10]", 0, {"b": 10}),
    ("a -> b{2,}<5> -> c", 0, {"b:1": 5, "b:2": 5}),
    ("a -> b{2}<5> -> c", 0, {"b:0": 5}),
    ("a -> b{1}<5> -> c", 0, {}),
    ("a -> b+<5> -> c", 0, {"b:1": 5}),
    ("a{3}<5>", 0, {"a:0": 5, "a:1": 5}),
    ("a -> b gap[5] -> c gap[7]", 0, {"b": 5, "c": 7}),
    ("a -> b? gap[5] -> c", 0, {"b": 5}),
    ("a -> b+ gap[5] -> c", 0, {}),
]


def condition_text(condition: Any) -> str:
    """Return a condition in the notation of the table."""
    if condition is None:
        return "true"
    if isinstance(condition, RichAndCondition):
        return "∧".join(map(condition_text, condition.nestedConditions))
    if isinstance(condition, RichNotCondition):
        return "¬" + condition_text(condition.nestedConditions[0])
    return repr(condition)


def graph(text: str) -> list[str]:
    """Return the compiled states of a pattern, a line each, without the final one."""
    lines = []
    for table in NFACompiler.compile(parse(text)).tables.values():
        state = table.state
        if state.kind is StateType.FINAL:
            continue
        kind = "" if state.kind is StateType.NORMAL else f"({state.kind.value.lower()})"
        edges = " ".join(
            f"{t.action.value[0]}→{t.target.name}[{condition_text(t.condition)}]"
            for t in state.transitions
        )
        lines.append(f"{state.name}{kind}: {edges}".replace("$endState$", "F"))
    return lines


@pytest.mark.parametrize("pattern", GRAPHS)
def test_graph(pattern: str) -> None:
    """States, their kinds and order, transitions, their order and conditions are Flink's."""
    expected = [line.strip() for line in GRAPHS[pattern].strip().splitlines()]

    assert graph(pattern) == expected


@pytest.mark.parametrize(("pattern", "window", "gaps"), WINDOWS, ids=[w[0] for w in WINDOWS])
def test_windows(pattern: str, window: int, gaps: dict[str, int]) -> None:
    """A window is kept for the whole pattern or, between events, by internal state name."""
    nfa = NFACompiler.compile(parse(pattern))

    assert (nfa.window_time, nfa.window_times) == (window, gaps)


def test_one_final_state_without_a_way_on() -> None:
    """The first state created is the only final one, and nothing leaves it."""
    nfa = NFACompiler.compile(parse("a -> b+? -> c !-> d within[5]"))
    final = [table for table in nfa.tables.values() if table.kind is StateType.FINAL]

    assert (final, final[0].state.transitions) == ([nfa.final], [])


# --- the states of alternatives and of patterns in any order, and what they match


def states(text: str) -> list[str]:
    """The states of a pattern, the start state last."""
    return [str(table.state) for table in NFACompiler.compile(parse(text)).tables.values()]


def test_a_fork() -> None:
    """One state tries an event on the alternatives, the first one first; all go on alike."""
    assert states("a -> (b | c) -> d")[1:] == [
        "d: T→$endState$[d] I→d[not d]",
        "b: T→d[b] I→b[not b]",
        "c: T→d[c] I→c[not c]",
        "GroupPattern: P→c[true] P→b[true]",
        "a(start): T→GroupPattern[a]",
    ]


def test_any_order() -> None:
    """There is a fork for each set of patterns that are left; the last one has none."""
    assert states("a -> (b &>> c) -> d")[2:] == [
        "c: T→d[c]",
        "b: T→c[b] I→b[not b]",
        "b:0: T→d[b]",
        "c:0: T→b:0[c] I→c:0[not c]",
        "GroupPattern: P→c:0[true] P→b[true]",
        "a(start): T→GroupPattern[a]",
    ]
    assert len(states("(a & b & c & d & e & f)")) == 6 * 2**5 + 2**6 - 6


@pytest.mark.parametrize(
    ("text", "events", "found"),
    [
        ("a -> (b | c) -> d", "a b c d", "{a b d} {a c d}"),  # a match for each
        ("a -> (b | c[b|c]) -> d", "a b d", "{a b d} {a b d}"),  # under another name
        ("a >> (b | c) >> d", "a c d a x c d", "{a c d}"),
        ("(a | b -> c) -> d", "b a c d", "{b c d} {a d}"),
        ("a -> (b | c)? -> d", "a d a x c d", "{a d} {a c d} {a c d} {a d}"),
        ("(a | b)+ until[u] >> d", "a b d u a d", "{a b d} {b d} {a d}"),
        ("(a & b) -> d", "b x a d", "{b a d}"),
        ("(a &>> b) >> d", "b x a d b a d", "{b a d}"),
        ("(a & b{2}) -> c", "b a b a b c", "{a b b c} {b b a c}"),
        ("a !-> n -> (b | c) -> d", "a n b d a c n d", "{a c d}"),
        ("a !-> n -> (b | c)? -> d", "a x n d a b n d", "{a b d}"),
        ("a !>> n -> (b | c)", "a n b a x c", "{a c}"),
        ("(a+ | b) !-> n -> c", "a n c b n c", ""),
        ("a -> (b !>> n | c) -> d", "a b n d a b x d", "{a b d}"),
    ],
)
def test_what_they_match(text: str, events: str, found: str) -> None:
    """Each alternative, or order, matches as if it were written out in the place of the group."""
    wanted = found.replace("} ", "}\n").split("\n") if found else []

    assert sorted(run(text, events).matches) == sorted(wanted)


def test_skip_strategies() -> None:
    """The first alternative is preferred; the others of the same events are skipped."""
    skip = AfterMatchSkipStrategy.skipPastLastEvent()

    found = run("(a | b[a])", "a1 a2", skip).harness
    assert run("(a | b[a])", "a1 a2", skip).matches == ["{a1}", "{a2}"]
    assert found.partialMatches == 1


def test_a_skip_strategy_names_no_stage_inside() -> None:
    """A stage inside a group, here in one alternative only, is none that can be skipped to."""
    skip = AfterMatchSkipStrategy.skipToFirst("b")
    with pytest.raises(CepError, match="can not be found in the given Pattern"):
        NFACompiler.compile(parse("a -> (b | c)", skip))


def test_gaps_before_a_group() -> None:
    """The alternatives have one state before them, so one window for the gap; none at the start."""
    assert matches("a -> (b gap[5] | c gap[5])", "a@1 b@6 a@10 x@11 c@14") == "{a c}"
    assert matches("(b gap[5] | c) -> d", "b d") == "{b d}"
    with pytest.raises(CepError, match="differ in the window for the gap"):
        NFACompiler.compile(parse("a -> (b gap[5] | c)"))


def test_timeouts() -> None:
    """An alternative that is waited for times out for itself, once it waits."""
    assert run("a -> (b | c) within[5]", "a1@1 @9").timeouts == ["{a1}@6"]
    assert run("a -> (b | c) within[5]", "a1@1 x@2 @9").timeouts == ["{a1}@6", "{a1}@6"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a | a)", "Duplicate pattern name: a"),
        ("a -> (b & (c | b))", "Duplicate pattern name: b"),
        ("a !-> n -> (b? | c) -> d", "follows a notFollowedBy stage"),
        ("(a? | b)+ -> c", "looping group whose stages are all optional"),
        ("((a & b & c & d & e & f){100} & b1 & b2 & b3){10}", "states"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    """What the compiler refuses of groups, it refuses of these; the number of states is known."""
    with pytest.raises(CepError, match=message):
        NFACompiler.compile(parse(text))
