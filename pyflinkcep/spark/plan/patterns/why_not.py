# SPDX-License-Identifier: Apache-2.0
"""Why a pattern does not match on a bounded DataFrame: counts over all events, a trace of some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import PartialMatchLimit, comparator_key
from pyflinkcep.errors import InvalidArgumentError, counted
from pyflinkcep.matching.columns import HASH, POSITION, PREFIX, quoted, spark_atoms
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.plan.conditions import conditions_of
from pyflinkcep.spark.plan.keys import KeyColumn
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.slices import milliseconds_of
from pyflinkcep.tables.sql import Evaluated, evaluated_by, expressions_over_stages
from pyflinkcep.tables.values import grouping_key
from pyflinkcep.testing.trace import sql_of
from pyflinkcep.trace.explained import explained
from pyflinkcep.trace.run import Input
from pyflinkcep.trace.why import WhyNot
from pyflinkcep.trace.why_facts import ConditionCount

__all__ = ["why_not"]

_TIME = f"{PREFIX}millis"
_MOST_PARTIAL_MATCHES = 2000
_SHOWN = 5
"""How many keys are shown if there are no events of the one asked for."""
_TYPES: tuple[tuple[type[DataType], tuple[type, ...]], ...] = (
    (IntegralType, (int,)),
    (NumericType, (int, float, Decimal)),
    (StringType, (str,)),
    (BooleanType, (bool,)),
    (DateType, (date,)),
    (TimestampType, (datetime,)),
    (TimestampNTZType, (datetime,)),
    (BinaryType, (bytes,)),
)
"""The values of keys, the first type that fits."""


def why_not(job: PatternJob, key: object, most: int) -> WhyNot:
    """
    Return why a pattern has the matches it has in a bounded DataFrame.

    Parameters
    ----------
    job : PatternJob
        The pattern on the DataFrame.
    key : object
        The key to look at; None for all.
    most : int
        The number of events to trace.

    Notes
    -----
    Two jobs: one counts over all events; the other fetches the first events by the hash of their
    key, which are all events of some keys and the beginning of one more, and they are traced on the
    driver.
    """
    events = _selected(job, key)
    counts = _Counts.of(job, events)
    rows = _fetched(job, events, most + 1)
    sample = _Sample.of(job, rows, most)
    keys = len(set(sample.given.keys))
    left_out = counts.usable > most
    of = f"{counted(len(sample.given.events), 'event')} of {counted(keys, 'key')}"
    text = f"counted over all, traced for {of}" + (
        ", the last not to its end" if sample.given.cut else ""
    )
    limit = job.limit or PartialMatchLimit(_MOST_PARTIAL_MATCHES, "dropOldest")
    numbers = {"events": counts.events, "without a time": counts.without_time}
    if job.source.keys:
        numbers["without a key"] = counts.without_key
        if left_out:
            numbers |= {"keys": 0, "keys or so": counts.keys}
    return explained(
        sample.pattern,
        sample.nfa,
        sample.given,
        expressions_over_stages(sample.nfa, sample.given.events) if rows else None,
        limit,
        sql_of,
        numbers,
        has_key=bool(job.source.keys),
        sample=text if left_out else "",
        counts=counts.of_conditions,
        missing="" if counts.events or key is None else _missing(job, key),
    )


# --- the events


def _selected(job: PatternJob, key: object) -> DataFrame:
    """Return the events with what is asked of Spark about each."""
    source = attrs.evolve(job.source, dataframe=job.job.given)
    answers = {
        _answer(number): F.coalesce(condition, F.lit(False))
        for number, (_, condition) in enumerate(conditions_of(job.nfa, job.job.given))
    }
    added = {
        **source.key_hash(always=True),
        POSITION: F.monotonically_increasing_id(),
        _TIME: milliseconds_of(source),
        **answers,
    }
    events = source.prepare(added)
    if key is None:
        return events
    values = _key_values(job, key)
    for column, value in zip(source.keys, values, strict=True):
        events = events.where(F.col(quoted(column.column)).eqNullSafe(F.lit(value)))
    return events


def _key_values(job: PatternJob, key: object) -> Sequence[Any]:
    names = [column.name for column in job.source.keys]
    values = list(key) if isinstance(key, tuple | list) else [key]
    if len(values) != len(names) or not all(map(_may_be, job.source.keys, values)):
        shown = [f"{column.name} ({column.type.simpleString()})" for column in job.source.keys]
        what = f"a value of {shown[0]}" if len(names) == 1 else f"a tuple of {', '.join(shown)}"
        raise InvalidArgumentError(
            f"whyNot: expected {what if names else 'no key'}, got key={key!r}",
            "leave key out to look at all" if names else "give events a key with keyBy()",
        )
    return values


def _may_be(column: KeyColumn, value: object) -> bool:
    """Whether a value may be that of a column."""
    kinds = next((kinds for type_, kinds in _TYPES if isinstance(column.type, type_)), None)
    if value is None or kinds is None:
        return value is None
    of_another = (isinstance(value, bool), isinstance(value, datetime))
    return isinstance(value, kinds) and of_another == (bool in kinds, datetime in kinds)


def _missing(job: PatternJob, key: object) -> str:
    """Return that no event has a key, with some keys that events have."""
    source = attrs.evolve(job.source, dataframe=job.job.given)
    columns = [F.col(quoted(column.column)) for column in source.keys]
    rows = source.prepare({}).select(*columns).distinct().limit(_SHOWN).collect()
    if not rows:
        return ""
    shown = sorted(repr(tuple(row) if len(columns) > 1 else row[0]) for row in rows)
    return f"No event has the key {key!r}. Some of the keys: {', '.join(shown)}."


def _fetched(job: PatternJob, events: DataFrame, most: int) -> list[Row]:
    """Return the first events by the hash of their key, each key's in the order of the job."""
    keys = [F.col(quoted(column.signature)) for column in job.source.keys]
    exact = F.col(quoted(job.source.time_column or _TIME))  # to the microsecond
    order = [F.col(HASH), *keys, F.col(_TIME), *_ties(job), exact, F.col(POSITION)]
    usable = events.where(F.col(_TIME).isNotNull())
    settings = job.job.settings
    if settings.drops_nulls:
        usable = usable.where(~job.source.is_null(settings.allows_null_keys))
    return usable.orderBy(*order).limit(most).collect()


