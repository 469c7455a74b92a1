# SPDX-License-Identifier: Apache-2.0
"""What reads an expression, as those who read a part of one know it."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable
from typing import Any

import attrs

from pyflinkcep.migrate import runtime
from pyflinkcep.migrate.java.constants import converted
from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method, read_type
from pyflinkcep.migrate.java.project import (
    UNKNOWN,
    Project,
    is_floating,
    is_numeric,
    unboxed,
)
from pyflinkcep.migrate.java.source import Node, Source, children, text_of
from pyflinkcep.migrate.meaning.translated import Note
from pyflinkcep.migrate.meaning.tree import (
    Captured,
    Cast,
    Const,
    Expression,
    Var,
    parts,
)

_USED = frozenset({"event", "ctx", "match", "out", "math"})
"""Names of parameters and modules."""
RUNTIME = frozenset(
    name
    for name, one in vars(runtime).items()
    if callable(one) and one.__module__ == runtime.__name__ and name[0] != "_"
)
"""The names of what translated functions call."""
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return a name as Python writes it."""
    return re.sub(r"\W|^(?=\d)", "_", _HUMPS.sub("_", name)).lower()


def python_name(name: str) -> str:
    """Return the name of a variable in Python, which shadows nothing that is used."""
    found = snake_case(name)
    taken = (
        keyword.iskeyword(found)
        or found in dir(builtins)
        or found in _USED | RUNTIME
        or found == "l"
    )
    return found + "_" if taken or keyword.issoftkeyword(found) else found


@attrs.define(eq=False)
class Findings:
    """What reading and writing an expression brings to light."""

    notes: list[Note] = attrs.field(factory=list)
    imports: set[str] = attrs.field(factory=set)
    helpers: dict[str, str] = attrs.field(factory=dict)
    helper_names: dict[int, str] = attrs.field(factory=dict)
    tags: dict[str, str | None] = attrs.field(factory=dict)
    aggregates: bool = False  # Whether loops may become aggregates, which only SQL has
    # Finds the function that an object is, by its node and place.
    resolve: Callable[[Node, Scope], Any] | None = None
    # The functions found so, which values of the type Function number.
    objects: list[Any] = attrs.field(factory=list)
    # The variables around that were read, whose values are known at run time alone.
    captured: dict[str, Expression] = attrs.field(factory=dict)
    # The variables that hold JSON that code reads itself.
    parsed: set[str] = attrs.field(factory=set)

    def note(self, file: str, line: int, what: str) -> None:
        """Add a note, once."""
        found = Note(file, line, what)
        if found not in self.notes:
            self.notes.append(found)


@attrs.define(eq=False)
class Scope:
    """The names that are known at a place."""

    source: Source  # The file
    within: JavaClass | None  # The class around
    project: Project  # All classes
    values: dict[str, Expression] = attrs.field(factory=dict)  # What variables stand for
    this: Expression | None = None  # The object whose members have no qualifier
    # The values of fields of the class around.
    fields: dict[str, Expression] = attrs.field(factory=dict)
    depth: int = 0  # How many calls have been followed
    # The class of the object whose method this is, which may override what `within` declares.
    dynamic: JavaClass | None = None
    # The fields that are local variables around a function, which only the function sees.
    around: frozenset[str] = frozenset()
    # What the type variables of the class stand for.
    types: dict[str, JavaType] = attrs.field(factory=dict)
    # The methods of the anonymous class around, by name and number of parameters.
    methods: dict[tuple[str, int], Method] = attrs.field(factory=dict)

    def declare(self, name: str, type_: JavaType) -> Var:
        """Add a variable; its name in Python is free."""
        python = python_name(name)
        taken = {value.name for value in self.values.values() if isinstance(value, Var)}
        around = (v.value for v in self.fields.values() if isinstance(v, Captured))
        taken |= {part.name for v in around for part in parts(v) if isinstance(part, Var)}
        while python in taken and not self._is(name, python):
            python += "_"
        variable = Var(python, type_)
        self.values[name] = variable
        return variable

    def _is(self, name: str, python: str) -> bool:
        found = self.values.get(name)
        return isinstance(found, Var) and found.name == python

    def inside(self) -> Scope:
        """Return a scope for a block inside."""
        return attrs.evolve(self, values=dict(self.values))


def as_type(value: Expression, type_: JavaType) -> Expression:
    """Return a value as a variable of a type holds it."""
    have, want = unboxed(value.type), unboxed(type_)
    if have == want or not is_numeric(want) or not is_numeric(have):
        return value
    if isinstance(value, Const) and value.value is not None:
        constant = converted(Const(value.value, have), want)
        if constant is not None:
            return Const(constant.value, want)
    if is_floating(want) or have.name == "char" or want.name == "char":
        return Cast(value, want)
    return value


def element_of(type_: JavaType) -> JavaType:
    """Return the type of the elements of a list, array or stream."""
    if type_.dims:
        return JavaType(type_.name, type_.args, type_.dims - 1)
    return type_.args[0] if type_.args else UNKNOWN


def parameters_of(node: Node) -> list[tuple[str, JavaType]]:
    """Return the names and types of the parameters of a lambda."""
    found = node.child_by_field_name("parameters")
    if found is None:
        return []
    if found.type == "identifier":
        return [(text_of(found), UNKNOWN)]
    result = []
    for part in children(found):
        if part.type == "identifier":
            result.append((text_of(part), UNKNOWN))
        elif part.child_by_field_name("name") is not None:
            type_ = read_type(part.child_by_field_name("type"))
            result.append((text_of(part.child_by_field_name("name")), type_))
    return result
