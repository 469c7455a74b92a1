# SPDX-License-Identifier: Apache-2.0
"""A rule: a pattern or query with its key and version, and tests that say what it finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, get_args

import attrs

from pyflinkcep.eql import Eql
from pyflinkcep.eql.tokens import eql_words
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.document import Path
from pyflinkcep.rules.fingerprint import fingerprint_of, meaning_of, meaning_of_sql
from pyflinkcep.rules.pattern_writer import pattern_to_json
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.sase import SaseQuery
from pyflinkcep.sase.text import query_text
from pyflinkcep.tables import match, matchEql, matchSase, matchSigma
from pyflinkcep.tables.values import grouping_key, key_getter

_LABEL = "label of the event"
"""A column that tells the events of a test apart; no condition can name it."""

Event = Mapping[str, Any]
Definition = Pattern | SaseQuery | Eql | SigmaCorrelation
"""What a rule finds, in one of the languages."""

WhenReplaced = Literal["drop", "finish"]
"""What becomes of a rule's partial matches."""

DROP: WhenReplaced = "drop"

Found = dict[str, Any] | list[str | None]
"""The labels of a match, or the columns that it returns."""


@attrs.frozen
class RuleTest:
    """
    A test in a rule: events, and the matches that they make.

    Parameters
    ----------
    name : str
        What it shows.
    events : dict
        The events by label, in the order of their arrival.
    matches : list
        The matches, in any order: for a stage or variable the labels of its events; for EQL and
        correlations a list of labels, None for missing events; for a query with RETURN its columns.
    """

    name: str
    events: Mapping[str, Event]
    matches: tuple[Found, ...]
    path: Path = attrs.field(default=(), eq=False, repr=False)


