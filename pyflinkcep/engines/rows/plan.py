# SPDX-License-Identifier: Apache-2.0
"""A clause with SQL:2016's meaning, parsed and checked, and the plan that workers match by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import attrs

from pyflinkcep.engines.rows.evaluated import evaluated_condition
from pyflinkcep.engines.rows.program import Op, Program, compile_pattern
from pyflinkcep.engines.rows.tables import SearchTables, search_tables
from pyflinkcep.engines.rows.values import Condition
from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.match_recognize.expressions import Expression, read_expression
from pyflinkcep.match_recognize.leaves import LABEL, Leaf, labelled, parts_of
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.scalar import (
    ConditionProgram,
    condition_leaves,
    condition_program,
    value_kind,
)
from pyflinkcep.match_recognize.tree import Clause, Rows, Skip, SkipTo

__all__ = ["Compiled", "StandardClause", "StandardPlan", "read_clause"]

_NUMBERS = (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL, Kind.WIDE_DECIMAL)
_MOST_VARIABLES = 256


@attrs.frozen(eq=False)
class StandardClause:
    """
    A parsed clause.

    Attributes
    ----------
    clause : Clause
        The clause.
    names : Names
        Its names.
    program : Program
        PATTERN.
    conditions : dict of str to Expression
        DEFINE; parts about the current row alone are one leaf.
    measures : dict of str to Expression
        MEASURES by name.
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
        leaves = (condition_leaves(e) for e in self.conditions.values())
        return list(dict.fromkeys(self.arguments_of(chain.from_iterable(leaves))))

    def measure_leaves(self) -> tuple[Leaf, ...]:
        """Return the distinct values that measures take from a match."""
        return tuple(dict.fromkeys(leaf for e in self.measures.values() for leaf in e.leaves))

    def measure_arguments(self) -> list[str]:
        """Return the SQL over one row that measures need."""
        parts = (part for leaf in self.measure_leaves() for part in parts_of(leaf))
        return list(dict.fromkeys(self.arguments_of(parts)))

    def arguments_of(self, leaves: Iterable[Leaf]) -> Iterator[str]:
        """Yield the SQL over one row that leaves need."""
        for leaf in leaves:
            yield from leaf.arguments_for(self.names.variables)

    def plan(
        self,
        kinds: Mapping[str, Kind],
        ansi: bool,
        within: int = 0,
        leaves: Sequence[Leaf] | None = None,
        evaluated: Iterable[str] = (),
    ) -> StandardPlan:
        """
        Return the plan for workers.

        Parameters
        ----------
        kinds : mapping of str to Kind
            The types of :meth:`condition_arguments`.
        ansi : bool
            Whether overflow and division by zero are errors.
        within : int, milliseconds
            The window, 0 for none.
        leaves : sequence of Leaf, optional
            What to take from a match; by default what the measures need.
        evaluated : iterable of str
            The variables whose conditions no program can say.
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
            frozenset(evaluated),
        )


@attrs.frozen(eq=False)
class Compiled:
    """
    The conditions of a clause, compiled.

    Attributes
    ----------
    conditions : dict of str to Condition
        DEFINE, by variable.
    tables : SearchTables or None
        The same for the compiled search; None if it does not support them.
    """

    conditions: dict[str, Condition]
    tables: SearchTables | None


@attrs.frozen(eq=False)
class StandardPlan:
    """
    The settings for matching a partition; travels to the workers.

    Attributes
    ----------
    program : Program
        PATTERN.
    conditions : dict of str to Expression
        DEFINE.
    kinds : dict of str to Kind
        The types of the conditions' arguments; others are NULL in every row.
    ansi : bool
        Whether overflow and division by zero are errors.
    subsets : dict of str to tuple of str
        The variables of each union.
    skip : Skip
        Where to look for the next match.
    rows : Rows
        The output rows of a match.
    leaves : tuple of Leaf
        What the measures take of a match.
    within : int, milliseconds
        The window, 0 for none.
    evaluated : frozenset of str
        The variables whose conditions no program can say; they are evaluated in Python.
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
    evaluated: frozenset[str] = frozenset()

    def compiled(self) -> Compiled:
        """
        Compile the conditions.

        Raises
        ------
        InputError
            If a condition is not boolean, or types are incompatible.
        """
        conditions = {variable: self.condition(variable) for variable in self.conditions}
        tables = search_tables(
            self.program.variables,
            conditions,
            self.subsets,
            lambda argument: self.kinds[argument].type is Type.FLOAT,
        )
        return Compiled(conditions, tables)

    def condition(self, variable: str) -> Condition:
        """Compile the condition of a variable; see :meth:`compiled`."""
        expression = self.conditions[variable]
        if variable in self.evaluated:
            return evaluated_condition(variable, expression)
        program = self._program(variable)
        return Condition(
            variable, expression.text, program.leaves, program.code, program.function,
            bool(program.leaves) and self._is_row(expression),
        )  # fmt: skip

    def with_casts(self) -> StandardPlan:
        """Return the plan with the types of the arguments in the form that conditions read."""
        kinds = dict(self.kinds)
        for program in map(self._program, self._programmed()):
            for leaf, kind in zip(program.leaves, program.kinds, strict=True):
                if not leaf.is_row or leaf.argument == LABEL:
                    continue
                for variable in self.program.variables:
                    kinds.setdefault(labelled(leaf.argument or "", variable), kind)
        return attrs.evolve(self, kinds=kinds)

    def _programmed(self) -> Iterator[str]:
        return (variable for variable in self.conditions if variable not in self.evaluated)

    def _program(self, variable: str) -> ConditionProgram:
        expression = self.conditions[variable]
        return condition_program(expression, self._leaf_kinds(expression), self.ansi)

    def _leaf_kinds(self, expression: Expression) -> dict[Leaf, Kind]:
        """Return the types of what an expression takes from the match; others are always NULL."""
        found = {leaf: self._kind(leaf) for leaf in condition_leaves(expression)}
        return {leaf: kind for leaf, kind in found.items() if kind is not None}

    def kind_of(self, expression: Expression) -> Kind | None:
        """Return the type of an expression; None if it is always NULL, or not known."""
        if any(leaf.function in ("fold", "array_agg") for leaf in condition_leaves(expression)):
            return None
        return value_kind(expression, self._leaf_kinds(expression))

    def _is_row(self, expression: Expression) -> bool:
        """Whether Spark answers all of a condition, for each row."""
        leaf = expression.lone_leaf
        if leaf is None or leaf.has_label:
            return False
        return leaf == Leaf.of("last", None, leaf.argument)

    def _kind(self, leaf: Leaf) -> Kind | None:
        """Return the type of a leaf; None if it is always NULL."""
        if leaf.function in ("count", "match_number"):
            return Kind.BIGINT
        if leaf.function in ("fold", "array_agg") or leaf.argument is None:
            raise NotSupportedError(f"{leaf.function} in a program", "evaluate the condition")
        kind = Kind.STRING
        if leaf.argument != LABEL:
            known = self.kinds.get(labelled(leaf.argument, self.program.variables[0]))
            if known is None:
                return None
            kind = known
        if leaf.function in ("sum", "avg") and kind not in _NUMBERS:
            raise InputError(
                f"{leaf.function.upper()} of {leaf.argument}, which is {kind.value}", "sum numbers"
            )
        return Kind.DOUBLE if leaf.function == "avg" else kind

    @property
    def looks_back(self) -> int:
        """How many rows before the first of a match may be read."""
        return max((-leaf.shift for leaf in self._all_leaves()), default=0)

    @property
    def looks_ahead(self) -> bool:
        """Whether rows after the last of a match may be read."""
        anchors = any(op is Op.END for op, _, _ in self.program.code)
        return anchors or any(leaf.shift > 0 for leaf in self._all_leaves())

    @property
    def counts_rows(self) -> bool:
        """Whether the numbers of earlier rows or matches of a partition matter."""
        anchors = any(op is Op.START for op, _, _ in self.program.code)
        return anchors or any(leaf.has_number for leaf in self._all_leaves())

    def _all_leaves(self) -> Iterator[Leaf]:
        for expression in self.conditions.values():
            yield from expression.leaves
        yield from self.leaves


def read_clause(clause: Clause, names: Names) -> StandardClause:
    """
    Read and check the expressions of a clause.

    Raises
    ------
    CepError
        If the clause is meaningless; the message names line and column.
    """
    if len(names.variables) > _MOST_VARIABLES:
        raise names.source.error(
            f"PATTERN has {len(names.variables)} variables, more than {_MOST_VARIABLES}",
            "use a variable more than once, or join conditions with OR",
            *clause.pattern_span,
            NotSupportedError,
        )
    program = compile_pattern(clause.pattern, names.variables, names.source, clause.pattern_span)
    skip = clause.skip or Skip(SkipTo.PAST_LAST_ROW)
    if skip.variable is not None:
        names.check(skip.variable, f"AFTER MATCH SKIP TO {skip.variable}", skip.span)
    conditions = {}
    for definition in clause.definitions:
        if definition.variable not in names.variables:
            continue
        variable = definition.variable
        conditions[variable] = read_expression(definition.condition, names, variable)
    measures = {m.name: read_expression(m.expression, names) for m in clause.measures}
    return StandardClause(clause, names, program, conditions, measures, skip)
