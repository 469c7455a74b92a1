# SPDX-License-Identifier: Apache-2.0
"""From files to modules and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import attrs

from pyflinkcep.migrate.chains.lookup import snake
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import parse_java
from pyflinkcep.migrate.program import Written, has_patterns, translate_file
from pyflinkcep.migrate.pyflink import translate_python
from pyflinkcep.migrate.reading import find_files
from pyflinkcep.migrate.report import Report
from pyflinkcep.migrate.translated import Note

__all__ = ["Migration", "migrate", "write"]


@attrs.frozen
class Migration:
    """The report, and the program that was read."""

    report: Report
    project: Project


def migrate(sources: Iterable[str]) -> Migration:
    """
    Translate the files of Java and PyFlink with patterns; nothing of them is run.

    Raises
    ------
    InputError
        If there is no such file or folder.
    NotSupportedError
        If tree-sitter is not installed.
    """
    found = find_files(sources)
    parsed = [(parse_java(data, file), data) for file, data in found.java]
    project = Project([source for source, _ in parsed])
    names: dict[str, int] = {}
    written: list[Written] = []
    for source, data in parsed:
        if not has_patterns(data.decode("utf-8", "replace")):
            continue
        name = _module_name(source.file, names)
        written.append(_safely(source.file, partial(translate_file, source, project, name)))
    for file, data in found.python:
        name = _module_name(file, names)
        written.append(_safely(file, partial(translate_python, file, data, name)))
    kept = [one for one in written if one.module or one.errors or one.notes]
    report = Report(tuple(kept), len(found.java) + len(found.python), tuple(found.refused))
    return Migration(report, project)


def write(report: Report, folder: Path) -> None:
    """Write the modules and the report into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in report.files:
        if file.module is not None:
            (folder / f"{file.module}.py").write_text(file.text, encoding="utf-8")
    (folder / "report.md").write_text(report.as_markdown(), encoding="utf-8")
    (folder / "report.json").write_text(report.as_json(), encoding="utf-8")


def _safely(file: str, translate: Callable[[], Written]) -> Written:
    """Return what became of a file; a note if it is beyond what can be followed."""
    try:
        return translate()
    except RecursionError:
        note = Note(file, 1, "nested too deeply to be followed")
    except Exception as error:  # a file that is odd must not hide what became of the others
        note = Note(file, 1, f"could not be followed ({type(error).__name__}: {error})")
    return Written(file, errors=[note])


def _module_name(file: str, names: dict[str, int]) -> str:
    stem = snake(Path(file).stem)
    names[stem] = names.get(stem, 0) + 1
    return stem if names[stem] == 1 else f"{stem}_{names[stem]}"
