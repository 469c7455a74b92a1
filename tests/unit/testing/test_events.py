# SPDX-License-Identifier: Apache-2.0
"""The forms in which ``match`` takes events."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import attrs
import pandas as pd
import pyarrow as pa
import pytest

from pyflinkcep import Pattern
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.tables.rows import rows_of
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness, Record, match

RISE = Pattern.begin("low").where(lambda e: e.n < 3).next("high").where(lambda e: e.n > 7)
COLUMNS = {"n": [9, 1], "at": [datetime(2024, 5, 6, 9, 1), datetime(2024, 5, 6, 9)], "key": "kk"}


@attrs.frozen
class Attrs:
    """An event."""

    n: int
    at: datetime


@dataclass
class Data:
    """An event."""

    n: int
    at: datetime


class Named(NamedTuple):
    """An event."""

    n: int
    at: datetime


def _polars() -> Any:
    return pytest.importorskip("polars").DataFrame({**COLUMNS, "key": ["k", "k"]})


def _objects(kind: Any) -> list[Any]:
    return [kind(n, at) for n, at in zip(COLUMNS["n"], COLUMNS["at"], strict=True)]


def _table() -> pa.Table:
    return pa.table({**COLUMNS, "key": ["k", "k"]})


SOURCES: dict[str, Callable[[], Any]] = {
    "dicts": lambda: [
        {"n": n, "at": at} for n, at in zip(COLUMNS["n"], COLUMNS["at"], strict=True)
    ],
    "columns": lambda: COLUMNS,
    "attrs": lambda: _objects(Attrs),
    "dataclasses": lambda: _objects(Data),
    "named tuples": lambda: _objects(Named),
    "pandas": lambda: pd.DataFrame({**COLUMNS, "key": ["k", "k"]}),
    "polars": _polars,
    "Arrow table": _table,
    "Arrow batch": lambda: _table().to_batches()[0],
}


@pytest.mark.parametrize("source", SOURCES)
def test_events_of_every_form(source: str) -> None:
    """Fields are attributes in conditions, and times are found by name, whatever the form."""
    found = match(RISE, SOURCES[source](), timestamp="at")

    assert [{name: [e.n for e in events] for name, events in m.items()} for m in found] == [
        {"low": [1], "high": [9]}
    ]


def test_missing_values() -> None:
    """What a table lacks is None, as it is null on Spark; NaN is how pandas writes a lack."""
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "t": [pd.Timestamp(0), pd.NaT],
            "f": [1.5, float("nan")],
            "s": ["x", None],
        }
    )
    first, second = rows_of(frame)

    assert first == {"i": 1, "t": pd.Timestamp(0), "f": 1.5, "s": "x"}
    assert (second.i, second.t, second.s, second.f) == (None, None, None, None)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "expected events, got 3"),
        ({"a": [1, 2], "b": [1]}, "expected columns of one length, got {'a': 2, 'b': 1}"),
        (type("DataFrame", (), {"__module__": "pyspark.sql.x"})(), "got a DataFrame of Spark"),
    ],
)
def test_what_has_no_events(source: Any, message: str) -> None:
    """Other values, ragged columns and Spark's DataFrames are refused."""
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        match(RISE, source)

    assert caught.value.hint


def test_a_record_is_like_a_row() -> None:
    """A record has its fields as attributes, keys and positions, names of dict's methods included."""
    event = Record(user="anna", values=3, items=4)

    assert (event.user, event["user"], event[0], event.values, event.items, event[-1]) == (
        "anna",
        "anna",
        "anna",
        3,
        4,
        4,
    )
    with pytest.raises(
        AttributeError, match=r"no column 'price'. The columns are \['user', 'values'"
    ):
        _ = event.price


def test_a_record_is_a_dict() -> None:
    """A record is equal to a dict of its fields, and stays a record when copied."""
    event = Record(a=1, keys=2)
    copies = [copy.copy(event), pickle.loads(pickle.dumps(event))]

    assert event == {"a": 1, "keys": 2}
    assert [(type(c), c, c.keys) for c in copies] == [(Record, event, 2)] * 2


def test_harnesses_take_dicts_too() -> None:
    """A dict that is fed by hand has its fields as attributes."""
    nfa, operator = NFATestHarness(RISE), OperatorTestHarness(RISE)
    nfa.process({"n": 1}, 1)
    operator.processElement({"n": 1}, 1)
    operator.processElement({"n": 9}, 2)
    operator.close()

    assert nfa.process({"n": 9}, 2) == [{"low": [{"n": 1}], "high": [{"n": 9}]}]
    assert operator.matches == [(None, 2, {"low": [{"n": 1}], "high": [{"n": 9}]})]
