# SPDX-License-Identifier: Apache-2.0
"""
Rack monitoring: a pattern over the matches of a pattern, the best-known demo of Flink CEP.

The racks of a data centre report their temperature and power. Two consecutive hot temperatures of a
rack within 10 seconds raise a warning with their average. Two consecutive warnings of a rack within
20 seconds raise an alert if the average rises. The same functions find the same alerts in a
DataFrame and on a stream, which reads the readings from files and ends with one that moves the
watermark past them.

Run it with::

    python samples/rack_monitoring.py

Expected output::

    warning: rack 1 at 08:00:03, 101.0 degrees
    warning: rack 1 at 08:00:06, 104.0 degrees
    warning: rack 1 at 08:00:20, 106.0 degrees
    warning: rack 2 at 08:00:04, 110.0 degrees
    warning: rack 2 at 08:00:15, 108.0 degrees
    warning: rack 3 at 08:00:14, 101.5 degrees
    warning: rack 3 at 08:00:34, 109.0 degrees
    alert: rack 1 at 08:00:06, up by 3.0 degrees
    alert: rack 1 at 08:00:20, up by 2.0 degrees
    the stream has the same alerts
"""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pyflinkcep import CEP, Pattern, keyBy

HOT = 100.0


class Reading(NamedTuple):
    """What a rack sends: its temperature in degrees, or its power in watts."""

    rack: int
    kind: str
    value: float
    time: datetime


SCHEMA = "rack int, kind string, value double, time timestamp"
WARNING = "rack int, average double, time timestamp"
ALERT = "rack int, rise double, time timestamp"


def _at(second: int) -> datetime:
    return datetime(2024, 5, 6, 8, 0, second)


EVENTS = [
    # rack 1 grows hotter and hotter: three hot readings are two warnings
    Reading(1, "temperature", 98.0, _at(0)),
    Reading(1, "temperature", 100.0, _at(1)),
    Reading(1, "temperature", 102.0, _at(3)),
    Reading(1, "temperature", 106.0, _at(6)),
    Reading(1, "power", 95.0, _at(12)),  # between two hot temperatures: no warning
    Reading(1, "temperature", 107.0, _at(15)),
    Reading(1, "temperature", 105.0, _at(20)),
    # rack 2 cools down between its two warnings
    Reading(2, "temperature", 108.0, _at(2)),
    Reading(2, "temperature", 112.0, _at(4)),
    Reading(2, "power", 240.0, _at(5)),
    Reading(2, "temperature", 107.0, _at(12)),
    Reading(2, "temperature", 109.0, _at(15)),
    # rack 3: 11 seconds between hot readings are too long, and so are 20 between warnings
    Reading(3, "temperature", 101.0, _at(1)),
    Reading(3, "temperature", 101.0, _at(12)),
    Reading(3, "temperature", 102.0, _at(14)),
    Reading(3, "temperature", 109.0, _at(25)),
    Reading(3, "temperature", 109.0, _at(34)),
]


def warning_pattern() -> Pattern:
    """Build the pattern of a warning."""
    is_hot = f"kind = 'temperature' AND value >= {HOT}"
    return (
        Pattern.begin("first")
        .where(is_hot)
        .next("second")
        .where(is_hot)
        .within(timedelta(seconds=10))
    )


def alert_pattern() -> Pattern:
    """Build the pattern of an alert, over warnings."""
    return (
        Pattern.begin("first")
        .next("second")
        .where("average > last(first.average)")
        .within(timedelta(seconds=20))
    )


def warning(match: Any) -> Any:
    """Return the row of a warning."""
    first, second = match["first"][0], match["second"][0]
    return (second.rack, (first.value + second.value) / 2, second.time)


def alert(match: Any) -> Any:
    """Return the row of an alert."""
    first, second = match["first"][0], match["second"][0]
    return (second.rack, second.average - first.average, second.time)


def warnings(readings: Any) -> Any:
    """Return the warnings of a DataFrame of readings, bounded or a stream with a watermark."""
    found = CEP.pattern(keyBy(readings, "rack"), warning_pattern()).inEventTime("time")
    return found.select(warning, WARNING).withEventTime("time")


def alerts(found: Any) -> Any:
    """Return the alerts of a DataFrame of warnings."""
    rising = CEP.pattern(keyBy(found, "rack"), alert_pattern()).inEventTime("time")
    return rising.select(alert, ALERT)


def write(folder: Path) -> None:
    """Write the stream's files, each with the readings of ten seconds, and a last reading."""
    folder.mkdir()
    parts = [[e for e in EVENTS if e.time.second // 10 == part] for part in range(4)]
    parts.append([Reading(9, "power", 0.0, datetime(2024, 5, 6, 9))])
    for number, part in enumerate(parts):
        rows = (json.dumps({**e._asdict(), "time": str(e.time)}) for e in part)
        file = folder / f"{number}.json"
        file.write_text("\n".join(rows), encoding="utf-8")
        os.utime(file, (number, number))  # Spark takes them by age


def streamed(spark: Any) -> list[Any]:
    """Return the alerts of a stream of the same readings."""
    rows: list[Any] = []
    with TemporaryDirectory() as folder:
        write(Path(folder) / "readings")
        files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        readings = files.json(str(Path(folder) / "readings")).withWatermark("time", "2 seconds")
        query = (
            alerts(warnings(readings))
            .writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
            .option("checkpointLocation", str(Path(folder) / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return rows


def main(spark: Any) -> None:
    """Find warnings and alerts, print them, and compare the alerts with those of a stream."""
    readings = spark.createDataFrame(EVENTS, SCHEMA)
    found = warnings(readings)
    for row in found.orderBy("rack", "time").collect():
        print(f"warning: rack {row.rack} at {row.time:%H:%M:%S}, {row.average:.1f} degrees")
    bounded = alerts(found).orderBy("rack", "time").collect()
    for row in bounded:
        print(f"alert: rack {row.rack} at {row.time:%H:%M:%S}, up by {row.rise:.1f} degrees")
    same = sorted(streamed(spark)) == sorted(bounded)
    print(f"the stream has {'the same' if same else 'other'} alerts")


if __name__ == "__main__":
    from _local import local_session

    with local_session() as session:
        main(session)
