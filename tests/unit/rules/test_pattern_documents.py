# SPDX-License-Identifier: Apache-2.0
"""Documents of patterns: what is read how, what is refused where, and classes by registry."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import attrs
import pytest

from pyflinkcep import (
    AfterMatchSkipStrategy,
    IterativeCondition,
    NotSupportedError,
    Pattern,
    SimpleCondition,
    WithinType,
)
from pyflinkcep.conditions import BooleanConditions, SubtypeCondition
from pyflinkcep.rules.document import DocumentError

FLINK = "org.apache.flink.cep.pattern.conditions."


def node(name: str, condition: Any = None, **more: Any) -> dict[str, Any]:
    """Return a node."""
    return {"name": name, "type": "ATOMIC", "condition": condition, **more}


def graph(*nodes: dict[str, Any], edge: str = "STRICT", **more: Any) -> dict[str, Any]:
    """Return a graph of nodes, one after another."""
    names = [one["name"] for one in nodes]
    edges = [{"source": a, "target": b, "type": edge} for a, b in pairwise(names)]
    return {"name": "g", "type": "COMPOSITE", "nodes": list(nodes), "edges": edges, **more}


def loop(*properties: str, **more: Any) -> dict[str, Any]:
    """Return a quantifier."""
    return {"properties": ["LOOPING", *properties], **more}


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (graph(node("a")), "a"),
        (graph(node("a", quantifier=loop(times={"from": 2, "to": 9})), node("b")), "a{2,} ⇒ b"),
        (graph(node("a", quantifier={"details": ["TIMES"], "times": {"from": 2}})), "a{2}"),
        (graph(node("a"), node("b"), edge="NOT_NEXT"), "a ⇏ b"),
        (graph(node("a"), {**graph(node("b"), node("c")), "name": "g"}), "a ⇒ (b ⇒ c)"),
        ({"nodes": [{"name": "a", "attributes": {"x": 1}}], "unknown": [3]}, "a"),
    ],
)
def test_patterns(document: dict[str, Any], shown: str) -> None:
    """Old and new names are read, what has no meaning is ignored."""
    assert Pattern.fromJson(document).describe() == shown


def test_only_loops_read_the_strategy_between_events() -> None:
    """The inner strategy counts before the other one, and for what repeats alone."""
    strict = {"consumingStrategy": "STRICT"}
    both = {**strict, "innerConsumingStrategy": "SKIP_TILL_ANY"}
    found = [
        Pattern.fromJson(graph(node("a", quantifier=quantifier))).getQuantifier()
        for quantifier in (loop(**strict), loop(**both), {"properties": ["SINGLE"], **both})
    ]
    inner = [quantifier.innerConsumingStrategy.value for quantifier in found]

    assert inner == ["STRICT", "SKIP_TILL_ANY", "SKIP_TILL_NEXT"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "document: expected an object, got []"),
        ("{", "document: no JSON: "),
        (graph(), "nodes: expected one node that no edge points at, got []"),
        (graph(node("a"), node("a")), "nodes[1].name: 'a' is the name of another node too"),
        (
            graph(node("a"), {**graph(node("a")), "name": "g"}),
            "nodes[1].nodes[0].name: 'a' is the name of another node too",
        ),
        (graph(node("a"), node("b"), edge="LAX"), "edges[0].type: 'LAX' is not known"),
        (graph(node("a", quantifier=loop("LOOP"))), "nodes[0].quantifier.properties[1]: 'LOOP'"),
        (graph(node("a", quantifier=loop("TIMES"))), "nodes[0].quantifier.properties: LOOPING and"),
        (
            graph(node("a", {"type": "GROOVY", "expression": "x"})),
            "nodes[0].condition.type: GROOVY is not read: it is code",
        ),
        (
            graph(node("a", {"type": "AVIATOR", "expression": "f(x)"})),
            "nodes[0].condition.expression: 'f(x)': the call of 'f' is not read at position 1",
        ),
        (
            graph(node("a", {"type": "CLASS", "className": "demo.Missing"})),
            "nodes[0].condition.className: 'demo.Missing' is not registered",
        ),
        (
            graph(node("a", {"type": "CLASS", "className": "demo.One", "args": ["1", "2"]})),
            "nodes[0].condition.className: 'demo.One' with ['1', '2']: ",
        ),
        (
            graph(node("a", {"type": "CLASS", "className": FLINK + "RichNotCondition"})),
            f"nodes[0].condition.className: '{FLINK}RichNotCondition' is not registered",
        ),
        (
            graph(node("a"), afterMatchStrategy={"type": "SKIP_TO_LAST", "patternName": "x"}),
            "afterMatchStrategy: no node is named 'x'",
        ),
        (
            graph(
                node("a"), window={"type": "FIRST_AND_LAST", "time": {"unit": "DAYS", "size": 0}}
            ),
            "window: ",
        ),
        (
            graph(node("a"), window={"time": {"unit": "DAYS", "size": 10**12}}),
            "window.time: it is too long",
        ),
        (
            graph({**graph(node("a")), "name": "g", "condition": {"type": "SQL"}}),
            "nodes[0].condition: a group has no condition of its own",
        ),
    ],
)
def test_refusals(document: Any, message: str) -> None:
    """A document that is wrong is refused by name, at its place."""
    with pytest.raises(DocumentError) as refused:
        Pattern.fromJson(document, {"demo.One": lambda value: f"n = {value}"})

    assert refused.value.message.startswith(message), refused.value.message


def test_many_groups_in_groups() -> None:
    """A document that is too deep is refused, and not the end of Python's stack."""
    deep = graph(node("a"))
    for _ in range(200):
        deep = graph({**deep, "name": "g"})

    with pytest.raises(DocumentError, match="too many groups"):
        Pattern.fromJson(deep)


