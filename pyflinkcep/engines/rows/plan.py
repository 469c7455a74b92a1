# SPDX-License-Identifier: Apache-2.0
"""A clause with SQL:2016's meaning, parsed and checked, and the plan that workers match by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

import attrs

from pyflinkcep.engines.rows.program import Op as Step
from pyflinkcep.engines.rows.program import Program, compile_pattern
from pyflinkcep.engines.rows.values import Condition, SearchTables, fold_function, search_tables
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import LeafFields, Typed, condition_code, value_code
from pyflinkcep.expressions.evaluator import columns_of, part_value
from pyflinkcep.expressions.program import Code, CompiledExpressions, Field, Kind, Op, Type
from pyflinkcep.expressions.sql_values import truth
from pyflinkcep.expressions.tree import Aggregate, Column, attribute_of, leaves, shown
from pyflinkcep.match_recognize.expressions import Expression, condition_leaves, read_expression
from pyflinkcep.match_recognize.leaves import LABEL, Leaf, labelled, parts_of
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.tree import Clause, Rows, Skip, SkipTo


def evaluated_condition(variable: str, expression: Expression) -> Condition:
    """Return the condition of a variable, whose leaves have the values that Spark gives them."""
    for leaf in expression.leaves:
        if leaf.fold is not None:
            fold_function(leaf.fold)
    value = part_value(expression.read, expression.syntax, dict(expression.placed)).function

    def holds(values: Sequence[Any]) -> bool:
        try:
            return truth(value(values)) is True
        except InputError as cause:
            raise ArithmeticError(cause.message) from cause

    return Condition(variable, expression.text, expression.leaves, (), holds, is_evaluated=True)


class _Leaves(LeafFields):
    """The leaves of a condition as fields."""

    unit = "row"
    ends = "FIRST or LAST"

    def __init__(self, kinds: Mapping[Leaf, Kind]) -> None:
        self._of = dict(kinds)
        arguments = {leaf.argument: kind for leaf, kind in kinds.items() if leaf.argument}
        super().__init__({str(argument): kind for argument, kind in arguments.items()})
        self.fields: dict[Leaf, Kind] = {}

    def knows(self, sql: str) -> bool:
        """Whether the values of a leaf have a type; without one they are always NULL."""
        return super().knows(sql) or sql == LABEL

    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instruction that pushes a leaf."""
        assert isinstance(part, Leaf)
        kind = self._of[part] if part in self._of else self.kind(part.argument or "")
        self.fields.setdefault(part, kind)
        return Typed([(Op.FIELD, list(self.fields).index(part))], kind)


_NUMBERS = (Kind.BIGINT, Kind.DOUBLE)
_MOST_VARIABLES = 256


@attrs.frozen(eq=False)
class StandardClause:
    """A parsed clause."""

    clause: Clause  # The clause
    names: Names  # Its names
    program: Program  # PATTERN
    conditions: dict[str, Expression]  # DEFINE; parts about the current row alone are one leaf
    measures: dict[str, Expression]  # MEASURES by name
    skip: Skip  # Where to look for the next match

    def measure_leaves(self) -> tuple[Leaf, ...]:
        """Return the distinct values that measures take from a match."""
        return tuple(dict.fromkeys(leaf for e in self.measures.values() for leaf in e.leaves))

    def measure_parts(self) -> tuple[Leaf, ...]:
        """Return what workers take from a match for them."""
        return tuple(dict.fromkeys(chain.from_iterable(map(parts_of, self.measure_leaves()))))

    def measure_arguments(self) -> list[str]:
        """Return the SQL over one row that measures need."""
        return list(dict.fromkeys(self.arguments_of(self.measure_parts())))

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
        """Return the plan for workers."""
        return StandardPlan(
            self.program,
            self.conditions,
            dict(kinds),
            ansi,
            self.names.subsets,
            self.skip,
            self.clause.rows,
            self.measure_parts() if leaves is None else tuple(leaves),
            within,
            frozenset(evaluated),
        )


@attrs.frozen(eq=False)
class Compiled:
    """The conditions of a clause, compiled."""

    conditions: dict[str, Condition]  # DEFINE, by variable
    # The same for the compiled search; None if it does not support them.
    tables: SearchTables | None


class _Read(NamedTuple):
    """A condition as a program whose fields are leaves, with their types."""

    leaves: list[tuple[Leaf, Kind]]
    code: Code


