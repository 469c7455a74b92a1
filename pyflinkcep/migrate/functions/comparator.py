# SPDX-License-Identifier: Apache-2.0
"""Comparators of events of equal time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyflinkcep.migrate.conditions.function import function_of, reader_of
from pyflinkcep.migrate.conditions.stub import reason_of, stub
from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source
from pyflinkcep.migrate.java.types import INT, UNKNOWN
from pyflinkcep.migrate.meaning.bodies import helper_lines
from pyflinkcep.migrate.meaning.names import checked_names
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.python_statements import Statements
from pyflinkcep.migrate.meaning.scope import Findings, snake_case
from pyflinkcep.migrate.meaning.statements import read_block
from pyflinkcep.migrate.meaning.tree import Return, Untranslatable, Var
from pyflinkcep.migrate.translated import Translated

__all__ = ["translate_comparator"]

_NOTHING: Mapping[str, Any] = {}


def translate_comparator(
    node: Node,
    source: Source,
    project: Project,
    event_type: str | None = None,
    known: Mapping[str, Any] = _NOTHING,
    name: str = "compare_events",
) -> Translated:
    """Translate an ``EventComparator`` to a function of two events that returns a number."""
    findings = Findings()
    try:
        function = function_of(node, source, project, ("compare",), findings, known)
        reader = reader_of(function, findings, known)
        given = JavaType(event_type) if event_type else UNKNOWN
        if len(function.parameters) != 2:
            raise Untranslatable("a comparator without two parameters")
        for (java, written), python in zip(function.parameters, ("first", "second"), strict=True):
            type_ = written if written.name not in ("?", "T") else given
            reader.scope.values[java] = Var(python, type_)
        reader.result_type = INT
        statements = (
            read_block(reader, function.body)
            if function.is_block
            else (Return(reader.read(function.body)),)
        )
        lines = Statements(Python(findings), "int").block(statements)
        lines = checked_names([*helper_lines(reader), *lines], ("first", "second"), findings)
    except Exception as error:
        why = reason_of(error, node)
        return stub(node, source, why, findings, name, ("first", "second"), "int", project)
    name = snake_case(name)
    doc = "Return a negative number if `first` comes before `second`, a positive one if after."
    head = [f"def {name}(first: Any, second: Any) -> int:", f'    """{doc}"""']
    text = "\n".join([*head, *(f"    {line}".rstrip() for line in lines)]) + "\n"
    return Translated(
        name=name,
        python=text,
        imports=frozenset({*findings.imports, "from typing import Any"}),
        notes=tuple(findings.notes),
    )
