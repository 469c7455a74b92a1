# SPDX-License-Identifier: Apache-2.0
"""Joins ordered event lists in the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.candidates import ElementList
from pyflinkcep.engines.lists.clauses import named
from pyflinkcep.engines.lists.columns import Values, computed
from pyflinkcep.engines.lists.frame import Frame
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.ranges import Ints, Stretches
from pyflinkcep.engines.lists.type_codes import Split
from pyflinkcep.expressions.program import Code, Op, Type
from pyflinkcep.kernel.memory import naming_memory_errors
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase.model import Form
from pyflinkcep.sase.tree import (
    Arithmetic,
    Comparison,
    Expression,
    Function,
    Logical,
    NullTest,
    Reference,
)

__all__ = ["joined_frames", "kernel_split"]

_MOST_ROWS = 1 << 14
_MOST, _LEAST = (1 << 63) - 1, -(1 << 63)
_NO_WINDOW = -1
_JOINING = "event lists are joined"
_COMPARED = {"=": Op.EQ, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
_COMPUTED = {"+": Op.ADD, "-": Op.SUB, "*": Op.MUL, "/": Op.DIV, "%": Op.MOD}
_JOINED = {"and": Op.AND, "or": Op.OR}


def joined_frames(lists: EventLists) -> Iterable[Frame] | None:
    """
    Return the choices of single events that satisfy the conditions on these alone.

    Returns
    -------
    iterable of Frame or None
        The argument of :meth:`EventLists.frames`; None if only the plain path can join them.
    """
    module = compiled_module()
    if module is None or not lists.conditions.columns.is_native:
        return None
    return _Plan(lists, module).frames()


def kernel_split() -> Split | None:
    """Return the split for :meth:`EventLists.of`; None on the plain path."""
    module = compiled_module()
    if module is None:
        return None

    def split(codes: Any, lists: Any, count: int, stretches: Stretches | None) -> list[Ints]:
        low, high = (None, None) if stretches is None else stretches
        with naming_memory_errors(_JOINING):
            found = module.split(np.ascontiguousarray(codes, np.int32), lists, count, low, high)
        return [np.frombuffer(positions, np.int64) for positions in found]

    return split


@attrs.frozen(eq=False)
class _Programs:
    """
    Conditions as programs over columns; a value of one element alone is a column of its own.

    Attributes
    ----------
    lists : EventLists
        The lists.
    columns : dict
        By element and value, the index and the values of its column.
    """

    lists: EventLists
    columns: dict[tuple[str, Expression], tuple[int, Values]] = attrs.field(factory=dict)
    _taken: dict[tuple[str, str], Values] = attrs.field(factory=dict)

    def condition(self, tree: Expression) -> Code:
        """Return the program of a condition without NOT."""
        if isinstance(tree, Logical):
            first, *rest = map(self.condition, tree.operands)
            for code in rest:
                first = *first, *code, (_JOINED[tree.operator], None)
            return first
        if isinstance(tree, NullTest):
            code, _ = self._value(tree.value)
            return *code, (Op.IS_NULL, None), *([(Op.NOT, None)] if tree.negated else [])
        assert isinstance(tree, Comparison)
        return self._operation(_COMPARED[tree.operator], (tree.left, tree.right))[0]

    def _value(self, tree: Expression) -> tuple[Code, bool]:
        """Return the program of a value, and whether that is a float."""
        names = named(tree)
        if not names:
            return _constant(computed(tree, self._none, self.lists.conditions.columns))
        if len(names) == 1:
            number, values = self._column(names[0], tree)
            return ((Op.FIELD, number),), values.data.dtype.kind == "f"
        assert isinstance(tree, Arithmetic)  # a value of several elements
        return self._operation(
            _COMPUTED[tree.operator], tree.operands, wants_float=tree.operator == "/"
        )

    def _operation(
        self, op: Op, operands: Sequence[Expression], *, wants_float: bool = False
    ) -> tuple[Code, bool]:
        parts = list(map(self._value, operands))
        is_float = wants_float or any(own for _, own in parts)
        code: Code = ()
        for own, has_float in parts:
            code += own if has_float or not is_float else (*own, (Op.INT_TO_FLOAT, None))
        if len(parts) == 1:
            op = Op.NEG
        return (*code, (op, int(Type.FLOAT if is_float else Type.INT))), is_float

    def _column(self, name: str, tree: Expression) -> tuple[int, Values]:
        found = self.columns.get((name, tree))
        if found is None:
            columns = self.lists.conditions.columns
            found = len(self.columns), computed(tree, self._attribute, columns)
            self.columns[name, tree] = found
        return found

    def _attribute(self, reference: Reference | Function) -> Values:
        """Return an attribute of an element's events; read once, because memory is slow."""
        assert isinstance(reference, Reference)
        key = reference.variable, str(reference.attribute)
        if key not in self._taken:
            positions = self.lists.lists[reference.variable].positions
            self._taken[key] = self.lists.conditions.columns.taken(key[1], positions)
        return self._taken[key]

    @staticmethod
    def _none(reference: Reference | Function) -> Values:
        raise NotImplementedError  # for conditions that name no element


