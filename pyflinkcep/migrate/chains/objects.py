# SPDX-License-Identifier: Apache-2.0
"""Objects of the program whose constructors only keep what they are given."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pyflinkcep.migrate.chains.constants import converted, literal
from pyflinkcep.migrate.chains.lookup import inside
from pyflinkcep.migrate.chains.values import Constant, Made, Value
from pyflinkcep.migrate.java.declarations import Field, JavaClass, Method
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.written import is_assigned

__all__ = ["by_field", "changes", "construct", "names_in", "names_reached", "unset"]


def construct(follow: Callable[..., Any], declared: JavaClass, made: Made, *, given: bool) -> None:
    """
    Give an object the fields that its constructor sets, which is followed for that.

    Parameters
    ----------
    follow : callable
        Follows a method of a class, with its arguments if they are known, and an object.
    declared : JavaClass
        The class.
    made : Made
        The object, without any fields yet.
    given : bool
        Whether its arguments are known; otherwise they become parameters.
    """
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
            values.get(text_of(node)) or literal(node)
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
        value = values.get(text_of(right)) or literal(right)
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


def changes(owner: JavaClass, name: str, value: Constant, project: Project) -> bool:
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
