# SPDX-License-Identifier: Apache-2.0
"""The layout of the Arrow batches that a worker receives, and how it reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA, StateTransitionAction, StateType
from pyflinkcep.engines.flink.nfa.atoms import WORD, Atom, in_word, words
from pyflinkcep.errors import CepRuntimeError, InputError
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.columns import BITS, RANK, VALUE, WHOLE, Flags, Ints, plain_numbers
from pyflinkcep.matching.keys import changes
from pyflinkcep.pattern import GroupPattern, Pattern


def bit_name(word: int) -> str:
    """Return the name of the column with a word of bits."""
    return f"{BITS}{word or ''}"


def bit_names(atoms: Iterable[Atom]) -> tuple[str, ...]:
    """Return the names of the columns with the bits of conditions, the lowest bits first."""
    most = max((atom.bit.bit_length() for atom in atoms), default=0)
    return tuple(bit_name(word) for word in range(-(-most // WORD)))


def as_integers(bits: Ints) -> list[int]:
    """Return the bits of each event as one integer, however many words they have."""
    if bits.ndim == 1:
        whole: list[int] = bits.tolist()
        return whole
    return [sum(word << (WORD * at) for at, word in enumerate(row)) for row in bits.tolist()]


def holding(bits: Ints | None, atom: Atom) -> Flags:
    """Return for each event whether a condition that Spark evaluated holds."""
    assert bits is not None
    word, bit = in_word(atom.bit)
    held: Flags = np.not_equal((bits if bits.ndim == 1 else bits[:, word]) & bit, 0)
    return held


def is_among(bits: Ints, kinds: Collection[int]) -> Flags:
    """Return for each event whether its bits are one of some integers."""
    if bits.ndim == 1:
        return np.isin(bits, np.asarray(sorted(kinds), np.int64))
    found = np.zeros(len(bits), bool)
    for kind in kinds:
        found |= (bits == np.asarray(words(kind, bits.shape[1]))).all(axis=1)
    return found


def taking_stages(pattern: Pattern, nfa: NFA) -> list[str]:
    """Return the names of the stages that can take events, in pattern order."""
    taking = {
        table.state.stage
        for table in nfa.tables.values()
        for t in table.state.transitions
        if t.action is StateTransitionAction.TAKE and table.state.kind is not StateType.STOP
    }
    return [name for name in dict.fromkeys(_stage_names(pattern)) if name in taking]


def _stage_names(pattern: Pattern) -> Iterator[str]:
    """Return the names of stages in matches, including those inside groups."""
    for stage in pattern.stages():
        if isinstance(stage, GroupPattern):
            for part in stage.getParts():
                yield from _stage_names(part)
        else:
            yield stage.getName()


@attrs.frozen(eq=False)
class Layout:
    """The columns of a worker's input, by name; travels to the workers."""

    pattern: str  # The pattern in one line, for errors
    schema: Any  # The events' own columns, for what makes Rows of them
    # The columns kept from an event: its own, computed keys, and fields of match expressions.
    payload: tuple[str, ...]
    # The key's names, its columns, and the columns that identify keys.
    key_names: tuple[str, ...]
    key_columns: tuple[str, ...]
    key_signature: tuple[str, ...]
    time_column: str | None  # The events' times
    time_unit: int | None  # Units of the time column per millisecond; None for bigint milliseconds
    # The answers of the conditions that Spark evaluated; empty without such conditions.
    bit_columns: tuple[str, ...]
    # The match expressions; the columns of their fields are part of the payload.
    expressions: CompiledExpressions | None = None
    # Whether events of one key and time have an order: that of their source, or the user's.
    has_order: bool = True
    nested: tuple[str, ...] = ()  # The columns that arrive in the column :data:`WHOLE`

    @property
    def late(self) -> tuple[str, ...]:
        """The columns that only an event in a match needs."""
        needed = {*self.key_columns, *self.key_signature, self.time_column, *self.nested}
        own = (name for name in self.payload if not name.startswith(VALUE))
        plain = tuple(name for name in own if name not in needed)
        return (*plain, WHOLE) if self.nested else plain

    def times_ms(self, table: pa.Table) -> Ints:
        """Return the events' times in epoch milliseconds; see :meth:`times`."""
        times = self.times(table)
        return times if self.time_unit is None else np.floor_divide(times, self.time_unit)

    def times(self, table: pa.Table) -> Ints:
        """Return the events' times in full precision."""
        assert self.time_column is not None
        column = table.column(self.time_column)
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy())[0])
            raise InputError(
                f"pattern {self.pattern}: null event time in column {self.time_column!r} "
                f"at key {self.key_text(table, row)}",
                "filter such events out before, or set their time; for a Pattern, "
                'CEP.pattern(..., onNullKey="drop") drops them',
            )
        return plain_numbers(column.cast(pa.int64()))

    def check_order(self, table: pa.Table) -> None:
        """Refuse events of one key and time, in a sorted table, if they have no order."""
        if self.has_order or table.num_rows < 2:
            return
        times = self.times(table)
        alike = times[1:] == times[:-1]
        if self.key_signature:
            alike &= ~changes([table.column(name) for name in self.key_signature])
        if alike.any():
            row = int(np.flatnonzero(alike)[0])
            time = "" if self.time_column == RANK else self.time_text(table, row)
            raise InputError(
                f"pattern {self.pattern}: two events at one time, and this engine reads the pieces "
                f"of a file in any order, at key {self.key_text(table, row)}{time}",
                "name columns that order such events, with orderBy= in CEP.pattern or more columns "
                "in ORDER BY; or read with one core: pyflinkcep.local.session('sail', cores=1)",
            )

    def bits(self, table: pa.Table) -> Ints | None:
        """Return the bits of Spark's conditions: a number, or a row of numbers, for each event."""
        columns = [plain_numbers(table.column(name)) for name in self.bit_columns]
        if len(columns) > 1:
            return np.column_stack(columns)
        return columns[0] if columns else None

    def key_changes(self, table: pa.Table) -> Ints:
        """Return the positions after the first at which another key begins, in a sorted table."""
        return np.flatnonzero(changes([table.column(name) for name in self.key_signature])) + 1

    def key_numbers(self, table: pa.Table) -> Ints:
        """Return the number of each event's key, in the order of keys of a sorted table."""
        begins = np.zeros(table.num_rows, np.int64)
        begins[self.key_changes(table)] = 1
        return np.cumsum(begins)

    def is_other_key(self, before: pa.Table, after: pa.Table) -> bool:
        """Whether a table begins with another key than the one before it ends with."""
        both = pa.concat_tables([before.slice(before.num_rows - 1), after.slice(0, 1)])
        return len(self.key_changes(both)) > 0

    def key_text(self, table: pa.Table, row: int) -> str:
        """Return a key for an error message."""
        keys = dict(zip(self.key_names, self.key_columns, strict=True))
        return repr(values) if (values := key_values(keys, table, row)) else "(none)"

    def time_text(self, table: pa.Table, row: int) -> str:
        """Return an event's time for an error message; empty if it has none."""
        if self.time_column is None or table.column(self.time_column).null_count:
            return ""
        return f", event time {int(self.times_ms(table)[row])} ms"


def key_values(keys: Mapping[str, str], table: pa.Table, row: int) -> dict[str, Any] | None:
    """Return an event's key from its columns, `keys` by name; None if all events have one key."""
    return {name: table.column(column)[row].as_py() for name, column in keys.items()} or None


@contextmanager
def naming_key(key: Callable[[], Any]) -> Iterator[None]:
    """Name the key that a function returns in errors."""
    try:
        yield
    except CepRuntimeError as error:
        raise error.at_key(key()) from error.__cause__


class KeyText:
    """A key for error messages, read from an event only when needed."""

    __slots__ = ("_events", "_layout", "_row")

    def __init__(self, layout: Layout, events: pa.Table, row: int) -> None:
        self._layout = layout
        self._events = events
        self._row = row

    def __repr__(self) -> str:
        return self._layout.key_text(self._events, self._row)
