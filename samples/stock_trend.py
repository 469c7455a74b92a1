# SPDX-License-Identifier: Apache-2.0
"""
A trend that ends: a large trade, prices above their running average, then a fall in volume.

For each symbol: a trade with a volume above 1000; then, one or more times, the next trade
whose price is above the average price of the match so far; then a trade with less than 80 % of the
volume of the last one taken; all within an hour. Other trades are skipped.

The loop is greedy: without greedy(), the first rising prices without the later ones would also be
matches. Each trade above 1000 begins its own match, so the single series of HILL yields two. A
process function turns each match into a row.

Run it with::

    python samples/stock_trend.py

Expected output::

    HILL 9:00 to 9:50: 4 rising trades, average 105.2, volume 900 down to 500
    HILL 9:10 to 9:50: 3 rising trades, average 106.5, volume 900 down to 500
"""

from datetime import datetime, timedelta
from statistics import fmean
from typing import Any, NamedTuple

from pyflinkcep import CEP, Pattern, PatternProcessFunction, keyBy


class Trade(NamedTuple):
    """One trade."""

    symbol: str
    time: datetime
    price: float
    volume: int


SCHEMA = "symbol string, time timestamp_ntz, price double, volume int"


def _at(hour: int, minute: int) -> datetime:
    return datetime(2024, 5, 6, hour, minute)


EVENTS = [
    # 9:00 and 9:10 are above 1000; 9:20 is not above the average and is passed over
    Trade("HILL", _at(9, 0), 100.0, 1500),
    Trade("HILL", _at(9, 10), 103.0, 1100),
    Trade("HILL", _at(9, 20), 99.0, 950),
    Trade("HILL", _at(9, 25), 106.0, 900),
    Trade("HILL", _at(9, 30), 107.0, 800),
    Trade("HILL", _at(9, 35), 100.0, 850),  # no rise, and no fall: 850 is more than 80 % of 800
    Trade("HILL", _at(9, 40), 110.0, 900),
    Trade("HILL", _at(9, 50), 101.0, 500),  # less than 80 % of 900: both matches end here
    # the first trade is too small, so nothing begins
    Trade("DALE", _at(9, 0), 50.0, 1000),
    Trade("DALE", _at(9, 10), 51.0, 900),
    Trade("DALE", _at(9, 20), 50.0, 100),
    # the fall comes an hour after the beginning: too late
    Trade("LAKE", _at(9, 0), 70.0, 2000),
    Trade("LAKE", _at(9, 30), 71.0, 900),
    Trade("LAKE", _at(10, 0), 60.0, 100),
]


def _rises(trade: Any, ctx: Any) -> bool:
    """Whether the price is above the average of those taken so far."""
    taken = [*ctx.getEventsForPattern("start"), *ctx.getEventsForPattern("rise")]
    return trade.price > fmean(earlier.price for earlier in taken)


def _falls(trade: Any, ctx: Any) -> bool:
    """Whether the volume is less than 80 % of the last one taken."""
    last = list(ctx.getEventsForPattern("rise"))[-1]
    return trade.volume < 0.8 * last.volume


def pattern() -> Pattern:
    """Build the pattern."""
    return (
        Pattern.begin("start")
        .where(lambda trade: trade.volume > 1000)
        .followedBy("rise")
        .where(_rises)
        .oneOrMore()
        .greedy()
        .followedBy("fall")
        .where(_falls)
        .within(timedelta(hours=1))
    )


class Trend(PatternProcessFunction):
    """One row for each match."""

    def processMatch(self, match: dict[str, list[Any]], ctx: Any, out: Any) -> None:
        start, rise, fall = match["start"][0], match["rise"], match["fall"][0]
        out.collect(
            {
                "symbol": start.symbol,
                "start": start.time,
                "end": fall.time,
                "rises": len(rise),
                "average": fmean([start.price, *(trade.price for trade in rise)]),
                "before": rise[-1].volume,
                "after": fall.volume,
            }
        )


RESULT = (
    "symbol string, start timestamp_ntz, end timestamp_ntz, rises int, average double, "
    "before int, after int"
)


def main(spark: Any) -> None:
    """Find the trends and print them."""
    trades = spark.createDataFrame(EVENTS, SCHEMA)
    trends = (
        CEP.pattern(keyBy(trades, "symbol"), pattern()).inEventTime("time").process(Trend(), RESULT)
    )
    for t in trends.orderBy("symbol", "start").collect():
        print(
            f"{t.symbol} {t.start.hour}:{t.start.minute:02} to {t.end.hour}:{t.end.minute:02}: "
            f"{t.rises} rising trades, average {t.average:.1f}, "
            f"volume {t.before} down to {t.after}"
        )


if __name__ == "__main__":
    from _local import local_session

    with local_session() as session:
        main(session)
