# SPDX-License-Identifier: Apache-2.0
"""An EQL query on a DataFrame: the output of matches."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

from pyflinkcep.eql import Eql
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.functions import PatternProcessFunction
from pyflinkcep.matching.columns import quoted
from pyflinkcep.matching.latest import EVENTS
from pyflinkcep.matching.results import MATCH_TIME
from pyflinkcep.spark.cep_dataframe import CepDataFrame, Result, changed
from pyflinkcep.spark.plan.eql import EqlJob, sql_of
from pyflinkcep.spark.plan.outputs import match_rows
from pyflinkcep.spark.plan.settings import Schema
from pyflinkcep.spark.results import MatchStream
from pyflinkcep.spark.worker.consumers import MAIN


@attrs.frozen(eq=False, kw_only=True, repr=False)
class EqlStream(MatchStream):
    """
    An EQL query applied to a DataFrame; made by :meth:`pyflinkcep.CEP.eql`.

    Immutable: every method returns a changed copy or a result.

    Examples
    --------
    With `events` as in :func:`pyflinkcep.keyBy`; the examples of the methods go on from here:

    >>> rule = 'sequence by user with maxspan=1m [fail where true] [ok where true]'
    >>> sequences = CEP.eql(events, rule, timestamp="ts", category="result")
    """

    _query: Eql
    _category: str
    _tiebreaker: str | None

    def toDF(self) -> CepDataFrame:
        """
        Return each match as a row.

        Returns
        -------
        CepDataFrame
            The key, named as the fields after ``by`` of the first step; ``matchTimestamp``, the
            time of the last event; and ``events``, an array of structs of the events' columns, null
            for a step of missing events. Rows are in no particular order, except with ``head`` and
            ``tail``.

        Raises
        ------
        InputError
            If a field is missing or of an unsupported type.
        NotSupportedError
            If the DataFrame is a stream, and the query has ``head`` or ``tail``.

        Examples
        --------
        >>> sequences.toDF().selectExpr("user", "matchTimestamp", "events.ts").show()
        +----+--------------+------------+
        |user|matchTimestamp|          ts|
        +----+--------------+------------+
        | ann|          2000|[1000, 2000]|
        +----+--------------+------------+
        """
        job = self._job()
        pipes = job.model.pipes
        if not job.model.is_sequence:
            return CepDataFrame(Result.of(self._piped(self._single(job), job), job.job.name))
        consumer = match_rows(job.source, [EVENTS])
        if pipes:  # by which matches of one time are ordered
            consumer.event_columns = [*consumer.event_columns, *job.order_names]
            consumer.schemas[MAIN] = _with_fields(consumer.schemas[MAIN], job.order_fields())
        found = self._result(job, consumer)
        is_missing = [step.is_missing for step in job.model.expanded]
        if not pipes and not any(is_missing):
            return found
        return changed(found, lambda rows: _placed(self._piped(rows, job), is_missing))

    def _single(self, job: EqlJob) -> DataFrame:
        """Return the rows of single events."""
        events = job.single_events()
        time = F.col(quoted(job.source.time_column or ""))
        event = F.struct(*(F.col(quoted(name)) for name in job.columns), *job.order_columns())
        return events.select(time.alias(MATCH_TIME), F.array(event).alias(EVENTS))

    def _piped(self, rows: DataFrame, job: EqlJob) -> DataFrame:
        """Return the first or last of the matches, and their events without numbers."""
        if not job.model.pipes:
            return rows
        if rows.isStreaming:
            raise NotSupportedError(
                "head and tail of a stream, which has no end",
                "leave them out, or use them on what it writes",
            )
        last = F.element_at(EVENTS, -1)
        order = [F.col(MATCH_TIME), *(last.getField(name) for name in job.order_names)]
        order += job.key_places() if job.model.is_sequence else []
        first = [column.asc_nulls_last() for column in order]
        for pipe in job.model.pipes:
            wanted = first if pipe.is_head else [column.desc_nulls_first() for column in order]
            rows = rows.orderBy(*wanted).limit(pipe.count)
        return rows.orderBy(*first).withColumn(
            EVENTS,
            F.transform(
                F.col(EVENTS),
                lambda event: F.struct(*(event.getField(name).alias(name) for name in job.columns)),
            ),
        )

    def explain(self) -> None:
        """
        Print how the query will run: its steps, what is shuffled, and each condition as SQL.

        Examples
        --------
        >>> sequences.explain()
        EQL sequence
          1. fail by user
          2. ok by user
        maxspan: 1 min
        at most one run for each key and step
        shuffled: ((`result` = 'fail') OR (`result` = 'ok'))
        """
        self._query.explain()
        job = self._job()
        what = "shuffled" if job.model.is_sequence else "events"
        print(f"{what}: {sql_of(job.filter)}")

    def _process(self, function: PatternProcessFunction, schema: Schema) -> CepDataFrame:
        job = self._job()
        if not job.model.is_sequence or job.model.pipes:
            raise NotSupportedError(
                "a function of each match of a query about single events, or with head or tail",
                "use toDF(), and Spark's functions on its rows",
            )
        return self._applied(job, function, schema)

    # --- helpers

    def _facts(self) -> dict[str, str]:
        keys: Sequence[str | Column] = [key.path for key in self._query.model.steps[0].keys]
        return self._shown_as(" ".join(self._query.text.split()), keys, self._time_column)

    def _job(self) -> EqlJob:
        return EqlJob.analyse(
            self._query,
            self._dataframe,
            self._time_column,
            self._category,
            self._tiebreaker,
            self._settings,
        )


def _with_fields(schema: StructType, more: Sequence[StructField]) -> StructType:
    """Return the schema of matches whose events have more fields."""
    *others, events = schema.fields
    assert isinstance(events.dataType, ArrayType)
    event = events.dataType.elementType
    assert isinstance(event, StructType)
    whole = StructType([*event.fields, *more])
    return StructType([*others, StructField(EVENTS, ArrayType(whole, False), False)])


def _placed(rows: DataFrame, is_missing: Sequence[bool]) -> DataFrame:
    """Return matches with null in the place of missing events."""
    if not any(is_missing):
        return rows
    places, taken = [], 0
    for missing in is_missing:
        places.append(F.lit(None) if missing else F.col(EVENTS).getItem(taken))
        taken += not missing
    return rows.withColumn(EVENTS, F.array(*places))
