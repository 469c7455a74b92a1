# SPDX-License-Identifier: Apache-2.0
"""
Login fraud on a stream: three failed logins directly followed by a successful one.

For each user: three consecutive failures and then a success, all within 5 minutes, raise an alert.
Three failures without a success are reported when their 5 minutes are over. The stream is
generated, one file per micro-batch. Its events are out of order, and the watermark allows a delay
of 2 minutes; later events go to a side output. All three outputs come from one query, as they
appear: tagged() puts them into one DataFrame. When the files are read, flush() returns what the
query still held back.

Run it with::

    python samples/streaming_login_fraud.py

Expected output::

    micro-batch 2: gave up: ben at 09:03, the 5 minutes were over at 09:06
    micro-batch 2: alert: anna got in at 09:03 after failures from 09:00 on
    micro-batch 3: too late: ben success 09:06
    micro-batch 5: alert: dave got in at 09:15 after failures from 09:13 on
    flush: gave up: cara at 09:17, the 5 minutes were over at 09:21
"""

import json
import os
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyflinkcep import CEP, AfterMatchSkipStrategy, CepError, OutputTag, Pattern, keyBy

SCHEMA = "user string, result string, time timestamp"

FILES = [
    ["anna failed 09:00", "anna failed 09:01", "ben failed 09:01"],
    # out of order: anna's success is here before her third failure
    ["anna success 09:03", "anna failed 09:02", "ben failed 09:02", "ben failed 09:03"],
    # the watermark is now 09:10, two minutes behind the latest event
    ["cara success 09:12"],
    # and this success, which would have made an alert, is too late
    ["ben success 09:06", "dave failed 09:13", "dave failed 09:14"],
    ["dave success 09:15", "dave failed 09:14", "cara failed 09:16", "cara failed 09:16"],
    ["cara failed 09:17"],
]

TOO_LATE = OutputTag("too late")
GAVE_UP = OutputTag("gave up", "user string, last timestamp, over timestamp")


def pattern() -> Pattern:
    """Build the pattern."""
    return (
        Pattern.begin("failures", AfterMatchSkipStrategy.skipPastLastEvent())
        .where("result = 'failed'")
        .times(3)
        .consecutive()
        .next("success")
        .where("result = 'success'")
        .within(timedelta(minutes=5))
    )


def alert(match: Any, out: Any) -> None:
    """Collect a row for a match."""
    success = match["success"][0]
    out.collect((success.user, success.time, match["failures"][0].time))


def gave_up(match: Any, timestamp: int, out: Any) -> None:
    """Collect a row for three failures without a success; fewer are of no interest."""
    failures = match["failures"]
    if len(failures) == 3:
        over = datetime.fromtimestamp(timestamp / 1000)
        out.collect((failures[0].user, failures[2].time, over))


def results(logins: Any) -> Any:
    """Return alerts, with what was given up and what was too late beside them."""
    return (
        CEP.pattern(keyBy(logins, "user"), pattern())
        .sideOutputLateData(TOO_LATE)
        .flatSelect(GAVE_UP, gave_up, alert, "user string, time timestamp, first timestamp")
    )


def write(folder: Path) -> None:
    """Write the stream's files, one after another."""
    folder.mkdir()
    for number, lines in enumerate(FILES):
        rows = [dict(zip(("user", "result", "time"), line.split(), strict=True)) for line in lines]
        file = folder / f"{number}.json"
        text = (json.dumps({**row, "time": f"2024-05-06 {row['time']}:00"}) for row in rows)
        file.write_text("\n".join(text), encoding="utf-8")
        os.utime(file, (number, number))  # Spark takes them by age


def lines(tagged: Any) -> Iterator[str]:
    """Yield the rows of all outputs as text, in a fixed order."""
    rows = tagged.selectExpr(
        "tag",
        "main.user AS alerted",
        "date_format(main.time, 'HH:mm') AS time",
        "date_format(main.first, 'HH:mm') AS first",
        "`gave up`.user AS gave_up",
        "date_format(`gave up`.last, 'HH:mm') AS last",
        "date_format(`gave up`.over, 'HH:mm') AS over",
        "`too late`.*",
    ).collect()
    for row in sorted(rows, key=str):
        alerted, at, first, user, last, over, late, result, time = row[1:]
        if row.tag == "main":
            yield f"alert: {alerted} got in at {at} after failures from {first} on"
        elif row.tag == GAVE_UP.name:
            yield f"gave up: {user} at {last}, the 5 minutes were over at {over}"
        else:
            yield f"too late: {late} {result} {time:%H:%M}"


def main(spark: Any) -> None:
    """Run the stream to its end, print what it gives when it gives it, then flush it."""
    with TemporaryDirectory() as folder:
        source, checkpoint = Path(folder) / "logins", str(Path(folder) / "checkpoint")
        write(source)
        files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
        found = results(files.withWatermark("time", "2 minutes"))

        def show(batch: Any, number: int) -> None:
            for line in lines(batch):
                print(f"micro-batch {number}: {line}")

        query = (
            found.tagged()
            .writeStream.foreachBatch(show)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        for line in lines(found.flush(checkpoint).tagged()):
            print(f"flush: {line}")


if __name__ == "__main__":
    from _local import local_session, reason

    with local_session() as session:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            main(session)
        except (CepError, PySparkException, Py4JError, ValueError) as error:
            sys.exit(f"streaming_login_fraud: {reason(error)}")
