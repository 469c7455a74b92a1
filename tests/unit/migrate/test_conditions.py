# SPDX-License-Identifier: Apache-2.0
"""Conditions of Java as SQL where that means the same, otherwise as functions."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from pyflinkcep import NotSupportedError, Pattern
from pyflinkcep.migrate.functions.translator import Translator
from pyflinkcep.migrate.java.constants import Const
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import parse_java
from pyflinkcep.tables.events import as_event
from pyflinkcep.testing import match
from tests.unit.migrate.support import condition, defined

pytest.importorskip("tree_sitter_java", reason="needs pyflinkcep[migrate]")

SQL = {
    "(Heat h) -> h.getCount() > 3 && h.getCount() <= 9": "count > 3 AND count <= 9",
    "(Heat h) -> h.getDegrees() > 3 && h.getDegrees() < 9": "degrees > 3.0 AND degrees < 9.0",
    "(Heat h) -> h.getDegrees() >= 3.5": "degrees >= 3.5 AND NOT isnan(degrees)",
    "(Heat h) -> h.isHot()": "degrees > 40.0 AND NOT isnan(degrees)",
    "Heat::isHot": "degrees > 40.0 AND NOT isnan(degrees)",
    "(Heat h) -> h.isOpen() == false": "NOT open",
    '(Heat h) -> !"a".equals(h.getRoom())': "NOT 'a' <=> room",
    '(Heat h) -> "it\'s".equals(h.getRoom())': r"'it\'s' = room",
    "(Heat h) -> h.getKind() == Kind.RED": "kind = 'RED'",
    '(Heat h) -> h.getKind().getCode().equals("r")': "CASE WHEN kind = 'RED' THEN 'r' WHEN kind <> 'RED' THEN 'b' END = 'r'",
    '(Heat h) -> h.getPlace().getCity().startsWith("x")': "startswith(place.city, 'x')",
    '(Heat h) -> h.getTags().get("k") != null': "tags['k'] IS NOT NULL",
    "(Heat h) -> Limits.ROOMS.contains(h.getRoom())": "room IN ('a', 'b')",
    '(Heat h) -> Limits.inRoom(h, "x")': "room IS NOT NULL AND room = 'x'",
    "(Reading r) -> r instanceof Heat && ((Heat) r).getCount() > 1": "type = 'Heat' AND count > 1",
    "(Reading r) -> r instanceof Heat h && h.isOpen()": "type = 'Heat' AND open",
    "(Reading r) -> r.getClass() == Power.class": "type = 'Power'",
    "new Above(7)": "degrees > 7.0 AND NOT isnan(degrees)",
    "new SimpleCondition<Heat>() { private final int low = 3; private int high = low * 10; "
    "public boolean filter(Heat h) { return h.getCount() > low && isBelow(h); } "
    "private boolean isBelow(Heat h) { return h.getCount() < high; } }": "count > 3 AND count < 30",
    "(Heat h) -> h.getCount() % 2 == 0": "count % 2 = 0",
    "(Heat h) -> h.getTime() / 1000 > 5": "time DIV 1000 > 5",
    "(Heat h) -> h.getCount() + 1L > 5": "CAST(count AS bigint) + 1 > 5",
    "(Heat h) -> Math.abs(h.getDegrees() - 1) < 0.5": "abs(degrees - 1.0D) < 0.5D",
    "(Heat h) -> { int n = h.getCount(); if (n > 3) { return true; } return n == 1; }": (
        "count > 3 OR count = 1"
    ),
    '(Heat h) -> { switch (h.getRoom()) { case "a": case "b": return true; default: return false; } }': (
        "room = 'a' OR room = 'b'"
    ),
}


@pytest.mark.parametrize(("java", "sql"), SQL.items())
def test_sql_of_the_same_meaning(java: str, sql: str) -> None:
    """What SQL says in the same way becomes SQL: getters, constants, locals and branches folded."""
    found = condition(java)

    assert (found.sql, found.python, found.stub) == (sql, None, False)


EVENTS = 'ctx.getEventsForPattern("up")'
LOOPS = {
    f"double s = 0; for (Heat e : {EVENTS}) {{ s += e.getDegrees(); }} return s < 5;": (
        "coalesce(sum(up.degrees), 0D) < 5.0D"
    ),
    f"int n = 0; for (Heat e : {EVENTS}) {{ n++; }} return n >= 2;": "count(up) >= 2",
    f"int n = 0; for (Heat e : {EVENTS}) {{ if (e.isOpen()) n++; }} return n > 2;": (
        "coalesce(sum(CASE WHEN up.open THEN 1 ELSE 0 END), 0) > 2"
    ),
    f"Heat last = null; for (Heat e : {EVENTS}) {{ last = e; }} "
    "return last == null || h.getCount() > last.getCount();": "count(up) = 0 OR count > last(up.count)",
    f"for (Heat e : {EVENTS}) {{ if (e.getCount() >= 3) return false; }} return true;": (
        "NOT coalesce(sum(CASE WHEN up.count >= 3 THEN 1 ELSE 0 END), 0) > 0"
    ),
    f"return {EVENTS}.iterator().next().getCount() < h.getCount();": "first(up.count) < count",
}


@pytest.mark.parametrize(("body", "sql"), LOOPS.items())
def test_loops_become_aggregates(body: str, sql: str) -> None:
    """Sums, counts, averages, first and last events, any and all become SQL over stages."""
    java = f"new IterativeCondition<Heat>() {{ public boolean filter(Heat h, Context<Heat> ctx) {{ {body} }} }}"

    found = condition(java, stages=["up"])

    assert found.sql == sql


OF_EACH = {
    f"double s = 0; int n = 0; for (Heat e : {EVENTS}) {{ s += e.getCount(); n++; }} return s / n < 3;": True,
    f"int last = 9; for (Heat e : {EVENTS}) {{ last = e.getCount(); }} return last == 3;": True,
    f"for (Heat e : {EVENTS}) {{ if (e.getCount() >= h.getCount()) return false; }} return true;": True,
    f"int most = 0; for (Heat e : {EVENTS}) {{ if (e.getCount() > most) most = e.getCount(); }} return most < 4;": True,
    f"boolean seen = false; for (Heat e : {EVENTS}) {{ if (e.getCount() == 3) seen = true; }} return !seen;": False,
    f"return StreamSupport.stream({EVENTS}.spliterator(), false).noneMatch(e -> e.getCount() > h.getCount());": True,
    f"Iterator<Heat> it = {EVENTS}.iterator(); it.next(); return it.next().getCount() == 3;": True,
}


@pytest.mark.parametrize(("body", "holds"), OF_EACH.items())
def test_loops_that_sql_does_not_say_are_functions(body: str, holds: bool) -> None:
    """Comparisons of each event with this one, extremes, averages, flags, streams and iterators are Python."""
    java = f"new IterativeCondition<Heat>() {{ public boolean filter(Heat h, Context<Heat> ctx) {{ {body} }} }}"
    found = condition(java, stages=["up"])
    context = SimpleNamespace(getEventsForPattern=lambda _: [_event(count=2), _event(count=3)])

    assert (found.sql, found.stub) == (None, False)
    assert defined(found)(_event(count=5), context) is holds


def _event(**values: object) -> Any:
    return as_event({"room": None, "degrees": 1.0, "count": 2, "level": None, **values})


PYTHON = {
    "(Heat h) -> h.getCount() + 1 > h.getCount()": (_event(count=2147483647), False),
    '(Heat h) -> h.getRoom().equalsIgnoreCase("fail")': (_event(room="FAIL"), True),
    "(Heat h) -> h.getRoom().length() == 2": (_event(room="😀"), True),
    '(Heat h) -> h.getRoom().matches("[a-z]+\\\\d")': (_event(room="ab1"), True),
    "(Heat h) -> (h.getCount() + 4) / 2 * 3 == 0": (_event(count=-5), True),
    "(Heat h) -> 1 / h.getDegrees() > 5": (_event(degrees=0.0), True),
    "(Heat h) -> (int) h.getDegrees() == 2147483647": (_event(degrees=1e300), True),
    "(Heat h) -> Limits.dots(h.getRoom()) == 2": (_event(room="a.b."), True),
    "(Heat h) -> (h.getRoom() + h.getDegrees()).equals(\"x1.0\")": (_event(room="x"), True),
    '(Heat h) -> { try { return Integer.parseInt(h.getRoom()) > 1; } catch (NumberFormatException e) { return false; } }': (
        _event(room="no"), False
    ),
}  # fmt: skip


@pytest.mark.parametrize(("java", "case"), PYTHON.items())
def test_functions_of_the_same_meaning(java: str, case: tuple[Any, bool]) -> None:
    """What SQL says differently becomes a function: overflow, casts, chars, regular expressions."""
    found = condition(java)
    event, expected = case

    assert (found.sql, found.stub) == (None, False)
    assert defined(found)(event) is expected


@pytest.mark.parametrize(
    "java",
    [
        '(Heat h) -> h.getRoom().equals("a")',
        "(Heat h) -> h.getLevel() == 3",
        "(Heat h) -> h.getLevel() > 3",
        "(Heat h) -> h.getRoom().isEmpty()",
    ],
)
def test_null_is_an_error_or_noted(java: str) -> None:
    """Where Java throws a NullPointerException a function raises, and SQL has a note."""
    function = defined(condition(java, sql=False))
    with pytest.raises(Exception, match=r".*"):
        function(_event())

    assert ["null" in note.what for note in condition(java).notes] == [True]


def test_what_is_not_translated_raises_with_the_java_text() -> None:
    """A stub has the Java, its file and line; nothing is dropped silently."""
    found = condition("(Heat h) -> Other.check(h)")

    assert found.stub
    assert "# (Heat h) -> Other.check(h)" in (found.python or "")
    assert [note.what for note in found.notes] == [
        "not translated: Other.check() has no translation"
    ]
    with pytest.raises(NotSupportedError, match=r"Job\.java:\d+ is not translated: Other\.check"):
        defined(found)(None, None)


def test_a_condition_on_a_missing_stage_is_noted() -> None:
    """A stage that a condition names and that the pattern does not have is reported."""
    java = (
        "new IterativeCondition<Heat>() { public boolean filter(Heat h, Context<Heat> ctx) { "
        'for (Heat e : ctx.getEventsForPattern("upp")) { if (e.getRoom().equals(h.getRoom())) '
        "return true; } return false; } }"
    )

    assert "no stage is named 'upp'" in [n.what for n in condition(java, stages=["up"]).notes]


def test_conditions_inside_conditions() -> None:
    """A condition that is given others asks them, as the Java does."""
    java = (
        "new Not(Named.HOT); } class Not extends SimpleCondition<Heat> { private final "
        "SimpleCondition<Heat> inner; Not(SimpleCondition<Heat> inner) { this.inner = inner; } public "
        "boolean filter(Heat h) throws Exception { return !inner.filter(h); } } class Named { static "
        "final SimpleCondition<Heat> HOT = SimpleCondition.of(h -> h.getCount() > 9); } class Z { "
        "Object y = null"
    )

    assert condition(java).sql == "NOT count > 9"


def test_a_method_that_a_class_below_has_too_is_left_to_write() -> None:
    """Which method is called depends on the class of the event: the Java is kept."""
    java = (
        "(Base b) -> b.twice() > 4; } class Base { int n; int twice() { return n * 2; } } "
        "class Below extends Base { int twice() { return n * 3; } } class Z { Object y = null"
    )
    found = condition(java)

    assert found.stub
    assert [note.what for note in found.notes] == [
        "not translated: twice() is another one in Below"
    ]


def test_captured_variables_are_constants() -> None:
    """A variable of the method around has the value that the caller knows."""
    assert (
        condition("(Heat h) -> h.getCount() > limit", known={"limit": Const(3)}).sql == "count > 3"
    )
    assert condition("(Heat h) -> h.getCount() > limit").stub


def test_translated_sql_matches() -> None:
    """The SQL of a condition over an earlier stage finds matches."""
    java = (
        "new IterativeCondition<Heat>() { public boolean filter(Heat h, Context<Heat> ctx) { "
        'double s = 0; for (Heat e : ctx.getEventsForPattern("up")) s += e.getDegrees(); '
        "return h.getDegrees() > s; } }"
    )
    sql = condition(java).sql
    assert sql is not None
    pattern = Pattern.begin("up").where("degrees > 0").times(2).next("top").where(sql)

    found = match(pattern, [{"degrees": value} for value in (1.0, 2.0, 3.0, 6.0)])

    assert [one["top"][0].degrees for one in found] == [6.0]


def test_selectors_become_sql() -> None:
    """Key selectors and timestamp assigners are SQL over the event's columns."""
    text = (
        "class E { String user; long at; String getUser() { return user; } } class J { Object[] it = "
        "{ (E e) -> e.getUser(), E::getUser, (E e, long t) -> e.at * 1000, new KeySelector<E, String>() "
        "{ public String getKey(E e) { return e.user; } } }; }"
    )
    source = parse_java(text, "J.java")
    project = Project([source])
    declared = project.find("J")
    assert declared is not None
    nodes = declared.fields["it"].value.named_children

    found = [Translator(node, source, project, "E").value().sql for node in nodes]

    assert found == ["user", "user", "at * 1000", "user"]


