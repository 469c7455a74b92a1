# SPDX-License-Identifier: Apache-2.0
"""The state store that streams need."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyflinkcep.errors import InputError
from pyflinkcep.spark.plan.pipelines import set_or_refuse

__all__ = ["choose_state_store"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def choose_state_store(spark: SparkSession) -> None:
    """
    Ensure that the session keeps state in RocksDB, which this operator needs.

    Raises
    ------
    InputError
        If the session is configured for another state store, or in a pipeline for none.
    """
    chosen = spark.conf.get(_PROVIDER)
    if chosen == _ROCKSDB:
        return
    if _PROVIDER in dict(spark.conf.getAll):
        raise InputError(
            f"expected the state store RocksDB for patterns on streams, got {chosen}",
            f"set {_PROVIDER} to {_ROCKSDB}, or leave it unset",
        )
    set_or_refuse(spark, _PROVIDER, _ROCKSDB)
