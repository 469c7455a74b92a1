# SPDX-License-Identifier: Apache-2.0
"""Values of Java expressions that are known before the program runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Any

from pyflinkcep.migrate.chains.values import Made, Symbol, Value
from pyflinkcep.migrate.java import constants as java
from pyflinkcep.migrate.java.constants import Const, literal_of
from pyflinkcep.migrate.java.declarations import Field, JavaClass, JavaType, Method, written_type
from pyflinkcep.migrate.java.project import (
    BOOLEAN,
    LONG,
    STRING,
    Project,
    is_assigned,
    is_numeric,
    unboxed,
)
from pyflinkcep.migrate.java.source import Node, children, inside, text_of
from pyflinkcep.migrate.meaning.reading import as_type
from pyflinkcep.migrate.meaning.tree import Binary, Call, Expression, Unary, Var

_UNITS = {
    "milli": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
_ISO = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>[\d.]+)S)?)?",
    re.IGNORECASE,
)


def converted(value: Value, type_: str) -> Value:
    """
    Return a number as a variable of a type holds it; other values unchanged.

    Examples
    --------
    >>> converted(Const(2**31), "int")
    Const(value=-2147483648, type=JavaType(name='int', args=(), dims=0))
    """
    kind = unboxed(JavaType(type_))
    if not isinstance(value, Const) or not is_numeric(kind) or value.type == BOOLEAN:
        return value
    return java.converted(value, kind) or value


_TRUTHS = frozenset(["==", "!=", "<", "<=", ">", ">=", "&&", "||"])
_OPERATORS = _TRUTHS | frozenset("+-*/%")


def binary(sign: str, left: Value, right: Value) -> Value | None:
    """Return the value of an operation; None if it is not known."""
    if isinstance(left, Const) and isinstance(right, Const):
        made = java.binary(sign, left, right)
        if made is None and sign in ("==", "!="):
            return Const((left.value == right.value) is (sign == "=="))
        return made
    a, b = tree_of(left), tree_of(right)
    if sign not in _OPERATORS or a is None or b is None:
        return None
    given = [value.names for value in (left, right) if isinstance(value, Symbol)]
    names = tuple(dict(name for some in given for name in some).items())
    operation = _operation(sign, a, b)
    return None if operation is None else Symbol(operation, names)


def tree_of(value: Value | None) -> Expression | None:
    """Return a value as an expression; None if it has none."""
    if isinstance(value, Const) and (value.is_plain or value.value is None):
        return value
    return value.tree if isinstance(value, Symbol) else None


def _operation(sign: str, a: Expression, b: Expression) -> Expression | None:
    """Return an operator over two values."""
    numbers = is_numeric(a.type) and is_numeric(b.type)
    if sign == "+" and STRING in (a.type, b.type):
        return Call("concat", (a, b), STRING)
    if numbers:
        type_ = JavaType(java.promoted(unboxed(a.type).name, unboxed(b.type).name))
        a, b = as_type(a, type_), as_type(b, type_)
        return Binary(sign, a, b, BOOLEAN if sign in _TRUTHS else type_)
    if sign in ("&&", "||"):
        return Binary(sign, a, b, BOOLEAN)
    if sign not in ("==", "!="):
        return None
    null = JavaType("null")
    same = Call("Objects.equals", (a, b), BOOLEAN)
    if null in (a.type, b.type):
        same = Call("is null", (b if a.type == null else a,), BOOLEAN)
    return same if sign == "==" else Unary("!", same, BOOLEAN)


def duration(method: str, arguments: list[Any]) -> timedelta | None:
    """
    Return the duration that a method of ``Duration`` or ``Time`` makes.

    Examples
    --------
    >>> duration("ofMinutes", [5]), duration("of", [2, "TimeUnit.HOURS"])
    (datetime.timedelta(seconds=300), datetime.timedelta(seconds=7200))
    """
    if method == "parse" and len(arguments) == 1:
        found = _ISO.fullmatch(str(arguments[0]))
        parts = {} if found is None else {k: float(v) for k, v in found.groupdict().items() if v}
        return timedelta(**parts) if parts else None
    unit = method.removeprefix("of") if len(arguments) == 1 else str(arguments[-1])
    unit = unit.rsplit(".", 1)[-1].lower()
    if not arguments or not isinstance(arguments[0], int | float):
        return None
    for name, size in _UNITS.items():
        if unit.startswith(name):
            return size * arguments[0]
    return timedelta(0) if unit == "zero" else None


def in_unit(unit: str, method: str, amount: Value) -> Value | None:
    """
    Return what a unit of time makes of an amount, such as ``TimeUnit.SECONDS.toMillis(3)``.

    Examples
    --------
    >>> [in_unit("SECONDS", to, Const(90)).value for to in ("toMillis", "toMinutes")]
    [90000, 1]
    """
    sizes = [duration("of", [1, name]) for name in (unit, method.removeprefix("to"))]
    if sizes[0] is None or sizes[1] is None:
        return None
    if isinstance(amount, Symbol) and sizes[0] >= sizes[1]:
        factor = Const(sizes[0] // sizes[1], LONG)
        return Symbol(Binary("*", as_type(amount.tree, LONG), factor, LONG), amount.names)
    if not isinstance(amount, Const) or not isinstance(amount.value, int):
        return None
    size = abs(amount.value) * sizes[0] // sizes[1]
    return Const(size if amount.value > 0 else -size, LONG)


def list_name(written: str) -> str:
    """
    Return the name of the parameter for a list, as Java names it.

    Examples
    --------
    >>> list_name("rules.getNames()"), list_name("names")
    ('Names', 'names')
    """
    last = written.split("(", 1)[0].rsplit(".", 1)[-1]
    return last[3:] if last.startswith("get") and last[3:4].isupper() else last


def parameter(name: str, kind: str, default: object = None) -> Symbol:
    """Return a value of a Java type that a pattern is given when it is built."""
    return Symbol(Var(name, written_type(kind)), ((name, kind),), default)


def numbered(wanted: str, taken: str) -> str:
    """
    Return the next name after one that is taken.

    Examples
    --------
    >>> numbered("limit", "limit"), numbered("limit", "limit_2")
    ('limit_2', 'limit_3')
    """
    number = taken.removeprefix(wanted).removeprefix("_")
    return f"{wanted}_{int(number) + 1 if number else 2}"


def construct(follow: Callable[..., Any], declared: JavaClass, made: Made, *, given: bool) -> None:
    """Give an object the fields that its constructor sets, which is followed for that."""
    for constructor in declared.methods.get(declared.name, []):
        if not given or len(constructor.parameters) == len(made.arguments):
            follow(constructor, declared, made.arguments if given else None, made)
            break


def by_field(declared: JavaClass, made: Made, project: Project) -> dict[str, Value] | None:
    """Return the arguments of a constructor by the fields that they become; None if unknown."""
    return _by_field(declared, made.arguments, project, 0)


def _by_field(
    declared: JavaClass, arguments: tuple[Value, ...], project: Project, depth: int
) -> dict[str, Value] | None:
    count = len(arguments)
    for constructor in declared.methods.get(declared.name, []):
        if len(constructor.parameters) == count and constructor.body is not None and depth < 8:
            return _kept(declared, constructor, arguments, project, depth)
    own = {n: field for n, field in declared.fields.items() if "static" not in field.modifiers}
    if len(own) != count or not (count or declared.kind == "class"):
        return None
    return {
        name: converted(value, str(field.type))
        for (name, field), value in zip(own.items(), arguments, strict=True)
    }


def _kept(
    declared: JavaClass,
    constructor: Method,
    arguments: tuple[Value, ...],
    project: Project,
    depth: int,
) -> dict[str, Value] | None:
    """Return what a constructor assigns of its parameters, and what it hands to another one."""
    values = {
        name: converted(value, str(type_))
        for (name, type_), value in zip(constructor.parameters, arguments, strict=True)
    }
    given: dict[str, Value] = {}
    for call in inside(constructor.body, "explicit_constructor_invocation"):
        handed = [
            values.get(text_of(node)) or literal_of(node)
            for node in children(call.child_by_field_name("arguments"))
        ]
        above = declared.superclass if text_of(call).startswith("super") else None
        target = declared if text_of(call).startswith("this") else None
        if above is not None:
            target = project.find(above.name, declared.source)
        known = tuple(value for value in handed if value is not None)
        if len(known) < len(handed):
            return None
        inner = None if target is None else _by_field(target, known, project, depth + 1)
        if inner is None and handed:
            return None
        given.update(inner or {})
    for assignment in inside(constructor.body, "assignment_expression"):
        left = text_of(assignment.child_by_field_name("left")).removeprefix("this.")
        right = assignment.child_by_field_name("right")
        value = values.get(text_of(right)) or literal_of(right)
        field = project.field(declared, left)
        if value is not None and field is not None:
            given[left] = converted(value, str(field.type))
        elif value is None:
            given.pop(left, None)
    return given


def unset(field: Field | None) -> bool:
    """Whether a field is null until something sets it."""
    if field is None or field.value is not None or field.modifiers & {"final", "static"}:
        return False
    return str(field.type) not in ("int", "long", "short", "byte", "double", "float", "boolean")


def changes(owner: JavaClass, name: str, value: Const, project: Project) -> bool:
    """Whether a static field that is known at first is assigned later."""
    modifiers = owner.fields[name].modifiers
    kept = "static" not in modifiers or "final" in modifiers
    plain = isinstance(value.value, int | float | str)
    return not kept and plain and is_assigned(name, owner, project)


@lru_cache(maxsize=4096)
def names_in(node: Node) -> frozenset[str]:
    """Return the names in code; it is asked for again by each class around, and each use."""
    return frozenset(text_of(name) for name in inside(node, "identifier"))


def names_reached(node: Node, owner: JavaClass) -> set[str]:
    """Return the names in code, and in the methods of a class that it calls."""
    names: set[str] = set()
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        found = names_in(waiting.pop())
        names |= found
        for name in found & set(owner.methods) - seen - {owner.name}:
            seen.add(name)
            waiting += [m.body for m in owner.methods[name] if m.body is not None]
    return names
