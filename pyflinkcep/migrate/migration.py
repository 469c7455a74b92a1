# SPDX-License-Identifier: Apache-2.0
"""From files to modules and a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path

import attrs

from pyflinkcep.errors import InputError
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
    project = Project()
    names: set[str] = set()
    written: list[Written] = []
    deep: set[str] = set()
    for source, _ in parsed:
        try:
            project.add(source)
        except RecursionError:
            deep.add(source.file)
            written.append(Written(source.file, errors=[Note(source.file, 1, _TOO_DEEP)]))
    for source, data in parsed:
        if source.file in deep or not has_patterns(data.decode("utf-8", "replace")):
            continue
        name = _module_name(source.file, names)
        written.append(_safely(source.file, partial(translate_file, source, project, name)))
    for file, data in found.python:
        name = _module_name(file, names)
        written.append(_safely(file, partial(translate_python, file, data, name)))
    kept = [one for one in written if one.module or one.errors or one.notes]
    report = Report(
        tuple(kept), len(found.java) + len(found.python), tuple(found.refused), tuple(found.skipped)
    )
    return Migration(report, project)


def write(report: Report, folder: Path, *, force: bool = False) -> None:
    """
    Write the modules and the report into a folder.

    Raises
    ------
    InputError
        If that would write over a module that was changed by hand, or that is of another origin,
        or through a link, unless ``force`` is given.
    """
    texts = {f"{file.module}.py": file.text for file in report.files if file.module is not None}
    texts |= {"report.md": report.as_markdown(), "report.json": report.as_json()}
    known = _digests(folder)
    kept = [
        name
        for name, text in texts.items()
        if not (name.startswith("report.") and not (folder / name).is_symlink())
        and _is_other(folder / name, text, known.get(name))
    ]
    if kept and not force:
        raise InputError(
            f"{folder} has files that this run would write over: {', '.join(sorted(kept))}",
            "they were changed since, are of another origin or are links: "
            "choose another folder, or pass --force",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        if (folder / name).is_symlink():
            (folder / name).unlink()
        (folder / name).write_text(text, encoding="utf-8")


def _digests(folder: Path) -> dict[str, str]:
    """Return the digests of the modules that an earlier run wrote."""
    try:
        files = json.loads((folder / "report.json").read_text(encoding="utf-8"))["files"]
        return {f"{file['module']}.py": str(file["sha256"]) for file in files}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _is_other(file: Path, text: str, digest: str | None) -> bool:
    """Whether a file has something that the tool did not write, or is a link."""
    if file.is_symlink():
        return True
    if not file.exists():
        return False
    data = file.read_bytes()
    return data != text.encode() and sha256(data).hexdigest() != digest


def _safely(file: str, translate: Callable[[], Written]) -> Written:
    """Return what became of a file; a note if it is beyond what can be followed."""
    try:
        return translate()
    except RecursionError:
        note = Note(file, 1, _TOO_DEEP)
    except Exception as error:  # a file that is odd must not hide what became of the others
        note = Note(file, 1, f"could not be followed ({type(error).__name__}: {error})")
    return Written(file, errors=[note])


def _module_name(file: str, names: set[str]) -> str:
    """Return a name of its own that hides no module which a job imports."""
    stem = snake(Path(file).stem)
    stem = f"{stem}_job" if stem in sys.stdlib_module_names | _IMPORTED else stem
    made, number = stem, 1
    while made in names:
        number += 1
        made = f"{stem}_{number}"
    names.add(made)
    return made


_TOO_DEEP = "nested too deeply to be followed"
_IMPORTED = frozenset([
    "pyflinkcep", "pyspark", "py4j", "attr", "attrs", "numpy", "pandas", "pyarrow", "polars",
    "narwhals", "grpc", "google", "pytz", "dateutil", "six", "typing_extensions", "cloudpickle",
])  # fmt: skip
"""What a job imports besides the standard library, itself or by another package."""
