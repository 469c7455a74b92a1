# SPDX-License-Identifier: Apache-2.0
"""The compiled module, if it was built and is not switched off."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyflinkcep.kernel import opcodes, sources
from pyflinkcep.warned import Place

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

__all__ = ["CompiledModule", "compiled_module", "why_missing"]

_SWITCH = "PYFLINKCEP_KERNEL"
_OTHER = (
    "the compiled kernel was built from other sources than the Python code beside it "
    "(install the package again, or run make kernel in a clone)"
)
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
    RowSearch: type[_kernel.RowSearch]
    split: Callable[[Any, Any, int, Any, Any], list[bytes]]
    links: Callable[[_kernel.List, _kernel.List, bool, bool], bytes]


def compiled_module() -> CompiledModule | None:
    """
    Return the compiled module; None if it was not built, is switched off or is of other sources.

    Warns
    -----
    RuntimeWarning
        If it was built from other sources than those at hand, or numbers operations otherwise: the
        plain path gives the same answers, later.
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
        return "the package was built without a C compiler"
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
