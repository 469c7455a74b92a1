# SPDX-License-Identifier: Apache-2.0
"""Quantifiers and ranges as values."""

from __future__ import annotations

import pickle

import pytest

from pyflinkcep import MalformedPatternException
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.pattern.stage import (
    ConsumingStrategy,
    Quantifier,
    QuantifierProperty,
    Times,
    WithinType,
)

STRICT = ConsumingStrategy.STRICT


@pytest.mark.parametrize(
    ("quantifier", "property_"),
    [
        (Quantifier.one(STRICT), QuantifierProperty.SINGLE),
        (Quantifier.looping(STRICT), QuantifierProperty.LOOPING),
        (Quantifier.times(STRICT), QuantifierProperty.TIMES),
    ],
)
def test_factories(quantifier: Quantifier, property_: QuantifierProperty) -> None:
    """Each factory sets one property and relaxed contiguity between repetitions."""
    found = [p for p in QuantifierProperty if quantifier.hasProperty(p)]

    assert (found, quantifier.consumingStrategy, quantifier.innerConsumingStrategy) == (
        [property_],
        STRICT,
        ConsumingStrategy.SKIP_TILL_NEXT,
    )


def test_a_quantifier_never_changes() -> None:
    """Adding a property gives a new quantifier."""
    plain = Quantifier.looping(STRICT)
    changed = plain.optional().greedy().consecutive()

    assert (plain, str(changed)) == (
        Quantifier.looping(STRICT),
        "Quantifier{properties=[LOOPING, OPTIONAL, GREEDY], consumingStrategy=STRICT, "
        "innerConsumingStrategy=STRICT}",
    )


def test_greedy_twice_is_greedy() -> None:
    """``greedy`` is the one option that may be given twice."""
    once = Quantifier.looping(STRICT).greedy()

    assert once.greedy() == once


def test_optional_is_refused_twice() -> None:
    """``optional`` may be given once."""
    with pytest.raises(MalformedPatternException, match="Optional already applied!"):
        Quantifier.one(STRICT).optional().optional()


def test_times() -> None:
    """An exact count is a range of equal ends."""
    assert (Times.of(3, 5), Times.of_range(1, 2)) == (Times(3, 3, 5), Times(1, 2, None))


@pytest.mark.parametrize(("from_", "to"), [(0, 1), (-1, 1), (2, 1)])
def test_ranges_that_hold_nothing(from_: int, to: int) -> None:
    """A range begins at 1 or more and does not end before it begins."""
    with pytest.raises(InvalidArgumentError) as caught:
        Times.of_range(from_, to)

    assert caught.value.hint


@pytest.mark.parametrize("enum", [ConsumingStrategy, QuantifierProperty, WithinType])
def test_enum_values_are_their_names(enum: type[ConsumingStrategy]) -> None:
    """What may land in a checkpoint has a value that never shifts."""
    assert [member.value for member in enum] == [member.name for member in enum]


def test_pickling() -> None:
    """A quantifier survives pickling."""
    quantifier = Quantifier.times(STRICT).optional()

    assert pickle.loads(pickle.dumps(quantifier)) == quantifier
