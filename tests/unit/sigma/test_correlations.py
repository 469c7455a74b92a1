# SPDX-License-Identifier: Apache-2.0
"""Sigma correlations on events in memory: what they mean, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import matchSigma
from pyflinkcep.errors import CepError, InputError, InvalidArgumentError, NotSupportedError

RULES = {name: f"rule = '{name}'" for name in "abc"}


def events(*given: tuple[str, int], **fields: Any) -> list[dict[str, Any]]:
    """Return events of (rule, seconds)."""
    return [{"rule": rule, "t": 1000 * second, "u": "x", **fields} for rule, second in given]


def correlation(kind: str, rules: str = "a", **parts: Any) -> dict[str, Any]:
    """Return a correlation of single-letter rules in ten seconds."""
    return {"type": kind, "rules": list(rules), "group-by": ["u"], "timespan": "10s", **parts}


def alerts(document: dict[str, Any], given: Any, rules: Any = None) -> list[list[int]]:
    """Return the seconds of the events of each alert."""
    found = matchSigma(document, given, rules or RULES, timestamp="t")
    return [[event["t"] // 1000 for event in alert] for alert in found]


# --- counts


def test_counts_slide_with_both_ends() -> None:
    """With gte the last timespan counts, both ends included, and an alert uses its events up."""
    count = correlation("event_count", condition={"gte": 2})
    given = events(("a", 0), ("a", 10), ("a", 20), ("a", 31))

    assert alerts(count, given) == [[0, 10]]
    assert alerts(correlation("event_count", condition={"gt": 1}), given) == [[0, 10]]


def test_true_is_not_one() -> None:
    """Groups and values of truth are others than those of numbers, though Python's are equal."""
    fields = {"a": "is", "b": "n"}
    pair = correlation("temporal", "ab", **{"group-by": ["own"], "aliases": {"own": fields}})
    given = [*events(("a", 1), **{"is": True, "n": 5}), *events(("b", 2), **{"is": True, "n": 1})]
    counted = correlation("value_count", "ab", condition={"field": "v", "gte": 2})

    assert alerts(pair, given) == []
    assert alerts(counted, [*events(("a", 1), v=True), *events(("a", 2), v=1)]) == [[1, 2]]


def test_other_bounds_are_of_calendar_windows() -> None:
    """With an upper bound windows begin at whole timespans, and end without their end."""
    count = correlation("event_count", condition={"gte": 2, "lt": 3})
    given = events(("a", 1), ("a", 9), ("a", 10), ("a", 25), ("a", 26), ("a", 27))

    assert alerts(count, given) == [[1, 9]]
    assert alerts(correlation("event_count", condition={"eq": 1}), given) == [[10]]


@pytest.mark.parametrize(
    ("kind", "condition", "expected"),
    [
        ("value_sum", {"gt": 9}, True),
        ("value_sum", {"gt": 10}, False),
        ("value_avg", {"gt": 3.3}, True),
        ("value_avg", {"gte": 3.4}, False),
        ("value_median", {"eq": 2}, True),
        ("value_percentile", {"percentile": 75, "eq": 4.5}, True),
        ("value_percentile", {"percentile": 100, "eq": 7}, True),
        ("value_percentile", {"percentile": 0, "eq": 1}, True),
        ("value_count", {"gte": 4}, False),
        ("value_count", {"eq": 3}, True),
    ],
)
def test_values(kind: str, condition: dict[str, Any], expected: bool) -> None:
    """Numbers are those that Spark computes; events without a value are in the alert only."""
    given = events(("a", 1), ("a", 2), ("a", 3), ("a", 4))
    for event, value in zip(given, (1, None, 2, 7), strict=True):
        event["n"] = value

    found = alerts(correlation(kind, condition={"field": "n", **condition}), given)
    assert found == ([[1, 2, 3, 4]] if expected else [])


def test_a_window_without_values_has_no_average() -> None:
    """What Spark would compute as null is in no bounds."""
    given = [*events(("a", 1), n=None), *events(("a", 25), n=3)]
    average = correlation("value_avg", condition={"field": "n", "neq": 7})

    assert alerts(average, given) == [[25]]


