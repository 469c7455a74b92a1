# SPDX-License-Identifier: Apache-2.0
"""A query on a DataFrame, analysed: what is shuffled, and how unkeyed input is sliced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    StringType,
)

from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import queried_attributes
from pyflinkcep.errors import InputError, did_you_mean
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase.analysed import AnalysedQuery
from pyflinkcep.sase.computed import is_computed
from pyflinkcep.sase.model import Form, Query, Strategy
from pyflinkcep.sase.sql import all_of
from pyflinkcep.sase.types import check_types, one_line, output_attributes
from pyflinkcep.spark.arrow.columns import POSITION, SLICE, VALUE, quoted
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.matching.query_table import QueryColumns
from pyflinkcep.spark.plan.analysis import first_line, types_of
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.engine import check_engine
from pyflinkcep.spark.plan.kinds import common_kind
from pyflinkcep.spark.plan.shuffle import shuffled
from pyflinkcep.spark.plan.slices import slice_length, sliced
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.consumers import Consumer, output_schema
from pyflinkcep.spark.worker.query_task import QueryTask

__all__ = ["QueryJob", "attribute_kinds", "query_keys"]


@attrs.frozen(eq=False)
class QueryJob:
    """
    A query on a DataFrame, analysed; :meth:`run` is for bounded ones.

    Attributes
    ----------
    analysed : AnalysedQuery
        The query, and the column that holds an event's type.
    source : EventSource
        The events, also keyed by the attributes of ``[attr]`` unless a strategy is strict.
    evaluation : str
        How matches are found.
    output : str
        Which of them are requested.
    kinds : dict of str to Kind
        The types of the attributes that conditions read.
    slice_ms : int or None, milliseconds
        The length of time slices; None without slices.
    runs : RunLimit or None
        A bound on the runs of a key.
    """

    analysed: AnalysedQuery
    source: EventSource
    evaluation: str
    output: str
    kinds: dict[str, Kind]
    slice_ms: int | None
    runs: RunLimit | None = None

    @classmethod
    def analyse(
        cls,
        analysed: AnalysedQuery,
        dataframe: DataFrame,
        keys: Sequence[str | Column],
        time_column: str | None,
        evaluation: str,
        output: str,
        runs: RunLimit | None = None,
    ) -> QueryJob:
        """
        Check a query against its events.

        Raises
        ------
        InputError
            If a column is missing or of an unsupported type.
        """
        check_engine(dataframe)
        query = analysed.query
        kinds = attribute_kinds(query, dataframe, analysed.type_column)
        keyed_by = query_keys(query, keys)
        source = EventSource.of(dataframe, keyed_by, time_column, one_line(query))
        slices = None
        if (
            not (source.keys or dataframe.isStreaming)
            and query.window is not None
            and output != "nonOverlapping"
        ):
            slices = slice_length(query.window)
        return cls(analysed, source, evaluation, output, kinds, slices, runs)

    @property
    def query(self) -> Query:
        """The query."""
        return self.analysed.query

    @property
    def type_column(self) -> str:
        """The column that holds an event's type."""
        return self.analysed.type_column

    def run(self, consumer: Consumer, limit: int | None = None) -> DataFrame:
        """Plan the job; a task emits at most `limit` matches."""
        events, layout = self.prepared()
        task = QueryTask(
            self.query,
            self.columns(layout),
            self.evaluation,
            self.output,
            consumer,
            limit,
            self.runs,
        )
        return map_in_arrow(events, task.run, output_schema(consumer), self.source.job_name, layout)

    def columns(self, layout: Layout) -> QueryColumns:
        """Return what the query reads from events, whose columns are in `layout`."""
        return QueryColumns(layout, self.type_column, self.kinds, self._names)

    @property
    def _names(self) -> dict[str, str]:
        """The columns that Spark computes."""
        return {sql: f"{VALUE}{n}" for n, sql in enumerate(self.analysed.computed)}

    def computed(self) -> dict[str, Column]:
        """Return what Spark computes from events, each value only for the types that need it."""
        types = F.col(quoted(self.type_column))
        wanted = self.analysed.computed
        return {
            name: F.when(types.isin(sorted(set(wanted[sql]))), F.expr(sql))
            for sql, name in self._names.items()
        }

    def layout(self, source: EventSource, always_hash: bool = False) -> Layout:
        """Return the layout of events with what :meth:`computed` adds."""
        layout = source.layout((), always_hash)
        return attrs.evolve(layout, payload=(*layout.payload, *self._names.values()))

    def prepared(self, by_end: bool = False) -> tuple[DataFrame, Layout]:
        """
        Return the shuffled events and their layout.

        Parameters
        ----------
        by_end : bool
            Whether a match belongs to the slice of its last event rather than its first.
        """
        source = self.source
        dropped = self.needed()
        if dropped is not None:
            source = attrs.evolve(source, dataframe=source.dataframe.where(dropped))
        layout = self.layout(source)
        added = {**source.key_hash(), **self.computed(), POSITION: F.monotonically_increasing_id()}
        if self.slice_ms is None:
            events = source.prepare(added)
        else:
            events = sliced(source.prepare(added), source, self.slice_ms, *self._reach(by_end))
            layout = attrs.evolve(layout, key_signature=(SLICE,))
        return shuffled(events, layout), layout

    def needed(self) -> str | None:
        """Return SQL for the events that the query can use; None if every event may matter."""
        query = self.query
        strategies = {strategy for _, strategy in query.strategies}
        tests = []
        if not strategies & {Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY}:
            tests.append(self.analysed.usable_sql)
        if not query.is_global and (query.form is Form.LIST or len(query.positive) > 1):
            # Nothing equals NULL, so such an event can only be a match of one event.
            tests += [f"{quoted(name)} IS NOT NULL" for name in query.equal]
        return all_of(f"({test})" if len(tests) > 1 else test for test in tests) or None

    # --- slices

    def _reach(self, by_end: bool) -> tuple[int, int]:
        """Return how far before and after a slice its matches need events."""
        window = self.query.window or 0
        if by_end:
            return window, window if self.query.looks_ahead else 0
        return window if self.query.looks_back else 0, window


