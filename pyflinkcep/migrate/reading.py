# SPDX-License-Identifier: Apache-2.0
"""The files to translate: single ones, folders, and trees of Maven and Gradle."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from pyflinkcep.errors import InputError
from pyflinkcep.migrate.translated import Note

__all__ = ["Files", "find_files"]

_SKIPPED = frozenset(["target", "build", "out", "node_modules", "__pycache__", "venv"])
_SCALA = (
    "Scala is not read: its conditions are another language, of which Flink 2 has no API; "
    "docs/from-flink.md has the API side by side"
)
_KOTLIN = (
    "Kotlin is not read: its conditions are another language; let your IDE show the class as Java, "
    "or see docs/from-flink.md, which has the API side by side"
)
_OTHER = {
    ".scala": _SCALA,
    ".sc": _SCALA,
    ".kt": _KOTLIN,
    ".kts": _KOTLIN,
}
_MARKS = (b"flink.cep", b"CEP.pattern", b"MATCH_RECOGNIZE", b"match_recognize")


@attrs.define
class Files:
    """
    The files that were found.

    Attributes
    ----------
    java : list of (str, bytes)
        Files of Java with what is in them.
    python : list of (str, bytes)
        Files of Python with MATCH_RECOGNIZE.
    refused : list of Note
        Files that cannot be read, with the reason.
    """

    java: list[tuple[str, bytes]] = attrs.field(factory=list)
    python: list[tuple[str, bytes]] = attrs.field(factory=list)
    refused: list[Note] = attrs.field(factory=list)


def find_files(sources: Iterable[str]) -> Files:
    """
    Return the files in folders, and single ones.

    Raises
    ------
    InputError
        If there is no such file or folder.
    """
    found = Files()
    for source in sources:
        path = Path(source)
        if path.is_dir():
            for file in _walk(path):
                _add(found, file, asked=False)
        elif path.exists():
            _add(found, path, asked=True)
        else:
            raise InputError(
                f"no file or folder {source}", "name files of Java, or a project's folder"
            )
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        here = Path(root)
        is_tests = here.name == "src"
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED
            and not name.startswith(".")
            and not (is_tests and name == "test")
        )
        for name in sorted(files):
            if Path(name).suffix in (".java", ".py", *_OTHER):
                yield here / name


def _add(found: Files, path: Path, *, asked: bool) -> None:
    try:
        data = path.read_bytes()
    except OSError as error:
        found.refused.append(Note(str(path), 0, f"cannot be read: {error.strerror}"))
        return
    marked = any(mark in data for mark in _MARKS)
    if path.suffix == ".java":
        found.java.append((str(path), data))
    elif path.suffix == ".py":
        if marked or asked:
            found.python.append((str(path), data))
    elif path.suffix in _OTHER:
        if marked or asked:
            found.refused.append(Note(str(path), 0, _OTHER[path.suffix]))
    elif asked:
        found.refused.append(Note(str(path), 0, "not a file of Java (.java) or Python (.py)"))
