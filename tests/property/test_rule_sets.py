# SPDX-License-Identifier: Apache-2.0
"""Many rules in one pass have the matches that each has by itself."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import attrs
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import (
    Eql,
    Pattern,
    match,
    matchEql,
    matchMany,
    matchSase,
    matchSigma,
    parse,
    suppress,
)
from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.pattern.pattern import stages_of
from pyflinkcep.pattern.stage import ConsumingStrategy, QuantifierProperty, Stage
from pyflinkcep.rules import Rule, SigmaCorrelation
from pyflinkcep.rules.event_needs import EventNeeds, shape_of
from pyflinkcep.rules.rule import Definition
from pyflinkcep.sase import SaseQuery
from pyflinkcep.tables.values import grouping_key
from tests.property.strategies import NameIn, PatternSpec, patterns
from tests.property.test_pattern_documents import _as_sql
from tests.property.test_suppression import PERIOD, shown_alerts

KEYS = [
    (), ("k",), ("j",), ("k", "j"), ("b",), ("at",), ("d", "k"), ("f",), ("day", "b"), ("noon",),
    ("s",), ("listed",), ("big", "k"), ("x.y", "bytes"),
]  # fmt: skip
FIELDS = ["k", "j", "b", "at", "d", "f", "noon", "s", "p.q", "p.r", "big", "x.y"]
"""Fields that keys of EQL and groups of correlations may be."""
QUERIES = [
    "PATTERN SEQ(a x, b y) WHERE y.price > x.price WITHIN 6 milliseconds",
    "PATTERN SEQ(a x, b+ y[], c z) WHERE skip_till_next_match(x, y[], z) { y[i].price >= x.price }",
    "PATTERN SEQ(a x, ~(b n), c z) WHERE [j] WITHIN 9 milliseconds",
    "PATTERN SEQ(a x, b y) WHERE strict_contiguity(x, y) { y.price > 1 }",
    "PATTERN SEQ(a x, b y) WHERE [k] AND skip_till_next_match(x, y) { y.price > 1 } "
    "RETURN x.price + y.price AS total",
    "PATTERN SEQ(a x, b+ y[]) WITHIN 5 milliseconds HAVING count(y) > 1",
]
EQL = [
    "a where price > 2",
    "sequence by k [a where true] [b where price > 1]",
    "sequence by k, j with maxspan=5ms [a where true] [any where price > 2] until [c where true]",
    "sequence [a where true] by k [b where true] by j",
    "sequence by k with maxspan=4ms [a where price > 1] ![b where true]",
    "sequence by j [a where true] with runs=2 [c where price < 4]",
    'any where name == "a" | head 2',
    "sequence by ?absent, k with maxspan=6ms [a where true] [b where true]",
    "sequence by ?j.absent with maxspan=7ms [a where true] ![c where true] [b where price > 1]",
    "sequence [a where true] by ?k [b where true] by ?absent until [c where true] by ?k",
    "any where b == true or d > 2 or f < 1",
    "sequence by {one} [a where true] [b where price > 1]",
    "sequence by {one}, {other} with maxspan=5ms [a where true] [any where price > 2] "
    "until [c where d == null]",
    "sequence by {one} with maxspan=4ms [a where price > 1] ![b where b] [any where f >= 0]",
    "sequence by ?{one} with maxspan=7ms [a where true] [any where f > 1] ![c where true]",
    "sequence by ?{one}, ?{other} [any where b != true] with runs=2 [c where price < 4]",
    "sequence [a where true] by {one} [any where price > 2] by {one} [b where true] by {one}",
    "sequence [a where true] by at [any where price > 1] by noon",
    "sequence [any where true] by {one} [any where price > 1] by ?{other}",
    "sequence by k [any where true] by ?d [any where price > 1] by ?f",
]
SIGMA = [
    ({"type": "event_count", "rules": ["a"], "group-by": ["k"], "condition": {"gte": 2}}, ["a"]),
    ({"type": "value_sum", "rules": ["b"], "condition": {"field": "price", "gt": 4}}, ["b"]),
    (
        {
            "type": "value_count",
            "rules": ["a", "b"],
            "group-by": ["k", "j"],
            "condition": {"field": "price", "gte": 2},
        },
        ["a", "b"],
    ),
    (
        {
            "type": "event_count",
            "rules": ["b"],
            "group-by": ["k"],
            "timespan": "5s",
            "condition": {"lt": 3},
        },
        ["b"],
    ),
    (
        {
            "type": "value_median",
            "rules": ["a", "c"],
            "group-by": ["j"],
            "condition": {"field": "price", "gt": 1, "lte": 3},
        },
        ["a", "c"],
    ),
    ({"type": "temporal", "rules": ["a", "b"], "group-by": ["j"]}, ["a", "b"]),
    (
        {"type": "temporal", "rules": ["a", "c"], "condition": "a and not c", "group-by": ["k"]},
        ["a", "c"],
    ),
    (
        {
            "type": "event_count",
            "rules": ["a", "c"],
            "group-by": ["own"],
            "condition": {"gte": 2},
            "aliases": {"own": {"a": "k", "c": "number"}},
        },
        ["a", "c"],
    ),
    (
        {"type": "event_count", "rules": ["pair"], "group-by": ["j"], "condition": {"gte": 2}},
        ["a", "b", "pair"],
    ),
    ({"type": "temporal_ordered", "rules": ["a", "c"], "group-by": ["k"]}, ["a", "c"]),
    (
        {
            "type": "event_count",
            "rules": ["a", "b"],
            "group-by": ["{one}"],
            "timespan": "4s",
            "condition": {"gte": 2},
        },
        ["a", "b"],
    ),
    (
        {
            "type": "value_count",
            "rules": ["b"],
            "group-by": ["{one}"],
            "condition": {"field": "{other}", "gte": 2},
        },
        ["b"],
    ),
    (
        {"type": "temporal", "rules": ["a", "b"], "group-by": ["{one}", "{other}"]},
        ["a", "b"],
    ),
]
CONDITIONS: dict[str, Any] = {
    "a": "name = 'a'",
    "b": "price > 1 AND name <> 'c'",
    "c": "upper(name) = 'C'",
    "pair": {"type": "temporal", "rules": ["a", "b"], "group-by": ["k"], "timespan": "2s"},
}
TEXTS = [
    "name = 'a'",
    "d > 2",
    "b OR f < 1",
    "NOT (price > 2)",
    "day IS NULL OR k = 2",
    "price > 2",
    "price > 2 AND name <> 'b'",
    "price + 0 > 1",
    "upper(name) = 'B'",
]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from([1, 2, 3, 4, None]), st.sampled_from([0, 1, 1, 3]),
        st.sampled_from([1, 2, 2, None]), st.sampled_from("xy"), st.integers(0, 99),
    ),
    max_size=25,
)  # fmt: skip


def _python(condition: IterativeCondition) -> IterativeCondition:
    return condition if isinstance(condition, NameIn) else _as_sql(condition, 0)


CHANGES: list[Callable[[IterativeCondition], IterativeCondition]] = [
    lambda condition: _as_sql(condition, 0),
    lambda condition: _as_sql(condition, 1),
    lambda condition: _as_sql(condition, 2),
    _python,
]


def _built(spec: PatternSpec, way: int) -> Pattern:
    return spec.build().with_conditions(CHANGES[way])


def _steps(texts: list[str], arrows: list[str]) -> Pattern:
    pattern = Pattern.begin("s0").where(texts[0])
    for number, (text, arrow) in enumerate(zip(texts[1:], arrows, strict=False), 1):
        pattern = getattr(pattern, arrow)(f"s{number}").where(text)
    return pattern


def _eql(text: str, one: str, other: str) -> Eql:
    return Eql(text.replace("{one}", one).replace("{other}", other))


def _sigma(given: tuple[dict[str, Any], list[str]], one: str, other: str) -> SigmaCorrelation:
    text = json.dumps(given).replace("{one}", one).replace("{other}", other)
    correlation, names = json.loads(text)
    return SigmaCorrelation(
        {"timespan": "1s", **correlation}, {name: CONDITIONS[name] for name in names}
    )


DEFINITIONS = st.one_of(
    st.builds(_built, patterns(), st.integers(0, 2)),
    st.builds(_built, patterns(), st.just(3)),
    st.builds(
        _steps,
        st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3),
        st.lists(st.sampled_from(["next", "followedBy", "followedByAny"]), min_size=2, max_size=2),
    ),
    st.sampled_from(QUERIES).map(parse),
    st.builds(_eql, st.sampled_from(EQL), st.sampled_from(FIELDS), st.sampled_from(FIELDS)),
    st.builds(_sigma, st.sampled_from(SIGMA), st.sampled_from(FIELDS), st.sampled_from(FIELDS)),
)
RULES_OF_ALL_KINDS = st.tuples(DEFINITIONS, st.sampled_from(KEYS))


def has_few_matches(definition: Definition) -> bool:
    """Whether the matches on n events are at most a power of n, and not one of 2."""
    if not isinstance(definition, Pattern) or definition.getWindowSize() is not None:
        return True
    return not any(map(_doubles, stages_of(definition)))


def _doubles(stage: Stage) -> bool:
    """Whether a stage without a window may take or leave out each of any number of events."""
    quantifier = stage.quantifier
    is_any = quantifier.innerConsumingStrategy is ConsumingStrategy.SKIP_TILL_ANY
    is_loop = quantifier.hasProperty(QuantifierProperty.LOOPING)
    return (is_loop and (is_any or bool(stage.inside))) or any(map(_doubles, stage.inside))


def _ids(events: dict[str, Any]) -> dict[str, list[int]]:
    return {
        name: [event["id"] for event in (own if isinstance(own, list) else [own])]
        for name, own in events.items()
        if own
    }


def _alone(rule: Rule, events: list[dict[str, Any]], are_events: bool = False) -> list[Any]:
    """Return the matches of a rule by itself, as events by stage, or the rows of a query."""
    definition = rule.definition
    if are_events and isinstance(definition, SaseQuery):
        definition = attrs.evolve(definition, columns=None)
    if isinstance(definition, Pattern):
        found = match(definition, events, timestamp="t", key=list(rule.key) or None)
        return [_ids(one) for one in found]
    if isinstance(definition, Eql):
        runs = matchEql(definition, events, "t", "name") if events else []
        return [
            {f"{n}": [event["id"]] for n, event in enumerate(run, 1) if event is not None}
            for run in runs
        ]
    if isinstance(definition, SigmaCorrelation):
        alerts = matchSigma(definition.correlation, events, definition.rules, "t")
        return [{"events": [event["id"] for event in alert]} for alert in alerts]
    by_key: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        key = tuple(grouping_key(event[name]) for name in rule.key)
        by_key.setdefault(key, []).append(event)
    return [
        dict(one) if definition.columns is not None else _ids(one)
        for own in by_key.values()
        for one in matchSase(definition, own, timestamp="t", type="name")
    ]


def _shown(found: list[Any]) -> Counter[str]:
    return Counter(json.dumps(one, sort_keys=True) for one in found)


def named(rules: list[tuple[Definition, tuple[str, ...]]]) -> list[Rule]:
    """Return rules with names; EQL and correlations have keys of their own."""
    return [
        Rule(f"r{number}", one, () if isinstance(one, Eql | SigmaCorrelation) else key)
        for number, (one, key) in enumerate(rules)
    ]


_MOMENT = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    "b": [True, False, None],
    "at": [_MOMENT, _MOMENT + timedelta(microseconds=400), _MOMENT + timedelta(hours=1), None],
    "d": [Decimal("1.00"), Decimal("2.50"), None],
    "f": [0.0, -0.0, 1.5, float("nan"), None],
    "day": [date(2026, 3, 29), date(1969, 12, 31), None],
    "noon": [datetime(2026, 3, 29, 1), datetime(2026, 3, 29, 2), datetime(2026, 3, 29, 12), None],
    "s": [
        "",
        " ",
        "\0",
        'a"\\',
        "\u00e9",
        "e\u0301",
        "\U0001f600\n",
        "null",
        "None",
        "{one}",
        None,
    ],
    "listed": [[0.0], [-0.0], [float("nan")], [None], [], [1.5, 0.0], None],
    "p": [{"q": "1", "r": 0.0}, {"q": "1", "r": -0.0}, {"q": None, "r": float("nan")}, None],
    "big": [Decimal(1), Decimal("1.000000000000000001"), Decimal(0), None],
    "x.y": [2**53, 2**53 + 1, -1, None],
    "bytes": [b"", b"\xff", b"a", None],
}
"""What else events have, by the names of columns."""

SCHEMA = pa.schema(
    [("id", pa.int64()), ("t", pa.int64()), ("name", pa.string()), ("price", pa.int64()),
     ("number", pa.int64()), ("k", pa.int64()), ("j", pa.string()), ("b", pa.bool_()),
     ("at", pa.timestamp("us", "UTC")), ("d", pa.decimal128(6, 2)), ("f", pa.float64()),
     ("day", pa.date32()), ("noon", pa.timestamp("us")), ("s", pa.string()),
     ("listed", pa.list_(pa.float64())), ("p", pa.struct({"q": pa.string(), "r": pa.float64()})),
     ("big", pa.decimal128(38, 18)), ("x.y", pa.int64()), ("bytes", pa.binary())]
)  # fmt: skip


def events_of(rows: list[Any], step_ms: int = 1) -> list[dict[str, Any]]:
    """Return events of drawn rows, in which a time is a step from the one before."""
    time, events = 1000, []  # Flink sets no timers for matches that begin before 1970
    for number, (name, price, step, k, j, seed) in enumerate(rows):
        time += step * step_ms
        choose = random.Random(seed)
        more = {column: choose.choice(values) for column, values in VALUES.items()}
        events.append({"id": number, "t": time, "name": name, "price": price, "number": number,
                       "k": k, "j": j, **more})  # fmt: skip
    return events


def arriving(events: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Return events out of the order of time; of those of one time others come first."""
    choose = random.Random(seed)
    return sorted(events, key=lambda event: event["t"] + choose.choice([0, 0, 1, 5]))


