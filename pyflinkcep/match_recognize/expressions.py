# SPDX-License-Identifier: Apache-2.0
"""Splits expressions of DEFINE and MEASURES into values of the match and the SQL around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.grammar import Form, Guard, Syntax, divides, guards_of, may_fail, parsed
from pyflinkcep.expressions.tokens import SqlSyntaxError, Token, TokenKind, string_value, tokenized
from pyflinkcep.expressions.tree import Tree, leaves
from pyflinkcep.match_recognize.leaves import AGGREGATES, FOLDS, Leaf, leaf_tree
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.navigation import LeafReader
from pyflinkcep.match_recognize.tokens import with_array_calls
from pyflinkcep.match_recognize.tree import Span, Text

_ALONE = (Form.LITERAL, Form.INTERVAL, Form.WORD)


@attrs.frozen(eq=False)
class Expression:
    """An expression, split into leaves and SQL."""

    text: str  # The expression as it was written
    span: Span  # Its position in the statement
    leaves: tuple[Leaf, ...]  # The leaves, each once
    # The expression as it was read: without RUNNING and FINAL, and with what Spark needs inside
    # subqueries.
    read: str
    syntax: Syntax  # The same, parsed
    # The parts that are leaves, each with the number of its leaf, in the order of the text.
    placed: tuple[tuple[Syntax, int], ...]
    # A condition of the standard dialect as a tree of leaves, or why it has none.
    tree: Tree | CepError | None = None

    def sql(self, column: Callable[[Leaf], str]) -> str:
        """Return the expression as SQL over columns, given what stands for each leaf."""
        pieces, at = [], 0
        for part, number in self.placed:
            pieces += [self.read[at : part.start], column(self.leaves[number])]
            at = part.end
        return "".join(pieces) + self.read[at:]

    def written(self) -> dict[Leaf, str]:
        """Return the leaves as they were written, each where it stands first."""
        texts: dict[Leaf, str] = {}
        for part, number in self.placed:
            texts.setdefault(self.leaves[number], self.read[part.start : part.end])
        return texts

    def after_matching(self) -> Expression:
        """Return the expression with what may fail computed for the rows of matches alone."""
        late = (attrs.evolve(leaf, is_late=leaf.late is not None) for leaf in self.leaves)
        return attrs.evolve(self, leaves=tuple(late))

    @property
    def lone_leaf(self) -> Leaf | None:
        """The leaf that is all of the expression; None if there is anything around it."""
        is_lone = len(self.placed) == 1 and self.placed[0][0] is self.syntax
        return self.leaves[0] if is_lone else None


def read_expression(
    text: Text,
    names: Names,
    variable: str | None = None,
    over: str | None = None,
    at_rows: bool = False,
    guarded: bool = False,
) -> Expression:
    """Split an expression; if `guarded`, nothing that may fail without its guard is of the row."""
    return _Reader(text, names, variable, over, at_rows, guarded).read()


def _insertions(text: str, queries: str) -> Iterator[tuple[int, str]]:
    """
    Yield what Spark needs inside subqueries, and where.

    The named queries of the statement; and ALL between SELECT and a text, which Spark would take
    for a literal of the type SELECT.
    """
    for before, token, following in zip(*(tokenized(text)[at:] for at in range(3)), strict=False):
        if queries and before.word == "(" and token.word == "SELECT":
            yield token.start, queries
        if token.word == "SELECT" and following.kind is TokenKind.STRING:
            yield token.end, " ALL"


class _Reader:
    def __init__(
        self,
        text: Text,
        names: Names,
        variable: str | None,
        over: str | None,
        at_rows: bool,
        guarded: bool,
    ) -> None:
        self._at_rows = at_rows
        self._guarded = guarded
        self._written = text
        self._names = names
        self._variable = variable
        self._final: set[int] = set()
        self._guards: dict[Syntax, tuple[Guard, ...]] = {}
        self._where = "a measure" if variable is None else f"DEFINE {variable}"
        self._inserted = list(_insertions(text.text, names.queries if names.standard else ""))
        self._text = self._without_marks()
        self._leaf = LeafReader(self._text, self._final, names, variable, self._error, over)

    def read(self) -> Expression:
        """Take the expression apart."""
        try:
            tree = parsed(self._text)
        except SqlSyntaxError as cause:
            start, _ = cause.span or (0, 0)
            raise self._error(start, cause.problem, cause.hint or "") from cause
        for node in tree.walk():
            if node.form is Form.OPAQUE:
                self._leaf.check_opaque(node)
            self._check_quotes(node)
        self._guards = guards_of(tree)
        leaves: dict[Leaf, int] = {}
        placed: list[tuple[Syntax, int]] = []
        for node, leaf in self._leaves(tree, frozenset()):
            placed.append((node, leaves.setdefault(leaf, len(leaves))))
        own: Tree | CepError | None = None
        if self._variable is not None and self._names.standard:
            own = leaf_tree(self._text, tree, placed, tuple(leaves), inside=not self._guarded)
        return Expression(
            self._written.text, self._written.span, tuple(leaves), self._text, tree,
            tuple(placed), own,
        )  # fmt: skip

    def _without_marks(self) -> str:
        """Return the text with RUNNING and FINAL blanked out, which are recorded."""
        text = self._written.text
        for at, inserted in reversed(self._inserted):
            text = f"{text[:at]}{inserted}{text[at:]}"
        text = with_array_calls(text, self._names.is_column)
        tokens = tokenized(text)
        for at, token in enumerate(tokens[:-2]):
            following, after = tokens[at + 1], tokens[at + 2]
            if token.word == "MATCH_RECOGNIZE" and following.word == "(":
                raise self._error(
                    token,
                    "MATCH_RECOGNIZE inside a clause",
                    "name its output by a WITH query or a view, and join that",
                    NotSupportedError,
                )
            if token.word not in ("RUNNING", "FINAL") or following.kind is not TokenKind.NAME:
                continue
            word = token.text.upper()
            if word == "FINAL" and self._variable is not None:
                raise self._error(0, "FINAL in DEFINE", "a condition sees only the rows so far")
            if not self._names.standard and word == "RUNNING":
                raise self._error(
                    0, 'RUNNING needs dialect="standard"', "leave it out", NotSupportedError
                )
            name = following.text.lower()
            may_run = name in ("first", "last", *AGGREGATES) or name in FOLDS
            if self._names.standard and not (after.word == "(" and may_run):
                raise self._error(
                    0,
                    f"{word} {following.text}: expected FIRST, LAST or an aggregate",
                    f"leave {word} out, or write {word} LAST(…)",
                )
            if self._names.standard and word == "FINAL":
                self._final.add(following.start)
            text = text[: token.start] + " " * len(word) + text[token.end :]
        return text

    def _check_quotes(self, node: Syntax) -> None:
        """Refuse a column in double quotes, which Spark reads as a text."""
        if node.form is not Form.LITERAL or not node.value.startswith('"'):
            return
        name = string_value(node.value)
        if self._names.is_column(name):
            raise self._error(
                node,
                f"{node.value} is a text in Spark SQL, and a column has that name",
                f"write `{name}` for the column, '{name}' for the text, or set "
                "spark.sql.ansi.doubleQuotedIdentifiers to true",
            )

    # --- the tree

    def _leaves(self, node: Syntax, bound: frozenset[str]) -> Iterator[tuple[Syntax, Leaf]]:
        """Yield the leaves of a part, in the order of the text."""
        if self._is_value_of_row(node, bound):
            yield node, Leaf.of("last", None, self._row_sql(node, bound))
            return
        leaf = self._leaf.read(node, bound)
        if leaf is None and self._at_rows:
            leaf = self._leaf.at_one_row(node, bound)
        if leaf is not None:
            yield node, leaf
            return
        if node.form is Form.STAR:
            raise self._error(node, "* stands alone", "* is for COUNT")
        if node.form is Form.LAMBDA:
            bound |= frozenset(node.value)
        for operand in node.operands:
            yield from self._leaves(operand, bound)

    def _is_value_of_row(self, node: Syntax, bound: frozenset[str]) -> bool:
        """Whether a part is computed for all rows before matching."""
        if self._variable is None or not self._names.standard:
            return False
        if not self._is_about_row(node, bound):
            return False
        waits = may_fail(node) if self._guarded else divides(node)
        return not waits or all(self._is_known(g, bound) for g in self._guards_of(node))

    def _guards_of(self, node: Syntax) -> tuple[Guard, ...]:
        return self._guards.get(node, ()) if may_fail(node) else ()

    def _is_known(self, guard: Guard, bound: frozenset[str]) -> bool:
        """Whether a guard is only about the current row."""
        return all(p.form in _ALONE or self._is_about_row(p, bound) for p in guard.parts)

    def _row_sql(self, node: Syntax, bound: frozenset[str]) -> str:
        """Return a part about the row, for all rows; NULL for those that do not ask for it."""
        sql = self._leaf.row_sql(node, bound)
        for guard in reversed(self._guards_of(node)):
            if self._is_known(guard, bound):
                sql = guard.around(lambda part: self._leaf.row_sql(part, bound), sql)
        return sql

    def _is_about_row(self, node: Syntax, bound: frozenset[str]) -> bool:
        """Whether a part reads only the current row."""
        if node.form in _ALONE or node.form is Form.LAMBDA:
            return False
        leaf = self._leaf.read(node, bound)
        if leaf is not None:
            return self._leaf.is_row_at_hand(leaf)
        if node.form is Form.STAR:
            return False
        inner = [operand for operand in node.operands if operand.form not in _ALONE]
        if any(operand.form is Form.LAMBDA for operand in inner):
            return all(
                leaf is None or self._leaf.is_row_at_hand(leaf)
                for leaf in self._leaf.below(node, bound)
            )
        return all(self._is_about_row(operand, bound) for operand in inner)

    def _error(
        self,
        at: Syntax | Token | int,
        what: str,
        hint: str,
        kind: type[CepError] = InvalidArgumentError,
    ) -> CepError:
        """Make an error about a part, or what begins at a position."""
        start = at if isinstance(at, int) else at.start
        begin, end = self._written.span
        for place, inserted in self._inserted:
            start -= min(len(inserted), max(start - place, 0))
        return self._names.error((begin + start, end), f"{self._where}: {what}", hint, kind)


def condition_leaves(expression: Expression) -> list[Leaf]:
    """Return what a condition takes from the match: all leaves of one that cannot be read."""
    tree = expression.tree
    if tree is None or isinstance(tree, CepError):
        return list(expression.leaves)
    return list(dict.fromkeys(part for part in leaves(tree) if isinstance(part, Leaf)))
