# SPDX-License-Identifier: Apache-2.0
"""A query on a DataFrame: the time of events and the output of matches."""

from __future__ import annotations

from datetime import timedelta

import attrs

from pyflinkcep.engines.choice import (
    AUTO,
    AUTOMATON,
    Evaluation,
    chosen,
    chosen_for_compressed,
    is_contiguous,
)
from pyflinkcep.engines.flink.operator import compressed_with_limit
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.functions import PatternProcessFunction, TimedOutPartialMatchHandler
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Query, Totals
from pyflinkcep.sase.types import one_line
from pyflinkcep.spark.cep_dataframe import CepDataFrame, changed
from pyflinkcep.spark.compressed import CompressedStream
from pyflinkcep.spark.pattern_stream import PatternStream
from pyflinkcep.spark.plan.outputs import match_rows
from pyflinkcep.spark.plan.queries.explanation import analyses, first_events, query_explanation
from pyflinkcep.spark.plan.queries.job import QueryJob, analysed_on, attribute_kinds, query_keys
from pyflinkcep.spark.plan.queries.returns import returned
from pyflinkcep.spark.plan.settings import Schema
from pyflinkcep.spark.plan.source import time_name
from pyflinkcep.spark.results import MatchStream
from pyflinkcep.traces.why import WhyNot


