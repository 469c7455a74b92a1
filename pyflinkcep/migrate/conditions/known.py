# SPDX-License-Identifier: Apache-2.0
"""What is known of the variables around a function."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.literals import Constant
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source, line_of
from pyflinkcep.migrate.meaning.construction import constructed
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.meaning.scope import Findings, Scope
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Untranslatable

__all__ = ["Given", "GivenFunction", "array_of", "expression_of"]


@attrs.frozen
class Given:
    """An object of a class of the project, and what its constructor is given."""

    type: str
    arguments: tuple[Any, ...]
    source: Source = attrs.field(repr=False, eq=False)


@attrs.frozen
class GivenFunction:
    """A lambda or method reference that a method is given."""

    node: Node
    source: Source = attrs.field(repr=False, eq=False)


def expression_of(value: Any, project: Project) -> Expression | None:
    """
    Return what a variable stands for; None if that is not known.

    Parameters
    ----------
    value : object
        A constant, what is captured, an object, a list of such, or an expression already.
    project : Project
        The classes.
    """
    if isinstance(value, Expression):
        return value
    if isinstance(value, Constant):
        return Const(value.value, value.type)
    for type_, name in ((bool, "boolean"), (str, "String"), (float, "double")):
        if isinstance(value, type_):
            return Const(value, JavaType(name))
    if isinstance(value, int):
        return Const(value, JavaType("int" if -(1 << 31) <= value < 1 << 31 else "long"))
    if isinstance(value, tuple):
        inner = [expression_of(one, project) for one in value]
        known = [one for one in inner if one is not None]
        types = {one.type for one in known}
        if len(known) < len(inner) or len(types) != 1:
            return None
        return Call("List.of", tuple(known), JavaType("List", (types.pop(),)))
    if isinstance(value, GivenFunction):
        return _function(value, project)
    return _object(value, project) if isinstance(value, Given) else None


def array_of(values: tuple[Any, ...], type_: JavaType, project: Project) -> Expression | None:
    """Return an array of known values; None if not all are known."""
    found = expression_of(values, project)
    return attrs.evolve(found, type=type_) if isinstance(found, Call) else None


def _function(value: GivenFunction, project: Project) -> Expression | None:
    within = project.at(value.source, line_of(value.node))
    reader = Reader(Scope(value.source, within, project), Findings())
    try:
        return reader.function(value.node, ())
    except Untranslatable:
        return None


def _object(value: Given, project: Project) -> Expression | None:
    of = project.find(value.type, value.source)
    arguments = [expression_of(one, project) for one in value.arguments]
    known = [one for one in arguments if one is not None]
    if of is None or len(known) < len(arguments):
        return None
    reader = Reader(Scope(value.source, None, project), Findings())
    try:
        return constructed(reader, of, known, of.node)
    except Untranslatable:
        return None
