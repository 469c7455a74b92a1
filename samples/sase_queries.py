# SPDX-License-Identifier: Apache-2.0
"""
The three queries of the SASE+ paper and the example of the OptiSeq paper, in their own text.

Query 1: goods that leave a shop unpaid. Query 2: shipments that a contaminated site has reached.
Query 3: prices that rise above their average until the volume falls. The fourth: four kinds of
stock in a row, the first expensive and much more so than the second.

Run it with ``python samples/sase_queries.py``; it needs neither Spark nor Java.

Expected output::

    Query 1: tag 2 left the shop at 4 h
    Query 2: X -> Y, X -> Y -> Z, X -> Y -> Z -> W, X -> Z, X -> Z -> W
    Query 3: 2 rises, then 125; 5 rises, then 125; 7 rises, then 120
    OptiSeq: A 1500 B 1000 C 100 D 300; A 1400 B 1000 C 100 D 300; A 2000 B 1000 C 100 D 300
    OptiSeq, counted: 3
"""

from __future__ import annotations

from typing import Any

from pyflinkcep import matchSase
from pyflinkcep.sase import parse

HOUR, MINUTE = 3_600_000, 60_000

QUERY_1 = """
PATTERN SEQ(Shelf a, ~(Register b), Exit c)
WHERE    skip_till_next_match(a, b, c) {
               a.tag_id = b.tag_id
       and     a.tag_id = c.tag_id
               /* equivalently, [tag_id] */     }
WITHIN    12 hours
"""
QUERY_2 = """
PATTERN SEQ(Alert a, Shipment+ b[ ])
WHERE    skip_till_any_match(a, b[ ]) {
                 a.type = 'contaminated'
       and       b[1].from = a.site
       and       b[i].from = b[i-1].to }
WITHIN    3 hours
"""
QUERY_3 = """
PATTERN SEQ(Stock+ a[ ], Stock b)
WHERE    skip_till_next_match(a[ ], b) {
                 [symbol]
       and       a[1].volume > 1000
       and       a[i].price > avg(a[..i-1].price)
       and       b.volume < 80%*a[a.LEN].volume }
WITHIN    1 hour
"""
OPTISEQ = """
PATTERN A;B;C;D
WHERE a.price > 1000
  AND a.price > (1+38%)*b.price
  AND c.price < (1-40%)*d.price
WITHIN 10 min
"""


def shop() -> list[dict[str, Any]]:
    """Two things are taken from the shelf; the first is paid."""
    moves = [("Shelf", 1), ("Shelf", 2), ("Register", 1), ("Exit", 1), ("Exit", 2)]
    return [{"ts": n * HOUR, "kind": kind, "tag_id": tag} for n, (kind, tag) in enumerate(moves)]


def shipments() -> list[dict[str, Any]]:
    """A site X is contaminated, and ships."""
    ways = [("X", "Y"), ("Y", "Z"), ("X", "Z"), ("Z", "W"), ("Q", "R")]
    alert = {"ts": 0, "kind": "Alert", "type": "contaminated", "site": "X"}
    return [alert] + [
        {"ts": n * MINUTE, "kind": "Shipment", "from": source, "to": target}
        for n, (source, target) in enumerate(ways, 1)
    ]


def trades() -> list[dict[str, Any]]:
    """Eight trades of one stock, a minute apart."""
    prices = [100, 120, 120, 121, 120, 125, 120, 120]
    volumes = [1010, 990, 1005, 999, 999, 750, 950, 700]
    return [
        {"ts": n * MINUTE, "kind": "Stock", "symbol": "GOOG", "price": price, "volume": volume}
        for n, (price, volume) in enumerate(zip(prices, volumes, strict=True))
    ]


def stocks() -> list[dict[str, Any]]:
    """Four kinds of stock."""
    made = [("A", 1, 1500), ("A", 2, 1400), ("A", 3, 2000), ("A", 4, 1300), ("B", 5, 1000),
            ("C", 7, 100), ("D", 9, 300), ("D", 11, 120), ("C", 15, 1)]  # fmt: skip
    return [{"ts": ts * MINUTE, "kind": kind, "price": price} for kind, ts, price in made]


def main(_spark: Any = None) -> None:
    """Run the queries on lists and print what they find; Spark is not needed."""
    [unpaid] = matchSase(QUERY_1, shop(), "ts", "kind")
    left = unpaid["c"][0]
    print(f"Query 1: tag {left['tag_id']} left the shop at {left['ts'] // HOUR} h")
    reached = matchSase(QUERY_2, shipments(), "ts", "kind")
    ways = sorted(" -> ".join(["X", *(e["to"] for e in m["b"])]) for m in reached)
    print(f"Query 2: {', '.join(ways)}")
    counted = QUERY_3 + "RETURN count(a[]) AS rises, b.price AS then"
    rises = sorted(tuple(row.values()) for row in matchSase(counted, trades(), "ts", "kind"))
    print(f"Query 3: {'; '.join(f'{n} rises, then {price}' for n, price in rises)}")
    rows = matchSase(OPTISEQ + "RETURN A,B,C,D", stocks(), "ts", "kind")
    shown = [" ".join(f"{name} {event['price']}" for name, event in r.items()) for r in rows]
    print(f"OptiSeq: {'; '.join(shown)}")
    compressed = matchSase(parse(OPTISEQ), stocks(), "ts", "kind", compressed=True)
    print(f"OptiSeq, counted: {compressed.count()}")


if __name__ == "__main__":
    main()
