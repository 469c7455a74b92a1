# SPDX-License-Identifier: Apache-2.0
"""The matches of many rules as columns, with what is the same for all of a rule made once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.eql import Eql
from pyflinkcep.matching.columns import (
    Ints,
    in_one_piece,
    integers,
    plain_numbers,
    structs,
    values_of,
)
from pyflinkcep.matching.results import MATCH_TIME, Found
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.rules.wanting_rule import FoundByRule
from pyflinkcep.sase import SaseQuery
from pyflinkcep.tables.found_rows import match_times

_TEXTS = pa.map_(pa.string(), pa.string())


def match_id(rule: str, version: int, key: Any, events: Any) -> str:
    """Return the hash of a match: 64 hexadecimal digits."""
    return _digest(_json([rule, version, key, events]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json(value: Any, between: str = ",") -> str:
    return json.dumps(value, default=_plain, separators=(between, ":"))


def _plain(value: Any) -> Any:
    value = _in_utc(value)
    return value.isoformat() if hasattr(value, "isoformat") else f"{value}"


def _in_utc(value: Any) -> Any:
    """Return a value, of a moment the one that UTC's clock shows, whichever clock showed it."""
    is_moment = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC) if is_moment else value


def _text(value: Any) -> str | None:
    return None if value is None else f"{_in_utc(value)}"


def key_names(rule: Rule, stage: str) -> tuple[str, ...]:
    """Return the fields of the key of a match, whose first event is of a stage."""
    definition = rule.definition
    if isinstance(definition, Eql):
        model = definition.model
        steps = model.expanded if model.is_sequence else model.steps
        return tuple(dict.fromkeys(key.path for key in steps[int(stage) - 1].keys))
    if isinstance(definition, SigmaCorrelation):
        return tuple(dict.fromkeys(definition.read.group_by))  # an alias is no field
    own = definition.key if isinstance(definition, SaseQuery) else ()
    return tuple(dict.fromkeys((*rule.key, *own)))


def columns_of_matches(parts: Sequence[FoundByRule], events: SharedEvents) -> pa.Table:
    """Return matches as a table."""
    return _Matches.of(parts, events).table()


