# SPDX-License-Identifier: Apache-2.0
"""
Decimals as Spark has them: the digits of each operation's result, and its value.

Every target asks here: programs, in Python and in C, call :class:`DecimalFunctions`; values without
a schema are computed by :func:`computed`. Values are :class:`decimal.Decimal`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

MOST_DIGITS = 38
"""Of Spark's widest decimal."""

_LEAST_SCALE = 6
"""Digits after the point that a result keeps, whatever stands before it."""

EXACT = Context(prec=2 * MOST_DIGITS + 1, rounding=ROUND_HALF_UP, Emin=-999, Emax=999)
"""Digits for every product, and as many as Spark divides to."""

UNBOUNDED = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Adds totals over more matches than are ever listed."""

_FITTING = Context(prec=800, rounding=ROUND_HALF_UP)


class Digits(NamedTuple):
    """The digits of a decimal type: all, and those after the point."""

    precision: int
    scale: int

    @property
    def whole(self) -> int:
        """How many are before the point."""
        return self.precision - self.scale

    @property
    def sql(self) -> str:
        """The type in SQL."""
        return f"decimal({self.precision},{self.scale})"


BIGINT = Digits(20, 0)
"""What a whole number of 64 bits is beside a decimal."""


def digits_of_value(value: Decimal | int) -> Digits:
    """
    Return the digits of a literal, or of a number whose type is not known.

    Examples
    --------
    >>> digits_of_value(Decimal("-0.050")), digits_of_value(Decimal("1e3")), digits_of_value(0)
    (Digits(precision=3, scale=3), Digits(precision=4, scale=0), Digits(precision=1, scale=0))
    """
    if isinstance(value, int):
        return Digits(len(str(abs(value))), 0)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    count = len(digits) + max(exponent, 0)
    return Digits(max(count, -exponent, 1), max(-exponent, 0))


# --- the digits of results


def _adjusted(precision: int, scale: int) -> Digits:
    """Return digits that fit: at the cost of those after the point, of which six stay."""
    if precision <= MOST_DIGITS:
        return Digits(precision, scale)
    before = precision - scale
    return Digits(MOST_DIGITS, max(MOST_DIGITS - before, min(scale, _LEAST_SCALE)))


def of_operation(operator: str, a: Digits, b: Digits) -> Digits:
    """
    Return the digits of a sum, difference, product, quotient or remainder.

    Examples
    --------
    >>> of_operation("/", Digits(12, 2), Digits(1, 0)).sql
    'decimal(16,6)'
    """
    return _adjusted(*needed(operator, a, b))


def needed(operator: str, a: Digits, b: Digits) -> Digits:
    """Return the same, even if they are more than a type has."""
    scale = max(a.scale, b.scale)
    match operator:
        case "+" | "-":
            return Digits(max(a.whole, b.whole) + scale + 1, scale)
        case "*":
            return Digits(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            scale = max(_LEAST_SCALE, a.scale + b.precision + 1)
            return Digits(a.whole + b.scale + scale, scale)
        case "div":
            return Digits(max(a.whole + b.scale, 1), 0)
    return Digits(min(a.whole, b.whole) + scale, scale)  # % and pmod


def wider(a: Digits, b: Digits) -> Digits:
    """Return the digits that two decimals have beside each other; those before the point stay."""
    scale = max(a.scale, b.scale)
    precision = max(a.whole, b.whole) + scale
    return Digits(min(precision, MOST_DIGITS), max(scale - max(precision - MOST_DIGITS, 0), 0))


def common(digits: Sequence[Digits]) -> Digits:
    """Return the digits that several decimals have beside each other."""
    return reduce(wider, digits)


def summed(a: Digits) -> Digits:
    """Return the digits of a SUM."""
    return Digits(min(a.precision + 10, MOST_DIGITS), a.scale)


def averaged(a: Digits) -> Digits:
    """Return the digits of an AVG."""
    return Digits(min(a.precision + 4, MOST_DIGITS), min(a.scale + 4, MOST_DIGITS))


def averaged_sum(a: Digits) -> Digits:
    """Return the digits of an AVG, given those of its SUM; the most if several are possible."""
    return averaged(Digits(a.precision - 10 if a.precision < MOST_DIGITS else MOST_DIGITS, a.scale))


def rounded(a: Digits, count: int) -> Digits:
    """Return the digits of what is rounded to some digits after the point."""
    if count < 0:
        return Digits(min(max(a.whole + 1, 1 - count), MOST_DIGITS), 0)
    scale = min(a.scale, count)
    return Digits(min(a.whole + 1 + scale, MOST_DIGITS), scale)


def whole(a: Digits) -> Digits:
    """Return the digits of FLOOR and CEIL."""
    return rounded(a, 0) if a.scale else a


# --- values


def fitted(
    value: Decimal, digits: Digits, rounding: str = ROUND_HALF_UP, count: int = 0
) -> Decimal | None:
    """Return a number with the digits of a type; None if there are too many before the point."""
    if count < 0:
        value = value.quantize(Decimal((0, (1,), -count)), rounding, _FITTING)
    found = value.quantize(Decimal((0, (1,), -digits.scale)), rounding, _FITTING)
    found = _FITTING.plus(found)  # no negative zero
    return found if not found or found.adjusted() < digits.whole else None


def _positive_remainder(a: Decimal, b: Decimal) -> Decimal:
    found = EXACT.remainder(a, b)
    return EXACT.remainder(EXACT.add(found, b), b) if found < 0 else found


FORMULAS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide,
    "div": EXACT.divide_int, "%": EXACT.remainder, "pmod": _positive_remainder,
}  # fmt: skip
"""By operator, what is exact, or has 77 digits; a divisor is not zero."""


def aggregate(function: str, total: Decimal, count: int, digits: Digits) -> Decimal | None:
    """
    Return the SUM or AVG of decimals of some digits, given their sum; None if it does not fit.

    Examples
    --------
    >>> aggregate("avg", Decimal("1.00"), 3, Digits(10, 2))
    Decimal('0.333333')
    """
    found = fitted(total, summed(digits))
    if found is None or function == "sum":
        return found
    return computed("/", found, Decimal(count), averaged(digits))


def mean(total: Decimal, count: int) -> Decimal:
    """
    Return an average, with four digits more after the point than the sum, of any length.

    Examples
    --------
    >>> mean(Decimal("1.00"), 3)
    Decimal('0.333333')
    """
    scale = min(digits_of_value(total).scale + 4, MOST_DIGITS)
    quotient = Fraction(total) * 10**scale / count
    units = int(abs(quotient) + Fraction(1, 2))
    return of_units(units if total >= 0 else -units, scale)


def of_units(units: int, places: int) -> Decimal:
    """Return a decimal of any length, given how many units of its last digit it is."""
    return UNBOUNDED.scaleb(Decimal(units), -places)


def overflow_of(digits: Digits) -> str:
    """Return the words for a number that has too many digits."""
    return f"overflow: the result does not fit {digits.sql}"


def computed(operator: str, a: Decimal, b: Decimal, digits: Digits) -> Decimal | None:
    """
    Return the result of an operation in its type; None if it does not fit.

    A divisor is not zero.

    Examples
    --------
    >>> computed("/", Decimal(1), Decimal(3), Digits(16, 6))
    Decimal('0.333333')
    """
    return fitted(FORMULAS[operator](a, b), digits)
