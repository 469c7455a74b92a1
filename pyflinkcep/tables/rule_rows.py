# SPDX-License-Identifier: Apache-2.0
"""
The events of many conditions: literals of all on one field at once, the rest for few events.

Most rules want few events. So tests of texts against literals are answered by the events that they
hold for, and what stands beside one with AND is asked of these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.literals import LiteralTest, Shorts, literal_hits
from pyflinkcep.expressions.sql_types import STRING, VOID
from pyflinkcep.expressions.tree import EACH, Call, Column, Literal, Operation, Tree, attribute_of
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.order import order_by
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


class _Node(NamedTuple):
    """A condition, or a part of one, as it is asked."""

    kind: str  # and, or, not; "held" for what is only true or not; "test", or "other"
    parts: tuple[_Node, ...]
    number: int  # Of the test, or of the other condition
    is_known: bool  # Whether events for which it holds come from tests
    is_cheap: bool  # Whether tests alone answer it


def _cost(node: _Node) -> tuple[bool, bool]:
    """Return the order of conditions: what tests answer first, of that what has few events."""
    return not node.is_cheap, not node.is_known


@attrs.frozen(eq=False, slots=False)
class RuleTests:
    """Conditions made ready, once for all events that they are asked of."""

    _nodes: list[_Node]
    _leaves: list[_Leaf | None]  # By number the test; None for other conditions
    _trees: list[Tree]  # By number

    @classmethod
    def of(cls, trees: Iterable[Tree]) -> RuleTests:
        """Make conditions ready; equal tests are one."""
        leaves: list[_Leaf | None] = []
        numbers: dict[Tree, int] = {}

        def number(tree: Tree, leaf: _Leaf | None) -> int:
            if tree not in numbers:
                numbers[tree] = len(leaves)
                leaves.append(leaf)
            return numbers[tree]

        def node(tree: Tree) -> _Node:
            leaf = _leaf(tree)
            if leaf is not None:
                return _Node("test", (), number(tree, leaf), True, True)
            match tree:
                case Operation("and" | "or" | "not" as word, operands):
                    # What tests answer comes first, so that the rest is asked of few events.
                    parts = tuple(sorted(map(node, operands), key=_cost))
                    known = [part.is_known for part in parts]
                    is_known = any(known) if word == "and" else word == "or" and all(known)
                    return _Node(word, parts, -1, is_known, parts[-1].is_cheap)
                case Operation("coalesce", (inner, Literal(False))):
                    part = node(inner)
                    return _Node("held", (part,), -1, part.is_known, part.is_cheap)
                case Call("exists", (Column() as array, Operation("or", tests))):
                    # Some value satisfies one of several tests: one of them is so of some value.
                    each = (Call("exists", (array, test)) for test in tests)
                    return node(Operation("or", tuple(each)))
            return _Node("other", (), number(tree, None), False, False)

        nodes = list(map(node, trees))
        return cls(nodes, leaves, [*numbers])

    @cached_property
    def _by_field(self) -> dict[tuple[Column, str], _FieldTests]:
        """The tests of each field, and of it without case."""
        numbers: dict[tuple[Column, str], list[int]] = {}
        for number, leaf in enumerate(self._leaves):
            if leaf is not None:
                numbers.setdefault((leaf.column, leaf.fold), []).append(number)
        leaves = self._leaves
        return {
            field: _FieldTests.of(own, [leaf for leaf in map(leaves.__getitem__, own) if leaf])
            for field, own in numbers.items()
        }

    def on(self, fields: EventFields) -> RuleRows:
        """Ask the conditions of events."""
        hits: list[_Hits | None] = [None] * len(self._leaves)
        for (column, fold), tests in self._by_field.items():
            values = fields.values_of(attribute_of(column.sql or ""))
            if isinstance(values, FieldValues) and values.type in (STRING, VOID):
                found = literal_hits(tests.literals, *_encoded(values, fold))
                for number, own in zip(tests.leaves, tests.own, strict=True):
                    hits[number] = _Hits(values, found, own)
        return RuleRows(fields, self._nodes, self._trees, hits)


@attrs.frozen
class _FieldTests:
    """All tests of one field, equal ones of several leaves once."""

    leaves: Sequence[int]  # The numbers of leaves
    literals: Sequence[LiteralTest]
    own: Sequence[Sequence[int]]  # For each leaf the places of its tests

    @classmethod
    def of(cls, numbers: Sequence[int], leaves: Sequence[_Leaf]) -> _FieldTests:
        """Return the tests of some leaves, equal ones once."""
        places: dict[LiteralTest, int] = {}
        own = [[places.setdefault(one, len(places)) for one in leaf.tests] for leaf in leaves]
        return cls(numbers, [*places], own)


class _Hits(NamedTuple):
    """The values of a field for which tests hold, and which of these tests are a leaf's own."""

    values: FieldValues
    found: Sequence[Shorts]
    own: Sequence[int]


