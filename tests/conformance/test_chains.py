# SPDX-License-Identifier: Apache-2.0
"""Recorded patterns in other forms: as lists, in groups, compressed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import attrs
import numpy as np
import pytest

from pyflinkcep import CepError, Pattern
from pyflinkcep.engines.compressed.counting import paths
from pyflinkcep.engines.compressed.patterns import (
    CompressiblePattern,
    EventViews,
    KeyedEvents,
    PatternMatches,
)
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.testing import NFATestHarness, match
from tests.conformance.cases import (
    NFA_FILES,
    Case,
    build_pattern,
    chunks,
    is_iterative,
    load,
    make_event,
    match_ids,
)
from tests.conformance.drivers import nfa_answers
from tests.kernel_harness import HAS_KERNEL, KernelNFAHarness

pytestmark = pytest.mark.slow


def by_lists(case: Case) -> list[Any] | None:
    """The matches by ordered lists, in order; None if they do not answer the pattern."""
    rows = [row for row in case["events"] if "id" in row]
    times = {row["id"]: row["ts"] for row in rows}
    events = [make_event(row) for row in rows]
    try:
        found = match(build_pattern(case), events, lambda e: times[e.id], evaluation="eventLists")
    except NotSupportedError:
        return None
    return sorted(match_ids(m) for m in found)


def test_recorded_chains() -> None:
    """Every recorded pattern that lists take has Flink's matches; there are enough of them."""
    cases = [c for _, part in chunks(NFA_FILES, 400) for c in part if not c["expect"].get("error")]
    answered = 0
    for case in cases:
        found = by_lists(case)
        if found is not None:
            answered += 1
            assert found == sorted(m["match"] for m in case["expect"]["matches"]), case["id"]
    assert answered > 30


# --- recorded patterns, rewritten with ``oneOf`` and ``allOf``, have the matches that Flink gave


Group = Callable[[Pattern], Pattern]


def one_of(rest: Pattern) -> Pattern:
    """The rest, or what never matches."""
    return Pattern.oneOf(rest, Pattern.begin("never").where(lambda _: False))


GROUPS: tuple[Group, ...] = (Pattern.oneOf, Pattern.allOf, one_of)
"""The last makes timeouts of its own, for the alternative that never matches is waited for, too;
so it holds back what a skip strategy decides."""


def rewritten(case: Case) -> Iterator[tuple[Group, Pattern]]:
    """Yield the pattern of a case with its end, from each stage on, in a group of one pattern."""
    stages = [dict(stage) for stage in case["pattern"]]
    windows = [
        mod[1]
        for stage in stages
        for mod in stage.get("mods", ())
        if mod[0] == "within" and mod[2:] != ["PREVIOUS_AND_CURRENT"]
    ]
    for stage in stages:
        mods = stage.get("mods", ())
        stage["mods"] = [m for m in mods if m[0] != "within" or m[2:] == ["PREVIOUS_AND_CURRENT"]]
    for at, stage in enumerate(stages):
        if stage["op"].startswith("not") or (windows and min(windows) <= 0):
            continue
        rest = [{**stage, "op": "begin"}, *stages[at + 1 :]]
        for group in GROUPS:
            if group is one_of and case["skip"] is not None:
                continue
            try:
                whole = group(build_pattern({"pattern": rest, "skip": None}))
                if at:
                    before = build_pattern({"pattern": stages[:at], "skip": case["skip"]})
                    pattern = getattr(before, stage["op"])(whole)
                else:
                    skip = build_pattern({"pattern": stages[:1], "skip": case["skip"]})
                    pattern = Pattern.begin(whole, skip.getAfterMatchSkipStrategy())
                if windows:
                    pattern = pattern.within(timedelta(milliseconds=min(windows)))
                yield group, pattern
            except CepError:
                continue


