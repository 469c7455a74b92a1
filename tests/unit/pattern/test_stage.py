# SPDX-License-Identifier: Apache-2.0
"""Stages: conditions, quantifiers, coercion of what is given."""

from __future__ import annotations

import functools
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyflinkcep import (
    AfterMatchSkipStrategy,
    CepError,
    IterativeCondition,
    MalformedPatternException,
    Pattern,
    SimpleCondition,
)
from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.errors import InvalidArgumentError, MissingConditionError, NotSupportedError
from pyflinkcep.pattern.coercion import as_condition, as_count
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
    (
        lambda: _group().where(len),
        NotSupportedError,
        "GroupPattern does not support where clause.",
    ),
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


@pytest.mark.parametrize("build", [lambda: parse("a??"), *(row[0] for row in OTHERS[:1])])
def test_build_errors_survive_pickling(build: Callable[[], Any]) -> None:
    """Type, text and hint of an error are the same after pickling."""
    with pytest.raises(CepError) as caught:
        build()
    copy = pickle.loads(pickle.dumps(caught.value))

    assert (type(copy), str(copy), copy.hint) == (
        type(caught.value),
        str(caught.value),
        caught.value.hint,
    )


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


# --- what may be written as a condition or a count, and what becomes of it


class Context:
    """A context with events of one stage."""

    def getEventsForPattern(self, name: str) -> list[int]:
        """Return 1 for stage ``up``."""
        return [1] if name == "up" else []


class Above(IterativeCondition):
    """Above everything accepted for stage ``up``."""

    def filter(self, value: int, ctx: Any) -> bool:
        """Compare."""
        return all(value > earlier for earlier in ctx.getEventsForPattern("up"))


class Bound:
    """Has a method that may serve as a condition."""

    def over(self, event: int) -> bool:
        """Compare."""
        return event > 1

    def __call__(self, event: int, ctx: Any) -> bool:
        """Compare with the context."""
        return event not in ctx.getEventsForPattern("up")


@pytest.mark.parametrize(
    "written",
    [
        lambda e: e > 1,
        lambda e, limit=1: e > limit,
        lambda *e: e[0] > 1,
        lambda e, ctx: e not in ctx.getEventsForPattern("up"),
        functools.partial(operator.lt, 1),
        Bound().over,
        Bound(),
        Above(),
        SimpleCondition.of(lambda e: e > 1),
        {2}.__contains__,
    ],
    ids=[
        "one argument",
        "a default beside it",
        "any arguments",
        "event and context",
        "partial",
        "bound method",
        "callable object",
        "IterativeCondition",
        "SimpleCondition",
        "builtin",
    ],
)
def test_kinds_of_conditions(written: Any) -> None:
    """Functions of (event) or (event, ctx) and condition objects all become conditions."""
    condition = as_condition(written, "none")

    assert [condition.filter(e, Context()) for e in (1, 2)] == [False, True]  # type: ignore[arg-type]


def test_condition_objects_are_used_as_they_are() -> None:
    """A condition object is not wrapped."""
    condition = Above()

    assert as_condition(condition, "none") is condition


@pytest.mark.parametrize("function", [lambda e: True, lambda *e: True, {1}.__contains__])
def test_functions_of_one_event_are_simple(function: Any) -> None:
    """A function of the event alone is evaluated once for an event, so it is marked simple."""
    assert isinstance(as_condition(function, "none"), SimpleCondition)


def test_functions_with_a_context_are_iterative() -> None:
    """A function that takes the context depends on the partial match."""
    condition = as_condition(lambda e, ctx: True, "none")

    assert (isinstance(condition, IterativeCondition), isinstance(condition, SimpleCondition)) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (3, "stage 'a': expected a condition, got 3"),
        (int, "got <class 'int'>"),
        (Above, "expected a condition, got <class"),
        (lambda: True, "expected a function of one or two arguments"),
        (lambda a, b, c: True, "got lambda at test_stage.py:"),
    ],
)
def test_what_is_no_condition(written: Any, message: str) -> None:
    """Values, classes and functions of other shapes are refused when the pattern is built."""
    with pytest.raises(InvalidArgumentError) as caught:
        Pattern.begin("a").where(written)

    assert (message in str(caught.value), bool(caught.value.hint)) == (True, True)


def test_none_is_refused_in_the_words_of_flink() -> None:
    """A missing condition gets the message it is looked up with."""
    with pytest.raises(MissingConditionError, match=r"^The text"):
        as_condition(None, "The text")


def test_a_string_is_for_spark() -> None:
    """A SQL expression is kept as written and refuses to be evaluated without Spark."""
    condition = as_condition("price > 3", "none")
    with pytest.raises(NotSupportedError, match="'price > 3' can only be evaluated by Spark"):
        condition.filter({"price": 5}, Context())  # type: ignore[arg-type]

    assert (type(condition), repr(condition)) == (ExpressionCondition, "price > 3")


def test_a_column_is_known_without_pyspark() -> None:
    """What is called Column and lives in pyspark.sql is an expression, kept as text in pickles."""
    column_type = type("Column", (), {"__module__": "pyspark.sql.x", "__str__": lambda s: "c > 1"})
    column = column_type()
    condition = as_condition(column, "none")
    assert isinstance(condition, ExpressionCondition)
    copy = pickle.loads(pickle.dumps(condition))

    assert (condition.expression is column, condition.text, copy.text) == (True, "c > 1", "c > 1")


@pytest.mark.parametrize("written", [2, np.int64(2), np.uint8(2)])
def test_counts(written: Any) -> None:
    """Whole numbers of any library are counts."""
    assert (as_count(written, "times"), type(as_count(written, "times"))) == (2, int)


@pytest.mark.parametrize("written", [True, False, 2.0, "2", None, np.float64(2), np.True_])
def test_what_is_not_a_count(written: Any) -> None:
    """Booleans, fractions and text are refused, with the method that they were given to."""
    with pytest.raises(InvalidArgumentError, match=r"^times: expected a whole number, got "):
        as_count(written, "times")
