# SPDX-License-Identifier: Apache-2.0
"""What a Python worker of Spark does once, before its first task."""

from __future__ import annotations

import functools
import gc

__all__ = ["prepare_worker"]


@functools.cache
def prepare_worker() -> None:
    """
    Take what is loaded by now out of the collections to come, once in a process.

    Spark collects garbage in a worker after every task. That means to walk through every module,
    which takes longer than the tasks of a small micro-batch; and modules are never garbage.
    """
    gc.freeze()
