# SPDX-License-Identifier: Apache-2.0
"""A clause as a picture."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

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
from pyflinkcep.show import Diagram
from pyflinkcep.show.model import Box, Choice, Frame, Link, Row
from pyflinkcep.show.model import Part as Drawn


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
