# SPDX-License-Identifier: Apache-2.0
"""
Recorded answers of Apache Flink CEP 2.3.0, and what is needed to hold an engine to them.

A case is a JSON object: ``pattern`` is a list of stages, each ``{op, name or group, mods}`` with
``mods`` the builder calls in order; ``skip`` the after-match skip strategy; ``events`` (one key,
in order) or ``items`` (keys, disorder and watermarks ``{"wm": ms}``) the input; ``expect`` the
answer. In matches an event is named by its id.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from pyflinkcep import AfterMatchSkipStrategy, IterativeCondition, Pattern, WithinType
from pyflinkcep.errors import (
    CepRuntimeError,
    InvalidArgumentError,
    MalformedPatternException,
    NotSupportedError,
)

Case = dict[str, Any]
Spec = list[Any]
ConditionFactory = Callable[[Spec], Any]

DATA = Path(__file__).parent / "data"
NFA_FILES = ("flink_itcases", "nfa_cases")
OPERATOR_FILES = ("operator_cases",)


@cache
def load(file: str) -> tuple[Case, ...]:
    """Return the cases of a data file, named without its suffix."""
    with gzip.open(DATA / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def chunks(files: Iterable[str], size: int) -> list[tuple[str, tuple[Case, ...]]]:
    """Return (label, cases), so many cases at a time: one test each, and not thousands."""
    found = []
    for file in files:
        cases = load(file)
        for at in range(0, len(cases), size):
            part = cases[at : at + size]
            found.append((f"{file}[{at}:{at + len(part)}]", part))
    return found


# --- events and conditions


@attrs.frozen
class Event:
    """An event of a case."""

    id: int
    name: str
    price: float


@attrs.frozen
class SubEvent(Event):
    """What ``subtype`` stages ask for."""


def make_event(row: dict[str, Any]) -> Event:
    """Return the event of an input row."""
    kind = SubEvent if row.get("sub") else Event
    return kind(row["id"], row["name"], row.get("price", 0))


_ONE_EVENT: dict[str, Callable[..., bool]] = {
    "true": lambda e: True,
    "false": lambda e: False,
    "bits": lambda e, bits: e.id <= len(bits) and bits[e.id - 1] == "1",
    "name": lambda e, name: e.name == name,
    "ge": lambda e, price: e.price >= price,
    "lt": lambda e, price: e.price < price,
}
_EARLIER_EVENTS: dict[str, Callable[..., bool]] = {
    "sumLt": lambda e, prices, limit: e.price + sum(prices) < limit,
    "countLt": lambda e, prices, limit: len(prices) < limit,
    "gtLast": lambda e, prices: not prices or e.price > prices[-1],
    "gtAvg": lambda e, prices: not prices or e.price > sum(prices) / len(prices),
    "eqFirst": lambda e, prices: bool(prices) and e.price == prices[0],
}
_CONNECTIVES: dict[str, Callable[[Iterable[bool]], bool]] = {
    "and": all,
    "or": any,
    "not": lambda parts: not all(parts),
}


def is_iterative(spec: Spec) -> bool:
    """Whether a condition looks at the partial match."""
    if spec[0] in _CONNECTIVES:
        return any(is_iterative(part) for part in spec[1:])
    return spec[0] in _EARLIER_EVENTS


def holds(spec: Spec, event: Any, ctx: Any = None) -> bool:
    """Evaluate a condition; `ctx` is needed where it is iterative."""
    operator, *arguments = spec
    if operator in _CONNECTIVES:
        return _CONNECTIVES[operator](holds(part, event, ctx) for part in arguments)
    if operator in _EARLIER_EVENTS:
        stage, *rest = arguments
        prices = [earlier.price for earlier in ctx.getEventsForPattern(stage)]
        return _EARLIER_EVENTS[operator](event, prices, *rest)
    return _ONE_EVENT[operator](event, *arguments)


@attrs.frozen(eq=False)
class SpecCondition(IterativeCondition):
    """An iterative condition of a case."""

    spec: Spec

    def filter(self, value: Any, ctx: Any) -> bool:
        """Evaluate it."""
        return holds(self.spec, value, ctx)


def python_condition(spec: Spec) -> Any:
    """Return a plain function where one event is enough, an IterativeCondition elsewhere."""
    return SpecCondition(spec) if is_iterative(spec) else lambda event: holds(spec, event)


# --- patterns


def build_pattern(case: Case, condition: ConditionFactory = python_condition) -> Pattern:
    """Return the pattern of a case; `condition` makes whatever ``where`` is to be given."""
    return _build(case["pattern"], condition, _skip_strategy(case["skip"]))


def _skip_strategy(spec: dict[str, Any] | None) -> AfterMatchSkipStrategy | None:
    if spec is None:
        return None
    words = spec["type"].lower().split("_")
    factory = getattr(AfterMatchSkipStrategy, words[0] + "".join(map(str.title, words[1:])))
    strategy: Any = factory(spec["name"]) if "name" in spec else factory()
    made: AfterMatchSkipStrategy = (
        strategy.throwExceptionOnMiss() if spec.get("throwOnMiss") else strategy
    )
    return made


def _build(
    stages: Sequence[dict[str, Any]],
    condition: ConditionFactory,
    skip: AfterMatchSkipStrategy | None = None,
) -> Pattern:
    pattern: Any = Pattern
    for stage in stages:
        what = _build(stage["group"], condition) if "group" in stage else stage["name"]
        arguments = [what] if stage["op"] != "begin" or skip is None else [what, skip]
        pattern = getattr(pattern, stage["op"])(*arguments)
        for method, *arguments in stage.get("mods", ()):
            pattern = _call(pattern, method, arguments, condition)
    assert isinstance(pattern, Pattern)
    return pattern


def _call(pattern: Any, method: str, arguments: list[Any], condition: ConditionFactory) -> Any:
    counts = {"oneOrMore": 0, "timesOrMore": 1, "times": 1, "timesRange": 2}.get(method)
    if method in ("where", "or", "until"):
        arguments = [condition(arguments[0])]
    elif method == "subtype":
        arguments = [SubEvent]
    elif method == "within":
        arguments = [_ms(arguments[0]), *(WithinType[name] for name in arguments[1:])]
    elif counts is not None:
        arguments = arguments[:counts] + [_ms(window) for window in arguments[counts:]]
    name = {"or": "or_", "timesRange": "times"}.get(method, method)
    return getattr(pattern, name)(*arguments)


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


# --- answers


def match_ids(match: Any) -> list[list[Any]]:
    """Return a match as the data files write it: ``[[stage, id, id], ...]``."""
    return [[stage, *(event.id for event in events)] for stage, events in match.items()]


def by_key(rows: Iterable[Sequence[Any]]) -> dict[Any, list[Any]]:
    """Group (key, ...) rows, since only the order within a key is part of the answer."""
    groups: dict[Any, list[Any]] = {}
    for key, *rest in rows:
        groups.setdefault(key, []).append(rest)
    return groups


def expected_rows(case: Case, kind: str) -> dict[Any, list[Any]]:
    """Return an operator case's ``match`` or ``timeout`` as (ts, ids), or ``late`` as (id), by key."""
    rows = [row for row in case["expect"]["out"] if row["kind"] == kind]
    keyed = case["keyed"]
    return by_key([row["key"] if keyed else None, *_payload(row)] for row in rows)


