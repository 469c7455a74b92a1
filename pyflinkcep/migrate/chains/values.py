# SPDX-License-Identifier: Apache-2.0
"""What the variables of a Java method hold, what is computed from that, and what code changes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

import attrs

from pyflinkcep.migrate.java import constants as java
from pyflinkcep.migrate.java.constants import Const as Const
from pyflinkcep.migrate.java.declarations import BOOLEAN, LONG, STRING, Field, JavaClass, JavaType
from pyflinkcep.migrate.java.source import (
    Node,
    children,
    declared_in,
    inside,
    line_of,
    simple_name,
    text_of,
    written_in,
)
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.python import Python, folded
from pyflinkcep.migrate.meaning.reading import Findings, as_type, computed
from pyflinkcep.migrate.meaning.translated import Note
from pyflinkcep.migrate.meaning.tree import Call as TreeCall
from pyflinkcep.migrate.meaning.tree import Choice, Expression, Unary, Var, parts


@attrs.frozen
class Symbol:
    """A value that is known at run time alone: a parameter, or what is computed from it."""

    tree: Expression  # What is computed; the parameters are variables in it

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


def code_of(value: Value | None) -> Code | None:
    """Return the Java of a value, if it is kept."""
    if isinstance(value, Code):
        return value
    if isinstance(value, Made | Unknown):
        return value.code
    return value.begun if isinstance(value, Link) else None


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

    def code(self, node: Node) -> Code:
        """Return code with the variables as they are when it is asked."""
        return Code(node, self.source, self)

    def unknown(self, node: Node, *, lost: bool = False) -> Unknown:
        """Return what code makes that could not be followed."""
        return Unknown(self.code(node), lost)

    def snapshot(self) -> Scope:
        """Return a copy that later changes do not touch."""
        values, types = ChainMap(dict(self.values)), ChainMap(dict(self.types))
        return attrs.evolve(self, values=values, types=types)


_UNITS = {
    "milli": timedelta(milliseconds=1), "second": timedelta(seconds=1), "day": timedelta(days=1),
    "minute": timedelta(minutes=1), "hour": timedelta(hours=1),
}  # fmt: skip


def converted(value: Value, type_: str) -> Value:
    """Return a number as a variable of a type holds it; other values unchanged."""
    kind = JavaType(type_).unboxed
    if not isinstance(value, Const) or not kind.is_numeric or value.type == BOOLEAN:
        return value
    return java.converted(value, kind) or value


def binary(sign: str, left: Value, right: Value) -> Value | None:
    """Return the value of an operation; None if it is not known."""
    if isinstance(left, Const) and isinstance(right, Const):
        found = folded(sign, left, right)
        if found is None and sign in ("==", "!="):
            return Const((left.value == right.value) is (sign == "=="))
        return found
    a, b = tree_of(left), tree_of(right)
    made = None if a is None or b is None else _operation(sign, a, b)
    return None if made is None else Symbol(made)


def _operation(sign: str, a: Expression, b: Expression) -> Expression | None:
    """Return an operator over two values."""
    if sign == "+" and STRING in (a.type, b.type):
        return TreeCall(ops.CONCAT, (a, b), STRING)
    made = computed(sign, a, b)
    if made is not None or sign not in ("==", "!="):
        return made
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


def numbered(wanted: str, taken: str) -> str:
    """Return the next name after one that is taken."""
    number = taken.removeprefix(wanted).removeprefix("_")
    return f"{wanted}_{int(number) + 1 if number else 2}"


def unset(field: Field | None) -> bool:
    """Whether a field is null until something sets it."""
    if field is None or field.value is not None or field.modifiers & {"final", "static"}:
        return False
    return str(field.type) not in ("int", "long", "short", "byte", "double", "float", "boolean")


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


class Watch:
    """Remembers the variables and patterns that code sees, to tell what it changed."""

    def __init__(self, scope: Scope, walker: Any) -> None:
        self.scope = scope
        self.walker = walker
        self._holders: list[MutableMapping[Any, Value]] = [*scope.values.maps]
        self._holders.append(walker.set_fields)
        self._values = {id(held): dict(held) for held in self._holders}
        self._links: dict[Link, int] = {link: len(link.items) for link in walker.links}

    def taken(self) -> tuple[dict[tuple[int, Any], Value], dict[Link, list[Item]]]:
        """Return the variables and the calls that were added, and undo both."""
        changed: dict[tuple[int, Any], Value] = {}
        for held in self._holders:
            old = self._values[id(held)]
            for name, value in held.items():
                known = name in old or isinstance(name, tuple)
                if known and old.get(name) is not value:
                    changed[id(held), name] = value
            held.clear()
            held.update(old)
        added: dict[Link, list[Item]] = {}
        for link, length in self._links.items():
            if len(link.items) > length:
                added[link] = link.items[length:]
                del link.items[length:]
        return changed, added

    def set(self, key: tuple[int, Any], value: Value) -> None:
        """Give a variable a value."""
        next(held for held in self._holders if id(held) == key[0])[key[1]] = value

    def old(self, key: tuple[int, Any]) -> Value:
        """Return what a variable held."""
        unknown = self.scope.unknown(None)
        held: Value = self._values[key[0]].get(key[1], unknown)
        return held


class Fork(Watch):
    """The two branches of a conditional."""

    def __init__(self, scope: Scope, walker: Any, node: Node) -> None:
        super().__init__(scope, walker)
        self.node = node
        self._first: Any = ({}, {})

    def turn(self) -> None:
        """Go back to the beginning, for the second branch."""
        self._first = self.taken()

    def swap(self) -> None:
        """Go on with the first branch, and keep the second one."""
        again, self._first = self._first, self.taken()
        for key, value in again[0].items():
            self.set(key, value)
        for link, items in again[1].items():
            link.items.extend(items)

    def join(self, test: Symbol, *, variables: bool = True) -> None:
        """Let each pattern have the calls of either branch, and each variable what that gave it."""
        first, second = self._first, self.taken()
        for link in dict.fromkeys((*first[1], *second[1])):
            then, otherwise = first[1].get(link, ()), second[1].get(link, ())
            link.items.append(Branch(test, tuple(then), tuple(otherwise)))
        for key in dict.fromkeys((*first[0], *second[0]) if variables else ()):
            old = self.old(key)
            values = first[0].get(key, old), second[0].get(key, old)
            joined = self.walker.joined(test, *values, self.node, self.scope)
            joined = joined or self._read_at_start(key[1], values)
            self.set(key, joined or self._unknown(old))

    def _read_at_start(self, name: Any, values: tuple[Value, Value]) -> Value | None:
        """Return a parameter for what is a constant, or read when the program starts."""
        known = next((v for v in values if isinstance(v, Const) and v.is_plain), None)
        is_read = any(isinstance(v, Unknown | Made) for v in values)
        if known is None or not is_read or not isinstance(name, str):
            return None
        what = f"{name} is a parameter: in Java {known.value!r} by default"
        self.walker.doubt(self.node, self.scope, what)
        of = (name, self.node.id, self.walker.frame)
        made: Symbol = self.walker.symbol(name, str(known.type), of)
        return made

    def _unknown(self, old: Value) -> Value:
        if isinstance(old, Unknown | Code):
            return Unknown(old) if isinstance(old, Code) else old
        return self.scope.unknown(self.node)


def either(test: Symbol, first: Value, second: Value) -> Value | None:
    """Return the value that is one of two, as a test at run time decides."""
    if first is second:
        return first
    if isinstance(first, Const) and isinstance(second, Const):
        if first == second:
            return first
        a, b = tree_of(first), tree_of(second)
        if a is None or b is None or type(first.value) is not type(second.value):
            return None
        return Symbol(Choice(test.tree, a, b, a.type))
    if not (isinstance(first, Link) and isinstance(second, Link)):
        return None
    seen = set(first.ancestors())
    common = next((link for link in second.ancestors() if link in seen), None)
    branch = Branch(test, tuple(first.flat(common)), tuple(second.flat(common)))
    begun = first.begun if common is None else common.begun
    kind_of_events = first.event_type or second.event_type
    joined = Link(common, [branch], begun, kind_of_events, first.name or second.name)
    joined.joined = (first, second)
    return joined


CHANGES = frozenset([
    "where", "or", "until", "subtype", "within", "optional", "oneOrMore", "timesOrMore", "times",
    "greedy", "allowCombinations", "consecutive",
])  # fmt: skip
"""The calls that change a pattern's last stage."""

