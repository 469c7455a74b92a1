# SPDX-License-Identifier: Apache-2.0
"""Today's code reads the operator snapshots of every state format, and goes on as Flink does."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import expected_rows, load
from tests.kernel_harness import KernelOperator, needs_kernel
from tests.state import FOLDERS
from tests.state.operators import CaseOperator, half

CASES = {case["id"]: case for case in load("operator_cases")}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("kernel", [False, pytest.param(True, marks=needs_kernel)])
def test_a_stored_snapshot_goes_on(kernel: bool, folder: Path) -> None:
    """The first half's results and those after the restored snapshot are what Flink recorded."""
    with gzip.open(folder / "operators.jsonl.gz", "rt") as lines:
        snapshots = {row["id"]: bytes.fromhex(row["snapshot"]) for row in map(json.loads, lines)}
    actual, expected = {}, {}

    for name, data in snapshots.items():
        case = CASES[name]
        first, rest = CaseOperator(case), CaseOperator(case)
        first.feed(case["items"][: half(case)])
        rest.restore(data)
        if kernel:
            rules: Any = KernelOperator(rest.operator.operator)
            rest.operator.operator = rules
        rest.feed(case["items"][half(case) :])
        rest.close()
        for kind in ("match", "timeout", "late"):
            rest.found[kind][:0] = first.found[kind]
            actual[name, kind], expected[name, kind] = rest.results(kind), expected_rows(case, kind)

    assert len(snapshots) > 150
    assert actual == expected
