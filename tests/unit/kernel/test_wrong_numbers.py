# SPDX-License-Identifier: Apache-2.0
"""Numbers that refer to nothing are refused when an object of the kernel is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyflinkcep.expressions.program import Function, Op
from pyflinkcep.kernel.module import compiled_module
from tests.kernel_harness import needs_kernel
from tests.unit.engines.rows.test_search import TAKE_ALL, search

pytestmark = needs_kernel

_TWO = np.arange(2)
_LAST = (int(Function.LAST), 0, 0, -1, 0, False)
_NO_PARTITION = ((), ())


def lister(
    strategy: int = 3,
    live: tuple[int, ...] = (),
    code: Any = (),
    slots: Any = (),
    gap: int = 0,
    events: int = 1,
    equal: tuple[int, int] = (-1, -1),
) -> Any:
    """A query of one component, and a negated one."""
    component = (False, strategy, (live, (), (), ()), (code, (), (), (), ()), equal, (-1, -1))
    negative = (gap, 0, ((-1, (), ()),) * events)
    return compiled_module().Lister((component,), (negative,), _NO_PARTITION, slots, -1)


def join(element: int = 0, column: int = 0, code: Any = (), items: Any = _TWO) -> Any:
    """A join of one list."""
    step = (element, -1, -1, True, None, (code,) if code else ())
    one = (_TWO, _TWO, None)
    return compiled_module().Join((one,), False, ((column, items, None),), (step,), -1)


@pytest.mark.parametrize(
    "made",
    [
        lambda: lister(strategy=4),
        lambda: lister(strategy=-1),
        lambda: lister(live=(0,)),
        lambda: lister(live=(1,), slots=(_LAST,)),
        lambda: lister(code=((Op.SLOT, 0),)),
        lambda: lister(code=((Op.FIELD, -1),)),
        lambda: lister(code=((Op.JUMP, 1),)),
        lambda: lister(gap=2),
        lambda: lister(events=0),
        lambda: lister(events=2),
        lambda: lister(equal=(0, 0)),
        lambda: lister(equal=(1, 0), slots=(_LAST,)),
        lambda: lister(equal=(-1, 0), slots=(_LAST,)),
        lambda: lister(slots=((*_LAST[:3], 1, 0, False),)),
        lambda: lister(slots=((*_LAST[:2], -2, -1, 0, False),)),
        lambda: lister(slots=(_LAST,)).set_events(2, ()),
        lambda: lister(code=((Op.FIELD, 1),)).set_events(2, ((_TWO, None, False),)),
        lambda: join(element=1),
        lambda: join(column=-1),
        lambda: join(code=((Op.FIELD, 1),)),
        lambda: search(TAKE_ALL, slots=((int(Function.SUM), (0,), 1, 0, False),)),
        lambda: search(TAKE_ALL, programs=(((Op.SLOT, 0),),)),
        lambda: lister(slots=((int(Function.FIRST), 0, 0, -1, 0, False),)),
        lambda: lister(slots=((int(Function.MEAN), 0, 0, -1, 0, True),)),
        lambda: lister(slots=((99, 0, 0, -1, 0, True),)),
        lambda: lister(code=((Op.ADD, 0),)),
        lambda: lister(code=((Op.INT, 1), (Op.ADD, 0))),
        lambda: lister(code=((Op.INT, 1), (Op.INT, 1))),
        lambda: lister(code=((Op.JUMP_UNLESS, 0), (Op.INT, 1))),
        lambda: lister(code=((Op.JUMP, 1), (Op.INT, 1), (Op.NOT, 0))),
        lambda: lister(code=((Op.INT, 1), (Op.JUMP_IF_TRUE, 1), (Op.INT, 1), (Op.NOT, 0))),
        lambda: lister(code=((Op.INT, 1), (Op.LIKE, 5))),
        lambda: lister(code=((Op.TEXT, 5),)),
        lambda: lister(code=((9, 0),)),
        lambda: join(code=((Op.CHOOSE, 0),)),
        lambda: join(code=((Op.INT, 1), (Op.INT, 1), (Op.CHOOSE, 0))),
        lambda: join(code=((Op.LE, 0),)),
        lambda: compiled_module().Join(
            ((_TWO, _TWO, None),), False, (), ((0, -1, -1, True, None, ((),)),), -1
        ),
    ],
)
def test_numbers_that_refer_to_nothing(made: Callable[[], Any]) -> None:
    """Slots, fields, columns, elements, gaps, strategies, jumps and operands must be there."""
    with pytest.raises((ValueError, IndexError), match="expected"):
        made()


@pytest.mark.parametrize("kind", ["Lister", "Backtracker", "Counter"])
@pytest.mark.parametrize("wrong", [0, 1, 2])
@pytest.mark.parametrize("bits", [2, 1 << 40, -1, -(2**63)])
def test_bits_of_what_is_not_there(kind: str, wrong: int, bits: int) -> None:
    """
    What a code begins, takes and bars has bits of the query's components and negated events only.

    Whatever takes such bits walks as far as they go.
    """
    component = (True, 3, ((), (), (), ()), ((), (), (), (), ()), (-1, -1), (-1, -1))
    negative = (0, 0, ((-1, (), ()),))
    made = getattr(compiled_module(), kind)((component,), (negative,), _NO_PARTITION, (), -1)
    made.set_events(2, ())
    masks = [np.array([1]), np.array([1]), np.array([1])]
    opened: Any = {
        "Lister": lambda: made.open(False, np.array([0, 2]), None, *events, *masks),
        "Backtracker": lambda: made.turn_to(0, None, np.array([0, 2]), None, *events, *masks),
        "Counter": lambda: made.count(*events, *masks, False, None, 0, False),
    }[kind]
    events = (_TWO, None, np.zeros(2, np.int32), None)
    opened()
    masks[wrong] = np.array([bits])
    with pytest.raises(ValueError, match="expected bits of components"):
        opened()


def test_texts_are_not_taken_for_numbers() -> None:
    """The types of fields are known when there are events: a program that confuses them fails."""
    for code in (
        ((Op.FIELD, 0), (Op.INT, 1), (Op.LT, 0)),
        ((Op.FIELD, 0), (Op.NEG, 0)),
        ((Op.INT, 1), (Op.INT, 2), (Op.CONCAT, 0)),
        ((Op.INT, 1), (Op.LIKE, str)),
    ):
        made = lister(code=code, gap=0)
        made.set_events(2, ((["x", "y"], None, False),))
        masks = (np.array([1]), np.array([0]), np.array([0]))
        made.open(False, np.array([0, 2]), None, _TWO, None, np.zeros(2, np.int32), None, *masks)
        with pytest.raises(TypeError, match="operands of the type of their operation"):
            made.next(1)


def test_floats_are_not_taken_for_integers() -> None:
    """An array says what its items are; their size is not enough."""
    two = np.array([0.5, 1.5])
    with pytest.raises(TypeError, match="integers, with items of 8 bytes, got 'd'"):
        compiled_module().Join(((two, _TWO, None),), False, (), (), -1)
    with pytest.raises(TypeError, match="array of floats"):
        lister().set_events(2, ((_TWO, None, True),))
    with pytest.raises(TypeError, match="array of integers"):
        lister().set_events(2, ((two, None, False),))
    assert join(items=two) is not None
