# SPDX-License-Identifier: Apache-2.0
"""The watermark that a pattern on a stream follows: that of its own events, or Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampNTZType

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.spark.arrow.internals import WATERMARK_DELAY, analysed_plan
from pyflinkcep.spark.arrow.marks import is_event_time
from pyflinkcep.spark.plan.replanned import WATERMARK_NODE, later_watermark, replaced
from pyflinkcep.spark.worker.wall_clock import WallClock

__all__ = [
    "GUARDED",
    "StreamWatermark",
    "delayed",
    "is_emitting",
    "source_count",
    "stateful_count",
    "streaming_nodes",
]

GUARDED = "pack, maxAhead"
"""In the names of jobs that leave out events too far ahead, which yet move Spark's watermark."""

_EMITTING = ("Aggregate", "Distinct", "FlatMapGroups", "TransformWithState")
_PATTERN = "TransformWithState"


@attrs.frozen
class StreamWatermark:
    """
    How a stream's watermark moves.

    Attributes
    ----------
    delay_ms : int or None, milliseconds
        How far it is behind the latest event of a micro-batch, within that micro-batch; None if it
        is Spark's, which follows the latest event of earlier micro-batches.
    is_downstream : bool
        Whether another stateful operator makes the events: their times are after the watermark of
        the previous micro-batch, not that of their own.
    reason : str
        Why it is Spark's; empty if it is not.
    clock : WallClock or None
        The session's clock, if the events' time is what a clock shows (``timestamp_ntz``).
    """

    delay_ms: int | None
    is_downstream: bool = False
    reason: str = ""
    clock: WallClock | None = None

    @classmethod
    def of(cls, dataframe: DataFrame, time_column: str, pattern: str = "") -> StreamWatermark:
        """
        Decide for the events of a stream and their time.

        Parameters
        ----------
        dataframe : DataFrame
            The events.
        time_column : str
            Their time.
        pattern : str
            The pattern that is to run on them, which some events are refused for; empty for none.

        Raises
        ------
        InputError
            If the time is a ``timestamp_ntz`` and Python does not know the session's time zone, or
            a pattern makes the events, and their time column is not marked.
        NotSupportedError
            If the events come from a pattern with ``maxAhead``.
        """
        plan = analysed_plan(dataframe)
        nodes = None if plan is None else list(streaming_nodes(plan))
        if nodes and pattern:
            _check_handed_on(nodes, dataframe, time_column, pattern)
        found = cls._of(nodes, dataframe, time_column)
        if not isinstance(dataframe.schema[time_column].dataType, TimestampNTZType):
            return found
        zone = str(dataframe.sparkSession.conf.get("spark.sql.session.timeZone"))
        return attrs.evolve(found, clock=WallClock(zone))

    @classmethod
    def _of(
        cls, nodes: list[Any] | None, dataframe: DataFrame, time_column: str
    ) -> StreamWatermark:
        if nodes is None:  # as over Spark Connect
            return cls(None, reason="the plan of the stream cannot be inspected")
        if any(map(is_emitting, nodes)):
            return cls(
                None, is_downstream=True, reason="another stateful operator makes the events"
            )
        if sum(node.nodeName() == WATERMARK_NODE for node in nodes) != 1:
            return cls(None, reason="the stream has several watermarks")
        delay = dataframe.schema[time_column].metadata.get(WATERMARK_DELAY)
        if delay is None:
            return cls(None, reason=f"withWatermark names another column than {time_column!r}")
        return cls(int(delay))

    def __str__(self) -> str:
        """Return a description for ``explain()``."""
        if self.delay_ms is None:
            zone = "" if self.clock is None else f", as a clock shows it in {self.clock.zone}"
            return f"Spark's, of the micro-batches before{zone}: {self.reason}"
        return f"{self.delay_ms} ms behind the latest event, in the micro-batch that brings it"


def streaming_nodes(plan: Any) -> Iterator[Any]:
    """Return the operators of a logical plan that work on streams."""
    if plan.isStreaming():
        yield plan
        children = plan.children()
        for number in range(children.size()):
            yield from streaming_nodes(children.apply(number))


def source_count(plan: Any) -> int:
    """Return how many streams a logical plan reads."""
    return sum(node.children().size() == 0 for node in streaming_nodes(plan))


def stateful_count(plan: Any) -> int:
    """Return how many operators of a logical plan keep state and make new rows."""
    return sum(map(is_emitting, streaming_nodes(plan)))


def is_emitting(node: Any) -> bool:
    """Whether an operator keeps state and makes new rows when Spark's watermark moves."""
    if node.nodeName() == "Join":
        children = node.children()
        return all(children.apply(number).isStreaming() for number in range(children.size()))
    return bool(node.nodeName().startswith(_EMITTING))


# --- the watermark that is handed on


def _is_guarded(node: Any) -> bool:
    """Whether an operator leaves out events that are too far ahead."""
    is_task = node.nodeName().endswith("MapInArrow")
    return bool(is_task and GUARDED in node.functionExpr().toString())


def delayed(dataframe: DataFrame, milliseconds: int) -> DataFrame:
    """
    Return a stream whose watermarks have a longer delay.

    Raises
    ------
    NotSupportedError
        Over Spark Connect.
    """
    session, ids = dataframe.sparkSession, dict[str, Any]()

    def longer(node: Any) -> Any:
        if node.nodeName() != WATERMARK_NODE:
            return None
        return later_watermark(node, session, milliseconds, ids)

    return replaced(dataframe, longer)


def _check_handed_on(
    nodes: list[Any], dataframe: DataFrame, time_column: str, pattern: str
) -> None:
    """Refuse matches as events if the watermark may be ahead of their time."""
    if any(map(_is_guarded, nodes)):
        raise NotSupportedError(
            f"pattern {pattern}: a pattern over a pattern with maxAhead: events too far ahead "
            "still move Spark's watermark, which the second would follow",
            "write the first one's rows to a table, and match that in a query of its own; or leave "
            "maxAhead out, and filter such events before withWatermark",
        )
    if is_event_time(dataframe.schema[time_column]):
        return
    makers = [node for node in nodes if is_emitting(node)]
    if makers and makers[0].nodeName().startswith(_PATTERN):
        raise InputError(
            f"pattern {pattern}: the events are matches, and the watermark may be ahead of their "
            f"{time_column!r}, so that some would be late",
            f"write withEventTime({time_column!r}) on the result of the first pattern, or use "
            "the column matchTimestamp of its toDF()",
        )