def _constant(values: Values) -> tuple[Code, bool]:
    if np.any(values.nulls):
        return ((Op.NULL, None),), False
    value = np.asarray(values.data)
    if value.dtype.kind == "f":
        return ((Op.FLOAT, float(value)),), True
    return ((Op.INT, int(value)),), False


@attrs.frozen(eq=False)
class _Plan:
    """A join in the kernel's form."""

    lists: EventLists
    module: Any

    def frames(self) -> Iterator[Frame]:
        """Yield the rows of the join."""
        names = self.lists.order
        with naming_memory_errors(_JOINING):
            join = self._join()
        while True:
            rows = np.empty((_MOST_ROWS, len(names)), np.int64)
            size = join.rows(rows)
            if not size:
                return
            yield Frame(size, {name: rows[:size, n] for n, name in enumerate(names)})

    def _join(self) -> Any:
        lists, programs = self.lists, _Programs(self.lists)
        steps = tuple(self._steps(programs))
        return self.module.Join(
            tuple(self._list(lists.lists[name]) for name in lists.order),
            self._by_time,
            tuple(self._columns(programs)),
            steps,
            _NO_WINDOW if lists.query.window is None else lists.query.window,
        )

    @property
    def _by_time(self) -> bool:
        """Whether events of equal time have no order."""
        return self.lists.query.form is Form.LIST

    def _list(self, own: ElementList) -> tuple[Ints, Ints, Ints | None]:
        return own.positions, own.times, own.groups

    def _columns(self, programs: _Programs) -> Iterator[tuple[int, Any, Any]]:
        for (name, _), (_, values) in programs.columns.items():
            size = len(self.lists.lists[name])
            dtype = np.float64 if values.data.dtype.kind == "f" else np.int64
            valid = None
            if np.any(values.nulls):
                valid = np.array(np.broadcast_to(np.logical_not(values.nulls), size))
            yield self.lists.order.index(name), np.ascontiguousarray(values.data, dtype), valid

    def _steps(self, programs: _Programs) -> Iterator[tuple[Any, ...]]:
        order = self.lists.order
        places = {part.variable: n for n, part in enumerate(self.lists.query.positive)}
        waiting = [t for t in self.lists.clauses.associations if set(named(t)) <= set(order)]
        for number, name in enumerate(order):
            known = set(order[: number + 1])
            ready = [tree for tree in waiting if set(named(tree)) <= known]
            waiting = [tree for tree in waiting if tree not in ready]
            codes = tuple(tuple((int(op), v) for op, v in programs.condition(t)) for t in ready)
            if not number:
                yield number, -1, -1, True, None, codes
                continue
            bound = sorted(order[:number], key=places.__getitem__)
            is_forward = places[name] > places[bound[-1]]
            neighbour, far = (bound[-1], bound[0]) if is_forward else (bound[0], bound[-1])
            barriers = self._barriers(neighbour, name, is_forward)
            yield number, order.index(neighbour), order.index(far), is_forward, barriers, codes

    def _barriers(self, neighbour: str, name: str, is_forward: bool) -> Ints | None:
        """Return for each item of the neighbour the first negated event that blocks it, if any."""
        found: Ints | None = None
        for part in self.lists.between:
            if set(self.lists.bounds(part)) == {neighbour, name}:
                own = self._barrier(part.variable, neighbour, is_forward)
                nearer = np.minimum if is_forward else np.maximum
                found = own if found is None else nearer(found, own)
        return found

    def _barrier(self, negated: str, neighbour: str, is_forward: bool) -> Ints:
        absent, near = self.lists.lists[negated], self.lists.lists[neighbour]
        links = self.module.links(self._list(near), self._list(absent), is_forward, self._by_time)
        places = np.frombuffer(links, np.int64) - (0 if is_forward else 1)
        inside = np.flatnonzero((places >= 0) & (places < len(absent)))
        if near.groups is not None and absent.groups is not None:
            inside = inside[near.groups[inside] == absent.groups[places[inside]]]
        barriers = np.full(len(near), _MOST if is_forward else _LEAST, np.int64)
        positions = absent.positions[places[inside]]
        barriers[inside] = self.lists.ranks.times[positions] if self._by_time else positions
        return barriers
