# SPDX-License-Identifier: Apache-2.0
"""The result of a pattern: a DataFrame of the main output, with the side outputs beside it."""

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
    """What all outputs of one result have in common; see :class:`CepDataFrame`."""

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
    What ``select``, ``flatSelect`` and ``process`` return.

    It is the DataFrame of the main output, classic or Spark Connect as its input is, and has the
    other outputs beside it. What is derived from it, such as ``result.where(...)``, is a DataFrame
    without side outputs.

    Parameters
    ----------
    tagged : DataFrame
        The job: its main output alone, or all outputs tagged.
    schemas : mapping of str to StructType
        The outputs, the main one first.
    description : str
        What Spark's UI shows for jobs started here.
    flush : callable, optional
        For streams: returns the result of a final watermark on (checkpoint, operator id).
    eventTime : str, optional
        For streams: the column of the main output that carries the watermark.
    delayMs : int, milliseconds
        For streams: the delay of the watermark.
    explanation : callable, optional
        Returns what :meth:`explain` prints without arguments; Spark's plan if not given.

    Notes
    -----
    Ports the role of Flink's ``SingleOutputStreamOperator``.
    Differs from Flink: each output that is used on its own runs the job again. To run it once
    for all outputs, use :meth:`tagged`, or call ``persist()`` before.
    """

    _job: _Job

    def __new__(cls, tagged: DataFrame, *_: Any, **__: Any) -> Self:
        """Make an object that is a DataFrame of the same kind as `tagged`."""
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
        vars(self).update(vars(job.output(MAIN)))  # the state of a DataFrame, of whatever kind
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
                f"no side output {tag.name!r}, there are {list(self._job.schemas)[1:]}",
                "give the tag to select(), flatSelect() or sideOutputLateData(), "
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
        """Return the main output without the others, with other column names if any are given."""
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
        """Forget the results kept by :meth:`persist`."""
        self._job.tagged.unpersist(blocking)
        return self

    def withEventTime(self, column: str) -> CepDataFrame:
        """
        Declare which column is the rows' event time, for stateful operators of Spark after this.

        On a stream the column then carries the input's watermark, so that a windowed count of
        alerts works in append mode. Rows whose time the watermark had passed in the batch
        before are late there; the time of the last event of a match never is.

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
        """Return the result with its only output changed, that of a flush too."""
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
                "smallest of a query's watermarks, so this one, which only matches move, would "
                "stop the first one and with it the pattern",
                f"write withEventTime({eventTime!r}): the column then carries the first watermark",
            )
        return super().withWatermark(eventTime, delayThreshold)

    def explain(self, extended: bool | str | None = None, mode: str | None = None) -> None:
        """
        Print how the pattern of a statement is going to run; with arguments Spark's plan.

        The result of ``CEP.sql`` and ``matchRecognize`` tells of its pattern as
        :meth:`pyflinkcep.PatternStream.explain` does; that of other calls prints Spark's plan.

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
        Return what a stream that has ended still holds, as if the final watermark had come.

        A query under ``trigger(availableNow=True)`` stops with the events after its watermark
        still waiting, and windows open. Its results and these together are those of the same events
        as a bounded DataFrame. The checkpoint is read, not changed: the query
        can go on later, and then finds everything still waiting.

        Parameters
        ----------
        checkpointLocation : str
            The checkpoint of a query of this result that has stopped.
        operatorId : int, at least 0
            Which stateful operator of the query the pattern is. Spark counts them from the sink:
            0 unless others come after the pattern.

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
                "flush on a bounded result", "a bounded DataFrame has its final watermark already"
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
    """Return the class that is a CepDataFrame and a DataFrame of a kind: classic or Connect."""

    def job_name(frame: CepDataFrame) -> JobName:
        return JobName(frame._job.description, frame.sparkSession)

    made = type(cls.__name__, (cls, kind), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    return described(made, kind, job_name)