def test_sums_of_fractions_are_those_of_the_window() -> None:
    """What left a window leaves no rounding behind."""
    given = [*events(("a", 0), n=1e17), *events(("a", 20), ("a", 21), n=0.5)]

    assert alerts(correlation("value_sum", condition={"field": "n", "gte": 1}), given) == [
        [0],
        [20, 21],
    ]


# --- rules together


def test_rules_together_in_any_order() -> None:
    """The latest event of each rule counts, and all have to be within the timespan."""
    both = correlation("temporal", "ab")

    assert alerts(both, events(("b", 0), ("b", 4), ("a", 14))) == [[4, 14]]
    assert alerts(both, events(("b", 0), ("a", 11))) == []


def test_an_absent_rule_stops_an_alert_before_and_after() -> None:
    """From the first event on, until the timespan has passed, both included."""
    without = correlation("temporal", "abc", condition="a and b and not c")

    assert alerts(without, events(("a", 5), ("b", 6), ("c", 16))) == [[5, 6]]
    assert alerts(without, events(("a", 5), ("b", 6), ("c", 15))) == []
    assert alerts(without, events(("a", 5), ("c", 5), ("b", 6))) == []
    assert alerts(without, events(("c", 4), ("a", 5), ("b", 6))) == [[5, 6]]
    assert alerts(without, events(("a", 1), ("b", 2), ("c", 3), ("b", 4))) == []


def test_alternatives_have_states_of_their_own() -> None:
    """`or` makes alternatives, each of which alerts."""
    either = correlation("temporal", "abc", condition="a and (b or c)")

    assert alerts(either, events(("a", 1), ("b", 2), ("c", 3))) == [[1, 2], [1, 3]]


def test_rules_in_order() -> None:
    """Rules are the steps of a sequence of which the latest runs live."""
    ordered = correlation("temporal_ordered", "ab")

    assert alerts(ordered, events(("b", 0), ("a", 1), ("a", 2), ("b", 12), ("b", 13))) == [[2, 12]]


# --- groups and chains


def test_aliases_name_a_field_for_each_rule() -> None:
    """Events meet by other fields; without a field there is no group."""
    rows = [
        {"rule": "a", "t": 0, "src": "h1", "dst": None},
        {"rule": "b", "t": 1, "src": "h2", "dst": "h1"},
        {"rule": "b", "t": 2, "src": "h1", "dst": None},
    ]
    aliases = {"peer": {"a": "src", "b": "dst"}}
    both = correlation("temporal", "ab", aliases=aliases) | {"group-by": "peer"}

    assert [[row["t"] for row in alert] for alert in matchSigma(both, rows, RULES, "t")] == [[0, 1]]


def test_fields_within_fields() -> None:
    """A name with dots is a field of that name, or one within another."""
    rows = [{"rule": "a", "host.id": "h"}, {"rule": "a", "host": {"id": "h"}}]
    count = correlation("event_count", condition={"gte": 2}) | {"group-by": ["host.id"]}

    assert matchSigma(count, rows, RULES) == [rows]


def test_alerts_are_events_of_other_correlations() -> None:
    """An alert has the time and fields of its last event, and counts where it is named."""
    inner = correlation("event_count", condition={"gte": 2})
    outer = correlation("temporal_ordered") | {"rules": ["many", "b"]}
    given = events(("a", 0), ("a", 1), ("b", 11), ("b", 12))

    assert alerts(outer, given, {**RULES, "many": inner}) == [[0, 1, 11]]
    assert alerts(outer, given, {**RULES, "many": {"correlation": inner, "name": "m"}}) == [
        [0, 1, 11]
    ]


def test_a_chain_without_end_is_refused() -> None:
    """A correlation cannot be made of its own alerts."""
    one = correlation("temporal") | {"rules": ["a", "two"]}
    two = correlation("temporal") | {"rules": ["two"]}

    with pytest.raises(InvalidArgumentError, match="two: the correlation refers to itself"):
        matchSigma(one, events(("a", 0)), {**RULES, "two": two}, timestamp="t")


def test_conditions_are_functions_or_sql_and_events_tables() -> None:
    """Rules are conditions as for match, and events come in any form."""
    count = correlation("event_count", "ab", condition={"gte": 2})
    rules = {"a": lambda event: event.rule == "a", "b": "rule = 'b'"}
    table = pa.Table.from_pylist(events(("a", 1), ("b", 2)))

    assert alerts(count, table, rules) == [[1, 2]]


