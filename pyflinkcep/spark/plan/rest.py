# SPDX-License-Identifier: Apache-2.0
"""What the patterns before a pattern still hold when their stream has stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.spark.arrow.internals import analysed_plan
from pyflinkcep.spark.arrow.marks import is_of_matches
from pyflinkcep.spark.plan.replanned import attach, attached, output_id, renumbered, replaced
from pyflinkcep.spark.plan.watermark import is_emitting

__all__ = ["Rest", "remember", "rest_of_events"]

Rest = Callable[[DataFrame, str, int], DataFrame]
"""
Returns the output of a final watermark, given the events, the checkpoint and the number of the
operator. It can be pickled.
"""

_RESULT = "MapInArrow"
_PASSING = ("Deduplicate", "GlobalLimit")
"""Operators with state that emit their rows at once, and hold none."""


def remember(result: DataFrame, events: DataFrame, rest: Rest) -> None:
    """
    Remember what returns the rest of a result of events, for patterns whose events it will be.

    A DataFrame derived from the result knows nothing of it but its plan, which therefore has it.
    """
    attach(result, events, cloudpickle.dumps(rest))  # type: ignore[no-untyped-call]


def rest_of_events(
    events: DataFrame, pattern: str, checkpoint: str, operator_id: int
) -> DataFrame | None:
    """
    Return the events that come when the patterns before a pattern end; None if there are none.

    Parameters
    ----------
    events : DataFrame
        The prepared events of a stream.
    pattern : str
        The pattern, for errors.
    checkpoint : str
        The stream's checkpoint.
    operator_id : int
        Which of the query's stateful operators the pattern is, counted from the sink.

    Raises
    ------
    NotSupportedError
        If another operator before the pattern holds rows.
    """
    plan = analysed_plan(events)
    if plan is None:
        if any(map(is_of_matches, events.schema.fields)):
            raise _refused(pattern, "a pattern over Spark Connect")
        return None
    before = _Before(pattern, events.sparkSession, operator_id)
    before.visit(plan)
    if not before.found:
        return None
    ends = {place: rest(checkpoint, number) for place, (rest, number) in before.found.items()}

    def ended(node: Any) -> Any:
        place = output_id(node)
        if place in ends and node.nodeName() == _RESULT:
            return renumbered(ends[place], node)
        if node.children().size() or place is None:
            return None
        schema = StructType.fromJson(json.loads(node.schema().json()))
        return renumbered(events.sparkSession.createDataFrame([], schema), node)

    return replaced(events, ended)


@attrs.define(eq=False)
class _Before:
    """
    Finds the results among the events of a pattern.

    Attributes
    ----------
    pattern : str
        The pattern.
    session : SparkSession
        The session.
    number : int
        That of the last stateful operator seen; Spark counts from the sink.
    found : dict of str to (callable, int)
        What returns the rest of each, by its place in the plan, and the number of its operator.
    """

    pattern: str
    session: Any
    number: int
    found: dict[str, tuple[Callable[[str, int], DataFrame], int]] = attrs.field(factory=dict)

    def visit(self, node: Any, is_inside: bool = False, above: str = "") -> None:
        """Visit the operators from the sink on; those inside a result are only counted."""
        if not node.isStreaming():
            return
        name = node.nodeName()
        rest = self._rest(node) if name == _RESULT and not is_inside else None
        if rest is not None:
            if above:
                raise _refused(self.pattern, above)
            self.found[str(output_id(node))] = (rest, self.number + 1)
            is_inside = True
        elif is_emitting(node) or name.startswith(_PASSING):
            self.number += 1
            if not is_inside and not _passes(node):
                raise _refused(self.pattern, _article(name))
            above = _article(name)
        children = node.children()
        for at in range(children.size()):
            self.visit(children.apply(at), is_inside, above)

    def _rest(self, node: Any) -> Callable[[str, int], DataFrame] | None:
        """Return what :func:`remember` has left at an operator."""
        found = attached(node, self.session)
        return None if found is None else partial(cloudpickle.loads(found[1]), found[0])


def _passes(node: Any) -> bool:
    """Whether an operator with state holds no row that would come at the end."""
    if node.nodeName() == "Join":
        return str(node.joinType().sql()) in ("INNER", "LEFT SEMI")
    return bool(node.nodeName().startswith(_PASSING))


def _article(name: str) -> str:
    return f"the operator {name} of Spark"


def _refused(pattern: str, what: str) -> CepError:
    return NotSupportedError(
        f"pattern {pattern}: flush cannot return the rows that {what} before it may still hold",
        "write its rows to a table, and run the pattern on that as a query of its own",
    )
