# SPDX-License-Identifier: Apache-2.0
"""Why a pattern does not match: counts that add up, examples, and advice."""

from __future__ import annotations

from cProfile import Profile
from datetime import timedelta
from typing import Any

import attrs
import pyarrow as pa
import pytest

from pyflinkcep import AfterMatchSkipStrategy, InvalidArgumentError, Pattern, parse
from pyflinkcep.tables.match import Run
from pyflinkcep.testing import match, trace, whyNot
from pyflinkcep.traces.model import End
from pyflinkcep.traces.recorder import watched
from pyflinkcep.traces.why import WhyNot
from tests.shorthand import parse as pattern_of
from tests.unit.show.support import points, size, texts

RISE = (
    Pattern.begin("low")
    .where("n < 3")
    .followedBy("high")
    .where("n > 3 * last(low.n)")
    .within(timedelta(milliseconds=10))
)


def rows(*events: tuple[str, int | None, int]) -> list[dict[str, Any]]:
    """Return events of (key, time, n)."""
    return [{"k": key, "t": time, "n": n} for key, time, n in events]


def ended(why: WhyNot) -> dict[tuple[str, End], int]:
    """Return how many beginnings ended after a stage for a reason."""
    return {at: len(ones) for at, ones in why.facts.ended.items()}


SEEN = rows(
    ("a", 1, 1), ("a", 2, 2), ("a", 3, 9), ("b", 4, 1), ("b", 5, 3), ("b", 30, 9), ("c", 31, 5)
)


def test_every_beginning_is_counted_once() -> None:
    """Those that matched and those that ended, by stage and reason, are all that began."""
    why = whyNot(RISE, SEEN, timestamp="t", key="k")

    matches = match(RISE, SEEN, timestamp="t", key="k")
    assert why.facts.matches == len(matches)
    assert why.facts.reached == {"low": 3, "high": 2}
    assert ended(why) == {("low", End.WINDOW): 1}
    matched = sum(one.matched for one in why.facts.beginnings)
    assert matched + sum(ended(why).values()) == len(why.facts.beginnings)


def test_a_table_has_the_answer_of_a_list() -> None:
    """Events may be rows of a table, as for a match."""
    table = pa.Table.from_pylist(SEEN)

    for ask in (whyNot, trace, match):
        assert repr(ask(RISE, table, "t", "k")) == repr(ask(RISE, SEEN, "t", "k"))


def test_conditions_are_counted_over_all_events() -> None:
    """A condition about one event is counted whether matching asked for it or not."""
    pattern = Pattern.begin("a").where("n = 77").next("b").where("n > 1").where("t > 0")
    why = whyNot(pattern, SEEN, timestamp="t")

    counts = {one.text: (one.holds, one.of, one.verdict) for one in why.facts.conditions}
    assert counts == {"n = 77": (0, 7, "never"), "n > 1": (5, 7, ""), "t > 0": (7, 7, "always")}
    assert [one.stage for one in why.facts.conditions] == ["a", "b", "b"]


def test_conditions_over_partial_matches_are_counted_as_asked() -> None:
    """SQL over stages is evaluated for partial matches, not for events."""
    why = whyNot(RISE, SEEN, timestamp="t", key="k")
    (over,) = [one for one in why.facts.conditions if not one.per_event]

    assert (over.text, over.holds, over.of) == ("n > 3 * last(low.n)", 2, 4)


@pytest.mark.parametrize(
    ("pattern", "events", "words"),
    [
        ("a >> b", "a1 c1 a2 c2", "followedBy() skips events that do not fit"),
        ("a{3} -> b", "a1 a2 b1", "'a' needs 3 events, the closest had 2"),
        ("a -> b within[2]", "a1 c1 c2 b1", "An event that may fit came 3 ms after the first"),
        ("a -> b within[2]", "a1 c1 c2 c3", "so a longer window does not help"),
        ("a -> b gap[2] -> c", "a1@0 b1@9 c1@9", "'a' because the longest gap was over"),
        ("a -> b -> c gap[2]", "a1@0 b1@9 c1@15 c2@18", "came 6 ms after the one before"),
        ("a -> b gap[2]", "a1 c1 c2 c3", "No event that fits 'b' came later"),
        ("a !-> n -> b", "a1 n1 b1", "because 'n' came, which must not"),
        ("a >> b+:cons until[u] >> c", "a1 b1 u1", "the condition of until() held"),
        ("a -> b", "a1 c1", "1 beginning still waits for 'b'"),
        ("a -> b", "b1 c1", "No event satisfies 'a' of 'a'"),
    ],
)
def test_advice_says_what_to_change(pattern: str, events: str, words: str) -> None:
    """Each reason has advice in plain words."""
    parts = [event.split("@") for event in events.split()]
    rows = [(name, int(*time) if time else at) for at, (name, *time) in enumerate(parts)]
    why = whyNot(pattern_of(pattern), [Letter(*row) for row in rows], timestamp="time")

    assert words in " ".join(why.advice)


