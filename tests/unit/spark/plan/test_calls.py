# SPDX-License-Identifier: Apache-2.0
"""Plans without a session: calls, engines, arrivals, what is decidable and explained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.types import StructField, StructType

from pyflinkcep import OutputTag
from pyflinkcep.engines.rows.plan import StandardClause
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan import engine as module
from pyflinkcep.spark.plan.clauses.job import check_decidable
from pyflinkcep.spark.plan.engine import Engine
from pyflinkcep.spark.plan.patterns.diagnostics import Arrivals, _holder
from pyflinkcep.spark.plan.settings import SelectCall
from pyflinkcep.spark.plan.watermark import StreamWatermark, in_sections
from tests.unit.match_recognize.lists import plans

TAG = OutputTag("late", "n int")


def one(_match: Any) -> tuple[int]:
    """Return a row."""
    return (1,)


def late(_match: Any, _at: int) -> tuple[int]:
    """Return a row of a timeout."""
    return (2,)


SHORT: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((one, "n int"), {}),
    ((one,), {"schema": "n int"}),
    ((), {"schema": "n int", "function": one}),
]
LONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((TAG, late, one, "n int"), {}),
    ((TAG, late, one), {"schema": "n int"}),
    ((TAG, late), {"function": one, "schema": "n int"}),
    ((one, "n int"), {"outputTag": TAG, "timeoutFunction": late}),
    ((one,), {"schema": "n int", "outputTag": TAG, "timeoutFunction": late}),
    ((), {"function": one, "schema": "n int", "outputTag": TAG, "timeoutFunction": late}),
]
WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((one,), {}, "takes (function, schema)"),
    (("n int", one), {}, "takes (function, schema)"),
    ((late, one), {}, "is Flink's old form"),
    ((late, one, "n int"), {}, "is Flink's old form"),
    ((one, "n int"), {"outputTag": TAG}, "takes (function, schema)"),
    ((one, "n int"), {"outputTag": "late", "timeoutFunction": late}, "takes (function, schema)"),
    ((one, "n int"), {"schema": "n int"}, "takes (function, schema)"),
    ((one, "n int"), {"outputtag": TAG}, "no argument 'outputtag'"),
]


@pytest.mark.parametrize(("arguments", "keywords"), SHORT)
def test_the_short_form(arguments: Any, keywords: Any) -> None:
    """A function and a schema, by position or by name."""
    assert SelectCall.of("select", arguments, keywords) == SelectCall(None, None, one, "n int")


@pytest.mark.parametrize(("arguments", "keywords"), LONG)
def test_the_long_form(arguments: Any, keywords: Any) -> None:
    """With a tag and a timeout function: first, as in Flink, or by name after the others."""
    assert SelectCall.of("select", arguments, keywords) == SelectCall(TAG, late, one, "n int")


@pytest.mark.parametrize(("arguments", "keywords", "message"), WRONG)
def test_other_forms(arguments: Any, keywords: Any, message: str) -> None:
    """Anything else is refused; only two functions first are Flink's old form."""
    with pytest.raises(InvalidArgumentError) as caught:
        SelectCall.of("select", arguments, keywords)

    assert message in caught.value.message
    assert caught.value.hint


def test_a_misspelt_argument_names_the_nearest() -> None:
    """An argument that there is not is refused by its name, before anything else is looked at."""
    with pytest.raises(InvalidArgumentError, match="no argument 'schemma'") as caught:
        SelectCall.of("select", (one,), {"schemma": "n int"})
    assert caught.value.hint == "did you mean 'schema'?"


# --- what of a clause with the standard's meaning a stream can decide in time


def _checked(measure: str, pattern: str, define: str) -> None:
    clause = f"ORDER BY ts MEASURES {measure} PATTERN ({pattern}) DEFINE {define}"
    (read,) = plans(f"SELECT * FROM e MATCH_RECOGNIZE ({clause})", ["ts", "x"], "standard")
    assert isinstance(read, StandardClause)
    check_decidable(read)


