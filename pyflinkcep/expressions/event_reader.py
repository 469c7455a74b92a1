# SPDX-License-Identifier: Apache-2.0
"""SQL about one event as a tree, all of it: Python evaluates what Spark otherwise would."""

from __future__ import annotations

from collections.abc import Mapping

from pyflinkcep.expressions.literals import UNITS_US
from pyflinkcep.expressions.names import Names
from pyflinkcep.expressions.operators import Operators
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.text import quoted_name
from pyflinkcep.expressions.tokens import TokenKind, string_value, tokenized
from pyflinkcep.expressions.tree import Call, Column, Literal, Tree

__all__ = ["EventReader"]

_OF_UNITS = ("timestampadd", "dateadd", "date_add")
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
        elif name == ".":
            detail = _last_name(self._written(node))
        elif name == ":":
            return self._opaque(node)
        parts = tuple(map(self.part, operands))
        return Call(name, parts, detail, self._written(node), (node.start, node.end))

    def _typed(self, node: Syntax) -> Call:
        written = self._written(node)
        begin = written.index(written[-1])
        type_ = written[:begin].strip()
        if type_.lower() not in _TIMES:
            return self._opaque(node)
        value = Literal(string_value(written[begin:]), written[begin:])
        return Call("cast", (value,), type_, written, (node.start, node.end))


def _last_name(text: str) -> str:
    """Return the name at the end of a text."""
    return [token.text for token in tokenized(text) if token.kind is TokenKind.NAME][-1]
