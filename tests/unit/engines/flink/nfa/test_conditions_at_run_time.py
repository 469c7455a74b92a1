# SPDX-License-Identifier: Apache-2.0
"""What conditions see, how often they are asked, and what happens when they fail."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from pyflinkcep import IterativeCondition, Pattern, RichIterativeCondition, SimpleCondition
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import ConditionError, MissingConditionError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness, match
from tests.shorthand import Named, matches, parse


def test_a_raising_condition_names_stage_and_time_and_keeps_its_cause() -> None:
    """An exception in a condition comes out as ConditionError that tells where it happened."""
    harness = NFATestHarness(Pattern.begin("first").where(lambda e: 1 / e == 1))
    with pytest.raises(ConditionError, match="Failure happened in filter function") as caught:
        harness.process(0, 42)
    error = caught.value

    assert (error.stage, error.timestamp_ms, type(error.__cause__), bool(error.hint)) == (
        "first",
        42,
        ZeroDivisionError,
        True,
    )


def test_the_operator_adds_the_key() -> None:
    """Through the operator the error names the key too, in its text and as a field."""
    harness = OperatorTestHarness(Pattern.begin("a").where(lambda e: e["x"]))
    harness.processElement({"y": 1}, 5, key="k1")
    with pytest.raises(ConditionError) as caught:
        harness.processWatermark(5)
    error = caught.value

    assert (error.key, type(error.__cause__), str(error).split("\n")[0]) == (
        "'k1'",
        KeyError,
        "Failure happened in filter function. KeyError: \"no column 'x'. The columns are ['y']\" "
        "(stage 'a', key 'k1', event time 5 ms)",
    )


@pytest.mark.parametrize("answer", [None, 1, 0, "yes", [], 0.0, float("nan")])
def test_a_result_that_is_no_bool_is_an_error(answer: Any) -> None:
    """A condition must give a bool; what is merely truthy or falsy is an error."""
    harness = NFATestHarness(Pattern.begin("a").where(lambda e: answer))
    with pytest.raises(ConditionError, match="expected a bool, got") as caught:
        harness.process("e", 3)

    assert (caught.value.stage, caught.value.timestamp_ms, bool(caught.value.hint)) == (
        "a",
        3,
        True,
    )


def test_an_array_is_no_bool() -> None:
    """An array of one bool is refused like any other array: it is a mistake, not an answer."""
    numpy = pytest.importorskip("numpy")
    pattern = Pattern.begin("a").where(lambda e: numpy.array([True]))

    with pytest.raises(ConditionError, match="expected a bool, got"):
        NFATestHarness(pattern).process(1, 1)


def test_a_condition_that_exits_fails() -> None:
    """SystemExit in a condition is an error that names stage and time, as any exception is."""

    def leaves(event: object) -> bool:
        raise SystemExit(3)

    with pytest.raises(ConditionError, match="SystemExit: 3") as caught:
        NFATestHarness(Pattern.begin("a").where(leaves)).process(1, 7)

    assert (caught.value.stage, caught.value.timestamp_ms) == ("a", 7)


def test_a_numpy_bool_is_a_bool() -> None:
    """Comparisons of numpy scalars give numpy's bool, which counts as a bool."""
    numpy = pytest.importorskip("numpy")
    harness = NFATestHarness(Pattern.begin("a").where(lambda e: e > 3))

    assert [harness.process(numpy.int64(n), n) != [] for n in (3, 4)] == [False, True]


def test_an_error_of_ours_passes_unchanged() -> None:
    """An error that already explains itself is not wrapped again."""
    harness = NFATestHarness(
        Pattern.begin("a").where(lambda e, ctx: bool(ctx.getEventsForPattern(None)))
    )

    with pytest.raises(MissingConditionError):
        harness.process("e", 1)


class Recorder(IterativeCondition):
    """Accepts an event by name and notes what it may see of other stages."""

    def __init__(self, name: str, *stages: str) -> None:
        self.name = name
        self.stages = stages
        self.seen: list[str] = []

    def filter(self, value: str, ctx: Any) -> bool:
        """Note and accept."""
        if value.startswith(self.name):
            earlier = [" ".join(ctx.getEventsForPattern(stage)) for stage in self.stages]
            self.seen.append(f"{value}: {' / '.join(earlier)}")
        return value.startswith(self.name)


def test_the_event_under_test_is_not_among_the_accepted_ones() -> None:
    """A loop sees its earlier events, not the one that is asked about."""
    condition = Recorder("b", "a", "b", "unknown")
    pattern = parse("a").followedBy("b").where(condition).oneOrMore().consecutive()
    matches(pattern, "a b1 b2")

    assert condition.seen == ["b1: a /  / ", "b2: a / b1 / "]


def test_a_group_loop_sees_all_iterations() -> None:
    """Inside a looping group a stage's earlier events of every repetition are given."""
    condition = Recorder("b", "a", "b")
    group = parse("a").next("b").where(condition)
    matches(Pattern.begin(group).times(2).consecutive(), "a1 b1 a2 b2")

    assert condition.seen == ["b1: a1 / ", "b2: a1 a2 / b1", "b2: a2 / "]


def test_each_partial_match_sees_its_own_events() -> None:
    """The context is that of the partial match at hand, not of the key."""
    condition = Recorder("b", "a")
    matches(parse("a").followedByAny("b").where(condition), "a1 a2 b")

    assert condition.seen == ["b: a1", "b: a2"]


