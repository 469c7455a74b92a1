# SPDX-License-Identifier: Apache-2.0
"""What code changes: in two branches, in a loop, or where it is not followed."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from pyflinkcep.migrate.chains.values import (
    Branch,
    Code,
    Const,
    Gap,
    Item,
    Link,
    Made,
    Scope,
    Stream,
    Symbol,
    Unknown,
    Value,
    reached,
    tree_of,
)
from pyflinkcep.migrate.java.source import (
    Node,
    children,
    declared_in,
    inside,
    simple_name,
    text_of,
    written_in,
)
from pyflinkcep.migrate.meaning.tree import Choice


class Watch:
    """Remembers the variables and patterns that code sees, to tell what it changed."""

    def __init__(self, scope: Scope, walker: Any) -> None:
        self.scope = scope
        self.walker = walker
        self._holders: list[MutableMapping[Any, Value]] = [*scope.values.maps]
        self._holders.append(walker.set_fields)
        self._values = {id(held): dict(held) for held in self._holders}
        links: list[Link] = walker.links
        self._links = {id(link): (link, len(link.items)) for link in links}

    def taken(self) -> tuple[dict[tuple[int, Any], Value], dict[int, list[Item]]]:
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
        added: dict[int, list[Item]] = {}
        for key, (link, length) in self._links.items():
            if len(link.items) > length:
                added[key] = link.items[length:]
                del link.items[length:]
        return changed, added

    def link(self, key: int) -> Link:
        """Return a pattern that was seen."""
        return self._links[key][0]

    def set(self, key: tuple[int, Any], value: Value) -> None:
        """Give a variable a value."""
        next(held for held in self._holders if id(held) == key[0])[key[1]] = value

    def old(self, key: tuple[int, Any]) -> Value:
        """Return what a variable held."""
        unknown = Unknown(Code(None, self.scope.source, self.scope))
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
        for key, items in again[1].items():
            self.link(key).items.extend(items)

    def join(self, test: Symbol, *, variables: bool = True) -> None:
        """Let each pattern have the calls of either branch, and each variable what that gave it."""
        first, second = self._first, self.taken()
        for key in dict.fromkeys((*first[1], *second[1])):
            then, otherwise = first[1].get(key, ()), second[1].get(key, ())
            self.link(key).items.append(Branch(test, tuple(then), tuple(otherwise)))
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
        made: Symbol = self.walker.symbol(name, str(known.type), of, known.value)
        return made

    def _unknown(self, old: Value) -> Value:
        if isinstance(old, Unknown | Code):
            return Unknown(old) if isinstance(old, Code) else old
        return Unknown(Code(self.node, self.scope.source, self.scope))


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
    seen = {id(link): link for link in first.ancestors()}
    common = next((link for link in second.ancestors() if id(link) in seen), None)
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
    code = Code(node, scope.source, scope)
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
                    _lose_fields(walker, held, unknown)
    if streams:
        walker.gaps.append(code)


def _lose_fields(walker: Any, made: Made, unknown: Unknown) -> None:
    """Let the fields of an object of the program be unknown."""
    declared = walker.project.find(simple_name(made.type), made.code.source)
    for name in walker.project.all_fields(declared):
        made.state[name] = unknown


def _root(call: Node) -> Node | None:
    """Return what a chain of calls begins with."""
    on = call.child_by_field_name("object")
    while on is not None and on.type in ("method_invocation", "array_access"):
        field = "object" if on.type == "method_invocation" else "array"
        on = on.child_by_field_name(field)
    return on
