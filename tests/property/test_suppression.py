# SPDX-License-Identifier: Apache-2.0
"""Suppressed alerts: in memory and on streams, however cut, those that the rule says."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle as pickle
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType

from pyflinkcep import suppress
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import HASH
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.suppression import SuppressedAlerts, Suppression, SuppressionPages
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.worker.bucket import Arrivals, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan, PagesMatching
from pyflinkcep.spark.worker.suppression_task import SuppressionTask
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK
from tests.unit.spark.worker.buckets import SpyStorage

PERIOD, DELAY = 5, 4  # milliseconds
KEY = ("rule", "k")
TIMES = {1: pa.int64(), 1000: pa.timestamp("us", "UTC")}
"""The types of times, by their units in a millisecond."""

Alerts = list[dict[str, Any]]


def _schema(unit: int) -> pa.Schema:
    fields = [("rule", pa.string()), ("k", pa.string()), ("matchTimestamp", TIMES[unit])]
    return pa.schema([*fields, ("matchId", pa.string()), ("events", pa.list_(pa.int64()))])


@st.composite
def _alerts(draw: st.DrawFn, unit: int) -> Alerts:
    """Draw alerts in the order in which they arrive, none of them later than the delay allows."""
    listed = st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from(["x", "y", None]),
            st.sampled_from([0, 0, 1, unit - 1, unit, unit + 1, 3 * unit, PERIOD * unit]),
            st.integers(0, (DELAY - 1) * unit),
        ),
        max_size=30,
    )
    time, made = 10 * unit, list[tuple[int, dict[str, Any]]]()
    ids = draw(st.permutations(range(30)))
    for number, (rule, key, step, late) in enumerate(draw(listed)):
        time += step
        alert = {"rule": rule, "k": key, "matchTimestamp": time, "matchId": f"{ids[number]:02}"}
        made.append((time + late, {**alert, "events": [number]}))
    return [alert for _, alert in sorted(made, key=lambda one: one[0])]


def shown_alerts(alerts: Alerts, period: int) -> dict[str, int]:
    """Return the ids of the alerts that are shown, and what each suppresses, by the definition."""
    opened = dict[tuple[str, str | None], tuple[int, str]]()
    shown = dict[str, int]()
    for alert in sorted(alerts, key=lambda one: (one["matchTimestamp"], one["matchId"])):
        key = alert["rule"], alert["k"]
        time, first = opened.get(key, (None, ""))
        if time is not None and alert["matchTimestamp"] < time + period:
            shown[first] += 1
        else:
            opened[key] = alert["matchTimestamp"], alert["matchId"]
            shown[alert["matchId"]] = 0
    return shown


@attrs.define(eq=False)
class Stream:
    """All alerts of a stream in one bucket; every micro-batch begins with the state as bytes."""

    unit: int
    period: int = PERIOD
    storage: SpyStorage = attrs.field(factory=SpyStorage)
    shown: list[dict[str, Any]] = attrs.field(factory=list)  # The rows so far
    late: int = 0

    @property
    def alerts(self) -> SuppressedAlerts:
        """What workers know."""
        layout = Layout(
            pattern="suppress",
            schema=from_arrow_schema(_schema(self.unit)),
            payload=tuple(_schema(self.unit).names),
            key_names=KEY,
            key_columns=KEY,
            key_signature=(HASH, *KEY),
            time_column="matchTimestamp",
            time_unit=None if self.unit == 1 else self.unit,
            bit_columns=(),
        )
        rule = Suppression(self.period * self.unit, self.unit)
        return SuppressedAlerts(rule, layout, "matchId", layout.payload)

    def table(self, alerts: Alerts) -> pa.Table:
        """Return alerts as they reach a worker."""
        schema = _schema(self.unit)
        hashes = [zlib.crc32(repr((one["rule"], one["k"])).encode()) for one in alerts]
        table = pa.Table.from_pylist(alerts, schema)
        return table.append_column(HASH, pa.array(hashes, pa.int64()))

    def batch(self, alerts: Sequence[dict[str, Any]], now: int = MIN_WATERMARK) -> None:
        """Take in a micro-batch."""
        table = self.table(list(alerts))
        plan = BucketPlan(
            matching=PagesMatching(pages=partial(SuppressionPages, self.alerts)),
            layout=self.alerts.layout,
            schema=table.schema,
            key_groups=KeyGroups(8),
            processing_time=False,
            fingerprint={},
            on_pattern_change="fail",
            delay_ms=DELAY,
            allows_null_keys=True,
        )
        task = pickle.loads(pickle.dumps(plan)).task(RuntimeContext("test", 0))
        times = [one["matchTimestamp"] // self.unit for one in alerts]
        work = BucketWork(task, self.storage)
        for output in work.run(Arrivals([table], max(times, default=MIN_WATERMARK)), now):
            if output.found.rows is not None:
                self.shown += output.found.rows.to_pylist()
            self.late += output.late_count
        work.close(work.timer(now), now)
        task.close()

    def close(self) -> None:
        """Bring the final watermark, as a flush does."""
        self.batch([], MAX_WATERMARK)


def _greatest(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return how many alerts each row suppressed at the last, and check that it only grows."""
    found = dict[str, int]()
    for row in rows:
        assert row["suppressed"] > found.get(row["matchId"], -1)
        found[row["matchId"]] = row["suppressed"]
    return found


@given(st.sampled_from([*TIMES]).flatmap(lambda unit: st.tuples(st.just(unit), _alerts(unit))))
def test_in_memory_and_in_a_task(given_: tuple[int, Alerts]) -> None:
    """A table, in the order given, and a partition show what the definition says."""
    unit, alerts = given_
    expected = shown_alerts(alerts, PERIOD * unit)
    table = pa.Table.from_pylist(alerts, _schema(unit))
    shown = suppress(table, f"{PERIOD} ms", key=["k"]).to_pylist()
    assert {row["matchId"]: row["suppressed"] for row in shown} == expected
    in_order = [one["events"] for one in alerts if one["matchId"] in expected]
    assert [row["events"] for row in shown] == in_order

    stream = Stream(unit)
    types = from_arrow_schema(_schema(unit)).add("suppressed", LongType(), False)
    task = SuppressionTask(stream.alerts, types)
    rows = [row for batch in task.run(iter(stream.table(alerts).to_batches(7)))
            for row in batch.to_pylist()]  # fmt: skip
    assert sorted(rows, key=str) == sorted(shown, key=str)


@given(st.sampled_from([*TIMES]).flatmap(lambda unit: st.tuples(st.just(unit), _alerts(unit))),
       st.data())  # fmt: skip
def test_on_a_stream(given_: tuple[int, Alerts], data: st.DataObject) -> None:
    """In any micro-batches a stream shows the same, an alert twice at the most, and keeps nothing."""
    unit, alerts = given_
    stream, rest = Stream(unit), alerts
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        stream.batch(rest[:size])
        rest = rest[size:]
    stream.close()
    assert stream.late == 0
    assert _greatest(stream.shown) == shown_alerts(alerts, PERIOD * unit)
    ids = [row["matchId"] for row in stream.shown]
    assert max(map(ids.count, ids), default=0) <= 2
    assert stream.storage.is_empty or not stream.storage.all_pages()
