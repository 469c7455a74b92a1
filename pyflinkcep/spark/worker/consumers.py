# SPDX-License-Identifier: Apache-2.0
"""From matches to output rows: through the user's functions, or column by column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.errors import CepRuntimeError, FunctionError
from pyflinkcep.functions import (
    FunctionAdapter,
    Match,
    OutputTag,
    PatternProcessFunction,
    RuntimeContext,
    TimedOutPartialMatchHandler,
    collect_returned,
)
from pyflinkcep.matching.columns import Flags, Ints, retyped, table_of
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.keys import codes, paired
from pyflinkcep.matching.layout import key_values
from pyflinkcep.matching.leaf_columns import FoundMatches, LeafColumn, LeafColumns
from pyflinkcep.matching.matcher import MOST_EVENTS, Wanted
from pyflinkcep.matching.results import REACHED, Found, known_times, stage_column
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.rows import RowWriter, shortened
from pyflinkcep.time import clock_ms

MAIN = "main"  # The name of the main output among the tagged ones
TAG = "tag"  # The column of tagged outputs that names the output a row belongs to
Outputs = dict[str, pa.Table]  # Rows by output name, including `MAIN`


@attrs.define(eq=False)
class Consumer(ABC):
    """Turns matches and timeouts into rows; by default column by column."""

    # Whether timed-out partial matches are needed, and stages that partial matches reach.
    wants_timeouts: bool = attrs.field(init=False, default=False)
    wants_reached: bool = attrs.field(init=False, default=False)
    # Whether the outputs show the time at which a match is emitted, and the end of a window as the
    # time of what it released.
    shows_time: bool = attrs.field(init=False, default=True)
    by_windows: bool = attrs.field(init=False, default=True)
    # About how many events the results may have that it is given at a time.
    most_events: int = attrs.field(init=False, default=MOST_EVENTS)
    schemas: dict[str, StructType]  # The schema of each output by name, :data:`MAIN` first

    def open(self, context: RuntimeContext) -> None:  # noqa: B027
        """Prepare for work on a worker."""

    def close(self) -> None:  # noqa: B027
        """End work on a worker."""

    @abstractmethod
    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Make the rows of some results."""


def wanted_by(consumer: Consumer, limit: PartialMatchLimit | None) -> Wanted:
    """Return what a consumer wants of a matcher."""
    return Wanted(consumer.wants_timeouts, consumer.wants_reached, consumer.by_windows, limit)


@attrs.define(eq=False)
class FunctionConsumer(Consumer):
    """Calls a user's process function for every match."""

    function: PatternProcessFunction  # The function, or an adapter around one
    schemas: dict[str, StructType]  # The schema of each output by name, including :data:`MAIN`
    # The events' columns that form the key, by the key's names; for errors.
    keys: Mapping[str, str] = attrs.field(factory=dict)
    _writers: dict[str, RowWriter] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.wants_timeouts = isinstance(self.function, TimedOutPartialMatchHandler)
        self.shows_time = not isinstance(self.function, FunctionAdapter)
        self.by_windows = False
        self.most_events = 1 << 14  # each becomes a Row

    def open(self, context: RuntimeContext) -> None:
        """Open the function."""
        for name, schema in self.schemas.items():
            where = "" if name == MAIN else f" for side output {name!r}"
            self._writers[name] = RowWriter(schema, f"{self.function!r}{where}")
        self.function.setRuntimeContext(context)
        self.function.open(context)

    def close(self) -> None:
        """Close the function."""
        self.function.close()

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Call the function for each result; return its rows."""
        rows = events.rows(found.handles)
        context = _Context(self._writers)
        out = _Collector(context)
        for number, (is_match, timestamp, match) in enumerate(found.results(rows)):
            context.now = timestamp
            try:
                if is_match:
                    returned = self.function.processMatch(match, context, out)
                    if returned is not None:
                        collect_returned(returned, out, repr(self.function))
                else:
                    self._time_out(match, context)
            except (Exception, SystemExit, KeyboardInterrupt) as cause:
                error = self._failure(cause, "match" if is_match else "timeout", match)
                first = found.handles[found.firsts[number]]  # all of its events share the key
                key = key_values(self.keys, events.take([first]), 0)
                raise error.at_time(timestamp).at_key(key) from error.__cause__
        return {name: self._writers[name].table(rows) for name, rows in context.rows.items()}

    def _time_out(self, match: Match, context: _Context) -> None:
        returned = self.function.processTimedOutMatch(match, context)  # type: ignore[attr-defined]
        if returned is not None:
            raise FunctionError(
                f"{self.function!r}: processTimedOutMatch returned {type(returned).__name__}",
                "put the rows of timeouts into a side output: ctx.output(tag, row)",
            )

    def _failure(self, cause: BaseException, what: str, match: Match) -> CepRuntimeError:
        if isinstance(cause, CepRuntimeError):
            return cause
        error = FunctionError(
            f"{self.function!r} failed on the {what} {shortened(match)}: "
            f"{type(cause).__name__}: {cause}"
        )
        error.__cause__ = cause
        return error


class _Context:
    """The process functions' context; checks the rows they emit."""

    def __init__(self, writers: Mapping[str, RowWriter]) -> None:
        self._writers = writers
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in writers}
        self.now = 0

    def timestamp(self) -> int:
        return self.now

    def currentProcessingTime(self) -> int:
        return clock_ms()

    def output(self, outputTag: OutputTag, value: Any) -> None:
        if outputTag.name == MAIN or outputTag.name not in self.rows:
            raise FunctionError(
                f"side output {outputTag.name!r} is not declared",
                f"list it in the function's outputTags; declared: {list(self.rows)[1:]}",
            )
        self.add(outputTag.name, value)

    def add(self, output: str, value: Any) -> None:
        self.rows[output].append(self._writers[output].row(value))


