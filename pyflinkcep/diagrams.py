# SPDX-License-Identifier: Apache-2.0
"""The picture of anything that says what to match: a pattern, a query, a clause of SQL."""

from __future__ import annotations

import re

from pyflinkcep.errors import InvalidArgumentError, suggesting
from pyflinkcep.match_recognize.drawn import clause_diagram
from pyflinkcep.match_recognize.parser import parse_clause
from pyflinkcep.match_recognize.statement import Statement
from pyflinkcep.match_recognize.tokens import Source, tokenize
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.show import Diagram

_STATEMENT = re.compile(r"\bMATCH_RECOGNIZE\s*\(", re.IGNORECASE)
_CLAUSE = re.compile(r"\bPATTERN\s*\(", re.IGNORECASE)


@suggesting
def diagram(pattern: Pattern | SaseQuery | str) -> Diagram:
    """
    Return a picture of a pattern, a query, or a clause MATCH_RECOGNIZE.

    Parameters
    ----------
    pattern : Pattern, SaseQuery or str
        The pattern; a query, or its text; a statement with one clause MATCH_RECOGNIZE, or the text
        between the parentheses of one.

    Returns
    -------
    Diagram
        The picture, with ``svg``, ``mermaid``, ``dot`` and ``save(path)``; notebooks show it.

    Raises
    ------
    InvalidArgumentError
        If the argument is none of these, or a text is wrong; the message names line and column.

    Examples
    --------
    >>> diagram("PATTERN (A B+) DEFINE B AS B.price > A.price")
    Diagram(PATTERN ((A B+)))
    >>> diagram("PATTERN SEQ(Stock a, Stock b) WHERE b.price > a.price")
    Diagram(PATTERN SEQ(Stock a, Stock b))
    """
    if isinstance(pattern, Pattern | SaseQuery):
        return pattern.diagram()
    if not isinstance(pattern, str):
        raise InvalidArgumentError(
            f"diagram: expected a pattern, a query or their text, got {type(pattern).__name__}",
            "write diagram(pattern), or diagram('PATTERN (A B+) DEFINE …')",
        )
    if _STATEMENT.search(pattern):
        return clause_diagram(_only_clause(pattern))
    if _CLAUSE.search(pattern):
        source = Source(pattern)
        return clause_diagram(parse_clause(tokenize(source), source, len(pattern)))
    return parse(pattern).diagram()


def _only_clause(text: str) -> Clause:
    statement = Statement(text)
    use = statement.next_use()
    assert use is not None
    statement.replaced(use, "events")
    if statement.next_use() is not None:
        raise InvalidArgumentError(
            "diagram: expected a statement with one MATCH_RECOGNIZE, got several",
            "pass the text between the parentheses of one of them",
        )
    return use.clause
