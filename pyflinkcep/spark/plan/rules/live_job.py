# SPDX-License-Identifier: Apache-2.0
"""Rules of a log on a stream, analysed."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from tempfile import mkdtemp

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError
from pyflinkcep.matching.columns import HASH
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.rules.live_rules import RuleBasis, routes_of
from pyflinkcep.rules.routes import Fields
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.rule_log import RuleLog
from pyflinkcep.spark.arrow.internals import arrow_schema, is_local, spark_context
from pyflinkcep.spark.plan.analysis import is_ansi
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.rules.job import matches_schema, probe_of, sent_fields
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import write_table
from pyflinkcep.spark.worker.computed_columns import SqlTexts
from pyflinkcep.spark.worker.consumers import MAIN, tagged_schema
from pyflinkcep.spark.worker.live_rules_task import (
    TOLD_SCHEMA,
    LiveMatching,
    LivePackTask,
    ToldTask,
)
from pyflinkcep.spark.worker.noted_log import NotedLog
from pyflinkcep.spark.worker.pack import PACKED, PUBLISHED, RowsTask
from pyflinkcep.time import MIN_WATERMARK


@attrs.frozen(eq=False)
class LiveJob:
    """Rules of a log on a stream."""

    job: Job
    basis: RuleBasis
    log: RuleLog

    @classmethod
    def analyse(
        cls,
        dataframe: DataFrame,
        log: RuleLog,
        keys: Sequence[str] | None,
        time_column: str | None,
        type_column: str,
        settings: JobSettings,
    ) -> LiveJob:
        """Check events."""
        if not dataframe.isStreaming:
            raise NotSupportedError(
                "CEP.dynamicPatterns on a bounded DataFrame",
                "apply the rules of log.rules() to it, with CEP.patterns",
            )
        if not is_ansi(dataframe):
            raise NotSupportedError(
                "CEP.dynamicPatterns needs Spark's ANSI mode, by which workers compute conditions",
                "set spark.sql.ansi.enabled to true",
            )
        what = "rules of a log"
        EventSource.of(dataframe, keys or (), time_column, what)  # refuses keys that are none
        source = EventSource.of(dataframe, (), time_column, what)
        assert source.time_column is not None
        zone = str(dataframe.sparkSession.conf.get("spark.sql.session.timeZone"))
        probe = probe_of(source, (), type_column, zone)
        basis = RuleBasis(write_table(probe.table), source.time_column, type_column, zone, ())
        routes = routes_of(_published_rules(log), basis) if keys is None else _by(keys)
        if not routes:
            raise InvalidArgumentError(
                f"CEP.dynamicPatterns: {log!r} has no rules yet, whose keys events are sent by",
                "publish one, or name the columns: keys=['user']; keys=[] has all in one place",
            )
        return cls(Job.of(source, settings), attrs.evolve(basis, routes=routes), log)

    def schemas(self, told: str | None) -> dict[str, StructType]:
        """Return the outputs, by their names."""
        found = {MAIN: matches_schema(self.job.source)}
        return found if told is None else {**found, told: TOLD_SCHEMA}

    def stream(self, told: str | None) -> StreamJob:
        """Return the job; `told` names the output with what became of publications."""
        own = self.job.source.event_columns
        prepared = self.job.prepared({}, always_hash=False, said=SqlTexts())
        layout = attrs.evolve(prepared.layout, key_signature=(HASH,), payload=tuple(own))
        fields = [prepared.events.schema[name] for name in own]
        schemas = self.schemas(told)
        schema = tagged_schema(schemas)
        groups = self.job.settings.groups
        session = prepared.events.sparkSession
        log = _noted(self.log) if is_local(spark_context(session)) else None
        job = StreamJob.of(
            self.job,
            attrs.evolve(prepared, layout=layout),
            LiveMatching(basis=self.basis, columns=own, schema=schemas[MAIN], log=log),
            {**layout_facts(layout, groups), "rules": "of a log"},
            StreamOutput(
                RowsTask() if told is None else ToldTask(told, schema), schema, HeldBack(None, None)
            ),
            sending=partial(LivePackTask.of, basis=self.basis, kept=own, log=log),
            sent=arrow_schema(StructType([*fields, *sent_fields()])),
        )
        published = _published(session, self.log, groups)
        return attrs.evolve(job, published=published)


def _noted(log: RuleLog) -> NotedLog:
    """Return a log that workers read, which are on this machine; its notes go when Python ends."""
    # Elsewhere a folder may be shown as it was a while ago.
    notes = mkdtemp(prefix="pyflinkcep-")
    atexit.register(shutil.rmtree, notes, ignore_errors=True)
    return NotedLog(RuleLog(log.path.resolve()), notes)


def _by(keys: Sequence[str]) -> tuple[Fields, ...]:
    return tuple((key,) for key in dict.fromkeys(keys)) or ((),)


def _published_rules(log: RuleLog) -> Iterator[list[Rule]]:
    """Yield the rules of each publication, so that a restart finds no fewer keys."""
    for publication in log.publications():
        found = []
        for change in publication.changes:
            if change.change == "publish":
                with suppress(CepError):
                    found.append(change.rule)
        yield found


def _published(spark: SparkSession, log: RuleLog, groups: KeyGroups) -> DataFrame:
    """Return the stream of publications, each for every bucket, as packed rows."""
    log.path.mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.format("text").option("wholetext", True)
    reader = reader.option("pathGlobFilter", "*.json")
    # A file is new however old it looks beside one of a clock that is ahead.
    reader = reader.option("maxFileAge", "36500d")
    # Copies beside publications are none.
    number = "try_cast(regexp_extract(_metadata.file_name, '^([0-9]{10})[.]json$', 1) AS int)"
    values = {
        "partition": f"{PUBLISHED}",
        "position": "number",
        "data": "cast(value AS binary)",
        "latest": f"cast('{MIN_WATERMARK}' AS bigint)",
        "nullRecords": "0L",
    }
    ids = ", ".join(map(str, groups.bucket_ids()))
    rows = reader.load(f"file://{log.path.resolve()}").selectExpr("value", f"{number} AS number")
    rows = rows.where("number > 0").selectExpr("*", f"explode(array({ids})) AS bucket")
    return rows.select(
        *(
            (F.col("bucket") if name == "bucket" else F.expr(values.get(name, "NULL")))
            .cast(PACKED[name].dataType)
            .alias(name)
            for name in PACKED.fieldNames()
        )
    )