@attrs.frozen(eq=False)
class _Matches:
    """The matches of rules, one after the other."""

    parts: Sequence[FoundByRule]
    events: SharedEvents
    found: Found  # The stages of each rule are numbered after those of the rule before
    part_of: Ints  # The number of each match's rule
    begins: Ints  # Where the events of a stage of a match begin, with the end of all
    match_of: Ints  # The match of each of these

    @classmethod
    def of(cls, parts: Sequence[FoundByRule], events: SharedEvents) -> _Matches:
        """Put matches one after the other, the events of a stage side by side."""
        stages: list[str] = []
        numbered: list[Found] = []
        for part in parts:
            own = part.found.stage_of.astype(np.int64) + len(stages)
            numbered.append(attrs.evolve(part.found, stage_of=own))
            stages += part.found.stages
        found = attrs.evolve(Found.concat(numbered), stages=stages)
        part_of = np.repeat(np.arange(len(parts)), [len(part.found) for part in parts])
        matches = np.repeat(np.arange(len(found)), found.ends - found.firsts)
        # Stages of a match are in the order of their first events.
        codes = matches * max(len(stages), 1) + found.stage_of
        changes = np.flatnonzero(np.r_[len(codes) > 0, codes[1:] != codes[:-1]][: len(codes)])
        if _come_back(found.stage_of[changes], matches[changes]):
            _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
            order = np.argsort(firsts[inverse.reshape(-1)], kind="stable")
            handles, stage_of = found.handles[order], found.stage_of[order]
            found = attrs.evolve(found, handles=handles, stage_of=stage_of)
            codes = codes[order]
            changes = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
        return cls(
            parts, events, found, part_of, np.r_[changes, len(codes)], matches[changes]
        )  # fmt: skip

    def table(self) -> pa.Table:
        """Return them as a table."""
        rules = [part.rule for part in self.parts]
        names = pa.array([rule.name for rule in rules], pa.string())
        versions = pa.array([rule.version for rule in rules], pa.int64())
        keys, key_texts = self._keys()
        return pa.table(
            {
                "rule": names.take(integers(self.part_of)),
                "version": versions.take(integers(self.part_of)),
                "key": keys,
                "matchId": self._ids(key_texts),
                MATCH_TIME: match_times(self.found, self.events.times),
                "events": self._lists(),
            }
        )

    def _lists(self) -> pa.MapArray:
        """Return for each match a map of stages to lists of events."""
        found, begins = self.found, self.begins
        rows = structs(self.events.table.take(integers(found.handles)))
        lists = pa.ListArray.from_arrays(integers(begins.astype(np.int32)), rows)
        stages = pa.array(found.stages, pa.string())
        own = stages.take(integers(found.stage_of[begins[:-1]]))
        ends = np.searchsorted(self.match_of, np.arange(len(found) + 1)).astype(np.int32)
        return pa.MapArray.from_arrays(integers(ends), own, lists)

    def _keys(self) -> tuple[pa.MapArray, _Texts]:
        """Return the key of each match, and its JSON."""
        found = self.found
        firsts = found.firsts
        names = [()] + [
            key_names(part.rule, stage) for part in self.parts for stage in part.found.stages
        ]
        numbers = {own: number for number, own in enumerate(dict.fromkeys(names))}
        # A match without events has no key.
        stages = np.append(found.stage_of, 0)[np.minimum(firsts, len(found.stage_of))] + 1
        stages[found.ends == firsts] = 0
        kinds = np.asarray([numbers[own] for own in names])[stages]
        offsets = np.r_[0, np.cumsum(np.asarray([len(own) for own in names])[stages])]
        texts, fields, values = _Texts(["{}"], len(found)), *(_Texts([], offsets[-1]) for _ in "ab")
        for own, number in numbers.items():
            chosen = np.flatnonzero(kinds == number)
            if not own or not len(chosen):
                continue
            rows, inverse = _distinct(found.handles[firsts[chosen]], self.events.table.num_rows)
            shown, columns = _key_texts(self.events.table, own, rows)
            texts.put(chosen, shown, inverse)
            for place, (name, column) in enumerate(zip(own, columns, strict=True)):
                fields.put(offsets[chosen] + place, [name], 0)
                values.put(offsets[chosen] + place, column, inverse)
        for number, part in enumerate(self.parts):
            places = () if part.keys is None else np.flatnonzero(self.part_of == number).tolist()
            for place, key in zip(places, part.keys or (), strict=True):
                texts.put(place, [_json(key)], 0)
                listed = list(map(_text, key.values()))
                values.put(slice(*offsets[place : place + 2]), listed, np.arange(len(listed)))
        keys = pa.MapArray.from_arrays(
            integers(offsets.astype(np.int32)), fields.array(), values.array()
        )
        return keys, texts

    def _ids(self, keys: _Texts) -> pa.Array:
        """Return the hash of each match, as `match_id` makes it."""
        found, begins = self.found, self.begins
        names = [_json(stage) for stage in found.stages]
        heads = pa.array(
            [f"[{_json(part.rule.name)},{part.rule.version}," for part in self.parts], pa.string()
        )
        # Before an event stands what ends the stage before, if it is the first of its own.
        opening = pa.array([*(f",{{{n}:[" for n in names), *(f"],{n}:[" for n in names), ","])
        kinds = np.full(len(found.handles), 2 * len(names))
        kinds[begins[:-1]] = found.stage_of[begins[:-1]] + len(names)
        firsts, ends = found.firsts, found.ends
        kinds[firsts[ends > firsts]] -= len(names)
        closing = pa.array([",{}]", "]}]"])
        table = self.events.table
        digests: list[pa.Array] = []
        most = max(_MOST_BYTES // (3 * (table.nbytes // max(table.num_rows, 1)) + 64), 1)
        begin = first = 0
        while begin < len(found):
            end = max(int(np.searchsorted(ends, first + most, "right")), begin + 1)
            last = int(ends[end - 1])
            rows, places = _distinct(found.handles[first:last], table.num_rows)
            shown = _row_texts(table.take(integers(rows)))
            # Texts are put together some at a time, which the caches of a processor hold.
            step = max(_NEAR_BYTES * len(rows) // max(shown.nbytes, 1), 1)
            while begin < end:
                until = int(np.searchsorted(ends[:end], first + step, "right"))
                until = max(until, begin + 1)
                until_event = int(ends[until - 1])
                events = [
                    opening.take(integers(kinds[first:until_event])),
                    shown.take(integers(places[: until_event - first])),
                ]
                sizes = np.diff(ends[begin:until], prepend=first)
                if (sizes != 1).any():
                    offsets = integers(np.r_[0, np.cumsum(sizes)].astype(np.int32))
                    lists = pa.ListArray.from_arrays(offsets, _joined(*events))
                    events = [pc.binary_join(lists, "")]
                texts = _joined(
                    heads.take(integers(self.part_of[begin:until])),
                    keys.array(begin, until),
                    *events,
                    closing.take(integers((sizes > 0).astype(np.int8))),
                )
                digests.append(_digests(texts))
                places = places[until_event - first :]
                begin, first = until, until_event
        return pa.chunked_array(digests, pa.string()).combine_chunks()


@attrs.frozen(eq=False, slots=False)
class _Texts:
    """A text for each of some places, most of which have one in common with others."""

    known: list[str | None]  # All of them
    size: int  # The number of places
    codes: Ints = attrs.field(init=False)  # Those of places

    @codes.default
    def _first(self) -> Ints:
        return np.zeros(self.size, np.int64)

    def put(self, places: Any, texts: Sequence[str | None], numbers: Any) -> None:
        """Let places have some of other texts, by the numbers of these."""
        self.codes[places] = len(self.known) + numbers
        self.known.extend(texts)

    def array(self, begin: int = 0, end: int | None = None) -> pa.Array:
        """Return the texts, or some of them."""
        return self._known.take(integers(self.codes[begin:end]))

    @cached_property
    def _known(self) -> pa.Array:
        return pa.array(self.known, pa.string())


def _come_back(stages: Ints, matches: Ints) -> bool:
    """Whether a stage of a match may come again after another one."""
    # It cannot if the numbers of stages only rise, or only fall, within each match.
    is_inside, rises = matches[1:] == matches[:-1], stages[1:] > stages[:-1]
    return bool((is_inside[1:] & is_inside[:-1] & (rises[1:] != rises[:-1])).any())


def _distinct(rows: Ints, size: int) -> tuple[Ints, Ints]:
    """Return distinct ones of the rows of a table, in order, and the place of each row in them."""
    if len(rows) * 8 < size:
        known, places = np.unique(rows, return_inverse=True)
        return known, places.reshape(-1)
    is_there = np.zeros(size, bool)
    is_there[rows] = True
    known = np.flatnonzero(is_there)
    numbers = np.empty(size, np.int64)
    numbers[known] = np.arange(len(known))
    return known, numbers[rows]


_MOST_BYTES = 256 << 20
"""The most of the JSON of events that is there at once, about."""

_NEAR_BYTES = 1 << 20


def _joined(*texts: Any) -> Any:
    """Return texts side by side."""
    return pc.binary_join_element_wise(*texts, "")


def _digests(texts: pa.Array) -> pa.Array:
    """Return the hash of each text."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1).tolist()
    data = memoryview(texts.buffers()[2] or b"")
    sha256 = hashlib.sha256
    found = b"".join([sha256(data[begin:end]).digest() for begin, end in pairwise(offsets)])
    ends = np.arange(0, 2 * len(found) + 1, 64, dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(found.hex().encode())]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def _row_texts(table: pa.Table) -> pa.Array:
    """Return the JSON of each row."""
    parts: list[Any] = []
    between = "{"
    for name, column in zip(table.column_names, table.columns, strict=True):
        # Quotes around texts are put together with what stands between columns anyway.
        is_text = column.null_count == 0 and pa.types.is_string(column.type)
        inner = _inner_texts(column) if is_text else None
        quote = "" if inner is None else '"'
        parts.append(f"{between}{_json(name)}:{quote}")
        parts.append(_json_texts(column) if inner is None else inner)
        between = f"{quote},"
    if not parts:
        return pa.array(["{}"] * table.num_rows, pa.string())
    parts.append(f"{between[:-1]}}}")
    return pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="null")


_LEAST, _MOST = np.datetime64("0001-01-03"), np.datetime64("9999-12-29")


def _inner_texts(column: pa.ChunkedArray) -> pa.Array | None:
    """Return what is between the quotes of the JSON of texts; None if that is not known here."""
    texts = in_one_piece(column)
    signs = _escaped_signs(texts)
    for sign in signs or ():
        texts = pc.replace_substring(texts, sign, f"\\{sign}")
    return None if signs is None else texts


def _escaped_signs(texts: pa.Array) -> list[str] | None:
    """Return which signs of texts JSON escapes; None if any is beyond printable ASCII."""
    if not len(texts):
        return []
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, 4 * texts.offset)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    if len(data) and (data.min() < ord(" ") or data.max() > ord("~")):
        return None
    parts = [data[at : at + _NEAR_BYTES] for at in range(0, len(data), _NEAR_BYTES)]
    return [sign for sign in '\\"' if any((part == ord(sign)).any() for part in parts)]


def _json_texts(column: pa.ChunkedArray) -> pa.Array:
    """Return the JSON of each value; null may stand for that of null."""
    type_, found = column.type, None
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_):
        found = in_one_piece(column.cast(pa.string()))
    elif pa.types.is_null(type_):
        found = pa.nulls(len(column), pa.string())
    elif pa.types.is_string(type_):
        inner = _inner_texts(column)
        found = None if inner is None else _joined('"', inner, '"')
    elif pa.types.is_timestamp(type_):
        found = _time_texts(column)
    elif pa.types.is_list(type_):
        lists = in_one_piece(column)
        items = _json_texts(pa.chunked_array([lists.flatten()])).fill_null("null")
        sizes = plain_numbers(pc.list_value_length(lists).fill_null(0))
        ends = integers(np.r_[0, np.cumsum(sizes)].astype(np.int32))
        texts = _joined("[", pc.binary_join(pa.ListArray.from_arrays(ends, items), ","), "]")
        found = pc.if_else(lists.is_valid(), texts, None)
    if found is not None:
        return found
    values = values_of(column)
    if pa.types.is_nested(type_):
        return pa.array(map(_json, values), pa.string())
    listed = _json(values, "\n")[1:-1].split("\n") if values else []  # no text has a line break
    return pa.array(listed, pa.string())


def _time_texts(column: pa.ChunkedArray) -> pa.Array | None:
    """Return the JSON of times; None if Python's have other parts, or do not go as far."""
    unit = column.type.unit
    times = column.cast(pa.int64())
    known = plain_numbers(times.fill_null(0)).astype(f"datetime64[{unit}]")
    if unit == "ns" or not (known >= _LEAST).all() or not (known < _MOST).all():
        return None
    known = known.astype("datetime64[us]")
    texts = np.datetime_as_string(known)
    is_whole = known == known.astype("datetime64[s]")
    texts[is_whole] = np.datetime_as_string(known[is_whole].astype("datetime64[s]"))
    made = pa.array(texts.tolist(), pa.string())
    found = _joined('"', made, '+00:00"' if column.type.tz is not None else '"')
    return pc.if_else(in_one_piece(times.is_valid()), found, None)


def _key_texts(
    table: pa.Table, names: Sequence[str], rows: Ints
) -> tuple[list[str], list[list[str | None]]]:
    """Return the JSON of the key of some rows, and each column of it as texts."""
    if all(name in table.column_names for name in names):
        own = table.select(list(names)).take(integers(rows))
        if all(
            pa.types.is_integer(type_) or pa.types.is_string(type_) for type_ in own.schema.types
        ):
            columns = [column.cast(pa.string()).to_pylist() for column in own.columns]
            return _row_texts(own).to_pylist(), columns
    listed = [_values(table, name, rows) for name in names]
    shown = [_json(dict(zip(names, row, strict=True))) for row in zip(*listed, strict=True)]
    return shown, [list(map(_text, own)) for own in listed]


def _values(table: pa.Table, path: str, rows: Ints) -> list[Any]:
    """Return the values of a column in some rows, or of a field of a struct."""
    first, _, rest = path.partition(".")
    is_whole = path in table.column_names or not rest
    if (path if is_whole else first) not in table.column_names:
        return [None] * len(rows)
    found = values_of(table.column(path if is_whole else first).take(integers(rows)))
    return found if is_whole else [value_at(inner, rest) for inner in found]


def value_at(event: Any, path: str) -> Any:
    """Return a field of an event, or of a struct in it."""
    if not isinstance(event, Mapping):  # a value that has no fields
        return None
    if path in event or "." not in path:
        return event.get(path)
    first, _, rest = path.partition(".")
    return value_at(event.get(first), rest)
