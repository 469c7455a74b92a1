# SPDX-License-Identifier: Apache-2.0
"""What becomes of a condition or function of Java."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

__all__ = ["Note", "Translated", "TranslatedFunction", "gathered", "null_note"]


@attrs.frozen
class Note:
    """
    A difference in meaning, or why something was not translated.

    Attributes
    ----------
    file : str
        The file of Java.
    line : int
        The line in it.
    what : str
        The difference or the reason.
    """

    file: str
    line: int
    what: str


_WHERE, _IS_NULL = (
    "where ",
    " is null, the Java job fails with a NullPointerException; here the comparison does not hold",
)


def null_note(name: str) -> str:
    """Return what is to be said of a value that may be null."""
    return f"{_WHERE}{name}{_IS_NULL}"


def gathered(notes: Iterable[Note]) -> list[Note]:
    """
    Return the notes of a file, each once, and one for all values that may be null.

    Examples
    --------
    >>> notes = [Note("A.java", line, null_note(name)) for line, name in ((3, "x"), (2, "y"))]
    >>> [(note.line, note.what[:20]) for note in gathered(notes)]
    [(2, 'where x or y is null')]
    """
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
    """
    A condition or selector as SQL or as a Python function.

    Attributes
    ----------
    sql : str or None
        SQL of the same meaning.
    name : str or None
        The name of the Python function, if there is no SQL.
    python : str or None
        The source that defines it, and what it needs.
    imports : frozenset of str
        The import statements that the source needs.
    notes : tuple of Note
        What to look at.
    stub : bool
        Whether the function only raises, with the Java text.
    columns : tuple of (str, str)
        The columns of events that it reads by name, as of a JSON object, with their Spark types.
    captured : tuple of str
        The variables of Java around it that are known at run time alone; SQL then has marks in
        their places.
    """

    sql: str | None = None
    name: str | None = None
    python: str | None = None
    imports: frozenset[str] = frozenset()
    notes: tuple[Note, ...] = ()
    stub: bool = False
    columns: tuple[tuple[str, str], ...] = ()
    captured: tuple[str, ...] = ()


@attrs.frozen
class TranslatedFunction(Translated):
    """
    A function of matches.

    Attributes
    ----------
    output_type : str or None
        The schema of its rows as DDL; None if unknown.
    result : str
        The Java type of its rows; ``?`` if unknown.
    handles_timeouts : bool
        Whether it also handles timed-out partial matches.
    output_tags : tuple of (str, str or None)
        The names of the tags that it writes to with ``ctx.output``, and the schemas of their rows.
    rows : tuple of (str, str)
        What the rows are, by the name of a tag, which is empty for the main output: a ``dict``, a
        ``tuple``, an object ``itself``, or ``null``.
    """

    output_type: str | None = None
    result: str = "?"
    handles_timeouts: bool = False
    output_tags: tuple[tuple[str, str | None], ...] = ()
    rows: tuple[tuple[str, str], ...] = ()

    def rows_are(self, kind: str, tag: str = "") -> bool:
        """Whether all rows of an output are of a kind."""
        kinds = {found for name, found in self.rows if name == tag}
        return kinds == {kind} or (kind == "itself" and kinds == {kind, "null"})
