# SPDX-License-Identifier: Apache-2.0
"""Patterns as rules of which the latest runs live: chains of stages joined by followedBy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.conditions import IterativeCondition, single_conditions
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import atom_of
from pyflinkcep.engines.latest.columns import Ints, Offers
from pyflinkcep.engines.latest.machine import LatestRule
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.stage import ConsumingStrategy, QuantifierProperty

Positions = np.ndarray[Any, np.dtype[np.int64]]


def refused(why: str) -> NotSupportedError:
    """Return the error for a pattern that the evaluation cannot say."""
    return NotSupportedError(
        f'evaluation="latest": {why}', 'leave evaluation out, or write evaluation="nfa"'
    )


@attrs.frozen(eq=False)
class LatestChain:
    """A pattern as a rule."""

    rule: LatestRule
    steps: tuple[Pattern, ...]  # The stage of each step; one that repeats has a step for each event
    taking: tuple[str, ...]  # The stage of each event of a match

    @classmethod
    def of(cls, pattern: Pattern, nfa: NFA) -> LatestChain:
        """Return a pattern as a rule; refuse what is none."""
        if nfa.skips:
            raise refused("a skip strategy needs all matches")
        if nfa.window_times:
            raise refused("its window is a gap between one event and the next")
        steps: list[Pattern] = []
        for number, stage in enumerate(pattern.stages()):
            count = _repetitions(stage, is_first=not number)
            _check_condition(nfa, stage.getName(), stage.getCondition())
            steps += [stage] * count
        missing = tuple(map(_is_missing, steps))
        span = nfa.window_time - 1 if nfa.window_time > 0 else None  # Flink's window is half open
        if any(missing) and span is None:
            raise refused("a NOT stage needs a window: add within(…)")
        names = tuple(
            stage.getName() for stage, absent in zip(steps, missing, strict=True) if not absent
        )
        return cls(LatestRule(missing, span), tuple(steps), names)

    @property
    def stages(self) -> list[str]:
        """The stages that take events, in pattern order."""
        return list(dict.fromkeys(self.taking))

    @property
    def components(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The number of the stage of each event of a match."""
        return np.array([self.stages.index(name) for name in self.taking], np.int32)

    def offers(
        self, fitting: Callable[[IterativeCondition], Sequence[int] | Positions], keys: Ints
    ) -> Offers:
        """Offer events to the steps whose conditions they satisfy; `fitting` tells which do."""
        known: dict[str, Positions] = {}
        for stage in self.steps:
            if stage.getName() not in known:
                found = fitting(stage.getCondition())
                known[stage.getName()] = np.asarray(found, np.int64)
        by_step = [known[stage.getName()] for stage in self.steps]
        events = np.concatenate(by_step)
        numbers = np.repeat(np.arange(len(by_step), dtype=np.int32), [*map(len, by_step)])
        return Offers(events.astype(np.int32), numbers, keys[events])


def _is_missing(stage: Pattern) -> bool:
    return stage.getQuantifier().consumingStrategy is ConsumingStrategy.NOT_FOLLOW


def _repetitions(stage: Pattern, is_first: bool) -> int:
    """Return how many events a stage takes; one for a NOT stage."""
    name, quantifier = stage.getName(), stage.getQuantifier()
    if isinstance(stage, GroupPattern):
        raise refused("it has a group of stages")
    strategy, properties = quantifier.consumingStrategy, quantifier.properties
    relaxed = (ConsumingStrategy.SKIP_TILL_NEXT, ConsumingStrategy.NOT_FOLLOW)
    if not is_first and strategy not in relaxed:
        raise refused(f"stage {name!r} is not joined by followedBy or notFollowedBy")
    if properties == {QuantifierProperty.SINGLE}:
        return 1
    times = stage.getTimes()
    if properties != {QuantifierProperty.TIMES} or times is None or times.from_ != times.to:
        raise refused(f"stage {name!r} repeats without a fixed number, or is optional")
    if quantifier.innerConsumingStrategy is not ConsumingStrategy.SKIP_TILL_NEXT:
        raise refused(f"the repetitions of stage {name!r} are consecutive or in all combinations")
    return times.from_


def _check_condition(nfa: NFA, stage: str, condition: IterativeCondition) -> None:
    """Refuse what reads more than one event."""
    for part in single_conditions(condition):
        if not atom_of(nfa.atoms, part).bit:
            raise refused(f"the condition {part!r} of stage {stage!r} reads other events")
