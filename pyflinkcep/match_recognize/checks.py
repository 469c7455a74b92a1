# SPDX-License-Identifier: Apache-2.0
"""Checks of a clause that hold in both dialects and need no column types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyflinkcep.errors import InputError
from pyflinkcep.match_recognize.names import Names, nearest
from pyflinkcep.match_recognize.parser import COMPUTE_FIRST, NO_PROCESSING_TIME
from pyflinkcep.match_recognize.tokens import Source
from pyflinkcep.match_recognize.tree import Clause, Exclusion, Part, Rows, Span, Text, parts


def check_clause(clause: Clause, names: Names, case_sensitive: bool) -> None:
    """Refuse a meaningless clause."""
    for measure in clause.measures:
        if measure.unnamed is not None and not names.standard:
            raise names.error(measure, "a measure needs AS name", measure.unnamed)
    _check_columns(clause, names)
    _check_output(clause, names, case_sensitive)
    _check_variables(clause, names, case_sensitive)
    if clause.rows is Rows.WITH_UNMATCHED and _excludes(clause.pattern):
        what = "{- -} with ALL ROWS PER MATCH WITH UNMATCHED ROWS"
        hint = "leave one of them out: excluded rows are neither matched nor unmatched"
        raise names.error(clause.pattern_span, what, hint)


def check_columns(
    columns: Sequence[str], clause: Clause, source: Source, case_sensitive: bool
) -> None:
    """Refuse input with columns of one name, whose use would be ambiguous."""
    names = [name if case_sensitive else name.lower() for name in columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise source.error(
            f"the input of MATCH_RECOGNIZE has two columns named {', '.join(map(repr, repeated))}",
            "name them apart in a subquery, such as SELECT l.*, r.id AS other_id",
            *clause.pattern_span,
            InputError,
        )


def check_time(
    clause: Clause, names: Names, type_of: Callable[[str], tuple[bool, str]], *, is_stream: bool
) -> None:
    """Refuse a clause of Flink's meaning whose rows are not ordered by time."""
    needed = "either rowtime or proctime for order by"
    if not clause.order:
        what = f"You must specify {needed if is_stream else 'non-empty order by'}."
        hint = "write ORDER BY ts, the event time"
        raise names.error(clause.pattern_span, what, hint, InputError)
    first, name = clause.order[0], clause.order[0].name
    is_time, shown = type_of(name.text)
    if not is_time:
        needed = needed if is_stream else "time point for order by"
        hint = f"put the event time first: {name.text} is {shown}"
        raise names.error(name, f"You must specify {needed} as the first one.", hint, InputError)
    if first.descending:
        table = "streaming table" if is_stream else "table"
        what = f"Primary sort order of a {table} must be ascending on time."
        raise names.error(name, what, f"write ORDER BY {name.text}", InputError)


def within_time(clause: Clause, names: Names, type_of: Callable[[str], tuple[bool, str]]) -> str:
    """Return the column that WITHIN measures; refuse one that is no time."""
    hint = "write ORDER BY ts first, a timestamp or epoch milliseconds as bigint, ascending"
    if not clause.order or clause.order[0].descending:
        raise names.error(clause.pattern_span, "WITHIN without a time", hint, InputError)
    first = clause.order[0].name
    is_time, shown = type_of(first.text)
    if not is_time:
        raise names.error(first, f"WITHIN over {first.text}, which is {shown}", hint, InputError)
    return first.text


def _excludes(pattern: Part) -> bool:
    return any(isinstance(part, Exclusion) for part in parts(pattern))


def _check_columns(clause: Clause, names: Names) -> None:
    for column in () if names.standard else clause.computed():
        what = "PARTITION BY" if column in clause.partition else "ORDER BY"
        raise names.error(column, f"{what} takes columns", COMPUTE_FIRST)
    for column in (*clause.partition, *(order.name for order in clause.order)):
        if column.table is not None and column.table.lower() != (names.alias or "").lower():
            raise names.error(
                column,
                f"{column.table}.{column.text}: {column.table} is not the table before the clause",
                f"write {column.text}, or name the table: FROM t AS {column.table} MATCH_RECOGNIZE",
            )
        if not names.is_column(column.text):
            is_clock = column.text.lower() in ("proctime", "proc_time")
            hint = nearest(column.text, names.columns, "columns")
            what = f"no column {column.text!r} in the input"
            raise names.error(column, what, NO_PROCESSING_TIME if is_clock else hint)


def _check_output(clause: Clause, names: Names, case_sensitive: bool) -> None:
    def folded(name: str) -> str:
        return name if case_sensitive else name.lower()

    keys: dict[str, Text] = {}
    ordered: set[str] = set()
    for column in (one.name for one in clause.order):
        if folded(column.text) in ordered and clause.rows is not Rows.ONE:
            what = f"ORDER BY {column.text} twice: ALL ROWS PER MATCH would show it twice"
            raise names.error(column, what, "name each column once")
        ordered.add(folded(column.text))
    for key in clause.partition:
        if folded(key.text) in keys:
            raise names.error(key, f"PARTITION BY {key.text} twice", "name each column once")
        keys[folded(key.text)] = key
    seen = set()
    for measure in clause.measures:
        name = folded(measure.name)
        if name in keys:
            what = f"Columns ambiguously defined: measure {measure.name} is a partition column"
            hint = "partition columns are always in the output: leave the measure out, or rename it"
            raise names.error(measure, what, hint)
        if clause.rows is not Rows.ONE and name in map(folded, names.columns):
            raise names.error(
                measure,
                f"Columns ambiguously defined: measure {measure.name} is a column of the input, "
                "which ALL ROWS PER MATCH shows too",
                "rename the measure",
            )
        if name in seen:
            raise names.error(
                measure, f"two measures named {measure.name}", "give each its own name"
            )
        seen.add(name)
    if not clause.measures and not names.standard:
        what = "Columns ambiguously defined: {}: no MEASURES"
        hint = "write MEASURES with values of the match, such as LAST(A.ts) AS ts"
        raise names.error(clause.pattern_span, what, hint)


def _check_variables(clause: Clause, names: Names, case_sensitive: bool) -> None:
    if not case_sensitive:
        _check_capitals((*names.variables, *names.subsets), names, clause.pattern_span)
    seen = set()
    for subset in clause.subsets:
        if subset.name in names.variables or subset.name in seen:
            what = f"SUBSET {subset.name}: a variable has the same name"
            raise names.error(subset, what, "give the union a name of its own")
        seen.add(subset.name)
        for variable in subset.variables:
            if variable not in names.variables:
                raise names.unknown(
                    variable,
                    f"SUBSET {subset.name}: {variable} is not a variable",
                    subset.span,
                )
    defined = set()
    for definition in clause.definitions:
        name = definition.variable
        if name in defined:
            raise names.error(
                definition, f"DEFINE {name} twice", "join the conditions with AND or OR"
            )
        defined.add(name)
        if name in names.subsets:
            what = f"DEFINE {name}: {name} is a union of variables"
            raise names.error(definition, what, "define the variables themselves")
        others = [v for v in names.variables if v.lower() == name.lower()]
        # Flink ignores a definition of another name.
        if name not in names.variables and (others or names.standard):
            raise names.unknown(name, f"DEFINE {name}: PATTERN has no {name}", definition.span)


def _check_capitals(variables: Iterable[str], names: Names, span: Span) -> None:
    seen: dict[str, str] = {}
    for name in variables:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            what = f"the variables {other} and {name} differ in capitals only"
            raise names.error(span, what, "rename one, or set spark.sql.caseSensitive to true")
