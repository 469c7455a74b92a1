# SPDX-License-Identifier: Apache-2.0
"""The result of a pattern: a DataFrame of the main output that also has the side outputs."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from types import FrameType
from typing import Any, Self

import attrs
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from pyflinkcep import errors
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.functions import OutputTag, check_tag
from pyflinkcep.matching.columns import quoted
from pyflinkcep.spark.arrow.internals import CallSite, is_of_matches, marks, spark_context
from pyflinkcep.spark.worker.consumers import MAIN, TAG
from pyflinkcep.time import to_milliseconds

_ERROR = re.compile(
    r"^\s*pyflinkcep\.errors\.(\w+): (.*?)"
    r"(?=\n *SQLSTATE: |\n\tat |\n=== Streaming Query|\n\nJVM stacktrace|\Z)",
    re.DOTALL | re.MULTILINE,
)


def cepError(exception: BaseException) -> CepError | None:
    """
    Return the error of this package that an error of Spark is about.

    Parameters
    ----------
    exception : Exception
        What Spark raised: a ``PythonException`` of an action, or the ``StreamingQueryException`` of
        ``query.awaitTermination()`` and ``query.exception()``.

    Returns
    -------
    CepError or None
        The error as it was on the worker, of its own class, with message and hint; None if the
        error has another cause.

    Examples
    --------
    >>> text = '''[STREAM_FAILED] Query [id = 7] terminated with exception: Traceback
    ...   File "unpack.py", line 57, in run
    ... pyflinkcep.errors.InputError: no column 'prise'
    ...
    ... Hint: did you mean 'price'?
    ...  SQLSTATE: 39000
    ... === Streaming Query ==='''
    >>> error = cepError(RuntimeError(text))
    >>> type(error).__name__, error.message, error.hint
    ('InputError', "no column 'prise'", "did you mean 'price'?")
    """
    if isinstance(exception, CepError):
        return exception
    found = list(_ERROR.finditer(str(exception)))
    if not found:
        return None
    name, text = found[-1].groups()
    kind = getattr(errors, name, CepError)
    message, _, hint = text.rstrip().partition("\n\nHint: ")
    error: CepError = kind(message, hint or None)
    return error


@contextmanager
def raised_plainly() -> Iterator[None]:
    """Raise this package's error in place of Spark's within a ``with``."""
    try:
        yield
    except PySparkException as cause:
        error = cepError(cause)
        if error is None:
            raise
        raise error from None  # Spark's text is in __context__


# The methods of a DataFrame that start jobs.
_ACTIONS = (
    "approxQuantile", "checkpoint", "collect", "corr", "count", "cov", "crosstab", "first",
    "foreach", "foreachPartition", "freqItems", "head", "isEmpty", "localCheckpoint", "show",
    "tail", "take", "toArrow", "toLocalIterator", "toPandas",
)  # fmt: skip
# The methods of a writer that start jobs.
_WRITES = (
    "append", "create", "createOrReplace", "csv", "insertInto", "jdbc", "json", "orc", "overwrite",
    "overwritePartitions", "parquet", "replace", "save", "saveAsTable", "text", "xml",
)  # fmt: skip


@attrs.frozen(eq=False)
class JobName:
    """The name of a result's jobs."""

    description: str  # The text in Spark's UI
    session: SparkSession  # Where the jobs run

    @contextmanager
    def told(self, action: str) -> Iterator[None]:
        """Set the description while an action runs, and raise this package's errors as such."""
        context = spark_context(self.session)
        with raised_plainly():
            if context is None:  # over Spark Connect
                yield
                return
            before = context.getLocalProperty("spark.job.description")
            context.setLocalProperty("spark.job.description", self.description)
            try:
                with CallSite(context, f"{action} at {_users_line()}"):
                    yield
            finally:
                context.setLocalProperty("spark.job.description", before)


