# SPDX-License-Identifier: Apache-2.0
"""The compiled module as Python sees it: a class for each type of ``src/``."""

from collections.abc import Callable
from typing import Any

import numpy as np

Buffer = np.ndarray[Any, Any] | bytes | bytearray | memoryview
"""A contiguous array; its items are int64 where nothing else is said."""

Program = tuple[tuple[int, Any], ...]
"""Instructions, as ``kernel/module.py`` makes them; empty for no condition."""

SlotSpec = tuple[int, int, int, int, int, bool]
"""Function, stage, field, source and offset of a slot, and whether it is a float."""

Fields = tuple[tuple[Buffer | list[str | None], Buffer | None, bool], ...]
"""By field: its values as int64 or float64, or texts; which of them are not NULL; whether they are
floats."""

List = tuple[Buffer, Buffer, Buffer | None]
"""The candidates of an element: positions, times and keys; int64."""

Match = tuple[bytes, bytes, bytes]
"""Listed matches: handles (int64), where each match ends (int64), components (int32)."""

operations: int
"""The fingerprint of ``base/opcodes.h``."""

sources: str
"""The fingerprint of all sources; see ``kernel/sources.py``."""

class Key:
    """The state of one key. Mirror: ``KeyState`` in ``engines/flink/operator/cep_operator.py``."""

    partial_count: int
    node_count: int
    is_new_start: bool
    def live_handles(self) -> bytes:
        """Return the handles of the events held."""

class Kernel:
    """
    A pattern, ready to run on events known by handle; see ``module.c`` and ``runs.c``.

    Attributes
    ----------
    helper : KernelHelper
        Evaluates what needs Python.
    failed : int
        The stretch, or the item of a page, that the last error came from.

    Notes
    -----
    If memory runs out, the current key is cleared and every method raises
    :class:`~pyflinkcep.errors.OutOfMemoryError`; other keys can go on.
    """

    helper: Any
    failed: int

    def __init__(
        self,
        helper: Any,
        states: tuple[tuple[int, int, bool], ...],
        atoms: tuple[tuple[Any, ...], ...],
        slots: tuple[SlotSpec, ...],
        stage_names: tuple[str, ...],
        **settings: Any,
    ) -> None: ...
    def set_events(
        self, view: Callable[[int], Any] | None, base: int, rows: int, fields: Fields
    ) -> None:
        """
        Set the events that handles refer to from now on.

        Parameters
        ----------
        view : callable
            Returns the event of a handle as the user's conditions see it.
        base, rows : int
            `fields` describes the `rows` events whose handles begin at `base`.
        fields : tuple of (array, array of bool or None, bool)
            For each field of match expressions: its values (int64 or float64), which of them
            are not NULL, whether they are floats; for texts a list of str and None in their place.
        """

    def new_key(self) -> Key:
        """Return a new key."""

    def run(
        self,
        key: Key | None,
        times: Buffer,
        handles: Buffer | None,
        base: int,
        bits: Buffer | None,
        bounds: Buffer,
        needed: Buffer,
        stretch: int,
        row: int,
        most_events: int,
        windows: Buffer | None = None,
    ) -> tuple[int, int, Key | None]:
        """
        Match stretches of events, each of a different key.

        All arrays except `needed` are int64.

        Parameters
        ----------
        key : Key or None
            The key that the first stretch continues, if any.
        times : array, epoch milliseconds
            The events' times.
        handles : array or None, base : int
            The events' handles; None for `base` and the numbers after it.
        bits : array or None
            For each event the bits of the conditions known beforehand that hold: one number, or
            a row of numbers with 63 bits each, lowest first.
        bounds : array
            Where stretches begin, and where the last one ends.
        needed : array of bool
            Which stretches may begin a match; the others are skipped.
        stretch, row : int
            Where to begin.
        most_events : int
            Return once the results have this many events, or a few more.
        windows : array, optional
            The length of each stretch's window, in place of the pattern's if it has one.

        Returns
        -------
        tuple of (int, int, Key or None)
            The stretch and row to continue at, and the current key there (at the end, the last).
        """

    def run_page(
        self,
        times: Buffer,
        handles: Buffer | None,
        base: int,
        bits: Buffer | None,
        positions: Buffer,
        starts: Buffer,
        ends: Buffer,
        numbers: Buffer,
        number_ends: Buffer,
        event_ends: Buffer,
        first_held: int,
        watermark: int,
    ) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]:
        """
        Match the keys of a page of state, and advance time to a watermark.

        Parameters
        ----------
        times, handles, base, bits
            As for :meth:`run`.
        positions : array
            For each item the position of its key in the page; negative for a new key.
        starts, ends : array
            For each item where its events are.
        numbers, number_ends, event_ends : array
            The keys' states, and where the numbers and events of each end; both ends begin with 0.
        first_held : int
            The handle of the page's first event.
        watermark : int, epoch milliseconds
            The watermark; in processing time the clock.

        Returns
        -------
        tuple of bytes
            Arrays of int64 about the items that continue: their positions, deadlines, counts of
            numbers and of events, then all their numbers and handles.

        Raises
        ------
        StateFormatError
            If the numbers are damaged.
        """

    def count(
        self,
        live: tuple[tuple[int, ...], ...],
        times: Buffer,
        bits: Buffer | None,
        bounds: Buffer,
        held: int,
        before: int | None,
        watermark: int,
        weights: Buffer | None,
        stage: int,
        seeks_greatest: bool,
    ) -> tuple[tuple[bytes, list[int], list[int] | None], int | None, int | None]:
        """
        Count the matches of keys by event, without listing them.

        Handles are positions in `times`. For the arrays of events and the results see
        :class:`~pyflinkcep.engines.compressed.patterns.KeyedEvents` and ``Counted``.

        Parameters
        ----------
        live : tuple of tuple of int
            By state, the slots that distinguish partial matches.
        weights : array of uint64 below 2**63, or None
            The weight of each event that is taken for a stage.
        stage : int
            The index of that stage.
        seeks_greatest : bool
            Whether to find the greatest weight instead of the sum.
        """

    def count_reached(self) -> None:
        """Count the stages that are reached, where no partial match branches; give no matches."""

    def reached(self) -> list[tuple[int, int, int]]:
        """Return stages, and how many partial matches and keys were counted for each."""

    def advance(self, key: Key, timestamp: int) -> None:
        """Advance time for a key."""

    @property
    def needs_python(self) -> bool:
        """Whether :meth:`run` keeps Python's lock: for conditions in Python, or texts."""

    def write(self, key: Key) -> tuple[bytes, bytes]:
        """Return a key's state as numbers, and the handles of its events."""

    def read(self, numbers: Buffer, first_handle: int, handle_count: int) -> Key:
        """Restore a key from its state; raise StateFormatError if the numbers are damaged."""

    def take_found(self) -> tuple[bytes, bytes, bytes, bytes, bytes, int]:
        """Take the results: whether each is a match, its time, the end of its events; the events'
        stages and handles; the number of partial matches dropped.
        """

    def take_rows(
        self, rows: Buffer | None, begin: int
    ) -> tuple[bytes, bytes, bytes, bytes, bytes, int]:
        """Take matches and then timeouts in that form, but with stages in 8 bits, and rows in 32 in
        place of handles: those at the handles plus `begin`, by default these themselves.
        """

    def take_ended(self) -> tuple[int, int, int, int, int]:
        """Take how many partial matches ended: by their windows, by the skip strategy, which ends
        matches held back too, and because no further event could be taken.
        """

    def count_states(self, numbers: Buffer, lengths: Buffer) -> tuple[int, ...]:
        """Return what ``count_states`` in ``engines/flink/operator/state_format.py`` does, without
        the names of stages.

        Parameters
        ----------
        numbers : array
            The concatenated states of keys.
        lengths : array
            How many numbers belong to each key.
        """

