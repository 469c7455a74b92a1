# SPDX-License-Identifier: Apache-2.0
"""DEFINE with the standard's meaning on Spark: which condition is computed where."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, NullType, StructField, StructType

from pyflinkcep.engines.rows.evaluated import evaluated_condition
from pyflinkcep.engines.rows.plan import StandardClause, StandardPlan
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.match_recognize.expressions import Expression, read_expression
from pyflinkcep.match_recognize.leaves import LEAF
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.scalar import condition_leaves
from pyflinkcep.spark.plan.clauses.measures import argument_types, type_of_measure, values_of
from pyflinkcep.spark.plan.expressions import kind_of

__all__ = ["Defines"]


@attrs.frozen(eq=False)
class Defines:
    """
    The conditions of a clause, each as the fastest that can compute it.

    Attributes
    ----------
    read : StandardClause
        The clause; what Spark computes of conditions by its windows is values of the current row.
    kinds : dict of str to Kind
        The types of the SQL over a row that programs read.
    evaluated : dict of str to Expression
        The conditions that no program can say, by variable; they are evaluated in Python.
    uses_window : bool
        Whether Spark may compute something by its window functions.
    """

    read: StandardClause
    kinds: dict[str, Kind]
    evaluated: dict[str, Expression]
    uses_window: bool = False

    @classmethod
    def of(
        cls, read: StandardClause, names: Names, dataframe: DataFrame, over: str | None, ansi: bool
    ) -> Defines:
        """
        Decide where each condition is computed.

        By a program of the search if one can say it. Otherwise, on bounded input, Spark computes
        what reads rows at fixed distances from the current one, by its window functions; what
        remains is evaluated in Python.

        Parameters
        ----------
        read : StandardClause
            The clause.
        names : Names
            Its names.
        dataframe : DataFrame
            The input.
        over : str or None
            The window that is the partition in its order; None on a stream, which has none.
        ansi : bool
            Whether overflow and division by zero are errors.

        Raises
        ------
        CepError
            If a condition has no meaning, or nothing can compute it.
        """
        try:  # all at once, which is one question to Spark
            kinds = _kinds(dataframe, read, names)
            _check(read, read.plan(kinds, ansi))
            return cls(read, kinds, {})
        except CepError:
            pass
        found = cls(read, {}, {})
        for variable in read.conditions:
            found = found._with(variable, names, dataframe, over, ansi)
        return found

    def _with(
        self, variable: str, names: Names, dataframe: DataFrame, over: str | None, ansi: bool
    ) -> Defines:
        """Return this with the condition of a variable."""
        ways = [self.read.conditions[variable]]
        ways += self._other_ways(variable, names, over)
        for expression in ways:
            one = attrs.evolve(self.read, conditions={variable: expression})
            try:
                kinds = _kinds(dataframe, one, names)
                _check(one, one.plan(kinds, ansi))
            except CepError:
                continue
            conditions = {**self.read.conditions, variable: expression}
            read = attrs.evolve(self.read, conditions=conditions)
            windows = self.uses_window or (over is not None and expression is not ways[0])
            return Defines(read, {**self.kinds, **kinds}, self.evaluated, windows)
        _check_evaluated(variable, ways[-1], names, dataframe, ansi)
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


def _check_evaluated(
    variable: str,
    expression: Expression,
    names: Names,
    dataframe: DataFrame,
    ansi: bool,
) -> None:
    """Refuse a condition that is none, or that Python cannot evaluate."""
    error = _error_of(names, variable, expression)
    values = values_of({variable: expression}, names, dataframe, NullType(), "DEFINE")
    columns = {
        leaf: (f"{LEAF}{number}", value.type) for number, (leaf, value) in enumerate(values.items())
    }
    schema = StructType([StructField(*column) for column in columns.values()])
    empty = dataframe.sparkSession.createDataFrame([], schema)
    type_ = type_of_measure(empty, variable, expression, columns, names, "DEFINE")
    if not isinstance(type_, BooleanType):
        raise error(
            f"not a condition: expected boolean, got {type_.simpleString()}",
            "compare it with a value",
        )
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


def _kinds(dataframe: DataFrame, read: StandardClause, names: Names) -> dict[str, Kind]:
    """Return the types of the conditions' arguments."""
    errors: dict[str, Callable[[str, str], CepError]] = {}
    for variable, expression in read.conditions.items():
        for sql in read.arguments_of(condition_leaves(expression)):
            errors.setdefault(sql, _error_of(names, variable, expression))
    kinds = {}
    for sql, type_ in argument_types(dataframe, errors).items():
        kind = Kind.STRING if isinstance(type_, NullType) else kind_of(type_)
        if kind is None:
            raise errors[sql](
                f"{sql} is {type_.simpleString()}",
                "use a number, boolean, string, date, timestamp or day-time interval",
            )
        kinds[sql] = kind
    return kinds


def _check(read: StandardClause, plan: StandardPlan) -> None:
    """Compile the conditions one by one, to name the one at fault."""
    for variable, expression in read.conditions.items():
        try:
            plan.condition(variable)
        except CepError as refused:
            part = "" if refused.part is None else f"{refused.part!r} "
            raise _error_of(read.names, variable, expression)(
                f"not a condition: {part}{refused.problem}",
                refused.hint or "compare it with a value",
            ) from refused


def _error_of(names: Names, variable: str, expression: Expression) -> Callable[..., CepError]:
    def error(message: str, hint: str, kind: type[CepError] = InputError) -> CepError:
        return names.source.error(f"DEFINE {variable}: {message}", hint, *expression.span, kind)

    return error
