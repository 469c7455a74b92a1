# SPDX-License-Identifier: Apache-2.0
"""How far keys and partial matches of a pattern on a DataFrame get."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.pattern import Pattern
from pyflinkcep.pattern.coercion import as_count
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.plan.patterns.diagnostics import funnel_of, reached_rows, waiting, why_not
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.results import SideOutputs
from pyflinkcep.trace.funnel import FunnelSettings, funnel_steps
from pyflinkcep.trace.why import WhyNot


@attrs.frozen(eq=False, kw_only=True, repr=False)
class ExplainedMatches(SideOutputs):
    """What :class:`PatternStream` says of events that do not match."""

    _dataframe: DataFrame

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
        most = as_count(maxEvents, "whyNot")
        if most < 1:
            raise InvalidArgumentError(
                f"whyNot: maxEvents={most}", "pass the number of events to trace, at least 1"
            )
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
        return waiting(self._job(timeout_handling=False), checkpointLocation, operatorId)

    def _job(self, *, timeout_handling: bool) -> PatternJob:
        raise NotImplementedError


@attrs.frozen(eq=False, kw_only=True, repr=False)
class CountedMatches(ExplainedMatches):
    """What :class:`PatternStream` counts of partial matches."""

    _pattern: Pattern

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
