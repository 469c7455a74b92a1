# SPDX-License-Identifier: Apache-2.0
"""The columns of rows: those that code reads of events, and those of what it returns."""

from __future__ import annotations

from collections.abc import Iterable

from pyflinkcep.migrate.java.declarations import UNKNOWN, JavaType
from pyflinkcep.migrate.java.project import Project, column_names, quoted, schema_of, spark_type
from pyflinkcep.migrate.java.source import Source
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.literals import constant
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Choice,
    Const,
    Expression,
    Get,
    Make,
    Statement,
    Var,
    expressions_of,
    parts,
)

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
    return isinstance(of, Get) or (isinstance(of, Call) and of.operation is ops.JSON_ITEM)


def joined_columns(columns: Columns, more: Iterable[tuple[str, str]]) -> Columns:
    """Return columns with others: structs have the fields of both, and a known type wins."""
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


JSON_OBJECTS = ("JSONObject", "ObjectNode", "JsonObject")
"""Classes of JSON objects that programs fill."""


def ddl_of(type_: JavaType, project: Project, source: Source | None) -> str | None:
    """Return the columns of rows of a type as DDL; None if they are unknown."""
    if not type_.dims and project.find(type_.name, source) is not None:
        found = schema_of(type_.name, source, project)
        if found is not None:
            return found
    if type_.name in ("Object", "?", "null", "void"):
        return None
    single = spark_type(type_, project, source)
    if single is None:
        return None
    if type_.name.startswith("Tuple") and single.startswith("struct<"):
        parts = [spark_type(arg, project, source) for arg in type_.args]
        return ", ".join(f"f{place} {part}" for place, part in enumerate(parts))
    return f"value {single}"


def json_columns(
    statements: Iterable[Statement], project: Project, source: Source | None
) -> str | None:
    """Return the columns of the JSON objects that code fills, if all their names are constants."""
    found: dict[str, str] = {}
    for part in (part for one in expressions_of(statements) for part in parts(one)):
        if not isinstance(part, Call) or part.operation is not ops.PUT:
            continue
        owner, key, value = part.operands
        if owner.type.name not in JSON_OBJECTS:
            continue
        type_ = spark_type(value.type, project, source)
        if not isinstance(key, Const) or not isinstance(key.value, str) or type_ is None:
            return None
        if found.setdefault(key.value, type_) != type_:
            return None
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in found.items()) or None


def row_of(
    python: Python, value: Expression, type_: JavaType, project: Project, source: Source | None
) -> tuple[str, str]:
    """
    Return a result as a row, and what that is.

    It is a ``dict`` of a new object, a ``tuple``, or the object ``itself``; ``null`` is none.
    """
    if isinstance(value, Const) and value.value is None:
        return "None", "null"
    known = value.type if value.type.name not in ("?", "null", "Object") else type_
    if isinstance(value, Choice):
        known = value.yes.type if value.yes.type.name != "null" else value.no.type
    if isinstance(value, Make) and value.type.name.startswith("Tuple"):
        inner = ", ".join(python.write(field) for _, field in value.fields)
        return f"({inner},)" if len(value.fields) == 1 else f"({inner})", "tuple"
    of = project.find(known.name, source) if not known.dims else None
    is_object = (of is not None and of.kind != "enum") or isinstance(value, Make)
    is_new = isinstance(value, Make) or (isinstance(value, Var) and value.name in python.made)
    if of is not None and of.kind != "enum" and not is_new:
        names = ", ".join(map(constant, column_names(of, project)))
        return f"{python.use('row_of')}({python.write(value)}, {names})", "tuple"
    listed = _rows_of(python, value, known, project, source)
    if listed is not None:
        return f"({listed},)", "tuple"
    if is_object or known.name.startswith("Tuple") or known.name in ("?", "Row"):
        return python.write(value), "dict" if is_new else "itself"
    return f"({python.write(value)},)", "tuple"


def _rows_of(
    python: Python, value: Expression, type_: JavaType, project: Project, source: Source | None
) -> str | None:
    """Return a list of events, or a map of such lists, as rows; None for others."""
    is_map = type_.name in ("Map", "HashMap", "LinkedHashMap") and len(type_.args) == 2
    inner = type_.args[1] if is_map else type_
    if inner.name not in ("List", "ArrayList", "Collection", "Iterable") or not inner.args:
        return None
    of = project.find(inner.args[0].name, source)
    if of is None or of.kind == "enum" or (isinstance(value, Call) and value.operation is ops.LIST):
        return None
    names = ", ".join(map(constant, column_names(of, project)))
    rows = python.use("rows_of")
    if is_map:
        items = python.filled("a.items()", value)
        return f"{{name: {rows}(events, {names}) for name, events in {items}}}"
    return f"{rows}({python.write(value)}, {names})"
