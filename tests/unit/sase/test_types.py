# SPDX-License-Identifier: Apache-2.0
"""One check of types, and constants that are folded, in every evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep.engines.queries import query_matches
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase import parse
from pyflinkcep.tables.event_list import EventObjects
from pyflinkcep.testing import matchSase
from tests.property.optiseq_verify import start_cep
from tests.query_decimals import (
    CALCULATIONS,
    COMPARISONS,
    TYPES,
    as_table,
    groups,
    mean,
    pairs,
    total,
)

EVENTS = [
    {"type": "A", "s": "x", "x": 1, "y": 0.5, "flag": True, "day": date(2024, 1, 1), "none": None},
    {"type": "B", "s": "y", "x": 2, "y": 1.5, "flag": False, "day": date(2024, 1, 2), "none": None},
]
_SEQ = ("auto", "nfa", "backtracking", "eventLists")


def answers(text: str) -> Iterator[Any]:
    """Yield the number of matches, or the error, of every evaluation, and of compressed matches."""
    for form, evaluations in (("SEQ(A a, B b)", _SEQ), ("A a;B b", ("auto", "eventLists"))):
        for evaluation in evaluations:
            yield answer(f"PATTERN {form} {text}", evaluation=evaluation)
        if "HAVING" not in text:
            yield answer(f"PATTERN {form} {text}", compressed=True)


def answer(query: str, **how: Any) -> Any:
    try:
        found = matchSase(query, EVENTS, **how)
        return found.count() if how.get("compressed") else len(found)
    except (InputError, InvalidArgumentError) as error:
        return error.message.replace("A a;B b", "SEQ(A a, B b)")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("WHERE a.s > 3 WITHIN 5", "the condition 'a.s > 3': 'a.s > 3' puts string and bigint"),
        ("WHERE a.flag = 1", "puts boolean and bigint together"),
        ("WHERE b.x > 0 OR a.flag > b.y", "puts boolean and double together"),
        ("WHERE NOT a.x = b.s", "puts bigint and string together"),
        ("WHERE a.day > '2023-12-31'", "puts date and string together"),
        ("WHERE -a.s = b.s", "'-a.s' needs bigint or double, got string"),
        ("WHERE [s = 3]", "the test [s = 3]: 's = 3' puts string and bigint together"),
        ("WHERE a.x = 1 HAVING a.s > 3", "the output 'a.s > 3': 'a.s > 3' puts string and bigint"),
        ("RETURN a.s + 3 AS t", "the output 'a.s + 3': 'a.s + 3' needs bigint or double"),
        ("WHERE a.x = 1 AND 1 < 'a'", "puts bigint and string together"),
    ],
)
def test_incompatible_types_are_refused_alike(text: str, problem: str) -> None:
    """Every evaluation refuses values of different types, in the same words."""
    found = set(map(str, answers(text)))
    assert len({message.split(": ", 1)[1] for message in found}) == 1
    assert all(problem in message for message in found)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("WHERE a.none = 'x' OR a.x < b.y", 1),
        ("WHERE a.none > 3 OR a.none + 1 > b.none", 0),
        ("WHERE a.none IS NULL AND b.x > a.y", 1),
        ("WHERE a.x = 1 HAVING a.none IS NULL AND a.x < b.y", 1),
        ("WHERE [none = 'x']", 0),
        ("WHERE b.x = NULL", 0),
    ],
)
def test_null_fits_every_type(text: str, count: int) -> None:
    """An attribute that is NULL in every event is compared with anything, and never true."""
    assert set(answers(text)) == {count}


def test_no_events_have_no_types() -> None:
    """On an empty list every query has no match."""
    for evaluation in _SEQ:
        text = "PATTERN SEQ(A a, B b) WHERE a.s = 'x' AND b.x > 3 HAVING a.t > 'u' RETURN a.v + 1"
        assert matchSase(text, [], evaluation=evaluation) == []


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("(1 = 1 AND b.x > 0)", 1),
        ("1 = 1 AND b.x > 0", 1),
        ("(1 = 2 OR b.x > 0)", 1),
        ("(1 = 1 OR b.x > 5)", 1),
        ("NOT (1 = 2 AND b.x > 0)", 1),
        ("NOT (NULL = 1 OR b.x > 5)", 0),
        ("(NULL = 1 OR b.x > 0)", 1),
        ("(NULL = 1 AND b.x > 0)", 0),
        ("(NULL IS NULL AND b.x > 0)", 1),
        ("(2 + 3 * 2 = 9 AND b.x > 0)", 0),
        ("(10 / 0 > 1 OR b.x > 0)", 1),
        ("(1 IN (2, 3) OR a.x < b.x AND 'p' <> 'q')", 1),
        ("[s = 'x'] AND (1 = 1 AND b.x > 0)", 0),
        ("(1 = 2 AND a.x = 1) AND b.x > 0", 0),
    ],
)
def test_constants_are_folded(condition: str, count: int) -> None:
    """A condition that reads no event counts as true or false wherever it stands."""
    assert set(answers(f"WHERE {condition}")) == {count}
    assert set(answers(f"WHERE {condition} WITHIN 5")) == {count}
    query = parse(f"PATTERN A a;B b WHERE {condition}")
    assert parse(repr(query)) == query
    assert len(start_cep(query, EventObjects.of(EVENTS, None, "type", query).table)) == count
    having = condition.split("] AND ")[-1]
    expected = 1 if "[" in condition else count
    assert len(matchSase(f"PATTERN SEQ(A a, B b) HAVING {having}", EVENTS)) == expected


@pytest.mark.parametrize("never", ["(1 = 2 AND n.x > 0)", "(1 = 2 AND a[i].x > 0)"])
def test_a_condition_that_never_holds_leaves_no_match(never: str) -> None:
    """Whatever components it names: negated ones and loops too."""
    for evaluation in ("auto", "nfa", "backtracking"):
        text = f"PATTERN SEQ(A+ a[], ~N n, B b) WHERE {never}"
        assert matchSase(text, EVENTS, evaluation=evaluation) == []
        forbids = f"PATTERN SEQ(A+ a[], ~N n, B b) WHERE ({never} OR n.x < 5)"
        assert len(matchSase(forbids, EVENTS, evaluation=evaluation)) == 1


def test_where_must_name_a_variable() -> None:
    """A WHERE of constants alone is refused."""
    for condition in ("1 = 1", "(1 = 1 AND 2 = 2)", "1 = 1 AND NOT 1 = 2"):
        with pytest.raises(InvalidArgumentError, match="names no variable"):
            parse(f"PATTERN SEQ(A a) WHERE {condition}")


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "A a;B b"])
def test_aggregates_take_what_they_can_add(pattern: str) -> None:
    """Over compressed matches, texts, times and booleans have a least value, but no sum."""
    found = matchSase(f"PATTERN {pattern}", EVENTS, compressed=True)
    for text in ("sum(a.s)", "avg(b.s)", "sum(a.flag)", "avg(a.day)"):
        with pytest.raises(InputError, match=r"expected numbers, got (string|boolean|date)"):
            found.aggregate(text)
    assert found.aggregate("min(a.s)", "max(b.day)", "count(a.s)", "sum(a.none)") == {
        "min(a.s)": "x",
        "max(b.day)": date(2024, 1, 2),
        "count(a.s)": 1,
        "sum(a.none)": None,
    }
    exact = [{**event, "x": Decimal(event["x"])} for event in EVENTS]
    assert matchSase(f"PATTERN {pattern}", exact, compressed=True).aggregate("sum(b.x)") == {
        "sum(b.x)": 2
    }


# --- what numbers are beside each other in HAVING and RETURN of events in memory


MIXED = [
    {"type": "A", "n": 7, "x": 2.5, "s": "p"},
    {"type": "B", "n": 2**53 + 1, "x": None, "s": "q"},
    {"type": "B", "n": None, "x": 1.0, "s": None},
]

RETURNED: dict[str, list[object]] = {
    "coalesce(b.n, b.x)": [float(2**53), 1.0],
    "coalesce(a.n, b.n)": [7, 7],
    "if(a.x > 1, a.n, b.x)": [7.0, 7.0],
    "greatest(b.n, b.x)": [float(2**53), 1.0],
    "coalesce(b.n, NULL, a.n)": [2**53 + 1, 7],
    "coalesce(b.s, a.s)": ["q", "p"],
    "nullif(a.n, a.x)": [7, 7],
}


@pytest.mark.parametrize(("value", "expected"), RETURNED.items())
def test_a_choice_of_numbers_has_the_wider_type(value: str, expected: list[object]) -> None:
    """A whole number beside a double is a double, as in Spark, whichever of them is chosen."""
    query = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match RETURN {value} AS v"
    found = [row["v"] for row in matchSase(query, MIXED)]
    assert [(v, type(v)) for v in found] == [(v, type(v)) for v in expected]


def test_an_average_is_a_double() -> None:
    """A count and a greatest whole number are none."""
    values = "if(a.n = 7, a.n, avg(b[].n)) AS u, if(a.n = 7, a.n, max(b[].n)) AS v"
    query = f"PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match RETURN {values}"
    (row, *_) = matchSase(query, MIXED)
    assert (repr(row["u"]), repr(row["v"])) == ("7.0", "7")


# --- decimals in queries are exact, in every evaluation, from lists and tables, in C and without


EVALUATIONS = ("nfa", "backtracking", "eventLists")
PLAIN = ((4, 2), (18, 3), (38, 18), (38, 0))
"""The types without C, where every decimal is one of Python's: small, large, two that overflow."""

