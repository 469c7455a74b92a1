# SPDX-License-Identifier: Apache-2.0
"""Right and wrong uses of matches, for type checkers; a wrong one is marked with the error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import StructType

from pyflinkcep import (
    CepDataFrame,
    OutputTag,
    PatternFlatSelectFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternStream,
    PatternTimeoutFunction,
)
from pyflinkcep.functions import Collector, Match, ProcessContext


class Users(PatternSelectFunction):
    """Returns the first user."""

    def select(self, pattern: Match) -> object:
        return pattern["a"][0].user


def users(match: dict[str, list[Row]]) -> tuple[Any, ...]:
    """Return the first user."""
    return (match["a"][0].user,)


def loosely(match: Mapping[str, Sequence[Any]]) -> str:
    """Return the first user, of any mapping."""
    return str(match["a"][0].user)


def processed(match: dict[str, list[Row]], ctx: ProcessContext, out: Collector) -> None:
    """Collect the first user."""
    out.collect((match["a"][0].user, ctx.timestamp()))


def right(
    stream: PatternStream,
    timeout: PatternTimeoutFunction,
    flat: PatternFlatSelectFunction,
    process: PatternProcessFunction,
    tag: OutputTag,
) -> list[CepDataFrame]:
    """Every way that is documented."""
    return [
        stream.select(lambda match: match["a"][0].user, "user string"),
        stream.select(function=users, schema=StructType()),
        stream.select(Users(), "user string"),
        stream.select(loosely, "user string"),
        stream.select(tag, timeout, Users(), "user string"),
        stream.select(tag, lambda match, at: (at,), users, "user string"),
        stream.flatSelect(lambda match, out: out.collect(match["a"][0]), "user string"),
        stream.flatSelect(flat, StructType()),
        stream.flatSelect(tag, lambda match, at, out: out.collect((at,)), flat, "user string"),
        stream.process(processed, "user string, at bigint"),
        stream.process(process, StructType()),
    ]


def wrong(stream: PatternStream, tag: OutputTag) -> None:
    """What a type checker refuses."""
    stream.select(42)  # type: ignore[call-overload]
    stream.select(users)  # type: ignore[call-overload]
    stream.select(users, int)  # type: ignore[call-overload]
    stream.select("user string", users)  # type: ignore[call-overload]
    stream.select(lambda match, out: None, "user string")  # type: ignore[arg-type, misc]
    stream.select(tag, users, "user string")  # type: ignore[call-overload]
    stream.select(PatternProcessFunction, "user string")  # type: ignore[arg-type]
    stream.flatSelect(users, "user string")  # type: ignore[arg-type]
    stream.process(users, "user string")  # type: ignore[arg-type]
    stream.process(processed, 42)  # type: ignore[arg-type]
    stream.sideOutputLateData("late")  # type: ignore[arg-type]
