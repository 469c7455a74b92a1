# SPDX-License-Identifier: Apache-2.0
"""Where the tasks that are planned now tell how far they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from pyflinkcep.spark.plan.arrow_map import ArrowFunction
from pyflinkcep.spark.worker.progress import CountedTask

__all__ = ["told_to", "watched"]

_folder: ContextVar[str | None] = ContextVar("folder", default=None)


@contextmanager
def told_to(folder: str) -> Iterator[None]:
    """Let the tasks that are planned within a ``with`` tell a folder."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def watched(task: ArrowFunction, signature: Sequence[str]) -> ArrowFunction:
    """
    Return a task that tells how far it is, if that is wanted.

    The first column of the key's signature, if it has any, tells keys apart.
    """
    folder = _folder.get()
    return task if folder is None else CountedTask(task, folder, next(iter(signature), None)).run
