# SPDX-License-Identifier: Apache-2.0
"""SQL with places for a value that is known later."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["SqlTemplate", "joined"]


class SqlTemplate(str):
    """
    SQL with places for a value that is known later.

    As text, it is what to show to people.

    Parameters
    ----------
    pieces : tuple of str
        The SQL before the first place, between places, and after the last one.
    shown : str
        What stands in the places of the text.
    """

    __slots__ = ("pieces", "shown")

    pieces: tuple[str, ...]
    shown: str

    def __new__(cls, pieces: tuple[str, ...], shown: str) -> SqlTemplate:
        """Return the SQL."""
        made = super().__new__(cls, shown.join(pieces))
        made.pieces, made.shown = pieces, shown
        return made

    def __getnewargs__(self) -> tuple[tuple[str, ...], str]:  # type: ignore[override]
        """Return what it is made of, for copies."""
        return self.pieces, self.shown

    def filled(self, sql: str) -> str:
        """Return the SQL with SQL in its places."""
        return sql.join(self.pieces)


def joined(parts: Iterable[str]) -> str:
    """
    Return SQL made of parts: a template if one of them is.

    Examples
    --------
    >>> sql = joined(("lower(", SqlTemplate(("", ""), "CLASSIFIER()"), ")"))
    >>> sql, sql.filled("'A'")
    ('lower(CLASSIFIER())', "lower('A')")
    """
    pieces, shown = [""], ""
    for part in parts:
        inner: tuple[str, ...] = (part,)
        if isinstance(part, SqlTemplate):
            inner, shown = part.pieces, part.shown
        pieces[-1] += inner[0]
        pieces += inner[1:]
    return SqlTemplate(tuple(pieces), shown) if len(pieces) > 1 else pieces[0]
