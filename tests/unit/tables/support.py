# SPDX-License-Identifier: Apache-2.0
"""What the tests of tables share: a few events in two forms, and what is found in them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyflinkcep import Pattern, match

LOW_HIGH = Pattern.begin("low").where("n < 3").followedBy("high").where("n > 7")
EVENTS: list[dict[str, Any]] = [{"n": n, "k": f"k{n % 2}"} for n in (1, 9, 2, 8, 5)]
FOUND = [
    {"low": [{"n": 1, "k": "k1"}], "high": [{"n": 9, "k": "k1"}]},
    {"low": [{"n": 2, "k": "k0"}], "high": [{"n": 8, "k": "k0"}]},
]
ARROW = pa.Table.from_pylist(EVENTS)


def answer(pattern: Pattern, events: Any, **how: Any) -> Any:
    """Return what is found as text, or the error."""
    try:
        found = match(pattern, events, **how)
    except Exception as error:
        return type(error).__name__, str(error)
    return repr([*found]), repr(found.timeouts)
