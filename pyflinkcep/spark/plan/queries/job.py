# SPDX-License-Identifier: Apache-2.0
"""A query on a DataFrame, analysed once for bounded and unbounded jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, StringType

from pyflinkcep.engines.compressed.matches import TimeWindows, listing, refuse_outside, windows_of
from pyflinkcep.engines.queries import QueryPlan
from pyflinkcep.engines.sequences.runs import RunLimit
from pyflinkcep.errors import InputError, did_you_mean
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tree import literal_sql
from pyflinkcep.matching.columns import BITS, VALUE, quoted
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.queries import QueryColumns
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.sase.attributes import (
    copied_attributes,
    is_computed,
    output_types,
    queried_attributes,
)
from pyflinkcep.sase.model import Form, Query
from pyflinkcep.sase.text import stored_text
from pyflinkcep.sase.types import (
    check_types,
    literal_moments,
    one_line,
    with_exact_literals,
    with_instants,
)
from pyflinkcep.spark.plan.analysis import common_kind, first_line
from pyflinkcep.spark.plan.conditions import sql_column, types_of
from pyflinkcep.spark.plan.job import Job, Prepared, copied, slice_length, sliced
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.worker.consumers import Consumer, output_schema
from pyflinkcep.spark.worker.endings import EndingRows
from pyflinkcep.spark.worker.pack import NULLS, RowsTask, UnpackTask
from pyflinkcep.spark.worker.query_task import (
    QUERY,
    UNUSABLE,
    USABLE,
    EndingsTask,
    QueryMatching,
    QueryTask,
)

_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


def attribute_kinds(query: Query, dataframe: DataFrame, type_column: str) -> dict[str, Kind]:
    """Return the types of the attributes that a query's conditions read."""
    name = one_line(query)
    _check_type_column(dataframe, type_column, name)
    asked, given_out = queried_attributes(query), output_types(query)
    copied = [*copied_attributes(query), *copied_attributes(query, computed=True)]
    types = {field.name: field.dataType for field in dataframe.schema}
    folded = {column.lower() for column in types}  # Spark reads HAVING and RETURN, in any case
    for attribute in (*given_out, *copied):
        if not is_computed(attribute) and attribute.lower() not in folded:
            raise _no_column(attribute, dataframe, name)
    computed = list(dict.fromkeys(filter(is_computed, (*asked, *given_out, *copied))))
    types |= _computed_types(dataframe, computed, name)
    for attribute in asked:
        if attribute not in types:
            raise _no_column(attribute, dataframe, name)
    kinds = {a: _kind_of(types[a], a, name) for a in asked}
    found = {a: common_kind(types[a]) for a in given_out if a in types}
    outputs = {a: kind for a, kind in found.items() if kind is not None}
    return {**kinds, **check_types(query, {**outputs, **kinds})}


def analysed_on(dataframe: DataFrame, query: Query, type_column: str) -> AnalysedQuery:
    """Return a query on a DataFrame, whose decimals make decimals of the literals beside them."""
    types = {field.name.casefold(): field.dataType for field in dataframe.schema}

    def is_decimal(name: str) -> bool:
        return isinstance(types.get(name.casefold()), DecimalType)

    return AnalysedQuery(with_exact_literals(query, is_decimal), type_column)


def in_session_zone(query: Query, dataframe: DataFrame) -> Query:
    """Return a query whose literal timestamps are those of the session's clock."""
    every = list(dict.fromkeys(literal_moments(query)))
    if not every:
        return query
    asked = [
        f"unix_micros({sql}), cast({sql} AS timestamp_ntz)"
        for sql in (f"cast({literal_sql(moment)} AS timestamp)" for moment in every)
    ]
    row = dataframe.sparkSession.sql(f"SELECT {', '.join(asked)}").collect()[0]
    known = {
        moment: attrs.evolve(
            moment, instant=row[2 * n], local=(row[2 * n + 1] - _EPOCH) // _MICROSECOND
        )
        for n, moment in enumerate(every)
    }
    return with_instants(query, known.__getitem__)


def _no_column(attribute: str, dataframe: DataFrame, query: str) -> InputError:
    return InputError(
        f"query {query}: the attribute {attribute!r} is not a column",
        did_you_mean(attribute, dataframe.columns, f"the columns are {dataframe.columns}"),
    )


def _check_type_column(dataframe: DataFrame, name: str, query: str) -> None:
    if name not in dataframe.columns:
        raise InputError(
            f"query {query}: no type column {name!r}",
            "name the column that holds an event's type: CEP.pattern(..., type='kind')",
        )
    found = dataframe.schema[name].dataType
    if common_kind(found) is not Kind.STRING:
        raise InputError(
            f"query {query}: expected the type column {name!r} to be string, "
            f"got {found.simpleString()}",
            "cast it, or name another one",
        )


