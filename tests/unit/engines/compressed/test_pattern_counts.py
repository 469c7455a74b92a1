# SPDX-License-Identifier: Apache-2.0
"""Compressed matches of patterns in the kernel against the plain path, and against all matches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pyflinkcep import AfterMatchSkipStrategy, Pattern, WithinType
from pyflinkcep.engines.compressed.patterns import (
    CompressiblePattern,
    EventViews,
    KeyedEvents,
    PatternMatches,
    refuse_incompressible,
)
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import in_word, known_bits, words
from pyflinkcep.errors import CepError, ConditionError
from pyflinkcep.expressions.evaluator import event_function, local_expressions
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.testing import OperatorTestHarness, match
from pyflinkcep.time import MAX_WATERMARK
from tests.kernel_harness import needs_kernel
from tests.property.strategies import Event, PatternSpec, patterns, timed_events
from tests.unit.kernel.test_expressions import field_array

pytestmark = needs_kernel

MANY = settings.default.max_examples * 4


def matches_of(pattern: Pattern, rows: Sequence[Any], events: KeyedEvents) -> PatternMatches:
    """The compressed matches of a pattern, counted by the kernel."""
    nfa = NFACompiler.compile(pattern)
    asked = [(a.stage, a.condition) for a in nfa.atoms if isinstance(a.condition, MatchExpression)]
    expressions, fields = local_expressions(asked, rows) if asked else (None, None)
    known: Any = [a for a in nfa.atoms if a.bit & known_bits(nfa.atoms)]
    holding = [
        sum(a.bit for a in known if event_function(a.condition.text)(row) is True) for row in rows
    ]
    columns: list[Any] = []
    if expressions is not None and fields is not None:
        of_events = zip(*map(fields, rows), strict=True)
        columns = [
            field_array(field.kind, list(column))
            for field, column in zip(expressions.fields, of_events, strict=True)
        ]
    views = EventViews(
        lambda at: rows[at],
        lambda at: () if fields is None else fields(rows[at]),
        tuple(columns),
        lambda: holding,
    )
    count = 1 + max(in_word(atom.bit)[0] for atom in nfa.atoms)
    bits = np.asarray([words(own, count) for own in holding], np.int64).reshape(-1, count)
    own = attrs.evolve(events, bits=bits)
    return PatternMatches(CompressiblePattern.of(nfa, expressions, nfa.stages), own, views)


def keyed(times: Sequence[int], **more: Any) -> KeyedEvents:
    """Events of one key."""
    return KeyedEvents(np.asarray(times, np.int64), None, np.asarray([0, len(times)]), **more)


def both(matches: PatternMatches, measures: Sequence[Any] = ()) -> tuple[Any, Any]:
    """What the kernel and the plain path say: totals by event, the first start, the deadline."""
    assert matches.pattern.counter is not None
    plain = attrs.evolve(matches, pattern=attrs.evolve(matches.pattern, counter=None))
    return said(matches, measures), said(plain, measures)


def said(matches: PatternMatches, measures: Sequence[Any]) -> Any:
    wanted = {"sum": (0, 1), "stddev": (0, 1), "min": (2,), "max": (3,), "count": (0,)}
    found = [
        (
            at,
            count,
            [[total[n] for n in wanted[m[2]]] for m, total in zip(measures, totals, strict=True)],
        )
        for at, count, totals in matches.totals_by_event(measures)
    ]
    return found, matches.begun, matches.deadline


@settings(max_examples=MANY)
@given(
    spec=patterns(),
    events=timed_events(16),
    cut=st.integers(0, 16),
    watermark=st.integers(0, 9),
    functions=st.lists(st.sampled_from(["sum", "stddev", "min", "max", "count"]), max_size=2),
)
def test_random_patterns(
    spec: PatternSpec, events: Any, cut: int, watermark: int, functions: list[str]
) -> None:
    """Loops, groups, NOT and both windows: numbers and totals of each event are the same."""
    pattern = attrs.evolve(spec, skip=None).build()
    try:
        refuse_incompressible(NFACompiler.compile(pattern))
    except CepError:
        assume(False)
    rows, times = [event for event, _ in events], [time for _, time in events]
    cut = min(cut, len(times))
    while 0 < cut < len(times) and times[cut] == times[cut - 1]:
        cut += 1  # events of equal time come together
    before = times[cut - 1] if cut else None
    end = max(times, default=0) + watermark
    some = keyed(times, held=cut, before=before, watermark=end)
    values = [event.price for event in rows]
    for own in (some, keyed(times)):
        matches = matches_of(pattern, rows, own)
        stages = matches.pattern.nfa.stages
        measures = [
            (stages[-1 - n], values, name) for n, name in enumerate(functions[: len(stages)])
        ]
        kernel, plain = both(matches, measures)
        assert kernel == plain


def check_listed(pattern: Pattern, events: Sequence[tuple[Any, int]]) -> int:
    """Hold the number of matches to that of the matches which the operator lists; return it."""
    harness = OperatorTestHarness(pattern)
    for event, time in events:
        harness.processElement(event, time, key="k")
    harness.processWatermark(MAX_WATERMARK)
    rows, times = [event for event, _ in events], [time for _, time in events]
    (found, _, _), plain = both(matches_of(pattern, rows, keyed(times)))
    assert sum(count for _, count, _ in found) == len(harness.matches)
    assert found == plain[0]
    return len(harness.matches)


def with_gaps(spec: PatternSpec, gaps: Sequence[int]) -> PatternSpec:
    """The pattern with windows of single stages since the event before; 0 for none."""
    stages = list(spec.stages)
    for number, gap in enumerate(gaps[: len(stages) - 1], 1):
        own = stages[number]
        within = ("within", (timedelta(milliseconds=gap), WithinType.PREVIOUS_AND_CURRENT))
        if gap and not own.is_not:
            stages[number] = attrs.evolve(own, calls=(*own.calls, within))
    return attrs.evolve(spec, stages=tuple(stages), skip=None, window=None)


@pytest.mark.slow
@settings(max_examples=MANY)
@given(
    spec=patterns(),
    events=timed_events(12),
    gaps=st.none() | st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
def test_as_many_as_are_listed(spec: PatternSpec, events: Any, gaps: list[int] | None) -> None:
    """The number of matches is that of the matches which the operator lists."""
    own = attrs.evolve(spec, skip=None) if gaps is None else with_gaps(spec, gaps)
    try:
        pattern = own.build()
        refuse_incompressible(NFACompiler.compile(pattern))
    except CepError:
        assume(False)
    check_listed(pattern, events)


def test_time_passes_once_for_events_of_equal_time() -> None:
    """
    An event may move a partial match to a state with a gap that is over already; a second event
    of its time still gets it, as Flink lets time pass once for both.
    """
    pattern = (
        Pattern.begin("a").where(lambda e: e == "a")
        .notNext("b").where(lambda e: e == "b")
        .followedBy("c").where(lambda e: e == "c")
        .within(timedelta(milliseconds=1), WithinType.PREVIOUS_AND_CURRENT)
    )  # fmt: skip
    assert check_listed(pattern, [("a", 1), ("x", 2), ("c", 2)]) == 1
    assert check_listed(pattern, [("a", 1), ("x", 2), ("c", 3)]) == 0


CLAUSES = [
    "x > first(a.x)",
    "x >= coalesce(max(b.x), 0)",
    "count(b) < 3",
    "s = last(a.s)",
    "f > coalesce(avg(match.f), -1)",
    "sum(b.x) is null or x < sum(b.x)",
    "k = 'c' and last(b.x, 1) is null",
    "x <> 2",
]


def sql_pattern(chance: random.Random) -> Pattern:
    """Three stages joined at random, with SQL over stages, loops and a window."""
    pattern: Any = Pattern.begin("a").where("k <> 'c'")
    if chance.random() < 0.4:
        pattern = pattern.where(chance.choice(CLAUSES[1:4:2])).oneOrMore().allowCombinations()
    for stage in "bc":
        step = chance.choice(["next", "followedBy", "followedByAny", "followedByAny"])
        pattern = getattr(pattern, step)(stage).where(chance.choice(CLAUSES))
        if chance.random() < 0.5:
            pattern = pattern.where(chance.choice(["k = 'b'", CLAUSES[0]]))
        if chance.random() < 0.6:
            pattern = pattern.oneOrMore()
            pattern = pattern.allowCombinations() if chance.random() < 0.5 else pattern
        if chance.random() < 0.2:
            pattern = pattern.optional()
    if chance.random() < 0.2:
        pattern = pattern.notFollowedBy("d").where("x = 1")
    kind = chance.choice([WithinType.FIRST_AND_LAST, WithinType.PREVIOUS_AND_CURRENT])
    made: Pattern = pattern.within(timedelta(milliseconds=chance.choice([3, 8, 30])), kind)
    return made


def sql_rows(chance: random.Random, size: int) -> list[dict[str, Any]]:
    """Events of a few values, NULL and NaN among them."""
    return [
        {
            "k": chance.choice("abbc"),
            "x": chance.choice([None, 0, 1, 2, 3]),
            "s": chance.choice([None, "p", "q"]),
            "f": chance.choice([None, -0.0, 0.0, 1.5, float("nan")]),
        }
        for _ in range(size)
    ]


@settings(max_examples=MANY)
@given(st.integers(0, 1 << 40))
def test_sql_over_stages(seed: int) -> None:
    """Partial matches that conditions can tell apart are counted apart."""
    chance = random.Random(seed)
    try:
        pattern = sql_pattern(chance)
        NFACompiler.compile(pattern)
    except CepError:
        return  # Flink refuses it
    rows = sql_rows(chance, chance.choice([9, 14]))
    times = np.cumsum([chance.choice([0, 1, 1, 2]) for _ in rows]).tolist()
    measures = [("a", [row["x"] for row in rows], chance.choice(["sum", "min", "max"]))]
    kernel, plain = both(matches_of(pattern, rows, keyed(times)), measures)
    assert kernel == plain


@pytest.mark.parametrize("within", [None, 60, 1000])
def test_numbers_of_any_size(within: int | None) -> None:
    """Numbers and sums beyond 64 and 128 bits, with a number for each start and without."""
    pattern: Any = (
        Pattern.begin("a").where("k = 'a'")
        .followedByAny("b").where("k = 'b'").oneOrMore().allowCombinations()
        .followedByAny("c").where("k = 'c'")
    )  # fmt: skip
    if within is not None:
        pattern = pattern.within(timedelta(milliseconds=within))
    rows = [{"k": "a" if at % 9 == 0 else "c" if at % 7 == 0 else "b"} for at in range(300)]
    values = [2**62 + at for at in range(300)]
    matches = matches_of(pattern, rows, keyed(range(300)))
    kernel, plain = both(matches, [("b", values, "sum"), ("b", values, "max")])
    assert kernel == plain
    most = max(count for _, count, _ in kernel[0])
    assert most.bit_length() > (40 if within == 60 else 150)


@pytest.mark.slow
def test_many_keys_and_what_windows_leave_behind() -> None:
    """Keys do not see each other, and partial matches that nothing looks at again are let go."""
    chance = random.Random(5)
    pattern = (
        Pattern.begin("a").where("k = 'a'")
        .followedByAny("b").where("k = 'b' and x > last(a.x)")
        .followedByAny("c").where("k = 'c' and x > last(b.x)")
        .within(timedelta(milliseconds=20))
    )  # fmt: skip
    rows = [
        {"k": chance.choice("aab" if at % 300 else "c"), "x": chance.randrange(10**6)}
        for at in range(6000)
    ]
    times = [*range(4000), *range(2000)]
    events = KeyedEvents(np.asarray(times), None, np.asarray([0, 1, 1, 4000, 6000]))
    kernel, plain = both(matches_of(pattern, rows, events))
    assert kernel == plain
    assert kernel[0]


def test_many_conditions() -> None:
    """The answers of more than 63 conditions come in several words."""
    pattern = Pattern.begin("s0").where("x = 0")
    for number in range(1, 70):
        pattern = pattern.followedByAny(f"s{number}").where(f"x = {number}")
    rows = [{"x": at % 70} for at in range(139)] + [{"x": 69}]
    (found, _, _), plain = both(matches_of(pattern, rows, keyed(range(140))))
    assert found == plain[0] == [(69, 1, []), (139, 70, [])]


@pytest.mark.parametrize("kind", WithinType)
def test_times_at_the_ends_of_their_range(kind: WithinType) -> None:
    """A window that would end after all times never ends, one before all times holds nothing."""
    pattern = (
        Pattern.begin("a").where("k = 'a'").followedByAny("b").where("k = 'b'")
        .within(timedelta(days=100_000_000), kind)
    )  # fmt: skip
    least, most = -(1 << 63), (1 << 63) - 1
    times = [least, least, least + 5, 0, most - 5, most - 2, most]
    rows = [{"k": name} for name in "abaaaba"]
    kernel, plain = both(matches_of(pattern, rows, keyed(times, watermark=most)))
    assert kernel == plain
    assert [count for _, count, _ in kernel[0]] == [1, 1]


def test_errors_of_expressions() -> None:
    """An overflow is the error of the condition that asks, in both, as when matches are listed."""
    rows = [{"k": "a", "x": 2**62}] * 3 + [{"k": "b", "x": 1}]
    looping = Pattern.begin("a").where("k = 'a'").oneOrMore()
    asks = looping.followedBy("b").where("k = 'b' and sum(a.x) > 0")
    never = looping.followedBy("b").where("k = 'b'").where("k = 'c' and sum(a.x) > 0")
    errors = []
    for counter in (True, False):
        matches = matches_of(asks, rows, keyed(range(4)))
        if not counter:
            matches.pattern = attrs.evolve(matches.pattern, counter=None)
        with pytest.raises(ConditionError, match="overflow") as caught:
            list(matches.totals_by_event([]))
        errors.append(str(caught.value))
    with pytest.raises(ConditionError) as listed:
        match(asks, rows)
    assert errors[0] == errors[1]
    assert str(listed.value).split(" (")[0] == errors[0].split(" (")[0]
    assert both(matches_of(never, rows, keyed(range(4)))) == (([], 0, None), ([], 0, None))


def test_errors_of_functions() -> None:
    """A function that fails is named, with the event's time."""
    pattern = Pattern.begin("a").where(lambda event: event.name / 2 == 1)
    rows = [Event("a", 0, 1)]
    errors = []
    for counter in (True, False):
        matches = matches_of(pattern, rows, keyed([7]))
        if not counter:
            matches.pattern = attrs.evolve(matches.pattern, counter=None)
        with pytest.raises(ConditionError) as caught:
            list(matches.totals_by_event([]))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "event time 7 ms" in errors[0]


