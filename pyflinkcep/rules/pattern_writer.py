# SPDX-License-Identifier: Apache-2.0
"""Writes patterns as documents of dynamic Flink CEP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import attrs

from pyflinkcep.conditions import (
    FUNCTION_CONDITIONS,
    BooleanConditions,
    ExpressionCondition,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
    SubtypeCondition,
)
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.pattern import AfterMatchSkipStrategy, Pattern, WithinType
from pyflinkcep.pattern.aftermatch import (
    NoSkipStrategy,
    SkipPastLastStrategy,
    SkipToElementStrategy,
    SkipToFirstStrategy,
    SkipToLastStrategy,
    SkipToNextStrategy,
)
from pyflinkcep.pattern.coercion import as_condition
from pyflinkcep.pattern.pattern import stages_of
from pyflinkcep.pattern.stage import QuantifierProperty, Stage
from pyflinkcep.rules.aviator import aviator_of_sql
from pyflinkcep.rules.pattern_reader import (
    COMBINED,
    FLINK_CONDITIONS,
    ORIGIN,
    UNITS_MS,
    Registry,
    registry_of,
)

Json = dict[str, Any]

_TYPES = {method: kind for kind, method in COMBINED.items()}
_SKIPS = {
    NoSkipStrategy: "NO_SKIP",
    SkipPastLastStrategy: "SKIP_PAST_LAST_EVENT",
    SkipToNextStrategy: "SKIP_TO_NEXT",
    SkipToFirstStrategy: "SKIP_TO_FIRST",
    SkipToLastStrategy: "SKIP_TO_LAST",
}
_ONCE = {
    "consumingStrategy": "SKIP_TILL_NEXT", "properties": ["SINGLE"], "times": None,
    "untilCondition": None,
}  # fmt: skip


def pattern_to_json(
    pattern: Pattern, conditions: Registry | None = None, name: str = "pattern"
) -> Json:
    """Return a pattern as a document; see ``Pattern.toJson``."""
    skip = pattern.getAfterMatchSkipStrategy()
    return _Writer(registry_of(conditions)).graph(stages_of(pattern), name, skip)


@attrs.frozen
class _Writer:
    conditions: Registry

    def graph(self, stages: Sequence[Stage], name: str, skip: AfterMatchSkipStrategy) -> Json:
        """Return the graph of some stages."""
        names = list(_names(stages))
        nodes = [self._node(stage, name) for stage, name in zip(stages, names, strict=True)]
        last = _windows(stages[-1])
        for stage, node in zip(stages[:-1], nodes, strict=False):
            if stage.windows:
                node["within"] = _windows(stage)
        if len(last) > 1:
            nodes[-1]["within"] = last[1:]
        return {
            "name": name,
            "type": "COMPOSITE",
            "version": 1,
            "quantifier": dict(_ONCE),
            "condition": None,
            "nodes": nodes,
            "edges": [
                {"source": source, "target": target,
                 "type": stage.quantifier.consumingStrategy.value}
                for source, target, stage in zip(names, names[1:], stages[1:], strict=False)
            ],
            "window": last[0] if last else None,
            "afterMatchStrategy": _skip(skip),
        }  # fmt: skip

    def _node(self, stage: Stage, name: str) -> Json:
        once = AfterMatchSkipStrategy.noSkip()
        if stage.combination is not None:
            made: Json = {
                "name": name,
                "type": _TYPES[stage.combination.method],
                "nodes": [
                    self.graph(part.inside, f"{name}.{number}", once)
                    for number, part in enumerate(stage.inside, 1)
                ],
                "condition": None,
            }
            if stage.combination.in_any_order:
                made["joinedBy"] = stage.combination.joinedBy.value
        elif stage.inside:
            made = self.graph(stage.inside, name, once)
        else:
            condition = None if stage.condition is None else self.condition(stage.condition, stage)
            made = {"name": name, "type": "ATOMIC", "condition": condition}
        return {**made, "quantifier": self._quantifier(stage)}

    def _quantifier(self, stage: Stage) -> Json:
        quantifier, times = stage.quantifier, stage.times
        inner = quantifier.innerConsumingStrategy.value
        until = None if stage.until is None else self.condition(stage.until, stage)
        made: Json = {
            "consumingStrategy": inner,
            "innerConsumingStrategy": inner,
            "properties": [p.value for p in QuantifierProperty if p in quantifier.properties],
            "times": None,
            "untilCondition": until,
        }
        if times is not None:
            gap = None if times.window_ms is None else _duration(times.window_ms)
            made["times"] = {"from": times.from_, "to": times.to, "windowTime": gap}
        return made

    # --- conditions

    def condition(self, condition: IterativeCondition, stage: Stage) -> Json:
        """Return a condition."""
        origin = vars(condition).get(ORIGIN) if hasattr(condition, "__dict__") else None
        if origin is not None:
            return dict(origin)
        if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
            nested = [self.condition(part, stage) for part in condition.nestedConditions]
            return {**_of_flink(type(condition).__name__), "nestedConditions": nested}
        if isinstance(condition, BooleanConditions):
            return {**_of_flink("BooleanConditions"), "args": [str(condition.value).lower()]}
        if isinstance(condition, MatchExpression):
            return {"type": "SQL", "expression": condition.text}
        if isinstance(condition, ExpressionCondition) and isinstance(condition.expression, str):
            said = aviator_of_sql(condition.text)
            kind = "SQL" if said is None else "AVIATOR"
            return {"type": kind, "expression": condition.text if said is None else said}
        return self._of_registry(condition, stage)

    def _of_registry(self, condition: IterativeCondition, stage: Stage) -> Json:
        if isinstance(condition, SubtypeCondition):
            for name, known in self.conditions.items():
                if known is condition.subtype:
                    return {**_of_flink("SubtypeCondition"), "subClassName": name}
        else:
            for name, known in self.conditions.items():
                if _returns(known, condition):
                    return {"type": "CLASS", "className": name}
        raise NotSupportedError(
            f"toJson: the condition {condition!r} of stage {stage.name!r} is Python, and no data",
            "write it as SQL, or pass conditions={name: a function that returns it}",
            stage=stage.name,
        )


def _returns(registered: Callable[..., Any], condition: IterativeCondition) -> bool:
    """Whether a function of a registry, without arguments, returns a condition."""
    try:
        made = as_condition(registered(), "The condition cannot be null.")
    except (TypeError, ValueError):
        return False
    if isinstance(made, FUNCTION_CONDITIONS) and isinstance(condition, FUNCTION_CONDITIONS):
        return made.function is condition.function
    return made == condition


def _of_flink(name: str) -> Json:
    return {"type": "CLASS", "className": FLINK_CONDITIONS + name}


def _names(stages: Sequence[Stage]) -> Iterator[str]:
    """Yield the names of stages; groups, which have none, get one."""
    taken = {stage.name for stage in stages if not stage.inside}
    numbered = (name for number in count(1) if (name := f"group {number}") not in taken)
    for stage in stages:
        yield next(numbered) if stage.inside else stage.name


def _windows(stage: Stage) -> list[Json]:
    """Return the windows set on a stage, that of the whole match first."""
    kinds = (WithinType.FIRST_AND_LAST, WithinType.PREVIOUS_AND_CURRENT)
    set_ = [kind for kind in kinds if kind in stage.windows]
    return [{"type": kind.value, "time": _duration(stage.windows[kind])} for kind in set_]


def _duration(milliseconds: int) -> Json:
    size, unit = max((ms, unit) for unit, ms in UNITS_MS.items() if milliseconds % ms == 0)
    return {"unit": unit, "size": milliseconds // size}


def _skip(skip: AfterMatchSkipStrategy) -> Json:
    made: Json = {"type": _SKIPS[type(skip)], "patternName": skip.getPatternName()}
    if isinstance(skip, SkipToElementStrategy) and skip.shouldThrowException:
        made["throwExceptionOnMiss"] = True
    return made