# --- refusals

_COUNT = correlation("event_count", condition={"gte": 2})


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (_COUNT | {"type": "event_counts"}, "unknown type 'event_counts'"),
        (_COUNT | {"timespan": None}, "no timespan"),
        (_COUNT | {"timespan": "1.5h"}, "timespan '1.5h'"),
        (_COUNT | {"timespan": "0m"}, "timespan '0m'"),
        (_COUNT | {"timespan": "2w"}, "weeks"),
        (_COUNT | {"timespan": "99999999999d"}, "longer than any calendar"),
        (_COUNT | {"timespan": "9" * 5000 + "s"}, "longer than any calendar"),
        (_COUNT | {"rules": []}, "no rules"),
        (_COUNT | {"rules": ["a", "a"]}, "named twice"),
        (_COUNT | {"groupby": "u"}, "unknown part 'groupby'"),
        (_COUNT | {"condition": None}, "without a condition"),
        (_COUNT | {"condition": {}}, "no bound"),
        (_COUNT | {"condition": {"above": 2}}, "unknown bound 'above'"),
        (_COUNT | {"condition": {"gte": "2"}}, "expected a number"),
        (_COUNT | {"condition": {"gte": math.nan}}, "expected a number"),
        (_COUNT | {"condition": {"lt": math.inf}}, "expected a number"),
        (_COUNT | {"condition": {"gt": 5, "lt": 6}}, "no number fits"),
        (_COUNT | {"condition": {"lt": 0}}, "no number fits"),
        (_COUNT | {"condition": {"gte": 2, "field": "u"}}, "with a field"),
        (_COUNT | {"aliases": {"p": {"z": "u"}}}, "unknown rule 'z'"),
        (_COUNT | {"aliases": {"p": {"a": 5}}}, "alias 'p': expected the name of a field, got 5"),
        (_COUNT | {"generate": "yes"}, "generate"),
        (correlation("value_count", condition={"gte": 2}), "without a field"),
        (correlation("value_sum", condition={"gte": 2, "field": ["u", "v"]}), "several fields"),
        (correlation("value_percentile", condition={"lt": 2, "field": "u"}), "without percentile"),
        (correlation("temporal", "ab", condition={"gte": 3}), "fits no number of rules"),
        (correlation("temporal", "ab", condition={"eq": 1}), "gt or gte"),
        (correlation("temporal", "ab", condition="a and d"), "names no rule: 'd'"),
        (correlation("temporal", "ab", condition="a and"), "wrong at its end"),
        (correlation("temporal", "ab", condition="not (a)"), "wrong at '\\('"),
        (correlation("temporal", "ab", condition="a or not b"), "absent rules only"),
        (correlation("temporal_ordered", "ab", condition="a and not b"), "temporal_ordered with"),
        ({"correlation": "x", "name": "n"}, "n: `correlation` is not a section"),
        ([_COUNT], "expected a mapping"),
    ],
)
def test_refusals(document: Any, why: str) -> None:
    """What a correlation cannot mean is refused by its name, with what to write instead."""
    with pytest.raises(CepError, match=why) as raised:
        matchSigma(document, [], RULES)
    assert raised.value.hint


def test_unknown_names_are_refused() -> None:
    """Rules without a condition and fields that no event has name the nearest."""
    with pytest.raises(InvalidArgumentError, match="unknown rule 'd'"):
        matchSigma(_COUNT | {"rules": ["d"]}, [], RULES)
    with pytest.raises(InputError, match="no event has the field 'user'"):
        matchSigma(_COUNT | {"group-by": ["user"]}, events(("a", 1)), RULES, "t")
    summed = correlation("value_sum", condition={"gte": 2, "field": "u"})
    for value in ("x", [1], {"n": 1}):
        with pytest.raises(InputError, match="expected numbers, got "):
            matchSigma(summed | {"group-by": []}, events(("a", 1), u=value), RULES, "t")
    with pytest.raises(NotSupportedError):
        matchSigma(_COUNT | {"timespan": "1M"}, [], RULES)
