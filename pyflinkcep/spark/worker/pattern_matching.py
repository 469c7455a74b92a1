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

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        nfa, stack, expressions = self.nfa(), ExitStack(), plan.layout.expressions
        with errors_in(plan.layout.pattern):
            stack.enter_context(opened(nfa, context, "a condition"))
        rules = CepOperator(nfa, None, plan.processing_time, self.limit)
        matcher: PageMatcher
        if self.endings is not None:
            compressible = CompressiblePattern.of(nfa, expressions, self.endings.variables)
            matcher = PatternEndingPages(compressible, plan.layout, self.endings.rows)
        else:
            matcher = make_matcher(
                nfa,
                self.wants_timeouts,
                self.limit,
                expressions,
                plan.processing_time,
                is_stream=True,
                wants_reached=self.wants_reached,
                by_windows=self.by_windows,
            )
        return BucketTask(plan, matcher, rules, as_order(self.comparator), stack)

    def requeued(
        self, task: BucketTask, table: pa.Table, fingerprint: Mapping[str, str]
    ) -> pa.Table:
        """Return queued events with the answers to this pattern's conditions."""
        plan = task.plan
        return requeued(table, plan.schema, fingerprint, self.nfa(), plan.layout.expressions)

    def still_droppable(
        self, task: BucketTask, dropped: Iterable[int], fingerprint: Mapping[str, str]
    ) -> list[int]:
        """Return the bits of dropped events as this pattern counts conditions."""
        return still_droppable(dropped, fingerprint, self.nfa(), self.droppable)

    def nfa(self) -> NFA:
        """Compile the pattern."""
        return NFACompiler.compile(self.pattern, self.wants_timeouts)
