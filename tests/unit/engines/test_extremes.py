# SPDX-License-Identifier: Apache-2.0
"""Times at the ends of 64 bits, and numbers that doubles do not hold, in every evaluation."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from math import fsum
from statistics import stdev
from typing import Any

import numpy as np
import pytest

from pyflinkcep import Pattern
from pyflinkcep.engines import queries
from pyflinkcep.engines.lists.frame import earlier, later
from pyflinkcep.engines.queries import QueryPlan
from pyflinkcep.engines.streamed_queries import Portion, StreamedQuery
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.values import aggregated
from pyflinkcep.sase import parse
from pyflinkcep.testing import match, matchSase
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK

QUERIES = [
    "SEQ(A a, B b)", "SEQ(A+ a[], B b)", "SEQ(A a, ~N n, B b)", "SEQ(A a, B b, ~N n)",
    "SEQ(~N n, A a, B b)", "SEQ(A a, B+ b[])", "A a;B b", "A a;N^1 n;B b", "N^1 n;A a",
    "A a;N^1 n", "A a;!N;B b", "!N;A a;B b", "A a;B b;!N",
]  # fmt: skip
PATHS = ("0", "1")
FIRST = MIN_WATERMARK + 1
"""The first time on lists, where the one before stands for a missing time."""


def events(random_: random.Random) -> list[dict[str, Any]]:
    """Return events whose times are near the first or the last one."""
    near = [(FIRST, 1), (MAX_WATERMARK, -1)]
    ends = random_.choice([near, near[:1], near[1:]])
    times = []
    for _ in range(random_.randint(2, 7)):
        end, way = random_.choice(ends)
        times.append(end + way * random_.choice([0, 1, 2, 3, 5, 8]))
    return [
        {"id": n, "ts": time, "type": random_.choice("ABN")} for n, time in enumerate(sorted(times))
    ]


def ids(matches: Any) -> Counter[str]:
    return Counter(
        str({name: [e["id"] for e in own] for name, own in match.items()}) for match in matches
    )


def evaluations(pattern: str) -> Sequence[str]:
    if ";" in pattern:
        return ("eventLists",)
    return ("nfa", "backtracking") if "+" in pattern else ("nfa", "backtracking", "eventLists")


def moved(given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the same events at ordinary times."""
    return [
        {**e, "ts": e["ts"] - FIRST if e["ts"] < 0 else e["ts"] - MAX_WATERMARK + 10**12}
        for e in given
    ]


