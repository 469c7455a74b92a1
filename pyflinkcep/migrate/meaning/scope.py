# SPDX-License-Identifier: Apache-2.0
"""What names mean at a place of the Java text."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable
from typing import Any

import attrs

from pyflinkcep.migrate import runtime
from pyflinkcep.migrate.java.declarations import JavaClass, JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source
from pyflinkcep.migrate.meaning.tree import Captured, Expression, Var, parts
from pyflinkcep.migrate.translated import Note

__all__ = ["Findings", "Scope", "python_name", "snake_case"]

_USED = frozenset({"event", "ctx", "match", "out", "math"})
"""Names of parameters and modules."""
_RUNTIME = frozenset(runtime.__all__)
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """
    Return a name as Python writes it.

    Examples
    --------
    >>> snake_case("isHotTemperature"), snake_case("URLCount"), snake_case("MAX_SIZE")
    ('is_hot_temperature', 'url_count', 'max_size')
    """
    return re.sub(r"\W|^(?=\d)", "_", _HUMPS.sub("_", name)).lower()


def python_name(name: str) -> str:
    """Return the name of a variable in Python, which shadows nothing that is used."""
    found = snake_case(name)
    taken = (
        keyword.iskeyword(found)
        or found in dir(builtins)
        or found in _USED | _RUNTIME
        or found == "l"
    )
    return found + "_" if taken or keyword.issoftkeyword(found) else found


@attrs.define(eq=False)
class Findings:
    """
    What reading and writing an expression brings to light.

    Attributes
    ----------
    aggregates : bool
        Whether loops may become aggregates, which only SQL has.
    resolve : callable, optional
        Finds the function that an object is, by its node, file and class around.
    objects : list
        The functions found so, which values of the type Function number.
    captured : dict of str to Expression
        The variables around that were read, whose values are known at run time alone.
    parsed : set of str
        The variables that hold JSON that code reads itself.
    """

    notes: list[Note] = attrs.field(factory=list)
    columns: dict[str, str] = attrs.field(factory=dict)
    imports: set[str] = attrs.field(factory=set)
    helpers: dict[str, str] = attrs.field(factory=dict)
    helper_names: dict[int, str] = attrs.field(factory=dict)
    tags: dict[str, str | None] = attrs.field(factory=dict)
    aggregates: bool = False
    resolve: Callable[[Node, Source, JavaClass | None], Any] | None = None
    objects: list[Any] = attrs.field(factory=list)
    captured: dict[str, Expression] = attrs.field(factory=dict)
    parsed: set[str] = attrs.field(factory=set)

    def note(self, file: str, line: int, what: str) -> None:
        """Add a note, once."""
        found = Note(file, line, what)
        if found not in self.notes:
            self.notes.append(found)


@attrs.define(eq=False)
class Scope:
    """
    The names that are known at a place.

    Attributes
    ----------
    source : Source
        The file.
    within : JavaClass or None
        The class around.
    project : Project
        All classes.
    values : dict of str to Expression
        What variables stand for.
    this : Expression or None
        The object whose members have no qualifier.
    fields : dict of str to Expression
        The values of fields of the class around.
    depth : int
        How many calls have been followed.
    dynamic : JavaClass or None
        The class of the object whose method this is, which may override what `within` declares.
    around : frozenset of str
        The fields that are local variables around a function, which only the function sees.
    anonymous : bool
        Whether this is a method of an anonymous class, above which `dynamic` is.
    types : dict of str to JavaType
        What the type variables of the class stand for.
    """

    source: Source
    within: JavaClass | None
    project: Project
    values: dict[str, Expression] = attrs.field(factory=dict)
    this: Expression | None = None
    fields: dict[str, Expression] = attrs.field(factory=dict)
    depth: int = 0
    dynamic: JavaClass | None = None
    around: frozenset[str] = frozenset()
    anonymous: bool = False
    types: dict[str, JavaType] = attrs.field(factory=dict)

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
