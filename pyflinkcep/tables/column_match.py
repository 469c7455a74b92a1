# SPDX-License-Identifier: Apache-2.0
"""The matches of a pattern on a table, column by column: what a task of Spark does, in memory."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.conditions import Evaluated, ExpressionCondition, IterativeCondition
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import Relevance, Unbranched
from pyflinkcep.engines.flink.nfa.atoms import guarded_parts, known_bits
from pyflinkcep.engines.flink.operator import CepOperator, PartialMatchLimit
from pyflinkcep.errors import CepError, Field, KeyFields
from pyflinkcep.expressions.arrays import Program
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.evaluator import event_condition
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import PREFIX, Ints, field_names, integers
from pyflinkcep.matching.event_store import SortedEvents
from pyflinkcep.matching.layout import KeyText, Layout, bit_names, taking_stages
from pyflinkcep.matching.matcher import (
    ChunkMatching,
    KernelMatcher,
    PatternMatcher,
    Wanted,
    make_matcher,
)
from pyflinkcep.matching.memory import give_back
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.matching.results import Found, SharedPrefixes
from pyflinkcep.matching.stretches import Events, Stretches, needed_stretches
from pyflinkcep.matching.threads import LEAST_SHARE, cuts, results
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.found_rows import FoundRows
from pyflinkcep.tables.matches import Matches
from pyflinkcep.tables.order import Keys, Rows, Times
from pyflinkcep.tables.placing import KINDS, Placed, Placing
from pyflinkcep.tables.records import ROW, FieldSource, RecordReader
from pyflinkcep.tables.row_groups import RowGroups, Unfit
from pyflinkcep.tables.row_sql import OnlyByRow, RowSql
from pyflinkcep.tables.sql import evaluated_by, over_stages
from pyflinkcep.tables.typed_columns import NumberColumn, SqlColumns, as_array

_KEY = f"{PREFIX}key"
_TIME = f"{PREFIX}time"
_PORTION = 1 << 18
_TIES = 1 << 12
_MANY = 1 << 20  # events in matches
_MOST_FIELDS = 4  # that are moved with events
_ALL = Wanted(timeouts=True, by_windows=True)
_WIDE = {"i": np.int64, "f": np.float64}  # The types that matching has, by their kinds
_NOWHERE = Placed(None, None, (), np.zeros(1, np.int64), 0)


@attrs.frozen(eq=False)
class ColumnMatch:
    """A pattern on a table."""

    pattern: Pattern  # The pattern
    nfa: NFA  # The compiled pattern
    table: pa.Table  # The events
    times: Times  # Their times
    keys: Keys  # Their keys
    conditions: _Conditions  # The conditions that are computed for whole columns
    placed: Placed  # The events in the order of matching, once they are
    expressions: CompiledExpressions | None  # The SQL over stages
    fields: Sequence[FieldSource]  # What it needs of events
    ties: OrderColumns | None = None  # The order of events of one key and millisecond
    kept: Sequence[str] = ()  # The columns that events have where they are found
    wanted: Wanted = _ALL  # What is wanted of the matcher
    groups: RowGroups | None = None  # The events, if these are in files; the table has extremes
    read: Callable[[], ColumnMatch] | None = None  # Returns the same on a table, if need be

    @classmethod
    def analysed(
        cls,
        pattern: Pattern,
        table: pa.Table,
        timestamp: Field | None,
        key: KeyFields | None,
        ties: OrderColumns | None = None,
        places: pa.ChunkedArray | None = None,
        only: Container[str] | None = None,
    ) -> ColumnMatch:
        """
        Analyse a pattern on a table.

        Of a part of a table, `places` are those of its events in the whole, which are their times
        if there are no others. Of its conditions `only` some are computed for whole columns.
        """
        sql = _Conditions(pattern, table, only)
        nfa = NFACompiler.compile(evaluated_by(pattern, sql.evaluated), timeoutHandling=True)
        expressions, fields = expressions_on(pattern, nfa, table)
        has_times = timestamp is not None or places is None
        times = Times.of(table, timestamp) if has_times else Times(places)
        keys = Keys.of(table, key)
        return cls(pattern, nfa, table, times, keys, sql, _NOWHERE, expressions, fields, ties)

    def in_order(self, threads: int, *, drops: bool = False) -> ColumnMatch:
        """Put the events in order; drop those that change no match or timeout, if it pays."""
        try:
            return attrs.evolve(self, placed=self._placing(drops).placed(threads))
        except Unfit:
            return self._on_table().in_order(threads, drops=drops)

    def rounds(self, threads: int, *, drops: bool = False) -> Iterator[ColumnMatch]:
        """Yield the same of some keys after others, as many as need not much memory."""
        for placed in self._placing(drops).rounds(threads):
            yield attrs.evolve(self, placed=placed)

    def _on_table(self) -> ColumnMatch:
        """Return the same on a table, since the events cannot be read meanwhile."""
        assert self.read is not None
        return attrs.evolve(self.read(), wanted=self.wanted)

    def _placing(self, drops: bool) -> Placing:
        programs = {
            atom.bit: self.conditions.programs[atom.condition.text]
            for atom in self.nfa.atoms
            if isinstance(atom.condition, ExpressionCondition)
        }
        needless: frozenset[int] = frozenset()
        size = self.table.num_rows if self.groups is None else self.groups.size
        if drops and size >= LEAST_SHARE and max(programs, default=KINDS) < KINDS:
            needless = Relevance.of(self.nfa, known_bits(self.nfa.atoms), False).droppable
        bits = self.conditions.columns.bits(programs, size)
        return Placing(self.times, self.keys, bits, needless, size, self.groups, self._moved)

    @property
    def _moved(self) -> list[NumberColumn] | None:
        """The fields, if they are numbers that can be moved with their events; else None."""
        known = [field for field in self.fields if isinstance(field, NumberColumn)]
        are_there = len(known) == len(self.fields) <= _MOST_FIELDS
        return known if are_there and not any(own.column.null_count for own in known) else None

    @property
    def is_of_numbers(self) -> bool:
        """Whether matching in C needs nothing of events but numbers, as they are in columns."""
        atoms = (atom.condition for atom in self.nfa.atoms)
        if not all(isinstance(one, ExpressionCondition | MatchExpression) for one in atoms):
            return False
        moved = self._moved
        are_columns = moved is not None and all(field.name for field in moved)
        return are_columns and self.ties is None and not self.matcher(None).needs_python

    @property
    def numbers_of_texts(self) -> Mapping[str, int]:
        """What conditions compare in place of texts."""
        return self.conditions.columns.ranks.numbers

    @property
    def computed(self) -> frozenset[str]:
        """The conditions that are computed for whole columns."""
        return frozenset(self.conditions.programs)

    @property
    def order(self) -> Rows | None:
        """The rows in the order of matching; None if these are all rows, as they are."""
        return self.placed.rows

    @property
    def firsts(self) -> Ints:
        """Where keys begin in that order."""
        return self.placed.firsts

    def matches(
        self,
        limit: PartialMatchLimit | None,
        threads: int,
        events: Sequence[dict[str, Any]] | None = None,
        whole: Callable[[], pa.Table] | None = None,
    ) -> Matches[Any]:
        """
        Return what ``match`` returns, for dicts of which the table was made if there are any.

        `whole` returns the table with the columns that matching does not need.
        """
        found, timed_out, dropped = self.run(limit, threads)
        many, kept = len(found.handles) + len(timed_out.handles), SharedPrefixes.of(found)
        del found
        if many > _MANY and not isinstance(kept, Found):
            give_back()  # what partial matches took that share so much
        rows = FoundRows(
            (lambda: self.table) if whole is None else whole,
            kept,
            timed_out,
            taking_stages(self.pattern, self.nfa),
            self.keys.columns,
            self.times,
            events,
        )
        return Matches.of(rows, dropped) if events is None else Matches.listed(rows, dropped)

    def run(self, limit: PartialMatchLimit | None, threads: int) -> tuple[Found, Found, int]:
        """Return matches and timeouts, by rows of the table, and how many partials were dropped."""
        found = self._found(limit, threads)
        dropped = sum(count for _, _, count in found)
        matches = [part for own, _, _ in found for part in own]
        count = sum(map(len, matches))
        parts = matches + [part for _, own, _ in found for part in own]
        del found, matches  # all that is joined is let go on the way
        whole = Found.concat(parts) if parts else Found.of(self.nfa.stages, [b""] * 5)
        return whole.between(0, count), whole.between(count, len(whole)), dropped

    def _found(
        self, limit: PartialMatchLimit | None, threads: int
    ) -> list[tuple[list[Found], list[Found], int]]:
        """Return what :meth:`Share.run` does of all shares, whose events are not needed then."""
        self.nfa.open(RuntimeContext())
        found: list[tuple[list[Found], list[Found], int]] = []
        try:
            for job in self.rounds(threads, drops=limit is None):
                found += results([share.run for share in job.shares(limit, threads)], threads)
        except Unfit:
            return self._on_table()._found(limit, threads)
        return found

    def shares(self, limit: PartialMatchLimit | None, threads: int) -> list[Share]:
        """Return the events in shares of whole keys, as many as threads can make use of."""
        size = self.placed.size
        whole = Share(self, self.matcher(limit), 0, size)
        has_texts = not all(isinstance(field, NumberColumn) for field in self.fields)
        at = cuts(self.firsts, size, threads)
        if len(at) == 2 or has_texts or whole.matcher.needs_python:  # then threads would take
            return [whole]  # turns, and the main one could not hear Ctrl-C
        return [Share(self, self.matcher(limit), *share) for share in pairwise(at)]

    def matcher(self, limit: PartialMatchLimit | None) -> PatternMatcher:
        """Return what finds the matches of a share."""
        wanted = attrs.evolve(self.wanted, limit=limit)
        return make_matcher(self.nfa, wanted, self.expressions)

    @property
    def layout(self) -> _TableLayout:
        """The layout of chunks."""
        keys = (_KEY,) if self.keys.columns else ()
        bits = bit_names(self.nfa.atoms) if self.placed.words else ()
        return _TableLayout(
            pattern=self.nfa.description,
            schema=None,
            payload=(ROW, *field_names(self.expressions), *self._late),
            key_names=keys,
            key_columns=keys,
            key_signature=keys,
            time_column=_TIME,
            time_unit=None,
            bit_columns=bits,
            expressions=self.expressions,
            value_of=self.keys.value_of,
        )

    @property
    def _late(self) -> list[str]:
        """The columns that order events of one time, and those that are kept."""
        ties = [] if self.ties is None else self.ties.names
        return list(dict.fromkeys([*ties, *self.kept]))

    def chunks(self, begin: int, size: int) -> Iterator[SortedEvents]:
        """Yield events in portions that fit the caches of the processor better than all."""
        layout = self.layout
        while begin < size:
            end = self._cut(min(begin + _PORTION, size))
            rows = self._rows(begin, end)
            columns = {ROW: integers(rows), _TIME: integers(self._times(begin, end))}
            first, last = np.searchsorted(self.firsts, [begin + 1, end]).tolist()
            if layout.key_columns:
                numbers = np.zeros(end - begin, np.int32)
                numbers[0] = first
                numbers[self.firsts[first:last] - begin] = 1
                columns[_KEY] = integers(np.cumsum(numbers, dtype=np.int32))
            words = (integers(word[begin:end].astype(np.int64)) for word in self.placed.words)
            columns |= zip(layout.bit_columns, words, strict=True)
            fields = self._field_values(begin, end, rows)
            columns |= zip(field_names(self.expressions), fields, strict=True)
            events = SortedEvents(pa.table(columns))
            if self._late:
                late = self.table.select(self._late)
                events = attrs.evolve(events, late=late, order=rows)
            yield events
            begin = end

    def _field_values(
        self, begin: int, end: int, rows: Ints
    ) -> Iterator[pa.Array | pa.ChunkedArray]:
        """Yield the values of fields of some events in the order of matching."""
        if self.placed.fields is None:
            yield from (as_values(field, rows) for field in self.fields)
        else:
            for field in self.placed.fields:
                yield integers(field[begin:end].astype(_WIDE[field.dtype.kind]))

    def has_whole_keys(self, matcher: KernelMatcher) -> bool:
        """Whether keys fit a portion, and matching them needs only times and conditions."""
        if self.fields or self._late or matcher.needs_python:
            return False
        return int(np.diff(self.firsts, append=self.placed.size).max(initial=0)) <= _PORTION

    def stretches(self, begin: int, size: int, rules: CepOperator) -> Iterator[Stretches]:
        """Yield all events of some keys at a time; a last stretch without any ends the others."""
        firsts = self.firsts[slice(*np.searchsorted(self.firsts, [begin, size]))]
        layout, base = self.layout, begin
        skips = Unbranched.of(self.nfa, known_bits(self.nfa.atoms)) is None  # those do it faster
        while len(firsts):
            count = int(np.searchsorted(firsts, firsts[0] + _PORTION, "right")) - 1 or 1
            own, firsts = firsts[:count], firsts[count:]
            start, end = int(own[0]), int(firsts[0]) if len(firsts) else size
            words = [word[start:end].astype(np.int64) for word in self.placed.words]
            bits = np.column_stack(words) if len(words) > 1 else words[0] if words else None
            begins = own - start
            needed = np.zeros(count + 1, bool)
            needed[:-1] = needed_stretches(rules, bits, begins, None) if skips else True

            def key_of(number: int, own: Ints = own) -> KeyText | None:
                first = int(own[number])
                row = pa.table({ROW: integers(self._rows(first, first + 1))})
                return KeyText(layout, row, 0) if layout.key_columns else None

            times = np.require(self._times(start, end), requirements=["C", "A"])
            events = Events(times, None, start - base, bits)
            yield Stretches(events, np.r_[begins, len(times), len(times)], needed, key_of)

    def _rows(self, begin: int, end: int) -> Ints:
        """Return the rows of some events in the order of matching."""
        rows: Any = (
            np.arange(begin, end, dtype=np.int32) if self.order is None else self.order[begin:end]
        )
        return rows  # type: ignore[no-any-return]

    def _times(self, begin: int, end: int) -> Ints:
        """Return the times of some events in the order of matching."""
        if self.placed.times is None:
            return self.times.ms_of(self.times.some(begin, end - begin))
        return self.placed.ms(slice(begin, end))

    def times_at(self, places: Ints) -> Ints:
        """Return the times of events by their places in the order of matching."""
        return self.times.ms(places) if self.placed.times is None else self.placed.ms(places)

    def _cut(self, end: int) -> int:
        """Return the next place at which the time changes, or another key begins."""
        size = self.placed.size
        while end < size:
            until = min(end + _TIES, size)
            times = self._times(end - 1, until)
            places = [*(np.flatnonzero(times[1:] != times[:-1])[:1] + end).tolist()]
            at = int(np.searchsorted(self.firsts, end))
            if at < len(self.firsts) and self.firsts[at] <= until:
                places.append(int(self.firsts[at]))
            if places:
                return int(min(places))
            end = until
        return int(size)


@attrs.frozen(eq=False)
class Share:
    """Some keys of a table, which one thread matches."""

    job: ColumnMatch  # The pattern on the table
    matcher: PatternMatcher  # A matcher of its own
    begin: int  # Where its events begin and end, in the order of matching
    end: int

    def run(self) -> tuple[list[Found], list[Found], int]:
        """Return matches and timeouts, by rows of the table, and how many partials were dropped."""
        job, dropped = self.job, 0
        parts: tuple[list[Found], list[Found]] = [], []
        own = self.matcher
        are_kept = isinstance(own, KernelMatcher) and own.keep_rows(job.order, self.begin)
        for found, _ in self.found():
            dropped += found.dropped
            if len(found):
                known = found if are_kept else self._kept(found)
                count = int(np.count_nonzero(known.kinds))
                for part, *ends in zip(parts, (0, count), (count, len(known)), strict=True):
                    if ends[0] < ends[1]:
                        part.append(known.between(*ends))
        return *parts, dropped

    def _kept(self, found: Found) -> Found:
        """Return matches before timeouts, by rows of the table."""
        ordered = found.taken(np.argsort(found.kinds != 1, kind="stable"))
        places: Any = ordered.handles + self.begin
        rows: Any = places.astype(np.int32) if self.job.order is None else self.job.order[places]
        has_few = len(found.stages) < 128
        numbers = ordered.stage_of.astype(np.int8) if has_few else ordered.stage_of
        return attrs.evolve(ordered, handles=rows, stage_of=numbers)

    def found(self) -> Iterator[tuple[Found, ChunkMatching | None]]:
        """Yield what is found, by places from `begin` on, and what has the events, if needed."""
        job = self.job
        reader, rules = RecordReader(job.table), CepOperator(job.nfa)
        if isinstance(self.matcher, KernelMatcher) and job.has_whole_keys(self.matcher):
            for stretches in job.stretches(self.begin, self.end, rules):
                for found in self.matcher.run(stretches, True, None):
                    yield found, None
            return
        matching = ChunkMatching(job.layout, reader, rules, self.matcher, job.ties)
        for found in matching.found(job.chunks(self.begin, self.end)):
            yield found, matching


@attrs.frozen(eq=False, kw_only=True)
class _TableLayout(Layout):
    """The columns of chunks of a table; a key is a number, and known by the row of an event."""

    value_of: Callable[[int], Any]

    def key_text(self, table: pa.Table, row: int) -> str:
        """Return a key for an error message."""
        return repr(self.value_of(table.column(ROW)[row].as_py()))


def as_values(field: FieldSource, rows: Ints) -> pa.Array | pa.ChunkedArray:
    """Return the values of a field in some rows, in the types that Spark would give."""
    if not isinstance(field, NumberColumn):
        return field.take(integers(rows))
    return as_array(field.taken(rows))


# --- conditions


class _Conditions:
    """The SQL conditions of a pattern on a table."""

    def __init__(
        self, pattern: Pattern, table: pa.Table, only: Container[str] | None = None
    ) -> None:
        self._only = only
        found: list[ExpressionCondition] = []

        def noted(condition: ExpressionCondition) -> IterativeCondition:
            found.append(condition)
            return condition

        evaluated_by(pattern, noted)
        if not all(isinstance(condition.expression, str) for condition in found):
            raise OnlyByRow("a Column can only be evaluated by Spark")
        self.columns = SqlColumns(table, [condition.text for condition in found])
        self.programs: dict[str, Program] = {}

    def evaluated(self, condition: ExpressionCondition) -> IterativeCondition:
        """Return a condition as it is if it has a program, otherwise as a function."""
        text = condition.text
        program = self.columns.program(text, is_condition=True)
        if program is not None and (self._only is None or text in self._only):
            self.programs[text] = program
            return condition
        try:
            return Evaluated(text, event_condition(text, self.columns.types))
        except CepError as cause:
            raise OnlyByRow from cause


# --- SQL over stages


@attrs.frozen(eq=False)
class StageSql:
    """The SQL over stages of a pattern, for tables of one schema."""

    expressions: CompiledExpressions
    asked: Mapping[str, str]  # What is asked of events for a part, if that is other SQL
    fails: bool = True  # Whether what cannot be computed is an error; else it is NULL

    @classmethod
    def of(cls, pattern: Pattern, nfa: NFA, table: pa.Table) -> tuple[StageSql, RowSql] | None:
        """Return it, and what computes the fields of a table; None if there is none."""
        named = over_stages(nfa)
        if not named:
            return None
        parts = dict.fromkeys(sql for _, expression in named for sql in expression.event_parts())
        asked = guarded_parts(NFACompiler.compile(pattern).atoms)
        computed = RowSql(table, asked.values())
        known = {sql: computed.kind(asked[sql]) for sql in parts}
        kinds = {sql: kind for sql, kind in known.items() if kind is not None}
        return cls(compiled(named, kinds, ansi=True), asked), computed

    def fields(self, table: pa.Table) -> Sequence[FieldSource]:
        """Return the fields that programs read."""
        return self.fields_of(RowSql(table, self.asked.values(), fails=self.fails))

    def fields_of(self, computed: RowSql) -> Sequence[FieldSource]:
        """Return the fields that programs read, by what computes them."""
        fields = self.expressions.fields
        return [computed.field(self.asked.get(own.sql, own.sql), own.kind) for own in fields]


def expressions_on(
    pattern: Pattern, nfa: NFA, table: pa.Table
) -> tuple[CompiledExpressions | None, Sequence[FieldSource]]:
    """Return the programs of SQL over stages, and the fields that they read."""
    found = StageSql.of(pattern, nfa, table)
    if found is None:
        return None, ()
    sql, computed = found
    return sql.expressions, sql.fields_of(computed)
