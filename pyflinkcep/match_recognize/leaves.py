# SPDX-License-Identifier: Apache-2.0
"""The values that an expression takes from a match: at a row, or aggregated over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.grammar import Form, Syntax
from pyflinkcep.expressions.parser import Names, Operators
from pyflinkcep.expressions.tree import Aggregate, SqlTemplate, Tree, joined, text_sql

AGGREGATES = ("count", "sum", "avg", "min", "max", "array_agg")
"""The aggregates that are computed row by row while matching."""

FOLDS = frozenset({
    "any", "any_value", "approx_count_distinct", "approx_percentile", "approx_top_k",
    "approx_top_k_accumulate", "approx_top_k_combine", "bit_and", "bit_or", "bit_xor",
    "bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or",
    "collect_list", "collect_set", "collect_union", "corr", "count_if", "count_min_sketch",
    "covar_pop", "covar_samp", "every", "first_value", "histogram_numeric", "hll_sketch_agg",
    "hll_union_agg", "kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float",
    "kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float", "kurtosis",
    "last_value", "listagg", "max_by", "mean", "median", "min_by", "mode", "percentile",
    "percentile_approx", "percentile_cont", "percentile_disc", "regr_avgx", "regr_avgy",
    "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    "schema_of_variant_agg", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp",
    "string_agg", "theta_intersection_agg", "theta_sketch_agg", "theta_union_agg", "try_avg",
    "try_sum", "tuple_intersection_agg_double", "tuple_intersection_agg_integer",
    "tuple_sketch_agg_double", "tuple_sketch_agg_integer", "tuple_union_agg_double",
    "tuple_union_agg_integer", "var_pop", "var_samp", "variance",
})  # fmt: skip
"""Spark's other aggregates, which are computed from all rows that they see."""


LABEL = SqlTemplate(("", ""), "CLASSIFIER()")
"""What CLASSIFIER() returns, the variable that the row is mapped to: in an argument, a place whose
value is known only once the row is matched."""

LEAF = "__cep_leaf"
"""The prefix of the columns that hold values of leaves; a number follows."""

NUMBER = -1
"""Stands in the pieces of a fold for the number of the match."""


@attrs.frozen
class Late:
    """SQL over what it takes from a row, for the rows that a match took alone."""

    fields: tuple[str, ...]  # What it takes from each row, as the argument of a leaf
    pieces: tuple[str | int, ...]  # Its text, with the numbers of fields in their places

    def rendered(self, name: Callable[[int], str]) -> str:
        """Return its text, with names for its fields and :data:`NUMBER`."""
        return "".join(name(one) if isinstance(one, int) else one for one in self.pieces)

    def over(self, row: str) -> str:
        """Return it as SQL over a struct of the fields."""
        return self.rendered(lambda field: f"{row}.{item(field)}")


@attrs.frozen(kw_only=True)
class Fold(Late):
    """An aggregate that is computed from all rows that it sees; its pieces may be NUMBER."""

    name: str  # Its name in Spark
    text: str = attrs.field(eq=False, repr=False)  # The expression that it is part of
    call: Syntax = attrs.field(eq=False, repr=False)  # The aggregate, parsed
    # The parts of it that are fields, or :data:`NUMBER`.
    inputs: dict[Syntax, int] = attrs.field(eq=False, repr=False)

    @property
    def arguments(self) -> list[Syntax]:
        """Its arguments."""
        return [part for part in self.call.operands if self._suffix(part) is None]

    @property
    def conditions(self) -> list[Syntax]:
        """The conditions of FILTER."""
        return [part for part in self.call.operands if self._suffix(part) == "filter"]

    @property
    def is_ordered(self) -> bool:
        """Whether it has ORDER BY."""
        return any(self._suffix(part) == "order by" for part in self.call.operands)

    @property
    def is_distinct(self) -> bool:
        """Whether equal rows count once."""
        return self.call.detail == "distinct"

    def _suffix(self, part: Syntax) -> str | None:
        """Return what of FILTER or ORDER BY an operand is; None for an argument."""
        has_suffixes = self.call.form is Form.OPAQUE and len(part.operands) == 1
        return part.value if has_suffixes and part.value in ("filter", "order by") else None