@pytest.mark.parametrize(
    ("measure", "pattern", "define", "message"),
    [
        ("A.x AS m", "A B", "B AS NEXT(x) > 1", "DEFINE B: NEXT on a stream: later rows decide it"),
        ("A.x AS B", "A B", "B AS NEXT(x) > 1", "DEFINE B: NEXT on a stream: later rows decide it"),
        ("NEXT(A.x) AS B", "A B", "B AS x > 1", "measure B: NEXT on a stream"),
        ("median(A.x) AS m", "A B", "B AS x > 1", "measure m: MEDIAN on a stream, where COUNT"),
        ("A.x AS m", "A B $", "B AS x > 1", "$ on a stream: later rows decide it"),
    ],
)
def test_what_later_rows_decide_is_refused(
    measure: str, pattern: str, define: str, message: str
) -> None:
    """It is refused by its place, also if a measure has the name of a variable."""
    with pytest.raises(NotSupportedError) as raised:
        _checked(measure, pattern, define)

    assert raised.value.message.startswith(message)


def test_what_rows_so_far_decide_is_accepted() -> None:
    """Earlier rows, aggregates that are computed row by row, and any aggregate in DEFINE."""
    _checked("sum(A.x) AS B, array_agg(x) AS m", "A B", "B AS median(A.x) > PREV(x)")


# --- what explanations have in common


def test_a_section_without_lines_is_left_out() -> None:
    """A heading is printed only above lines of its own."""
    assert in_sections({"job": ["key: k"], "Conditions": [], "Warnings": ["it grows"]}) == (
        "job\n  key: k\nWarnings\n  it grows"
    )


# --- what a small job shows of an engine: what is relied on, or refused by name


def seen(*tasks: Sequence[int], places: Any = None, column: pa.Field | None = None) -> list[Row]:
    """Return what tasks tell that were given rows by their numbers."""
    types = StructType([StructField(name, type_) for name, _, type_ in module._COLUMNS])
    schema = arrow_schema(types)
    if column is not None:
        schema = schema.set(schema.get_field_index(column.name), column)
    return [
        Row(task=str(number), ids=ids, keys=[id_ % 2 for id_ in ids], engine="sail 9.9",
            places=[(places or {}).get(id_, id_ * 10) for id_ in ids],
            columns=schema.serialize().to_pybytes())
        for number, ids in enumerate(tasks)
    ]  # fmt: skip


EVEN, ODD = [6, 4, 2, 0], [7, 5, 3, 1]


def test_order_in_a_task_is_a_fact() -> None:
    """Rows sorted by key and descending number arrive like that, or the engine loses their order."""
    assert module._shown(seen(EVEN, ODD)) == Engine("Sail 9.9", keeps_order=True)
    assert module._shown(seen(EVEN + ODD)) == Engine("Sail 9.9", keeps_order=True)
    assert module._shown(seen(EVEN, ODD[::-1])) == Engine("Sail 9.9", keeps_order=False)
    assert module._shown(seen(ODD + EVEN)) == Engine("Sail 9.9", keeps_order=False)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (seen([0, 2], [4, 6, *ODD]), "rows of one key reach two tasks"),
        (seen(EVEN), "rows of one key reach two tasks, or none"),
        (seen(EVEN, ODD[:-1]), "does not follow the order of rows"),
        (seen(EVEN, ODD, places={3: 5}), "does not follow the order of rows"),
        (seen(EVEN, ODD, places={3: 20}), "does not follow the order of rows"),
        (seen(EVEN, ODD, column=pa.field("text", pa.large_string())), "text as large_string"),
        (seen(EVEN, ODD, column=pa.field("time", pa.timestamp("ns"))), "time as timestamp"),
    ],
)
def test_what_jobs_rely_on(rows: list[Row], message: str) -> None:
    """An engine that splits keys, shuffles positions or has other types is refused."""
    with pytest.raises(NotSupportedError, match=message):
        module._shown(rows)


