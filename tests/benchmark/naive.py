# SPDX-License-Identifier: Apache-2.0
"""
What a Spark user writes without this library: a state machine by hand, run per key by pandas.

Each function gets a key's events and gives a row for each match: the sum of its events' times.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

_A, _B, _C = 0, 1, 2
_STRICT_WINDOW_MS = 1_000_000
_RELAXED_WINDOW_MS = 60_000


def strict(events: pd.DataFrame) -> pd.DataFrame:
    """Find a, b and c directly after each other."""
    found = []
    types, times = _in_order(events)
    for at in range(len(types) - 2):
        is_match = types[at : at + 3] == [_A, _B, _C]
        if is_match and times[at + 2] - times[at] < _STRICT_WINDOW_MS:
            found.append(sum(times[at : at + 3]))
    return pd.DataFrame({"times": found}, dtype=np.int64)


def relaxed(events: pd.DataFrame) -> pd.DataFrame:
    """Find a, then the next b, then the next c."""
    found: list[int] = []
    begun: list[int] = []
    halfway: list[tuple[int, int]] = []
    for kind, now in zip(*_in_order(events), strict=True):
        oldest = now - _RELAXED_WINDOW_MS
        if kind == _A:
            begun.append(now)
        elif kind == _B:
            halfway += [(a, now) for a in begun if a > oldest]
            begun = []
        elif kind == _C:
            found += [a + b + now for a, b in halfway if a > oldest]
            halfway = []
    return pd.DataFrame({"times": found}, dtype=np.int64)


NAIVE = {"strict": strict, "relaxed": relaxed}
"""The workloads that exist in this form."""


def _in_order(events: pd.DataFrame) -> tuple[list[int], list[int]]:
    events = events.sort_values("ts")
    times = events["ts"].to_numpy("datetime64[ms]").astype(np.int64)
    return events["type"].tolist(), times.tolist()