NULLS = {
    '(Heat h) -> h.getKind().getCode().equals("b")': [False, True, False],
    '(Heat h) -> !h.getKind().getCode().equals("r")': [False, True, False],
    '(Heat h) -> h.getRoom().equals("x") ? h.getCount() > 1 : h.getCount() < 9': [
        True,
        True,
        False,
    ],
}


@pytest.mark.parametrize(("java", "expected"), NULLS.items())
def test_what_is_computed_of_null_compares_with_nothing(java: str, expected: list[bool]) -> None:
    """Where Java fails because a value is null, what is computed of it does not hold in SQL."""
    rows = [
        {"kind": "RED", "room": "x", "count": 2},
        {"kind": "BLUE", "room": "y", "count": 2},
        {"kind": None, "room": None, "count": 2},
    ]
    sql = condition(java).sql
    assert sql is not None

    found = match(Pattern.begin("a").where(sql), [{**row, "n": n} for n, row in enumerate(rows)])

    holds = {one["a"][0].n for one in found}
    assert [n in holds for n in range(3)] == expected


@pytest.mark.parametrize(
    ("java", "events"),
    [
        (
            "(Heat h) -> h.getDegrees() == Double.POSITIVE_INFINITY",
            {float("inf"): True, 1.0: False},
        ),
        (
            "(Heat h) -> h.getDegrees() > Double.NEGATIVE_INFINITY",
            {0.5: True, -float("inf"): False},
        ),
        (
            "(Heat h) -> h.getDegrees() < -Double.NEGATIVE_INFINITY",
            {1.0: True, float("inf"): False},
        ),
        ("(Heat h) -> h.getDegrees() <= Double.MAX_VALUE", {1e300: True, float("inf"): False}),
    ],
)
def test_infinity_is_a_number_in_sql(java: str, events: dict[float, bool]) -> None:
    """Constants of any size are written as SQL reads them."""
    for degrees, expected in events.items():
        event = {"degrees": degrees}
        sql = condition(java).sql
        assert sql is not None
        assert len(match(Pattern.begin("a").where(sql), [event])) == int(expected), sql


