# SPDX-License-Identifier: Apache-2.0
"""Patterns as lists of stages, with the methods of ``Pattern`` as keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pyflinkcep.errors import did_you_mean
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.pattern import AfterMatchSkipStrategy, Pattern, WithinType
from pyflinkcep.pattern.display import SHOWN
from pyflinkcep.rules.document import Part
from pyflinkcep.rules.pattern_reader import COMBINED, told_at

_APPENDING = tuple(shown.method for shown in SHOWN.values())
_COUNTS = ("oneOrMore", "times", "timesOrMore")
_FLAGS = ("consecutive", "allowCombinations", "greedy", "optional")
_KEYS = ("begin", *_APPENDING, "where", *_COUNTS, "until", *_FLAGS)
_SKIPS = ("noSkip", "skipToNext", "skipPastLastEvent")
_SKIPS_TO = ("skipToFirst", "skipToLast")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LENGTH = re.compile(r"(?:\d+(?:ms|[smhd]))+")


def listed_pattern(stages: Part, within: Part, gap: Part, skip: Part) -> Pattern:
    """Return the pattern of a list of stages."""
    strategy = _skip(skip)
    pattern = _pattern(stages, strategy)
    for window, kind in (
        (within, WithinType.FIRST_AND_LAST),
        (gap, WithinType.PREVIOUS_AND_CURRENT),
    ):
        if not window.is_none:
            with told_at(window):
                pattern = pattern.within(length(window), kind)
    return pattern


def length(part: Part) -> timedelta:
    """
    Return a length of time.

    Examples
    --------
    >>> length(Part("1h30m"))
    datetime.timedelta(seconds=5400)
    """
    text = part.text()
    if not _LENGTH.fullmatch(text):
        raise part.refused(
            f"expected a length of time, got {text!r}", "write a number and ms, s, m, h or d: 90s"
        )
    found = re.findall(r"(\d+)([a-z]+)", text)
    try:
        return timedelta(milliseconds=sum(int(size) * _UNITS_MS[unit] for size, unit in found))
    except OverflowError:
        raise part.refused(f"{text!r} is too long", "write a shorter time") from None


def check_keys(part: Part, known: tuple[str, ...]) -> Mapping[str, Any]:
    """Return an object, whose keys are among some."""
    given = part.mapping()
    for key in given:
        if key not in known:
            raise part[key].refused(
                f"the key {key!r} is not known",
                did_you_mean(f"{key}", known, f"the keys are {', '.join(known)}"),
            )
    return given


def _pattern(stages: Part, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
    made: Any = Pattern
    for number, stage in enumerate(stages.items()):
        given = check_keys(stage, _KEYS)
        methods = ("begin",) if number == 0 else _APPENDING
        named = [method for method in methods if method in given]
        if len(named) != 1 or (number and "begin" in given):
            wanted = "begin" if number == 0 else f"one of {', '.join(_APPENDING)}"
            raise stage.refused(f"expected a stage with {wanted}", "write its name after it")
        what = _named(stage[named[0]])
        with told_at(stage):
            made = getattr(made, named[0])(what, *([] if number or skip is None else [skip]))
        made = _modified(made, stage)
    if made is Pattern:
        raise stages.refused("expected at least one stage", "write - begin: name")
    return made  # type: ignore[no-any-return]


def _named(part: Part) -> str | Pattern:
    """Return the name of a stage, or the pattern of a group."""
    if isinstance(part.value, str):
        return part.text()
    if not isinstance(part.value, Mapping):
        return _pattern(part)
    methods = tuple(COMBINED.values())
    given = check_keys(part, (*methods, "joinedBy"))
    named = [method for method in methods if method in given]
    if len(named) != 1:
        raise part.refused("expected oneOf or allOf", "write {oneOf: [[stages], [stages]]}")
    parts = [_pattern(inner) for inner in part[named[0]].items()]
    joined = {} if part["joinedBy"].is_none else {"joinedBy": part["joinedBy"].text()}
    with told_at(part):
        return getattr(Pattern, named[0])(*parts, **joined)  # type: ignore[no-any-return]


def _modified(pattern: Any, stage: Part) -> Pattern:
    """Return a pattern with what its last stage says."""
    where = stage["where"]
    if not where.is_none:
        pattern = _with_condition(pattern, "where", where)
    counts = [name for name in _COUNTS if not stage[name].is_none]
    for name in counts:
        with told_at(stage[name]):
            pattern = getattr(pattern, name)(*_numbers(stage[name], name))
    if not stage["until"].is_none:
        pattern = _with_condition(pattern, "until", stage["until"])
    for name in _FLAGS:
        if _is_set(stage[name]):
            with told_at(stage[name]):
                pattern = getattr(pattern, name)()
    return pattern  # type: ignore[no-any-return]


def _with_condition(pattern: Any, method: str, part: Part) -> Pattern:
    text = part.text()
    with told_at(part):
        parsed(text)
        return getattr(pattern, method)(text)  # type: ignore[no-any-return]


def _numbers(part: Part, method: str) -> list[int]:
    if method == "oneOrMore":
        if part.value is not True:
            raise part.refused(f"expected true, got {part.value!r}", "write oneOrMore: true")
        return []
    if isinstance(part.value, list) and method == "times":
        found = [number.whole() for number in part.items()]
        if len(found) != 2:
            raise part.refused(f"expected two numbers, got {found}", "write times: [2, 4]")
        return found
    return [part.whole()]


def _is_set(part: Part) -> bool:
    if part.value not in (None, True, False):
        raise part.refused(f"expected true or false, got {part.value!r}", "write true")
    return bool(part.value)


def _skip(part: Part) -> AfterMatchSkipStrategy | None:
    if part.is_none:
        return None
    if isinstance(part.value, str):
        made: AfterMatchSkipStrategy = getattr(AfterMatchSkipStrategy, part.choice(_SKIPS))()
        return made
    given = check_keys(part, _SKIPS_TO)
    if len(given) != 1:
        raise part.refused("expected one strategy", "write {skipToFirst: stage}")
    name = next(iter(given))
    to: AfterMatchSkipStrategy = getattr(AfterMatchSkipStrategy, name)(part[name].text())
    return to
