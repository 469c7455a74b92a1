# SPDX-License-Identifier: Apache-2.0
"""Reads the names in expressions, and turns parts about one row into SQL over its columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from pyflinkcep.errors import CepError, NotSupportedError, counted
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.template import joined
from pyflinkcep.match_recognize.aggregates import AGGREGATES, FOLDS
from pyflinkcep.match_recognize.leaves import LABEL
from pyflinkcep.match_recognize.names import Names

__all__ = ["NO_NAMES", "RowReader"]

_NAVIGATION = ("first", "last", "prev", "next")
_STANDARD = 'needs dialect="standard"'
_ALIASES = {"lag": "prev", "lead": "next", "arbitrary": "any_value"}
"""Other systems' names of functions."""
_WITHOUT_BRACKETS = ("classifier", "match_number")
_OF_A_MATCH = (*_NAVIGATION, "match_number", "match_sequence_number", "match_rowtime")
NO_NAMES: frozenset[str] = frozenset()


class _Error(Protocol):
    def __call__(
        self, what: str, hint: str, kind: type[CepError] | None = None, start: int = 0
    ) -> CepError: ...


class RowReader:
    """
    Reads the parts of one expression that are about one row.

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
    over : str, optional
        The window of Spark's that is the partition in its order. With it, values of rows at a fixed
        distance are read as values of the current row.
    """

    def __init__(
        self,
        text: str,
        final: Collection[int],
        names: Names,
        variable: str | None,
        error: _Error,
        over: str | None = None,
    ) -> None:
        self._over = over
        self._text = text
        self._final = final
        self._names = names
        self._variable = variable
        self._error = error

    def function(self, node: Syntax) -> str | None:
        """
        Return the name of a function as it is called here; None for other parts.

        In the standard's dialect, other systems' names are understood, and CLASSIFIER without
        brackets unless a column has that name.
        """
        if node.form is Form.CALL or (node.form is Form.OPAQUE and node.detail):
            name = str(node.value)
            return _ALIASES.get(name, name) if self._names.standard else name
        if node.form is Form.COLUMN and len(node.value) == 1 and self._names.standard:
            name = str(node.value[0]).lower()
            if name in _WITHOUT_BRACKETS and not self._names.is_column(name):
                return name
        return None

    def check_opaque(self, node: Syntax) -> None:
        """Refuse a window function, and what Flink would not take."""
        if node.value == "over" or not self._names.standard:
            what = "a subquery" if node.value is None else "a window function"
            raise self._error(
                what, "join first, or compute it in a subquery", NotSupportedError, node.start
            )

    def _check_one_row(self, name: str, tree: Syntax, *, may_number: bool = False) -> None:
        for node in tree.walk():
            if node.form is Form.OPAQUE and not node.detail:
                self.check_opaque(node)
                continue
            if node.form is Form.STAR:
                raise self._error(f"* inside {name}", "* is for COUNT", None, node.start)
            inner = self.function(node)
            is_aggregate = inner in AGGREGATES or inner in FOLDS
            if inner == "match_number" and may_number:
                self._check_number(node)
            elif is_aggregate or inner in _OF_A_MATCH:
                what = "an aggregate" if is_aggregate else self._called(node)
                hint = "move it outside: SUM(A.x) - FIRST(A.x) * COUNT(A.x)"
                if inner == "match_number":
                    hint = "move it outside: it is the same number in all rows of the match"
                raise self._error(
                    f"{what} inside {name}",
                    hint,
                    None,
                    node.start,
                )

    def _check_number(self, node: Syntax) -> None:
        self._only_standard("MATCH_NUMBER()", node)
        if node.operands:
            raise self._error(
                f"{self._shown(node)} has an argument", "write MATCH_NUMBER()", None, node.start
            )

    def _offset(self, node: Syntax, default: int) -> int:
        if len(node.operands) < 2:
            return default
        written = self._shown(node.operands[1])
        if not written.isdecimal() or len(written) > 9:
            raise self._error(
                f"{self._shown(node)}: expected an integer offset up to 999999999, got {written}",
                "write a literal such as 1",
                None,
                node.operands[1].start,
            )
        return int(written)

    # --- names

    def _common_owner(self, around: Syntax, *trees: Syntax) -> str | None:
        owned = (node for tree in trees for node in self._owned(tree, NO_NAMES))
        owners = list(dict.fromkeys(map(self._owner, owned)))
        if len(owners) > 1:
            shown = ", ".join("no variable" if name is None else name for name in owners)
            raise self._error(
                f"{self._shown(around)} is over two variables ({shown})",
                f"write one {self._called(around)} for each variable",
                None,
                around.start,
            )
        return owners[0] if owners else None

    def _owner(self, node: Syntax) -> str | None:
        """Return the variable of a column, star or CLASSIFIER; None for all."""
        if self.function(node) == "classifier":
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
            flink = "; Flink would take it for a variable without rows"
            raise self._error(
                f"{shown!r}: {name} is the table, not a variable of PATTERN"
                f"{'' if self._names.standard else flink}",
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
        variable = self._names.variable(name)
        if len(node.operands) > 1:
            raise self._error(
                f"{self._shown(node)} has {counted(len(node.operands), 'argument')}",
                "name one variable, or a union of them by SUBSET",
                None,
                node.start,
            )
        if variable is None:
            raise self._error(
                f"{self._shown(node)}: {name} is not a variable of PATTERN",
                self._names.nearest(name),
                None,
                node.start,
            )
        return variable

    def row_sql(self, tree: Syntax, bound: frozenset[str], *, is_there: bool = False) -> str:
        """
        Return a part about one row as SQL over its columns, without variables.

        If `is_there`, the row is the one that PREV and NEXT lead to.
        """
        pieces, at = list[str](), tree.start
        for node in self._owned(tree, bound):
            function = self.function(node)
            if function is not None:
                inner: str = LABEL
                if function in _NAVIGATION:  # of the current row, so it is its argument
                    value = self.row_sql(node.operands[0], bound, is_there=is_there)
                    inner = joined(("(", value, ")"))
                    moves = function in ("prev", "next") and not is_there
                    if moves and self._over is not None:
                        other = "lag" if function == "prev" else "lead"
                        offset = self._offset(node, 1)
                        inner = joined((f"{other}(", inner, f", {offset}) OVER ({self._over})"))
                pieces += [self._text[at : node.start], inner]
                at = node.end
            elif self._owner(node) is not None:
                pieces.append(self._text[at : node.start])
                at = node.inner
        return joined((*pieces, self._text[at : tree.end]))

    # --- errors

    def _only_standard(self, what: str, node: Syntax) -> None:
        if not self._names.standard:
            raise self._error(
                f"{what} {_STANDARD}", 'use dialect="standard"', NotSupportedError, node.start
            )

    def _shown(self, node: Syntax) -> str:
        return self._text[node.start : node.end]

    def _called(self, node: Syntax) -> str:
        return str(self.function(node)).upper()

    def _owned(self, tree: Syntax, bound: frozenset[str]) -> Iterator[Syntax]:
        """Yield the columns, CLASSIFIERs, navigations and A.* of a part, in text order."""
        name = self.function(tree)
        if name in ("classifier", *_NAVIGATION) or (tree.form is Form.STAR and tree.value):
            yield tree
        elif name == "match_number" and tree.form is Form.COLUMN:
            return
        elif tree.form is Form.COLUMN:
            if tree.value[0] not in bound:
                yield tree
        else:
            if tree.form is Form.LAMBDA:
                bound |= frozenset(tree.value)
            for operand in tree.operands:
                yield from self._owned(operand, bound)
