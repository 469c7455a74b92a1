# SPDX-License-Identifier: Apache-2.0
"""Many rules on the same events in memory, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from pyflinkcep.errors import InvalidArgumentError, check_columns, suggesting
from pyflinkcep.rules.rule import Definition, Rule
from pyflinkcep.tables.events import Table

if TYPE_CHECKING:
    from pyflinkcep.rules.rule_matches import RuleMatches

Rules = Mapping[str, Rule | Definition] | Iterable[Rule]
"""Rules by name, or with their names in them."""


@suggesting
def matchMany(
    rules: Rules,
    events: Table | Iterable[dict[str, Any]],
    timestamp: str | None = None,
    type: str = "type",
) -> RuleMatches:
    """
    Return the matches of many rules on events in memory, in one pass.

    They are those of each rule by itself. Events are sorted once for each key, equal conditions are
    computed once, and a rule sees only events that it wants.

    Parameters
    ----------
    rules : dict or iterable of Rule
        For each name a Pattern, a SaseQuery, an Eql, a
        :class:`~pyflinkcep.rules.SigmaCorrelation`, or a :class:`~pyflinkcep.rules.Rule` with the
        key of one; or rules with their names, such as ``readRules`` returns.
    events : iterable or table
        Dicts, columns by name, a pandas or polars DataFrame, an Arrow table, or the path of a file
        or folder of Parquet, CSV or JSON lines.
    timestamp : str, optional
        The column of an event's time: epoch milliseconds, or a datetime (UTC if it has no zone).
        Without it the events are in order, a millisecond apart.
    type : str
        The column of an event's type in queries, of its category in EQL.

    Returns
    -------
    RuleMatches
        A sequence of matches, rule by rule in the order given, with ``toArrow()``.

    Raises
    ------
    InvalidArgumentError
        If two rules have one name, something is no rule, or events are not dicts or columns.
    InputError
        If the events lack what a rule names.
    NotSupportedError
        If a rule makes no matches of events, or a condition needs Spark.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.rules import Rule
    >>> rise = Pattern.begin("low").where("n < 3").next("high").where("n > 7")
    >>> fall = Pattern.begin("high").where("n > 7").followedBy("low").where("n < 3")
    >>> events = {"user": ["a", "b", "a", "a"], "n": [1, 2, 9, 0]}
    >>> found = matchMany({"rise": Rule("rise", rise, ("user",)), "fall": fall}, events)
    >>> [(match.rule, match.key, match.time) for match in found]
    [('rise', {'user': 'a'}, 2), ('fall', {}, 3)]
    >>> found[0].events
    {'low': [{'user': 'a', 'n': 1}], 'high': [{'user': 'a', 'n': 9}]}
    """
    from pyflinkcep.rules.rule_matches import found_on  # which loads Arrow

    check_columns("matchMany", timestamp=timestamp, type=type)
    return found_on(rules_of(rules, "matchMany"), events, timestamp, type)


def rules_of(given: Rules, what: str) -> list[Rule]:
    """Return rules, each with its name."""
    if isinstance(given, Mapping):
        try:
            listed = [
                attrs.evolve(one, name=name) if isinstance(one, Rule) else Rule(name, one)
                for name, one in given.items()
            ]
        except InvalidArgumentError as cause:
            raise InvalidArgumentError(f"{what}: {cause.message}", cause.hint) from None
    elif isinstance(given, Iterable):
        listed = list(given)
    else:
        raise InvalidArgumentError(
            f"{what}: expected rules, got {given!r}", "write {name: pattern}"
        )
    names: set[str] = set()
    for rule in listed:
        if not isinstance(rule, Rule):
            raise InvalidArgumentError(
                f"{what}: expected a Rule, got {rule!r}", "write {name: pattern}"
            )
        if rule.name in names:
            raise InvalidArgumentError(
                f"{what}: {rule.name!r} is the name of several rules", "give each its own"
            )
        names.add(rule.name)
    return listed