@attrs.frozen(eq=False)
class RuleRows:
    """Conditions and the events that they are asked of."""

    fields: EventFields
    _nodes: list[_Node]
    _trees: list[Tree]
    _hits: list[_Hits | None]
    _codes: dict[int, Ints] = attrs.field(init=False, factory=dict)
    _counts: dict[int, int] = attrs.field(init=False, factory=dict)
    _events: dict[int, tuple[Ints, Ints]] = attrs.field(init=False, factory=dict)

    def rows(self, number: int) -> Ints:
        """Return the events for which a condition holds, in order."""
        return self._rows(self._nodes[number])

    def _rows(self, node: _Node) -> Ints:
        match node.kind:
            case "test":
                hit = self._hits[node.number]
                if hit is not None:
                    return self._events_of(hit.values, self._codes_of(node.number, hit))
            case "held":
                return self._rows(node.parts[0])
            case "or":
                found = [own for own in map(self._rows, node.parts) if len(own)]
                return np.unique(np.concatenate(found)) if found else _NOTHING
            case "and":
                return self._both(node.parts)
            case "not":
                asked = self._asked(node, np.arange(self.fields.size))
                return np.flatnonzero(asked == YES)
        return np.flatnonzero(self.fields.holds(self._trees[node.number]))

    def _both(self, parts: tuple[_Node, ...]) -> Ints:
        """Return the events of all parts: those of one that has few, the rest asked of these."""
        known = [part for part in parts if part.is_known]
        first = known[0] if len(known) == 1 else min(known, key=self._most, default=None)
        found = np.arange(self.fields.size) if first is None else self._rows(first)
        for part in parts:
            if part is not first and len(found):
                found = found[self._asked(part, found) == YES]
        return found

    def _most(self, node: _Node) -> int:
        """Return of how many events at most a condition holds that tests know."""
        match node.kind:
            case "test":
                hit = self._hits[node.number]
                if hit is None:
                    return self.fields.size
                if node.number not in self._counts:
                    begins, _ = self._by_value(hit.values)
                    codes = self._codes_of(node.number, hit)
                    self._counts[node.number] = int((begins[codes + 1] - begins[codes]).sum())
                return self._counts[node.number]
            case "or":
                return sum(map(self._most, node.parts))
        return min(self._most(part) for part in node.parts if part.is_known)

    def _asked(self, node: _Node, rows: Ints) -> Answers:
        """Return what a condition says of some events."""
        match node.kind:
            case "test":
                hit = self._hits[node.number]
                if hit is not None:
                    return self._of_test(hit.values, self._codes_of(node.number, hit), rows)
            case "and" | "or":
                return self._joined(node, rows)
            case "not":
                inner = self._asked(node.parts[0], rows)
                opposite: Answers = np.subtract(YES, inner, dtype=np.int8)
                return opposite
            case "held":
                held: Answers = np.multiply(
                    self._asked(node.parts[0], rows) == YES, YES, dtype=np.int8
                )
                return held
        return self.fields.answers_of(self._trees[node.number], rows)

    def _joined(self, node: _Node, rows: Ints) -> Answers:
        """Return what conditions together say of some events: tests of all, others if need be."""
        joined, decided = (np.minimum, NO) if node.kind == "and" else (np.maximum, YES)
        found = self._asked(node.parts[0], rows)
        for part in node.parts[1:]:
            if part.is_cheap:
                found = joined(found, self._asked(part, rows))
                continue
            still_open = np.flatnonzero(found != decided)
            if not len(still_open):
                break
            own = self._asked(part, rows[still_open])
            found[still_open] = joined(found[still_open], own)
        return found

    def _codes_of(self, number: int, hit: _Hits) -> Ints:
        """Return the numbers of the values for which a test holds, in order."""
        codes = self._codes.get(number)
        if codes is None:
            found = [hit.found[test] for test in hit.own]
            joined = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
            codes = self._codes[number] = joined.astype(np.int64)
        return codes

    def _of_test(self, values: FieldValues, codes: Ints, rows: Ints) -> Answers:
        if values.bounds is not None:
            events = self._events_of(values, codes)
            found = np.zeros(len(rows), np.int8)
            if len(events):
                places = np.minimum(np.searchsorted(events, rows), len(events) - 1)
                found[events[places] == rows] = YES
            return found
        seen = values.codes[rows]
        answers = np.where(seen < 0, UNKNOWN, NO).astype(np.int8)
        if len(codes):
            is_own = np.zeros(values.count + 1, bool)  # the last for no value
            is_own[codes] = True
            answers[is_own[seen]] = YES
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
            events, codes = values.choices
            order = order_by([codes])
            begins = np.zeros(values.count + 1, np.int64)
            np.cumsum(np.bincount(codes, minlength=values.count), out=begins[1:])
            self._events[id(values)] = begins, events[order]
        return self._events[id(values)]


def _encoded(values: FieldValues, fold: str) -> tuple[memoryview, Ints]:
    """Return texts in UTF-8, one after another, and where each ends, without case if it folds."""
    known = values.encoded
    array = pa.array(values.distinct) if known is None else known
    array = array.cast(pa.large_utf8())
    if fold == "translate":
        array = pc.ascii_lower(array)
    elif fold == "lower":
        if pc.all(pc.string_is_ascii(array)).as_py() is not False:
            array = pc.ascii_lower(array)
        else:  # Arrow has another lower case for some letters
            array = pa.array([text.lower() for text in values.distinct], pa.large_utf8())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(array) + 1, 8 * array.offset)
    begin = int(bounds[0]) if len(bounds) else 0
    whole = memoryview(data if data is not None else b"").cast("B")
    return whole[begin : begin + int(bounds[-1] - begin)], bounds[1:] - begin
