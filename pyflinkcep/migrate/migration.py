# SPDX-License-Identifier: Apache-2.0
"""From files to modules and a report."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import attrs

from pyflinkcep.errors import InputError, counted
from pyflinkcep.migrate.check.flink import Written
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import parse_java, snake
from pyflinkcep.migrate.meaning.translated import Note
from pyflinkcep.migrate.writing.program import has_patterns, translate_file

_SKIPPED = frozenset(["target", "build", "out", "node_modules", "__pycache__", "venv"])
_FOREIGN = frozenset(["node_modules", "__pycache__", "venv"])
_OTHER = {
    **dict.fromkeys((".scala", ".sc"), "Scala is not read: its conditions are another language, "
                    "of which Flink 2 has no API; docs/from-flink.md has the API side by side"),
    **dict.fromkeys((".kt", ".kts"), "Kotlin is not read: its conditions are another language; let "
                    "your IDE show the class as Java, or see docs/from-flink.md, which has the API "
                    "side by side"),
    ".py": "PyFlink is not read: CEP.sql takes its statements with MATCH_RECOGNIZE as they are",
}  # fmt: skip
_MARKS = (b"flink.cep", b"CEP.pattern", b"MATCH_RECOGNIZE", b"match_recognize")


@attrs.define
class Files:
    """The files that were found."""

    java: list[tuple[str, bytes]] = attrs.field(factory=list)  # Files of Java with what is in them
    refused: list[Note] = attrs.field(factory=list)  # Files that cannot be read, with the reason
    # Folders with patterns that are not read, such as that of tests.
    skipped: list[Note] = attrs.field(factory=list)


def find_files(sources: Iterable[str]) -> Files:
    """Return the files in folders, and single ones."""
    found = Files()
    for source in sources:
        path = Path(source)
        if not path.exists():
            hint = "name files of Java, or a project's folder"
            raise InputError(f"no file or folder {source}", hint)
        for file in _walk(path, found) if path.is_dir() else [path]:
            what = _add(found, file, asked=file is path)
            found.refused += [Note(str(file), 0, what)] if what else []
    return found


def _walk(folder: Path, found: Files) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        here = Path(root)
        is_tests = here.name == "src"
        left = {name for name in folders if name in _SKIPPED or (is_tests and name == "test")}
        for name in sorted(left - _FOREIGN):
            programs = (one for one in (here / name).rglob("*.java") if one.is_file())
            if any(_is_marked(one.read_bytes()) for one in programs):
                what = "not read, though it has patterns: name it to translate it"
                found.skipped.append(Note(str(here / name), 0, what))
        folders[:] = sorted(set(folders) - left - {f for f in folders if f.startswith(".")})
        yield from (
            here / name for name in sorted(files) if Path(name).suffix in (".java", *_OTHER)
        )


def _is_marked(data: bytes) -> bool:
    """Whether a file may have patterns."""
    return any(mark in data for mark in _MARKS)


def _add(found: Files, path: Path, *, asked: bool) -> str:
    """Add a file; return why it is refused, if it is."""
    if not path.is_file():  # a pipe would not end
        return "not a regular file"
    try:
        data = path.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if path.suffix == ".java":
        found.java.append((str(path), data))
        return ""
    marked = _is_marked(data)
    if path.suffix == ".py":
        marked = b"pyflink.table" in data and b"MATCH_RECOGNIZE" in data.upper()
    other = _OTHER.get(path.suffix, "not a file of Java (.java)")
    return other if asked or marked else ""


_DIFFERENCES = (
    (r"\.within\(", "A window of zero or less means no window in Flink; here it is refused."),
    (r"inProcessingTime", "In processing time all events of a micro-batch have the same time."),
    (r"withWatermark", "The watermark moves once per micro-batch, not with every event."),
    (r"OutputTag\(", "Side outputs are declared with their schema before the job starts."),
    (
        r"getSideOutput|writeStream[\s\S]*writeStream",
        "Every started query of a stream has its own state; tagged() returns all outputs of one.",
    ),
    (r"keyBy\(", "An event whose key is null stops a stream, unless onNullKey='drop' is given."),
    (r"def \w+\(event", "A condition in Python must return a bool, and is slower than one in SQL."),
    (
        r"CEP\.sql",
        "Types are Spark's: AVG of integers is a double. Tables become views or DataFrames.",
    ),
    (r"readStream", "A savepoint of Flink cannot be read: the new job begins without state."),
)


@attrs.frozen
class Report:
    """What became of the files."""

    files: tuple[Written, ...]  # The files with patterns, and those that could not be read
    read: int  # How many files of Java were read
    refused: tuple[Note, ...] = ()  # The files of other languages, with the reason
    skipped: tuple[Note, ...] = ()  # The folders with patterns that are not read

    @property
    def status(self) -> int:
        """0 if everything was translated, 1 if something remains to be done, 2 if nothing was."""
        written = [file for file in self.files if file.module is not None]
        if not written:
            return 2
        remains = any(file.remaining or file.errors for file in self.files)
        return 1 if remains or self.refused else 0

    def as_text(self) -> str:
        """Return the report for a terminal."""
        lines = []
        for file in self.files:
            lines.append(_headline(file))
            lines += [f"  {note.line}: {note.what}" for note in _found(file)]
        lines += [f"{note.file}: {note.what}" for note in (*self.refused, *self.skipped)]
        return "\n".join([*lines, self._summary()])

    def as_markdown(self) -> str:
        """Return the report as a page."""
        parts = ["# From Java to Python", self._summary()]
        rows = ["| Java | Python | patterns | conditions in SQL | to write |"]
        rows.append("|---|---|---|---|---|")
        for file in self.files:
            module, sql = file.module and f"{file.module}.py", f"{file.sql} of {file.conditions}"
            cells = (file.file, module or "-", file.number, sql, file.remaining)
            rows.append(f"| {' | '.join(map(str, cells))} |")
        parts += ["\n".join(rows)] if self.files else []
        for file in self.files:
            found = [f"line {note.line}: {note.what}" for note in _found(file)]
            differences = differences_of(file.text)
            parts += [f"## {file.file}"] if found or differences else []
            parts += [_listed(found)] if found else []
            parts += ["What differs in meaning:", _listed(differences)] if differences else []
        left = [f"{note.file}: {note.what}" for note in (*self.refused, *self.skipped)]
        parts += ["## Not read", _listed(left)] if left else []
        return "\n\n".join(parts) + "\n"

    def as_json(self) -> str:
        """Return the report as JSON."""
        files = [
            {
                "file": file.file,
                "module": file.module,
                "sha256": sha256(file.text.encode()).hexdigest(),
                "patterns": file.patterns,
                "statements": file.statements,
                "conditions": file.conditions,
                "conditionsInSql": file.sql,
                "functions": file.functions,
                "stubs": file.stubs,
                "toWrite": file.remaining,
                "notes": [{"line": n.line, "what": n.what} for n in _ordered(file.notes)],
                "errors": [{"line": n.line, "what": n.what} for n in _ordered(file.errors)],
                "differences": differences_of(file.text),
            }
            for file in self.files
        ]
        refused = [{"file": note.file, "what": note.what} for note in self.refused]
        whole = {"status": self.status, "read": self.read, "files": files, "refused": refused}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"

    def _summary(self) -> str:
        read = f"{counted(self.read, 'file')} read"
        number, conditions, sql, remaining = (
            sum(getattr(file, name) for file in self.files)
            for name in ("number", "conditions", "sql", "remaining")
        )
        failed = sum(file.module is None and bool(file.errors) for file in self.files)
        if not any(file.module for file in self.files):
            if any(file.errors for file in self.files):
                return f"{read}, nothing could be translated"
            if not number:
                return f"{read}, no pattern and no MATCH_RECOGNIZE found"
        left = [f"{counted(remaining, 'place')} to write"] if remaining else []
        left += [f"{counted(failed, 'file')} not translated"] if failed else []
        return (
            f"{read}, {counted(number, 'pattern')}, {counted(conditions, 'condition')}, "
            f"{sql} of them in SQL; {', '.join(left) or 'nothing to write'}"
        )


def differences_of(text: str) -> list[str]:
    """Return what may differ in meaning from the job in Flink."""
    return [what for form, what in _DIFFERENCES if re.search(form, text)]


def _listed(lines: Iterable[str]) -> str:
    """Return lines as a list."""
    return "\n".join(f"* {line}" for line in lines)


def _found(file: Written) -> list[Note]:
    """Return what is wrong with a file, and what is to be looked at."""
    return [*_ordered(file.errors), *_ordered(file.notes)]


def _ordered(notes: Iterable[Note]) -> list[Note]:
    return sorted(notes, key=lambda note: (note.line, note.what))


def _headline(file: Written) -> str:
    if file.module is None:
        return f"{file.file}: not translated"
    remaining = file.remaining
    parts = [counted(len(file.patterns), "pattern")] if file.patterns else []
    parts += [f"{counted(file.statements, 'statement')} of SQL"] if file.statements else []
    if file.conditions:
        parts.append(f"{file.sql} of {counted(file.conditions, 'condition')} in SQL")
    return f"{file.file} → {file.module}.py: {', '.join(parts)}" + (
        f", {counted(remaining, 'place')} to write" if remaining else ""
    )


@attrs.frozen
class Migration:
    """The report, and the program that was read."""

    report: Report
    project: Project


def migrate(sources: Iterable[str]) -> Migration:
    """Translate the files of Java with patterns; nothing of them is run."""
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
    kept = [one for one in written if one.module or one.errors or one.notes]
    report = Report(tuple(kept), len(found.java), tuple(found.refused), tuple(found.skipped))
    return Migration(report, project)


def write(report: Report, folder: Path, *, force: bool = False) -> None:
    """Write the modules and the report into a folder."""
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
