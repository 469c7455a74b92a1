# SPDX-License-Identifier: Apache-2.0
"""Tables of SQL as views of DataFrames, and the rows that go into others."""

from __future__ import annotations

import attrs

from pyflinkcep.migrate.chains.lookup import snake
from pyflinkcep.migrate.jobs.tables import Table, table_of
from pyflinkcep.migrate.translated import Note
from pyflinkcep.migrate.writing.module import Module
from pyflinkcep.migrate.writing.text import chain, docstring, indented, literal, quoted

__all__ = ["TableWriter"]

_STARTS = {"earliest-offset": "earliest", "latest-offset": "latest"}
_WRITTEN = ("print", "kafka", "upsert-kafka", "filesystem", "blackhole")
_READ = ("csv", "json", "parquet", "orc", "text")


@attrs.define(eq=False)
class TableWriter:
    """
    Writes tables.

    Attributes
    ----------
    tables : dict of str to Table
        Those that were declared, by their names in lower case.
    """

    module: Module
    notes: list[Note]
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
        self.module.use("from pyspark.sql import DataFrame, SparkSession")
        file, line = self._places[name.lower()]
        place = f"{file.rsplit('/', 1)[-1]}:{line}"
        lines = self._source(table, place) + self._more(table)
        body = indented("\n".join([docstring(f"Read the table {table.name} ({place})"), *lines]))
        self.module.function(f"def {function}(spark: SparkSession) -> DataFrame:\n{body}")
        for problem in table.problems:
            self._note(table, f"the column {problem!r} of {table.name} is not understood: write it")
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
            self.module.use("from pyspark.sql import functions as F")
            calls = [("select", ['F.to_json(F.struct("*")).alias("value")'])]
            calls.append(("writeStream.format", ['"kafka"']))
            servers = table.options.get("properties.bootstrap.servers", "TODO")
            calls.append(("option", ['"kafka.bootstrap.servers"', quoted(servers)]))
            calls.append(("option", ['"topic"', quoted(table.options.get("topic", "TODO"))]))
        if connector != "print":
            calls.append(("option", ['"checkpointLocation"', quoted(f"checkpoints/{variable}")]))
        return [chain(variable, [*calls, ("start", [])], "", 4)]

    def _source(self, table: Table, place: str) -> list[str]:
        connector, format_ = table.options.get("connector", ""), table.options.get("format", "json")
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
        todo = docstring(f"TODO: return rows of {name}, as {place} reads them from {connector!r}")
        message = quoted(f"{place}: read the table {table.name}")
        body = indented(f"{todo}\nraise NotImplementedError({message})")
        self.module.function(f"def {function}(_spark: SparkSession) -> DataFrame:\n{body}")
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
        for option, value in options.items():
            own = option.removeprefix("properties.")
            if own != option and own != "bootstrap.servers":
                calls.append(("option", [quoted(f"kafka.{own}"), quoted(value)]))
        calls.append(("load", []))
        self.module.use("from pyspark.sql import functions as F")
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
            self.module.use("from pyspark.sql import functions as F")
            value = f"events.withColumn({quoted(name)}, F.expr({quoted(sql)}))"
            lines.append(f"events = {value}")
        if table.watermark is None:
            return [*lines, "return events"]
        column, behind = table.watermark
        return [*lines, f"return events.withWatermark({quoted(column)}, {quoted(behind)})"]

    def _note(self, table: Table, what: str) -> None:
        self.notes.append(Note(*self._places[table.name.lower()], what))


def _path(table: Table) -> str:
    return table.options.get("path", "TODO").removeprefix("file://")