each_type = pytest.mark.parametrize(
    ("digits", "each_path"),
    [*((digits, "kernel") for digits in TYPES), *((digits, "plain") for digits in PLAIN)],
    ids=str,
    indirect=["each_path"],
)


def found(text: str, events: Any, evaluation: str) -> set[int]:
    """Return the keys of the pairs for which a condition holds."""
    query = f"PATTERN SEQ(A a, B b) WHERE [k] AND {text} WITHIN 1000000"
    return {match["a"][0]["k"] for match in matchSase(query, events, evaluation=evaluation)}


@pytest.mark.slow
@each_type
def test_comparisons_are_exact(digits: tuple[int, int], each_path: None) -> None:
    """To the last of 38 digits: lists and tables, joined and by runs."""
    events = pairs(*digits)
    table = as_table(events, *digits)
    for text, rule in COMPARISONS.items():
        expected = {a["k"] for a, b in zip(events[::2], events[1::2], strict=True) if rule(a, b)}
        for evaluation in EVALUATIONS:
            for source in (events, table):
                assert (text, evaluation, found(text, source, evaluation)) == (
                    text,
                    evaluation,
                    expected,
                )


@pytest.mark.slow
@each_type
def test_calculations_agree(digits: tuple[int, int], each_path: None) -> None:
    """Every evaluation calculates alike; tests on Spark hold the values to Spark's."""
    table = as_table(pairs(*digits), *digits)
    for text in CALCULATIONS:
        one, *others = (found(text, table, evaluation) for evaluation in EVALUATIONS)
        assert all(other == one for other in others), text


