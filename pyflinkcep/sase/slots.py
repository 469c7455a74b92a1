# SPDX-License-Identifier: Apache-2.0
"""What a query still needs to know about the events that a run has taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyflinkcep.expressions.tree import Aggregate, Operation, Tree
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.placement import placed

__all__ = ["slots_by_variable", "slots_explained"]


def slots_by_variable(query: Query) -> dict[str, tuple[str, ...]]:
    """
    Return what distinguishes runs, by the variable of their last event.

    Runs that agree in all of it are merged, since no later condition can tell them apart. With a
    window, the time of the first event distinguishes runs too.

    Parameters
    ----------
    query : Query
        A SEQ query.

    Returns
    -------
    dict of str to tuple of str
        For each positive variable, in order, the aggregates that are still read; empty if all runs
        there are merged.

    Examples
    --------
    >>> from pyflinkcep.sase import parse
    >>> slots_by_variable(parse("PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x"))
    {'a': (), 'b': ('last(b.x)',), 'c': ()}

    Notes
    -----
    Agrawal and others, SIGMOD 2008, section 5.2: the bits M, for V[t…].
    """
    names = query.variables
    edges = placed(query)
    found = {}
    for number, name in enumerate(names):
        ahead = [*edges[name].take, *edges[name].leave] if query.positive[number].repeats else []
        for later in names[number + 1 :]:
            ahead += [*edges[later].begin, *edges[later].take, *edges[later].leave]
        ahead += [
            c for part in query.components if part.negated for c in edges[part.variable].absent
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
        if isinstance(tree, Aggregate):
            yield tree
        elif isinstance(tree, Operation):
            yield from _aggregates(tree.operands)


def _text(slot: Aggregate) -> str:
    argument = "*" if slot.argument is None else slot.argument.strip("`")
    return f"{slot.function}({slot.stage}.{argument})"


def slots_explained(query: Query) -> Iterator[str]:
    """Yield a line for each variable: what distinguishes the runs that have just taken it."""
    started = "the time of its first event" if query.window is not None else ""
    for name, slots in list(slots_by_variable(query).items()):
        if query.positive[-1].variable == name and not query.positive[-1].repeats:
            continue  # a match
        apart = ", ".join([*slots, *([started] if started else [])])
        yield f"after {name}: {apart or 'nothing, they are one run'}"
