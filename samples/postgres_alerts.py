# SPDX-License-Identifier: Apache-2.0
"""
Alerts in a table of PostgreSQL, each once, however often they are written.

A badge that opens doors of two buildings within five minutes raises an alert. The id of a match is
the table's key, so the job may be killed and started again, also without its checkpoint: it runs
the stream, which is generated, a second time from the start, cut into other micro-batches.

Run it with the driver, ``pip install 'psycopg[binary]'``, and any database, in which it makes the
table ``badge_alerts`` unless it is there::

    python samples/postgres_alerts.py --dsn postgresql://localhost/test

With a database it prints the table::

    first run: 2 alerts, 2 new
    second run: 2 alerts, 0 new
    17: north 09:02, south 09:04
    42: north 09:08, south 09:10

Without one it says so. Expected output::

    no database given: pass --dsn postgresql://HOST/DATABASE
"""

import argparse
import json
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyflinkcep import CEP, AfterMatchSkipStrategy, CepError, Pattern, keyBy, matchId

SCHEMA = "badge string, building string, time timestamp"

FILES = [
    ["17 north 09:00", "42 south 09:01", "17 north 09:02"],
    ["17 south 09:04", "42 north 09:08", "42 south 09:10", "42 north 09:13"],
    ["0 gate 12:00"],  # so late that the watermark passes all others
]

TABLE = """
    CREATE TABLE IF NOT EXISTS badge_alerts (
        id text PRIMARY KEY, badge text, here text, at timestamptz, there text, there_at timestamptz
    )
"""
INSERT = "INSERT INTO badge_alerts VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"
REPORT = """
    SELECT badge, here, to_char(at AT TIME ZONE 'UTC', 'HH24:MI'),
           there, to_char(there_at AT TIME ZONE 'UTC', 'HH24:MI')
    FROM badge_alerts ORDER BY badge
"""


def pattern() -> Pattern:
    """Build the pattern."""
    return (
        Pattern.begin("here", AfterMatchSkipStrategy.skipPastLastEvent())
        .next("there")
        .where("building <> last(here.building)")
        .within(timedelta(minutes=5))
    )


def alerts(doors: Any) -> Any:
    """Return the matches with their ids."""
    found = CEP.pattern(keyBy(doors, "badge"), pattern()).inEventTime("time").toDF()
    return found.select(matchId("badge", "here", "there").alias("id"), "badge", "here", "there")


def insert(dsn: str, alerts: list[Any]) -> int:
    """Insert the alerts whose id is not there yet, all or none; return how many they are."""
    import psycopg

    rows = [
        (alert.id, alert.badge, here.building, at(here), there.building, at(there))
        for alert in alerts
        for here, there in zip(alert.here, alert.there, strict=True)
    ]
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, rows)
        return cursor.rowcount


def at(door: Any) -> datetime:
    """Return the time of an event with its offset: what Spark collects is local, and has none."""
    time: datetime = door.time
    return time.astimezone()


def write(folder: Path) -> None:
    """Write the stream's files, one after another."""
    folder.mkdir()
    for number, lines in enumerate(FILES):
        rows = [
            dict(zip(("badge", "building", "time"), line.split(), strict=True)) for line in lines
        ]
        file = folder / f"{number}.json"
        text = (json.dumps({**row, "time": f"2024-05-06T{row['time']}:00Z"}) for row in rows)
        file.write_text("\n".join(text), encoding="utf-8")
        os.utime(file, (number, number))  # Spark takes them by age


def run(doors: Any, dsn: str, checkpoint: str) -> tuple[int, int]:
    """Run the stream to its end; return how many alerts were written, and how many of them new."""
    written = new = 0

    def put(batch: Any, _: int) -> None:
        nonlocal written, new
        rows = batch.collect()
        written += len(rows)
        new += insert(dsn, rows)

    writer = alerts(doors).writeStream.foreachBatch(put).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    return written, new


def main(spark: Any, dsn: str | None = None) -> None:
    """Run the stream twice from its start, and print the table; or say what is missing."""
    if dsn is None:
        print("no database given: pass --dsn postgresql://HOST/DATABASE")
        return
    import psycopg

    with psycopg.connect(dsn) as connection:
        connection.execute(TABLE)
    with TemporaryDirectory() as folder:
        source = Path(folder) / "doors"
        write(source)
        for name, files_at_once in (("first", 1), ("second", 2)):
            reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_at_once)
            doors = reader.json(str(source)).withWatermark("time", "1 minute")
            written, new = run(doors, dsn, f"{folder}/{name}")
            print(f"{name} run: {written} alerts, {new} new")
    with psycopg.connect(dsn) as connection:
        for badge, here, at_here, there, at_there in connection.execute(REPORT):
            print(f"{badge}: {here} {at_here}, {there} {at_there}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write alerts to PostgreSQL, each once.")
    parser.add_argument("--dsn", metavar="URL", help="the database")
    arguments = parser.parse_args()
    if arguments.dsn is None:
        main(None)
        sys.exit()
    from _local import local_session, reason

    with local_session() as session:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            main(session, arguments.dsn)
        except (CepError, PySparkException, Py4JError, ImportError, OSError, ValueError) as error:
            sys.exit(f"postgres_alerts: {reason(error)}")
