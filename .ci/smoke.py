# SPDX-License-Identifier: Apache-2.0
"""Check an installed package: its kernel is there, and a pattern has its matches."""

from __future__ import annotations

from pyflinkcep import Pattern, match
from pyflinkcep.kernel.module import why_missing

if why_missing():
    raise SystemExit(why_missing())
events = [{"id": 1, "n": 1}, {"id": 2, "n": 5}, {"id": 3, "n": 2}]
found = match(Pattern.begin("low").where("n < 3").next("high").where("n > 3"), events)
if [[event["id"] for event in (*m["low"], *m["high"])] for m in found] != [[1, 2]]:
    raise SystemExit(f"expected one match of the events 1 and 2, got {found!r}")