@attrs.frozen(eq=False)
class StandardPlan:
    """The settings for matching a partition; travels to the workers."""

    program: Program  # PATTERN
    conditions: dict[str, Expression]  # DEFINE
    kinds: dict[str, Kind]  # The types of the conditions' arguments; others are NULL in every row
    ansi: bool  # Whether overflow and division by zero are errors
    subsets: dict[str, tuple[str, ...]]  # The variables of each union
    skip: Skip  # Where to look for the next match
    rows: Rows  # The output rows of a match
    leaves: tuple[Leaf, ...]  # What the measures take of a match
    within: int = 0  # The window, 0 for none
    # The variables whose conditions no program can say; they are evaluated in Python.
    evaluated: frozenset[str] = frozenset()

    def compiled(self) -> Compiled:
        """Compile the conditions."""
        conditions = {variable: self.condition(variable) for variable in self.conditions}
        if any(kind.type is Type.DECIMAL for kind in self.kinds.values()):
            return Compiled(conditions, None)
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
        read = self._read(variable)
        values = tuple(Field(repr(leaf), kind) for leaf, kind in read.leaves)
        compiled = CompiledExpressions(values, (), {expression.text: read.code}, self.ansi)
        (function,) = generated(compiled).conditions.values()
        return Condition(
            variable, expression.text, tuple(leaf for leaf, _ in read.leaves), read.code,
            lambda values: function(values, ()), bool(read.leaves) and self._is_row(expression),
        )  # fmt: skip

    def with_casts(self) -> StandardPlan:
        """Return the plan with the types of the arguments in the form that conditions read."""
        kinds = dict(self.kinds)
        for variable in (name for name in self.conditions if name not in self.evaluated):
            for leaf, kind in self._read(variable).leaves:
                if not leaf.is_row or leaf.argument == LABEL:
                    continue
                for name in self.program.variables:
                    kinds.setdefault(labelled(leaf.argument or "", name), kind)
        return attrs.evolve(self, kinds=kinds)

    def _read(self, variable: str) -> _Read:
        """Compile the condition of a variable for the leaves that it needs."""
        expression = self.conditions[variable]
        tree = expression.tree
        if isinstance(tree, CepError):
            raise tree
        assert tree is not None
        for part in leaves(tree):
            if isinstance(part, Column):  # a constant that only Spark could compute, never does
                what = f"{shown(part)!r} next to values of the match"
                raise InputError(what, "compute it in a subquery first")
        fields = _Leaves(self._leaf_kinds(expression))
        code = condition_code(tree, fields, f"DEFINE: the condition {expression.text!r}")
        used = sorted({int(operand or 0) for op, operand in code if op is Op.FIELD})
        known = list(fields.fields.items())
        return _Read(
            [known[number] for number in used],
            tuple(
                (op, used.index(int(operand or 0)) if op is Op.FIELD else operand)
                for op, operand in code
            ),
        )

    def _leaf_kinds(self, expression: Expression) -> dict[Leaf, Kind]:
        """Return the types of what an expression takes from the match; others are always NULL."""
        found = {leaf: self._kind(leaf) for leaf in condition_leaves(expression)}
        return {leaf: kind for leaf, kind in found.items() if kind is not None}

    def kind_of(self, expression: Expression) -> Kind | None:
        """Return the type of an expression; None if it is always NULL, or not known."""
        if any(leaf.function in ("fold", "array_agg") for leaf in condition_leaves(expression)):
            return None
        if expression.tree is None or isinstance(expression.tree, CepError):
            return None
        try:
            return value_code(expression.tree, _Leaves(self._leaf_kinds(expression)), "").kind
        except CepError:
            return None

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
        anchors = any(op is Step.END for op, _, _ in self.program.code)
        return anchors or any(leaf.shift > 0 for leaf in self._all_leaves())

    @property
    def counts_rows(self) -> bool:
        """Whether the numbers of earlier rows or matches of a partition matter."""
        anchors = any(op is Step.START for op, _, _ in self.program.code)
        return anchors or any(leaf.has_number for leaf in self._all_leaves())

    def _all_leaves(self) -> Iterator[Leaf]:
        for expression in self.conditions.values():
            yield from expression.leaves
        yield from self.leaves


