# SPDX-License-Identifier: Apache-2.0
"""The stages that partial matches reach on a table, counted in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import Flags, Ints, integers, values_of
from pyflinkcep.matching.matcher import Wanted
from pyflinkcep.matching.results import REACHED, Found
from pyflinkcep.matching.threads import results
from pyflinkcep.tables.column_match import ColumnMatch, Share
from pyflinkcep.tables.order import Keys
from pyflinkcep.tables.values import grouping_key
from pyflinkcep.traces.funnel import Count, FunnelSettings, FunnelStep

Groups = dict[tuple[Any, ...], Mapping[int, Count]]


def reached_groups(
    job: ColumnMatch, steps: Sequence[FunnelStep], settings: FunnelSettings, threads: int
) -> Groups:
    """Return what reached each step by group: all are one group if there are no columns for it."""
    counts = not (settings.by or settings.quantiles)
    wanted = Wanted(reached=True, counts=counts, by_windows=True)
    placed = attrs.evolve(job, wanted=wanted).in_order(threads, drops=True)
    placed.nfa.open(RuntimeContext())
    numbers = {step.stage: step.number for step in steps}
    by_stage = np.asarray([numbers.get(stage, 0) for stage in placed.nfa.stages])
    shares = [_Share(share, by_stage, settings).run for share in placed.shares(None, threads)]
    parts: dict[tuple[Any, ...], dict[int, list[_Times]]] = {} if settings.by else {(): {}}
    for own in results(shares, threads):
        for group, step, found in own:
            parts.setdefault(group, {}).setdefault(step, []).append(found)
    return {
        group: {step: _joined(found) for step, found in counts.items()}
        for group, counts in parts.items()
    }


_Times = tuple[int, int, Ints]  # How many keys, how many partial matches, and the times


def _joined(found: Sequence[_Times]) -> Count:
    """Return what reached a step in shares that have no key in common."""
    keys, partials, since = zip(*found, strict=True)
    times: Any = np.sort(np.concatenate(since))
    return Count(sum(keys), sum(partials), times)


@attrs.frozen(eq=False)
class _Share:
    """Some keys, which one thread matches and counts."""

    share: Share
    steps: Ints  # By stage
    settings: FunnelSettings

    def run(self) -> list[tuple[tuple[Any, ...], int, _Times]]:
        """Return by group and step what reached it; by step 0 what began."""
        parts = [self._columns(part) for part, _ in self.share.found() if len(part)]
        counted = self._counted_already()
        if not parts:
            return counted
        steps, begins, rows, keys, since = map(np.concatenate, zip(*parts, strict=True))
        found = counted
        for group, of_group in self._groups(rows):
            chosen = begins if of_group is None else begins & of_group
            if chosen.any():
                found.append((group, 0, _counted(keys[chosen], since[:0])))
            for step in range(1, int(steps.max(initial=0)) + 1):
                chosen = steps == step if of_group is None else (steps == step) & of_group
                if not chosen.any():
                    continue
                times = since[chosen & ~begins] if len(since) else since
                found.append((group, step, _counted(keys[chosen], times)))
        return found

    def _counted_already(self) -> list[tuple[tuple[Any, ...], int, _Times]]:
        """Return what the matcher has counted; the first stage is what began."""
        found: list[tuple[tuple[Any, ...], int, _Times]] = []
        for stage, partials, keys in self.share.matcher.counted():
            times = keys, partials, np.zeros(0, np.int64)
            steps = [int(self.steps[stage]), *([] if found else [0])]
            found += [((), step, times) for step in steps if partials]
        return found

    def _groups(self, rows: Any) -> Iterator[tuple[tuple[Any, ...], Flags | None]]:
        """Yield the groups of partial matches, by the rows of their first events."""
        by = list(self.settings.by)
        if not by:
            yield (), None
            return
        columns = self.share.job.table.select(by).take(integers(rows))
        codes = Keys.of(columns, by).codes
        assert codes is not None
        for code, row in enumerate(np.unique(codes, return_index=True)[1].tolist()):
            values = (values_of(column.slice(row, 1))[0] for column in columns.columns)
            yield tuple(map(grouping_key, values)), codes == code

    def _columns(self, found: Found) -> tuple[Any, ...]:
        """Return steps, which ones began, the rows of first events, keys and times since."""
        job, chosen = self.share.job, found.kinds == REACHED
        lasts = found.ends[chosen] - 1
        firsts = found.firsts[chosen]
        first = found.handles[firsts] + self.share.begin
        rows: Any = first[:0]
        if self.settings.by:
            rows = first if job.order is None else job.order[first]
        since = first[:0]
        if self.settings.quantiles:
            before = found.handles[np.maximum(lasts - 1, firsts)] + self.share.begin
            since = found.times[chosen] - job.times_at(before)
        steps = self.steps[found.stage_of[lasts]].astype(np.int8)
        return steps, firsts == lasts, rows, np.searchsorted(job.firsts, first, "right"), since


def _counted(keys: Ints, since: Ints) -> _Times:
    """Return how many keys there are, one after another, and how often any."""
    return 1 + int(np.count_nonzero(keys[1:] != keys[:-1])), len(keys), since
