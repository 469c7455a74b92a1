# SPDX-License-Identifier: Apache-2.0
"""Static methods of smaller classes: Character, StringUtils, TimeUnit, Instant and others."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import BOOLEAN, LONG, STRING, is_whole
from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.streams import element_of
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Get

_LOMBOK = frozenset({"@Data", "@Value", "@ToString"})


def object_text(reader: Reading, value: Expression, node: Node) -> Expression:
    """Return the text of an object of the project; other values unchanged."""
    of = reader.class_of(value.type)
    if of is None or (of.kind == "enum" and reader.scope.project.method(of, "toString", 0) is None):
        return value
    if reader.scope.project.method(of, "toString", 0) is not None:
        return reader.call(value, "toString", [], node)
    if of.kind == "record" or _LOMBOK & of.annotations:
        begin, end = "[]" if of.kind == "record" else "()"
        fields = {
            name: field
            for name, field in of.fields.items()
            if not {"static", "transient"} & field.modifiers
        }
        text: Expression = Const(f"{of.name}{begin}", STRING)
        for place, (name, field) in enumerate(fields.items()):
            before = f"{', ' if place else ''}{name}="
            text = Call("concat", (text, Const(before, STRING)), STRING)
            inner = object_text(reader, Get(value, name, field.type), node)
            text = Call("concat", (text, inner), STRING)
        return Call("concat", (text, Const(end, STRING)), STRING)
    reader.note(node, f"{of.name} has no toString() in the sources: its text differs here")
    return value


Operands = tuple[Expression, ...]
Static = Callable[["Reading", Operands, Node], Expression | None]

CONSTANTS: dict[tuple[str, str], Expression] = {
    **{
        ("Locale", name): Const(name, JavaType("Locale"))
        for name in (
            "ROOT",
            "ENGLISH",
            "US",
            "UK",
            "CANADA",
            "GERMAN",
            "GERMANY",
            "FRENCH",
            "FRANCE",
            "ITALIAN",
            "ITALY",
            "CHINESE",
            "CHINA",
            "JAPAN",
            "JAPANESE",
            "KOREA",
            "KOREAN",
        )
    },
    ("Boolean", "TRUE"): Const(True, BOOLEAN),
    ("Boolean", "FALSE"): Const(False, BOOLEAN),
    ("ZoneOffset", "UTC"): Const("UTC", JavaType("ZoneId")),
    ("Math", "PI"): Const(3.141592653589793, JavaType("double")),
    ("Math", "E"): Const(2.718281828459045, JavaType("double")),
    **{
        ("BigDecimal", name): Call("BigDecimal.of", (Const(value, STRING),), JavaType("BigDecimal"))
        for name, value in (("ZERO", "0"), ("ONE", "1"), ("TEN", "10"))
    },
}
"""By class and name, constants of Java's library."""


def _call(name: str, type_: JavaType, count: int = 1) -> Static:
    return lambda _, given, __: Call(name, given, type_) if len(given) == count else None


def _negated(name: str) -> Static:
    def made(reader: Reading, given: Operands, _: Node) -> Expression | None:
        return reader.negated(Call(name, given, BOOLEAN)) if len(given) == 1 else None

    return made


def _strings(name: str) -> Static:
    """Return a test that is false for null."""

    def made(reader: Reading, given: Operands, node: Node) -> Expression | None:
        if len(given) != 2:
            return None
        known = reader.negated(Call("is null", (given[0],), BOOLEAN))
        return reader.operation("&&", known, Call(name, given, BOOLEAN), node)

    return made


