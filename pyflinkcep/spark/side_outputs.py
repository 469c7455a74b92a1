# SPDX-License-Identifier: Apache-2.0
"""The side outputs of patterns and queries for events that are not matched."""

from __future__ import annotations

from typing import Self

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.functions import OutputTag, PatternProcessFunction
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.plan.calls import Schema
from pyflinkcep.spark.plan.outputs import add_output, check_tag, output_schemas
from pyflinkcep.spark.plan.settings import StreamSettings
from pyflinkcep.spark.results import AnalysedJob, result_of
from pyflinkcep.spark.shown import shown, shown_in_notebook
from pyflinkcep.spark.worker.consumers import Consumer, FunctionConsumer
from pyflinkcep.spark.worker.unpack import AHEAD, LATE, NULLS

__all__ = ["SideOutputs"]


@attrs.frozen(eq=False, kw_only=True, repr=False)
class SideOutputs:
    """What :class:`PatternStream` and :class:`QueryStream` share; immutable like these."""

    _late_tag: OutputTag | None = None
    _ahead_tag: OutputTag | None = None
    _null_tag: OutputTag | None = None
    _settings: StreamSettings = attrs.field(factory=StreamSettings)

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
        return attrs.evolve(self, late_tag=lateDataOutputTag)

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
        self._settings.check_ahead_output()
        return attrs.evolve(self, ahead_tag=aheadDataOutputTag)

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
        self._settings.check_null_output()
        return attrs.evolve(self, null_tag=nullDataOutputTag)

    def _add_sides(self, schemas: dict[str, StructType], events: StructType) -> dict[str, str]:
        """Add the outputs for events left out; return them by their columns in a stream's job."""
        tags = {LATE: self._late_tag, AHEAD: self._ahead_tag, NULLS: self._null_tag}
        sides = {side: tag.name for side, tag in tags.items() if tag is not None}
        for output in sides.values():
            add_output(schemas, output, events)
        return sides

    def _result(self, analysed: AnalysedJob, consumer: Consumer) -> CepDataFrame:
        """Plan a job whose matches become rows as a consumer says."""
        events = analysed.job.given.schema
        return result_of(analysed, consumer, self._add_sides(consumer.schemas, events))

    def _applied(
        self, analysed: AnalysedJob, function: PatternProcessFunction, schema: Schema
    ) -> CepDataFrame:
        """Plan a job whose matches a function turns into rows."""
        keys = {key.name: key.column for key in analysed.job.source.keys}
        consumer = FunctionConsumer(function, output_schemas(function, schema), keys)
        return self._result(analysed, consumer)

    def __repr__(self) -> str:
        return shown(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return shown_in_notebook(type(self).__name__, self._facts())

    def _facts(self) -> dict[str, str]:
        """Return what users are shown of it, by name."""
        raise NotImplementedError

    def _wants_all(self, events: DataFrame) -> str:
        """Return the method that asks for events in full, if any does."""
        tags = {"sideOutputLateData": self._late_tag, "sideOutputAheadData": self._ahead_tag}
        asked = [f"{name}()" for name, tag in tags.items() if tag is not None]
        return asked[0] if events.isStreaming and asked else ""

    def _refuse_sides(self, what: str) -> None:
        """Refuse side outputs beside what has only one output."""
        tags = {
            "sideOutputLateData": self._late_tag,
            "sideOutputAheadData": self._ahead_tag,
            "sideOutputNullData": self._null_tag,
        }
        for method, tag in tags.items():
            if tag is not None:
                raise NotSupportedError(
                    f"{what} cannot be combined with {method}(), whose events would not be in its "
                    "result",
                    f"leave {method}() out: the progress of a stream counts these events; or take "
                    "them from toDF() of the same pattern or query without RETURN",
                )
