# SPDX-License-Identifier: Apache-2.0
"""Ordered lists give the matches of the automaton for chains of followedByAny."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any
from unittest import mock

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import AfterMatchSkipStrategy, NotSupportedError, Pattern, WithinType
from pyflinkcep.conditions import BooleanConditions, ExpressionCondition, RichNotCondition
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.queries import chain_frames
from pyflinkcep.testing import match
from tests.shorthand import ms

Events = list[dict[str, Any]]

SINGLE = ("name = 'a'", "name = 'b'", "name <> 'c'", "n > 1", "x IS NULL OR n = 2")
JOINING = (
    "{own} AND n > last({s}.n)",
    "{own} AND n > 0.5D * first({s}.n) - 1",
    "x = max({s}.x)",
    "NOT (n >= min({s}.n) OR x > sum({s}.x)) AND {own}",
    "{own} OR x < last({s}.x)",
    "last({s}.x) IS NULL OR n / 2D > last({s}.x)",
    "n BETWEEN first({s}.n) - 1D AND first({s}.n) + 1D",
    "name > last({s}.name)",
    "name IN (last({s}.name), 'c')",
    "coalesce(x, last({s}.x), 0D) <= n",
    "CASE WHEN {own} THEN n > last({s}.n) ELSE x >= last({s}.x) END",
    "if(last({s}.x) > 0.5D, name, last({s}.name)) = 'a'",
    "abs(x - last({s}.x)) < 1 OR nullif(x, last({s}.x)) <=> x",
    "greatest(n, first({s}.n), 1) = 2 OR least(x, last({s}.x)) > 0.5D",
    "(last({s}.x) > 0.5D) = (n > 1) AND last({s}.name) LIKE '_'",
    "coalesce(last({s}.name), name) LIKE 'b%'",
)


@attrs.frozen
class Chain:
    """A chain of stages, as data."""

    stages: tuple[tuple[str, str], ...]
    window: int | None

    def build(self) -> Pattern:
        """Return the pattern."""
        pattern: Any = Pattern
        for number, (op, condition) in enumerate(self.stages):
            pattern = getattr(pattern, op)(f"s{number}").where(condition)
        return pattern if self.window is None else pattern.within(ms(self.window))


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Return chains of one to four stages, with NOT stages between them."""
    stages = [("begin", draw(st.sampled_from(SINGLE)))]
    taking = ["s0"]
    for _ in range(draw(st.integers(0, 3))):
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            stages.append(("notFollowedBy", draw(st.sampled_from(SINGLE))))
        own, earlier = draw(st.sampled_from(SINGLE)), draw(st.sampled_from(taking))
        condition = draw(st.sampled_from(("{own}", *JOINING))).format(own=f"({own})", s=earlier)
        taking.append(f"s{len(stages)}")
        stages.append(("followedByAny", condition))
    return Chain(tuple(stages), draw(st.one_of(st.none(), st.integers(1, 9))))


@st.composite
def streams(draw: st.DrawFn) -> Events:
    """Return events of two keys, some of them at one time, with NULL here and there."""
    row = st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 3),
        st.sampled_from([None, 0.5, 1.0, float("nan")]),
        st.sampled_from([0, 1, 1, 3]),
        st.integers(0, 1),
    )
    time, found = 0, []
    for number, (name, n, x, step, key) in enumerate(draw(st.lists(row, max_size=14))):
        time += step
        found.append({"id": number, "name": name, "n": n, "x": x, "ts": time, "key": key})
    # The types of columns are seen from values.
    return [*found, {"id": -1, "name": "z", "n": 9, "x": 9.0, "ts": 10**6, "key": 2}]


def matched(pattern: Pattern, events: Events, evaluation: str) -> Counter[str]:
    """Return the matches by the events' numbers, each with how often it is there."""
    found = match(pattern, events, timestamp="ts", key="key", evaluation=evaluation)
    return ids(found)


def ids(matches: Iterable[dict[str, list[Any]]]) -> Counter[str]:
    return Counter(repr([(s, [e["id"] for e in own]) for s, own in m.items()]) for m in matches)


