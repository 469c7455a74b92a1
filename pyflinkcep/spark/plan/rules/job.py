# SPDX-License-Identifier: Apache-2.0
"""Many rules on a DataFrame, analysed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import attrs
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyflinkcep.conditions import ExpressionCondition, IterativeCondition
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import atom_of
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.matching.columns import HASH, POSITION, PREFIX
from pyflinkcep.matching.results import MATCH_TIME
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.alike_patterns import number_type
from pyflinkcep.rules.page_events import HOLDING
from pyflinkcep.rules.routes import RoutedRules
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.rule_keys import number_of_text
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.rules.wanting_rule import shared_events
from pyflinkcep.sase import SaseQuery
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan.analysis import common_kind, is_ansi
from pyflinkcep.spark.plan.conditions import checked_conditions
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.job import Job, map_in_arrow, shuffle_partitions, watched
from pyflinkcep.spark.plan.queries.job import in_session_zone
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput
from pyflinkcep.spark.state.fingerprint import CLOCK, RULES, layout_facts
from pyflinkcep.spark.worker.computed_columns import SqlTexts
from pyflinkcep.spark.worker.pack import BUCKET, PACKETS, Packets, PackTask, RowsTask
from pyflinkcep.spark.worker.rules_task import RulesMatching, RulesPackTask, RulesTask, SendingTask
from pyflinkcep.tables.sql import evaluated_by
from pyflinkcep.tables.typed_columns import widest

_COMPUTED = f"{PREFIX}condition"
_POSITIVE = (1 << 63) - 1
_UTC = "UTC"
_OF_UTC = (_UTC, "Etc/UTC", "GMT", "Z")
"""Zones in which a clock shows the same."""


@attrs.frozen(eq=False)
class RulesJob:
    """Rules on a DataFrame."""

    job: Job
    rules: RoutedRules
    computed: dict[str, Column]  # Conditions that Spark computes, by the names of their columns
    streamed: StreamRules | None  # The rules, if events are unbounded
    # The clock of the times by which older releases sent events; None if they are sent by none.
    old_clock: str | None

    @classmethod
    def analyse(
        cls,
        rules: Sequence[Rule],
        dataframe: DataFrame,
        time_column: str | None,
        type_column: str,
        settings: JobSettings,
    ) -> RulesJob:
        """Check rules against their events."""
        if not is_ansi(dataframe):
            raise NotSupportedError(
                "CEP.patterns needs Spark's ANSI mode, by which workers compute conditions",
                "set spark.sql.ansi.enabled to true",
            )
        source = EventSource.of(dataframe, (), time_column, f"{len(rules)} rules")
        job = Job.of(source, settings)
        zone = str(dataframe.sparkSession.conf.get("spark.sql.session.timeZone"))
        known = [_in_zone(rule, dataframe) for rule in rules]
        probe = probe_of(source, known, type_column, zone)
        computed: dict[str, Column] = {}
        known = [_with_computed(rule, probe, dataframe, computed) for rule in known]
        if computed:  # else what the conditions are is known
            probe = probe_of(source, known, type_column, zone, computed)
        routed = RoutedRules.of(known, probe, zone)
        streamed = StreamRules.of(routed, probe) if job.is_stream else None
        old_clock = None
        if routed.send_by_moments(probe.table.schema):
            old_clock = _UTC if zone in _OF_UTC else zone
        return cls(job, routed, computed, streamed, old_clock)

    def run(self) -> DataFrame:
        """Run the job on bounded events."""
        # Spark's workers know which partition they have, and number its events themselves.
        is_numbered = engine_of(self.job.given.sparkSession) is SPARK
        said = None if self.computed or not is_numbered else SqlTexts()
        prepared = self.job.prepared(self.computed, positions=not is_numbered, said=said)
        own = self.job.source.event_columns
        kept = [*own, *([POSITION] if POSITION in prepared.events.columns else [])]
        fields = [prepared.events.schema[name] for name in kept]
        number = pa.from_numpy_dtype(number_type(len(self.rules.conditions)))
        schema = arrow_schema(StructType([*fields, *sent_fields()]))
        schema = schema.set(len(schema) - 1, pa.field(HOLDING, pa.list_(number), False))
        packets = Packets.of(schema, shuffle_partitions(prepared.events.sparkSession))
        task = partial(SendingTask(self.rules, kept).run, packets)
        name = self.job.name
        sent = prepared.mapped(task, PACKETS, name)
        layout = attrs.evolve(
            prepared.layout, key_signature=(HASH,), payload=(*own, HOLDING), bit_columns=()
        )
        matching = RulesTask(self.rules.arrived(), layout, own, self.schema)
        arriving = packets.reading(watched(matching.run, layout.key_signature))
        return map_in_arrow(sent.repartition(F.col(BUCKET)), arriving, self.schema, name)

    def stream(self) -> StreamJob:
        """Return the job on unbounded events."""
        assert self.streamed is not None
        rules, own = self.streamed, self.job.source.event_columns
        said = None if self.computed else SqlTexts()
        prepared = self.job.prepared(self.computed, always_hash=False, said=said)
        layout = attrs.evolve(prepared.layout, key_signature=(HASH,), payload=tuple(own))
        sending = SendingTask(rules.routed, own)
        fields = [prepared.events.schema[name] for name in own]
        facts = {**layout_facts(layout, self.job.settings.groups), RULES: rules.digest}
        unsaid = {} if self.old_clock is None else {CLOCK: self.old_clock}
        return StreamJob.of(
            self.job,
            attrs.evolve(prepared, layout=layout),
            RulesMatching(rules=rules.arrived(), columns=own, schema=self.schema),
            {**facts, **dict.fromkeys(unsaid, _UTC)},
            StreamOutput(RowsTask(), self.schema, rules.held_back),
            sending=partial(sending_of, sending),
            sent=arrow_schema(StructType([*fields, *sent_fields()])),
            unsaid=unsaid,
        )

    @property
    def schema(self) -> StructType:
        """The columns of matches."""
        return matches_schema(self.job.source)


def matches_schema(source: EventSource) -> StructType:
    """Return the columns of matches of rules."""
    assert source.time_column is not None
    own = source.dataframe.schema
    return matches_of(StructType([own[name] for name in source.event_columns]), source.time_column)


def matches_of(event: StructType, time_column: str) -> StructType:
    """Return the columns of matches of events."""
    time = event[time_column].dataType
    lists = ArrayType(event, True)
    return StructType(
        [
            StructField("rule", StringType(), False),
            StructField("version", LongType(), False),
            StructField("key", MapType(StringType(), StringType(), True), False),
            StructField("matchId", StringType(), False),
            StructField(MATCH_TIME, time, True),
            StructField("events", MapType(StringType(), lists, True), False),
        ]
    )


def sent_fields() -> list[StructField]:
    """Return what is sent with an event."""
    holding = ArrayType(LongType(), False)
    return [StructField(HASH, LongType(), False), StructField(HOLDING, holding, False)]


def sending_of(sending: SendingTask, task: PackTask) -> PackTask:
    """Return the work before a stream's operator."""
    own = {one.name: getattr(task, one.name) for one in attrs.fields(PackTask)}
    return RulesPackTask(**own, sending=sending)


