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
    ],
)
def test_numbers_that_refer_to_nothing(made: Callable[[], Any]) -> None:
    """Slots, fields, columns, elements, gaps, strategies and jumps must be there."""
    with pytest.raises((ValueError, IndexError), match="expected"):
        made()


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
