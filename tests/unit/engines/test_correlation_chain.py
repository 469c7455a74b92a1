# SPDX-License-Identifier: Apache-2.0
"""Correlations as time passes: alerts are those of all events at once, whenever state is stored."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest

from pyflinkcep import matchSigma
from pyflinkcep.engines.correlations import Chain, Reading, links_of
from pyflinkcep.engines.latest.machine import END
from pyflinkcep.errors import StateFormatError
from pyflinkcep.sigma.correlation import read_correlation
from tests.seeds import each_seed

BASE = "abc"


def drawn(choose: random.Random, count: int) -> dict[str, dict[str, Any]]:
    """Return correlations, each of base rules and of those before it."""
    found: dict[str, dict[str, Any]] = {}
    for number in range(count):
        names = choose.sample([*BASE, *found], choose.choice([1, 2, 3, 3]))
        if found and choose.random() < 0.7:
            names[0] = f"n{number - 1}"
        names = [*dict.fromkeys(names)]
        group = choose.choice([["k"], ["k", "j"], [], ["own"]])
        own: dict[str, Any] = {"rules": names, "group-by": group}
        own["timespan"] = choose.choice(["1s", "2s", "4s"])
        if group == ["own"]:
            own["aliases"] = {"own": {name: choose.choice("kj") for name in names}}
        kind = choose.choice(["event_count", "value_count", "value_sum", "value_avg",
                              "temporal", "temporal", "temporal", "temporal_ordered"])  # fmt: skip
        if kind not in ("temporal", "temporal_ordered"):
            own["condition"] = choose.choice([{"gte": 2}, {"gt": 2}, {"lt": 3}, {"eq": 2}])
            if kind != "event_count":
                own["condition"]["field"] = "x"
        elif kind == "temporal" and len(names) > 1:
            *first, last = names
            ways = [None, {"gte": 1}, f"{' and '.join(first)} and not {last}", f"{' and '.join(first)} and not {last}",
                    f"{' or '.join(names)}", f"({' or '.join(first)}) and not {last}"]  # fmt: skip
            own["condition"] = choose.choice(ways)
        found[f"n{number}"] = {"type": kind, **own}
    return found


@each_seed(250)
def test_alerts_do_not_depend_on_when_state_is_stored(seed: int) -> None:
    """Whatever watermarks come between events, and however often all is stored, alerts are equal."""
    choose = random.Random(seed)
    documents = drawn(choose, choose.choice([1, 1, 2, 3]))
    last = [*documents][-1]
    events, time, often = list[dict[str, Any]](), 0, choose.choice([0.2, 0.3, 0.5])
    for number in range(choose.choice([15, 30])):
        time += choose.choice([0, 1, 1, 1, 2]) * 500
        events.append({"id": number, "t": time, "rules": [r for r in BASE if choose.random() < often],
                       "k": choose.choice("pqn"), "j": choose.choice("pq"),
                       "x": choose.randrange(3)})  # fmt: skip
        if events[-1]["k"] == "n":
            events[-1]["k"] = None
    rules: dict[str, Any] = {r: lambda event, r=r: r in event["rules"] for r in BASE}
    found = matchSigma(documents[last], events, {**documents, **rules}, timestamp="t")

    correlations = {name: read_correlation(one, name) for name, one in documents.items()}
    links = links_of(correlations, last)

    def group_of(name: str, rule: str, event: int) -> Hashable | None:
        values = [events[event][field] for field in correlations[name].group_fields[rule]]
        return None if None in values else tuple(values)

    def value_of(name: str, event: int) -> Any:
        value = events[event]["x"]
        return (value,) if documents[name]["type"] == "value_count" else value

    reading = Reading(lambda event: int(events[event]["t"]), group_of, value_of)
    stored: dict[tuple[str, Hashable], Any] = {}
    deadlines: dict[tuple[str, Hashable], int] = {}
    alerts: list[tuple[int, ...]] = []
    waiting = list(events)
    watermark = -1
    while watermark < END:
        watermark += choose.choice([250, 500, 500, 1000, 1500])
        if not waiting and choose.random() < 0.2:
            watermark = END
        arrived = [(one["id"], one["rules"]) for one in waiting if one["t"] <= watermark]
        waiting = waiting[len(arrived) :]
        due = [at for at, deadline in deadlines.items() if deadline <= watermark]
        chain = Chain(links, reading, stored)
        alerts += chain.run(arrived, watermark, due)
        deadlines = {at: deadline for at, deadline in deadlines.items() if at in stored}
        for name, group, (numbers, held, deadline) in chain.written(watermark):
            assert deadline > watermark
            stored[name, group] = numbers, held
            deadlines[name, group] = deadline

    assert Counter(alerts) == Counter(tuple(e["id"] for e in alert) for alert in found)
    assert not stored


def test_damaged_state_is_refused() -> None:
    """State that does not fit its correlation is told as such."""
    together = {"type": "temporal", "rules": ["a", "b"], "timespan": "1s"}
    links = links_of({"": read_correlation(together)}, "")
    reading = Reading(lambda event: event, lambda *_: "g", lambda *_: None)
    chain = Chain(links, reading, {("", "g"): ([0, 0, 2, 0, 7, 0], [1, 2])})
    with pytest.raises(StateFormatError, match="does not fit it"):
        chain.run([(3, ["a"])], 5)
