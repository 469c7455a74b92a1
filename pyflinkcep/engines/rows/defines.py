# SPDX-License-Identifier: Apache-2.0
"""DEFINE with the standard's meaning: which condition is computed where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from pyflinkcep.engines.rows.evaluated import evaluated_condition
from pyflinkcep.engines.rows.plan import StandardClause, StandardPlan
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.match_recognize.expressions import Expression, read_expression
from pyflinkcep.match_recognize.names import Names

__all__ = ["Defines", "RowTypes", "error_of"]


class RowTypes(Protocol):
    """What is known of the input."""

    def kinds(self, read: StandardClause, /) -> dict[str, Kind]:
        """Return the types of the conditions' arguments; others are NULL in every row."""

    def check(self, variable: str, expression: Expression, /) -> None:
        """Refuse something evaluated in Python that is not a condition, as far as is known."""


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
        cls, read: StandardClause, names: Names, types: RowTypes, over: str | None, ansi: bool
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
        types : RowTypes
            What is known of the input.
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
            kinds = types.kinds(read)
            _check(read, read.plan(kinds, ansi))
            return cls(read, kinds, {})
        except CepError:
            pass
        found = cls(read, {}, {})
        for variable in read.conditions:
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
        return names.source.error(f"DEFINE {variable}: {message}", hint, *expression.span, kind)

    return error
