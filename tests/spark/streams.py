# SPDX-License-Identifier: Apache-2.0
"""What the tests of streams share: a source of small files, and queries that end."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import DataType, StructField, StructType, TimestampType

from pyflinkcep.monitor import Monitor
from pyflinkcep.show.query_history import Query
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.time import MIN_WATERMARK
from tests.spark.support import in_one_task

# `parquet` has workers read the events of all these tests themselves.
_FORMAT = os.environ.get("PYFLINKCEP_TEST_STREAMS", "json")
SCHEMA = "user string, ts bigint, name string, id int"

TAGGED = "id bigint, ts bigint, kind string, k string, o string, x bigint, tags array<string>"
END = (999, 100_000, "Z", None, "z", None, None)
"""An event that moves the watermark past all others."""


def tagged_events(*, tied: bool) -> list[tuple[Any, ...]]:
    """Return events of two keys and several values, up to 8 ms out of order; some times equal."""
    choose = Random(5)
    made = [
        (
            n,
            1000 + 3 * n - (n % 2 * 3 if tied else 0),
            choose.choice("AABBCD"),
            choose.choice(["p", "q", None]),
            choose.choice(["p", "q"]),
            choose.randrange(9),
            choose.choice([["p"], ["p", "q"], [], None]),
        )
        for n in range(240)
    ]
    return sorted(made, key=lambda row: row[1] + choose.randrange(8))


@attrs.define(eq=False)
class FileSource:
    """A folder of JSON files that a stream reads, one file a micro-batch unless told otherwise."""

    folder: Path  # a folder that does not exist yet
    schema: str | StructType = SCHEMA  # the columns of the events
    written: int = 0

    def __attrs_post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def add(self, *batches: Sequence[Sequence[Any]]) -> None:
        """Add files; each appears at once and whole, and is younger than those before."""
        if isinstance(self.schema, str):
            names = [column.split()[0] for column in self.schema.split(",")]
        else:
            names = self.schema.fieldNames()
        for rows in batches:
            hidden = self.folder / f".{self.written}"
            listed = [dict(zip(names, row, strict=True)) for row in rows]
            if self.is_parquet:
                self._write_parquet(listed, hidden)
            else:
                hidden.write_text("\n".join(map(json.dumps, listed)), encoding="utf-8")
            os.utime(hidden, (1_000_000 + self.written, 1_000_000 + self.written))
            hidden.rename(self.folder / f"{self.written:04d}.{_FORMAT}")
            self.written += 1

    def _write_parquet(self, rows: list[dict[str, Any]], path: Path) -> None:
        table = pa.Table.from_pylist(rows, arrow_schema(_struct(self.schema)))
        if "ts" in table.column_names:
            time = pc.multiply(table.column("ts"), 1000).cast(pa.timestamp("us", "UTC"))
            table = table.append_column("time", time)
        pq.write_table(table, path)

    @property
    def is_parquet(self) -> bool:
        """Whether the files have columns, so that workers read them."""
        return _FORMAT == "parquet"

    def replace(self, number: int, rows: Sequence[Sequence[Any]]) -> None:
        """Return a file other rows, its name and age as before."""
        before, self.written = self.written, number
        self.add(rows)
        self.written = before

    def raw(self, spark: SparkSession, files_per_trigger: int = 1) -> DataFrame:
        """Return the stream without a watermark."""
        return self._read(spark.readStream, self.schema, files_per_trigger)

    def _read(self, reader: Any, schema: str | StructType, files_per_trigger: int = 1) -> DataFrame:
        named = reader.schema(schema).format(_FORMAT)
        return named.option("maxFilesPerTrigger", files_per_trigger).load(str(self.folder))

    def stream(
        self, spark: SparkSession, delay_ms: int = 5, files_per_trigger: int = 1
    ) -> DataFrame:
        """Return the stream, with ``time`` as its watermarked time of milliseconds ``ts``."""
        if self.is_parquet:
            timed = self._read(spark.readStream, _timed(self.schema), files_per_trigger)
        else:
            timed = self.raw(spark, files_per_trigger).withColumn("time", F.timestamp_millis("ts"))
        return timed.withWatermark("time", f"{delay_ms} milliseconds")

    def bounded(self, spark: SparkSession) -> DataFrame:
        """Return the same events as a bounded DataFrame."""
        if self.is_parquet:
            return self._read(spark.read, _timed(self.schema))
        table = spark.read.schema(self.schema).json(str(self.folder))
        return table.withColumn("time", F.timestamp_millis("ts"))


def _struct(schema: str | StructType) -> StructType:
    return schema if isinstance(schema, StructType) else DataType.fromDDL(schema)


def _timed(schema: str | StructType) -> StructType:
    return StructType([*_struct(schema).fields, StructField("time", TimestampType())])


@attrs.define(eq=False)
class Finished:
    """What a query gave until it had read its source."""

    # The rows of each micro-batch, in order.
    batches: dict[int, list[Row]] = attrs.field(factory=dict)
    progress: list[Any] = attrs.field(factory=list)  # what Spark reported of each micro-batch

    @property
    def rows(self) -> list[Row]:
        """All rows in order."""
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    @property
    def watermarks(self) -> list[int]:
        """The watermark of each micro-batch as the operator takes it, epoch milliseconds."""
        return [_milliseconds(progress.eventTime["watermark"]) for progress in self.progress]

    @property
    def state_rows(self) -> int:
        """The rows in the state store at the end."""
        return sum(operator.numRowsTotal for operator in self.progress[-1].stateOperators)

    def metrics(self, name: str) -> list[int]:
        """Return an observed metric of the only pattern, for each micro-batch."""
        return [next(iter(progress.observedMetrics.values()))[name] for progress in self.progress]


def run(frame: Any, checkpoint: Path, finished: Finished | None = None) -> Finished:
    """Run a query from its checkpoint until its source is read; add what it gives to `finished`."""
    finished = finished or Finished()
    query = start(frame, checkpoint, finished)
    try:
        query.awaitTermination()
        finished.progress = [p for p in query.recentProgress if p.batchId in finished.batches]
    finally:
        query.stop()
    return finished


def heard(monitor: Monitor, batches: int, status: str = "stopped") -> Query:
    """Return the last query once the monitor has heard of some micro-batches and of its end."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        query = next(monitor.history.read(), None)
        if query is not None and query.batches >= batches and query.status == status:
            return query
        threading.Event().wait(0.05)
    raise AssertionError("the monitor heard nothing")


def start(
    frame: Any, checkpoint: Path, finished: Finished, *, goes_on: bool = False
) -> StreamingQuery:
    """Start a query that adds what it gives to `finished`; it ends when its source is read."""

    def take(batch: DataFrame, number: int) -> None:
        finished.batches[number] = in_one_task(batch).collect()

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    return (writer if goes_on else writer.trigger(availableNow=True)).start()


def failure(frame: Any, checkpoint: Path, finished: Finished | None = None) -> str:
    """Run a query that fails; give the message of the library's error alone."""
    with pytest.raises(StreamingQueryException) as caught:
        run(frame, checkpoint, finished)
    text = str(caught.value)
    return text[text.rindex("pyflinkcep.errors.") + len("pyflinkcep.errors.") :].split("SQLSTATE")[
        0
    ]


def _milliseconds(text: str) -> int:
    from datetime import datetime

    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    milliseconds = round(moment.timestamp() * 1000)
    return milliseconds if milliseconds > 0 else MIN_WATERMARK
