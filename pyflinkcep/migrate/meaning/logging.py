# SPDX-License-Identifier: Apache-2.0
"""Reads calls of loggers and of ``System.out``."""

from __future__ import annotations

import re

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import STRING
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Do

__all__ = ["logged", "measured"]

_LEVELS = {"trace": "debug", "debug": "debug", "info": "info", "warn": "warning", "error": "error"}
_PRINTED = ("System.out", "System.err")


def logged(reader: Reading, node: Node) -> Do | None:
    """Return a call that writes to a log or to the terminal; None for others."""
    owner, name = node.child_by_field_name("object"), text_of(node.child_by_field_name("name"))
    if owner is None:
        return None
    arguments = children(node.child_by_field_name("arguments"))
    void = JavaType("void")
    if text_of(owner) in _PRINTED and name in ("println", "print"):
        values = tuple(reader.read(argument) for argument in arguments)
        return Do(Call("print", values, void))
    is_logger = owner.type == "identifier" and (
        text_of(owner).lower() in ("log", "logger", "_log")
        or declared_type(owner, text_of(owner)) == "Logger"
    )
    if not is_logger or name not in _LEVELS or not arguments:
        return None
    values = tuple(reader.read(argument) for argument in arguments)
    return Do(Call("log", (Const(_LEVELS[name], STRING), *values), void))


_METRICS = re.compile(
    r"(Counter|Meter|Gauge|Histogram|MetricGroup|\w+Counter|\w+Accumulator|MeterView)$"
)


def measured(reader: Reading, node: Node) -> bool:
    """Whether a call only counts for a metric or accumulator, which is left out, with a note."""
    owner = node.child_by_field_name("object")
    while owner is not None and owner.type == "method_invocation":
        first = owner.child_by_field_name("object")
        if first is None and text_of(owner.child_by_field_name("name")) == "getRuntimeContext":
            reader.note(node, f"{text_of(node)[:60]} is left out: metrics have no counterpart")
            return True
        owner = first
    if owner is None:
        return False
    name = text_of(owner).removeprefix("this.")
    kind = declared_type(node, name) or ""
    if not name.isidentifier() or _METRICS.match(kind.split("<")[0]) is None:
        return False
    reader.note(node, f"{text_of(node)[:60]} is left out: metrics have no counterpart")
    return True


def declared_type(node: Node, name: str) -> str | None:
    """Return the type of the field of a name in a class around a node; None if there is none."""
    around = node.parent
    while around is not None:
        if around.type in ("class_body", "enum_body"):
            for part in children(around):
                if part.type != "field_declaration":
                    continue
                names = [
                    text_of(one.child_by_field_name("name"))
                    for one in part.children_by_field_name("declarator")
                ]
                if name in names:
                    return text_of(part.child_by_field_name("type")).rsplit(".", 1)[-1]
        around = around.parent
    return None
