# SPDX-License-Identifier: Apache-2.0
"""Functions that a room calls and a room above it has: the package's face says which module."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_PROVIDERS: dict[str, str] = {}


def provide(name: str, module: str) -> None:
    """Say which module has a function; the module loads when the function is asked for."""
    _PROVIDERS[name] = module


def provided(name: str) -> Callable[..., Any]:
    """Return the function of a name."""
    found: Callable[..., Any] = getattr(import_module(_PROVIDERS[name]), name)
    return found
