# SPDX-License-Identifier: Apache-2.0
"""What conditions say about null."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.migrate.meaning.tree import Binary, Call, Const, Expression, Unary

__all__ = ["non_null_if"]


def non_null_if(condition: Expression, holds: bool) -> frozenset[Expression]:
    """Return what cannot be null if a condition holds, or does not hold."""
    return frozenset(_facts(condition, holds))


def _facts(of: Expression, holds: bool) -> Iterator[Expression]:
    match of:
        case Unary(operator="!", operand=operand):
            yield from _facts(operand, not holds)
        case Call(name="is null", operands=(operand,)) if not holds:
            yield operand
        case Call(name="has any", operands=(whole,)) if holds:
            yield whole
        case Call(name="List.isEmpty", operands=(whole,)) if not holds:
            yield whole
        case Call(name="equals" | "Objects.equals", operands=(a, b)) if holds:
            yield from (a, b) if isinstance(b, Const) or isinstance(a, Const) else (a,)
        case Binary(operator="&&", left=left, right=right) if holds:
            yield from _facts(left, True)
            yield from _facts(right, True)
        case Binary(operator="||", left=left, right=right) if not holds:
            yield from _facts(left, False)
            yield from _facts(right, False)
