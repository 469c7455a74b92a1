# SPDX-License-Identifier: Apache-2.0
"""Most columns of an event in a list of one struct, which is missing if no stage takes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa
import pytest

from pyflinkcep import Pattern
from pyflinkcep.functions import select_adapter
from pyflinkcep.matching.columns import BITS, WHOLE
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.sorting import BUDGET_BYTES
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.consumers import MAIN, FunctionConsumer
from tests.unit.spark.worker.test_batch_task import batches, layout, schema_of

pytestmark = pytest.mark.usefixtures("each_path")

PATTERN = Pattern.begin("x").where("name = 'a'").next("y").where("name = 'b'")
NESTED = ("name", "number", "price")
ROWS = [(at % 3, at // 2, "aabcb"[at * 7 % 5], at, None if at % 4 else at) for at in range(400)]


def answered(given: Iterator[pa.RecordBatch], nests: bool) -> Iterator[pa.RecordBatch]:
    """Add the answers to the conditions; nest the columns of events that a stage can take."""
    for batch in given:
        names = batch.column("name").to_pylist()
        bits = [{"a": 1, "b": 2}.get(name, 0) for name in names]
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if nests:
            fields = [columns.pop(name) for name in NESTED]
            structs = pa.StructArray.from_arrays(fields, names=["0", "1", "2"]).to_pylist()
            lists = [[one] if bit else None for one, bit in zip(structs, bits, strict=True)]
            type_ = pa.struct([("0", pa.string()), ("1", pa.int32()), ("2", pa.int32())])
            columns[WHOLE] = pa.array(lists, pa.list_(type_))
        yield pa.RecordBatch.from_pydict({**columns, BITS: pa.array(bits, pa.int64())})


def found(where: Layout, nests: bool, sort_bytes: int) -> list[Any]:
    """Return a row for each match."""

    def select(match: Any) -> tuple[Any, ...]:
        x, y = match["x"][0], match["y"][0]
        return x.key, x.name, x.number, x.price, y.name, y.number, y.price

    fields = "key bigint, a string, b int, c int, d string, e int, f int"
    consumer = FunctionConsumer(select_adapter(select), {MAIN: schema_of(fields)})
    task = BatchTask(PATTERN, where, None, consumer, sort_bytes=sort_bytes)
    given = answered(batches(ROWS, 30), nests)
    return pa.Table.from_batches(list(task.run(given))).to_pylist()


@pytest.mark.parametrize("sort_bytes", [1, 2000, BUDGET_BYTES])
def test_nested_columns_reach_functions_as_the_others(sort_bytes: int) -> None:
    """Sorted in memory or on disk, matches have the values that they have in columns."""
    plain = attrs.evolve(layout(), bit_columns=(BITS,))
    nested = attrs.evolve(plain, nested=NESTED)
    expected = found(plain, nests=False, sort_bytes=BUDGET_BYTES)

    assert len(expected) > 30
    assert found(nested, nests=True, sort_bytes=sort_bytes) == expected
