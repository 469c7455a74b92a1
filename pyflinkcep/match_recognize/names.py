# SPDX-License-Identifier: Apache-2.0
"""The names in a clause: pattern variables, unions of them, columns."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pyflinkcep.errors import CepError, InvalidArgumentError, did_you_mean
from pyflinkcep.match_recognize.tokens import Source
from pyflinkcep.match_recognize.tree import Clause, Span, Spanned, Text, variables


def nearest(name: str, known: Sequence[str], what: str = "variables") -> str:
    """Return a hint with the closest name."""
    nothing = "PATTERN has no variables" if what == "variables" else f"there are no {what}"
    listed = f"the {what} are {', '.join(known)}" if known else nothing
    return did_you_mean(name, known, listed)


def spelled_alike(clause: Clause) -> Clause:
    """Return a clause with variables and unions spelled everywhere as in PATTERN and SUBSET."""
    spelled = _spellings(clause)

    def spelling(name: str) -> str:
        return spelled.get(name.lower(), name)

    skip = clause.skip
    if skip is not None and skip.variable is not None:
        skip = attrs.evolve(skip, variable=spelling(skip.variable))
    subsets = [attrs.evolve(s, variables=tuple(map(spelling, s.variables))) for s in clause.subsets]
    definitions = [attrs.evolve(d, variable=spelling(d.variable)) for d in clause.definitions]
    return attrs.evolve(clause, skip=skip, subsets=tuple(subsets), definitions=tuple(definitions))


def with_own_columns(clause: Clause, names: Names) -> Clause:
    """Return a clause whose columns are spelled as the input spells them."""

    def own(column: Text) -> Text:
        return attrs.evolve(column, text=names.own_column(column.text))

    order = tuple(attrs.evolve(column, name=own(column.name)) for column in clause.order)
    return attrs.evolve(clause, partition=tuple(map(own, clause.partition)), order=order)


def _spellings(clause: Clause) -> dict[str, str]:
    """Return the names of variables and unions by their lower-case form."""
    names = [variable.name for variable in variables(clause.pattern)]
    names += [subset.name for subset in clause.subsets]
    return {name.lower(): name for name in reversed(names)}


@attrs.frozen(eq=False)
class Names:
    """The names of a clause."""

    source: Source  # The statement, for errors
    variables: tuple[str, ...]  # The distinct variables of PATTERN, in order of first appearance
    subsets: dict[str, tuple[str, ...]]  # The variables of each union of SUBSET
    columns: tuple[str, ...]  # The columns of the input
    alias: str | None  # The input's own name in the statement
    standard: bool  # Whether the clause has the meaning of SQL:2016 rather than Flink's
    # Variables and unions by their lower-case form, if names are case-insensitive.
    spellings: dict[str, str]
    queries: str = ""  # The WITH that subqueries of the clause may read, empty if there is none

    @classmethod
    def of(
        cls,
        clause: Clause,
        source: Source,
        columns: Sequence[str],
        alias: str | None,
        standard: bool,
        case_sensitive: bool = False,
        queries: str = "",
    ) -> Names:
        """Collect the names of a clause; `case_sensitive` is for the standard's dialect."""
        names = tuple(dict.fromkeys(variable.name for variable in variables(clause.pattern)))
        subsets = {subset.name: subset.variables for subset in clause.subsets}
        spellings = _spellings(clause) if standard and not case_sensitive else {}
        return cls(source, names, subsets, tuple(columns), alias, standard, spellings, queries)

    def members(self, name: str | None) -> tuple[str, ...]:
        """Return the variables of a variable or a union; None stands for all."""
        if name is None:
            return self.variables
        return self.subsets.get(name, (name,))

    def nearest(self, name: str) -> str:
        """Return a hint with the closest variable."""
        return nearest(name, (*self.variables, *self.subsets))

    def variable(self, name: str) -> str | None:
        """Return the variable of PATTERN, or union, of a name; None if there is none."""
        if name in self.variables or name in self.subsets:
            return name
        return self.spellings.get(name.lower())

    def is_column(self, name: str) -> bool:
        """Whether the input has a column of some name, as Spark compares names."""
        return name.lower() in map(str.lower, self.columns)

    def own_column(self, name: str) -> str:
        """Return the name of a column of the input as the input spells it."""
        same = (column for column in self.columns if column.lower() == name.lower())
        return name if name in self.columns else next(same)

    def error(
        self,
        part: Spanned | Span,
        message: str,
        hint: str,
        kind: type[CepError] = InvalidArgumentError,
    ) -> CepError:
        """Make the error for a part of the statement."""
        start, end = part if isinstance(part, tuple) else part.span
        return self.source.error(message, hint, start, end, kind)

    def check(self, name: str, what: str, span: Span) -> None:
        """Refuse a name that is not a variable."""
        if self.variable(name) is None:
            raise self.unknown(name, f"{what}: no such variable", span)

    def unknown(self, name: str, message: str, span: Span) -> CepError:
        """Make the error for a name that is not a variable."""
        return self.error(span, message, self.nearest(name))
