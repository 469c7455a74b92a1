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
from pyflinkcep.expressions.sql_values import truth
from pyflinkcep.match_recognize.expressions import Expression

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
        if leaf.fold is not None:
            fold_function(leaf.fold)
    value = part_function(expression.read, expression.syntax, dict(expression.placed))
    return Condition(
        variable, expression.text, expression.leaves, (), _Holds(value), is_evaluated=True
    )


@attrs.frozen(eq=False)
class _Holds:
    """Whether a condition holds, given the values of its leaves."""

    value: Callable[[Any], Any]

    def __call__(self, values: Sequence[Any]) -> bool:
        try:
            return truth(self.value(values)) is True
        except InputError as cause:
            raise ArithmeticError(cause.message) from cause