def _ties(job: PatternJob) -> Iterator[Column]:
    if isinstance(job.comparator, OrderColumns):
        for name, descending, nulls_first in job.comparator.columns:
            column = F.col(quoted(name))
            if descending:
                yield column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
            else:
                yield column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def _answer(number: int) -> str:
    return f"{PREFIX}answer{number}"


@attrs.frozen(eq=False)
class _Sample:
    """The pattern and the fetched events, ready to be traced."""

    pattern: Any
    nfa: Any
    given: Input

    @classmethod
    def of(cls, job: PatternJob, rows: Sequence[Row], most: int) -> _Sample:
        """Make events of rows, at most so many; one row more shows whether their key has others."""
        names = job.source.event_columns
        made = Row(*names)
        events = [made(*(row[name] for name in names)) for row in rows]
        times = [row[_TIME] for row in rows]
        keys = [
            grouping_key(tuple(row[column.column] for column in job.source.keys)) for row in rows
        ]
        keys = [key[0] if len(key) == 1 else key or None for key in keys]
        is_cut = len(rows) > most and keys[most - 1] == keys[most]
        cut = (keys[most - 1], times[most - 1]) if is_cut else None
        rows, events, times, keys = rows[:most], events[:most], times[:most], keys[:most]
        answers = {
            id(atom.condition): {
                id(event): row[_answer(number)] for event, row in zip(events, rows, strict=True)
            }
            for number, atom in enumerate(spark_atoms(job.nfa))
        }

        def answered(condition: ExpressionCondition) -> Evaluated:
            known = answers[id(condition)]
            return Evaluated(condition.text, lambda event: known[id(event)])

        pattern = evaluated_by(job.pattern, answered)
        nfa = NFACompiler.compile(pattern, timeoutHandling=True)
        nfa.open(RuntimeContext())
        order = None if isinstance(job.comparator, OrderColumns) else job.comparator
        return cls(pattern, nfa, Input(events, times, keys, order=comparator_key(order), cut=cut))


# --- counts over all events


@attrs.frozen
class _Counts:
    """What Spark counts: events, keys, what lacks a time or a key, and where conditions hold."""

    events: int
    keys: int
    without_time: int
    without_key: int
    holds: dict[tuple[str, str], int]

    @classmethod
    def of(cls, job: PatternJob, events: DataFrame) -> _Counts:
        """Count, in one job."""
        atoms = spark_atoms(job.nfa)
        no_key = F.lit(False)
        for number, column in enumerate(job.source.keys):
            is_null = F.col(quoted(column.column)).isNull()
            no_key = is_null if number == 0 else no_key & is_null
        counted_ = [
            F.count(F.lit(1)),
            F.approx_count_distinct(HASH),
            F.count_if(F.col(_TIME).isNull()),
            F.count_if(no_key),
            *(F.count_if(F.col(_answer(number))) for number in range(len(atoms))),
        ]
        found = events.agg(*(c.alias(f"c{n}") for n, c in enumerate(counted_))).collect()[0]
        texts = [(atom.stage, repr(atom.condition)) for atom in atoms]
        holds = {at: int(count) for at, count in zip(texts, found[4:], strict=True)}
        events_, keys, without_time, without_key = map(int, found[:4])
        return cls(events_, keys, without_time, without_key, holds)

    @property
    def usable(self) -> int:
        """The number of events with a time."""
        return self.events - self.without_time

    def of_conditions(self, traced: list[ConditionCount]) -> list[ConditionCount]:
        """Return counts of conditions with those over all events, where Spark has them."""
        return [
            attrs.evolve(one, holds=self.holds[one.stage, one.text], of=self.events)
            if (one.stage, one.text) in self.holds
            else one
            for one in traced
        ]
