# SPDX-License-Identifier: Apache-2.0
"""
The spread of a contamination: an alert, then every chain of shipments that begins there.

A contamination is found at a site. Each shipment that leaves the site carries it on, and so
does each shipment that leaves the place where the last one arrived: b[i].origin =
b[i-1].destination. We want all chains within 3 hours of the alert, not only the next shipment that
fits, so the contiguity is "skip till any match": followedByAny, and allowCombinations inside the
loop. Every prefix of a chain is a match, so there is one match for each route to a place. The
condition of the loop reads the events that the partial match has taken so far. The matches are used
as a DataFrame, without a function.

Run it with::

    python samples/contamination.py

Expected output::

    Bakery: Farm > Bakery
    Cafe: Farm > Bakery > Cafe
    Cafe: Farm > Dairy > Cafe
    Dairy: Farm > Dairy
    School: Farm > Bakery > Cafe > School
    School: Farm > Dairy > Cafe > School
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pyflinkcep import CEP, Pattern


class Event(NamedTuple):
    """An alert (`destination` is where it was found) or a shipment between two places."""

    time: datetime
    kind: str
    origin: str | None
    destination: str


SCHEMA = "time timestamp, kind string, origin string, destination string"


def _at(hour: int, minute: int) -> datetime:
    return datetime(2024, 5, 6, hour, minute)


EVENTS = [
    Event(_at(7, 50), "shipment", "Farm", "Market"),  # before the alert
    Event(_at(8, 0), "alert", None, "Farm"),
    Event(_at(8, 10), "shipment", "Cafe", "Office"),  # nothing has reached the Cafe yet
    Event(_at(8, 20), "shipment", "Farm", "Bakery"),
    Event(_at(8, 30), "shipment", "Farm", "Dairy"),
    Event(_at(8, 40), "shipment", "Mill", "Bakery"),  # the Mill is clean
    Event(_at(9, 0), "shipment", "Bakery", "Cafe"),
    Event(_at(9, 10), "shipment", "Dairy", "Cafe"),  # a second way to the Cafe
    Event(_at(10, 0), "shipment", "Cafe", "School"),  # so there are two ways to the School
    Event(_at(11, 0), "shipment", "School", "Gym"),  # 3 hours after the alert: outside
]


def _continues(event: Any, ctx: Any) -> bool:
    """Whether a shipment leaves the place that the chain has reached."""
    if event.kind != "shipment":
        return False
    chain = [*ctx.getEventsForPattern("alert"), *ctx.getEventsForPattern("shipments")]
    return event.origin == chain[-1].destination


def pattern() -> Pattern:
    """Build the pattern."""
    return (
        Pattern.begin("alert")
        .where(lambda event: event.kind == "alert")
        .followedByAny("shipments")
        .where(_continues)
        .oneOrMore()
        .allowCombinations()
        .within(timedelta(hours=3))
    )


def main(spark: Any) -> None:
    """Find the chains and print them."""
    events = spark.createDataFrame(EVENTS, SCHEMA)
    chains = (
        CEP.pattern(events, pattern())
        .inEventTime("time")
        .toDF()
        .selectExpr(
            "shipments[size(shipments) - 1].destination AS place",
            "concat_ws(' > ', alert.destination, shipments.destination) AS way",
        )
    )
    for chain in chains.orderBy("place", "way").collect():
        print(f"{chain.place}: {chain.way}")


if __name__ == "__main__":
    from _local import local_session

    with local_session() as session:
        main(session)
