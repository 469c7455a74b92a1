# SPDX-License-Identifier: Apache-2.0
"""A checkpoint as one file: Spark writes absolute paths into it, which are replaced here."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

_ROOT = b"/folder/of/the/checkpoint"


def pack(folder: Path, name: str, file: Path) -> None:
    """Write ``folder/name`` without checksums, users and times."""
    with tarfile.open(file, "w:xz") as archive:
        for path in sorted((folder / name).rglob("*")):
            if path.is_file() and path.suffix != ".crc":
                data = path.read_bytes().replace(_root(folder), _ROOT)
                member = tarfile.TarInfo(str(path.relative_to(folder)))
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def unpack(file: Path, folder: Path) -> None:
    """Write what :func:`pack` took, below another folder."""
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")
    for path in folder.rglob("*"):
        if path.is_file() and _ROOT in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(_ROOT, _root(folder)))


def _root(folder: Path) -> bytes:
    return str(folder).encode()
