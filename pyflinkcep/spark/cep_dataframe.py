# SPDX-License-Identifier: Apache-2.0
"""The result of a pattern: a DataFrame of the main output that also has the side outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Self

import attrs
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from pyflinkcep.errors import InputError
from pyflinkcep.functions import OutputTag
from pyflinkcep.spark.arrow.columns import quoted
from pyflinkcep.spark.arrow.internals import WATERMARK_DELAY
from pyflinkcep.spark.described import JobName, described
from pyflinkcep.spark.worker.consumers import MAIN, TAG

__all__ = ["CepDataFrame"]


@attrs.frozen(eq=False)
class _Job:
    """The state shared by all outputs of one result; see :class:`CepDataFrame`."""

    tagged: DataFrame
    schemas: Mapping[str, StructType]
    description: str
    flush: Callable[[str, int], CepDataFrame] | None
    event_time: str | None
    delay_ms: int
    explanation: Callable[[], str] | None = None

    def output(self, name: str) -> DataFrame:
        """Return one output as a plain DataFrame."""
        fields = self.schemas[name].fieldNames()
        if len(self.schemas) == 1:
            chosen = self.tagged
            columns = {field: F.col(quoted(field)) for field in fields}
        else:
            chosen = self.tagged.where(F.col(TAG) == name)
            columns = {field: F.col(quoted(name)).getField(field) for field in fields}
        if name == MAIN and self.event_time is not None and chosen.isStreaming:
            time = columns[self.event_time]
            carries = {WATERMARK_DELAY: self.delay_ms}
            columns[self.event_time] = time.alias(self.event_time, metadata=carries)
        elif len(self.schemas) == 1:
            return chosen
        return chosen.select(*(column.alias(field) for field, column in columns.items()))


class CepDataFrame(DataFrame):
    """
    The result of ``select``, ``flatSelect`` and ``process``.

    It is the DataFrame of the main output, classic or Spark Connect like its input, and gives
    access to the other outputs. DataFrames derived from it, such as ``result.where(...)``, have no
    side outputs.

    Parameters
    ----------
    tagged : DataFrame
        The job: its main output alone, or all outputs tagged.
    schemas : mapping of str to StructType
        The outputs, the main one first.
    description : str
        The name in Spark's UI of jobs started here.
    flush : callable, optional
        For streams: returns the result of a final watermark on (checkpoint, operator id).
    eventTime : str, optional
        For streams: the column of the main output that carries the watermark.
    delayMs : int, milliseconds
        For streams: the delay of the watermark.
    explanation : callable, optional
        Returns the text of :meth:`explain` without arguments; by default Spark's plan.

    Notes
    -----
    Ports the role of Flink's ``SingleOutputStreamOperator``.
    Differs from Flink: each output that is used on its own runs the job again. To run it once for
    all outputs, use :meth:`tagged`, or call ``persist()`` first.
    """

    _job: _Job

    def __new__(cls, tagged: DataFrame, *_: Any, **__: Any) -> Self:
        """Make an object that is also a DataFrame of the same kind as `tagged`."""
        own: Any = cls
        kind: Any = type(tagged)
        made: Self = object.__new__(_subclass(own, kind))
        return made

    def __init__(
        self,
        tagged: DataFrame,
        schemas: Mapping[str, StructType],
        description: str,
        flush: Callable[[str, int], CepDataFrame] | None = None,
        eventTime: str | None = None,
        delayMs: int = 0,
        explanation: Callable[[], str] | None = None,
    ) -> None:
        job = _Job(tagged, dict(schemas), description, flush, eventTime, delayMs, explanation)
        vars(self).update(vars(job.output(MAIN)))  # the state of a DataFrame of any kind
        self._job = job

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
        InputError
            If the job has no such output.
        """
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

    def withEventTime(self, column: str) -> CepDataFrame:
        """
        Declare the rows' event time column, for Spark's stateful operators after this one.

        On a stream the column then carries the input's watermark, so that a windowed count of
        alerts works in append mode. Rows whose time the previous batch's watermark had passed are
        late there; the time of a match's last event never is.

        Parameters
        ----------
        column : str
            A timestamp column of the main output.

        Returns
        -------
        CepDataFrame
            The same result; on a bounded DataFrame nothing changes.

        Raises
        ------
        InputError
            If the main output has no such timestamp column.
        """
        schema = self._job.schemas[MAIN]
        if column not in schema.fieldNames() or not isinstance(
            schema[column].dataType, TimestampType
        ):
            raise InputError(
                f"withEventTime({column!r}): no timestamp column of the main output",
                f"the output is {schema.simpleString()}",
            )
        job = self._job
        return CepDataFrame(
            job.tagged, job.schemas, job.description, job.flush, column, job.delay_ms,
            job.explanation,
        )  # fmt: skip

    def changed(self, change: Callable[[DataFrame], DataFrame]) -> CepDataFrame:
        """Return the result with its only output changed, also in a flush."""
        job, rows = self._job, change(self.toDF())

        def flush(checkpoint: str, operator_id: int) -> CepDataFrame:
            assert job.flush is not None
            return job.flush(checkpoint, operator_id).changed(change)

        return CepDataFrame(
            rows, {MAIN: rows.schema}, job.description, flush if job.flush is not None else None
        )

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
        of the same events. The checkpoint is only read, so the query can be resumed later with
        nothing lost.

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


@cache
def _subclass(cls: Any, kind: Any) -> Any:
    """Return the class that is both a CepDataFrame and a DataFrame, classic or Connect."""

    def job_name(frame: CepDataFrame) -> JobName:
        return JobName(frame._job.description, frame.sparkSession)

    made = type(cls.__name__, (cls, kind), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    return described(made, kind, job_name)
