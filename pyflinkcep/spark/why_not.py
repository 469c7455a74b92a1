# SPDX-License-Identifier: Apache-2.0
"""Why a pattern on a DataFrame does not match."""

from __future__ import annotations

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.pattern.coercion import as_count
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.patterns.waiting import waiting
from pyflinkcep.spark.plan.patterns.why_not import why_not
from pyflinkcep.spark.side_outputs import SideOutputs
from pyflinkcep.trace.why import WhyNot

__all__ = ["ExplainedMatches"]


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