def test_the_event_time_is_known() -> None:
    """``ctx.timestamp()`` is the time of the event under test."""
    pattern = Pattern.begin("a").where(lambda e, ctx: ctx.timestamp() == 3)
    harness = NFATestHarness(pattern)

    assert [harness.process(f"e{t}", t) for t in (2, 3, 4)] == [[], [{"a": ["e3"]}], []]


def test_the_processing_time_is_known() -> None:
    """``ctx.currentProcessingTime()`` is the operator's clock at the moment of the event."""
    pattern = Pattern.begin("a").where(lambda e, ctx: ctx.currentProcessingTime() == 3)
    harness = OperatorTestHarness(pattern, processingTime=True)
    for clock in (1, 3, 4):
        harness.setProcessingTime(clock)
        harness.processElement(f"at{clock}", 99)

    assert harness.matches == [(None, 3, {"a": ["at3"]})]


def test_in_event_time_the_processing_time_is_the_wall_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a clock of its own a condition is told the machine's, in milliseconds."""
    monkeypatch.setattr("time.time_ns", lambda: 7_999_999)
    seen: list[int] = []

    def note(event: str, ctx: Any) -> bool:
        seen.append(ctx.currentProcessingTime())
        return True

    NFATestHarness(Pattern.begin("a").where(note)).process("e", 1)

    assert seen == [7]


def test_or_and_where_apply_in_the_order_written() -> None:
    """``where(A).or_(B).where(C)`` means (A or B) and C."""
    pattern = (
        Pattern.begin("s")
        .where(lambda e: e[0] == "a")
        .or_(lambda e: e[0] == "b")
        .where(lambda e: e[-1] == "1")
    )

    assert matches(pattern, "a1 a2 b1 b2 c1") == "{a1} {b1}"


def test_a_condition_before_subtype_sees_other_types() -> None:
    """``where`` before ``subtype`` is asked about every event, after it only about the class."""
    seen: dict[str, list[Any]] = {"before": [], "after": []}

    def note(where: str) -> Any:
        def accept(event: Any) -> bool:
            seen[where].append(event)
            return True

        return accept

    before = NFATestHarness(Pattern.begin("a").where(note("before")).subtype(int))
    after = NFATestHarness(Pattern.begin("a").subtype(int).where(note("after")))
    found = [h.process(e, t) for h in (before, after) for t, e in enumerate(["x", 7])]

    assert (seen, found) == (
        {"before": ["x", 7], "after": [7]},
        [[], [{"a": [7]}], [], [{"a": [7]}]],
    )


def test_a_simple_condition_is_asked_once_for_an_event() -> None:
    """However many partial matches wait for a stage, a function of the event is called once."""
    calls: list[str] = []

    def is_b(event: str) -> bool:
        calls.append(event)
        return event[0] == "b"

    actual = matches(parse("a").followedByAny("b").where(is_b), "a1 a2 a3 b1")

    assert (actual, calls.count("b1")) == ("{a1 b1} {a2 b1} {a3 b1}", 1)


class Rich(RichIterativeCondition):
    """Counts its life cycle calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, context: RuntimeContext | None = None) -> None:
        """Count, and look at the context, which is there by now."""
        self.calls.append(f"open {self.getRuntimeContext().getTaskName()}")

    def close(self) -> None:
        """Count."""
        self.calls.append("close")

    def filter(self, value: Any, ctx: Any) -> bool:
        """Accept everything."""
        return True


@pytest.mark.parametrize(
    ("quantify", "times"),
    [
        (lambda p: p, 2),
        (lambda p: p.oneOrMore(), 6),
        (lambda p: p.times(3), 6),
        (lambda p: p.optional(), 4),
    ],
    ids=["once", "oneOrMore", "times(3)", "optional"],
)
def test_open_and_close_are_called_for_every_transition(quantify: Any, times: int) -> None:
    """As in Flink a rich condition is opened, and closed, once for each edge that carries it."""
    rich = Rich()
    nfa = NFACompiler.compile(quantify(Pattern.begin("a").followedBy("b").where(rich)))
    nfa.open(RuntimeContext("task", 3))
    nfa.close()

    assert rich.calls == ["open task"] * times + ["close"] * times


def test_conditions_are_not_asked_about_events_no_one_waits_for() -> None:
    """A stage that no partial match has reached asks nothing."""
    condition = Recorder("b")
    matches(parse("a").next("b").where(condition), "b1 b2 a b3")

    assert condition.seen == ["b3: "]


def test_named_conditions_compare_by_value() -> None:
    """Conditions of one value may stand on several stages."""
    same = Named(("a",))

    assert matches(Pattern.begin("x").where(same).next("y").where(same), "a1 a2 a3") == (
        "{a1 a2} {a2 a3}"
    )


class _Over(SimpleCondition):
    """A user's class that happens to have a field named `function`."""

    def __init__(self, function: Any, limit: int) -> None:
        self.function = function
        self.limit = limit

    def filter(self, value: Any, ctx: Any = None) -> bool:
        return self.function(value, self.limit)


def test_condition_objects_with_one_function_between_them_are_asked_each() -> None:
    """Only a bare function is asked once for all stages that were given it; objects never share."""
    equal = operator.eq
    pattern = Pattern.begin("a").where(_Over(equal, 1)).next("b").where(_Over(equal, 2))

    assert match(pattern, [1, 2, 1, 1]) == [{"a": [1], "b": [2]}]