class _Query:
    """A SEQ query, as ``query_spec`` in ``engines/sequences/evaluation.py`` has it."""

    def __init__(
        self,
        components: tuple[Any, ...],
        negatives: tuple[Any, ...],
        partition: tuple[Program, Program],
        slots: tuple[SlotSpec, ...],
        window: int,
    ) -> None: ...
    def set_events(self, rows: int, fields: Fields) -> None:
        """Set the events that handles refer to."""

class Counter(_Query):
    """Counts the matches of a partition."""

    def set_rising(self, component: int, or_equal: bool, ranks: Buffer) -> None:
        """Count the runs of a loop whose events rise by the order of these ranks (int64)."""

    def count(
        self,
        times: Buffer,
        handles: Buffer | None,
        codes: Buffer,
        starts: Buffer | None,
        begins: Buffer,
        takes: Buffer,
        negates: Buffer,
        by_event: bool,
        weights: Buffer | None,
        component: int,
        seeks_greatest: bool,
    ) -> Any:
        """
        Return the number of matches or, by event, the places of the events that complete some.

        With them come the numbers of these matches and, with weights, their sums or greatest ones.
        """

class Lister(_Query):
    """Lists the matches of partitions, all runs at once."""

    def set_limit(self, most: int, too_many: Callable[[int, int], None]) -> None:
        """Bound the runs of a partition; ``too_many(runs, time)`` raises the error for more."""

    def open(
        self, wants_begun: bool, bounds: Buffer, ends: Buffer | None, *stream: Buffer | None
    ) -> None:
        """Open partitions, as ``SequenceEvents.streams`` gives them."""

    def next(self, most: int) -> Match:
        """Return matches with about this many events; none at the end."""

    def begun(self) -> bytes:
        """Return for each partition the position at which its first live run began (int64)."""

    def size(self) -> int:
        """Return the number of nodes held."""

    def watch(self) -> None:
        """Count from now on what becomes of runs."""

    def watched(self) -> bytes:
        """Return five int64 for each component; see ``lister_object.c``."""

