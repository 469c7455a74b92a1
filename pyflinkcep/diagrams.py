# SPDX-License-Identifier: Apache-2.0
"""The picture of anything that says what to match: a pattern, a query, a clause of SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from pyflinkcep.errors import InvalidArgumentError, suggesting
from pyflinkcep.match_recognize.parser import parse_clause
from pyflinkcep.match_recognize.statement import Statement
from pyflinkcep.match_recognize.tokens import Source, tokenize
from pyflinkcep.match_recognize.tree import (
    Alternation,
    Anchor,
    Clause,
    Exclusion,
    Part,
    Permutation,
    Quantified,
    Variable,
)
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.show import Diagram
from pyflinkcep.show.model import Box, Choice, Frame, Link, Row
from pyflinkcep.show.model import Part as Drawn

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


def clause_diagram(clause: Clause) -> Diagram:
    """Return the picture of a clause: PATTERN, each variable with what DEFINE says of it."""
    defined = {d.variable.upper(): str(d.condition) for d in clause.definitions}
    notes = []
    if clause.partition:
        notes.append("partition by " + ", ".join(key.text for key in clause.partition))
    if clause.order:
        notes.append("order by " + ", ".join(map(str, clause.order)))
    if clause.within is not None:
        notes.append(f"within {clause.within} of the first row")
    notes += [f"subset {subset}" for subset in clause.subsets]
    if clause.skip is not None:
        notes.append(str(clause.skip).lower().replace("after match", "after a match:"))
    title = f"PATTERN ({clause.pattern})"
    return Diagram(_row(clause.pattern, defined), tuple(notes), title=title)


def _row(part: Part, defined: Mapping[str, str]) -> Row:
    """Return a part as a row: of its parts if it is a concatenation, otherwise of itself."""
    parts = getattr(part, "parts", (part,))
    if isinstance(part, Alternation | Permutation):
        parts = (part,)
    drawn = tuple(_drawn(inner, defined) for inner in parts)
    if not drawn:
        return Row((Box("()", ("no row",)),))
    return Row(drawn, tuple(Link() for _ in drawn[1:]))


def _drawn(part: Part, defined: Mapping[str, str]) -> Drawn:
    if isinstance(part, Variable):
        return Box(part.name, (defined.get(part.name.upper(), "any row"),))
    if isinstance(part, Anchor):
        return Box(str(part), (f"{'end' if part.is_end else 'start'} of the partition",))
    if isinstance(part, Alternation):
        rows = tuple(_row(inner, defined) for inner in part.parts)
        return Choice(rows, "the first that matches")
    if isinstance(part, Permutation):
        inside = tuple(_drawn(inner, defined) for inner in part.parts)
        return Frame(Row(inside, tuple(Link("plain", "and") for _ in inside[1:])), "in any order")
    if isinstance(part, Exclusion):
        return Frame(_row(part.part, defined), "left out of the output")
    if isinstance(part, Quantified):
        return _quantified(part, defined)
    return Frame(_row(part, defined), "group")


def _quantified(part: Quantified, defined: Mapping[str, str]) -> Drawn:
    drawn = _drawn(part.part, defined)
    if isinstance(drawn, Choice) or drawn.repeats or drawn.optional:
        drawn = Frame(Row((drawn,)), "group")
    prefers = "" if part.greedy else ", as few as possible"
    optional = "" if part.low else "optional" + (prefers if part.high == 1 else "")
    return attrs.evolve(drawn, repeats=_repeats(part, prefers), optional=optional)


def _repeats(part: Quantified, prefers: str) -> str:
    if part.high is None:
        return f"{max(part.low, 1)} or more{prefers}"
    if part.high == 1:
        return ""
    if part.high == part.low:
        return f"{part.low} times"
    return f"{max(part.low, 1)} to {part.high} times{prefers}"
