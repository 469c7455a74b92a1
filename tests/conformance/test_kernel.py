# SPDX-License-Identifier: Apache-2.0
"""The compiled kernel gives the answers that Apache Flink CEP 2.3.0 gave."""

from __future__ import annotations

from functools import partial

import pytest

from tests.conformance.cases import NFA_FILES, OPERATOR_FILES, Case, chunks
from tests.conformance.drivers import check_nfa, check_operator, disagreements
from tests.kernel_harness import KernelNFAHarness, KernelOperatorHarness, needs_kernel

pytestmark = needs_kernel

_NFA = chunks(NFA_FILES, 200)
_OPERATOR = chunks(OPERATOR_FILES, 200)


@pytest.mark.parametrize("cases", [part for _, part in _NFA], ids=[name for name, _ in _NFA])
def test_nfa(cases: tuple[Case, ...]) -> None:
    """Matches, timeouts, their order and moment, and errors are Flink's; no more is held."""
    actual = disagreements(cases, partial(check_nfa, make=KernelNFAHarness))

    assert actual == {}


@pytest.mark.parametrize(
    "cases", [part for _, part in _OPERATOR], ids=[name for name, _ in _OPERATOR]
)
def test_operator(cases: tuple[Case, ...]) -> None:
    """The same with a plain state read, and one written, around every call."""
    actual = disagreements(cases, partial(check_operator, make=KernelOperatorHarness))

    assert actual == {}
