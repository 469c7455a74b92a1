# SPDX-License-Identifier: Apache-2.0
"""Between which numbers a whole value lies."""

from __future__ import annotations

from pyflinkcep.migrate.java.types import unboxed
from pyflinkcep.migrate.meaning.tree import Binary, Cast, Choice, Const, Expression

__all__ = ["fits", "range_of"]

Range = tuple[int, int]
_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}


def _of_type(name: str) -> Range:
    half = 1 << _BITS.get(name, 64) - 1
    return -half, half - 1


def fits(found: Range, type_: str) -> bool:
    """Whether numbers of a range are of a type."""
    least, most = _of_type(type_)
    return least <= found[0] and found[1] <= most


def range_of(of: Expression, *, wrap: bool) -> Range:
    """
    Return the least and the greatest value.

    Parameters
    ----------
    of : Expression
        The value.
    wrap : bool
        Whether the operation outermost wraps around, as in Java; otherwise it is exact.
    """
    if isinstance(of, Const) and isinstance(of.value, int):
        return of.value, of.value
    own = _of_type(unboxed(of.type).name)
    if isinstance(of, Cast):
        inner = range_of(of.operand, wrap=True)
        return inner if own[0] <= inner[0] and inner[1] <= own[1] else own
    if isinstance(of, Choice):
        yes, no = (range_of(side, wrap=True) for side in (of.yes, of.no))
        return min(yes[0], no[0]), max(yes[1], no[1])
    if not isinstance(of, Binary):
        return own
    (a, b), (c, d) = (range_of(side, wrap=True) for side in (of.left, of.right))
    match of.operator:
        case "+":
            found = (a + c, b + d)
        case "-":
            found = (a - d, b - c)
        case "*":
            products = [x * y for x in (a, b) for y in (c, d)]
            found = (min(products), max(products))
        case "%" if c == d and c:
            most = abs(c) - 1
            found = (-most if a < 0 else 0, most if b > 0 else 0)
        case "/" if c == d and c > 0:
            quotients = [abs(x) // c * (1 if x >= 0 else -1) for x in (a, b)]
            found = (quotients[0], quotients[1])
        case _:
            return own
    return own if wrap and not (own[0] <= found[0] and found[1] <= own[1]) else found
