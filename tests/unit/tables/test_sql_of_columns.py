# SPDX-License-Identifier: Apache-2.0
"""SQL over columns in memory has Spark's values and types, by the schema of the table alone."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest

from pyflinkcep import Pattern, match, matchRecognize, matchSase
from pyflinkcep.errors import CepError
from pyflinkcep.expressions.evaluator import event_function
from pyflinkcep.tables.row_sql import OnlyByRow, RowSql
from tests.column_types import ANSWERS, ZONE, answer_in_memory, differences, table_of

ASKED: dict[str, Any] = json.loads(ANSWERS.read_text())


def test_recorded_answers_of_spark() -> None:
    """Values, types and failures are Spark's in ANSI mode, in a zone with summer time."""
    assert differences(ASKED) == []


def test_most_is_computed() -> None:
    """What memory leaves to Spark is the exception: texts of floating-point numbers and the like."""
    table = table_of(ASKED["seed"], False)
    refused = [text for text in ASKED["answers"] if answer_in_memory(table, text) is None]

    assert len(refused) < len(ASKED["answers"]) / 8


def test_types_depend_on_the_schema_only() -> None:
    """Without a row, or without a value, a column has the type that it has with values."""
    table = table_of(ASKED["seed"], False)
    nothing = pa.table({f.name: pa.nulls(3, f.type) for f in table.schema})
    for text in ASKED["answers"]:
        try:
            expected = RowSql(table, zone=ZONE).column(text).type
        except OnlyByRow:
            continue
        assert RowSql(table.slice(0, 0), zone=ZONE).column(text).type == expected, text
        try:
            assert RowSql(nothing, zone=ZONE).column(text).type == expected, text
        except OnlyByRow:
            assert "'" in text  # a literal that is not what it is compared with


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("array_contains(xs, 1)", True), ("array_contains(xs, 2)", None),
        ("array_contains(ys, 2)", False), ("array_contains(none, 2)", None),
        ("array_contains(ys, u)", None), ("array_contains(array(), 1)", False),
        ("array_position(xs, 1)", 1), ("array_position(xs, 2)", 0), ("array_position(xs, u)", None),
        ("arrays_overlap(xs, ys)", True), ("arrays_overlap(xs, array(2))", None),
        ("arrays_overlap(ys, array(2))", False), ("arrays_overlap(xs, array())", False),
        ("2 in (1, u)", None), ("1 in (1, u)", True), ("2 not in (1, u)", None),
        ("element_at(xs, 2)", None), ("element_at(kv, 'k')", None), ("element_at(kv, 'x')", None),
        ("try_element_at(xs, 9)", None), ("get(xs, 9)", None), ("size(none)", None),
        ("map_contains_key(kv, 'k')", True), ("array_max(xs)", 1), ("array_max(array(u))", None),
        ("array_remove(xs, u)", None), ("array_remove(xs, 1)", [None]),
        ("concat_ws('-', 'a', u)", "a"), ("array_join(array('a', u), '-')", "a"),
        ("array_join(array('a', u), '-', 'z')", "a-z"), ("greatest(u, 1)", 1), ("u <=> u", True),
        ("u + 1 / (xs[0] - 1)", None), ("u = 1 / (ys[0] - 1)", None),
    ],
)  # fmt: skip
def test_null_in_collections(text: str, expected: Any) -> None:
    """A function of a collection is NULL where only a NULL inside could decide, as in Spark."""
    event = {"xs": [1, None], "ys": [1], "none": None, "u": None, "kv": {"k": None}}
    table = pa.table({
        "xs": pa.array([[1, None]], pa.list_(pa.int32())),
        "ys": pa.array([[1]], pa.list_(pa.int32())),
        "none": pa.array([None], pa.list_(pa.int32())),
        "u": pa.array([None], pa.int32() if "'a'" not in text else pa.string()),
        "kv": pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32())),
    })  # fmt: skip

    assert event_function(text)(event) == expected
    assert RowSql(table).column(text).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("bin RLIKE '^a'", pa.bool_(), True), ("bin ILIKE 'A%'", pa.bool_(), True),
        ("bin || 'x'", pa.string(), "abx"), ("bin || bin", pa.binary(), b"abab"),
        ("s = bin", pa.bool_(), True), ("bin IN (s)", pa.bool_(), True), ("instr(bin, 'b')", pa.int32(), 2),
        ("coalesce(bin, s)", pa.binary(), b"ab"), ("cast(bin AS STRING)", pa.string(), "ab"),
        ("length(bin)", pa.int32(), 2), ("octet_length(bin)", pa.int32(), 2),
        ("left(bin, 1)", pa.binary(), b"a"), ("upper(bin)", pa.string(), "AB"),
        ("i << 33", pa.int32(), 14), ("i >>> -1", pa.int32(), 0), ("i << 64L", pa.int32(), 7),
        ("bround(null)", pa.float64(), None), ("round(p, null)", pa.decimal128(9, 0), None),
        ("round(p, 400)", pa.decimal128(11, 2), Decimal("1.50")),
        ("null + null", pa.float64(), None), ("null / p", pa.float64(), None),
        ("z + null", pa.timestamp("us", ZONE), None),
        ("nanvl(x, i)", pa.float64(), 1.5), ("nanvl(x, cast(null AS INT))", pa.float64(), 1.5),
        ("nanvl(f, null)", pa.float32(), 1.5), ("pmod(p, 1Y)", pa.decimal128(5, 2), Decimal("0.50")),
        ("l / i", pa.duration("us"), timedelta(microseconds=1)), ("l * 1.5D", pa.duration("us"), timedelta(microseconds=15)),
        ("interval 1 second + l", pa.duration("us"), timedelta(seconds=1, microseconds=10)),
        ("datediff(null, d)", pa.int32(), None), ("dateadd(hour, 24, d)", pa.timestamp("us", ZONE), "2024-03-11T05:00:00+00:00"),
        ("dateadd(day, 1, d)", pa.timestamp("us", ZONE), "2024-03-11T04:00:00+00:00"),
        ("try_divide(s, i)", pa.float64(), None),
    ],
)  # fmt: skip
def test_values_of_spark(text: str, type_: pa.DataType, expected: Any) -> None:
    """What a random comparison with Spark found different has Spark's value and type."""
    table = pa.table({
        "bin": pa.array([b"ab"]), "s": ["ab"], "i": pa.array([7], pa.int32()),
        "p": pa.array([Decimal("1.50")], pa.decimal128(10, 2)), "x": [1.5],
        "f": pa.array([1.5], pa.float32()), "d": pa.array([date(2024, 3, 10)]),
        "l": pa.array([timedelta(microseconds=10)]),
        "z": pa.array([datetime(2024, 3, 10, 7, tzinfo=UTC)], pa.timestamp("us", ZONE)),
    })  # fmt: skip
    found = RowSql(table, zone=ZONE).column(text)
    (value,) = found.to_pylist()
    value = value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value

    assert (found.type, value) == (type_, expected)


