# SPDX-License-Identifier: Apache-2.0
"""The ways to call ``select`` and ``flatSelect``, told apart without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from pyflinkcep import InvalidArgumentError, OutputTag
from pyflinkcep.functions import PatternSelectFunction
from pyflinkcep.spark.plan.calls import SelectCall

TAG = OutputTag("timeouts", "at bigint")


class Selects(PatternSelectFunction):
    """Returns a constant."""

    def select(self, pattern: Any) -> Any:
        return 1


def on_match(match: Any) -> Any:
    """Return a constant."""
    return 1


def on_timeout(match: Any, at: int) -> Any:
    """Return the timeout."""
    return at


@pytest.mark.parametrize(
    ("arguments", "keywords", "expected"),
    [
        ((on_match, "x int"), {}, (None, None, on_match, "x int")),
        ((on_match,), {"schema": "x int"}, (None, None, on_match, "x int")),
        ((), {"schema": "x int", "function": on_match}, (None, None, on_match, "x int")),
        ((TAG, on_timeout, on_match, "x int"), {}, (TAG, on_timeout, on_match, "x int")),
        (
            (TAG,),
            {"timeoutFunction": on_timeout, "function": on_match, "schema": "x int"},
            (TAG, on_timeout, on_match, "x int"),
        ),
        (
            (),
            {"outputTag": TAG, "timeoutFunction": on_timeout, "function": on_match, "schema": "x"},
            (TAG, on_timeout, on_match, "x"),
        ),
        ((on_match, int), {}, (None, None, on_match, int)),
    ],
)
def test_both_forms(arguments: Any, keywords: Any, expected: Any) -> None:
    """Arguments are taken by place or by name; the long form begins with a tag."""
    call = SelectCall.of("select", arguments, keywords)

    assert (call.tag, call.timeout, call.function, call.schema) == expected


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((), {}),
        ((on_match,), {}),
        ((on_match, "x int", StructType()), {}),
        ((on_match, "x int"), {"schema": "x int"}),
        ((on_match, "x int"), {"tag": TAG}),
        (("timeouts", on_timeout, on_match, "x int"), {}),
        ((TAG, on_timeout, on_match, "x int", 1), {}),
    ],
)
def test_other_forms(arguments: Any, keywords: Any) -> None:
    """Anything else is refused with both forms."""
    with pytest.raises(InvalidArgumentError, match=r"flatSelect takes \(function, schema\) or"):
        SelectCall.of("flatSelect", arguments, keywords)


@pytest.mark.parametrize("second", [on_match, Selects()])
@pytest.mark.parametrize("more", [(), ("x int",)])
def test_the_old_form(second: Any, more: Any) -> None:
    """Flink's old form with a timeout function is recognised, with or without a schema."""
    with pytest.raises(InvalidArgumentError, match="Flink's old form"):
        SelectCall.of("select", (on_timeout, second, *more), {})
