# SPDX-License-Identifier: Apache-2.0
"""``matchRecognize`` on tables: types of columns, forms of events, errors, and what needs Spark."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyflinkcep
from pyflinkcep.errors import (
    CepError,
    InputError,
    InvalidArgumentError,
    NotSupportedError,
    StateLimitError,
)
from pyflinkcep.tables import OutputTable, matchRecognize

_START = datetime(2024, 1, 1, tzinfo=UTC)
TABLE = pa.table(
    {
        "k": ["x", "y", "x", "x", "y", "y"],
        "ts": pa.array([_START + timedelta(seconds=n) for n in range(6)], pa.timestamp("us", "UTC")),
        "n": pa.array([1, 5, 2, 4, 6, 3], pa.int32()),
        "f": pa.array([1.5, 2.5, None, 4.0, 0.5, 1.0], pa.float32()),
        "m": pa.array([Decimal(n) / 4 for n in range(6)], pa.decimal128(5, 2)),
        "s": pa.array(["a", "b", "c", None, "e", "f"]).dictionary_encode(),
    }
)  # fmt: skip
FLINK = """PARTITION BY k ORDER BY ts MEASURES A.n AS n, LAST(B.f) AS f, SUM(n) AS total, AVG(n) AS mean,
    SUM(m) AS m, AVG(m) AS half, COUNT(B.s) AS some, MIN(B.s) AS s, A.n + 1 AS after, B.n / 2 AS part,
    upper(A.s) AS up, A.n < B.n AS less, B.ts - A.ts AS took, MATCH_ROWTIME() AS at, 1 AS one
    AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE A AS n < 6, B AS B.n > A.n"""
STANDARD = """PARTITION BY k ORDER BY ts MEASURES MATCH_NUMBER() AS no, CLASSIFIER() AS label, SUM(n) AS
    total, ARRAY_AGG(B.n) AS ns, MEDIAN(n) AS mid, FINAL LAST(n) * 2 AS twice ALL ROWS PER MATCH WITH
    UNMATCHED ROWS PATTERN (A B+) DEFINE B AS B.n > PREV(B.n)"""


def test_types_of_columns_in_flinks_dialect() -> None:
    """Columns have the types that Spark gives them."""
    table = matchRecognize(TABLE, FLINK).toArrow()

    assert {field.name: str(field.type) for field in table.schema} == {
        "k": "string", "n": "int32", "f": "float", "total": "int64", "mean": "double",
        "m": "decimal128(15, 2)", "half": "decimal128(9, 6)", "some": "int64", "s": "string",
        "after": "int32", "part": "double", "up": "string", "less": "bool",
        "took": "duration[us]", "at": "timestamp[us, tz=UTC]", "one": "int32",
    }  # fmt: skip
    first = table.to_pylist()[0]
    assert (first["half"], first["took"], first["at"]) == (
        Decimal("0.250000"), timedelta(seconds=2), _START + timedelta(seconds=2),
    )  # fmt: skip


def test_all_rows_in_the_standards_dialect() -> None:
    """Rows without a match have no measures; folds and arrays are those of the rows so far."""
    found = matchRecognize(TABLE, STANDARD, "standard")

    assert found.toArrow().column_names == [
        "k", "ts", "no", "label", "total", "ns", "mid", "twice", "n", "f", "m", "s",
    ]  # fmt: skip
    assert [(r["k"], r["label"], r["total"], r["ns"], r["mid"], r["twice"]) for r in found] == [
        ("x", "A", 1, None, 1.0, 8), ("x", "B", 3, [2], 1.5, 8), ("x", "B", 7, [2, 4], 2.0, 8),
        ("y", "A", 5, None, 5.0, 12), ("y", "B", 11, [6], 5.5, 12), ("y",) + (None,) * 5,
    ]  # fmt: skip


@pytest.mark.parametrize(("clause", "dialect"), [(FLINK, "flink"), (STANDARD, "standard")])
def test_forms_of_events(clause: str, dialect: Any, tmp_path: Path) -> None:
    """The rows are those of an Arrow table, whatever the form; so are the columns that users get."""
    path = str(tmp_path / "events.parquet")
    pq.write_table(TABLE, path)
    expected = matchRecognize(TABLE, clause, dialect)
    rows = TABLE.to_pylist()

    for events in (path, TABLE.to_batches(), pl.from_arrow(TABLE), TABLE.to_pydict(), rows):
        assert repr(matchRecognize(events, clause, dialect)) == repr(expected)
    assert len(matchRecognize(TABLE.to_pandas(), clause, dialect)) == len(expected)
    assert isinstance(expected.toPandas(), pd.DataFrame)
    assert isinstance(expected.toPolars(), pl.DataFrame)


def test_a_sequence_of_rows() -> None:
    """Rows are dicts when they are looked at, and equal to a list of them."""
    found = matchRecognize({"n": list(range(3000))}, "ORDER BY n MEASURES A.n AS n PATTERN (A) DEFINE"
                           " A AS A.n % 2 = 0")  # fmt: skip

    assert isinstance(found, OutputTable)
    assert len(found) == 1500
    assert (found[-1], found[1030], found[2:4]) == ({"n": 2998}, {"n": 2060}, [{"n": 4}, {"n": 6}])
    assert found == [{"n": n} for n in range(0, 3000, 2)]
    assert found[::-1][0] == {"n": 2998}
    assert found != [{"n": 0}]


@pytest.mark.parametrize("dialect", ["flink", "standard"])
def test_no_rows_and_no_values(dialect: Any) -> None:
    """Without rows there is no output; a column without a value has no type to be wrong about."""
    clause = "ORDER BY n MEASURES B.n AS n, COUNT(B.flag) AS flags PATTERN (A B) DEFINE B AS"
    texts = ("B.flag AND B.n > A.n", "B.flag OR B.n > A.n", "B.s = A.s OR B.n > A.n")
    columns = {"n": [1, 2, 3], "flag": [None] * 3, "s": [None] * 3}
    for text in texts:
        found = [list(matchRecognize(events, f"{clause} {text}", dialect))
                 for events in (columns, pa.table(columns), pd.DataFrame(columns),
                                pl.DataFrame(columns), pa.table(columns).to_pylist())]  # fmt: skip
        assert found[1:] == found[:-1]
        assert [row["flags"] for row in found[0]] == [0] * len(found[0])
        assert bool(found[0]) is ("OR" in text.split())
    empty = matchRecognize(TABLE.slice(0, 0), FLINK if dialect == "flink" else STANDARD, dialect)
    assert (len(empty), empty.toArrow().num_columns > 5) == (0, True)


_WRONG: list[tuple[str, str, type[CepError], str]] = [
    ("flink", "ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS n > 1", InputError, "measure x"),
    ("flink", "ORDER BY ts MEASURES A.n AS n PATTERN (A) DEFINE A AS x > 1", CepError, "'x'"),
    ("flink", "ORDER BY k MEASURES A.n AS n PATTERN (A) DEFINE A AS n > 1", InputError, "time point"),
    ("flink", "ORDER BY ts MEASURES SUM(A.k) AS n PATTERN (A) DEFINE A AS n > 1", InputError, "SUM"),
    ("flink", "ORDER BY ts MEASURES soundex(A.k) AS c PATTERN (A) DEFINE A AS n > 1",
     NotSupportedError, "measure c"),
    ("flink", "ORDER BY ts MEASURES A.n AS c PATTERN (A) DEFINE A AS soundex(k) = 'x'",
     NotSupportedError, "soundex"),
    ("standard", "ORDER BY ts MEASURES A.x AS x PATTERN (A) DEFINE A AS n > 1", CepError, "x"),
    ("standard", "ORDER BY ts MEASURES A.n AS n PATTERN (A B) DEFINE B AS B.n + A.n", InputError,
     "DEFINE B"),
    ("standard", "ORDER BY ts MEASURES kurtosis(A.n) AS n PATTERN (A) DEFINE A AS n > 1",
     NotSupportedError, "measure n"),
    ("standard", "ORDER BY ts MEASURES soundex(A.k) AS c PATTERN (A) DEFINE A AS n > 1",
     NotSupportedError, "measure c"),
    ("standard", "ORDER BY k MEASURES A.n AS n PATTERN (A) WITHIN INTERVAL '1' SECOND DEFINE A AS"
     " n > 1", InputError, "WITHIN over k"),
    ("other", "PATTERN (A)", InvalidArgumentError, "dialect"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "clause", "kind", "words"), _WRONG)
def test_errors(dialect: Any, clause: str, kind: type[CepError], words: str) -> None:
    """Errors name what is wrong, and where."""
    with pytest.raises(kind, match=words) as raised:
        matchRecognize(TABLE, clause, dialect)
    assert raised.value.hint


def test_arguments() -> None:
    """Parameters are filled in, partial matches bounded, and settings of jobs refused."""
    clause = "ORDER BY n MEASURES A.n AS n PATTERN (A B) DEFINE A AS n > :low, B AS B.n > A.n"
    columns = {"n": [1, 2, 3, 4]}

    assert matchRecognize(columns, clause, args={"low": 1}) == [{"n": 2}, {"n": 3}]
    assert pyflinkcep.matchRecognize(columns, clause, args={"low": 2}) == [{"n": 3}]
    many = "ORDER BY n MEASURES A.n AS n PATTERN (A B+? C) DEFINE C AS n < 0"
    with pytest.raises(StateLimitError):
        matchRecognize(columns, many, maxPartialMatches=1)
    dropping = matchRecognize(
        columns, many, maxPartialMatches=1, onTooManyPartialMatches="dropOldest"
    )
    assert dropping.numPartialMatchesDropped > 0
    with pytest.raises(InvalidArgumentError, match="standard"):
        matchRecognize(columns, clause, "standard", maxPartialMatches=1)
    with pytest.raises(InvalidArgumentError, match="setting of jobs"):
        pyflinkcep.matchRecognize(columns, clause, name="x")
    with pytest.raises(InvalidArgumentError, match="table"):
        matchRecognize([1, 2], clause)
    with pytest.raises(InvalidArgumentError, match="text of a clause"):
        matchRecognize(columns, 3)  # type: ignore[arg-type]


def test_order_of_rows() -> None:
    """Rows are ordered by all columns of ORDER BY, with nulls where the clause says."""
    table = pa.table({"at": [1, 1, 1, 2], "p": [2, None, 1, 0], "id": [0, 1, 2, 3]})
    flink = "ORDER BY at, p {} MEASURES A.id AS a, B.id AS b PATTERN (A B) DEFINE A AS TRUE"
    standard = (
        "ORDER BY at DESC, p {} MEASURES A.id AS a, LAST(B.id) AS b PATTERN (A B+) DEFINE B AS TRUE"
    )

    for how, ids in (("", [1, 2, 0]), ("DESC", [0, 2, 1]), ("ASC NULLS LAST", [2, 0, 1])):
        pairs = [(row["a"], row["b"]) for row in matchRecognize(table, flink.format(how))]
        assert pairs == list(zip(ids, [*ids[1:], 3], strict=True))
        (row,) = matchRecognize(table, standard.format(how), "standard")
        assert (row["a"], row["b"]) == (3, ids[-1])


@pytest.mark.parametrize("dialect", ["flink", "standard"])
def test_sums_at_the_end_of_64_bits(dialect: Any) -> None:
    """A sum that fits is exact, and one that does not is an error, of unsigned numbers as well."""
    clause = "ORDER BY at MEASURES SUM(B.n) AS n PATTERN (A B C) DEFINE B AS n > 1, C AS n = 0"
    clause = clause.replace("(A B C)", "(A B{2} C)")

    def total(*numbers: int, type_: Any = None) -> Any:
        values = pa.array([0, *numbers, 0], type_ or pa.int64())
        return matchRecognize({"at": [1, 2, 3, 4], "n": values}, clause, dialect)[0]["n"]

    assert total(2**62, 2**62 - 1) == 2**63 - 1
    assert total(2**32 - 1, 2**32 - 1, type_=pa.uint32()) == 2**33 - 2
    for numbers, type_ in [((2**62, 2**62), None), ((2**64 - 1, 2), pa.uint64())]:
        with pytest.raises(CepError, match="SUM of n overflows bigint"):
            total(*numbers, type_=type_)


@pytest.mark.parametrize("dialect", ["flink", "standard"])
@pytest.mark.parametrize("argument", ["A.n", "A.n + 1"])
def test_a_column_without_values(dialect: Any, argument: str) -> None:
    """Of nothing but NULL every aggregate is NULL, as is what is computed of it; its count is 0."""
    functions = ("SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "COUNT")
    measures = ", ".join(f"{name}({argument}) AS {name.lower()}" for name in functions)
    clause = f"ORDER BY at MEASURES {measures} PATTERN (A B) DEFINE A AS A.at = 1"
    (found,) = matchRecognize([{"at": 1, "n": None}, {"at": 2, "n": None}], clause, dialect)

    assert list(found.values()) == [None] * 6 + [0]


def test_columns_with_names_of_our_own() -> None:
    """A column may have any name but those that begin as ours do, which are refused, as on Spark."""
    rows = {"at": [1, 2], "matched": [5, 6], "key": ["k", "k"], "argument 0": [7, 8]}
    clause = """PARTITION BY key ORDER BY at MEASURES CLASSIFIER() AS is_a
        ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A) DEFINE A AS matched = 5"""

    assert matchRecognize(rows, clause, "standard") == [
        {"key": "k", "at": 1, "is_a": "A", "matched": 5, "argument 0": 7},
        {"key": "k", "at": 2, "is_a": None, "matched": 6, "argument 0": 8},
    ]
    for name in ("__cep_argument0", "__cep_time"):
        with pytest.raises(InputError, match=f"'{name}'.* begin with '__cep_'"):
            matchRecognize({**rows, name: [1, 1]}, clause, "standard")


_WITHOUT_SPARK = """
import sys
import pyflinkcep
clause = "ORDER BY at MEASURES A.at AS since PATTERN (A B) DEFINE B AS n > 1"
for dialect in ("flink", "standard"):
    print(pyflinkcep.matchRecognize({"at": [1, 2], "n": [1, 2]}, clause, dialect)[0]["since"])
