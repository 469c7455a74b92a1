# SPDX-License-Identifier: Apache-2.0
"""The stages that partial matches reach as rows, and the funnel that these are counted into."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import zip_longest
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pyflinkcep.conditions import Evaluated, ExpressionCondition
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import Input, PartialMatchLimit, comparator_key
from pyflinkcep.errors import (
    InputError,
    InvalidArgumentError,
    NotSupportedError,
    counted,
    did_you_mean,
)
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import HASH, POSITION, PREFIX, quoted, spark_atoms
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.rows import fits
from pyflinkcep.spark.plan.conditions import conditions_of
from pyflinkcep.spark.plan.job import map_in_arrow, milliseconds_of
from pyflinkcep.spark.plan.outputs import STAGE_TIME, check_distinct, match_rows, match_times
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.source import KeyColumn, sorting
from pyflinkcep.spark.plan.stream import by_bucket, stored_state, watermark_of
from pyflinkcep.spark.plan.watermark import StreamWatermark
from pyflinkcep.spark.worker.consumers import MAIN, ReachedConsumer
from pyflinkcep.spark.worker.waiting import QUEUED, WaitingTask
from pyflinkcep.tables.match import Run
from pyflinkcep.tables.sql import evaluated_by
from pyflinkcep.tables.values import grouping_key
from pyflinkcep.time import moment_text
from pyflinkcep.traces.funnel import FunnelSettings, FunnelStep
from pyflinkcep.traces.why import ConditionCount, WhyNot, explained

_NONE = "-"  # The offset of an input that has none yet


@attrs.frozen
class Arrivals:
    """When the inputs of a stream brought something."""

    # The micro-batch in which each input brought something for the last time; None if it never did.
    last: tuple[int | None, ...]
    first: int  # The first micro-batch that the checkpoint still knows
    times: Mapping[int, int]  # When micro-batches were planned

    @classmethod
    def read(cls, session: SparkSession, checkpoint: str) -> Arrivals | None:
        """Read the offsets of a checkpoint; return None if there are none, or of another form."""
        try:
            reader = session.read.option("pathGlobFilter", "[0-9]*")
            folder = re.sub(r"([\\{}\[\]*?])", r"\\\1", checkpoint)  # a path, not a glob
            files = reader.text(f"{folder}/offsets", wholetext=True)
            rows = files.select(F.input_file_name(), "value").collect()
            return cls.of({int(name.rpartition("/")[2]): text for name, text in rows})
        except Exception:  # the query may remove old ones meanwhile; and it is but a hint
            return None

    @classmethod
    def of(cls, offsets: Mapping[int, str]) -> Arrivals | None:
        """Compare the offsets of micro-batches, the texts of their files by their numbers."""
        batches = {number: text.rstrip("\n").split("\n") for number, text in offsets.items()}
        if not batches or any(lines[0] != "v1" or len(lines) < 3 for lines in batches.values()):
            return None
        times = {
            number: int(json.loads(lines[1])["batchTimestampMs"])
            for number, lines in batches.items()
        }
        before: Sequence[str] = ()
        last: dict[int, int | None] = {}
        for number in sorted(batches):
            now = batches[number][2:]
            for place, (old, new) in enumerate(zip_longest(before, now, fillvalue=_NONE)):
                last[place] = number if new not in (old, _NONE) else last.get(place)
            before = now
        return cls(tuple(last.values()), min(batches), times)

    @property
    def newest(self) -> int | None:
        """The last micro-batch in which any input brought something; None if none did."""
        return max((batch for batch in self.last if batch is not None), default=None)

    def when(self, batch: int) -> str:
        """Return the name of a micro-batch, and when it was planned."""
        or_before = " or before" if 0 < batch == self.first else ""
        return f"micro-batch {batch}{or_before} ({moment_text(self.times[batch])})"

    def idle(self) -> str:
        """
        Return in words which inputs brought nothing when others did.

        Examples
        --------
        >>> Arrivals((4, 2), 0, {2: 60_000, 4: 90_000}).idle()
        'input 2 of 2 has brought nothing since micro-batch 2 (1970-01-01 00:01:00 UTC)'
        """
        return ", ".join(
            f"input {place} of {len(self.last)} has brought nothing "
            + ("yet" if batch is None else f"since {self.when(batch)}")
            for place, batch in enumerate(self.last, 1)
            if batch != self.newest
        )


_FACTS = T.StructType(
    [
        T.StructField("what", T.StringType(), False),
        T.StructField("after", T.StringType()),
        T.StructField("waitsFor", T.StringType()),
        T.StructField("events", T.LongType(), False),
        T.StructField("began", T.LongType()),
        T.StructField("ends", T.LongType()),
        T.StructField("watermark", T.LongType()),
    ]
)
_TIMES = ("began", "ends", "watermark")


def waiting(job: PatternJob, checkpoint: str, operator_id: int) -> DataFrame:
    """Return what the state of a stream holds, oldest first."""
    source = job.source
    plan = job.stream(match_rows(source, job.variables, None, job.nfa), {}).plan
    keys = [T.StructField(key.name, key.type) for key in source.keys]
    schema = T.StructType([*keys, *_FACTS])
    check_distinct(schema, f"pattern {source.pattern}: waiting()")
    session = source.dataframe.sparkSession
    state = by_bucket(stored_state(session, plan, checkpoint, operator_id), None)
    name = f"{job.job.name} (waiting)"
    task = WaitingTask(plan, arrow_schema(schema))
    rows = map_in_arrow(state, task.run, schema, name).orderBy("began", "what")
    if source.time_column is None:
        return rows
    is_moment = isinstance(source.dataframe.schema[source.time_column].dataType, T.TimestampType)
    watermark = watermark_of(source)
    due = F.col("began") + F.lit(watermark.delay_ms or 0)
    due = (F.timestamp_millis(due) if is_moment else due).cast("string")
    holder = _holder(watermark, Arrivals.read(session, checkpoint))
    queued = F.when(F.col("what") == QUEUED, F.format_string(holder, due))
    times = {time: F.timestamp_millis(time) for time in _TIMES} if is_moment else {}
    return rows.withColumns({"waitsFor": F.coalesce("waitsFor", queued), **times})


def _holder(watermark: StreamWatermark, arrivals: Arrivals | None) -> str:
    """Return what queued events wait for, with a place for the time that they need."""
    newest = None if arrivals is None else arrivals.newest
    came = "" if arrivals is None or newest is None else f"rows came in {arrivals.when(newest)}"
    if watermark.delay_ms is not None:
        return "an event at %s or later" + (f"; the last {came}" if came else "")
    text = f"Spark's watermark at %s or later ({watermark.reason.replace('%', '%%')})"
    if arrivals is None or newest is None:
        return text
    if idle := arrivals.idle():
        return f"{text}; {idle}"
    if len(arrivals.last) == 1:
        return f"{text}; the last {came}, and the next micro-batch follows them"
    return f"{text}; the last {came} from all inputs: that whose times are furthest behind decides"


_TIME = f"{PREFIX}millis"
_MOST_PARTIAL_MATCHES = 2000
_SHOWN = 5  # How many keys are shown if there are no events of the one asked for


def why_not(job: PatternJob, key: object, most: int) -> WhyNot:
    """Return why a pattern has the matches it has in a bounded DataFrame."""
    # Two jobs: one counts over all events; the other fetches the first events by the hash of their
    # key, which are all events of some keys and the beginning of one more, and they are traced on
    # the driver.
    events = _selected(job, key)
    counts = _counts(job, events)
    rows = _fetched(job, events, most + 1)
    sample = _sample(job, rows, most)
    keys = len(set(sample.given.keys))
    left_out = counts.events - counts.without_time > most
    of = f"{counted(len(sample.given.events), 'event')} of {counted(keys, 'key')}"
    text = f"counted over all, traced for {of}" + (
        ", the last not to its end" if sample.given.cut else ""
    )
    limit = job.limit or PartialMatchLimit(_MOST_PARTIAL_MATCHES, "dropOldest")
    numbers = {"events": counts.events, "without a time": counts.without_time}
    if job.source.keys:
        numbers["without a key"] = counts.without_key
        if left_out:
            numbers |= {"keys": 0, "keys or so": counts.keys}
    return explained(
        sample,
        limit,
        numbers,
        has_key=bool(job.source.keys),
        sample=text if left_out else "",
        counts=partial(_over_all, job, counts),
        missing="" if counts.events or key is None else _missing(job, key),
    )


# --- the events


def _selected(job: PatternJob, key: object) -> DataFrame:
    """Return the events with what is asked of Spark about each."""
    source = attrs.evolve(job.source, dataframe=job.job.given)
    answers = {
        _answer(number): F.coalesce(condition, F.lit(False))
        for number, (_, condition) in enumerate(conditions_of(job.nfa, job.job.given))
    }
    added = {
        **source.key_hash(always=True),
        POSITION: F.monotonically_increasing_id(),
        _TIME: milliseconds_of(source),
        **answers,
    }
    events = source.prepare(added)
    if key is None:
        return events
    values = _key_values(job, key)
    for column, value in zip(source.keys, values, strict=True):
        events = events.where(F.col(quoted(column.column)).eqNullSafe(F.lit(value)))
    return events


def _key_values(job: PatternJob, key: object) -> Sequence[Any]:
    names = [column.name for column in job.source.keys]
    values = list(key) if isinstance(key, tuple | list) else [key]
    if len(values) != len(names) or not all(map(_may_be, job.source.keys, values)):
        shown = [f"{column.name} ({column.type.simpleString()})" for column in job.source.keys]
        what = f"a value of {shown[0]}" if len(names) == 1 else f"a tuple of {', '.join(shown)}"
        raise InvalidArgumentError(
            f"whyNot: expected {what if names else 'no key'}, got key={key!r}",
            "leave key out to look at all" if names else "give events a key with keyBy()",
        )
    return values


def _may_be(column: KeyColumn, value: object) -> bool:
    """Whether a value may be that of a column."""
    if value is None or not isinstance(column.type, T.AtomicType):
        return value is None
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    is_of_any = isinstance(column.type, T.NumericType) and not isinstance(
        column.type, T.IntegralType
    )
    return fits(column.type)(value) or (is_of_any and is_number)


def _missing(job: PatternJob, key: object) -> str:
    """Return that no event has a key, with some keys that events have."""
    source = attrs.evolve(job.source, dataframe=job.job.given)
    columns = [F.col(quoted(column.column)) for column in source.keys]
    rows = source.prepare({}).select(*columns).distinct().limit(_SHOWN).collect()
    if not rows:
        return ""
    shown = sorted(repr(tuple(row) if len(columns) > 1 else row[0]) for row in rows)
    return f"No event has the key {key!r}. Some of the keys: {', '.join(shown)}."


def _fetched(job: PatternJob, events: DataFrame, most: int) -> list[Row]:
    """Return the first events by the hash of their key, each key's in the order of the job."""
    keys = [F.col(quoted(column.signature)) for column in job.source.keys]
    exact = F.col(quoted(job.source.time_column or _TIME))  # to the microsecond
    ties = sorting(job.comparator) if isinstance(job.comparator, OrderColumns) else ()
    order = [F.col(HASH), *keys, F.col(_TIME), *ties, exact, F.col(POSITION)]
    usable = events.where(F.col(_TIME).isNotNull())
    settings = job.job.settings
    if settings.drops_nulls:
        usable = usable.where(~job.source.is_null(settings.allows_null_keys))
    return usable.orderBy(*order).limit(most).collect()