@attrs.frozen(eq=False)
class _Collector:
    """Collects the functions' rows of the main output."""

    context: _Context

    def collect(self, record: Any) -> None:
        self.context.add(MAIN, record)


@attrs.frozen
class MatchTimes:
    """The times of matches as a column."""

    # A match that an event completes or releases has the event's time; one that the end of a window
    # releases has that time. Where micro-batches end makes no difference, and the watermark before
    # is not ahead of it.

    unit: int | None  # Units of the time column per millisecond; None if it is bigint milliseconds
    column: str | None = None  # The time column of events; None in processing time
    # Whether a match that waited has the time of its last event, as in queries.
    is_last: bool = False

    def of(self, found: Found, events: EventStore) -> Ints:
        """Return the times of matches, epoch milliseconds."""
        if not self.is_last:
            return found.times
        lasts: Ints = np.maximum.reduceat(self.of_events(found, events), found.firsts)
        return lasts

    def of_events(self, found: Found, events: EventStore) -> Ints:
        """Return the times of the events of matches, epoch milliseconds."""
        assert self.column is not None
        own: Ints = events.take(found.handles, [self.column]).column(0).cast(pa.int64()).to_numpy()
        return own if self.unit is None else np.floor_divide(own, self.unit)

    def column_of(self, times: Ints) -> pa.Array:
        """Return times in the type of the time column."""
        return pa.array(times) if self.unit is None else known_times(times, self.unit)


@attrs.define(eq=False)
class ColumnConsumer(Consumer):
    """Turns each match into a row of Arrow lists, without making Rows."""

    # The main output, and the timeouts' if needed: key columns, time, stages.
    schemas: dict[str, StructType]
    key_columns: Sequence[str]  # The key's columns among the events' columns
    stages: Sequence[str]  # The stages in pattern order
    event_columns: Sequence[str]  # The columns of an event in the stages' structs
    times: MatchTimes  # The times of matches and timeouts

    def __attrs_post_init__(self) -> None:
        self.wants_timeouts = len(self.schemas) > 1

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Make the rows."""
        outputs = {}
        for (name, schema), kind in zip(self.schemas.items(), (1, 0), strict=False):
            chosen = found if found.kinds.all() and kind else found.only(found.kinds == kind)
            outputs[name] = self._table(chosen, events, arrow_schema(schema), kind == 1)
        return outputs

    def _table(
        self, found: Found, events: EventStore, schema: pa.Schema, are_matches: bool
    ) -> pa.Table:
        if not len(found):
            return schema.empty_table()
        columns = key_columns(found, events, self.key_columns)
        times = self.times.of(found, events) if are_matches else found.times
        columns.append(self.times.column_of(times))
        columns += [
            stage_column(found, stage, lambda handles: events.take(handles, self.event_columns))
            for stage in self.stages
        ]
        return table_of(columns, schema)


def key_columns(found: Found, events: EventStore, names: Sequence[str]) -> list[pa.Array]:
    """Return the key's columns of matches."""
    if not names:
        return []
    first = events.take(found.handles[found.firsts], names)
    return [first.column(name) for name in names]


