# SPDX-License-Identifier: Apache-2.0
"""Texts of Java with any characters, through every way in which they are written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import Pattern
from pyflinkcep.tables.events import as_event
from pyflinkcep.testing import match
from tests.unit.migrate.support import condition, defined, function

pytest.importorskip("tree_sitter_java", reason="needs pyflinkcep[migrate]")

NASTY = "\"'\\{}%#$\n\t\r\0\x7f a0\u00e9\u2028\U0001f600`|:=!"
TEXTS = st.text(alphabet=NASTY, max_size=8)


def literal(value: str, block: bool = False) -> str:
    """Return a text as Java writes it, with escapes of each kind; or as a block of lines."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\000"}
    if block:
        escapes = {'"': '\\"', "\\": "\\\\", "\r": "\\r", "\0": "\\000", " ": "\\s", "\t": "\\t"}
    written = "".join(
        escapes.get(char, char)
        if char.isascii()
        else "".join(f"\\u{unit:04x}" for unit in _units(char))
        for char in value
    )
    return f'"""\n{written}"""' if block else f'"{written}"'


def _units(char: str) -> list[int]:
    units = char.encode("utf-16-be")
    return [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]


def selected(*java: str, **values: Any) -> tuple[Any, ...]:
    """Return what the translation of some values of an event gives."""
    made = f"Tuple{len(java)}.of({', '.join(java)})"
    found = function(
        f'(Map<String, List<Heat>> m) -> {{ Heat h = m.get("a").get(0); return {made}; }}'
    )
    assert not found.stub, found.notes
    row = {"room": "x", "count": 3, "level": None, **values}
    return tuple(defined(found)({"a": [as_event(row)]}))


def holds(java: str, rooms: list[str]) -> list[set[bool]]:
    """Return whether a condition holds of each text, as SQL if it has SQL, and as a function."""
    found, test = condition(java), defined(condition(java, sql=False))
    answers = [{test(as_event({"room": room}))} for room in rooms]
    if found.sql is not None:
        rows = [{"room": room, "at": at} for at, room in enumerate(rooms)]
        matches = match(Pattern.begin("a").where(found.sql), rows)
        matched = {one["a"][0].at for one in matches}
        for at, answer in enumerate(answers):
            answer.add(at in matched)
    return answers


@settings(max_examples=40, deadline=None)
@given(TEXTS, TEXTS, TEXTS, st.booleans())
def test_texts_are_those_of_java(before: str, after: str, room: str, block: bool) -> None:
    """Texts around values, in formats, joins, choices and maps are what Java makes of them."""
    a, b = literal(before, block), literal(after)
    form = literal(before.replace("%", "%%") + "%s" + after.replace("%", "%%"))
    values = {
        f"{a} + h.getRoom() + {b}": before + room + after,
        f"{a} + h.getCount() + {b}": f"{before}3{after}",
        f"{a} + h.getLevel() + {b}": f"{before}null{after}",
        f"{a} + (h.getCount() > 2 ? {b} + h.getRoom() : {a})": before + after + room,
        f"String.format({form}, h.getRoom())": before + room + after,
        f"String.join({a}, h.getRoom(), {b})": room + before + after,
        f"Map.of({a}, h.getRoom()).get({a}) + {b}": room + after,
        f"{a}.replace({b}, h.getRoom())": before.replace(after, room),
        f"h.getRoom() + {a}.length()": f"{room}{len(before.encode('utf-16-le')) // 2}",
    }

    assert selected(*values, room=room) == tuple(values.values())


@settings(max_examples=15, deadline=None)
@given(TEXTS, TEXTS)
def test_tests_of_texts_are_those_of_java(wanted: str, room: str) -> None:
    """Comparisons with texts hold where Java's do, as SQL and as functions, negated too."""
    text, rooms = literal(wanted), [room, wanted, wanted + room]
    for java, expected in (
        (f"h.getRoom().equals({text})", lambda value: value == wanted),
        (f"h.getRoom().contains({text})", lambda value: wanted in value),
        (f"{text}.contains(h.getRoom())", lambda value: value in wanted),
        (f"h.getRoom().startsWith({text})", lambda value: value.startswith(wanted)),
        (f'List.of({text}, "q").contains(h.getRoom())', lambda value: value in (wanted, "q")),
        (f"(h.getRoom() + {text}).equals({text})", lambda value: value == ""),
    ):
        answers = [expected(value) for value in rooms]
        assert holds(f"(Heat h) -> {java}", rooms) == [{answer} for answer in answers], java
        assert holds(f"(Heat h) -> !{java}", rooms) == [{not a} for a in answers], java


