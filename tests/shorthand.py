# SPDX-License-Identifier: Apache-2.0
"""
Patterns and inputs in one line each, so that a test shows the rule and little else.

Events are strings, ``a1`` being an event named ``a``. A stage ``a`` takes events named ``a``;
``x[b|c]`` takes events named ``b`` or ``c``, ``x[*]`` all, ``x[]`` none.

=====================================  ===================================================
``a -> b``, ``a >> b``, ``a ->> b``    followedBy, next, followedByAny
``a !-> b``, ``a !>> b``               notFollowedBy, notNext
``(a -> b)``                           a group
``(a | b -> c)``                       oneOf; of one pattern it is ``(| a)``
``(a & b)`` ``(a &>> b)`` ``(a &->> b)``  allOf, joined by followedBy, next, followedByAny
``+`` ``{2}`` ``{2,4}`` ``{2,}``       oneOrMore, times, times, timesOrMore
``{2}<5>``                             with a window of 5 ms as the quantifier's argument
``?`` ``:greedy`` ``:any`` ``:cons``   optional, greedy, allowCombinations, consecutive
``until[u]``                           until an event named ``u``
``within[10]`` ``gap[10]``             within, by FIRST_AND_LAST and PREVIOUS_AND_CURRENT
=====================================  ===================================================

What follows a stage is called on it in the order written.
An input is a line of events with times 1, 2, 3 … or, written ``a1@5``, with their own;
``@9`` alone lets time pass to 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import attrs

from pyflinkcep import AfterMatchSkipStrategy, Pattern, SimpleCondition, WithinType
from pyflinkcep.testing import NFATestHarness

_TOKENS = re.compile(
    r"\s*(?:(?P<arrow>!->|!>>|->>|->|>>)|(?P<open>\()|(?P<close>\))"
    r"|(?P<bar>\||&->>|&>>|&)"
    r"|(?P<times>\{\d+(?:,\d*)?\}|\+)(?:<(?P<window>-?\d+)>)?"
    r"|(?P<word>[?]|:cons|:any|:greedy)"
    r"|(?P<call>until|within|gap)\[(?P<argument>[^]]*)\]"
    r"|(?P<name>\w+)(?:\[(?P<condition>[^]]*)\])?)"
)
_ARROWS = {
    "->": "followedBy",
    ">>": "next",
    "->>": "followedByAny",
    "!->": "notFollowedBy",
    "!>>": "notNext",
}
_WORDS = {"?": "optional", ":cons": "consecutive", ":any": "allowCombinations", ":greedy": "greedy"}


@attrs.frozen
class Named(SimpleCondition):
    """The event has one of these names."""

    names: tuple[str, ...]

    def filter(self, value: str, ctx: Any = None) -> bool:
        """Compare the letters of the event."""
        return value.rstrip("0123456789") in self.names

    def __repr__(self) -> str:
        return "|".join(self.names)


def ms(milliseconds: int) -> timedelta:
    """Return a duration."""
    return timedelta(milliseconds=milliseconds)


def parse(text: str, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
    """Return the pattern of a line."""
    tokens = list(_tokenize(text))
    pattern = _sequence(tokens, skip)
    assert not tokens, f"{text!r}: {tokens} left over"
    return pattern


def _tokenize(text: str) -> Iterator[dict[str, str]]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        token = _TOKENS.match(text, at)
        assert token is not None, f"{text!r}: cannot read {text[at:]!r}"
        yield {kind: value for kind, value in token.groupdict().items() if value is not None}
        at = token.end()


def _sequence(tokens: list[dict[str, str]], skip: AfterMatchSkipStrategy | None) -> Pattern:
    pattern = _stage(Pattern, "begin", tokens, skip)
    while tokens and "arrow" in tokens[0]:
        pattern = _stage(pattern, _ARROWS[tokens.pop(0)["arrow"]], tokens, None)
    return pattern


def _stage(
    pattern: Any, method: str, tokens: list[dict[str, str]], skip: AfterMatchSkipStrategy | None
) -> Pattern:
    token = tokens.pop(0)
    what = _group(tokens) if "open" in token else token["name"]
    stage = getattr(pattern, method)(what, *([] if skip is None else [skip]))
    names = token.get("condition", token.get("name", "*"))
    if names != "*":
        stage = stage.where(Named(tuple(names.split("|"))))
    while tokens and tokens[0].keys() & {"times", "word", "call"}:
        stage = _modified(stage, tokens.pop(0))
    assert isinstance(stage, Pattern)
    return stage


def _group(tokens: list[dict[str, str]]) -> Pattern:
    bar = tokens.pop(0)["bar"] if "bar" in tokens[0] else ""
    parts = [_sequence(tokens, None)]
    while "bar" in tokens[0]:
        bar = tokens.pop(0)["bar"]
        parts.append(_sequence(tokens, None))
    tokens.pop(0)
    match bar:
        case "":
            return parts[0]
        case "|":
            return Pattern.oneOf(*parts)
        case "&>>":
            return Pattern.allOf(*parts, joinedBy="next")
        case "&->>":
            return Pattern.allOf(*parts, joinedBy="followedByAny")
    return Pattern.allOf(*parts)


def _modified(stage: Pattern, token: dict[str, str]) -> Pattern:
    window = [ms(int(token["window"]))] if "window" in token else []
    match token:
        case {"word": word}:
            changed = getattr(stage, _WORDS[word])()
        case {"times": "+"}:
            changed = stage.oneOrMore(*window)
        case {"times": times}:
            numbers = times.strip("{}").split(",")
            if numbers[-1] == "":
                changed = stage.timesOrMore(int(numbers[0]), *window)
            else:
                changed = stage.times(*map(int, numbers), *window)
        case {"call": "until", "argument": names}:
            changed = stage.until(Named(tuple(names.split("|"))))
        case {"call": call, "argument": length}:
            kinds = {"within": WithinType.FIRST_AND_LAST, "gap": WithinType.PREVIOUS_AND_CURRENT}
            changed = stage.within(ms(int(length)), kinds[call])
    assert isinstance(changed, Pattern)
    return changed


@attrs.frozen
class Run:
    """What a pattern gave for an input; ``{a1 b1}`` is a match, ``{a1}@11`` a timeout at 11."""

    matches: list[str]
    emitted: list[str]
    timeouts: list[str]
    harness: NFATestHarness


def events(text: str) -> Iterator[tuple[str, int]]:
    """Return (event, time) of a line; the event is empty where only time passes."""
    for position, word in enumerate(text.split(), 1):
        label, _, time = word.partition("@")
        yield label, int(time) if time else position


def run(
    pattern: Pattern | str,
    text: str,
    skip: AfterMatchSkipStrategy | None = None,
    timeouts: bool = True,
) -> Run:
    """Feed a line of events to a pattern, as an operator with one key would."""
    harness = NFATestHarness(
        parse(pattern, skip) if isinstance(pattern, str) else pattern, timeouts
    )
    emitted, expired, flat = [], [], []
    for label, time in events(text):
        found, late = harness.advanceTime(time)
        expired += [f"{braces(match)}@{deadline}" for match, deadline in late]
        found += harness.process(label, time) if label else []
        flat += [braces(match) for match in found]
        if found:
            emitted.append(f"{label or time}: {' '.join(map(braces, found))}")
    return Run(flat, emitted, expired, harness)


def matches(pattern: Pattern | str, text: str, skip: AfterMatchSkipStrategy | None = None) -> str:
    """Return the matches of an input in Flink's order, as one line."""
    return " ".join(run(pattern, text, skip).matches)


def braces(match: Any) -> str:
    """Return a match as ``{a1 b1 c}``, stage by stage."""
    return "{" + " ".join(event for stage in match.values() for event in stage) + "}"
