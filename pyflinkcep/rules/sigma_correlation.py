# SPDX-License-Identifier: Apache-2.0
"""A Sigma correlation together with the conditions of the rules that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import attrs

from pyflinkcep.engines.correlations import Link, links_of
from pyflinkcep.errors import InvalidArgumentError, did_you_mean
from pyflinkcep.sigma.correlation import Correlation, check_rules, read_correlation


@attrs.frozen(slots=False)
class SigmaCorrelation:
    """
    A Sigma correlation, and what the rules in it mean.

    Parameters
    ----------
    correlation : dict
        The section ``correlation`` of a Sigma file, or the whole file, read from its YAML.
    rules : dict
        For each rule that it names SQL on one event, a function of it, or another correlation; see
        :func:`pyflinkcep.matchSigma`.

    Raises
    ------
    CepError
        If a correlation is refused, or names a rule that is not given.

    Examples
    --------
    >>> failed = {"type": "event_count", "rules": ["failed"], "timespan": "1m"}
    >>> SigmaCorrelation({**failed, "condition": {"gte": 3}}, {"failed": "not ok"}).read.rules
    ('failed',)
    """

    correlation: Mapping[str, Any]
    rules: Mapping[str, Any]
    every: tuple[Correlation, ...] = attrs.field(init=False, eq=False, repr=False)  # Read

    @every.default
    def _read(self) -> tuple[Correlation, ...]:
        read = read_correlation(self.correlation)
        check_rules(self.rules)
        chained = [
            read_correlation(rule, name)
            for name, rule in self.rules.items()
            if isinstance(rule, Mapping)
        ]
        for one in (read, *chained):
            for name in one.rules:
                if name not in self.rules:
                    raise InvalidArgumentError(
                        f"{one.name}: unknown rule {name!r}",
                        did_you_mean(name, self.rules, "write its condition under its name"),
                    )
        return read, *chained

    @property
    def read(self) -> Correlation:
        """The correlation; others are those to whose alerts it refers."""
        return self.every[0]

    @cached_property
    def links(self) -> Mapping[str, Link]:
        """The correlations by name, each after those to whose alerts it refers."""
        chained = {
            name: read_correlation(rule, name)
            for name, rule in self.rules.items()
            if isinstance(rule, Mapping)
        }
        return links_of({**chained, "": self.read}, "")

    @property
    def common_fields(self) -> tuple[str, ...]:
        """The fields that all events of an alert have in common."""
        first, *_ = self.every
        return tuple(
            name
            for name in first.group_by
            if all(name in one.group_by and name not in one.aliases for one in self.every)
        )

    def conditions(self) -> Iterator[tuple[str, str | Callable[[Any], bool]]]:
        """Yield the rules about single events that correlations name."""
        named = {name for one in self.every for name in one.rules}
        for name, one in self.rules.items():
            if name in named and not isinstance(one, Mapping):
                yield name, one
