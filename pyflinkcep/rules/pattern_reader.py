# SPDX-License-Identifier: Apache-2.0
"""Reads patterns from documents of dynamic Flink CEP; nothing in them is evaluated as code."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import reduce
from typing import Any

import attrs

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
    SubtypeCondition,
)
from pyflinkcep.errors import CepError, InvalidArgumentError
from pyflinkcep.pattern import AfterMatchSkipStrategy, Pattern, WithinType
from pyflinkcep.pattern.aftermatch import SkipToElementStrategy
from pyflinkcep.pattern.coercion import Condition, as_condition
from pyflinkcep.pattern.display import SHOWN
from pyflinkcep.rules.aviator import sql_of_aviator
from pyflinkcep.rules.document import DocumentError, Part

Registry = Mapping[str, Callable[..., Any]]
"""The classes that documents name: functions of their ``args`` that return conditions."""

FLINK_CONDITIONS = "org.apache.flink.cep.pattern.conditions."
UNITS_MS = {"MILLISECONDS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000,
            "DAYS": 86_400_000}  # fmt: skip
SKIPS: dict[str, Callable[..., AfterMatchSkipStrategy]] = {
    "NO_SKIP": AfterMatchSkipStrategy.noSkip,
    "SKIP_PAST_LAST_EVENT": AfterMatchSkipStrategy.skipPastLastEvent,
    "SKIP_TO_NEXT": AfterMatchSkipStrategy.skipToNext,
    "SKIP_TO_FIRST": AfterMatchSkipStrategy.skipToFirst,
    "SKIP_TO_LAST": AfterMatchSkipStrategy.skipToLast,
}
COMBINED = {"ONE_OF": "oneOf", "ALL_OF": "allOf"}
"""The types of nodes that combine several patterns, an addition to Flink's."""

_METHODS = {strategy.value: shown.method for strategy, shown in SHOWN.items()}
ORIGIN = "_class_in_document"
"""The attribute of a condition that keeps the class which a document named."""

_BETWEEN = {"STRICT": "consecutive", "SKIP_TILL_ANY": "allowCombinations", "SKIP_TILL_NEXT": ""}
_PROPERTIES = ("SINGLE", "LOOPING", "TIMES", "OPTIONAL", "GREEDY")
_MOST_DEPTH = 50


def pattern_from_json(
    document: Mapping[str, Any] | str, conditions: Registry | None = None
) -> Pattern:
    """Return the pattern of a document; see ``Pattern.fromJson``."""
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except (ValueError, RecursionError) as cause:
            raise DocumentError(
                (), f"no JSON: {cause}", "pass a dict, or the text of one"
            ) from None
    return pattern_of(Part(document), registry_of(conditions))


def registry_of(conditions: object) -> Registry:
    """Return a registry that was given, or an empty one."""
    if conditions is not None and not isinstance(conditions, Mapping):
        raise InvalidArgumentError(
            f"conditions: expected a dict of functions by name, got {conditions!r}",
            "write {'demo.AtLeast': lambda least: f'price >= {least}'}",
        )
    return conditions or {}


def pattern_of(document: Part, conditions: Registry) -> Pattern:
    """Return the pattern of a part of a larger document."""
    return _Reader(conditions).graph(document, is_outermost=True)


@contextmanager
def told_at(part: Part) -> Iterator[None]:
    """Give errors of what is built their place in the document."""
    try:
        yield
    except DocumentError:
        raise
    except CepError as cause:
        raise part.refused(cause.message, cause.hint) from cause