class Letter(str):
    """An event of a line that has a time."""

    def __new__(cls, name: str, time: int) -> Letter:
        """Keep the time beside the name."""
        letter = super().__new__(cls, name)
        letter.time = time
        return letter

    time: int


def test_advice_about_windows_looks_at_all_beginnings() -> None:
    """The event that a longer window would reach may come for the last of many beginnings."""
    pattern = (
        Pattern.begin("a")
        .where("n = 1")
        .followedBy("b")
        .where("n = 2")
        .within(timedelta(seconds=1))
    )
    events = rows(*((f"k{number}", 0, 1) for number in range(60)), ("k59", 5000, 2))
    late = rows(("k0", 2, 2))
    why = whyNot(pattern, events, timestamp="t", key="k")

    assert "An event that may fit came 5 s after the first" in why.advice[0]
    lagging = whyNot(
        pattern, [*events[:-1], *rows(("z", 9000, 3)), *late], "t", "k", timedelta(seconds=1)
    )
    assert "so a longer window does not help" in lagging.advice[0]


def test_the_cost_grows_with_the_number_of_events() -> None:
    """Twice the events cost twice the calls, also where every beginning ends by its window."""

    def calls(number: int) -> int:
        events = rows(*((f"k{n % 3}", 9 * n, n % 2) for n in range(number)))
        pattern = Pattern.begin("a").where("n = 1").followedBy("b").where("n = 7")
        profile = Profile()
        profile.runcall(
            lambda: whyNot(pattern.within(timedelta(milliseconds=40)), events, "t", "k").text()
        )
        return sum(entry.callcount for entry in profile.getstats())

    calls(10)
    assert calls(800) < 2.2 * calls(400)


def test_a_trace_knows_its_events() -> None:
    """The events are listed once, not for every beginning that is told."""
    trace = whyNot(RISE, SEEN, timestamp="t", key="k").trace

    assert trace.values is trace.values
    assert trace.values == SEEN


def test_advice_names_the_values_there_are() -> None:
    """For SQL that never holds it says what the column holds instead."""
    pattern = Pattern.begin("a").where("kind = 'Fail' AND n > 0")
    events = [{"kind": "fail", "n": 1}, {"kind": "fail", "n": 2}, {"kind": "ok", "n": 3}]

    assert whyNot(pattern, events).advice[0] == (
        "No event satisfies \"kind = 'Fail' AND n > 0\" of 'a'. The most frequent values of kind: "
        "'fail' (2), 'ok' (1). The most frequent values of n: 1 (1), 2 (1), 3 (1)."
    )


def test_the_input_is_looked_at_too() -> None:
    """Events without time or key, late ones and those out of order are counted, and told."""
    events = [*SEEN, {"k": None, "t": 2, "n": 1}, {"k": "a", "t": None, "n": 1}]
    why = whyNot(RISE, events, timestamp="t", key="k", delayThreshold=timedelta(milliseconds=5))

    numbers = {name: count for name, count in why.facts.input.items() if count}
    assert numbers == {
        "events": 8, "keys": 4, "late": 1, "without a time": 1, "without a key": 1, "out of order": 1
    }  # fmt: skip
    assert "1 event came too late" in " ".join(why.advice)


@pytest.mark.parametrize(("key", "missing"), [("k", 2), (["k"], 2), (["k", "n"], 1)])
def test_a_key_is_missing_if_all_of_it_is(key: Any, missing: int) -> None:
    """A key of several columns is missing if all are null, as on Spark."""
    events = [{"k": None, "n": None}, {"k": None, "n": 1}, {"k": "a", "n": None}]
    why = whyNot(Pattern.begin("a").where("n = 1"), events, key=key)

    assert why.facts.input["without a key"] == missing