def test_what_flink_cannot_say() -> None:
    """Windows of inner stages, two windows of one stage and strict skipping come back."""
    gap = timedelta(seconds=5)
    skip = AfterMatchSkipStrategy.skipToFirst("b").throwExceptionOnMiss()
    pattern = Pattern.begin("a", skip).within(gap).next("b")
    pattern = pattern.within(2 * gap).within(gap, WithinType.PREVIOUS_AND_CURRENT)
    again = Pattern.fromJson(pattern.toJson())

    assert again.getAfterMatchSkipStrategy() == skip
    assert [p.getWindowSize() for p in again.stages()] == [5000, 10_000]
    assert again.getWindowSize(WithinType.PREVIOUS_AND_CURRENT) == 5000


@attrs.frozen
class AtLeast(SimpleCondition):
    """A price is at least some number."""

    least: float

    def filter(self, value: Any, ctx: Any = None) -> bool:
        """Compare."""
        return bool(value.price >= self.least)


class Login:
    """A class of events."""


def _hot(event: Any) -> bool:
    return bool(event.hot)


REGISTRY: dict[str, Any] = {
    "demo.AtLeast": lambda least: AtLeast(float(least)),
    "demo.Hot": lambda: _hot,
    "demo.Login": Login,
    "demo.Sql": lambda: "n > 1 and n > last(a.n)",
}


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "CLASS", "className": "demo.AtLeast", "args": ["3.5"]},
        {"type": "CLASS", "className": "demo.Hot"},
        {"type": "CLASS", "className": FLINK + "SubtypeCondition", "subClassName": "demo.Login"},
        {"type": "CLASS", "className": FLINK + "BooleanConditions", "args": ["false"]},
        {
            "type": "CLASS",
            "className": FLINK + "RichNotCondition",
            "nestedConditions": [{"type": "CLASS", "className": "demo.AtLeast", "args": ["1"]}],
        },
    ],
)
def test_classes_are_written_again(condition: dict[str, Any]) -> None:
    """A condition by class is written as it was read, its arguments and nested ones too."""
    pattern = Pattern.fromJson(graph(node("a", condition)), REGISTRY)

    assert pattern.toJson()["nodes"][0]["condition"] == condition


def test_a_class_that_is_sql_is_written_as_sql() -> None:
    """SQL needs no registry to be read again."""
    document = graph(node("a", {"type": "CLASS", "className": "demo.Sql"}))
    written = Pattern.fromJson(document, REGISTRY).toJson()["nodes"][0]["condition"]

    assert [part["expression"] for part in written["nestedConditions"]] == [
        "n > 1",
        "n > last(a.n)",
    ]


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        (_hot, {"type": "CLASS", "className": "demo.Hot"}),
        (BooleanConditions.trueFunction(), None),
        (SubtypeCondition(Login), None),
    ],
)
def test_python_conditions_by_registry(condition: Any, written: Any) -> None:
    """A function in Python is written by the name that the registry has for it."""
    document = Pattern.begin("a").where(condition).toJson(REGISTRY)["nodes"][0]["condition"]

    assert document == written or document["className"].startswith(FLINK)


@pytest.mark.parametrize("condition", [lambda event: True, AtLeast(3.0), SubtypeCondition(int)])
def test_python_conditions_are_no_data(condition: IterativeCondition) -> None:
    """A condition that nobody registered is refused with its stage."""
    with pytest.raises(NotSupportedError, match="of stage 'a' is Python, and no data"):
        Pattern.begin("a").where(condition).toJson(REGISTRY)


def test_registered_objects_stay_as_they_are() -> None:
    """A condition object that a registry returns twice is not changed by reading it."""
    shared = AtLeast(2.0)
    document = graph(node("a", {"type": "CLASS", "className": "demo.Shared"}))
    Pattern.fromJson(document, {"demo.Shared": lambda: shared})

    assert vars(shared) == {}