@attrs.frozen
class _Reader:
    conditions: Registry
    names: set[str] = attrs.field(factory=set)

    def graph(self, part: Part, *, is_outermost: bool = False) -> Pattern:
        """Return the pattern of a graph."""
        if len(part.path) > 2 * _MOST_DEPTH:
            raise part.refused("too many groups inside of groups", "write fewer")
        skip: AfterMatchSkipStrategy = AfterMatchSkipStrategy.noSkip()
        if is_outermost:
            spelled = ("afterMatchStrategy", "afterMatchSkipStrategy")
            given = [part[name] for name in spelled if not part[name].is_none]
            skip = self._skip(given[0]) if given else skip
        made: Any = Pattern
        for number, (node, edge) in enumerate(_chain(part)):
            made = self._appended(made, node, edge, skip if number == 0 else None)
        pattern = _within(made, part["window"])
        if is_outermost:
            self._check_skip(skip, part)
        return pattern

    def _appended(
        self, before: Any, node: Part, edge: Part | None, skip: AfterMatchSkipStrategy | None
    ) -> Pattern:
        method = "begin" if edge is None else _METHODS[edge["type"].choice(_METHODS)]
        what = self._named(node)
        with told_at(node if edge is None else edge):
            made = getattr(before, method)(what, *([] if skip is None else [skip]))
        condition = node["condition"]
        if not condition.is_none:
            if isinstance(what, Pattern):
                raise condition.refused(
                    "a group has no condition of its own", "put it on a node of the group"
                )
            made = made.where(self.condition(condition, made.getName()))
        made = self._repeated(made, node["quantifier"])
        return reduce(_within, node["within"].items(), made)

    def _named(self, node: Part) -> str | Pattern:
        """Return the name of a single node, or the pattern of a group."""
        kind = node["type"]
        if kind.is_none:
            return self._single(node) if node["nodes"].is_none else self.graph(node)
        match kind.choice(("ATOMIC", "COMPOSITE", *COMBINED)):
            case "ATOMIC":
                return self._single(node)
            case "COMPOSITE":
                return self.graph(node)
            case combined:
                parts = [self.graph(inner) for inner in node["nodes"].items()]
                joined = node["joinedBy"]
                how = {}
                if combined == "ALL_OF" and not joined.is_none:
                    how = {"joinedBy": _METHODS[joined.choice(_METHODS)]}
                with told_at(node):
                    made: Pattern = getattr(Pattern, COMBINED[combined])(*parts, **how)
                    return made

    def _single(self, node: Part) -> str:
        name = node["name"].text()
        if name in self.names:
            raise node["name"].refused(
                f"{name!r} is the name of another node too", "give each node its own name"
            )
        self.names.add(name)
        return name

    # --- how often

    def _repeated(self, pattern: Pattern, quantifier: Part) -> Pattern:
        if quantifier.is_none:
            return pattern
        given = [quantifier[name] for name in ("properties", "details")]
        names = next((part for part in given if not part.is_none), given[0])
        properties = [name.choice(_PROPERTIES) for name in names.items()]
        kinds = {"SINGLE", "LOOPING", "TIMES"} & set(properties)
        if len(kinds) > 1:
            raise names.refused(
                f"{' and '.join(sorted(kinds))} at one time", "write one of SINGLE, LOOPING, TIMES"
            )
        with told_at(quantifier):
            if kinds - {"SINGLE"}:
                pattern = _times(pattern, quantifier["times"], kinds.pop())
                inner = quantifier["innerConsumingStrategy"]
                inner = quantifier["consumingStrategy"] if inner.is_none else inner
                between = "" if inner.is_none else _BETWEEN[inner.choice(_BETWEEN)]
                pattern = getattr(pattern, between)() if between else pattern
            if "GREEDY" in properties:
                pattern = pattern.greedy()
            if "OPTIONAL" in properties:
                pattern = pattern.optional()
            until = quantifier["untilCondition"]
            return (
                pattern
                if until.is_none
                else pattern.until(self.condition(until, pattern.getName()))
            )

    # --- conditions

    def condition(self, part: Part, stage: str) -> IterativeCondition:
        """Return a condition of a stage."""
        kind = part["type"].choice(("AVIATOR", "CLASS", "SQL", "GROOVY"))
        if kind == "GROOVY":
            raise part["type"].refused(
                "GROOVY is not read: it is code", "write it as AVIATOR or SQL"
            )
        if kind == "CLASS":
            return self._of_class(part, stage)
        expression = part["expression"]
        text = expression.text()
        with told_at(expression):
            return as_condition(sql_of_aviator(text) if kind == "AVIATOR" else text, "", stage)

    def _of_class(self, part: Part, stage: str) -> IterativeCondition:
        name, args = part["className"].text(), [arg.value for arg in part["args"].items()]
        nested = [self.condition(inner, stage) for inner in part["nestedConditions"].items()]
        if name not in self.conditions and name.startswith(FLINK_CONDITIONS):
            match name.removeprefix(FLINK_CONDITIONS), len(nested):
                case "RichAndCondition", 2:
                    return RichAndCondition(*nested)
                case "RichOrCondition", 2:
                    return RichOrCondition(*nested)
                case "RichNotCondition", 1:
                    return RichNotCondition(*nested)
                case "RichCompositeIterativeCondition", count if count:
                    return reduce(RichAndCondition, nested)
                case "BooleanConditions", 0 if args in (["true"], ["false"]):
                    return BooleanConditions(args == ["true"])
                case "SubtypeCondition", 0:
                    return self._subtype(part["subClassName"], part.value)
        condition = self._registered(part["className"], args)
        return reduce(
            RichAndCondition, nested, remembering(condition, part.value, not nested, stage)
        )

    def _registered(self, name: Part, args: list[Any]) -> Condition:
        known = self._known(name)
        try:
            found: Condition = known(*args)
        except (TypeError, ValueError) as cause:
            raise name.refused(
                f"{name.value!r} with {args!r}: {cause}", "look at the function that is registered"
            ) from cause
        return found

    def _known(self, name: Part) -> Callable[..., Any]:
        known = self.conditions.get(name.text())
        if known is None:
            raise name.refused(
                f"{name.value!r} is not registered",
                f"pass conditions={{{name.value!r}: a function of its args}}",
            )
        return known

    def _subtype(self, name: Part, document: Any) -> IterativeCondition:
        """Return the condition of a class of events: what is registered is it, or a function."""
        known = self._known(name)
        if isinstance(known, type) and not issubclass(known, IterativeCondition):
            return remembering(SubtypeCondition(known), document)
        return remembering(self._registered(name, []), document)

    def _skip(self, part: Part) -> AfterMatchSkipStrategy:
        kind = part["type"].choice(SKIPS)
        if not kind.startswith("SKIP_TO_") or kind == "SKIP_TO_NEXT":
            return SKIPS[kind]()
        strategy = SKIPS[kind](part["patternName"].text())
        throws = part["throwExceptionOnMiss"].value
        if throws and isinstance(strategy, SkipToElementStrategy):
            return strategy.throwExceptionOnMiss()
        return strategy

    def _check_skip(self, skip: AfterMatchSkipStrategy, part: Part) -> None:
        name = skip.getPatternName()
        if name is not None and name not in self.names:
            raise part["afterMatchStrategy"].refused(
                f"no node is named {name!r}", "name a node of the document"
            )


