# SPDX-License-Identifier: Apache-2.0
"""Programs for many rows at once, on arrays and in C, say what they say row by row."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.expressions.arrays import TextRanks, Values, columnar, holding
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.program import Code, CompiledExpressions, Instruction, Op, Type
from pyflinkcep.kernel.module import compiled_module
from tests.kernel_harness import needs_kernel
from tests.unit.kernel.random_programs import FIELDS, ROWS, SLOTS, truths

TEXTS = ["", "a", "ab", "a%", "ä", "\U0001f600", "\ud7ff", "zz", "A\nb", "\\"]
RANKS = TextRanks({text: number for number, text in enumerate(sorted(TEXTS))})
OTHERS: dict[Op, Instruction] = {
    Op.CONCAT: (Op.GREATEST, Type.TEXT), Op.STARTS_WITH: (Op.LE, Type.TEXT),
    Op.LIKE: (Op.IS_NULL, None),
}  # fmt: skip
"""What stands here for what lists do not have; LIKE they have on arrays."""


def of_two(code: Code, kept: tuple[Op, ...] = ()) -> Code:
    """Return a program over the fields of two events, by turns, without slots."""
    found: list[Instruction] = []
    for number, (op, operand) in enumerate(code):
        if op in (Op.FIELD, Op.SLOT):
            field = operand if op is Op.FIELD else SLOTS[int(operand or 0)].type
            found.append((Op.FIELD, int(field or 0) + 3 * (number % 2)))
        elif op is Op.ADD_PASSING:
            found.append((Op.LEAST, operand))
        else:
            found.append((op, operand) if op in kept else OTHERS.get(op, (op, operand)))
    return tuple(found)


def row_by_row(code: Code, rows: list[tuple[Any, ...]]) -> list[bool]:
    """Return for which rows a program holds."""
    programs = CompiledExpressions(FIELDS * 2, (), {"t": code}, False)
    holds = generated(programs).conditions["t"]
    return [holds(row, ()) for row in rows]


def column(values: list[Any], field: int) -> Values:
    """Return a field of each row."""
    if field == 2:
        values = [None if value is None else RANKS.numbers[value] for value in values]
    data = np.asarray([value or 0 for value in values], float if field == 1 else np.int64)
    return Values(data, np.asarray([value is None for value in values]))


EVENTS = st.lists(ROWS, min_size=1, max_size=4)


@given(truths(3), EVENTS, EVENTS)
def test_many_rows_say_what_each_says(code: Code, first: list[Any], second: list[Any]) -> None:
    """Jumps, NULL, NaN, wrapped numbers and texts: on arrays, and in a join in C if there is one."""
    with_like, without = of_two(code, (Op.LIKE,)), of_two(code)
    rows = [(*a, *b) for a, b in product(first, second)]
    columns = [column(list(values), n % 3) for n, values in enumerate(zip(*rows, strict=True))]
    found = holding(columnar(with_like, RANKS), len(rows), columns.__getitem__, RANKS)
    assert found.tolist() == row_by_row(with_like, rows)
    if compiled_module() is not None:
        assert joined(without, first, second) == row_by_row(without, rows)


def joined(code: Code, first: list[Any], second: list[Any]) -> list[bool]:
    """Return for which pairs a program holds: each of one list with all of the other at once."""
    module, size, more = compiled_module(), len(first), len(second)
    assert module is not None
    places = np.arange(size), np.arange(size, size + more)
    fields = [column([event[n % 3] for event in (first, second)[n // 3]], n % 3) for n in range(6)]
    program = tuple((int(op), v) for op, v in columnar(code, RANKS, is_condition=True))
    join = module.Join(
        tuple((own, own, None) for own in places),
        False,
        tuple((n // 3, field.data, ~field.nulls) for n, field in enumerate(fields)),
        ((0, -1, -1, True, None, ()), (1, 0, 0, True, None, (program,))),
        -1,
    )
    room = np.empty((size * more + 1, 2), np.int64)
    found = {(int(a), int(b) - size) for a, b in room[: join.rows(room)]}
    return [pair in found for pair in product(range(size), range(more))]


@pytest.mark.parametrize("digits", [-1, 0, 1, 2, 3])
def test_the_digits_of_round_are_no_type(digits: int) -> None:
    """As many digits are kept as were asked for, whatever types have the same number."""
    rows: list[tuple[Any, ...]] = [(0, 16.25, ""), (0, 6.125, "")]
    code: Code = ((Op.FIELD, 1), (Op.ROUND, digits), (Op.FLOAT, 16.25), (Op.GE, Type.FLOAT))
    columns = [column(list(values), n) for n, values in enumerate(zip(*rows, strict=True))]
    found = holding(columnar(code, RANKS), len(rows), columns.__getitem__, RANKS)
    assert found.tolist() == row_by_row(code, rows)


@needs_kernel
@pytest.mark.parametrize("op", [Op.SLOT, Op.LIKE, Op.PREFIX_END, Op.JUMP, 4711])
def test_joins_refuse_what_they_lack(op: int) -> None:
    """An operation that is not one of columns is refused when the join is made."""
    module, own = compiled_module(), np.arange(1)
    assert module is not None
    lists = ((own, own, None),)
    with pytest.raises(ValueError, match=r"expected .* in a program"):
        module.Join(lists, False, (), ((0, -1, -1, True, None, (((int(op), 0),),)),), -1)
