# SPDX-License-Identifier: Apache-2.0
"""The matches of a pattern on files that do not fit memory: one bucket of keys after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator import CepOperator, PartialMatchLimit
from pyflinkcep.errors import Field, KeyFields
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import POSITION, PREFIX, Ints, integers, plain_numbers
from pyflinkcep.matching.event_store import SortedEvents
from pyflinkcep.matching.layout import taking_stages
from pyflinkcep.matching.matcher import ChunkMatching
from pyflinkcep.matching.memory import give_back
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.matching.progress import Counts, counting
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.spill import SpillFile
from pyflinkcep.matching.threads import results
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.column_match import ColumnMatch, Share
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.found_rows import MOST_EVENTS, Part, Results, Run, SpilledRows
from pyflinkcep.tables.order import computed_column
from pyflinkcep.tables.records import Cells, RecordBlock
from pyflinkcep.tables.spilling import Dealing, Spilling, numbered, read

_KEY_VALUE = f"{PREFIX}given key"


@attrs.frozen(eq=False)
class SpilledMatch:
    """A pattern on files."""

    pattern: Pattern  # The pattern
    events: Spilling  # The events
    timestamp: Field | None  # Their time
    key: KeyFields | None  # Their key
    limit: PartialMatchLimit | None  # How many partial matches a key may have
    threads: int  # On how many cores to match
    ties: OrderColumns | None = None  # The order of events of one key and millisecond
    key_type: pa.DataType | None = None  # The type of all keys that a function returns

    def rows(self) -> tuple[SpilledRows, int]:
        """Return the matches, which are on disk, and how many partial matches were dropped."""
        schema = self.events.nothing.schema
        example = next(self.events.tables(None), None)
        if example is None:
            example = next(numbered([schema.empty_table()]))
        # What is wrong is said before all work.
        job = self._analysed(example.take(pa.array(range(min(1, example.num_rows)), pa.int64())))
        del example
        dealing = Dealing(schema.names, self.timestamp, self.key, self.events.budget)
        with counting() as counts:
            found = _Found(SpillFile(), SpillFile(), counts)
            tables = partial(self.events.tables, counts=counts)
            for parts in dealing.buckets(tables, self.events.count):
                if parts:
                    attrs.evolve(self, key_type=dealing.key_type)._match(parts, found)
        is_computed = job.keys.is_computed
        keys = {name: _KEY_VALUE if is_computed else name for name in job.keys.columns}
        columns = {_KEY_VALUE: dealing.key_type or pa.string()} if is_computed else {}
        rows = SpilledRows(
            Results(found.matches),
            Results(found.timeouts),
            job.nfa.stages,
            taking_stages(self.pattern, job.nfa),
            schema.names,
            keys,
            attrs.evolve(job.times, raw=pa.chunked_array([], pa.int64())),
            pa.schema([*schema, *columns.items()]),
        )
        return rows, found.dropped

    def _analysed(self, events: pa.Table, only: frozenset[str] | None = None) -> ColumnMatch:
        """Return the pattern on some of the events."""
        table = events.drop_columns([POSITION])
        places = events.column(POSITION)
        job = ColumnMatch.analysed(
            self.pattern, table, self.timestamp, self.key, self.ties, places, only
        )
        if job.keys.is_computed:
            values = list(map(job.keys.value_of, range(table.num_rows)))
            table = table.append_column(_KEY_VALUE, computed_column(values, self.key_type))
        return attrs.evolve(job.in_order(self.threads), table=table, kept=table.column_names)

    def _match(self, parts: list[SpillFile], found: _Found) -> None:
        """Find the matches of a bucket."""
        only = self._computed_in(parts) if len(parts) > 1 else None
        if only is not None:
            analysed = partial(self._analysed, only=only)
            shares = [partial(_found_in_stretches, parts, analysed, self.limit, found)]
            number = 1
        else:
            events = read(*parts)
            if len(parts) > 1:  # by time: keys whose numbers happen to be equal
                events = events.sort_by(POSITION)
            job = self._analysed(events)
            job.nfa.open(RuntimeContext())
            keys = _KeyPlaces.of(job, events)
            number = len(keys.begins)
            own = job.shares(self.limit, self.threads)
            shares = [partial(_found_in, share, keys, found) for share in own]
        for matches, timeouts, dropped in results(shares, self.threads):
            found.add(matches, timeouts, dropped)
        found.end_bucket(number)
        give_back()

    def _computed_in(self, parts: list[SpillFile]) -> frozenset[str] | None:
        """Return what is computed for whole columns in all stretches of a key; None of several."""
        found: list[frozenset[str]] = []
        keys: set[Any] = set()
        for part in parts:
            job = self._analysed(read(part))
            keys.add(job.keys.value_of(0))  # 0.0 and -0.0 are one
            if len(job.firsts) > 1 or len(keys) > 1:
                return None
            found.append(job.computed)
            del job
        return frozenset.intersection(*found)


@attrs.define(eq=False)
class _Found:
    """What was found, in files."""

    of_matches: SpillFile
    of_timeouts: SpillFile
    counts: Counts
    matches: list[Run] = attrs.field(factory=list)
    timeouts: list[Run] = attrs.field(factory=list)
    dropped: int = 0
    _open: tuple[list[Run], list[Run]] = attrs.field(factory=lambda: ([], []))

    def runs(self) -> tuple[Run, Run]:
        """Return runs for the matches and timeouts of some keys."""
        return Run(self.of_matches), Run(self.of_timeouts)

    def add(self, matches: Run, timeouts: Run, dropped: int) -> None:
        """Note what some keys had, that come after the others of their bucket."""
        for runs, run in zip(self._open, (matches, timeouts), strict=True):
            runs.append(run)
        self.dropped += dropped
        self.counts.matches += len(matches)

    def end_bucket(self, keys: int) -> None:
        """Note that the next keys are of another bucket, and how many this one had."""
        self.counts.keys += keys
        self.counts.tasks += 1
        self.counts.tell()
        for all_runs, runs in zip((self.matches, self.timeouts), self._open, strict=True):
            blocks = [block for run in runs for block in run.blocks]
            if blocks:
                all_runs.append(Run(runs[0].file, blocks))
            runs.clear()


@attrs.frozen(eq=False)
class _KeyPlaces:
    """Where the keys of a bucket are among all keys."""

    begins: Ints  # Where their events begin, in the order of matching
    earliest: Ints  # The times of their earliest events
    first: Ints  # The places of their first events among all

    @classmethod
    def of(cls, job: ColumnMatch, events: pa.Table) -> _KeyPlaces:
        """Return the places of the keys of a table."""
        begins: Any = job.firsts if job.table.num_rows else np.zeros(0, np.int64)
        rows: Any = begins if job.order is None else np.minimum.reduceat(job.order, begins)
        earliest = begins if job.order is None else job.order[begins]
        first = plain_numbers(events.column(POSITION).take(integers(rows)))
        return cls(begins, job.times.ms(earliest), first)

    def of_matches(self, found: Found, begin: int) -> tuple[Ints, Ints]:
        """Return the places of the keys of matches."""
        own = np.searchsorted(self.begins, found.handles[found.firsts] + begin, "right") - 1
        return self.earliest[own], self.first[own]


def _found_in(share: Share, keys: _KeyPlaces, found: _Found) -> tuple[Run, Run, int]:
    """Return matches and timeouts of some keys of a bucket, and how many were dropped."""
    runs, dropped = found.runs(), 0
    for own, matching in share.found():
        assert matching is not None  # since columns are kept
        dropped += own.dropped
        _write(own, runs, matching, share.job.kept, keys, share.begin)
    return *runs, dropped


def _found_in_stretches(
    parts: list[SpillFile],
    analysed: Callable[[pa.Table], ColumnMatch],
    limit: PartialMatchLimit | None,
    found: _Found,
) -> tuple[Run, Run, int]:
    """Return the same of one key that does not fit memory: its events in stretches of time."""
    runs, dropped = found.runs(), 0
    events = read(parts[0])
    job = analysed(events)
    job.nfa.open(RuntimeContext())
    key, keys = job.keys.value_of(0), _KeyPlaces.of(job, events)
    keys.first[:] = min(int(next(part.tables())[POSITION][0].as_py()) for part in parts)
    layout, kept = attrs.evolve(job.layout, value_of=lambda _: key), job.kept
    reader = _KeptReader([name for name in kept if name != _KEY_VALUE])
    matching = ChunkMatching(layout, reader, CepOperator(job.nfa), job.matcher(limit), job.ties)
    del job, events
    for own in matching.found(_chunks(parts, analysed)):
        dropped += own.dropped
        _write(own, runs, matching, kept, keys, 0)
    return *runs, dropped


def _chunks(
    parts: list[SpillFile], analysed: Callable[[pa.Table], ColumnMatch]
) -> Iterator[SortedEvents]:
    for part in parts:
        job = analysed(read(part))
        yield from job.chunks(0, job.table.num_rows)
        del job  # or it would stay in memory while the next one is made


@attrs.frozen(eq=False)
class _KeptReader:
    """Makes records of events that are in no table any more."""

    names: list[str]

    def lazy_rows(self, table: pa.Table) -> Sequence[Record]:
        """Make records whose fields are read when they are asked for."""
        block = RecordBlock(Cells(table.select(self.names)), np.arange(table.num_rows))
        return list(map(block.record, range(table.num_rows)))

    rows = lazy_rows


def _write(
    found: Found,
    runs: tuple[Run, Run],
    matching: ChunkMatching,
    kept: Sequence[str],
    keys: _KeyPlaces,
    begin: int,
) -> None:
    """Write matches and timeouts with their events."""

    def take(rows: Ints) -> pa.Table:
        assert matching.store is not None
        return matching.store.take(rows, kept)

    for kind, run in zip((1, 0), runs, strict=True):
        chosen = found.kinds == kind
        for part in found.only(chosen).parts(MOST_EVENTS) if chosen.any() else ():
            earliest, first = keys.of_matches(part, begin)
            run.add(Part.of(part, earliest, first, take))
