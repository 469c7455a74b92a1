# SPDX-License-Identifier: Apache-2.0
"""All outputs of a job in one DataFrame: a tag, and a struct column for each output."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from pyflinkcep.spark.arrow.rows import arrow_schema
from pyflinkcep.spark.worker.consumers import MAIN, Consumer, Outputs

__all__ = ["TAG", "output_schema", "to_batches"]

TAG = "tag"
"""The column that names the output a row belongs to."""


def output_schema(consumer: Consumer) -> StructType:
    """Give the schema of the job: the main output's, or with side outputs the tagged one."""
    schemas = consumer.schemas
    if len(schemas) == 1:
        return schemas[MAIN]
    structs = [StructField(name, schema) for name, schema in schemas.items()]
    return StructType([StructField(TAG, StringType(), False), *structs])


def to_batches(consumer: Consumer, outputs: Outputs) -> Iterator[pa.RecordBatch]:
    """Give rows of outputs as batches of the job's schema."""
    if len(consumer.schemas) == 1:
        yield from outputs[MAIN].to_batches()
        return
    schema = arrow_schema(output_schema(consumer))
    for name, table in outputs.items():
        for batch in table.to_batches():
            if batch.num_rows:
                yield _tagged(name, batch, schema)


def _tagged(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    size = batch.num_rows
    struct = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    columns = [
        pa.array([name] * size, pa.string())
        if field.name == TAG
        else struct.cast(field.type)
        if field.name == name
        else pa.nulls(size, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