print("pyspark" in sys.modules)
"""


def test_a_table_needs_no_spark() -> None:
    """The package's own ``matchRecognize`` loads PySpark for DataFrames of Spark alone."""
    command = [sys.executable, "-c", _WITHOUT_SPARK]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)

    assert outcome.stdout.split() == ["1", "1", "False"]


@pytest.mark.parametrize(("condition", "count"), [("id > 0", 3), ("id > 2", 1), ("id > 5", 0)])
def test_a_clause_without_output_columns_has_its_matches(condition: str, count: int) -> None:
    """Rows without columns are counted, sliced and compared as others."""
    clause = f"ORDER BY id PATTERN (A) DEFINE A AS {condition}"
    found = matchRecognize({"id": [1, 2, 3]}, clause, dialect="standard")

    assert found == [{}] * count
    assert len(found[1:]) == max(count - 1, 0)
    assert (found.toArrow().num_rows, len(found.toPandas())) == (count, count)


def _ways(part: Any, text: str, at: int) -> Any:
    """Yield where a pattern may end, preferred first, by the words of the specification."""
    kind, *inner = part if isinstance(part, tuple) else ("take", part)
    if kind == "take":
        if text[at : at + 1] == inner[0].lower():
            yield at + 1
    elif kind == "or":
        for one in inner:
            yield from _ways(one, text, at)
    else:
        yield from _rounds(inner, 0, text, at)


