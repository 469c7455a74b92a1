# SPDX-License-Identifier: Apache-2.0
"""
A program of its own that writes the matches of a stream of files to a sink; tests kill it.

``python -m tests.sinks.job FOLDER PAGE STALL SETTINGS`` reads FOLDER/events, one file a micro-batch,
and writes as docs/sinks/PAGE.md says; SETTINGS, in JSON, replace names of the page, such as an
address. It prints what it does. STALL says where it waits for its end, in the second micro-batch
with matches: ``half``, when the sink has asked for half of them; ``written``, when the sink is
done; ``no``, nowhere. FOLDER/attempts has a line for each time that a micro-batch was asked for.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from tests.sinks.pages import names_of
from tests.spark.stream_job import session

SCHEMA = "user string, ts timestamp, result string"


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the stream of logins."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.json(str(folder / "events")).withWatermark("ts", "1 second")


def stall() -> None:
    """Wait to be killed."""
    print("stalled", flush=True)
    time.sleep(600)


class HalfOf(list[Row]):
    """Rows of which only half can be read."""

    def __iter__(self) -> Iterator[Row]:
        for number, row in enumerate(list(super().__iter__())):
            if number == len(self) // 2:
                stall()
            yield row


@attrs.frozen
class HalfOfTable:
    """A table of which only half can be read."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self.table.schema

    def __arrow_c_stream__(self, requested: object = None) -> object:
        def half() -> Iterator[pa.RecordBatch]:
            yield from self.table[: self.table.num_rows // 2].to_batches()
            stall()

        reader = pa.RecordBatchReader.from_batches(self.schema, half())
        return reader.__arrow_c_stream__(requested)


@attrs.define
class Watched:
    """A micro-batch that notes what of it is asked for."""

    batch: DataFrame
    number: int
    attempts: Path
    stalls: bool
    ids: list[str] = attrs.field(factory=list)  # that were asked for

    def select(self, *columns: Any) -> Watched:
        """Return it with other columns."""
        return attrs.evolve(self, batch=self.batch.select(*columns), ids=self.ids)

    def collect(self) -> list[Row]:
        """Return its rows."""
        rows = self.batch.collect()
        self._note([row.id for row in rows])
        return HalfOf(rows) if self.stalls and rows else rows

    def toArrow(self) -> Any:
        """Return it as a table."""
        table = self.batch.toArrow()
        self._note(table["id"].to_pylist())
        return HalfOfTable(table) if self.stalls and self.ids else table

    def _note(self, ids: list[str]) -> None:
        self.ids[:] = ids
        with self.attempts.open("a", encoding="utf-8") as file:
            print(json.dumps([self.number, sorted(ids)]), file=file)


def main(folder: Path, page: str, stalls: str, settings: dict[str, Any]) -> None:
    """Run the job to the end of the files."""
    spark = session("local[2]")
    spark.sparkContext.setLogLevel("OFF")
    found = names_of("index")["alerts"](stream(spark, folder))
    sink = names_of(page)
    sink.update(settings)
    print("started", flush=True)
    if "FROM_EXECUTORS" in settings:
        sink["write"] = lambda batch, number: batch.batch.foreachPartition(sink["insert"])
    if "start" in sink:  # a sink of Spark's own
        sink["start"](found, str(folder)).awaitTermination()
    else:
        writer = found.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        writer = writer.foreachBatch(watched(sink["write"], folder / "attempts", stalls))
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def watched(write: Any, attempts: Path, stalls: str) -> Callable[[DataFrame, int], None]:
    """Return a function that writes micro-batches, and stalls in the second with matches."""
    written = []

    def write_watched(batch: DataFrame, number: int) -> None:
        second = len(written) == 1
        watching = Watched(batch, number, attempts, second and stalls == "half")
        write(watching, number)
        if watching.ids:
            written.append(number)
            if second and stalls == "written":
                stall()

    return write_watched


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
