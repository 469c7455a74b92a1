# SPDX-License-Identifier: Apache-2.0
"""A home of Spark whose Python processes start soon."""

from __future__ import annotations

from pathlib import Path

import pyspark

__all__ = ["make_spark_home"]


def make_spark_home(folder: Path) -> Path:
    """
    Fill a folder with links to the installed PySpark, but for its copy of itself as a zip file.

    Every Python that Spark starts looks there first, and compiles what it finds, which takes half
    a second; each start of a stream starts one. Without the zip they find what is installed.
    """
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "python":
            (folder / entry.name).symlink_to(entry)
    return folder