class Backtracker(_Query):
    """Finds the matches of partitions, one run after the other."""

    def turn_to(
        self,
        output: int,
        watermark: int | None,
        bounds: Buffer,
        ends: Buffer | None,
        *stream: Buffer | None,
    ) -> None:
        """Open partitions, as ``SequenceEvents.streams`` gives them."""

    def find(self, most: int) -> Match:
        """Return matches with about this many events; none at the end."""

    def undecided(self) -> bytes:
        """Return for each partition the start that later events decide (int64), if any."""

    def met(self) -> int:
        """Return how often an event was tried on a run."""

class Join:
    """Joins lists of candidates, step by step; ``engines/lists/matching.py`` makes the plan."""

    def __init__(
        self,
        lists: tuple[List, ...],
        by_time: bool,
        columns: tuple[tuple[int, Buffer, Buffer | None], ...],
        steps: tuple[tuple[Any, ...], ...],
        window: int,
    ) -> None: ...
    def rows(self, into: Buffer) -> int:
        """Write the next rows, a position (int64) for each list; return their number."""

    def met(self) -> bytes:
        """Return how many candidates each step has tested (int64)."""

class Latest:
    """Rules of which the latest run at each step lives; ``engines/latest/columns.py`` makes it."""

    def __init__(self, rules: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]) -> None:
        """Take each rule's maxspan, -1 for none, and the role and rank of each step and until."""

    def process(
        self,
        times: Buffer,
        events: Buffer,
        steps: Buffer,
        keys: Buffer,
        first: int,
        is_last: bool,
    ) -> tuple[bytes, bytes, bytes, bytes] | None:
        """
        Offer events (int32) to steps (int32) with keys, without Python's lock.

        Returns
        -------
        tuple of bytes, or None
            Matches: rules (int32), keys, handles of all, and where those of each end (int64); None
            if the events of a step are not in order, with nothing done.
        """

    def advance(self, time: int) -> tuple[bytes, bytes, bytes, bytes]:
        """Return the matches decided by that no event up to a time will still come."""

    def prune(self, time: int) -> None:
        """Drop what is garbage if no event up to a time will still come."""

    def clear(self) -> None:
        """Drop the state of all keys."""

    def written(self) -> tuple[bytes, ...]:
        """Return the state of keys, as ``KeyStates``."""

    def read(
        self,
        rules: Buffer,
        keys: Buffer,
        numbers: Buffer,
        number_ends: Buffer,
        handles: Buffer,
        handle_ends: Buffer,
        times: Buffer,
    ) -> None:
        """Go on from the state of keys."""

# Of a column in a row group: its compression, its encodings as bits, how many values and bytes it
# has, where its data and its dictionary begin (0 of none), how many values are missing (-1 if that
# is not told), and the least and the greatest of integers.
_StoredColumn = tuple[int, int, int, int, int, int, int, tuple[int, int] | None]

class Pages:
    """The values of a column of Parquet in a row group, read page by page."""

    def __init__(
        self,
        data: Buffer,
        width: int,
        is_snappy: bool,
        has_levels: bool,
        codes: Buffer | None = None,
    ) -> None:
        """
        Take the bytes of all pages: numbers of 4 or 8 bytes, compressed or not.

        With codes (int32) for the texts of the dictionary, each is read as its code.
        """

    def read(self, numbers: Buffer) -> int:
        """Write the next values to an array; return how many there were. Raise ValueError if pages
        are damaged, have a NULL, or are of another form.
        """

class Numbering:
    """
    Numbers for integers: of a known range what they are above the least, otherwise by occurrence.

    Parameters
    ----------
    least, range : int
        The least integer, and how many there may be from it on; any if the range is 0.
    """

    def __init__(self, least: int, range: int) -> None: ...
    def add(
        self,
        values: Buffer,
        kinds: Buffer | None,
        needed: Buffer | None,
        codes: Buffer,
        places: Buffer | None,
    ) -> int:
        """
        Give integers their numbers; return how many are kept.

        Parameters
        ----------
        values : array of int64, or of int32 if their range is known
            The integers.
        kinds : array of uint8, or None
            What each belongs to; None to keep all.
        needed : array of 256 bool, or None
            Which kinds are kept.
        codes, places : arrays of int32
            What the codes and places of those that are kept are written to, with as many places as
            there are integers; `places` may be missing.
        """

    def found(self) -> tuple[bytes | None, bytes, bytes | None]:
        """
        Return by code its integer (int64), and how many that are kept have it (int32), and the
        codes in the order of their first occurrence (int32).

        The first is missing if the range is known, the last if codes are in that order.
        """

