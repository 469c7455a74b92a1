# SPDX-License-Identifier: Apache-2.0
"""Patterns of which no partial match branches: an event moves it on, leaves it or ends it."""

from __future__ import annotations

from enum import IntEnum

import attrs

from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.steps import Ask, EventEnd, StateTable, Step


class Action(IntEnum):
    """What an event does to a partial match."""

    STAYS = 0
    ENDS = 1
    TAKES = 2


_MOST_CONDITIONS = 6
_MOST_STATES = 30


@attrs.frozen
class Unbranched:
    """
    Such a pattern as a table.

    All partial matches of one state have one fate, and those of a later state began earlier. So
    they are queues, of which an event moves all to the next.

    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> begun = Pattern.begin("a").where("x = 1")
    >>> Unbranched.of(NFACompiler.compile(begun.next("b").where("x = 2")), known=3)
    Unbranched(stages=('a', 'b'), actions=(0, 1, 0, 2, 2, 1, 2, 2))
    >>> Unbranched.of(NFACompiler.compile(begun.followedByAny("b").where("x = 2")), known=3)
    """

    stages: tuple[str, ...]  # By state, the stage that it takes an event for
    # By the bits of the conditions that hold, and then by state: the :class:`Action`.
    actions: tuple[int, ...]

    @classmethod
    def of(cls, nfa: NFA, known: int) -> Unbranched | None:
        """Return the table of a pattern; None if a partial match may branch, or wait for time."""
        bits = [atom.bit & known for atom in nfa.atoms]
        waits = nfa.window_times or any(table.is_pending for table in nfa.tables.values())
        if not all(bits) or waits or nfa.skip_strategy.isSkipStrategy():
            return None
        width = max(bits, default=0).bit_length()
        rows: list[list[int]] = []
        stages: list[str] = []
        state: StateTable | None = nfa.start
        while state is not None:
            if width > _MOST_CONDITIONS or len(stages) == _MOST_STATES:
                return None
            found = [_fate(state, event, is_start=not stages) for event in range(1 << width)]
            moves = {move for _, move in found if move is not None}
            if len(moves) != 1 or any(action is None for action, _ in found):
                return None
            ((stage, following),) = moves
            rows.append([int(action or 0) for action, _ in found])
            stages.append(stage)
            state = following
        if len(stages) < 2:
            return None
        return cls(tuple(stages), tuple(row[event] for event in range(1 << width) for row in rows))


_Fate = tuple[Action | None, tuple[str, StateTable | None] | None]


def _fate(state: StateTable, event: int, *, is_start: bool) -> _Fate:
    """Return what an event does; if it is taken, for which stage, and which state follows."""
    node: Ask | Step = state.first()
    while isinstance(node, Ask):
        node = node.following(event & node.atom.bit != 0)
    moves = [move for move in node.moves if not move.stays]
    stays = len(moves) < len(node.moves)
    if not moves:
        if stays:
            return Action.STAYS, None
        return (Action.ENDS if node.ending is EventEnd.CONTIGUITY else None), None
    move, *others = moves
    if others or stays is not is_start or not move.takes or move.completes is move.continues:
        return None, None
    return Action.TAKES, (move.stage, move.target if move.continues else None)
