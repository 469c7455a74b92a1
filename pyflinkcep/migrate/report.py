# SPDX-License-Identifier: Apache-2.0
"""What was translated, what was not and why, and what differs in meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from hashlib import sha256

import attrs

from pyflinkcep.errors import counted
from pyflinkcep.migrate.program import Written
from pyflinkcep.migrate.translated import Note

__all__ = ["Report"]

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
    (
        r"def \w+\(event",
        "A condition in Python must return a bool, and is slower than one in SQL.",
    ),
    (
        r"CEP\.sql",
        "Types are Spark's: AVG of integers is a double. Tables become views or DataFrames.",
    ),
    (r"readStream", "A savepoint of Flink cannot be read: the new job begins without state."),
)


@attrs.frozen
class Report:
    """
    What became of the files.

    Attributes
    ----------
    files : tuple of Written
        The files with patterns, and those that could not be read.
    read : int
        How many files of Java were read.
    refused : tuple of Note
        The files of other languages, with the reason.
    skipped : tuple of Note
        The folders with patterns that are not read.
    """

    files: tuple[Written, ...]
    read: int
    refused: tuple[Note, ...] = ()
    skipped: tuple[Note, ...] = ()

    @property
    def status(self) -> int:
        """0 if everything was translated, 1 if something remains to be done, 2 if nothing was."""
        written = [file for file in self.files if file.module is not None]
        if not written:
            return 2
        remains = any(_remaining(file) or file.errors for file in self.files)
        return 1 if remains or self.refused else 0

    def as_text(self) -> str:
        """Return the report for a terminal."""
        lines = []
        for file in self.files:
            lines.append(_headline(file))
            lines += [f"  {note.line}: {note.what}" for note in _ordered(file.errors)]
            lines += [f"  {note.line}: {note.what}" for note in _ordered(file.notes)]
        lines += [f"{note.file}: {note.what}" for note in (*self.refused, *self.skipped)]
        return "\n".join([*lines, self._summary()])

    def as_markdown(self) -> str:
        """Return the report as a page."""
        parts = ["# From Java to Python", self._summary()]
        if self.files:
            rows = [_row(file) for file in self.files]
            head = (
                "| Java | Python | patterns | conditions in SQL | to write |\n|---|---|---|---|---|"
            )
            parts.append("\n".join([head, *rows]))
        for file in self.files:
            found = [*_ordered(file.errors), *_ordered(file.notes)]
            differences = differences_of(file.text)
            if found or differences:
                parts.append(f"## {file.file}")
            if found:
                parts.append("\n".join(f"* line {note.line}: {note.what}" for note in found))
            if differences:
                parts.append("What differs in meaning:")
                parts.append("\n".join(f"* {what}" for what in differences))
        if self.refused or self.skipped:
            parts.append("## Not read")
            left = (*self.refused, *self.skipped)
            parts.append("\n".join(f"* {note.file}: {note.what}" for note in left))
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
                "toWrite": _remaining(file),
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
        patterns = sum(len(file.patterns) + file.statements for file in self.files)
        conditions = sum(file.conditions for file in self.files)
        sql = sum(file.sql for file in self.files)
        remaining = sum(_remaining(file) for file in self.files)
        text = (
            f"{counted(self.read, 'file')} read, {counted(patterns, 'pattern')}, "
            f"{counted(conditions, 'condition')}, {sql} of them in SQL; "
        )
        if any(file.errors for file in self.files) and not any(f.module for f in self.files):
            return f"{counted(self.read, 'file')} read, nothing could be translated"
        if not patterns and not any(file.module for file in self.files):
            return f"{counted(self.read, 'file')} read, no pattern and no MATCH_RECOGNIZE found"
        return text + (
            f"{counted(remaining, 'place')} to write" if remaining else "nothing to write"
        )


def differences_of(text: str) -> list[str]:
    """Return what may differ in meaning from the job in Flink."""
    return [what for form, what in _DIFFERENCES if re.search(form, text)]


def _row(file: Written) -> str:
    """Return a file's row of the table."""
    found = len(file.patterns) + file.statements
    module = f"{file.module}.py" if file.module else "-"
    sql = f"{file.sql} of {file.conditions}"
    return f"| {file.file} | {module} | {found} | {sql} | {_remaining(file)} |"


def _remaining(file: Written) -> int:
    """Return how many places of a module remain to be written."""
    parts = ("what becomes of the matches", "write that part of the job")
    noted = sum(any(part in note.what for part in parts) for note in file.notes)
    return file.text.count("TODO") + file.text.count("raise not_translated(") + noted


def _ordered(notes: Iterable[Note]) -> list[Note]:
    return sorted(notes, key=lambda note: (note.line, note.what))


def _headline(file: Written) -> str:
    if file.module is None:
        return f"{file.file}: not translated"
    remaining = _remaining(file)
    parts = [counted(len(file.patterns), "pattern")] if file.patterns else []
    parts += [f"{counted(file.statements, 'statement')} of SQL"] if file.statements else []
    if file.conditions:
        parts.append(f"{file.sql} of {counted(file.conditions, 'condition')} in SQL")
    return f"{file.file} → {file.module}.py: {', '.join(parts)}" + (
        f", {counted(remaining, 'place')} to write" if remaining else ""
    )
