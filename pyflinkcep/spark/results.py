# SPDX-License-Identifier: Apache-2.0
"""The results of jobs, bounded or streams, while they run and after, and the ids of matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import Self, overload

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.functions import (
    OutputTag,
    PatternProcessFunction,
    as_process_function,
    check_tag,
    flat_select_adapter,
    select_adapter,
)
from pyflinkcep.matching.results import MATCH_TIME
from pyflinkcep.spark.cep_dataframe import CepDataFrame, HandedOn, Result
from pyflinkcep.spark.plan.eql import EqlJob
from pyflinkcep.spark.plan.outputs import STAGE_TIME, add_output, output_schemas, tagged_events
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.settings import (
    FlatSelect,
    FlatTimeout,
    JobSettings,
    Process,
    Schema,
    Select,
    SelectCall,
    Timeout,
    with_signature,
)
from pyflinkcep.spark.plan.stream import StreamJob
from pyflinkcep.spark.worker.consumers import (
    ColumnConsumer,
    Consumer,
    FunctionConsumer,
    ReachedConsumer,
)
from pyflinkcep.spark.worker.pack import AHEAD, LATE, NULLS

# The outputs for events left out, by their columns in a stream's job, and what asks for them.
_SIDES = {
    LATE: "sideOutputLateData",
    AHEAD: "sideOutputAheadData",
    NULLS: "sideOutputNullData",
}


def stream_result(
    job: StreamJob, schemas: Mapping[str, StructType], time: str | None = None
) -> CepDataFrame:
    """Start a job on a stream."""

    def flush(checkpoint: str, operator_id: int) -> CepDataFrame:
        rows = job.flush(checkpoint, operator_id)
        return CepDataFrame(Result(tagged=rows, schemas=schemas, description=job.name))

    held_back = job.output.held_back
    handed_on = HandedOn(
        lambda milliseconds: job.behind(milliseconds).run(),
        job.delay_ms,
        held_back.events_ms,
        {} if time is None else {time: held_back.time_ms},
        is_guarded=job.plan.max_ahead_ms is not None,
    )
    result = CepDataFrame(
        Result(
            tagged=job.run(),
            schemas=schemas,
            description=job.name,
            flush=flush,
            handed_on=handed_on,
        )
    )
    # With a watermark further behind only where it is asked for: other operators would wait too.
    if time is None or held_back.time_ms != 0 or handed_on.is_guarded:
        return result
    return result.withEventTime(time)


@attrs.frozen(eq=False, kw_only=True, repr=False)
class MatchStream(ABC):
    """What the streams of patterns, queries and EQL share; immutable like these."""

    _dataframe: DataFrame
    _keys: tuple[str | Column, ...]
    _settings: JobSettings
    _time_column: str | None = None
    _sides: Mapping[str, OutputTag] = attrs.field(factory=dict)  # By their names in ``_SIDES``

    def sideOutputLateData(self, lateDataOutputTag: OutputTag) -> Self:
        """
        Send late events to a side output instead of dropping them.

        A bounded DataFrame has no late events: the side output is empty there.

        Parameters
        ----------
        lateDataOutputTag : OutputTag
            The tag; its rows are the events themselves, so it needs no schema.

        Examples
        --------
        >>> late = OutputTag("late")
        >>> result = CEP.pattern(keyBy(stream, "user"), pattern).sideOutputLateData(late).toDF()
        >>> result.outputs
        ['main', 'late']
        """
        check_tag(lateDataOutputTag)
        return self._with_side(LATE, lateDataOutputTag)

    def sideOutputAheadData(self, aheadDataOutputTag: OutputTag) -> Self:
        """
        Send events too far ahead of the others, by ``maxAhead``, to a side output.

        Without it they are dropped and counted. The side output of a bounded DataFrame is empty.

        Parameters
        ----------
        aheadDataOutputTag : OutputTag
            The tag; its rows are the events themselves, so it needs no schema.

        Raises
        ------
        InvalidArgumentError
            If ``CEP.pattern`` was not given ``maxAhead``.

        Examples
        --------
        >>> ahead = OutputTag("ahead")
        >>> careful = CEP.pattern(keyBy(stream, "user"), pattern, maxAhead="1 hour")
        >>> careful.sideOutputAheadData(ahead).toDF().outputs
        ['main', 'ahead']
        """
        check_tag(aheadDataOutputTag)
        if self._settings.max_ahead is None:
            raise InvalidArgumentError(
                "sideOutputAheadData() without maxAhead, so no event is too far ahead",
                "write CEP.pattern(events, pattern, maxAhead=timedelta(hours=1))",
            )
        return self._with_side(AHEAD, aheadDataOutputTag)

    def sideOutputNullData(self, nullDataOutputTag: OutputTag) -> Self:
        """
        Send events that ``onNullKey="drop"`` drops to a side output, which needs no schema.

        Parameters
        ----------
        nullDataOutputTag : OutputTag
            The tag; its rows are the events themselves.

        Raises
        ------
        InvalidArgumentError
            If ``CEP.pattern`` was not given ``onNullKey="drop"``.

        Examples
        --------
        >>> bad = OutputTag("bad")
        >>> kept = CEP.pattern(keyBy(events, "user"), pattern, onNullKey="drop").inEventTime("ts")
        >>> kept.sideOutputNullData(bad).toDF().outputs
        ['main', 'bad']
        """
        check_tag(nullDataOutputTag)
        if not self._settings.drops_nulls:
            raise InvalidArgumentError(
                'sideOutputNullData() with onNullKey="fail"',
                'write onNullKey="drop" in CEP.pattern',
            )
        return self._with_side(NULLS, nullDataOutputTag)

    # --- functions of matches

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
            Returns a row (tuple, dict or Row) for a match, a dict of stage, or variable, to Rows.
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
        NotSupportedError
            If there is a function of timeouts, and this is a query.
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

    @abstractmethod
    def _process(self, function: PatternProcessFunction, schema: Schema) -> CepDataFrame:
        """Plan the job whose matches a function turns into rows."""

    def _with_side(self, side: str, tag: OutputTag) -> Self:
        return attrs.evolve(self, sides={**self._sides, side: tag})

    def _result(self, analysed: PatternJob | QueryJob | EqlJob, consumer: Consumer) -> CepDataFrame:
        """Plan a job whose matches become rows as a consumer says."""
        job, schemas = analysed.job, consumer.schemas
        sides = {side: self._sides[side].name for side in _SIDES if side in self._sides}
        for output in sides.values():
            add_output(schemas, output, job.given.schema)
        if job.is_stream:
            is_reached = isinstance(consumer, ReachedConsumer)
            is_match = isinstance(consumer, ColumnConsumer)
            time = MATCH_TIME if is_match else STAGE_TIME if is_reached else None
            return stream_result(analysed.stream(consumer, sides), schemas, time)
        rows = analysed.run(consumer)
        if NULLS in sides:
            nulls = job.given.where(job.source.is_null(job.settings.allows_null_keys))
            rows = rows.unionAll(tagged_events(nulls, sides[NULLS], rows.schema))
        return CepDataFrame(Result(tagged=rows, schemas=schemas, description=job.name))

    def _applied(
        self,
        analysed: PatternJob | QueryJob | EqlJob,
        function: PatternProcessFunction,
        schema: Schema,
    ) -> CepDataFrame:
        """Plan a job whose matches a function turns into rows."""
        keys = {key.name: key.column for key in analysed.job.source.keys}
        consumer = FunctionConsumer(function, output_schemas(function, schema), keys)
        return self._result(analysed, consumer)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}: {fact}" for name, fact in self._facts().items() if fact)
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>"
            f"<code>{escape(fact) or '–'}</code></td></tr>"
            for name, fact in self._facts().items()
        )
        return (
            f"<table><caption>{type(self).__name__}</caption>{rows}</table>"
            "<p>Nothing has run: <code>.toDF()</code>, <code>.select(function, schema)</code> or "
            "<code>.process(function, schema)</code> return the matches, <code>.explain()</code> "
            "says how they are found.</p>"
        )

    @abstractmethod
    def _facts(self) -> dict[str, str]:
        """Return what users are shown of it, by name."""

    def _shown_as(
        self, text: str, keys: Sequence[str | Column], time: str | None
    ) -> dict[str, str]:
        """Return what to show of it, by name; what is unknown is empty."""
        columns = ", ".join(f"{name}: {type_}" for name, type_ in self._dataframe.dtypes)
        kind = "stream" if self._dataframe.isStreaming else "bounded"
        return {
            "pattern": text,
            "input": f"{kind} [{columns}]",
            "key": ", ".join(map(str, keys)),
            "time": time or "",
        }

    def _wants_all(self, events: DataFrame) -> str:
        """Return the method that asks for events in full, if any does."""
        asked = [f"{_SIDES[side]}()" for side in (LATE, AHEAD) if side in self._sides]
        return asked[0] if events.isStreaming and asked else ""

    def _refuse_sides(self, what: str) -> None:
        """Refuse side outputs beside what has only one output."""
        for side, method in _SIDES.items():
            if side in self._sides:
                raise NotSupportedError(
                    f"{what} cannot be combined with {method}(), whose events would not be in its "
                    "result",
                    f"leave {method}() out: the progress of a stream counts these events; or take "
                    "them from toDF() of the same pattern or query without RETURN",
                )


_AS_TEXT = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


def matchId(*columns: str) -> Column:
    """
    Return an id of a match: a hash of what it consists of.

    It is the same whether the events are a table or a stream, however they are cut into
    micro-batches, and after a restart. A sink that may see rows twice, or a job that is run again,
    can so replace what it has: ``MERGE`` of Delta, ``ON CONFLICT`` of PostgreSQL. Matches of events
    that are alike in all columns have one id: let events have a column that tells them apart.

    Parameters
    ----------
    *columns : str
        The columns that make the match: of ``toDF()`` the key and the stages. Structs, arrays and
        maps are hashed whole; the session's time zone does not matter.

    Returns
    -------
    Column
        64 hexadecimal digits: SHA-256 of the columns as JSON, times to the microsecond.

    Raises
    ------
    InvalidArgumentError
        Without columns, or if one is not given by name.

    Examples
    --------
    >>> found.toDF().select("user", matchId("user", "fail", "ok").alias("id")).count()
    1
    """
    if not columns or not all(isinstance(name, str) for name in columns):
        raise InvalidArgumentError(
            f"matchId: expected names of columns, got {columns!r}",
            'write matchId("user", "fail", "ok") with the key and the stages',
        )
    return F.sha2(F.to_json(F.struct(*columns), _AS_TEXT), 256)
