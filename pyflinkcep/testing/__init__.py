# SPDX-License-Identifier: Apache-2.0
"""Try a pattern without Spark: harnesses for tests, and :func:`match` for lists."""

from pyflinkcep.testing.harness import NFATestHarness, OperatorTestHarness
from pyflinkcep.testing.match import match

__all__ = ["NFATestHarness", "OperatorTestHarness", "match"]
