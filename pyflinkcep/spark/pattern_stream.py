# SPDX-License-Identifier: Apache-2.0
"""A pattern on a DataFrame: the time of events and the output of matches."""

from __future__ import annotations

from typing import overload

import attrs
from pyspark.sql import Column

from pyflinkcep.engines.choice import EVENT_LISTS
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.engines.flink.operator.cep_operator import compressed_with_limit
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.functions import (
    OutputTag,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
    as_process_function,
    flat_select_adapter,
    select_adapter,
)
from pyflinkcep.matching.layout import taking_stages
from pyflinkcep.matching.order import TieOrder
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.compressed import CompressedStream
from pyflinkcep.spark.diagnostics import CountedMatches
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.outputs import (
    match_rows,
)
from pyflinkcep.spark.plan.patterns.explanation import explanation
from pyflinkcep.spark.plan.patterns.job import PatternEvaluation, PatternJob
from pyflinkcep.spark.plan.patterns.prefilter import why_unfiltered
from pyflinkcep.spark.plan.queries.compressed import CompressedPattern
from pyflinkcep.spark.plan.settings import (
    FlatSelect,
    FlatTimeout,
    Process,
    Schema,
    Select,
    SelectCall,
    Timeout,
    check_bounded,
    with_signature,
)
from pyflinkcep.spark.plan.source import EventSource, time_name
from pyflinkcep.spark.results import stream_facts


