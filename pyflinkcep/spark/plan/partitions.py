# SPDX-License-Identifier: Apache-2.0
"""A hint at a setting of Spark that lets streams crawl on one machine."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from pyflinkcep.spark.arrow.internals import is_local, spark_context

__all__ = ["hint_at_partitions"]

_LOGGER = logging.getLogger("pyflinkcep")
_SETTING = "spark.sql.shuffle.partitions"
_FEW = 4
"""How many tasks for each core are few."""

_hinted: set[str] = set()
"""The applications that were told: once is enough."""


def hint_at_partitions(session: SparkSession) -> None:
    """Log a warning, once, if a stream on a local master has many tasks for each core."""
    context = spark_context(session)
    if not is_local(context):
        return
    partitions, cores = int(str(session.conf.get(_SETTING))), context.defaultParallelism
    if partitions <= _FEW * cores or context.applicationId in _hinted:
        return
    _hinted.add(context.applicationId)
    _LOGGER.warning(
        "each micro-batch of the stream takes %d tasks with state on %d cores: on one machine, set "
        "%s to %d before the first start. A checkpoint keeps the number that it began with.",
        partitions, cores, _SETTING, cores,
    )  # fmt: skip