def _payload(row: dict[str, Any]) -> list[Any]:
    return [row["id"]] if row["kind"] == "late" else [row["ts"], row["match"]]


_ERRORS = {
    "MalformedPatternException": MalformedPatternException,
    "IllegalArgumentException": InvalidArgumentError,
    "UnsupportedOperationException": NotSupportedError,
    "FlinkRuntimeException": CepRuntimeError,
}


def error_difference(raised: BaseException | None, expected: dict[str, str] | None) -> str | None:
    """Return how an error differs from Flink's in type or message; None when it does not."""
    if expected is None:
        return None if raised is None else f"raised {type(raised).__name__}: {raised}"
    if raised is None:
        return f"no error, expected {expected['type']}: {expected['message']}"
    if not isinstance(raised, _ERRORS[expected["type"]]):
        return f"raised {type(raised).__name__}, expected {expected['type']}"
    message = expected["message"]
    if isinstance(raised, CepRuntimeError):
        message = message.split("{")[0]  # a map of Java's after it
    text = str(raised)
    return None if text.startswith(message) else f"message {text!r}, expected {message!r}"


def difference(name: str, actual: Any, expected: Any) -> str | None:
    """Return how two answers differ; None when they are equal."""
    return None if actual == expected else f"{name} {actual!r}, expected {expected!r}"
