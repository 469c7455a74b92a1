# SPDX-License-Identifier: Apache-2.0
"""A rule of any language with the events that it wants, and its matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

import attrs
import pyarrow as pa

from pyflinkcep.eql import Eql
from pyflinkcep.errors import CepError, Field
from pyflinkcep.matching.results import Found
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.pattern_rules import WantingPattern, pattern_found, pattern_texts
from pyflinkcep.rules.query_rules import (
    Keys,
    Row,
    eql_found,
    eql_wants,
    query_found,
    query_wants,
    sigma_found,
    sigma_wants,
    usable_texts,
)
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.wants import Wants
from pyflinkcep.sase import SaseQuery
from pyflinkcep.tables.eql_match import Narrowed
from pyflinkcep.tables.typed_columns import SqlColumns


@attrs.frozen(eq=False)
class FoundByRule:
    """The matches of one rule."""

    rule: Rule
    found: Found  # Handles are rows
    row: Row | None = None
    keys: Keys | None = None  # Of matches whose events may be of several keys


@attrs.frozen(eq=False)
class WantingRule:
    """A rule on some events."""

    rule: Rule
    wants: Wants
    pattern: WantingPattern | None = None  # None also for one that is matched event by event

    @classmethod
    def of(cls, rule: Rule, events: SharedEvents) -> WantingRule:
        """Check a rule against its events."""
        definition = rule.definition
        with naming(rule):
            if isinstance(definition, Pattern):
                pattern = WantingPattern.of(definition, events)
                return cls(rule, Wants() if pattern is None else pattern.wants, pattern)
            if isinstance(definition, Eql):
                return cls(rule, eql_wants(definition, events))
            if isinstance(definition, SigmaCorrelation):
                return cls(rule, sigma_wants(definition, events))
            return cls(rule, query_wants(definition, events))

    def found(self, events: SharedEvents, narrowed: Narrowed | None = None) -> FoundByRule:
        """Return the matches."""
        rule = self.rule
        definition, row = rule.definition, rule.select
        with naming(rule):
            if isinstance(definition, Pattern):
                found = pattern_found(definition, self.pattern, rule.key, events)
                return FoundByRule(rule, found, row)
            if isinstance(definition, Eql):
                found, keys = eql_found(definition, events, self.wants, narrowed)
                return FoundByRule(rule, found, row, keys)
            if isinstance(definition, SigmaCorrelation):
                return FoundByRule(rule, sigma_found(definition, events, self.wants), row)
            found, returned = query_found(definition, rule.key, events, self.wants)
            return FoundByRule(rule, found, row or returned)

    def nothing(self) -> FoundByRule:
        """Return no matches of a pattern."""
        stages = () if self.pattern is None else self.pattern.stages
        return FoundByRule(self.rule, Found.of(stages, [b""] * 5), self.rule.select)


@contextmanager
def naming(rule: Rule) -> Iterator[None]:
    """Name a rule in errors."""
    try:
        yield
    except CepError as error:
        error.add_note(f"in rule {rule.name!r}")
        raise


def shared_events(
    rules: Iterable[Rule],
    table: pa.Table,
    timestamp: Field | None,
    type_: str,
    zone: str = "",
) -> SharedEvents:
    """Return events for some rules."""
    texts = [(rule, list(_sql_of(rule, type_))) for rule in rules]
    try:
        every = chain.from_iterable(own for _, own in texts)
        return SharedEvents.of(table, timestamp, type_, every, zone)
    except CepError:
        for rule, own in texts:
            with naming(rule):
                SqlColumns(table, own)
        raise


def _sql_of(rule: Rule, type_: str) -> Iterable[str]:
    """Return the SQL of a rule about single events."""
    definition = rule.definition
    if isinstance(definition, SaseQuery):
        return usable_texts(definition, type_)
    return needed_texts(rule)


def needed_texts(rule: Rule) -> Iterable[str]:
    """Return the SQL about single events that has to be known to find matches."""
    definition = rule.definition
    if isinstance(definition, Pattern):
        return pattern_texts(definition)
    if isinstance(definition, SigmaCorrelation):
        return (one for _, one in definition.conditions() if isinstance(one, str))
    return ()
