# SPDX-License-Identifier: Apache-2.0
"""How Python collects garbage in a worker of Spark."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["fewer_collections", "prepare_worker"]

_COLLECTIONS = (200_000, 20, 100)


@functools.cache
def prepare_worker() -> None:
    """
    Take what is loaded by now out of the collections to come, once in a process.

    Spark collects garbage in a worker after every task. That means to walk through every module,
    which takes longer than the tasks of a small micro-batch; and modules are never garbage.
    """
    gc.freeze()


@contextmanager
def fewer_collections() -> Iterator[None]:
    """
    Let Python look for circular garbage less often, for the length of a ``with``.

    A worker holds very many rows that are in no circle. With Python's own thresholds, looking
    through them takes a third of the time of conditions in Python.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
