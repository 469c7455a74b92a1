# SPDX-License-Identifier: Apache-2.0
"""The compiled module, if it was built and is not switched off."""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["compiled_module", "why_missing"]

_SWITCH = "PYFLINKCEP_KERNEL"


def compiled_module() -> Any:
    """Return the compiled module; None if it was not built or is switched off."""
    if os.environ.get(_SWITCH, "1") == "0":
        return None
    try:
        return importlib.import_module("pyflinkcep.kernel._kernel")
    except ImportError:  # the package was built without a compiler
        return None


def why_missing() -> str:
    """Return why there is no compiled module; empty if there is one."""
    if compiled_module() is not None:
        return ""
    switched_off = os.environ.get(_SWITCH, "1") == "0"
    return f"{_SWITCH} is 0" if switched_off else "the package was built without a C compiler"