def read_clause(clause: Clause, names: Names) -> StandardClause:
    """Read and check the expressions of a clause."""
    if len(names.variables) > _MOST_VARIABLES:
        raise names.error(
            clause.pattern_span,
            f"PATTERN has {len(names.variables)} variables, more than {_MOST_VARIABLES}",
            "use a variable more than once, or join conditions with OR",
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


class RowTypes(Protocol):
    """What is known of the input."""

    def kinds(self, read: StandardClause, /) -> dict[str, Kind]:
        """Return the types of the conditions' arguments; others are NULL in every row."""

    def check(self, variable: str, expression: Expression, /) -> None:
        """Refuse something evaluated in Python that is not a condition, as far as is known."""


@attrs.frozen(eq=False)
class Defines:
    """The conditions of a clause, each as the fastest that can compute it."""

    # The clause; what Spark computes of conditions by its windows is values of the current row.
    read: StandardClause
    kinds: dict[str, Kind]  # The types of the SQL over a row that programs read
    # The conditions that no program can say, by variable; they are evaluated in Python.
    evaluated: dict[str, Expression]
    uses_window: bool = False  # Whether Spark may compute something by its window functions

    @classmethod
    def of(
        cls, read: StandardClause, names: Names, types: RowTypes, over: str | None, ansi: bool
    ) -> Defines:
        """
        Decide where each condition is computed.

        By a program of the search if one can say it. Otherwise, on bounded input, Spark computes
        what reads rows at fixed distances from the current one, by its window functions; what
        remains is evaluated in Python, and so is what fails for rows for which it is not asked.
        """
        late = _guarded(read, names, types) if ansi else {}
        rest = {name: own for name, own in read.conditions.items() if name not in late}
        read = attrs.evolve(read, conditions={**read.conditions, **late})
        try:  # all at once, which is one question to Spark
            asked = attrs.evolve(read, conditions=rest)
            kinds = types.kinds(asked)
            _check(asked, asked.plan(kinds, ansi))
            return cls(read, kinds, late)
        except CepError:
            pass
        found = cls(read, {}, late)
        for variable in rest:
            found = found._with(variable, names, types, over, ansi)
        return found

    def _with(
        self, variable: str, names: Names, types: RowTypes, over: str | None, ansi: bool
    ) -> Defines:
        """Return this with the condition of a variable."""
        ways = [self.read.conditions[variable]]
        ways += self._other_ways(variable, names, over)
        for expression in ways:
            one = attrs.evolve(self.read, conditions={variable: expression})
            try:
                kinds = types.kinds(one)
                _check(one, one.plan(kinds, ansi))
            except CepError:
                continue
            conditions = {**self.read.conditions, variable: expression}
            read = attrs.evolve(self.read, conditions=conditions)
            windows = self.uses_window or (over is not None and expression is not ways[0])
            return Defines(read, {**self.kinds, **kinds}, self.evaluated, windows)
        types.check(variable, ways[-1])
        _check_evaluated(variable, ways[-1], names, ansi)
        conditions = {**self.read.conditions, variable: ways[-1]}
        read = attrs.evolve(self.read, conditions=conditions)
        evaluated = {**self.evaluated, variable: ways[-1]}
        return Defines(read, self.kinds, evaluated, over is not None)

    def _other_ways(self, variable: str, names: Names, over: str | None) -> list[Expression]:
        """Return a condition with more of it computed by Spark, row by row."""
        definitions = self.read.clause.definitions
        (text,) = (d.condition for d in definitions if d.variable == variable)
        ways = [read_expression(text, names, variable, over=over, at_rows=True)]
        if over is not None and any(leaf.shift for leaf in self.read.conditions[variable].leaves):
            ways.insert(0, read_expression(text, names, variable, over=over))
        return ways

    def evaluated_arguments(self) -> list[str]:
        """Return the SQL over a row that conditions evaluated in Python read."""
        leaves = (leaf for e in self.evaluated.values() for leaf in e.leaves)
        return list(dict.fromkeys(self.read.arguments_of(leaves)))


def _guarded(read: StandardClause, names: Names, types: RowTypes) -> dict[str, Expression]:
    """Return the conditions of which a part may fail that something about the match guards."""
    found = {}
    for definition in read.clause.definitions:
        variable, own = definition.variable, read.conditions.get(definition.variable)
        if own is None:
            continue
        expression = read_expression(definition.condition, names, variable, guarded=True)
        apart = [leaf for leaf in own.leaves if leaf not in expression.leaves]
        if not apart:
            continue
        try:
            evaluated_condition(variable, expression)
            columns = set(chain.from_iterable(map(columns_of, read.arguments_of(apart))))
        except CepError:
            continue  # only Spark computes it, for all rows
        try:
            kinds = types.kinds(attrs.evolve(read, conditions={variable: expression}))
        except CepError:
            found[variable] = expression
            continue
        if any(kind is Kind.STRING and attribute_of(sql) in columns for sql, kind in kinds.items()):
            found[variable] = expression
    return found


def _check_evaluated(variable: str, expression: Expression, names: Names, ansi: bool) -> None:
    """Refuse a condition that Python cannot evaluate."""
    error = error_of(names, variable, expression)
    try:
        evaluated_condition(variable, expression)
    except CepError as cause:
        hint = cause.hint or ""
        if cause.part is not None:  # a part that only Spark evaluates
            hint = (
                "around values of several rows, DEFINE has operators, CASE and the common functions"
                " of numbers, texts and times; compute others in a subquery, or in WHERE after it"
            )
        raise error(cause.message, hint, NotSupportedError) from cause
    if not ansi:
        raise error(
            "it is computed by the rules of spark.sql.ansi.enabled alone",
            "set spark.sql.ansi.enabled to true",
            NotSupportedError,
        )


def _check(read: StandardClause, plan: StandardPlan) -> None:
    """Compile the conditions one by one, to name the one at fault."""
    for variable, expression in read.conditions.items():
        try:
            plan.condition(variable)
        except CepError as refused:
            part = "" if refused.part is None else f"{refused.part!r} "
            raise error_of(read.names, variable, expression)(
                f"not a condition: {part}{refused.problem}",
                refused.hint or "compare it with a value",
            ) from refused


def error_of(names: Names, variable: str, expression: Expression) -> Callable[..., CepError]:
    """Return what makes errors about the condition of a variable."""

    def error(message: str, hint: str, kind: type[CepError] = InputError) -> CepError:
        return names.error(expression.span, f"DEFINE {variable}: {message}", hint, kind)

    return error
