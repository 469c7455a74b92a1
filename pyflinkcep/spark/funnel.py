# SPDX-License-Identifier: Apache-2.0
"""How far keys and partial matches of a pattern on a DataFrame get."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.plan.patterns.funnel import funnel_of, reached_rows
from pyflinkcep.spark.why_not import ExplainedMatches
from pyflinkcep.trace.funnel import FunnelSettings, funnel_steps

__all__ = ["CountedMatches"]


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
