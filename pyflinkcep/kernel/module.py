# SPDX-License-Identifier: Apache-2.0
"""The compiled module, if it was built and is not switched off."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.kernel import opcodes, sources

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

__all__ = ["CompiledModule", "compiled_module", "why_missing"]

_SWITCH = "PYFLINKCEP_KERNEL"
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
    Return the compiled module; None if it was not built or is switched off.

    Raises
    ------
    NotSupportedError
        If it was built from other sources than those at hand, or numbers operations otherwise.
    """
    if os.environ.get(_SWITCH, "1") == "0":
        return None
    try:
        found = cast(CompiledModule, importlib.import_module("pyflinkcep.kernel._kernel"))
    except ImportError:  # the package was built without a compiler
        return None
    now = _sources()
    is_other = now and now != getattr(found, "sources", None)
    if is_other or getattr(found, "operations", None) != _operations():
        raise NotSupportedError(
            "the compiled kernel was built from other sources than the Python code beside it",
            f"install the package again, run make kernel in a clone, or set {_SWITCH}=0",
        )
    return found


def why_missing() -> str:
    """Return why there is no compiled module; empty if there is one."""
    if compiled_module() is not None:
        return ""
    switched_off = os.environ.get(_SWITCH, "1") == "0"
    return f"{_SWITCH} is 0" if switched_off else "the package was built without a C compiler"