@attrs.frozen
class Rule:
    """
    A pattern or query, under a name and a version.

    Parameters
    ----------
    name : str
        The name, one of a kind in a set of rules.
    definition : Pattern, SaseQuery, Eql or SigmaCorrelation
        What it finds.
    key : tuple of str
        The columns whose values all events of a match have in common; none by default. EQL and
        correlations name them by themselves.
    version : int
        The version; a higher one replaces a lower one.
    timestamp : str
        The column of the event's time.
    type : str
        The column of the event's type, for queries; in EQL of its category.
    description : str
        What it is for.
    tests : tuple of RuleTest
        What it finds on which events.
    select : callable, optional
        A function of the events of a match, by stage, that returns a dict: the match's ``row``.
    whenReplaced : {'drop', 'finish'}
        What becomes of partial matches when a :class:`RuleLog` replaces, pauses or removes the
        rule: they are dropped, or go on with later events and begin no new ones.

    Raises
    ------
    InvalidArgumentError
        If one of them is of another kind.

    Examples
    --------
    >>> Rule("jump", Pattern.begin("low").where("n < 3").next("high").where("n > 7"))
    Rule(name='jump', definition=Pattern(low ⇒ high), key=(), version=1)
    """

    name: str
    definition: Definition
    key: tuple[str, ...] = ()
    version: int = 1
    timestamp: str = attrs.field(default="timestamp", repr=False)
    type: str = attrs.field(default="type", repr=False)
    description: str = attrs.field(default="", repr=False)
    tests: tuple[RuleTest, ...] = attrs.field(default=(), repr=False)
    select: Callable[[Any], dict[str, Any]] | None = attrs.field(default=None, repr=False)
    whenReplaced: WhenReplaced = attrs.field(default=DROP, repr=False)

    def __attrs_post_init__(self) -> None:
        """Refuse what is of another kind: of a text as key each letter would be a column."""
        for name, (is_right, wanted, hint) in {
            "name": (isinstance(self.name, str), "a text", "'fall'"),
            "definition": (
                isinstance(self.definition, Definition),
                "a Pattern, SaseQuery, Eql or SigmaCorrelation",
                "parse(text) for the text of a query, and Eql(text) for that of EQL",
            ),
            "key": (_are(self.key, str), "a tuple of names of columns", "('user',)"),
            "version": (
                type(self.version) is int and -(2**63) <= self.version < 2**63,
                "a whole number of 64 bits",
                "2",
            ),
            "timestamp": (isinstance(self.timestamp, str), "the name of a column", "'at'"),
            "type": (isinstance(self.type, str), "the name of a column", "'kind'"),
            "description": (isinstance(self.description, str), "a text", "'what it is for'"),
            "tests": (_are(self.tests, RuleTest), "a tuple of RuleTest", "(RuleTest(…),)"),
            "select": (
                self.select is None or callable(self.select),
                "a function of a match",
                "lambda events: {'user': events['ok'][0]['user']}",
            ),
            "whenReplaced": (
                self.whenReplaced in get_args(WhenReplaced),
                "'drop' or 'finish'",
                "'finish'",
            ),
        }.items():
            if not is_right:
                what = f"rule {self.name!r}: expected {wanted} as {name}"
                raise InvalidArgumentError(
                    f"{what}, got {getattr(self, name)!r}", f"write {name}={hint}"
                )

    @property
    def fingerprint(self) -> str:
        """
        What the rule finds as 32 hexadecimal digits; name, version and tests have no part in it.

        It is the same however conditions are written, and another one if the rule means something
        else. NotSupportedError for conditions that are Python functions.
        """
        definition = self.definition
        meaning: dict[str, Any]
        if isinstance(definition, Pattern):
            meaning = {"pattern": meaning_of(pattern_to_json(definition))}
        elif isinstance(definition, Eql):
            meaning = {"eql": eql_words(definition.text), "type": self.type}
        elif isinstance(definition, SigmaCorrelation):
            known = dict(definition.conditions())
            rules = {**definition.rules, **{n: meaning_of_sql(one) for n, one in known.items()}}
            meaning = {"correlation": definition.correlation, "rules": rules}
        else:
            meaning = {"query": query_text(definition), "type": self.type}
        return fingerprint_of({**meaning, "key": self.key, "timestamp": self.timestamp})

    def failure(self, test: RuleTest) -> str | None:
        """Return what a test finds instead of its matches; None if it finds these."""
        found = self._found(test.events)
        if sorted(map(_shown, found)) == sorted(map(_shown, test.matches)):
            return None
        return f"expected the matches {list(test.matches)}, got {found}"

    def _found(self, events: Mapping[str, Event]) -> list[Found]:
        """Return the matches on events with labels."""
        columns = list(dict.fromkeys(name for event in events.values() for name in event))
        rows = [
            {**{name: event.get(name) for name in columns}, _LABEL: label}
            for label, event in events.items()
        ]
        if isinstance(self.definition, Pattern):
            found = match(self.definition, rows, self.timestamp, key=list(self.key) or None)
            return [_labelled(one) for one in found]
        if isinstance(self.definition, Eql):
            runs = matchEql(self.definition, rows, self.timestamp, self.type)
            return [[None if event is None else event[_LABEL] for event in run] for run in runs]
        if isinstance(self.definition, SigmaCorrelation):
            sigma = self.definition
            alerts = matchSigma(sigma.correlation, rows, sigma.rules, self.timestamp)
            return [[event[_LABEL] for event in alert] for alert in alerts]
        has_events = self.definition.columns is None
        key_of = key_getter(self.key) if self.key else lambda _: None
        by_key: dict[Any, list[dict[str, Any]]] = {}
        for row in rows:
            by_key.setdefault(grouping_key(key_of(row)), []).append(row)
        return [
            _labelled(one) if has_events else dict(one)
            for own in by_key.values()
            for one in matchSase(self.definition, own, timestamp=self.timestamp, type=self.type)
        ]


def _are(given: object, kind: type) -> bool:
    return isinstance(given, tuple | list) and all(isinstance(one, kind) for one in given)


def _labelled(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a match with the labels of its events; stages without events are left out."""
    lists = {name: each if isinstance(each, list) else [each] for name, each in found.items()}
    return {
        name: labels
        for name, each in lists.items()
        if (labels := [event[_LABEL] for event in each if event is not None])
    }


def _shown(found: Found) -> str:
    return json.dumps(found, sort_keys=True, default=_plain)


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else f"{value}"
