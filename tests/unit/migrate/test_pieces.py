# SPDX-License-Identifier: Apache-2.0
"""Pieces of what is written: names, constants, regular expressions, columns, notes."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from pyflinkcep.migrate.chains.values import converted, duration, in_unit, list_name, numbered
from pyflinkcep.migrate.check.compare import typed_events
from pyflinkcep.migrate.functions.translator import ddl_of, joined_columns
from pyflinkcep.migrate.java.constants import Const, unescaped
from pyflinkcep.migrate.java.declarations import JavaType, type_arguments, written_type
from pyflinkcep.migrate.java.project import Project, columns_of, property_of, spark_type
from pyflinkcep.migrate.java.source import comma_parts, snake, snake_case
from pyflinkcep.migrate.meaning.literals import Inside, constant, f_string, python_regex
from pyflinkcep.migrate.meaning.python import checked_names, tag_constant
from pyflinkcep.migrate.meaning.reading import Findings
from pyflinkcep.migrate.meaning.translated import Note, gathered, null_note
from pyflinkcep.migrate.meaning.tree import Untranslatable
from pyflinkcep.migrate.writing import tables
from pyflinkcep.migrate.writing.module import timed
from pyflinkcep.migrate.writing.settings import delay_text

NULLS = [Note("A.java", line, null_note(name)) for line, name in ((3, "x"), (2, "y"))]
PIECES: list[tuple[Any, Any]] = [
    ([constant("it's"), constant('say "no"')], ['"it\'s"', "'say \"no\"'"]),
    ([constant("\\ \0"), constant(float("inf"))], ['"\\\\ \\x00"', 'float("inf")']),
    (f_string(['say "', Inside("name"), '" {}']), 'f"say \\"{name}\\" {{}}"'),
    (python_regex(r"\d+-.*"), "\\d+-[^\\n\\r\\u0085\\u2028\\u2029]*"),
    (python_regex(r"[a-z&&[^b]]"), None),
    (tag_constant("still-hot"), "STILL_HOT"),
    ([snake_case("isHotTemperature"), snake_case("URLCount")], ["is_hot_temperature", "url_count"]),
    (snake_case("MAX_SIZE"), "max_size"),
    ([(note.line, note.what[:20]) for note in gathered(NULLS)], [(2, "where x or y is null")]),
    (
        joined_columns({"a": "struct<x:int>"}, [("a", "struct<y:string>"), ("b", "int")]),
        {"a": "struct<x:int,y:string>", "b": "int"},
    ),
    (
        ddl_of(JavaType("Tuple2", (JavaType("String"), JavaType("Long"))), Project(), None),
        "f0 string, f1 bigint",
    ),
    (ddl_of(JavaType("String"), Project(), None), "value string"),
    (converted(Const(2**31), "int"), Const(-(2**31))),
    (duration("ofMinutes", [5]), timedelta(minutes=5)),
    (duration("of", [2, "TimeUnit.HOURS"]), timedelta(hours=2)),
    (in_unit("SECONDS", "toMillis", Const(90)), Const(90_000, JavaType("long"))),
    (in_unit("SECONDS", "toMinutes", Const(90)), Const(1, JavaType("long"))),
    ([list_name("rules.getNames()"), list_name("names")], ["Names", "names"]),
    ([numbered("limit", "limit"), numbered("limit", "limit_2")], ["limit_2", "limit_3"]),
    (unescaped(r"a\tb\u0041\101"), "a\tbAA"),
    (written_type("java.util.Map<String, List<Long>>").args[1].args, (JavaType("Long"),)),
    (
        type_arguments("KeyedStream<Event, Tuple2<String, Integer>>"),
        ["Event", "Tuple2<String, Integer>"],
    ),
    ([property_of(name) for name in ("getUserId", "isHot", "URL")], ["userId", "hot", ""]),
    (property_of("getURL"), "URL"),
    (spark_type(JavaType("List", (JavaType("Integer"),)), Project()), "array<int>"),
    (
        columns_of("a string, `b c` struct<d:int,e:int>"),
        {"a": "string", "b c": "struct<d:int,e:int>"},
    ),
    (comma_parts("a string, b struct<c:int,d:int>"), ["a string", "b struct<c:int,d:int>"]),
    ([snake("loginFailures"), snake("HTTPServer")], ["login_failures", "http_server"]),
    ([snake("MAX_SIZE"), snake("class")], ["max_size", "class_"]),
    ([timed(timedelta(minutes=90)), timed(timedelta())], ["timedelta(minutes=90)", "timedelta(0)"]),
    (timed(timedelta(hours=48)), "timedelta(days=2)"),
    ([delay_text(timedelta(minutes=1)), delay_text(timedelta())], ["1 minute", "0 seconds"]),
    (tables.spark_type("ROW<a INT, b ARRAY<VARCHAR(20)>>"), "struct<a:int,b:array<string>>"),
    (tables.spark_type("DECIMAL(10, 2)"), "decimal(10,2)"),
    (tables.spark_expression("TO_TIMESTAMP_LTZ(ms, 3)"), "timestamp_millis(ms)"),
    (tables.spark_expression("PROCTIME()"), "current_timestamp()"),
    (
        typed_events([{"day": "2024-05-06", "p": {"x": 1}}], "day date, p struct<x:double>"),
        [{"day": date(2024, 5, 6), "p": {"x": 1.0}}],
    ),
]


@pytest.mark.parametrize(("found", "expected"), PIECES)
def test_pieces(found: Any, expected: Any) -> None:
    """Each piece is written as the module that it stands in needs it."""
    assert found == expected


def test_a_table_of_sql() -> None:
    """A table has its columns in Spark's types, its watermark and the connector's settings."""
    made = tables.table_of(
        "CREATE TABLE t (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
        "WITH ('connector' = 'kafka')"
    )

    assert made is not None
    assert (made.ddl, made.watermark) == ("a int, ts timestamp", ("ts", "5 seconds"))
    assert made.options == {"connector": "kafka"}


def test_names_that_nothing_defines_are_found() -> None:
    """Of Java that is broken a body may read what is nowhere."""
    with pytest.raises(Untranslatable, match="the value of e is not known here"):
        checked_names(["return event.n + e.n"], ["event"], Findings())
