# SPDX-License-Identifier: Apache-2.0
"""Joins ordered event lists in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.clauses import Columns, JoinPrograms, join_programs, named
from pyflinkcep.engines.lists.frame import ElementList, Frame
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.ranges import JOINING, Ints
from pyflinkcep.expressions.arrays import Values, computed, ranked
from pyflinkcep.expressions.numbers import LEAST, MOST
from pyflinkcep.expressions.program import Op, Type
from pyflinkcep.expressions.tree import Tree
from pyflinkcep.kernel.module import CompiledModule, compiled_module, naming_memory_errors
from pyflinkcep.sase.model import Form

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


_MOST_ROWS = 1 << 14
_NO_WINDOW = -1
_PLAIN = (
    Op.LIKE, Op.PREFIX_END, Op.DECIMAL, Op.UNITS, Op.INT_TO_DECIMAL, Op.DECIMAL_TO_FLOAT,
    Op.DECIMAL_TO_INT, Op.FIT,
)  # fmt: skip
"""The operations of several elements that only the plain path has."""


def joined_frames(
    lists: EventLists, met: Callable[[bytes], None] | None = None
) -> Iterable[Frame] | None:
    """Return the choices of single events that satisfy the conditions on these alone."""
    module = compiled_module()
    if module is None or not lists.conditions.columns.is_native:
        return None
    plan = _Plan(lists, module)
    if any(value.typed.type is Type.DECIMAL for value in plan.programs.values):
        return None
    with naming_memory_errors(JOINING):
        steps = tuple(plan.steps())
    if any(op in _PLAIN for *_, codes in steps for code in codes for op, _ in code):
        return None
    return plan.frames(steps, met)


@attrs.frozen(eq=False, slots=False)
class _Plan:
    """A join in the kernel's form."""

    lists: EventLists
    module: CompiledModule

    @cached_property
    def programs(self) -> JoinPrograms:
        """The conditions as programs."""
        order = set(self.lists.order)
        joining = [t for t in self.lists.clauses.associations if set(named(t)) <= order]
        return join_programs(tuple(joining), self._columns.types)

    def code(self, condition: Tree) -> tuple[tuple[int, Any], ...]:
        """Return the program of a condition, its texts being ranks."""
        code = ranked(self.programs.codes[condition], self._columns.ranks)
        return tuple((int(op), operand) for op, operand in code)

    def values(self) -> Iterator[tuple[str, Values]]:
        """Yield the variable of each value that conditions read, and it for each of its events."""
        ranks = self._columns.ranks
        taken: dict[tuple[str, str], Values] = {}  # each attribute once, because memory is slow
        for value in self.programs.values:
            name, positions = value.variable, self.lists.lists[value.variable].positions
            fields = [str(leaf.over.attribute) for leaf in value.program.leaves]
            for field in fields:
                if (name, field) not in taken:
                    taken[name, field] = self._columns.taken(field, positions)
            leaves = [taken[name, field] for field in fields]
            code = ranked(value.program.code, ranks)
            yield name, computed(code, leaves.__getitem__, ranks)

    @property
    def _columns(self) -> Columns:
        return self.lists.conditions.columns

    def frames(
        self, steps: tuple[Any, ...], met: Callable[[bytes], None] | None
    ) -> Iterator[Frame]:
        """Yield the rows of the join."""
        names = self.lists.order
        with naming_memory_errors(JOINING):
            join = self._join(steps)
        while True:
            rows = np.empty((_MOST_ROWS, len(names)), np.int64)
            size = join.rows(rows)
            if not size:
                if met is not None:
                    met(join.met())
                return
            yield Frame(size, {name: rows[:size, n] for n, name in enumerate(names)})

    def _join(self, steps: tuple[Any, ...]) -> _kernel.Join:
        lists = self.lists
        return self.module.Join(
            tuple(self._list(lists.lists[name]) for name in lists.order),
            self._by_time,
            tuple(self._fields()),
            steps,
            _NO_WINDOW if lists.query.window is None else lists.query.window,
        )

    @property
    def _by_time(self) -> bool:
        """Whether events of equal time have no order."""
        return self.lists.query.form is Form.LIST

    def _list(self, own: ElementList) -> tuple[Ints, Ints, Ints | None]:
        return own.positions, own.times, own.groups

    def _fields(self) -> Iterator[tuple[int, Any, Any]]:
        for name, values in self.values():
            size = len(self.lists.lists[name])
            data = np.broadcast_to(values.data, size)
            dtype = np.float64 if data.dtype.kind == "f" else np.int64
            valid = None
            if np.any(values.nulls):
                valid = np.array(np.broadcast_to(np.logical_not(values.nulls), size))
            yield self.lists.order.index(name), np.ascontiguousarray(data, dtype), valid

    def steps(self) -> Iterator[tuple[Any, ...]]:
        """Yield the steps of the join, with the programs of their conditions."""
        order = self.lists.order
        places = {part.variable: n for n, part in enumerate(self.lists.query.positive)}
        waiting = list(self.programs.codes)
        for number, name in enumerate(order):
            known = set(order[: number + 1])
            ready = [tree for tree in waiting if set(named(tree)) <= known]
            waiting = [tree for tree in waiting if tree not in ready]
            codes = tuple(map(self.code, ready))
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