@pytest.mark.slow
@each_type
def test_aggregates_are_exact(digits: tuple[int, int], each_path: None) -> None:
    """Sums, averages and extremes of loops, in conditions and in what is returned."""
    expected: list[dict[str, Any]] = []
    of_size: dict[int, list[dict[str, Any]]] = {}
    for k, values in enumerate(groups(*digits)):
        known = [value for value in values if value is not None]
        facts = {
            "sum": total(values), "avg": mean(values, digits[1]), "min": min(known, default=None),
            "max": max(known, default=None),
        }  # fmt: skip
        expected.append({"a_k": k, **facts})
        loop = [{"type": "B", "k": k, "p": value} for value in values]
        own = [{"type": "A", "k": k}, *loop, {"type": "C", "k": k, **facts}]
        of_size.setdefault(len(values), []).extend(own)
    functions = ("sum", "avg", "min", "max")
    schema = pa.schema(
        {
            "type": pa.string(),
            "k": pa.int64(),
            "p": pa.decimal128(*digits),
            **{f: pa.decimal128(38, min(digits[1] + 4 * (f == "avg"), 38)) for f in functions},
        }
    )
    test = " AND ".join(
        f"({f}(b[].p) = c.{f} OR ({f}(b[].p) IS NULL AND c.{f} IS NULL))" for f in functions
    )
    shown = ", ".join(f"{f}(b[].p) AS {f}" for f in functions)
    found = []
    for size, events in of_size.items():
        keys = sorted({event["k"] for event in events})
        table = pa.Table.from_pylist(events, schema)
        for source in (table, table.to_pylist()):
            loops = f"PATTERN SEQ(A a, B+ b[], C c) WHERE strict_contiguity AND {test}"
            rows = matchSase(f"{loops} RETURN a.k, {shown}", source, evaluation="nfa")
            assert [dict(row) for row in rows] == [expected[k] for k in keys]
            lists = f"PATTERN A a; B^{size} b; C c WHERE [k] AND {test}"
            assert [match["a"][0]["k"] for match in matchSase(lists, source)] == keys
        found += keys
    assert sorted(found) == list(range(len(expected)))


def test_decimals_beside_doubles_in_one_attribute_are_refused() -> None:
    """What has no common type, and what is no number."""
    query = "PATTERN SEQ(A a, A b) WHERE b.p > a.p"
    mixed = [{"type": "A", "p": Decimal(1)}, {"type": "A", "p": 0.5}]
    with pytest.raises(InputError, match=r"attribute 'p'.*decimal\(1,0\) and double"):
        matchSase(query, mixed)
    whole = [{"type": "A", "p": Decimal("0.5")}, {"type": "A", "p": 2**62}]
    assert len(matchSase(query, whole)) == 1
    with pytest.raises(InputError, match="NaN"):
        matchSase(query, [{"type": "A", "p": Decimal("NaN")}] * 2)


# --- dates and times in conditions of queries on lists


_BEGIN = datetime(2024, 2, 28, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment",
    [
        lambda n: _BEGIN + timedelta(minutes=n),
        lambda n: (_BEGIN + timedelta(days=n)).replace(tzinfo=None),
        lambda n: (_BEGIN + timedelta(days=n)).date(),
    ],
)
def test_every_evaluation_compares_times(moment: Callable[[int], Any]) -> None:
    """Times compare as they pass, NULL with nothing, whoever finds or counts the matches."""
    places = [0, 2, 4, None, 3, 0, 2, 4]
    events = [
        {"type": "AB"[n % 2], "t": None if place is None else moment(place)}
        for n, place in enumerate(places)
    ]
    expected = sum(
        a % 2 == 0 and b % 2 == 1 and None not in (places[a], places[b]) and places[b] > places[a]
        for b in range(8)
        for a in range(b)
    )
    query = "PATTERN SEQ(A a, B b) WHERE b.t > a.t"
    for evaluation in ("nfa", "backtracking", "eventLists"):
        assert len(matchSase(query, events, evaluation=evaluation)) == expected == 4
    assert matchSase(query, events, compressed=True).count() == expected
    rising = "PATTERN SEQ(A a, B+ b[]) WHERE b[i].t > b[i-1].t"
    assert matchSase(rising, events, compressed=True).count() == len(matchSase(rising, events))


_RULES: dict[str, Callable[[datetime, datetime], bool]] = {
    "b.t - a.t < INTERVAL '5' MINUTE": lambda a, b: b - a < timedelta(minutes=5),
    "b.t > a.t + INTERVAL 90 SECONDS": lambda a, b: b > a + timedelta(seconds=90),
    "abs(b.t - a.t) >= INTERVAL '0 00:03:00' DAY TO SECOND": lambda a, b: (
        abs(b - a) >= timedelta(minutes=3)
    ),
    "b.t >= TIMESTAMP '2024-02-29 00:00:00' AND a.t IS NOT NULL": lambda a, b: (
        b >= datetime(2024, 2, 29, tzinfo=UTC)
    ),
    "NOT b.t BETWEEN TIMESTAMP '2024-02-28 23:59' AND TIMESTAMP '2024-02-29 00:01:00Z' AND "
    "a.t < TIMESTAMP '2030-01-01'": lambda a, b: (
        abs(b - datetime(2024, 2, 29, tzinfo=UTC)) > timedelta(minutes=1)
    ),
    "b.t >= TIMESTAMP '2024-02-29 00:59:00 Europe/Berlin' AND a.t IS NOT NULL": lambda a, b: (
        b >= datetime(2024, 2, 28, 23, 59, tzinfo=UTC)
    ),
    "b.t < TIMESTAMP '2024-02-28 19:02:00 America/New_York' AND a.t > TIMESTAMP '2024-02-28 23:58:30 "
    "UTC'": lambda a, b: (
        b < datetime(2024, 2, 29, 0, 2, tzinfo=UTC) and a > datetime(2024, 2, 28, 23, 58, 30, tzinfo=UTC)
    ),
    "datediff(b.d, a.d) = 1 AND a.t IS NOT NULL AND b.t IS NOT NULL": lambda a, b: (
        b.day - a.day == 1
    ),
    "b.t < DATE '2024-02-29' AND a.t IS NOT NULL": lambda a, b: (
        b < datetime(2024, 2, 29, tzinfo=UTC)
    ),
    "TIMESTAMP '2024-02-29 00:00:00' - a.t > INTERVAL '1' MINUTE AND b.t > a.t": lambda a, b: (
        datetime(2024, 2, 29, tzinfo=UTC) - a > timedelta(minutes=1) and b > a
    ),
    "b.d = DATE '2024-02-29' AND b.d - a.d = INTERVAL '1' DAY AND a.t IS NOT NULL": lambda a, b: (
        (a.day, b.day) == (28, 29)
    ),
}  # fmt: skip


def _moments() -> list[dict[str, Any]]:
    minutes = [55, 57, None, 59, 62, 60, 61, 58, 66, 64]
    times = [None if m is None else _BEGIN + timedelta(minutes=m) for m in minutes]
    return [
        {"id": n, "type": "AB"[n % 2], "t": time, "d": None if time is None else time.date()}
        for n, time in enumerate(times)
    ]


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("has_zone", [True, False])
def test_literal_times_and_intervals(has_zone: bool) -> None:
    """TIMESTAMP, DATE and INTERVAL stand beside times in every evaluation, and in HAVING."""
    events = _moments()
    for text, rule in _RULES.items():
        expected = {
            (a["id"], b["id"])
            for b in events[1::2]
            for a in events[::2]
            if a["id"] < b["id"] and None not in (a["t"], b["t"]) and rule(a["t"], b["t"])
        }
        assert 0 < len(expected) < 14, text
        query = parse(f"PATTERN SEQ(A a, B b) WHERE {text} WITHIN 99")
        assert parse(repr(query)) == query
        rows = (
            events
            if has_zone
            else [{**e, "t": e["t"] and e["t"].replace(tzinfo=None)} for e in events]
        )
        for evaluation in ("nfa", "backtracking", "eventLists"):
            found = matchSase(query, rows, evaluation=evaluation)
            got = {(m["a"][0]["id"], m["b"][0]["id"]) for m in found}
            assert (text, evaluation, got) == (text, evaluation, expected)
        assert matchSase(query, rows, compressed=True).count() == len(expected)
        if has_zone and "abs" not in text:
            having = matchSase(f"PATTERN SEQ(A a, B b) HAVING {text}", rows)
            assert {(m["a"][0]["id"], m["b"][0]["id"]) for m in having} == expected


def test_tests_of_literal_times() -> None:
    """[attr = literal] takes them too."""
    events = _moments()
    for test in ("d = DATE '2024-02-29'", "t = TIMESTAMP '2024-02-29 00:00:00'"):
        for evaluation in ("nfa", "backtracking", "eventLists"):
            found = matchSase(
                f"PATTERN SEQ(B b) WHERE [{test}] WITHIN 9", events, evaluation=evaluation
            )
            assert [m["b"][0]["id"] for m in found] == ([5, 9] if "d =" in test else [5])


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a.t > TIMESTAMP '2024-02-01 10:00 Berlin'", "expected a timestamp"),
        ("a.t > TIMESTAMP '2024-02-01 10:00 ../UTC'", "expected a timestamp"),
        ("a.t > TIMESTAMP 'noon'", "column 45: expected a timestamp, got 'noon'"),
        ("a.t > DATE '2024-02-30'", "expected a date, got '2024-02-30'"),
        ("a.t > DATE '2024-02-01 10:00'", "expected a date"),
        ("b.t - a.t < INTERVAL '1' MONTH", "INTERVAL '1' MONTH has no length"),
        ("b.t - a.t < INTERVAL - b.t", "expected the length of an interval, got 'b'"),
        ("a.d > TIMESTAMP '2024-02-01'", "puts date and timestamp together"),
        ("a.id > DATE '2024-02-01'", "puts bigint and date together"),
    ],
)
def test_literal_times_that_are_none(condition: str, message: str) -> None:
    """Refused with their place, or by their types."""
    with pytest.raises((InputError, InvalidArgumentError)) as error:
        matchSase(f"PATTERN SEQ(A a, B b) WHERE {condition}", _moments())
    assert message in str(error.value)


