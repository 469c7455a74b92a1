# SPDX-License-Identifier: Apache-2.0
"""SQL statements of a program, as calls of ``CEP.sql`` and ``spark.sql``."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from pyflinkcep.migrate.chains.lookup import snake
from pyflinkcep.migrate.chains.values import Constant, Stream
from pyflinkcep.migrate.java.source import line_of
from pyflinkcep.migrate.translated import Note
from pyflinkcep.migrate.writing.module import Module
from pyflinkcep.migrate.writing.tables import TableWriter

__all__ = ["StatementWriter", "is_match", "sql_literal", "sql_of"]

_MATCH = re.compile(r"\bMATCH_RECOGNIZE\b", re.IGNORECASE)
_OTHER = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|CREATE\s+(?:TEMPORARY\s+)?VIEW)\b", re.IGNORECASE)
"""Statements that do something of their own."""
_INSERT = re.compile(r"INSERT\s+INTO\s+[`\"]?(\w+)[`\"]?\s+(?=SELECT\b|WITH\b)", re.IGNORECASE)
_CREATE = re.compile(r"\s*CREATE\s+(?:TEMPORARY\s+)?TABLE\b", re.IGNORECASE)


def is_match(sql: str) -> bool:
    """Whether a statement has a clause MATCH_RECOGNIZE."""
    return _MATCH.search(sql) is not None


def sql_literal(sql: str) -> str:
    """Return a statement as a string of several lines."""
    body = sql.strip("\n").replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = body.splitlines()
    filled = [line for line in lines[1:] if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in filled), default=0)
    first = lines[0].strip() if lines else ""
    rest = [line[indent:].rstrip() for line in lines[1:]]
    text = "\n".join([first, *rest]).strip()
    return '"""\n' + "\n".join(f"    {line}".rstrip() for line in text.splitlines()) + '\n"""'


_TABLES = re.compile(r"\b(?:FROM|JOIN)\s+[`\"]?(\w+)", re.IGNORECASE)


@attrs.define(eq=False)
class StatementWriter:
    """
    Writes statements.

    Attributes
    ----------
    tables : TableWriter
        Writes the tables that they read and write.
    """

    module: Module
    notes: list[Note]
    tables: TableWriter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tables = TableWriter(self.module, self.notes)

    def write(self, statements: list[Stream], lines: list[str]) -> int:
        """Add what runs the statements to ``main``; return how many have a clause."""
        texts = [(stream, sql_of(stream)) for stream in statements]
        for stream, sql in texts:
            if sql is not None:
                self.declare(sql, _where(stream))
        found = 0
        for number, (stream, sql) in enumerate(texts, 1):
            if sql is not None and is_match(sql):
                found += 1
                name = stream.name or f"statement_{number}"
                self.statement(sql, name, _where(stream), lines)
        for stream, sql in texts:
            if sql is None and found:
                what = "the text of a statement is not known before the program runs"
                self.notes.append(Note(*_where(stream), what))
            elif sql is not None and _OTHER.match(sql) and not is_match(sql):
                what = "a statement without MATCH_RECOGNIZE is left out: write that part of the job"
                self.notes.append(Note(*_where(stream), what))
        return found

    def declare(self, sql: str, where: tuple[str, int]) -> None:
        """Remember the table that a statement declares, if it declares one."""
        if _CREATE.match(sql) and not self.tables.declare(sql, where):
            self.notes.append(Note(*where, "CREATE TABLE that is not understood: make a view"))

    def views(self, sql: str) -> list[str]:
        """Return the lines that make the views that a statement reads."""
        made = [self.tables.view(name) for name in dict.fromkeys(_TABLES.findall(sql))]
        return [line for line in made if line is not None]

    def statement(self, sql: str, name: str, where: tuple[str, int], lines: list[str]) -> None:
        """Add a statement with a clause, of a file and a line."""
        file, line = where
        self.module.use("from pyflinkcep import CEP")
        sql = sql.strip().rstrip(";")
        into = _INSERT.match(sql)
        sql = sql[into.end() :] if into is not None else sql
        name = into[1] if into is not None else name
        constant = self.module.constant(
            f"{snake(name).upper()}_SQL", sql_literal(sql), f"From {Path(file).name}:{line}."
        )
        variable = snake(name)
        lines += self.views(sql)
        lines.append(f"{variable} = CEP.sql(spark, {constant})")
        written = self.tables.sink(into[1], variable) if into is not None else None
        if into is not None and written is None:
            self.notes.append(Note(file, line, f"INSERT INTO {into[1]}: write the rows there"))
        console = f'{variable}.writeStream.format("console").option("truncate", False).start()'
        lines += written or [console]
        if "spark.streams.awaitAnyTermination()" in lines:
            lines.remove("spark.streams.awaitAnyTermination()")
        lines.append("spark.streams.awaitAnyTermination()")


def sql_of(stream: Stream) -> str | None:
    """Return the text of a statement, if the program says it."""
    given = stream.call.arguments[0] if stream.call.arguments else None
    if isinstance(given, Constant) and isinstance(given.value, str):
        return given.value
    return None


def _where(stream: Stream) -> tuple[str, int]:
    return stream.call.code.source.file, line_of(stream.call.code.node)
