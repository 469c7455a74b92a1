# SPDX-License-Identifier: Apache-2.0
"""Rules as a stream runs them: by numbers that stay the same while others come and go."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.flink.stored_state import nfa_facts
from pyflinkcep.eql import Eql
from pyflinkcep.eql.tokens import eql_words
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.latest import rule_of
from pyflinkcep.pattern import Pattern
from pyflinkcep.rules.fingerprint import fingerprint_of
from pyflinkcep.rules.pattern_rules import pattern_texts
from pyflinkcep.rules.routes import Fields, RoutedRules
from pyflinkcep.rules.rule_keys import rule_code
from pyflinkcep.rules.running_patterns import StreamPattern
from pyflinkcep.rules.running_sequences import RunningSequences
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.wanting_rule import WantingRule, naming
from pyflinkcep.sase import SaseQuery
from pyflinkcep.sase.text import stored_text
from pyflinkcep.tables.column_match import StageSql
from pyflinkcep.tables.row_sql import OnlyByRow


@attrs.frozen(eq=False, slots=False)
class StreamRules:
    """Rules on a stream; travels to the workers."""

    routed: RoutedRules
    codes: Ints  # The number of each rule that its states are known by
    patterns: Mapping[int, StreamPattern]  # By the number of the rule

    @classmethod
    def of(cls, routed: RoutedRules, probe: SharedEvents) -> StreamRules:
        """Check rules against what a stream can do; `probe` has the columns of its events."""
        found: dict[int, StreamPattern] = {}
        codes: list[int] = []
        for number, one in enumerate(routed.rules):
            with naming(one.rule.rule):
                sql = _over_stages(one.rule, probe)
                if one.rule.pattern is not None:
                    found[number] = StreamPattern(one.rule.pattern, sql)
                codes.append(_code(one.rule, routed.routes[one.route], routed.type))
        return cls(routed.with_codes(), np.asarray(codes, np.int64), found)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Have a process read rules once, and go on with what is compiled in its next tasks."""
        if all(pattern.is_data for pattern in self.patterns.values()):
            with suppress(Exception):  # what only cloudpickle writes is read by each task
                return _read_once, (pickle.dumps((self.routed, self.codes, self.patterns)),)
        return StreamRules, (self.routed, self.codes, self.patterns)

    def arrived(self) -> StreamRules:
        """Return what is needed of them where events arrive."""
        return attrs.evolve(self, routed=self.routed.arrived())

    @property
    def digest(self) -> str:
        """What stands for all rules, in any order."""
        codes = [sorted(own.tolist()) for own in (self.codes, self.routed.codes) if own is not None]
        return f"{len(self.codes)} ({fingerprint_of({'codes': codes})[:12]})"

    @property
    def held_back(self) -> HeldBack:
        """How far behind the watermark the events of a match, and its time, can be."""
        every = [_held_back(one.rule) for one in self.routed.rules]
        return HeldBack(
            _largest(one.events_ms for one in every), _largest(one.time_ms for one in every)
        )

    def numbers_of(self, codes: Ints) -> Ints:
        """Return the rules with some codes, by number; -1 for one that is unknown."""
        order, ordered = self._in_order
        if not len(ordered):
            return np.full(len(codes), -1, np.int64)
        places = np.minimum(np.searchsorted(ordered, codes), len(ordered) - 1)
        return np.where(ordered[places] == codes, order[places], -1)

    @cached_property
    def _in_order(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.codes)
        return order, self.codes[order]

    @cached_property
    def sequences(self) -> RunningSequences:
        """What runs its queries of EQL, once a process has asked."""
        return RunningSequences(self.routed, self.codes)


@lru_cache(maxsize=4)
def _read_once(data: bytes) -> StreamRules:
    return StreamRules(*pickle.loads(data))


def _over_stages(own: WantingRule, probe: SharedEvents) -> StageSql | None:
    """Return the SQL over stages of a rule, if it has some; refuse what is not for streams."""
    definition = own.rule.definition
    if isinstance(definition, Pattern):
        try:
            if own.pattern is None:
                raise OnlyByRow
            found = StageSql.of(own.pattern.pattern, own.pattern.nfa, probe.table)
        except OnlyByRow:
            raise _refused(own, "its SQL over stages can only be computed row by row") from None
        return None if found is None else found[0]
    if isinstance(definition, Eql) and definition.model.pipes:
        raise NotSupportedError(
            f"rule {own.rule.name!r}: head and tail of a stream, which has no end",
            "leave them out, or use them on what the stream writes",
        )
    return None


def _held_back(own: WantingRule) -> HeldBack:
    if own.pattern is not None:
        return HeldBack.by_pattern(own.pattern.nfa)
    definition = own.rule.definition
    if isinstance(definition, SaseQuery):
        return HeldBack.by_query(definition, "all")
    if isinstance(definition, Eql) and definition.model.is_sequence:
        return HeldBack.by_latest(rule_of(definition.model))
    if isinstance(definition, SigmaCorrelation):
        *_, last = definition.links.values()
        return HeldBack(last.lag + last.span, last.decides_after)
    return HeldBack(0)


def _largest(times: Iterable[int | None]) -> int | None:
    """Return the largest; None if there is no bound for one."""
    known = list(times)
    return None if None in known else max((at for at in known if at is not None), default=0)


def _refused(own: WantingRule, why: str) -> NotSupportedError:
    return NotSupportedError(
        f"rule {own.rule.name!r}: {why}",
        "run it by itself, with CEP.pattern, or run the rules on bounded events",
    )


def _code(own: WantingRule, route: Fields, type_: str) -> int:
    """Return the number of a rule: another one if its state would mean something else."""
    rule, facts = own.rule, dict[str, Any]()
    definition = rule.definition
    if isinstance(definition, Pattern):
        assert own.pattern is not None
        # Of SQL that became a function, an automaton does not know the text.
        facts = {**nfa_facts(own.pattern.nfa), "conditions": list(pattern_texts(definition))}
    elif isinstance(definition, Eql):
        facts["eql"] = eql_words(definition.text)
        facts["type"] = type_
    elif isinstance(definition, SigmaCorrelation):
        facts["correlation"] = repr([link.correlation for link in definition.links.values()])
        facts["conditions"] = [
            (name, one if isinstance(one, str) else "a function")
            for name, one in definition.conditions()
        ]
    else:
        facts["query"], facts["type"] = stored_text(definition), type_
    return rule_code(rule.name, rule.version, {**facts, "key": rule.key, "route": route})
