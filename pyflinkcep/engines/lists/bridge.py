# SPDX-License-Identifier: Apache-2.0
"""Joins ordered event lists in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.candidates import ElementList
from pyflinkcep.engines.lists.clauses import named
from pyflinkcep.engines.lists.columns import Columns
from pyflinkcep.engines.lists.frame import Frame
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.ranges import Ints, Stretches
from pyflinkcep.engines.lists.type_codes import Split
from pyflinkcep.expressions.arrays import Values, by_ranks, columnar, computed
from pyflinkcep.expressions.compiler import condition_code, value_code
from pyflinkcep.expressions.leaf_fields import LeafFields
from pyflinkcep.expressions.program import Code, Kind, Op
from pyflinkcep.expressions.rules import LEAST, MOST
from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import CONDITIONS, Column, Leaf, Operation, Tree
from pyflinkcep.expressions.typed import Typed
from pyflinkcep.kernel.memory import naming_memory_errors
from pyflinkcep.kernel.module import CompiledModule, compiled_module
from pyflinkcep.sase.model import Form

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

__all__ = ["joined_frames", "kernel_split"]

_MOST_ROWS = 1 << 14
_NO_WINDOW = -1
_JOINING = "event lists are joined"
_TAKEN_APART = tuple(operator for operator in CONDITIONS if operator != "like")
_PLAIN = (Op.LIKE, Op.PREFIX_END)
"""The operations of several elements that only the plain path has."""


def joined_frames(
    lists: EventLists, met: Callable[[bytes], None] | None = None
) -> Iterable[Frame] | None:
    """
    Return the choices of single events that satisfy the conditions on these alone.

    Parameters
    ----------
    lists : EventLists
        The lists.
    met : callable, optional
        Receives at the end how many candidates each step has tested, int64.

    Returns
    -------
    iterable of Frame or None
        The argument of :meth:`EventLists.frames`; None if only the plain path can join them.
    """
    module = compiled_module()
    if module is None or not lists.conditions.columns.is_native:
        return None
    plan = _Plan(lists, module)
    programs = _Programs(lists)
    with naming_memory_errors(_JOINING):
        steps = tuple(plan.steps(programs))
    if any(op in _PLAIN for *_, codes in steps for code in codes for op, _ in code):
        return None
    return plan.frames(programs, steps, met)


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
    columns : dict of Tree to Column
        What stands for each value of one element.
    values : list of (Typed, Values)
        The type of each column, and its value for each event of the element.
    """

    lists: EventLists
    columns: dict[Tree, Column] = attrs.field(factory=dict)
    values: list[tuple[Typed, Values]] = attrs.field(factory=list)
    _taken: dict[tuple[str, str], Values] = attrs.field(factory=dict)

    def condition(self, tree: Tree) -> Code:
        """Return the program of a condition."""
        fields = _ElementValues(self.values, self._cast)
        code = condition_code(
            self._by_element(by_ranks(tree)), fields, f"the condition {shown(tree)!r}"
        )
        return columnar(code, self._arrays.ranks, is_condition=True)

    @property
    def _arrays(self) -> Columns:
        return self.lists.conditions.columns

    def _cast(self, number: int, kind: Kind) -> int:
        """Return the column of a time's cast, given that of the time."""
        own = next(tree for tree, column in self.columns.items() if column.sql == str(number))
        if not isinstance(own, Column):
            return number  # computed, so that it is no time of an event
        cast = attrs.evolve(own, sql=f"cast({own.sql} as {kind.value})")
        return int(str(self._by_element(cast).over.sql))

    def _by_element(self, tree: Tree) -> Any:
        """Return a condition whose values of one element are columns."""
        if not isinstance(tree, Operation | Leaf):
            return tree
        names = named(tree)
        if isinstance(tree, Operation) and (tree.operator in _TAKEN_APART or len(names) != 1):
            return attrs.evolve(tree, operands=tuple(map(self._by_element, tree.operands)))
        if tree not in self.columns:
            self.columns[tree] = Column(str(len(self.columns)), names[0])
            self.values.append(self._computed(tree, names[0]))
        return self.columns[tree]

    def _computed(self, tree: Tree, name: str) -> tuple[Typed, Values]:
        """Return the type and the values of a tree over the events of an element."""
        fields, ranks = self._arrays.fields(), self._arrays.ranks
        value = value_code(tree, fields, f"the value {shown(tree)!r}")
        leaves = [self._attribute(name, str(leaf.over.attribute)) for leaf in fields.leaves]
        return value, computed(columnar(tuple(value.code), ranks), leaves.__getitem__, ranks)

    def _attribute(self, name: str, attribute: str) -> Values:
        """Return an attribute of an element's events; read once, because memory is slow."""
        key = name, attribute
        if key not in self._taken:
            positions = self.lists.lists[name].positions
            self._taken[key] = self._arrays.taken(attribute, positions)
        return self._taken[key]


class _ElementValues(LeafFields):
    """The columns of values as fields."""

    def __init__(
        self, values: Sequence[tuple[Typed, Values]], cast: Callable[[int, Kind], int]
    ) -> None:
        super().__init__({})
        self._values = values
        self._cast = cast

    def cast(self, sql: str, kind: Kind) -> str:
        """Return the column of a value cast to another kind."""
        return sql if self._values[int(sql)][0].kind is kind else str(self._cast(int(sql), kind))

    def knows(self, sql: str) -> bool:
        """Whether a column has a type."""
        return self._values[int(sql)][0].kind is not None

    def column(self, part: Column) -> Typed:
        """Return the instruction that pushes a column."""
        number = int(part.sql or 0)
        value = self._values[number][0]
        return Typed([(Op.FIELD, number)], value.kind, value.scale)


@attrs.frozen(eq=False)
class _Plan:
    """A join in the kernel's form."""

    lists: EventLists
    module: CompiledModule

    def frames(
        self,
        programs: _Programs,
        steps: tuple[Any, ...],
        met: Callable[[bytes], None] | None,
    ) -> Iterator[Frame]:
        """Yield the rows of the join."""
        names = self.lists.order
        with naming_memory_errors(_JOINING):
            join = self._join(programs, steps)
        while True:
            rows = np.empty((_MOST_ROWS, len(names)), np.int64)
            size = join.rows(rows)
            if not size:
                if met is not None:
                    met(join.met())
                return
            yield Frame(size, {name: rows[:size, n] for n, name in enumerate(names)})

    def _join(self, programs: _Programs, steps: tuple[Any, ...]) -> _kernel.Join:
        lists = self.lists
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
        for column, (_, values) in zip(programs.columns.values(), programs.values, strict=True):
            name, size = column.variable, len(self.lists.lists[column.variable])
            data = np.broadcast_to(values.data, size)
            dtype = np.float64 if data.dtype.kind == "f" else np.int64
            valid = None
            if np.any(values.nulls):
                valid = np.array(np.broadcast_to(np.logical_not(values.nulls), size))
            yield self.lists.order.index(name), np.ascontiguousarray(data, dtype), valid

    def steps(self, programs: _Programs) -> Iterator[tuple[Any, ...]]:
        """Yield the steps of the join, with the programs of their conditions."""
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
        barriers = np.full(len(near), MOST if is_forward else LEAST, np.int64)
        positions = absent.positions[places[inside]]
        barriers[inside] = self.lists.ranks.times[positions] if self._by_time else positions
        return barriers