def attribute_kinds(query: Query, dataframe: DataFrame, type_column: str) -> dict[str, Kind]:
    """
    Return the types of the attributes that a query's conditions read.

    Raises
    ------
    InputError
        If an attribute or the type is not a column, or is of an unsupported type, or values of
        different types are compared or combined.
    """
    name = one_line(query)
    _check_type_column(dataframe, type_column, name)
    asked = queried_attributes(query)
    computed = [attribute for attribute in asked if is_computed(attribute)]
    given_out = [attribute for attribute in output_attributes(query) if is_computed(attribute)]
    computed = list(dict.fromkeys([*computed, *given_out]))
    types = _computed_types(dataframe, computed, name)
    outputs = {**_output_kinds(query, dataframe), **_known(types, given_out)}
    types |= {a: _column_type(dataframe, a, name) for a in asked if a not in types}
    kinds = {a: _kind_of(types[a], a, name) for a in asked}
    check_types(query, {**outputs, **kinds})
    return kinds


def _output_kinds(query: Query, dataframe: DataFrame) -> dict[str, Kind]:
    """Return the types of the columns with which HAVING and RETURN compute, if they have one."""
    columns = {field.name: field.dataType for field in dataframe.schema}
    return _known(columns, [name for name in output_attributes(query) if name in columns])


def _known(types: Mapping[str, DataType], names: Iterable[str]) -> dict[str, Kind]:
    found = {name: common_kind(types[name]) for name in names}
    return {name: kind for name, kind in found.items() if kind is not None}


def query_keys(query: Query, keys: Sequence[str | Column]) -> tuple[str | Column, ...]:
    """Return the key of events: the user's, and the equivalence tests of the query."""
    if query.is_global:
        return tuple(keys)
    named = {key for key in keys if isinstance(key, str)}
    return (*keys, *(name for name in query.equal if name not in named))


def _check_type_column(dataframe: DataFrame, name: str, query: str) -> None:
    if name not in dataframe.columns:
        raise InputError(
            f"query {query}: no type column {name!r}",
            "name the column that holds an event's type: CEP.pattern(..., type='kind')",
        )
    found = dataframe.schema[name].dataType
    if not isinstance(found, StringType):
        raise InputError(
            f"query {query}: expected the type column {name!r} to be string, "
            f"got {found.simpleString()}",
            "cast it, or name another one",
        )


def _column_type(dataframe: DataFrame, attribute: str, query: str) -> DataType:
    if attribute in dataframe.columns:
        return dataframe.schema[attribute].dataType
    raise InputError(
        f"query {query}: the attribute {attribute!r} is not a column",
        did_you_mean(attribute, dataframe.columns, f"the columns are {dataframe.columns}"),
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
    raise InputError(
        f"query {query}: the attribute {attribute!r} is {found.simpleString()}",
        "use a number, string, boolean, date or timestamp",
    )
