# SPDX-License-Identifier: Apache-2.0
"""The standard's matcher on lists of rows, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cmp_to_key
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.rows.matching import PLACE, Matching, Partitions, forget
from pyflinkcep.engines.rows.plan import StandardClause, read_clause
from pyflinkcep.engines.rows.values import FieldArray
from pyflinkcep.expressions.evaluator import event_function
from pyflinkcep.expressions.grammar import Form, parsed
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.match_recognize.checks import check_clause
from pyflinkcep.match_recognize.expressions import condition_leaves
from pyflinkcep.match_recognize.flink import FlinkClause, read_flink_clause
from pyflinkcep.match_recognize.leaves import LEAF, Leaf, parts_of
from pyflinkcep.match_recognize.names import Names, spelled_alike
from pyflinkcep.match_recognize.parser import standard_window_ms, window_ms
from pyflinkcep.match_recognize.statement import Statement
from pyflinkcep.match_recognize.tree import Rows
from pyflinkcep.matching.leaf_columns import LeafColumns
from pyflinkcep.matching.standard_rows import RowMatches, leaf_column


@cache
def _function(sql: str) -> Callable[[Any], Any]:
    return event_function(sql)


def computed(sql: str, row: Mapping[str, Any]) -> Any:
    """Return the value of an expression over a row."""
    return _function(sql)(row)


_KINDS = {"INT": Kind.BIGINT, "STRING": Kind.STRING, "DOUBLE": Kind.DOUBLE}


@attrs.frozen(eq=False)
class ListColumns:
    """Columns that are lists, by the SQL that they hold, whose kinds are known."""

    columns: dict[str, list[Any]]
    kinds: dict[str, Kind]

    def plain(self, argument: str) -> list[Any]:
        """Return the values of an argument."""
        return self.columns[argument]

    def array(self, argument: str) -> FieldArray:
        """Return the same as an array."""
        values, type_ = self.columns[argument], self.kinds[argument].type
        if type_ is Type.TEXT:
            return values, None, False
        valid = np.array([value is not None for value in values], bool)
        numbers = np.array([0 if value is None else value for value in values])
        return (
            numbers.astype(float if type_ is Type.FLOAT else np.int64),
            valid,
            type_ is Type.FLOAT,
        )


def answer(
    _spark: Any,
    case: dict[str, Any],
    portions: Callable[[int], Sequence[int]] = lambda size: [size],
    within: int = 0,
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return columns and rows of a recorded case whose select list is of plain columns."""
    read = reading(case)
    rows = [item for item in case["items"] if isinstance(item, list)]
    header, out = _run(read, case["columns"], rows, portions, within, case.get("evaluated", ()))
    select = parsed_select(Statement(case["sql"]).text)
    if select != ["*"]:
        places = [[name.lower() for name in header].index(name.lower()) for name in select]
        return select, [tuple(row[place] for place in places) for row in out]
    return header, out


def reading(case: dict[str, Any]) -> StandardClause:
    """Return the clause of a case."""
    statement = Statement(case["sql"])
    use = statement.next_use()
    assert use is not None
    columns = [name for name, _ in case["columns"]]
    clause = spelled_alike(use.clause)
    names = Names.of(
        clause, statement.source, columns, use.alias, standard=True, queries=use.queries
    )
    check_clause(clause, names, case_sensitive=False)
    return read_clause(clause, names)


def condition_arguments(read: StandardClause) -> list[str]:
    """Return the SQL over one row that conditions need."""
    leaves = [leaf for own in read.conditions.values() for leaf in condition_leaves(own)]
    return list(dict.fromkeys(read.arguments_of(leaves)))


def parsed_select(text: str) -> list[str]:
    """Return the names of a select list."""
    head = text.partition("SELECT")[2].partition("FROM")[0]
    return [name.strip().rpartition(".")[2].strip("`") for name in head.split(",")]


