# SPDX-License-Identifier: Apache-2.0
"""Java's numbers: ints that wrap around, floats of 32 bits, casts."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any, TypeVar

from pyflinkcep.errors import FunctionError, NotSupportedError

T = TypeVar("T")
R = TypeVar("R")


def present(value: T | None) -> T:
    """
    Return a value; raise where Java has a NullPointerException.

    Examples
    --------
    >>> present("a")
    'a'
    """
    if value is None:
        raise FunctionError("null where Java calls a method: NullPointerException", "test for None")
    return value


def not_translated(where: str, why: str) -> NotSupportedError:
    """Make the error of a function that a person has to write."""
    return NotSupportedError(f"{where} is not translated: {why}", "write it in Python")


def or_else(value: T | None, other: T) -> T:
    """Return a value, or another if it is null."""
    return other if value is None else value


def mapped(value: T | None, function: Callable[[T], R]) -> R | None:
    """Return a function's value, or null for null."""
    return None if value is None else function(value)


def kept_if(value: T | None, test: Callable[[T], object]) -> T | None:
    """Return a value that satisfies a condition; null otherwise."""
    return value if value is not None and test(value) else None


def int32(value: int) -> int:
    """
    Return a whole number as an ``int`` holds it.

    Examples
    --------
    >>> int32(2147483647 + 1)
    -2147483648
    """
    return (value + 0x80000000) % 0x100000000 - 0x80000000


def int64(value: int) -> int:
    """Return a whole number as a ``long`` holds it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def narrowed(value: int, bits: int) -> int:
    """Return a whole number as one of some bits."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def div_int(a: int, b: int) -> int:
    """
    Divide whole numbers as Java does, towards zero.

    Examples
    --------
    >>> div_int(-7, 2)
    -3
    """
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def rem_int(a: int, b: int) -> int:
    """Return what is left of a division towards zero: it has the sign of `a`."""
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def java_abs(value: Any, bits: int) -> Any:
    """Return the absolute value of a whole number; that of the least one is itself."""
    return narrowed(abs(value), bits)


def float32(value: float) -> float:
    """Return the nearest ``float``."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def to_float32(value: int) -> float:
    """Return the ``float`` nearest to a whole number."""
    if abs(value) < 1 << 53:
        return float32(float(value))
    shift = abs(value).bit_length() - 40
    kept = abs(value) >> shift
    sticky = 1 if abs(value) & ((1 << shift) - 1) else 0
    return math.copysign(float32(float((kept | sticky) << shift)), value)


def div_float(a: float, b: float) -> float:
    """
    Divide doubles as Java does: by zero too.

    Examples
    --------
    >>> div_float(1, 0.0), div_float(0.0, 0.0)
    (inf, nan)
    """
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def decimal(a: Decimal, b: Decimal, operation: str) -> Decimal:
    """Add, subtract or multiply exactly, as ``BigDecimal`` does."""
    with localcontext() as context:
        context.prec = 1000
        return {"add": a + b, "subtract": a - b, "multiply": a * b}[operation]


def rem_float(a: float, b: float) -> float:
    """Return the remainder of doubles, with the sign of `a`."""
    if b == 0 or math.isinf(a) or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.fmod(a, b)


def truncated(value: float, bits: int) -> int:
    """
    Return a double cast to a whole number of some bits: NaN is 0, and there is a greatest number.

    Examples
    --------
    >>> truncated(-1.9, 32), truncated(1e300, 32), truncated(float("nan"), 64)
    (-1, 2147483647, 0)
    """
    if math.isnan(value):
        return 0
    most = (1 << bits - 1) - 1
    if math.isinf(value):
        return most if value > 0 else -most - 1
    return max(-most - 1, min(most, int(value)))


def java_round(value: float, bits: int) -> int:
    """Return the nearest whole number, upwards in the middle."""
    if math.isnan(value) or math.isinf(value) or abs(value) >= 2.0**52:
        return truncated(value, bits)
    floor = math.floor(value)
    return truncated(float(floor + (1 if value - floor >= 0.5 else 0)), bits)


def _by_order(a: float, b: float, greatest: bool) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b == 0:
        signs = [math.copysign(1, x) for x in (a, b)]
        return math.copysign(0.0, max(signs) if greatest else min(signs))
    return max(a, b) if greatest else min(a, b)


def java_max(a: Any, b: Any) -> Any:
    """Return the greater number; NaN if one is."""
    floats = isinstance(a, float) or isinstance(b, float)
    return _by_order(a, b, True) if floats else max(a, b)


def java_min(a: Any, b: Any) -> Any:
    """Return the lesser number; NaN if one is."""
    floats = isinstance(a, float) or isinstance(b, float)
    return _by_order(a, b, False) if floats else min(a, b)


def java_pow(a: float, b: float) -> float:
    """Return a power as ``Math.pow`` does."""
    if math.isnan(b) or (abs(a) == 1 and math.isinf(b)):
        return math.nan
    try:
        return float(math.pow(a, b))
    except OverflowError:
        odd = b == math.floor(b) and b % 2 == 1
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        if a == 0:
            odd = b == math.floor(b) and abs(b) % 2 == 1
            return math.copysign(math.inf, a) if odd else math.inf
        return math.nan


_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log10": math.log10, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "hypot": math.hypot, "atan2": math.atan2, "asin": math.asin,
    "acos": math.acos, "atan": math.atan, "cbrt": math.cbrt, "toRadians": math.radians,
    "toDegrees": math.degrees,
    "floor": lambda x: math.copysign(float(math.floor(x)), x),
    "ceil": lambda x: math.copysign(float(math.ceil(x)), x),
    "rint": lambda x: math.copysign(float(round(x)), x),
    "signum": lambda x: math.copysign(1.0, x) if x else x,
}  # fmt: skip


def java_math(*arguments: Any) -> float:
    """
    Return a function of Java's ``Math``, which the last argument names.

    Examples
    --------
    >>> java_math(2.5, "floor"), java_math(0.0, "log"), java_math(-1.0, "sqrt")
    (2.0, -inf, nan)
    """
    *values, name = arguments
    numbers = list(map(float, values))
    if any(map(math.isnan, numbers)):
        return math.nan
    if name in ("floor", "ceil", "rint") and math.isinf(numbers[0]):
        return numbers[0]
    if name in ("log", "log10") and numbers[0] == 0:
        return -math.inf
    try:
        return float(_FUNCTIONS[name](*numbers))
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan
