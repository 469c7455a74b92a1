# SPDX-License-Identifier: Apache-2.0
"""Many rules in one pass: what a match has, what is refused, and rules that are asked row by row."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from pyflinkcep import (
    CepError,
    Eql,
    FunctionError,
    InputError,
    InvalidArgumentError,
    NotSupportedError,
    Pattern,
    match,
    matchEql,
    matchMany,
    parse,
    textTime,
)
from pyflinkcep.rules import Rule, SigmaCorrelation
from pyflinkcep.rules.query_rules import type_at

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS: list[dict[str, Any]] = [
    {"at": BEGIN, "user": "ann", "type": "login", "n": 1},
    {"at": BEGIN + timedelta(seconds=5), "user": "bob", "type": "login", "n": 2},
    {"at": BEGIN + timedelta(seconds=7), "user": "ann", "type": "pay", "n": 900},
]
PAID = Pattern.begin("login").where("type = 'login'").followedBy("pay").where("n > 500")


def _steps(count: int) -> Pattern:
    """Return a pattern with more conditions than a word has bits, and a match of one event."""
    pattern = Pattern.begin("s0").where("n > 0")
    for number in range(1, count):
        pattern = pattern.followedBy(f"s{number}").where(f"n > {number}").optional()
    return pattern


def test_what_a_match_has() -> None:
    """Rule, version, key, time and events; the same id in each run, another for another version."""
    rules = {"paid": Rule("ignored", PAID, ("user",), version=3)}
    (found,) = matchMany(rules, EVENTS, timestamp="at")
    (again,) = matchMany(rules, pa.Table.from_pylist(EVENTS), timestamp="at")
    (other,) = matchMany({"paid": Rule("paid", PAID, ("user",))}, EVENTS, timestamp="at")

    assert (found.rule, found.version, found.key) == ("paid", 3, {"user": "ann"})
    assert found.time == EVENTS[2]["at"]
    assert {stage: [e["n"] for e in own] for stage, own in found.events.items()} == {
        "login": [1],
        "pay": [900],
    }
    assert found.row is None
    assert found.matchId == again.matchId != other.matchId


def test_ids_do_not_depend_on_a_clock() -> None:
    """The same moments make the same id, whatever time zone shows them."""
    table = pa.Table.from_pylist(EVENTS)
    shown = table.set_column(0, "at", table["at"].cast(pa.timestamp("us", "Asia/Tokyo")))
    (found,) = matchMany({"paid": Rule("", PAID, ("user",))}, table, timestamp="at")
    (again,) = matchMany({"paid": Rule("", PAID, ("user",))}, shown, timestamp="at")

    assert again.events["pay"][0]["at"].utcoffset() == timedelta(hours=9)
    assert found.matchId == again.matchId


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_texts_of_keys_do_not_depend_on_a_clock(zone: str) -> None:
    """A moment is shown as by the clock of UTC, also one of an array, as a stream does."""
    at = pa.array([datetime(2023, 11, 14, 22, tzinfo=UTC)] * 2).cast(pa.timestamp("us", zone))
    table = pa.table({"ts": [1, 2], "at": at, "every": [[one] for one in at], "n": [1, 2]})
    rules = {
        "pattern": Rule("", Pattern.begin("a").where("n = 1").next("b"), ("at",)),
        "array": Eql("sequence by every [any where n == 1] [any where n == 2]"),
    }
    found = matchMany(rules, table, timestamp="ts").toArrow()

    assert found["key"].to_pylist() == [
        [("at", "2023-11-14 22:00:00+00:00")],
        [("every", "2023-11-14 22:00:00+00:00")],
    ]


@pytest.mark.parametrize(("rules", "events"), [({"paid": PAID}, []), ({}, EVENTS)])
def test_columns_without_matches(rules: Any, events: Any) -> None:
    """Without events or rules the table of matches has the columns that it has with them."""
    names = matchMany({"paid": PAID}, EVENTS, timestamp="at").toArrow().column_names

    assert matchMany(rules, events).toArrow().column_names == names


def test_zeros_are_one_key() -> None:
    """0.0 and -0.0 are one key in all languages, in columns and lists too."""
    rules: dict[str, Any] = {
        "pattern": Rule("", Pattern.begin("a").where("n = 1").next("b").where("n = 2"), ("x",)),
        "eql": Eql("sequence by x [any where n == 1] [any where n == 2]"),
    }
    events = {"x": [0.0, -0.0], "n": [1, 2], "type": ["a", "a"]}
    lists = {**events, "x": pa.array([[0.0], [-0.0]])}

    assert [one.rule for one in matchMany(rules, events)] == ["pattern", "eql"]
    assert len(matchMany({"eql": rules["eql"]}, pa.table(lists))) == 1


def test_keys_of_each_language() -> None:
    """The key of EQL is that of its first step, of a query also what its events have in common."""
    rules: dict[str, Any] = {
        "eql": Eql("sequence by user [login where true] [pay where n > 1]"),
        "sase": parse("PATTERN SEQ(login a, pay b) WHERE [user]"),
        "both": Rule("both", parse("PATTERN SEQ(login a, pay b)"), ("user",)),
        "none": PAID,
    }
    found = matchMany(rules, EVENTS, timestamp="at")

    assert [(one.rule, dict(one.key)) for one in found] == [
        ("eql", {"user": "ann"}),
        ("sase", {"user": "ann"}),
        ("both", {"user": "ann"}),
        ("none", {}),
        ("none", {}),
    ]
    assert [list(one.events) for one in found][:2] == [["1", "2"], ["a", "b"]]


def test_rows() -> None:
    """A rule selects, a query returns."""
    pays = Rule("pays", PAID, ("user",), select=lambda events: {"n": events["pay"][0].n})
    returns = Rule("sum", parse("PATTERN SEQ(login a, pay b) RETURN a.n + b.n AS sum"), ("user",))
    found = matchMany([pays, returns], EVENTS, timestamp="at")

    assert [one.row for one in found] == [{"n": 900}, {"sum": 901}]


def test_dicts_as_they_come() -> None:
    """Dicts may have whole numbers beside fractions, clocks of any zone, lists, and dicts."""
    events: list[dict[str, Any]] = [
        {"t": BEGIN.replace(tzinfo=None), "host": {"name": "h"}, "n": 1, "tags": ["a"]},
        {"t": BEGIN + timedelta(seconds=1), "host": {"id": 4}, "n": 0.5, "tags": []},
        {"t": BEGIN + timedelta(seconds=2), "host": {"name": "h"}, "n": 2, "type": "pay"},
    ]
    query = Eql("sequence by host.name [any where n < 2] [pay where n == 2]")
    (found,) = matchMany({"r": query}, events, timestamp="t")

    assert matchEql(query, events, timestamp="t") == [[events[0], events[2]]]
    assert [event["n"] for own in found.events.values() for event in own] == [1, 2]
    assert dict(found.key) == {"host.name": "h"}
    for wrong in ([1], True, "1", 2**70):
        with pytest.raises(InvalidArgumentError, match="values of one type in the field 'n', got"):
            matchMany({"r": query}, [*events, {**events[0], "n": wrong}], timestamp="t")


def test_sequences_and_tables() -> None:
    """Matches are a sequence by rule, and a table with a map of stages."""
    events = {"n": list(range(3000))}
    rules = {
        "odd": Pattern.begin("a").where("n % 2 = 1"),
        "big": Pattern.begin("b").where("n > 2998"),
    }
    found = matchMany(rules, events)
    table = found.toArrow()

    assert (len(found), repr(found)) == (1501, "RuleMatches({'odd': 1500, 'big': 1})")
    assert [one.events["a"][0].n for one in found[1498:1500]] == [2997, 2999]
    assert found[-1].rule == "big"
    assert found.of("big") == [found[1500]]
    assert table.column_names == ["rule", "version", "key", "matchId", "matchTimestamp", "events"]
    assert table.to_pylist()[-1]["events"] == [("b", [{"n": 2999}])]
    assert list(matchMany(rules, [])) == []
    assert matchMany(rules, []).toArrow().num_rows == 0
    assert list(matchMany({}, events)) == []


def test_values_in_tables() -> None:
    """Keys and ids in a table are those of the matches, whatever the columns hold."""
    at = datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=ZoneInfo("Europe/Rome"))
    events = pa.table(
        {
            "at": pa.array([at, at, at], pa.timestamp("us", "Europe/Rome")),
            "n": [1, None, 3],
            "a%s.b": [0.1, math.nan, -0.0],
            "text": ['é\n"', "\u2028", None],
            "s": [{"x": [1, 2], "y": {"z": "q"}}, None, {"x": [], "y": None}],
            "m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "d": [Decimal("1.50"), Decimal("0.00"), None],
            "raw": [b"\xff", b"", None],
            "yes": [True, False, None],
            "texts": [["a", None, '"'], [], None],
            "lists": [[[1], None], [[]], None],
        }
    )
    rules = [
        *(
            Rule(name, Pattern.begin('a"b').followedBy("c").oneOrMore(), (name,))
            for name in ("at", "n", "a%s.b", "text", "d", "raw", "yes")
        ),
        Rule("loop", Pattern.begin("a").followedBy("b").followedBy("c"), version=2),
        Rule("eql", Eql("sequence by s.y.z [any where true] [any where true]")),
        Rule("none", Pattern.begin("a").where("n > 5")),
    ]
    found = matchMany(rules, events, timestamp="at", type="text")
    rows = found.toArrow().to_pylist()

    assert len(found) > 3
    assert [row["matchId"] for row in rows] == [match.matchId for match in found]
    assert [dict(row["key"]) for row in rows] == [
        {name: _shown(value) for name, value in match.key.items()} for match in found
    ]


def _shown(value: Any) -> str | None:
    if isinstance(value, datetime):
        value = value.astimezone(UTC)  # by the same clock on a table and on a stream
    return None if value is None else f"{value}"


@pytest.mark.parametrize(
    "pattern",
    [
        Pattern.begin("a").where(lambda e: e.n > 1),
        Pattern.begin("a").where("n > 1").next("b").where(lambda e, ctx: e.n > 1),
        Pattern.begin("a").where("upper(user) = 'BOB'").followedBy("b").where("n > last(a.n)"),
        _steps(70),
        Pattern.begin("a")
        .where("n > 1")
        .notFollowedBy("b")
        .where("n > 3")
        .within(timedelta(seconds=9)),
    ],
)
def test_any_condition(pattern: Pattern) -> None:
    """Functions, SQL that is computed row by row and SQL over stages have their own ways."""
    found = matchMany({"r": Rule("r", pattern, ("user",))}, EVENTS, timestamp="at")
    alone = match(pattern, EVENTS, timestamp="at", key="user")

    assert [one.events for one in found] == list(alone)


def test_sql_and_functions_of_one_shape() -> None:
    """A pattern of functions wants all events, though one of SQL of its shape wants few."""
    sql = Pattern.begin("a").where("n > 1").followedBy("b").where("n > 2")
    functions = Pattern.begin("a").where(lambda e: e.n > 1).followedBy("b").where(lambda e: e.n > 2)
    found = matchMany({"sql": sql, "functions": functions}, EVENTS, timestamp="at")

    assert [one.events for one in found.of("functions")] == [one.events for one in found.of("sql")]
    assert len(found) == 2


def test_times_as_text() -> None:
    """The hint for them says what to pass, and it matches; so does that of EQL."""
    given: Any = [{"at": "2024-05-06T09:00:00Z", "n": 1}, {"at": "2024-05-06T09:00:01Z", "n": 2}]
    time: Any = textTime("at")
    pattern, query = Pattern.begin("a").where("n = 1").next("b"), "any where n == 1"
    for call in (
        lambda: matchMany({"r": pattern}, given, time),
        lambda: matchEql(query, given, time),
    ):
        with pytest.raises(InvalidArgumentError) as error:
            call()
        assert (
            error.value.hint == "write timestamp='at', and textTime('at').table(events) as events"
        )

    assert len(matchMany({"r": pattern}, time.table(given), timestamp="at")) == 1
    assert len(matchEql(query, time.table(given), timestamp="at")) == 1


@pytest.mark.parametrize(
    ("select", "what"),
    [
        (lambda events: events["pai"], "its select raised KeyError: 'pai'"),
        (lambda events: 3, "its select returned 3, no dict"),
    ],
)
def test_a_select_that_fails(select: Any, what: str) -> None:
    """What a rule's function raises, or returns in place of a dict, is told with the rule."""
    with pytest.raises(FunctionError, match=f"rule 'r': {what}") as error:
        list(matchMany({"r": Rule("", PAID, ("user",), select=select)}, EVENTS, timestamp="at"))
    assert error.value.hint


def test_a_key_is_no_text() -> None:
    """The key of a rule is a tuple: of a text each letter would be a column."""
    wrong: Any = "user"
    with pytest.raises(InvalidArgumentError, match=r"rule 'r': expected a tuple .* got 'user'"):
        Rule("r", PAID, wrong)


@pytest.mark.parametrize(
    ("rules", "events", "error", "message"),
    [
        (
            {"r": "x"},
            EVENTS,
            InvalidArgumentError,
            "rule 'r': expected a Pattern, SaseQuery, Eql or Sigma",
        ),
        ([PAID], EVENTS, InvalidArgumentError, "expected a Rule, got Pattern"),
        ([Rule("r", PAID), Rule("r", PAID)], EVENTS, InvalidArgumentError, "'r' is the name of"),
        ({"r": PAID}, [object()], InvalidArgumentError, "expected events in columns"),
        ({"r": Rule("r", PAID, ("who",))}, EVENTS, InputError, "no column 'who'"),
        (
            {"r": Rule("r", parse("PATTERN SEQ(A a, B b)"), ("a.b",))},
            EVENTS,
            InputError,
            "no column 'a.b'",
        ),
        ({"r": Pattern.begin("a").where("m > 1")}, EVENTS, CepError, "no column 'm'"),
        (
            {"r": parse("PATTERN SEQ(A a, B b) WITHIN 2 minutes SLIDE 1 minute RETURN count(*)")},
            EVENTS,
            NotSupportedError,
            "THEN, SLIDE and RETURN EVENT",
        ),
    ],
)
def test_refusals(rules: Any, events: Any, error: type[Exception], message: str) -> None:
    """What is no rule, or cannot be matched together with others, is refused by its name."""
    with pytest.raises(error, match=message):
        matchMany(rules, events, timestamp="at")


