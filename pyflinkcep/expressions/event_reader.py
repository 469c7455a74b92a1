# SPDX-License-Identifier: Apache-2.0
"""SQL about one event as a tree, all of it: Python evaluates what Spark otherwise would."""

from __future__ import annotations

from collections.abc import Mapping

from pyflinkcep.expressions.literals import UNITS_US
from pyflinkcep.expressions.names import Names
from pyflinkcep.expressions.operators import Operators
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.text import quoted_name
from pyflinkcep.expressions.tokens import string_value
from pyflinkcep.expressions.tree import Call, Column, Literal, Tree

__all__ = ["EventReader"]

_OF_UNITS = ("timestampadd", "dateadd", "date_add")
_OPERATORS = ("&", "|", "^", "~", "<<", ">>", ">>>", "rlike", "regexp", "ilike")
_TIMES = ("date", "timestamp", "timestamp_ntz")


class EventReader(Operators):
    """
    Converts SQL about one event to a tree, whose columns are names.

    What conditions over several events refuse is a :class:`Call` here.

    Parameters
    ----------
    text : str
        The SQL.
    given : mapping of Syntax to int, optional
        The parts that are not read, for their values are given: columns whose index is this number.
    """

    def __init__(self, text: str, given: Mapping[Syntax, int] | None = None) -> None:
        super().__init__(Names(text, "", None))
        self._given = given or {}

    def part(self, tree: Syntax) -> Tree:
        """Return a part's meaning."""
        node = tree
        while node not in self._given and node.form is Form.PAREN:
            node = node.operands[0]
        if node in self._given:
            return Column(None, index=str(self._given[node]), text=self._written(node))
        return super().part(node)

    def _leaf(self, node: Syntax) -> Tree | None:
        if node.form is not Form.COLUMN:
            return self._constant(node)
        first, *fields = node.value
        found: Tree = Column(quoted_name(first), text=first, span=(node.start, node.end))
        for field in fields:
            found = Call(".", (found,), field, self._written(node), (node.start, node.end))
        return found

    def _shifted(self, node: Syntax) -> Tree | None:
        return None

    def _inside_one(self, node: Syntax) -> Tree | None:
        return None  # each part is computed by itself

    def _other(self, node: Syntax, _what: str = "", _hint: str = "") -> Tree:
        if node.form is Form.CALL:
            return self._function_of_event(node)
        if node.form is Form.TYPED:
            return self._typed(node)
        if node.form is Form.OPERATION and node.value in _OPERATORS and not node.detail:
            parts = tuple(map(self.part, node.operands))
            return Call(node.value, parts, "", self._written(node), (node.start, node.end))
        return self._opaque(node)

    def _opaque(self, node: Syntax) -> Call:
        return Call("", (), "", self._written(node), (node.start, node.end))

    def _function_of_event(self, node: Syntax) -> Tree:
        name, operands, detail = node.value, node.operands, node.detail
        if name in _OF_UNITS and len(operands) == 3:
            unit, operands = operands[0], operands[1:]
            detail = str(unit.value).upper()
            if unit.form is not Form.WORD or detail not in UNITS_US:
                return self._opaque(node)
        elif name == ":":
            return self._opaque(node)
        parts = tuple(map(self.part, operands))
        return Call(name, parts, detail, self._written(node), (node.start, node.end))

    def _typed(self, node: Syntax) -> Call:
        type_, text = node.value
        if type_.lower() not in _TIMES:
            return self._opaque(node)
        value = Literal(string_value(text), text)
        return Call("cast", (value,), type_, self._written(node), (node.start, node.end))
