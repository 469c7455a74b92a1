# SPDX-License-Identifier: Apache-2.0
"""
Events from a Kafka topic: a price that rises and then falls below where it began.

The values of the topic's records are JSON such as
``{"symbol": "HILL", "price": 101.5, "time": "2024-05-06T09:00:00Z"}``. The stream runs until it is
stopped, and resumes where it was if started again with the same checkpoint.

The pattern, the reading of records and the query are tested on a stream of files whose lines are
such values. Kafka itself is not: the connector and its options are used as Spark documents them,
but have never been tried with a broker.

Run it with the Kafka connector of your Spark version::

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0 \
        samples/kafka_source.py --bootstrap-servers localhost:9092 --topic trades \
        --checkpoint /tmp/trades-checkpoint

Without a broker it says so. Expected output::

    no broker given: pass --bootstrap-servers HOST:PORT
"""

import argparse
import sys
from datetime import timedelta
from typing import Any

from pyflinkcep import CEP, AfterMatchSkipStrategy, CepError, Pattern, keyBy

SCHEMA = "symbol string, price double, time timestamp"


def pattern() -> Pattern:
    """Build the pattern."""
    return (
        Pattern.begin("start", AfterMatchSkipStrategy.skipPastLastEvent())
        .next("rise")
        .where(lambda trade, ctx: trade.price > next(iter(ctx.getEventsForPattern("start"))).price)
        .oneOrMore()
        .greedy()
        .next("fall")
        .where(lambda trade, ctx: trade.price < next(iter(ctx.getEventsForPattern("start"))).price)
        .within(timedelta(minutes=10))
    )


def trades(spark: Any, servers: str, topic: str) -> Any:
    """Return the events of a topic."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")  # of a new checkpoint; an old one goes on
        .option("maxOffsetsPerTrigger", 500_000)  # the size of a micro-batch
        .option("failOnDataLoss", True)  # rather stop than skip records that Kafka deleted
        .load()
    )
    return parsed(records)


def parsed(records: Any) -> Any:
    """Return the events in the values of records."""
    from pyspark.sql import functions as F

    values = records.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("trade"))
    # What is not a trade cannot be matched: a null key or time would stop the query.
    return values.select("trade.*").where("symbol IS NOT NULL AND time IS NOT NULL")


def falls(events: Any) -> Any:
    """Return a row for each match."""
    return CEP.pattern(
        keyBy(events.withWatermark("time", "10 seconds"), "symbol"), pattern()
    ).select(
        lambda match: (match["fall"][0].symbol, match["start"][0].time, match["fall"][0].time),
        "symbol string, from timestamp, to timestamp",
    )


def main(
    spark: Any, servers: str | None = None, topic: str = "trades", checkpoint: str | None = None
) -> None:
    """Print the matches of a topic as they come, or say what is missing."""
    if servers is None:
        print("no broker given: pass --bootstrap-servers HOST:PORT")
        return
    writer = falls(trades(spark, servers, topic)).writeStream.format("console")
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", checkpoint)
    # To Kafka: to_json(struct(*)) AS value, format("kafka"), option("topic", ...).
    writer.start().awaitTermination()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Find prices that rise and fall, from Kafka.")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="the Kafka broker")
    parser.add_argument("--topic", default="trades", help="default: trades")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="where the stream's state is kept")
    arguments = parser.parse_args()
    if arguments.bootstrap_servers is None:
        main(None)
        sys.exit()
    from _local import local_session, reason

    with local_session() as session:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            main(session, arguments.bootstrap_servers, arguments.topic, arguments.checkpoint)
        except (CepError, PySparkException, Py4JError, ValueError) as error:
            sys.exit(f"kafka_source: {reason(error)}")
