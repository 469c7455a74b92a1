# SPDX-License-Identifier: Apache-2.0
"""SQL for an engine that is not Spark: with Spark's values, or refused by name."""

from __future__ import annotations

import attrs
import pytest
from pyspark.sql.types import StructType, TimestampType

from pyflinkcep import NotSupportedError
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import EventReader
from pyflinkcep.spark.plan.conditions import names_of
from pyflinkcep.spark.plan.portable import Setting, portable

SCHEMA = StructType()
for name, type_ in {
    "n": "long", "i": "integer", "x": "double", "f": "float", "s": "string", "b": "boolean",
    "p": "decimal(10,2)", "w": "decimal(30,10)", "d": "date", "t": "timestamp",
    "z": "timestamp_ntz",
}.items():  # fmt: skip
    SCHEMA = SCHEMA.add(name, type_)
ANSI = Setting("Engine 1.0", ansi=True, is_utc=True)


def sql(text: str, setting: Setting = ANSI) -> str:
    """Return an expression for another engine."""
    return portable(EventReader(text).part(parsed(text)), names_of(SCHEMA), setting).sql


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s = 'a' and n > 5", "((`s` = 'a') AND (`n` > cast(5 AS bigint)))"),
        ("n > 5L", "(`n` > cast(5 AS bigint))"),
        ("x > 1.5", "(nanvl(`x`, cast('NaN' AS double)) > 1.5D)"),
        ("f = 1", "(nanvl(cast(`f` AS double), cast('NaN' AS double)) = 1.0D)"),
        ("i + 1", "coalesce(cast(cast(`i` AS bigint) + cast(1 AS bigint) AS int), NULL)"),
        ("n * n", "coalesce(cast(cast(`n` AS decimal(19, 0)) * cast(`n` AS decimal(19, 0)) "
                  "AS bigint), NULL)"),
        ("p + 1", "cast((`p` + 1) AS decimal(11, 2))"),
        ("p / 3", "cast(cast(`p` AS decimal(38, 6)) / cast(3 AS decimal(1, 0)) "
                  "AS decimal(14, 6))"),
        ("w / p", "cast(cast(`w` AS decimal(38, 16)) / cast(`p` AS decimal(10, 2)) "
                  "AS decimal(38, 16))"),
        ("n / i", "(cast(`n` AS double) / cast(`i` AS double))"),
        ("d - date'2026-01-01'", "(datediff(`d`, cast('2026-01-01' AS date)) * "
                  "INTERVAL '1' DAY)"),
        ("d = t", "(cast(`d` AS timestamp) = `t`)"),
        ("d + interval 2 days", "date_add(`d`, 2)"),
        ("t > '2026-03-01'", "(`t` > cast('2026-03-01' AS timestamp))"),
        ("isnan(x)", "coalesce(isnan(`x`), false)"),
        ("if(b, n, x)", "(CASE WHEN `b` THEN cast(`n` AS double) ELSE `x` END)"),
        ("'it''s'", "'it\\'s'"),
        ("extract(year from d)", "year(`d`)"), ("extract(DAYS from d)", "day(`d`)"),
    ],
)  # fmt: skip
def test_what_is_written_otherwise(text: str, expected: str) -> None:
    """Overflow fails, NaN has one form, and values of different types are cast as Spark does."""
    assert sql(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s rlike 'a.c'", "not known"), ("soundex(s)", "not known"), ("i & 3", "not known"),
        ("exists(array(i), e -> e > 1)", "not known"), ("cast(x as string)", "1.0E7"),
        ("x || s", "1.0E7"), ("round(x, 2)", "binary value"), ("w * w", "up to 61 digits"),
        ("b = 1", "different types"), ("s + 1", "no numbers"),
        ("substring(s, -5, 3)", "from the end"), ("left(s, -1)", "not known"),
        ("cast(i as date)", "no such cast"), ("cast(z as int)", "no such cast"),
        ("x div 2", "not whole"), ("array_contains(array(x), x)", "not known"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, why: str) -> None:
    """What the engine would compute otherwise is named, with the reason."""
    with pytest.raises(NotSupportedError, match=f"Engine 1.0 does not compute .* as Spark .*{why}"):
        sql(text)


def test_clocks_other_than_utc() -> None:
    """What depends on the session's zone is refused there; instants are not, nor local clocks."""
    berlin = attrs.evolve(ANSI, is_utc=False)
    of_zone = (
        "hour(t)",
        "cast(t as date)",
        "t - interval 1 day",
        "t - t = interval 1 day",
        "t || ''",
    )
    instants = (
        "t > '2026-03-01'",
        "t + interval 1 hour",
        "unix_millis(t)",
        "hour(z)",
        "t = t",
        "t = z",
        "t > d",
    )

    for text in of_zone:
        with pytest.raises(NotSupportedError, match="time zone of the session"):
            sql(text, berlin)
        assert sql(text)
    assert [sql(text, berlin) for text in instants] == [sql(text) for text in instants]
    assert isinstance(SCHEMA["t"].dataType, TimestampType)


def test_without_ansi() -> None:
    """Numbers wrap around and division by zero is NULL; texts beside numbers are refused."""
    setting = attrs.evolve(ANSI, ansi=False)

    assert sql("n + 1", setting) == "(`n` + cast(1 AS bigint))"
    assert (
        sql("n % i", setting)
        == "(`n` % cast((CASE WHEN `i` = 0 THEN NULL ELSE `i` END) AS bigint))"
    )
    with pytest.raises(NotSupportedError, match="values of different types"):
        sql("s > 5", setting)
