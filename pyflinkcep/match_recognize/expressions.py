# SPDX-License-Identifier: Apache-2.0
"""
Splits expressions of DEFINE and MEASURES into values of the match and the SQL around them.

The values, leaves of an expression, are columns, navigation, aggregates, CLASSIFIER and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError, counted
from pyflinkcep.expressions.grammar import Form, Guard, Syntax, divides, guards_of, may_fail, parsed
from pyflinkcep.expressions.tokens import SqlSyntaxError, Token, TokenKind, string_value, tokenized
from pyflinkcep.expressions.tree import Tree, joined, leaves
from pyflinkcep.match_recognize.leaves import (
    AGGREGATES,
    FOLDS,
    LABEL,
    NUMBER,
    Fold,
    Late,
    Leaf,
    leaf_tree,
)
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tokens import with_array_calls
from pyflinkcep.match_recognize.tree import Span, Text

_NAVIGATION = ("first", "last", "prev", "next")
_STANDARD = 'needs dialect="standard"'
_ALIASES = {"lag": "prev", "lead": "next", "arbitrary": "any_value"}
"""Other systems' names of functions."""
_WITHOUT_BRACKETS = ("classifier", "match_number")
_OF_A_MATCH = (*_NAVIGATION, "match_number", "match_sequence_number", "match_rowtime")
NO_NAMES: frozenset[str] = frozenset()


_FLINKS = ("count", "sum", "avg", "min", "max")
_CONSTANT = (Form.LITERAL, Form.TYPED, Form.INTERVAL, Form.WORD, Form.PAREN)
_OF_NULL = frozenset({
    "coalesce", "ifnull", "nvl", "nvl2", "isnull", "isnotnull", "equal_null", "concat_ws", "array",
    "struct", "named_struct", "map", "if", "iff", "least", "greatest", "hash", "xxhash64",
    "to_json", "to_csv", "format_string", "printf", "typeof", "rand", "uuid", "nullif",
    "zeroifnull", "isnan", "nanvl", "decode", "elt", "size", "cardinality", "array_compact",
})  # fmt: skip
"""Functions that may return something for NULL."""
_MOST_OFFSET = 10_000


