# SPDX-License-Identifier: Apache-2.0
"""EQL queries on a DataFrame, analysed: fields, conditions as Spark's SQL, keys, and the job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyflinkcep.eql import Eql
from pyflinkcep.eql.conditions import Conditions, FieldColumn, Fields, are_alike
from pyflinkcep.eql.model import EqlModel, Field
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.sql_types import BIGINT, VOID, SqlType
from pyflinkcep.expressions.tree import Column as Name
from pyflinkcep.expressions.tree import Literal, Operation, Tree, quoted_name, spark_sql
from pyflinkcep.matching.columns import PREFIX, VALUE, quoted
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.latest import BITS_OF_WORD, EVENTS, LatestEvents, rule_of
from pyflinkcep.matching.layout import Layout, bit_name
from pyflinkcep.spark.plan.analysis import common_kind, sql_type
from pyflinkcep.spark.plan.conditions import sql_column
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.job import Job, Prepared
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource, resolve_keys
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.worker.consumers import Consumer, output_schema
from pyflinkcep.spark.worker.latest_task import LatestMatching, LatestTask
from pyflinkcep.spark.worker.pack import UnpackTask
from pyflinkcep.spark.worker.query_task import QUERY, UNUSABLE

_PLAIN = (
    BooleanType, DecimalType, DoubleType, FloatType, IntegralType, NullType, StringType,
    TimestampType,
)  # fmt: skip


def fields_of(schema: StructType, text: str) -> Fields:
    """Return the fields of events: columns, and fields of structs by their path."""
    known: dict[str, FieldColumn | str] = {}
    for path, found in (*_columns(schema), *_inside(schema)):
        known.setdefault(path, found)
    return Fields(known, text)


def _columns(schema: StructType) -> Iterator[tuple[str, FieldColumn | str]]:
    for field in schema:
        if not isinstance(field.dataType, StructType):
            yield field.name, _field(quoted_name(field.name), field.dataType)


def _inside(
    schema: StructType, path: str = "", sql: str = ""
) -> Iterator[tuple[str, FieldColumn | str]]:
    for field in schema:
        own_path, own_sql = path + field.name, sql + quoted_name(field.name)
        if isinstance(field.dataType, StructType):
            yield from _inside(field.dataType, f"{own_path}.", f"{own_sql}.")
        elif path:
            yield own_path, _field(own_sql, field.dataType)


def _field(sql: str, type_: DataType) -> FieldColumn | str:
    of = type_.elementType if isinstance(type_, ArrayType) else type_
    is_known = isinstance(of, _PLAIN)
    if not is_known or (isinstance(of, StringType) and common_kind(of) is None):
        return type_.simpleString()
    return FieldColumn(Name(sql), sql_type(of), isinstance(type_, ArrayType))


def sql_of(tree: Tree) -> str:
    """Return a condition as SQL."""
    return spark_sql(tree, lambda leaf: str(leaf.sql) if isinstance(leaf, Name) else "")


def as_filter(tree: Tree) -> Tree:
    """Return a condition that is true for the same events, and that sources can be asked."""
    if isinstance(tree, Operation):
        if tree.operator in ("and", "or"):
            return Operation(tree.operator, tuple(map(as_filter, tree.operands)))
        if tree.operator == "coalesce" and tree.operands[1:] == (Literal(False),):
            return tree.operands[0]
    return tree


EVENT, TIE = f"{VALUE}0", f"{VALUE}1"
"""The columns with an event's number, and with its tie-breaker."""

_KEY = f"{PREFIX}k"
_VALUE = Name("value")
_ROW = f"{PREFIX}row"