@attrs.frozen(eq=False, kw_only=True, repr=False)
class PatternStream(CountedMatches):
    """
    A pattern applied to a DataFrame; made by :meth:`pyflinkcep.CEP.pattern`.

    Immutable: every method returns a changed copy or a result. The examples of the methods go on
    from that of :meth:`pyflinkcep.CEP.pattern`, which made `found` of `events`.

    Notes
    -----
    Ports ``org.apache.flink.cep.PatternStream`` (Flink 2.3.0).
    """

    _keys: tuple[str | Column, ...]
    _pattern: Pattern
    _comparator: TieOrder | None = None
    _time_column: str | None = None
    _processing_time: bool = False
    _limit: PartialMatchLimit | None = None
    _evaluation: str = "auto"
    _of_query: bool = False

    # --- time

    def inEventTime(self, column: str | None = None) -> PatternStream:
        """
        Order events by their event time; the default.

        Parameters
        ----------
        column : str, optional
            A column of type timestamp, timestamp_ntz, or bigint (epoch milliseconds). By default
            the one with the DataFrame's watermark. A null in it fails the job.

        Examples
        --------
        >>> CEP.pattern(events, pattern).inEventTime("ts")
        PatternStream(pattern: fail ⇒ ok, input: bounded [user: ...], time: ts)
        """
        name = time_name(column, self._pattern.describe())
        return attrs.evolve(self, time_column=name, processing_time=False)

    def inProcessingTime(self) -> PatternStream:
        """
        Order events by arrival, with windows that end by the clock; for streams only.

        Examples
        --------
        >>> CEP.pattern(keyBy(stream, "user"), pattern).inProcessingTime().toDF().isStreaming
        True
        """
        return attrs.evolve(self, processing_time=True)

    def explain(self) -> None:
        """
        Print how the pattern will run.

        It shows the pattern's states and edges, where each condition is evaluated, which events are
        dropped before the shuffle and why others are not, and warns of partial matches that never
        end. Runs no job, and needs no time column yet.

        Raises
        ------
        MalformedPatternException
            If the pattern cannot run.

        Examples
        --------
        >>> found.explain()
        CEP: fail ⇒ ok
          input: bounded, key user, ordered by ts ...
        Conditions
          fail  result = 'fail'  in Spark, before Python sees the event
          ok    result = 'ok'    in Spark, before Python sees the event
        Dropped before the shuffle
          no event: stage 'ok' must follow directly: any event in between ends the partial match
        """
        time = "processing time" if self._processing_time else self._time_column
        unfiltered = why_unfiltered(
            self._processing_time, self._limit is not None, self._wants_all(self._dataframe)
        )
        print(
            explanation(
                self._pattern,
                self._dataframe,
                self._keys,
                time,
                unfiltered,
                self._evaluation_of().explained(),
            )
        )

    # --- results

    @overload
    def select(self, function: Select, schema: Schema) -> CepDataFrame: ...
    @overload
    def select(
        self, function: Select, schema: Schema, *, outputTag: OutputTag, timeoutFunction: Timeout
    ) -> CepDataFrame: ...
    @overload
    def select(
        self, outputTag: OutputTag, timeoutFunction: Timeout, function: Select, schema: Schema
    ) -> CepDataFrame: ...
    @with_signature
    def select(self, *arguments: object, **keywords: object) -> CepDataFrame:
        """
        Turn each match into a row.

        Call it as ``select(function, schema)``; to turn timed-out partial matches into rows too,
        add ``outputTag=`` and ``timeoutFunction=``, or write Flink's
        ``select(outputTag, timeoutFunction, function, schema)``.

        Parameters
        ----------
        function : PatternSelectFunction or callable
            Returns a row (tuple, dict or Row) for a match, a dict of stage name to Rows.
        schema : str or StructType
            The schema of the rows, as for PySpark's ``applyInPandas``.
        outputTag : OutputTag
            The side output for timeouts, with its schema.
        timeoutFunction : PatternTimeoutFunction or callable
            Returns a row for (partial match, timeout in epoch milliseconds).

        Returns
        -------
        CepDataFrame
            The rows, with access to the side outputs.

        Raises
        ------
        InvalidArgumentError
            If the call has neither form, or the schema cannot be parsed.
        MalformedPatternException
            If the pattern cannot run.
        InputError
            If the DataFrame lacks a column, or a condition does not fit it.

        Notes
        -----
        Ports ``PatternStream.select`` (Flink 2.3.0).
        Differs from Flink: the old form ``select(timeoutFunction, function)`` is refused.

        Examples
        --------
        >>> def delay(match):
        ...     return match["ok"][0].user, match["ok"][0].ts - match["fail"][0].ts
        >>> found.select(delay, "user string, delay bigint").collect()
        [Row(user='ann', delay=1000)]
        """
        call = SelectCall.of("select", arguments, keywords)
        return self._process(select_adapter(call.function, call.tag, call.timeout), call.schema)

    @overload
    def flatSelect(self, function: FlatSelect, schema: Schema) -> CepDataFrame: ...
    @overload
    def flatSelect(
        self,
        function: FlatSelect,
        schema: Schema,
        *,
        outputTag: OutputTag,
        timeoutFunction: FlatTimeout,
    ) -> CepDataFrame: ...
    @overload
    def flatSelect(
        self,
        outputTag: OutputTag,
        timeoutFunction: FlatTimeout,
        function: FlatSelect,
        schema: Schema,
    ) -> CepDataFrame: ...
    @with_signature
    def flatSelect(self, *arguments: object, **keywords: object) -> CepDataFrame:
        """
        Turn each match into any number of rows; called in the forms of :meth:`select`.

        Parameters
        ----------
        function : PatternFlatSelectFunction or callable
            Called with (match, out); it passes rows to ``out.collect``, yields or returns them.
        schema : str or StructType
            The schema of the rows.
        outputTag : OutputTag
            The side output for timeouts, with its schema.
        timeoutFunction : PatternFlatTimeoutFunction or callable
            Called with (partial match, timeout in epoch milliseconds, out), to add rows.

        Returns
        -------
        CepDataFrame
            The rows, with access to the side outputs.

        Examples
        --------
        >>> def rows(match, out):
        ...     for stage, events in match.items():
        ...         out.collect((stage, events[0].ts))
        >>> found.flatSelect(rows, "stage string, ts bigint").collect()
        [Row(stage='fail', ts=1000), Row(stage='ok', ts=2000)]
        """
        call = SelectCall.of("flatSelect", arguments, keywords)
        adapter = flat_select_adapter(call.function, call.tag, call.timeout)
        return self._process(adapter, call.schema)

    def process(self, function: Process, schema: Schema) -> CepDataFrame:
        """
        Pass each match to a process function.

        Parameters
        ----------
        function : PatternProcessFunction or callable
            Receives (match, ctx, out), and may yield rows too. Mix in
            ``TimedOutPartialMatchHandler`` for timeouts; side outputs of ``ctx.output`` are listed
            in the function's ``outputTags``.
        schema : str or StructType
            The schema of the rows it collects.

        Returns
        -------
        CepDataFrame
            The rows, with access to the side outputs.

        Examples
        --------
        >>> def rows(match, ctx, out):
        ...     out.collect((match["ok"][0].user, ctx.timestamp()))
        >>> found.process(rows, "user string, at bigint").collect()
        [Row(user='ann', at=2000)]
        """
        return self._process(as_process_function(function), schema)

    def toDF(self, timeoutTag: OutputTag | None = None) -> CepDataFrame:
        """
        Return each match as a row, for use with pure Spark SQL.

        Parameters
        ----------
        timeoutTag : OutputTag, optional
            A side output for timed-out partial matches; it needs no schema.

        Returns
        -------
        CepDataFrame
            The key columns; ``matchTimestamp``, the time of the last event or, for a match that
            had to wait, the end of its window; and for each stage an array of structs of the
            event's columns. Timeouts have the end of the window as ``timeoutTimestamp``.

        Examples
        --------
        >>> found.toDF().selectExpr("user", "matchTimestamp", "fail.ts AS failed").collect()
        [Row(user='ann', matchTimestamp=2000, failed=[1000])]
        """
        job = self._job(timeout_handling=timeoutTag is not None)
        stages = taking_stages(self._pattern, job.nfa)
        consumer = match_rows(job.source, stages, timeoutTag, job.nfa, of_query=self._of_query)
        return self._result(job, consumer)

    def compressed(self) -> CompressedStream:
        """
        Return all matches without listing them, to count, aggregate and unpack.

        For patterns without a skip strategy whose conditions read one event or are SQL over stages.
        Duplicates count as in ``toDF()``.

        Raises
        ------
        NotSupportedError
            If the pattern has a skip strategy or a condition that is a function of the context,
            there is a comparator, ``maxPartialMatches`` or a side output, or event lists were
            requested, which list the matches.

        Examples
        --------
        >>> found.compressed().count()
        1
        """
        if self._evaluation == EVENT_LISTS:
            raise NotSupportedError(
                'evaluation="eventLists" lists matches, and cannot compress them',
                'leave evaluation out, or use "nfa"',
            )
        if self._limit is not None:
            raise compressed_with_limit()
        self._refuse_sides("compressed()")
        return CompressedStream(CompressedPattern.of(self._job(timeout_handling=False)))

    # --- helpers

    def _facts(self) -> dict[str, str]:
        time = "processing time" if self._processing_time else self._time_column or ""
        return stream_facts(self._pattern.describe(), self._dataframe, self._keys, time)

    def _process(self, function: PatternProcessFunction, schema: Schema) -> CepDataFrame:
        job = self._job(timeout_handling=isinstance(function, TimedOutPartialMatchHandler))
        return self._applied(job, function, schema)

    def _job(self, *, timeout_handling: bool) -> PatternJob:
        """Compile the pattern and check it against the events."""
        nfa = NFACompiler.compile(self._pattern, timeout_handling)
        if not self._dataframe.isStreaming:
            check_bounded(nfa.description, self._limit, self._processing_time)
        source = EventSource.of(
            self._dataframe,
            self._keys,
            self._time_column,
            nfa.description,
            processing_time=self._processing_time,
        )
        return PatternJob.analyse(
            Job.of(source, self._settings),
            self._pattern,
            nfa,
            self._comparator,
            self._limit,
            self._evaluation,
        )

    def _evaluation_of(self) -> PatternEvaluation:
        return PatternEvaluation(
            self._pattern, self._dataframe, self._comparator, self._limit, self._evaluation
        )
