# SPDX-License-Identifier: Apache-2.0
"""The result of a pattern: the main DataFrame, with the side outputs beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from pyflinkcep.errors import InputError
from pyflinkcep.functions import OutputTag
from pyflinkcep.spark.arrow.columns import quoted
from pyflinkcep.spark.described import Described
from pyflinkcep.spark.worker.consumers import MAIN, TAG

__all__ = ["CepDataFrame"]

_WATERMARK = "spark.watermarkDelayMs"
"""The mark by which Spark knows the column that carries a watermark."""


class CepDataFrame:
    """
    What ``select``, ``flatSelect`` and ``process`` return.

    It behaves as the DataFrame of the main output: every attribute that is not listed here is
    that DataFrame's. :meth:`toDF` gives the plain DataFrame where one is needed by its type.

    Parameters
    ----------
    tagged : DataFrame
        The job: its main output alone, or all outputs tagged.
    schemas : mapping of str to StructType
        The outputs, the main one first.
    description : str
        What Spark's UI shows for jobs started here.
    flush : callable, optional
        For streams: gives the result of a final watermark on (checkpoint, operator id).
    eventTime : str, optional
        For streams: the column of the main output that carries the watermark.
    delayMs : int, milliseconds
        For streams: the delay of the watermark.

    Notes
    -----
    Ports the role of Flink's ``SingleOutputStreamOperator``.
    Differs from Flink: each output that is used on its own runs the job again. To run it once
    for all outputs, use :meth:`tagged`, or call ``persist()`` before.
    """

    def __init__(
        self,
        tagged: DataFrame,
        schemas: Mapping[str, StructType],
        description: str,
        flush: Callable[[str, int], CepDataFrame] | None = None,
        eventTime: str | None = None,
        delayMs: int = 0,
    ) -> None:
        self._tagged = tagged
        self._schemas = dict(schemas)
        self._description = description
        self._flush = flush
        self._event_time = eventTime
        self._delay_ms = delayMs
        self._main = self._output(MAIN)

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, the main one first."""
        return list(self._schemas)

    def getSideOutput(self, tag: OutputTag) -> DataFrame:
        """
        Give a side output.

        Parameters
        ----------
        tag : OutputTag
            A tag that the functions write to, or that late data goes to.

        Raises
        ------
        InputError
            When the job has no such output.
        """
        if tag.name not in self._schemas or tag.name == MAIN:
            raise InputError(
                f"no side output {tag.name!r}, there are {list(self._schemas)[1:]}",
                "give the tag to select(), flatSelect() or sideOutputLateData(), "
                "or list it in the process function's outputTags",
            )
        return self._output(tag.name)

    def tagged(self) -> DataFrame:
        """
        Give all outputs of one run in one DataFrame.

        Returns
        -------
        DataFrame
            A column ``tag`` with the name of the output, ``'main'`` for the main one, and a
            struct column for each output, null in the rows of the others.
        """
        if len(self._schemas) > 1:
            return self._tagged
        row = F.struct(*(F.col(quoted(name)) for name in self._tagged.columns))
        return self._tagged.select(F.lit(MAIN).alias(TAG), row.alias(MAIN))

    def toDF(self, *columns: str) -> DataFrame:
        """Give the main output as a plain DataFrame, with other column names if any are given."""
        return self._main.toDF(*columns) if columns else self._main

    def persist(self, *args: Any) -> CepDataFrame:
        """Keep the results of one run for all outputs; see ``DataFrame.persist``."""
        self._tagged.persist(*args)
        return self

    def cache(self) -> CepDataFrame:
        """Keep the results of one run for all outputs; see ``DataFrame.cache``."""
        return self.persist()

    def unpersist(self, blocking: bool = False) -> CepDataFrame:
        """Forget the results kept by :meth:`persist`."""
        self._tagged.unpersist(blocking)
        return self

    def withEventTime(self, column: str) -> CepDataFrame:
        """
        Say which column is the rows' event time, for stateful operators of Spark after this.

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
            When the main output has no such timestamp column.
        """
        schema = self._schemas[MAIN]
        if column not in schema.fieldNames() or not isinstance(
            schema[column].dataType, TimestampType
        ):
            raise InputError(
                f"withEventTime({column!r}): no timestamp column of the main output",
                f"the output is {schema.simpleString()}",
            )
        return CepDataFrame(
            self._tagged, self._schemas, self._description, self._flush, column, self._delay_ms
        )

    def withWatermark(self, eventTime: str, delayThreshold: str) -> Any:
        """Define a watermark; refused on a stream, see :meth:`withEventTime`."""
        if self._main.isStreaming:
            raise InputError(
                f"withWatermark({eventTime!r}) after a pattern on a stream: Spark takes the "
                "smallest of a query's watermarks, so this one, which only matches move, would "
                "stop the first one and with it the pattern",
                f"write withEventTime({eventTime!r}): the column then carries the first watermark",
            )
        return self._main.withWatermark(eventTime, delayThreshold)

    def flush(self, checkpointLocation: str, operatorId: int = 0) -> CepDataFrame:
        """
        Give what a stream that has ended still holds, as if the final watermark had come.

        A query under ``trigger(availableNow=True)`` stops with the events after its watermark
        still waiting, and windows open. What it gave together with what this gives is what the
        same events give as a bounded DataFrame. The checkpoint is read, not changed: the query
        can go on later, and then finds everything still waiting.

        Parameters
        ----------
        checkpointLocation : str
            The checkpoint of a query of this result that has stopped.
        operatorId : int, at least 0
            Which stateful operator of the query the pattern is; 0 unless others come before.

        Returns
        -------
        CepDataFrame
            A bounded result with the same outputs.

        Raises
        ------
        InputError
            When the result is no stream's, or the checkpoint has no state of it.
        """
        if self._flush is None:
            raise InputError(
                "flush on a bounded result", "a bounded DataFrame has its final watermark already"
            )
        return self._flush(checkpointLocation, operatorId)

    def _output(self, name: str) -> DataFrame:
        fields = self._schemas[name].fieldNames()
        if len(self._schemas) == 1:
            chosen = self._tagged
            columns = {field: F.col(quoted(field)) for field in fields}
        else:
            chosen = self._tagged.where(F.col(TAG) == name)
            columns = {field: F.col(quoted(name)).getField(field) for field in fields}
        if name == MAIN and self._event_time is not None and chosen.isStreaming:
            time = columns[self._event_time]
            carries = {_WATERMARK: self._delay_ms}
            columns[self._event_time] = time.alias(self._event_time, metadata=carries)
        elif len(self._schemas) == 1:
            return chosen
        return chosen.select(*(column.alias(field) for field, column in columns.items()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        described = Described(self._description, self._main.sparkSession)
        return described.attribute(name, getattr(self._main, name))

    def __getitem__(self, item: Any) -> Any:
        return self._main[item]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._main)})

    def __repr__(self) -> str:
        return f"CepDataFrame({self._description}: {self._main!r})"