@pytest.mark.parametrize(
    "text", ["ceil(x * x)", "floor(x)", "try_divide('a', i)", "unix_timestamp(s)", "bin || 'x'"]
)
def test_what_spark_refuses_or_has_alone(text: str) -> None:
    """No value is made up where Spark fails, or has a format or bytes that are not known here."""
    table = pa.table({"x": [float("inf")], "i": [1], "s": ["2024-01-01"], "bin": [b"\xff"]})

    with pytest.raises(OnlyByRow):
        RowSql(table).column(text)


_MEASURED = """
try_sum(A.n); avg(A.p); mean(A.p); sum(A.p); median(A.n); stddev(A.n); collect_list(A.h); max_by(A.s, A.n)
array_agg(A.m); collect_set(A.st); count_if(A.n > 1); bool_and(A.n > 1); listagg(A.s, '-'); bit_or(A.h)
any_value(A.z); min_by(A.z, A.n); first_value(A.f); array_agg(A.h)[0] + 1; sum(A.n) FILTER (WHERE A.n > 1)
sum(DISTINCT A.h); array_agg(CLASSIFIER()); mean(A.n) * 2; FIRST(A.h); A.st.a; max(A.s || A.s)
"""


def _of_flink(text: str) -> bool:
    return re.match(r"(sum|avg|max|first)\(A\.\w+\)$|A\.", text, re.IGNORECASE) is not None


