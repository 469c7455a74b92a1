# SPDX-License-Identifier: Apache-2.0
"""
Which sources the kernel is built from, as ``setup.py`` writes into it and as they are now.

``setup.py`` runs this file alone, before the package can be imported.
"""

from __future__ import annotations

import zlib
from pathlib import Path

_SOURCES = Path(__file__).parent / "src"
_BUILD = Path(__file__).parents[2] / "setup.py"


def fingerprint() -> str:
    """Return what changes with any file of C or the build; empty if the sources are not here."""
    files = sorted(path for path in _SOURCES.rglob("*") if path.suffix in (".c", ".h"))
    if not files:
        return ""
    number = zlib.crc32(_BUILD.read_bytes()) if _BUILD.exists() else 0
    for path in files:
        number = zlib.crc32(path.relative_to(_SOURCES).as_posix().encode(), number)
        number = zlib.crc32(path.read_bytes(), number)
    return f"sources_{number:08x}"
