# SPDX-License-Identifier: Apache-2.0
"""Writes constants as Python."""

from __future__ import annotations

import math

__all__ = ["constant"]


def constant(value: object) -> str:
    """Return a constant as Python writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value!r}")'
    if isinstance(value, str):
        return (
            '"' + repr("'" + value)[2:-1].replace('"', '\\"') + '"'
            if "'" not in value
            else (_quoted(value))
        )
    return repr(value)


def _quoted(value: str) -> str:
    inner = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in inner) + '"'