def _run(
    read: StandardClause,
    columns: list[list[str]],
    rows: list[list[Any]],
    portions: Callable[[int], Sequence[int]],
    within: int,
    evaluated: Sequence[str],
) -> tuple[list[str], list[tuple[Any, ...]]]:
    clause = read.clause
    place = {name.lower(): at for at, (name, _) in enumerate(columns)}
    kinds = {sql: kind_of(sql, columns) for sql in condition_arguments(read)}
    plan = read.plan(kinds, ansi=False, within=within, evaluated=evaluated)
    compiled = plan.compiled()
    keys = [place[key.text.lower()] for key in clause.partition]
    order = [(place[o.name.text.lower()], o.descending) for o in clause.order]
    parts: dict[Any, list[Any]] = {}
    for row in rows:
        parts.setdefault(tuple(row[key] for key in keys), []).append(row)
    all_rows = clause.rows is not Rows.ONE
    first = list(dict.fromkeys([*keys, *(at for at, _ in order if all_rows)]))
    rest = [at for at in range(len(columns)) if at not in first] if all_rows else []
    header = (
        [columns[at][0] for at in first] + list(read.measures) + [columns[at][0] for at in rest]
    )
    out = []
    for part in parts.values():
        part = _sorted(part, order)
        named = [{name: row[at] for name, at in place.items()} for row in part]
        values = {
            sql: [_machine(computed(sql, row)) for row in named]
            for sql in condition_arguments(read)
        }
        leaves = (leaf for variable in evaluated for leaf in read.conditions[variable].leaves)
        taken = {*read.measure_arguments(), *read.arguments_of(leaves)}
        measured = {sql: [computed(sql, row) for row in named] for sql in taken}
        times = [row[order[0][0]] for row in part] if within else None
        come = np.zeros((1, PLACE), np.int64)
        for end in portions(len(part)):
            before = int(come[0, 3])
            there = slice(before, end)
            known = {sql: column[there] for sql, column in values.items()}
            arguments = {sql: column[there] for sql, column in measured.items()}
            matching = Matching(
                plan,
                compiled,
                Partitions(
                    np.array([end - before]),
                    ListColumns(known, kinds),
                    arguments.__getitem__,
                    np.array(times[there], np.int64) if times else None,
                    None if end == len(part) else times[end - 1] if times else 0,
                ),
            )
            for found in matching.run(come):
                matches = RowMatches(plan, found)
                out += _shown(read, matches, arguments, part[there], first, rest)
            forget(come, np.maximum(come[:, 0] - plan.looks_back, 0))
    return header, out


def _shown(read, matches, measured, part, first, rest):
    leaves = read.measure_parts()
    columns = [leaf_column(leaf, str, read.names.variables) for leaf in leaves]
    taken = LeafColumns(columns, False).of(matches, Lists(measured).take)
    values = dict(zip(leaves, [column.to_pylist() for column in taken], strict=True))
    is_matched = matches.is_matched.to_pylist()
    for number, row in enumerate(matches.rows.to_pylist()):
        shown = [part[row][at] for at in first]
        for expression in read.measures.values():
            names = {leaf: f"{LEAF}{i}" for i, leaf in enumerate(expression.leaves)}
            leaf_values = {name: _value(leaf, values, number) for leaf, name in names.items()}
            sql = expression.sql(names.__getitem__)
            shown.append(computed(sql, leaf_values) if is_matched[number] else None)
        yield tuple(shown + [part[row][at] for at in rest])


@attrs.frozen(eq=False)
class Lists:
    """Rows as lists, by the SQL that they hold."""

    columns: dict[str, list[Any]]

    def take(self, handles: np.ndarray[Any, Any], columns: Sequence[str]) -> pa.Table:
        """Return values of rows."""
        return pa.table({name: pa.array(self.columns[name]).take(handles) for name in columns})


def _value(leaf: Leaf, values: dict[Leaf, list[Any]], number: int) -> Any:
    if leaf.function != "avg":
        return values[leaf][number]
    total, count = (values[part][number] for part in parts_of(leaf))
    return total / count if count else None


def _machine(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def kind_of(sql: str, columns: list[list[str]]) -> Kind:
    tree = parsed(sql)
    if tree.form is Form.COLUMN:
        return _KINDS[{name.lower(): kind for name, kind in columns}[tree.value[-1].lower()]]
    if tree.form is Form.CALL and tree.value == "upper":
        return Kind.STRING
    return Kind.DOUBLE if tree.value in ("+", "-", "*", "/") else Kind.BOOLEAN


def _sorted(rows: list[Any], order: list[tuple[int, bool]]) -> list[Any]:
    def compare(a: Any, b: Any) -> int:
        for at, descending in order:
            x, y = a[at], b[at]
            if x != y:
                less = (x is not None, x) < (y is not None, y) if None in (x, y) else x < y
                return -1 if less != descending else 1
        return 0

    return sorted(rows, key=cmp_to_key(compare))


# --- plans of statements without Spark: everything up to the types of columns


def plans(sql: str, columns: Sequence[str], dialect: str) -> list[FlinkClause | StandardClause]:
    """Return the plan of each clause of a statement."""
    statement, found = Statement(sql), []
    while (use := statement.next_use()) is not None:
        standard = dialect == "standard"
        clause = spelled_alike(use.clause) if standard else use.clause
        names = Names.of(clause, statement.source, columns, use.alias, standard)
        within = (standard_window_ms if standard else window_ms)(clause, statement.source)
        check_clause(clause, names, case_sensitive=False)
        found.append(
            read_clause(clause, names) if standard else read_flink_clause(clause, names, within)
        )
        statement.replaced(use, f"__cep_view_{len(found)}")
    return found
