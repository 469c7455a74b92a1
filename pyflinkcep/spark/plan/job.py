# SPDX-License-Identifier: Apache-2.0
"""A pattern on a DataFrame, analysed once for bounded and unbounded jobs."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from pyspark.sql import Column, DataFrame

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.matching.order import TieOrder
from pyflinkcep.spark.plan.conditions import bit_columns, check_conditions
from pyflinkcep.spark.plan.engine import check_engine
from pyflinkcep.spark.plan.expressions import compiled_expressions, field_columns
from pyflinkcep.spark.plan.source import EventSource

__all__ = ["Job", "Prepared"]


@attrs.frozen(eq=False)
class Prepared:
    """
    The events with the additional columns that matching needs.

    Attributes
    ----------
    events : DataFrame
        The events.
    layout : Layout
        Their columns.
    """

    events: DataFrame
    layout: Layout


@attrs.frozen(eq=False)
class Job:
    """
    A pattern on a DataFrame, analysed.

    Every job takes the same path: it is analysed here, :meth:`prepare` adds what Spark computes
    from each event, then :mod:`~pyflinkcep.spark.plan.batch` or
    :mod:`~pyflinkcep.spark.plan.stream` shuffles the events and hands them to a task.

    Attributes
    ----------
    pattern : Pattern
        The pattern; it is compiled again on the workers.
    nfa : NFA
        The compiled pattern.
    source : EventSource
        The events.
    expressions : CompiledExpressions or None
        The fields of the events that match expressions use.
    comparator : callable, OrderColumns or None
        Orders events of equal time, which otherwise keep their order in the source.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.
    """

    pattern: Pattern
    nfa: NFA
    source: EventSource
    expressions: CompiledExpressions | None
    comparator: TieOrder | None
    limit: PartialMatchLimit | None

    @classmethod
    def analyse(
        cls,
        pattern: Pattern,
        nfa: NFA,
        source: EventSource,
        comparator: TieOrder | None,
        limit: PartialMatchLimit | None,
    ) -> Job:
        """
        Check a pattern's conditions against its events.

        Raises
        ------
        InputError
            If a condition names an unknown column or is of a wrong type, or the workers cannot
            import this package.
        """
        check_engine(source.dataframe)
        expressions = compiled_expressions(nfa, source.dataframe)
        check_conditions(nfa, source.dataframe)
        return cls(pattern, nfa, source, expressions, comparator, limit)

    @property
    def name(self) -> str:
        """The job's name in Spark's UI and progress."""
        return self.source.job_name

    def prepare(
        self, source: EventSource, more: Mapping[str, Column], always_hash: bool = False
    ) -> Prepared:
        """
        Add what Spark computes from each event: conditions, fields, and the key's hash.

        Parameters
        ----------
        source : EventSource
            The job's source, possibly filtered.
        more : mapping of str to Column
            Further columns.
        always_hash : bool
            Whether the key's hash is needed even if the key is a whole number itself.
        """
        bits = bit_columns(self.nfa)
        layout = source.layout(tuple(bits), always_hash, self.expressions)
        added = {**source.key_hash(always_hash), **field_columns(self.expressions), **more, **bits}
        return Prepared(source.prepare(added), layout)
