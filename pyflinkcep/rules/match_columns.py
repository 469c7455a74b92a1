# SPDX-License-Identifier: Apache-2.0
"""The matches of many rules as columns, with what is the same for all of a rule made once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.eql import Eql
from pyflinkcep.matching.columns import Ints, integers, structs, values_of
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
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)  # whatever clock shows it
    return value.isoformat() if hasattr(value, "isoformat") else f"{value}"


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
        distinct, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
        if len(distinct) < len(changes):
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
                "matchId": pa.array(self._ids(key_texts), pa.string()),
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

    def _keys(self) -> tuple[pa.MapArray, list[str]]:
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
        texts = np.full(len(found), "{}", object)
        fields, values = np.full(offsets[-1], "", object), np.full(offsets[-1], None, object)
        for own, number in numbers.items():
            chosen = np.flatnonzero(kinds == number)
            if not own or not len(chosen):
                continue
            rows, inverse = np.unique(found.handles[firsts[chosen]], return_inverse=True)
            columns = [_values(self.events.table, name, rows) for name in own]
            template = _template(own)
            shown = zip(*map(_json_texts, columns), strict=True)
            texts[chosen] = np.asarray([template % row for row in shown], object)[inverse]
            for place, (name, column) in enumerate(zip(own, columns, strict=True)):
                fields[offsets[chosen] + place] = name
                listed = [None if value is None else f"{value}" for value in column]
                values[offsets[chosen] + place] = np.asarray(listed, object)[inverse]
        keys = pa.MapArray.from_arrays(
            integers(offsets.astype(np.int32)),
            pa.array(fields.tolist(), pa.string()),
            pa.array(values.tolist(), pa.string()),
        )
        return keys, texts.tolist()

    def _ids(self, keys: Sequence[str]) -> list[str]:
        """Return the hash of each match, as `match_id` makes it."""
        found, part_of = self.found, self.part_of
        rows, inverse = np.unique(found.handles, return_inverse=True)
        table = self.events.table.take(integers(rows))
        template = _template(table.column_names)
        shown = [
            template % own
            for own in zip(*map(_json_texts, map(values_of, table.columns)), strict=True)
        ]
        # Before an event stands what ends the stage before, if it is the first of its own.
        names = [_json(stage) for stage in found.stages]
        opening = np.asarray(
            [*(f"{{{n}:[" for n in names), *(f"],{n}:[" for n in names), ","], object
        )
        kinds = np.full(len(found.handles), 2 * len(names))
        kinds[self.begins[:-1]] = found.stage_of[self.begins[:-1]] + len(names)
        firsts = found.firsts
        is_any = found.ends > firsts
        kinds[firsts[is_any]] -= len(names)
        pieces = opening[kinds] + np.asarray(shown, object)[inverse.reshape(-1)]
        heads = [f"[{_json(part.rule.name)},{part.rule.version}," for part in self.parts]
        listed = pieces.tolist()
        return [
            _digest(f"{heads[part]}{key},{''.join(listed[begin:end])}]}}]")
            if begin < end
            else _digest(f"{heads[part]}{key},{{}}]")
            for part, key, begin, end in zip(
                part_of.tolist(), keys, firsts.tolist(), found.ends.tolist(), strict=True
            )
        ]


def _template(names: Sequence[str]) -> str:
    """Return JSON of an object, with places for the values of its fields."""
    return "{" + ",".join(_json(name).replace("%", "%%") + ":%s" for name in names) + "}"


def _json_texts(values: list[Any]) -> list[str]:
    """Return the JSON of each value."""
    if any(isinstance(value, list | dict) for value in values):
        return list(map(_json, values))
    return _json(values, "\n")[1:-1].split("\n") if values else []  # no text has a line break


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
    if event is None or path in event or "." not in path:
        return None if event is None else event.get(path)
    first, _, rest = path.partition(".")
    return value_at(event.get(first), rest)