def test_a_group_may_be_ended_by_a_condition() -> None:
    """The condition of ``until`` of a group is counted, after those of stages."""
    group = Pattern.begin("x").where("n = 1").followedBy("y").where("n = 2")
    pattern = Pattern.begin("a").where("n = 0").next(group).oneOrMore().until("n = 9").next("e")
    why = whyNot(pattern, [{"n": n} for n in (0, 1, 2, 1, 9, 5)])

    assert [(one.text, one.holds) for one in why.facts.conditions][-1] == ("n = 9", 1)


def test_a_key_that_is_cut_still_waits() -> None:
    """Of a key whose later events are left out nobody knows how its partial matches ended."""
    events = rows(("k", 1, 1), ("l", 2, 1), ("k", 3, 2), ("m", 20, 5))
    run = Run.of(RISE, events, "t", "k", None)
    given = attrs.evolve(run.given, cut=("k", 3))
    found, _ = watched(attrs.evolve(run, given=given), None)

    ends = sorted((one.key, one.ending.kind.value) for one in found.partials)
    assert ends == [("k", "input"), ("k", "input"), ("l", "window")]
    idle = attrs.evolve(run.given, cut=("m", 20))
    assert len(watched(attrs.evolve(run, given=idle), None)[0].partials) == 3


def test_the_heading_counts_in_words() -> None:
    """One is one."""
    assert (
        whyNot(RISE, SEEN[:1], "t", "k")
        .text()
        .startswith("low → high: 0 matches, 1 event, 1 key\n")
    )


def test_matches_dropped_or_waiting_are_told() -> None:
    """What the skip strategy drops or holds back is no match yet, and has its reason."""
    skip = AfterMatchSkipStrategy.skipPastLastEvent()
    why = whyNot(pattern_of("a+ -> b", skip), ["a1", "a2", "b1"])

    assert why.facts.matches == 1
    assert sum(one.matched for one in why.facts.beginnings) == 1


def test_the_closest_are_those_that_got_furthest() -> None:
    """Examples and the closest misses are those with most events."""
    why = whyNot(pattern_of("a{3} >> b"), ["a1", "x1", "a2", "a3", "x2", "a4"])

    assert [len(one.partial.steps) for one in why.facts.closest] == [3, 3, 2, 1]
    assert "3 events taken" in why.text().split("The closest")[1].split("\n")[1]


def test_rows_fit_their_schema() -> None:
    """Each row has the columns of the schema, in its order."""
    why = whyNot(RISE, SEEN, timestamp="t", key="k")
    names = [column.split()[0] for column in why.schema.split(", ")]

    assert {tuple(row) for row in why.rows} == {tuple(names)}
    assert {row["what"] for row in why.rows} == {"input", "stage", "ended", "condition"}
    (row,) = [row for row in why.rows if row["what"] == "ended"]
    assert (row["key"], row["count"], row["total"], row["compared"]) == (
        "'b'", 1, 3, "n = 3, 3 * last(low.n) = 3"
    )  # fmt: skip


SCRIPT = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "events", [[], SEEN, [{"k": SCRIPT, "n": n, SCRIPT: 1} for n in (1, 9, 2, 1)]]
)
def test_the_picture(events: list[Any]) -> None:
    """Bars lie inside the picture; names, columns, keys and values stay text."""
    pattern = Pattern.begin(SCRIPT).where("n < 3").next("b").where(f"n > 3 AND k <> '{SCRIPT}'")
    why = whyNot(pattern, events, key="k")
    svg = why.diagram().svg
    width, height = size(svg)

    assert "<script" not in why._repr_html_()
    assert "b" in texts(svg)
    assert [p for p in points(svg) if not (0 <= p[0] <= width and 0 <= p[1] <= height)] == []


