# SPDX-License-Identifier: Apache-2.0
"""Decides from the compiled pattern which events no partial match can take."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.outcomes import outcomes
from pyflinkcep.errors import MalformedPatternException

__all__ = ["untaken_events"]

_MOST_CONDITIONS = 8
_MOST_STEPS = 10_000


def untaken_events(nfa: NFA, known: int) -> frozenset[int]:
    """
    Return the events that no stage takes, in whatever state a key is.

    They may still matter: after ``next``, any event ends a partial match.

    Parameters
    ----------
    nfa : NFA
        The compiled pattern.
    known : int
        The bits of the conditions evaluated beforehand; any others may hold.

    Returns
    -------
    frozenset of int
        The events, as bits of the known conditions; empty if there are too many conditions to say.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> pattern = Pattern.begin("a").where("x = 1").next("b").where("x = 2")
    >>> sorted(untaken_events(NFACompiler.compile(pattern), known=3))
    [0]
    """
    atoms = [atom for atom in nfa.atoms if atom.bit & known]
    if not atoms or len(atoms) > _MOST_CONDITIONS:
        return frozenset()
    try:
        ways = list(dict.fromkeys(_ways_to_take(nfa, known)))
    except (_TooMany, MalformedPatternException):
        return frozenset()
    return frozenset(
        event
        for event in _events(atoms)
        if not any(event & asked == answered for asked, answered in ways)
    )


class _TooMany(Exception):
    """The conditions have too many combinations."""


def _ways_to_take(nfa: NFA, known: int) -> Iterator[tuple[int, int]]:
    """Yield the conditions asked before an event is taken, and which of them held, as bits."""
    steps = (outcome for table in nfa.tables.values() for outcome in outcomes(table))
    for number, (answers, step) in enumerate(steps):
        if number == _MOST_STEPS:
            raise _TooMany
        if step.takes:
            told = {atom: holds for atom, holds in answers.items() if atom.bit & known}
            yield sum(a.bit for a in told), sum(a.bit for a, holds in told.items() if holds)


def _events(atoms: list[Atom]) -> Iterator[int]:
    for chosen in range(1 << len(atoms)):
        yield sum(atom.bit for place, atom in enumerate(atoms) if chosen >> place & 1)