@pytest.mark.parametrize("dialect", ["flink", "standard"])
def test_measures_depend_on_the_schema_only(dialect: Literal["flink", "standard"]) -> None:
    """Two files with one schema have measures of one schema: values, NULL alone, one row, none."""
    types = {
        "id": pa.int64(), "n": pa.int64(), "h": pa.int16(), "p": pa.decimal128(12, 2), "s": pa.string(),
        "f": pa.float32(), "z": pa.timestamp("us", "UTC"), "m": pa.map_(pa.string(), pa.int32()),
        "st": pa.struct([("a", pa.int32())]),
    }  # fmt: skip
    schema = pa.schema(types.items())
    when = datetime(2024, 1, 1, tzinfo=UTC)
    row = {
        "n": 2,
        "h": 3,
        "p": Decimal("1.25"),
        "s": "7",
        "f": 0.5,
        "z": when,
        "m": {"a": 1},
        "st": {"a": 1},
    }
    files = [[row, {}, row], [{}, {}, {}], [row], [{}], []]
    define = "DEFINE A AS A.id >= 0, B AS B.id >= 1" if dialect == "flink" else ""
    pattern = "A B" if dialect == "flink" else "A+ B?"
    for text in re.split(r"[;\n]\s*", _MEASURED.strip()):
        if dialect == "flink" and not _of_flink(text):
            continue
        clause = f"ORDER BY id MEASURES {text} AS r PATTERN ({pattern}) {define}"
        found = set()
        for rows in files:
            given = [{"id": place, **values} for place, values in enumerate(rows)]
            table = pa.Table.from_pylist(given, schema)
            found.add(matchRecognize(table, clause, dialect).toArrow().schema.field("r").type)
        assert len(found) == 1, (text, found)
        assert not any(map(pa.types.is_null, found)), text


_EVERYDAY = """
s RLIKE '^a'; s ILIKE 'A%'; regexp_like(s, 'b'); date_trunc('day', z) = TIMESTAMP '2024-01-01'
arr[0] > 0; try_cast(s AS INT) IS NULL; i & 1 = 1; i ^ 1 = 0; ~i < 0; i << 2 > 3; hour(z) = 11
z > TIMESTAMP '2024-01-01 00:00:00'; z > '2024-01-01'; v > TIMESTAMP '2024-01-01'; d = '2024-01-01'
w > DATE '2024-01-01'; w >= TIMESTAMP '2024-01-02T10:00:00+01:00'; to_date(w) = d; z = v; z > d
z BETWEEN TIMESTAMP '2024-01-01' AND TIMESTAMP '2025-01-01'; dayofweek(d) = 2; z > w
extract(HOUR FROM z) = 11; last_day(d) > d; add_months(d, 1) > d; d + 1 > d; try_add(i, 1) = 2
element_at(arr, 1) = 1; m['a'] = 1; array_contains(arr, 9) IS NULL; st.a = 1; concat(s, i) = 'ab1'
s::int = 1; i / 0 > 1; h * h > 0; i + 2147483647 > 0; i = '1'; s = 1; b = 'true'; b = 1; p / 3 > 0.4
cast(x AS STRING) = '1.5'; exists(arr, y -> y > 1); sha2(s, 256) = 'x'; lenght(s) = 2; rand() > 0.5
date_format(z, 'yyyy') = '2024'; s RLIKE '\\\\p{L}'; i > (SELECT 1); x RLIKE 'a'; i ILIKE '1'
timestampdiff(HOUR, v, z) > 0; z - v > INTERVAL 1 HOUR; unix_millis(z) > 0; cast(z AS DATE) = d
"""
_TABLE = pa.table({
    "id": pa.array([1, 2, 3], pa.int64()),
    "i": pa.array([1, 2, None], pa.int32()),
    "h": pa.array([1, 200, 3], pa.int16()),
    "x": [1.5, 2.5, None],
    "p": pa.array([Decimal("1.50"), None, Decimal("2.25")], pa.decimal128(12, 2)),
    "s": ["ab", "b c", None],
    "w": ["2024-01-01", "2024-01-02 10:00:00", None],
    "b": [True, False, None],
    "z": pa.array([datetime(2024, 1, 1, 10, tzinfo=UTC), datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
                   None], pa.timestamp("us", "Europe/Berlin")),
    "v": pa.array([datetime(2024, 1, 1, 10), None, datetime(2024, 1, 2)], pa.timestamp("us")),
    "d": pa.array([date(2024, 1, 1), None, date(2024, 2, 29)]),
    "arr": pa.array([[1, 2], [1, None], [3]], pa.list_(pa.int32())),
    "m": pa.array([[("a", 1)], [("a", 2)], [("b", None)]], pa.map_(pa.string(), pa.int32())),
    "st": pa.array([{"a": 1}, {"a": None}, {"a": 3}], pa.struct([("a", pa.int32())])),
})  # fmt: skip


def _found(text: str, how: Literal["match", "flink", "standard"]) -> int | str:
    """Return how many rows satisfy a condition, or why memory does not know."""
    clause = (
        "ORDER BY id MEASURES A.id AS n ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW "
        f"PATTERN (A) DEFINE A AS {text}"
    )
    try:
        if how == "match":
            return len(match(Pattern.begin("a").where(text), _TABLE))
        return len(matchRecognize(_TABLE, clause, dialect=how))
    except CepError as error:
        return "refused" if error.message and error.hint else "refused without a word"


