# SPDX-License-Identifier: Apache-2.0
"""A clause with SQL:2016's meaning, read and checked; what a worker needs to match by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.match_recognize.expressions import Expression, read_expression
from pyflinkcep.match_recognize.leaves import LABEL, LEAF, Leaf, labelled
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.scalar import condition_function
from pyflinkcep.match_recognize.standard.matcher import Place, find_matches
from pyflinkcep.match_recognize.standard.output import OutputRows, output_rows
from pyflinkcep.match_recognize.standard.program import Op, Program, compile_pattern
from pyflinkcep.match_recognize.standard.values import Condition, PartitionConditions
from pyflinkcep.match_recognize.tree import Clause, Rows, Skip, SkipTo

__all__ = ["StandardClause", "StandardPlan", "read_clause"]


@attrs.frozen(eq=False)
class StandardClause:
    """
    A clause, read.

    Attributes
    ----------
    clause : Clause
        The clause.
    names : Names
        What its names mean.
    program : Program
        PATTERN.
    conditions : dict of str to Expression
        DEFINE; what is about the row at hand alone is one leaf.
    measures : dict of str to Expression
        MEASURES by their names.
    skip : Skip
        Where to look for the next match.
    """

    clause: Clause
    names: Names
    program: Program
    conditions: dict[str, Expression]
    measures: dict[str, Expression]
    skip: Skip

    def condition_arguments(self) -> list[str]:
        """Return the SQL over one row that conditions need."""
        leaves = (leaf for e in self.conditions.values() for leaf in e.leaves)
        return list(dict.fromkeys(self.arguments_of(leaves)))

    def measure_leaves(self) -> tuple[Leaf, ...]:
        """Return what the measures take of a match, each once."""
        return tuple(dict.fromkeys(leaf for e in self.measures.values() for leaf in e.leaves))

    def measure_arguments(self) -> list[str]:
        """Return the SQL over one row that measures need."""
        return list(dict.fromkeys(self.arguments_of(self.measure_leaves())))

    def arguments_of(self, leaves: Iterable[Leaf]) -> Iterator[str]:
        """Yield the SQL over one row that leaves need."""
        for leaf in leaves:
            if leaf.argument is None or leaf.argument == LABEL:
                continue
            if not leaf.has_label:
                yield leaf.argument
                continue
            for variable in self.names.variables:
                yield labelled(leaf.argument, variable)

    def plan(
        self,
        kinds: Mapping[str, Kind],
        ansi: bool,
        within: int = 0,
        leaves: Sequence[Leaf] | None = None,
    ) -> StandardPlan:
        """
        Return what workers need.

        Parameters
        ----------
        kinds : mapping of str to Kind
            What :meth:`condition_arguments` give.
        ansi : bool
            Whether overflow and division by zero are errors.
        within : int, milliseconds
            The window, 0 for none.
        leaves : sequence of Leaf, optional
            What to take of a match; what the measures say if not given.
        """
        return StandardPlan(
            self.program,
            self.conditions,
            dict(kinds),
            ansi,
            self.names.subsets,
            self.skip,
            self.clause.rows,
            self.measure_leaves() if leaves is None else tuple(leaves),
            within,
        )


@attrs.frozen(eq=False)
class StandardPlan:
    """
    What matching a partition needs; travels to the workers.

    Attributes
    ----------
    program : Program
        PATTERN.
    conditions : dict of str to Expression
        DEFINE.
    kinds : dict of str to Kind
        What the conditions' arguments give.
    ansi : bool
        Whether overflow and division by zero are errors.
    subsets : dict of str to tuple of str
        The variables of each union.
    skip : Skip
        Where to look for the next match.
    rows : Rows
        What comes out of a match.
    leaves : tuple of Leaf
        What the measures take of a match.
    within : int, milliseconds
        The window, 0 for none.
    """

    program: Program
    conditions: dict[str, Expression]
    kinds: dict[str, Kind]
    ansi: bool
    subsets: dict[str, tuple[str, ...]]
    skip: Skip
    rows: Rows
    leaves: tuple[Leaf, ...]
    within: int = 0

    def compiled(self, variables: Iterable[str] | None = None) -> dict[str, Condition]:
        """
        Return conditions as functions; all of them if no variables are given.

        Raises
        ------
        InputError
            If a condition gives no boolean, or types do not go together.
        """
        compiled = {}
        for variable in self.conditions if variables is None else variables:
            expression = self.conditions[variable]
            kinds = {leaf: self._kind(leaf) for leaf in expression.leaves}
            leaves, function = condition_function(expression, kinds, self.ansi)
            is_leaf = self._is_row(expression)
            compiled[variable] = Condition(variable, expression.text, leaves, function, is_leaf)
        return compiled

    def _is_row(self, expression: Expression) -> bool:
        """Whether Spark has answered all of a condition, for each row."""
        if expression.sql.strip() != f"{LEAF}0":
            return False
        (leaf,) = expression.leaves
        return leaf == Leaf("last", None, leaf.argument) and not leaf.has_label

    def _kind(self, leaf: Leaf) -> Kind:
        if leaf.function in ("count", "match_number"):
            return Kind.BIGINT
        if leaf.function == "avg":
            return Kind.DOUBLE
        if leaf.argument == LABEL:
            return Kind.STRING
        assert leaf.argument is not None
        if leaf.has_label:
            return self.kinds[labelled(leaf.argument, self.program.variables[0])]
        return self.kinds[leaf.argument]

    def match(
        self,
        conditions: Mapping[str, Condition],
        size: int,
        columns: Mapping[str, Sequence[Any]],
        measured: Callable[[str], Sequence[Any]],
        times: Sequence[int] | None = None,
        place: Place | None = None,
        watermark: int | None = None,
    ) -> Iterator[OutputRows]:
        """
        Match the rows of a partition.

        Parameters
        ----------
        conditions : mapping of str to Condition
            What :meth:`compiled` gave.
        size : int
            The number of rows.
        columns : mapping of str to sequence
            The conditions' arguments, row by row.
        measured : callable
            Gives a measure's argument, row by row.
        times : sequence of int, optional
            The rows' times in epoch milliseconds, if there is a window.
        place : Place, optional
            Where to begin; it is moved on to where the search has come.
        watermark : int, optional
            The time after which all rows are that have not come yet; none are to come if not
            given.

        Yields
        ------
        OutputRows
            The output.
        """
        variables = self.program.variables
        about = PartitionConditions(
            variables, conditions, self.subsets, size, columns, self.ansi,
            times if self.within else None, self.within, watermark,
        )  # fmt: skip
        place = Place() if place is None else place
        matches = find_matches(self.program, about, size, self.skip, self.subsets, place)
        yield from output_rows(
            matches, self.rows, self.leaves, variables, self.subsets, measured, size, place
        )

    @property
    def looks_back(self) -> int:
        """How many rows before the first of a match are looked at."""
        return max((-leaf.shift for leaf in self._all_leaves()), default=0)

    @property
    def looks_ahead(self) -> bool:
        """Whether rows after the last of a match may be looked at."""
        anchors = any(op is Op.END for op, _, _ in self.program.code)
        return anchors or any(leaf.shift > 0 for leaf in self._all_leaves())

    @property
    def counts_rows(self) -> bool:
        """Whether it matters how many rows or matches a partition has had."""
        anchors = any(op is Op.START for op, _, _ in self.program.code)
        return anchors or any(leaf.function == "match_number" for leaf in self._all_leaves())

    def _all_leaves(self) -> Iterator[Leaf]:
        for expression in self.conditions.values():
            yield from expression.leaves
        yield from self.leaves


def read_clause(clause: Clause, names: Names) -> StandardClause:
    """
    Read the expressions of a clause and check that it makes sense.

    Raises
    ------
    CepError
        If it does not; names line and column.
    """
    program = compile_pattern(clause.pattern, names.variables, names.source, clause.pattern_span)
    skip = clause.skip or Skip(SkipTo.PAST_LAST_ROW)
    if skip.variable is not None:
        names.check(skip.variable, f"AFTER MATCH SKIP TO {skip.variable}", skip.span)
    conditions = {}
    for definition in clause.definitions:
        if definition.variable not in names.variables:
            continue
        variable = definition.variable
        expression = read_expression(definition.condition, names, variable)
        if any(leaf.function == "array_agg" for leaf in expression.leaves):
            raise names.source.error(
                f"DEFINE {variable}: ARRAY_AGG is for MEASURES",
                "compare COUNT, MIN or MAX",
                *definition.condition.span,
                NotSupportedError,
            )
        conditions[variable] = expression
    measures = {m.name: read_expression(m.expression, names) for m in clause.measures}
    return StandardClause(clause, names, program, conditions, measures, skip)
