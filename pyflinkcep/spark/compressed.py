# SPDX-License-Identifier: Apache-2.0
"""All matches on a DataFrame: counted, aggregated, unpacked or stored without listing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs
from pyspark.sql import types as T

from pyflinkcep.engines.compressed.matches import (
    COUNT,
    WINDOW_END,
    WINDOW_START,
    Measured,
    TimeWindows,
    check_measure,
    check_names,
    read_measure,
)
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.numbers import MOST_DIGITS, Digits, averaged
from pyflinkcep.expressions.program import Kind
from pyflinkcep.matching.results import MATCH_TIME
from pyflinkcep.spark.cep_dataframe import CepDataFrame, Result, changed
from pyflinkcep.spark.plan.analysis import common_kind
from pyflinkcep.spark.plan.outputs import match_rows, match_schema
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob
from pyflinkcep.spark.results import stream_result
from pyflinkcep.spark.worker.consumers import MAIN
from pyflinkcep.spark.worker.endings import (
    COUNT_TEXT,
    EndingRows,
    PackedRows,
    TotalRows,
    WindowRows,
)

_COUNT = T.StructField(COUNT, T.DecimalType(38, 0))
_NODE = T.StructType(
    [
        T.StructField("stage", T.IntegerType(), False),
        T.StructField("event", T.IntegerType(), False),
        T.StructField("next", T.ArrayType(T.IntegerType(), False), False),
    ]
)


@attrs.frozen(eq=False)
class CompressedStream:
    """
    All matches of a query or a pattern on a DataFrame, however many there are.

    Made by ``CEP.pattern(events, query).inEventTime(…).compressed()``.

    Examples
    --------
    The examples of the methods count the ways to choose numbers from 1 to 40 that begin with 1:

    >>> numbers = spark.range(1, 41).selectExpr("id AS ts", "if(id = 1, 'A', 'B') AS type")
    >>> chosen = parse("PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match")
    >>> choices = CEP.pattern(numbers, chosen).inEventTime("ts").compressed()
    """

    _job: PatternJob | QueryJob

    def count(self) -> int:
        """
        Return the number of matches, exactly, however large.

        Raises
        ------
        NotSupportedError
            On a stream, which never ends.

        Examples
        --------
        >>> choices.count() == 2**39 - 1
        True
        """
        if self._is_stream:
            raise NotSupportedError(
                "count() is not available on a stream, which never ends",
                'use aggregate("count(*)")',
            )
        rows = self._totals(()).select(COUNT_TEXT).collect()
        return sum(int(row[0]) for row in rows)

    def aggregate(
        self,
        *texts: str,
        window: timedelta | str | None = None,
        slide: timedelta | str | None = None,
    ) -> CepDataFrame:
        """
        Return aggregates over the events of variables in all matches.

        Parameters
        ----------
        *texts : str
            ``count(*)``, ``count(b)``, ``sum(b.x) AS v``, ``avg``, ``min``, ``max``, ``stddev``.
            An event counts once for every match that it is in; NULL is skipped.
        window : timedelta or str, optional
            The length of windows, such as ``"10 minutes"``; one of them begins at the epoch. A
            match is in a window if all of its events are, from the start to before the end.
        slide : timedelta or str, optional
            The time from the start of a window to that of the next, at most `window`; by default
            `window`, so that each begins where another ends.

        Returns
        -------
        CepDataFrame
            For each key and event that completes matches the key, ``matchTimestamp``, ``count``
            as decimal(38,0), null beyond 38 digits, ``count_log10``, and the columns. With
            `window`, for each key and window with matches, and ``windowStart`` and ``windowEnd`` in
            place of ``matchTimestamp``; on a stream when the watermark has passed the window.

        Raises
        ------
        InvalidArgumentError
            If a text is not an aggregate over a variable of the query, two columns have one name,
            or the windows leave out events.
        InputError
            If an attribute is not a column, or not of a type that the aggregate takes.
        NotSupportedError
            If there are windows, and matches of a pattern or a query about which events outside
            of them decide.

        Examples
        --------
        >>> ends = choices.aggregate("count(b) AS taken", "min(b.ts) AS first")
        >>> ends.where("matchTimestamp <= 4").drop("count_log10").show()
        +--------------+-----+-----+-----+
        |matchTimestamp|count|taken|first|
        +--------------+-----+-----+-----+
        |             2|    1|    1|    2|
        |             3|    2|    3|    2|
        |             4|    4|    8|    2|
        +--------------+-----+-----+-----+
        >>> windows = choices.aggregate(window="4 milliseconds", slide="2 milliseconds")
        >>> windows.drop("count_log10").show()
        +-----------+---------+-----+
        |windowStart|windowEnd|count|
        +-----------+---------+-----+
        |          0|        4|    3|
        +-----------+---------+-----+
        """
        measured = [read_measure(text, self._job.variables) for text in texts]
        windows = TimeWindows.of(window, slide)
        if windows is None:
            totals = self._totals(measured)
        else:
            totals = self._window_totals(measured, windows)
        return changed(totals, lambda rows: rows.drop(COUNT_TEXT))

    def unpack(self, limit: int | None = None) -> CepDataFrame:
        """
        Return matches as rows like ``toDF()``; others are never built.

        Parameters
        ----------
        limit : int, at least 0, optional
            The most to return; all by default. Not on a stream.

        Examples
        --------
        >>> choices.unpack(limit=2).select("b.ts").count()
        2
        """
        if limit is not None and not (isinstance(limit, int) and 0 <= limit < 1 << 31):
            raise InvalidArgumentError(
                f"unpack(limit={limit!r})", "pass a number from 0 to 2147483647, or no limit"
            )
        consumer = match_rows(self._source, self._job.variables)
        if not self._is_stream:
            listed = self._bounded(self._job.unpacked(consumer, limit))
            return listed if limit is None else changed(listed, lambda rows: rows.limit(limit))
        if limit is not None:
            raise NotSupportedError(
                "unpack(limit) is not available on a stream", "leave the limit out"
            )
        return self._started(self._job.stream(consumer, {}))

    def toDF(self) -> CepDataFrame:
        """
        Return the packed form, for storage: its size does not depend on the number of matches.

        Returns
        -------
        CepDataFrame
            For each key and event that completes matches the key; ``matchTimestamp``; ``count``
            as decimal(38,0), null beyond 38 digits; ``events``, each event of these matches
            once; ``nodes``; and ``roots``. A match is read from one of the roots, numbers of
            nodes, to a node whose ``next`` is empty, from its last event to its first: a node is
            the event number ``event`` for the variable number ``stage``, or one of those in its
            ``next`` if its ``stage`` is -1.

        Examples
        --------
        >>> packed = choices.toDF().where("matchTimestamp = 40")
        >>> packed.selectExpr("count", "size(events) AS events", "size(nodes) AS nodes").show()
        +------------+------+-----+
        |       count|events|nodes|
        +------------+------+-----+
        |274877906944|    40|  152|
        +------------+------+-----+
        """
        event = self._source.dataframe.schema
        added = [
            _COUNT,
            T.StructField("events", T.ArrayType(event, False), False),
            T.StructField("nodes", T.ArrayType(_NODE, False), False),
            T.StructField("roots", T.ArrayType(T.IntegerType(), False), False),
        ]
        fields = [*self._ending_fields(), *added]
        check_names([field.name for field in fields], ())
        schema = T.StructType(fields)
        own, unit = tuple(self._source.event_columns), self._source.time_unit
        return self._endings(PackedRows(schema, self._keys, unit, own))

    # --- helpers

    @property
    def _source(self) -> EventSource:
        return self._job.source

    @property
    def _is_stream(self) -> bool:
        return bool(self._source.dataframe.isStreaming)

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(key.column for key in self._source.keys)

    def _ending_fields(self) -> list[T.StructField]:
        return list(match_schema(self._source, [], MATCH_TIME).fields)

    def _totals(self, measured: Sequence[Measured]) -> CepDataFrame:
        schema = self._totals_schema(self._ending_fields(), measured)
        return self._endings(TotalRows(schema, self._keys, self._source.time_unit, tuple(measured)))

    def _window_totals(self, measured: Sequence[Measured], windows: TimeWindows) -> CepDataFrame:
        *keys, time = self._ending_fields()
        times = [T.StructField(name, time.dataType) for name in (WINDOW_START, WINDOW_END)]
        schema = self._totals_schema([*keys, *times], measured)
        unit = self._source.time_unit
        rows = WindowRows(schema, self._keys, unit, tuple(measured), windows.length)
        return CompressedStream(self._job.in_windows(windows))._endings(rows)

    def _totals_schema(
        self, fields: Sequence[T.StructField], measured: Sequence[Measured]
    ) -> T.StructType:
        """Return the schema of totals, whose first fields are given."""
        own = [
            *fields,
            _COUNT,
            T.StructField("count_log10", T.DoubleType(), False),
            T.StructField(COUNT_TEXT, T.StringType(), False),
        ]
        check_names([field.name for field in own], measured)
        return T.StructType([*own, *(T.StructField(m.name, self._type(m)) for m in measured)])

    def _type(self, measured: Measured) -> T.DataType:
        if measured.function == "count":
            return T.DecimalType(38, 0)
        columns = self._source.dataframe.schema
        if measured.attribute not in columns.fieldNames():
            raise InputError(
                f"the attribute {measured.attribute!r} is not a column",
                f"the columns are {columns.fieldNames()}",
            )
        found = columns[str(measured.attribute)].dataType
        kind, is_whole = common_kind(found), isinstance(found, T.IntegralType)
        check_measure(measured, kind, found.simpleString())
        digits = None if kind is None else kind.digits
        if digits is not None and measured.function in ("sum", "avg"):
            own = Digits(MOST_DIGITS, digits.scale)
            return T.DecimalType(*(own if measured.function == "sum" else averaged(digits)))
        if measured.function in ("avg", "stddev"):
            return T.DoubleType()
        if measured.function == "sum":
            return T.DecimalType(38, 0) if is_whole else T.DoubleType()
        if is_whole:
            return T.LongType()
        return T.DoubleType() if kind is Kind.DOUBLE else found

    def _endings(self, rows: EndingRows) -> CepDataFrame:
        if self._is_stream:
            return self._started(self._job.stream_of_endings(rows))
        return self._bounded(self._job.endings(rows))

    def _bounded(self, rows: Any) -> CepDataFrame:
        return CepDataFrame(Result.of(rows, self._source.job_name))

    def _started(self, stream: StreamJob) -> CepDataFrame:
        schema = stream.output.schema
        time = MATCH_TIME if MATCH_TIME in schema.fieldNames() else WINDOW_END
        return stream_result(stream, {MAIN: schema}, time)
