# SPDX-License-Identifier: Apache-2.0
"""The explanation of how a query will run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from pyflinkcep.engines.choice import Evaluation
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.sase.model import Form, Query, Strategy
from pyflinkcep.sase.placement import EDGES
from pyflinkcep.sase.types import one_line
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.plan.stream import watermark_of
from pyflinkcep.spark.plan.watermark import in_sections
from pyflinkcep.spark.worker.query_task import AnalysisTask
from pyflinkcep.spark.worker.runtime import job_name
from pyflinkcep.time import duration_text


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
            "Runs distinguished by": list(analysed.slots_explained()),
            **found,
            "Warnings": list(_warnings(job)),
        }
    )


def _emission(job: QueryJob) -> Iterator[str]:
    yield f"watermark: {watermark_of(job.source)}"
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
        for edge in EDGES:
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


_SCHEMA = StructType([StructField("analysis", StringType())])
_Table = Mapping[str, Any]  # What became of a table, as `AnalysisTask` has it


def first_events(dataframe: DataFrame, number: int) -> DataFrame:
    """Return some events, those that Spark finds first."""
    if not isinstance(number, int) or number < 0:
        raise InvalidArgumentError(
            f"expected a number of events as sample, got {number!r}", "write sample=100_000"
        )
    return dataframe.limit(number) if number and not dataframe.isStreaming else dataframe


def analyses(whole: QueryJob | None, some: QueryJob | None, size: int) -> dict[str, list[str]]:
    """Return sections of what is found out about a query."""
    found = {}
    if some is not None:
        found[f"What the first {size:,} events say"] = analysis_of(some, runs=False)
    if whole is not None:
        found["What happened"] = analysis_of(whole)
    return found


def analysis_of(job: QueryJob, runs: bool = True) -> list[str]:
    """Return what happens when a query runs, by tables of its events."""
    if job.source.dataframe.isStreaming:
        raise NotSupportedError(
            f"explain({'analyze=True' if runs else 'sample=…'}) is not available on a stream, "
            "which never ends",
            "analyze the query on a bounded DataFrame of such events",
        )
    prepared = job.prepared()
    task = AnalysisTask(job.plan, job.columns(prepared.layout), runs)
    rows = job.job.run(prepared, task.run, _SCHEMA).collect()
    return list(analysis_lines([json.loads(row.analysis) for row in rows]))


def analysis_lines(tables: Sequence[_Table]) -> Iterator[str]:
    """Yield what happened on all tables together."""
    yield f"{sum(t['events'] for t in tables):,} events of its types, in {len(tables)} tables"
    guessed = [table["estimate"] for table in tables if "estimate" in table]
    if guessed:
        yield from _of_estimates(guessed)
    elif tables:
        yield "nothing estimated: one evaluation answers it, or the form of the query decides"
    for name in dict.fromkeys(table["evaluation"] for table in tables):
        own = [table for table in tables if table["evaluation"] == name]
        if "matches" in own[0]:
            yield from _of_evaluation(name, own)
        else:
            yield f"{name} would run on {len(own)} of the tables"


def _of_estimates(guessed: Sequence[_Table]) -> Iterator[str]:
    yield f"estimated counts: {_named(_sums(t['counts'] for t in guessed))}"
    alone, joint = (_shares(_means(guessed, what)) for what in ("alone", "joint"))
    if alone:
        yield f"estimated shares of events that pass their own conditions: {alone}"
    if joint:
        yield f"estimated shares of pairs that pass the others: {joint}"
    orders = dict.fromkeys(", ".join(table["order"]) for table in guessed)
    yield f"estimated order, the rarest first: {' or '.join(orders)}"
    yield f"estimated partial matches: {_named(_sums(t['partial'] for t in guessed))}"
    yield f"estimated pairs tested, weighed: {_named(_sums(t['pairs'] for t in guessed))}"


def _of_evaluation(name: str, tables: Sequence[_Table]) -> Iterator[str]:
    matches = sum(table["matches"] for table in tables)
    took = sum(table["milliseconds"] for table in tables)
    yield f"{name}: {matches:,} matches in {took:,.1f} ms of CPU, on {len(tables)} tables"
    orders = dict.fromkeys(", ".join(table["order"]) for table in tables if table["order"])
    if orders:
        yield f"{name}: joined in the order {' or '.join(orders)}"
    met = _sums(table["met"] for table in tables)
    if met:
        what = "candidates tested" if orders else "events tried on runs"
        yield f"{name}: {what}: {_named(met)}"
    if any(table["most"] for table in tables):
        most: dict[str, int] = {}
        for variable, number in ((v, n) for table in tables for v, n in table["most"].items()):
            most[variable] = max(number, most.get(variable, 0))
        mean = _means(tables, "mean").items()
        yield f"{name}: live runs at most: {_named(most)}"
        yield f"{name}: live runs on average: {', '.join(f'{v} {n:,.1f}' for v, n in mean)}"
        yield f"{name}: runs merged: {_named(_sums(table['merged'] for table in tables))}"


def _sums(every: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for own in every:
        for name, number in own.items():
            total[name] = total.get(name, 0) + number
    return total


def _means(tables: Sequence[_Table], what: str) -> dict[str, float]:
    """Return the means over tables, those with more events counting more."""
    events = sum(table["events"] for table in tables)
    weighed = (
        {name: share * table["events"] / events for name, share in table[what].items()}
        for table in tables
    )
    return _sums(weighed)


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.2g}" for name, share in shares.items() if share < 0.995)


def _named(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {number:,.0f}".strip() for name, number in numbers.items())
