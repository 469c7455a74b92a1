# SPDX-License-Identifier: Apache-2.0
"""Dewey numbers."""

from __future__ import annotations

import pickle

import pytest

from pyflinkcep.engines.flink.sharedbuffer import DeweyNumber
from pyflinkcep.errors import InvalidArgumentError


def dewey(text: str) -> DeweyNumber:
    """Read a number."""
    return DeweyNumber.of(map(int, text.split(".")))


def test_increase_and_add_stage() -> None:
    """Increasing counts up the last digit, a stage adds a digit 0."""
    steps = [
        dewey("1").increase(),
        dewey("2").add_stage(),
        dewey("1.0").increase(),
        dewey("1.1").add_stage(),
        dewey("1.0.3").increase(4),
        dewey("1.2").increase(0),
    ]

    assert list(map(str, steps)) == ["2", "2.0", "1.1", "1.1.0", "1.0.7", "1.2"]


@pytest.mark.parametrize(
    ("version", "edge", "compatible"),
    [
        ("1.0", "1", True),
        ("1.1", "1.0", True),
        ("1.0", "1.0", True),
        ("1.1.0", "1.1", True),
        ("1.1.0.5", "1.1", True),
        ("1.1.0", "1.0", False),
        ("2.0", "1.0", False),
        ("1.0", "2.0", False),
        ("1.0", "1.1", False),
        ("1.1", "1.1.0", False),
    ],
)
def test_compatibility(version: str, edge: str, compatible: bool) -> None:
    """A run may walk edges of its own past, and of siblings that branched off before it."""
    assert dewey(version).is_compatible_with(dewey(edge)) is compatible


def test_a_number_without_digits() -> None:
    """A number has at least one digit."""
    with pytest.raises(InvalidArgumentError, match="without digits") as caught:
        DeweyNumber.of([])

    assert caught.value.hint


@pytest.mark.parametrize("text", ["1", "1.0.2", "10.20"])
def test_round_trips(text: str) -> None:
    """A number reads what it writes, and survives pickling as the same type."""
    copy = pickle.loads(pickle.dumps(dewey(text)))

    assert (str(dewey(text)), copy, type(copy)) == (text, dewey(text), DeweyNumber)
