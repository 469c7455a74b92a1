# SPDX-License-Identifier: Apache-2.0
"""The standard deviation of an array as SQL."""

from __future__ import annotations

__all__ = ["deviation"]


def deviation(numbers: str) -> str:
    """Return the standard deviation of a sample, number by number as Spark's own aggregate."""
    far = "(cast(v AS double) - s.mean)"
    step = f"{far} / (s.n + 1D)"
    more = f"s.n + 1D AS n, s.mean + {step} AS mean, s.moment + {far} * ({far} - {step}) AS moment"
    none = "struct(0D AS n, 0D AS mean, 0D AS moment)"
    result = "s -> IF(s.n > 1D, sqrt(s.moment / (s.n - 1D)), NULL)"
    return f"aggregate({numbers}, {none}, (s, v) -> struct({more}), {result})"
