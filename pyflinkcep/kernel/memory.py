# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out in the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyflinkcep.errors import OutOfMemoryError

__all__ = ["naming_memory_errors"]


@contextmanager
def naming_memory_errors(doing: str) -> Iterator[None]:
    """
    Let errors say what was being done when memory ran out.

    Raises
    ------
    OutOfMemoryError
        In place of a MemoryError.
    """
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError(f"out of memory while {doing}") from error
