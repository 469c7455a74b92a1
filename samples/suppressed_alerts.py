# SPDX-License-Identifier: Apache-2.0
"""
Alerts of rules in a table of PostgreSQL: the first of ten minutes, with the number of the others.

A disk that is full raises an alert with each reading. `CEP.suppress` shows the first of a host, and
says with the same id how many followed: what is in the table is updated. The job may be killed and
started again, also without its checkpoint: it runs the stream, which is generated, a second time
from the start, cut into other micro-batches.

Run it with the driver, ``pip install 'psycopg[binary]'``, and any database, in which it makes the
table ``disk_alerts`` unless it is there::

    python samples/suppressed_alerts.py --dsn postgresql://localhost/test

With a database it prints the table::

    first run: 4 alerts in the table, 4 new
    second run: 4 alerts in the table, 0 new
    09:00 full on web1, and 3 more
    09:01 full on web2
    09:06 filling on web2
    09:11 full on web1, and 1 more

Without one it says so. Expected output::

    no database given: pass --dsn postgresql://HOST/DATABASE
"""

import argparse
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyflinkcep import CEP, CepError, Pattern
from pyflinkcep.rules import Rule

SCHEMA = "host string, used double, time timestamp"

FILES = [
    ["web1 97 09:00", "web2 98 09:01", "web1 97 09:02"],
    ["web2 40 09:03", "web1 98 09:05", "web2 93 09:06"],
    ["web1 99 09:09", "web1 99 09:11", "web1 99 09:12"],
    ["db1 10 12:00"],  # so late that the watermark passes all others
]

TABLE = """
    CREATE TABLE IF NOT EXISTS disk_alerts (
        id text PRIMARY KEY, rule text, host text, at timestamptz, suppressed bigint
    )
"""
# What the table knows already is never taken back, in whatever order rows are written.
UPSERT = """
    INSERT INTO disk_alerts VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (id) DO UPDATE
    SET suppressed = greatest(disk_alerts.suppressed, excluded.suppressed)
"""
REPORT = """
    SELECT to_char(at AT TIME ZONE 'UTC', 'HH24:MI'), rule, host, suppressed
    FROM disk_alerts ORDER BY at, rule
"""


def rules() -> list[Rule]:
    """Make the rules."""
    full = Pattern.begin("reading").where("used > 95")
    filling = Pattern.begin("low").where("used < 50").next("high").where("used > 90")
    within = filling.within(timedelta(minutes=5))
    return [Rule("full", full, ("host",)), Rule("filling", within, ("host",))]


def alerts(readings: Any) -> Any:
    """Return the first alert of each rule and host in ten minutes."""
    found = CEP.patterns(readings, rules()).toDF()
    return CEP.suppress(found, timedelta(minutes=10))


def upsert(dsn: str, rows: list[Any]) -> None:
    """Insert alerts, or update their numbers, all or none."""
    import psycopg

    values = [
        # What Spark collects is local time, without an offset.
        (row.matchId, row.rule, row.key["host"], row.matchTimestamp.astimezone(), row.suppressed)
        for row in rows
    ]
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.executemany(UPSERT, values)


def write(folder: Path) -> None:
    """Write the stream's files, one after another."""
    folder.mkdir()
    for number, lines in enumerate(FILES):
        file = folder / f"{number}.json"
        readings = (line.split() for line in lines)
        text = (
            json.dumps({"host": host, "used": float(used), "time": f"2024-05-06T{time}:00Z"})
            for host, used, time in readings
        )
        file.write_text("\n".join(text), encoding="utf-8")
        os.utime(file, (number, number))  # Spark takes them by age


def run(readings: Any, dsn: str, checkpoint: str) -> None:
    """Run the stream to its end."""

    def put(batch: Any, _: int) -> None:
        upsert(dsn, batch.collect())

    writer = alerts(readings).writeStream.foreachBatch(put).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def main(spark: Any, dsn: str | None = None) -> None:
    """Run the stream twice from its start, and print the table; or say what is missing."""
    if dsn is None:
        print("no database given: pass --dsn postgresql://HOST/DATABASE")
        return
    import psycopg

    with psycopg.connect(dsn) as connection:
        connection.execute(TABLE)

    def rows() -> list[Any]:
        with psycopg.connect(dsn) as connection:
            return connection.execute(REPORT).fetchall()

    with TemporaryDirectory() as folder:
        source = Path(folder) / "readings"
        write(source)
        for name, files_at_once in (("first", 1), ("second", 3)):
            reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_at_once)
            readings = reader.json(str(source)).withWatermark("time", "1 minute")
            before = len(rows())
            run(readings, dsn, f"{folder}/{name}")
            now = len(rows())
            print(f"{name} run: {now} alerts in the table, {now - before} new")
    for at, rule, host, suppressed in rows():
        print(f"{at} {rule} on {host}" + (f", and {suppressed} more" if suppressed else ""))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write suppressed alerts to PostgreSQL.")
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
            sys.exit(f"suppressed_alerts: {reason(error)}")
