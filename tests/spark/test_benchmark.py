# SPDX-License-Identifier: Apache-2.0
"""The benchmark measures what it says: on a small stream its answers are the known ones."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pyflinkcep.testing import match
from tests.benchmark import batch, experiments, in_process
from tests.benchmark.__main__ import COMMANDS
from tests.benchmark.events import PendingEvents, RandomEvents
from tests.benchmark.latency import latencies_of, measure_latency
from tests.benchmark.measurement import Measurement, disagreements, load, save
from tests.benchmark.optiseq import EXPERIMENTS
from tests.benchmark.report import markdown
from tests.benchmark.stream import measure_stream
from tests.benchmark.workloads import PENDING, VARIANTS, WORKLOADS

EVENTS = RandomEvents(events=8_000, keys=200, types=5, seed=7)

FLINK = {
    "strict": (68, 785_398),
    "relaxed": (1_216, 14_448_360),
    "any": (18_040, 215_211_941),
    "kleene": (5_421, 123_467_363),
    "stock": (1_549, 40_278_525),
    "absence": (194, 1_344_243),
}
"""Matches and checksum that Flink CEP 2.3.0 gave for EVENTS."""

MACHINE = ("date", "cores", "memory_gib", "system", "python", "pyspark", "pyarrow", "numpy")
SOMEWHERE = {"machine": dict.fromkeys(MACHINE, "?"), "settings": {"events": 1_000, "repeat": 1}}


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of generated events."""
    return tmp_path_factory.mktemp("events")


def test_every_workload_has_a_known_answer() -> None:
    """No workload is without an answer of Flink's."""
    assert list(WORKLOADS) == list(FLINK)


def test_engines_in_a_process_are_asked_the_same(cache: Path) -> None:
    """ClickHouse and polars, and DuckDB where it is installed, give the answers of match."""
    peers = [name for name in in_process.PEERS if name != "duckdb" or find_spec("duckdb")]
    found = list(in_process.measured(EVENTS, 2, 1, cache, peers))
    assert not disagreements(found)
    asked = {(m.workload, m.engine) for m in found}
    assert asked >= {(name, peer) for name in ("strict", "relaxed", "funnel") for peer in peers}
    assert all(m.matches for m in found)
    text = markdown(SOMEWHERE, found)
    assert "| question | events | keys | match, M events/s |" in text


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_patterns_give_flinks_answers_without_spark(workload: Any) -> None:
    """Patterns and events are those of Flink's side: the matching core alone gives its answer."""
    table = EVENTS.part(0, EVENTS.events)
    rows = table.to_pandas().itertuples(index=False)
    found = match(workload.pattern("python"), rows, timestamp=_time_ms, key="key")
    times = [_time_ms(event) for m in found for stage in m.values() for event in stage]

    assert (len(found), sum(times)) == FLINK[workload.name]


def _time_ms(event: Any) -> int:
    return event.ts.value // 1_000_000


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_batch_gives_flinks_answer(spark: Any, cache: Path, workload: Any) -> None:
    """A bounded job finds as many matches as Flink, of the same events."""
    events = batch.read(spark, EVENTS, cache)
    measured = batch.measure_batch(events, EVENTS, EVENTS.keys, workload, VARIANTS[0])

    assert measured.answer == FLINK[workload.name]


def test_stream_gives_flinks_answer(spark: Any, cache: Path) -> None:
    """A replayed stream with its flush finds the same matches, and reports its steady rate."""
    workload = WORKLOADS["relaxed"]
    measured = measure_stream(
        spark, EVENTS, EVENTS.keys, workload, "columns", cache, micro_batch=4_000, sink="parquet"
    )

    assert measured.answer == FLINK["relaxed"]
    assert measured.details["steady_rate"] > 0


def test_latency_counts_every_alert(spark: Any, cache: Path) -> None:
    """The run for latency finds the same matches, and a latency for micro-batches with alerts."""
    workload = WORKLOADS["relaxed"]
    measured = measure_latency(
        spark, EVENTS, EVENTS.keys, workload, "columns", cache, micro_batch=4_000
    )

    assert measured.answer == FLINK["relaxed"]
    assert measured.details["median_s"] > 0


def test_latency_without_alerts() -> None:
    """If no alert comes before the input ends, there is no latency, and no row in the report."""
    details = {"micro_batch": 10, **latencies_of({}, [])}
    measured = Measurement("latency", "absence", "columns", "s", 10, 1, 1.0, 0, 0, details=details)

    assert details["micro_batches"] == 0
    assert "absence" not in markdown(SOMEWHERE, [measured])


def test_pending_matches_end_together(spark: Any, cache: Path) -> None:
    """Each of the events that begin a partial match is matched with the last event."""
    source = PendingEvents(partials=50, others=10)
    measured = batch.measure_batch(batch.read(spark, source, cache), source, 1, PENDING, "columns")

    assert measured.answer == (50, sum(range(50)) + 50 * 60)


def test_wrong_answers_are_told(tmp_path: Path) -> None:
    """Runs of the same question with different answers are named; results survive the file."""
    right = Measurement("flink", "any", "", "events", 10, 1, 1.0, 5, 6, {"peak_mib": {}})
    wrong = Measurement("batch", "any", "python", "events", 10, 1, 1.0, 5, 7)
    path = tmp_path / "results.json"
    save(path, [wrong, right], {})
    document, runs = load(path)

    assert json.loads(path.read_text())["machine"] == document["machine"]
    assert runs == [wrong, right]
    assert disagreements(runs) == [
        "WRONG: any on events: batch python found (matches, checksum) = (5, 7), flink (5, 6)"
    ]


def test_reports_show_ratios() -> None:
    """The table has Flink's rate, and ours with how many times Flink's it is."""
    runs = [
        Measurement("flink", "any", "", "events", 1_000, 1, 4.0, 5, 6),
        Measurement("batch", "any", "columns", "events", 1_000, 1, 1.0, 5, 6),
    ]
    report = markdown(SOMEWHERE, runs)

    assert "| any | 1 | 250 | 1,000 (4.00 ×) |" in report


def test_make_bench_runs_a_command() -> None:
    """The target of the Makefile names one of the benchmark's commands."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    (line,) = [line for line in makefile.splitlines() if "-m tests.benchmark" in line]

    assert line.split()[-1] in COMMANDS


def test_the_papers_experiments_are_plotted(tmp_path: Path) -> None:
    """A plot of each of the three, with a line for each evaluation, and the numbers."""
    numbers, *plots = experiments.write(tmp_path, events=1000, times=1)
    assert len(numbers.read_text(encoding="utf-8").splitlines()) == 1 + len(EXPERIMENTS)
    assert [plot.name for plot in plots] == [f"experiment{n}.svg" for n in (1, 2, 3)]
    for plot in plots:
        elements = [e.tag.partition("}")[2] for e in ElementTree.parse(plot).iter()]
        assert elements.count("polyline") == len(experiments.EVALUATIONS)
