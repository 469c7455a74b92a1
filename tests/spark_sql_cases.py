# SPDX-License-Identifier: Apache-2.0
"""Expressions about one event and their values: for the evaluator, and for Spark itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal

EVENT: Mapping[str, object] = {
    "n": 7, "m": -3, "u": None, "x": 2.5, "nan": math.nan, "s": "abC", "e": "", "b": True,
    "xs": [1, 2], "kv": {"k": 5}, "st": {"a": {"b": 4}},
    "t": datetime(2026, 3, 1, 12, 30, 15), "d": date(2026, 2, 28),
}  # fmt: skip
SCHEMA = (
    "n bigint, m bigint, u bigint, x double, nan double, s string, e string, b boolean, "
    "xs array<bigint>, kv map<string, bigint>, st struct<a: struct<b: bigint>>, "
    "t timestamp_ntz, d date"
)

VALUES: Mapping[str, object] = {
    "n + m * 2": 1, "n / 2": 3.5, "n % m": 1, "m % 2": -1, "n div 2": 3, "m div 2": -1,
    "n * 0.1 = 0.7": True, "n * 0.1D = 0.7D": False, "0.1 + 0.2": Decimal("0.3"),
    "n + u": None, "-m": 3, "+n": 7, "- -n": 7, "x * 2": 5.0, "x % 2": 0.5, "5 - -3": 8,
    "n > 6": True, "n = 7.0": True, "n <> 7": False, "n != 7": False, "n == 7": True,
    "u = u": None, "u <=> u": True, "n <=> u": False, "nan = nan": True, "nan > 1e300": True,
    "n > 6 and u > 1": None, "n < 6 and u > 1": False, "n > 6 or u > 1": True,
    "n < 6 or u > 1": None, "not (u > 1)": None, "!b": False, "not n > 6 or b": True,
    "u is null": True, "n is not null": True, "b is true": True, "(u > 1) is unknown": True,
    "(u > 1) is not false": True, "n is distinct from u": True, "u is not distinct from null": True,
    "n between 1 and 7": True, "n not between 1 and u": None, "n between 8 and u": False,
    "n in (1, 7, u)": True, "n in (1, u)": None, "n not in (1, 2)": True, "u in (1)": None,
    "s like 'a%'": True, "s like '_b_'": True, "s like 'A%'": False, "s not like 'b%'": True,
    "'50%' like '50!%' escape '!'": True, "'50x' like '50\\%'": False, "u like 'a'": None,
    "case when n > 10 then 1 when u > 1 then 2 else 3 end": 3, "case n when 7 then 'x' end": "x",
    "case u when null then 1 else 2 end": 2, "case when false then 1 end": None,
    "if(u > 1, 1, 2)": 2, "coalesce(u, n)": 7, "nvl(u, 1)": 1, "nullif(n, 7)": None,
    "nullif(n, u)": 7, "greatest(n, u, m)": 7, "least(u, u)": None, "greatest(x, nan) = nan": True,
    "abs(m)": 3, "abs(-x)": 2.5, "mod(n, 4)": 3, "floor(-x)": -3, "ceil(x)": 3, "isnan(nan)": True,
    "s || 'd'": "abCd", "s || cast(u as string)": None, "concat(s, e, 'z')": "abCz",
    "concat_ws('-', s, u, 'z')": "abC-z", "concat_ws('-')": "", "nvl2(u, 1, n)": 7,
    "size(array(n, u))": 2, "reverse(s)": "Cba", "repeat(s, 2)": "abCabC", "instr(s, 'C')": 3,
    "date_add(d, 1)": date(2026, 3, 1), "date_sub(t, 1)": date(2026, 2, 28),
    "cast(x as decimal(5, 2))": Decimal("2.50"), "cast('1.255' as decimal(5,2))": Decimal("1.26"),
    "cast(-2.5 as decimal)": Decimal("-3"),
    "exp(0)": 1.0, "log10(100)": 2.0, "ln(n - 7)": None, "bround(x)": 2.0, "bround(3.5)": Decimal("4"),
    "lower(s)": "abc", "upper(s)": "ABC", "length(s)": 3, "trim('  a ')": "a",
    "substring(s, 2)": "bC", "substring(s from 1 for 2)": "ab", "substr(s, -2, 1)": "b",
    "left(s, 2)": "ab", "right(s, 2)": "bC", "replace(s, 'b', '')": "aC", "startswith(s, 'ab')": True,
    "contains(s, 'bC')": True, "s > 'abB'": True, "'it''s'": "it's", "'\\u0041\\t'": "A\t",
    "r'\\t'": "\\t", '"dq"': "dq",
    "xs[1]": 2, "kv['k']": 5, "kv['none']": None, "st.a.b": 4, "size(xs)": 2,
    "array_contains(xs, 2)": True,
    "t > '2026-03-01 12:30:00'": True, "t >= timestamp_ntz'2026-03-01 12:30:15'": True,
    "d < date'2026-03-01'": True, "d = '2026-02-28'": True,
    "t - interval '30' minute": datetime(2026, 3, 1, 12, 0, 15),
    "t - timestamp_ntz'2026-03-01 12:00:00'": timedelta(minutes=30, seconds=15),
    "t + interval 1 day 2 hours": datetime(2026, 3, 2, 14, 30, 15),
    "t - timestamp_ntz'2026-03-01' < interval '1' day": True,
    "date'2026-03-01' - d": timedelta(days=1), "d + interval 2 days": date(2026, 3, 2),
    "timestampdiff(MINUTE, timestamp_ntz'2026-03-01', t)": 750,
    "timestampdiff(HOUR, t, timestamp_ntz'2026-03-01')": -12,
    "datediff(t, d)": 1, "year(t)": 2026, "hour(t)": 12, "minute(t)": 30, "month(d)": 2,
    "cast(x as int)": 2, "cast(-x as bigint)": -2, "cast(' 12 ' as int)": 12, "n::double": 7.0,
    "cast(b as int)": 1, "cast(n as string)": "7", "cast('yes' as boolean)": True,
    "cast(t as date)": date(2026, 3, 1), "cast('2026-03-01 01:02:03' as timestamp_ntz)":
        datetime(2026, 3, 1, 1, 2, 3),
    "9007199254740993 / 3": 3002399751580330.5, "abs(cast('-Infinity' as double))": math.inf,
    "isnan(abs(nan))": True, "isnan(sign(nan))": True, "isnan(ln(nan))": True, "ln(-1)": None,
    "exp(1000)": math.inf, "abs(interval '-1' day)": timedelta(days=1), "sign(m)": -1.0,
    "floor(1.25)": Decimal("1"), "ceil(-1.25)": Decimal("-1"), "pmod(-1.25, 0.5)": Decimal("0.25"),
    "pmod(99999999.99, 2.5)": Decimal("2.49"), "sign(-0.0D)": -0.0, "isnan(u)": False,
    "coalesce(n, 0.5D)": 7.0, "if(b, n, n / 2D)": 7.0, "case when b then n else sqrt(x) end": 7.0,
    "nvl2(n, n, cast(u as double))": 7.0, "greatest(n, cast(u as double))": 7.0,
    "coalesce(u, n, 1.5)": Decimal("7.0"), "nullif(n, 7.5D)": 7, "least(n, u, m)": -3,
    "round(n, -1)": 10, "round(-25, -1)": -30, "round(2.5D, -1)": 0.0, "bround(25, -1)": 20,
    "'\U0001F600' > '\uFFFD'": True,
    "length('\U0001F600')": 1, "'\U0001F600' like '_'": True, "cast(0.1 as float)": 0.10000000149011612,
    "cast('2026-3-1' as date)": date(2026, 3, 1), "cast('5d' as double)": 5.0,
    "d <= '2026-2-28'": True, "t > '2026-3-1 12:30'": True,
    "n /* c */ + 1 -- d": 8, "`n` + 1": 8, "10L": 10, "1e2": 100.0, "1.50": Decimal("1.50"),
}  # fmt: skip
