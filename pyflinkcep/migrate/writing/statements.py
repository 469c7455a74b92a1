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

__all__ = ["StatementWriter", "is_match", "sql_literal"]

_MATCH = re.compile(r"\bMATCH_RECOGNIZE\b", re.IGNORECASE)
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


@attrs.define(eq=False)
class StatementWriter:
    """Writes statements."""

    module: Module
    notes: list[Note]

    def write(self, statements: list[Stream], lines: list[str]) -> int:
        """Add what runs the statements to ``main``; return how many have a clause."""
        texts = [(stream, self._sql(stream)) for stream in statements]
        if not any(sql is not None and is_match(sql) for _, sql in texts):
            return 0
        found = 0
        for number, (stream, sql) in enumerate(texts, 1):
            if sql is None:
                self._note(stream, "the text of a statement is not known before the program runs")
            elif is_match(sql):
                found += 1
                where = (stream.call.code.source.file, line_of(stream.call.code.node))
                self.statement(sql, stream.name or f"statement_{number}", where, lines)
            elif _CREATE.match(sql):
                self._table(stream, sql, lines)
        return found

    def statement(self, sql: str, name: str, where: tuple[str, int], lines: list[str]) -> None:
        """Add a statement with a clause, of a file and a line."""
        file, line = where
        self.module.use("from pyflinkcep import CEP")
        sql = sql.strip().rstrip(";")
        into = _INSERT.match(sql)
        if into is not None:
            sql, name = sql[into.end() :], into[1]
            self.notes.append(Note(file, line, f"INSERT INTO {into[1]}: write the rows there"))
        constant = self.module.constant(
            f"{snake(name).upper()}_SQL", sql_literal(sql), f"From {Path(file).name}:{line}."
        )
        variable = snake(name)
        lines.append(f"{variable} = CEP.sql(spark, {constant})")
        lines.append(f'{variable}.writeStream.format("console").option("truncate", False).start()')
        if "spark.streams.awaitAnyTermination()" not in lines:
            lines.append("spark.streams.awaitAnyTermination()")

    def _sql(self, stream: Stream) -> str | None:
        given = stream.call.arguments[0] if stream.call.arguments else None
        if isinstance(given, Constant) and isinstance(given.value, str):
            return given.value
        return None

    def _table(self, stream: Stream, sql: str, lines: list[str]) -> None:
        found = re.search(r"TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[`\"]?(\w+)", sql, re.IGNORECASE)
        table = found[1] if found else "table"
        self._note(stream, f"CREATE TABLE {table} (…) WITH (…): make a temporary view of that name")
        lines.append(f"# TODO: make the view {table} of a DataFrame with a watermark, from")
        lines += [f"#   {line}".rstrip() for line in sql.strip().splitlines()]

    def _note(self, stream: Stream, what: str) -> None:
        code = stream.call.code
        self.notes.append(Note(code.source.file, line_of(code.node), what))
