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
from pyflinkcep.migrate.writing.module import Module, chain
from pyflinkcep.migrate.writing.settings import NOT_SHOWN, Settings, kafka

Where = tuple[str, int]
"""A file and a line."""


@attrs.define
class Table:
    """A table that a program declares."""

    name: str
    where: Where
    columns: list[tuple[str, str]] = attrs.field(factory=list)  # Of its records, in Spark's types
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

    @property
    def format(self) -> str:
        """How its records are written."""
        return self.options.get("format", self.options.get("value.format", "json"))


_TABLE = re.compile(
    r"""\s*CREATE\s+(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[`"]?([\w.]+)[`"]?\s*
    \((.*?)\)\s*(?:COMMENT\s+'[^']*'\s*|PARTITIONED\s+BY\s*\([^)]*\)\s*)*WITH\s*\((.*)\)\s*;?\s*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_OPTION = re.compile(r"'([^']+)'\s*=\s*'((?:[^']|'')*)'")
_WATERMARK = re.compile(
    r"WATERMARK\s+FOR\s+`?(\w+)`?\s+AS\s+`?\1`?"
    r"(?:\s*-\s*INTERVAL\s+'([\d.]+)'\s+(SECOND|MINUTE|HOUR|DAY)S?)?",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"(?:`([^`]+)`|\"([^\"]+)\"|(\w+))\s+(.*)", re.DOTALL)
_METADATA = re.compile(r"\bMETADATA\b(?:\s+FROM\s+'([^']+)')?", re.IGNORECASE)
_TYPE = re.compile(r"(\w+)\s*(?:[<(](.*)[>)])?[\w\s]*", re.DOTALL)
_KEYWORDS = ("PRIMARY", "UNIQUE", "CONSTRAINT", "PERIOD")
_PLAIN = {
    "integer": "int", "time": "string", "bytes": "binary", "varchar": "string", "char": "string",
    "varbinary": "binary", "timestamp_ltz": "timestamp", "timestamp_tz": "timestamp",
    **{name: name for name in ("string", "boolean", "tinyint", "smallint", "int", "bigint", "float",
                               "double", "date", "binary", "timestamp")},
}  # fmt: skip


def table_of(sql: str, where: Where = ("", 0)) -> Table | None:
    """Return the table that a statement declares; None if it declares none that is understood."""
    found = _TABLE.fullmatch(sql)
    if found is None:
        return None
    options = {name: value.replace("''", "'") for name, value in _OPTION.findall(found[3])}
    table = Table(found[1].rsplit(".", 1)[-1], where, options=options)
    for part in comma_parts(re.sub(r"--[^\n]*", "", found[2])):
        _add(table, re.sub(r"\s+COMMENT\s+'[^']*'", "", part, flags=re.IGNORECASE))
    return table if table.columns or table.computed else None


def _add(table: Table, part: str) -> None:
    """Add what a part of a declaration says."""
    watermark, column = _WATERMARK.fullmatch(part), _COLUMN.fullmatch(part)
    if part.split()[0].upper() in _KEYWORDS:
        return
    if watermark is not None:
        name, number, unit = watermark.groups()
        plural = "" if number == "1" else "s"
        table.watermark = (name, f"{number} {unit.lower()}{plural}" if number else "0 seconds")
        return
    name = "" if column is None else column[1] or column[2] or column[3]
    rest = "" if column is None else re.sub(r"\s+(NOT\s+)?NULL\s*$", "", column[4], flags=re.I)
    metadata, type_ = _METADATA.search(rest), spark_type(rest)
    if rest[:3].upper() == "AS ":
        table.computed.append((name, spark_expression(rest[3:].strip())))
    elif metadata is not None:
        table.metadata.append((name, metadata[1] or name))
    elif type_ is not None:
        table.columns.append((name if name.isidentifier() else f"`{name}`", type_))
    else:
        table.problems.append(part)
        if name.upper() == "WATERMARK":
            table.watermark = (rest.split()[1].strip("`"), "0 seconds")


def spark_type(written: str) -> str | None:
    """Return Spark's type for one of Flink's SQL; None if it is unknown."""
    found = _TYPE.fullmatch(written.strip())
    kind = "" if found is None else found[1].lower()
    parts = [] if found is None else comma_parts(found[2] or "")
    if kind in ("decimal", "numeric", "dec"):
        return f"decimal({','.join(parts) or '10,0'})"
    if kind not in ("array", "map", "row"):
        return _PLAIN.get(kind)
    names = [part.partition(" ")[0].strip("`") + ":" if kind == "row" else "" for part in parts]
    inner = [spark_type(part.partition(" ")[2] if kind == "row" else part) for part in parts]
    fields = [name + type_ for name, type_ in zip(names, inner, strict=True) if type_ is not None]
    whole = f"{'struct' if kind == 'row' else kind}<{','.join(fields)}>"
    return whole if len(fields) == len(parts) else None


def spark_expression(sql: str) -> str:
    """Return an expression of Flink's SQL as Spark has it."""
    text = re.sub(r"TO_TIMESTAMP_LTZ\((.*),\s*3\s*\)", r"timestamp_millis(\1)", sql, flags=re.I)
    text = re.sub(r"TO_TIMESTAMP_LTZ\((.*),\s*0\s*\)", r"timestamp_seconds(\1)", text, flags=re.I)
    text = re.sub(r"\bPROCTIME\(\)", "current_timestamp()", text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", text)


_STARTS = {"earliest-offset": "earliest", "latest-offset": "latest"}
_OPTIONS = {"properties.bootstrap.servers": "kafka.bootstrap.servers", "topic": "subscribe",
            "topic-pattern": "subscribePattern"}  # fmt: skip
"""Spark's options for those of Flink's connector."""
_NEEDLESS = frozenset(
    ["connector", "format", "value.format", "key.format", "key.fields", "json.ignore-parse-errors",
     "json.fail-on-missing-field"]
)  # fmt: skip


def _read_kafka(table: Table) -> Settings:
    """Return the settings of a source."""
    options: list[tuple[str, str]] = []
    left: list[str] = []
    for name, value in table.options.items():
        if name in _OPTIONS:
            options.append((_OPTIONS[name], value.replace(";", ",")))
        elif name == "scan.startup.mode" and value in _STARTS:
            options.append(("startingOffsets", _STARTS[value]))
        elif name.startswith("properties."):
            options.append((f"kafka.{name.removeprefix('properties.')}", value))
        elif name not in _NEEDLESS:
            left.append(f"{name!r} = {value!r}")
    return kafka(options, left)


def _sink_of(table: Table) -> Settings | None:
    """Return where rows that are inserted go; None if that has no counterpart."""
    given = table.options
    connector = given.get("connector", "")
    if connector == "print":
        return Settings("console")
    if connector == "filesystem":
        return Settings(table.format, (("path", _path(table)),))
    if connector in ("kafka", "upsert-kafka"):
        servers = given.get("properties.bootstrap.servers", NOT_SHOWN)
        topic = given.get("topic", NOT_SHOWN)
        return kafka([("kafka.bootstrap.servers", servers), ("topic", topic)], (), ("topic",))
    return None


def _path(table: Table) -> str:
    return table.options.get("path", "TODO").removeprefix("file://")


_MATCH = re.compile(r"\bMATCH_RECOGNIZE\b", re.IGNORECASE)
_OTHER = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|CREATE\s+(?:TEMPORARY\s+)?VIEW)\b", re.IGNORECASE)
"""Statements that do something of their own."""
_INSERT = re.compile(r"INSERT\s+INTO\s+[`\"]?(\w+)[`\"]?\s+(?=SELECT\b|WITH\b)", re.IGNORECASE)
_CREATE = re.compile(r"\s*CREATE\s+(?:TEMPORARY\s+)?TABLE\b", re.IGNORECASE)
_MATCHED = re.compile(r"\bFROM\s+`?(\w+)`?\s+MATCH_RECOGNIZE\b", re.IGNORECASE)
_TABLES = re.compile(r"\b(?:FROM|JOIN)\s+[`\"]?(\w+)", re.IGNORECASE)


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


def sql_of(stream: Stream) -> str | None:
    """Return the text of a statement, if the program says it."""
    given = stream.call.arguments[0] if stream.call.arguments else None
    return given.value if isinstance(given, Const) and isinstance(given.value, str) else None


@attrs.define(eq=False)
class StatementWriter:
    """Writes statements, and the tables that they read and write."""

    module: Module
    tables: dict[str, Table] = attrs.field(factory=dict)  # By their names in lower case
    _views: set[str] = attrs.field(factory=set)

    def write(self, statements: list[Stream], lines: list[str]) -> int:
        """Add what runs the statements to ``main``; return how many have a clause."""
        texts = [
            (s.call.code.source.file, line_of(s.call.code.node), sql_of(s)) for s in statements
        ]
        for file, line, sql in texts:
            if sql is not None and _CREATE.match(sql):
                table = table_of(sql, (file, line))
                if table is None:
                    self._note((file, line), f"CREATE TABLE that is not understood: {PART}")
                else:
                    self.tables[table.name.lower()] = table
        found = 0
        for number, (stream, (file, line, sql)) in enumerate(
            zip(statements, texts, strict=True), 1
        ):
            if sql is not None and is_match(sql):
                found += 1
                name = stream.name or f"statement_{number}"
                self._statement(sql.strip().rstrip(";"), name, (file, line), lines)
        for file, line, sql in texts:
            if sql is None and found:
                what = "the text of a statement is not known before the program runs"
                self._note((file, line), f"{what}: {PART}")
            elif sql is not None and _OTHER.match(sql) and not is_match(sql):
                what = f"a statement without MATCH_RECOGNIZE is left out: {PART}"
                self._note((file, line), what)
        return found

    def views(self, sql: str) -> list[str]:
        """Return the lines that make the views that a statement reads, each once."""
        names = dict.fromkeys(name.lower() for name in _TABLES.findall(sql))
        needed = [name for name in names if name in self.tables and name not in self._views]
        self._views.update(needed)
        return [self._view(self.tables[name]) for name in needed]

    def _statement(self, sql: str, name: str, where: Where, lines: list[str]) -> None:
        """Add a statement with a clause."""
        into = _INSERT.match(sql)
        if into is not None:
            sql, name = sql[into.end() :], into[1]
        place = f"From {Path(where[0]).name}:{where[1]}."
        text = self.module.constant(f"{snake(name).upper()}_SQL", sql_literal(sql), place)
        lines += self.views(sql)
        over = _MATCHED.search(sql)
        if over is not None and over[1].lower() not in self.tables:
            what = f"the table {over[1]} is declared elsewhere: make a view of it: {PART}"
            self._note(where, what)
        lines.append(f"{snake(name)} = CEP.sql(spark, {text})")
        table = self.tables.get(name.lower()) if into is not None else None
        sink = None if table is None else _sink_of(table)
        if into is not None and sink is None:
            self._note(where, f"INSERT INTO {into[1]}: write the rows there: {PART}")
        lines.append((sink or Settings("console")).writer(snake(name), bounded=False))

    def _view(self, table: Table) -> str:
        """Write the function that reads a table; return the line that makes its view."""
        function = self.module.name(f"read_{snake(table.name)}")
        place = f"{table.where[0].rsplit('/', 1)[-1]}:{table.where[1]}"
        lines = self._source(table, place)
        for name, sql in table.computed:
            lines.append(f"events = events.withColumn({quoted(name)}, F.expr({quoted(sql)}))")
        mark = table.watermark
        timed = "" if mark is None else f".withWatermark({quoted(mark[0])}, {quoted(mark[1])})"
        head = f"{function}(spark: SparkSession) -> DataFrame"
        doc = f"Read the table {table.name} ({place})"
        self.module.define(head, doc, [*lines, f"return events{timed}"])
        for problem in table.problems:
            self._note(table.where, f"{problem!r} of {table.name} is not understood: {PART}")
        return f"{function}(spark).createOrReplaceTempView({quoted(table.name)})"

    def _source(self, table: Table, place: str) -> list[str]:
        connector, form = table.options.get("connector", ""), table.format
        comment = f"The columns of the table {table.name}."
        name = self.module.schema(snake(table.name).upper().strip("_"), table.ddl, comment)
        if connector in ("kafka", "upsert-kafka") and form in ("json", "csv"):
            source = _read_kafka(table)
            if source.missing:
                self._note(table.where, f"the code does not show: {', '.join(source.missing)}")
            for left in source.left:
                self._note(table.where, f"{left} is left out: {PART}")
            parsed = f'F.from_{form}(F.col("value").cast("string"), {name}).alias("event")'
            taken = [f"F.col({quoted(key)}).alias({quoted(to)})" for to, key in table.metadata]
            names = [quoted(to) for to, _ in table.metadata]
            rows = [("select", [parsed, *taken]), ("select", ['"event.*"', *names])]
            return [source.reader("records"), chain("records", rows, "events = ", 4)]
        if connector == "filesystem" and form in ("csv", "json", "parquet", "orc", "text"):
            files = f"spark.readStream.schema({name}).format({quoted(form)})"
            return [f"events = {files}.load({quoted(_path(table))})"]
        function = self.module.name(f"{snake(table.name)}_source")
        what = f"the connector {connector!r} with {form!r} has no counterpart: write {function}()"
        self._note(table.where, what)
        todo = f"TODO: return rows of {name}, as {place} reads them from {connector!r}"
        raised = f"raise NotImplementedError({quoted(f'{place}: read the table {table.name}')})"
        self.module.define(f"{function}(_spark: SparkSession) -> DataFrame", todo, [raised])
        return [f"events = {function}(spark)"]

    def _note(self, where: Where, what: str) -> None:
        self.module.notes.append(Note(*where, what))