def _rounds(loop: Any, done: int, text: str, at: int) -> Any:
    one, low, high, greedy = loop
    if done >= low and not greedy:
        yield at
    if high is None or done < high:
        for end in _ways(one, text, at):
            if end > at:
                yield from _rounds(loop, done + 1, text, end)
            elif done < low or high is not None:
                yield at  # a round that takes no row is the last
    if done >= low and greedy:
        yield at


_QUANTIFIERS = {
    "?": (0, 1), "*": (0, None), "+": (1, None), "{2}": (2, 2), "{,2}": (0, 2), "{1,3}": (1, 3)
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("each_path")
def test_groups_that_may_be_empty() -> None:
    """A round without a row is the last: it ends a bounded loop, * and + pass it over."""
    loops = [(q, bounds, greedy) for q, bounds in _QUANTIFIERS.items() for greedy in (True, False)]
    parts: list[tuple[str, Any]] = [("A", "A"), ("B", "B")]
    parts += [
        (f"{v}{q}{'' if greedy else '?'}", ("loop", v, *bounds, greedy))
        for v in "AB" for q, bounds, greedy in loops if bounds[0] == 0
    ]  # fmt: skip
    choices = [(f"{x} | {y}", ("or", p, q)) for x, p in parts for y, q in parts[:2] if x != y]
    texts = ["aab", "bab"]
    table = pa.table({"t": ["aab"] * 3 + ["bab"] * 3, "n": [0, 1, 2] * 2, "s": list("aabbab")})
    wrong = []
    for inner, part in [*parts[2:], *choices]:
        for quantifier, bounds, greedy in loops:
            pattern = f"({inner}){quantifier}{'' if greedy else '?'}"
            defined = ", ".join(f"{v} AS s = '{v.lower()}'" for v in "AB" if v in pattern)
            clause = f"""PARTITION BY t ORDER BY n MEASURES COUNT(*) AS size, FIRST(n) AS n
                AFTER MATCH SKIP TO NEXT ROW PATTERN ({pattern})
                DEFINE {defined}"""
            found = [row["size"] for row in matchRecognize(table, clause, dialect="standard")]
            loop = ("loop", part, *bounds, greedy)
            ends = [next(_ways(loop, text, at), None) for text in texts for at in range(3)]
            starts = [at for _ in texts for at in range(3)]
            expected = [end - at for end, at in zip(ends, starts, strict=True) if end is not None]
            if found != expected:
                wrong.append((pattern, found, expected))

    assert wrong == []


_GUARDED = pa.table(
    {
        "ts": pa.array([1000, 2000, 3000, 4000], pa.int64()),
        "v": pa.array([1, 0, None, 2], pa.int32()),
        "s": ["1", "x", None, "2"],
    }
)
_GUARDS = [
    ("CASE WHEN v = 0 THEN false ELSE {m} >= 1 / v END", [4]),
    ("v <> 0 AND {m} >= 1 / v", [4]),
    ("v = 0 OR {m} >= 1 / v", [2, 4]),
    ("if(v = 0, false, {m} >= 1 / v)", [4]),
    ("NOT (v = 0 OR {m} < 1 / v)", [4]),
    ("coalesce({m} >= 1 / nullif(v, 0), true)", [2, 3, 4]),
    ("coalesce(nullif(v, 0), 1 / (v + 1)) >= {m}", [2, 4]),
    ("CASE v WHEN 0 THEN false WHEN 5 THEN 1 / v > {m} ELSE {m} >= 1 / v END", [4]),
    ("v <> 0 AND {m} > 0 AND {m} >= 7 DIV (v * 4)", [4]),
    ("v <> 0 AND (v > 9 OR {m} >= 1 % v)", [4]),
    ("(v <> 0 AND {m} > 0) AND {m} >= 1 / v", [4]),
    ("s <> 'x' AND {m} >= cast(s AS int) - 1", [4]),
    ("CASE WHEN s = 'x' THEN true ELSE {m} >= cast(s AS int) - 1 END", [2, 4]),
    ("{m} < 9 OR 1 / v > 0", [2, 3, 4]),
    ("{m} > 9 AND 1 / v > 0", []),
    ("CASE WHEN {m} < 9 THEN true ELSE 1 / v > 0 END", [2, 3, 4]),
]


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize(("condition", "expected"), _GUARDS)
def test_a_guarded_calculation_does_not_fail(condition: str, expected: list[int]) -> None:
    """CASE, IF, AND, OR and COALESCE keep from what they exclude, whatever is computed ahead."""
    define = condition.format(m="COUNT(A.ts)")
    clause = f"""ORDER BY ts MEASURES B.ts AS ts AFTER MATCH SKIP TO NEXT ROW
        PATTERN (A B) DEFINE B AS {define}"""
    pattern = pyflinkcep.Pattern.begin("a").next("b").where(condition.format(m="count(a)"))

    for dialect in ("flink", "standard"):
        rows = matchRecognize(_GUARDED, clause, dialect=dialect)  # type: ignore[arg-type]
        assert [row["ts"] // 1000 for row in rows] == expected, dialect
    found = pyflinkcep.match(pattern, _GUARDED, timestamp="ts")
    assert [match["b"][0]["ts"] // 1000 for match in found] == expected


GUARDED_BY_MATCH = [
    ("COUNT(A.ts) > 1 AND cast(s AS int) > 0", []),
    ("COUNT(A.ts) > 0 AND s <> 'x' AND cast(B.s AS int) > 1", [4]),
    ("COUNT(A.ts) = 1 OR cast(s AS int) = 1", [2, 3, 4]),
    ("CASE WHEN COUNT(A.ts) = 1 THEN v = 2 ELSE cast(s AS int) = 1 END", [4]),
    ("if(A.v = 1, false, cast(s AS double) = 2.0 AND upper(A.s || s) IS NULL)", [4]),
]
GUARDED_CLAUSE = """ORDER BY ts MEASURES B.ts AS ts AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A B) DEFINE B AS {}"""


@pytest.mark.parametrize(("condition", "expected"), GUARDED_BY_MATCH)
def test_a_cast_that_the_match_guards_does_not_fail(condition: str, expected: list[int]) -> None:
    """What is known of the match keeps texts from a cast, which is not computed for all rows."""
    rows = matchRecognize(_GUARDED, GUARDED_CLAUSE.format(condition), dialect="standard")

    assert [row["ts"] // 1000 for row in rows] == expected
    failing = condition.replace("> 1 AND", "> 0 AND").replace(" = 1", " = 9")
    if "s <> 'x'" not in condition and failing != condition:
        with pytest.raises(CepError, match=r"expected (int|double), got 'x'"):
            matchRecognize(_GUARDED, GUARDED_CLAUSE.format(failing), dialect="standard")


@pytest.mark.parametrize(
    "condition", ["COUNT(*) > 1 / v", "v = 0 AND COUNT(*) > 1 / v", "COUNT(*) < 9 AND 1 / v > 0"]
)
def test_what_no_guard_excludes_still_fails(condition: str) -> None:
    """Division by zero is an error as in Spark's default mode."""
    clause = f"ORDER BY ts MEASURES B.ts AS ts PATTERN (A B) DEFINE B AS {condition}"

    with pytest.raises(CepError, match="division by zero"):
        matchRecognize(_GUARDED, clause)


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("ORDER BY n MEASURES A.n, B.n m PATTERN (A B)", [{"n": 1, "m": 2}, {"n": 3, "m": 4}]),
        ("ORDER BY n MEASURES LAST(B.n) - A.n took PATTERN (A B{2})", [{"took": 2}]),
        ("ORDER BY n MEASURES ARRAY[A.n, B.n][1] AS b PATTERN (A B)", [{"b": 2}, {"b": 4}]),
        (
            "PARTITION BY n % 2 ORDER BY -n MEASURES A.n a, B.n b PATTERN (A B)",
            [{"n % 2": 1, "a": 3, "b": 1}, {"n % 2": 0, "a": 4, "b": 2}],
        ),
        (
            "PARTITION BY upper(s) ORDER BY n DESC MEASURES A.n a PATTERN (A B)",
            [{"upper(s)": "X", "a": 4}, {"upper(s)": "X", "a": 2}],
        ),
    ],
)
def test_names_and_expressions_that_the_standard_dialect_takes(
    clause: str, expected: list[dict[str, Any]]
) -> None:
    """A measure is named without AS, or as its column; keys and orders may be computed."""
    table = pa.table({"n": [1, 2, 3, 4], "s": ["x", "X", "x", "X"]})

    assert list(matchRecognize(table, clause, dialect="standard")) == expected
    if "ARRAY[" not in clause:
        with pytest.raises(CepError, match=r"a measure needs AS name|takes columns"):
            matchRecognize(table, f"{clause} DEFINE A AS n > 0", dialect="flink")


@pytest.mark.parametrize(
    ("aggregate", "values", "expected"),
    [
        ("VAR_POP(A.x)", [1e16, 1.0, 2.0], 2.222222222222222e31),
        ("STDDEV_POP(A.x)", [5.0], 0.0),
        ("VAR_SAMP(A.x)", [5.0, None], None),
        ("STDDEV(A.x)", [float("inf"), -float("inf"), 1.0], "NaN"),
        ("VAR_POP(A.x)", [float("inf")], "NaN"),
        ("VARIANCE(A.x)", [float("nan"), 1.0], "NaN"),
        ("TRY_SUM(cast(A.x AS bigint) + 9223372036854775000)", [500.0, 600.0], None),
        ("TRY_SUM(A.x)", [1.0, None, 2.5], 3.5),
        ("MEDIAN(A.x)", [2.0, 1.5, 0.1, 0.0], 0.7999999999999999),
        ("MEDIAN(A.x)", [float("nan"), 1.0, 2.0], 2.0),
        ("SUM(A.x)", [-0.0, None], 0.0),
        ("MAX_BY(A.x, A.i % 2)", [1.0, 2.0, 3.0, 4.0], 4.0),
        ("MIN_BY(A.x, A.i % 2)", [1.0, 2.0, 3.0, 4.0], 3.0),
    ],
)
def test_aggregates_have_sparks_values(
    aggregate: str, values: list[float | None], expected: Any
) -> None:
    """To the last digit, in MEASURES and in DEFINE: number by number, with NaN and infinities."""
    size = len(values)
    table = pa.table(
        {
            "i": range(size + 1),
            "x": pa.array([*values, None], pa.float64()),
            "e": pa.array([float("nan") if expected == "NaN" else expected] * (size + 1)),
        }
    )
    clause = f"""ORDER BY i MEASURES {aggregate} AS v PATTERN (A{{{size}}} B)
        DEFINE B AS {aggregate} <=> e"""
    (row,) = matchRecognize(table, clause, dialect="standard")

    assert repr(row["v"]) == ("nan" if expected == "NaN" else repr(expected))


_SOME_ZEROS = pa.table(
    {
        "t": pa.array(range(4), pa.int64()),
        "k": ["b", "a", "a", "b"],
        "v": [0, 2, 4, 0],
        "s": ["x", "1", "2", "y"],
    }
)
LATE_MEASURES = {
    "SUM(1 / A.v)": 0.75,
    "AVG(1 / A.v)": 0.375,
    "MIN(1 / A.v)": 0.25,
    "MAX(5 % A.v)": 1,
    "COUNT(1 / A.v)": 2,
    "FIRST(1 / A.v)": 0.5,
    "LAST(1 / A.v)": 0.25,
    "LAST(1 / A.v, 5)": None,
    "SUM(cast(A.s AS int) + A.v)": 9,
    "LAST(cast(A.s AS int))": 2,
}
"""Measures over rows of A that fail for others, and their values."""
LATE_CLAUSE = """ORDER BY t MEASURES {} AS r AFTER MATCH SKIP PAST LAST ROW PATTERN (X A+? B)
    DEFINE X AS k = 'b', A AS k = 'a', B AS k = 'b'"""


@pytest.mark.parametrize("dialect", ["flink", "standard"])
@pytest.mark.parametrize("measure", LATE_MEASURES)
def test_a_measure_is_computed_for_the_rows_of_its_variable(measure: str, dialect: Any) -> None:
    """Rows of no match, or of another variable, may have values for which it would fail."""
    rows = [
        row["r"]
        for row in matchRecognize(_SOME_ZEROS, LATE_CLAUSE.format(measure), dialect=dialect)
    ]
    failing = LATE_CLAUSE.format(measure.replace("A.", "B."))

    assert rows == [LATE_MEASURES[measure]]
    if not measure.endswith("5)"):
        with pytest.raises(InputError, match=r"measure r: (division by zero|expected int)"):
            matchRecognize(_SOME_ZEROS, failing, dialect=dialect)


def test_physical_navigation_computes_only_the_rows_it_leads_to() -> None:
    """PREV of an expression fails if the row before the match's last does, and only then."""
    clause = LATE_CLAUSE.format("PREV(1 / v)"), LATE_CLAUSE.format("PREV(1 / v, 3)")

    (row,) = matchRecognize(_SOME_ZEROS, clause[0], dialect="standard")
    assert row["r"] == 0.25
    with pytest.raises(InputError, match="division by zero"):
        matchRecognize(_SOME_ZEROS, clause[1], dialect="standard")


@pytest.mark.parametrize("dialect", ["flink", "standard"])
def test_words_about_settings_of_spark_and_about_clocks(dialect: Any) -> None:
    """Memory has no settings of Spark to change, and no dialect a processing time to order by."""
    failing = LATE_CLAUSE.replace(
        "A AS k = 'a'", "A AS COUNT(A.v) >= 0 AND 1 / (v - 4) < 9"
    ).format("LAST(v)")
    with pytest.raises(CepError) as refused:
        matchRecognize(_SOME_ZEROS, failing, dialect=dialect)
    assert "spark." not in str(refused.value)

    with pytest.raises(CepError, match="no processing time"):
        matchRecognize(
            _SOME_ZEROS, LATE_CLAUSE.replace("ORDER BY t", "ORDER BY proctime"), dialect=dialect
        )


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("array_sort(x)", [0.5, 2.0, None]),
        ("sort_array(x, false)", [2.0, 0.5, None]),
        ("array_union(x, y)", [2.0, None, 0.5, 0.0]),
        ("array_intersect(x, y)", [2.0, None]),
        ("array_except(x, y)", [0.5]),
        ("array_distinct(y)", [0.0, 2.0, None]),
    ],
)
def test_functions_of_arrays_are_sparks(function: str, expected: list[float | None]) -> None:
    """Of equal elements the first stays, and -0.0 is 0.0; NULL is an element."""
    table = pa.table({"i": [1], "x": [[2.0, None, 0.5]], "y": [[-0.0, 2.0, None, 0.0]]})
    clause = f"ORDER BY i MEASURES {function} AS r, ARRAY[A.i, 2] q PATTERN (A)"

    (row,) = matchRecognize(table, clause, dialect="standard")

    assert repr(row["r"]) == repr(expected)
    assert row["q"] == [1, 2]
