# SPDX-License-Identifier: Apache-2.0
"""Reads calls of loggers and of ``System.out``."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import STRING
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Do

__all__ = ["logged"]

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
    is_logger = owner.type == "identifier" and text_of(owner).lower() in ("log", "logger", "_log")
    if not is_logger or name not in _LEVELS or not arguments:
        return None
    values = tuple(reader.read(argument) for argument in arguments)
    return Do(Call("log", (Const(_LEVELS[name], STRING), *values), void))
