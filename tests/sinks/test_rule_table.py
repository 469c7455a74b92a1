# SPDX-License-Identifier: Apache-2.0
"""Rules in a table of PostgreSQL are followed, by Spark and by its driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep.rules import RuleLog
from tests.sinks.servers import postgresql

pytestmark = pytest.mark.skipif(
    "PYFLINKCEP_TEST_SINKS" not in os.environ, reason="takes servers: make sinks"
)

TABLE = "CREATE TABLE rules (id serial, definition jsonb, enabled boolean DEFAULT true)"
QUERY = "SELECT definition AS document, enabled FROM rules ORDER BY id"
DRIVERS = "org/postgresql/postgresql/*/postgresql-*.jar"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Return the address of a database."""
    with postgresql() as dsn:
        yield dsn


@pytest.fixture(params=["rows", "jdbc"])
def table(request: pytest.FixtureRequest, server: str) -> Iterator[tuple[str, Any]]:
    """Return the address of a database with an empty table of rules, and what reads it."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS rules")
        connection.execute(TABLE)
    if request.param == "jdbc":
        with _by_spark(server) as dataframe:
            yield server, dataframe
        return

    def rows() -> list[dict[str, Any]]:
        with psycopg.connect(server, row_factory=psycopg.rows.dict_row) as connection:
            return list(connection.execute(QUERY).fetchall())

    yield server, rows


@contextmanager
def _by_spark(server: str) -> Iterator[DataFrame]:
    jars = sorted((Path.home() / ".m2" / "repository").glob(DRIVERS))
    if not jars:
        pytest.skip("needs PostgreSQL's driver for Java in Maven's folder")
    builder: Any = SparkSession.builder
    spark = builder.master("local[1]").config("spark.jars", f"{jars[-1]}").getOrCreate()
    url = "jdbc:" + server.replace("postgres@", "")
    query = QUERY.replace("definition", "definition::text").replace(" ORDER BY id", "")
    options = {"driver": "org.postgresql.Driver", "user": "postgres", "url": url}
    try:
        yield spark.read.format("jdbc").options(**options, query=query).load()
    finally:
        spark.stop()


def test_following_postgresql(table: tuple[str, Any], tmp_path: Path) -> None:
    """Whatever is inserted, updated or deleted in the table is in the log at the next look."""
    psycopg = pytest.importorskip("psycopg")
    dsn, source = table

    def run(statement: str, *values: Any) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(statement, values)

    def stored(name: str, version: int, key: str = "pattern") -> str:
        return f'{{"rule": "{name}", "version": {version}, "{key}": [{{"begin": "a"}}]}}'

    log = RuleLog(tmp_path / "log")
    with log.follow(source, every=timedelta(hours=1)) as following:

        def seen() -> list[tuple[str, int, bool]]:
            following.look()
            return [(one.rule.name, one.rule.version, one.isPaused) for one in log.rules()]

        assert seen() == []
        insert = "INSERT INTO rules (definition, enabled) VALUES (%s, %s)"
        run(insert, stored("a", 1), True)
        run(insert, stored("b", 1), False)
        assert seen() == [("a", 1, False), ("b", 1, True)]
        update = "UPDATE rules SET definition = %s WHERE definition->>'rule' = %s"
        run(update, stored("a", 2, "patern"), "a")
        assert seen() == [("a", 1, False), ("b", 1, True)]
        assert [one.rule for one in following.problems] == ["a"]
        run(update, stored("a", 2), "a")
        run("UPDATE rules SET enabled = NOT enabled")
        assert seen() == [("a", 2, True), ("b", 1, False)]
        run("DELETE FROM rules WHERE enabled")
        assert seen() == [("a", 2, True)]
    assert _published(log.history, "b") == ["publish", "pause", "resume", "remove"]


def _published(history: Callable[[], Any], name: str) -> list[str]:
    return [change.change for change in history() if change.name == name]