KEPT = frozenset([
    "get", "getFirst", "getLast", "size", "isEmpty", "contains", "indexOf", "stream", "iterator",
    "toString", "equals", "hashCode", "join", "println", "print", "printf", "info", "debug", "warn",
    "error", "trace", "log", "requireNonNull", "isNull", "nonNull", "format", "length",
])  # fmt: skip
"""The methods that neither change what they are called on nor what they are given."""


def forget(walker: Any, node: Node, scope: Scope) -> None:
    """
    Let all that code may change be unknown, as it is not followed.

    Variables, fields and elements that it assigns are unknown from here on; patterns that it
    changes have a gap there, and what it does with streams is a gap of the job.
    """
    code = scope.code(node)
    unknown = Unknown(code, lost=True)
    streams = False
    for body in reached(node, scope.owner):
        for name in written_in(body) - declared_in(body):
            if body is node and name in scope.values:
                scope.set(name, unknown)
            else:
                walker.set_field(name, unknown, scope)
        for call in inside(body, "method_invocation"):
            method = text_of(call.child_by_field_name("name"))
            given = children(call.child_by_field_name("arguments") or call)
            root = _root(call)
            for used in (root, *given):
                held = None if used is None else walker.held(used, scope)
                streams = streams or (isinstance(held, Stream) and used is root)
                if method in KEPT:
                    continue
                streams = streams or isinstance(held, Stream)
                if isinstance(held, Link) and (used is not root or method in CHANGES):
                    held.items.append(Gap(code))
                elif isinstance(held, Const) and isinstance(held.value, tuple):
                    walker.replaced(held, unknown, scope)
                elif isinstance(held, Made):
                    declared = walker.project.find(simple_name(held.type), held.code.source)
                    held.state.update(dict.fromkeys(walker.project.all_fields(declared), unknown))
    if streams:
        walker.gaps.append(code)


def _root(call: Node) -> Node | None:
    """Return what a chain of calls begins with."""
    on = call.child_by_field_name("object")
    while on is not None and on.type in ("method_invocation", "array_access"):
        field = "object" if on.type == "method_invocation" else "array"
        on = on.child_by_field_name(field)
    return on
