# SPDX-License-Identifier: Apache-2.0
"""
Spark's functions of numbers, on Python's. Mirror: ``kernel/src/base/functions.c``.

One of doubles is a row of :data:`NUMBER_FUNCTIONS`, from which every target is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any, TypeVar

import attrs

from pyflinkcep.expressions.tokens import LEAST, MOST, wrapped

_DIGITS = 800
"""More than any double has, before and after the point."""


def rounded(number: float, digits: int, rounding: str = ROUND_HALF_UP) -> float:
    """Return a number with some digits after the point; by default halves go away from zero."""
    if not math.isfinite(number) or abs(digits) > _DIGITS:
        return number if digits > 0 or not math.isfinite(number) else 0.0
    with localcontext() as context:
        context.prec = 2 * _DIGITS
        exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), rounding)
    return float(exact) + 0.0  # no negative zero


def whole(number: float) -> int | None:
    """Return a number without a fraction as an integer, 0 for NaN; None if it is out of range."""
    if math.isnan(number):
        return 0
    return min(int(number), MOST) if LEAST <= number <= 1 << 63 else None


def power(base: float, exponent: float) -> float:
    """Return a power by Java's rules, which differ from C's for NaN and infinite exponents."""
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:  # a root of a negative number, or a division by zero
        if base:
            return math.nan
        return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf


def exponential(exponent: float) -> float:
    """Return a power of e."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def root(number: float) -> float:
    """Return the square root; NaN of negative numbers."""
    return math.sqrt(number) if number >= 0 else math.nan


def sign(number: float) -> float:
    """Return 1 or -1; zeros and NaN are their own signs."""
    return float((number > 0) - (number < 0)) or number


ROUNDINGS = {"round": ROUND_HALF_UP, "truncate": ROUND_DOWN}
"""The functions that keep some digits of a number, as whole numbers and decimals have them too."""


@attrs.frozen(kw_only=True)
class NumberFunction:
    """A function of doubles; text in SQL has its name, where Spark computes it."""

    compute: Callable[..., float]  # In Python, from which columns are computed
    c: str = ""  # In C, of the doubles ``a`` and ``b``
    column: str = ""  # In NumPy, of the arrays ``a`` and ``b``, if its numbers are the same ones
    arity: int = 1
    of_positive: bool = False  # Whether it is NULL for zero and negative numbers
    aliases: tuple[str, ...] = ()

    def value(self, *numbers: Any) -> float | None:
        """Return the value for any numbers."""
        doubles = list(map(float, numbers))
        return None if self.of_positive and doubles[0] <= 0 else self.compute(*doubles)


Row = TypeVar("Row")


def complete(table: dict[str, Row], *targets: str) -> dict[str, Row]:
    """Return a table of functions; raise if one has its form in some of the targets, not in all."""
    for name, row in table.items():
        missing = [target for target in targets if not getattr(row, target)]
        if missing and len(missing) < len(targets):
            raise TypeError(f"{name}() has no form for {' and '.join(missing)}")
    return table


NUMBER_FUNCTIONS = complete(
    {
        "sqrt": NumberFunction(compute=root, c="sqrt(a)", column="np.sqrt(a)"),
        "sign": NumberFunction(
            compute=sign,
            c="a > 0 ? 1.0 : a < 0 ? -1.0 : a",
            column="np.where(a == 0, a, np.sign(a))",
            aliases=("signum",),
        ),
        "power": NumberFunction(compute=power, c="power(a, b)", arity=2, aliases=("pow",)),
        "exp": NumberFunction(compute=exponential, c="exp(a)"),
        "ln": NumberFunction(compute=math.log, c="log(a)", of_positive=True),
        "log10": NumberFunction(compute=math.log10, c="log10(a)", of_positive=True),
        "log2": NumberFunction(compute=math.log2, c="log2(a)", of_positive=True),
    },
    "compute",
    "c",
)
"""By name. NULL makes each NULL."""


def int_pmod(a: int, b: int) -> int:
    """Return the remainder that is not negative for a positive divisor."""
    remainder = int_mod(a, b)
    if remainder >= 0:
        return remainder
    return int_mod(wrapped(remainder + b), b)


def int_mod(a: int, b: int) -> int:
    """Return the remainder with the sign of `a`."""
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def int_div(a: int, b: int) -> int:
    """Return a quotient without its fraction."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def float_mod(a: float, b: float) -> float:
    """Return the remainder with the sign of `a`."""
    return math.nan if math.isinf(a) else math.fmod(a, b)


def float_pmod(a: float, b: float) -> float:
    """Return the remainder that is not negative for a positive divisor."""
    if math.isinf(a):
        return math.nan
    remainder = math.fmod(a, b)
    if not remainder < 0:
        return remainder
    total = remainder + b
    return math.nan if math.isinf(total) else math.fmod(total, b)