@pytest.mark.parametrize(
    ("files", "known"),
    [
        ("", True),
        ("DataSourceExec: partitions=1, partition_sizes=[1]", True),
        ("file_groups={1 group: [[a.parquet, b.parquet]]}, projection=[x:1..2]", True),
        ("file_groups={1 group: [[a.parquet:0..117, b.parquet:0..118]]}", True),
        ("file_groups={1 group: [[a.parquet:40..80, a.parquet:4..40]]}", False),
        ("file_groups={2 groups: [[a.parquet], [b.parquet]]}", False),
        ("file_groups={1 group: [[a]]} file_groups={2 groups: [[a.parquet], [b.parquet]]}", False),
    ],
)
def test_the_order_of_files(monkeypatch: pytest.MonkeyPatch, files: str, known: bool) -> None:
    """Positions follow whole files that one task reads, and rows in memory; not pieces of files."""

    class Frame:
        sparkSession = None

        def select(self, *_: Any) -> Frame:
            return self

    monkeypatch.setattr(module, "engine_of", lambda _: Engine("Sail 9.9", keeps_order=False))
    monkeypatch.setattr(module, "shown_plan", lambda _: files)
    monkeypatch.setattr(module.F, "monotonically_increasing_id", lambda: None)

    assert module.has_source_order(Frame()) is known


# --- what a checkpoint's offsets say of inputs that bring nothing, and what queued events wait for


OWN, SPARKS = StreamWatermark(10_000), StreamWatermark(None, reason="the stream has several")


def arrivals(*batches: str, first: int = 0) -> Arrivals | None:
    """Return what is read of micro-batches, each with an offset for each input."""
    texts = {
        number: "\n".join(["v1", json.dumps({"batchTimestampMs": 60_000 * number}), *offsets])
        for number, offsets in enumerate(batches, first)
    }
    return Arrivals.of(texts)


def test_an_input_is_idle_while_others_bring_rows() -> None:
    """Each input has its own last micro-batch; those in which none brought rows are left out."""
    found = arrivals("00-", "11-", "12-", "12-")

    assert found is not None
    assert (found.last, found.newest) == ((1, 2, None), 2)
    assert found.idle() == (
        "input 1 of 3 has brought nothing since micro-batch 1 (1970-01-01 00:01:00 UTC), "
        "input 3 of 3 has brought nothing yet"
    )


def test_offsets_that_were_removed() -> None:
    """Of micro-batches before those that the checkpoint keeps nothing is claimed."""
    found = arrivals("33", "34", first=7)

    assert found is not None
    assert "since micro-batch 7 or before (1970" in found.idle()


def test_other_forms_say_nothing() -> None:
    """No offsets, and those of a version that is not known, are no reason to fail."""
    assert Arrivals.of({}) is None
    assert Arrivals.of({0: "v2\n{}\n{}"}) is None


def test_what_queued_events_wait_for() -> None:
    """An own watermark waits for any later event; Spark's for each of the inputs."""
    busy, one, none = arrivals("00", "11"), arrivals("00", "01"), arrivals("--")

    own = "an event at %s or later"
    assert _holder(OWN, busy) == _holder(OWN, one)
    assert _holder(OWN, one).startswith(f"{own}; the last rows came in micro-batch 1 (1970-01-01")
    assert _holder(OWN, none) == _holder(OWN, None) == own
    start = "Spark's watermark at %s or later (the stream has several)"
    assert _holder(SPARKS, busy).endswith(
        "from all inputs: that whose times are furthest behind decides"
    )
    assert _holder(SPARKS, one).startswith(f"{start}; input 1 of 2 has brought nothing since")
    assert _holder(SPARKS, arrivals("1")).endswith("and the next micro-batch follows them")
    assert _holder(SPARKS, none) == _holder(SPARKS, None) == start
