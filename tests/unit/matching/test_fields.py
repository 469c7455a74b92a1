# SPDX-License-Identifier: Apache-2.0
"""What match expressions read of events, as Python values."""

from __future__ import annotations

import pyarrow as pa

from pyflinkcep.matching.columns import field_rows


def test_an_event_of_which_nothing_is_read_is_still_an_event() -> None:
    """``count(a.*)`` reads no field: each event has an empty tuple of them."""
    events = pa.table({"x": [1, 2], "y": [3.5, None]})

    assert field_rows(events) == [(1, 3.5), (2, None)]
    assert field_rows(events.select([])) == [(), ()]
