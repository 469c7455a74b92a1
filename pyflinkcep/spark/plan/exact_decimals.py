# SPDX-License-Identifier: Apache-2.0
"""Sums and averages of decimals as SQL, exactly, though Spark rounds what has over 38 digits."""

from __future__ import annotations

from pyflinkcep.expressions.numbers import MOST_DIGITS, Digits, averaged, averaged_sum, summed


def if_any(known: str, total: str) -> str:
    """Return a total of an array of values; NULL without any."""
    return f"IF(size({known}) = 0, NULL, {total})"


def total_of(known: str, type_: str) -> str:
    """Return the total of an array of values."""
    return f"aggregate({known}, cast(0 AS {type_}), (s, v) -> cast(s + v AS {type_}))"


_UNITS = Digits(MOST_DIGITS, 0)


def _shifted(value: str, scale: int, places: int, digits: Digits) -> str:
    """Return a decimal with its point some places to the right, in another type."""
    plain = f"replace(format_number({value}, {scale}), ',', '')"
    return f"cast(concat({plain}, 'E{places}') AS {digits.sql})"


def _units(known: str, digits: Digits) -> str:
    """Return the sum of decimals in units of their last digit; overflow is an error, or NULL."""
    unit = _shifted("v", digits.scale, digits.scale, _UNITS)
    return total_of(f"transform({known}, v -> {unit})", _UNITS.sql)


def decimal_total(known: str, digits: Digits) -> str:
    """Return the SUM of decimals."""
    found = summed(digits)
    if found.precision < MOST_DIGITS:
        return if_any(known, total_of(known, found.sql))
    return if_any(known, _shifted(_units(known, digits), 0, -digits.scale, found))


_AT_ONCE = 28  # Of so many digits, a quotient of a sum has enough to be rounded again


def decimal_mean(known: str, digits: Digits) -> str:
    """Return the AVG of an array of decimals."""
    total, count, found = summed(digits), f"size({known})", averaged(digits)
    if digits.precision + 10 <= _AT_ONCE:
        return if_any(known, f"cast({total_of(known, total.sql)} / {count} AS {found.sql})")
    return if_any(known, _mean(_units(known, digits), count, digits.scale, found))


def quotient(total: str, count: str, digits: Digits) -> str:
    """Return the AVG of decimals, given their SUM, which has some digits, and how many they are."""
    found = averaged_sum(digits)
    if digits.precision <= _AT_ONCE:
        return f"cast({total} / {count} AS {found.sql})"
    units = _shifted(total, digits.scale, digits.scale, _UNITS)
    return _mean(units, count, digits.scale, found)


def _mean(units: str, count: str, scale: int, found: Digits) -> str:
    """Return a quotient of a sum in units: that of whole numbers, and the remainder's own."""
    more = found.scale - scale
    part = f"cast((t % {count}) * {10**more}BD / {count} AS decimal(20,0))"
    # Six digits after the point, which a quotient of long decimals has.
    whole = _shifted(f"t - t % {count}", 0, -6, Digits(MOST_DIGITS, 6))
    whole = _shifted(f"{whole} / {count}", 6, 6 + more, _UNITS)
    mean = _shifted(f"cast({whole} + {part} AS {_UNITS.sql})", 0, -found.scale, found)
    return f"element_at(transform(array({units}), t -> {mean}), 1)"
