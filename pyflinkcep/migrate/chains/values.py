# SPDX-License-Identifier: Apache-2.0
"""What the variables of a Java method hold, and what is computed from that."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Any

import attrs

from pyflinkcep.migrate.java import constants as java
from pyflinkcep.migrate.java.constants import Const as Const
from pyflinkcep.migrate.java.declarations import Field, JavaClass, JavaType, written_type
from pyflinkcep.migrate.java.project import (
    BOOLEAN,
    LONG,
    STRING,
    Project,
    is_assigned,
    is_numeric,
    unboxed,
)
from pyflinkcep.migrate.java.source import Node, inside, line_of, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.reading import Findings, as_type
from pyflinkcep.migrate.meaning.translated import Note
from pyflinkcep.migrate.meaning.tree import Binary, Expression, Unary, Var, parts
from pyflinkcep.migrate.meaning.tree import Call as TreeCall


@attrs.frozen
class Symbol:
    """A value that is known at run time alone: a parameter, or what is computed from it."""

    tree: Expression  # What is computed; the parameters are variables in it
    # What the program takes if nothing is given; None if that is not known.
    default: object = attrs.field(default=None, eq=False)

    @property
    def type(self) -> str:
        """Its Java type."""
        return str(self.tree.type)

    @property
    def names(self) -> dict[str, str]:
        """The parameters in it, with their Java types."""
        return {part.name: str(part.type) for part in parts(self.tree) if isinstance(part, Var)}

    def python(self, imports: set[str]) -> str:
        """Return the expression; add the imports that it needs."""
        findings = Findings(imports=imports)
        given = frozenset(part for part in parts(self.tree) if isinstance(part, Var))
        return Python(findings, known=given, wraps=False).write(self.tree)


@attrs.frozen(eq=False)
class Code:
    """Java that is translated later, such as a condition, with the variables that it sees."""

    node: Any
    source: Any
    scope: Scope = attrs.field(repr=False)

    @property
    def place(self) -> str:
        """The file and line of Java."""
        return f"{self.source.file.rsplit('/', 1)[-1]}:{line_of(self.node)}"

    def note(self, what: str) -> Note:
        """Return a note on it."""
        return Note(self.source.file, line_of(self.node), what)


@attrs.frozen(eq=False)
class Made:
    """An object of a class of Flink or of the project, with the arguments of its constructor."""

    type: str
    arguments: tuple[Value, ...]
    code: Code
    calls: tuple[Call, ...] = ()
    state: dict[str, Value] = attrs.field(factory=dict)  # The fields that its methods set


@attrs.frozen(eq=False)
class Unknown:
    """A value that could not be followed."""

    code: Code
    lost: bool = False  # Whether it was known before code that is not followed


@attrs.frozen
class Skip:
    """An after-match skip strategy."""

    method: str
    stage: Value | None = None
    throws: bool = False


@attrs.frozen(eq=False)
class Tag:
    """An output tag: its name, and the Java type of its rows."""

    name: str
    type: str
    code: Code


@attrs.frozen(eq=False)
class Call:
    """A call of a method, on a pattern, a stream or a builder."""

    method: str
    arguments: tuple[Value, ...]
    code: Code


@attrs.frozen(eq=False)
class Branch:
    """Calls that depend on what is known at run time alone."""

    condition: Symbol
    then: tuple[Item, ...]
    otherwise: tuple[Item, ...]


@attrs.frozen(eq=False)
class Header:
    """How often a loop runs."""

    counter: str  # The variable, in Python
    over: Symbol  # The values


@attrs.frozen(eq=False)
class Loop:
    """Calls that are repeated for each of a number of values."""

    header: Header
    body: tuple[Item, ...]


@attrs.frozen(eq=False)
class Gap:
    """What may be done to a pattern in code that is not followed."""

    code: Code


class TooLong(Exception):
    """Tells that a program takes more steps to follow than are allowed."""


Item = Call | Branch | Loop | Gap


@attrs.define(eq=False, repr=False)
class Link:
    """A pattern as Java has it: calls on it change it, and a further stage is a link of its own."""

    previous: Link | None  # The pattern that it goes on from
    items: list[Item]  # The call that made it, and those on it
    begun: Code  # The call of ``begin``
    event_type: str | None = None  # The Java class of its events
    name: str | None = None  # The variable or method that first held it
    documented: str = ""  # The comment on that
    joined: tuple[Link, ...] = ()  # The patterns that it is one of
    is_group: bool = False  # Whether it is part of another pattern, as a group

    def ancestors(self) -> Iterator[Link]:
        """Yield the link and those before it, the last one first."""
        link: Link | None = self
        while link is not None:
            yield link
            link = link.previous

    def flat(self, after: Link | None = None) -> list[Item]:
        """Return all calls, the first one first; those after an earlier link if one is given."""
        links: list[Link] = []
        for link in self.ancestors():
            if link is after:
                break
            links.append(link)
        return [item for link in reversed(links) for item in link.items]


@attrs.define(eq=False, repr=False)
class Stream:
    """A stream, or what makes or uses one, with those that it comes from."""

    call: Call  # The call that made it
    inputs: tuple[Stream, ...] = ()  # What it was called on, or with
    event_type: str | None = None  # The Java class of its elements
    name: str | None = None  # The variable that holds it
    pattern: Link | None = None  # Of the result of ``CEP.pattern``: the pattern

    def back(self) -> Iterator[Stream]:
        """Yield the stream, what it was called on, and so on to the source."""
        stream: Stream | None = self
        while stream is not None:
            yield stream
            stream = stream.inputs[0] if stream.inputs else None

    @property
    def source(self) -> Stream:
        """The stream that it begins with."""
        return list(self.back())[-1]


Value = Const | Symbol | Code | Made | Unknown | Skip | Tag | Link | Stream


@attrs.define(eq=False, repr=False)
class Scope:
    """The variables of a block and of those around it, and the class that it is in."""

    source: Any
    owner: Any = None
    this: Made | None = None  # The object whose method is followed
    values: ChainMap[str, Value] = attrs.field(factory=ChainMap)
    types: ChainMap[str, str] = attrs.field(factory=ChainMap)  # Their Java types

    def inside(self) -> Scope:
        """Return a scope for a block inside."""
        return attrs.evolve(self, values=self.values.new_child(), types=self.types.new_child())

    def set(self, name: str, value: Value, type_: str | None = None) -> None:
        """Give a variable a value: where it is declared, or here."""
        own, *around = self.values.maps
        held = next((one for one in around if name in one), own) if name not in own else own
        (own if type_ is not None else held)[name] = value
        if type_ is not None:
            self.types[name] = type_

    def snapshot(self) -> Scope:
        """Return a copy that later changes do not touch."""
        values, types = ChainMap(dict(self.values)), ChainMap(dict(self.types))
        return attrs.evolve(self, values=values, types=types)


_UNITS = {
    "milli": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}


def converted(value: Value, type_: str) -> Value:
    """Return a number as a variable of a type holds it; other values unchanged."""
    kind = unboxed(JavaType(type_))
    if not isinstance(value, Const) or not is_numeric(kind) or value.type == BOOLEAN:
        return value
    return java.converted(value, kind) or value


def binary(sign: str, left: Value, right: Value) -> Value | None:
    """Return the value of an operation; None if it is not known."""
    if isinstance(left, Const) and isinstance(right, Const):
        found = java.binary(sign, left, right)
        if found is None and sign in ("==", "!="):
            return Const((left.value == right.value) is (sign == "=="))
        return found
    a, b = tree_of(left), tree_of(right)
    made = None if a is None or b is None else _operation(sign, a, b)
    return None if made is None else Symbol(made)


_TRUTHS = frozenset(["==", "!=", "<", "<=", ">", ">="])


def _operation(sign: str, a: Expression, b: Expression) -> Expression | None:
    """Return an operator over two values."""
    if sign == "+" and STRING in (a.type, b.type):
        return TreeCall(ops.CONCAT, (a, b), STRING)
    if is_numeric(a.type) and is_numeric(b.type) and sign in (*_TRUTHS, *"+-*/%"):
        type_ = JavaType(java.promoted(unboxed(a.type).name, unboxed(b.type).name))
        a, b = as_type(a, type_), as_type(b, type_)
        return Binary(sign, a, b, BOOLEAN if sign in _TRUTHS else type_)
    if sign in ("&&", "||"):
        return Binary(sign, a, b, BOOLEAN)
    if sign not in ("==", "!="):
        return None
    null = JavaType("null")
    same = TreeCall(ops.SAME, (a, b), BOOLEAN)
    if null in (a.type, b.type):
        same = TreeCall(ops.IS_NULL, (b if a.type == null else a,), BOOLEAN)
    return same if sign == "==" else Unary("!", same, BOOLEAN)


def tree_of(value: Value | None) -> Expression | None:
    """Return a value as an expression; None if it has none."""
    if isinstance(value, Const) and (value.is_plain or value.value is None):
        return value
    return value.tree if isinstance(value, Symbol) else None


def duration(method: str, arguments: list[Any]) -> timedelta | None:
    """Return the duration that a method of ``Duration`` or ``Time`` makes."""
    unit = method.removeprefix("of") if len(arguments) == 1 else str(arguments[-1])
    unit = unit.rsplit(".", 1)[-1].lower()
    if not arguments or not isinstance(arguments[0], int | float):
        return None
    for name, size in _UNITS.items():
        if unit.startswith(name):
            return size * arguments[0]
    return timedelta(0) if unit == "zero" else None


def in_unit(unit: str, method: str, amount: Value) -> Value | None:
    """Return what a unit of time makes of an amount, such as ``TimeUnit.SECONDS.toMillis(3)``."""
    sizes = [duration("of", [1, name]) for name in (unit, method.removeprefix("to"))]
    if sizes[0] is None or sizes[1] is None:
        return None
    if isinstance(amount, Symbol) and sizes[0] >= sizes[1]:
        factor = Const(sizes[0] // sizes[1], LONG)
        return binary("*", Symbol(as_type(amount.tree, LONG)), factor)
    if not isinstance(amount, Const) or not isinstance(amount.value, int):
        return None
    size = abs(amount.value) * sizes[0] // sizes[1]
    return Const(size if amount.value > 0 else -size, LONG)


def list_name(written: str) -> str:
    """Return the name of the parameter for a list, as Java names it."""
    last = written.split("(", 1)[0].rsplit(".", 1)[-1]
    return last[3:] if last.startswith("get") and last[3:4].isupper() else last


def parameter(name: str, kind: str, default: object = None) -> Symbol:
    """Return a value of a Java type that a pattern is given when it is built."""
    return Symbol(Var(name, written_type(kind)), default)


def numbered(wanted: str, taken: str) -> str:
    """Return the next name after one that is taken."""
    number = taken.removeprefix(wanted).removeprefix("_")
    return f"{wanted}_{int(number) + 1 if number else 2}"


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


def reached(node: Node, owner: JavaClass | None) -> Iterator[Node]:
    """Yield code, and the methods of a class that it names, with those that they name."""
    methods = {} if owner is None else owner.methods
    seen = set() if owner is None else {owner.name}
    waiting = [node]
    while waiting:
        body = waiting.pop()
        yield body
        for name in sorted(names_in(body) & set(methods) - seen):
            seen.add(name)
            waiting += [m.body for m in methods[name] if m.body is not None]


def names_reached(node: Node, owner: JavaClass | None) -> set[str]:
    """Return the names in code, and in the methods of a class that it names."""
    return {name for body in reached(node, owner) for name in names_in(body)}
