# SPDX-License-Identifier: Apache-2.0
"""The fingerprint of a pattern: what its stored partial matches depend on, and changes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.matching.layout import Layout
from pyflinkcep.spark.state.key_groups import KeyGroups

__all__ = [
    "KEY_GROUPS",
    "LASTING",
    "answers",
    "changes",
    "field_numbers",
    "fingerprint",
    "layout_facts",
]

KEY_GROUPS = "key groups"
"""The number of key groups."""

LASTING = ("key", "time column", "columns", "computed columns", KEY_GROUPS)
"""What queued events depend on, and so no restart can change."""


def fingerprint(
    nfa: NFA,
    layout: Layout,
    key_groups: KeyGroups | int,
    order: str = "",
    computed: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """
    Return what must stay the same for stored state to be reused.

    Parameters
    ----------
    nfa : NFA
        The compiled pattern.
    layout : Layout
        The events' columns, key and time.
    key_groups : KeyGroups or int
        The partition of the keys.
    order : str, optional
        The columns that order events of equal time, as SQL.
    computed : mapping of str to str, optional
        The SQL of the events' computed columns, by name.

    Returns
    -------
    dict of str to str
        Descriptions to values as text. The code of Python conditions is not included: it may
        change, as in Flink.
    """
    facts = {
        "pattern": nfa.description,
        "skip strategy": repr(nfa.skip_strategy),
        "window": f"{nfa.window_time} ms",
        "gaps": json.dumps(nfa.window_times, sort_keys=True),
        **layout_facts(layout, key_groups),
    }
    if order:
        facts["order"] = order
    if computed:
        facts["computed columns"] = json.dumps(dict(computed))
    for name, table in nfa.tables.items():
        edges = [f"{t.action.value} {t.target.name}" for t in table.state.transitions]
        facts[f"state {name}"] = f"{table.state.kind.value}: {', '.join(edges)}"
    for number, atom in enumerate(nfa.atoms):
        if isinstance(atom.condition, ExpressionCondition):
            facts[f"condition {number} (stage {atom.stage})"] = atom.condition.text
        elif atom.expression is not None:
            facts[f"match expression {number} (stage {atom.stage})"] = atom.expression
    expressions = layout.expressions
    for number, field in enumerate(expressions.fields if expressions is not None else ()):
        facts[f"value {number}"] = field.sql
    return facts


def layout_facts(layout: Layout, key_groups: KeyGroups | int) -> dict[str, str]:
    """Return what a fingerprint says of the events, of any pattern, query or clause."""
    return {
        "key": json.dumps(dict(zip(layout.key_names, layout.key_columns, strict=True))),
        "time column": str(layout.time_column),
        "columns": layout.schema.simpleString(),
        KEY_GROUPS: str(key_groups),
    }


def answers(stored: Mapping[str, str]) -> dict[str, int]:
    """Return the bit of each SQL condition in a fingerprint, by its text."""
    words = ((what.split(), text) for what, text in stored.items())
    return {text: 1 << int(what[1]) for what, text in words if what[0] == "condition"}


def field_numbers(stored: Mapping[str, str]) -> dict[str, int]:
    """Return the number of each field of match expressions in a fingerprint, by its SQL."""
    words = ((what.split(), text) for what, text in stored.items())
    return {text: int(what[1]) for what, text in words if what[0] == "value"}


def changes(stored: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """
    Return the differences between two fingerprints.

    Examples
    --------
    >>> changes({"window": "5 ms", "a": "x"}, {"window": "9 ms", "a": "x"})
    ["window: '5 ms' is now '9 ms'"]
    """
    said = []
    for what in [*stored, *(key for key in current if key not in stored)]:
        before, now = stored.get(what), current.get(what)
        if before != now:
            said.append(f"{what}: {before!r} is now {now!r}")
    return said
