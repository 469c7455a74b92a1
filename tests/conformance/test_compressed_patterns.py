# SPDX-License-Identifier: Apache-2.0
"""Compressed matches of patterns: their number and the matches are Flink's, duplicates included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pyflinkcep.compact.counting import CountPayloads
from pyflinkcep.compact.nodes import NodePayloads, paths
from pyflinkcep.compact.pattern_runs import PatternRuns
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.nfa import EventEvaluation, NFACompiler
from tests.conformance.cases import Case, build_pattern, chunks, is_iterative, make_event

FILES = ("flink_itcases", "nfa_cases")


def usable(case: Case) -> bool:
    """No skip strategy, no error, no condition that looks at the partial match."""
    if case["skip"] not in (None, {"type": "NO_SKIP"}) or case["expect"].get("error"):
        return False
    return not any(map(is_iterative, conditions(case["pattern"])))


def conditions(stages: Any) -> Iterator[Any]:
    for stage in stages:
        yield from conditions(stage.get("group", ()))
        yield from (m[1] for m in stage.get("mods", ()) if m[0] in ("where", "or", "until"))


def carried(case: Case, payloads: Any) -> tuple[list[str], list[Any]]:
    """The stages of a case's pattern, and what its completed matches carry."""
    nfa = NFACompiler.compile(build_pattern(case), False)
    runs, evaluation, found = PatternRuns(nfa, payloads), EventEvaluation(), []
    for at, row in enumerate(case["events"]):
        found += runs.advance(row["ts"])
        if "id" in row:
            evaluation.begin(make_event(row), row["ts"])
            found += runs.process(at, row["ts"], evaluation, tuple)
    return list(nfa.stages), found


def multiset(matches: Any) -> Counter[str]:
    return Counter(repr(sorted(match)) for match in matches)


def check(case: Case) -> None:
    wanted = [m["match"] for m in case["expect"]["matches"]]
    stages, roots = carried(case, NodePayloads())
    unpacked = []
    for way in (way for root in roots for way in paths(root)):
        match: dict[str, list[Any]] = {}
        for stage, at in way:
            match.setdefault(stages[stage], []).append(case["events"][at]["id"])
        unpacked.append([[stage, *ids] for stage, ids in match.items()])
    assert multiset(unpacked) == multiset(wanted), case["id"]
    _, counts = carried(case, CountPayloads())
    assert sum(count for count, _ in counts) == len(wanted), case["id"]


@pytest.mark.parametrize(("label", "cases"), chunks(FILES, 400))
def test_recorded_matches(label: str, cases: tuple[Case, ...]) -> None:
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
        carried(skipping, CountPayloads())
