# SPDX-License-Identifier: Apache-2.0
"""
Numbers as Spark has them: whole numbers of 64 bits, functions of doubles, and decimals.

A function of doubles is a row of :data:`NUMBER_FUNCTIONS`, from which every target is made; the
kernel's mirror is ``kernel/src/base/functions.c``. Of decimals here are the digits of each
operation's result, and its value, which every target asks here, the kernel too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_DOWN,
    ROUND_HALF_UP,
    Context,
    Decimal,
    localcontext,
)
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import attrs

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The range of whole numbers."""


def wrapped(number: int) -> int:
    """Return a whole number as 64 bits have it."""
    return (number - LEAST) % (1 << 64) + LEAST


def double_text(value: float) -> str:
    """Return a double as Java writes it, with a digit after the point: 0.5, 1.0E10, 4.9E-324."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    digits, exponent = f"{Decimal(repr(value)).normalize():E}".split("E")
    if "." not in digits:  # two digits may be nearer than one
        two = f"{value:.1e}"
        digits, exponent = two.split("e") if float(two) == value else (f"{digits}.0", exponent)
    return f"{digits}E{int(exponent)}"


_US = 1_000_000
UNITS_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": _US,
    "MINUTE": 60 * _US,
    "HOUR": 3_600 * _US,
    "DAY": 86_400 * _US,
    "WEEK": 7 * 86_400 * _US,
}
"""The units of time that always have the same length, in microseconds."""

# --- functions

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
        "sign": NumberFunction(compute=sign, c="a > 0 ? 1.0 : a < 0 ? -1.0 : a",
            column="np.where(a == 0, a, np.sign(a))", aliases=("signum",)),
        "power": NumberFunction(compute=power, c="power(a, b)", arity=2, aliases=("pow",)),
        "exp": NumberFunction(compute=exponential, c="exp(a)"),
        "ln": NumberFunction(compute=math.log, c="log(a)", of_positive=True),
        "log10": NumberFunction(compute=math.log10, c="log10(a)", of_positive=True),
        "log2": NumberFunction(compute=math.log2, c="log2(a)", of_positive=True),
    },
    "compute", "c",
)  # fmt: skip
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


# --- the digits of decimals

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
    """Return the digits of a literal, or of a number whose type is not known."""
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
    """Return the digits of a sum, difference, product, quotient or remainder."""
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


def wider_digits(a: Digits, b: Digits) -> Digits:
    """Return the digits that two decimals have beside each other; those before the point stay."""
    scale = max(a.scale, b.scale)
    precision = max(a.whole, b.whole) + scale
    return Digits(min(precision, MOST_DIGITS), max(scale - max(precision - MOST_DIGITS, 0), 0))


def common(digits: Sequence[Digits]) -> Digits:
    """Return the digits that several decimals have beside each other."""
    return reduce(wider_digits, digits)


def summed(a: Digits) -> Digits:
    """Return the digits of a SUM."""
    return Digits(min(a.precision + 10, MOST_DIGITS), a.scale)


def averaged(a: Digits) -> Digits:
    """Return the digits of an AVG."""
    return Digits(min(a.precision + 4, MOST_DIGITS), min(a.scale + 4, MOST_DIGITS))


def averaged_sum(a: Digits) -> Digits:
    """Return the digits of an AVG, given those of its SUM; the most if several are possible."""
    return averaged(Digits(a.precision - 10 if a.precision < MOST_DIGITS else MOST_DIGITS, a.scale))


def rounded_digits(a: Digits, count: int) -> Digits:
    """Return the digits of what is rounded to some digits after the point."""
    if count < 0:
        return Digits(min(max(a.whole + 1, 1 - count), MOST_DIGITS), 0)
    scale = min(a.scale, count)
    return Digits(min(a.whole + 1 + scale, MOST_DIGITS), scale)


def whole_digits(a: Digits) -> Digits:
    """Return the digits of FLOOR and CEIL."""
    return rounded_digits(a, 0) if a.scale else a


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


def decimal_aggregate(function: str, total: Decimal, count: int, digits: Digits) -> Decimal | None:
    """Return the SUM or AVG of decimals, given their sum; None if it does not fit."""
    found = fitted(total, summed(digits))
    if found is None or function == "sum":
        return found
    return computed("/", found, Decimal(count), averaged(digits))


def mean(total: Decimal, count: int) -> Decimal:
    """Return an average, with four digits more after the point than the sum, of any length."""
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
    """Return the result of an operation in its type; None if it does not fit."""
    return fitted(FORMULAS[operator](a, b), digits)
