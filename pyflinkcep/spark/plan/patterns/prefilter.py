# SPDX-License-Identifier: Apache-2.0
"""Drops events that no partial match can use before Spark shuffles them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import known_bits, words
from pyflinkcep.engines.flink.nfa.droppable import Relevance
from pyflinkcep.matching.columns import quoted
from pyflinkcep.spark.arrow.internals import all_repeatable
from pyflinkcep.spark.plan.analysis import joined
from pyflinkcep.spark.plan.conditions import Asked
from pyflinkcep.spark.plan.job import Job, Prepared
from pyflinkcep.spark.plan.source import EventSource

__all__ = ["EventFilter", "droppable_events", "is_among", "relevance_of", "why_unfiltered"]


@attrs.frozen(eq=False)
class EventFilter:
    """
    The filter of a bounded job.

    Attributes
    ----------
    job : Job
        The job.
    asked : sequence of (Atom, Column)
        The conditions that Spark evaluates.
    droppable : frozenset of int
        The events that may be dropped, as bits of the conditions.
    early : bool
        Whether to filter the source, so that a format such as Parquet need not read them; otherwise
        they are filtered by their computed answers.
    """

    job: Job
    asked: Asked
    droppable: frozenset[int]
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
        column = F.lit(wanted) if isinstance(wanted, bool) else wanted
        return self.job.where(column | _no_time(self.job.source))

    def after(self, prepared: Prepared) -> Prepared:
        """Return the prepared events, filtered by their answers unless `early`."""
        if self.early or not self.droppable:
            return prepared
        wanted = ~is_among(prepared.layout.bit_columns, self.droppable)
        events = prepared.events.where(wanted | _no_time(self.job.source))
        return attrs.evolve(prepared, events=events)


def droppable_events(
    nfa: NFA, processing_time: bool, limited: bool, shows_time: bool
) -> frozenset[int]:
    """
    Return the events that matching does not need, as bits of Spark's conditions.

    Parameters
    ----------
    nfa : NFA
        The compiled pattern.
    processing_time, limited : bool
        See :func:`why_unfiltered`.
    shows_time : bool
        Whether users can see the time at which a match is emitted.
    """
    if why_unfiltered(processing_time, limited):
        return frozenset()
    return relevance_of(nfa, shows_time).droppable


def relevance_of(nfa: NFA, shows_time: bool) -> Relevance:
    """Return what may be dropped before the shuffle, given the answers to Spark's conditions."""
    return Relevance.of(nfa, known_bits(nfa.atoms), shows_time)


def why_unfiltered(processing_time: bool, limited: bool, full_output: str = "") -> str:
    """
    Return why a job is not filtered, whatever its pattern.

    Parameters
    ----------
    processing_time : bool
        Whether the job runs in processing time.
    limited : bool
        Whether the number of partial matches of a key is limited.
    full_output : str
        The call that sends events to a side output; empty if there is none.

    Returns
    -------
    str
        The reason, empty if there is none.
    """
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
    """
    Whether conditions can be repeated cheaply with the same answer: no Python functions.

    Nor window functions: Spark refuses them in a filter, and they need the events that it drops.
    """
    try:
        dataframe.where(joined(operator.or_, [F.lit(True), *conditions]))
        return all_repeatable(dataframe, conditions)
    except Exception:
        return False


def _formula(asked: Asked, droppable: frozenset[int]) -> Column | bool:
    """
    Return a condition that holds for all events that are not droppable.

    NULL counts as false: without a ``not`` a formula is then never true by mistake.
    """
    if not asked or not droppable:
        return not droppable
    (atom, holds), rest = asked[0], asked[1:]
    halves = partial(_formula, rest)
    without = frozenset(bits for bits in droppable if not bits & atom.bit)
    holding = frozenset(bits & ~atom.bit for bits in droppable if bits & atom.bit)
    if without == holding:
        return halves(without)
    if holding < without:  # a condition that holds can only make an event needed
        return _or(_and(holds, halves(holding)), halves(without))
    fails = ~F.coalesce(holds, F.lit(False))
    return _or(_and(holds, halves(holding)), _and(fails, halves(without)))


def _and(one: Column, other: Column | bool) -> Column | bool:
    if isinstance(other, bool):
        return one if other else False
    return one & other


def _or(one: Column | bool, other: Column | bool) -> Column | bool:
    if isinstance(one, bool):
        return True if one else other
    if isinstance(other, bool):
        return True if other else one
    return one | other
