# SPDX-License-Identifier: Apache-2.0
"""After-match skip strategies: which partial matches a found match makes superfluous."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

import attrs

from pyflinkcep.errors import InvalidArgumentError, MissingConditionError, SkipError

IdT = TypeVar("IdT", bound=tuple[int, int])
"""An event id: (timestamp, counter), ordered as events are."""


class AfterMatchSkipStrategy(ABC):
    """
    What happens to the other partial matches once a match is emitted.

    Make one with a static method and pass it to :meth:`pyflinkcep.Pattern.begin`.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy`` (Flink 2.3.0). Every
    strategy except ``noSkip`` holds a match back while a partial match that began earlier is live.

    Examples
    --------
    >>> from pyflinkcep import Pattern, match
    >>> fails = Pattern.begin("fail", AfterMatchSkipStrategy.skipPastLastEvent())
    >>> fails = fails.where("n = 0").oneOrMore().next("ok").where("n = 1")
    >>> [len(found["fail"]) for found in match(fails, {"n": [0, 0, 0, 1]})]
    [3]
    """

    @staticmethod
    def noSkip() -> NoSkipStrategy:
        """Emit every possible match; the default."""
        return NoSkipStrategy()

    @staticmethod
    def skipToNext() -> SkipToNextStrategy:
        """Discard partial matches that began with the same event as the match."""
        return SkipToNextStrategy()

    @staticmethod
    def skipPastLastEvent() -> SkipPastLastStrategy:
        """Discard partial matches that began before the match ended."""
        return SkipPastLastStrategy()

    @staticmethod
    def skipToFirst(patternName: str) -> SkipToFirstStrategy:
        """Discard partial matches that began before the first event of stage `patternName`."""
        return SkipToFirstStrategy(_named(patternName))

    @staticmethod
    def skipToLast(patternName: str) -> SkipToLastStrategy:
        """Discard partial matches that began before the last event of stage `patternName`."""
        return SkipToLastStrategy(_named(patternName))

    def isSkipStrategy(self) -> bool:
        """Whether anything is ever discarded."""
        return True

    def getPatternName(self) -> str | None:
        """Return the stage that the strategy names; None if it names none."""
        return None

    @abstractmethod
    def pruning_id(self, paths: Sequence[Mapping[str, Sequence[IdT]]]) -> IdT | None:
        """Return the deciding event id of an emitted match; None discards nothing."""

    def should_prune(self, start: IdT, pruning_id: IdT) -> bool:
        """Whether a partial match that began with event `start` is discarded."""
        return start <= pruning_id


def _named(name: str) -> str:
    if name is None:
        raise MissingConditionError(
            "The pattern name of a skip strategy cannot be null.", "name a stage of the pattern"
        )
    if not isinstance(name, str):
        raise InvalidArgumentError(
            f"skip strategy: expected the name of a stage, got {name!r}",
            "write skipToFirst('name'), or skipToLast('name')",
        )
    return name


@attrs.frozen
class NoSkipStrategy(AfterMatchSkipStrategy):
    """Discard nothing."""

    def isSkipStrategy(self) -> bool:
        """Return False: nothing is ever discarded."""
        return False

    def pruning_id(self, paths: Sequence[Mapping[str, Sequence[IdT]]]) -> IdT | None:
        """Return None."""
        return None


@attrs.frozen
class SkipToNextStrategy(AfterMatchSkipStrategy):
    """Discard partial matches that began with the match's first event, or earlier."""

    def pruning_id(self, paths: Sequence[Mapping[str, Sequence[IdT]]]) -> IdT | None:
        """Return the match's first event."""
        return min((ids[0] for path in paths for ids in path.values()), default=None)


@attrs.frozen
class SkipPastLastStrategy(AfterMatchSkipStrategy):
    """Discard partial matches that began before the match ended."""

    def pruning_id(self, paths: Sequence[Mapping[str, Sequence[IdT]]]) -> IdT | None:
        """Return the match's last event."""
        return max((ids[-1] for path in paths for ids in path.values()), default=None)


@attrs.frozen
class SkipToElementStrategy(AfterMatchSkipStrategy):
    """
    The common part of skipToFirst and skipToLast.

    Attributes
    ----------
    patternName : str
        The stage to skip to.
    shouldThrowException : bool
        Whether a match without that stage is an error.
    """

    patternName: str
    shouldThrowException: bool = False
    _place: ClassVar[int]  # Of the event to skip to, among those of the stage

    def throwExceptionOnMiss(self) -> SkipToElementStrategy:
        """Return a strategy that raises SkipError if there is nothing to skip to."""
        return attrs.evolve(self, shouldThrowException=True)

    def getPatternName(self) -> str | None:
        """Return the stage to skip to."""
        return self.patternName

    def should_prune(self, start: IdT, pruning_id: IdT) -> bool:
        """Whether `start` is before the event to skip to."""
        return start < pruning_id

    def pruning_id(self, paths: Sequence[Mapping[str, Sequence[IdT]]]) -> IdT | None:
        """Return the event to skip to; raise SkipError on a miss if requested."""
        target: IdT | None = None
        for path in paths:
            events = path.get(self.patternName)
            if events:
                element = events[self._place]
                target = element if target is None else max(target, element)
            elif self.shouldThrowException:
                found = {stage: list(ids) for stage, ids in path.items()}
                raise SkipError(
                    f"Could not skip to {self.patternName}. "
                    f"No such element in the found match {found}",
                    "leave throwExceptionOnMiss() out if the stage may stay empty",
                    stage=self.patternName,
                )
            if self.shouldThrowException and target == min(ids[0] for ids in path.values()):
                raise SkipError(
                    "Could not skip to first element of a match.",
                    f"skipping to stage {self.patternName!r} would find the same match again",
                    stage=self.patternName,
                )
        return target


@attrs.frozen
class SkipToFirstStrategy(SkipToElementStrategy):
    """Discard partial matches that began before the first event of a stage."""

    _place = 0


@attrs.frozen
class SkipToLastStrategy(SkipToElementStrategy):
    """Discard partial matches that began before the last event of a stage."""

    _place = -1
