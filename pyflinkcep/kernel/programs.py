# SPDX-License-Identifier: Apache-2.0
"""Programs and slots of match expressions in the form that C reads."""

from __future__ import annotations

from typing import Any

from pyflinkcep.expressions.literals import like_regex
from pyflinkcep.expressions.program import Op, Slot, Type
from pyflinkcep.expressions.tree import WHOLE

__all__ = ["instruction", "slot_spec"]


def instruction(op: Op, operand: Any) -> tuple[int, Any]:
    """Return an instruction for the kernel: a LIKE pattern becomes the function that tests it."""
    return int(op), like_regex(operand).fullmatch if op is Op.LIKE else operand


def slot_spec(slot: Slot, stages: dict[str, int]) -> tuple[Any, ...]:
    """Return a slot for the kernel; `stages` has the index of each stage."""
    is_float = slot.type is Type.FLOAT
    stage = -1 if slot.stage == WHOLE else stages[slot.stage]
    return int(slot.function), stage, slot.field, slot.source, slot.offset, is_float