TIMES = {
    "Timestamp": "2024-01-02 03:04:00.5",
    "Date": "Tue Jan 02 03:04:00 UTC 2024",
}


@pytest.mark.parametrize(("kind", "expected"), TIMES.items())
def test_times_are_written_as_java_writes_them(
    kind: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time next to a text is what toString() of its class makes of it, recorded from Java."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    function = defined(
        condition(f'(Heat h) -> ("" + new {kind}(h.getTime())).equals("{expected}")')
    )
    assert function(as_event({"time": 1704164640500})) is True


OF_JSON = {
    '(JsonNode n) -> n.get("items").get(1).get("x").asInt() > 3': (
        "items array<struct<x:int>>", {"items": [as_event({"x": 1}), as_event({"x": 4})]}),
    '(JsonNode n) -> n.findValue("kind").asText().equals("a")': ("kind string", {"kind": "a"}),
    '(JsonNode n) -> n.path("a").path("b").asText("none").equals("a")': (
        "a struct<b:string>", {"a": as_event({"b": "a"})}),
    '(JsonNode n) -> n.get("items").size() == 2': ("items array<string>", {"items": ["a", "b"]}),
    '(Row r) -> r.getField(0).equals("x") && (int) r.getField(1) > 3': (
        "f0 string, f1 int", {"f0": "x", "f1": 4}),
    '(Row r) -> r.<Integer>getFieldAs("n") > 3': ("n int", {"n": 4}),
}  # fmt: skip