def remembering(
    condition: Condition,
    document: Mapping[str, Any],
    remembers: bool = True,
    stage: str = "",
) -> IterativeCondition:
    """Return the condition of a class; a function keeps its document, to be written again."""
    made = as_condition(condition, "The condition cannot be null.", stage)
    if remembers and not isinstance(condition, str):
        made = copy.copy(made) if made is condition else made
        vars(made)[ORIGIN] = dict(document)
    return made


def _chain(graph: Part) -> Iterator[tuple[Part, Part | None]]:
    """Yield the nodes of a graph in their order, each with the edge to it."""
    nodes: dict[str, Part] = {}
    for node in graph["nodes"].items():
        name = node["name"].text()
        if name in nodes:
            raise node["name"].refused(
                f"{name!r} is the name of another node too", "give each node its own name"
            )
        nodes[name] = node
    edges: dict[str, Part] = {}
    targets: set[str] = set()
    for edge in graph["edges"].items():
        source, target = (edge[end].choice(nodes) for end in ("source", "target"))
        for end, used, name in (("source", edges, source), ("target", targets, target)):
            if name in used:
                raise edge[end].refused(
                    f"{name!r} is the {end} of another edge too", "write a chain of nodes"
                )
        edges[source] = edge
        targets.add(target)
    begins = [name for name in nodes if name not in targets]
    if len(begins) != 1:
        raise graph["nodes"].refused(
            f"expected one node that no edge points at, got {begins}", "write a chain of nodes"
        )
    name, count = begins[0], 1
    yield nodes[name], None
    while (edge_to := edges.get(name)) is not None:
        name = edge_to["target"].text()
        count += 1
        yield nodes[name], edge_to
    if count < len(nodes):
        raise graph["edges"].refused("not all nodes are reached", "write a chain of nodes")


def _times(pattern: Pattern, times: Part, kind: str) -> Pattern:
    fewest = 1 if times.is_none else times["from"].whole()
    gap = None if times.is_none or times["windowTime"].is_none else _duration(times["windowTime"])
    if kind == "LOOPING":
        return pattern.timesOrMore(fewest, gap)
    if times.is_none:
        raise times.refused("TIMES without a number", "write {from: 2, to: 3}")
    most = fewest if times["to"].is_none else times["to"].whole()
    return pattern.times(fewest, gap) if most == fewest else pattern.times(fewest, most, gap)


def _within(pattern: Pattern, window: Part) -> Pattern:
    if window.is_none:
        return pattern
    kind = window["type"]
    measured = "FIRST_AND_LAST" if kind.is_none else kind.choice(WithinType.__members__)
    with told_at(window):
        return pattern.within(_duration(window["time"]), WithinType[measured])


def _duration(time: Part) -> timedelta:
    size = time["size"].whole()
    unit = UNITS_MS[time["unit"].choice(UNITS_MS)]
    try:
        return timedelta(milliseconds=size * unit)
    except OverflowError:
        raise time.refused("it is too long", "write a shorter time") from None
