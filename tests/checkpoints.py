# SPDX-License-Identifier: Apache-2.0
"""The setting of Spark for streams whose checkpoints are on a local disk."""

from __future__ import annotations

import pyspark

_PACKAGE = "org.apache.spark.sql.execution.streaming"
_FOLDER = "" if pyspark.__version__.startswith("4.0.") else ".checkpointing"

LOCAL_CHECKPOINTS = (
    "spark.sql.streaming.checkpointFileManagerClass",
    f"{_PACKAGE}{_FOLDER}.FileSystemBasedCheckpointFileManager",
)
"""Saves the programs, several a file, that Hadoop otherwise starts to set and ask permissions."""
