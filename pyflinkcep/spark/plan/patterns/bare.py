# SPDX-License-Identifier: Apache-2.0
"""Sends events that no stage can take to the workers without most of their columns."""

from __future__ import annotations

import attrs
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.untaken import untaken_events
from pyflinkcep.matching.columns import WHOLE, quoted
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.patterns.prefilter import is_among

__all__ = ["bare_if_untaken"]

_FEWEST = 8
"""How many columns must be saved: a column of columns costs something itself."""

_PLAIN = (
    BinaryType,
    BooleanType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)


def bare_if_untaken(prepared: Prepared, nfa: NFA, droppable: frozenset[int]) -> Prepared:
    """
    Return the events with most columns in one, which is null if no stage can take the event.

    After ``next`` such events matter all the same, since they end partial matches, but their key,
    time and answers are enough for that.

    Parameters
    ----------
    prepared : Prepared
        The events of a job that shows no function but those of matches an event.
    nfa : NFA
        The compiled pattern.
    droppable : frozenset of int
        The events that were dropped, as bits of the conditions that Spark evaluates.
    """
    layout, known = prepared.layout, known_bits(nfa.atoms)
    nested = tuple(
        field.name
        for field in layout.schema.fields
        if field.name in layout.late and _can_be_nested(field.dataType)
    )
    if len(nested) < _FEWEST or engine_of(prepared.events.sparkSession) is not SPARK:
        return prepared
    if any(atom.expression is None and not atom.bit & known for atom in nfa.atoms):
        return prepared  # a Python function sees the event
    bare = untaken_events(nfa, known) - droppable
    if not bare:
        return prepared
    fields = ", ".join(f"{quoted(name)} AS `{place}`" for place, name in enumerate(nested))
    # A list, since a null struct costs Arrow a null in each of its fields; one expression, since
    # planning takes a millisecond for each that the driver makes.
    one = F.expr(f"array(struct({fields}))")
    whole = F.when(~is_among(layout.bit_columns, bare), one).alias(WHOLE)
    others = [F.col(quoted(name)) for name in prepared.events.columns if name not in nested]
    return Prepared(prepared.events.select(*others, whole), attrs.evolve(layout, nested=nested))


def _can_be_nested(type_: DataType) -> bool:
    """Whether a type arrives in a column of columns as it does by itself."""
    if isinstance(type_, ArrayType):
        return _can_be_nested(type_.elementType)
    return isinstance(type_, _PLAIN)
