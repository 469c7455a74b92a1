# SPDX-License-Identifier: Apache-2.0
"""Finds the matches of a partition one by one, following AFTER MATCH."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from pyflinkcep.engines.rows.bridge import RowSearch
from pyflinkcep.engines.rows.plain_search import OPEN
from pyflinkcep.errors import OutOfMemoryError, SkipError
from pyflinkcep.match_recognize.tree import Skip, SkipTo

__all__ = ["Match", "Place", "SuccessiveMatches", "out_of_memory"]


@attrs.frozen(eq=False)
class Match:
    """
    A match.

    Attributes
    ----------
    start : int
        Its first row; for an empty match, the row where it was found.
    labels : bytes
        The variable number of each of its rows.
    hidden : bytes
        1 for each of its rows that is left out of the output, otherwise 0.
    number : int
        Its number in the partition, from 1.
    """

    start: int
    labels: bytes
    hidden: bytes
    number: int

    @property
    def end(self) -> int:
        """The row after its last one."""
        return self.start + len(self.labels)


@attrs.define(eq=False)
class Place:
    """
    The progress of the search in a partition; rows are counted from the first one present.

    Attributes
    ----------
    start : int
        The first row at which the next match may begin.
    number : int
        The number of matches found.
    settled : int
        The row before which every row is in a found match, or in none.
    before : int
        How many rows of the partition came before the first one present.
    """

    start: int = 0
    number: int = 0
    settled: int = 0
    before: int = 0

    def forget(self, rows: int) -> None:
        """Count rows from a later row on."""
        self.start -= rows
        self.settled -= rows
        self.before += rows


class SuccessiveMatches:
    """
    Finds the matches of concatenated partitions.

    Parameters
    ----------
    search : RowSearch
        Searches for one match.
    variables : sequence of str
        The variables by number.
    skip : Skip
        Where to look for the next match.
    subsets : mapping of str to tuple of str
        The variables of each union, for `skip`.

    Notes
    -----
    Alternatives are tried in order of preference. So a match found before an alternative needs a
    future row is the preferred match in any case; once a future row is needed, nothing is decided.

    Cost: if conditions depend on positions only, an instruction that failed at a row is never tried
    there again: rows times program length. Otherwise it is not tried again in one search with the
    same knowledge of the match.
    """

    def __init__(
        self,
        search: RowSearch,
        variables: Sequence[str],
        skip: Skip,
        subsets: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._search = search
        self._labels, self._hidden = search.labels, search.hidden
        self._skip = skip
        self._target: frozenset[int] | None = None
        if skip.variable is not None:
            names = subsets.get(skip.variable, (skip.variable,))
            self._target = frozenset(variables.index(name) for name in names)

    def matches(self, part: range, place: Place) -> Iterator[Match]:
        """
        Find the matches of a partition, up to where future rows decide.

        Parameters
        ----------
        part : range
            Its rows.
        place : Place
            Where to begin; updated to where the search has come.

        Yields
        ------
        Match
            Matches in the order of their first rows, including empty ones.

        Raises
        ------
        SkipError
            If a match has no row to skip to, or only its first.
        OutOfMemoryError
            If memory runs out in the search.
        """
        try:
            self._search.turn_to(part.start, part.stop, place.before == 0)
            while True:
                found = self._search.find(part.start + place.start, place.number + 1)
                if found is None:
                    place.start = len(part)
                    return
                start, end = found
                place.start = start - part.start
                if end == OPEN:
                    return
                place.number += 1
                size = end - start
                match = Match(
                    start, bytes(self._labels[:size]), bytes(self._hidden[:size]), place.number
                )
                yield match
                place.start = self._next_start(match) - part.start
        except MemoryError as cause:
            raise out_of_memory() from cause

    def _next_start(self, match: Match) -> int:
        if not match.labels or self._skip.to is SkipTo.NEXT_ROW:
            return match.start + 1
        if self._target is None:
            return match.end
        rows = [match.start + at for at, label in enumerate(match.labels) if label in self._target]
        if not rows:
            raise SkipError(
                "AFTER MATCH SKIP failed: pattern variable is not present in match",
                "skip to a variable that every match has, or TO NEXT ROW",
                stage=self._skip.variable,
            )
        row = rows[0] if self._skip.to is SkipTo.FIRST else rows[-1]
        if row == match.start:
            raise SkipError(
                "AFTER MATCH SKIP failed: cannot skip to first row of match",
                "skip TO NEXT ROW: this would find the same match again",
                stage=self._skip.variable,
            )
        return row


def out_of_memory() -> OutOfMemoryError:
    """Return the error for a search that runs out of memory."""
    return OutOfMemoryError(
        "out of memory while searching for a match",
        "give the workers more memory, PARTITION BY more columns, or write WITHIN",
    )