@attrs.frozen
class Leaf(Aggregate):
    """
    A value that an expression takes from the match: an aggregate of the tree of expressions.

    Its function is ``first`` or ``last`` for the value at one row; one of the AGGREGATES, or
    ``fold`` for any other aggregate, over rows; ``match_number``; ``rowtime``. Its stage is the
    variable, or union of variables, of the rows; empty for all rows of the match. Its argument is
    SQL over the columns of a row and :data:`LABEL`; None for the rows themselves, to ``count``
    them, and for a fold.
    """

    fold: Fold | None = None  # The aggregate, for a fold
    # Whether a row at a distance is one of the match, as that of LAG and LEAD in MEASURES.
    is_inside: bool = False
    # How to compute the argument of a measure after matching, if it may fail.
    late: Late | None = attrs.field(default=None, eq=False, repr=False)
    is_late: bool = False  # Whether it is computed after matching

    @classmethod
    def of(
        cls,
        function: str,
        variable: str | None = None,
        argument: str | None = None,
        *,
        offset: int = 0,
        final: bool = False,
        fold: Fold | None = None,
    ) -> Leaf:
        """Return a value of the rows of a variable, or of all rows."""
        return cls(function, variable or "", argument, offset=offset, final=final, fold=fold)

    @property
    def variable(self) -> str | None:
        """The variable, or union of variables, of the rows; None for all rows of the match."""
        return self.stage or None

    @property
    def is_row(self) -> bool:
        """Whether it is a value at one row."""
        return self.function in ("first", "last")

    @property
    def arguments(self) -> tuple[str, ...]:
        """What it takes from a row: SQL over its columns, or :data:`LABEL`."""
        if self.fold is not None:
            return self.fold.fields
        return () if self.argument is None else (self.argument,)

    @property
    def has_label(self) -> bool:
        """Whether its arguments use the variable that a row is mapped to."""
        return any(map(has_label, self.arguments))

    @property
    def has_number(self) -> bool:
        """Whether it reads the number of the match."""
        is_read = self.fold is not None and NUMBER in self.fold.pieces
        return self.function == "match_number" or is_read

    def arguments_for(self, variables: Sequence[str]) -> list[str]:
        """Return the SQL over one row that is needed, for rows of any of the variables."""
        found: dict[str, None] = {}
        for argument in self.arguments:
            if argument != LABEL:
                found |= dict.fromkeys(labelled(argument, name) for name in variables)
        return list(found)


def has_label(argument: str) -> bool:
    """Whether an argument reads :data:`LABEL`."""
    return isinstance(argument, SqlTemplate)


def labelled(argument: str, variable: str) -> str:
    """Return an argument for the rows of a variable, with its name as the value of LABEL."""
    if isinstance(argument, SqlTemplate):
        return argument.filled(text_sql(variable))
    return argument


def item(field: int) -> str:
    """Return the name of a fold's field among those of a row."""
    return f"f{field}"


def parts_of(leaf: Leaf) -> tuple[Leaf, ...]:
    """
    Return what a worker takes from the match for a leaf of a measure.

    An average is made of a total, which is a sum with whole numbers as doubles, as Spark and DEFINE
    add them, and a count; a fold of the array of the rows that it sees, and the
    number of the match if it reads that; what is computed after matching, of its rows.
    """
    if leaf.is_late and leaf.late is not None:
        struct = _struct(leaf.late.fields)
        if leaf.is_row:
            return (attrs.evolve(leaf, argument=struct, is_late=False),)
        return (Leaf.of("array_agg", leaf.variable, struct, final=leaf.final),)
    if leaf.function == "avg":
        return attrs.evolve(leaf, function="total"), attrs.evolve(leaf, function="count")
    if leaf.fold is None:
        return (leaf,)
    struct = _struct(leaf.fold.fields or ("0",))
    rows = Leaf.of("array_agg", leaf.variable, struct, final=leaf.final)
    return (rows, Leaf.of("match_number")) if leaf.has_number else (rows,)


def _struct(fields: Sequence[str]) -> str:
    """Return fields of a row as one value."""
    named = [part for at, field in enumerate(fields) for part in (f", '{item(at)}', ", field)]
    return joined(("named_struct(", named[0].removeprefix(", "), *named[1:], ")"))


def leaf_tree(
    text: str,
    tree: Syntax,
    placed: Sequence[tuple[Syntax, int]],
    leaves: Sequence[Leaf],
    *,
    inside: bool,
) -> Tree | CepError:
    """Return an expression as a tree; with `inside`, functions of a leaf are taken into it."""
    try:
        return Operators(LeafNames(text, placed, leaves, inside)).part(tree)
    except CepError as refusal:
        return refusal


class LeafNames(Names):
    """Finds leaves where conditions over stages have names."""

    shifts_inside = False

    def __init__(
        self,
        text: str,
        placed: Sequence[tuple[Syntax, int]],
        leaves: Sequence[Leaf],
        inside: bool,
        stage: str = "",
    ) -> None:
        super().__init__(text, stage)
        self._inside = inside
        self._leaves = leaves
        self._numbers = {id(part): number for node, number in placed for part in _same(node)}

    def _is_aggregate(self, part: Syntax) -> bool:
        return id(part) in self._numbers

    def leaf(self, part: Syntax) -> Leaf:
        """Return the leaf that a part is."""
        return self._leaves[self._numbers[id(part)]]

    def aggregate(self, part: Syntax) -> Aggregate:
        """Return a leaf."""
        leaf = self.leaf(part)
        return attrs.evolve(leaf, text=self.written(part), span=(part.start, part.end))

    def inner(self, aggregate: Aggregate) -> str | None:
        """Return the argument of a leaf for a function of it."""
        # In parentheses, unless it is such a function already: stored rows know columns by it.
        argument = aggregate.argument if self._inside else None
        if argument is None or aggregate not in self._leaves:
            return argument
        return joined(("(", argument, ")"))


def _same(node: Syntax) -> Iterator[Syntax]:
    """Yield a part, and what is left of it without the parentheses around."""
    yield node
    while node.form is Form.PAREN:
        node = node.operands[0]
        yield node