class RowSearch:
    """Finds matches with the standard's meaning; ``engines/rows/matching.py`` makes it."""

    asked: int
    """The variable whose condition was evaluated last."""

    def __init__(
        self,
        code: tuple[tuple[int, int, int], ...],
        loops: int,
        rows: int,
        has_flags: bool,
        slots: tuple[Any, ...],
        programs: tuple[Program, ...],
        has_number: bool,
        ansi: bool,
        most_remembered: int,
        fields: Fields,
        answers: tuple[bytearray | None, ...],
        labels: bytearray,
        hidden: bytearray,
        times: Buffer | None,
        within: int,
        watermark: int | None,
    ) -> None: ...
    def turn_to(self, begin: int, end: int, has_first: bool) -> None:
        """Select a partition."""

    def find(self, start: int, number: int) -> tuple[int, int] | None:
        """Return where the next match begins and ends; raise ArithmeticError for a condition."""

    partition: int
    """Of the partitions that are listed the one that is searched."""

    def list(
        self, ends: Buffer, places: Buffer, skip: int, targets: bytes, most: int
    ) -> tuple[bytes, bytes, bytes, int]:
        """
        Find matches of partitions, from where four numbers for each say, which are changed.

        Returns
        -------
        tuple of bytes and int
            Of each match where it begins, its size, its number and its partition (int64); the
            labels of its rows, and which are hidden; a negative number if there is no row to skip
            to after the last one.
        """

def split(
    codes: Buffer, lists: Buffer, count: int, low: Buffer | None, high: Buffer | None
) -> list[bytes]:
    """Return the positions (int64) of events by the list that their code (int32) belongs to."""

def links(near: List, far: List, is_forward: bool, by_time: bool) -> bytes:
    """Return for each item of a list where the other's begin, or end (int64)."""

def heed(flag: bytearray | None) -> None:
    """Let work of this thread raise InterruptedError once the byte is not 0; None for never."""

def literals(
    data: Buffer, ends: Buffer, texts: tuple[bytes, ...], kinds: bytes
) -> tuple[bytes, bytes] | None:
    """
    Find texts in values, which stand one after another in UTF-8, without Python's lock.

    Returns
    -------
    tuple of bytes, or None
        Where the values of each text end (int64), and the numbers of the values (int32); None if
        there are too many texts.
    """

def scatter(
    codes: Buffer,
    starts: Buffer,
    sources: tuple[Buffer, ...],
    records: Buffer,
    offsets: tuple[int, ...],
    first: int,
) -> None:
    """
    Write what events have in some columns to records, by the code (int32) of each.

    `starts` has the next place (int32) of each code, and is moved on. Items have 1, 2, 4 or 8
    bytes, and stand in a record from their column's offset on. Records are those of the places
    from `first` on; events of other places are left out.
    """

def texts(data: Buffer, is_snappy: bool) -> tuple[bytes, bytes] | None:
    """
    Return the texts of the dictionary of a column: where each ends (int32), from 0 on, and bytes.

    None if the first page of `data` is no dictionary of texts.
    """

def row_groups(
    footer: Buffer, places: tuple[int, ...]
) -> list[tuple[int, tuple[_StoredColumn | None, ...]]] | None:
    """
    Return how many rows each row group of a file of Parquet has, and what is told of columns.

    These are asked for by their places among all. One that is in another file is None. Of a footer
    that is damaged all is None.
    """

def add_bits(values: Buffer, width: int, least: int, table: Buffer, bits: Buffer) -> None:
    """Add to the bits of each event what a table has for its value, from the least one on."""

def least(codes: Buffer, times: Buffer, least: Buffer) -> None:
    """Lower the least time by code (int32) to that of its events."""

def order_within(bounds: Buffer, times: Buffer) -> bytes | None:
    """Return the stable order (int32) by time within stretches; None if events have it."""

def order_of(numbers: Buffer) -> bytes:
    """Return the stable order (int32) of at least one number (int64)."""

def hash_values(values: Buffer, width: int, data: Buffer | None, hashes: Buffer) -> None:
    """
    Replace seeds (uint64) by the hashes of integers of 4 or 8 bytes.

    With `data` the integers are where its texts begin, and where the last one ends.
    """

def rows_with(numbers: Buffer, bits: Buffer, uses: bytes, wanted: int) -> bytes:
    """Return the rows (int32) of keys whose events have all uses that are wanted."""

def wanted(
    ends: Buffer,
    numbers: Buffer,
    width: int,
    rows: Buffer,
    groups: Buffer,
    asked_ends: Buffer,
    rules: Buffer,
    bits: Buffer,
    count: int,
) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the events that each of some rules wants, their bits, where keys begin, and whose."""
