# SPDX-License-Identifier: Apache-2.0
"""DEFINE with Flink's meaning as conditions over stages."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.expressions.grammar import Form, Syntax
from pyflinkcep.expressions.parser import condition_of
from pyflinkcep.expressions.tree import WHOLE, Aggregate
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.leaves import LeafNames

_MOVES = ("prev", "next")
_ENDS = ("first", "last")


def flink_condition(expression: Expression, variable: str) -> IterativeCondition:
    """Return a condition of a variable over stages; PREV and NEXT, at offset 0, are no moves."""
    return condition_of(expression.syntax, _Stages(expression, variable))


class _Stages(LeafNames):
    """
    Reads leaves as what the stages of a partial match have taken.

    The events of the variable whose condition it is, and those of the match, include the current
    one: the last of them is about the event alone.
    """

    shifts_inside = True

    def __init__(self, expression: Expression, stage: str) -> None:
        super().__init__(expression.read, expression.placed, expression.leaves, True, stage)
        self._moves = [
            node for node, _ in expression.placed if node.form is Form.CALL and node.value in _MOVES
        ]

    def between(self, start: int, end: int) -> str:
        """Return the text between two positions, in the language of conditions over stages."""
        return "".join(self._pieces(start, end))

    def _pieces(self, start: int, end: int) -> Iterator[str]:
        for move in self._moves:
            if start <= move.start and move.end <= end:
                inner = move.operands[0].bare()
                shown = self._text[inner.start : inner.end]
                yield self._text[start : move.start]
                yield shown if _is_call(inner, _ENDS) else f"LAST({shown})"
                start = move.end
        yield self._text[start:end]

    def is_about_event(self, part: Syntax) -> bool:
        """Whether a part reads only the current event."""
        read = map(self.aggregate, self.aggregates(part))
        return all((of.function, of.offset, of.with_event) == ("last", 0, True) for of in read)

    def owners(self, part: Syntax) -> Iterator[str]:
        """Yield nothing: all columns are of rows."""
        return iter(())

    def event_sql(self, part: Syntax) -> str:
        """Return a part about the event in Spark's form: x for last(own.x), which it lacks."""
        pieces, at = [], part.start
        for node in self.aggregates(part):
            value = node
            while value.form is Form.PAREN or _is_call(value, (*_MOVES, *_ENDS)):
                value = value.operands[0]
            sql = self.leaf(node).argument or ""
            pieces += [
                self._text[at : node.start],
                sql if value.form is Form.COLUMN else f"({sql})",
            ]
            at = node.end
        return "".join(pieces) + self._text[at : part.end]

    def aggregate(self, part: Syntax) -> Aggregate:
        """Return a leaf as an aggregate of the events that a stage has taken."""
        leaf, text = self.leaf(part), self.written(part)
        stage = leaf.stage or WHOLE
        counts_event = stage in (WHOLE, self.stage)
        return Aggregate(leaf.function, stage, leaf.argument, text, leaf.offset, counts_event)


def _is_call(node: Syntax, functions: tuple[str, ...]) -> bool:
    return node.form is Form.CALL and node.value in functions