@attrs.frozen(eq=False)
class LeafReader:
    """Reads the leaves of one expression, and the parts that are about one row."""

    _text: str
    _final: Collection[int]
    _names: Names
    _variable: str | None
    # Makes an error, given a part, what is wrong, a hint and the kind of the error.
    _error: Callable[..., CepError]
    _over: str | None = None

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
            hint = "join first, or compute it in a subquery"
            raise self._error(node, what, hint, NotSupportedError)

    def _check_one_row(self, name: str, tree: Syntax, *, may_number: bool = False) -> None:
        for node in tree.walk():
            if node.form is Form.OPAQUE and not node.detail:
                self.check_opaque(node)
                continue
            if node.form is Form.STAR:
                raise self._error(node, f"* inside {name}", "* is for COUNT")
            inner = self.function(node)
            is_aggregate = inner in AGGREGATES or inner in FOLDS
            if inner == "match_number" and may_number:
                self._check_number(node)
            elif is_aggregate or inner in _OF_A_MATCH:
                what = "an aggregate" if is_aggregate else self._called(node)
                hint = "move it outside: SUM(A.x) - FIRST(A.x) * COUNT(A.x)"
                if inner == "match_number":
                    hint = "move it outside: it is the same number in all rows of the match"
                raise self._error(node, f"{what} inside {name}", hint)

    def _check_number(self, node: Syntax) -> None:
        self._only_standard("MATCH_NUMBER()", node)
        if node.operands:
            raise self._error(node, f"{self._shown(node)} has an argument", "write MATCH_NUMBER()")

    def _offset(self, node: Syntax, default: int) -> int:
        if len(node.operands) < 2:
            return default
        written = self._shown(node.operands[1])
        if not written.isdecimal() or len(written) > 9:
            what = f": expected an integer offset up to 999999999, got {written}"
            what, hint = f"{self._shown(node)}{what}", "write a literal such as 1"
            raise self._error(node.operands[1], what, hint)
        return int(written)

    # --- names

    def _common_owner(self, around: Syntax, *trees: Syntax) -> str | None:
        owned = (node for tree in trees for node in self._owned(tree, NO_NAMES))
        owners = list(dict.fromkeys(map(self._owner, owned)))
        if len(owners) > 1:
            shown = ", ".join("no variable" if name is None else name for name in owners)
            hint = f"write one {self._called(around)} for each variable"
            raise self._refused(around, f" is over two variables ({shown})", hint)
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
                node,
                f"{shown!r}: {name} is the table, not a variable of PATTERN"
                f"{'' if self._names.standard else flink}",
                f"write {shown.partition('.')[2]} for the current row",
            )
        what = f"{shown!r}: {name} is not a variable of PATTERN"
        raise self._error(node, what, self._names.nearest(name))

    def _classified(self, node: Syntax) -> str | None:
        self._only_standard("CLASSIFIER()", node)
        if not node.operands:
            return None
        argument = node.operands[0]
        is_name = argument.form is Form.COLUMN and len(argument.value) == 1
        name = argument.value[0] if is_name else self._shown(argument)
        variable = self._names.variable(name)
        if len(node.operands) > 1:
            hint = "name one variable, or a union of them by SUBSET"
            raise self._refused(node, f" has {counted(len(node.operands), 'argument')}", hint)
        if variable is None:
            what = f": {name} is not a variable of PATTERN"
            raise self._refused(node, what, self._names.nearest(name))
        return variable

    def row_sql(self, tree: Syntax, bound: frozenset[str], *, is_there: bool = False) -> str:
        """Return a part about one row, or the one that PREV leads to, as SQL without variables."""
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
            hint = 'use dialect="standard"'
            raise self._error(node, f"{what} {_STANDARD}", hint, NotSupportedError)

    def _refused(
        self, node: Syntax, what: str, hint: str, kind: type[CepError] = InvalidArgumentError
    ) -> CepError:
        """Make an error that begins with the text of a part."""
        return self._error(node, f"{self._shown(node)}{what}", hint, kind)

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

    # --- leaves

    def read(self, node: Syntax, bound: frozenset[str] = NO_NAMES) -> Leaf | None:
        """Return a part as a leaf, None if it is not one; `bound` are a lambda's variables."""
        if node.form is Form.COLUMN and self.function(node) is None:
            if node.value[0] in bound:
                return None
            return Leaf.of("last", self._owner(node), self.row_sql(node, bound))
        name = self.function(node)
        if name in ("prev", "next"):
            return self._physical(node)
        if name in ("first", "last"):
            return self._navigation(node)
        if name in AGGREGATES or name in FOLDS:
            return self._aggregate(node)
        if name == "classifier":
            return Leaf.of("last", self._owner(node), LABEL)
        if name == "match_number":
            self._check_number(node)
            return Leaf.of("match_number")
        if name == "match_sequence_number" and self._names.standard:
            return Leaf.of("count")
        if name in ("match_rowtime", "match_proctime"):
            return self._time(node)
        return None

    def at_one_row(self, node: Syntax, bound: frozenset[str]) -> Leaf | None:
        """Return a function of values of one row, NULL without it, as its value at that row."""
        if node.form is not Form.CALL or node.value in _OF_NULL:
            return None
        leaves = list(self.below(node, bound))
        places = {attrs.evolve(leaf, argument=None) for leaf in leaves if leaf.is_row}
        if len(places) != 1 or not all(leaf.is_row for leaf in leaves):
            return None
        (place,) = places
        return attrs.evolve(place, argument=self.row_sql(node, bound, is_there=True))

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
        if leaf.function != "last" or leaf.offset or leaf.has_label:
            return False
        if leaf.shift and self._over is None:
            return False
        return leaf.variable is None or self._variable in self._names.members(leaf.variable)

    def _time(self, node: Syntax) -> Leaf:
        if node.value == "match_proctime":
            what = "MATCH_PROCTIME(): processing time is not supported in SQL"
            hint = "use MATCH_ROWTIME(), the event time"
            raise self._error(node, what, hint, NotSupportedError)
        if self._names.standard or self._variable is not None or len(node.operands) > 1:
            what = "MATCH_ROWTIME() is only for measures of Flink's dialect"
            raise self._error(node, what, "use LAST of the time column")
        return Leaf.of("rowtime")

    # --- values at a row

    def _navigation(self, node: Syntax) -> Leaf:
        self._check_arguments(node, 2)
        offset, inner = self._offset(node, 0), node.operands[0]
        if self._variable is not None and offset > _MOST_OFFSET:
            what = f"{self._shown(node)}: an offset of more than {_MOST_OFFSET} in DEFINE"
            hint = "compare COUNT instead: every partial match would keep that many values"
            raise self._error(node.operands[1], what, hint, NotSupportedError)
        inner = inner if self._names.standard else inner.bare()  # by its text stages know it
        return self._leaf(node, node.value, inner, offset=offset)

    def _leaf(self, node: Syntax, function: str, argument: Syntax, *, offset: int = 0) -> Leaf:
        """Return a value of what is computed from one row."""
        self._check_row_argument(node, argument)
        owner = self._common_owner(node, argument)
        if function in ("first", "last"):
            self._check_reads(node, argument)
        sql, final = self.row_sql(argument, NO_NAMES), node.start in self._final
        leaf = Leaf.of(function, owner, sql, offset=offset, final=final)
        return attrs.evolve(leaf, late=self._late(argument))

    def _check_reads(self, node: Syntax, argument: Syntax) -> None:
        """Refuse the value of a constant at a row, which is often a name in the wrong quotes."""
        if self._names.standard and not any(True for _ in self._owned(argument, NO_NAMES)):
            hint = "write a column; a name in quotes is written in backquotes: `name`"
            raise self._refused(node, " has no column inside", hint)

    def _physical(self, node: Syntax) -> Leaf:
        name = self.function(node)
        if name != node.value and len(node.operands) == 3:
            called = str(name).upper()
            hint = f"write coalesce({called}(…), {self._shown(node.operands[2])})"
            raise self._refused(node, f": {called} has no default", hint)
        self._check_arguments(node, 2)
        offset = self._offset(node, 1)
        if offset and not self._names.standard:
            what = "Flink does not support physical offsets within partition."
            hint = 'write LAST(A.x, 1) for the last row of A but one; dialect="standard" has PREV'
            raise self._error(node, what, hint, NotSupportedError)
        inner = node.operands[0].bare()
        if inner.form is Form.CALL and inner.value in ("first", "last"):
            leaf = self._navigation(inner)
        else:
            leaf = self._leaf(node, "last", inner)
        is_inside = name != node.value and self._variable is None and offset > 0
        shift = -offset if name == "prev" else offset
        return attrs.evolve(leaf, shift=shift, is_inside=is_inside)

    def _check_arguments(self, node: Syntax, most: int) -> None:
        if not 1 <= len(node.operands) <= most:
            hint = f"write {self._called(node)}(A.x)" + ", or with an offset" * (most > 1)
            raise self._refused(node, f" has {counted(len(node.operands), 'argument')}", hint)

    def _check_row_argument(self, around: Syntax, tree: Syntax) -> None:
        """Refuse what cannot be computed from one row."""
        name = self._called(around)
        if around.form is Form.OPAQUE:
            hint = "take it from ARRAY_AGG: element_at(ARRAY_AGG(A.x) FILTER (WHERE …), 1)"
            raise self._error(around, f"{name} with FILTER, IGNORE NULLS or the like", hint)
        if around.detail:
            raise self._error(around, f"DISTINCT in {name}", "count distinct values in a subquery")
        self._check_one_row(name, tree)

    # --- aggregates

    def _aggregate(self, node: Syntax) -> Leaf:
        name, final = self.function(node), node.start in self._final
        if not self._names.standard and name not in _FLINKS:
            what = f"{self._called(node)}: Flink's dialect has {', '.join(_FLINKS).upper()}"
            hint = 'use dialect="standard", which has all aggregates'
            raise self._error(node, what, hint, NotSupportedError)
        if name == "count" and not node.operands and self._names.standard:
            return Leaf.of("count", final=final)
        if self._names.standard and (name not in AGGREGATES or self._is_fold(node)):
            return self._fold(node)
        self._check_arguments(node, 1)
        argument = node.operands[0].bare()
        if name == "count" and argument.form is Form.STAR:
            if argument.value and not self._names.standard:
                hint = 'count a column that is never null, or use dialect="standard"'
                raise self._refused(node, ": Unknown field '*'", hint, NotSupportedError)
            owner = self._owner(argument) if argument.value else None
            return Leaf.of("count", owner, final=final)
        return self._leaf(node, str(name), argument)

    def _late(self, argument: Syntax) -> Late | None:
        """Return how to compute an argument of a measure for the rows of matches alone."""
        if self._variable is not None or not may_fail(argument):
            return None
        if any(part.form is Form.OPAQUE for part in argument.walk()):
            return None
        fields: dict[str, int] = {}
        pieces, at = list[str | int](["("]), argument.start
        for node in self._owned(argument, NO_NAMES):
            number = fields.setdefault(self.row_sql(node, NO_NAMES), len(fields))
            pieces += [self._text[at : node.start], number]
            at = node.end
        if not fields:
            return None
        return Late(tuple(fields), (*pieces, self._text[at : argument.end], ")"))

    def _is_fold(self, node: Syntax) -> bool:
        """Whether one of the known aggregates is more than a function of one value of each row."""
        if node.form is Form.OPAQUE or node.detail:
            return True
        return any(self.function(part) == "match_number" for part in node.walk())

    def _fold(self, node: Syntax) -> Leaf:
        """Return an aggregate whose arguments are computed row by row, and the rest by Spark."""
        name, stars = self._called(node), list[Syntax]()
        if node.value == "count" and node.operands and node.operands[0].form is Form.STAR:
            stars = [node.operands[0]]
        for operand in node.operands[len(stars) :]:
            self._check_one_row(name, operand, may_number=True)
        owner = self._common_owner(node, *node.operands)
        written, function = str(node.value), str(self.function(node))
        pieces: list[str | int] = [function]
        fields: dict[str, int] = {}
        inputs: dict[Syntax, int] = {}
        at = node.start + self._text[node.start : node.end].lower().index(written) + len(written)
        for star in stars:
            pieces += [self._text[at : star.start], "1"]
            at = star.end
        for part in self._inputs(node):
            number = NUMBER
            if self.function(part) != "match_number":
                number = fields.setdefault(self.row_sql(part, NO_NAMES), len(fields))
            pieces += [self._text[at : part.start], number]
            inputs[part] = number
            at = part.end
        pieces.append(self._text[at : node.end])
        fold = Fold(
            tuple(fields), tuple(pieces), name=function, text=self._text, call=node, inputs=inputs
        )
        return Leaf.of("fold", owner, final=node.start in self._final, fold=fold)

    def _inputs(self, node: Syntax) -> Iterator[Syntax]:
        """Yield what an aggregate takes from rows, and MATCH_NUMBER, in the order of the text."""
        for place, operand in enumerate(node.operands):
            if any(self.function(part) == "match_number" for part in operand.walk()):
                is_number = self.function(operand) == "match_number"
                yield from [operand] if is_number else self._inputs(operand)
            elif operand.form is not Form.STAR and (
                place == 0 or any(part.form not in _CONSTANT for part in operand.walk())
            ):
                yield operand  # also a constant, if it is first: without rows there is none


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
