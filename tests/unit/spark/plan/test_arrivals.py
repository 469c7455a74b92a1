# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint's offsets say of inputs that bring nothing, and what queued events wait for."""

from __future__ import annotations

import json

from pyflinkcep.spark.plan.patterns.diagnostics import Arrivals, _holder
from pyflinkcep.spark.plan.watermark import StreamWatermark

OWN, SPARKS = StreamWatermark(10_000), StreamWatermark(None, reason="the stream has several")


def arrivals(*batches: str, first: int = 0) -> Arrivals | None:
    """Return what is read of micro-batches, each with an offset for each input."""
    texts = {
        number: "\n".join(["v1", json.dumps({"batchTimestampMs": 60_000 * number}), *offsets])
        for number, offsets in enumerate(batches, first)
    }
    return Arrivals.of(texts)


def test_an_input_is_idle_while_others_bring_rows() -> None:
    """Each input has its own last micro-batch; those in which none brought rows are left out."""
    found = arrivals("00-", "11-", "12-", "12-")

    assert found is not None
    assert (found.last, found.newest) == ((1, 2, None), 2)
    assert found.idle() == (
        "input 1 of 3 has brought nothing since micro-batch 1 (1970-01-01 00:01:00 UTC), "
        "input 3 of 3 has brought nothing yet"
    )


def test_offsets_that_were_removed() -> None:
    """Of micro-batches before those that the checkpoint keeps nothing is claimed."""
    found = arrivals("33", "34", first=7)

    assert found is not None
    assert "since micro-batch 7 or before (1970" in found.idle()


def test_other_forms_say_nothing() -> None:
    """No offsets, and those of a version that is not known, are no reason to fail."""
    assert Arrivals.of({}) is None
    assert Arrivals.of({0: "v2\n{}\n{}"}) is None


def test_what_queued_events_wait_for() -> None:
    """An own watermark waits for any later event; Spark's for each of the inputs."""
    busy, one, none = arrivals("00", "11"), arrivals("00", "01"), arrivals("--")

    own = "an event at %s or later"
    assert _holder(OWN, busy) == _holder(OWN, one)
    assert _holder(OWN, one).startswith(f"{own}; the last rows came in micro-batch 1 (1970-01-01")
    assert _holder(OWN, none) == _holder(OWN, None) == own
    start = "Spark's watermark at %s or later (the stream has several)"
    assert _holder(SPARKS, busy).endswith(
        "from all inputs: that whose times are furthest behind decides"
    )
    assert _holder(SPARKS, one).startswith(f"{start}; input 1 of 2 has brought nothing since")
    assert _holder(SPARKS, arrivals("1")).endswith("and the next micro-batch follows them")
    assert _holder(SPARKS, none) == _holder(SPARKS, None) == start