def _computed_types(
    dataframe: DataFrame, attributes: Sequence[str], query: str
) -> dict[str, DataType]:
    """Return the types of expressions; refuse what Spark cannot compute, and aggregates."""

    def refusal(number: int, cause: Exception) -> InputError:
        return InputError(
            f"query {query}: {attributes[number]} cannot be evaluated: {first_line(cause)}",
            f"the columns are {dataframe.columns}",
        )

    return dict(zip(attributes, types_of(attributes, dataframe, refusal), strict=True))


def _kind_of(found: DataType, attribute: str, query: str) -> Kind:
    kind = common_kind(found)
    if kind is not None:
        return kind
    problem, hint = "", "use a number, string, boolean, date or timestamp"
    if isinstance(found, StringType):
        problem = ", and strings are compared byte by byte here"
        hint = "cast it to string before CEP.pattern, or lower(...) of it if case does not matter"
    raise InputError(
        f"query {query}: the attribute {attribute!r} is {found.simpleString()}{problem}", hint
    )


@attrs.frozen(eq=False)
class QueryJob:
    """A query on a DataFrame, analysed."""

    # The events, also keyed by the attributes of ``[attr]`` unless a strategy is strict, and the
    # user's settings.
    job: Job
    analysed: AnalysedQuery  # The query, and the column that holds an event's type
    evaluation: str  # How matches are found
    kinds: dict[str, Kind]  # The types of the attributes that conditions read
    slice_ms: int | None  # The length of time slices; None without slices
    # Windows whose events are matched by themselves; None if all are matched together.
    windows: TimeWindows | None = None

    @classmethod
    def analyse(
        cls,
        analysed: AnalysedQuery,
        dataframe: DataFrame,
        keys: Sequence[str | Column],
        time_column: str | None,
        settings: JobSettings,
        evaluation: str,
    ) -> QueryJob:
        """Check a query against its events."""
        query = in_session_zone(analysed.query, dataframe)
        if query is not analysed.query:
            analysed = AnalysedQuery(query, analysed.type_column)
        keys, windows = query_keys(query, keys), None
        if query.totals is not None:
            windows = windows_of(query)
            analysed = AnalysedQuery(listing(query), analysed.type_column)
            query = analysed.query
        kinds = attribute_kinds(query, dataframe, analysed.type_column)
        source = EventSource.of(dataframe, keys, time_column, one_line(query))
        job = Job.of(source, attrs.evolve(settings, allows_null_keys=True))
        slices = None
        if (
            not (source.keys or job.is_stream)
            and query.window is not None
            and settings.output != "nonOverlapping"
        ):
            slices = slice_length(query.window)
        return cls(job, analysed, evaluation, kinds, slices, windows)

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def output(self) -> str:
        """Which matches are requested."""
        return self.job.settings.output

    @property
    def plan(self) -> QueryPlan:
        """The query, and how it is answered."""
        limit = self.job.settings.limit
        runs = None if limit is None else RunLimit(limit.most)
        return QueryPlan(self.query, self.evaluation, self.output, runs)

    @property
    def query(self) -> Query:
        """The query."""
        return self.analysed.query

    @property
    def variables(self) -> Sequence[str]:
        """The variables that take events."""
        return self.query.variables

    def run(self, consumer: Consumer, limit: int | None = None) -> DataFrame:
        """Run the job on bounded events; a task emits at most `limit` matches."""
        prepared = self.prepared()
        task = QueryTask(self.plan, self.columns(prepared.layout), consumer, limit)
        return self.job.run(prepared, task.run, output_schema(consumer))

    def stream(self, consumer: Consumer, sides: Mapping[str, str]) -> StreamJob:
        """Return the job on unbounded events."""
        prepared, unneeded = self._prepared_stream(sides)
        held_back = HeldBack.by_query(self.query, self.output)
        layout = prepared.layout
        unpack = UnpackTask(layout, self.query.variables, consumer, sides)
        output = StreamOutput(unpack, output_schema(consumer), held_back, sides)
        matching = QueryMatching(plan=self.plan, columns=self.columns(layout))
        facts = self._fingerprint(layout)
        return StreamJob.of(self.job, prepared, matching, facts, output, unneeded)

    # --- without listing

    def in_windows(self, windows: TimeWindows) -> QueryJob:
        """Return the query on the events of each of some windows."""
        refuse_outside(self.query)
        return attrs.evolve(self, windows=windows, slice_ms=None)

    def endings(self, rows: EndingRows) -> DataFrame:
        """Return a row for each bounded event that completes matches."""
        prepared = self.prepared(by_end=True)
        task = EndingsTask(self.query, self.columns(prepared.layout), rows)
        return self.job.run(prepared, task.run, rows.schema)

    def unpacked(self, consumer: Consumer, limit: int | None) -> DataFrame:
        """Return the rows of compressed matches, at most `limit` from each task."""
        return self.run(consumer, limit)

    def stream_of_endings(self, rows: EndingRows) -> StreamJob:
        """Return the job on unbounded events with a row for each that completes matches."""
        prepared, unneeded = self._prepared_stream({})
        held_back = HeldBack.by_query(self.query, self.output, compressed=True)
        facts = {**self._fingerprint(prepared.layout), "output": "all matches of an event"}
        if self.windows is not None:
            held_back = HeldBack(self.windows.length)
            facts["output"] = f"all matches of windows of {self.windows}"
        output = StreamOutput(RowsTask(), rows.schema, held_back, what=rows.what)
        columns = self.columns(prepared.layout)
        matching = QueryMatching(plan=self.plan, columns=columns, rows=rows)
        return StreamJob.of(self.job, prepared, matching, facts, output, unneeded)

    def columns(self, layout: Layout) -> QueryColumns:
        """Return what the query reads from events, whose columns are in `layout`."""
        return QueryColumns(layout, self.analysed.type_column, self.kinds, self._names)

    def prepared(self, by_end: bool = False) -> Prepared:
        """Return the bounded events with what Spark computes from each."""
        needed = self.needed()
        job = self.job if needed is None else self.job.where(needed)
        prepared = job.prepared(self._computed(), tuple(self._names.values()), positions=True)
        if self.windows is not None:
            return copied(self.windows, prepared, self.source)
        if self.slice_ms is None:
            return prepared
        return sliced(prepared, self.source, self.slice_ms, *self._reach(by_end))

    def needed(self) -> str | None:
        """Return SQL for the events that the query can use; None if every event may matter."""
        query = self.query
        tests = [self.analysed.usable_sql] if self.analysed.skips_others else []
        if not query.is_global and (query.form is Form.LIST or query.takes_several):
            # Nothing equals NULL, so such an event can only be a match of one event.
            tests += [f"{quoted(name)} IS NOT NULL" for name in query.equal]
        return " AND ".join(f"({test})" if len(tests) > 1 else test for test in tests) or None

    # --- helpers

    @property
    def _names(self) -> dict[str, str]:
        """The columns that Spark computes."""
        computed = dict.fromkeys([*self.analysed.computed, *filter(is_computed, self.kinds)])
        return {sql: f"{VALUE}{n}" for n, sql in enumerate(computed)}

    def _computed(self) -> dict[str, Column]:
        """Return what Spark computes from events, each value only for the types that need it."""
        types, every = F.col(quoted(self.analysed.type_column)), F.lit(True)
        events = self.job.source.dataframe
        wanted = {sql: types.isin(sorted(set(own))) for sql, own in self.analysed.computed.items()}
        return {
            name: F.when(wanted.get(sql, every), sql_column(sql, events))
            for sql, name in self._names.items()
        }

    def _reach(self, by_end: bool) -> tuple[int, int]:
        """Return how far before and after a slice its matches need events."""
        window = self.query.window or 0
        if by_end:
            return window, window if self.query.looks_ahead else 0
        return window if self.query.looks_back else 0, window

    def _prepared_stream(self, sides: Mapping[str, str]) -> tuple[Prepared, frozenset[int]]:
        """Return the unbounded events, and the bits of those that no match needs."""
        added, needed = self._computed(), self.needed()
        is_filtered = needed is not None and not set(sides) - {NULLS}
        if is_filtered:
            added[BITS] = F.when(F.expr(str(needed)), 1).otherwise(0).cast("bigint")
        prepared = self.job.prepared(added, tuple(self._names.values()))
        if self.windows is not None:
            prepared = copied(self.windows, prepared, self.source)
        return prepared, UNUSABLE if is_filtered else frozenset()

    def _fingerprint(self, layout: Layout) -> dict[str, str]:
        """Return what must stay the same for stored state to be reused."""
        # State is events, so it fits every evaluation and every output.
        return {
            QUERY: stored_text(self.query),
            USABLE: self.needed() or "all",
            "output": self.output,
            "type column": self.analysed.type_column,
            **layout_facts(layout, self.job.settings.groups),
        }


def query_keys(query: Query, keys: Sequence[str | Column]) -> tuple[str | Column, ...]:
    """Return the key of events: the user's, GROUP BY, and the equivalence tests of the query."""
    named = {key for key in keys if isinstance(key, str)}
    return (*keys, *(name for name in query.key if name not in named))
