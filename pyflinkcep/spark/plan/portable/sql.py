# SPDX-License-Identifier: Apache-2.0
"""SQL that has on another engine the values that Spark computes, or is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.parser import event_tree
from pyflinkcep.expressions.sql_functions import CASTS, FIELDS
from pyflinkcep.expressions.sql_types import INT
from pyflinkcep.expressions.tree import Call, Leaf, Literal, Tree, quoted_name
from pyflinkcep.expressions.tree import Column as Name
from pyflinkcep.spark.plan.analysis import sql_type
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.portable.operations import called, computed, element, member
from pyflinkcep.spark.plan.portable.values import MONTHS, Part, Setting, Value, added, cast_value

_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "UTC+0")
# A window function of a column, over a window of columns.
_WINDOW = re.compile(
    r"(?:(?:lag|lead|first_value|last_value)\s*\(\s*(\w+)\s*(?:,\s*\d+\s*)?\)|"
    r"(?:row_number|rank|dense_rank)\s*\(\s*\))\s*over\s*\([\w\s,]*\)$",
    re.IGNORECASE,
)
_MONTHS = re.compile(r"interval\b.*\b(month|year)s?\b", re.IGNORECASE | re.DOTALL)


class UnknownNameError(CepError):
    """A column that the events lack, which the engine refuses in its own words."""


def sql_column(sql: str, dataframe: DataFrame) -> Column:
    """Return what SQL computes from one event; see :func:`sql_columns`."""
    return sql_columns([sql], dataframe)[0]


def sql_columns(given: Sequence[str | Column], dataframe: DataFrame) -> list[Column]:
    """Return what SQL computes from one event, with Spark's values whatever runs it."""
    session = dataframe.sparkSession
    if any(isinstance(one, str) for one in given) and engine_of(session) is not SPARK:
        setting = setting_of(session)
        given = [
            _with_sparks_values(one, dataframe, setting) if isinstance(one, str) else one
            for one in given
        ]
    return [F.expr(one) if isinstance(one, str) else one for one in given]


def _with_sparks_values(sql: str, dataframe: DataFrame, setting: Setting) -> str:
    try:
        tree = event_tree(sql)
    except CepError:
        raise setting.unknown(sql) from None
    try:
        return portable(tree, names_of(dataframe.schema), setting).sql
    except UnknownNameError:
        return sql


def setting_of(session: SparkSession) -> Setting:
    """Return what values depend on in a session."""
    return Setting(
        engine_of(session).name,
        session.conf.get("spark.sql.ansi.enabled") == "true",
        session.conf.get("spark.sql.session.timeZone") in _UTC,
    )


def names_of(schema: StructType) -> Callable[[Leaf], Value]:
    """Return a function from a column to its value."""
    types = {field.name: sql_type(field.dataType) for field in schema}
    folded = {name.casefold(): type_ for name, type_ in types.items()}

    def named(leaf: Leaf) -> Value:
        assert isinstance(leaf, Name)
        name = str(leaf.sql)[1:-1].replace("``", "`")
        type_ = types.get(name, folded.get(name.casefold()))
        if type_ is None:
            raise UnknownNameError(name, "")
        return Value(str(leaf.sql), type_)

    return named


def portable(
    tree: Tree, leaf: Callable[[Leaf], Value], setting: Setting, *, zero_is_null: bool = False
) -> Value:
    """Return a tree as SQL that has Spark's values."""

    def value(part: Tree) -> Value:
        if isinstance(part, Literal):
            return Value.of(part)
        if isinstance(part, Leaf):
            return leaf(part)
        if isinstance(part, Call) and part.function == "extract" and len(part.operands) == 2:
            name = FIELDS.get(part.operands[0].text.lower(), "")
            return called(Part(name, part.text, [value(part.operands[1])], setting))
        if isinstance(part, Call) and not part.operands and _WINDOW.match(part.text):
            return _of_window(part.text, leaf)
        operands = [value(operand) for operand in part.operands]
        if isinstance(part, Call):
            return _call(Part(part.function, part.text, operands, setting, part.detail))
        return computed(part, operands, setting, zero_is_null)

    return value(tree)


def _of_window(text: str, leaf: Callable[[Leaf], Value]) -> Value:
    """Return what a window function takes of another event, or an event's rank."""
    name = _WINDOW.match(text)[1]  # type: ignore[index]
    return Value(text, leaf(Name(quoted_name(name))).type if name else INT)


def _call(part: Part) -> Value:
    function, count = part.operator, len(part.operands)
    if not function and not count and _MONTHS.match(part.what):
        return Value(part.what, MONTHS)
    if function == ".":
        return member(part)
    if function == "[]":
        return element(part)
    if function in ("cast", "try_cast") and part.detail:
        return cast_value(part, part.detail, function)
    if function in CASTS and count == 1 and not part.detail:
        return cast_value(part, CASTS[function])
    if function in ("timestampadd", "dateadd") and part.detail and count == 2:
        return added(part)
    if part.detail or not function:
        raise part.unknown()
    return called(part)