def _answer(number: int) -> str:
    return f"{PREFIX}answer{number}"


def _sample(job: PatternJob, rows: Sequence[Row], most: int) -> Run:
    """Return the first rows, ready to be traced; one more shows whether their key has others."""
    names = job.source.event_columns
    made = Row(*names)
    events = [made(*(row[name] for name in names)) for row in rows]
    times = [row[_TIME] for row in rows]
    keys = [grouping_key(tuple(row[column.column] for column in job.source.keys)) for row in rows]
    keys = [key[0] if len(key) == 1 else key or None for key in keys]
    is_cut = len(rows) > most and keys[most - 1] == keys[most]
    cut = (keys[most - 1], times[most - 1]) if is_cut else None
    rows, events, times, keys = rows[:most], events[:most], times[:most], keys[:most]
    answers = {
        id(atom.condition): {
            id(event): row[_answer(number)] for event, row in zip(events, rows, strict=True)
        }
        for number, atom in enumerate(spark_atoms(job.nfa))
    }

    def answered(condition: ExpressionCondition) -> Evaluated:
        known = answers[id(condition)]
        return Evaluated(condition.text, lambda event: known[id(event)])

    pattern = evaluated_by(job.pattern, answered)
    nfa = NFACompiler.compile(pattern, timeoutHandling=True)
    nfa.open(RuntimeContext())
    order = None if isinstance(job.comparator, OrderColumns) else job.comparator
    return Run(pattern, nfa, Input(events, times, keys, order=comparator_key(order), cut=cut))


