# SPDX-License-Identifier: Apache-2.0
"""MATCH_RECOGNIZE on tables in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import attrs

from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.errors import (
    CepError,
    Dialect,
    InvalidArgumentError,
    OnTooManyPartialMatches,
    check_choice,
    suggesting,
)
from pyflinkcep.match_recognize.checks import check_clause, check_columns
from pyflinkcep.match_recognize.names import Names, spelled_alike, with_own_columns
from pyflinkcep.match_recognize.parser import parse_clause
from pyflinkcep.match_recognize.statement import with_parameters
from pyflinkcep.match_recognize.tokens import Source, tokenize
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.matching.memory import check_memory
from pyflinkcep.matching.threads import usable_cores
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.matches import OutputTable
from pyflinkcep.tables.rows import table_or_rest

if TYPE_CHECKING:
    from pyflinkcep.tables.stored import StoredEvents


@suggesting
def matchRecognize(
    events: Table | Sequence[Mapping[str, Any]],
    clause: str,
    dialect: Dialect = "flink",
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
) -> OutputTable:
    """
    Apply the clause MATCH_RECOGNIZE to a table in memory.

    Parameters
    ----------
    events : table or list of dict
        A pandas or polars DataFrame, an Arrow table, columns by name, the path of a file or folder
        of Parquet, or dicts.
    clause : str
        The text between the parentheses of MATCH_RECOGNIZE. SQL is evaluated by the rules of
        Spark's default (ANSI) mode; names are compared without regard to capitals.
    dialect, maxPartialMatches, onTooManyPartialMatches, args
        See :meth:`pyflinkcep.CEP.sql`.
    threads : int, at least 1, optional
        On how many cores partitions of large tables are matched at most, by default all that the
        process may use. Conditions on texts or decimals, or without a program, keep to one.
    memory : int, bytes from 1, or str, optional
        How much memory files may take, as for :func:`match`. In the standard's dialect the rows of
        each partition have to fit.

    Returns
    -------
    OutputTable
        A sequence of dicts, column to value, with ``toArrow()``, ``toPandas()`` and ``toPolars()``:
        the columns that :meth:`pyflinkcep.CEP.sql` gives.

    Raises
    ------
    CepError
        If the clause is wrong, or something in it needs Spark; the message names line and column.
    NotSupportedError
        If `memory` is given for rows that are not in files, or in the standard's dialect without
        PARTITION BY, or for a partition that does not fit.

    Examples
    --------
    >>> prices = {"at": [1, 2, 3, 4], "price": [10, 8, 7, 9]}
    >>> clause = "ORDER BY at MEASURES FIRST(DOWN.at) AS since, UP.price AS price"
    >>> clause += " PATTERN (DOWN{2,} UP) DEFINE DOWN AS DOWN.price < LAST(DOWN.price, 1)"
    >>> clause += " OR LAST(DOWN.price, 1) IS NULL, UP AS UP.price > LAST(DOWN.price)"
    >>> matchRecognize(prices, clause)
    [{'since': 1, 'price': 9}, {'since': 2, 'price': 9}]
    """
    if not isinstance(clause, str):
        raise InvalidArgumentError(
            f"expected the text of a clause, got {type(clause).__name__}",
            'write matchRecognize(events, "ORDER BY ts MEASURES … PATTERN … DEFINE …")',
        )
    limit = clause_limit(dialect, maxPartialMatches, onTooManyPartialMatches)
    text, count = with_parameters(clause, args), usable_cores(threads)
    is_file = isinstance(events, str | os.PathLike)
    check_memory(memory, is_file=is_file)
    if is_file:
        from pyflinkcep.tables.stored import StoredEvents  # which loads Arrow

        # ALL ROWS PER MATCH shows all columns.
        stored = StoredEvents.of(events, None if "all" in text.lower() else text)
        spilled = _spilled(stored, text, dialect, limit, count, memory)
        if spilled is not None:
            return spilled
        if not stored.is_whole:
            with suppress(CepError):  # what is wrong is said of all columns
                return _output(stored.needed, text, dialect, limit, count)
        events = stored.whole()
    return _output(table_of(events), text, dialect, limit, count)


def clause_limit(dialect: str, most: int | None, policy: str) -> PartialMatchLimit | None:
    """Check the dialect of a clause, and return how many partial matches a key may have."""
    hint = 'use "flink", or "standard" for SQL:2016'
    check_choice("dialect", dialect, get_args(Dialect), hint)
    limit = PartialMatchLimit.of(most, policy)
    if limit is not None and dialect == "standard":
        raise InvalidArgumentError(
            'maxPartialMatches with dialect="standard", which has one partial match per key',
            "leave it out, and bound the state of a key with WITHIN",
        )
    return limit


def table_of(events: Any) -> Any:
    """Return events of any form as a table of Arrow."""
    if type(events).__module__.split(".", 1)[0] == "pyspark":
        raise InvalidArgumentError(
            f"expected events in memory, got a {type(events).__name__} of Spark",
            "write pyflinkcep.matchRecognize(frame, clause)",
        )
    rows = list(events) if isinstance(events, list | tuple) else None
    if rows is not None and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        events = {name: [row.get(name) for row in rows] for name in names}
    table, rest = table_or_rest(events)
    if isinstance(rest, dict):
        table, rest = table_or_rest({name: _alike(values) for name, values in rest.items()})
    if table is not None:
        return table
    if isinstance(rest, dict):
        raise _untyped(rest)
    raise InvalidArgumentError(
        f"expected a table, got {type(events).__name__}",
        "pass an Arrow table, a pandas or polars DataFrame, columns by name or a list of dicts",
    )


def _alike(values: list[Any]) -> Any:
    """Return Python values as one type of SQL, as whole numbers beside doubles are."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) == 1:
        with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
            return pa.array(values)
    return values


