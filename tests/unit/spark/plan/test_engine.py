# SPDX-License-Identifier: Apache-2.0
"""What a small job shows of an engine: what is relied on, or refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.types import StructField, StructType

from pyflinkcep import NotSupportedError
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan import engine as module
from pyflinkcep.spark.plan.engine import Engine


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
