# SPDX-License-Identifier: Apache-2.0
"""A pattern on a DataFrame: the time of events and the output of matches."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.engines.choice import EVENT_LISTS, LATEST
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import compressed_with_limit
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.functions import OutputTag, PatternProcessFunction, TimedOutPartialMatchHandler
from pyflinkcep.matching.order import TieOrder
from pyflinkcep.pattern import Pattern
from pyflinkcep.pattern.coercion import as_count
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.compressed import CompressedStream
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.outputs import match_rows
from pyflinkcep.spark.plan.patterns.diagnostics import funnel_of, reached_rows, waiting, why_not
from pyflinkcep.spark.plan.patterns.explanation import explanation
from pyflinkcep.spark.plan.patterns.job import PatternEvaluation, PatternJob
from pyflinkcep.spark.plan.patterns.prefilter import why_unfiltered
from pyflinkcep.spark.plan.settings import Schema, check_bounded
from pyflinkcep.spark.plan.source import EventSource, time_name
from pyflinkcep.spark.results import MatchStream
from pyflinkcep.traces.funnel import FunnelSettings, funnel_steps
from pyflinkcep.traces.why import WhyNot


@attrs.frozen(eq=False, kw_only=True, repr=False)
class PatternStream(MatchStream):
    """
    A pattern applied to a DataFrame; made by :meth:`pyflinkcep.CEP.pattern`.

    Immutable: every method returns a changed copy or a result. The examples of the methods go on
    from that of :meth:`pyflinkcep.CEP.pattern`, which made `found` of `events`.

    Notes
    -----
    Ports ``org.apache.flink.cep.PatternStream`` (Flink 2.3.0).
    """

    _pattern: Pattern
    _comparator: TieOrder | None = None
    _processing_time: bool = False
    _of_query: bool = False  # Whether a query runs as this pattern

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
        limited, wanted = self._settings.limit is not None, self._wants_all(self._dataframe)
        unfiltered = why_unfiltered(self._processing_time, limited, wanted)
        how = PatternEvaluation(self._pattern, self._dataframe, self._comparator, self._settings)
        text = explanation(
            self._pattern, self._dataframe, self._keys, self._time, unfiltered, how.explained()
        )
        print(text)

    # --- results

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
        consumer = match_rows(
            job.source, job.variables, timeoutTag, job.nfa, of_query=self._of_query
        )
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
        if self._settings.evaluation in (EVENT_LISTS, LATEST):
            raise NotSupportedError(
                f'evaluation="{self._settings.evaluation}" lists matches, and cannot compress them',
                'leave evaluation out, or use "nfa"',
            )
        if self._settings.limit is not None:
            raise compressed_with_limit()
        self._refuse_sides("compressed()")
        job = self._job(timeout_handling=False)
        job.check_compressible()
        return CompressedStream(job)

    # --- what does not match

    def whyNot(self, key: object = None, maxEvents: int = 2000) -> WhyNot:
        """
        Return why the pattern matches what it matches in a bounded DataFrame, and not more.

        Runs two jobs of its own: conditions are counted over all events by Spark; what became of
        partial matches is seen on a sample, which is traced on the driver. The answer says so.

        Parameters
        ----------
        key : object, optional
            The key to look at, a tuple if it has several columns; by default all.
        maxEvents : int
            The most events to trace: all of some keys, and the first of one more.

        Returns
        -------
        WhyNot
            How many of the events that could begin a match reached each stage; how the others
            ended, by reason with an example each; the closest; how often each condition holds; and
            advice. It is text and a picture; ``rows`` and ``schema`` make a DataFrame of it, and
            ``trace`` tells what became of each event.

        Raises
        ------
        NotSupportedError
            If the DataFrame is a stream.
        InvalidArgumentError
            If the key does not fit the key's columns.

        Examples
        --------
        >>> why = found.whyNot()
        >>> spark.createDataFrame(why.rows, why.schema).where("what = 'stage'").count()
        2
        >>> print(found.whyNot(key="bob").text())
        fail ⇒ ok: ...
        """
        if self._dataframe.isStreaming:
            raise NotSupportedError(
                "whyNot() is not available on a stream, whose events are gone when it is asked",
                "ask waiting(checkpointLocation), which shows what waits for what; or whyNot() on "
                "a bounded DataFrame of the same events",
            )
        hint = "pass the number of events to trace, at least 1"
        most = as_count(maxEvents, "whyNot: maxEvents", hint)
        if most < 1:
            raise InvalidArgumentError(f"whyNot: maxEvents={most}", hint)
        return why_not(self._job(timeout_handling=True), key, most)

    def waiting(self, checkpointLocation: str, operatorId: int = 0) -> DataFrame:
        """
        Return what a stream's checkpoint holds of the pattern, oldest first.

        A row for each partial match and each match that the skip strategy holds back; and one for
        the queue of each part of the keys, events that the watermark has not reached. The
        checkpoint is only read. Of a running query it shows the last micro-batch.

        Parameters
        ----------
        checkpointLocation : str
            The checkpoint of a query of this pattern.
        operatorId : int, at least 0
            The number of the pattern among the query's stateful operators; see
            :meth:`CepDataFrame.flush`.

        Returns
        -------
        DataFrame
            The key; ``what`` it is; ``after``, the last stage that took an event; ``waitsFor``, the
            stages that could take the next, what holds a match back, or what moves the watermark
            for a queue and which inputs bring nothing; the number of ``events``; when it ``began``,
            when its window ``ends``, and the ``watermark``, which must reach that. Times are
            timestamps if the events' are, otherwise epoch milliseconds.

        Raises
        ------
        NotSupportedError
            If the DataFrame is no stream.
        InputError
            If the checkpoint has no state of the pattern.

        Examples
        --------
        After the example of :meth:`CepDataFrame.flush`:

        >>> held = CEP.pattern(keyBy(stream, "user"), pattern).waiting(checkpoint)
        >>> for row in held.collect():
        ...     print(row.user, row.what, row.after, row.waitsFor, row.events, sep=" | ")
        bob | partial match | fail | ok | 1
        None | queued events | None | an event at ... or later; the last rows came in ...
        """
        if not self._dataframe.isStreaming:
            raise NotSupportedError(
                "waiting() needs a stream, got a bounded DataFrame",
                "write whyNot(), which looks at all events",
            )
        if self._settings.evaluation == LATEST:
            raise NotSupportedError(
                'waiting() with evaluation="latest", whose state has no partial matches of Flink',
                "leave evaluation out; the progress of the stream counts keys and events held",
            )
        return waiting(self._job(timeout_handling=False), checkpointLocation, operatorId)

    def funnel(
        self, by: str | Sequence[str] = (), quantiles: float | Sequence[float] = (0.5, 0.9)
    ) -> DataFrame:
        """
        Return how many keys reached each stage, how many did not go on, and how long it took.

        Exact: the automaton that finds the matches reports each stage that a partial match reaches.

        Parameters
        ----------
        by : str or list of str
            Columns to group by; a partial match is in the group of its first event.
        quantiles : float or list of float, from 0 to 1
            Which quantiles of the time to return; by default the median and the 90th percentile.

        Returns
        -------
        DataFrame
            For each group and stage the columns of the group; ``stage`` and its number, ``step``;
            ``keys``, the distinct keys that reached it; ``partialMatches``, how often it was
            reached; ``ofFirst`` and ``ofPrevious``, the keys as a share of those that began and of
            those at the stage before; ``dropOff``, the keys that were lost since; and for each
            quantile the milliseconds since the event before, ``p50Ms`` and ``p90Ms``. The stage
            before is the last one that is not optional. Without a key, shares and drop-off are of
            partial matches.

        Raises
        ------
        NotSupportedError
            If the DataFrame is a stream: see :meth:`reached`.
        InvalidArgumentError
            If `by` or `quantiles` are of the wrong kind.
        InputError
            If `by` names an unknown column.

        See Also
        --------
        pyflinkcep.charts.funnel_chart : The result as a picture.
        pyflinkcep.windowFunnel : The pattern of ClickHouse's function.

        Examples
        --------
        >>> found.funnel(quantiles=0.5).select("stage", "keys", "dropOff", "p50Ms").show()
        +-----+----+-------+------+
        |stage|keys|dropOff| p50Ms|
        +-----+----+-------+------+
        | fail|   2|      0|  NULL|
        |   ok|   1|      1|1000.0|
        +-----+----+-------+------+
        """
        settings = FunnelSettings.of("funnel", by, quantiles)
        if self._dataframe.isStreaming:
            raise NotSupportedError(
                "funnel() is not available on a stream, which never ends",
                "write reached(), whose rows a window of time counts: "
                "found.reached().groupBy(window('stageTimestamp', '1 hour'), 'stage').count()",
            )
        job = self._job(timeout_handling=False)
        steps = funnel_steps(self._pattern)
        rows = self._result(job, reached_rows(job, settings.by, steps, marks_keys=True))
        return funnel_of(rows, bool(job.source.keys), settings, steps)

    def reached(self, by: str | Sequence[str] = ()) -> CepDataFrame:
        """
        Return a row for each stage that a partial match reaches, bounded or on a stream.

        A stage is reached with the first event that a partial match takes for it. One that goes on
        as several counts as several from then on.

        Parameters
        ----------
        by : str or list of str
            Columns of a partial match's first event to add.

        Returns
        -------
        CepDataFrame
            The key; the columns of `by`; ``stage`` and its number, ``step``; ``stageTimestamp``,
            the time of the event; and the milliseconds ``sincePrevious``, the event before, null
            if there is none, and ``sinceFirst``. On a stream ``stageTimestamp`` carries the
            watermark.

        Raises
        ------
        NotSupportedError
            In processing time.
        InvalidArgumentError
            If `by` is not names of columns.
        InputError
            If `by` names an unknown column.

        Examples
        --------
        >>> rows = found.reached().drop("step", "sinceFirst").orderBy("user", "stageTimestamp")
        >>> rows.show()
        +----+-----+--------------+-------------+
        |user|stage|stageTimestamp|sincePrevious|
        +----+-----+--------------+-------------+
        | ann| fail|          1000|         NULL|
        | ann|   ok|          2000|         1000|
        | bob| fail|          2500|         NULL|
        +----+-----+--------------+-------------+
        """
        settings = FunnelSettings.of("reached", by)
        job = self._job(timeout_handling=False)
        return self._result(job, reached_rows(job, settings.by, funnel_steps(self._pattern)))

    # --- helpers

    @property
    def _time(self) -> str | None:
        return "processing time" if self._processing_time else self._time_column

    def _facts(self) -> dict[str, str]:
        return self._shown_as(self._pattern.describe(), self._keys, self._time)

    def _process(self, function: PatternProcessFunction, schema: Schema) -> CepDataFrame:
        job = self._job(timeout_handling=isinstance(function, TimedOutPartialMatchHandler))
        return self._applied(job, function, schema)

    def _job(self, *, timeout_handling: bool) -> PatternJob:
        """Compile the pattern and check it against the events."""
        nfa = NFACompiler.compile(self._pattern, timeout_handling)
        if not self._dataframe.isStreaming:
            check_bounded(nfa.description, self._settings.limit, self._processing_time)
        source = EventSource.of(
            self._dataframe,
            self._keys,
            self._time_column,
            nfa.description,
            processing_time=self._processing_time,
        )
        job = Job.of(source, self._settings)
        return PatternJob.analyse(job, self._pattern, nfa, self._comparator)
