# SPDX-License-Identifier: Apache-2.0
"""Matches concatenated partitions, with the compiled search if available."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.rows.bridge import RowSearch, make_search
from pyflinkcep.engines.rows.columns import RowColumns
from pyflinkcep.engines.rows.output import Output, OutputRows
from pyflinkcep.engines.rows.plain_search import (
    MOST_BYTES,
    MOST_REMEMBERED,
    PlainSearch,
)
from pyflinkcep.engines.rows.plan import Compiled, StandardPlan
from pyflinkcep.engines.rows.program import Op
from pyflinkcep.engines.rows.successive import Place, SuccessiveMatches, out_of_memory
from pyflinkcep.engines.rows.tables import SearchTables
from pyflinkcep.engines.rows.values import UNKNOWN, RowConditions

__all__ = ["Matching", "Partitions"]


@attrs.frozen(eq=False)
class Partitions:
    """
    The rows of concatenated partitions.

    Attributes
    ----------
    ends : array of int64
        Where each partition ends.
    columns : RowColumns
        The columns that conditions read.
    measured : callable
        Returns an argument of a measure, or of a condition without a program, row by row.
    times : array of int64, epoch milliseconds
        The rows' times; None without a window.
    watermark : int, optional, epoch milliseconds
        All future rows are after this time; by default there are none.
    """

    ends: np.ndarray[Any, Any]
    columns: RowColumns
    measured: Callable[[str], Sequence[Any]]
    times: np.ndarray[Any, Any] | None = None
    watermark: int | None = None

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def longest(self) -> int:
        """The number of rows of the largest partition."""
        return int(np.diff(self.ends, prepend=0).max()) if len(self.ends) else 0


class Matching:
    """
    The matching of some partitions by a clause.

    Parameters
    ----------
    plan : StandardPlan
        The clause.
    compiled : Compiled
        Its conditions.
    partitions : Partitions
        The rows.
    """

    def __init__(self, plan: StandardPlan, compiled: Compiled, partitions: Partitions) -> None:
        self._ends = [0, *partitions.ends.tolist()]
        self._output = Output(
            plan.rows, plan.leaves, plan.program.variables, plan.subsets, partitions.measured
        )
        try:
            search: RowSearch | None = None
            if compiled.tables is not None:
                search = _compiled_search(plan, compiled, compiled.tables, partitions)
            if search is None:
                search = _plain_search(plan, compiled, partitions)
        except MemoryError as cause:
            raise out_of_memory() from cause
        self._matcher = SuccessiveMatches(search, plan.program.variables, plan.skip, plan.subsets)

    def partition(self, number: int, place: Place) -> Iterator[OutputRows]:
        """
        Match a partition.

        Parameters
        ----------
        number : int
            The partition.
        place : Place
            Where to begin; updated to where the search has come.

        Yields
        ------
        OutputRows
            Output of this and earlier partitions, in order, in large portions.
        """
        part = range(self._ends[number], self._ends[number + 1])
        for match in self._matcher.matches(part, place):
            self._output.add(match, part, place)
            if self._output.is_full:
                yield self._output.take()
        self._output.settle(part, place)

    def rest(self) -> OutputRows:
        """Return the rest of the output."""
        return self._output.take()


def _compiled_search(
    plan: StandardPlan, compiled: Compiled, tables: SearchTables, partitions: Partitions
) -> RowSearch | None:
    size, program = partitions.size, plan.program
    splits = sum(op is Op.SPLIT for op, _, _ in program.code)
    places = (splits << program.loops) * (partitions.longest + 1)
    answers = []
    for argument in tables.answers:
        answer = None
        if argument:
            values, valid, _ = partitions.columns.array(argument)
            holds = np.asarray(values) != 0
            answer = bytearray(holds if valid is None else holds & valid)
        elif argument is not None:
            answer = bytearray([UNKNOWN]) * size
        answers.append(answer)
    return make_search(
        code=tuple((int(op), first, second) for op, first, second in program.code),
        loops=program.loops,
        rows=size,
        has_flags=not tables.slots and partitions.times is None and places <= MOST_BYTES,
        slots=tuple((int(s[0]), *s[1:]) for s in tables.slots),
        programs=tables.programs,
        has_number=tables.has_number,
        ansi=plan.ansi,
        most_remembered=MOST_REMEMBERED,
        fields=tables.field_arrays(partitions.columns, partitions.ends),
        answers=tuple(answers),
        times=partitions.times,
        within=plan.within,
        watermark=partitions.watermark,
        failed=lambda variable, what: compiled.conditions[program.variables[variable]].failed(what),
    )


def _plain_search(plan: StandardPlan, compiled: Compiled, partitions: Partitions) -> PlainSearch:
    times = None if partitions.times is None else partitions.times.tolist()
    conditions = RowConditions(
        plan.program.variables, compiled.conditions, plan.subsets, partitions.size,
        partitions.columns, plan.ansi, partitions.measured,
    )  # fmt: skip
    return PlainSearch(
        plan.program, conditions, partitions.size, partitions.longest, times, plan.within,
        partitions.watermark,
    )  # fmt: skip
