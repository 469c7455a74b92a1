# SPDX-License-Identifier: Apache-2.0
"""The columns that conditions read of events whose class is not in the sources, such as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.types import UNKNOWN, spark_type
from pyflinkcep.migrate.meaning.tree import Call, Expression, Get, Var, parts

__all__ = ["columns_read", "joined_columns"]

Columns = dict[str, str]


def columns_read(of: Iterable[Expression], project: Project, event: JavaType) -> Columns:
    """Return the columns of events that expressions read, fields inside as structs."""
    found: Columns = {}
    for part in (part for one in of for part in parts(one)):
        path: list[str | None] = []
        type_ = spark_type(part.type, project) or "string" if _is_step(part) else ""
        owner = part
        while isinstance(owner, Get | Call) and _is_step(owner):
            path.insert(0, owner.name if isinstance(owner, Get) else None)
            owner = owner.owner if isinstance(owner, Get) else owner.operands[0]
        is_event = isinstance(owner, Var) and owner.name == "event"
        if not path or not (is_event or (owner.type == event and event != UNKNOWN)):
            continue
        for name in reversed(path[1:]):
            type_ = f"array<{type_}>" if name is None else f"struct<{name}:{type_}>"
        if path[0] is not None:
            found = joined_columns(found, [(path[0], type_)])
    return found


def _is_step(of: Expression) -> bool:
    """Whether an expression is a field, or an element of an array, of another value."""
    return isinstance(of, Get) or (isinstance(of, Call) and of.name == "json item")


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
        found[name] = _joined(found.get(name, type_), type_)
    return found


def _joined(before: str, type_: str) -> str:
    """Return the type of a column that is read as values of two types."""
    if before.startswith("struct<") and type_.startswith("struct<"):
        inner = joined_columns(dict(_fields(before)), _fields(type_))
        return f"struct<{','.join(f'{n}:{t}' for n, t in inner.items())}>"
    if before.startswith("array<") and type_.startswith("array<"):
        return f"array<{_joined(before[6:-1], type_[6:-1])}>"
    return type_ if before == "string" or type_.startswith(("struct<", "array<")) else before


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
