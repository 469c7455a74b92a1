# SPDX-License-Identifier: Apache-2.0
"""Which variables and fields code declares, and which it assigns."""

from __future__ import annotations

import re
from functools import lru_cache

from pyflinkcep.migrate.java.declarations import JavaClass
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source, children, text_of

__all__ = ["called_in", "declared_in", "is_assigned", "set_by_this", "written_in"]


def written_in(node: Node, *, whole: bool = False) -> set[str]:
    """
    Return the names of variables and fields that code assigns, or changes an element of.

    Parameters
    ----------
    node : Node
        The code.
    whole : bool
        Whether a field of another object or class has that before its name.
    """
    found: set[str] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        waiting.extend(one.named_children)
        target = None
        if one.type == "assignment_expression":
            target = one.child_by_field_name("left")
        elif one.type == "update_expression":
            target = children(one)[0]
        while target is not None and target.type == "array_access":
            target = target.child_by_field_name("array")
        if target is not None:
            name = text_of(target).removeprefix("this.")
            found.add(name if whole else name.split(".", 1)[0])
    return found


def set_by_this(body: Node) -> set[str]:
    """Return the fields that code assigns as ``this.name``."""
    return set(re.findall(r"\bthis\.(\w+)\s*(?:[-+*/%&|^]|<<|>>>?)?=(?!=)", text_of(body)))


_FUNCTIONS = ("lambda_expression",)
_DECLARING = frozenset({
    "variable_declarator", "enhanced_for_statement", "catch_formal_parameter", "formal_parameter",
    "spread_parameter", "instanceof_expression", *_FUNCTIONS,
})  # fmt: skip


@lru_cache(maxsize=4096)
def declared_in(body: Node) -> frozenset[str]:
    """Return the variables that a body declares."""
    found: set[str] = set()
    waiting = [body]
    while waiting:
        one = waiting.pop()
        waiting.extend(one.named_children)
        if one.type not in _DECLARING:
            continue
        name = one.child_by_field_name("parameters" if one.type in _FUNCTIONS else "name")
        if name is not None and name.type == "inferred_parameters":
            found |= {text_of(part) for part in name.named_children}
        elif name is not None and name.type == "identifier":
            found.add(text_of(name))
    return frozenset(found)


@lru_cache(maxsize=4096)
def called_in(source: Source) -> frozenset[str]:
    """Return the names of the methods that a file calls or refers to."""
    found: set[str] = set()
    waiting = [source.root]
    while waiting:
        one = waiting.pop()
        waiting.extend(one.named_children)
        if one.type in ("method_invocation", "method_reference"):
            found.add(text_of(one.child_by_field_name("name") or one.children[-1]))
    return frozenset(found)


def is_assigned(name: str, owner: JavaClass, project: Project) -> bool:
    """Whether code anywhere assigns a static field of a class."""
    for source in project.sources:
        inside = source is owner.source
        for found in _assignments(source):
            if found == f"{owner.name}.{name}" or (inside and found == name):
                return True
    return False


@lru_cache(maxsize=4096)
def _assignments(source: Source) -> frozenset[str]:
    """Return what the methods of a file assign that is no variable of theirs."""
    found: set[str] = set()
    waiting = [source.root]
    while waiting:
        one = waiting.pop()
        if one.type not in _BODIES:
            waiting.extend(one.named_children)
            continue
        found |= written_in(one, whole=True) - declared_in(one)
    return frozenset(found)


_BODIES = ("method_declaration", "constructor_declaration", "static_initializer")
