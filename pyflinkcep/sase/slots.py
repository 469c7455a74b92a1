# SPDX-License-Identifier: Apache-2.0
"""What a query still needs to know about the events that a run has taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyflinkcep.expressions.tree import Aggregate, Tree, attribute_of
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.placement import Placement
from pyflinkcep.sase.tree import functions

__all__ = ["slots_by_variable", "slots_explained"]


def slots_by_variable(query: Query, placement: Placement) -> dict[str, tuple[str, ...]]:
    """
    Return what distinguishes runs, by the variable of their last event.

    Runs that agree in all of it are merged, since no later condition can tell them apart. With a
    window, the time of the first event distinguishes runs too.

    Parameters
    ----------
    query : Query
        A SEQ query.
    placement : Placement
        Where its clauses are evaluated.

    Returns
    -------
    dict of str to tuple of str
        For each positive variable, in order, the aggregates that are still read; empty if all runs
        there are merged.

    Notes
    -----
    Agrawal and others, SIGMOD 2008, section 5.2: the bits M, for V[t…].
    """
    names = query.variables
    found = {}
    for number, name in enumerate(names):
        edges = placement[name]
        ahead = [*edges.take, *edges.leave] if query.positive[number].repeats else []
        for later in names[number + 1 :]:
            edges = placement[later]
            ahead += [*edges.begin, *edges.take, *edges.leave]
        ahead += [
            c for part in query.components if part.negated for c in placement[part.variable].absent
        ]
        taken = set(names[: number + 1])
        read = _aggregates(clause.tree for clause in ahead)
        shown = [_text(slot) for slot in read if slot.stage in taken]
        if query.is_global:
            shown += [f"first({names[0]}.{attribute})" for attribute in query.equal]
        found[name] = tuple(dict.fromkeys(shown))
    found[names[-1]] = found[names[-1]] if query.positive[-1].repeats else ()
    return found


def _aggregates(trees: Iterable[Tree]) -> Iterator[Aggregate]:
    for tree in trees:
        yield from functions(tree)


def _text(slot: Aggregate) -> str:
    argument = "*" if slot.argument is None else attribute_of(slot.argument)
    return f"{slot.function}({slot.stage}.{argument})"


def slots_explained(query: Query, slots: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a line for each variable: what distinguishes the runs that have just taken it."""
    started = "the time of its first event" if query.window is not None else ""
    if query.most_events is not None:
        started = "the number of its first event"
    for name, own in slots.items():
        if query.positive[-1].variable == name and not query.positive[-1].repeats:
            continue  # a match
        apart = ", ".join([*own, *([started] if started else [])])
        yield f"after {name}: {apart or 'nothing, they are one run'}"
