# SPDX-License-Identifier: Apache-2.0
"""
The events of many conditions: literals of all on one field at once, the rest for few events.

Most rules want few events. So tests of texts against literals are answered by the events that they
hold for, and what stands beside one with AND is asked of these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.literals import LiteralTest, literal_hits
from pyflinkcep.expressions.sql_types import STRING
from pyflinkcep.expressions.tree import (
    EACH,
    Call,
    Column,
    Literal,
    Operation,
    Tree,
    attribute_of,
)
from pyflinkcep.matching.columns import Ints
from pyflinkcep.tables.field_values import NO, UNKNOWN, YES, Answers, EventFields, FieldValues

_NOTHING: Ints = np.zeros(0, np.int64)
_FOLDS = ("lower", "translate")


@attrs.frozen
class _Leaf:
    """A test of a field's values against literals; of several, one has to fit."""

    column: Column
    fold: str  # The function that the value goes through first; empty for none
    tests: tuple[LiteralTest, ...]


def _leaf(tree: Tree, column: Column | None = None) -> _Leaf | None:
    """Return a condition as a test of literals; `column` stands for each value of an array."""
    begins = ends = True
    match tree:
        case Call("exists", (Column() as array, inner)):
            return _leaf(inner, array)
        case Operation("coalesce", (inner, Literal(False))) if column is None:
            return _leaf(inner) if isinstance(inner, Call) and inner.function == "exists" else None
        case Operation("=", (value, Literal(str() as text))):
            literals = [text]
        case Operation("in", (value, *many)):
            known = [one.value if isinstance(one, Literal) else None for one in many]
            literals = [one for one in known if isinstance(one, str)]
            if len(literals) < len(many):
                return None
        case Operation("startswith", (value, Literal(str() as text))):
            literals, ends = [text], False
        case Call("endswith" | "contains" as name, (value, Literal(str() as text))):
            literals, begins, ends = [text], False, name == "endswith"
        case _:
            return None
    fold = ""
    if isinstance(value, Call) and value.function in _FOLDS:
        fold, value = value.function, value.operands[0]
    if not isinstance(value, Column) or "" in literals or (value == EACH) != (column is not None):
        return None
    tests = tuple(LiteralTest(one, begins, ends) for one in literals)
    return _Leaf(value if column is None else column, fold, tests)


