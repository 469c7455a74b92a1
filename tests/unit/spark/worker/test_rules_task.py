# SPDX-License-Identifier: Apache-2.0
"""What the tasks of many rules send, and what of rules a worker reads once."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from pyflinkcep import Eql, Pattern
from pyflinkcep.matching.columns import HASH
from pyflinkcep.matching.layout import Layout
from pyflinkcep.rules import Rule
from pyflinkcep.rules.page_events import HOLDING
from pyflinkcep.rules.routes import RoutedRules
from pyflinkcep.rules.wanting_rule import shared_events
from pyflinkcep.spark.worker.rules_task import RulesTask, SendingTask
from pyflinkcep.tables.typed_columns import widest

EVENTS = pa.table(
    {
        "t": pa.array(range(1_000, 1_010), pa.int64()),
        "name": ["A"] * 10,
        "k": ["p", "q"] * 5,
        "j": ["r"] * 10,
        "x": pa.array(range(10), pa.int64()),
    }
)
SINGLE = Rule("single", Eql("A where x > 4"))
KEYED = Rule("keyed", Eql("sequence by k [A where x > 6] [A where x > 7]"))
OTHER = Rule("other", Eql("sequence by j [A where x > 6] [A where x == 0]"))


def _routed(*rules: Rule) -> RoutedRules:
    probe = shared_events(rules, widest(EVENTS.schema), "t", "name", "UTC")
    return RoutedRules.of(rules, probe, "UTC")


def _task(rules: RoutedRules) -> RulesTask:
    layout = Layout("rules", StructType(), (), (), (), (HASH,), "t", None, ())
    return RulesTask(rules.arrived(), layout, EVENTS.column_names, StructType())


def test_rules_about_single_events_see_those_of_other_rules() -> None:
    """An event is sent for each key of rules, and by itself only if none of these wants it."""
    rules = _routed(SINGLE, KEYED, OTHER)
    table = SendingTask(rules, EVENTS.column_names).sent(EVENTS)
    marked = [rules.mark in holding for holding in table.column(HOLDING).to_pylist()]
    assert rules.sent(EVENTS).rows.tolist() == [0, 5, 6, 7, 7, 8, 8, 9, 9]
    # Of those sent twice one has the mark.
    assert marked == [False, True, True, True, False, True, False, True, False]


def test_a_worker_reads_rules_of_eql_once() -> None:
    """Tasks of one worker have the rules, and what is compiled of them, in common."""
    data = cloudpickle.dumps(_task(_routed(SINGLE, KEYED)))
    one, other = (pickle.loads(data) for _ in range(2))
    assert one.rules is other.rules
    assert (one.columns, one.schema) == (EVENTS.column_names, StructType())


def test_functions_are_those_of_a_task() -> None:
    """Rules with functions, which may have a state, are read by each task."""

    def shown(match: Any) -> dict[str, Any]:
        return {"match": match}

    pattern = Pattern.begin("a").where("x > 4")
    for rule in (Rule("shown", SINGLE.definition, select=shown), Rule("pattern", pattern, ("k",))):
        data = cloudpickle.dumps(_task(_routed(rule)))
        assert pickle.loads(data).rules is not pickle.loads(data).rules
