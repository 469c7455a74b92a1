# SPDX-License-Identifier: Apache-2.0
"""What NULL, NaN, zero and the ends of the range do, operator by operator: Spark's answers."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyflinkcep.expressions.program import Kind

NAN, LOW, HIGH = math.nan, -(2**63), 2**63 - 1

VALUES: dict[str, tuple[Kind, Any]] = {
    "x": (Kind.DOUBLE, 2.5), "ux": (Kind.DOUBLE, None), "nan": (Kind.DOUBLE, NAN),
    "inf": (Kind.DOUBLE, math.inf), "zx": (Kind.DOUBLE, 0.0), "mx": (Kind.DOUBLE, -0.0),
    "n": (Kind.BIGINT, 7), "un": (Kind.BIGINT, None), "zn": (Kind.BIGINT, 0),
    "m": (Kind.BIGINT, -1), "low": (Kind.BIGINT, LOW), "high": (Kind.BIGINT, HIGH),
    "s": (Kind.STRING, "ab"), "us": (Kind.STRING, None), "e": (Kind.STRING, ""),
    "t": (Kind.BOOLEAN, True), "f": (Kind.BOOLEAN, False), "ut": (Kind.BOOLEAN, None),
}  # fmt: skip
"""By name, the type and the value of what the cases read."""

_FORMS: dict[tuple[str, str], dict[str, tuple[Any, Any, Any]]] = {
    ("x", "ux"): {
        **dict.fromkeys(
            ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} % {b}", "pmod({a}, {b})",
             "power({a}, {b})", "{a} = {b}", "{a} <> {b}", "{a} < {b}", "{a} <= {b}", "{a} > {b}",
             "{a} >= {b}"),
            (None, None, None),
        ),
        "nullif({a}, {b}) = 1": (False, None, None), "{a} <=> {b}": (False, False, True), "greatest({a}, {b})": (2.5, 2.5, None),
        "least({a}, {b})": (2.5, 2.5, None), "coalesce({a}, {b})": (2.5, 2.5, None),
        "{a} in ({b}, 2.5D)": (True, None, None), "{a} in ({b}, 1D)": (None, None, None),
        "if({a} > {b}, 1, 2)": (2, 2, 2),
    },
    ("n", "un"): {"{a} div {b}": (None, None, None), "{a} + {b}": (None, None, None)},
    ("s", "us"): {
        "{a} || {b}": (None, None, None), "startswith({a}, {b})": (None, None, None),
        "{a} < {b}": (None, None, None), "greatest({a}, {b})": ("ab", "ab", None),
    },
    ("t", "ut"): {"{a} and {b}": (None, None, None), "{a} or {b}": (True, True, None)},
    ("f", "ut"): {"{a} and {b}": (False, False, None), "{a} or {b}": (None, None, None)},
}  # fmt: skip
"""By two values, the second of which is NULL: the results of (a, b), (b, a) and (b, b)."""

CASES: dict[str, Any] = {
    form.format(a=a, b=b): expected
    for (known, null), forms in _FORMS.items()
    for form, results in forms.items()
    for (a, b), expected in zip(((known, null), (null, known), (null, null)), results, strict=True)
} | {
    "-ux": None, "abs(un)": None, "not ut": None, "ux is null": True, "x is null": False,
    "ux is not null": False, "sqrt(ux)": None, "floor(ux)": None, "ceil(ux)": None,
    "round(ux, 1)": None, "us like 'a%'": None, "s like 'a_'": True,
    "x / zx": None, "zx / zx": None, "n / zn": None, "n % zn": None, "n div zn": None,
    "x % zx": None, "pmod(n, zn)": None, "pmod(x, zx)": None, "un / zn": None, "x / mx": None,
    "nan = nan": True, "nan <> nan": False, "nan > inf": True, "inf < nan": True, "nan < x": False,
    "nan <= nan": True, "x >= nan": False, "nan <=> nan": True, "mx = zx": True, "mx < zx": False,
    "greatest(x, nan)": NAN, "least(nan, inf)": math.inf, "x in (1D, nan)": False, "-nan": NAN,
    "n + x": 9.5, "n / 2": 3.5, "n = 7.0D": True, "greatest(n, x)": 7.0, "m / n": -1 / 7,
    "n div m": -7, "m % n": -1, "pmod(m, n)": 6, "low % m": 0, "inf % x": NAN, "x % inf": 2.5,
    "sqrt(-x)": NAN, "power(zx, m)": math.inf, "power(nan, zx)": 1.0, "floor(nan)": 0,
    "round(x)": 3.0, "round(-x)": -3.0, "floor(-x)": -3, "ceil(x)": 3, "abs(-inf)": math.inf,
    "startswith(s, e)": True, "e < s": True, "startswith(s, if(t, e, 'aa'))": True,
    "startswith(if(startswith(s, e), e, s), s)": False,
    "s like 'a!_' escape '!'": False, "s like '_b'": True, "e like '%'": True, "e like '_'": False,
    "t = ut": None, "t <=> ut": False, "ut <=> ut": True, "f < t": True, "t <> f": True,
    "n = 7.00": True, "n > 6.99": True, "n < 7.001": True, "x = 2.50": True, "x > 2.499": True,
    "n * 0.1 = 0.7": True, "0.1 + 0.2 = 0.3": True, "n between 6.5 and 7": True,
    "un <=> zn": False, "ux <=> nan": False, "mx <=> zx": True, "greatest(mx, zx)": 0.0,
    "round(x, -1)": 0.0, "round(-x, -1)": 0.0, "trunc(x - n, 0)": -4.0, "truncate(x - 4.96D, 1)": -2.4, "trunc(-x)": -2.0, "trunc(nan, 1)": NAN, "trunc(inf)": math.inf, "trunc(n, 1)": 7, "trunc(ux)": None, "round(inf, 2)": math.inf, "round(nan)": NAN,
    "pmod(-x, x)": 0.0, "pmod(x, -inf)": 2.5, "n % low": 7,
    "power(-x, 0.5D)": NAN, "power(m, inf)": NAN, "power(zx, zx)": 1.0, "power(n, un)": None,
    "sign(x - n)": -1.0, "sign(n - x)": 1.0, "sign(zx)": 0.0, "sign(mx)": -0.0, "sign(nan)": NAN,
    "sign(-inf)": -1.0, "sign(un)": None, "sign(m)": -1.0, "sign(low)": -1.0, "sign(1.25)": 1.0,
    "signum(x)": 1.0, "x / coalesce(zx, 2)": None,
    "x / if(n > x, zx, 2D)": None,
    "exp(zx)": 1.0, "exp(inf)": math.inf, "exp(-inf)": 0.0, "exp(nan)": NAN, "exp(n * 200)": math.inf, "exp(un)": None,
    **{form.format(name): value for name in ("ln", "log10", "log2") for form, value in {
        "{}(zx)": None, "{}(mx)": None, "{}(m)": None, "{}(-inf)": None, "{}(nan)": NAN,
        "{}(inf)": math.inf, "{}(1)": 0.0, "{}(ux)": None, "{}(x - x)": None}.items()},
    "log10(n + 993)": 3.0, "log2(8)": 3.0, "round(ln(x), 9)": 0.916290732, "round(exp(x), 6)": 12.182494, "ln(low) is null": True,
    "coalesce(ln(zx), x)": 2.5, "n div 0.1": 70, "n div 2.5": 2, "7 div 2.5": 2, "m div 0.4": -2, "0.9 div n": 0,
    "n div 0.0": None, "un div 0.5": None, "(n div 2.5) * 0.5 = 1.0": True, "n div 0.5 = 14": True,
}  # fmt: skip
"""Conditions and values that never fail, and what they are."""

DECIMALS: dict[str, tuple[str, Decimal | None]] = {
    "p": ("decimal(12,2)", Decimal("1234.56")), "q": ("decimal(5,3)", Decimal("-0.125")),
    "up": ("decimal(12,2)", None), "zp": ("decimal(12,2)", Decimal("0.00")),
    "w": ("decimal(28,10)", Decimal("123456789012345678.0000000001")),
    "v": ("decimal(38,0)", Decimal("9" * 38)), "y": ("decimal(38,18)", Decimal("1.4")),
    "c": ("decimal(18,18)", Decimal("0.000000000000000001")),
}  # fmt: skip
"""By name, the type and the value of the decimals that the cases below read."""

DECIMAL_CASES: dict[str, Any] = {
    "p = 1234.56": True, "p > q": True, "p < w": True, "w = 123456789012345678": False,
    "w <> 123456789012345678.0000000002": True, "p = up": None, "p <=> up": False,
    "n > 6.99": True, "n = 7.5": False, "n <= 7.5": True, "7.5 > n": True, "high > 1.5": True,
    "0.30 = high": False, "0.30 = 9223372036854775807 or n > 0": True,
    "9223372036854775807 >= 0.30": True, "coalesce(up, 9223372036854775807) > 0.5": True,
    "high < 9223372036854775807.5": True, "y = v - v + 1": True,
    "p = 1234.56D": True, "p > x": True, "p in (1, 1234.560)": True, "q between -1 and 0": True,
    "p + q": Decimal("1234.435"), "p - w": Decimal("-123456789012344443.4400000001"),
    "p * 1.05": Decimal("1296.2880"), "p * q": Decimal("-154.32000"), "w * w": None, "p * n": Decimal("8641.92"),
    "p / 3": Decimal("411.520000"), "p / q": Decimal("-9876.48000000"), "q / p": Decimal(
        "-0.0001012506480041"), "n / 2.0": Decimal("3.500000"), "1 / w": Decimal("0.000000000000000008100000073"), "c * c": Decimal("0.000000000000000000000000000000000001"),
    "p / zp": None, "p / up": None, "p % zp": None, "p % 1": Decimal("0.56"), "q % 0.1": Decimal(
        "-0.025"), "pmod(q, 0.1)": Decimal("0.075"), "pmod(q, w)": None, "pmod(q, 99)": Decimal("98.875"), "w % n": Decimal("1.0000000001"),
    "p div q": -9876, "w div 0.1": 1234567890123456780, "v div 1": 687399551400673279, "p div up": None,
    "v + 1": None, "v * 10": None, "v + v": None, "high * 0.5": Decimal("4611686018427387903.5"),
    "high + 0.5": Decimal("9223372036854775807.5"), "-p": Decimal("-1234.56"),
    "abs(q)": Decimal("0.125"), "abs(-w)": Decimal("123456789012345678.0000000001"),
    "round(p, 1)": Decimal("1234.6"), "round(q, 2)": Decimal("-0.13"), "round(p, -2)": Decimal(
        "1200"), "round(p, 5)": Decimal("1234.56"), "trunc(p, 1)": Decimal("1234.5"), "trunc(q, 2)": Decimal("-0.12"), "trunc(p, -2)": Decimal("1200"), "trunc(-p, 5)": Decimal("-1234.56"), "trunc(up, 1)": None, "round(n / 2.0, 0)": Decimal("4"),
    "floor(q)": Decimal("-1"), "ceil(q)": Decimal("0"), "ceil(w)": Decimal("123456789012345679"),
    "floor(v)": Decimal("9" * 38), "coalesce(up, 7)": Decimal("7.00"),
    "coalesce(up, q)": Decimal("-0.125"), "greatest(p, w, n)": Decimal(
        "123456789012345678.0000000001"), "least(up, q)": Decimal("-0.125"),
    "if(p > q, p, 1)": Decimal("1234.56"), "nullif(p, 1234.56)": None, "p + x": 1237.06,
    "sqrt(p - 1210.56)": 4.898979485566356, "sign(q)": -1.0, "power(q, 2)": 0.015625,
    "case when p > w then p when q < 0 then c end": Decimal("0.000000000000000001"),
}  # fmt: skip
"""Conditions and values of decimals, without ANSI; of results that are decimals, all digits."""

OVERFLOWS: dict[str, int] = {
    "high + 1": LOW, "low - 1": HIGH, "high * 2": -2, "-low": LOW, "abs(low)": LOW,
    "low div m": LOW, "floor(inf)": HIGH, "ceil(-inf)": LOW,
}  # fmt: skip
"""Values out of the range of whole numbers: without ANSI these, with it errors."""

CAST_VALUES: dict[str, tuple[Any, ...]] = {
    "string": (
        "12", " 12\t", "\u00a05", "1_000", "\u0665", "1.5", "-.5", "+5", "5.", "-", "", "1e3", "5d",
        "NaN", "-inf", "+Infinity", "0x10", "128", "-129", "1e400", "99999999999", "0.005", "1.999",
        "tRuE ", "n", "on", "2026", "2026-1-2", "2026-01-02 3:4", "2026-01-02 03:04:05.1234567",
        "2026-01-02T03:04:05+01:00", "2026-01-02Tabc", "2026-W01-1", "2026-02-30", None,
    ),
    "bigint": (0, -1, 127, 128, 3_000_000_000, LOW, HIGH, None),
    "double": (
        -0.0, 2.9, -2.9, 127.5, 2147483648.0, 9.3e18, NAN, math.inf, -math.inf, 1e300, 0.1, 2.675,
        999.995, None,
    ),
    "boolean": (True, False, None),
    "decimal(20,3)": (Decimal("-2.500"), Decimal("0.000"), Decimal("999.995"), Decimal("128.100")),
    "date": (date(2026, 1, 2), date(1969, 12, 31), None),
    "timestamp_ntz": (datetime(2026, 1, 2, 3, 4, 5, 120000), datetime(1969, 12, 31, 23, 59), None),
}  # fmt: skip
"""By type, values to cast."""

CAST_TYPES = (
    "tinyint", "int", "bigint", "float", "double", "boolean", "string", "decimal(5, 2)", "decimal",
    "date", "timestamp_ntz",
)  # fmt: skip

ERROR = "an error with ANSI, else NULL"

CASTS: dict[tuple[Any, str], Any] = {
    (" 12\t", "int"): 12, ("\u00a05", "int"): ERROR, ("1_000", "int"): ERROR, ("5.", "int"): ERROR,
    ("\u0665", "int"): ERROR, ("5d", "double"): 5.0, ("-inf", "float"): -math.inf,
    ("1_000", "double"): ERROR, ("1.999", "decimal(5, 2)"): Decimal("2.00"),
    ("99999999999", "decimal"): ERROR, ("tRuE ", "boolean"): True, ("on", "boolean"): ERROR,
    ("2026-1-2", "date"): date(2026, 1, 2), ("2026-W01-1", "date"): ERROR,
    ("2026-01-02Tabc", "date"): date(2026, 1, 2), ("2026-01-02Tabc", "timestamp_ntz"): ERROR,
    ("2026-01-02T03:04:05+01:00", "timestamp_ntz"): datetime(2026, 1, 2, 3, 4, 5),
    (128, "tinyint"): ERROR, (-2.9, "int"): -2, (NAN, "bigint"): ERROR, (NAN, "boolean"): True,
    (9.3e18, "bigint"): ERROR, (0.1, "float"): 0.10000000149011612, (1e300, "float"): math.inf,
    (999.995, "decimal(5, 2)"): ERROR, (2.675, "decimal(5, 2)"): Decimal("2.68"),
    (True, "double"): 1.0, (True, "string"): "true", (None, "int"): None,
    (date(2026, 1, 2), "boolean"): ERROR, (date(2026, 1, 2), "int"): ERROR,
    (datetime(2026, 1, 2, 3, 4, 5, 120000), "string"): "2026-01-02 03:04:05.12",
    (datetime(2026, 1, 2, 3, 4, 5), "date"): date(2026, 1, 2),
}  # fmt: skip
"""Some of them, and what they are cast to."""
