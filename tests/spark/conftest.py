# SPDX-License-Identifier: Apache-2.0
"""What tests of streams ask for by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.streams import FileSource


@pytest.fixture
def one_task(spark: SparkSession) -> Iterator[None]:
    """Let each micro-batch be one task after the shuffle."""
    from tests.spark.support import configured

    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        yield


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    """Return an empty source."""
    from tests.spark.streams import FileSource

    return FileSource(tmp_path / "source")
