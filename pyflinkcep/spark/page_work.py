# SPDX-License-Identifier: Apache-2.0
"""The work on one page of a bucket: each key that has due events, or whose time has come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pyflinkcep.operator import KeyState
from pyflinkcep.operator.snapshot import StateReader, StateWriter, stage_names
from pyflinkcep.spark.beginnings import stretches_that_begin
from pyflinkcep.spark.event_store import EventStore
from pyflinkcep.spark.layout import KeyText
from pyflinkcep.spark.pages import NO_DEADLINE, Page
from pyflinkcep.spark.results import Results
from pyflinkcep.spark.stream_task import StreamTask
from pyflinkcep.spark.ties import tie_order

__all__ = ["PageWork"]


class PageWork:
    """
    Runs the automata of a page's keys.

    Parameters
    ----------
    task : StreamTask
        What is to be done.
    store : EventStore
        The events: those that pages hold, then the due ones.
    results : Results
        Receives matches and timeouts.
    due : pyarrow.Table
        The due events, sorted by page, key, time and arrival.
    times : array of int, epoch milliseconds
        Their times.
    watermark : int, epoch milliseconds
        The watermark; in processing time the clock.
    """

    def __init__(
        self,
        task: StreamTask,
        store: EventStore,
        results: Results,
        due: pa.Table,
        times: np.ndarray[Any, Any],
        watermark: int,
    ) -> None:
        self._task = task
        self._store = store
        self._results = results
        self._due = due
        self._times = times
        self._watermark = watermark
        self._operator = task.operator(store)
        bits = task.layout.bits(due)
        self._given = bits
        self._bits = None if bits is None else bits.tolist()
        changes = np.zeros(due.num_rows + 1, bool)
        changes[task.layout.key_changes(due)] = True
        self._changes = changes
        self._states = list(task.nfa.tables)
        self._stages = stage_names(task.nfa)

    def run(self, page: Page, first_held: int, start: int, end: int, first_due: int) -> Page | None:
        """
        Process a page.

        Parameters
        ----------
        page : Page
            The page.
        first_held : int
            The handle of the page's first event.
        start, end : int
            Where the page's due events are.
        first_due : int
            The handle of the first of all due events.

        Returns
        -------
        Page or None
            The page as it is now, None when nothing changed.
        """
        known = self._positions(page)
        lengths = np.r_[0, np.cumsum(page.lengths)]
        counts = np.r_[0, np.cumsum(page.counts)]
        handles = range(first_held, first_held + int(counts[-1]))
        reader = StateReader(self._task.nfa, (), handles, self._states, self._stages)
        writer = _PageWriter(self._task)
        untouched = np.ones(len(page.lengths), bool)

        def take_out(position: int) -> KeyState:
            untouched[position] = False
            numbers = page.numbers[lengths[position] : lengths[position + 1]].tolist()
            reader.seek(numbers, int(counts[position]))
            return reader.read()

        operator = self._operator
        for key, first, last, begins in self._runs(start, end):
            position = known.get(key)
            if position is None and not begins:
                continue
            state = operator.new_key() if position is None else take_out(position)
            self._process(state, first, last, first_due)
            if not operator.is_idle(state):
                writer.add(state, due_row=first)
        waiting = untouched & (page.deadlines <= self._watermark)
        waiting &= page.deadlines != NO_DEADLINE
        for position in np.flatnonzero(waiting).tolist():
            state = take_out(position)
            text = KeyText(self._task.layout, page.events, int(counts[position]))
            operator.advance_time(text, state, self._watermark, self._results)
            if not operator.is_idle(state):
                writer.add(state, page_row=position)
        if untouched.all() and not writer.deadlines:
            return None
        return writer.page(page, untouched, self._due, self._store)

    def _positions(self, page: Page) -> dict[tuple[Any, ...], int]:
        columns = [column.to_pylist() for column in page.keys.columns]
        return {key: row for row, key in enumerate(zip(*columns, strict=True))}

    def _runs(self, start: int, end: int) -> Iterator[tuple[tuple[Any, ...], int, int, bool]]:
        """Give each key's stretch of due events, and whether it may begin a match."""
        if start == end:
            return
        inner = np.flatnonzero(self._changes[start + 1 : end]) + start + 1
        firsts = np.r_[start, inner]
        lasts = np.r_[inner, end].tolist()
        keys = self._due.select(self._task.key_schema.names).take(pa.array(firsts))
        columns = [column.to_pylist() for column in keys.columns]
        bits = None if self._given is None else self._given[start:end]
        begins = stretches_that_begin(
            self._operator, bits, self._task.known, firsts - start, end - start
        )
        rows = zip(*columns, strict=True)
        yield from zip(rows, firsts.tolist(), lasts, begins.tolist(), strict=True)

    def _process(self, state: KeyState, first: int, last: int, first_due: int) -> None:
        task = self._task
        times = self._times[first:last].tolist()
        handles = list(range(first_due + first, first_due + last))
        bits = None if self._bits is None else self._bits[first:last]
        key = KeyText(task.layout, self._due, first) if task.layout.key_columns else None
        if task.order is not None:
            chosen = tie_order(task.order, times, handles, self._store, key)
            handles = [handles[i] for i in chosen]
            bits = None if bits is None else [bits[i] for i in chosen]
        now = self._watermark if task.processing_time else None
        self._operator.process_events(
            key, state, times, handles, self._results, task.known, bits, now
        )
        self._operator.advance_time(key, state, self._watermark, self._results)


class _PageWriter:
    """Collects the keys of a page that something happened to."""

    def __init__(self, task: StreamTask) -> None:
        self._task = task
        self._writer = StateWriter(task.nfa)
        self.deadlines: list[int] = []
        self._lengths: list[int] = []
        self._counts: list[int] = []
        self._due_rows: list[int] = []
        self._page_rows: list[int] = []

    def add(self, state: KeyState, due_row: int | None = None, page_row: int | None = None) -> None:
        """Add a key, whose columns are in a row of the due events or of the page."""
        writer = self._writer
        numbers, events = len(writer.numbers), len(writer.events)
        writer.first_event = events
        writer.write(state)
        self.deadlines.append(min(state.timers, default=NO_DEADLINE))
        self._lengths.append(len(writer.numbers) - numbers)
        self._counts.append(len(writer.events) - events)
        if due_row is not None:
            self._due_rows.append(due_row)
        elif page_row is not None:
            self._page_rows.append(page_row)

    def page(
        self, old: Page, untouched: np.ndarray[Any, Any], due: pa.Table, store: EventStore
    ) -> Page:
        """Give the page: keys that nothing happened to, then those that were added."""
        kept = old.keep(untouched)
        if not self.deadlines:
            return kept
        columns = self._task.key_schema.names
        changed = Page(
            pa.concat_tables(
                [
                    due.select(columns).take(pa.array(self._due_rows, pa.int64())),
                    old.keys.take(pa.array(self._page_rows, pa.int64())),
                ]
            ),
            np.asarray(self.deadlines, np.int64),
            np.asarray(self._lengths, np.int64),
            np.asarray(self._counts, np.int64),
            np.asarray(self._writer.numbers, np.int64),
            store.take(self._writer.events),
        )
        return Page.concat([kept, changed])
