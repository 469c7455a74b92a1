# SPDX-License-Identifier: Apache-2.0
"""
The example of Flink's CEP documentation: an event, one directly after it, and a later one.

An event with id 42; directly after it an event with a volume of 10 or more; some time later an
event named "end". The events have no key, so they form one sequence.

Run it with::

    python samples/flink_quickstart.py

Expected output::

    started at 1, then 'b' with volume 12, ended at 4
    started at 7, then 'e' with volume 15, ended at 10
    started at 8, then 'f' with volume 11, ended at 10
"""

from typing import Any, NamedTuple

from pyflinkcep import CEP, Pattern, PatternSelectFunction


class Event(NamedTuple):
    """One event; `ts` is its time in epoch milliseconds."""

    ts: int
    id: int
    name: str
    volume: int


SCHEMA = "ts bigint, id int, name string, volume int"

EVENTS = [
    Event(1, 42, "a", 0),
    Event(2, 7, "b", 12),  # directly after 42, and large enough
    Event(3, 8, "x", 1),  # "end" may come later: this one is passed over
    Event(4, 9, "end", 2),
    Event(5, 42, "c", 0),
    Event(6, 3, "d", 4),  # directly after 42, but too small: the match that began at 5 is over
    Event(7, 42, "a", 0),
    Event(8, 42, "e", 15),  # second event of one match and first of another
    Event(9, 5, "f", 11),
    Event(10, 6, "end", 0),  # ends both
]


def pattern() -> Pattern:
    """Build the pattern."""
    return (
        Pattern.begin("start")
        .where(lambda event: event.id == 42)
        .next("middle")
        .where(lambda event: event.volume >= 10)
        .followedBy("end")
        .where(lambda event: event.name == "end")
    )


class Alert(PatternSelectFunction):
    """One row for each match."""

    def select(self, pattern: dict[str, list[Any]]) -> Any:
        start, middle, end = pattern["start"][0], pattern["middle"][0], pattern["end"][0]
        return (start.ts, middle.name, middle.volume, end.ts)


def main(spark: Any) -> None:
    """Find the matches and print them."""
    events = spark.createDataFrame(EVENTS, SCHEMA)
    alerts = (
        CEP.pattern(events, pattern())
        .inEventTime("ts")
        .select(Alert(), "started bigint, name string, volume int, ended bigint")
    )
    for alert in alerts.orderBy("started").collect():
        print(
            f"started at {alert.started}, then {alert.name!r} with volume {alert.volume}, "
            f"ended at {alert.ended}"
        )


if __name__ == "__main__":
    from _local import local_session

    with local_session() as session:
        main(session)