# --- counts over all events


def _counts(job: PatternJob, events: DataFrame) -> Row:
    """Return how many events and keys there are, what lacks a time or a key, and what holds."""
    counted_ = {
        "events": F.count(F.lit(1)),
        "keys": F.approx_count_distinct(HASH),
        "without_time": F.count_if(F.col(_TIME).isNull()),
        "without_key": F.count_if(job.source.has_null_key),
    }
    for number in range(len(spark_atoms(job.nfa))):
        counted_[_answer(number)] = F.count_if(F.col(_answer(number)))
    found: Row = events.agg(*(c.alias(name) for name, c in counted_.items())).collect()[0]
    return found


def _over_all(job: PatternJob, counts: Row, traced: list[ConditionCount]) -> list[ConditionCount]:
    """Return counts of conditions with those over all events, where Spark has them."""
    holds = {
        (atom.stage, repr(atom.condition)): counts[_answer(number)]
        for number, atom in enumerate(spark_atoms(job.nfa))
    }
    return [
        attrs.evolve(one, holds=holds[one.stage, one.text], of=counts.events)
        if (one.stage, one.text) in holds
        else one
        for one in traced
    ]


_NEW_IN_GROUP, _NEW_KEY = f"{PREFIX}newInGroup", f"{PREFIX}newKey"
_BEGAN, _FOUND = f"{PREFIX}began", f"{PREFIX}found"


