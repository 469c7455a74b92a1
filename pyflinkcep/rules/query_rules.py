# SPDX-License-Identifier: Apache-2.0
"""The matches of queries among many rules on shared events: of SASE+, of EQL, of Sigma."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.choice import AUTO, chosen, hides_choice
from pyflinkcep.engines.queries import QueryPlan
from pyflinkcep.eql import Eql
from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.expressions.evaluator import without_kind
from pyflinkcep.expressions.tree import shown
from pyflinkcep.matching.columns import Ints, integers, table_of
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.wants import Wants
from pyflinkcep.sase import SaseQuery
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.returns import Returns
from pyflinkcep.sase.types import with_exact_literals
from pyflinkcep.sigma.correlation import Correlation, Kind
from pyflinkcep.tables.eql_match import KeyNumbers, Narrowed, places_of, trees_of
from pyflinkcep.tables.event_list import attribute_of
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.order import Rows, check_comparable
from pyflinkcep.tables.query_match import QueryRows
from pyflinkcep.tables.records import records
from pyflinkcep.tables.sigma import alert_places, check_fields, field_names
from pyflinkcep.tables.sql import satisfying

Row = Callable[[dict[str, list[Any]]], dict[str, Any]]
"""Makes the row of a match."""

Keys = Sequence[Mapping[str, Any]]
"""The fields of the key of each match."""


Holding = Callable[[int], Ints | Rows]
"""Returns the rows for which a condition holds, by its number."""


def usable_texts(query: SaseQuery, type_column: str) -> tuple[str, ...]:
    """Return SQL for the events that a query can use; nothing if all may matter."""
    analysed = AnalysedQuery(query, type_column)
    return analysed.usable_ways if analysed.skips_others else ()


def query_wants(query: SaseQuery, events: SharedEvents) -> Wants:
    """Return which events a query wants, as far as that is known beforehand."""
    schema = events.table.schema
    for leaf, own in Returns(query, attribute_of, events.sql.types).refused():
        type_ = type_at(schema, leaf.over.attribute or "")
        raise without_kind(shown(leaf), own.sql if type_ is None else str(type_))
    texts = usable_texts(query, events.type)
    if not texts or events.timestamp is None or not all(map(events.computes, texts)):
        return Wants()  # without times, the number of an event is its time
    return Wants.any_of(tuple(map(events.conditions.number, texts)))


def _exact(query: SaseQuery, events: SharedEvents) -> Query:
    types = events.sql.types.types
    decimals = {column for column, own in types.items() if own and own.name == "decimal"}
    return with_exact_literals(query, decimals.__contains__)


def query_found(
    query: SaseQuery, key: Sequence[str], events: SharedEvents, wants: Wants
) -> tuple[Found, Row | None]:
    """Return the matches of a query, and what makes their rows; handles are rows of the table."""
    if query.before is not None or query.totals is not None or query.event is not None:
        raise NotSupportedError(
            "THEN, SLIDE and RETURN EVENT make no matches of events",
            "run it by itself, with matchSase",
        )
    asked, plan = query_plan(query, events)
    table, wanted = events.table, wants.of(events.holding, events.table.num_rows).places
    if len(wanted) < table.num_rows:
        table = table.take(integers(wanted))
    given = QueryRows.of(typed(table), events.timestamp, events.type, asked, key)
    if given is None:
        raise NotSupportedError(
            "the query computes what only single events have",
            "run it by itself, with matchSase",
        )
    returns = Returns(asked, attribute_of, events.sql.types)
    found = given.found(plan, hides_choice(asked, AUTO, "all"))
    found = having(returns, found, lambda places: given.events(places))
    found = attrs.evolve(found, handles=wanted[given.row_of(found.handles)].astype(np.int64))
    return found, None if asked.columns is None else returns.row


def query_plan(query: SaseQuery, events: SharedEvents) -> tuple[Query, QueryPlan]:
    """Return a query on some events, and how it is answered."""
    asked = _exact(query, events)
    how = chosen(asked, AUTO, "all", False)
    return asked, QueryPlan(asked, how.for_tables, "all", None)


def having(
    returns: Returns, found: Found, events_of: Callable[[Ints], Mapping[int, Record]]
) -> Found:
    """Return the matches that satisfy HAVING, given what returns their events."""
    if returns.query.having is None or not len(found):
        return found
    rows = events_of(found.handles)
    kept = [
        returns.keeps({variable: [rows[at] for at in own] for variable, own in match.items()})
        for _, _, match in found.results()
    ]
    return found.only(np.asarray(kept, bool))


def typed(table: pa.Table) -> pa.Table:
    """Return events in which columns that are always null have a type."""
    fields = [f.with_type(pa.int64()) if pa.types.is_null(f.type) else f for f in table.schema]
    return table_of(table.columns, pa.schema(fields))


def eql_wants(query: Eql, events: SharedEvents) -> Wants:
    """Return which events an EQL query wants: the conditions of its steps, and of ``until``."""
    trees = trees_of(query, events.fields, events.type)
    return Wants.any_of(tuple(map(events.conditions.number, trees)))


def eql_found(
    query: Eql, events: SharedEvents, wants: Wants, narrowed: Narrowed | None = None
) -> tuple[Found, Keys | None]:
    """Return the matches of an EQL query, and their keys; steps are named by their numbers."""
    holding = [events.holding(number).astype(np.int64) for number in wants.conditions]
    numbers = KeyNumbers(events.fields, query, narrowed)
    rows, keys = places_of(query, events.in_time, holding, numbers)
    count, size = rows.shape
    own = query.model.expanded if query.model.is_sequence else ()
    taking = np.flatnonzero([not step.is_missing for step in own]) if own else np.arange(1)
    found = Found(
        [f"{number}" for number in range(1, max(len(own), 1) + 1)],
        np.ones(count, np.uint8),
        events.ms[rows[:, -1]],
        np.arange(1, count + 1) * size,
        np.tile(taking.astype(np.int32), count),
        rows.reshape(-1),
    )
    return found, eql_keys(query, numbers, rows[:, 0], keys) if own else None


def eql_keys(query: Eql, numbers: KeyNumbers, firsts: Ints, keys: Ints) -> Keys | None:
    """
    Return the keys of matches by their first events and numbers; None if the events tell them.

    An event with an array is of several keys, and matches of the same events differ by it.
    """
    own = next(step.keys for step in query.model.expanded if not step.is_missing)
    return numbers.values(own, firsts, keys) if numbers.have_several(own) else None


def sigma_wants(sigma: SigmaCorrelation, events: SharedEvents) -> Wants:
    """Return which events a correlation wants: those of its rules, if these are SQL."""
    for correlation in sigma.every:
        check_fields(correlation, field_names(events.table))
        _check_types(correlation, events.table.schema)
    texts = [one for _, one in sigma.conditions()]
    if not all(isinstance(text, str) and events.computes(text) for text in texts):
        return Wants()
    return Wants.any_of(tuple(events.conditions.number(str(text)) for text in texts))


def _check_types(correlation: Correlation, schema: pa.Schema) -> None:
    """Refuse a correlation that would fail at the first value that it cannot use."""
    measured = () if correlation.kind is Kind.VALUE_COUNT else correlation.fields
    for name in measured:
        type_ = type_at(schema, name)
        if type_ is not None and not _is_number(type_):
            raise InputError(
                f"{correlation.name}: {correlation.kind.value} of the field {name!r}: "
                f"expected numbers, got {type_}",
                "name a field of numbers, or write value_count",
            )
    groups = (name for names in correlation.group_fields.values() for name in names)
    for name in sorted({*groups, *correlation.fields}.difference(measured)):
        type_ = type_at(schema, name)
        if type_ is not None:
            what = f"{correlation.name}: the field {name!r}"
            check_comparable(type_, what, "a field of it, such as host.name")


def _is_number(type_: pa.DataType) -> bool:
    known = pa.types
    tests = (known.is_integer, known.is_floating, known.is_decimal, known.is_boolean, known.is_null)
    return any(is_it(type_) for is_it in tests)


def type_at(fields: Iterable[pa.Field], name: str) -> pa.DataType | None:
    """Return the type of a column, or of a field within a struct; None if there is none."""
    known = {field.name: field.type for field in fields}
    if name in known:
        return known[name]
    inner = (
        type_at(type_, name.removeprefix(f"{own}."))
        for own, type_ in known.items()
        if pa.types.is_struct(type_) and name.startswith(f"{own}.")
    )
    return next((type_ for type_ in inner if type_ is not None), None)


def sigma_found(sigma: SigmaCorrelation, events: SharedEvents, wants: Wants) -> Found:
    """Return the alerts of a correlation, whose events are those that its rules want."""
    wanted = wants.of(events.holding, events.table.num_rows).places
    rows: Ints = wanted[np.argsort(events.in_time.places[wanted])].astype(np.int64)
    rules = {**sigma.rules, **_held(sigma, wants, rows, events.holding)}
    listed = list(records(events.table, rows))
    times = events.ms[rows].tolist()
    results = Results(["events"], wants_timeouts=False)
    for places in alert_places(sigma.read, rules, listed, times, field_names(events.table)):
        results.match(None, times[places[-1]], {"events": rows[list(places)].tolist()})
    return results.take()


def _held(
    sigma: SigmaCorrelation, wants: Wants, rows: Ints, holding: Holding
) -> dict[str, list[int]]:
    """Return for each rule the places of the rows that satisfy it, as far as that is known."""
    names = [name for name, _ in sigma.conditions()] if wants.conditions else []
    return {
        name: np.flatnonzero(np.isin(rows, holding(number))).tolist()
        for name, number in zip(names, wants.conditions, strict=True)
    }


def satisfied_rules(
    sigma: SigmaCorrelation,
    wants: Wants,
    rows: Ints,
    holding: Holding,
    events: SharedEvents,
) -> list[list[str]]:
    """Return the rules that each of some rows, in order, satisfies."""
    held = _held(sigma, wants, rows, holding)
    if not held:
        listed = list(records(events.table, rows))
        held = satisfying(dict(sigma.conditions()), listed, events.ms[rows].tolist())
    found: list[list[str]] = [[] for _ in range(len(rows))]
    for name, places in held.items():
        for place in places:
            found[place].append(name)
    return found