def check_groups(case: Case) -> int:
    """Hold each rewritten pattern to Flink's answer; return how many there are."""
    count = 0
    for group, pattern in rewritten(case):
        try:
            harness = NFATestHarness(pattern, case["timeouts"])
        except CepError:
            continue
        rows = list(enumerate(case["events"]))
        found = nfa_answers(harness, rows)
        assert found[0] == case["expect"]["matches"], f"{case['id']}: {pattern}"
        if group is not one_of:
            assert found[1] == case["expect"]["timeouts"], f"{case['id']}: {pattern}"
        if HAS_KERNEL:
            assert nfa_answers(KernelNFAHarness(pattern, case["timeouts"]), rows) == found, case[
                "id"
            ]
        count += 1
    return count


def test_recorded_groups() -> None:
    """A group of one pattern changes no match, no timeout and no order, whatever is before it."""
    cases = [c for file in NFA_FILES for c in load(file) if not c["expect"].get("error")]

    assert sum(map(check_groups, cases[::30])) > 200


# --- compressed matches of patterns: their number and the matches are Flink's, duplicates included


FILES = ("flink_itcases", "nfa_cases")
MIN_TIME = -(1 << 63)


def usable(case: Case) -> bool:
    """No skip strategy, no error, no condition that looks at the partial match."""
    if case["skip"] not in (None, {"type": "NO_SKIP"}) or case["expect"].get("error"):
        return False
    return not any(map(is_iterative, conditions(case["pattern"])))


def conditions(stages: Any) -> Iterator[Any]:
    for stage in stages:
        yield from conditions(stage.get("group", ()))
        yield from (m[1] for m in stage.get("mods", ()) if m[0] in ("where", "or", "until"))


def matches_of(case: Case, by_kernel: bool) -> PatternMatches:
    """The matches of a case's pattern, counted in the kernel or by the plain path."""
    nfa = NFACompiler.compile(build_pattern(case), False)
    pattern = CompressiblePattern.of(nfa, None, nfa.stages)
    if not by_kernel:
        pattern = attrs.evolve(pattern, counter=None)
    shown = [(row["ts"], make_event(row)) for row in case["events"] if "id" in row]
    times = np.asarray([time for time, _ in shown], np.int64)
    last = case["events"][-1]
    reached = MIN_TIME if "id" in last else last["ts"]
    events = KeyedEvents(times, None, np.asarray([0, len(shown)]), watermark=reached)
    views = EventViews(lambda at: shown[at][1], lambda at: (), (), lambda: [0] * len(shown))
    return PatternMatches(pattern, events, views)


def multiset(matches: Any) -> Counter[str]:
    return Counter(repr(sorted(match)) for match in matches)


def check(case: Case) -> None:
    wanted = [m["match"] for m in case["expect"]["matches"]]
    ids = [row["id"] for row in case["events"] if "id" in row]
    matches = matches_of(case, False)
    unpacked = []
    for way in (
        way for _, roots in matches.roots_by_event() for root in roots for way in paths(root)
    ):
        match: dict[str, list[Any]] = {}
        for stage, at in way:
            match.setdefault(matches.pattern.nfa.stages[stage], []).append(ids[at])
        unpacked.append([[stage, *taken] for stage, taken in match.items()])
    assert multiset(unpacked) == multiset(wanted), case["id"]
    counted = list(matches.totals_by_event([]))
    assert sum(count for _, count, _ in counted) == len(wanted), case["id"]
    if HAS_KERNEL:
        assert list(matches_of(case, True).totals_by_event([])) == counted, case["id"]


@pytest.mark.parametrize(("label", "cases"), chunks(FILES, 400))
def test_recorded_counts(label: str, cases: tuple[Case, ...]) -> None:
    """Counting and unpacking give the matches that Flink gave."""
    for case in filter(usable, cases):
        check(case)


def test_skip_strategies_are_refused() -> None:
    """A skip strategy looks at single matches, which compressed ones have not."""
    skipping = next(
        case
        for _, cases in chunks(FILES, 400)
        for case in cases
        if case["skip"]
        and case["skip"]["type"] == "SKIP_TO_NEXT"
        and not case["expect"].get("error")
    )
    with pytest.raises(NotSupportedError, match="compressed matches"):
        matches_of(skipping, True)
