# SPDX-License-Identifier: Apache-2.0
"""How the matches of a pattern on a DataFrame are found."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.choice import EVENT_LISTS, Evaluation, chosen_for_pattern
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.order import TieOrder
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.plan.expressions import compiled_expressions

__all__ = ["PatternEvaluation"]

_WAYS = {
    "toDF(), select() and flatSelect()": (False, False),
    "process()": (False, True),
    "timeouts, funnel() and reached()": (True, False),
}
"""The ways to use matches, by whether they need timeouts and whether they see their order."""


@attrs.frozen(eq=False)
class PatternEvaluation:
    """
    The choice of an evaluation.

    Attributes
    ----------
    pattern : Pattern
        The pattern.
    dataframe : DataFrame
        Its events.
    comparator : callable, OrderColumns or None
        Orders events of equal time.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.
    asked : {"auto", "nfa", "eventLists"}
        What the user requested.
    """

    pattern: Pattern
    dataframe: DataFrame
    comparator: TieOrder | None
    limit: PartialMatchLimit | None
    asked: str

    def chosen(
        self,
        nfa: NFA,
        expressions: CompiledExpressions | None,
        observed: bool,
        sees_order: bool,
    ) -> Evaluation:
        """
        Return how matches are found.

        Parameters
        ----------
        nfa : NFA
            The compiled pattern.
        expressions : CompiledExpressions or None
            Its SQL over stages.
        observed : bool
            Whether partial matches are seen: timeouts, or stages reached.
        sees_order : bool
            Whether the order of matches is.

        Raises
        ------
        NotSupportedError
            If lists were requested and could differ from the automaton; the message says why.
        """
        obstacle = next((why for why, there in self._obstacles(nfa, observed) if there), "")
        return chosen_for_pattern(self.pattern, nfa, expressions, self.asked, obstacle, sees_order)

    def explained(self) -> dict[str, Evaluation]:
        """Return how matches are found for each way to use them."""
        nfa = NFACompiler.compile(self.pattern)
        expressions = (
            None if self.dataframe.isStreaming else compiled_expressions(nfa, self.dataframe)
        )
        free = self
        if self.asked == EVENT_LISTS:  # where that is refused, say why instead
            free = attrs.evolve(self, asked="auto")
            self.chosen(nfa, expressions, *_WAYS["toDF(), select() and flatSelect()"])
        return {way: free.chosen(nfa, expressions, *seen) for way, seen in _WAYS.items()}

    def _obstacles(self, nfa: NFA, observed: bool) -> Iterator[tuple[str, bool]]:
        """Yield reasons against lists, whatever the pattern, and whether each applies."""
        yield "a stream keeps partial matches in its state", self.dataframe.isStreaming
        yield "timeouts or a funnel are requested, and lists have no partial matches", observed
        yield "a comparator orders events of equal time", self.comparator is not None
        yield "maxPartialMatches is set, and lists have no partial matches", bool(self.limit)
        for atom in nfa.atoms:
            is_asked_here = bool(atom.bit) and not isinstance(atom.condition, ExpressionCondition)
            yield f"{atom.condition!r} of stage {atom.stage!r} is not SQL", is_asked_here
