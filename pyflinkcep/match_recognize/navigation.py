# SPDX-License-Identifier: Apache-2.0
"""Reads the leaves of expressions: columns, navigation, aggregates, CLASSIFIER and so on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

import attrs

from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.match_recognize.leaves import LABEL, Leaf
from pyflinkcep.match_recognize.names import Names

__all__ = ["LeafReader"]

_AGGREGATES = ("count", "sum", "avg", "min", "max")
_NAVIGATION = ("first", "last", "prev", "next")
_OF_A_MATCH = (*_AGGREGATES, *_NAVIGATION, "array_agg", "match_number", "match_rowtime")
_STANDARD = 'needs dialect="standard"'

_NONE: frozenset[str] = frozenset()
_MOST_OFFSET = 10_000


class _Error(Protocol):
    def __call__(
        self, what: str, hint: str, kind: type[CepError] | None = None, start: int = 0
    ) -> CepError: ...


class LeafReader:
    """
    Reads the leaves of one expression.

    Parameters
    ----------
    text : str
        The expression.
    final : collection of int
        The positions of functions after FINAL.
    names : Names
        The names of the clause.
    variable : str or None
        The variable whose condition it is; None for a measure.
    error : callable
        Makes an error about the expression: (what, hint, class, start).
    """

    def __init__(
        self,
        text: str,
        final: Collection[int],
        names: Names,
        variable: str | None,
        error: _Error,
    ) -> None:
        self._text = text
        self._final = final
        self._names = names
        self._variable = variable
        self._error = error

    def read(self, node: Syntax, bound: frozenset[str] = _NONE) -> Leaf | None:
        """Return a part as a leaf, None if it is not one; `bound` are a lambda's variables."""
        if node.form is Form.COLUMN:
            if node.value[0] in bound:
                return None
            return Leaf("last", self._owner(node), self.row_sql(node, bound))
        if node.form is not Form.CALL:
            return None
        name = node.value
        if name in ("prev", "next"):
            return self._physical(node)
        if name in ("first", "last"):
            return self._navigation(node)
        if name in _AGGREGATES or (name == "array_agg" and self._names.standard):
            return self._aggregate(node)
        if name == "classifier":
            return Leaf("last", self._owner(node), LABEL)
        if name == "match_number":
            self._only_standard("MATCH_NUMBER()", node)
            return Leaf("match_number", None)
        if name in ("match_rowtime", "match_proctime"):
            return self._time(node)
        return None

    def below(self, node: Syntax, bound: frozenset[str]) -> Iterator[Leaf]:
        """Yield the leaves below a part."""
        leaf = self.read(node, bound)
        if leaf is not None:
            yield leaf
            return
        if node.form is Form.LAMBDA:
            bound |= frozenset(node.value)
        for operand in node.operands:
            yield from self.below(operand, bound)

    def is_row_at_hand(self, leaf: Leaf) -> bool:
        """Whether a leaf is a value of the current row of a condition."""
        if leaf.function != "last" or leaf.offset or leaf.shift or leaf.has_label:
            return False
        return leaf.variable is None or self._variable in self._names.members(leaf.variable)

    def plain(self, tree: Syntax, is_decimal: Callable[[str], bool]) -> str:
        """
        Return the text in the language of conditions over stages.

        PREV and NEXT at offset 0 are their argument. Decimals, recognized by `is_decimal` from
        their SQL over one row, are summed as doubles.
        """
        pieces, at = [], 0
        for node in tree.walk():
            if node.form is not Form.CALL or node.start < at:
                continue
            inner = node.operands[0].bare() if node.operands else node
            shown = self._text[inner.start : inner.end]
            if node.value in ("prev", "next"):
                is_leaf = inner.form is Form.CALL and inner.value in ("first", "last")
                shown = shown if is_leaf else f"LAST({shown})"
            elif node.value in ("sum", "avg") and is_decimal(self.row_sql(inner, _NONE)):
                shown = f"{node.value}(cast({shown} as double))"
            else:
                continue
            pieces += [self._text[at : node.start], shown]
            at = node.end
        return "".join(pieces) + self._text[at:]

    def _time(self, node: Syntax) -> Leaf:
        if node.value == "match_proctime":
            raise self._error(
                "MATCH_PROCTIME(): processing time is not supported in SQL",
                "use MATCH_ROWTIME(), the event time",
                NotSupportedError,
                node.start,
            )
        if self._names.standard or self._variable is not None or len(node.operands) > 1:
            raise self._error(
                "MATCH_ROWTIME() is only for measures of Flink's dialect",
                "use LAST of the time column",
                None,
                node.start,
            )
        return Leaf("rowtime", None)

    # --- values at a row

    def _navigation(self, node: Syntax) -> Leaf:
        self._check_arguments(node, 2)
        argument = self._row_argument(node, node.operands[0])
        owner = self._common_owner(node, argument)
        final, offset = node.start in self._final, self._offset(node, 0)
        if self._variable is not None and offset > _MOST_OFFSET:
            raise self._error(
                f"{self._shown(node)}: an offset of more than {_MOST_OFFSET} in DEFINE",
                "compare COUNT instead: every partial match would keep that many values",
                NotSupportedError,
                node.operands[1].start,
            )
        return Leaf(node.value, owner, self.row_sql(argument, _NONE), offset, 0, final)

    def _physical(self, node: Syntax) -> Leaf:
        self._check_arguments(node, 2)
        offset = self._offset(node, 1)
        if offset and not self._names.standard:
            raise self._error(
                "Flink does not support physical offsets within partition.",
                'write LAST(A.x, 1) for the last row of A but one; dialect="standard" has PREV',
                NotSupportedError,
                node.start,
            )
        inner = node.operands[0].bare()
        if inner.form is Form.CALL and inner.value in ("first", "last"):
            leaf = self._navigation(inner)
        else:
            argument = self._row_argument(node, inner)
            owner = self._common_owner(node, argument)
            leaf = Leaf("last", owner, self.row_sql(argument, _NONE))
        return attrs.evolve(leaf, shift=-offset if node.value == "prev" else offset)

    def _check_arguments(self, node: Syntax, most: int) -> None:
        if not 1 <= len(node.operands) <= most:
            raise self._error(
                f"{self._shown(node)} has {len(node.operands)} arguments",
                f"write {node.value.upper()}(A.x)" + (", or with an offset" if most > 1 else ""),
                None,
                node.start,
            )

    def _offset(self, node: Syntax, default: int) -> int:
        if len(node.operands) < 2:
            return default
        written = self._shown(node.operands[1])
        if not written.isdecimal() or len(written) > 9:
            raise self._error(
                f"{self._shown(node)}: expected an integer offset, got {written}",
                "write a literal such as 1",
                None,
                node.operands[1].start,
            )
        return int(written)

    def _row_argument(self, around: Syntax, tree: Syntax) -> Syntax:
        """Refuse what cannot be computed from one row."""
        name = around.value.upper()
        if around.detail:
            raise self._error(
                f"DISTINCT in {name}", "count distinct values in a subquery", None, around.start
            )
        for node in tree.walk():
            if node.form is Form.OPAQUE:
                raise self._error(f"a subquery inside {name}", "join first", None, node.start)
            if node.form is Form.STAR:
                raise self._error(f"* inside {name}", "* is for COUNT", None, node.start)
            if node.form is not Form.CALL or node.value not in _OF_A_MATCH:
                continue
            is_aggregate = node.value in (*_AGGREGATES, "array_agg")
            what = "an aggregate" if is_aggregate else node.value.upper()
            raise self._error(
                f"{what} inside {name}",
                "move it outside: SUM(A.x) - FIRST(A.x) * COUNT(A.x)",
                None,
                node.start,
            )
        return tree

    # --- aggregates

    def _aggregate(self, node: Syntax) -> Leaf:
        self._check_arguments(node, 1)
        argument, final = node.operands[0].bare(), node.start in self._final
        if node.value == "count" and argument.form is Form.STAR:
            if argument.value and not self._names.standard:
                raise self._error(
                    f"{self._shown(node)}: Unknown field '*'",
                    'count a column that is never null, or use dialect="standard"',
                    NotSupportedError,
                    node.start,
                )
            owner = self._owner(argument) if argument.value else None
            return Leaf("count", owner, None, final=final)
        argument = self._row_argument(node, argument)
        owner = self._common_owner(node, argument)
        return Leaf(node.value, owner, self.row_sql(argument, _NONE), final=final)

    # --- names

    def _common_owner(self, around: Syntax, tree: Syntax) -> str | None:
        owners = list(dict.fromkeys(map(self._owner, _owned(tree, _NONE))))
        if len(owners) > 1:
            shown = ", ".join("no variable" if name is None else name for name in owners)
            raise self._error(
                f"{self._shown(around)} is over two variables ({shown})",
                f"write one {around.value.upper()} for each variable",
                None,
                around.start,
            )
        return owners[0] if owners else None

    def _owner(self, node: Syntax) -> str | None:
        """Return the variable of a column, star or CLASSIFIER; None for all."""
        if node.form is Form.CALL:
            return self._classified(node)
        name: str = node.value[0]
        if len(node.value) == 1 and node.form is Form.COLUMN:
            return None
        variable = self._names.variable(name)
        if variable is not None:
            return variable
        if self._names.is_column(name) and node.form is Form.COLUMN:
            return None  # a field of a struct
        shown = self._shown(node)
        if name == self._names.alias:
            raise self._error(
                f"{shown!r}: {name} is the table, not a variable of PATTERN; Flink would take it "
                "for a variable without rows",
                f"write {shown.partition('.')[2]} for the current row",
                None,
                node.start,
            )
        raise self._error(
            f"{shown!r}: {name} is not a variable of PATTERN", self._names.nearest(name), None,
            node.start,
        )  # fmt: skip

    def _classified(self, node: Syntax) -> str | None:
        self._only_standard("CLASSIFIER()", node)
        if not node.operands:
            return None
        argument = node.operands[0]
        is_name = argument.form is Form.COLUMN and len(argument.value) == 1
        name = argument.value[0] if is_name else self._shown(argument)
        variable = None if len(node.operands) > 1 else self._names.variable(name)
        if variable is None:
            raise self._error(
                f"{self._shown(node)}: {name} is not a variable of PATTERN",
                self._names.nearest(name),
                None,
                node.start,
            )
        return variable

    def row_sql(self, tree: Syntax, bound: frozenset[str]) -> str:
        """Return a part about one row as SQL over its columns, without variables."""
        pieces, at = [], tree.start
        for node in _owned(tree, bound):
            if node.form is Form.CALL:
                inner = LABEL
                if node.value in _NAVIGATION:  # of the current row, so it is its argument
                    inner = f"({self.row_sql(node.operands[0], bound)})"
                pieces += [self._text[at : node.start], inner]
                at = node.end
            elif self._owner(node) is not None:
                pieces.append(self._text[at : node.start])
                at = node.inner
        return "".join(pieces) + self._text[at : tree.end]

    # --- errors

    def _only_standard(self, what: str, node: Syntax) -> None:
        if not self._names.standard:
            raise self._error(
                f"{what} {_STANDARD}", 'use dialect="standard"', NotSupportedError, node.start
            )

    def _shown(self, node: Syntax) -> str:
        return self._text[node.start : node.end]


def _owned(tree: Syntax, bound: frozenset[str]) -> Iterator[Syntax]:
    """Yield the columns, CLASSIFIERs and navigations of a part, in the order of the text."""
    if tree.form is Form.COLUMN:
        if tree.value[0] not in bound:
            yield tree
        return
    if tree.form is Form.CALL and tree.value in ("classifier", *_NAVIGATION):
        yield tree
        return
    if tree.form is Form.LAMBDA:
        bound |= frozenset(tree.value)
    for operand in tree.operands:
        yield from _owned(operand, bound)
