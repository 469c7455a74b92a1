# SPDX-License-Identifier: Apache-2.0
"""DEFINE with Flink's meaning as conditions over stages."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.expressions.grammar import Form, Syntax
from pyflinkcep.expressions.parser import Names, condition_of
from pyflinkcep.expressions.tree import Aggregate
from pyflinkcep.match_recognize.expressions import Expression

_MOVES = ("prev", "next")
_ENDS = ("first", "last")


def flink_condition(
    expression: Expression, variable: str, known: Collection[str]
) -> IterativeCondition:
    """
    Return a condition of a variable over stages, of which all are known.

    PREV and NEXT, at offset 0, are their argument.
    """
    return condition_of(expression.syntax, _Names(expression, variable, known))


class _Names(Names):
    """Reads PREV and NEXT as what they are over stages."""

    def __init__(self, expression: Expression, stage: str, known: Collection[str]) -> None:
        super().__init__(expression.read, stage, known)
        calls = [node for node, _ in expression.placed if node.form is Form.CALL]
        moves = (node for node in calls if node.value in _MOVES)
        self._other = {(node.start, node.end): self._in_place_of(node) for node in moves}

    def _in_place_of(self, node: Syntax) -> str:
        """Return what a function is called over stages."""
        inner = node.operands[0].bare()
        shown = self._text[inner.start : inner.end]
        return shown if _is_end(inner) else f"LAST({shown})"

    def between(self, start: int, end: int) -> str:
        """Return the text between two positions, in the language of conditions over stages."""
        return "".join(self._pieces(start, end))

    def _pieces(self, start: int, end: int) -> Iterator[str]:
        for (begins, ends), other in self._other.items():
            if start <= begins and ends <= end:
                yield self._text[start:begins]
                yield other
                start = ends
        yield self._text[start:end]

    def is_aggregate(self, call: Syntax) -> bool:
        """Whether a function is an aggregate."""
        return call.value in _MOVES or super().is_aggregate(call)

    def value_inside(self, call: Syntax) -> Syntax:
        """Return what an aggregate is the value of."""
        inner = super().value_inside(call)
        return super().value_inside(inner) if call.value in _MOVES and _is_end(inner) else inner

    def aggregate(self, part: Syntax) -> Aggregate:
        """Return an aggregate."""
        if part.form is Form.CALL and part.value in _MOVES:
            inner = part.operands[0].bare()
            if _is_end(inner):
                return super().aggregate(inner)
            return self.last(inner, self.written(part))
        return super().aggregate(part)


def _is_end(node: Syntax) -> bool:
    return node.form is Form.CALL and node.value in _ENDS
