# SPDX-License-Identifier: Apache-2.0
"""SQL statements in files of PyFlink."""

from __future__ import annotations

import ast

from pyflinkcep.migrate.program import Written
from pyflinkcep.migrate.translated import Note
from pyflinkcep.migrate.writing.module import Module
from pyflinkcep.migrate.writing.statements import StatementWriter, is_match
from pyflinkcep.migrate.writing.text import docstring, indented

__all__ = ["translate_python"]

_CALLS = ("execute_sql", "sql_query", "sql_update", "executeSql", "sqlQuery")


def translate_python(file: str, data: bytes, module_name: str) -> Written:
    """Return a module with the statements with MATCH_RECOGNIZE of a file of PyFlink."""
    written = Written(file)
    try:
        tree = ast.parse(data.decode("utf-8", "replace"))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        written.errors.append(Note(file, line, f"not Python: {getattr(error, 'msg', error)}"))
        return written
    texts = _constants(tree)
    name = file.rsplit("/", 1)[-1]
    module = Module(docstring(f"The statements of {name}, translated by pyflinkcep.migrate"))
    module.use("from pyspark.sql import SparkSession")
    writer = StatementWriter(module, written.notes)
    lines: list[str] = []
    number = 0
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        if call.func.attr not in _CALLS or not call.args:
            continue
        sql = _text(call.args[0], texts)
        if sql is None:
            written.notes.append(Note(file, call.lineno, "the text of a statement is not known"))
        elif not is_match(sql):
            writer.declare(sql, (file, call.lineno))
        else:
            number += 1
            writer.statement(sql, f"statement_{number}", (file, call.lineno), lines)
    if number:
        lines = [line for line in lines if "awaitAny" not in line]
        lines.append("spark.streams.awaitAnyTermination()")
        body = indented("\n".join([docstring("Run the statements"), *lines]))
        module.function(f"def main(spark: SparkSession) -> None:\n{body}")
        session = "SparkSession.builder.getOrCreate()"
        module.main(f'if __name__ == "__main__":\n    main({session})')
        written.module, written.text = module_name, module.text()
        written.statements = number
    return written


def _constants(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], _text(node.value, found)
            if isinstance(target, ast.Name) and value is not None:
                found[target.id] = value
    return found


def _text(node: ast.expr, known: dict[str, str]) -> str | None:
    """Return the text of an expression, if the file says it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left, known), _text(node.right, known)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.JoinedStr):
        parts = [
            _text(part.value if isinstance(part, ast.FormattedValue) else part, known)
            for part in node.values
        ]
        return None if None in parts else "".join(part for part in parts if part is not None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("strip", "dedent"):
            inner = [node.func.value] if node.func.attr == "strip" else node.args
            return _text(inner[0], known) if inner else None
        if node.func.attr == "format" and not node.args:
            text = _text(node.func.value, known)
            values = {k.arg or "": _text(k.value, known) for k in node.keywords}
            if text is not None and None not in values.values():
                try:
                    return text.format(**values)
                except (KeyError, IndexError, ValueError):
                    return None
    return None
