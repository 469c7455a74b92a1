# SPDX-License-Identifier: Apache-2.0
"""Executors in processes of their own: what is sent to them is real."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.test_stream_crash import begin, expected, finish, folder, start, written

__all__ = ["folder"]


def test_on_a_cluster_of_two_executors(spark: SparkSession, folder: Path) -> None:
    """Batch and stream on a cluster give the same matches as the operator."""
    finish(begin(start(folder, "batch,stream,flush", "local-cluster[2,1,1024]", files=14)))

    assert written(spark, folder, "batch") == expected()
    assert written(spark, folder, "stream", "flush") == expected()
