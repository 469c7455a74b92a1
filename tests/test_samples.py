# SPDX-License-Identifier: Apache-2.0
"""Every sample does what it says."""

import importlib.util
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest

import pyflinkcep
from pyflinkcep.testing import match
from tests.sinks.servers import postgresql

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "samples"
NAMES = sorted(path.stem for path in SAMPLES.glob("[!_]*.py"))


def load(name):
    """Return a sample as a module; not in sys.modules, so that Spark sends its functions whole."""
    spec = importlib.util.spec_from_file_location(name, SAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected_output(module):
    """Return the output that a sample's docstring promises."""
    return dedent(module.__doc__.split("Expected output::", 1)[1]).strip()


# --- the patterns, without Spark


def test_flink_quickstart_pattern():
    """42, directly a volume of 10, later "end": at 1, and twice with the "end" at 10."""
    sample = load("flink_quickstart")

    found = match(sample.pattern(), sample.EVENTS, timestamp="ts")

    assert [{stage: [e.ts for e in events] for stage, events in m.items()} for m in found] == [
        {"start": [1], "middle": [2], "end": [4]},
        {"start": [7], "middle": [8], "end": [10]},
        {"start": [8], "middle": [9], "end": [10]},
    ]


def test_shoplifting_pattern():
    """Only unpaid items that leave within 12 hours; a match for each shelf reading."""
    sample = load("shoplifting")

    found = match(sample.pattern(), sample.EVENTS, timestamp="time", key="tag")

    assert sorted(
        (m["exit"][0].tag, f"{m['shelf'][0].time:%H:%M}", f"{m['exit'][0].time:%H:%M}")
        for m in found
    ) == [
        ("book", "09:05", "09:30"),
        ("scarf", "10:00", "10:30"),
        ("scarf", "10:10", "10:30"),
        ("watch", "09:00", "20:59"),
    ]
    assert all(list(m) == ["shelf", "exit"] for m in found)


def test_contamination_pattern():
    """Six chains: two ways to the Cafe and therefore to the School, none after 3 hours."""
    sample = load("contamination")

    found = match(sample.pattern(), sample.EVENTS, timestamp="time")

    assert [[e.destination for e in (*m["alert"], *m["shipments"])] for m in found] == [
        ["Farm", "Bakery"],
        ["Farm", "Dairy"],
        ["Farm", "Bakery", "Cafe"],
        ["Farm", "Dairy", "Cafe"],
        ["Farm", "Bakery", "Cafe", "School"],
        ["Farm", "Dairy", "Cafe", "School"],
    ]


def test_stock_trend_pattern():
    """A match for each of the two large trades of HILL; none for DALE and LAKE."""
    sample = load("stock_trend")

    found = match(sample.pattern(), sample.EVENTS, timestamp="time", key="symbol")

    assert [[e.price for e in (*m["start"], *m["rise"], *m["fall"])] for m in found] == [
        [100.0, 103.0, 106.0, 107.0, 110.0, 101.0],
        [103.0, 106.0, 107.0, 110.0, 101.0],
    ]
    assert {e.symbol for m in found for events in m.values() for e in events} == {"HILL"}


def test_rack_monitoring_patterns():
    """Alerts are matches of a pattern over the matches of a pattern; averages must rise."""
    sample = load("rack_monitoring")
    columns = ("rack", "average", "time")

    found = match(sample.warning_pattern(), sample.EVENTS, timestamp="time", key="rack")
    warnings = [dict(zip(columns, sample.warning(m), strict=True)) for m in found]
    alerts = match(sample.alert_pattern(), warnings, timestamp="time", key="rack")

    assert sorted((w["rack"], w["average"], w["time"].second) for w in warnings) == [
        (1, 101.0, 3),
        (1, 104.0, 6),
        (1, 106.0, 20),
        (2, 108.0, 15),
        (2, 110.0, 4),
        (3, 101.5, 14),
        (3, 109.0, 34),
    ]
    assert [sample.alert(m)[:2] for m in alerts] == [(1, 3.0), (1, 2.0)]


def test_kafka_source_pattern():
    """A price that rises above where it began, and then falls below that, makes a match."""
    sample = load("kafka_source")
    trades = [{"symbol": "HILL", "price": price} for price in (5, 6, 7, 4, 5, 5, 3)]

    found = match(sample.pattern(), [SimpleNamespace(**trade) for trade in trades], key="symbol")

    assert [[e.price for e in (*m["start"], *m["rise"], *m["fall"])] for m in found] == [
        [5, 6, 7, 4]
    ]


@pytest.mark.spark
def test_kafka_source_reads_records(spark, tmp_path):
    """Values in JSON become trades, others are left out; the query finds the fall on a stream."""
    sample, folder = load("kafka_source"), tmp_path / "records"
    folder.mkdir()
    prices = [(0, 5), (1, 6), (2, 7), (3, 4), (59, 9)]
    trade = '{{"symbol": "HILL", "price": {}, "time": "2024-05-06T09:00:{:02}Z"}}'
    values = ["no json", "{}", *(trade.format(price, second) for second, price in prices)]
    (folder / "values").write_text("\n".join(values), encoding="utf-8")
    records = spark.readStream.text(str(folder)).selectExpr("CAST(value AS BINARY) AS value")
    found = sample.falls(sample.parsed(records))
    rows = []
    query = (
        found.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows += found.flush(str(tmp_path / "checkpoint")).collect()

    assert [(row.symbol, row["from"].second, row.to.second) for row in rows] == [("HILL", 0, 3)]


@pytest.mark.slow
def test_kafka_source_without_a_broker_starts_no_spark(tmp_path):
    """Without a broker the program says what to give and ends well, Java or not."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['pysail'] = None")
    environment = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    environment.pop("JAVA_HOME", None)

    done = subprocess.run(
        [sys.executable, str(SAMPLES / "kafka_source.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == expected_output(load("kafka_source"))


def test_postgres_alerts_pattern():
    """Two buildings within five minutes, one directly after the other."""
    sample = load("postgres_alerts")
    rows = [line.split() for lines in sample.FILES for line in lines]
    doors = {
        "badge": [badge for badge, _, _ in rows],
        "building": [building for _, building, _ in rows],
        "time": [datetime.fromisoformat(f"2024-05-06T{time}") for _, _, time in rows],
    }

    found = pyflinkcep.match(sample.pattern(), doors, timestamp="time", key="badge")

    assert sorted((m["here"][0].badge, m["there"][0].building) for m in found) == [
        ("17", "south"),
        ("42", "south"),
    ]


def test_suppressed_alerts_rules():
    """All readings of the sample at once show the alerts, and how many others, that it prints."""
    sample = load("suppressed_alerts")
    rows = [line.split() for lines in sample.FILES for line in lines]
    readings = {
        "host": [host for host, _, _ in rows],
        "used": [float(used) for _, used, _ in rows],
        "time": [datetime.fromisoformat(f"2024-05-06T{time}") for _, _, time in rows],
    }

    found = pyflinkcep.matchMany(sample.rules(), readings, timestamp="time")
    shown = pyflinkcep.suppress(found, "10 minutes").to_pylist()

    assert sorted((f"{row['matchTimestamp']:%H:%M}", row["rule"], row["suppressed"])
                  for row in shown) == [
        ("09:00", "full", 3), ("09:01", "full", 0), ("09:06", "filling", 0), ("09:11", "full", 1)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def database():
    """Return the address of one database for all samples, whose tables have different names."""
    with postgresql() as dsn:
        yield dsn


@pytest.mark.spark
@pytest.mark.parametrize("name", ["postgres_alerts", "suppressed_alerts"])
def test_a_second_run_changes_nothing_in_postgresql(name, spark, database, capsys):
    """A second run from the start writes the same alerts, and the table has each once."""
    sample = load(name)
    sample.main(spark, database)

    shown = sample.__doc__.split("With a database it prints the table::")[1].split("Without")[0]
    assert capsys.readouterr().out.strip() == dedent(shown).strip()


# --- the programs


def test_every_sample_is_in_the_table():
    """samples/README.md has a row for each sample and for nothing else."""
    rows = (SAMPLES / "README.md").read_text(encoding="utf-8").splitlines()

    assert sorted(row.split("`")[1] for row in rows if row.startswith("| `")) == [
        f"{name}.py" for name in NAMES
    ]


@pytest.mark.spark
@pytest.mark.parametrize("name", NAMES)
def test_sample_prints_what_it_promises(name, spark, capsys):
    """The output is the one in the docstring."""
    sample = load(name)

    sample.main(spark)

    assert capsys.readouterr().out.strip() == expected_output(sample)


@pytest.mark.spark
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_main_job_reads_files_and_writes_a_folder(ending, spark, tmp_path, capsys):
    """Whatever the format of the file, the alerts are the same."""
    sample, file, folder = load("shoplifting"), tmp_path / f"in.{ending}", tmp_path / "alerts"
    readings = spark.createDataFrame(sample.EVENTS, sample.SCHEMA)
    if ending == "parquet":
        readings.write.parquet(str(file))
    else:
        text = readings.selectExpr("tag", "place", "date_format(time, 'yyyy-MM-dd HH:mm') AS time")
        rows = text.toPandas()
        if ending == "csv":
            rows.to_csv(file, index=False)
        else:
            rows.to_json(file, orient="records", lines=True)

    sample.main(spark, str(file), str(folder))

    assert capsys.readouterr().out.strip() == f"4 alerts in {folder}"
    assert [
        (row.tag, row.exit[11:16])
        for row in spark.read.csv(str(folder), header=True).sort("tag", "shelf").collect()
    ] == [("book", "09:30"), ("scarf", "10:30"), ("scarf", "10:30"), ("watch", "20:59")]


@pytest.mark.slow
def test_without_java_and_sail_the_main_job_says_so_in_one_line(tmp_path):
    """No traceback: what is missing, and how to get either."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['pysail'] = None")
    environment = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    environment.pop("JAVA_HOME", None)

    done = subprocess.run(
        [sys.executable, str(SAMPLES / "shoplifting.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("no Java on PATH, and Spark needs Java 17 or later: install it")
    assert "pip install 'pyflinkcep[sail]'" in done.stderr
    assert done.stderr.count("\n") == 1
