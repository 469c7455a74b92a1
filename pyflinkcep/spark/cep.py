# SPDX-License-Identifier: Apache-2.0
"""The entry point: ``CEP.pattern(keyBy(events, "user"), pattern)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, overload

import attrs
from pyspark.sql import Column, DataFrame, SparkSession

from pyflinkcep.engines.choice import AUTOMATON, check_pattern_evaluation, chosen
from pyflinkcep.engines.flink.operator import Comparator, PartialMatchLimit
from pyflinkcep.eql import Eql
from pyflinkcep.errors import (
    Dialect,
    EvaluationOfPattern,
    EvaluationOfQuery,
    InvalidArgumentError,
    MissingConditionError,
    OnNullKey,
    OnPatternChange,
    OnTooManyPartialMatches,
    Output,
    check_columns,
    suggesting,
)
from pyflinkcep.matching.columns import quoted
from pyflinkcep.matching.order import TieOrder
from pyflinkcep.matching.results import MATCH_TIME
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.rule_log import RuleLog
from pyflinkcep.rules.rule_set import Rules, rules_of
from pyflinkcep.sase import parse
from pyflinkcep.sase.model import Query
from pyflinkcep.sigma import SigmaRules
from pyflinkcep.spark.arrow.internals import is_event_time
from pyflinkcep.spark.cep_dataframe import CepDataFrame, Result
from pyflinkcep.spark.eql_stream import EqlStream
from pyflinkcep.spark.pattern_stream import PatternStream
from pyflinkcep.spark.plan.analysis import check_analysable
from pyflinkcep.spark.plan.queries.job import analysed_on
from pyflinkcep.spark.plan.settings import (
    JobSettings,
    check_comparator,
    check_for_pattern,
    check_for_query,
    check_session,
    not_a_dataframe,
)
from pyflinkcep.spark.plan.sigma import alerts_of
from pyflinkcep.spark.plan.source import KeyedDataFrame, order_columns
from pyflinkcep.spark.plan.suppression import SuppressionJob
from pyflinkcep.spark.query_stream import QueryStream
from pyflinkcep.spark.results import matchId, stream_result
from pyflinkcep.spark.rule_stream import DynamicRuleStream, RuleStream
from pyflinkcep.spark.statements import SqlOptions, run_statement
from pyflinkcep.spark.worker.consumers import MAIN
from pyflinkcep.tables.recognize import clause_limit
from pyflinkcep.tables.suppression import suppression_keys
from pyflinkcep.time import duration_ms


@suggesting
def keyBy(
    dataframe: DataFrame, *columns: str | Column, partitioned: bool = False
) -> KeyedDataFrame:
    """
    Choose the key columns of events: matches never mix keys.

    Parameters
    ----------
    dataframe : DataFrame
        The events.
    *columns : str or Column
        At least one: column names, fields such as ``"user.id"``, or expressions. Any type
        that Spark can group by; on bounded input null is a key like any other.
    partitioned : bool
        For bounded input on Spark: whether all events of a key are already in one partition, as
        after ``df.repartition("user")`` or reading a file per user. Then events are not shuffled.
        A key in two partitions fails the job.

    Returns
    -------
    KeyedDataFrame
        The input of :meth:`CEP.pattern`.

    Raises
    ------
    InvalidArgumentError
        If there is no column, or the events are not a DataFrame.

    Examples
    --------
    >>> rows = [("ann", 1000, "fail"), ("ann", 2000, "ok"), ("bob", 2500, "fail")]
    >>> events = spark.createDataFrame(rows, "user string, ts bigint, result string")
    >>> failed = Pattern.begin("fail").where("result = 'fail'")
    >>> CEP.pattern(keyBy(events, "user"), failed)
    PatternStream(pattern: fail, input: bounded [user: string, ...], key: user)

    Notes
    -----
    Ports the role of Flink's ``DataStream.keyBy``.
    """
    if not columns:
        raise InvalidArgumentError("keyBy without columns", "name at least one column")
    for column in columns:
        if not isinstance(column, str | Column):
            raise InvalidArgumentError(
                f"keyBy: expected column names or Columns, got {column!r}",
                "write keyBy(df, 'user')",
            )
    if not isinstance(partitioned, bool):
        raise InvalidArgumentError(
            f"partitioned: expected True or False, got {partitioned!r}",
            "write keyBy(df, 'user', partitioned=True)",
        )
    return KeyedDataFrame(_checked(dataframe), tuple(columns), partitioned)


def keyed(input: DataFrame | KeyedDataFrame) -> KeyedDataFrame:
    """Return events with their key; a DataFrame has none."""
    return input if isinstance(input, KeyedDataFrame) else KeyedDataFrame(_checked(input), ())


def _checked(dataframe: DataFrame) -> DataFrame:
    """Return the DataFrame; refuse anything else, with a hint how to convert it."""
    if isinstance(dataframe, CepDataFrame):
        return dataframe.toDF()
    if isinstance(dataframe, DataFrame):
        check_analysable(dataframe)
        return dataframe
    raise not_a_dataframe(dataframe)


class CEP:
    """
    Pattern matching on DataFrames.

    Notes
    -----
    Ports ``org.apache.flink.cep.CEP`` (Flink 2.3.0).
    """

    @overload
    @staticmethod
    def pattern(
        input: DataFrame | KeyedDataFrame,
        pattern: Pattern,
        comparator: Comparator | None = None,
        keyGroups: int = 128,
        onPatternChange: OnPatternChange = "fail",
        maxPartialMatches: int | None = None,
        onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
        *,
        evaluation: EvaluationOfPattern = "auto",
        orderBy: Sequence[str] | None = None,
        maxAhead: timedelta | str | None = None,
        name: str | None = None,
        parallelTasks: int | None = None,
        onNullKey: OnNullKey = "fail",
    ) -> PatternStream: ...

    @overload
    @staticmethod
    def pattern(
        input: DataFrame | KeyedDataFrame,
        pattern: Query,
        *,
        keyGroups: int = 128,
        onPatternChange: OnPatternChange = "fail",
        maxPartialMatches: int | None = None,
        type: str = "type",
        evaluation: EvaluationOfQuery = "auto",
        output: Output = "all",
        maxAhead: timedelta | str | None = None,
        name: str | None = None,
        parallelTasks: int | None = None,
        onNullKey: OnNullKey = "fail",
    ) -> QueryStream: ...

    @staticmethod
    def pattern(
        input: DataFrame | KeyedDataFrame,
        pattern: Pattern | Query,
        comparator: Comparator | None = None,
        keyGroups: int = 128,
        onPatternChange: OnPatternChange = "fail",
        maxPartialMatches: int | None = None,
        onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
        type: str = "type",
        evaluation: EvaluationOfPattern | EvaluationOfQuery = "auto",
        output: Output = "all",
        orderBy: Sequence[str] | None = None,
        maxAhead: timedelta | str | None = None,
        name: str | None = None,
        parallelTasks: int | None = None,
        onNullKey: OnNullKey = "fail",
    ) -> PatternStream | QueryStream:
        """
        Apply a pattern to events.

        Parameters
        ----------
        input : DataFrame or KeyedDataFrame
            The events, keyed by :func:`keyBy`; without a key, one task matches all events as one
            sequence.
        pattern : Pattern or SaseQuery
            The last stage, as the fluent calls return it, or a query of
            :mod:`pyflinkcep.sase`, which is also keyed by its own tests ``[attr]``.
        comparator : callable, optional
            For patterns: orders events of equal time (to the millisecond): a sort key of one Row,
            or a function of two Rows. Without it they keep the order (time to the microsecond,
            source partition, position).
        keyGroups : int, 1 to 32768
            For streams: the number of parts of the keyed state, fixed in the checkpoint like
            Flink's maximum parallelism in a savepoint.
        onPatternChange : {"fail", "restart"}
            For streams: whether to refuse a checkpoint of another pattern, or drop its partial
            matches.
        maxPartialMatches : int, at least 1, optional
            The most partial matches of a key, as a guard against runaway patterns. Unbounded by
            default. Of a query, under ``nfa`` only: those that no later condition can tell apart
            count as one, unless it runs as a pattern.
        onTooManyPartialMatches : {"fail", "dropOldest"}
            With `maxPartialMatches`: the policy for a key with more: fail the job or, on a stream,
            drop those that began first; the progress counts them as ``numPartialMatchesDropped``.
        type : str
            For queries: the column that holds an event's type.
        evaluation : {"auto", "nfa", "backtracking", "eventLists", "latest"}
            How to find the matches, which are the same. ``backtracking`` is for queries.
            ``latest``, for chains by ``followedBy``, has matches of its own: those of the latest
            partial match at each stage, in constant memory for each key.
            ``eventLists`` accepts only patterns that are chains of single stages joined by
            ``followedByAny``, on bounded events; ``auto`` uses it if such a pattern has a window
            and the order of matches cannot be seen.
        output : {"all", "onePerStart", "nonOverlapping"}
            For queries: all matches, the first of each start, or non-overlapping matches.
        orderBy : list of str, optional
            For patterns, instead of a comparator: the columns that order events of equal time, such
            as ``["seq", "price DESC NULLS LAST"]``. They are compared by Spark's rules, without
            making Rows.
        maxAhead : timedelta or str, optional
            For streams: how far the time of an event may be ahead of the others, such as
            ``"1 hour"``. From the latest time of earlier micro-batches on, times are followed as
            long as each is at most this after the one before; events beyond are dropped and counted
            as ``numAheadRecordsDropped``, or go to ``sideOutputAheadData``, and move no watermark.
            The first micro-batch begins with the most events that are no further apart. It may
            differ after a restart.
        name : str, optional
            The name of the job: in Spark's pages, and as ``CEP: <name>`` of a stream's counters in
            the query's progress, whatever is started or built again. Two patterns in one query need
            different names. By default the pattern as text, with a number if that is taken.
        parallelTasks : int, a power of two up to `keyGroups`, optional
            For streams: the most tasks that can work on the state at one time, fixed in the
            checkpoint. By default an eighth of the key groups, 16.
        onNullKey : {"fail", "drop"}
            What an event does whose time is null, or on a stream its key (all columns of it): fail
            the job, or be dropped, on bounded input too. A stream's progress counts dropped ones as
            ``numNullRecordsDropped``; ``sideOutputNullData`` returns them. For queries only the
            time counts: a null key is a key, and equals nothing in ``[attr]``.

        Returns
        -------
        PatternStream or QueryStream
            Its methods choose the time of events and the output of matches.

        Raises
        ------
        InvalidArgumentError
            If an argument is of the wrong kind.
        MissingConditionError
            If the events or the pattern are None.
        NotSupportedError
            If a keyword is for queries and this is a pattern, or the other way round.

        Examples
        --------
        With `events` as in :func:`keyBy`:

        >>> pattern = Pattern.begin("fail").where("result = 'fail'")
        >>> pattern = pattern.next("ok").where("result = 'ok'").within(Time.minutes(1))
        >>> found = CEP.pattern(keyBy(events, "user"), pattern).inEventTime("ts")
        >>> found.toDF().select("user", "matchTimestamp").show()
        +----+--------------+
        |user|matchTimestamp|
        +----+--------------+
        | ann|          2000|
        +----+--------------+
        """
        if input is None or pattern is None:
            raise MissingConditionError(
                "CEP.pattern needs a DataFrame and a pattern", "pass both, in this order"
            )
        settings = JobSettings(
            keyGroups,
            onPatternChange,
            max_ahead=maxAhead,
            name=name,
            on_null_key=onNullKey,
            parallel_tasks=parallelTasks,
            evaluation=evaluation,
            output=output,
        )
        if isinstance(pattern, Query):
            others = {
                "comparator": (comparator, None),
                "onTooManyPartialMatches": (onTooManyPartialMatches, "fail"),
                "orderBy": (orderBy, None),
            }
            check_for_query(pattern, type, others)
            limit = PartialMatchLimit.of(maxPartialMatches, "fail")
            chosen(pattern, evaluation, output, limit is not None)
            events = keyed(input)
            return QueryStream(
                dataframe=events.dataframe,
                keys=events.columns,
                analysed=analysed_on(events.dataframe, pattern, type),
                settings=attrs.evolve(settings, partitioned=events.partitioned, limit=limit),
            )
        if not isinstance(pattern, Pattern):
            raise InvalidArgumentError(
                f"expected a Pattern or a query, got {pattern.__class__.__name__}",
                "pass what Pattern.begin(...) and the calls on it return",
            )
        check_for_pattern({"type": (type, "type"), "output": (output, "all")})
        check_comparator(comparator, orderBy)
        limit = PartialMatchLimit.of(maxPartialMatches, onTooManyPartialMatches)
        events = keyed(input)
        order: TieOrder | None = comparator
        if orderBy is not None:
            order = order_columns(events.dataframe, orderBy, pattern.describe())
        check_pattern_evaluation(evaluation)
        return PatternStream(
            dataframe=events.dataframe,
            keys=events.columns,
            pattern=pattern,
            comparator=order,
            settings=attrs.evolve(settings, partitioned=events.partitioned, limit=limit),
        )

    @staticmethod
    def sql(
        spark: SparkSession,
        text: str,
        dialect: Dialect = "flink",
        keyGroups: int = 128,
        onPatternChange: OnPatternChange = "fail",
        maxPartialMatches: int | None = None,
        onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        maxAhead: timedelta | str | None = None,
        name: str | None = None,
        parallelTasks: int | None = None,
    ) -> CepDataFrame:
        """
        Run a SQL statement with MATCH_RECOGNIZE.

        Parameters
        ----------
        spark : SparkSession
            The session; the statement sees its tables and temporary views.
        text : str
            The statement: Spark's SQL, with ``table MATCH_RECOGNIZE ( … )`` after FROM or JOIN.
        dialect : {"flink", "standard"}
            The meaning of the clause: Flink SQL's, with its limits, or that of SQL:2016, with the
            whole grammar; on streams without what depends on later rows.
        keyGroups, onPatternChange, maxPartialMatches, onTooManyPartialMatches, maxAhead
            See :meth:`pattern`.
        name : str, optional
            See :meth:`pattern`. A further clause of the statement is named ``<name> (2)``.
        parallelTasks : int, optional
            See :meth:`pattern`.
        args : dict of str, or list, optional
            The values of parameters, as in ``spark.sql``: of ``:name``, or of each ``?`` in order.
            In PATTERN, ``?`` is a quantifier.

        Returns
        -------
        CepDataFrame
            The statement's rows. On a stream it has ``flush``, like the result of a pattern.

        Raises
        ------
        CepError
            If the statement is wrong or refused; raised before any job, with line and column, what
            is wrong, and what to write instead.

        Notes
        -----
        Flink's dialect is that of Flink SQL 2.3.0. What Flink silently answers wrongly (anchors,
        SUBSET) is refused. Differs from Flink: types are Spark's, so ``AVG`` of integers is a
        double.

        Examples
        --------
        >>> events.createOrReplaceTempView("logins")
        >>> clause = "PARTITION BY user ORDER BY ts MEASURES O.ts AS at PATTERN (F O)"
        >>> clause += " DEFINE F AS F.result = 'fail', O AS O.result = 'ok'"
        >>> CEP.sql(spark, f"SELECT * FROM logins MATCH_RECOGNIZE ({clause})").show()
        +----+----+
        |user|  at|
        +----+----+
        | ann|2000|
        +----+----+
        """
        settings = JobSettings(
            keyGroups,
            onPatternChange,
            max_ahead=maxAhead,
            name=name,
            parallel_tasks=parallelTasks,
            limit=clause_limit(dialect, maxPartialMatches, onTooManyPartialMatches),
            evaluation=AUTOMATON,
        )
        options = SqlOptions(dialect, settings, args)
        return run_statement(spark, text, options)

    @staticmethod
    def sase(
        spark: SparkSession,
        text: str,
        type: str = "type",
        evaluation: EvaluationOfQuery = "auto",
        output: Output = "all",
        keyGroups: int = 128,
        onPatternChange: OnPatternChange = "fail",
        maxAhead: timedelta | str | None = None,
        name: str | None = None,
        parallelTasks: int | None = None,
        maxPartialMatches: int | None = None,
        onNullKey: OnNullKey = "fail",
    ) -> QueryStream:
        """
        Apply a query to the table that it names after FROM.

        Parameters
        ----------
        spark : SparkSession
            The session with the table.
        text : str
            ``FROM trades PATTERN SEQ(…) …``.
        type, evaluation, output, keyGroups, onPatternChange, maxAhead, name, parallelTasks
            See :meth:`pattern`.
        maxPartialMatches, onNullKey
            See :meth:`pattern`.

        Raises
        ------
        InvalidArgumentError
            If the text is not a query with FROM.

        Examples
        --------
        >>> events.createOrReplaceTempView("logins")
        >>> text = "FROM logins PATTERN SEQ(fail f, ok o) WHERE [user] WITHIN 1 minute"
        >>> CEP.sase(spark, text, type="result").inEventTime("ts").toDF().columns
        ['user', 'matchTimestamp', 'f', 'o']
        """
        check_session(spark)
        query = parse(text)
        if query.source is None:
            raise InvalidArgumentError(
                "CEP.sase(spark, text) with a query without FROM",
                "begin it with FROM and a table, or use CEP.pattern(events, parse(text))",
            )
        return CEP.pattern(
            spark.table(query.source),
            attrs.evolve(query, source=None),
            keyGroups=keyGroups,
            onPatternChange=onPatternChange,
            type=type,
            evaluation=evaluation,
            output=output,
            maxAhead=maxAhead,
            name=name,
            parallelTasks=parallelTasks,
            maxPartialMatches=maxPartialMatches,
            onNullKey=onNullKey,
        )

    @staticmethod
    def sigma(input: DataFrame, rules: SigmaRules) -> DataFrame:
        """
        Apply Sigma rules to events, bounded or streaming.

        All rules are asked in one pass: literals on one field are looked for at once, and the rest
        of a rule is asked of the events that have them.

        Parameters
        ----------
        input : DataFrame
            The events; a field ``a.b`` is the column of this name, or the field of a struct.
        rules : SigmaRules
            The rules, as :func:`sigmaRules` reads them, without correlations.

        Returns
        -------
        DataFrame
            A row for each event and rule that it satisfies: the rule's name, title and level, and
            the event as a struct.

        Raises
        ------
        MissingConditionError
            If an argument is None.
        NotSupportedError
            If there is a correlation among the rules, or a rule needs what is not supported.
        InputError
            If a rule or a log source reads a field that the events lack.

        Examples
        --------
        >>> text = '''
        ... title: Failed login
        ... name: failed
        ... logsource: {category: authentication}
        ... detection: {selection: {result: FAIL}, condition: selection}
        ... '''
        >>> rules = sigmaRules([text], logsources={"authentication": "true"})
        >>> CEP.sigma(events, rules).select("rule", "event.user", "event.ts").show()
        +------+----+----+
        |  rule|user|  ts|
        +------+----+----+
        |failed| ann|1000|
        |failed| bob|2500|
        +------+----+----+
        """
        if input is None or rules is None:
            raise MissingConditionError(
                "CEP.sigma needs a DataFrame and rules", "pass both, in this order"
            )
        if isinstance(input, KeyedDataFrame) or not isinstance(rules, SigmaRules):
            raise InvalidArgumentError(
                "CEP.sigma: expected a DataFrame and the result of sigmaRules(…)",
                "write CEP.sigma(frame, sigmaRules(folder, logsources=…))",
            )
        return alerts_of(_checked(input), rules)

    @staticmethod
    def eql(
        input: DataFrame,
        query: str | Eql,
        timestamp: str | None = None,
        category: str = "type",
        tiebreaker: str | None = None,
        *,
        keyGroups: int = 128,
        onPatternChange: OnPatternChange = "fail",
        maxAhead: timedelta | str | None = None,
        name: str | None = None,
        parallelTasks: int | None = None,
        onNullKey: OnNullKey = "fail",
    ) -> EqlStream:
        """
        Apply a query of Elastic's Event Query Language to events.

        Parameters
        ----------
        input : DataFrame
            The events; ``process.name`` is the column of this name, or the field of a struct. The
            key is in the query, after ``by``.
        query : str or Eql
            The query: single events, or a sequence.
        timestamp : str, optional
            A column of type timestamp, timestamp_ntz, or bigint (epoch milliseconds). By default,
            on a stream, the one that ``withWatermark`` names.
        category : str
            The field of an event's category, which the query names before ``where``.
        tiebreaker : str, optional
            The field that orders events of equal time, those without a value last. Without it, and
            where it is equal, they keep the order of their source.
        keyGroups, onPatternChange, maxAhead, name, parallelTasks
            See :meth:`pattern`.
        onNullKey : {"fail", "drop"}
            What an event does that a sequence wants and whose time is null: fail the job, or be
            dropped.

        Returns
        -------
        EqlStream
            Its methods choose the output of matches.

        Raises
        ------
        InvalidArgumentError
            If the query is wrong; the message says where.
        NotSupportedError
            If it has what is not supported, named.

        Examples
        --------
        >>> rule = 'sequence by user with maxspan=1m [fail where true] [ok where true]'
        >>> ruled = CEP.eql(events, rule, timestamp="ts", category="result").toDF()
        >>> ruled.select("user", "matchTimestamp").show()
        +----+--------------+
        |user|matchTimestamp|
        +----+--------------+
        | ann|          2000|
        +----+--------------+
        """
        if isinstance(input, KeyedDataFrame):
            raise InvalidArgumentError(
                "CEP.eql with a keyed DataFrame", "pass the DataFrame, and write sequence by user"
            )
        if input is None or query is None:
            raise MissingConditionError(
                "CEP.eql needs a DataFrame and a query", "pass both, in this order"
            )
        check_columns("CEP.eql", timestamp=timestamp, category=category, tiebreaker=tiebreaker)
        return EqlStream(
            dataframe=_checked(input),
            keys=(),
            time_column=timestamp,
            settings=JobSettings(
                keyGroups,
                onPatternChange,
                max_ahead=maxAhead,
                name=name,
                on_null_key=onNullKey,
                parallel_tasks=parallelTasks,
            ),
            query=query if isinstance(query, Eql) else Eql(query),
            category=category,
            tiebreaker=tiebreaker,
        )

    @staticmethod
    @suggesting
    def patterns(
        input: DataFrame,
        rules: Rules,
        timestamp: str | None = None,
        type: str = "type",
        *,
        keyGroups: int = 128,
        maxAhead: timedelta | str | None = None,
        name: str | None = None,
        parallelTasks: int | None = None,
        onNullKey: OnNullKey = "fail",
    ) -> RuleStream:
        """
        Apply many rules to events in one pass, with one shuffle.

        The matches are those of each rule by itself. Equal conditions are computed once, events
        that no rule wants are not shuffled, and keys that rules have in common are shuffled once.

        Parameters
        ----------
        input : DataFrame
            The events. Keys are in the rules.
        rules : dict or iterable of Rule
            For each name a Pattern, a SaseQuery, an Eql, a
            :class:`~pyflinkcep.rules.SigmaCorrelation`, or a :class:`~pyflinkcep.rules.Rule` with
            the key of one; or rules with their names, such as ``readRules`` returns.
        timestamp : str, optional
            A column of type timestamp, timestamp_ntz, or bigint (epoch milliseconds). By default,
            that of the DataFrame's watermark.
        type : str
            The column of an event's type in queries, of its category in EQL.
        keyGroups, maxAhead, name, parallelTasks
            As for :meth:`CEP.pattern`.
        onNullKey : {"fail", "drop"}
            What an event without a time does: fail the job, or be dropped. Null is a key like any
            other, except in EQL, where it is none.

        Returns
        -------
        RuleStream
            Its methods choose the output of matches.

        Raises
        ------
        InvalidArgumentError
            If two rules have one name, or something is no rule.

        Examples
        --------
        >>> any_fail = Pattern.begin("fail").where("result = 'fail'")
        >>> in_order = parse("PATTERN SEQ(fail a, ok b) WHERE [user]")
        >>> both = CEP.patterns(events, {"any": any_fail, "order": in_order}, "ts", "result")
        >>> both.toDF().groupBy("rule").count().orderBy("rule").show()
        +-----+-----+
        | rule|count|
        +-----+-----+
        |  any|    2|
        |order|    1|
        +-----+-----+
        """
        if isinstance(input, KeyedDataFrame):
            raise InvalidArgumentError(
                "CEP.patterns with a keyed DataFrame",
                "pass the DataFrame, and keys in the rules: Rule(name, pattern, ('user',))",
            )
        check_columns("CEP.patterns", timestamp=timestamp, type=type)
        return RuleStream(
            dataframe=_checked(input),
            rules=rules_of(rules, "CEP.patterns"),
            time_column=timestamp,
            type=type,
            settings=JobSettings(
                keyGroups,
                allows_null_keys=True,
                max_ahead=maxAhead,
                name=name,
                on_null_key=onNullKey,
                parallel_tasks=parallelTasks,
            ),
        )

    @staticmethod
    @suggesting
    def dynamicPatterns(
        input: DataFrame,
        log: RuleLog,
        timestamp: str | None = None,
        type: str = "type",
        *,
        keys: Sequence[str] | None = None,
        keyGroups: int = 128,
        maxAhead: timedelta | str | None = None,
        name: str | None = None,
        parallelTasks: int | None = None,
        onNullKey: OnNullKey = "fail",
    ) -> DynamicRuleStream:
        """
        Apply the rules of a log to a stream while they change.

        Publications are read as a stream of their own: those that come with a micro-batch are
        applied before its events, and again so if the micro-batch is repeated. A version sees the
        events that arrive while it is in force. A bad rule in the log never stops the query.

        Parameters
        ----------
        input : DataFrame
            The events, a stream.
        log : RuleLog
            The rules.
        timestamp, type
            As for :meth:`CEP.patterns`.
        keys : list of str, optional
            The columns by which events are sent to the places where rules are matched: each event
            once for each of them, so that a rule needs one of its key's columns among them. No
            column sends all to one place. By default the first column of the key of each rule that
            was ever published.
        keyGroups, maxAhead, name, parallelTasks, onNullKey
            As for :meth:`CEP.patterns`.

        Returns
        -------
        DynamicRuleStream
            Its method ``toDF`` returns matches, and what became of changes.

        Raises
        ------
        InvalidArgumentError
            If there are neither keys nor rules.

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> from pyflinkcep.rules import Rule, RuleLog
        >>> log = RuleLog(mkdtemp())
        >>> log.publish([Rule("fail", Pattern.begin("a").where("result = 'fail'"), ("user",))])
        1
        >>> CEP.dynamicPatterns(stream, log, "ts").toDF().isStreaming
        True
        """
        check_columns("CEP.dynamicPatterns", timestamp=timestamp, type=type)
        if not isinstance(log, RuleLog):
            raise InvalidArgumentError(
                f"CEP.dynamicPatterns: expected a RuleLog, got {log!r}", "pass RuleLog('folder')"
            )
        return DynamicRuleStream(
            dataframe=_checked(input),
            log=log,
            keys=keys,
            time_column=timestamp,
            type=type,
            settings=JobSettings(
                keyGroups,
                allows_null_keys=True,
                max_ahead=maxAhead,
                name=name,
                on_null_key=onNullKey,
                parallel_tasks=parallelTasks,
            ),
        )

    @staticmethod
    @suggesting
    def suppress(
        alerts: DataFrame,
        period: timedelta | str,
        key: str | Column | Sequence[str | Column] | None = None,
        timestamp: str = MATCH_TIME,
        *,
        keyGroups: int = 128,
        name: str | None = None,
        parallelTasks: int | None = None,
    ) -> CepDataFrame:
        """
        Show of the alerts of a rule and key the first in each period, and count the others.

        The first alert opens a window; alerts of the same rule and key whose time is less than
        `period` after its time are suppressed, and the next one opens another. Alerts of one time
        are in the order of their column ``matchId``; without it, of a hash of the row. Which are
        shown does not depend on how a stream is cut into micro-batches, nor on restarts.

        Parameters
        ----------
        alerts : DataFrame
            A row for each alert, such as ``CEP.patterns(…).toDF()``, bounded or streaming.
        period : timedelta or str
            How long alerts are suppressed, at least a millisecond, in the time of events.
        key : str, Column, or list of them, optional
            What suppressed alerts have in common beside their column ``rule``, if they have one:
            columns, fields such as ``"key.user"``, or expressions; ``[]`` for nothing. By default
            the column ``key``. Null is a value like any other.
        timestamp : str
            The column of an alert's time: timestamp, timestamp_ntz, or bigint (epoch milliseconds).
        keyGroups, name, parallelTasks
            As for :meth:`CEP.pattern`.

        Returns
        -------
        CepDataFrame
            The alerts that are shown, with the number of others in ``suppressed``. On a stream an
            alert comes when the watermark has passed its time, with the number known then, and a
            second time when the window is over, if more were suppressed: the row with the greatest
            number is the last.

        Raises
        ------
        InvalidArgumentError
            If the period is less than a millisecond, or there is no column ``key`` and none named.
        InputError
            If a column is missing, or of a type that keys or times cannot have.
        NotSupportedError
            If alerts on a stream may be any time behind the watermark: see
            :meth:`CepDataFrame.withEventTime`.

        See Also
        --------
        pyflinkcep.suppress : The same for alerts in memory.

        Examples
        --------
        >>> any_fail = Pattern.begin("fail").where("result = 'fail'")
        >>> failed = CEP.patterns(events, {"fail": any_fail}, "ts").toDF()
        >>> first = CEP.suppress(failed, "10 seconds")
        >>> first.select("rule", "matchTimestamp", "suppressed").show()
        +----+--------------+----------+
        |rule|matchTimestamp|suppressed|
        +----+--------------+----------+
        |fail|          1000|         1|
        +----+--------------+----------+
        """
        period_ms = duration_ms(period, "period")
        check_columns("CEP.suppress", timestamp=timestamp)
        given = _checked(alerts)
        is_known = timestamp in given.columns and is_event_time(given.schema[timestamp])
        if isinstance(alerts, CepDataFrame) and given.isStreaming and not is_known:
            given = alerts.withEventTime(timestamp).toDF()
        job = SuppressionJob.analyse(
            given,
            suppression_keys("CEP.suppress", key, given.columns, (str, Column)),
            timestamp,
            period_ms,
            matchId(*map(quoted, given.columns)),
            JobSettings(keyGroups, allows_null_keys=True, name=name, parallel_tasks=parallelTasks),
        )
        if job.job.is_stream:
            return stream_result(job.stream(), {MAIN: job.schema}, timestamp)
        return CepDataFrame(Result.of(job.run(), job.job.name))
