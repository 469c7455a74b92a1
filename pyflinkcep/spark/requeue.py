# SPDX-License-Identifier: Apache-2.0
"""Queued events whose SQL conditions Spark evaluated for another pattern than the one at work."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from pyflinkcep.errors import PatternChangedError
from pyflinkcep.nfa import NFA
from pyflinkcep.spark.conditions import spark_atoms
from pyflinkcep.spark.fingerprint import answers
from pyflinkcep.spark.layout import BITS

__all__ = ["requeued"]


def requeued(
    table: pa.Table, schema: pa.Schema, fingerprint: Mapping[str, str], nfa: NFA
) -> pa.Table:
    """
    Give queued events as another pattern needs them.

    Parameters
    ----------
    table : pyarrow.Table
        The events, with the answers that Spark gave for the pattern they were queued for.
    schema : pyarrow.Schema
        What the pattern at work needs.
    fingerprint : mapping of str to str
        The fingerprint of the pattern they were queued for.
    nfa : NFA
        The pattern at work.

    Raises
    ------
    PatternChangedError
        When the pattern at work has an SQL condition that the other had not.
    """
    if BITS not in schema.names:
        return table.select(schema.names)
    known = answers(fingerprint)
    bits = np.zeros(table.num_rows, np.int64)
    for atom in spark_atoms(nfa):
        text = atom.condition.text  # type: ignore[attr-defined]
        if text not in known:
            raise PatternChangedError(
                f"{table.num_rows} events wait that Spark was not asked "
                f"the condition {text!r} (stage {atom.stage!r}) of",
                "write the new condition as a Python function, which can still be asked of them, "
                "or begin a new checkpoint",
            )
        held = table.column(BITS).to_numpy() & known[text] != 0
        bits |= np.where(held, np.int64(atom.bit), 0)
    others = table.select([name for name in schema.names if name != BITS])
    return others.append_column(BITS, pa.array(bits)).select(schema.names)
