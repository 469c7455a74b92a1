# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of what a user calls are refused by name, before anything is computed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pyflinkcep
from pyflinkcep import (
    CepError,
    InvalidArgumentError,
    Pattern,
    TimeUnitWarning,
    charts,
    local,
    match,
    matchRecognize,
    matchSase,
    testing,
    windowFunnel,
)
from pyflinkcep.testing import funnel, trace, whyNot

ROWS = [{"n": n, "ts": 1000 * n, "type": "e"} for n in (1, 2)]
PATTERN = Pattern.begin("a").where("n > 0")
QUERY = "PATTERN SEQ(e a) WHERE skip_till_any_match"
CLAUSE = "ORDER BY ts MEASURES A.n AS n PATTERN (A) DEFINE A AS A.n > 0"
WRONG: list[Any] = [
    3, 2.5, True, b"x", [], (), {"ts": 1}, {"ts"}, ["ts", 3], pd.NaT, np.nan, timedelta(-1),
    object(), lambda: 1, lambda a, b: 1, np.array(["ts"]),
]  # fmt: skip
CALLS: dict[str, tuple[Callable[..., Any], str]] = {
    "match": (lambda events, **how: match(PATTERN, events, **how), "timestamp key delayThreshold"),
    "trace": (lambda events, **how: trace(PATTERN, events, **how), "timestamp key delayThreshold"),
    "whyNot": (lambda events, **how: whyNot(PATTERN, events, **how), "timestamp key"),
    "funnel": (
        lambda events, **how: funnel(PATTERN, events, **how),
        "timestamp key delayThreshold",
    ),
    "matchSase": (lambda events, **how: matchSase(QUERY, events, **how), "timestamp type"),
    "matchRecognize": (lambda events, **how: matchRecognize(events, CLAUSE, **how), "dialect"),
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_the_wrong_type(name: str, wrong: Any) -> None:
    """Whatever is given in place of a name, function or duration is refused, on rows and tables."""
    call, arguments = CALLS[name]
    for argument in arguments.split():
        for events in (ROWS, pa.Table.from_pylist(ROWS)):
            with pytest.raises(CepError) as caught:
                call(events, **{argument: wrong})
            assert caught.value.hint


def _functions() -> list[Any]:
    modules: list[ModuleType] = [pyflinkcep, testing, charts, local]
    found = {id(own): own for m in modules for own in (getattr(m, name) for name in m.__all__)}
    short = ("elements", "seq", "parse", "cepError")  # of one argument, or any number
    return [own for own in found.values() if inspect.isfunction(own) and own.__name__ not in short]


@pytest.mark.parametrize("function", _functions(), ids=lambda function: function.__name__)
def test_unknown_arguments(function: Any) -> None:
    """A misspelt argument is refused with the one that was meant."""
    last = list(inspect.signature(function).parameters)[-1]
    with pytest.raises(InvalidArgumentError, match=f"{function.__name__}: unknown argument") as hit:
        function(**{f"{last}{last[-1]}": None})
    assert hit.value.hint == f"did you mean {last!r}?"


@pytest.mark.parametrize(
    "wrong", [{"cores": "2"}, {"cores": True}, {"cores": 0}, {"settings": 3}, {"engine": 3}]
)
def test_settings_of_sessions(wrong: Any) -> None:
    """A session is not started with a setting of the wrong type."""
    with pytest.raises(InvalidArgumentError):
        local.session(**wrong)


def test_modes_of_funnels() -> None:
    """The modes of a funnel are one, or a list, tuple or set of them."""
    steps = {"view": "x = 1", "buy": "x = 2"}
    second = timedelta(seconds=1)

    assert str(windowFunnel(second, steps, {"strict_once"})) == str(
        windowFunnel(second, steps, ["strict_once"])
    )
    for wrong in ({"strict_onse"}, [["strict_once"]], 3, {"strict_once": 1}):
        with pytest.raises(InvalidArgumentError, match="windowFunnel: unknown mode"):
            windowFunnel(second, steps, wrong)


@pytest.mark.parametrize("dialect", ["flink", "standard"])
def test_seconds_as_milliseconds(dialect: Any) -> None:
    """Whole numbers that look like epoch seconds are warned of where a clause measures time."""
    rows = {"ts": [1_700_000_000, 1_700_000_060], "n": [1, 2]}
    clause = (
        "ORDER BY ts MEASURES A.n AS n PATTERN (A) WITHIN INTERVAL '5' MINUTE DEFINE A AS A.n > 0"
    )

    with pytest.warns(TimeUnitWarning, match="look like epoch seconds") as caught:
        assert len(matchRecognize(rows, clause, dialect=dialect)) == 2
    assert caught[0].filename == __file__


_EVENTS = pd.DataFrame({"id": [1, 2], "n": [0, 1], "type": ["a", "b"]})
_CALLS: dict[str, Callable[..., Any]] = {
    "match": lambda **given: match(Pattern.begin("a").where("n = 0"), _EVENTS, **given),
    "matchSase": lambda **given: matchSase("PATTERN SEQ(a x, b y) WITHIN 9", _EVENTS, **given),
    "matchRecognize": lambda **given: matchRecognize(
        _EVENTS, "ORDER BY id MEASURES A.n AS n PATTERN (A) DEFINE A AS A.n = 0", **given
    ),
}


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize("wrong", [pd.Series([1, 2]), np.array([1, 2]), _EVENTS, {"x"}, object()])
def test_values_that_cannot_be_compared(call: str, wrong: Any) -> None:
    """A Series, an array or any other object as a setting is refused by the setting's name."""
    for name, parameter in inspect.signature(getattr(pyflinkcep, call)).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            with pytest.raises(CepError, match=name):
                _CALLS[call](**{name: wrong})


@pytest.mark.parametrize("form", [_EVENTS, _EVENTS.to_dict("records")], ids=["table", "list"])
@pytest.mark.parametrize("wrong", [int, lambda event: event["zz"], lambda event: 1 / 0])
def test_functions_of_events_that_raise(form: Any, wrong: Any) -> None:
    """A function of the key, time or type that raises says which event, and what to write."""
    pattern = Pattern.begin("a").where("n = 0")
    for name, call in {
        "key": lambda: match(pattern, form, key=wrong),
        "timestamp": lambda: match(pattern, form, timestamp=wrong),
        "type": lambda: matchSase("PATTERN SEQ(a x, b y) WITHIN 9", form, type=wrong),
    }.items():
        with pytest.raises(
            CepError, match=rf"{name}: .* raised .*'id': 1.*\n\nHint: write {name}="
        ):
            call()
