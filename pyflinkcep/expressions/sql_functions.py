# SPDX-License-Identifier: Apache-2.0
"""Spark SQL's functions that can be evaluated without Spark."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Decimal,
    localcontext,
)
from typing import Any

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.literals import UNITS_US
from pyflinkcep.expressions.number_functions import (
    exponential,
    float_pmod,
    int_pmod,
    power,
    root,
    rounded,
    sign,
    whole,
)
from pyflinkcep.expressions.sql_values import (
    arithmetic,
    compared,
    in_bigint,
    kind_name,
    magnitude,
)

__all__ = [
    "FUNCTIONS",
    "joined",
    "moved_by",
    "time_between",
]


def joined(separator: Any, values: tuple[Any, ...]) -> Any:
    """Return texts, and those of arrays, with a separator between; NULL values are left out."""
    if separator is None:
        return None
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return _text(separator).join(_text(one) for one in flat if one is not None)


def time_between(unit: str, start: Any, end: Any) -> int:
    """Return the number of whole units between two times."""
    length = arithmetic("-", end, start)
    if not isinstance(length, timedelta):
        raise InputError(f"expected two times, got {kind_name(start)}", "cast them to timestamp")
    return int(arithmetic("div", length // timedelta(microseconds=1), UNITS_US[unit]))


def moved_by(unit: str, count: int, time: Any) -> Any:
    """Return a time shifted by a number of units."""
    return arithmetic("+", time, timedelta(microseconds=UNITS_US[unit] * count))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise InputError(f"expected string, got {kind_name(value)}", "cast it to string")


def _time(value: Any) -> Any:
    if isinstance(value, date):
        return value
    raise InputError(f"expected a date or timestamp, got {kind_name(value)}", "cast it")


def _clock(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _whole(value: Any, rounding: str) -> int | Decimal:
    if isinstance(value, Decimal):
        return value.to_integral_value(rounding)
    if isinstance(value, float) and not math.isfinite(value):
        found = whole(value)
    else:
        exact = int(Decimal(value).to_integral_value(rounding))
        found = whole(float(exact)) if isinstance(value, float) else exact
    if found is None:
        raise ArithmeticError("overflow: the result does not fit bigint")
    return in_bigint(found)


def _rounded(value: Any, digits: int, rounding: str) -> Any:
    if isinstance(value, float):
        return rounded(value, digits, rounding)
    if isinstance(value, int) and digits >= 0:
        return value
    with localcontext() as context:
        context.prec = 80  # more than a decimal has
        exact = Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding)
    return in_bigint(int(exact)) if isinstance(value, int) else exact


def _pmod(a: Any, b: Any) -> Any:
    if b == 0:
        raise ArithmeticError("division by zero")
    if isinstance(a, int) and isinstance(b, int):
        return int_pmod(a, b)
    if isinstance(a, float) or isinstance(b, float):
        return float_pmod(float(a), float(b))
    rest = arithmetic("%", Decimal(a), Decimal(b))
    return rest if rest >= 0 else arithmetic("%", rest + b, Decimal(b))


def _substring(text: Any, start: int, length: int | None = None) -> str:
    whole = _text(text)
    begin = start - 1 if start > 0 else (len(whole) + start if start < 0 else 0)
    end = len(whole) if length is None else begin + length
    return whole[max(0, begin) : max(0, end)]


def _size(value: Any) -> int:
    if isinstance(value, list | tuple | dict | set):
        return len(value)
    raise InputError(f"expected an array or map, got {kind_name(value)}", "use an array or map")


FUNCTIONS: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "abs": (1, 1, magnitude),
    "mod": (2, 2, lambda a, b: arithmetic("%", a, b)),
    "pmod": (2, 2, _pmod),
    "floor": (1, 1, lambda x: _whole(x, ROUND_FLOOR)),
    "ceil": (1, 1, lambda x: _whole(x, ROUND_CEILING)),
    "ceiling": (1, 1, lambda x: _whole(x, ROUND_CEILING)),
    "round": (1, 2, lambda x, digits=0: _rounded(x, digits, ROUND_HALF_UP)),
    "bround": (1, 2, lambda x, digits=0: _rounded(x, digits, ROUND_HALF_EVEN)),
    "exp": (1, 1, lambda x: exponential(float(x))),
    "ln": (1, 1, lambda x: None if x <= 0 else math.log(x)),
    "log10": (1, 1, lambda x: None if x <= 0 else math.log10(x)),
    "log2": (1, 1, lambda x: None if x <= 0 else math.log2(x)),
    "power": (2, 2, lambda a, b: power(float(a), float(b))),
    "pow": (2, 2, lambda a, b: power(float(a), float(b))),
    "sqrt": (1, 1, lambda x: root(float(x))),
    "sign": (1, 1, lambda x: sign(float(x))),
    "signum": (1, 1, lambda x: sign(float(x))),
    "lower": (1, 1, lambda s: _text(s).lower()),
    "lcase": (1, 1, lambda s: _text(s).lower()),
    "upper": (1, 1, lambda s: _text(s).upper()),
    "ucase": (1, 1, lambda s: _text(s).upper()),
    "trim": (1, 1, lambda s: _text(s).strip(" ")),
    "ltrim": (1, 1, lambda s: _text(s).lstrip(" ")),
    "rtrim": (1, 1, lambda s: _text(s).rstrip(" ")),
    "length": (1, 1, lambda s: len(_text(s))),
    "char_length": (1, 1, lambda s: len(_text(s))),
    "len": (1, 1, lambda s: len(_text(s))),
    "startswith": (2, 2, lambda s, t: _text(s).startswith(_text(t))),
    "endswith": (2, 2, lambda s, t: _text(s).endswith(_text(t))),
    "contains": (2, 2, lambda s, t: _text(t) in _text(s)),
    "replace": (3, 3, lambda s, old, new: _text(s).replace(old, new) if old else s),
    "substring": (2, 3, _substring),
    "substr": (2, 3, _substring),
    "left": (2, 2, lambda s, n: _text(s)[: max(0, n)]),
    "right": (2, 2, lambda s, n: _text(s)[-n:] if n > 0 else ""),
    "concat": (1, 255, lambda *parts: "".join(map(_text, parts))),
    "size": (1, 1, _size),
    "cardinality": (1, 1, _size),
    "array_contains": (2, 2, lambda xs, x: any(v is not None and not compared(v, x) for v in xs)),
    "year": (1, 1, lambda t: _time(t).year),
    "month": (1, 1, lambda t: _time(t).month),
    "day": (1, 1, lambda t: _time(t).day),
    "dayofmonth": (1, 1, lambda t: _time(t).day),
    "hour": (1, 1, lambda t: _clock(_time(t)).hour),
    "minute": (1, 1, lambda t: _clock(_time(t)).minute),
    "second": (1, 1, lambda t: _clock(_time(t)).second),
    "date_add": (2, 2, lambda t, n: _clock(_time(t)).date() + timedelta(days=n)),
    "date_sub": (2, 2, lambda t, n: _clock(_time(t)).date() - timedelta(days=n)),
    "reverse": (1, 1, lambda x: x[::-1]),
    "repeat": (2, 2, lambda s, n: _text(s) * n),
    "instr": (2, 2, lambda s, t: _text(s).find(_text(t)) + 1),
    "datediff": (2, 2, lambda a, b: (_clock(_time(a)).date() - _clock(_time(b)).date()).days),
    "date_diff": (2, 2, lambda a, b: (_clock(_time(a)).date() - _clock(_time(b)).date()).days),
}
"""By name, the least and greatest number of arguments, and the function of non-NULL ones."""
