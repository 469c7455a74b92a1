# SPDX-License-Identifier: Apache-2.0
"""What happened when a query ran: the lines of ``explain(analyze=True)``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.types import StringType, StructField, StructType

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.worker.query_analysis import AnalysisTask

__all__ = ["analysis_lines", "analysis_of"]

_SCHEMA = StructType([StructField("analysis", StringType())])

_Table = Mapping[str, Any]
"""What became of a table, as :class:`AnalysisTask` has it."""


def analysis_of(job: QueryJob) -> list[str]:
    """
    Run a query, and return what happened.

    Raises
    ------
    NotSupportedError
        If the events are a stream.
    """
    if job.source.dataframe.isStreaming:
        raise NotSupportedError(
            "explain(analyze=True) on a stream, which never ends",
            "analyze the query on a bounded DataFrame of such events",
        )
    prepared = job.prepared()
    task = AnalysisTask(job.query, job.columns(prepared.layout), job.evaluation, job.output)
    rows = job.job.run(prepared, task.run, _SCHEMA).collect()
    return list(analysis_lines([json.loads(row.analysis) for row in rows]))


def analysis_lines(tables: Sequence[_Table]) -> Iterator[str]:
    """Yield what happened on all tables together."""
    yield f"{sum(t['events'] for t in tables):,} events of its types, in {len(tables)} tables"
    guessed = [table for table in tables if "costs" in table]
    if guessed:
        yield f"estimated counts: {_named(_sums(t['counts'] for t in guessed))}"
        alone = _shares(_means(guessed, "alone"))
        joint = _shares(_means(guessed, "joint"))
        if alone:
            yield f"estimated shares of events that pass their own conditions: {alone}"
        if joint:
            yield f"estimated shares of pairs that pass the others: {joint}"
        yield f"estimated partial matches: {_named(_sums(t['partial'] for t in guessed))}"
        costs = _sums(t["costs"] for t in guessed)
        yield f"estimated costs: {', '.join(f'{n} {ms:,.1f} ms' for n, ms in costs.items())}"
    for name in dict.fromkeys(table["evaluation"] for table in tables):
        yield from _of_evaluation(name, [t for t in tables if t["evaluation"] == name])


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
    runs = [table["runs"] for table in tables if table["runs"] is not None]
    if runs:
        names = list(met)
        events = sum(own["events"] for own in runs)
        most = [max(numbers) for numbers in zip(*(own["most"] for own in runs), strict=True)]
        alive, merged = (
            [sum(numbers) for numbers in zip(*(own[what] for own in runs), strict=True)]
            for what in ("sum", "merged")
        )
        mean = [total / max(1, events) for total in alive]
        yield f"{name}: live runs at most: {_named(dict(zip(names, most, strict=True)))}"
        shown = ", ".join(f"{n} {value:,.1f}" for n, value in zip(names, mean, strict=True))
        yield f"{name}: live runs on average: {shown}"
        yield f"{name}: runs merged: {_named(dict(zip(names, merged, strict=True)))}"


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
