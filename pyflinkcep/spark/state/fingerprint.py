# SPDX-License-Identifier: Apache-2.0
"""The fingerprint of a pattern: what its stored partial matches depend on, and changes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import in_word
from pyflinkcep.engines.flink.stored_state import nfa_facts
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.columns import BITS, VALUE, Ints, spark_atoms
from pyflinkcep.matching.layout import Layout, bit_name, bit_names
from pyflinkcep.spark.state.key_groups import KeyGroups

KEY_GROUPS = "key groups"  # The number of key groups
# What queued events depend on, and so no restart can change.
RULES = "rules"  # What stands for all of many rules
# The clock of the times by which the events of rules are sent: for long that of the session.
CLOCK = "clock of times that are keys"
LASTING = ("key", "time column", "columns", "computed columns", KEY_GROUPS, RULES, CLOCK)


def fingerprint(
    nfa: NFA,
    layout: Layout,
    key_groups: KeyGroups | int,
    order: str = "",
    computed: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return what must stay the same for stored state to be reused."""
    facts = {**nfa_facts(nfa), **layout_facts(layout, key_groups)}
    if order:
        facts["order"] = order
    if computed:
        facts["computed columns"] = json.dumps(dict(computed))
    expressions = layout.expressions
    for number, field in enumerate(expressions.fields if expressions is not None else ()):
        facts[f"value {number}"] = field.stored
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
    """Return the number of each field of match expressions in a fingerprint, by its name."""
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


def requeued(
    table: pa.Table,
    schema: pa.Schema,
    fingerprint: Mapping[str, str],
    nfa: NFA,
    expressions: CompiledExpressions | None = None,
) -> pa.Table:
    """Convert queued events for another pattern."""
    asked = [name for name in schema.names if name.startswith((BITS, VALUE))]
    others = [name for name in schema.names if name not in asked]
    new = table.select(others)
    for name, bits in _bits(table, answers(fingerprint), nfa).items():
        new = new.append_column(name, pa.array(bits))
    known = field_numbers(fingerprint)
    for number, field in enumerate(expressions.fields if expressions is not None else ()):
        if field.stored not in known:
            raise _not_asked(table, f"{field.stored!r}, which a condition needs")
        column = table.column(f"{VALUE}{known[field.stored]}")
        new = new.append_column(f"{VALUE}{number}", column)
    return new.select(schema.names)


def _bits(table: pa.Table, known: Mapping[str, int], nfa: NFA) -> dict[str, Ints]:
    """Return the answers to the conditions of the current pattern."""
    atoms = spark_atoms(nfa)
    bits = {name: np.zeros(table.num_rows, np.int64) for name in bit_names(atoms)}
    for atom in atoms:
        text = atom.condition.text  # type: ignore[attr-defined]
        if text not in known:
            raise _not_asked(table, f"the new condition {text!r} (stage {atom.stage!r})")
        word, bit = in_word(known[text])
        held = table.column(bit_name(word)).to_numpy() & bit != 0
        word, bit = in_word(atom.bit)
        bits[bit_name(word)] |= np.where(held, np.int64(bit), 0)
    return bits


def _not_asked(table: pa.Table, what: str) -> PatternChangedError:
    return PatternChangedError(
        f"{table.num_rows} buffered events were never evaluated against {what}",
        "write the new condition as a Python function, which can still be evaluated, "
        "or start from a new checkpoint",
    )


def still_droppable(
    dropped: Iterable[int], fingerprint: Mapping[str, str], nfa: NFA, droppable: frozenset[int]
) -> list[int]:
    """Convert the bits of dropped events for another pattern."""
    known = answers(fingerprint)
    atoms = [(atom.bit, known.get(atom.condition.text, 0)) for atom in spark_atoms(nfa)]  # type: ignore[attr-defined]
    counted = {sum(new for new, old in atoms if bits & old) for bits in dropped}
    if not counted <= droppable:
        raise PatternChangedError(
            "events that the new pattern needs were dropped while others were buffered",
            "run the old pattern with sideOutputLateData(), which keeps every event, until the "
            "watermark has passed the buffered ones; or start from a new checkpoint",
        )
    return sorted(counted)