@attrs.frozen(eq=False, kw_only=True, repr=False)
class QueryStream(MatchStream):
    """
    A query applied to a DataFrame; made by :meth:`pyflinkcep.CEP.pattern`.

    Immutable: every method returns a changed copy or a result.

    Examples
    --------
    With `events` as in :func:`pyflinkcep.keyBy`; the examples of the methods go on from here:

    >>> query = parse("PATTERN SEQ(fail f, ok o) WHERE [user] WITHIN 1 minute")
    >>> logins = CEP.pattern(events, query, type="result").inEventTime("ts")
    """

    _analysed: AnalysedQuery

    def inEventTime(self, column: str | None = None) -> QueryStream:
        """
        Order events by their event time.

        Parameters
        ----------
        column : str, optional
            A column of type timestamp, timestamp_ntz, or bigint (epoch milliseconds). By default,
            on a stream, the one that ``withWatermark`` names.

        Examples
        --------
        >>> CEP.pattern(events, query, type="result").inEventTime("ts")
        QueryStream(pattern: PATTERN ..., input: bounded [user: ...], key: user, time: ts)
        """
        timed = attrs.evolve(self, time_column=time_name(column, one_line(self._query)))
        return timed if self._query.before is None else timed._after(self._query.before)

    def _after(self, before: Query) -> QueryStream:
        """Return the query on the events of the one before THEN."""
        if self._dataframe.isStreaming:
            raise NotSupportedError(
                "a query with THEN is not available on a stream",
                "run them one after another: CEP.pattern(first.toDF().withEventTime("
                f'"{EVENT_TIME}"), second)',
            )
        columns = {column.name for column in before.columns or ()}
        if not all(isinstance(key, str) and key in columns for key in self._keys):
            raise InvalidArgumentError(
                "keyBy with a query before THEN that does not return the key",
                "name the key in RETURN EVENT, or write [attribute] in place of keyBy",
            )
        first = attrs.evolve(
            self, analysed=analysed_on(self._dataframe, before, self._analysed.type_column)
        )
        earlier = first if before.before is None else first._after(before.before)
        settings = attrs.evolve(self._settings, output="all")
        events = attrs.evolve(earlier, settings=settings).toDF().toDF()
        after = attrs.evolve(self._query, before=None)
        return attrs.evolve(
            self,
            dataframe=events,
            analysed=analysed_on(events, after, EVENT_TYPE),
            time_column=EVENT_TIME,
        )

    def explain(self, analyze: bool = False, sample: int = 0) -> None:
        """
        Print how the query will run.

        It shows which evaluation was chosen and why, where each condition is evaluated, what is
        dropped before the shuffle, and how input without a key is cut. It runs no job by itself.

        Parameters
        ----------
        analyze : bool
            Whether to run the query on all events, without output, and to print what happened: the
            estimates by which an evaluation was chosen, candidates, live and merged runs, and the
            CPU time. What would run as a pattern is analyzed by the query's own automaton.
        sample : int, optional
            To read so many events, the first that Spark finds (``limit``), and print counts, join
            order, shares of events and pairs that pass conditions, and the costs compared.

        Raises
        ------
        InvalidArgumentError
            If `sample` is not a number of events.
        NotSupportedError
            If it is to analyze or sample a stream.

        Examples
        --------
        >>> logins.explain()
        SASE+: SEQ(fail f, ok o)
          evaluation: eventLists (single events under skip_till_any_match in a window)
          where events say that it costs less: nfa
          window: 1 min from the first event to the last, inclusive
          key: user
          shuffled: ((`result` = 'fail') OR (`result` = 'ok')) AND (`user` IS NOT NULL)
        Runs distinguished by
          after f: the time of its first event
        """
        how = self._how()
        job = self._job(how)
        some = attrs.evolve(self, dataframe=first_events(self._dataframe, sample))._job(how)
        found = analyses(job if analyze else None, some if sample else None, sample)
        print(query_explanation(job, how, self._runs_as_pattern(), found))

    def toDF(self) -> CepDataFrame:
        """
        Return each match as a row.

        Returns
        -------
        CepDataFrame
            With SLIDE, what :meth:`CompressedStream.aggregate` returns for these windows; with
            RETURN, its columns. Otherwise the key columns, including those of ``[attr]``;
            ``matchTimestamp``, the time of the last event; and for each variable an array of
            structs of the events' columns.

        Raises
        ------
        InputError
            If a column is missing or of an unsupported type.
        NotSupportedError
            If events left out go to a side output and the query has RETURN, HAVING or SLIDE.

        Examples
        --------
        >>> logins.toDF().selectExpr("user", "matchTimestamp", "f.ts AS failed").show()
        +----+--------------+------+
        |user|matchTimestamp|failed|
        +----+--------------+------+
        | ann|          2000|[1000]|
        +----+--------------+------+
        """
        how = self._how()
        if self._query.totals is not None:
            return self._totalled(self._query.totals, how)
        pattern = self._as_pattern()
        if pattern is not None:
            return self._returned(pattern.toDF())
        job = self._job(how)
        return self._returned(self._result(job, match_rows(job.source, self._query.variables)))

    def _process(self, function: PatternProcessFunction, schema: Schema) -> CepDataFrame:
        self._refuse_totals("a function of each match")
        if self._query.having is not None:
            raise NotSupportedError(
                "HAVING does not apply to a function of the match",
                "filter in the function, or use toDF()",
            )
        if isinstance(function, TimedOutPartialMatchHandler):
            raise NotSupportedError(
                "a function of timeouts does not apply to a query: queries report no timed-out "
                "partial matches",
                "write a Pattern with within(timedelta(...)), or leave the function out",
            )
        how = self._how()
        pattern = self._as_pattern()
        if pattern is not None:
            return pattern._process(function, schema)
        return self._applied(self._job(how), function, schema)

    def compressed(self) -> CompressedStream:
        """
        Return all matches without listing them: to count, aggregate and unpack.

        Raises
        ------
        InvalidArgumentError
            If the query has HAVING, or not all matches are requested.
        NotSupportedError
            If an evaluation was requested that lists the matches, ``maxPartialMatches``, or a side
            output.

        Examples
        --------
        >>> logins.compressed().count()
        1
        """
        self._refuse_totals("compressed()")
        self._refuse_sides("compressed()")
        return CompressedStream(self._job(self._how_compressed()))

    def whyNot(self, key: object = None, maxEvents: int = 2000) -> WhyNot:
        """
        Return why the query matches what it matches in a bounded DataFrame, and not more.

        Looks at the pattern that the query is; see :meth:`PatternStream.whyNot`.

        Parameters
        ----------
        key : object, optional
            The key to look at, a tuple if it has several columns; by default all.
        maxEvents : int
            The most events to trace: all of some keys, and the first of one more.

        Raises
        ------
        NotSupportedError
            If the DataFrame is a stream, or the query is no pattern.

        Examples
        --------
        >>> logins.whyNot().facts.matches
        1
        """
        if (problem := self._analysed.why_no_pattern) is not None:
            raise NotSupportedError(
                f"whyNot() needs a query that is a pattern: {problem}",
                "ask a part of it that is one, or explain(), which says how the query runs",
            )
        return self._pattern().whyNot(key, maxEvents)

    # --- helpers

    @property
    def _query(self) -> Query:
        return self._analysed.query

    def _facts(self) -> dict[str, str]:
        keys = query_keys(self._query, self._keys)
        return self._shown_as(" ".join(str(self._query).split()), keys, self._time_column)

    def _returned(self, matches: CepDataFrame) -> CepDataFrame:
        """Return the matches that satisfy HAVING, with the columns of RETURN."""
        query = self._query
        if query.having is None and query.columns is None:
            return matches
        if len(matches.outputs) > 1:
            raise NotSupportedError(
                "RETURN and HAVING do not support a side output",
                "leave them out of the query and use select() or flatSelect()",
            )
        return changed(matches, lambda rows: returned(query, rows))

    def _totalled(self, totals: Totals, how: Evaluation) -> CepDataFrame:
        """Return the totals of windows."""
        assert self._query.window is not None
        self._refuse_sides("SLIDE")
        return CompressedStream(self._job(how)).aggregate(
            *totals.aggregates,
            window=timedelta(milliseconds=self._query.window),
            slide=timedelta(milliseconds=totals.slide),
        )

    def _refuse_totals(self, what: str) -> None:
        """Refuse what is about single matches if these are totalled."""
        if self._query.totals is not None:
            raise InvalidArgumentError(
                f"{what} of a query with SLIDE, which totals its matches",
                "use toDF(), or leave SLIDE out",
            )

    def _how_compressed(self) -> Evaluation:
        """Return how matches are found without listing them."""
        if self._query.having is not None or self._settings.output != "all":
            raise InvalidArgumentError(
                "compressed matches with HAVING or an output other than all",
                'leave HAVING out, use output="all", and filter what unpack() returns',
            )
        if self._settings.limit is not None:
            raise compressed_with_limit()
        return chosen_for_compressed(self._query, self._settings.evaluation)

    def _how(self) -> Evaluation:
        if self._query.totals is not None:
            return self._how_compressed()
        asked = self._settings
        return chosen(self._query, asked.evaluation, asked.output, asked.limit is not None)

    def _job(self, how: Evaluation) -> QueryJob:
        return QueryJob.analyse(
            self._analysed,
            self._dataframe,
            self._keys,
            self._time_column,
            self._settings,
            how.for_tables,
        )

    def _runs_as_pattern(self) -> bool:
        asked = self._settings
        is_free = self._dataframe.isStreaming or asked.limit is not None
        is_free = is_free or is_contiguous(self._query)
        is_chosen = asked.evaluation == AUTOMATON or (asked.evaluation == AUTO and is_free)
        if not is_chosen or asked.output != "all" or self._query.is_composed:
            return False  # the state of a composed query is events, so that any evaluation reads it
        return self._analysed.why_no_pattern is None

    def _as_pattern(self) -> PatternStream | None:
        """Return the job of the pattern with the same matches, if that is to run."""
        return self._pattern() if self._runs_as_pattern() else None

    def _pattern(self) -> PatternStream:
        """Return the job of the pattern that the query is."""
        attribute_kinds(self._query, self._dataframe, self._analysed.type_column)
        return PatternStream(
            dataframe=self._dataframe,
            keys=query_keys(self._query, self._keys),
            pattern=self._analysed.pattern,
            time_column=self._time_column,
            sides=self._sides,
            settings=attrs.evolve(self._settings, evaluation=AUTOMATON, allows_null_keys=True),
            of_query=True,
        )