@pytest.mark.parametrize(("java", "case"), OF_JSON.items())
def test_events_of_json_and_rows_are_read_by_name_and_place(
    java: str, case: tuple[str, dict[str, Any]]
) -> None:
    """Getters of JSON nodes and rows are columns, elements of arrays and their numbers."""
    columns, event = case
    kind = java[1:].split(" ")[0]
    source = parse_java(f"class Job {{ Object it = {java}; }}", "Job.java")
    project = Project([source])
    declared = project.find("Job")
    assert declared is not None
    node = declared.fields["it"].value

    found = [Translator(node, source, project, kind).condition(sql=sql) for sql in (True, False)]

    assert ", ".join(f"{name} {type_}" for name, type_ in found[0].columns) == columns
    assert defined(found[1])(as_event(event)) is True
    if found[0].sql is not None:
        assert len(match(Pattern.begin("a").where(found[0].sql), [event])) == 1


READ = "JsonNode v = new ObjectMapper().readTree(h.getRoom()); return %s;"
TEXT = '{"a": {"b": [{"c": 5, "d": "7"}, "e"]}, "t": true, "n": 1.5}'
PARSED = {
    'v.get("a").get("b").get(0).get("c").asText().equals("5")': True,
    'v.get("a").get("b").get(0).get("d").asInt() == 7': True,
    'v.get("a").get("b").get(2) == null': True,
    'v.get("a").get("b").size() == 2': True,
    'v.findValue("c").asLong() > 4': True,
    'v.findValue("zz") == null': True,
    'v.path("zz").asText("none").equals("none")': True,
    'v.path("zz").asInt() == 0': True,
    'v.get("t").asBoolean() && v.get("a").get("b").isArray() && !v.get("n").isTextual()': True,
    'v.get("n").asInt() == 1 && v.get("n").isNumber()': True,
    "v.get(h.getKind().name()).asDouble() == 1.5": True,
}