@pytest.mark.parametrize("char", [char for char in NASTY if len(_units(char)) == 1])
def test_chars_are_those_of_java(char: str) -> None:
    """A char is the text of itself, and compares by its number."""
    escapes = {"'": "\\'", '"': '"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    written = f"'{escapes.get(char, char)}'"

    assert selected(f"h.getRoom() + {written} + 1") == (f"x{char}1",)
    assert holds(f"(Heat h) -> h.getRoom().charAt(0) == {written}", [char, "z"]) == [
        {True},
        {False},
    ]


CHOICES = {
    '!h.getRoom().contains("k == v")': {"k == v": False, "k": True},
    '!h.getRoom().equals("a in b")': {"a in b": False, "b": True},
    '!(h.getRoom() + " == ").equals("x == ")': {"x": False, "y": True},
    '!List.of("not in", "is None").contains(h.getRoom())': {"not in": False, "in": True},
    '!(h.getRoom().contains("in") == false)': {"in": True, "x": False},
    '!!h.getRoom().contains(" in ")': {" in ": True, "in": False},
    '!h.getRoom().replace(" == ", " != ").isEmpty()': {"": False, "x": True},
}


@pytest.mark.parametrize(("java", "expected"), CHOICES.items())
def test_negations_turn_the_operator_alone(java: str, expected: dict[str, bool]) -> None:
    """A negation turns the operator of a comparison, never the texts that are compared."""
    found = holds(f"(Heat h) -> {java}", list(expected))

    assert found == [{answer} for answer in expected.values()]


def test_numbers_and_arrays_as_texts() -> None:
    """Hexadecimal digits are those of a number's bits; an array has a text only by a method."""
    java = {
        'String.format("%x", h.getCount())': "ffffffff",
        'String.format("%d %X", 1, 0L - h.getLevel())': "1 FFFFFFFFFFFFFFFE",
        "String.valueOf(h.getRoom().toCharArray())": "a,b",
        'Arrays.toString(h.getRoom().split(","))': "[a, b]",
    }
    assert selected(*java, count=-1, level=2, room="a,b") == tuple(java.values())


CHOSEN = {
    "(h.getCount() > 2 ? 'x' : 48) + \"\"": "x",
    "(h.getCount() < 2 ? 'x' : 48) + \"\"": "0",
    '"" + (h.getCount() > 2 ? null : 5)': "null",
    '"" + (h.getCount() > 2 ? h.getLevel() : 5)': "7",
    '"" + (0.1f + 0.2f)': "0.3",
    "new HashMap<>(Map.of(h.getRoom(), 1)).keySet().iterator().next()": "b",
    "BigDecimal.valueOf(1e10).toString() + new BigDecimal(0.5)": "1.0E+100.5",
    'new HashSet<>(Arrays.asList("a", "a", h.getRoom())).size() + ""': "2",
}


def test_types_of_choices_and_digits_of_decimals() -> None:
    """A choice with null is of objects, one with a char of chars; doubles have Java's digits."""
    assert selected(*CHOSEN, count=3, level=7, room="b") == tuple(CHOSEN.values())


REFUSED = {
    'return "" + h.getRoom().split(",");': "the text of an array",
    'return String.format("%s", h.getRoom().toCharArray());': "the text of an array",
    'return "" + new HashSet<>(Arrays.asList(h.getRoom(), "a"));': "the text of a set",
    'Set<String> s = new LinkedHashSet<>(); s.add(h.getRoom()); return String.join("", s);':
        "the order of a LinkedHashSet",
    "Set<Integer> s = new TreeSet<>(); s.add(1); int n = 0; for (int x : s) { n = x; } return n;":
        "the order of a TreeSet",
    'StringBuilder b = new StringBuilder(); StringBuilder c = b; c.append("x"); return b.toString();':
        "two variables may hold the StringBuilder",
    'BooleanSupplier b = () -> h.isOpen(); return b.getAsBoolean() ? "a" : "b";': "getAsBoolean()",
    'return new BigDecimal("1.0").equals(new BigDecimal("1.00"));': "equals() of BigDecimal",
}  # fmt: skip


@pytest.mark.parametrize(("java", "why"), REFUSED.items())
def test_what_python_would_make_something_else_of_is_left_to_write(java: str, why: str) -> None:
    """Orders, texts and objects that Python has otherwise are refused by name."""
    body = f'Heat h = m.get("a").get(0); {java}'
    found = function(f"(Map<String, List<Heat>> m) -> {{ {body} }}")
    assert found.stub
    assert why in found.notes[-1].what
