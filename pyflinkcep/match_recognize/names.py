# SPDX-License-Identifier: Apache-2.0
"""What the names in a clause may mean: pattern variables, unions of them, columns."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.match_recognize.tokens import Source
from pyflinkcep.match_recognize.tree import Clause, Span, variables

__all__ = ["Names", "nearest"]


def nearest(name: str, known: Sequence[str]) -> str:
    """Return a hint with the name that was perhaps meant."""
    by_capitals = [other for other in known if other.lower() == name.lower()]
    near = by_capitals or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"the variables are {', '.join(known)}" if known else "PATTERN has no variables"


@attrs.frozen(eq=False)
class Names:
    """
    The names of a clause.

    Attributes
    ----------
    source : Source
        The statement, for errors.
    variables : tuple of str
        The variables of PATTERN, each once, in the order in which they first stand there.
    subsets : dict of str to tuple of str
        The variables of each union of SUBSET.
    columns : tuple of str
        The columns of the input.
    alias : str or None
        The input's own name in the statement.
    standard : bool
        Whether the clause has the meaning of SQL:2016, not Flink's.
    """

    source: Source
    variables: tuple[str, ...]
    subsets: dict[str, tuple[str, ...]]
    columns: tuple[str, ...]
    alias: str | None
    standard: bool

    @classmethod
    def of(
        cls,
        clause: Clause,
        source: Source,
        columns: Sequence[str],
        alias: str | None,
        standard: bool,
    ) -> Names:
        """Collect the names of a clause."""
        names = tuple(dict.fromkeys(variable.name for variable in variables(clause.pattern)))
        subsets = {subset.name: subset.variables for subset in clause.subsets}
        return cls(source, names, subsets, tuple(columns), alias, standard)

    def members(self, name: str | None) -> tuple[str, ...]:
        """Return the variables that a variable or a union stands for; None stands for all."""
        if name is None:
            return self.variables
        return self.subsets.get(name, (name,))

    def nearest(self, name: str) -> str:
        """Return a hint with the variable that was perhaps meant."""
        return nearest(name, (*self.variables, *self.subsets))

    def is_variable(self, name: str) -> bool:
        """Whether a name is a variable of PATTERN or a union of them."""
        return name in self.variables or name in self.subsets

    def is_column(self, name: str) -> bool:
        """Whether the input has a column of a name, as Spark compares names."""
        return name.lower() in map(str.lower, self.columns)

    def check(self, name: str, what: str, span: Span) -> None:
        """
        Refuse a name that is no variable.

        Raises
        ------
        InvalidArgumentError
            If it is none; names the nearest.
        """
        if not self.is_variable(name):
            raise self.unknown(name, f"{what}: no such variable", span)

    def unknown(self, name: str, message: str, span: Span) -> CepError:
        """Make the error of a name that is no variable."""
        return self.source.error(message, nearest(name, (*self.variables, *self.subsets)), *span)