def _counted(**own: Any) -> SigmaCorrelation:
    counted = {"type": "event_count", "rules": ["r"], "timespan": "1s", "condition": {"gte": 2}}
    inner = own.pop("inner", None)
    rules = {"r": "n > 0", **({"inner": {**counted, **inner}} if inner else {})}
    return SigmaCorrelation({**counted, **own}, rules)


@pytest.mark.parametrize("name", ["one", "pairs", "listed"])
@pytest.mark.parametrize(
    "rule_by",
    [
        lambda name: Rule("", PAID, (name,)),
        lambda name: _counted(**{"group-by": [name]}),
        lambda name: _counted(**{"group-by": ["own"], "aliases": {"own": {"r": name}}}),
        lambda name: _counted(rules=["inner"], inner={"group-by": [name]}),
        lambda name: _counted(type="value_count", condition={"field": name, "gte": 2}),
        lambda name: _counted(type="value_sum", condition={"field": name, "gte": 2}),
        lambda name: Pattern.begin("a").where("n > 0").next("b").where(f"{name} = last(a.{name})"),
    ],
)
def test_types_that_are_refused(rule_by: Callable[[str], Any], name: str) -> None:
    """Structs and maps, in lists too, are no keys, groups or numbers, whatever events there are."""
    struct, pairs = pa.struct({"q": pa.int64()}), pa.map_(pa.string(), pa.int64())
    types = {"one": struct, "pairs": pairs, "listed": pa.list_(struct), "amount": pa.int64()}
    fields = {"at": pa.int64(), "type": pa.string(), "n": pa.int64(), **types}
    with pytest.raises(InputError, match=rf"{name}'.*: expected .*, got (struct|map|list|array)<"):
        matchMany({"r": rule_by(name)}, pa.schema(fields).empty_table(), timestamp="at")