def test_stages_in_the_wrong_order() -> None:
    """If nothing matches, and what is waited for always came before, advice asks for the order."""
    pattern = Pattern.begin("cart").where("n = 2").followedBy("pay").where("n = 1")
    given = rows(("a", 1, 1), ("a", 2, 2), ("b", 1, 1), ("b", 2, 2), ("b", 3, 9))
    asked = "came before 2 of these 2: are the stages in the order of the events?"
    assert asked in whyNot(pattern, given, "t", "k").text()
    assert "the order" not in whyNot(pattern, [*given, *rows(("a", 4, 1))], "t", "k").text()
    other = rows(("a", 1, 2), ("b", 2, 1))
    assert "the order" not in whyNot(pattern, other, "t", "k").text()


def test_advice_about_a_stage_looks_at_those_that_ended_there() -> None:
    """An event that would fit the beginnings of another stage does not help those of this one."""
    pattern = Pattern.begin("a").where("n = 1").followedBy("b").where("n = 2").times(2)
    pattern = pattern.within(timedelta(milliseconds=5))
    given = rows(("x", 0, 1), ("x", 1, 2), ("x", 9, 2), ("y", 0, 1))
    after_b, after_a = whyNot(pattern, given, "t", "k").advice[:2]
    assert "after 'b'" in after_b
    assert "came 9 ms after the first" in after_b
    assert "after 'a'" in after_a
    assert "a longer window does not help" in after_a


@pytest.mark.parametrize(
    ("given", "times"),
    [([1, 1, 1], "all 2 times"), ([1, 1], "the one time"), ([1, 2, 1], ""), ([1, 9], "")],
)
def test_advice_names_a_condition_over_stages_that_nothing_passes(
    given: list[int], times: str
) -> None:
    """Where events fit but for what they are compared with, other contiguity does not help."""
    pattern = Pattern.begin("a").where("n > 0").next("b").where("n > last(a.n)")
    told = " ".join(whyNot(pattern, [{"n": n} for n in given]).advice)

    assert (f"But 'n > last(a.n)' of 'b' was false {times} that it was asked." in told) == bool(
        times
    )
    assert ("that it was asked" in told) == bool(times)


def test_few_partial_matches_of_many_keys_are_not_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where looking stops, the pattern is blamed only if a key has many partial matches."""
    monkeypatch.setattr("pyflinkcep.traces.why._PARTIALS", 50)
    pattern = Pattern.begin("a").followedBy("b").where("n = 1")
    of_many = whyNot(pattern, rows(*((str(k), 1, 0) for k in range(60))), "t", "k").text()
    of_one = whyNot(pattern, rows(*(("a", t, 0) for t in range(60))), "t", "k").text()
    assert "stopped at 50 partial matches of 50 keys" in of_many
    assert "very many" not in of_many
    assert "stopped at 50 partial matches: this pattern makes very many" in of_one


def test_without_events_it_says_so() -> None:
    """No events are the first thing to look at."""
    assert whyNot(RISE, []).advice == (
        "There are no events: look at what was read, and at filters before the pattern.",
    )


def test_conditions_that_fail_are_not_counted() -> None:
    """A function that fails for events that it was not meant for does not stop the answer."""
    pattern = Pattern.begin("a").where(lambda e: e == 1).next("b").where(lambda e: e["x"] == 1)

    why = whyNot(pattern, [2, 3])
    assert [(one.holds, one.of) for one in why.facts.conditions] == [(0, 2), (0, 0)]


def test_a_pattern_that_doubles_its_partial_matches_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at very many partial matches: the trace stops there, and the answer says so."""
    monkeypatch.setattr("pyflinkcep.traces.why._PARTIALS", 300)
    why = whyNot(pattern_of("a ->> b[*]+:any -> c"), ["a1", *["b1"] * 100])

    assert len(why.trace.partials) == 300
    assert "stopped at 300 partial matches: this pattern makes very many" in why.text()
    assert why.diagram().svg


def test_other_things_are_refused() -> None:
    """The first argument is a pattern; of a query the hint says how to ask for its own."""
    query = parse("PATTERN SEQ(low l, high h) WHERE skip_till_next_match(l, h) {}")
    for other, hint in (("a", "parse"), (query, r"query\.asPattern\(\)"), (3, "pattern, events")):
        with pytest.raises(InvalidArgumentError, match=rf"whyNot: expected a Pattern[\s\S]*{hint}"):
            whyNot(other, [])  # type: ignore[arg-type]
    assert whyNot(query.asPattern(), [{"type": "low"}, {"type": "high"}]).facts.matches == 1
