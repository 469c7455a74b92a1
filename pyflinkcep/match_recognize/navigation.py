# SPDX-License-Identifier: Apache-2.0
"""Reads the leaves of expressions: columns, navigation, aggregates, CLASSIFIER and so on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError, counted
from pyflinkcep.expressions.grammar import Form, Syntax, may_fail
from pyflinkcep.expressions.tree import joined
from pyflinkcep.match_recognize.leaves import AGGREGATES, FOLDS, LABEL, NUMBER, Fold, Late, Leaf
from pyflinkcep.match_recognize.names import Names

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
