# SPDX-License-Identifier: Apache-2.0
"""What tests without Spark share: no session, whichever tests ran in the process before."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the session of tests on Spark, which computes what is refused without it."""
    spark = sys.modules.get("pyspark.sql")
    if spark is not None:
        monkeypatch.setattr(spark.SparkSession, "getActiveSession", classmethod(lambda cls: None))


@pytest.fixture
def memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Let matches of files keep the memory that they no longer need, in this process.

    To look through all of it takes milliseconds, after each of many buckets of a few kilobytes.
    """
    from pyflinkcep.tables import spilled_match, spilling

    for module in (spilled_match, spilling):
        monkeypatch.setattr(module, "give_back", lambda: None)
