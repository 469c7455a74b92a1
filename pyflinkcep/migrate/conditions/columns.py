# SPDX-License-Identifier: Apache-2.0
"""The columns that conditions read of events whose class is not in the sources, such as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.types import UNKNOWN, spark_type
from pyflinkcep.migrate.meaning.tree import Expression, Get, Var, parts

__all__ = ["columns_read", "joined_columns"]

Columns = dict[str, str]


def columns_read(of: Iterable[Expression], project: Project, event: JavaType) -> Columns:
    """Return the columns of events that expressions read, fields inside as structs."""
    found: Columns = {}
    for part in (part for one in of for part in parts(one)):
        path: list[str] = []
        type_ = spark_type(part.type, project) or "string" if isinstance(part, Get) else ""
        owner = part
        while isinstance(owner, Get):
            path.insert(0, owner.name)
            owner = owner.owner
        is_event = isinstance(owner, Var) and owner.name == "event"
        if not path or not (is_event or (owner.type == event and event != UNKNOWN)):
            continue
        for name in reversed(path[1:]):
            type_ = f"struct<{name}:{type_}>"
        found = joined_columns(found, [(path[0], type_)])
    return found


def joined_columns(columns: Columns, more: Iterable[tuple[str, str]]) -> Columns:
    """
    Return columns with others: structs have the fields of both, and a known type wins.

    Examples
    --------
    >>> joined_columns({"a": "struct<x:int>"}, [("a", "struct<y:string>"), ("b", "int")])
    {'a': 'struct<x:int,y:string>', 'b': 'int'}
    """
    found = dict(columns)
    for name, type_ in more:
        before = found.get(name, type_)
        if before.startswith("struct<") and type_.startswith("struct<"):
            inner = joined_columns(dict(_fields(before)), _fields(type_))
            found[name] = f"struct<{','.join(f'{n}:{t}' for n, t in inner.items())}>"
        elif before == "string" or type_.startswith("struct<"):
            found[name] = type_
        else:
            found[name] = before
    return found


def _fields(struct: str) -> list[tuple[str, str]]:
    inner, depth, start = struct[7:-1], 0, 0
    found = []
    for at, char in enumerate(inner + ","):
        depth += {"<": 1, ">": -1}.get(char, 0)
        if char == "," and depth == 0:
            name, _, type_ = inner[start:at].partition(":")
            found.append((name, type_))
            start = at + 1
    return found
