# SPDX-License-Identifier: Apache-2.0
"""Results of functions as rows."""

from __future__ import annotations

from collections.abc import Iterable

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Source
from pyflinkcep.migrate.java.types import column_names, quoted, schema_of, spark_type
from pyflinkcep.migrate.meaning.constants import constant
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Choice,
    Const,
    Expression,
    Make,
    Statement,
    Var,
    parts,
)
from pyflinkcep.migrate.meaning.walked import expressions_of

__all__ = ["JSON_OBJECTS", "ddl_of", "json_columns", "row_of"]

JSON_OBJECTS = ("JSONObject", "ObjectNode", "JsonObject")
"""Classes of JSON objects that programs fill."""


def ddl_of(type_: JavaType, project: Project, source: Source | None) -> str | None:
    """
    Return the columns of rows of a type as DDL; None if they are unknown.

    Examples
    --------
    >>> ddl_of(JavaType("Tuple2", (JavaType("String"), JavaType("Long"))), Project(), None)
    'f0 string, f1 bigint'
    >>> ddl_of(JavaType("String"), Project(), None)
    'value string'
    """
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
        if not isinstance(part, Call) or part.name != "Map.put":
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
    if of is None or of.kind == "enum" or (isinstance(value, Call) and value.name == "List.of"):
        return None
    names = ", ".join(map(constant, column_names(of, project)))
    rows, written = python.use("rows_of"), python.write(value, 9)
    if is_map:
        return f"{{name: {rows}(events, {names}) for name, events in {written}.items()}}"
    return f"{rows}({written}, {names})"
