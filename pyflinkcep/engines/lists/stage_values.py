# SPDX-License-Identifier: Apache-2.0
"""SQL over stages as conditions on chosen events, if each stage takes one event."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.arrays import OPERATIONS
from pyflinkcep.expressions.compiler import condition_code
from pyflinkcep.expressions.leaf_fields import LeafFields
from pyflinkcep.expressions.program import Code, Kind, Op, Type
from pyflinkcep.expressions.tree import Column, Leaf, Literal, Operation, Tree, rewritten

__all__ = ["StageValues", "is_true"]

_OF_ONE = ("first", "last", "min", "max", "sum")
"""The aggregates that are the value itself if there is one event."""

_ARITHMETIC = (Op.ADD, Op.SUB, Op.MUL, Op.MOD, Op.PMOD, Op.NEG, Op.FLOOR, Op.CEIL)
_CONSTANTS = (Op.INT, Op.FLOAT)
_COMPUTED = (
    Op.FIELD, Op.TEXT, Op.NULL, Op.ROUND, Op.STARTS_WITH, Op.JUMP_IF_FALSE,
    Op.JUMP_IF_TRUE, *_CONSTANTS, *OPERATIONS,
)  # fmt: skip


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

        found = self._with_truths(rewritten(tree, leaf))
        problem = self._problem(condition_code(found, LeafFields(self.kinds), self.stage))
        if problem is not None:
            raise refused(problem)
        return found

    def _with_truths(self, tree: Tree) -> Tree:
        """Return a condition with tests of booleans, which are stored as numbers."""
        if isinstance(tree, Column):
            return is_true(tree)
        if isinstance(tree, Operation) and tree.operator in ("and", "or", "not"):
            operands = tuple(map(self._with_truths, tree.operands))
            return attrs.evolve(tree, operands=operands)
        return tree

    def _problem(self, code: Code) -> str | None:
        """Return why lists cannot run a program; None if they can."""
        for (before, value), (op, operand) in pairwise(((Op.NULL, None), *code)):
            if op not in _COMPUTED:
                return f"{op.name} is computed for partial matches only"
            if self.ansi and op in _ARITHMETIC and operand != Type.FLOAT:
                return "whole numbers may overflow, which is an error: cast one to double"
            divides = op in (Op.DIV, Op.MOD, Op.PMOD)
            if self.ansi and divides and not (before in _CONSTANTS and value):
                return "it may divide by zero, which is an error"
        return None


def is_true(column: Column) -> Operation:
    """Return the condition that a boolean of an event is true."""
    return Operation("<>", (column, Literal(False, "false")))
