# SPDX-License-Identifier: Apache-2.0
"""What the variables of a Java method hold, as far as a pattern's job depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from pyflinkcep.migrate.java.constants import Const as Const
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.reading import Findings
from pyflinkcep.migrate.meaning.tree import Expression, Var, parts


@attrs.frozen
class Symbol:
    """A value that is known at run time alone: a parameter, or what is computed from it."""

    tree: Expression  # What is computed; the parameters are variables in it
    names: tuple[tuple[str, str], ...] = ()  # The parameters in it, with their Java types
    # What the program takes if nothing is given; None if that is not known.
    default: object = attrs.field(default=None, eq=False)

    @property
    def type(self) -> str:
        """Its Java type."""
        return str(self.tree.type)

    def python(self, imports: set[str], level: int = 0) -> str:
        """Return the expression, to stand where a level binds; add the imports that it needs."""
        findings = Findings(imports=imports)
        given = frozenset(part for part in parts(self.tree) if isinstance(part, Var))
        return Python(findings, known=given, wraps=False).write(self.tree, level)


@attrs.frozen(eq=False)
class Code:
    """Java that is translated later, such as a condition, with the variables that it sees."""

    node: Any
    source: Any
    scope: Scope = attrs.field(repr=False)


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


Value = Const | Symbol | Code | Made | Unknown | Skip | Tag | Link | Stream


@attrs.define(eq=False, repr=False)
class Scope:
    """The variables of a block, and the class that it is in."""

    source: Any
    owner: Any = None
    outer: Scope | None = None
    values: dict[str, Value] = attrs.field(factory=dict)  # The variables that it declares
    types: dict[str, str] = attrs.field(factory=dict)  # Their Java types
    this: Made | None = None  # The object whose method is followed

    def object(self) -> Made | None:
        """Return the object whose method is followed, if its constructor's arguments are known."""
        scope: Scope | None = self
        while scope is not None and scope.this is None:
            scope = scope.outer
        return None if scope is None else scope.this

    def find(self, name: str) -> Value | None:
        """Return the value of a variable; None if it is not known."""
        scope = self.holder(name)
        return None if scope is None else scope.values[name]

    def holder(self, name: str) -> Scope | None:
        """Return the scope that declares a variable."""
        scope: Scope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.outer
        return scope

    def type_of(self, name: str) -> str | None:
        """Return the Java type of a variable."""
        scope = self.holder(name)
        return None if scope is None else scope.types.get(name)

    def set(self, name: str, value: Value, type_: str | None = None) -> None:
        """Give a variable a value: where it is declared, or here."""
        scope = self if type_ is not None else self.holder(name) or self
        scope.values[name] = value
        if type_ is not None:
            scope.types[name] = type_

    def all(self) -> dict[str, Value]:
        """Return all variables that can be seen."""
        outer = {} if self.outer is None else self.outer.all()
        return {**outer, **self.values}

    def all_types(self) -> dict[str, str]:
        """Return the Java types of all variables that can be seen."""
        outer = {} if self.outer is None else self.outer.all_types()
        return {**outer, **self.types}

    def snapshot(self) -> Scope:
        """Return a copy that later changes do not touch."""
        return Scope(self.source, self.owner, None, self.all(), self.all_types(), self.object())
