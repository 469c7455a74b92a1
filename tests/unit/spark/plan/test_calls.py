# SPDX-License-Identifier: Apache-2.0
"""The call forms of ``select`` and ``flatSelect``."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep import OutputTag
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.spark.plan.settings import SelectCall

TAG = OutputTag("late", "n int")


def one(_match: Any) -> tuple[int]:
    """Return a row."""
    return (1,)


def late(_match: Any, _at: int) -> tuple[int]:
    """Return a row of a timeout."""
    return (2,)


SHORT: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((one, "n int"), {}),
    ((one,), {"schema": "n int"}),
    ((), {"schema": "n int", "function": one}),
]
LONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((TAG, late, one, "n int"), {}),
    ((TAG, late, one), {"schema": "n int"}),
    ((TAG, late), {"function": one, "schema": "n int"}),
    ((one, "n int"), {"outputTag": TAG, "timeoutFunction": late}),
    ((one,), {"schema": "n int", "outputTag": TAG, "timeoutFunction": late}),
    ((), {"function": one, "schema": "n int", "outputTag": TAG, "timeoutFunction": late}),
]
WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((one,), {}, "takes (function, schema)"),
    (("n int", one), {}, "takes (function, schema)"),
    ((late, one), {}, "is Flink's old form"),
    ((late, one, "n int"), {}, "is Flink's old form"),
    ((one, "n int"), {"outputTag": TAG}, "takes (function, schema)"),
    ((one, "n int"), {"outputTag": "late", "timeoutFunction": late}, "takes (function, schema)"),
    ((one, "n int"), {"schema": "n int"}, "takes (function, schema)"),
    ((one, "n int"), {"outputtag": TAG}, "no argument 'outputtag'"),
]


@pytest.mark.parametrize(("arguments", "keywords"), SHORT)
def test_the_short_form(arguments: Any, keywords: Any) -> None:
    """A function and a schema, by position or by name."""
    assert SelectCall.of("select", arguments, keywords) == SelectCall(None, None, one, "n int")


@pytest.mark.parametrize(("arguments", "keywords"), LONG)
def test_the_long_form(arguments: Any, keywords: Any) -> None:
    """With a tag and a timeout function: first, as in Flink, or by name after the others."""
    assert SelectCall.of("select", arguments, keywords) == SelectCall(TAG, late, one, "n int")


@pytest.mark.parametrize(("arguments", "keywords", "message"), WRONG)
def test_other_forms(arguments: Any, keywords: Any, message: str) -> None:
    """Anything else is refused; only two functions first are Flink's old form."""
    with pytest.raises(InvalidArgumentError) as caught:
        SelectCall.of("select", arguments, keywords)

    assert message in caught.value.message
    assert caught.value.hint


def test_a_misspelt_argument_names_the_nearest() -> None:
    """An argument that there is not is refused by its name, before anything else is looked at."""
    with pytest.raises(InvalidArgumentError, match="no argument 'schemma'") as caught:
        SelectCall.of("select", (one,), {"schemma": "n int"})
    assert caught.value.hint == "did you mean 'schema'?"
