# SPDX-License-Identifier: Apache-2.0
"""Suppressed alerts in memory: keys, forms of tables, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from pyflinkcep import Pattern, match, matchMany, suppress
from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.rules import Rule

ALERTS = {"rule": ["a", "a", "b", "a"], "key": [1, 1, 1, 2], "matchTimestamp": [0, 1, 2, 3]}


def _counts(alerts: Any, *arguments: Any, **options: Any) -> list[int]:
    found: list[int] = suppress(alerts, *arguments, **options)["suppressed"].to_pylist()
    return found


def test_keys() -> None:
    """Alerts suppress those of their rule and key; a key is columns, or nothing."""
    assert _counts(ALERTS, "1 s") == [1, 0, 0]
    assert _counts(ALERTS, "1 s", key=[]) == [2, 0]
    assert _counts(ALERTS, "1 s", key="key") == [1, 0, 0]
    assert _counts(ALERTS, "1 s", key=("matchTimestamp",)) == [0, 0, 0, 0]
    unruled = {name: values for name, values in ALERTS.items() if name != "rule"}
    assert _counts(unruled, "1 s") == [2, 0]


def test_a_window_ends_before_the_period_does() -> None:
    """An alert a period after the first opens a window; the one before it does not."""
    times = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
             for us in (0, 999_999, 1_000_000, 1_999_999)]  # fmt: skip
    alerts = pd.DataFrame({"at": times})
    assert _counts(alerts, timedelta(seconds=1), [], "at") == [1, 1]
    assert _counts(pa.Table.from_pandas(alerts), "999 ms", [], "at") == [0, 1, 0]


def test_maps_are_keys_whatever_the_order_of_their_entries() -> None:
    """Equal maps are one key, and so are missing ones."""
    maps = [[("u", "x"), ("v", "y")], [("v", "y"), ("u", "x")], [("u", "x")], None, None]
    key = pa.array(maps, pa.map_(pa.string(), pa.string()))
    table = pa.table({"key": key, "matchTimestamp": pa.array(range(5), pa.int64())})
    assert _counts(table, "1 s") == [1, 0, 1]


def test_matches() -> None:
    """The matches of one pattern, of rules, and none at all, are alerts."""
    high = Pattern.begin("a").where("n > 7")
    events = {"at": [0, 1, 2, 3], "user": ["x", "y", "x", "x"], "n": [9, 9, 1, 8]}
    of_rule = matchMany([Rule("high", high, ("user",))], events, timestamp="at")
    assert _counts(of_rule, "1 s") == [1, 0]
    assert _counts(match(high, events, "at", key="user"), "1 s", key="user") == [1, 0]
    nothing = matchMany({"high": high}, {"at": [], "n": []}, timestamp="at")
    assert suppress(nothing, "1 s").num_rows == 0


@pytest.mark.parametrize(
    ("alerts", "options", "error", "message"),
    [
        (ALERTS, {"period": timedelta(0)}, InvalidArgumentError, "at least a millisecond"),
        (ALERTS, {"period": 5}, InvalidArgumentError, "period: expected a timedelta or a text"),
        ([], {}, InvalidArgumentError, "expected a table of alerts, got list"),
        ({"matchTimestamp": [1]}, {}, InvalidArgumentError, "no column 'key'"),
        (ALERTS, {"key": [len]}, InvalidArgumentError, "names of columns as key"),
        (ALERTS, {"key": "keys"}, InputError, "have no column 'keys'"),
        (ALERTS, {"timestamp": "at"}, InputError, "have no column 'at'"),
        ({**ALERTS, "suppressed": [1] * 4}, {}, InputError, "have a column 'suppressed'"),
        ({"key": [1], "matchTimestamp": [None]}, {}, InputError, "milliseconds or a datetime"),
    ],
)
def test_what_is_refused(
    alerts: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    """A period, a table, a key, a time or a column that is wrong is named."""
    with pytest.raises(error, match=message):
        suppress(alerts, **{"period": "1 s", **options})