# --- all outputs of a job in one DataFrame: a tag, and a struct column for each output


def output_schema(consumer: Consumer) -> StructType:
    """Return the schema of the job: the main output's, or with side outputs the tagged one."""
    return tagged_schema(consumer.schemas)


def tagged_schema(schemas: Mapping[str, StructType]) -> StructType:
    """Return the schema of some outputs: that of the only one, or the tagged one."""
    if len(schemas) == 1:
        return schemas[MAIN]
    structs = [StructField(name, schema) for name, schema in schemas.items()]
    return StructType([StructField(TAG, StringType(), False), *structs])


def batches_of(consumer: Consumer, found: Found, events: EventStore) -> Iterator[pa.RecordBatch]:
    """Yield the rows of results as batches of the job's schema, made in portions."""
    for part in found.parts(consumer.most_events):
        yield from to_batches(consumer, consumer.consume(part, events))


def to_batches(consumer: Consumer, outputs: Outputs) -> Iterator[pa.RecordBatch]:
    """Yield rows of outputs as batches of the job's schema."""
    if len(consumer.schemas) == 1:
        yield from outputs[MAIN].to_batches()
        return
    schema = arrow_schema(output_schema(consumer))
    for name, table in outputs.items():
        for batch in table.to_batches():
            if batch.num_rows:
                yield tagged(name, batch, schema)