@pytest.mark.parametrize(("java", "expected"), PARSED.items())
def test_json_that_a_condition_reads_itself(java: str, expected: bool) -> None:
    """Nodes of JSON that code parses convert their values as Jackson does."""
    found = condition(f"(Heat h) -> {{ {READ % java} }}")

    assert not found.stub, found.notes
    assert defined(found)(as_event({"room": TEXT, "kind": "n"})) is expected


GENERIC = (
    "(Pair<String, Integer> p) -> %s; } class Pair<A, B> { A first; private B second; "
    "A getFirst() { return first; } B other() { return this.second; } boolean is(A a) { return first.equals(a); } }"
)


@pytest.mark.parametrize(
    ("java", "sql"),
    [
        ("p.second > 3", "second > 3"),
        ("p.other() > 3", "second > 3"),
        ('p.getFirst().startsWith("x")', "startswith(first, 'x')"),
        ('p.is("x")', "first = 'x'"),
        ('p.first.toLowerCase(Locale.ROOT).equals("x")', "lower(first) = 'x'"),
        ('p.first.toUpperCase(java.util.Locale.ENGLISH).equals("X")', "upper(first) = 'X'"),
    ],
)
def test_members_of_generic_classes_have_the_types_that_are_given(java: str, sql: str) -> None:
    """Tuples of the program itself are read as their type arguments say."""
    assert condition(GENERIC % java + " class Z { Object y = null").sql == sql
