# SPDX-License-Identifier: Apache-2.0
"""What a job needs beside the columns of events, computed by workers as Spark does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa.atoms import in_word
from pyflinkcep.errors import CepError, InputError
from pyflinkcep.expressions.arrays import Program
from pyflinkcep.expressions.program import Kind
from pyflinkcep.matching.columns import HASH, integers
from pyflinkcep.matching.layout import bit_name
from pyflinkcep.matching.spark_hash import is_hashed, spark_hash
from pyflinkcep.spark.worker.file_reader import HAVE_SPARK_READ, FileReader
from pyflinkcep.tables.typed_columns import SqlColumns, as_array, row_types, widest

_COMPUTED = (Kind.BIGINT, Kind.DOUBLE, Kind.BOOLEAN)
_NUMBERS = (pa.int64(), pa.float64())


@attrs.frozen(eq=False)
class SqlTexts:
    """All that a job computes from an event, as SQL."""

    conditions: Mapping[int, str] = attrs.field(factory=dict)  # By the bit of the answer
    fields: Mapping[str, str] = attrs.field(factory=dict)  # Other columns, by name

    @property
    def texts(self) -> list[str]:
        """The SQL."""
        return [*self.conditions.values(), *self.fields.values()]


@attrs.frozen(eq=False, slots=False)
class ComputedColumns:
    """Columns that are computed from those of events."""

    schema: pa.Schema  # Of events with them
    zone: str  # The clock by which conditions read times
    said: SqlTexts
    key: Sequence[str]  # The columns of which there is a hash, if that is among the columns

    def needed(self, whole: pa.Schema) -> list[str] | None:
        """Return the columns of events that are needed; None if not all can be computed of any."""
        has_hash = HASH in self.schema.names
        if has_hash and not all(is_hashed(whole.field(name).type) for name in self.key):
            return None
        table = widest(whole)
        try:
            columns = SqlColumns(table, self.said.texts, row_types(table.schema, self.zone))
            if not self._are_known(columns):
                return None
        except CepError:
            return None
        used = {*self.schema.names, *self.key, *columns.used}
        return [name for name in whole.names if name in used]

    def _are_known(self, columns: SqlColumns) -> bool:
        conditions, fields = self.said.conditions.values(), self.said.fields.items()
        return all(
            columns.program(text, is_condition=True) is not None for text in conditions
        ) and all(
            _field(columns, text, self.schema.field(name).type) is not None for name, text in fields
        )

    @cached_property
    def _added(self) -> set[str]:
        """The names of what is computed."""
        words = {bit_name(in_word(bit)[0]) for bit in self.said.conditions}
        return {HASH, *words, *self.said.fields} & set(self.schema.names)

    def added(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield events with the columns."""
        sql: SqlColumns | None = None
        for batch in batches:
            table = pa.Table.from_batches([batch])
            if sql is None:
                sql = SqlColumns(table, self.said.texts, row_types(table.schema, self.zone))
            yield self._with(table, sql.of_rows(table))

    def _with(self, table: pa.Table, sql: SqlColumns) -> pa.RecordBatch:
        found = dict(self._bits(table, sql))
        for name, text in self.said.fields.items():
            column = _field(sql, text, self.schema.field(name).type)
            assert column is not None
            found[name] = column
        if HASH in self._added:
            own = [table.column(name) for name in self.key]
            found[HASH] = integers(spark_hash(own) if own else np.zeros(table.num_rows, np.int64))
        columns = [
            found[name] if name in found else table.column(name) for name in self.schema.names
        ]
        (whole,) = pa.Table.from_arrays(columns, schema=self.schema).combine_chunks().to_batches()
        return whole

    def _bits(self, table: pa.Table, sql: SqlColumns) -> Iterator[tuple[str, pa.Array]]:
        """Yield each word of the bits of conditions."""
        words: dict[int, dict[int, str]] = {}
        for bit, text in self.said.conditions.items():
            word, own = in_word(bit)
            words.setdefault(word, {})[own] = text
        for word, texts in words.items():
            programs = {bit: _condition(sql, text) for bit, text in texts.items()}
            bits = sql.bits(programs).array(0, table.num_rows)
            yield bit_name(word), integers(bits.astype(np.int64))


def _condition(sql: SqlColumns, text: str) -> Program:
    found = sql.program(text, is_condition=True)
    assert found is not None
    return found


def _field(sql: SqlColumns, text: str, type_: pa.DataType) -> pa.ChunkedArray | pa.Array | None:
    """Return the values of an expression as a type; None if only Spark gives them."""
    own = sql.own_column(text)
    if own is not None:
        is_number = pa.types.is_integer(own.type) or pa.types.is_floating(own.type)
        is_number |= pa.types.is_boolean(own.type)
        if own.type == type_:
            return own
        return own.cast(type_) if is_number and type_ in _NUMBERS else None
    program = sql.program(text, is_condition=False)
    if program is None or program.kind is None or program.kind not in _COMPUTED:
        return None
    return as_array(sql.values(program)).cast(type_) if type_ in _NUMBERS else None


@attrs.frozen(eq=False)
class FileEvents:
    """Events of files, as Spark would hand them over; travels to the workers."""

    reader: FileReader
    columns: ComputedColumns

    def read(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events of parts of files."""
        try:
            yield from self.columns.added(self.reader.read(parts))
        except UnicodeDecodeError as cause:
            raise InputError(
                f"pattern {self.reader.pattern}: a condition reads a text that is not UTF-8: "
                f"{cause.object[:40]!r}",
                HAVE_SPARK_READ,
            ) from cause
