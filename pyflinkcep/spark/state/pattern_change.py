# SPDX-License-Identifier: Apache-2.0
"""Re-maps the SQL answers stored with queued events after the pattern has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import in_word
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.answers import bit_name, bit_names
from pyflinkcep.matching.columns import BITS, VALUE, Ints, spark_atoms
from pyflinkcep.spark.state.fingerprint import answers, field_numbers

__all__ = ["requeued", "still_droppable"]


def requeued(
    table: pa.Table,
    schema: pa.Schema,
    fingerprint: Mapping[str, str],
    nfa: NFA,
    expressions: CompiledExpressions | None = None,
) -> pa.Table:
    """
    Convert queued events for another pattern.

    Parameters
    ----------
    table : pyarrow.Table
        The events, with Spark's answers for the pattern they were queued for.
    schema : pyarrow.Schema
        The columns that the current pattern needs.
    fingerprint : mapping of str to str
        The fingerprint of the pattern they were queued for.
    nfa : NFA
        The current pattern.
    expressions : CompiledExpressions, optional
        Its match expressions.

    Raises
    ------
    PatternChangedError
        If the current pattern has an SQL condition that the other did not have.
    """
    asked = [name for name in schema.names if name.startswith((BITS, VALUE))]
    others = [name for name in schema.names if name not in asked]
    new = table.select(others)
    for name, bits in _bits(table, answers(fingerprint), nfa).items():
        new = new.append_column(name, pa.array(bits))
    known = field_numbers(fingerprint)
    for number, field in enumerate(expressions.fields if expressions is not None else ()):
        if field.sql not in known:
            raise _not_asked(table, f"{field.sql!r}, which a condition needs")
        column = table.column(f"{VALUE}{known[field.sql]}")
        new = new.append_column(f"{VALUE}{number}", column)
    return new.select(schema.names)


def _bits(table: pa.Table, known: Mapping[str, int], nfa: NFA) -> dict[str, Ints]:
    """Return the answers to the conditions of the current pattern."""
    atoms = spark_atoms(nfa)
    bits = {name: np.zeros(table.num_rows, np.int64) for name in bit_names(atoms)}
    for atom in atoms:
        text = atom.condition.text  # type: ignore[attr-defined]
        if text not in known:
            raise _not_asked(table, f"the new condition {text!r} (stage {atom.stage!r})")
        word, bit = in_word(known[text])
        held = table.column(bit_name(word)).to_numpy() & bit != 0
        word, bit = in_word(atom.bit)
        bits[bit_name(word)] |= np.where(held, np.int64(bit), 0)
    return bits


def _not_asked(table: pa.Table, what: str) -> PatternChangedError:
    return PatternChangedError(
        f"{table.num_rows} buffered events were never evaluated against {what}",
        "write the new condition as a Python function, which can still be evaluated, "
        "or start from a new checkpoint",
    )


def still_droppable(
    dropped: Iterable[int], fingerprint: Mapping[str, str], nfa: NFA, droppable: frozenset[int]
) -> list[int]:
    """
    Convert the bits of dropped events for another pattern.

    Parameters
    ----------
    dropped : iterable of int
        The bits of the dropped events.
    fingerprint : mapping of str to str
        The fingerprint of the pattern that did not need them.
    nfa : NFA
        The current pattern.
    droppable : frozenset of int
        The events that it does not need, as bits.

    Raises
    ------
    PatternChangedError
        If the current pattern could use such events.
    """
    known = answers(fingerprint)
    atoms = [(atom.bit, known.get(atom.condition.text, 0)) for atom in spark_atoms(nfa)]  # type: ignore[attr-defined]
    counted = {sum(new for new, old in atoms if bits & old) for bits in dropped}
    if not counted <= droppable:
        raise PatternChangedError(
            "events that the new pattern needs were dropped while others were buffered",
            "run the old pattern with sideOutputLateData(), which keeps every event, until the "
            "watermark has passed the buffered ones; or start from a new checkpoint",
        )
    return sorted(counted)
