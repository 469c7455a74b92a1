# SPDX-License-Identifier: Apache-2.0
"""The watermark that a pattern on a stream follows: that of its own events, or Spark's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampNTZType

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.spark.arrow.internals import (
    WATERMARK_DELAY,
    analysed_plan,
    is_event_time,
    is_of_matches,
)
from pyflinkcep.spark.plan.analysis import dataframe_of
from pyflinkcep.spark.plan.file_scan import WATERMARK_NODE
from pyflinkcep.spark.worker.bucket_task import WallClock

_TAG = "pyflinkcep.attached"


def replaced(dataframe: DataFrame, replacement: Callable[[Any], Any]) -> DataFrame:
    """Return a DataFrame with other operators in its plan."""
    plan = analysed_plan(dataframe)
    if plan is None:
        raise NotSupportedError(
            "Spark Connect does not show the plan of a stream", "use a classic Spark session"
        )
    session: Any = dataframe.sparkSession
    return dataframe_of(_replaced(plan, replacement, session._jvm), dataframe)


def later_watermark(node: Any, session: Any, milliseconds: int, ids: dict[str, Any]) -> Any:
    """Return an operator of ``withWatermark`` with a longer delay."""
    # `ids` has the new identity of each operator: Spark takes two of one identity for the same.
    from py4j.java_gateway import get_field  # type: ignore[import-untyped]

    jvm, delay = session._jvm, node.delay()
    parts = [get_field(delay, name) for name in ("months", "days", "microseconds")]
    longer = jvm.org.apache.spark.unsafe.types.CalendarInterval(
        parts[0], parts[1], parts[2] + milliseconds * 1000
    )
    identity = ids.setdefault(str(node.nodeId()), jvm.java.util.UUID.randomUUID())
    return node.copy(identity, node.eventTime(), longer, node.child())


def attach(dataframe: DataFrame, other: DataFrame, data: bytes) -> None:
    """
    Attach another DataFrame and bytes to the last operator of a DataFrame, while its plan lives.

    The plans of all DataFrames derived from it have them too. Over Spark Connect this does nothing.
    """
    plan, session = analysed_plan(dataframe), cast(Any, dataframe.sparkSession)
    if plan is not None:
        both = session._jvm.java.util.HashMap()
        both.put("dataframe", cast(Any, other)._jdf)
        both.put("data", data)
        plan.setTagValue(_tag(session), both)


def attached(node: Any, session: Any) -> tuple[DataFrame, bytes] | None:
    """Return what is attached to an operator; None for nothing."""
    both = node.getTagValue(_tag(session))
    if not both.isDefined():
        return None
    return DataFrame(both.get().get("dataframe"), session), both.get().get("data")


def output_id(plan: Any) -> str | None:
    """Return what identifies the output of an operator within the driver; None if it has none."""
    output = plan.output()
    if not output.size():
        return None
    number = output.apply(0).exprId()
    return f"{number.id()} {number.jvmId()}"


def renumbered(dataframe: DataFrame, like: Any) -> Any:
    """Return the plan of a DataFrame, its output identified as that of an operator."""
    plan, session = analysed_plan(dataframe), dataframe.sparkSession
    jvm: Any = session._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    none, empty = jvm.scala.Option.empty(), _sequence(jvm, [])
    own, wanted = plan.output(), like.output()
    columns = [
        expressions.Alias(
            own.apply(at), wanted.apply(at).name(), wanted.apply(at).exprId(), empty, none, empty
        )
        for at in range(wanted.size())
    ]
    return jvm.org.apache.spark.sql.catalyst.plans.logical.Project(_sequence(jvm, columns), plan)


def _replaced(plan: Any, replacement: Callable[[Any], Any], jvm: Any) -> Any:
    if not plan.isStreaming():
        return plan
    other = replacement(plan)
    if other is not None:
        return other
    children = plan.children()
    below = [_replaced(children.apply(at), replacement, jvm) for at in range(children.size())]
    return plan.withNewChildren(_sequence(jvm, below)) if below else plan


def _tag(session: Any) -> Any:
    return session._jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(_TAG)


def _sequence(jvm: Any, items: list[Any]) -> Any:
    """Return a sequence of Scala."""
    listed = jvm.java.util.ArrayList()
    for item in items:
        listed.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toIndexedSeq()


# In the names of jobs that leave out events too far ahead, which yet move Spark's watermark.
GUARDED = "pack, maxAhead"
_EMITTING = ("Aggregate", "Distinct", "FlatMapGroups", "TransformWithState")
_PATTERN = "TransformWithState"


@attrs.frozen
class StreamWatermark:
    """How a stream's watermark moves."""

    # How far it is behind the latest event of a micro-batch, within that micro-batch; None if it is
    # Spark's, which follows the latest event of earlier micro-batches.
    delay_ms: int | None
    # Whether another stateful operator makes the events: their times are after the watermark of the
    # previous micro-batch, not that of their own.
    is_downstream: bool = False
    reason: str = ""  # Why it is Spark's; empty if it is not
    # The session's clock, if the events' time is what a clock shows (``timestamp_ntz``).
    clock: WallClock | None = None

    @classmethod
    def of(cls, dataframe: DataFrame, time_column: str, pattern: str = "") -> StreamWatermark:
        """Decide for the events of a stream and their time."""
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
            is_downstream = is_of_matches(dataframe.schema[time_column])
            return cls(None, is_downstream, reason="the plan of the stream cannot be inspected")
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
    """Return a stream whose watermarks have a longer delay."""
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
            f"pattern {pattern}: matches of a pattern with maxAhead cannot be matched again: "
            "events too far ahead still move Spark's watermark, which the second would follow",
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


def in_sections(sections: Mapping[str, Sequence[str]]) -> str:
    """Return titles with the lines below each, indented; a title without lines is left out."""
    return "\n".join(
        line
        for title, body in sections.items()
        if body
        for line in (title, *(f"  {line}" for line in body))
    )