def test_literal_times_are_returned_as_times() -> None:
    """As on Spark, alone and as a result of a function; of a clock in UTC."""
    noon = datetime(2024, 2, 29, 12, tzinfo=UTC)
    returned = (
        "TIMESTAMP '2024-02-29 12:00:00' AS t, DATE '2024-02-29' AS d, "
        "greatest(a.t, TIMESTAMP '2024-02-29 13:00:00 Europe/Berlin') AS g, "
        "CASE WHEN a.t < TIMESTAMP '2024-02-29 12:00:00' THEN DATE '2024-03-01' END AS c"
    )
    (row,) = matchSase(f"PATTERN SEQ(A a) RETURN {returned}", [{"type": "A", "t": _BEGIN}])
    assert row == {"t": noon, "d": noon.date(), "g": noon, "c": datetime(2024, 3, 1).date()}


# --- the tests ``[attr = literal]`` are comparisons as others are, in every evaluation


LARGE = 2**53


@pytest.mark.parametrize(
    ("value", "literal", "holds"),
    [
        (float(LARGE), str(LARGE + 1), True),  # compared as doubles
        (LARGE + 1, f"{LARGE}.0", True),
        (LARGE + 1, str(LARGE), False),
        (-0.0, "0", True),
        (float("nan"), "1", False),
        (0.1, "0.1", True),
        (0.8, "80%", True),
        (None, "1", False),
        (True, "TRUE", True),
        ("a", "'a'", True),
        ("b", "'a'", False),
        (date(2026, 1, 1), "DATE '2026-01-01'", True),
        (datetime(2026, 1, 1, tzinfo=UTC), "DATE '2026-01-01'", True),
        (datetime(2026, 1, 1, tzinfo=UTC), "TIMESTAMP '2026-01-01 02:00:00+02:00'", True),
    ],
)
@pytest.mark.usefixtures("each_path")
def test_a_test_is_the_condition(value: Any, literal: str, holds: bool) -> None:
    """It holds of events of which ``attr = literal`` holds, those of negated components too."""
    rows = [{"type": kind, "ts": n, "k": value} for n, kind in enumerate("ANB")]
    for test in (f"[k = {literal}]", f"a.k = {literal} AND b.k = {literal}"):
        for evaluation in ("nfa", "backtracking", "eventLists"):
            query = f"PATTERN SEQ(A a, B b) WHERE {test} WITHIN 9"
            assert len(matchSase(query, rows, "ts", evaluation=evaluation)) == holds  # type: ignore[call-overload]
        assert len(matchSase(f"PATTERN A a; B b WHERE {test} WITHIN 9", rows, "ts")) == holds
    absent = f"PATTERN SEQ(A a, ~(N n), B b) WHERE [k = {literal}] WITHIN 9"
    assert matchSase(absent, rows, "ts") == []


# --- the partitions of a table of events


_AS_LIST = [None, None, 1, 1]
_AS_ARRAY = np.ma.MaskedArray([0, 0, 1, 1], [True, True, False, False])


@pytest.mark.parametrize("keys", [None, [1, 1, 2, 2]])
@pytest.mark.parametrize("values", [_AS_LIST, _AS_ARRAY], ids=["list", "array"])
@pytest.mark.parametrize("evaluation", ["nfa", "backtracking"])
def test_null_equals_nothing(keys: list[int] | None, values: Any, evaluation: str) -> None:
    """Events whose [attr] is NULL match alone, however a column says NULL, by key or not."""
    table = EventTable(range(4), ["A"] * 4, {"k": values}, {"k": Kind.BIGINT}, keys)
    loop = query_matches(parse("PATTERN SEQ(A+ a[]) WHERE [k]"), table, evaluation, "all")
    assert sorted(match["a"] for match in loop) == [[0], [1], [2], [2, 3], [3]]
    two = query_matches(parse("PATTERN SEQ(A a, A b) WHERE [k]"), table, evaluation, "all")
    assert list(two) == [{"a": [2], "b": [3]}]
