# SPDX-License-Identifier: Apache-2.0
"""Conditions that no program can say, evaluated in Python on the values of their leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.rows.folding import fold_function
from pyflinkcep.engines.rows.values import Condition
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.evaluator import part_function
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.sql_values import truth
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.leaves import LEAF

__all__ = ["evaluated_condition"]


def evaluated_condition(variable: str, expression: Expression) -> Condition:
    """
    Return the condition of a variable, whose leaves have the values that Spark gives them.

    Raises
    ------
    NotSupportedError
        If only Spark can evaluate something in it.
    """
    for leaf in expression.leaves:
        if leaf.function == "fold":
            fold_function(leaf)
    names = [f"{LEAF}{number}" for number in range(len(expression.leaves))]
    function = _Holds(part_function(expression.sql, parsed(expression.sql)), names, expression)
    return Condition(
        variable, expression.text, expression.leaves, (), function,
        is_evaluated=True,
    )  # fmt: skip


@attrs.frozen(eq=False)
class _Holds:
    """Whether a condition holds, given the values of its leaves."""

    function: Callable[[Any], Any]
    names: Sequence[str]
    expression: Expression

    def __call__(self, values: Sequence[Any]) -> bool:
        try:
            return truth(self.function(dict(zip(self.names, values, strict=True)))) is True
        except InputError as cause:
            raise ArithmeticError(self.expression.told(cause.message)) from cause