@attrs.frozen(eq=False)
class RuleRows:
    """Events, and the conditions that they are asked."""

    fields: EventFields
    _hits: dict[Tree, tuple[FieldValues, Ints]] = attrs.field(init=False, factory=dict)
    _events: dict[int, tuple[Ints, Ints]] = attrs.field(init=False, factory=dict)

    @classmethod
    def of(cls, fields: EventFields, trees: Iterable[Tree]) -> RuleRows:
        """Look for the literals of all conditions."""
        found = cls(fields)
        by_field: dict[tuple[Column, str], dict[Tree, _Leaf]] = {}
        for tree in trees:
            for part, leaf in _leaves(tree):
                by_field.setdefault((leaf.column, leaf.fold), {})[part] = leaf
        for (column, fold), leaves in by_field.items():
            values = fields.values_of(attribute_of(column.sql or ""))
            if isinstance(values, FieldValues) and values.type == STRING:
                found._look_for(values, fold, leaves)
        return found

    def _look_for(self, values: FieldValues, fold: str, leaves: dict[Tree, _Leaf]) -> None:
        numbers: dict[LiteralTest, int] = {}
        for leaf in leaves.values():
            for test in leaf.tests:
                numbers.setdefault(test, len(numbers))
        hits = literal_hits([*numbers], *_encoded(values.distinct, fold))
        for tree, leaf in leaves.items():
            own = [hits[numbers[test]] for test in leaf.tests]
            codes = own[0] if len(own) == 1 else np.unique(np.concatenate(own))
            self._hits[tree] = values, codes.astype(np.int64)

    # --- conditions

    def rows(self, tree: Tree) -> Ints:
        """Return the events for which a condition holds, in order."""
        if tree in self._hits:
            return self._events_of(*self._hits[tree])
        match tree:
            case Operation("coalesce", (inner, Literal(False))):
                return self.rows(inner)
            case Operation("or", operands):
                found = [own for own in map(self.rows, operands) if len(own)]
                return reduce(np.union1d, found) if found else _NOTHING
            case Operation("and", operands):
                return self._both(operands)
        return np.flatnonzero(self.fields.holds(tree))

    def _both(self, operands: tuple[Tree, ...]) -> Ints:
        """Return the events of all operands: those of literals first, the rest asked of these."""
        known = [part for part in operands if self._is_known(part)]
        found = np.arange(self.fields.size) if not known else self.rows(known[0])
        for part in known[1:]:
            if len(found):
                found = np.intersect1d(found, self.rows(part), assume_unique=True)
        for part in operands:
            if part not in known and len(found):
                found = found[self._asked(part, found) == YES]
        return found

    def _is_known(self, tree: Tree) -> bool:
        """Whether a condition is made of tests of literals, some of which have to hold."""
        if tree in self._hits:
            return True
        if not isinstance(tree, Operation) or tree.operator not in ("and", "or"):
            return False
        enough = any if tree.operator == "and" else all
        return enough(map(self._is_known, tree.operands))

    def _asked(self, tree: Tree, rows: Ints) -> Answers:
        """Return what a condition says of some events."""
        if tree in self._hits:
            return self._of_literals(tree, rows)
        match tree:
            case Operation("and" | "or" as word, operands):
                joined = np.minimum if word == "and" else np.maximum
                found: Answers = reduce(joined, (self._asked(part, rows) for part in operands))
                return found
            case Operation("not", (inner,)):
                opposite: Answers = np.subtract(YES, self._asked(inner, rows), dtype=np.int8)
                return opposite
            case Operation("coalesce", (inner, Literal(False))):
                held: Answers = (self._asked(inner, rows) == YES).astype(np.int8)
                return np.multiply(held, YES, dtype=np.int8)
        some: Answers = self.fields.answers(tree)[rows]
        return some

    def _of_literals(self, tree: Tree, rows: Ints) -> Answers:
        values, codes = self._hits[tree]
        if values.bounds is not None:
            held = np.isin(rows, self._events_of(values, codes), assume_unique=True)
            return held.astype(np.int8) * YES
        own = values.codes[rows]
        answers = np.where(own < 0, UNKNOWN, NO).astype(np.int8)
        answers[np.isin(own, codes)] = YES
        return answers

    def _events_of(self, values: FieldValues, codes: Ints) -> Ints:
        """Return the events that have one of some values, in order."""
        if not len(codes):
            return _NOTHING
        begins, events = self._by_value(values)
        if len(codes) == 1:
            return events[begins[codes[0]] : begins[codes[0] + 1]]
        counts = begins[codes + 1] - begins[codes]
        starts = np.repeat(begins[codes] - np.cumsum(counts) + counts, counts)
        found = events[starts + np.arange(len(starts))]
        return np.sort(found) if values.bounds is None else np.unique(found)

    def _by_value(self, values: FieldValues) -> tuple[Ints, Ints]:
        """Return where the events of each value begin, and the events by value, each once."""
        if id(values) not in self._events:
            events, codes = values.choices()
            order = np.argsort(codes, kind="stable")
            begins = np.zeros(len(values.distinct) + 1, np.int64)
            np.cumsum(np.bincount(codes, minlength=len(values.distinct)), out=begins[1:])
            self._events[id(values)] = begins, events[order]
        return self._events[id(values)]


def _leaves(tree: Tree) -> Iterator[tuple[Tree, _Leaf]]:
    leaf = _leaf(tree)
    if leaf is not None:
        yield tree, leaf
    elif isinstance(tree, Operation):
        for part in tree.operands:
            yield from _leaves(part)


def _encoded(texts: Any, fold: str) -> tuple[memoryview, Ints]:
    """Return texts in UTF-8, one after another, and where each ends, without case if it folds."""
    array = pa.array(texts, pa.large_utf8())
    if fold == "translate":
        array = pc.ascii_lower(array)
    elif fold == "lower":
        if pc.all(pc.string_is_ascii(array)).as_py() is not False:
            array = pc.ascii_lower(array)
        else:  # Arrow has another lower case for some letters
            array = pa.array([text.lower() for text in texts], pa.large_utf8())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(array) + 1, 8 * array.offset)
    begin = int(bounds[0]) if len(bounds) else 0
    whole = memoryview(data if data is not None else b"").cast("B")
    return whole[begin : begin + int(bounds[-1] - begin)], bounds[1:] - begin