def _users_line() -> str:
    """Return the calling line outside this package; PySpark would name this file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(str(frame.f_globals.get("__name__", ""))):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


def _is_between(module: str) -> bool:
    return module == "contextlib" or module.split(".", 1)[0] in ("pyflinkcep", "pyspark")


def _telling(action: Callable[..., Any]) -> Any:
    """Return an action of a result, or of its writer, that sets the job description."""

    @functools.wraps(action)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._pyflinkcep_job_name.told(action.__name__):
            return action(self, *args, **kwargs)

    return run


def _telling_writer(writer: Any, name: JobName) -> Any:
    """Return the writer as one of a subclass of its class."""
    kind: Any = type(writer)
    writer.__class__ = _writer_class(kind)
    writer._pyflinkcep_job_name = name
    return writer


@functools.cache
def _writer_class(kind: Any) -> Any:
    methods = {name: _telling(getattr(kind, name)) for name in _WRITES if hasattr(kind, name)}
    return type(kind.__name__, (kind,), {"__module__": kind.__module__, **methods})


@attrs.frozen(eq=False)
class HandedOn:
    """The watermark that a stream's result hands on with its rows."""

    # Returns the job, with all outputs, for a watermark that is some milliseconds further behind.
    behind: Callable[[int], DataFrame]
    delay_ms: int  # The delay of the watermark
    # How far behind the watermark the events of a row can be; None if there is no bound.
    held_ms: int | None
    # The columns of which that is known better.
    lags: Mapping[str, int | None] = attrs.field(factory=dict)
    event_time: str | None = None  # The column of the main output that carries the watermark
    behind_ms: int = 0  # How far the watermark was put behind for it
    # Whether events too far ahead, which Spark's watermark follows, are left out: then it must not
    # be handed on.
    is_guarded: bool = False


@attrs.frozen(eq=False, kw_only=True)
class Result:
    """What a job returns, with all its outputs; a :class:`CepDataFrame` shows it."""

    tagged: DataFrame  # The job: its main output alone, or all outputs tagged
    schemas: Mapping[str, StructType]  # The outputs, the main one first
    description: str  # The name in Spark's UI of jobs started on it
    # For streams: returns the result of a final watermark on (checkpoint, operator id).
    flush: Callable[[str, int], CepDataFrame] | None = None
    handed_on: HandedOn | None = None  # For streams: the watermark of the rows
    # Returns the text of ``explain`` without arguments; None for Spark's plan.
    explanation: Callable[[], str] | None = None

    @classmethod
    def of(cls, main: DataFrame, description: str) -> Result:
        """Return the result of a job with one output."""
        return cls(tagged=main, schemas={MAIN: main.schema}, description=description)

    def output(self, name: str) -> DataFrame:
        """Return one output as a plain DataFrame."""
        fields = self.schemas[name].fieldNames()
        if len(self.schemas) == 1:
            chosen = self.tagged
            columns = {field: F.col(quoted(field)) for field in fields}
        else:
            chosen = self.tagged.where(F.col(TAG) == name)
            columns = {field: F.col(quoted(name)).getField(field) for field in fields}
        handed_on = self.handed_on
        if name == MAIN and handed_on is not None and handed_on.event_time is not None:
            time = handed_on.event_time
            type_ = self.schemas[name][time].dataType
            delay_ms = handed_on.delay_ms + handed_on.behind_ms
            columns[time] = columns[time].alias(time, metadata=marks(type_, delay_ms))
        elif len(self.schemas) == 1:
            return chosen
        return chosen.select(*(column.alias(field) for field, column in columns.items()))


