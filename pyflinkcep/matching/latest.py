# SPDX-License-Identifier: Apache-2.0
"""Sequences of the latest engine on columns: which steps want an event, and what is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.latest.chain import LatestChain
from pyflinkcep.engines.latest.columns import Offers, Shorts
from pyflinkcep.engines.latest.machine import LatestRule
from pyflinkcep.engines.lists.chain import fitting
from pyflinkcep.eql.model import EqlModel
from pyflinkcep.matching.columns import Ints, in_one_piece, plain_numbers, ranks_of_values
from pyflinkcep.matching.layout import Layout, holding
from pyflinkcep.matching.results import Found
from pyflinkcep.pattern import Pattern

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


@attrs.frozen(eq=False)
class LatestEvents:
    """What a rule of the latest engine reads from events in columns, and how its matches look."""

    rule: LatestRule
    layout: Layout  # The columns of the events
    stages: Sequence[str]  # Those of matches
    components: Shorts  # The number of the stage of each event of a match
    # Returns which steps want events, of their bits, or words of bits, and keys.
    offers: Callable[[Ints, Ints], Offers]
    tiebreaker: str | None = None  # The column that orders events of equal time, null last

    @classmethod
    def of_pattern(cls, pattern: Pattern, layout: Layout) -> LatestEvents:
        """Return what a pattern reads, whose latest partial match of each stage lives."""
        nfa = NFACompiler.compile(pattern)
        chain = LatestChain.of(pattern, nfa)

        def offers(bits: Ints, keys: Ints) -> Offers:
            return chain.offers(
                lambda condition: np.flatnonzero(
                    fitting(nfa, [condition], lambda atom: holding(bits, atom), len(keys))
                ),
                keys,
            )

        return cls(chain.rule, layout, chain.stages, chain.components, offers)

    @classmethod
    def of_query(cls, model: EqlModel, layout: Layout, tiebreaker: str | None) -> LatestEvents:
        """Return what a sequence of EQL reads, whose matches have one stage."""
        rule = rule_of(model)
        components = np.zeros(rule.size, np.int32)
        offers = partial(_offers, bits_of(model))
        return cls(rule, layout, (EVENTS,), components, offers, tiebreaker)

    def in_order(self, events: pa.Table) -> pa.Table:
        """Return sorted events, those of equal time by the tie-breaker."""
        if self.tiebreaker is None:
            return events
        ties, layout = ranks_of(events.column(self.tiebreaker)), self.layout
        order = np.lexsort([ties, layout.times(events), layout.key_numbers(events)])
        return events.take(pa.array(order)).combine_chunks()

    def found(self, handles: Ints, ends: Ints, times: Ints) -> Found:
        """Return matches, given their events and the times of the last ones."""
        kinds, stages = np.ones(len(ends), np.uint8), np.tile(self.components, len(ends))
        return Found(self.stages, kinds, times, np.array(ends), stages, handles)


def _offers(numbers: Sequence[int], bits: Ints, keys: Ints) -> Offers:
    """Return which steps want events, given for each step the number of its condition."""
    words = [bits] if bits.ndim == 1 else list(bits.T)
    rows = {
        number: np.flatnonzero(words[number // BITS_OF_WORD] >> number % BITS_OF_WORD & 1)
        for number in set(numbers)
    }
    events = np.concatenate([rows[number] for number in numbers])
    counts = [len(rows[number]) for number in numbers]
    steps = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return Offers(events.astype(np.int32), steps, keys[events].astype(np.int64))


BITS_OF_WORD = 63


def ranks_of(column: pa.ChunkedArray) -> Ints:
    """Return numbers by which rows are ordered by a column, null last."""
    coded = in_one_piece(column).dictionary_encode()
    ranks = ranks_of_values(coded.dictionary.to_pylist())
    found: Ints = ranks[plain_numbers(coded.indices.fill_null(len(ranks) - 1))]
    return found
