# SPDX-License-Identifier: Apache-2.0
"""What one stage of a pattern holds, and what the compiler reads of it."""

from __future__ import annotations

from typing import Any

from pyflinkcep.conditions import BooleanConditions, IterativeCondition
from pyflinkcep.errors import MalformedPatternException
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.quantifier import (
    ConsumingStrategy,
    Quantifier,
    QuantifierProperty,
    Times,
    WithinType,
)

__all__ = ["Stage"]


class Stage:
    """
    One node of the linked list that a pattern is: its settings and their getters.

    Parameters
    ----------
    name : str
        The stage's name.
    previous : Stage or None
        The stage before.
    strategy : ConsumingStrategy
        The contiguity between the stage before and this one.
    afterMatchSkipStrategy : AfterMatchSkipStrategy
        The strategy given to ``begin``, handed on from stage to stage.
    """

    def __init__(
        self,
        name: str,
        previous: Any,
        strategy: ConsumingStrategy,
        afterMatchSkipStrategy: AfterMatchSkipStrategy,
    ) -> None:
        self._name = name
        self._previous = previous
        self._quantifier = Quantifier.one(strategy)
        self._condition: IterativeCondition | None = None
        self._untilCondition: IterativeCondition | None = None
        self._times: Times | None = None
        self._windows: dict[WithinType, int] = {}
        self._afterMatchSkipStrategy = afterMatchSkipStrategy

    def getPrevious(self) -> Any:
        """Give the stage before, None for the first."""
        return self._previous

    def getName(self) -> str:
        """Give the stage's name."""
        return self._name

    def getQuantifier(self) -> Quantifier:
        """Give the quantifier."""
        return self._quantifier

    def getTimes(self) -> Times | None:
        """Give the range of repetitions, None without a quantifier."""
        return self._times

    def getCondition(self) -> IterativeCondition:
        """Give the condition; the one that always holds where none was set."""
        return self._condition or BooleanConditions.trueFunction()

    def getUntilCondition(self) -> IterativeCondition | None:
        """Give the condition that ends the loop."""
        return self._untilCondition

    def getWindowSize(self, withinType: WithinType = WithinType.FIRST_AND_LAST) -> int | None:
        """Give the window in milliseconds, None where none was set."""
        return self._windows.get(withinType)

    def getAfterMatchSkipStrategy(self) -> AfterMatchSkipStrategy:
        """Give the skip strategy that ``begin`` was given."""
        return self._afterMatchSkipStrategy

    def stages(self) -> list[Any]:
        """Give the stages from first to last; a group counts as one."""
        chain: list[Any] = []
        stage: Any = self
        while stage is not None:
            chain.append(stage)
            stage = stage._previous
        return chain[::-1]

    def describe(self) -> str:
        """Give the pattern in one line, such as ``a → b+ ⇒ c``; for logs and job names."""
        text = ""
        for stage in self.stages():
            arrow = _ARROWS[stage._quantifier.consumingStrategy] if text else ""
            text += arrow + stage._label() + _quantifier_text(stage)
        return text

    def _check_no_not_pattern(self) -> None:
        strategy = self._quantifier.consumingStrategy
        if strategy in (ConsumingStrategy.NOT_FOLLOW, ConsumingStrategy.NOT_NEXT):
            raise MalformedPatternException(
                "Option not applicable to NOT pattern",
                f"stage {self._name!r} is about an absent event: put the option on another stage",
            )

    def _check_no_quantifier(self) -> None:
        if not self._quantifier.hasProperty(QuantifierProperty.SINGLE):
            raise MalformedPatternException(
                "Already applied quantifier to this Pattern. "
                f"Current quantifier is: {self._quantifier}",
                f"quantify stage {self._name!r} once, with optional() after it where needed",
            )

    def _label(self) -> str:
        return str(self._name)

    def __repr__(self) -> str:
        return f"Pattern({self.describe()})"


_ARROWS = {
    ConsumingStrategy.STRICT: " ⇒ ",
    ConsumingStrategy.SKIP_TILL_NEXT: " → ",
    ConsumingStrategy.SKIP_TILL_ANY: " ⇢ ",
    ConsumingStrategy.NOT_NEXT: " ⇏ ",
    ConsumingStrategy.NOT_FOLLOW: " ↛ ",
}


def _quantifier_text(stage: Stage) -> str:
    quantifier, times = stage.getQuantifier(), stage.getTimes()
    text = ""
    if times is not None and quantifier.hasProperty(QuantifierProperty.LOOPING):
        text = "+" if times.from_ == 1 else f"{{{times.from_},}}"
    elif times is not None:
        exact = times.from_ == times.to
        text = f"{{{times.from_}}}" if exact else f"{{{times.from_},{times.to}}}"
    return text + ("?" if quantifier.hasProperty(QuantifierProperty.OPTIONAL) else "")
