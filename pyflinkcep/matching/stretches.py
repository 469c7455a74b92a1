# SPDX-License-Identifier: Apache-2.0
"""Sorted events, split by key; keys that need no work; the order of ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa.analysis import KeyNeeds
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.matching.columns import Flags, Ints, plain_numbers
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import KeyText, Layout, as_integers
from pyflinkcep.matching.order import Order, OrderColumns

_TABLE = 1 << 16
_BEGINS = 1 << 62
_HEAD = 256  # events


@attrs.frozen(eq=False)
class Events:
    """Events in their final order."""

    times: Ints  # The events' times
    handles: Ints | None  # Their handles; None for `base` and the following numbers
    base: int  # The handle of the first event
    # The bits of the conditions known beforehand that hold for each event: a number, or a row of
    # numbers with 63 bits each.
    bits: Ints | None


@attrs.frozen(eq=False)
class Stretches:
    """Sorted events, split by key."""

    events: Events  # The events
    bounds: Ints  # Where each stretch begins, and where the last one ends
    needed: Flags  # Which stretches may begin a match, and if only matches are wanted, have one
    key_of: Callable[[int], Any]  # Returns the key of a stretch by its number, for errors
    # The length of the window of each stretch; None if they have the pattern's. For kernels alone.
    windows: Ints | None = None

    @classmethod
    def of(
        cls,
        table: pa.Table,
        times: Ints,
        base: int,
        layout: Layout,
        rules: CepOperator | None,
        order: Order | None,
        store: EventStore,
        needs: KeyNeeds | None = None,
    ) -> Stretches:
        """Split events into stretches, in their final order."""
        firsts = np.r_[0, layout.key_changes(table)][: table.num_rows]

        def key_of(number: int) -> KeyText | None:
            return KeyText(layout, table, int(firsts[number])) if layout.key_columns else None

        events = Events(times, None, base, layout.bits(table))
        needed = needed_stretches(rules, events.bits, firsts, needs)
        if order is not None:
            events = _in_final_order(order, events, firsts, store, key_of)
        return cls(events, np.r_[firsts, len(times)], needed, key_of)


def needed_stretches(
    rules: CepOperator | None, bits: Ints | None, firsts: Ints, needs: KeyNeeds | None
) -> Flags:
    """Return for each stretch whether it may begin a match, and if that is needed, have one."""
    if rules is None or bits is None or not len(firsts):
        return np.ones(len(firsts), bool)
    use, wanted = _use_of(rules, needs), _BEGINS | (0 if needs is None else needs.every)
    if 4 * _HEAD * len(firsts) < len(bits):
        # Of long stretches the first events most often tell: no need to look at all.
        places = firsts[:, None] + np.arange(_HEAD)
        is_own = places < np.append(firsts[1:], len(bits))[:, None]
        heads = bits[np.minimum(places, len(bits) - 1).reshape(-1)]
        own = np.where(is_own, _uses(heads, use).reshape(is_own.shape), 0)
        if (np.bitwise_or.reduce(own, axis=1) & wanted == wanted).all():
            return np.ones(len(firsts), bool)
    of_key = np.bitwise_or.reduceat(_uses(bits, use), firsts)
    needed: Flags = of_key & _BEGINS != 0
    if needs is not None:
        # The last key may go on in the next chunk.
        needed[:-1] &= of_key[:-1] & needs.every == needs.every
    return needed


def _use_of(rules: CepOperator, needs: KeyNeeds | None) -> Callable[[int], int]:
    """Return what says which stages may take an event, and whether it may begin a match."""
    known = known_bits(rules.nfa.atoms)

    def use(kind: int) -> int:
        begins = _BEGINS if rules.may_begin(kind, known) else 0
        return begins if needs is None else begins | needs.taken(kind)

    return use


_SAMPLE = 1 << 12  # events
_MOST_USES = 8
_MOST_ROWS = (1 << 31) - 1


def rows_of_needed_keys(
    table: pa.Table, layout: Layout, rules: CepOperator, needs: KeyNeeds | None
) -> Ints | None:
    """
    Return the rows, of all events of a partition, of keys that may have a match; None for all.

    A few keys more may be among them. It is not looked for them where keys have many events, so
    that hardly one can be left out.
    """
    # A key needs an event that may begin a match, and one for each stage that every match has. Of
    # many keys with few events each most lack one of these, and then need not be sorted.
    module, size = compiled_module(), table.num_rows
    if module is None or not layout.key_signature or not _SAMPLE <= size <= _MOST_ROWS:
        return None
    column = table.column(layout.key_signature[0])
    column = column.fill_null(0) if column.null_count else column
    if 2 * len(np.unique(plain_numbers(column.slice(0, _SAMPLE)))) < _SAMPLE:
        return None
    bits = layout.bits(table)
    kinds = None if bits is None else _few_kinds(bits)
    if kinds is None:
        return None
    wanted = _BEGINS | (0 if needs is None else needs.every)
    asked = [1 << place for place in range(wanted.bit_length()) if wanted >> place & 1]
    asked = asked[-_MOST_USES:]  # with the beginning, the highest; a part of them will do
    use, uses = _use_of(rules, needs), bytearray(kinds[-1] + 1)
    for kind in kinds:
        uses[kind] = sum(1 << place for place, bit in enumerate(asked) if use(kind) & bit)
    numbers = plain_numbers(column).astype(np.int64, copy=False)
    found = module.rows_with(numbers, bits, bytes(uses), (1 << len(asked)) - 1)
    rows: Ints = np.frombuffer(found, np.int32).astype(np.int64)
    return rows if 2 * len(rows) < size else None


def _few_kinds(bits: Ints) -> list[int] | None:
    """Return the different bits of events, ascending; None if a table of them would be large."""
    if bits.ndim > 1 or int(bits.min()) < 0 or int(bits.max()) >= _TABLE:
        return None
    kinds: list[int] = np.flatnonzero(np.bincount(bits)).tolist()
    return kinds


def _uses(bits: Ints, use: Callable[[int], int]) -> Ints:
    """Return for each event what `use` says of its conditions."""
    few = _few_kinds(bits)
    if few is not None:  # by far the most frequent case: a table instead of a sort
        uses = np.zeros(few[-1] + 1, np.int64)
        for kind in few:
            uses[kind] = use(kind)
        return uses[bits]
    kinds, inverse = np.unique(bits, axis=0, return_inverse=True)
    found = np.asarray([use(kind) for kind in as_integers(kinds)])
    own: Ints = found[inverse.reshape(-1)]  # some releases of numpy add a second axis
    return own


def _in_final_order(
    order: Order,
    events: Events,
    firsts: np.ndarray[Any, Any],
    store: EventStore,
    key_of: Callable[[int], Any],
) -> Events:
    """Sort events of equal key and time by the comparator."""
    if isinstance(order, OrderColumns):
        positions = _by_columns(order, events, firsts, store)
    else:
        positions = np.arange(len(events.times))
        for number, (start, end) in enumerate(pairwise([*firsts.tolist(), len(positions)])):
            times = events.times[start:end]
            if (times[1:] == times[:-1]).any():
                handles = range(events.base + start, events.base + end)
                chosen = _tie_order(order, times.tolist(), handles, store, key_of(number))
                positions[start:end] = start + np.asarray(chosen)
    bits = None if events.bits is None else events.bits[positions]
    return Events(events.times, events.base + positions, events.base, bits)


def _by_columns(order: OrderColumns, events: Events, firsts: Ints, store: EventStore) -> Ints:
    """Return the positions of events in their final order, ties by columns."""
    size = len(events.times)
    positions = np.arange(size)
    begins = np.ones(size, bool)
    begins[1:] = events.times[1:] != events.times[:-1]
    begins[firsts] = True
    groups = np.cumsum(begins)
    tied = np.flatnonzero(np.bincount(groups)[groups] > 1)
    if len(tied):
        table = store.take(events.base + tied, order.names)
        positions[tied] = tied[order.ranked(groups[tied], table)]
    return positions


def _tie_order(
    order: Callable[[Any], Any],
    times: Sequence[int],
    handles: Sequence[int],
    store: EventStore,
    key: Any,
) -> list[int]:
    """Return the positions of events in their final order; the comparator sees only ties."""
    bounds = [0, *(np.flatnonzero(np.diff(times)) + 1).tolist(), len(times)]
    ties = [(start, end) for start, end in pairwise(bounds) if end - start > 1]
    tied = [handle for start, end in ties for handle in handles[start:end]]
    rows = iter(store.rows(tied) if tied else ())
    positions = list(range(len(handles)))
    for start, end in ties:
        ranked = _rank(order, list(islice(rows, end - start)), times[start], key)
        positions[start:end] = [start + i for i in ranked]
    return positions


def _rank(
    order: Callable[[Any], Any], rows: Sequence[Any], timestamp_ms: int, key: Any
) -> list[int]:
    try:
        ranks = [order(row) for row in rows]
        return sorted(range(len(ranks)), key=ranks.__getitem__)
    except Exception as cause:
        raise CepRuntimeError(
            f"the comparator failed. {type(cause).__name__}: {cause}",
            "make it order any two events of a key",
            timestamp_ms=timestamp_ms,
        ).at_key(key) from cause