HAVING = {
    "sum(b[].{0}) > 0": {"one", "pairs", "listed", "bytes"},
    "avg(b[].{0}) IS NULL": {"one", "pairs", "listed", "bytes"},
    "a.{0} = b[1].{0}": {"pairs"},
    "max(b[].{0}) IS NOT NULL": {"pairs"},
    "CASE WHEN a.at > 0 THEN a.{0} ELSE b[1].{0} END IS NULL": set(),
    "coalesce(a.{0}, b[1].{0}) = b[1].{0}": {"pairs"},
    "last(b[].{0}) IS NULL AND a.{0} IS NOT NULL AND count(b[].{0}) > 0": set[str](),
}


@pytest.mark.parametrize("having", HAVING)
def test_having_that_is_refused(having: str) -> None:
    """Sums of what is no number, and comparisons of maps, whatever events there are."""
    struct, pairs = pa.struct({"q": pa.int64()}), pa.map_(pa.string(), pa.int64())
    types = {"one": struct, "pairs": pairs, "listed": pa.list_(struct), "bytes": pa.binary()}
    events = pa.schema({"at": pa.int64(), "type": pa.string(), **types}).empty_table()
    refused: dict[str, str] = {}
    for name in types:
        rule = parse(f"PATTERN SEQ(A a, B+ b[]) HAVING {having.format(name)}")
        try:
            matchMany({"r": rule}, events, timestamp="at")
        except InputError as error:
            refused[name] = error.message

    assert set(refused) == HAVING[having]
    assert all(f".{name}" in message for name, message in refused.items())


