# SPDX-License-Identifier: Apache-2.0
"""What becomes of a condition or function of Java."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.frozen
class Note:
    """A difference in meaning, or why something was not translated."""

    file: str  # The file of Java
    line: int  # The line in it
    what: str  # The difference or the reason


PART = "write that part of the job"
"""What a note says of what is left to do."""
_WHERE, _IS_NULL = (
    "where ",
    " is null, the Java job fails with a NullPointerException; here the comparison does not hold",
)


def null_note(name: str) -> str:
    """Return what is to be said of a value that may be null."""
    return f"{_WHERE}{name}{_IS_NULL}"


def gathered(notes: Iterable[Note]) -> list[Note]:
    """Return the notes of a file, each once, and one for all values that may be null."""
    nulls: dict[str, Note] = {}
    found: dict[Note, None] = {}
    for note in notes:
        if note.what.endswith(_IS_NULL):
            nulls.setdefault(note.what[len(_WHERE) : -len(_IS_NULL)], note)
        else:
            found[note] = None
    if nulls:
        *names, last = nulls
        listed = f"{', '.join(names)} or {last}" if names else last
        first = min(nulls.values(), key=lambda note: note.line)
        found[attrs.evolve(first, what=null_note(listed))] = None
    return list(found)


@attrs.frozen
class Translated:
    """A condition or selector as SQL or as a Python function, or a function of matches."""

    sql: str | None = None  # SQL of the same meaning
    name: str | None = None  # The name of the Python function, if there is no SQL
    python: str | None = None  # The source that defines it, and what it needs
    imports: frozenset[str] = frozenset()  # The import statements that the source needs
    notes: tuple[Note, ...] = ()  # What to look at
    stub: bool = False  # Whether the function only raises, with the Java text
    # The columns of events that it reads by name, as of a JSON object, with their Spark types.
    columns: tuple[tuple[str, str], ...] = ()
    # The variables of Java around it that are known at run time alone, which only a function reads.
    captured: tuple[str, ...] = ()
    # Of a function of matches:
    output_type: str | None = None  # The schema of its rows as DDL; None if unknown
    result: str = "?"  # The Java type of its rows; ``?`` if unknown
    # The names of the tags that it writes to with ``ctx.output``, and the schemas of their rows.
    output_tags: tuple[tuple[str, str | None], ...] = ()
    # What the rows are, by the name of a tag, which is empty for the main output: a ``dict``, a
    # ``tuple``, an object ``itself``, or ``null``.
    rows: tuple[tuple[str, str], ...] = ()

    def rows_are(self, kind: str, tag: str = "") -> bool:
        """Whether all rows of an output are of a kind."""
        kinds = {found for name, found in self.rows if name == tag}
        return kinds == {kind} or (kind == "itself" and kinds == {kind, "null"})
