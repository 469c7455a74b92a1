# SPDX-License-Identifier: Apache-2.0
"""
MATCH_RECOGNIZE in SQL: two or more failed logins and then one that works, within a minute.

The same statement runs on a table and on a stream of small files; ``flush`` returns the rest of a
stream that has ended. The standard's dialect shows each row of a match.

Run it with::

    python samples/sql_logins.py

Expected output::

    table: ann got in at 12:00:30 after 3 failures
    table: bob got in at 12:02:10 after 2 failures
    stream: ann got in at 12:00:30 after 3 failures
    flush: bob got in at 12:02:10 after 2 failures
    rows of bob: TRY TRY IN
"""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyflinkcep import CEP

SCHEMA = "user string, at timestamp, result string"

FILES = [
    [("ann", "12:00:00", "fail"), ("bob", "12:00:05", "fail"), ("ann", "12:00:10", "fail")],
    [("ann", "12:00:20", "fail"), ("ann", "12:00:30", "ok"), ("bob", "12:01:30", "fail")],
    [("bob", "12:02:00", "fail"), ("bob", "12:02:10", "ok")],  # the first failure is too old
]

ALERTS = """
    SELECT user, fails, in_at FROM logins MATCH_RECOGNIZE (
      PARTITION BY user ORDER BY at
      MEASURES COUNT(TRY.at) AS fails, GOT_IN.at AS in_at
      AFTER MATCH SKIP PAST LAST ROW
      PATTERN (TRY{2,} GOT_IN) WITHIN INTERVAL '1' MINUTE
      DEFINE TRY AS result = 'fail', GOT_IN AS result = 'ok'
    ) AS m WHERE fails < 100
"""

ROWS = """
    SELECT label FROM logins MATCH_RECOGNIZE (
      PARTITION BY user ORDER BY at
      MEASURES CLASSIFIER() AS label
      ALL ROWS PER MATCH
      PATTERN (TRY TRY IN)
      DEFINE TRY AS result = 'fail', IN AS result = 'ok' AND at < FIRST(at) + INTERVAL '1' MINUTE
    ) AS m WHERE user = 'bob' ORDER BY at
"""


def write(folder: Path) -> None:
    """Write the logins as files that Spark takes one after another."""
    folder.mkdir()
    for number, rows in enumerate(FILES):
        file = folder / f"{number}.json"
        names = ("user", "at", "result")
        timed = ((user, f"2026-01-05 {at}", result) for user, at, result in rows)
        lines = (json.dumps(dict(zip(names, row, strict=True))) for row in timed)
        file.write_text("\n".join(lines), encoding="utf-8")
        os.utime(file, (number, number))  # Spark takes them by age


def show(where: str, alerts: Any) -> None:
    """Print alerts in a fixed order."""
    for alert in sorted(alerts.collect(), key=lambda alert: alert.in_at):
        print(
            f"{where}: {alert.user} got in at {alert.in_at:%H:%M:%S} after {alert.fails} failures"
        )


def main(spark: Any) -> None:
    """Run the statement on a table and on a stream."""
    with TemporaryDirectory() as folder:
        source, checkpoint = Path(folder) / "logins", str(Path(folder) / "checkpoint")
        write(source)
        spark.read.schema(SCHEMA).json(str(source)).createOrReplaceTempView("logins")
        show("table", CEP.sql(spark, ALERTS))
        labels = CEP.sql(spark, ROWS, dialect="standard").collect()

        files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
        files.withWatermark("at", "10 seconds").createOrReplaceTempView("logins")
        alerts = CEP.sql(spark, ALERTS)
        query = (
            alerts.writeStream.foreachBatch(lambda batch, _: show("stream", batch))
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        show("flush", alerts.flush(checkpoint))
        print("rows of bob:", *(row.label for row in labels))


if __name__ == "__main__":
    from _local import local_session

    with local_session() as session:
        main(session)
