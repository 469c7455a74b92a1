# SPDX-License-Identifier: Apache-2.0
"""What variables hold after code that may have run or not."""

from __future__ import annotations

from typing import Any

from pyflinkcep.migrate.chains.constants import parameter, tree_of
from pyflinkcep.migrate.chains.values import (
    Branch,
    Code,
    Constant,
    Item,
    Link,
    Made,
    Scope,
    Stream,
    Symbol,
    Unknown,
    Value,
)
from pyflinkcep.migrate.meaning.tree import Choice

__all__ = ["Fork", "Watch"]


class Watch:
    """Remembers the variables and patterns that code sees, to tell what it changed."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._values = {id(s): dict(s.values) for s in _chain(scope)}
        self._scopes = list(_chain(scope))
        seen: dict[int, Link] = {}
        for value in scope.all().values():
            if isinstance(value, Link):
                seen.update({id(link): link for link in value.ancestors()})
        self._links = {key: (link, len(link.items)) for key, link in seen.items()}

    def before(self, name: str, scope: Scope) -> Value | None:
        """Return what a variable held."""
        return self._values[id(scope)].get(name)

    def taken(self) -> tuple[dict[tuple[int, str], Value], dict[int, list[Item]]]:
        """Return the variables and the calls that were added, and undo both."""
        changed: dict[tuple[int, str], Value] = {}
        for scope in self._scopes:
            old = self._values[id(scope)]
            for name, value in scope.values.items():
                if name in old and old[name] is not value:
                    changed[id(scope), name] = value
            scope.values.clear()
            scope.values.update(old)
        added: dict[int, list[Item]] = {}
        for key, (link, length) in self._links.items():
            if len(link.items) > length:
                added[key] = link.items[length:]
                del link.items[length:]
        return changed, added

    def link(self, key: int) -> Link:
        """Return a pattern that was seen."""
        return self._links[key][0]

    def set(self, key: tuple[int, str], value: Value) -> None:
        """Give a variable a value."""
        next(s for s in self._scopes if id(s) == key[0]).values[key[1]] = value

    def old(self, key: tuple[int, str]) -> Value:
        """Return what a variable held."""
        return self._values[key[0]][key[1]]


class Fork(Watch):
    """The two branches of a conditional."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._first: Any = ({}, {})

    def turn(self) -> None:
        """Go back to the beginning, for the second branch."""
        self._first = self.taken()

    def swap(self) -> None:
        """Go on with the first branch, and keep the second one."""
        second = self.taken()
        self._restore(self._first)
        self._first = second

    def _restore(self, state: Any) -> None:
        for key, value in state[0].items():
            self.set(key, value)
        for key, items in state[1].items():
            self.link(key).items.extend(items)

    def join(self, test: Symbol, walker: Any) -> None:
        """Let each variable hold what either branch gave it."""
        first, second = self._first, self.taken()
        for key in [*first[1], *(key for key in second[1] if key not in first[1])]:
            then, otherwise = first[1].get(key, ()), second[1].get(key, ())
            self.link(key).items.append(Branch(test, tuple(then), tuple(otherwise)))
        for key in [*first[0], *(key for key in second[0] if key not in first[0])]:
            old = self.old(key)
            values = first[0].get(key, old), second[0].get(key, old)
            if all(isinstance(value, Stream) for value in values):
                walker.doubt(walker.last, self.scope, "one of two streams: the first was taken")
                self.set(key, values[0])
                continue
            known = next((v for v in values if isinstance(v, Constant)), None)
            joined = walker.joined(test, *values)
            if (
                joined is None
                and known is not None
                and any(isinstance(v, Unknown | Made) for v in values)
            ):
                joined = self._read_at_start(key[1], known, walker)
            self.set(key, joined or self._unknown(old, walker))

    def _read_at_start(self, name: str, default: Constant, walker: Any) -> Value | None:
        """Return a parameter for what is a constant, or read when the program starts."""
        kind = default.type or {str: "String", bool: "boolean"}.get(type(default.value), "")
        if not kind:
            return None
        what = f"{name} is a parameter: in Java {default.value!r} by default"
        walker.doubt(walker.last, self.scope, what)
        return parameter(name, kind, default.value)

    def returned(
        self, test: Symbol, first: Value | None, second: Value | None, walker: Any
    ) -> Value | None:
        """Return what a method returns if either branch does."""
        if first is None or second is None:
            self.taken()
            return second if first is None else first
        then, otherwise = self._first, self.taken()
        for added, is_first in ((then[1], True), (otherwise[1], False)):
            for key, items in added.items():
                parts = (tuple(items), ()) if is_first else ((), tuple(items))
                self.link(key).items.append(Branch(test, *parts))
        return walker.joined(test, first, second)  # type: ignore[no-any-return]

    def _unknown(self, old: Value, walker: Any) -> Value:
        if isinstance(old, Unknown | Code):
            return Unknown(old) if isinstance(old, Code) else old
        return Unknown(Code(walker.last, self.scope.source, self.scope))


def either(test: Symbol, first: Value, second: Value) -> Value | None:
    """Return the value that is one of two, as a test at run time decides."""
    if first is second:
        return first
    if isinstance(first, Constant) and isinstance(second, Constant):
        if first == second:
            return first
        a, b = tree_of(first), tree_of(second)
        if a is None or b is None or type(first.value) is not type(second.value):
            return None
        return Symbol(Choice(test.tree, a, b, a.type), test.names)
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


def _chain(scope: Scope | None) -> list[Scope]:
    found = []
    while scope is not None:
        found.append(scope)
        scope = scope.outer
    return found
