# SPDX-License-Identifier: Apache-2.0
"""Events as a list and as a table have the same matches and the same timeouts."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa
from hypothesis import example, given

from pyflinkcep import AfterMatchSkipStrategy, match
from pyflinkcep.testing import trace
from tests.property.strategies import Event, PatternSpec, StageSpec, patterns, timed_events

Numbers = dict[str, list[int]]


def one_of(names: frozenset[str]) -> str:
    """Return a condition that a table computes by columns."""
    return f"name IN ({', '.join(map(repr, sorted(names)))})"


def numbers(found: dict[str, list[Any]]) -> Numbers:
    """Return what stages took, by the numbers of events."""
    return {stage: [event["number"] for event in events] for stage, events in found.items()}


def outcome(found: Any) -> tuple[list[Numbers], list[tuple[int, Numbers]]]:
    """Return the matches and the timeouts."""
    timeouts = [(timeout.timestamp, numbers(timeout.match)) for timeout in found.timeouts]
    return list(map(numbers, found)), timeouts


_A = frozenset("a")
_OPTIONAL = (("optional", ()),)
SKIPPED = PatternSpec(
    (
        StageSpec("begin", _A, calls=_OPTIONAL),
        StageSpec("next", _A, calls=_OPTIONAL),
        StageSpec("next", _A),
        StageSpec("notFollowedBy", _A),
    ),
    AfterMatchSkipStrategy.skipPastLastEvent(),
    (2, "FIRST_AND_LAST"),
)
"""The end of the first window releases a match, which skips what the later one would end."""


@given(patterns(), timed_events())
@example(SKIPPED, [(Event("a", 0, 1), 1), (Event("a", 1, 1), 2)])
def test_a_list_and_a_table_are_alike(spec: PatternSpec, events: list[tuple[Event, int]]) -> None:
    """The end of the input ends windows one after another, however the events are given."""
    without = attrs.evolve(spec, stages=tuple(map(_plain, spec.stages)))
    pattern = without.build(one_of)
    rows = [
        {"name": event.name, "number": event.number, "price": event.price, "ts": time}
        for event, time in events
    ]
    schema = pa.schema(
        [("name", "string"), ("number", "int64"), ("price", "int64"), ("ts", "int64")]
    )
    by_row = match(pattern, rows, timestamp="ts")
    by_column = match(pattern, pa.Table.from_pylist(rows, schema), timestamp="ts")
    assert outcome(by_row) == outcome(by_column)
    shown = trace(pattern, rows, timestamp="ts")
    assert [numbers(found) for found in shown.matches] == outcome(by_row)[0]


def _plain(stage: Any) -> Any:
    """Return a stage whose conditions are SQL alone."""
    return attrs.evolve(stage, rising=False, group=tuple(map(_plain, stage.group)))
