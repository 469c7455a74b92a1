# SPDX-License-Identifier: Apache-2.0
"""Recorded alerts of Sigma correlations."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pyflinkcep import matchSigma
from pyflinkcep.errors import CepError
from tests.conformance.cases import Case, load


def _satisfies(rule: str, event: dict[str, Any]) -> bool:
    return rule in event["rules"]


def _alerts(case: Case) -> list[list[int]] | None:
    """Return the alerts of a case by the ids of their events; None if it is refused."""
    rules = {name: partial(_satisfies, name) for name in case["correlation"]["rules"]}
    try:
        found = matchSigma(case["correlation"], case["events"], rules, timestamp="t")
    except CepError:
        return None
    return [[event["id"] for event in alert] for alert in found]


@pytest.mark.parametrize("kind", ["count", "value", "temporal", "temporal_ordered"])
def test_recorded_alerts(kind: str) -> None:
    """Alerts are those recorded, in their order, and what is refused there is refused."""
    cases = [
        case
        for case in load("sigma_cases")
        if case["correlation"]["type"] == kind or case["correlation"]["type"].split("_")[0] == kind
        or case["correlation"]["type"] == f"event_{kind}"
    ]  # fmt: skip
    differing = [case for case in cases if _alerts(case) != case.get("alerts")]

    assert differing == []
    assert len(cases) >= 20
