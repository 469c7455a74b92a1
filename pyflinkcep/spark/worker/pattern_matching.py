# SPDX-License-Identifier: Apache-2.0
"""The settings that the workers of a pattern's stream need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

import attrs
import pyarrow as pa

from pyflinkcep.engines.compressed.patterns import CompressiblePattern
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator, PartialMatchLimit
from pyflinkcep.functions import RuntimeContext, opened
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import PageMatcher, make_matcher
from pyflinkcep.matching.order import TieOrder, as_order
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.state.fingerprint import requeued, still_droppable
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.endings import EndingRows, PatternEndingPages
from pyflinkcep.spark.worker.runtime import errors_in


@attrs.frozen(eq=False)
class Endings:
    """A row for each event that completes matches, which are not listed."""

    rows: EndingRows  # Summarizes the matches that an event completes
    variables: tuple[str, ...]  # The stages that take events

    def matcher(self, nfa: NFA, layout: Layout) -> PatternEndingPages:
        """Return what makes these rows."""
        pattern = CompressiblePattern.of(nfa, layout.expressions, self.variables)
        return PatternEndingPages(pattern, layout, self.rows)


@attrs.frozen(eq=False, kw_only=True)
class PatternMatching(Matching):
    """A pattern on a stream; see :class:`BucketPlan`."""

    pattern: Pattern  # The pattern; compiled on each worker
    comparator: TieOrder | None  # Orders events of equal time
    wants_timeouts: bool  # Whether timed-out partial matches are needed
    wants_reached: bool = False  # Whether stages that partial matches reach are needed
    by_windows: bool = False  # Whether a match that the end of a window released has that time
    limit: PartialMatchLimit | None = None  # How many partial matches a key may have
    # Events that matching does not need, as bits of the conditions that Spark evaluated.
    droppable: frozenset[int] = frozenset()
    endings: Endings | None = None  # What to return instead of listed matches; None to list them
    # The stages that take events, and their numbers; empty for endings.
    counted_stages: Mapping[str, int] = attrs.field(factory=dict)

    def task(self, plan: BucketPlan, context: RuntimeContext) -> StreamTask:
        """Return the plan ready to run."""
        return StreamTask(plan, self, context)


class StreamTask(BucketTask):
    """A plan of :class:`PatternMatching` ready to run on a worker."""

    def __init__(
        self, plan: BucketPlan, matching: PatternMatching, context: RuntimeContext
    ) -> None:
        self.nfa: NFA = NFACompiler.compile(matching.pattern, matching.wants_timeouts)
        self._droppable = matching.droppable
        self._open = ExitStack()
        with errors_in(plan.layout.pattern):
            self._open.enter_context(opened(self.nfa, context, "a condition"))
        rules = CepOperator(self.nfa, None, plan.processing_time, matching.limit)
        order = as_order(matching.comparator)
        super().__init__(plan, self._made(plan, matching), rules, order)

    def _made(self, plan: BucketPlan, matching: PatternMatching) -> PageMatcher:
        if matching.endings is not None:
            return matching.endings.matcher(self.nfa, plan.layout)
        return make_matcher(
            self.nfa,
            matching.wants_timeouts,
            matching.limit,
            plan.layout.expressions,
            plan.processing_time,
            is_stream=True,
            wants_reached=matching.wants_reached,
            by_windows=matching.by_windows,
        )

    def requeued(self, table: pa.Table, fingerprint: Mapping[str, str]) -> pa.Table:
        """Return queued events with the answers to this pattern's conditions."""
        return requeued(table, self.schema, fingerprint, self.nfa, self.layout.expressions)

    def still_droppable(self, dropped: Iterable[int], fingerprint: Mapping[str, str]) -> list[int]:
        """Return the bits of dropped events as this pattern counts conditions."""
        return still_droppable(dropped, fingerprint, self.nfa, self._droppable)

    def close(self) -> None:
        """End the life of rich conditions."""
        self._open.close()
