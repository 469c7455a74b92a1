# SPDX-License-Identifier: Apache-2.0
"""Python objects as a table of events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import attrs

from pyflinkcep.engines.compressed.matches import Measured, check_measure
from pyflinkcep.engines.queries import QueryPlan, by_last_event, last_event, query_matches
from pyflinkcep.engines.sequences.evaluation import MatchPositions
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import InputError, did_you_mean
from pyflinkcep.expressions.compiler import TIMES
from pyflinkcep.expressions.evaluator import (
    UNTYPED,
    RowTypes,
    decimal_types,
    event_value,
    kind_of_values,
    machine_value,
)
from pyflinkcep.expressions.numbers import LEAST, MOST
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.sql_values import kind_of
from pyflinkcep.sase.attributes import (
    added_attributes,
    computed_for,
    copied_attributes,
    is_computed,
    output_types,
    queried_attributes,
)
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Query
from pyflinkcep.sase.returns import failed
from pyflinkcep.sase.types import check_types
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.rows import rows_of
from pyflinkcep.tables.values import exact_times_of, field_getter
from pyflinkcep.time import plain


@attrs.frozen(eq=False)
class EventObjects:
    """The user's events, and their table."""

    query: Query  # The query
    events: list[Any]  # The events in order of time
    table: EventTable  # The columns that the query reads
    # The kinds of the attributes in it, and in HAVING and RETURN, as far as they are known.
    kinds: Mapping[str, Kind]

    @classmethod
    def of(
        cls,
        events: Table | Iterable[Any],
        timestamp: str | Callable[[Any], Any] | None,
        type_: str | Callable[[Any], Any],
        query: Query,
        declared: RowTypes = UNTYPED,
    ) -> EventObjects:
        """Return the table of events; `declared` are the types of columns that hold decimals."""
        rows = rows_of(events)
        if isinstance(timestamp, str):
            _column(rows, timestamp)
        exact = exact_times_of(rows, timestamp)
        order = sorted(range(len(rows)), key=exact.__getitem__)
        rows, times = [rows[at] for at in order], [exact[at] // 1000 for at in order]
        types = _types(rows, type_)
        for name in copied_attributes(query):
            _check_known(rows, name)
        needed, returned = computed_for(query), output_types(query)
        queried = queried_attributes(query)
        decimals = decimal_types(
            filter(is_computed, (*queried, *returned)),
            lambda name: [plain(attribute_of(event, name)) for event in rows],
            declared,
        )
        columns = {name: _values(rows, name, types, decimals, needed.get(name)) for name in queried}
        kinds = _known(
            {name: _declared(name, decimals) or _kind(name, own) for name, own in columns.items()}
        )
        outputs = {
            name: _declared(name, decimals)
            or _output_kind(_values(rows, name, types, decimals, of_types))
            for name, of_types in returned.items()
        }
        every = {**_known(outputs), **kinds}
        for cast, kind in check_types(query, every, has_events=bool(rows)).items():
            columns[cast] = _values(rows, cast, types, decimals)
            kinds[cast] = kind
        added = added_attributes(query)
        for name, kind in kinds.items():
            columns[name] = _machine_numbers(name, columns[name], kind, name in added)
            if kind in TIMES or kind.is_decimal:
                columns[name] = [machine_value(value, kind) for value in columns[name]]
        return cls(query, rows, EventTable(times, types, columns, kinds), every)

    def listed(
        self, plan: QueryPlan, is_sorted: bool
    ) -> Iterator[tuple[MatchPositions, dict[str, list[Any]]]]:
        """Yield matches one by one: by positions, and with their events."""
        found = query_matches(plan.query, self.table, plan.evaluation, plan.output, plan.runs)
        for positions in sorted(found, key=by_last_event) if is_sorted else found:
            yield positions, self.match(positions)

    def match(self, positions: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        """Return the events of a match."""
        return {name: [self.events[at] for at in own] for name, own in positions.items()}

    def values(self, attribute: str) -> list[Any]:
        """Return an attribute of all events."""
        return _column(self.events, attribute)

    def measured(self, measure: Measured) -> list[Any] | None:
        """Return the values over which a measure is; None to count events."""
        if measure.attribute is None:
            return None
        values = _column(self.events, measure.attribute)
        known = [value for value in values if value is not None]
        if known and measure.function != "count":
            check_measure(measure, _kind(measure.attribute, known))
        return values


def made_event(query: Query, table: EventTable, match: MatchPositions) -> dict[str, Any]:
    """Return the type and the time of the event that a match becomes, if it becomes one."""
    if query.event is None:
        return {}
    return {EVENT_TYPE: query.event, EVENT_TIME: table.times[last_event(match)]}


def attribute_of(event: Any, name: str) -> Any:
    """Return an attribute of an event; None if it has none, as events of other types may."""
    if isinstance(event, dict):
        return dict.get(event, name)
    # What the class defines may fail for a reason of its own, which is not hidden.
    return getattr(event, name) if hasattr(type(event), name) else getattr(event, name, None)


def holds_decimals(rows: Iterable[Any], name: str) -> bool:
    """Whether some event has a decimal as an attribute."""
    return any(isinstance(attribute_of(event, name), Decimal) for event in rows)


def _values(
    rows: Sequence[Any],
    attribute: str,
    types: Sequence[str],
    decimals: RowTypes,
    needed: Collection[str] | None = None,
) -> list[Any]:
    """Return an attribute of all events; SQL computes one only for the types that need it."""
    if not is_computed(attribute):
        return _column(rows, attribute)
    computed = event_value(attribute, decimals).function
    try:
        return [
            computed(event) if needed is None or own in needed else None
            for event, own in zip(rows, types, strict=True)
        ]
    except ArithmeticError as cause:
        raise failed(attribute, cause) from cause


def _declared(name: str, decimals: RowTypes) -> Kind | None:
    """Return the kind of an attribute whose type says that it is a decimal."""
    own = event_value(name, decimals).type if is_computed(name) else decimals.types.get(name)
    digits = None if own is None else own.of_decimal
    return None if digits is None else Kind.decimal(digits)


def _column(rows: Sequence[Any], name: str) -> list[Any]:
    _check_known(rows, name)
    return [plain(attribute_of(event, name)) for event in rows]


def _check_known(rows: Sequence[Any], name: str) -> None:
    """Refuse an attribute that no event has."""
    if rows and not any(name in _attributes(event) for event in rows):
        check_attribute(name, list(dict.fromkeys(chain.from_iterable(map(_attributes, rows)))))


def check_attribute(name: str, known: Sequence[str]) -> None:
    """Refuse an attribute that is not one of those known."""
    if name not in known:
        hint = did_you_mean(name, known, f"the attributes are {', '.join(known)}")
        raise InputError(f"the query names the attribute {name!r}, which no event has", hint)


def _attributes(event: Any) -> Iterable[str]:
    if isinstance(event, dict):
        return event
    fields = getattr(event, "_fields", None) or getattr(event, "__dict__", None)
    return fields if fields is not None else dir(event)


def _known(kinds: Mapping[str, Kind | None]) -> dict[str, Kind]:
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _output_kind(values: Collection[Any]) -> Kind | None:
    """Return the kind of a column that is not queried, so that it may hold anything."""
    try:
        return _kind("", values)
    except InputError:
        return None


def _kind(name: str, values: Collection[Any]) -> Kind | None:
    """Return the kind of a column; None if it is NULL in every event."""
    by_type = {type(value): value for value in values if value is not None}
    if any(issubclass(type_, Decimal) for type_ in by_type):
        return kind_of_values(f"the attribute {name!r}", values)
    kinds = {_kind_of(name, value) for value in by_type.values()}
    if kinds == {Kind.BIGINT, Kind.DOUBLE}:
        return Kind.DOUBLE
    if len(kinds) > 1:
        found = " and ".join(sorted(kind.value for kind in kinds))
        raise InputError(
            f"the attribute {name!r} holds {found}", "use values of one kind in an attribute"
        )
    return kinds.pop() if kinds else None


def _machine_numbers(name: str, values: list[Any], kind: Kind, is_added: bool) -> list[Any]:
    """Return numbers as Spark has them; larger ones can be compared, but not added."""
    if kind is Kind.DOUBLE:
        try:
            return [None if value is None else float(value) for value in values]
        except OverflowError as cause:
            raise _too_large(name, "double") from cause
    if kind is Kind.BIGINT and is_added:
        known = [value for value in values if value is not None]
        if not LEAST <= min(known) <= max(known) <= MOST:
            raise _too_large(name, "bigint")
    return values


def _too_large(name: str, type_: str) -> InputError:
    return InputError(
        f"the attribute {name!r} holds a number that does not fit {type_}", "scale it, or use texts"
    )


def _kind_of(name: str, value: Any) -> Kind:
    kind = kind_of(value)
    if kind is None or kind is Kind.INTERVAL:
        raise InputError(
            f"the attribute {name!r} holds {type(value).__name__}",
            "use numbers, texts, booleans, dates or times",
        )
    return kind


def _asked(field: str | Callable[[Any], Any], event: Any) -> Any:
    return attribute_of(event, field) if isinstance(field, str) else field(event)


def _types(rows: Sequence[Any], type_: str | Callable[[Any], Any]) -> list[str]:
    if isinstance(type_, str):
        _column(rows, type_)
    get = field_getter(type_, "type") if not isinstance(type_, str) else type_
    types = [_asked(get, event) for event in rows]
    for event, found in zip(rows, types, strict=True):
        if found is not None and not isinstance(found, str):
            raise InputError(
                f"expected the type of {event!r} to be a text, got {found!r}",
                "name the attribute that holds it: type='kind'",
            )
    return types
