# SPDX-License-Identifier: Apache-2.0
"""Stages: conditions, quantifiers, coercion of what is given."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, CepError, MalformedPatternException, Pattern
from pyflinkcep.errors import InvalidArgumentError, MissingConditionError, NotSupportedError
from pyflinkcep.pattern.stage import (
    ConsumingStrategy,
    Quantifier,
    QuantifierProperty,
    Times,
    WithinType,
)
from tests.shorthand import parse

_SINGLE = (
    "Quantifier{properties=[SINGLE], consumingStrategy=STRICT, "
    "innerConsumingStrategy=SKIP_TILL_NEXT}"
)
_OPTIONAL_NOT = (
    "Specifying a pattern with an optional path to NOT condition is not supported yet. "
    "You can simulate such pattern with two independent patterns, one with and the other "
    "without the optional part."
)
_NOT = "Option not applicable to NOT pattern"
_POSITIVE = "You should give a positive number greater than 0."
_FROM = "The from should be a positive number greater than 0."
_BOTH = "You can apply either combinations or consecutive, not both!"
_UNTIL = "The until condition is only applicable to looping states."


def _applied(properties: str) -> str:
    return (
        "Already applied quantifier to this Pattern. Current quantifier is: "
        f"Quantifier{{properties=[{properties}], consumingStrategy=STRICT, "
        "innerConsumingStrategy=SKIP_TILL_NEXT}"
    )


MALFORMED = [
    ("a+ until[u] until[v]", "Only one until condition can be applied."),
    ("a until[u]", _UNTIL),
    ("a until[u] until[v]", _UNTIL),
    ("a{1} until[u]", _UNTIL),
    ("a{1,3} until[u]", _UNTIL),
    ("a{2,}:greedy -> b?", "Optional pattern cannot be preceded by greedy pattern"),
    ("a?{2}?:cons -> b+:greedy -> (c)?", "Optional pattern cannot be preceded by greedy pattern"),
    ("a??", "Optional already applied!"),
    ("a{0,2}?", "Optional already applied!"),
    ("a !>> b?", "NOT pattern cannot be optional"),
    ("a !-> b?", "NOT pattern cannot be optional"),
    ("a !>> b+", _NOT),
    ("a !-> b+", _NOT),
    ("a !>> b{2}", _NOT),
    ("a !-> b{2}", _NOT),
    ("a !>> b{1,2}", _NOT),
    ("a !-> b{3,}", _NOT),
    ("a !>> b:greedy", _NOT),
    ("a !-> b:greedy", _NOT),
    ("a++", _applied("LOOPING")),
    ("a++?", _applied("LOOPING")),
    ("a+?{1}", _applied("LOOPING, OPTIONAL")),
    ("a{1}+", _applied("TIMES")),
    ("a{2}{2}", _applied("TIMES")),
    ("a{2,}{1,2}", _applied("LOOPING")),
    ("(a):greedy", "Option not applicable to group pattern"),
    ("(a)+:greedy", "Option not applicable to group pattern"),
    ("a+:any:greedy", "Option not applicable to FollowedByAny pattern"),
    ("a:greedy", "Option not applicable to singleton quantifier"),
    ("a:any", f"Combinations not applicable to {_SINGLE}!"),
    ("a:cons", f"Consecutive not applicable to {_SINGLE}!"),
    ("a+:cons:any", _BOTH),
    ("a+:any:cons", _BOTH),
    ("a+:any:any", "Combinations already applied!"),
    ("a+:cons:cons", "Consecutive already applied!"),
]


@pytest.mark.parametrize(("pattern", "message"), MALFORMED, ids=[m[0] for m in MALFORMED])
def test_malformed(pattern: str, message: str) -> None:
    """A combination of calls that makes no pattern is a MalformedPatternException."""
    with pytest.raises(MalformedPatternException) as caught:
        parse(pattern)

    assert (caught.value.message, bool(caught.value.hint)) == (message, True)


def _stage() -> Pattern:
    return Pattern.begin("a")


def _group() -> Any:
    return Pattern.begin(Pattern.begin("a"))


OTHERS: list[tuple[Callable[[], Any], type[CepError], str]] = [
    (lambda: _stage().times(0), InvalidArgumentError, _POSITIVE),
    (lambda: _stage().times(-1), InvalidArgumentError, _POSITIVE),
    (lambda: _stage().times(-1, 2), InvalidArgumentError, _FROM),
    (lambda: _stage().timesOrMore(0), InvalidArgumentError, _FROM),
    (lambda: _stage().timesOrMore(-2), InvalidArgumentError, _FROM),
    (
        lambda: _stage().times(3, 2),
        InvalidArgumentError,
        "The to should be a number greater than or equal to from: 3.",
    ),
    (
        lambda: _stage().times(0, 0),
        InvalidArgumentError,
        "The to should be a number greater than or equal to from: 1.",
    ),
    (lambda: _stage().optional().notNext("b"), NotSupportedError, _OPTIONAL_NOT),
    (lambda: _stage().optional().notFollowedBy("b"), NotSupportedError, _OPTIONAL_NOT),
    (lambda: _stage().times(0, 1).notNext("b"), NotSupportedError, _OPTIONAL_NOT),
    (lambda: _group().optional().notNext("b"), NotSupportedError, _OPTIONAL_NOT),
    (lambda: _group().where(len), NotSupportedError, "GroupPattern does not support where clause."),
    (lambda: _group().or_(len), NotSupportedError, "GroupPattern does not support or clause."),
    (
        lambda: _group().subtype(int),
        NotSupportedError,
        "GroupPattern does not support subtype clause.",
    ),
    (lambda: _stage().where(None), MissingConditionError, "The condition cannot be null."),
    (lambda: _stage().or_(None), MissingConditionError, "The condition cannot be null."),
    (
        lambda: _stage().oneOrMore().until(None),
        MissingConditionError,
        "The condition cannot be null",
    ),
    (
        lambda: _stage().subtype(None),  # type: ignore[arg-type]
        MissingConditionError,
        "The class cannot be null.",
    ),
    (
        lambda: AfterMatchSkipStrategy.skipToFirst(None),  # type: ignore[arg-type]
        MissingConditionError,
        "The pattern name of a skip strategy cannot be null.",
    ),
    (
        lambda: _stage().subtype("int"),  # type: ignore[arg-type]
        InvalidArgumentError,
        "subtype: expected a class, got 'int'",
    ),
    (
        lambda: _stage().notNext(Pattern.begin("b")),  # type: ignore[arg-type]
        InvalidArgumentError,
        "a group cannot be absent: expected the name of a NOT stage",
    ),
    (
        lambda: _stage().within(10),  # type: ignore[arg-type]
        InvalidArgumentError,
        "within: expected a timedelta, got 10",
    ),
    (
        lambda: _stage().oneOrMore(5),  # type: ignore[arg-type]
        InvalidArgumentError,
        "oneOrMore: expected a timedelta, got 5",
    ),
    (
        lambda: _stage().times("2"),  # type: ignore[call-overload]
        InvalidArgumentError,
        "times: expected a whole number, got '2'",
    ),
    (
        lambda: _stage().times(1, 2, 3),  # type: ignore[call-overload]
        InvalidArgumentError,
        "times: expected a timedelta, got 3",
    ),
]


@pytest.mark.parametrize(("build", "error", "message"), OTHERS)
def test_other_errors(build: Callable[[], Any], error: type[CepError], message: str) -> None:
    """Arguments out of range, missing or of the wrong kind, and what groups lack, are refused."""
    with pytest.raises(error) as caught:
        build()

    assert (type(caught.value), caught.value.message, bool(caught.value.hint)) == (
        error,
        message,
        True,
    )


@pytest.mark.parametrize(
    ("error", "parent"),
    [
        (MalformedPatternException, ValueError),
        (InvalidArgumentError, ValueError),
        (NotSupportedError, NotImplementedError),
        (MissingConditionError, TypeError),
    ],
)
def test_builtin_parents(error: type[CepError], parent: type[Exception]) -> None:
    """What a Python programmer would expect to catch catches the error too."""
    assert issubclass(error, parent)
    assert issubclass(error, CepError)


def test_the_first_check_of_greedy_is_about_not() -> None:
    """Of several reasons to refuse ``greedy`` the first in Flink's order is given."""
    with pytest.raises(MalformedPatternException, match="FollowedByAny"):
        parse("a{1}:any:greedy")
    with pytest.raises(MalformedPatternException, match="group pattern"):
        parse("(a)+:any:greedy")


def test_a_refused_call_changes_nothing() -> None:
    """After an error the stage is what it was before."""
    stage = parse("a+?")
    before = (stage.getQuantifier(), stage.getTimes())
    with pytest.raises(MalformedPatternException):
        stage.times(2)

    assert (stage.getQuantifier(), stage.getTimes()) == before


# --- quantifiers and ranges as values


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