def test_arguments_that_do_not_go_together() -> None:
    """Nothing is read beyond the end of an array."""
    nfa = NFACompiler.compile(Pattern.begin("a").where("k = 'a'"))
    counter = CompressiblePattern.of(nfa, None, nfa.stages).counter
    assert counter is not None
    count = counter.count
    times, bounds = np.zeros(2, np.int64), np.asarray([0, 2])
    live = tuple(() for _ in nfa.tables)
    none = (None, -1, False)
    with pytest.raises(ValueError, match="as many weights"):
        count(live, times, times, bounds, 0, None, 0, np.zeros(1, np.uint64), 0, False)
    with pytest.raises(ValueError, match="within the arrays"):
        count(live, times, times, np.asarray([0, 3]), 0, None, 0, *none)
    with pytest.raises(ValueError, match="for each state"):
        count((), times, times, bounds, 0, None, 0, *none)
    with pytest.raises(ValueError, match="known slots"):
        count(tuple((0,) for _ in nfa.tables), times, times, bounds, 0, None, 0, *none)
    looks_back: Any = Pattern.begin("a").where(lambda event, ctx: True)
    with pytest.raises(CepError, match="a function of the event and the partial match"):
        CompressiblePattern.of(NFACompiler.compile(looks_back), None, ())
    skipping = Pattern.begin("a", AfterMatchSkipStrategy.skipToNext()).where("k = 'a'")
    with pytest.raises(CepError, match="skip"):
        CompressiblePattern.of(NFACompiler.compile(skipping), None, ())


@pytest.mark.parametrize(
    "clause", ["count(a) < 2 or x > last(a.x, 1)", "count(a) < 3 or x > stddev(a.x)"]
)
def test_what_slots_become_keeps_partial_matches_apart(clause: str) -> None:
    """Those that agree in ``last(a.x, 1)`` or ``stddev(a.x)`` may differ in it after an event."""
    pattern = Pattern.begin("a").where("k = 'a'").where(clause).oneOrMore().allowCombinations()
    pattern = pattern.followedByAny("b").where("k = 'b'")
    for seed in range(20):
        chance = random.Random(seed)
        rows = [{"k": chance.choice("aaab"), "x": chance.randrange(4)} for _ in range(9)]
        counted, plain = both(matches_of(pattern, rows, keyed(range(9))))
        assert counted == plain
        assert sum(count for _, count, _ in counted[0]) == len(match(pattern, rows))
