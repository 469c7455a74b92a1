# SPDX-License-Identifier: Apache-2.0
"""Sequences of the latest engine on columns: which steps want an event, and what is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.latest.chain import LatestChain
from pyflinkcep.engines.latest.columns import FoundRuns, Offers, Shorts, latest_rules
from pyflinkcep.engines.latest.machine import LatestRule
from pyflinkcep.engines.lists.chain import fitting
from pyflinkcep.eql.model import EqlModel
from pyflinkcep.matching.columns import Ints, in_one_piece, plain_numbers, ranks_of_values
from pyflinkcep.matching.layout import Layout, holding
from pyflinkcep.matching.results import Found

EVENTS = "events"
"""The one stage of a match, with all of its events."""


def rule_of(model: EqlModel) -> LatestRule:
    """Return a sequence as the engine knows it."""
    missing = tuple(step.is_missing for step in model.expanded)
    return LatestRule(missing, model.maxspan, model.until is not None)


def bits_of(model: EqlModel) -> tuple[int, ...]:
    """Return for each step, repetitions written out, and ``until``, the number of its condition."""
    found = [number for number, step in enumerate(model.steps) for _ in range(step.runs)]
    return (*found, len(model.steps)) if model.until is not None else tuple(found)


class LatestEvents(Protocol):
    """What a rule of the latest engine reads from events in columns, and how its matches look."""

    @property
    def rule(self) -> LatestRule:
        """The rule."""

    @property
    def layout(self) -> Layout:
        """The columns of the events."""

    @property
    def tiebreaker(self) -> str | None:
        """The column that orders events of equal time, null last; None for their arrival."""

    @property
    def stages(self) -> Sequence[str]:
        """The stages of matches."""

    @property
    def components(self) -> Shorts:
        """The number of the stage of each event of a match."""

    def offers(self, bits: Ints, keys: Ints) -> Offers:
        """Return which steps want events, of their bits, or words of bits, and keys."""


@attrs.frozen(eq=False)
class LatestStagesOf:
    """What a pattern, whose latest partial match of each stage lives, reads from events."""

    chain: LatestChain
    nfa: NFA
    layout: Layout  # The columns of the events
    tiebreaker: None = None

    @property
    def rule(self) -> LatestRule:
        """The pattern as a rule."""
        return self.chain.rule

    @property
    def stages(self) -> Sequence[str]:
        """The stages that take events."""
        return self.chain.stages

    @property
    def components(self) -> Shorts:
        """The number of the stage of each event of a match."""
        return self.chain.components

    def offers(self, bits: Ints, keys: Ints) -> Offers:
        """Return which steps want events, of their bits, or words of bits, and keys."""
        return self.chain.offers(
            lambda condition: np.flatnonzero(
                fitting(self.nfa, [condition], lambda atom: holding(bits, atom), len(keys))
            ),
            keys,
        )


@attrs.frozen(eq=False)
class LatestColumnsOf:
    """What a sequence reads from events in columns; travels to the workers."""

    rule: LatestRule
    bits: Sequence[int]  # See `bits_of`
    layout: Layout  # The columns of the events
    tiebreaker: str | None = None  # The column that orders events of equal time, null last

    @property
    def stages(self) -> Sequence[str]:
        """The one stage of matches."""
        return (EVENTS,)

    @property
    def components(self) -> Shorts:
        """The number of the stage of each event of a match."""
        return np.zeros(self.rule.size, np.int32)

    def found(self, events: pa.Table, ends: Ints) -> Found:
        """Return the matches of whole keys, in order of their last event; handles are rows."""
        order = self._order(events)
        keys = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))[order]
        times = self.layout.times_ms(events)[order]
        bits = self.layout.bits(events)
        assert bits is not None
        offers = self.offers(bits[order], keys)
        runs = latest_rules([self.rule]).process(times, offers, is_last=True)
        return found_of(runs, times, order)

    def offers(self, bits: Ints, keys: Ints) -> Offers:
        """Return which steps want events, of their bits, or words of bits, and keys."""
        words = [bits] if bits.ndim == 1 else list(bits.T)
        rows = {
            number: np.flatnonzero(words[number // BITS_OF_WORD] >> number % BITS_OF_WORD & 1)
            for number in set(self.bits)
        }
        events = np.concatenate([rows[number] for number in self.bits])
        counts = [len(rows[number]) for number in self.bits]
        steps = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        return Offers(events.astype(np.int32), steps, keys[events].astype(np.int64))

    def _order(self, events: pa.Table) -> Ints:
        """Return the order by time, tie-breaker, and as sorted before."""
        by = [self.layout.times(events)]
        if self.tiebreaker is not None:
            by.insert(0, ranks_of(events.column(self.tiebreaker)))
        order: Ints = np.lexsort(by)
        return order


BITS_OF_WORD = 63


def ranks_of(column: pa.ChunkedArray) -> Ints:
    """Return numbers by which rows are ordered by a column, null last."""
    coded = in_one_piece(column).dictionary_encode()
    ranks = ranks_of_values(coded.dictionary.to_pylist())
    found: Ints = ranks[plain_numbers(coded.indices.fill_null(len(ranks) - 1))]
    return found


def found_of(runs: FoundRuns, times: Ints, order: Ints) -> Found:
    """Return matches of one stage, with the time of the last event."""
    lasts = runs.handles[runs.ends - 1]
    kinds = np.ones(len(runs.ends), np.uint8)
    stages = np.zeros(len(runs.handles), np.int32)
    return Found((EVENTS,), kinds, times[lasts], runs.ends, stages, order[runs.handles])
