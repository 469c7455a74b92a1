# SPDX-License-Identifier: Apache-2.0
"""The compiled module, if it was built and is not switched off."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyflinkcep.errors import OutOfMemoryError, Place
from pyflinkcep.expressions.codegen import called_function
from pyflinkcep.expressions.program import Op, Slot, Type, like_regex
from pyflinkcep.expressions.tree import WHOLE
from pyflinkcep.kernel import opcodes, sources

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


@contextmanager
def naming_memory_errors(doing: str, instead: str = "") -> Iterator[None]:
    """Name the activity in errors about memory, and what takes less, if anything does."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError(
            f"out of memory while {doing}", f"{instead}give the workers more memory"
        ) from error


_SWITCH = "PYFLINKCEP_KERNEL"
_OTHER = (
    "the compiled kernel was built from other sources than the Python code beside it "
    "(install the package again, or run make kernel in a clone)"
)
_SMALL = 18  # digits of decimals whose units fit 64 bits
_ZIPPED = "the package is in a zip, from which Python imports no C code (send it unpacked)"
_operations = cache(opcodes.fingerprint)
_sources = cache(sources.fingerprint)


class CompiledModule(Protocol):
    """The compiled module; ``_kernel.pyi`` describes its types and functions."""

    operations: int
    sources: str
    Kernel: type[_kernel.Kernel]
    Counter: type[_kernel.Counter]
    Lister: type[_kernel.Lister]
    Backtracker: type[_kernel.Backtracker]
    Join: type[_kernel.Join]
    Latest: type[_kernel.Latest]
    RowSearch: type[_kernel.RowSearch]
    heed: Callable[[bytearray | None], None]
    literals: Callable[[Any, Any, tuple[bytes, ...], bytes], tuple[bytes, bytes] | None]
    Numbering: type[_kernel.Numbering]
    Pages: type[_kernel.Pages]
    split: Callable[[Any, Any, int, Any, Any], list[bytes]]
    links: Callable[[_kernel.List, _kernel.List, bool, bool], bytes]
    texts: Callable[[bytes, bool], tuple[bytes, bytes] | None]
    row_groups: Callable[
        [bytes, tuple[int, ...]],
        list[tuple[int, tuple[_kernel._StoredColumn | None, ...]]] | None,
    ]
    add_bits: Callable[[Any, int, int, Any, Any], None]
    scatter: Callable[[Any, Any, tuple[Any, ...], Any, tuple[int, ...], int], None]
    least: Callable[[Any, Any, Any], None]
    order_within: Callable[[Any, Any], bytes | None]
    wanted: Callable[
        [Any, Any, int, Any, Any, Any, Any, Any, int], tuple[bytes, bytes, bytes, bytes]
    ]
    order_of: Callable[[Any], bytes]
    hash_values: Callable[[Any, int, Any, Any], None]
    rows_with: Callable[[Any, Any, bytes, int], bytes]


def compiled_module() -> CompiledModule | None:
    """
    Return the compiled module; None if it was not built, is switched off or is of other
    sources.
    """
    if _is_switched_off():
        return None
    found = _imported()
    if found is not None and _is_other(found):
        Place.here().warn(f"{_OTHER}; everything runs in plain Python, slowly", RuntimeWarning)
        return None
    return found


def why_missing() -> str:
    """Return why there is no compiled module; empty if there is one."""
    if _is_switched_off():
        return f"{_SWITCH} is 0"
    found = _imported()
    if found is None:
        is_file = os.path.exists(__file__)
        return "the package was built without a C compiler" if is_file else _ZIPPED
    return _OTHER if _is_other(found) else ""


def _is_switched_off() -> bool:
    return os.environ.get(_SWITCH, "1") == "0"


def _imported() -> CompiledModule | None:
    try:
        return cast(CompiledModule, importlib.import_module("pyflinkcep.kernel._kernel"))
    except ImportError:  # the package was built without a compiler
        return None


def _is_other(module: CompiledModule) -> bool:
    """Whether a module was built from other sources; an installed package has none to compare."""
    now = _sources()
    is_other = bool(now) and now != getattr(module, "sources", None)
    return is_other or getattr(module, "operations", None) != _operations()


def instruction(op: Op, operand: Any, ansi: bool) -> tuple[int, Any]:
    """Return an instruction for the kernel: LIKE, and what decimals and lists do, as functions."""
    if op is Op.LIKE:
        return int(op), like_regex(operand).fullmatch
    if op is Op.DECIMAL:
        return int(op), _constant(Decimal(operand))
    if op is Op.INT_TO_DECIMAL:
        return int(op), operand
    function = called_function(op, operand, ansi)
    return int(op), operand if function is None else function


def _constant(value: Decimal) -> Decimal | tuple[int, int]:
    """Return a decimal as its units and the digits after the point, if the units fit 64 bits."""
    scale = -int(value.as_tuple().exponent)
    if not 0 <= scale <= _SMALL or abs(value) >= 10 ** (_SMALL - scale):
        return value
    return int(value.scaleb(scale)), scale


def slot_spec(slot: Slot, stages: dict[str, int]) -> tuple[Any, ...]:
    """Return a slot for the kernel; `stages` has the index of each stage."""
    is_float = slot.type is Type.FLOAT
    stage = -1 if slot.stage == WHOLE else stages[slot.stage]
    return int(slot.function), stage, slot.field, slot.source, slot.offset, is_float
