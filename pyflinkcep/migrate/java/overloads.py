# SPDX-License-Identifier: Apache-2.0
"""Which of several methods of one name a call means."""

from __future__ import annotations

from collections.abc import Sequence

from pyflinkcep.migrate.java.declarations import JavaType, Method
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.types import UNKNOWN, unboxed

__all__ = ["chosen"]

_WIDER = {
    "byte": ("short", "int", "long", "float", "double"),
    "short": ("int", "long", "float", "double"),
    "char": ("int", "long", "float", "double"),
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
}
_NUMBERS = ("Byte", "Short", "Integer", "Long", "Float", "Double", "BigDecimal", "BigInteger")
_ABOVE = {
    "String": ("CharSequence", "Comparable"),
    **dict.fromkeys(_NUMBERS, ("Number", "Comparable")),
    **dict.fromkeys(("ArrayList", "LinkedList"), ("List", "Collection", "Iterable")),
    **dict.fromkeys(("HashSet", "LinkedHashSet", "TreeSet"), ("Set", "Collection", "Iterable")),
    **dict.fromkeys(("List", "Set"), ("Collection", "Iterable")),
    **dict.fromkeys(("HashMap", "LinkedHashMap", "TreeMap"), ("Map",)),
    "Collection": ("Iterable",),
}
_PRIMITIVE = frozenset({*_WIDER, "double", "boolean"})


def chosen(methods: Sequence[Method], given: Sequence[JavaType], project: Project) -> Method | None:
    """
    Return the method that Java calls with arguments of some types; None if that is not known.

    Examples
    --------
    >>> from pyflinkcep.migrate.java.source import parse_java
    >>> project = Project([parse_java("class A { void f(int x) {} void f(Object x) {} }")])
    >>> methods = project.find("A").methods["f"]
    >>> str(chosen(methods, [JavaType("short")], project).parameters[0][1])
    'int'
    >>> str(chosen(methods, [JavaType("String")], project).parameters[0][1])
    'Object'
    """
    if len(methods) == 1:
        return methods[0]
    if any(len(m.parameters) != len(given) or m.spreads for m in methods):
        return None
    asked = [
        place for place in range(len(given)) if len({m.parameters[place][1] for m in methods}) > 1
    ]
    if any(given[place] == UNKNOWN for place in asked):
        return None
    for boxes in (False, True):
        able = [
            m
            for m in methods
            if all(_fits(given[p], m.parameters[p][1], project, boxes=boxes) for p in asked)
        ]
        if able:
            return _narrowest(able, asked, project)
    return None


def _narrowest(methods: list[Method], places: list[int], project: Project) -> Method | None:
    """Return the method whose parameters all others could take."""
    for one in methods:
        types = [one.parameters[place][1] for place in places]
        others = [[m.parameters[place][1] for place in places] for m in methods]
        if all(
            _fits(a, b, project, boxes=False)
            for other in others
            for a, b in zip(types, other, strict=True)
        ):
            return one
    return None


def _fits(given: JavaType, wanted: JavaType, project: Project, *, boxes: bool) -> bool:
    """Whether a value of a type can be given for a parameter, boxed or unboxed if need be."""
    if given.dims != wanted.dims:
        return wanted.name == "Object" and not wanted.dims
    if given.name == wanted.name:
        return True
    if given.dims:
        return False
    if given.name in _PRIMITIVE and wanted.name in _PRIMITIVE:
        return wanted.name in _WIDER.get(given.name, ())
    if (given.name in _PRIMITIVE) != (wanted.name in _PRIMITIVE):
        if not boxes or given.name == "null":
            return False
        if wanted.name in _PRIMITIVE:
            inner = unboxed(given)
            return inner != given and _fits(inner, wanted, project, boxes=False)
        box = _BOXES[given.name]
        return wanted.name in (box, "Object") or wanted.name in _ABOVE.get(box, ())
    if given.name == "null" or wanted.name == "Object":
        return True
    if wanted.name in _ABOVE.get(given.name, ()):
        return True
    of = project.find(given.name)
    return of is not None and project.is_a(of, wanted.name)


_BOXES = {
    "byte": "Byte", "short": "Short", "int": "Integer", "long": "Long", "float": "Float",
    "double": "Double", "char": "Character", "boolean": "Boolean",
}  # fmt: skip
