# SPDX-License-Identifier: Apache-2.0
"""
Shoplifting: a tagged item leaves its shelf and then the shop, and never passes the register.

For each tag: a reading at a shelf, then one at an exit within 12 hours, and no reading at the
register between the two. Other readings are skipped ("skip till next match"). Each shelf reading
begins its own match, so an item that is read twice at its shelf yields two; begin the pattern with
AfterMatchSkipStrategy.skipPastLastEvent() to get one alert per exit.

Run it with::

    python samples/shoplifting.py
    python samples/shoplifting.py --input readings.csv --output alerts

INPUT is CSV (.csv, with a header), JSON lines (.json, .jsonl) or Parquet (.parquet) with the
columns tag, place ("shelf", "register", "exit" or anything else) and time (a timestamp, or text
such as 2024-05-06 09:30:00). Without it the readings in this file are used. OUTPUT is a folder
that does not exist yet; the alerts are written there as CSV. Without it they are printed.

Expected output::

    book: shelf 2024-05-06 09:05, exit 2024-05-06 09:30
    scarf: shelf 2024-05-06 10:00, exit 2024-05-06 10:30
    scarf: shelf 2024-05-06 10:10, exit 2024-05-06 10:30
    watch: shelf 2024-05-06 09:00, exit 2024-05-06 20:59
"""

import argparse
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pyflinkcep import CEP, CepError, Pattern, keyBy


class Reading(NamedTuple):
    """A tag seen by an antenna."""

    tag: str
    place: str
    time: datetime


SCHEMA = "tag string, place string, time timestamp"


def _at(hour: int, minute: int) -> datetime:
    return datetime(2024, 5, 6, hour, minute)


EVENTS = [
    # paid for
    Reading("apple", "shelf", _at(9, 0)),
    Reading("apple", "register", _at(9, 10)),
    Reading("apple", "exit", _at(9, 12)),
    # stolen; the fitting room does not matter
    Reading("book", "shelf", _at(9, 5)),
    Reading("book", "fitting room", _at(9, 20)),
    Reading("book", "exit", _at(9, 30)),
    # still in the shop
    Reading("candle", "shelf", _at(9, 40)),
    # put back, taken again, stolen: one match for each shelf reading
    Reading("scarf", "shelf", _at(10, 0)),
    Reading("scarf", "shelf", _at(10, 10)),
    Reading("scarf", "exit", _at(10, 30)),
    # paid for; out and in again and out
    Reading("tea", "shelf", _at(11, 0)),
    Reading("tea", "register", _at(11, 5)),
    Reading("tea", "exit", _at(11, 6)),
    Reading("tea", "exit", _at(11, 20)),
    # 12 hours are over at 21:00, 20:59 is within
    Reading("vase", "shelf", _at(9, 0)),
    Reading("vase", "exit", _at(21, 0)),
    Reading("watch", "shelf", _at(9, 0)),
    Reading("watch", "exit", _at(20, 59)),
]


def pattern() -> Pattern:
    """Build the pattern."""
    return (
        Pattern.begin("shelf")
        .where(lambda reading: reading.place == "shelf")
        .notFollowedBy("register")
        .where(lambda reading: reading.place == "register")
        .followedBy("exit")
        .where(lambda reading: reading.place == "exit")
        .within(timedelta(hours=12))
    )


def alerts(readings: Any) -> Any:
    """Return a DataFrame of alerts for a DataFrame of readings."""
    return (
        CEP.pattern(keyBy(readings, "tag"), pattern())
        .inEventTime("time")
        .select(
            lambda match: (match["exit"][0].tag, match["shelf"][0].time, match["exit"][0].time),
            "tag string, shelf timestamp, exit timestamp",
        )
    )


def read(spark: Any, path: str) -> Any:
    """Return the readings of a file; its ending tells the format."""
    match Path(path).suffix:
        case ".csv":
            file = spark.read.csv(path, header=True)
        case ".json" | ".jsonl":
            file = spark.read.json(path)
        case ".parquet":
            file = spark.read.parquet(path)
        case ending:
            raise ValueError(f"{path}: {ending!r} is not .csv, .json, .jsonl or .parquet")
    missing = [column for column in ("tag", "place", "time") if column not in file.columns]
    if missing:
        raise ValueError(f"{path}: no column {missing[0]!r}, there are {file.columns}")
    readings = file.select("tag", "place", "time")
    found = dict(readings.dtypes)["time"]
    if found not in ("string", "timestamp", "timestamp_ntz"):
        raise ValueError(f"{path}: column 'time' is {found}, not a timestamp or text")
    return readings.withColumn("time", readings["time"].cast("timestamp"))


def main(spark: Any, input: str | None = None, output: str | None = None) -> None:
    """Find the alerts, and write or print them."""
    readings = spark.createDataFrame(EVENTS, SCHEMA) if input is None else read(spark, input)
    found = alerts(readings).orderBy("tag", "shelf")
    if output is not None:
        found.write.csv(output, header=True)
        print(f"{spark.read.csv(output, header=True).count()} alerts in {output}")
        return
    for alert in found.collect():
        print(f"{alert.tag}: shelf {alert.shelf:%Y-%m-%d %H:%M}, exit {alert.exit:%Y-%m-%d %H:%M}")


if __name__ == "__main__":
    from _local import local_session, reason

    parser = argparse.ArgumentParser(description="Find items that left the shop unpaid.")
    parser.add_argument("--input", metavar="FILE", help="CSV, JSON lines or Parquet")
    parser.add_argument("--output", metavar="FOLDER", help="a new folder for the alerts")
    arguments = parser.parse_args()
    with local_session() as session:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            main(session, arguments.input, arguments.output)
        except (CepError, PySparkException, Py4JError, ValueError) as error:
            sys.exit(f"shoplifting: {reason(error)}")
