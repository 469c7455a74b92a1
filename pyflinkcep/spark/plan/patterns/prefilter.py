# SPDX-License-Identifier: Apache-2.0
"""Drops events that no partial match can use before Spark shuffles them."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.analysis import Relevance, untaken_events
from pyflinkcep.engines.flink.nfa.atoms import known_bits, words
from pyflinkcep.matching.columns import WHOLE, quoted
from pyflinkcep.spark.arrow.internals import all_repeatable
from pyflinkcep.spark.plan.analysis import joined
from pyflinkcep.spark.plan.conditions import Asked
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.job import Job, Prepared
from pyflinkcep.spark.plan.source import EventSource


@attrs.frozen(eq=False)
class EventFilter:
    """The filter of a bounded job."""

    job: Job  # The job
    asked: Asked  # The conditions that Spark evaluates
    droppable: frozenset[int]  # The events that may be dropped, as bits of the conditions
    # Whether to filter the source, so that a format such as Parquet need not read them; otherwise
    # they are filtered by their computed answers.
    early: bool

    @classmethod
    def of(cls, job: Job, asked: Asked, droppable: frozenset[int]) -> EventFilter:
        """Decide for a job, given the events that its pattern does not need."""
        conditions = [condition for _, condition in asked]
        early = bool(droppable) and _can_be_asked_twice(job.source.dataframe, conditions)
        return cls(job, asked, droppable, early)

    def before(self) -> Job:
        """Return the job, its source filtered if `early`."""
        if not self.early:
            return self.job
        wanted = _formula(self.asked, self.droppable)
        return self.job.where(wanted | _no_time(self.job.source))

    def after(self, prepared: Prepared) -> Prepared:
        """Return the prepared events, filtered by their answers unless `early`."""
        if self.early or not self.droppable:
            return prepared
        wanted = ~is_among(prepared.layout.bit_columns, self.droppable)
        events = prepared.events.where(wanted | _no_time(self.job.source))
        return attrs.evolve(prepared, events=events)


def droppable_events(
    nfa: NFA, processing_time: bool, limited: bool, shows_next: bool
) -> frozenset[int]:
    """Return the events that matching does not need, as bits of Spark's conditions."""
    if why_unfiltered(processing_time, limited):
        return frozenset()
    return relevance_of(nfa, shows_next).droppable


def relevance_of(nfa: NFA, shows_next: bool) -> Relevance:
    """Return what may be dropped before the shuffle, given the answers to Spark's conditions."""
    return Relevance.of(nfa, known_bits(nfa.atoms), shows_next)


def why_unfiltered(processing_time: bool, limited: bool, full_output: str = "") -> str:
    """Return why a job is not filtered, whatever its pattern."""
    if processing_time:
        return "in processing time the arrival of any event may end a window"
    if limited:
        return "maxPartialMatches counts partial matches that any event may split"
    if full_output:
        which = "late event" if "Late" in full_output else "event too far ahead"
        return f"{full_output} returns every {which} in full"
    return ""


def _no_time(source: EventSource) -> Column:
    """Keep events without a time: they are refused later, when their key can be named."""
    assert source.time_column is not None
    if not source.dataframe.schema[source.time_column].nullable:
        return F.lit(False)
    return F.col(quoted(source.time_column)).isNull()


def is_among(names: Sequence[str], kinds: frozenset[int]) -> Column:
    """Whether the bits of an event, in some columns, are one of several integers."""
    if len(names) == 1:
        return F.col(names[0]).isin(sorted(kinds))
    rows = [zip(names, words(kind, len(names)), strict=True) for kind in sorted(kinds)]
    alike = [joined(operator.and_, [F.col(name) == bits for name, bits in row]) for row in rows]
    return joined(operator.or_, alike)


def _can_be_asked_twice(dataframe: DataFrame, conditions: Sequence[Column]) -> bool:
    """Whether conditions can be repeated cheaply with the same answer: no Python functions."""
    # Nor window functions: Spark refuses them in a filter, and they need the events that it drops.
    try:
        dataframe.where(joined(operator.or_, [F.lit(True), *conditions]))
        return all_repeatable(dataframe, conditions)
    except Exception:
        return False


def _formula(asked: Asked, droppable: frozenset[int]) -> Column:
    """Return a condition that holds for all events that are not droppable."""
    # NULL counts as false: without a ``not`` a formula is then never true by mistake.
    if not asked or not droppable:
        return F.lit(not droppable)
    (atom, holds), rest = asked[0], asked[1:]
    without = frozenset(bits for bits in droppable if not bits & atom.bit)
    holding = frozenset(bits & ~atom.bit for bits in droppable if bits & atom.bit)
    if without == holding:
        return _formula(rest, without)
    if not holding < without:  # else a condition that holds can only make an event needed
        fails = ~F.coalesce(holds, F.lit(False))
        return (holds & _formula(rest, holding)) | (fails & _formula(rest, without))
    return (holds & _formula(rest, holding)) | _formula(rest, without)


_FEWEST = 8  # How many columns must be saved: a column of columns costs something itself

_PLAIN = (
    T.BinaryType,
    T.BooleanType,
    T.DateType,
    T.NumericType,
    T.StringType,
    T.TimestampNTZType,
    T.TimestampType,
)


def bare_if_untaken(prepared: Prepared, nfa: NFA, droppable: frozenset[int]) -> Prepared:
    """Return the events with most columns in one, which is null if no stage can take the event."""
    # After ``next`` such events matter all the same, since they end partial matches, but their key,
    # time and answers are enough for that.
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


def _can_be_nested(type_: T.DataType) -> bool:
    """Whether a type arrives in a column of columns as it does by itself."""
    if isinstance(type_, T.ArrayType):
        return _can_be_nested(type_.elementType)
    return isinstance(type_, _PLAIN)
