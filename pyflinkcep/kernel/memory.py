# SPDX-License-Identifier: Apache-2.0
"""Errors when memory runs out in the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyflinkcep.errors import OutOfMemoryError

__all__ = ["naming_memory_errors"]


@contextmanager
def naming_memory_errors(doing: str, instead: str = "") -> Iterator[None]:
    """
    Name the activity in errors about memory, and what takes less, if anything does.

    Raises
    ------
    OutOfMemoryError
        Instead of a MemoryError.
    """
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError(
            f"out of memory while {doing}", f"{instead}give the workers more memory"
        ) from error
