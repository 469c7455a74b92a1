# SPDX-License-Identifier: Apache-2.0
"""The stages of a pattern that matches have."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.engines.flink.nfa import NFA, StateTransitionAction, StateType
from pyflinkcep.pattern import GroupPattern, Pattern

__all__ = ["taking_stages"]


def taking_stages(pattern: Pattern, nfa: NFA) -> list[str]:
    """Return the names of the stages that can take events, in pattern order."""
    taking = {
        table.state.stage
        for table in nfa.tables.values()
        for t in table.state.transitions
        if t.action is StateTransitionAction.TAKE and table.state.kind is not StateType.STOP
    }
    return [name for name in dict.fromkeys(_stage_names(pattern)) if name in taking]


def _stage_names(pattern: Pattern) -> Iterator[str]:
    """Return the names of stages in matches, including those inside groups."""
    for stage in pattern.stages():
        if isinstance(stage, GroupPattern):
            for part in stage.getParts():
                yield from _stage_names(part)
        else:
            yield stage.getName()
