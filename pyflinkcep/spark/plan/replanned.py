# SPDX-License-Identifier: Apache-2.0
"""Spark's analysed plans, rewritten; they are private parts of Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pyspark.sql import DataFrame

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.spark.arrow.internals import analysed_plan

__all__ = [
    "WATERMARK_NODE",
    "attach",
    "attached",
    "later_watermark",
    "output_id",
    "renumbered",
    "replaced",
]

WATERMARK_NODE = "EventTimeWatermark"
"""The name of the operator that ``withWatermark`` adds."""

_TAG = "pyflinkcep.attached"


def replaced(dataframe: DataFrame, replacement: Callable[[Any], Any]) -> DataFrame:
    """
    Return a DataFrame with other operators in its plan.

    Parameters
    ----------
    dataframe : DataFrame
        A stream.
    replacement : callable
        Returns what to put in the place of an operator and all below it, or None to go on to the
        operators below. It is only asked about those that work on streams.

    Raises
    ------
    NotSupportedError
        Over Spark Connect, which does not show plans.
    """
    plan = analysed_plan(dataframe)
    if plan is None:
        raise NotSupportedError(
            "Spark Connect does not show the plan of a stream", "use a classic Spark session"
        )
    session: Any = dataframe.sparkSession
    jvm, classic = session._jvm, session._jvm.org.apache.spark.sql.classic
    changed = _replaced(plan, replacement, jvm)
    owner: Any = dataframe
    return DataFrame(classic.Dataset.ofRows(owner._jdf.sparkSession(), changed), session)


def later_watermark(node: Any, session: Any, milliseconds: int, ids: dict[str, Any]) -> Any:
    """
    Return an operator of ``withWatermark`` with a longer delay.

    `ids` has the new identity of each operator: Spark takes two of one identity for the same.
    """
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
