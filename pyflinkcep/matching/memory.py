# SPDX-License-Identifier: Apache-2.0
"""How much memory a job may take."""

from __future__ import annotations

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes(memory: int | str | None = None) -> int:
    """Return a number of bytes, or a text such as 2GB, as bytes; a quarter of the machine's."""
    if memory is None:
        return machine_bytes() // 4
    found: float = memory if isinstance(memory, int) and not isinstance(memory, bool) else 0
    if isinstance(memory, str):
        text = memory.lower().removesuffix("b").strip()
        base = 1024 if text.endswith("i") else 1000
        number = text.removesuffix("i").rstrip("kmgt")
        with suppress(KeyError, ValueError):
            found = float(number) * base ** _UNITS[text.removesuffix("i")[len(number) :]]
    if not 1 <= found < 1 << 62:
        raise InvalidArgumentError(
            f"memory={memory!r}", 'pass a number of bytes, or a text such as "2GB" or "512 MiB"'
        )
    return int(found)


def check_memory(memory: int | str | None, *, is_file: bool, what: str = "files") -> None:
    """Refuse what is no memory, and one for events that are not in files, or not as `what` says."""
    if memory is None:
        return
    memory_bytes(memory)
    if not is_file:
        raise NotSupportedError(
            f"memory={memory!r} is only available for {what}",
            "leave it out, or pass the path of a file or folder, or a pattern of paths",
        )


def machine_bytes() -> int:
    """Return the memory of the machine, or of the container that the process runs in."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _LIMITS:
        with suppress(OSError, ValueError):
            found = min(found, int(Path(limit).read_text()))
    return found


def give_back() -> None:
    """Let the system have memory that is not used any more, which allocators keep."""
    import pyarrow as pa  # which takes some time to load

    gc.collect(1)  # matchers, each of which is a cycle
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # where the C library is not GNU's
        ctypes.CDLL(None).malloc_trim(0)