def reached_rows(
    job: PatternJob, by: Sequence[str], steps: Sequence[FunnelStep], *, marks_keys: bool = False
) -> ReachedConsumer:
    """Return what makes a row of each stage that a partial match reaches."""
    # With `marks_keys` two columns more, for `funnel_of`; on bounded input only, where all events
    # of a key are in one task.
    source = job.source
    if source.time_column is None:
        raise NotSupportedError(
            "a funnel needs event time: in processing time events have no times of their own",
            "write inEventTime('column')",
        )
    events = source.dataframe.schema
    keys = {key.name: key for key in source.keys}
    known = source.event_columns
    for name in by:
        if name not in keys and name not in known:
            raise InputError(
                f"pattern {source.pattern}: by: the events have no column {name!r}",
                did_you_mean(name, known, f"the columns are {', '.join(known)}"),
            )
    added = [name for name in by if name not in keys]
    fields = [T.StructField(key.name, key.type) for key in source.keys]
    fields += [T.StructField(name, events[name].dataType) for name in added]
    fields += [
        T.StructField("stage", T.StringType(), False),
        T.StructField("step", T.IntegerType(), False),
        T.StructField(STAGE_TIME, events[source.time_column].dataType),
        T.StructField("sincePrevious", T.LongType()),
        T.StructField("sinceFirst", T.LongType(), False),
    ]
    if marks_keys:
        fields += [
            T.StructField(name, T.BooleanType(), False) for name in (_NEW_IN_GROUP, _NEW_KEY)
        ]
    check_distinct(fields, f"pattern {source.pattern}: a funnel")
    columns = [*(key.column for key in source.keys), *added]
    return ReachedConsumer(
        {MAIN: T.StructType(fields)},
        columns,
        [step.stage for step in steps],
        match_times(source, None),
        len(keys) if marks_keys else None,
    )


def funnel_of(
    rows: DataFrame, has_key: bool, settings: FunnelSettings, steps: Sequence[FunnelStep]
) -> DataFrame:
    """Return the funnel of what partial matches reached."""
    # One pass over the rows, which Spark sums up before the shuffle: distinct keys are those
    # marked.
    by = [F.col(quoted(name)) for name in settings.by]
    since = F.col("sincePrevious")
    counted = rows.groupBy(*by, "step").agg(
        F.count_if(_NEW_KEY).alias("keys"),
        F.count(F.lit(1)).alias("partialMatches"),
        F.count_if(_NEW_IN_GROUP if has_key else since.isNull()).alias(_BEGAN),
        *(F.percentile(since, F.lit(at)).alias(name) for name, at in settings.quantiles.items()),
    )
    facts = F.struct("keys", "partialMatches", *settings.quantiles)
    entries = F.collect_list(F.struct("step", facts))
    found = counted.groupBy(*by).agg(
        F.map_from_entries(entries).alias(_FOUND), F.sum(_BEGAN).alias(_BEGAN)
    )
    stages = F.array(*(_row(step, has_key, list(settings.quantiles)) for step in steps))
    return found.select(*by, F.inline(stages)).orderBy(*by, "step")


def _row(step: FunnelStep, has_key: bool, quantiles: Sequence[str]) -> Column:
    unit = "keys" if has_key else "partialMatches"
    nothing = F.lit(0).cast("bigint")

    def of(number: int, name: str) -> Column:
        return F.try_element_at(_FOUND, F.lit(number)).getField(name)

    def size(number: int, name: str = unit) -> Column:
        return F.coalesce(of(number, name) if number else F.col(_BEGAN), nothing)

    own = size(step.number)
    columns = {
        "stage": F.lit(step.stage),
        "step": F.lit(step.number),
        "keys": size(step.number, "keys"),
        "partialMatches": size(step.number, "partialMatches"),
        "ofFirst": own / F.nullif(size(0), nothing),
        "ofPrevious": own / F.nullif(size(step.previous), nothing),
        "dropOff": size(step.previous) - own,
        **{name: of(step.number, name) for name in quantiles},
    }
    return F.struct(*(column.alias(name) for name, column in columns.items()))
