# SPDX-License-Identifier: Apache-2.0
"""Dropping what no partial match can use before Spark moves it to the keys."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial, reduce

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pyflinkcep.nfa import NFA
from pyflinkcep.nfa.atoms import Atom, known_bits, words
from pyflinkcep.nfa.droppable import Relevance
from pyflinkcep.spark.arrow.columns import quoted, spark_atoms
from pyflinkcep.spark.arrow.internals import all_repeatable
from pyflinkcep.spark.plan.conditions import condition_column
from pyflinkcep.spark.plan.job import Job, Prepared
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.consumers import Consumer

__all__ = ["EventFilter", "droppable_events", "relevance_of", "why_unfiltered"]


@attrs.frozen(eq=False)
class EventFilter:
    """
    The filter of a bounded job.

    Attributes
    ----------
    source : EventSource
        The events.
    atoms : list of Atom
        The conditions that Spark evaluates.
    droppable : frozenset of int
        The events that may be dropped, by the bits of the conditions.
    early : bool
        Whether to filter the events as they come, so that a source such as Parquet need not
        give them; else by the answers computed for them.
    """

    source: EventSource
    atoms: list[Atom]
    droppable: frozenset[int]
    early: bool

    @classmethod
    def of(cls, job: Job, consumer: Consumer) -> EventFilter:
        """Decide for a job and what becomes of its matches."""
        source, atoms = job.source, spark_atoms(job.nfa)
        droppable = droppable_events(job, consumer.shows_time)
        conditions = [condition_column(atom) for atom in atoms]
        early = bool(droppable) and _can_be_asked_twice(source.dataframe, conditions)
        return cls(source, atoms, droppable, early)

    def before(self) -> EventSource:
        """Return the source, its events filtered as they come if that is the way."""
        source = self.source
        if not self.early:
            return source
        wanted = _formula(self.atoms, self.droppable)
        column = F.lit(wanted) if isinstance(wanted, bool) else wanted
        return attrs.evolve(source, dataframe=source.dataframe.where(column | _no_time(source)))

    def after(self, prepared: Prepared) -> DataFrame:
        """Return the prepared events, filtered by their answers if that is the way."""
        if self.early or not self.droppable:
            return prepared.events
        unwanted = _is_among(prepared.layout.bit_columns, self.droppable)
        return prepared.events.where(~unwanted | _no_time(self.source))


def droppable_events(job: Job, shows_time: bool) -> frozenset[int]:
    """
    Return the events that matching can do without, by the bits of Spark's conditions.

    Parameters
    ----------
    job : Job
        The job.
    shows_time : bool
        Whether the time at which a match is given can be seen.
    """
    processing_time, limited = job.source.time_column is None, job.limit is not None
    if why_unfiltered(processing_time, limited, late_output=False):
        return frozenset()
    return relevance_of(job.nfa, shows_time).droppable


def relevance_of(nfa: NFA, shows_time: bool) -> Relevance:
    """Return what may be dropped before the shuffle, given the answers to Spark's conditions."""
    return Relevance.of(nfa, known_bits(nfa.atoms), shows_time)


def why_unfiltered(processing_time: bool, limited: bool, late_output: bool) -> str:
    """
    Return why a job is not filtered, whatever its pattern.

    Parameters
    ----------
    processing_time : bool
        Whether the clock counts.
    limited : bool
        Whether the number of partial matches of a key is limited.
    late_output : bool
        Whether late events go to an output of their own.

    Returns
    -------
    str
        The reason, empty if there is none.
    """
    if processing_time:
        return "in processing time the arrival of any event may end a window"
    if limited:
        return "maxPartialMatches counts partial matches that any event may split"
    if late_output:
        return "sideOutputLateData() gives late events whole, whatever they are"
    return ""


def _no_time(source: EventSource) -> Column:
    """Keep events without a time: they are refused later, where their key can be named."""
    assert source.time_column is not None
    if not source.dataframe.schema[source.time_column].nullable:
        return F.lit(False)
    return F.col(quoted(source.time_column)).isNull()


def _is_among(names: Sequence[str], kinds: frozenset[int]) -> Column:
    """Whether the bits of an event, in columns of these names, are one of some integers."""
    if len(names) == 1:
        return F.col(names[0]).isin(sorted(kinds))
    rows = [zip(names, words(kind, len(names)), strict=True) for kind in sorted(kinds)]
    alike = [reduce(operator.and_, (F.col(name) == bits for name, bits in row)) for row in rows]
    return reduce(operator.or_, alike)


def _can_be_asked_twice(dataframe: DataFrame, conditions: Sequence[Column]) -> bool:
    """
    Whether conditions give the same answer again, at little cost: no Python functions.

    Nor window functions: Spark has none in a filter, and they need the events that it drops.
    """
    try:
        dataframe.where(reduce(operator.or_, conditions, F.lit(True)))
        return all_repeatable(dataframe, conditions)
    except Exception:
        return False


def _formula(atoms: Sequence[Atom], droppable: frozenset[int]) -> Column | bool:
    """
    Return what must hold of events that are not droppable, condition by condition.

    NULL counts as false: without a ``not`` a formula is then never true by mistake.
    """
    if not atoms or not droppable:
        return not droppable
    atom, rest = atoms[0], atoms[1:]
    halves = partial(_formula, rest)
    without = frozenset(bits for bits in droppable if not bits & atom.bit)
    holding = frozenset(bits & ~atom.bit for bits in droppable if bits & atom.bit)
    if without == holding:
        return halves(without)
    holds = condition_column(atom)
    if holding < without:  # one that holds only ever makes an event wanted
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