@pytest.mark.parametrize("text", _EVERYDAY.strip().replace("\n", "; ").split("; "))
def test_everyday_conditions(text: str) -> None:
    """A condition is computed, or refused with a hint, alike as pattern and in both dialects."""
    answers = {_found(text, "match"), _found(text, "flink"), _found(text, "standard")}

    assert len(answers) == 1
    assert "refused without a word" not in answers


def test_misspelt_functions() -> None:
    """An unknown function is refused with the name of a known one."""
    with pytest.raises(CepError) as caught:
        matchRecognize(_TABLE, "ORDER BY id PATTERN (A) DEFINE A AS lenght(s) > 1", "standard")

    assert caught.value.hint == "did you mean 'length'?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hour(z)", 11), ("cast(z AS STRING)", "2024-01-01 11:00:00"), ("z = w", True),
        ("z = TIMESTAMP '2024-01-01 11:00:00'", True), ("z = v", True), ("w = v", True),
        ("z = TIMESTAMP '2024-01-01 15:45:00+05:45'", True),
        ("w = TIMESTAMP '2024-01-01 15:45:00+05:45'", True),
        ("w = TIMESTAMP_NTZ '2024-01-01 11:00:00'", True), ("w = z", True),
    ],
)  # fmt: skip
def test_the_zone_of_a_table(text: str, expected: Any) -> None:
    """Clocks are read, and texts without a zone meant, in the zone of the first zoned column."""
    ten = datetime(2024, 1, 1, 10, tzinfo=UTC)
    table = pa.table({
        "z": pa.array([ten], pa.timestamp("us", "Europe/Berlin")),
        "u": pa.array([ten], pa.timestamp("us", "UTC")),
        "v": pa.array([datetime(2024, 1, 1, 11)], pa.timestamp("us")),
        "w": ["2024-01-01 11:00:00"],
    })  # fmt: skip

    assert RowSql(table).column(text).to_pylist() == [expected]
    assert RowSql(table).column(text.replace("z", "u")).to_pylist() == [expected]


@pytest.mark.parametrize("sign", ["+", "*"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_overflow(sign: str, bits: int) -> None:
    """Arithmetic has the range of its type, in conditions, measures and RETURN, as ANSI has it."""
    most = 2 ** (bits - 1) - 1
    table = pa.table({"type": ["a"], "v": pa.array([most], getattr(pa, f"int{bits}")())})
    for ask in (
        lambda: match(Pattern.begin("a").where(f"v {sign} v > 0"), table),
        lambda: matchRecognize(table, f"ORDER BY v PATTERN (A) DEFINE A AS v {sign} v > 0", "standard"),
        lambda: matchRecognize(table, f"ORDER BY v MEASURES A.v {sign} A.v AS r PATTERN (A)", "standard"),
        lambda: matchSase(f"PATTERN SEQ(a x) WHERE skip_till_any_match RETURN x.v {sign} x.v AS r", table),
    ):  # fmt: skip
        with pytest.raises((CepError, ArithmeticError), match="overflow"):
            ask()


SOME_ZEROS = pa.table(
    {
        "t": pa.array(range(4)),
        "k": ["b", "a", "a", "b"],
        "v": [0, 2, 4, 0],
        "s": ["x", "1", "2", ""],
    }
)
GUARDED = [
    (Pattern.begin("a").where("v <> 0").where("1 / v > 0.3"), [1]),
    (Pattern.begin("a").where("k = 'a'").where("v > 0 AND cast(s AS int) > 1"), [2]),
    (Pattern.begin("a").where("k = 'a'").where("cast(s AS int) > count(a)"), [1, 2]),
    (Pattern.begin("a").where("v = 0").or_("1 / v < 0.3"), [0, 2, 3]),
    (Pattern.begin("a").where("k = 'a'").where("v <> 9").where("1 / v > count(a)"), [1, 2]),
]
"""Patterns whose later conditions would fail for events that the earlier ones decide."""


@pytest.mark.parametrize(("pattern", "expected"), GUARDED)
def test_conditions_of_a_stage_guard_each_other(pattern: Pattern, expected: list[int]) -> None:
    """The second condition is not asked of events for which the first decides."""
    assert [found["a"][0]["t"] for found in match(pattern, SOME_ZEROS, timestamp="t")] == expected


def test_what_an_aggregate_reads_is_not_guarded_by_another_stage() -> None:
    """A cast inside last() is of the events of its stage, whatever the asking stage tests first."""
    table = pa.table({"kind": ["a", "b"], "s": ["1", "2"]})
    pattern = Pattern.begin("a").where("kind = 'a'").followedBy("b").where("kind = 'b'")
    pattern = pattern.where("cast(s AS int) > last(cast(a.s AS int))")

    assert len(match(pattern, table)) == 1
