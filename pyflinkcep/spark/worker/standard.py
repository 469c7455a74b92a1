# SPDX-License-Identifier: Apache-2.0
"""Tasks with the standard's meaning: sorted rows in, many keys matched at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.rows.matching import Place
from pyflinkcep.errors import CepRuntimeError, LongDecimalWarning, already_said
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.layout import KeyText, Layout
from pyflinkcep.matching.standard_rows import StandardRows
from pyflinkcep.spark.worker.sorting import whole_keys


@attrs.frozen(eq=False)
class StandardTask:
    """The work on one partition of a bounded job."""

    rows: StandardRows  # How a key's rows become output
    layout: Layout  # The key's columns
    order: Layout | None = None  # By what time to sort the rows of a key; None if they come sorted

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the rows of a partition; yield its output."""
        with already_said(LongDecimalWarning):
            compiled = self.rows.plan.compiled()
        if self.order is not None:
            tables = whole_keys(batches, self.order)
            batches = (batch for table in tables for batch in table.combine_chunks().to_batches())
        for rows, ends in self._keys(batches):
            places = [Place() for _ in ends]
            key_of = partial(self._key, rows, ends)
            try:
                yield from self.rows.matched(rows, ends, compiled, places, key_of)
            except CepRuntimeError as error:
                raise error.in_pattern(self.layout.pattern) from error.__cause__

    def _key(self, rows: pa.Table, ends: Ints, number: int) -> KeyText | None:
        return KeyText(self.layout, rows, ends[number] - 1) if self.layout.key_columns else None

    def _keys(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, Ints]]:
        """Yield the rows of several keys at a time, and where each key's end."""
        held: list[pa.Table] = []
        for batch in batches:
            table = pa.Table.from_batches([batch])
            if not table.num_rows:
                continue
            changes = self.layout.key_changes(table)
            if held and self.layout.is_other_key(held[-1], table):
                changes = np.r_[0, changes]
            if not len(changes):
                held.append(table)
                continue
            before, last = sum(part.num_rows for part in held), int(changes[-1])
            yield pa.concat_tables([*held, table.slice(0, last)]), before + changes
            held = [table.slice(last)]
        if held:
            rows = pa.concat_tables(held)
            yield rows, np.array([rows.num_rows])