@pytest.mark.parametrize("pattern", QUERIES)
def test_windows_do_not_overflow(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries on times near ±2⁶³ have the matches of the same events at ordinary times."""
    random_ = random.Random(pattern)
    for _ in range(12):
        given, window = events(random_), random_.choice([1, 3, 10])
        text = f"PATTERN {pattern} WITHIN {window}"
        output = random_.choice(["all", "onePerStart", "nonOverlapping"])
        wanted = ids(matchSase(text, moved(given), "ts", output=output))
        total = sum(ids(matchSase(text, moved(given), "ts")).values())
        for path in PATHS:
            monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
            for evaluation in evaluations(pattern):
                found = matchSase(text, given, "ts", evaluation=evaluation, output=output)
                assert ids(found) == wanted, (text, output, evaluation, path, given)
            assert matchSase(text, given, "ts", compressed=True).count() == total


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b, ~N n)", "SEQ(A a, B b)", "A a;B b;!N"])
@pytest.mark.parametrize("output", ["all", "onePerStart", "nonOverlapping"])
def test_streamed_windows_do_not_overflow(pattern: str, output: str) -> None:
    """A window that ends after the last time ends with the input, and is waited for."""
    query = parse(f"PATTERN {pattern} WITHIN {2**52}")
    table = EventTable([MAX_WATERMARK - 9, MAX_WATERMARK - 7], ["A", "B"], {}, {}, [0, 0])
    for evaluation in evaluations(pattern):
        streamed = StreamedQuery(QueryPlan(query, evaluation, output))
        found, kept = streamed.matches(Portion(table, [0, 2], [0], [0], MAX_WATERMARK - 5))
        assert all(due is None or due <= MAX_WATERMARK for due in kept.deadlines)
        rest, _ = streamed.matches(Portion(table, [0, 2], [2], kept.free, MAX_WATERMARK))
        assert [*found, *rest] == [{"a": [0], "b": [1]}]


def test_patterns_at_the_ends_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel, plain path and event lists agree, and so do timeouts."""
    first = Pattern.begin("a").where("type = 'A'")
    patterns = [
        first.followedBy("b").where("type = 'B'"),
        first.followedByAny("b").where("type = 'B'"),
        first.oneOrMore().followedBy("b").where("type = 'B' AND count(a.*) > 0"),
        first.notFollowedBy("n").where("type = 'N'"),
    ]
    random_ = random.Random(9)
    for _ in range(60):
        given = events(random_)
        window = random_.choice([timedelta(milliseconds=3), timedelta.max])
        pattern = random_.choice(patterns).within(window)
        found = []
        for path in PATHS:
            monkeypatch.setenv("PYFLINKCEP_KERNEL", path)
            listed = match(pattern, given, "ts")
            found.append((ids(listed), ids(t.match for t in listed.timeouts)))
            if "followedByAny" in repr(pattern):
                lists = match(pattern, given, "ts", evaluation="eventLists")
                assert ids(lists) == found[-1][0]
        assert found[0] == found[1], (pattern, given)


def test_times_saturate() -> None:
    """Times are moved to the ends of 64 bits, not past them."""
    times = np.array([MIN_WATERMARK, MIN_WATERMARK + 5, 0, MAX_WATERMARK - 5, MAX_WATERMARK])
    assert later(times, 7).tolist()[-3:] == [7, MAX_WATERMARK, MAX_WATERMARK]
    assert earlier(times, 7).tolist()[:3] == [MIN_WATERMARK, MIN_WATERMARK, -7]


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("evaluation", ["nfa", "backtracking", "eventLists"])
def test_whole_numbers_beside_floats_are_floats(evaluation: str) -> None:
    """As on Spark, where a column has one type: 2⁵³ + 1 beside floats is 2⁵³."""
    given = [{"type": "A", "x": 2**53 + 1}, {"type": "B", "x": float(2**53)}]
    for comparison, count in (("=", 1), (">", 0), ("<=", 1)):
        text = f"PATTERN SEQ(A a, B b) WHERE a.x {comparison} b.x"
        assert len(matchSase(text, given, evaluation=evaluation)) == count
    for large, type_ in (([2**63, 1], "bigint"), ([2**1100, 0.5], "double")):
        own = [{**event, "x": x} for event, x in zip(given, large, strict=True)]
        with pytest.raises(InputError, match=f"does not fit {type_}"):
            matchSase("PATTERN SEQ(A a, B b) WHERE a.x + 1 > b.x", own, evaluation=evaluation)


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("evaluation", ["nfa", "backtracking", "eventLists"])
def test_numbers_beyond_64_bits_compare(evaluation: str) -> None:
    """Keys and identifiers on lists may be larger than Spark's numbers, NULL among them."""
    values = [2**100, 2**100 + 1, None, 2**100 + 1]
    given = [{"type": "AB"[n % 2], "x": x} for n, x in enumerate(values)]
    for condition, count in (("b.x > a.x", 2), ("b.x = a.x", 0), ("[x]", 0), ("b.x <> 7", 3)):
        text = f"PATTERN SEQ(A a, B b) WHERE {condition}"
        assert len(matchSase(text, given, evaluation=evaluation)) == count
        assert matchSase(text, given, compressed=True).count() == count


@pytest.mark.parametrize(
    "pattern", ["SEQ(A a, B+ b[])", "SEQ(A a, (B b | C c))", "A a;B b", "A a;B^1 b;C c"]
)
@pytest.mark.usefixtures("each_path")
def test_totals_of_values_without_an_order_or_a_sum(pattern: str) -> None:
    """NaN is above all others and infinities have their sums, in whatever order events come."""
    random_, met = random.Random(pattern), 0
    for _ in range(12):
        values = [math.nan, math.inf, 0.5, -1.5, 4.0, None, random_.choice([1.0, -math.inf])] * 2
        random_.shuffle(values)
        given = [{"type": random_.choice("ABBC"), "ts": n, "x": x} for n, x in enumerate(values)]
        text = f"PATTERN {pattern} WITHIN 5"
        listed = [e["x"] for m in matchSase(text, given, "ts") for e in m.get("b", ())]
        met += len(listed)
        asked = ("min", "max", "sum", "avg", "count")
        wanted = {name: aggregated(name, listed) for name in asked}
        if wanted["sum"] is not None and math.isfinite(wanted["sum"]):
            wanted["sum"] = math.fsum(x for x in listed if x is not None)
            wanted["avg"] = wanted["sum"] / wanted["count"]
        found = matchSase(text, given, "ts", compressed=True)
        texts = [f"{name}(b.x) AS {name}" for name in asked]
        assert repr(found.aggregate(*texts)) == repr(wanted), given
        texts[-1] = "count(b.x) AS n"
        one = matchSase(f"{text[:-1]}100 SLIDE 100 RETURN {', '.join(texts)}", given, "ts")
        whole = matchSase(f"{text[:-1]}99", given, "ts", compressed=True).aggregate(*texts)
        own = {name: value for row in one for name, value in row.items() if name in whole}
        assert repr(own) == repr(whole if one else {})
    assert met > 4


@pytest.mark.parametrize("pattern", ["SEQ(A a, B+ b[])", "A a;B^1 b;C c"])
@pytest.mark.usefixtures("each_path")
def test_values_of_any_type_are_counted(pattern: str) -> None:
    """Counting compares nothing, so that values need no order."""
    values = [{"y": 1}, [2], {3}, None, 1 + 1j, [2]]
    given = [{"type": kind, "x": x} for kind, x in zip("ABBBBC", values, strict=True)]
    text = f"PATTERN {pattern}"
    listed = [e for m in matchSase(text, given) for e in m["b"] if e["x"] is not None]
    found = matchSase(text, given, compressed=True).aggregate("count(b.x) AS n")
    assert found == {"n": len(listed)}
    assert listed


# --- compressed matches of ``;`` queries are those that are listed, and are not held


PATTERNS = [
    "A a;B b", "A a;!N n;B b", "A a;B b;D d", "!N n;A a;B b", "A a;B b;!N n", "A a;N^1 n;B b",
    "N^2 n;A a;B b", "A a;B b;N^1 n", "A a;A b", "A a;!A n;B b",
]  # fmt: skip
CONDITIONS = ["", "a.x < b.x", "[k]", "[k] AND a.x < b.x", "a.x + b.x > 6 AND [k = 1]", "a.s = b.s"]


def rows_of(random_: random.Random) -> list[dict[str, Any]]:
    """Return rows_of with NULLs, many of equal time."""
    time, made = 0, []
    for n in range(random_.randint(1, 30)):
        time += random_.choice([0, 0, 1, 2])
        event = {
            "x": random_.choice([None, *range(9)]),
            "y": random_.choice([None, 0.1, 0.2, 1e300, 5.5]),
            "k": random_.choice([1, 2, None]),
            "s": random_.choice("pq"),
        }
        made.append({"id": n, "ts": time, "type": random_.choice(["A", "B", "N", "D"]), **event})
    return made


def ids_of(matches: Any) -> Counter[str]:
    return Counter(
        str({v: [e["id"] for e in match[v]] for v in sorted(match)}) for match in matches
    )


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("many", [0, 1 << 22], ids=["automaton", "lists"])
def test_counts_and_totals_of_elements(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by lists or by the automaton: the number of matches, and exact totals over them."""
    monkeypatch.setattr(queries, "_MANY", many)
    random_ = random.Random(many)
    for _ in range(120):
        pattern, condition = random_.choice(PATTERNS), random_.choice(CONDITIONS)
        if " n" in pattern and "^" not in pattern and random_.random() < 0.5:
            condition += " AND " * bool(condition) + random_.choice(["n.x < b.x", "n.x > 3"])
        where = f"WHERE {condition}" if condition else ""
        text = f"PATTERN {pattern} {where} WITHIN {random_.choice([4, 9, 30])}"
        given = rows_of(random_)
        listed = matchSase(text, given, "ts")
        found = matchSase(text, given, "ts", compressed=True)
        assert found.count() == len(listed), (text, given)
        assert ids_of(found.unpack()) == ids_of(listed)
        for variable in listed[0] if listed else ["a"]:
            taken = [event for match in listed for event in match[variable]]
            xs, ys = ([e[name] for e in taken if e[name] is not None] for name in "xy")
            assert list(
                found.aggregate(
                    *(f"{f}({variable}{a})" for f, a in [("count", ""), ("count", ".y")]),
                    *(f"{f}({variable}.x)" for f in ("sum", "avg", "min", "max")),
                    f"max({variable}.s)",
                    f"sum({variable}.y)",
                    f"stddev({variable}.x)",
                ).values()
            ) == [
                len(taken), len(ys),
                sum(xs) if xs else None, sum(xs) / len(xs) if xs else None,
                min(xs, default=None), max(xs, default=None),
                max((event["s"] for event in taken), default=None),
                pytest.approx(fsum(ys)) if ys else None,
                stdev(xs) if len(xs) > 1 else None,
            ], (text, given)  # fmt: skip


@pytest.mark.parametrize("pattern", ["A a;B b", "A a;N^1 n;B b"])
def test_compressed_elements_hold_no_matches(pattern: str) -> None:
    """A quarter of a million matches need no more memory than their rows_of."""
    types = ["A"] * 500 + ["N"] + ["B"] * 500
    given = [{"type": type_, "x": 1} for type_ in types]
    tracemalloc.start()
    try:
        found = matchSase(f"PATTERN {pattern}", given, compressed=True)
        assert found.count() == 250_000
        assert found.aggregate("sum(b.x)") == {"sum(b.x)": 250_000}
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_trillion_matches_of_elements() -> None:
    """Counted by the automaton in linear time, with conditions on single rows_of and [attr]."""
    given = [{"type": type_, "k": 1, "x": 2} for type_ in "ABCD" for _ in range(1000)]
    found = matchSase("PATTERN A a;B b;C c;D d WHERE [k] AND b.x > 1", given, compressed=True)
    assert found.count() == 10**12
    assert found.aggregate("sum(d.x)") == {"sum(d.x)": 2 * 10**12}
    assert len(found.unpack(limit=3)) == 3
