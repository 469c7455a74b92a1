# SPDX-License-Identifier: Apache-2.0
"""SQL statements of a program, as calls of ``CEP.sql`` and ``spark.sql``."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from pyflinkcep.migrate.chains.values import Const, Stream
from pyflinkcep.migrate.java.source import comma_parts, line_of, snake
from pyflinkcep.migrate.meaning.literals import constant as quoted
from pyflinkcep.migrate.meaning.translated import PART, Note
from pyflinkcep.migrate.writing.module import Module, chain, literal


@attrs.define
class Table:
    """A table."""

    name: str  # Its name
    # What its records have, with Spark's types.
    columns: list[tuple[str, str]] = attrs.field(factory=list)
    computed: list[tuple[str, str]] = attrs.field(factory=list)  # What is computed of them, as SQL
    # What the connector adds, by the name that it has there.
    metadata: list[tuple[str, str]] = attrs.field(factory=list)
    # The column with the time, and how far the watermark is behind.
    watermark: tuple[str, str] | None = None
    options: dict[str, str] = attrs.field(factory=dict)  # The settings of the connector
    problems: list[str] = attrs.field(factory=list)  # What was not understood

    @property
    def ddl(self) -> str:
        """The columns of its records as DDL."""
        return ", ".join(f"{name} {type_}" for name, type_ in self.columns)


_HEAD = re.compile(
    r"\s*CREATE\s+(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[`\"]?([\w.]+)[`\"]?\s*\(",
    re.IGNORECASE,
)
_OPTION = re.compile(r"'([^']+)'\s*=\s*'((?:[^']|'')*)'")
_WATERMARK = re.compile(r"WATERMARK\s+FOR\s+`?(\w+)`?\s+AS\s+(.*)", re.IGNORECASE | re.DOTALL)
_INTERVAL = re.compile(r"INTERVAL\s+'([\d.]+)'\s+(SECOND|MINUTE|HOUR|DAY)", re.IGNORECASE)
_KEYWORDS = ("PRIMARY", "UNIQUE", "CONSTRAINT", "PERIOD")
_PLAIN = {
    "string": "string", "boolean": "boolean", "tinyint": "tinyint", "smallint": "smallint",
    "int": "int", "integer": "int", "bigint": "bigint", "float": "float", "double": "double",
    "date": "date", "time": "string", "bytes": "binary", "varchar": "string", "char": "string",
    "varbinary": "binary", "binary": "binary", "timestamp": "timestamp",
    "timestamp_ltz": "timestamp", "timestamp_tz": "timestamp",
}  # fmt: skip


def table_of(sql: str) -> Table | None:
    """
    Return the table that a statement declares; None if it declares none that is understood.

    Examples
    --------
    >>> made = table_of("CREATE TABLE t (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - "
    ...                 "INTERVAL '5' SECOND) WITH ('connector' = 'kafka')")
    >>> made.ddl, made.watermark, made.options
    ('a int, ts timestamp', ('ts', '5 seconds'), {'connector': 'kafka'})
    """
    head = _HEAD.match(sql)
    if head is None:
        return None
    end = _closed(sql, head.end())
    table = Table(head[1].rsplit(".", 1)[-1])
    for part in comma_parts(sql[head.end() : end]):
        _add(table, part)
    table.options = {name: value.replace("''", "'") for name, value in _OPTION.findall(sql[end:])}
    return table if table.columns or table.computed else None


def _closed(sql: str, start: int) -> int:
    depth, quote = 1, ""
    for at in range(start, len(sql)):
        letter = sql[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'`\"":
            quote = letter
        else:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if depth == 0:
                return at
    return len(sql)


def _add(table: Table, part: str) -> None:
    part = re.sub(r"--[^\n]*", "", part).strip()
    part = re.sub(r"\s+COMMENT\s+'[^']*'", "", part, flags=re.IGNORECASE)
    if not part or part.split()[0].upper() in _KEYWORDS:
        return
    watermark = _WATERMARK.fullmatch(part)
    if watermark is not None:
        found = _INTERVAL.search(watermark[2])
        behind = "0 seconds"
        if found is None and watermark[2].strip().strip("`") != watermark[1]:
            table.problems.append(part)
        if found is not None:
            behind = f"{found[1]} {found[2].lower()}{'' if found[1] == '1' else 's'}"
        table.watermark = (watermark[1], behind)
        return
    named = re.match(r"`([^`]+)`|\"([^\"]+)\"|(\w+)", part)
    if named is None:
        table.problems.append(part)
        return
    name = next(one for one in named.groups() if one)
    rest = part[named.end() :].strip()
    computed = re.match(r"AS\b(.*)", rest, re.IGNORECASE | re.DOTALL)
    if computed is not None:
        table.computed.append((name, spark_expression(computed[1].strip())))
        return
    metadata = re.search(r"\bMETADATA\b(?:\s+FROM\s+'([^']+)')?", rest, re.IGNORECASE)
    if metadata is not None:
        table.metadata.append((name, metadata[1] or name))
        return
    type_ = spark_type(re.sub(r"\s+(NOT\s+)?NULL\s*$", "", rest, flags=re.IGNORECASE))
    if type_ is None:
        table.problems.append(part)
    else:
        table.columns.append((name if name.isidentifier() else f"`{name}`", type_))


_NESTED = re.compile(r"(ARRAY|MAP|ROW)\s*[<(](.*)[>)]", re.IGNORECASE | re.DOTALL)


def spark_type(written: str) -> str | None:
    """
    Return Spark's type for one of Flink's SQL; None if it is unknown.

    Examples
    --------
    >>> spark_type("ROW<a INT, b ARRAY<VARCHAR(20)>>"), spark_type("DECIMAL(10, 2)")
    ('struct<a:int,b:array<string>>', 'decimal(10,2)')
    """
    text = written.strip()
    nested = _NESTED.fullmatch(text)
    if nested is not None:
        return _nested(nested[1].lower(), comma_parts(nested[2]))
    name = re.match(r"\w+", text)
    kind = name[0].lower() if name is not None else ""
    if kind in ("decimal", "numeric", "dec"):
        digits = re.search(r"\(([\d, ]+)\)", text)
        return f"decimal({digits[1].replace(' ', '')})" if digits else "decimal(10,0)"
    return _PLAIN.get(kind)


def _nested(kind: str, parts: list[str]) -> str | None:
    if kind == "row":
        fields = [part.partition(" ") for part in parts]
        types = [(name.strip("`"), spark_type(type_)) for name, _, type_ in fields]
        known = [f"{name}:{type_}" for name, type_ in types if type_ is not None]
        return f"struct<{','.join(known)}>" if len(known) == len(parts) else None
    inner = [spark_type(part) for part in parts]
    known = [type_ for type_ in inner if type_ is not None]
    return f"{kind}<{','.join(known)}>" if len(known) == len(parts) else None


def spark_expression(sql: str) -> str:
    """
    Return an expression of Flink's SQL as Spark has it.

    Examples
    --------
    >>> spark_expression("TO_TIMESTAMP_LTZ(ms, 3)"), spark_expression("PROCTIME()")
    ('timestamp_millis(ms)', 'current_timestamp()')
    """
    text = re.sub(r"TO_TIMESTAMP_LTZ\((.*),\s*3\s*\)", r"timestamp_millis(\1)", sql, flags=re.I)
    text = re.sub(r"TO_TIMESTAMP_LTZ\((.*),\s*0\s*\)", r"timestamp_seconds(\1)", text, flags=re.I)
    text = re.sub(r"\bPROCTIME\(\)", "current_timestamp()", text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", text)


_STARTS = {"earliest-offset": "earliest", "latest-offset": "latest"}
_OF_KAFKA = frozenset(
    ["connector", "topic", "topic-pattern", "format", "value.format", "key.format", "key.fields",
     "scan.startup.mode", "json.ignore-parse-errors", "json.fail-on-missing-field"]
)  # fmt: skip
_WRITTEN = ("print", "kafka", "upsert-kafka", "filesystem", "blackhole")
_READ = ("csv", "json", "parquet", "orc", "text")


@attrs.define(eq=False)
class TableWriter:
    """Writes tables."""

    module: Module
    # Those that were declared, by their names in lower case.
    tables: dict[str, Table] = attrs.field(factory=dict)
    _places: dict[str, tuple[str, int]] = attrs.field(factory=dict)
    _views: dict[str, str] = attrs.field(factory=dict)

    def declare(self, sql: str, where: tuple[str, int]) -> bool:
        """Remember the table that a statement declares; return whether it does."""
        table = table_of(sql)
        if table is None:
            return False
        self.tables[table.name.lower()] = table
        self._places[table.name.lower()] = where
        return True

    def view(self, name: str) -> str | None:
        """Write the function that reads a table; return the line that makes its view."""
        table = self.tables.get(name.lower())
        if table is None or name.lower() in self._views:
            return None
        function = self.module.name(f"read_{snake(table.name)}")
        file, line = self._places[name.lower()]
        place = f"{file.rsplit('/', 1)[-1]}:{line}"
        lines = self._source(table, place) + self._more(table)
        head = f"{function}(spark: SparkSession) -> DataFrame"
        self.module.define(head, f"Read the table {table.name} ({place})", lines)
        for problem in table.problems:
            self._note(table, f"{problem!r} of {table.name} is not understood: {PART}")
        self._views[name.lower()] = function
        return f"{function}(spark).createOrReplaceTempView({quoted(table.name)})"

    def sink(self, name: str, variable: str) -> list[str] | None:
        """Return the lines that write rows to a table; None if it is not declared."""
        table = self.tables.get(name.lower())
        connector = "" if table is None else table.options.get("connector", "")
        if table is None or connector not in _WRITTEN:
            return None
        calls: list[tuple[str, list[str]]] = []
        if connector == "print":
            calls = [("writeStream.format", ['"console"']), ("option", ['"truncate"', "False"])]
        elif connector == "blackhole":
            calls = [("writeStream.format", ['"noop"'])]
        elif connector == "filesystem":
            kind = table.options.get("format", "json")
            calls = [("writeStream.format", [quoted(kind)])]
            calls.append(("option", ['"path"', quoted(_path(table))]))
        else:
            calls = [("select", ['F.to_json(F.struct("*")).alias("value")'])]
            calls.append(("writeStream.format", ['"kafka"']))
            servers = table.options.get("properties.bootstrap.servers", "TODO")
            calls.append(("option", ['"kafka.bootstrap.servers"', quoted(servers)]))
            calls.append(("option", ['"topic"', quoted(table.options.get("topic", "TODO"))]))
        if connector != "print":
            calls.append(("option", ['"checkpointLocation"', quoted(f"checkpoints/{variable}")]))
        return [chain(variable, [*calls, ("start", [])], "", 4)]

    def _source(self, table: Table, place: str) -> list[str]:
        connector = table.options.get("connector", "")
        format_ = table.options.get("format", table.options.get("value.format", "json"))
        name = self.module.constant(
            snake(table.name).upper().strip("_"), literal(table.ddl, len(table.name) + 3),
            f"The columns of the table {table.name}.",
        )  # fmt: skip
        if connector in ("kafka", "upsert-kafka") and format_ in ("json", "csv"):
            return self._kafka(table, name, format_)
        if connector == "filesystem" and format_ in _READ:
            reader = f"spark.readStream.schema({name}).format({quoted(format_)})"
            return [f"events = {reader}.load({quoted(_path(table))})"]
        function = self.module.name(f"{snake(table.name)}_source")
        what = f"the connector {connector!r} with {format_!r}"
        self._note(table, f"{what} has no counterpart: write {function}()")
        todo = f"TODO: return rows of {name}, as {place} reads them from {connector!r}"
        raised = f"raise NotImplementedError({quoted(f'{place}: read the table {table.name}')})"
        self.module.define(f"{function}(_spark: SparkSession) -> DataFrame", todo, [raised])
        return [f"events = {function}(spark)"]

    def _kafka(self, table: Table, schema: str, format_: str) -> list[str]:
        options = table.options
        calls = [("format", ['"kafka"'])]
        if "properties.bootstrap.servers" not in options:
            self._note(table, "the code does not show: kafka.bootstrap.servers")
        servers = options.get("properties.bootstrap.servers", "TODO")
        calls.append(("option", ['"kafka.bootstrap.servers"', quoted(servers)]))
        topic = options.get("topic", options.get("topic-pattern", "TODO"))
        kind = "subscribePattern" if "topic-pattern" in options else "subscribe"
        calls.append(("option", [quoted(kind), quoted(topic.replace(";", ","))]))
        start = options.get("scan.startup.mode", "")
        if start in _STARTS:
            calls.append(("option", ['"startingOffsets"', quoted(_STARTS[start])]))
        elif start:
            self._note(table, f"'scan.startup.mode' = {start!r} is left out: {PART}")
        for option, value in options.items():
            own = option.removeprefix("properties.")
            if own != option and own != "bootstrap.servers":
                calls.append(("option", [quoted(f"kafka.{own}"), quoted(value)]))
            elif own == option and option not in _OF_KAFKA:
                self._note(table, f"{option!r} = {value!r} is left out: {PART}")
        calls.append(("load", []))
        parsed = f'F.from_{format_}(F.col("value").cast("string"), {schema}).alias("event")'
        taken = [f"F.col({quoted(key)}).alias({quoted(name)})" for name, key in table.metadata]
        names = [quoted(name) for name, _ in table.metadata]
        rows = [("select", [parsed, *taken]), ("select", ['"event.*"', *names])]
        return [
            chain("spark.readStream", calls, "records = ", 4),
            chain("records", rows, "events = ", 4),
        ]

    def _more(self, table: Table) -> list[str]:
        """Return the computed columns and the watermark."""
        lines = []
        for name, sql in table.computed:
            value = f"events.withColumn({quoted(name)}, F.expr({quoted(sql)}))"
            lines.append(f"events = {value}")
        if table.watermark is None:
            return [*lines, "return events"]
        column, behind = table.watermark
        return [*lines, f"return events.withWatermark({quoted(column)}, {quoted(behind)})"]

    def _note(self, table: Table, what: str) -> None:
        self.module.notes.append(Note(*self._places[table.name.lower()], what))


def _path(table: Table) -> str:
    return table.options.get("path", "TODO").removeprefix("file://")


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


_MATCHED = re.compile(r"\bFROM\s+`?(\w+)`?\s+MATCH_RECOGNIZE\b", re.IGNORECASE)
_TABLES = re.compile(r"\b(?:FROM|JOIN)\s+[`\"]?(\w+)", re.IGNORECASE)


@attrs.define(eq=False)
class StatementWriter:
    """Writes statements."""

    module: Module
    tables: TableWriter = attrs.field(init=False)  # Writes the tables that they read and write

    def __attrs_post_init__(self) -> None:
        self.tables = TableWriter(self.module)

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
                what = f"the text of a statement is not known before the program runs: {PART}"
                self.module.notes.append(Note(*_where(stream), what))
            elif sql is not None and _OTHER.match(sql) and not is_match(sql):
                what = f"a statement without MATCH_RECOGNIZE is left out: {PART}"
                self.module.notes.append(Note(*_where(stream), what))
        return found

    def declare(self, sql: str, where: tuple[str, int]) -> None:
        """Remember the table that a statement declares, if it declares one."""
        if _CREATE.match(sql) and not self.tables.declare(sql, where):
            self.module.notes.append(Note(*where, f"CREATE TABLE that is not understood: {PART}"))

    def views(self, sql: str) -> list[str]:
        """Return the lines that make the views that a statement reads."""
        made = [self.tables.view(name) for name in dict.fromkeys(_TABLES.findall(sql))]
        return [line for line in made if line is not None]

    def statement(self, sql: str, name: str, where: tuple[str, int], lines: list[str]) -> None:
        """Add a statement with a clause, of a file and a line."""
        file, line = where
        sql = sql.strip().rstrip(";")
        into = _INSERT.match(sql)
        sql = sql[into.end() :] if into is not None else sql
        name = into[1] if into is not None else name
        constant = self.module.constant(
            f"{snake(name).upper()}_SQL", sql_literal(sql), f"From {Path(file).name}:{line}."
        )
        variable = snake(name)
        lines += self.views(sql)
        over = _MATCHED.search(sql)
        if over is not None and over[1].lower() not in self.tables.tables:
            what = f"the table {over[1]} is declared elsewhere: make a view of it: {PART}"
            self.module.notes.append(Note(file, line, what))
        lines.append(f"{variable} = CEP.sql(spark, {constant})")
        written = self.tables.sink(into[1], variable) if into is not None else None
        if into is not None and written is None:
            self.module.notes.append(
                Note(file, line, f"INSERT INTO {into[1]}: write the rows there: {PART}")
            )
        console = f'{variable}.writeStream.format("console").option("truncate", False).start()'
        lines += written or [console]
        if "spark.streams.awaitAnyTermination()" in lines:
            lines.remove("spark.streams.awaitAnyTermination()")
        lines.append("spark.streams.awaitAnyTermination()")


def sql_of(stream: Stream) -> str | None:
    """Return the text of a statement, if the program says it."""
    given = stream.call.arguments[0] if stream.call.arguments else None
    if isinstance(given, Const) and isinstance(given.value, str):
        return given.value
    return None


def _where(stream: Stream) -> tuple[str, int]:
    return stream.call.code.source.file, line_of(stream.call.code.node)
