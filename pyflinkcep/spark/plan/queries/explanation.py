# SPDX-License-Identifier: Apache-2.0
"""The explanation of how a query will run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from pyflinkcep.engines.choice import Evaluation
from pyflinkcep.sase.analysed import AnalysedQuery
from pyflinkcep.sase.model import Form, Query, Strategy
from pyflinkcep.sase.slots import slots_explained
from pyflinkcep.sase.types import one_line
from pyflinkcep.spark.plan.explained import in_sections, watermark_line
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.stream import watermark_of
from pyflinkcep.spark.worker.runtime import job_name
from pyflinkcep.time import duration_text

__all__ = ["query_explanation"]


def query_explanation(
    job: QueryJob,
    how: Evaluation,
    runs_as_pattern: bool,
    found: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """Return the text of ``explain``; `found` has sections of what was sampled or happened."""
    query, analysed = job.query, job.analysed
    return in_sections(
        {
            job_name(one_line(query), language="SASE+"): [
                *_evaluation(analysed, how, runs_as_pattern),
                *_window(query),
                *_totals(job),
                *_shuffle(job, runs_as_pattern),
                *(_emission(job) if job.source.dataframe.isStreaming else ()),
            ],
            "Conditions": list(_conditions(analysed)),
            "Runs distinguished by": list(slots_explained(query, analysed.slots)),
            **found,
            "Warnings": list(_warnings(job)),
        }
    )


def _emission(job: QueryJob) -> Iterator[str]:
    yield watermark_line(watermark_of(job.source))
    yield f"a match is emitted {_when(job)}"


def _evaluation(analysed: AnalysedQuery, how: Evaluation, runs_as_pattern: bool) -> Iterator[str]:
    if runs_as_pattern:
        yield "evaluation: nfa, as the pattern with the same matches"
        return
    yield f"evaluation: {how.name} ({how.reason})"
    others = [name for name in how.candidates if name != how.name]
    if others:
        yield f"where events say that it costs less: {' or '.join(others)}"
    if analysed.why_no_pattern is not None:
        yield f"not a pattern: {analysed.why_no_pattern}"


def _window(query: Query) -> Iterator[str]:
    if query.window is not None:
        yield f"window: {duration_text(query.window)} from the first event to the last, inclusive"
    if query.most_events is not None:
        yield f"window: {query.most_events} events of a partition, of any type"


def _totals(job: QueryJob) -> Iterator[str]:
    if job.windows is not None:
        length, slide = duration_text(job.windows.length), duration_text(job.windows.slide)
        yield f"totals: of the matches in windows of {length}, every {slide}"


def _shuffle(job: QueryJob, runs_as_pattern: bool) -> Iterator[str]:
    keys = ", ".join(key.name for key in job.source.keys)
    if keys:
        yield f"key: {keys}"
    elif job.slice_ms is not None and not runs_as_pattern:
        yield f"key: none; cut into slices of {job.slice_ms} ms and the window around them"
    else:
        yield "key: none; one task does the work"
    if not runs_as_pattern:
        yield f"shuffled: {job.needed() or 'every event, since each may end a run'}"


def _when(job: QueryJob) -> str:
    if job.windows is not None:
        return "as a part of the totals of a window, when that has passed"
    if job.query.looks_ahead:
        last = job.query.components[-1].variable
        return f"when its window has passed, since until then events of {last!r} decide"
    if job.output != "all":
        return "when no later event can make another one the first of its start"
    return "with its last event"


def _conditions(analysed: AnalysedQuery) -> Iterator[str]:
    for variable, edges in analysed.edges.items():
        for edge in ("begin", "take", "leave", "absent"):
            for clause in getattr(edges, edge):
                yield f"{variable} {edge}: {clause.text}"


def _warnings(job: QueryJob) -> Iterator[str]:
    query = job.query
    doubling = [
        repr(part.variable)
        for part in query.positive
        if part.repeats and query.strategy_of(part.variable) is Strategy.SKIP_TILL_ANY_MATCH
    ]
    if query.form is Form.SEQ and doubling and job.output == "all" and job.windows is None:
        within = "" if query.window is None else f" within {duration_text(query.window)}"
        yield (
            f"{', '.join(doubling)} may take or skip each event that fits: n such events of a "
            f"partition{within} make up to 2ⁿ matches"
        )
        yield (
            'stricter conditions, a shorter WITHIN or output="onePerStart" bound them; '
            ".compressed() counts them without listing any"
        )
    if not query.has_window and job.windows is None:
        yield "without WITHIN nothing ends a run: memory grows with the input"
