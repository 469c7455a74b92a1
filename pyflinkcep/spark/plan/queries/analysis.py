# SPDX-License-Identifier: Apache-2.0
"""What happens when a query runs: the lines of ``explain`` if it is to analyze or to sample."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.spark.plan.queries.job import QueryJob
from pyflinkcep.spark.worker.query_analysis import AnalysisTask

__all__ = ["analyses", "analysis_lines", "first_events"]

_SCHEMA = StructType([StructField("analysis", StringType())])

_Table = Mapping[str, Any]
"""What became of a table, as :class:`AnalysisTask` has it."""


def first_events(dataframe: DataFrame, number: int) -> DataFrame:
    """
    Return some events, those that Spark finds first.

    Raises
    ------
    InvalidArgumentError
        If it is not a number of events.
    """
    if not isinstance(number, int) or number < 0:
        raise InvalidArgumentError(
            f"expected a number of events as sample, got {number!r}", "write sample=100_000"
        )
    return dataframe.limit(number) if number and not dataframe.isStreaming else dataframe


def analyses(whole: QueryJob | None, some: QueryJob | None, size: int) -> dict[str, list[str]]:
    """
    Return sections of what is found out about a query.

    Parameters
    ----------
    whole : QueryJob or None
        The query on all events, to run it.
    some : QueryJob or None
        The query on the first events, to estimate what it would cost.
    size : int
        How many these are.
    """
    found = {}
    if some is not None:
        found[f"What the first {size:,} events say"] = analysis_of(some, runs=False)
    if whole is not None:
        found["What happened"] = analysis_of(whole)
    return found


def analysis_of(job: QueryJob, runs: bool = True) -> list[str]:
    """
    Return what happens when a query runs, by tables of its events.

    Parameters
    ----------
    job : QueryJob
        The query and its events.
    runs : bool
        Whether to run it, or only to estimate what evaluations would cost.

    Raises
    ------
    NotSupportedError
        If the events are a stream.
    """
    if job.source.dataframe.isStreaming:
        raise NotSupportedError(
            f"explain({'analyze=True' if runs else 'sample=…'}) on a stream, which never ends",
            "analyze the query on a bounded DataFrame of such events",
        )
    prepared = job.prepared()
    task = AnalysisTask(job.query, job.columns(prepared.layout), job.evaluation, job.output, runs)
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
    costs = _sums(t["milliseconds"] for t in guessed)
    yield f"estimated costs: {', '.join(f'{n} {ms:,.1f} ms' for n, ms in costs.items())}"


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