def tagged(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of an output as rows of the tagged one."""
    size = batch.num_rows
    struct = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    columns = [
        pa.array([name] * size, pa.string())
        if field.name == TAG
        else retyped(struct, field.type)
        if field.name == name
        else pa.nulls(size, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@attrs.define(eq=False)
class ValueConsumer(Consumer):
    """Returns the values that measures need from each match, after the key."""

    schema: StructType  # The key's columns, then one column for each of `leaves`
    key_columns: Sequence[str]  # The key's columns among the events' columns
    leaves: Sequence[LeafColumn]  # The values
    times: MatchTimes  # The times of matches
    ansi: bool  # Whether a sum out of range is an error
    schemas: dict[str, StructType] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.schemas = {MAIN: self.schema}
        self.shows_time = any(leaf.function == "rowtime" for leaf in self.leaves)

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Make the rows."""
        schema = arrow_schema(self.schema)
        if not len(found):
            return {MAIN: schema.empty_table()}
        columns: list[Any] = key_columns(found, events, self.key_columns)
        matches = FoundMatches(
            found, lambda: known_times(self.times.of(found, events), self.times.unit or 1)
        )
        columns += LeafColumns(self.leaves, self.ansi).of(matches, events.take)
        return {MAIN: table_of(columns, schema)}


@attrs.define(eq=False)
class ReachedConsumer(Consumer):
    """Makes a row of each stage that a partial match reached."""

    # The main output: key, columns of the first event, stage, step, time, milliseconds since the
    # event before and since the first.
    schemas: dict[str, StructType]
    # The columns taken from a partial match's first event, those of the key first.
    first_columns: Sequence[str]
    stages: Sequence[str]  # The stages that take events, in pattern order
    times: MatchTimes  # The time column of events
    # If not None, two more columns tell whether it is the first time that the key came to the group
    # and to the stage in it, so that nobody need sort to count keys; the key is the first columns
    # of `first_columns`, as many as this.
    key_count: int | None = None
    _firsts: FirstTimes | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.wants_reached = True

    def open(self, context: RuntimeContext) -> None:
        """Begin to look for first times."""
        self._firsts = None if self.key_count is None else FirstTimes(self.key_count)

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Make the rows."""
        schema = arrow_schema(self.schemas[MAIN])
        found = found.only(found.kinds == REACHED)
        if not len(found):
            return {MAIN: schema.empty_table()}
        firsts, lasts = found.firsts, found.ends - 1
        taken = self.times.of_events(found, events)
        since_first = taken[lasts] - taken[firsts]
        numbers = np.asarray(
            [self.stages.index(name) if name in self.stages else -1 for name in found.stages]
        )[found.stage_of[lasts]]
        own = key_columns(found, events, self.first_columns)
        columns = [
            *own,
            pa.array(self.stages).take(pa.array(numbers)),
            pa.array(numbers + 1),
            self.times.column_of(taken[lasts]),
            pa.array(_since_previous(taken, firsts, lasts), mask=firsts == lasts),
            pa.array(since_first),
        ]
        if self._firsts is not None:
            columns += map(pa.array, self._firsts.of(own, numbers))
        return {MAIN: table_of(columns, schema)}


@attrs.define(eq=False)
class FirstTimes:
    """Tells when a key comes to a group, and to a stage in it, for the first time."""

    key_count: int  # How many columns are the key; the others are the group
    _last: list[pa.Array] = attrs.field(factory=list)
    _seen: set[tuple[Any, ...]] = attrs.field(factory=set)

    def of(self, columns: Sequence[pa.ChunkedArray], numbers: Ints) -> tuple[Flags, Flags]:
        """Return for each row whether its key is new in its group, and at its stage there."""
        runs, continues = self._runs(columns[: self.key_count], len(numbers))
        groups = columns[self.key_count :]
        places = runs
        for column in groups:
            places = paired(places, _codes(column))
        flags = _firsts(places), _firsts(paired(places, numbers + 1))
        if not continues:
            self._seen = set()
        for flag, steps in zip(flags, (np.full_like(numbers, -1), numbers), strict=True):
            for row in np.flatnonzero(flag & (runs == 0)).tolist():
                flag[row] = (place := _place(groups, row, steps)) not in self._seen
                self._seen.add(place)
        if runs[-1]:
            open_ = np.flatnonzero((flags[0] | flags[1]) & (runs == runs[-1])).tolist()
            self._seen = {_place(groups, row, numbers) for row in open_}
            self._seen |= {(*place[:-1], -1) for place in self._seen}
        return flags

    def _runs(self, keys: Sequence[pa.ChunkedArray], size: int) -> tuple[Ints, bool]:
        """Return the number of each row's key from 0, and whether the first one was open."""
        changed = np.zeros(size + 1, bool)
        is_first = not self._last and bool(keys)
        for at, column in enumerate(keys):
            before = self._last[at] if self._last else column.slice(0, 1).combine_chunks()
            own = pa.chunked_array([before, *column.chunks], column.type)
            numbers = _codes(own)
            changed[1:] |= numbers[1:] != numbers[:-1]
        self._last = [column.slice(size - 1, 1).combine_chunks() for column in keys]
        continues = not changed[1] and not is_first
        changed[1] = False
        runs: Ints = np.cumsum(changed[1:], dtype=np.int64)
        return runs, continues


def _codes(column: pa.ChunkedArray) -> Ints:
    """Return numbers from 0 that tell the values of a column apart."""
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([pa.array([_text(value) for value in column.to_pylist()])])
    return codes(column)


def _firsts(numbers: Ints) -> Flags:
    """Return where each number comes for the first time."""
    found = np.zeros(len(numbers), bool)
    found[np.unique(numbers, return_index=True)[1]] = True
    return found


def _place(groups: Sequence[pa.ChunkedArray], row: int, numbers: Ints) -> tuple[Any, ...]:
    return *(_text(column[row].as_py()) for column in groups), int(numbers[row])


def _text(value: Any) -> str:
    """Return a text that is the same for values of one group, such as 0.0 and -0.0 in a list."""
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return repr(value)
    return f"[{', '.join(map(_text, value))}]"


def _since_previous(taken: Ints, firsts: Ints, lasts: Ints) -> Ints:
    """Return the time between the last event of each and the newest before it."""
    before = taken.copy()
    before[lasts] = np.iinfo(np.int64).min
    newest: Ints = np.maximum.reduceat(before, firsts)
    since: Ints = np.where(firsts == lasts, 0, taken[lasts] - newest)
    return since
