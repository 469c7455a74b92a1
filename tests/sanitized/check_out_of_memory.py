# SPDX-License-Identifier: Apache-2.0
"""Memory may run out at every single allocation of the kernel."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern, funnel, match, matchMany
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.engines.latest.columns import latest_rules
from pyflinkcep.engines.latest.machine import END, LatestRule, Offer
from pyflinkcep.engines.literals import LiteralTest, literal_hits
from pyflinkcep.engines.queries import compressed_matches, query_matches
from pyflinkcep.engines.sequences.evaluation import Sequences
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import CepRuntimeError, ConditionError, OutOfMemoryError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.rules import Rule
from pyflinkcep.sase import parse as query_of
from tests.conformance.sql_cases import standard_cases
from tests.kernel_harness import KernelRun
from tests.shorthand import parse
from tests.unit.engines.compressed.test_pattern_counts import keyed, matches_of
from tests.unit.engines.latest.test_machine import Case
from tests.unit.expressions.test_match_expressions import compiled_from
from tests.unit.kernel.test_expressions import kernel_answer
from tests.unit.match_recognize.lists import answer

_module = sys.modules["pyflinkcep.kernel._kernel"]
_NO_LIMIT = sys.maxsize
_SEARCHED = "std-s7-140"
"""A case of the standard whose conditions look at the match, so that much is remembered."""

_EACH = 20
"""The number of first allocations that fail one by one; of the later ones each `_APART`-th fails,
and unless that is each of them, ever fewer of thousands."""
_APART = int(os.environ.get("FAILURES_APART", "1"))

_EVENTS = ["a1", "b1", "a2", "b2", "c1", "b3", "a3", "c2", "b4"]


def _looks_back(event: Any, ctx: Any) -> bool:
    return len(ctx.getEventsForPattern("a")) == 1 and event.startswith("b")


_PATTERNS = {
    "loop": parse("a -> b+ -> c"),
    "any": parse("a").followedByAny("b").where(lambda e: e[0] == "b").oneOrMore()
    .allowCombinations().followedByAny("c").where(lambda e: e[0] == "c"),
    "skips": Pattern.begin("a", AfterMatchSkipStrategy.skipToNext())
    .where(lambda e: e[0] == "a").followedByAny("b").where(lambda e: e[0] == "b")
    .followedByAny("c").where(lambda e: e[0] == "c"),
    "skips past": Pattern.begin("a", AfterMatchSkipStrategy.skipPastLastEvent())
    .where(lambda e: e[0] != "c").oneOrMore().followedBy("c").where(lambda e: e[0] == "c"),
    "looks back": parse("a").followedByAny("b").where(_looks_back),
    "absence": parse("a").notFollowedBy("b").where(lambda e: e == "b4").within(timedelta(milliseconds=4)),
}  # fmt: skip


def _scenario(pattern: Pattern, limit: PartialMatchLimit | None) -> Iterator[Any]:
    """Use all of the kernel: match, write, read, go on, let time pass; yield what is seen."""
    nfa = NFACompiler.compile(pattern, True)
    nfa.open(RuntimeContext())
    run = KernelRun(nfa, limit, gives_reached=limit is None)
    key = run.kernel.new_key()
    half = len(_EVENTS) // 2
    run.process(key, range(half), _EVENTS[:half])
    yield run.results()
    written = run.kernel.write(key)
    yield written
    numbers = np.frombuffer(written[0], np.int64)
    yield run.kernel.count_states(numbers, np.asarray([len(numbers)]))
    count = len(written[1]) // 8
    base = len(run.events)
    run.events.extend(run.events[handle] for handle in np.frombuffer(written[1], np.int64))
    copy = run.kernel.read(numbers, base, count)
    run.process(copy, range(half, len(_EVENTS)), _EVENTS[half:])
    run.kernel.advance(copy, _NO_LIMIT)
    yield run.results()
    page = _page(run, numbers, count, base)
    yield page, run.results()


def _page(run: KernelRun, numbers: Any, count: int, base: int) -> Any:
    """Match a page of a stored key and a new one."""
    first = len(run.events)
    run.events.extend(_EVENTS * 2)
    ends = np.asarray([len(_EVENTS), 2 * len(_EVENTS)])
    times = np.tile(np.arange(6, 6 + len(_EVENTS)), 2)
    return run.kernel.run_page(
        times, None, first, None, np.asarray([0, -1]), np.r_[0, ends[:-1]], ends, numbers,
        np.asarray([0, len(numbers)]), np.asarray([0, count]), base, 12,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _memory_again() -> Iterator[None]:
    """Let allocations succeed again after a test that failed."""
    yield
    _module.fail_after(_NO_LIMIT)


def _step(allowed: int) -> int:
    """Return how many more allocations are to succeed next."""
    return 1 if allowed < _EACH or _APART == 1 else max(_APART, allowed // 10)


def _failing(scenario: Callable[[], Any]) -> Iterator[tuple[int, CepRuntimeError]]:
    """Run a scenario with ever more allocations that succeed, until all do."""
    gc.collect()
    gc.freeze()  # or else each collection looks at all that was ever imported
    allowed = -1
    while True:
        allowed += _step(allowed)
        _module.fail_after(allowed)
        try:
            scenario()
        except (OutOfMemoryError, ConditionError) as error:
            _module.fail_after(_NO_LIMIT)
            yield allowed, error
        else:
            _module.fail_after(_NO_LIMIT)
            return


def _answer_after_failures(scenario: Callable[[], Any], least: int) -> Any:
    """Let more than `least` allocations fail: each an error, nothing leaked, the answer as ever."""
    expected = scenario()
    gc.collect()
    before, allowed = _module.live(), 0
    for allowed, error in _failing(scenario):
        assert isinstance(error, OutOfMemoryError)
        error.__traceback__ = error.__cause__ = error.__context__ = None
        gc.collect()
        assert _module.live() == before, allowed
    assert allowed > least
    assert scenario() == expected
    return expected


@pytest.mark.parametrize("limit", [None, PartialMatchLimit(2, "dropOldest")], ids=["all", "two"])
@pytest.mark.parametrize("name", _PATTERNS)
def test_every_allocation(name: str, limit: PartialMatchLimit | None) -> None:
    """Whichever allocation fails, an error names the pattern and nothing is leaked."""
    expected = list(_scenario(_PATTERNS[name], limit))
    gc.collect()
    before, allowed = _module.live(), 0

    for allowed, error in _failing(lambda: list(_scenario(_PATTERNS[name], limit))):
        if isinstance(error, ConditionError):  # a condition asked for what was taken
            assert isinstance(error.__cause__, MemoryError)
            error.__cause__.__traceback__ = None
        else:
            assert error.pattern is not None
            assert "out of memory" in str(error)
        error.__traceback__ = None
        gc.collect()
        assert _module.live() == before, allowed

    assert allowed > 100
    assert list(_scenario(_PATTERNS[name], limit)) == expected


def test_every_allocation_of_expressions() -> None:
    """The same for what partial matches count, and for the texts that it holds."""
    expressions = compiled_from(
        "last(a.s) || 'x' like 'q%' and sum(a.n) + count(match.n) > first(a.n)"
    )
    taken: Any = [("a", {}), ("a", {}), ("c", {})]
    by_sql = {"s": ["q1", None, "q2", "z"], "n": [1, 2, 3, 4]}
    rows = [[by_sql[field.sql][at] for field in expressions.fields] for at in range(4)]

    _answer_after_failures(lambda: kernel_answer(expressions, taken, rows), 30)


@pytest.mark.parametrize(
    "what", ["joins", "counts", "rising", "sums", "extremes", "lists", "values", "searches"]
)
def test_every_allocation_of_queries(what: str) -> None:
    """The same for joins, for counts that need wider and wider numbers, for lists and searches."""
    columns: Any = {"x": [n % 5 for n in range(130)], "y": [None, 1, 3, 5] * 32 + [0, 2]}
    kinds = {"x": Kind.BIGINT, "y": Kind.BIGINT}
    table = EventTable(range(130), ["A", "B", "B", "A", "C"] * 26, columns, kinds)

    def joins() -> Any:
        query = "PATTERN SEQ(A a, ~(C c), B b, A d) WHERE b.x > a.x + d.x AND b.y < 2 * d.x + 4"
        return sorted(map(repr, query_matches(query_of(query), table, "eventLists", "all")))

    def counts() -> Any:
        absent = "" if what == "rising" else "~(C n), "
        query = f"PATTERN SEQ(A a, B+ b[], {absent}B c) WHERE b[i].x >= b[i-1].x WITHIN 100"
        functions = {"sums": "sum", "extremes": "max"}
        measures = [(name, columns["x"], functions[what]) for name in "bc" if what in functions]
        found = compressed_matches(query_of(query), table)
        return [*found.totals_by_event(measures)]

    def lists() -> Any:
        query = (
            "PATTERN SEQ(A a, B+ b[], ~(C n), ~(SEQ(A m, C o, C p)), B c) "
            "WHERE b[i].x = b[i-1].x AND n.y < c.y AND m.x <> o.x AND p.y > m.x"
        )
        keyed = attrs.evolve(table, keys=[at // 65 for at in range(130)])
        begun: list[int] = []
        found = Sequences(query_of(f"{query} WITHIN 20"), keyed).matches(begun=begun)
        return [*found, begun]

    def values() -> Any:
        columns = {"x": [n % 70 for n in range(300)]}
        many = EventTable(range(300), ["A", "A", "B"] * 100, columns, kinds)
        query = query_of("PATTERN SEQ(A a, B+ b[], B c) WHERE b[1].x = a.x AND c.x = b[LEN].x")
        return [*Sequences(query, many).matches()]

    def searches() -> Any:
        query = "PATTERN SEQ(A+ a[], ~(C n), B+ b[], C c) WHERE b[i].x > a[LEN].x AND n.y > a[1].x"
        outputs = ("onePerStart", "nonOverlapping")
        return [[*query_matches(query_of(query), table, "backtracking", o)] for o in outputs]

    others = {"joins": joins, "lists": lists, "values": values, "searches": searches}
    scenario = others.get(what, counts)
    assert _answer_after_failures(scenario, 15)


@pytest.mark.parametrize("function", ["count", "max"])
def test_every_allocation_of_compressed_patterns(function: str) -> None:
    """The same for merged partial matches with texts."""
    pattern = (
        Pattern.begin("a").where("k = 'a'").oneOrMore().allowCombinations()
        .followedByAny("b").where("k <> 'c' and s >= last(a.s)")
        .notFollowedBy("c").where("k = 'c'").within(timedelta(milliseconds=9))
    )  # fmt: skip
    rows = [{"k": "aaab"[n % 4], "s": "pqr"[n % 3]} for n in range(14)]
    measures = [] if function == "count" else [("a", [*range(14)], function)]

    def scenario() -> Any:
        return list(matches_of(pattern, rows, keyed(range(14))).totals_by_event(measures))

    assert _answer_after_failures(scenario, 100)


def test_every_allocation_of_rules() -> None:
    """The same for rules with and without missing steps, and for their state."""
    case = Case(
        [LatestRule.of(4, 90), LatestRule((True, False, True, False, True), 30), LatestRule.of(1)],
        [2 * at for at in range(60)],
        [[Offer(at % 3, at * 7 // 3 % 5 if at % 3 == 1 else at // 5 % 4 * (at % 3 == 0), at % 3)]
         for at in range(60)],
    )  # fmt: skip
    every = [Offer(1, at % 5, key) for at in range(60) for key in range(20)]
    case.offers[30:50] = [every[low : low + 60] for low in range(0, 1200, 60)]

    def scenario() -> Any:
        rules = latest_rules(case.rules)
        found = [rules.process(case.array[:40], case.columns(0, 40)).listed()]
        states = rules.written()
        rules.clear()
        rules.read(states, case.array.__getitem__)
        rest = rules.process(case.array[40:], case.columns(40), 40)
        return [*found, [*states.rows()], rest.listed(), rules.advance(END).listed()]

    assert any(map(len, _answer_after_failures(scenario, 30)))


def test_every_allocation_of_literals() -> None:
    """The same for many literals in many texts."""
    tests = [LiteralTest(f"{n % 7}a{n}"[: 2 + n % 3], n % 2 == 0, n % 3 == 0) for n in range(40)]
    texts = [f"{n}a{n % 30}a".encode() for n in range(60)]
    ends = np.cumsum([*map(len, texts)], dtype=np.int64)

    def scenario() -> Any:
        return [found.tolist() for found in literal_hits(tests, b"".join(texts), ends)]

    assert any(_answer_after_failures(scenario, 8))


@pytest.mark.parametrize("range_", [30, 1 << 62])
@pytest.mark.parametrize("join", ["next", "followedBy"])
def test_every_allocation_of_tables(join: str, range_: int) -> None:
    """The same for tables: their keys, the order of their events, and partial matches in queues."""
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "key": random.integers(0, range_, 40)[random.integers(0, 40, 3000)],
            "at": random.integers(0, 900, 3000),
            "n": random.integers(0, 4, 3000),
        }
    )
    pattern = Pattern.begin("a").where("n = 0")
    pattern = getattr(pattern, join)("b").where("n = 1").within(timedelta(milliseconds=300))

    def scenario() -> Any:
        found = match(pattern, table, "at", "key", threads=1)
        return [found.toArrow(), len(found.timeouts), str(funnel(pattern, table, "at", "key"))]

    assert _answer_after_failures(scenario, 20)[0].num_rows > 9


def test_every_allocation_of_patterns_together() -> None:
    """The same for many patterns in one call, which are tried one by one before it is an error."""
    random = np.random.default_rng(1)
    table = pa.table(
        {
            name: random.integers(0, most, 2000)
            for name, most in (("key", 20), ("at", 900), ("n", 6))
        }
    )

    def rule(number: int) -> Rule:
        begun = Pattern.begin("a").where(f"n = {number}").followedByAny("b")
        whole = begun.where(f"n = {number + 1}").within(timedelta(milliseconds=20 + number))
        return Rule(f"r{number}", whole, ("key",))

    def scenario() -> Any:
        return matchMany([rule(number) for number in range(4)], table, "at").toArrow()

    assert _answer_after_failures(scenario, 8).num_rows > 9


def test_other_keys_go_on() -> None:
    """A key that lost its memory is refused; the results of others are what they were."""
    run = KernelRun(NFACompiler.compile(_PATTERNS["loop"], True))
    times = range(len(_EVENTS))
    run.process(run.kernel.new_key(), times, _EVENTS)
    expected, allowed = run.results(), 0
    lost: list[Any] = []

    def scenario() -> None:
        lost.clear()
        lost.append(run.kernel.new_key())
        run.process(lost[0], times, _EVENTS)

    for allowed, _ in _failing(scenario):
        run.results()
        if lost and lost[0].partial_count == 0:
            with pytest.raises(RuntimeError, match="lost to an earlier error"):
                run.process(lost[0], times, _EVENTS)
        run.process(run.kernel.new_key(), times, _EVENTS)
        assert run.results() == expected, allowed

    assert allowed > 45


def test_every_allocation_of_a_search() -> None:
    """Whichever allocation of a search of SQL:2016 fails, nothing is leaked."""
    case = next(case for case in standard_cases() if case["id"] == _SEARCHED)
    expected = answer(None, case)
    gc.collect()
    before, allowed = _module.live(), 0

    for allowed, error in _failing(lambda: answer(None, case)):
        assert "out of memory while searching for a match" in str(error)
        assert error.__cause__ is not None
        error.__cause__.__traceback__ = error.__traceback__ = None
        del error
        gc.collect()
        assert _module.live() == before, allowed

    assert answer(None, case) == expected
    assert allowed > 5