class CepDataFrame(DataFrame):
    """
    The result of ``select``, ``flatSelect`` and ``process``.

    It is the DataFrame of the main output, classic or Spark Connect like its input, and gives
    access to the other outputs; DataFrames derived from it, as by ``where``, have no side outputs.

    Notes
    -----
    Ports the role of Flink's ``SingleOutputStreamOperator``.
    Differs from Flink: each output that is used on its own runs the job again. To run it once for
    all outputs, use :meth:`tagged`, or call ``persist()`` first.
    """

    _job: Result

    def __new__(cls, _result: Result, /) -> Self:
        """Make an object that is also a DataFrame of the same kind as that of the result."""
        own: Any = cls
        kind: Any = type(_result.tagged)
        made: Self = object.__new__(_subclass(own, kind))
        return made

    def __init__(self, _result: Result, /) -> None:
        vars(self).update(vars(_result.output(MAIN)))  # the state of a DataFrame of any kind
        self._job = _result

    @property
    def _pyflinkcep_job_name(self) -> JobName:
        return JobName(self._job.description, self.sparkSession)

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, the main one first."""
        return list(self._job.schemas)

    def getSideOutput(self, tag: OutputTag) -> DataFrame:
        """
        Return a side output.

        Parameters
        ----------
        tag : OutputTag
            A tag that the functions write to, or that late data goes to.

        Raises
        ------
        CepError
            If it is not the tag of an output of this job.

        Examples
        --------
        >>> pending = OutputTag("pending")
        >>> result = found.toDF(timeoutTag=pending)
        >>> result.getSideOutput(pending).select("user", "timeoutTimestamp").collect()
        [Row(user='bob', timeoutTimestamp=62500)]
        """
        check_tag(tag)
        if tag.name not in self._job.schemas or tag.name == MAIN:
            raise InputError(
                f"no side output {tag.name!r}; the side outputs are {list(self._job.schemas)[1:]}",
                "pass the tag to select(), flatSelect() or sideOutputLateData(), "
                "or list it in the process function's outputTags",
            )
        return self._job.output(tag.name)

    def tagged(self) -> DataFrame:
        """
        Return all outputs of one run in one DataFrame.

        Returns
        -------
        DataFrame
            A column ``tag`` with the name of the output, ``'main'`` for the main one, and a
            struct column for each output, null in the rows of the others.

        Examples
        --------
        >>> result = found.toDF(timeoutTag=OutputTag("pending"))
        >>> result.tagged().select("tag", "main.user", "pending.user").show()
        +-------+----+----+
        |    tag|user|user|
        +-------+----+----+
        |   main| ann|NULL|
        |pending|NULL| bob|
        +-------+----+----+
        """
        if len(self._job.schemas) > 1:
            return self._job.tagged
        row = F.struct(*(F.col(quoted(name)) for name in self._job.tagged.columns))
        return self._job.tagged.select(F.lit(MAIN).alias(TAG), row.alias(MAIN))

    def toDF(self, *cols: str) -> DataFrame:
        """Return the main output without the others, optionally with new column names."""
        main = self._job.output(MAIN)
        return main.toDF(*cols) if cols else main

    def persist(self, storageLevel: StorageLevel = StorageLevel.MEMORY_AND_DISK_DESER) -> Self:
        """Keep the results of one run for all outputs; see ``DataFrame.persist``."""
        self._job.tagged.persist(storageLevel)
        return self

    @property
    def is_cached(self) -> bool:  # type: ignore[override]
        """Whether :meth:`persist` keeps the results."""
        return self._job.tagged.is_cached

    def cache(self) -> Self:
        """Keep the results of one run for all outputs; see ``DataFrame.cache``."""
        return self.persist()

    def unpersist(self, blocking: bool = False) -> Self:
        """Discard the results kept by :meth:`persist`."""
        self._job.tagged.unpersist(blocking)
        return self

    def withEventTime(self, column: str, delay: timedelta | None = None) -> CepDataFrame:
        """
        Declare the rows' event time column, for Spark's stateful operators and patterns after it.

        On a stream the column then carries a watermark, so that a windowed count of alerts works in
        append mode. That watermark is behind the one of the pattern by the longest time that a
        match may last and be held back, so that no row is late, whichever event of the match its
        time is from: results of operators after the pattern come later by that time. The pattern
        itself works, and emits its rows, as before.

        Parameters
        ----------
        column : str
            A timestamp column of the main output.
        delay : timedelta, optional
            How far behind the watermark at which its row is emitted the column can be. By default
            that of the first event of a match: the pattern's window, or the sum of its gaps;
            nothing for ``matchTimestamp``. ``timedelta(0)`` is right for the time of the last event
            of a match that never waits. Rows further behind are late.

        Returns
        -------
        CepDataFrame
            The same result; on a bounded DataFrame nothing changes.

        Raises
        ------
        InputError
            If the main output has no such column, of type timestamp on a stream.
        NotSupportedError
            If a match of the pattern may last forever, or the watermark cannot be held back: over
            Spark Connect, after another stateful operator, and with ``maxAhead``.

        Examples
        --------
        With `stream` a streaming DataFrame of the same events:

        >>> matches = CEP.pattern(keyBy(stream, "user"), pattern)
        >>> ends = matches.select(lambda m: (m["ok"][0].ts,), "at timestamp")
        >>> hourly = ends.withEventTime("at").groupBy(F.window("at", "1 hour")).count()
        >>> hourly.isStreaming
        True
        """
        schema = self._job.schemas[MAIN]
        is_known = self._job.handed_on is not None and column in self._job.handed_on.lags
        if column not in schema.fieldNames() or not (
            is_known or isinstance(schema[column].dataType, TimestampType)
        ):
            raise InputError(
                f"withEventTime({column!r}): no timestamp column of the main output",
                f"the output is {schema.simpleString()}",
            )
        if not self._job.tagged.isStreaming:
            return self._with(self._job.tagged, None)
        handed_on = self._job.handed_on
        assert handed_on is not None
        if handed_on.is_guarded:
            raise NotSupportedError(
                f"withEventTime({column!r}) after a pattern with maxAhead: events too far ahead "
                "still move Spark's watermark, so later rows would be lost",
                "write the rows to a table, and read that in a query of its own; or leave maxAhead "
                "out, and filter such events before withWatermark",
            )
        lag = handed_on.lags.get(column, handed_on.held_ms)
        if delay is not None:
            lag = to_milliseconds(delay, "withEventTime")
        if lag is None:
            raise NotSupportedError(
                f"withEventTime({column!r}): {self._job.description}: a match may last forever, so "
                "its events may be any time behind the watermark",
                "set a window, or use matchTimestamp of toDF(), in SQL MATCH_ROWTIME(); if the "
                "column is the time of the last event of a match that never waits, write "
                f"withEventTime({column!r}, timedelta(0))",
            )
        is_same = lag == handed_on.behind_ms
        tagged = self._job.tagged if is_same else handed_on.behind(lag)
        return self._with(tagged, attrs.evolve(handed_on, event_time=column, behind_ms=lag))

    def _with(self, tagged: DataFrame, handed_on: HandedOn | None) -> CepDataFrame:
        return CepDataFrame(attrs.evolve(self._job, tagged=tagged, handed_on=handed_on))

    def withWatermark(self, eventTime: str, delayThreshold: str) -> DataFrame:
        """Define a watermark; refused on a stream, see :meth:`withEventTime`."""
        if self.isStreaming:
            raise InputError(
                f"withWatermark({eventTime!r}) after a pattern on a stream: Spark takes the "
                "smallest of a query's watermarks, so this one, moved only by matches, would "
                "stop the first one and with it the pattern",
                f"write withEventTime({eventTime!r}): the column then carries the first watermark",
            )
        return super().withWatermark(eventTime, delayThreshold)

    def explain(self, extended: bool | str | None = None, mode: str | None = None) -> None:
        """
        Print how the pattern of a statement will run; with arguments, Spark's plan.

        For results of ``CEP.sql`` and ``matchRecognize`` this is the pattern, as in
        :meth:`pyflinkcep.PatternStream.explain`; for others it is Spark's plan.

        Parameters
        ----------
        extended, mode
            See ``DataFrame.explain``.
        """
        explanation = self._job.explanation
        if explanation is not None and extended is None and mode is None:
            print(explanation())
        else:
            super().explain(extended, mode)

    def flush(self, checkpointLocation: str, operatorId: int = 0) -> CepDataFrame:
        """
        Return what an ended stream still holds, as if the final watermark had come.

        A query with ``trigger(availableNow=True)`` stops while events after its watermark still
        wait and windows are open. Its results and these together are those of a bounded DataFrame
        of the same events, also if the events are matches of other patterns: what each of them
        holds passes through the next. The checkpoint is only read, so the query can be resumed
        later with nothing lost.

        Parameters
        ----------
        checkpointLocation : str
            The checkpoint of a stopped query of this result.
        operatorId : int, at least 0
            The number of the pattern among the query's stateful operators. Spark counts from the
            sink: 0 unless others follow the pattern.

        Returns
        -------
        CepDataFrame
            A bounded result with the same outputs.

        Raises
        ------
        InputError
            If the result is not a stream's, or the checkpoint has no state of it.
        NotSupportedError
            If another operator before the pattern, such as an aggregation, may hold rows too.

        Examples
        --------
        With `stream` a streaming DataFrame of events, `checkpoint` and `table` two folders:

        >>> result = CEP.pattern(keyBy(stream, "user"), pattern).toDF()
        >>> writer = result.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        >>> run = writer.trigger(availableNow=True).start(table)
        >>> run.awaitTermination()
        >>> result.flush(checkpoint).select("user", "matchTimestamp").collect()
        [Row(user='bob', matchTimestamp=datetime.datetime(1970, 1, 1, 0, 0, 4))]
        """
        if self._job.flush is None:
            raise InputError(
                "flush on a bounded result",
                "a bounded DataFrame already has its final watermark",
            )
        return self._job.flush(checkpointLocation, operatorId)

    def __repr__(self) -> str:
        shown = super().__repr__()
        if not shown.startswith("DataFrame["):
            return shown  # Spark is set to show rows
        others = self.outputs[1:]
        beside = f", side outputs {', '.join(map(repr, others))}" if others else ""
        return f"Cep{shown} of {self._job.description}{beside}"


def changed(
    result: CepDataFrame,
    change: Callable[[DataFrame], DataFrame],
    explanation: Callable[[], str] | None = None,
) -> CepDataFrame:
    """Return a result with its only output changed, also in a flush."""
    job, rows = result._job, change(result.toDF())
    whole = attrs.evolve(
        Result.of(rows, job.description), explanation=explanation or job.explanation
    )
    if job.flush is None or job.handed_on is None or not rows.isStreaming:
        return CepDataFrame(whole)
    before, held = job.flush, job.handed_on

    def flush(checkpoint: str, operator_id: int) -> CepDataFrame:
        return changed(before(checkpoint, operator_id), change)

    def behind(milliseconds: int) -> DataFrame:
        return change(attrs.evolve(job, tagged=held.behind(milliseconds)).output(MAIN))

    rowtimes = {field.name: 0 for field in rows.schema.fields if is_of_matches(field)}
    handed_on = attrs.evolve(held, behind=behind, event_time=None, lags={**held.lags, **rowtimes})
    return CepDataFrame(attrs.evolve(whole, flush=flush, handed_on=handed_on))


@cache
def _subclass(cls: Any, kind: Any) -> Any:
    """Return the class that is both a CepDataFrame and a DataFrame, classic or Connect."""

    def write(self: CepDataFrame) -> DataFrameWriter:
        writer: DataFrameWriter = _telling_writer(kind.write.fget(self), self._pyflinkcep_job_name)
        return writer

    def writeTo(self: CepDataFrame, table: str) -> DataFrameWriterV2:
        writer: DataFrameWriterV2 = _telling_writer(
            kind.writeTo(self, table), self._pyflinkcep_job_name
        )
        return writer

    members = {name: _telling(getattr(kind, name)) for name in _ACTIONS if hasattr(kind, name)}
    members |= {
        "write": property(write, doc=kind.write.__doc__),
        "writeTo": functools.wraps(kind.writeTo)(writeTo),
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
    }
    return type(cls.__name__, (cls, kind), members)
