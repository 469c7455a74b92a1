# SPDX-License-Identifier: Apache-2.0
"""SQL over stages as conditions on chosen events, if each stage takes one event."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.compiler import condition_code
from pyflinkcep.expressions.leaf_fields import LeafFields
from pyflinkcep.expressions.program import Code, Kind, Op, Type
from pyflinkcep.expressions.rules import RULES
from pyflinkcep.expressions.tree import Column, Leaf, Tree, rewritten
from pyflinkcep.expressions.unbranched import unbranched

__all__ = ["StageValues"]

_OF_ONE = ("first", "last", "min", "max", "sum")
"""The aggregates that are the value itself if there is one event."""

_WHOLE = (Op.FLOOR, Op.CEIL)
_CONSTANTS = (Op.INT, Op.FLOAT)
_NOT_COMPUTED = (Op.SLOT, Op.ADD_PASSING, Op.CONCAT)
"""What stands for several events of a stage, and texts that no event has."""


@attrs.frozen
class StageValues:
    """
    The values that the condition of a stage reads.

    Attributes
    ----------
    stage : str
        The stage.
    before : collection of str
        The earlier stages; each takes one event.
    kinds : mapping of str to Kind
        The types of values of one event, by their SQL.
    ansi : bool
        Whether overflow and division by zero are errors.
    """

    stage: str
    before: Collection[str]
    kinds: Mapping[str, Kind]
    ansi: bool

    def condition(self, tree: Tree, refused: Callable[[str], NotSupportedError]) -> Tree:
        """
        Return a condition on the events of stages.

        Parameters
        ----------
        tree : Tree
            A match expression.
        refused : callable
            Makes the error for a reason.

        Raises
        ------
        NotSupportedError
            If lists cannot compute it, or could miss an error that a partial match would raise.
        """

        def leaf(part: Leaf) -> Column:
            if isinstance(part, Column):
                return Column(part.sql, self.stage)
            if part.stage not in self.before:
                raise refused(f"it reads {part.stage!r}, which is not an earlier stage")
            if part.function not in _OF_ONE or part.offset or part.argument is None:
                raise refused(
                    f"it counts or averages what {part.stage!r} has taken, or reads further back"
                )
            return Column(part.argument, part.stage)

        found = rewritten(tree, leaf)
        code = condition_code(found, LeafFields(self.kinds), self.stage)
        problem = self._problem(unbranched(code))
        if problem is not None:
            raise refused(problem)
        return found

    def _problem(self, code: Code) -> str | None:
        """Return why lists cannot run a program; None if they can."""
        for (before, value), (op, operand) in pairwise(((Op.NULL, None), *code)):
            if op in _NOT_COMPUTED:
                return f"{op.name} is computed for partial matches only"
            rule = RULES.get(op)
            if not self.ansi or rule is None:
                continue
            if op in _WHOLE or (rule.has_range and operand != Type.FLOAT):
                return "whole numbers may overflow, which is an error: cast one to double"
            if rule.divides and not (before in _CONSTANTS and value):
                return "it may divide by zero, which is an error"
        return None