@settings(max_examples=settings.default.max_examples * 4)
@given(chains(), streams(), st.booleans())
def test_lists_have_the_matches_of_the_automaton(
    chain: Chain, events: Events, with_kernel: bool
) -> None:
    """Whatever the chain, lists have each match as often, with the kernel and without."""
    pattern = chain.build()
    expected = matched(pattern, events, "nfa")
    without = mock.patch("pyflinkcep.engines.lists.matching.compiled_module", return_value=None)
    if with_kernel:
        assert matched(pattern, events, "eventLists") == expected
    else:
        with without:
            assert matched(pattern, events, "eventLists") == expected


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(JOINING), min_size=2, max_size=2),
    st.lists(streams(), min_size=2, max_size=2),
    st.sampled_from(["nfa", "backtracking"]),
    st.sampled_from("01"),
)
def test_runs_of_the_chains_query_have_them_too(
    joining: list[str], streams: list[Events], evaluation: str, kernel: str
) -> None:
    """Where the events choose runs, the matches are those of lists, if stages share no event."""
    stages = [("begin", "name = 'a'")]
    for number, condition in enumerate(joining, 1):
        own = f"name = '{'abc'[number]}'"
        text = condition.format(own=own, s=f"s{number - 1}")
        stages.append(("followedByAny", f"{own} AND ({text})"))
    pattern = Chain(tuple(stages), 30).build()
    later = [{**event, "ts": event["ts"] + 100} for event in streams[1][:-1]]
    events = [*streams[0][:-1], *later, streams[0][-1]]
    expected = matched(pattern, events, "eventLists")
    freely = partial(chain_frames, evaluation="auto")
    with (
        mock.patch.dict(os.environ, PYFLINKCEP_KERNEL=kernel),
        mock.patch("pyflinkcep.tables.match.chain_frames", freely),
        mock.patch("pyflinkcep.engines.queries.resolved", return_value=evaluation),
        mock.patch.object(EventLists, "of_positions", side_effect=AssertionError),
    ):
        assert matched(pattern, events, "eventLists") == expected


A = Pattern.begin("a").where("n = 1")
ANY = A.followedByAny("b")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (A.followedBy("b"), "'b' is not joined by followedByAny"),
        (A.next("b"), "'b' is not joined by followedByAny"),
        (A.notNext("n").followedByAny("b"), "'n' is joined by notNext"),
        (A.notFollowedBy("n").within(ms(5)), "ends with the NOT stage 'n'"),
        (ANY.oneOrMore(), "'b' repeats"),
        (ANY.optional(), "'b' repeats or is optional"),
        (A.followedByAny(Pattern.begin("c").next("d")), "a group"),
        (ANY.within(ms(5), WithinType.PREVIOUS_AND_CURRENT), "a gap between"),
        (ANY.where("n + last(a.n) > 1"), "overflow"),
        (ANY.where("n / last(a.n) > 1"), "divide by zero"),
        (ANY.where("n / coalesce(last(a.n), 2) > 1"), "divide by zero"),
        (ANY.where("n / if(n > last(a.n), n, 2D) > 1"), "divide by zero"),
        (ANY.where("avg(a.n) > n"), "averages"),
        (ANY.where("count(a.*) > n"), "counts"),
        (ANY.where("n > avg(match.n)"), "'match', which is not an earlier stage"),
        (ANY.where("last(a.s) || s = 'aa'"), "CONCAT is computed for partial matches only"),
        (ANY.where(lambda e, ctx: True), "function of the event and the partial match"),
        (A.notFollowedBy("x").where("n > last(a.n)").followedByAny("b"), "reads other stages"),
        (
            Pattern.begin("a", AfterMatchSkipStrategy.skipToNext()).followedByAny("b"),
            "skip strategy",
        ),
    ],
)
def test_what_lists_refuse(pattern: Pattern, why: str) -> None:
    """If the answers could differ, lists refuse the pattern and say why."""
    with pytest.raises(NotSupportedError, match=why):
        match(pattern, [{"n": 1, "s": "a"}], evaluation="eventLists")


def test_not_around_sql_over_stages_is_refused() -> None:
    """NULL under NOT counts as true for a partial match, so lists refuse it."""
    over = ANY.where("n > last(a.n)").getCondition()
    pattern = A.followedByAny("b").where(RichNotCondition(over))
    with pytest.raises(NotSupportedError, match="NULL under it"):
        match(pattern, [{"n": 1}], evaluation="eventLists")


def test_constant_conditions() -> None:
    """A condition that always or never holds does so in lists too, also beside SQL."""
    events = [{"n": n} for n in (1, 1, 2)]
    for value in (True, False):
        fixed = BooleanConditions(value)
        for pattern in (ANY.where(fixed), ANY.where("n > last(a.n)").or_(fixed)):
            assert len(match(pattern, events, evaluation="eventLists")) == len(
                match(pattern, events)
            )


def test_answers_are_combined() -> None:
    """AND, OR and NOT of conditions about one event say which events fit a stage."""
    no = RichNotCondition(ExpressionCondition("n = 2"))
    pattern = A.followedByAny("b").where(no).or_("n = 3").where("n < 5")
    events = [{"n": n} for n in (1, 2, 3, 5, 4)]
    assert [m["b"][0]["n"] for m in match(pattern, events, evaluation="eventLists")] == [3, 4]


def test_lists_have_no_timeouts() -> None:
    """Who asks lists for timeouts, or for late events, is told to take the automaton."""
    found = match(ANY, [{"n": 1}, {"n": 2}], evaluation="eventLists")
    assert len(found) == 1
    with pytest.raises(NotSupportedError, match="timeouts"):
        _ = found.timeouts
    with pytest.raises(NotSupportedError, match="delayThreshold"):
        match(ANY, [{"n": 1}], evaluation="eventLists", delayThreshold=ms(1))
