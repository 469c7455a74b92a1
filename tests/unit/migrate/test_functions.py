# SPDX-License-Identifier: Apache-2.0
"""Functions of matches in Java as functions of Python, with the schema of their rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyflinkcep import OutputTag, TimedOutPartialMatchHandler
from tests.unit.migrate.support import defined, function

pytest.importorskip("tree_sitter_java", reason="needs pyflinkcep[migrate]")


def _heat(room: str, degrees: float) -> SimpleNamespace:
    return SimpleNamespace(room=room, degrees=degrees, time=7, kind="RED")


MATCH = {"a": [_heat("x", 1.5), _heat("y", 2.0)], "b": [_heat("z", 4.0)]}

ROWS: dict[str, tuple[Any, str | None]] = {
    'new Sum(p.get("a").get(0).getRoom(), p.get("b").get(0).getDegrees())': (
        {"room": "x", "total": 4.0}, "room string, total double"),
    'Alert.builder().user(p.get("b").get(0).getRoom()).count(p.get("a").size()).build()': (
        {"user": "z", "count": 2}, "user string, count int"),
    '"room " + p.get("a").get(1).getRoom() + ": " + p.get("b").get(0).getDegrees()': (
        ("room y: 4.0",), "value string"),
    'Tuple2.of(p.get("a").get(0).getRoom(), p.get("a").size())': (("x", 2), "f0 string, f1 int"),
    'p.get("a").stream().mapToDouble(Heat::getDegrees).sum()': ((3.5,), "value double"),
    'p.get("a").stream().map(Heat::getRoom).collect(Collectors.joining("-"))': (
        ("x-y",), "value string"),
    'p.containsKey("c") ? "c" : p.get("b").get(0).getKind().getCode()': (("r",), "value string"),
    '"" + new Sum("q", 1)': (("Sum[room=q, total=1.0]",), "value string"),
}  # fmt: skip


@pytest.mark.parametrize(("java", "case"), ROWS.items())
def test_rows(java: str, case: tuple[Any, str | None]) -> None:
    """An object is a row of its fields, any other value a row of one column."""
    found = function(f"(Map<String, List<Heat>> p) -> {java}")

    assert found.stub is False
    assert (defined(found)(MATCH), found.output_type) == case


def test_objects_filled_by_setters() -> None:
    """Statements fill an object; loops over events and over indices run as in Java."""
    java = (
        "new PatternSelectFunction<Heat, Alert>() { public Alert select(Map<String, List<Heat>> p) {"
        ' List<Heat> all = p.get("a"); Alert alert = new Alert(); int n = 0;'
        " for (int i = 0; i < all.size(); i++) { if (all.get(i).getDegrees() > 1.7) { n++; } }"
        ' StringBuilder b = new StringBuilder(); for (Heat h : all) { b.append(h.getRoom()).append(";"); }'
        " alert.setCount(n); alert.setUser(b.toString()); return alert; } }"
    )

    assert defined(function(java))(MATCH) == {"user": "x;y;", "count": 1}


def test_events_as_rows() -> None:
    """An event in a result has the columns of its class alone; a list or map of events too."""
    event = {"time": 1, "room": "x", "degrees": 2.0, "count": 3, "level": None, "kind": "RED",
             "place": None, "open": True, "tags": {}, "event_time": 9}  # fmt: skip
    row = tuple(value for name, value in event.items() if name != "event_time")

    rows = [
        defined(function(f"(Map<String, List<Heat>> p) -> {java}"))({"a": [event]})
        for java in ('p.get("a").get(0)', 'p.get("a")', "p")
    ]

    assert rows == [row, ([row],), ({"a": [row]},)]


def test_methods_with_loops_are_functions_inside() -> None:
    """A method of the project that is no single expression comes along."""
    java = '(Map<String, List<Heat>> p) -> "dots: " + Limits.dots(p.get("a").get(0).getRoom())'
    found = function(java)

    assert defined(found)({"a": [_heat("a.b.", 1)]}) == ("dots: 2",)
    assert "def _dots(s: Any) -> Any:" in (found.python or "")


class _Collected(list[Any]):
    collect = list.append


def test_flat_functions() -> None:
    """A flat function puts its rows into the collector."""
    java = '(Map<String, List<Heat>> p, Collector<String> out) -> { for (Heat h : p.get("a")) out.collect(h.getRoom()); }'
    out = _Collected()

    found = function(java, "flatSelect")
    defined(found)(MATCH, out)

    assert (out, found.output_type) == ([("x",), ("y",)], "value string")


def test_timeouts() -> None:
    """A timeout function takes the end of the window."""
    found = function('(p, ts) -> p.get("a").get(0).getRoom() + ts', "timeout")

    assert defined(found)(MATCH, 12) == ("x12",)


def test_process_functions() -> None:
    """A process class handles matches and timeouts, and lists its output tags."""
    java = (
        "new P(3) ; } class P extends PatternProcessFunction<Heat, String> implements "
        'TimedOutPartialMatchHandler<Heat> { static final OutputTag<String> LATE = new OutputTag<>("gave up") {};'
        " private final int n; P(int n) { this.n = n; }"
        " public void processMatch(Map<String, List<Heat>> m, Context ctx, Collector<String> out) {"
        ' out.collect(m.get("a").get(0).getRoom() + n); }'
        " public void processTimedOutMatch(Map<String, List<Heat>> m, Context ctx) {"
        ' ctx.output(LATE, "late " + ctx.timestamp()); } } class Z { Object y = null'
    )
    found = function(java, "process")
    tag = OutputTag("gave up", "value string")
    names: dict[str, Any] = {"GAVE_UP": tag}
    exec("\n".join([*sorted(found.imports), found.python or ""]), names)
    handler, out, side = names["P"](), _Collected(), _Collected()
    context = SimpleNamespace(timestamp=lambda: 5, output=lambda *given: side.append(given))

    handler.processMatch(MATCH, context, out)
    handler.processTimedOutMatch(MATCH, context)

    assert (out, side) == ([("x3",)], [(tag, ("late 5",))])
    assert isinstance(handler, TimedOutPartialMatchHandler)
    assert handler.outputTags == (tag,)
    assert found.output_tags == (("gave up", "value string"),)


def test_a_function_that_is_not_translated_raises() -> None:
    """The stub of a function keeps the Java text."""
    found = function("(Map<String, List<Heat>> p) -> Unknown.make(p)")

    assert found.stub
    assert "Unknown.make(p)" in (found.python or "")
