# SPDX-License-Identifier: Apache-2.0
"""Recorded patterns, rewritten with ``oneOf`` and ``allOf``, have the matches that Flink gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from pyflinkcep import CepError, Pattern
from pyflinkcep.testing import NFATestHarness
from tests.conformance.cases import NFA_FILES, Case, build_pattern, load, make_event, match_ids
from tests.kernel_harness import HAS_KERNEL, KernelNFAHarness

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


def answers(case: Case, harness: Any) -> tuple[list[Any], list[Any]]:
    """The matches of a pattern on the events of a case, and the timeouts."""
    found, timeouts = [], []
    for at, row in enumerate(case["events"]):
        ready, expired = harness.advanceTime(row["ts"])
        found += [{"at": at, "pending": True, "match": match_ids(m)} for m in ready]
        timeouts += [{"at": at, "ts": ts, "match": match_ids(m)} for m, ts in expired]
        if "id" in row:
            matches = harness.process(make_event(row), row["ts"])
            found += [{"at": at, "match": match_ids(m)} for m in matches]
    return found, timeouts


def check(case: Case) -> int:
    """Hold each rewritten pattern to Flink's answer; return how many there are."""
    count = 0
    for group, pattern in rewritten(case):
        try:
            harness = NFATestHarness(pattern, case["timeouts"])
        except CepError:
            continue
        found = answers(case, harness)
        assert found[0] == case["expect"]["matches"], f"{case['id']}: {pattern}"
        if group is not one_of:
            assert found[1] == case["expect"]["timeouts"], f"{case['id']}: {pattern}"
        if HAS_KERNEL:
            assert answers(case, KernelNFAHarness(pattern, case["timeouts"])) == found, case["id"]
        count += 1
    return count


def test_recorded_matches() -> None:
    """A group of one pattern changes no match, no timeout and no order, whatever is before it."""
    cases = [c for file in NFA_FILES for c in load(file) if not c["expect"].get("error")]

    assert sum(map(check, cases[::30])) > 200
