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