@attrs.frozen(eq=False)
class EqlJob:
    """A query on a DataFrame."""

    # A sequence's events become rows: one for each event and key that a step wants it with. Those
    # that no step wants are left out before the shuffle; a row says which steps want it, by bits.

    job: Job  # The rows, keyed
    query: Eql
    conditions: Conditions
    wanted: Tree  # The events that any step wants
    columns: Sequence[str]  # Those of an event
    tiebreaker: str | None  # SQL of it

    @classmethod
    def analyse(
        cls,
        query: Eql,
        dataframe: DataFrame,
        time_column: str | None,
        category: str,
        tiebreaker: str | None,
        settings: JobSettings,
    ) -> EqlJob:
        """Check a query against its events."""
        model, name = query.model, " ".join(query.text.split())
        engine = engine_of(dataframe.sparkSession)
        if engine is not SPARK:
            raise NotSupportedError(
                f"EQL is not available on {engine.name}",
                "run it on Spark, or on tables in memory with matchEql",
            )
        source = EventSource.of(dataframe, (), time_column, name, needs_watermark=model.is_sequence)
        source = attrs.evolve(source, language="EQL")
        conditions = Conditions(fields_of(dataframe.schema, query.text), category)
        trees = [conditions.of(step.filter) for step in model.every]
        distinct = tuple(dict.fromkeys(trees))
        wanted = distinct[0] if len(distinct) == 1 else Operation("or", distinct)
        tie = None
        if tiebreaker is not None:
            tie = sql_of(conditions.fields.named("tiebreaker", tiebreaker).smallest)
        settings = attrs.evolve(settings, allows_null_keys=True)
        columns = source.event_columns
        if model.is_sequence:
            rows = _Rows(dataframe, model, conditions, [sql_of(tree) for tree in trees])
            # A stream's operator is told of all events, for the watermark and what comes late.
            keyed = rows.keyed(None if dataframe.isStreaming else sql_of(as_filter(wanted)))
            names = rows.key_names()
            own = [F.col(f"{_KEY}{n}").alias(name) for n, name in enumerate(names)]
            keys, expressions = resolve_keys(keyed, own, name)
            source = attrs.evolve(
                source,
                dataframe=keyed,
                kept=tuple(columns),
                keys=keys,
                key_expressions=expressions,
            )
        job = attrs.evolve(Job.of(source, settings), given=dataframe)
        return cls(job, query, conditions, wanted, columns, tie)

    @property
    def model(self) -> EqlModel:
        """What the query says."""
        return self.query.model

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def filter(self) -> Tree:
        """The events that any step wants, as sources can be asked for them."""
        return as_filter(self.wanted)

    def single_events(self) -> DataFrame:
        """Return the events of a query about single ones."""
        events = self.source.dataframe
        return events.where(sql_column(sql_of(self.filter), events))

    # --- the order of matches, for head and tail

    @property
    def order_names(self) -> list[str]:
        """The columns that order events of equal time, if that matters."""
        if not self.model.pipes:
            return []
        return [EVENT] if self.tiebreaker is None else [TIE, EVENT]

    def order_columns(self) -> list[Column]:
        """Return what is in these columns."""
        every = {EVENT: F.monotonically_increasing_id()}
        if self.tiebreaker is not None:
            every[TIE] = sql_column(self.tiebreaker, self.source.dataframe)
        return [every[name].alias(name) for name in self.order_names]

    def order_fields(self) -> list[StructField]:
        """Return these columns' types."""
        return list(self.source.dataframe.select(*self.order_columns()).schema)

    def key_places(self) -> list[Column]:
        """Return which of the values of its last event, if these are arrays, a match has as key."""
        model, fields = self.model, self.conditions.fields
        last = next(step for step in reversed(model.steps) if not step.is_missing)
        places = []
        for key, column, type_ in zip(
            last.keys, self.source.keys, fields.key_types(model), strict=True
        ):
            field = fields.find(key)
            if field is not None and field.is_array and are_alike(field.key_type, type_):
                values = f"array_compact(element_at({EVENTS}, -1).{sql_of(field.column)})"
                each = _as(sql_of(field.converted(_VALUE)), field, type_)
                own = f"transform({values}, value -> {each})"
                places.append(F.expr(f"array_position({own}, {quoted(column.name)})"))
        return places

    def run(self, consumer: Consumer) -> DataFrame:
        """Run the job on bounded events."""
        prepared = self.prepared()
        task = LatestTask(self.latest(prepared.layout), consumer)
        return self.job.run(prepared, task.run, output_schema(consumer))

    def stream(self, consumer: Consumer, sides: Mapping[str, str]) -> StreamJob:
        """Return the job on unbounded events."""
        prepared = self.prepared()
        layout = prepared.layout
        held_back = HeldBack.by_latest(rule_of(self.model))
        unpack = UnpackTask(layout, (EVENTS,), consumer, sides)
        output = StreamOutput(unpack, output_schema(consumer), held_back, sides)
        matching = LatestMatching(latest=self.latest(layout))
        facts = self._fingerprint(layout)
        return StreamJob.of(self.job, prepared, matching, facts, output, UNUSABLE)

    def prepared(self) -> Prepared:
        """Return the rows with what Spark computes of each."""
        bits = self._bit_names()
        added = {name: F.col(name) for name in bits}
        payload = []
        if self.model.pipes:
            added[EVENT] = F.col(EVENT)
            payload.append(EVENT)
        if self.tiebreaker is not None:
            added[TIE] = sql_column(self.tiebreaker, self.source.dataframe)
            payload.append(TIE)
        return self.job.prepared(added, payload, bits, positions=not self.job.is_stream)

    def latest(self, layout: Layout) -> Callable[[], LatestEvents]:
        """Return what makes what workers match by."""
        tie = None if self.tiebreaker is None else TIE
        return partial(LatestEvents.of_query, self.model, layout, tie)

    def _fingerprint(self, layout: Layout) -> dict[str, str]:
        """Return what must stay the same for stored state to be reused."""
        return {
            QUERY: self.query.words,
            "category": self.conditions.category,
            "tie-breaker": self.tiebreaker or "",
            **layout_facts(layout, self.job.settings.groups),
        }

    def _bit_names(self) -> list[str]:
        return [bit_name(word) for word in range(-(-len(self.model.every) // BITS_OF_WORD))]


@attrs.frozen(eq=False, slots=False)
class _Rows:
    """Makes rows of the events of a sequence, each with a key and the steps that want it."""

    events: DataFrame
    model: EqlModel
    conditions: Conditions
    sql: Sequence[str]  # The condition of each step

    @cached_property
    def groups(self) -> dict[tuple[Field, ...], list[int]]:
        """The numbers of the steps with the same fields as keys."""
        found: dict[tuple[Field, ...], list[int]] = {}
        for number, step in enumerate(self.model.every):
            fields = tuple(Field(key.path, key.optional) for key in step.keys)
            found.setdefault(fields, []).append(number)
        return found

    @cached_property
    def is_plain(self) -> bool:
        """Whether an event has one key, the same at all steps."""
        fields = [self.conditions.fields.find(key) for keys in self.groups for key in keys]
        return len(self.groups) == 1 and not any(f is not None and f.is_array for f in fields)

    def key_names(self) -> list[str]:
        """Return the names of the key in results: those of the first step's fields."""
        names: list[str] = []
        for key in self.model.steps[0].keys:
            name, number = key.path, 2
            while name.lower() in map(str.lower, names):
                name, number = f"{key.path} {number}", number + 1
            names.append(name)
        return names

    def keyed(self, wanted: str | None) -> DataFrame:
        """Return the rows of the events that any step wants; without that SQL, of all events."""
        events = self.events
        if wanted is not None:
            events = events.where(sql_column(wanted, events))
        own = [F.col(quoted(name)) for name in events.columns]
        number = [] if not self.model.pipes else [F.monotonically_increasing_id().alias(EVENT)]
        fields = [f"{_KEY}{n}" for n in range(len(self._types))] + self._word_names()
        if self.is_plain:
            ((keys, steps),) = self.groups.items()
            scalars = [
                self._scalar(key, type_) for key, type_ in zip(keys, self._types, strict=True)
            ]
            needed = [
                f"{sql} IS NOT NULL"
                for key, sql in zip(keys, scalars, strict=True)
                if not key.optional
            ]
            words = [_guarded(needed, sql) for sql in self._words(steps)]
            pairs = zip([*scalars, *words], fields, strict=True)
            values = [sql_column(sql, events).alias(name) for sql, name in pairs]
            rows = events.select(*own, *number, *values)
        else:
            # Numbered in a step of its own: beside explode, each row would have another number.
            rows = events.select(*own, *number)
            explode = F.explode if wanted is not None else F.explode_outer
            row = explode(sql_column(self._merged(), rows)).alias(_ROW)
            rows = rows.select(*(F.col(quoted(name)) for name in rows.columns), row)
            others = [F.col(quoted(name)) for name in rows.columns if name != _ROW]
            inside = [F.col(_ROW).getField(name) for name in fields]
            whole = [
                (F.coalesce(column, F.lit(0)) if name in self._word_names() else column).alias(name)
                for column, name in zip(inside, fields, strict=True)
            ]
            rows = rows.select(*others, *whole)
        if wanted is None:
            return rows
        is_wanted = " OR ".join(f"{name} <> 0" for name in self._word_names())
        return rows.where(F.expr(is_wanted))

    def _merged(self) -> str:
        """Return SQL for the rows of an event: one for each of its keys."""
        listed = ", ".join(self._listed(keys, steps) for keys, steps in self.groups.items())
        rows = f"flatten(array({listed}))"
        if len(self.groups) == 1:
            return rows
        names = [f"{_KEY}{n}" for n in range(len(self._types))]
        key = ", ".join(f"row.{name} AS {name}" for name in names) or "0 AS none"
        same = " AND ".join(f"row.{name} <=> key.{name}" for name in names) or "true"
        own = [f"key.{name} AS {name}" for name in names]
        own += [
            f"aggregate(rows, 0L, (bits, row) -> CASE WHEN {same} THEN bits | row.{word} "
            f"ELSE bits END) AS {word}"
            for word in self._word_names()
        ]
        keys = f"array_distinct(transform(rows, row -> struct({key})))"
        merged = f"transform({keys}, key -> struct({', '.join(own)}))"
        return f"transform(array({rows}), rows -> {merged})[0]"

    def _word_names(self) -> list[str]:
        count = -(-len(self.model.every) // BITS_OF_WORD)
        return [bit_name(word) for word in range(count)]

    def _words(self, steps: Sequence[int]) -> list[str]:
        """Return SQL for the bits of steps that want an event."""
        words = []
        for word in range(len(self._word_names())):
            own = [n for n in steps if n // BITS_OF_WORD == word]
            parts = [
                f"CASE WHEN {self.sql[n]} THEN {1 << n % BITS_OF_WORD}L ELSE 0L END" for n in own
            ]
            words.append(" + ".join(parts) or "0L")
        return words

    def _listed(self, keys: Sequence[Field], steps: Sequence[int]) -> str:
        """Return SQL for the rows of an event for the steps of some key."""
        names = [f"{_KEY}{n}" for n in range(len(keys))]
        words = zip(self._words(steps), self._word_names(), strict=True)
        parts = [*(f"{name} AS {name}" for name in names), *(f"{sql} AS {n}" for sql, n in words)]
        rows = f"array(struct({', '.join(parts)}))"
        choices = list(zip(names, keys, self._types, strict=True))
        for name, key, type_ in reversed(choices):
            rows = f"flatten(transform({self._choices(key, type_)}, {name} -> {rows}))"
        is_wanted = " OR ".join(f"coalesce({self.sql[n]}, false)" for n in steps)
        return f"filter({rows}, row -> {is_wanted})"

    def _scalar(self, key: Field, type_: SqlType) -> str:
        field = self.conditions.fields.find(key)
        if field is None or field.type == VOID:
            return f"cast(NULL AS {_stored(type_)})"
        return _as(sql_of(field.converted(field.column)), field, type_)

    def _choices(self, key: Field, type_: SqlType) -> str:
        """Return SQL for the values of a key's field; of an optional one without values null."""
        field = self.conditions.fields.find(key)
        null = f"array(cast(NULL AS {_stored(type_)}))"
        nothing = f"filter({null}, value -> false)"
        without = null if key.optional else nothing
        if field is None or field.type == VOID:
            return without
        if not are_alike(field.key_type, type_):
            return f"CASE WHEN {sql_of(field.has_value)} THEN {nothing} ELSE {without} END"
        if not field.is_array:
            value = f"array({self._scalar(key, type_)})"
            return value if key.optional else f"filter({value}, value -> value IS NOT NULL)"
        cast = _as(sql_of(field.converted(_VALUE)), field, type_)
        column = sql_of(field.column)
        values = f"array_distinct(transform(array_compact({column}), value -> {cast}))"
        return f"CASE WHEN size(array_compact({column})) > 0 THEN {values} ELSE {without} END"

    @cached_property
    def _types(self) -> list[SqlType]:
        """The type of each part of the key."""
        return self.conditions.fields.key_types(self.model)


def _guarded(needed: Sequence[str], sql: str) -> str:
    """Return SQL for bits that are none without what is needed."""
    return f"CASE WHEN {' AND '.join(needed)} THEN {sql} ELSE 0L END" if needed else sql


def _stored(type_: SqlType) -> str:
    """Return the type of a column of the key: of times that of numbers, which they are here."""
    return BIGINT.name if type_.is_time else type_.name


def _as(sql: str, field: FieldColumn, type_: SqlType) -> str:
    """Return a value of a field as one of the key."""
    return sql if field.read.name == _stored(type_) else f"cast({sql} AS {_stored(type_)})"