def _unit(millis: int, target: int) -> Static:
    def made(reader: Reading, given: Operands, node: Node) -> Expression | None:
        if len(given) != 1 or not is_whole(given[0].type):
            return None
        value = reader.cast(given[0], LONG)
        if millis >= target:
            return reader.operation("*", value, Const(millis // target, LONG), node)
        return reader.operation("/", value, Const(target // millis, LONG), node)

    return made


def _matches(_: Reading, given: Operands, __: Node) -> Expression | None:
    return Call("matches", (given[1], given[0]), BOOLEAN) if len(given) == 2 else None


def _stream(_: Reading, given: Operands, __: Node) -> Expression | None:
    element = (given[0].type,) if given else ()
    if len(given) == 1 and given[0].type.dims:
        element = (element_of(given[0].type),)
        return Call("stream", given, JavaType("Stream", element))
    listed = Call("List.of", given, JavaType("List", element))
    return Call("stream", (listed,), JavaType("Stream", element))


def _joined(_: Reading, given: Operands, __: Node) -> Expression | None:
    if len(given) < 2:
        return None
    many = given[1].type.name in ("List", "Set", "ArrayList", "Collection", "Iterable")
    values = (
        given[1]
        if len(given) == 2 and (many or given[1].type.dims)
        else Call("List.of", given[1:], JavaType("List", (STRING,)))
    )
    return Call("Stream.joining", (values, given[0]), STRING)


def _decimal(_: Reading, given: Operands, __: Node) -> Expression | None:
    if len(given) != 1 or not isinstance(given[0], Const):
        return None
    text = Const(str(given[0].value), STRING)
    return Call("BigDecimal.of", (text,), JavaType("BigDecimal"))


def _itself(_: Reading, given: Operands, __: Node) -> Expression | None:
    return Call("not null", given[:1], given[0].type) if given else None


def _optional(_: Reading, given: Operands, __: Node) -> Expression | None:
    if len(given) != 1:
        return None
    return Call("copy", given, JavaType("Optional", (given[0].type,)))


def _in_utc(_: Reading, given: Operands, __: Node) -> Expression | None:
    """Return a moment as a local time, if the zone is UTC."""
    zone = given[1] if len(given) == 2 else None
    if not isinstance(zone, Const) or zone.value not in ("UTC", "Z"):
        return None
    return Call("copy", given[:1], JavaType("LocalDateTime"))


_UNITS = {
    "MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000,
}  # fmt: skip
_TARGETS = {"toMillis": 1, "toSeconds": 1000, "toMinutes": 60_000, "toHours": 3_600_000}

UTILITIES: dict[tuple[str, str], Static] = {
    **{
        ("Character", name): _call(f"Character.{name}", BOOLEAN)
        for name in ("isDigit", "isLetter", "isLetterOrDigit", "isUpperCase", "isLowerCase",
                     "isWhitespace")
    },
    ("BigDecimal", "valueOf"): _decimal,
    ("Pattern", "matches"): _matches,
    ("StringUtils", "isNotEmpty"): _negated("StringUtils.isEmpty"),
    ("StringUtils", "isNotBlank"): _negated("StringUtils.isBlank"),
    ("StringUtils", "contains"): _strings("contains"),
    ("StringUtils", "startsWith"): _strings("startsWith"),
    ("StringUtils", "endsWith"): _strings("endsWith"),
    ("StringUtils", "equalsIgnoreCase"): _strings("equalsIgnoreCase"),
    ("Strings", "isNullOrEmpty"): _call("StringUtils.isEmpty", BOOLEAN),
    ("CollectionUtils", "isEmpty"): lambda r, o, n: (
        r.operation("||", Call("is null", o, BOOLEAN), Call("List.isEmpty", o, BOOLEAN), n)
        if len(o) == 1 else None),
    ("Stream", "of"): _stream,
    ("String", "join"): _joined,
    ("Objects", "requireNonNull"): _itself,
    ("Locale", "getDefault"): lambda _, _o, __: Const("ROOT", JavaType("Locale")),
    ("Optional", "ofNullable"): _optional,
    ("Optional", "of"): _optional,
    ("LocalDateTime", "ofInstant"): _in_utc,
    ("LocalDateTime", "ofEpochSecond"): lambda r, o, n: (
        Call("time of millis", (r.operation("*", r.cast(o[0], LONG), Const(1000, LONG), n),),
             JavaType("LocalDateTime"))
        if len(o) == 3 and isinstance(o[2], Const) and o[2].value == "UTC" else None),
    ("ZoneId", "of"): lambda _, o, __: attrs.evolve(o[0], type=JavaType("ZoneId")) if (
        len(o) == 1 and isinstance(o[0], Const)) else None,
    ("Instant", "ofEpochMilli"): _call("time of millis", JavaType("Instant")),
    ("Timestamp", "from"): lambda _, o, __: o[0] if len(o) == 1 else None,
    ("Date", "from"): lambda _, o, __: o[0] if len(o) == 1 else None,
    **{
        (unit, name): _unit(millis, target)
        for unit, millis in _UNITS.items()
        for name, target in _TARGETS.items()
    },
}  # fmt: skip
"""By class and method, what becomes of a call with some arguments; None if nothing."""