@given(st.lists(RULES_OF_ALL_KINDS, max_size=8), ROWS, st.integers(0, 99))
@settings(max_examples=60)
def test_many_rules_are_each_of_them(
    drawn: list[tuple[Definition, tuple[str, ...]]], rows: list[Any], seed: int
) -> None:
    """Rules of all kinds, with any keys, find together what each finds; patterns in its order."""
    rules, events = named(drawn), arriving(events_of(rows), seed)
    selecting = {rule.name for rule in rules if zlib.crc32(f"{rule.name}{seed}".encode()) % 3 == 0}
    found = matchMany(
        [attrs.evolve(rule, select=_ids) if rule.name in selecting else rule for rule in rules],
        events,
        timestamp="t",
        type="name",
    )
    own: dict[str, list[Any]] = {rule.name: [] for rule in rules}
    for one in found:
        if one.rule in selecting:
            assert one.row == _ids(dict(one.events))
        own[one.rule].append(_ids(dict(one.events)) if one.row is None else one.row)

    for rule in rules:
        alone = _alone(rule, events, rule.name in selecting)
        assert _shown(own[rule.name]) == _shown(alone), rule
        if isinstance(rule.definition, Pattern):
            assert own[rule.name] == alone
    shown = {f"{one.rule} {one.key} {_ids(dict(one.events))}" for one in found}
    assert len({one.matchId for one in found}) == len(shown)
    table = found.toArrow().to_pylist()
    shown_rows = suppress(found, f"{PERIOD} ms").to_pylist()
    alerts = [{**row, "k": f"{row['key']}"} for row in table]
    assert {row["matchId"]: row["suppressed"] for row in shown_rows} == shown_alerts(alerts, PERIOD)
    assert [row["matchId"] for row in table] == [one.matchId for one in found]
    assert [dict(row["key"]) for row in table] == [
        {name: None if value is None else f"{value}" for name, value in one.key.items()}
        for one in found
    ]
    assert [[stage for stage, _ in row["events"]] for row in table] == [
        [*one.events] for one in found
    ]
    assert [{stage: [e["id"] for e in own] for stage, own in row["events"]} for row in table] == [
        _ids(dict(one.events)) for one in found
    ]


@given(st.lists(patterns(), min_size=1, max_size=15))
def test_patterns_of_one_shape_want_the_same(specs: list[PatternSpec]) -> None:
    """What a pattern wants depends on its shape alone, and on which of its conditions are SQL."""
    found: dict[Any, EventNeeds] = {}
    for spec, way in product(specs, (0, 3)):
        nfa = NFACompiler.compile(_built(spec, way))
        needs = EventNeeds.of(nfa)
        assert found.setdefault(shape_of(nfa), needs) == needs
