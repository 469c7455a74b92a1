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
_FOREIGN = frozenset(["node_modules", "__pycache__", "venv"])
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
    skipped : list of Note
        Folders with patterns that are not read, such as that of tests.
    """

    java: list[tuple[str, bytes]] = attrs.field(factory=list)
    python: list[tuple[str, bytes]] = attrs.field(factory=list)
    refused: list[Note] = attrs.field(factory=list)
    skipped: list[Note] = attrs.field(factory=list)


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
            for file in _walk(path, found):
                _add(found, file, asked=False)
        elif path.exists():
            _add(found, path, asked=True)
        else:
            raise InputError(
                f"no file or folder {source}", "name files of Java, or a project's folder"
            )
    return found


def _walk(folder: Path, found: Files) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        here = Path(root)
        is_tests = here.name == "src"
        left = {name for name in folders if name in _SKIPPED or (is_tests and name == "test")}
        found.skipped += [
            Note(str(here / name), 0, "not read, though it has patterns: name it to translate it")
            for name in sorted(left - _FOREIGN)
            if _has_patterns(here / name)
        ]
        folders[:] = sorted(set(folders) - left - {f for f in folders if f.startswith(".")})
        for name in sorted(files):
            if Path(name).suffix in (".java", ".py", *_OTHER):
                yield here / name


def _has_patterns(folder: Path) -> bool:
    """Whether a folder has Java with patterns."""
    files = (path for path in folder.rglob("*.java") if path.is_file())
    return any(mark in path.read_bytes() for path in files for mark in _MARKS)


def _add(found: Files, path: Path, *, asked: bool) -> None:
    if not path.is_file():  # a pipe would not end
        found.refused.append(Note(str(path), 0, "not a regular file"))
        return
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
