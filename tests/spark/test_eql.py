# SPDX-License-Identifier: Apache-2.0
"""EQL queries on Spark: the answers of events in memory, keys, missing events, and refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, CepDataFrame, Eql, keyBy, matchEql
from pyflinkcep.eql.conditions import Conditions
from pyflinkcep.errors import CepError, InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.spark.plan.eql import as_filter, fields_of, sql_of
from pyflinkcep.tables.field_values import EventFields
from tests.conformance.test_eql import cases
from tests.spark.streams import FileSource
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

SCHEMA = (
    "id int, t bigint, type string, user string, pid int, n bigint, x double, s string, "
    "ip string, flag boolean, rank int, tags array<string>, host struct<name: string>"
)
NAMES = [part.split()[0] for part in SCHEMA.replace("struct<name: string>", "struct").split(", ")]


def frame(spark: SparkSession, events: list[dict[str, Any]]) -> DataFrame:
    """Events of the recorded cases as a DataFrame; a value alone is an array of one."""
    rows = []
    for event in events:
        tags, host = event.get("tags"), event.get("host")
        own = {
            **event,
            "tags": [tags] if isinstance(tags, str) else tags,
            "host": None if host is None else (host.get("name"),),
        }
        rows.append(tuple(own.get(name) for name in NAMES))
    return spark.createDataFrame(rows, SCHEMA).coalesce(1)


def ids(result: CepDataFrame) -> list[list[int | None]]:
    """The ids of the events of each match."""
    return [[event and event["id"] for event in row["events"]] for row in result.collect()]


CONDITIONS = [
    's : ("CMD.*", "b?sh", "a*b")', 'not s like "*.exe"', 's like~ ("*", "x")', 's regex "[a-c].*"',
    's regex~ ".+EXE|(a|B)+sh"', 's in ("ab", "Bash", null)', 's not in~ ("AB")', "s == null",
    'tags == "p"', 'tags != "q"', "tags == null", 'not tags : "Q*"', 'concat(tags, "!") == "q!"',
    "n > 1", "not (n > 1)", "n + x > 1.5", "n / 2 == 1", "-n % 2 == 1", "7 / n == 3", "n % 0 == 1",
    "n * 9223372036854775807 == null", "n / x > 1", "n in (1, 2.0, 3)", 'n == "1"', 'n != "1"',
    "flag", "not flag", "flag == false", "flag == (n > 1)", "flag == null", "?absent == null", "?absent < 5",
    '?absent : "x" or not ?absent : "x"', 'host.name == "h1"', "?host.name != null",
    'between(s, "m", ".") == "d"', 'between~(s, "C", "E", true) : "md.ex"', 's == between(s, "", "")',
    'between(s, "b", "h", flag) == "as"', "substring(s, -3) == \"exe\"", "substring(s, 1, -1) != s",
    "substring(s, n, 3) != null", "substring(s, n * 4611686018427387904, x * 1e300) != null",
    'indexOf(s, "", n * 4611686018427387904) == null', 'substring(s, -1e300, 1e300) == s', 'indexOf(s, "e", n) == 4', 'indexOf~(s, "A") == 0',
    'indexOf(s, "") == 0', 'indexOf(s, "", n) > 1', "length(s) > 4", "string(x) == \"2.25\"",
    'concat(s, ":", n, x, flag) : "cmd.exe:1*true"', "number(string(n)) == 1",
    'number(concat("0x", string(n))) > 1', "number(s) == null", 'number(string(n), 16) == -2',
    'number(concat(" ", string(x), " ")) > 1', 'startsWith~(s, "CMD")', 'endsWith(s, ".exe")',
    'stringContains(s, "")', 'not stringContains(s, "m")', 'stringContains~(s, user)',
    'cidrMatch(ip, "10.0.0.0/12")', 'not cidrMatch(ip, "192.168.0.0/16", "fe80::/10")',
    'cidrMatch(ip, "::/3", "8000::/1")', "cidrMatch(user, \"0.0.0.0/0\")", "s < user", "x <= n",
    'user >= "b"', "string(flag) == \"true\"", 'true == cidrMatch(ip, "fe80::1/128")',
    'n == 1 and (s == "ab" or not flag) and not (x > 1 and user == "ann")',
]  # fmt: skip
ADDRESSES = [
    "::", "::1", "fe80::1%eth0", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7:8:9", "1::2::3", ":::", "1:2:3:4:5:6:1.2.3.4", "::ffff:10.0.0.1", "::1.2.3.256",
    "12345::", "FE80::A", "1:2:3:4:5:6:7", "2001:db8::ff00:42:8329", "::1.2.3", "1.2.3.4", "g::", "",
]  # fmt: skip


@pytest.mark.spark
def test_conditions(spark: SparkSession) -> None:
    """Spark answers conditions as memory does, also where a source is asked for the events."""
    events = [event for case in cases()[:60] for event in case["events"]]
    events += [{"id": 0, "t": 0, "type": "x", "ip": address} for address in ADDRESSES]
    events += [{"id": 0, "t": 0, "type": "x", "s": text} for text in ("a\nb", "A\\*b", "Ä", "'")]
    events = [{**event, "n": event.get("n")} for event in events]
    here, given = EventFields.of_rows(events), frame(spark, events)
    asked, expected = [], []
    for text in CONDITIONS:
        step = Eql(f"any where {text}").model.steps[0].filter
        tree = Conditions(fields_of(given.schema, text), "type").of(step)
        asked.append(F.coalesce(F.expr(sql_of(tree)), F.lit(False)))
        asked.append(F.coalesce(F.expr(sql_of(as_filter(tree))), F.lit(False)))
        expected.append(here.holds(Conditions(here.fields, "type").of(step)).tolist())
    columns = [column.alias(f"c{number}") for number, column in enumerate(asked)]
    rows = given.select(*columns).toArrow().to_pydict()
    for number, text in enumerate(CONDITIONS):
        assert rows[f"c{2 * number}"] == expected[number], text
        assert rows[f"c{2 * number + 1}"] == expected[number], text


@pytest.mark.spark
def test_recorded(spark: SparkSession) -> None:
    """Bounded DataFrames give the recorded matches."""
    with configured(spark, QUICK_FOR_MANY_PLANS):
        for case in cases()[::24]:
            given = frame(spark, case["events"])
            asked = {"timestamp": "t", "tiebreaker": case.get("tiebreaker")}
            if "refused" in case:
                with pytest.raises(CepError):
                    CEP.eql(given, case["query"], **asked).toDF()
                continue
            found = ids(CEP.eql(given, case["query"], **asked).toDF())
            assert sorted(map(repr, found)) == sorted(map(repr, case["matches"])), case["query"]


EVENTS = [
    {"id": 0, "t": 0, "type": "a", "user": "ann", "tags": ["p", "q"], "rank": 2},
    {"id": 1, "t": 1000, "type": "b", "user": "ann", "tags": ["q"], "s": "p"},
    {"id": 2, "t": 1000, "type": "b", "user": None, "tags": ["p", "p"], "rank": 1},
    {"id": 3, "t": 9000, "type": "c", "user": "ann", "s": "q"},
]


class TestKeys:
    @pytest.mark.spark
    def test_each_value_counts(self, spark: SparkSession) -> None:
        """Each value of an array is a key, once, and steps may have other fields."""
        query = "sequence [a where true] by tags [any where true] by s"
        rows = CEP.eql(frame(spark, EVENTS), query, "t").toDF().orderBy("tags").collect()
        assert [(row["tags"], [e["id"] for e in row["events"]]) for row in rows] == [
            ("p", [0, 1]), ("q", [0, 3]),
        ]  # fmt: skip

    @pytest.mark.spark
    def test_one_event_at_two_steps_with_one_key(self, spark: SparkSession) -> None:
        """An event that two steps want with one key is offered to the later one first."""
        events = [{"id": n, "t": n, "type": "a", "user": "x", "s": "x"} for n in range(4)]
        query = "sequence [a where true] by user [a where true] by s"
        assert ids(CEP.eql(frame(spark, events), query, "t").toDF()) == [[0, 1], [1, 2], [2, 3]]
        assert matchEql(query, events) == [events[n : n + 2] for n in range(3)]

    @pytest.mark.spark
    def test_null(self, spark: SparkSession) -> None:
        """Without a value there is no key, unless the field may be missing."""
        given = frame(spark, [{**event, "user": None} for event in EVENTS])
        assert (
            ids(CEP.eql(given, "sequence by user [a where true] [c where true]", "t").toDF()) == []
        )
        query = "sequence by ?user, ?absent [a where true] [c where true]"
        (row,) = CEP.eql(given, query, "t").toDF().collect()
        assert (row["user"], row["absent"], row["matchTimestamp"]) == (None, None, 9000)

    @pytest.mark.spark
    @pytest.mark.parametrize(
        ("one", "other", "expected"),
        [
            ("user", "pid", []),
            ("?user", "?pid", [[2, 3], [4, 5], [6, 7]]),
            ("tags", "?flag", []),
            ("?flag", "?tags", [[6, 7]]),
            ("at", "since", [[0, 1]]),
            ("at", "pid", []),
            ("n", "x", [[2, 3]]),
            ("pid", "n", [[4, 5]]),
        ],
    )
    def test_types(
        self, spark: SparkSession, one: str, other: str, expected: list[list[int]]
    ) -> None:
        """
        Values of two kinds are equal to nothing, in memory too, and null as a key is one.

        Numbers beside doubles are compared as these, times by the millisecond.
        """
        schema = (
            "id int, t bigint, user string, tags array<string>, flag boolean, at timestamp, "
            "since timestamp, pid int, n bigint, x double"
        )
        at = datetime(2026, 1, 1, tzinfo=UTC)
        later = at + timedelta(microseconds=999)
        null = [None] * 8
        rows = [
            (0, 0, "1", ["1"], True, at, None, 1, 2, None),
            (1, 1, "2", ["2"], False, None, later, 2, 3, None),
            (2, 2, None, [], None, None, None, None, 2**53 + 1, None),
            (3, 3, "3", ["3"], True, None, None, None, None, 2.0**53),
            (4, 4, None, None, None, None, None, 7, None, None),
            (5, 5, "4", ["4"], True, None, None, None, 7, None),
            (6, 6, *null),
            (7, 7, *null),
        ]
        events = spark.createDataFrame(rows, schema).coalesce(1)
        query = f"sequence [any where id % 2 == 0] by {one} [any where id % 2 == 1] by {other}"
        here = [[event and event["id"] for event in m] for m in matchEql(query, events.toArrow())]
        assert here == expected
        assert sorted(ids(CEP.eql(events, query, "t").toDF())) == expected


class TestOutput:
    @pytest.mark.spark
    def test_missing_events(self, spark: SparkSession) -> None:
        """A step of missing events is null in its place."""
        query = "sequence with maxspan=1m [a where true] ![b where pid == 1] [c where true]"
        (row,) = CEP.eql(frame(spark, EVENTS), query, "t").toDF().collect()
        assert [event and event["id"] for event in row["events"]] == [0, None, 3]

    @pytest.mark.spark
    def test_head_and_tail(self, spark: SparkSession) -> None:
        """The first and the last matches are those by time, tie-breaker, and place in the source."""
        given = frame(spark, EVENTS)

        def of(query: str, tie: str | None = None) -> list[list[int | None]]:
            result = CEP.eql(given, query, "t", tiebreaker=tie).toDF()
            assert result.schema["events"].dataType.elementType == given.schema
            return ids(result)

        assert of("any where true | head 2") == [[0], [1]]
        assert of("any where true | tail 2 | head 1", "rank") == [[1]]
        assert of("any where true | head 2", "rank") == [[0], [2]]
        pairs = "sequence [any where id < 3] [any where true]"
        assert of(f"{pairs} | tail 2") == [[1, 2], [2, 3]]
        assert of(f"{pairs} | tail 2", "rank") == [[2, 1], [1, 3]]
        # Several matches of one last event are in the order of its keys.
        tagged = "sequence [a where true] by tags [b where true] by tags"
        many = [
            {"id": n, "t": n, "type": "a" if n < 4 else "b", "tags": list(tags)}
            for n, tags in enumerate(("p", "q", "r", "s", "rqspq"))
        ]
        for pipe, expected in (("head 2", [[2, 4], [1, 4]]), ("tail 2", [[3, 4], [0, 4]])):
            assert ids(CEP.eql(frame(spark, many), f"{tagged} | {pipe}", "t").toDF()) == expected
            found = matchEql(f"{tagged} | {pipe}", many)
            assert [[event and event["id"] for event in match] for match in found] == expected

    @pytest.mark.spark
    def test_functions(self, spark: SparkSession) -> None:
        """A function gets the events of a match of a sequence; single events have Spark's."""
        query = "sequence by user [a where true] [c where true]"
        made = CEP.eql(frame(spark, EVENTS), query, "t").select(
            lambda match: Row(ids=[event.id for event in match["events"]]), "ids array<int>"
        )
        assert made.collect() == [Row(ids=[0, 3])]
        with pytest.raises(NotSupportedError, match="single events"):
            CEP.eql(frame(spark, EVENTS), "a where true", "t").select(lambda m: m, "n int")

    @pytest.mark.spark
    def test_explain(self, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
        """The explanation has the steps, and what is shuffled as SQL that a source is asked."""
        query = 'sequence by user [a where s == "x"] [b where true]'
        CEP.eql(frame(spark, EVENTS), query, "t").explain()
        assert capsys.readouterr().out.splitlines()[-1] == (
            "shuffled: (((`type` = 'a') AND (`s` = 'x')) OR (`type` = 'b'))"
        )


class TestRefusals:
    @pytest.mark.spark
    def test_input(self, spark: SparkSession) -> None:
        """What does not fit the DataFrame is refused before any job, with what to write."""
        given = frame(spark, EVENTS).withColumn("m", F.expr("map('a', 1)"))
        with pytest.raises(InputError, match="the input has no field usr") as caught:
            CEP.eql(given, "any where usr == null", "t").toDF()
        assert caught.value.hint == "did you mean 'user'?"
        with pytest.raises(InputError, match="the field m is map<string,int>"):
            CEP.eql(given, "any where m == 1", "t").toDF()
        with pytest.raises(InputError, match="no field kind"):
            CEP.eql(given, "a where true", "t", category="kind").toDF()
        with pytest.raises(InvalidArgumentError, match="a keyed DataFrame"):
            CEP.eql(keyBy(given, "user"), "any where true", "t")  # type: ignore[arg-type]

    @pytest.mark.spark
    def test_streams(self, spark: SparkSession, tmp_path: Path) -> None:
        """Single events are filtered on a stream too; its end is refused."""
        source = FileSource(tmp_path / "in", "id int, t timestamp, type string")
        stream = spark.readStream.schema(source.schema).json(str(source.folder))
        assert CEP.eql(stream, "a where id > 1", "t").toDF().isStreaming
        with pytest.raises(InputError, match="no watermark"):
            CEP.eql(stream, "sequence [a where true] [a where true]", "t").toDF()
        stream = stream.withWatermark("t", "1 second")
        assert CEP.eql(stream, "a where id > 1").toDF().isStreaming
        for query in ("sequence [a where true] [b where true] | tail 1", "a where true | head 1"):
            with pytest.raises(NotSupportedError, match="head and tail of a stream"):
                CEP.eql(stream, query).toDF()