def test_a_correlation_wants_what_it_names() -> None:
    """Of the conditions that it is given, those of other rules may read what events lack."""
    counted = {"type": "event_count", "rules": ["big"], "timespan": "1m", "condition": {"gte": 2}}
    sigma = SigmaCorrelation(counted, {"big": "n > 1", "other": "missing = 1"})
    (found,) = matchMany({"r": sigma}, EVENTS, timestamp="at")

    assert [event["n"] for event in found.events["events"]] == [2, 900]


@pytest.mark.parametrize("where", ["get_json_object(user, '$.x') = 1", "missing = 1"])
def test_an_error_names_its_rule(where: str) -> None:
    """What goes wrong in one rule of many has a note with its name."""
    rules = {"good": PAID, "bad": Pattern.begin("a").where(where)}
    with pytest.raises(CepError) as raised:
        matchMany(rules, EVENTS, timestamp="at")

    assert raised.value.__notes__ == ["in rule 'bad'"]


def test_keys_of_arrays() -> None:
    """Sequences by an array are of one of its values each, by which their keys and ids differ."""
    events = {
        "at": [1, 2, 3, 4],
        "ids": [["x", "y", "x"], ["z"], ["y", "x", None], ["y"]],
        "n": [1, 1, 2, 2],
    }
    rules = {
        "pairs": Eql("sequence by ids [any where n == 1] [any where n == 2]"),
        "last": Eql("sequence by ids [any where n == 1] [any where n == 2] | tail 1"),
        "both": Eql("sequence by n, ?ids [any where true] [any where true]"),
    }
    found = matchMany(rules, pa.table(events), timestamp="at")
    whole = [{"rule": one.rule, "key": one.key} for one in found]
    assert whole == [
        {"rule": "pairs", "key": {"ids": "y"}},
        {"rule": "pairs", "key": {"ids": "x"}},
        {"rule": "last", "key": {"ids": "x"}},
        {"rule": "both", "key": {"n": 2, "ids": "y"}},
    ]
    assert found[1].key == {"ids": "x"}
    first, second, *_ = found
    assert first.events == second.events
    assert len({one.matchId for one in found}) == len(found)
    rows = found.toArrow().to_pylist()
    assert [row["matchId"] for row in rows] == [one.matchId for one in found]
    assert [dict(row["key"]) for row in rows][-1] == {"n": "2", "ids": "y"}


def test_times_that_python_has_no_date_for() -> None:
    """An event of such a time is an InputError where it is shown, and not what Arrow raises."""
    times = pa.array([0, 10**18, 10**18 + 10]).cast(pa.timestamp("us"))
    table = pa.table({"t": times, "k": ["a"] * 3, "x": [1, 5, 1]})
    pattern = Pattern.begin("a").where("x > 2").followedBy("b").where("x < 3")
    query = "sequence by k [any where x > 2] [any where x < 3]"
    for find in (
        lambda: [dict(found) for found in match(pattern, table, "t", key=["k"])],
        lambda: [found.events for found in matchMany([Rule("r", pattern, ("k",))], table, "t")],
        lambda: list(matchEql(query, table, timestamp="t")),
    ):
        with pytest.raises(InputError, match="before the year 1 or after 9999"):
            find()


def test_types_of_fields() -> None:
    """A field is within structs, under names with dots too; other columns have none."""
    inner = pa.struct({"q": pa.int64(), "r.s": pa.string()})
    schema = pa.schema({"text": pa.string(), "list": pa.list_(inner), "a": inner, "a.b": inner})
    names = ("text", "text.q", "list.q", "a.q", "a.q.q", "a.r.s", "a.b.q", "a.b.none", "a.none")
    found = [type_at(schema, name) for name in names]
    assert found == [pa.string(), None, None, pa.int64(), None, pa.string(), pa.int64(), None, None]