def _untyped(columns: Mapping[Any, list[Any]]) -> InvalidArgumentError:
    """Return the error for the first column for whose values Arrow has no type."""
    for name, values in columns.items():
        if table_or_rest({name: values})[0] is None:
            break
    found = {type(value).__name__: value for value in values if value is not None}
    examples = " and ".join(f"{kind} ({found[kind]!r:.60})" for kind in sorted(found))
    return InvalidArgumentError(
        f"the column {name!r}: expected values of one type of SQL, got {examples}",
        "convert them to one type, or leave the column out",
    )


def _output(
    table: Any, text: str, dialect: Dialect, limit: PartialMatchLimit | None, threads: int
) -> OutputTable:
    from pyflinkcep.tables.clauses import flink_output, standard_output

    table, clause, names, _ = _read(table, text, dialect)
    if dialect == "standard":
        return OutputTable(standard_output(table, clause, names, threads).table)
    return OutputTable(*flink_output(table, clause, names, limit, threads))


def _spilled(
    stored: StoredEvents,
    text: str,
    dialect: Dialect,
    limit: PartialMatchLimit | None,
    threads: int,
    memory: int | str | None,
) -> OutputTable | None:
    """Return the output for files that do not fit memory; None if they do."""
    from pyflinkcep.tables.clauses import spilled_flink_output, spilled_standard_output
    from pyflinkcep.tables.spilling import Spilling

    events = Spilling(stored.files, list(stored.names), memory)
    if events.fits:
        return None
    nothing = None
    with suppress(CepError):  # what is wrong is said of all columns, and before all work
        nothing = _output(events.nothing, text, dialect, limit, 1)
    if nothing is None:
        events = Spilling(stored.files, stored.files.dataset.schema.names, memory)
        nothing = _output(events.nothing, text, dialect, limit, 1)
    schema = nothing.toArrow().schema
    _, clause, names, prepared = _read(events.nothing, text, dialect)
    events = attrs.evolve(events, prepared=prepared)
    if dialect == "flink":
        return spilled_flink_output(events, clause, names, limit, threads, schema)
    if clause.keys:
        return spilled_standard_output(events, clause, names, threads, schema)
    if memory is None:
        return None
    raise events.refused(
        "a clause without PARTITION BY has one order over all rows",
        "give it more memory, or write PARTITION BY",
    )


def _read(
    table: Any, text: str, dialect: Dialect
) -> tuple[Any, Clause, Names, Callable[[Any], Any]]:
    """Return rows with the columns that a clause computes, the clause, and what adds columns."""
    from pyflinkcep.matching.columns import refuse_reserved
    from pyflinkcep.tables.clauses import with_computed

    is_standard = dialect == "standard"
    source = Source(text)
    clause = parse_clause(tokenize(source), source, len(text))
    check_columns(table.column_names, clause, source, case_sensitive=False)
    refuse_reserved(table.column_names, "MATCH_RECOGNIZE")
    clause = spelled_alike(clause) if is_standard else clause
    prepared: Callable[[Any], Any] = lambda rows: rows  # noqa: E731
    if is_standard:
        prepared = partial(with_computed, clause=clause, source=source)
    table = prepared(table)
    names = Names.of(clause, source, table.column_names, None, is_standard)
    check_clause(clause, names, case_sensitive=False)
    return table, with_own_columns(clause, names), names, prepared