def _in_zone(rule: Rule, dataframe: DataFrame) -> Rule:
    """Return a rule whose times are those of the session's clock."""
    definition = rule.definition
    if not isinstance(definition, SaseQuery):
        return rule
    in_zone = in_session_zone(definition, dataframe)
    assert isinstance(in_zone, SaseQuery)
    return attrs.evolve(rule, definition=in_zone)


def probe_of(
    source: EventSource,
    rules: Iterable[Rule],
    type_column: str,
    zone: str,
    computed: Iterable[str] = (),
) -> SharedEvents:
    """Return events of which no rule can have more general ones."""
    fields = [source.dataframe.schema[name] for name in source.event_columns]
    known = zip(arrow_schema(StructType(fields)), fields, strict=True)
    table = widest(pa.schema([own.with_type(_compared(own.type, f.dataType)) for own, f in known]))
    for name in computed:
        table = table.append_column(name, pa.array([True, False]))
    return shared_events(rules, table, source.time_column, type_column, zone)


def _compared(type_: pa.DataType, of: DataType) -> pa.DataType:
    """Return a type, with maps, which nothing compares, for texts that only Spark compares."""
    if isinstance(of, StringType) and common_kind(of) is None:
        return pa.map_(pa.field(of.simpleString(), pa.string(), False), pa.string())
    if isinstance(of, ArrayType):
        return pa.list_(type_.field(0).with_type(_compared(type_.field(0).type, of.elementType)))
    if isinstance(of, StructType):
        fields = zip(map(type_.field, range(type_.num_fields)), of.fields, strict=True)
        return pa.struct([own.with_type(_compared(own.type, f.dataType)) for own, f in fields])
    return type_


def _with_computed(
    rule: Rule, probe: SharedEvents, dataframe: DataFrame, computed: dict[str, Column]
) -> Rule:
    """Return a rule in which columns stand for the conditions that only Spark can compute."""
    definition = rule.definition
    if isinstance(definition, Pattern):
        return attrs.evolve(
            rule, definition=_pattern_with_computed(definition, probe, dataframe, computed)
        )
    if not isinstance(definition, SigmaCorrelation):
        return rule
    rules = dict(definition.rules)
    for name, text in definition.conditions():
        if isinstance(text, str):
            alone = Pattern.begin(name).where(text)
            shown = _pattern_with_computed(alone, probe, dataframe, computed).getCondition()
            assert isinstance(shown, ExpressionCondition)
            rules[name] = shown.text
    return attrs.evolve(rule, definition=attrs.evolve(definition, rules=rules))


def _pattern_with_computed(
    pattern: Pattern, probe: SharedEvents, dataframe: DataFrame, computed: dict[str, Column]
) -> Pattern:
    unknown: list[ExpressionCondition] = []

    def noted(condition: ExpressionCondition) -> IterativeCondition:
        if not isinstance(condition.expression, str) or not probe.computes(condition.text):
            unknown.append(condition)
        return condition

    evaluated_by(pattern, noted)
    if not unknown:
        return pattern
    nfa = NFACompiler.compile(pattern)
    asked = {id(atom): column for atom, column in checked_conditions(nfa, dataframe)}
    names: dict[int, str] = {}
    for condition in unknown:
        # The name says what is asked, and not its place among the others, which may change. Two
        # columns of one text may be different functions.
        text = name = f"{_COMPUTED}{number_of_text(condition.text) & _POSITIVE:x}"
        again = 1
        while name in computed and not isinstance(condition.expression, str):
            name, again = f"{text} {again}", again + 1
        computed[name] = asked[id(atom_of(nfa.atoms, condition))]
        names[id(condition)] = name

    def shown(condition: ExpressionCondition) -> IterativeCondition:
        name = names.get(id(condition))
        return condition if name is None else ExpressionCondition(f"`{name}`")

    return evaluated_by(pattern, shown)
