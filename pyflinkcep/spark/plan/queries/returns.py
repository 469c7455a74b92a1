# SPDX-License-Identifier: Apache-2.0
"""HAVING and RETURN as SQL over rows of matches: a variable is an array of events."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.parser import event_tree
from pyflinkcep.expressions.sql_types import BIGINT, DOUBLE, INT, VOID, SqlType, array_of
from pyflinkcep.expressions.tree import (
    Aggregate,
    Call,
    Column,
    Leaf,
    Operation,
    Tree,
    attribute_of,
    mapped,
    spark_sql,
)
from pyflinkcep.matching.columns import quoted
from pyflinkcep.sase.attributes import FIRST, LAST, owned_sql
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Query
from pyflinkcep.sase.types import one_line
from pyflinkcep.spark.plan.analysis import first_line, sql_type
from pyflinkcep.spark.plan.conditions import setting_of
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.exact_decimals import decimal_mean, decimal_total, if_any, total_of
from pyflinkcep.spark.plan.portable import Setting, Value, narrowed, portable

_NAN = "cast('NaN' AS double)"


def returned(query: Query, matches: DataFrame) -> DataFrame:
    """Return the rows of a query: matches that satisfy HAVING, with the columns of RETURN."""
    try:
        return _returned(query, matches)
    except AnalysisException as cause:
        raise InputError(
            f"query {one_line(query)}: HAVING or RETURN cannot be evaluated: {first_line(cause)}",
            "compute with values of other types, or return these and compute on the result",
        ) from cause


def _returned(query: Query, matches: DataFrame) -> DataFrame:
    session = matches.sparkSession
    types = {field.name: sql_type(field.dataType) for field in matches.schema}
    setting = None if engine_of(session) is SPARK else setting_of(session)
    values = _Values(matches, types, setting)
    if query.having is not None:
        matches = matches.where(values.sql(query.having))
    if query.columns is None:
        return matches
    columns = [F.expr(values.column(c.value, query)).alias(c.name) for c in query.columns]
    if query.event is not None:
        columns = [F.lit(query.event).alias(EVENT_TYPE), F.col(EVENT_TIME), *columns]
    return matches.select(*columns)


@attrs.frozen
class _Values:
    """Writes values of matches, whose variables are arrays of events, as SQL."""

    matches: DataFrame
    types: Mapping[str, SqlType]  # The types of the columns of the matches
    # What values depend on where another engine than Spark computes them; None on Spark, where
    # types are asked for only if SQL depends on them.
    setting: Setting | None

    def column(self, value: Tree, query: Query) -> str:
        """Return a column of RETURN: of a loop without an index, the values of all its events."""
        if not isinstance(value, Column) or value.index in (FIRST, LAST):
            return self.sql(value)
        is_list = query.component(value.variable).takes_many
        return self._events(value).sql if is_list else self.sql(value)

    def sql(self, tree: Tree) -> str:
        """Return a value of a match."""
        if self.setting is not None:
            return portable(tree, self._leaf, self.setting, zero_is_null=True).sql
        return spark_sql(mapped(tree, self._known_to_spark), self._leaf_sql, zero_is_null=True)

    def _known_to_spark(self, made: Tree) -> Tree:
        """Return a part of a value without the functions that Spark lacks."""
        if not isinstance(made, Operation) or made.operator != "truncate":
            return made
        digits = int(spark_sql(made.operands[1], self._leaf_sql)) if len(made.operands) > 1 else 0
        nearest, unit = f"round(v, {digits})", f"{Decimal(1).scaleb(-digits):f}BD"
        less = f"round(IF(v < 0, {nearest} + {unit}, {nearest} - {unit}), {digits})"
        cut = f"v -> IF(abs({nearest}) > abs(v), {less}, {nearest})"
        rounded = attrs.evolve(made, operator="round")
        type_ = self._type(spark_sql(rounded, self._leaf_sql, zero_is_null=True)).simpleString()
        between = "cast(element_at(transform(array(", f"), {cut}), 1) AS {type_})"
        return Call("", made.operands[:1], between=between)

    def _type(self, sql: str) -> DataType:
        return self.matches.select(F.expr(sql)).schema[0].dataType

    def _leaf_sql(self, leaf: Leaf) -> str:
        return self._leaf(leaf).sql

    def _leaf(self, leaf: Leaf) -> Value:
        if isinstance(leaf, Aggregate):
            return self._aggregate(leaf)
        place = -1 if leaf.index == LAST else 1
        return self._of_event(leaf, f"try_element_at({quoted(leaf.variable)}, {place})")

    def _of_event(self, column: Column, event: str) -> Value:
        type_ = _element(self.types[column.variable])
        if column.sql is None:
            return Value(event, type_)
        if self.setting is None:
            return Value(owned_sql(column, event), VOID)
        known = dict(zip(map(str.casefold, type_.fields), type_.inner, strict=True))

        def field(leaf: Leaf) -> Value:
            name = str(leaf.over.sql)
            own = known[attribute_of(name).casefold()]
            assert own is not None
            return Value(f"{event}.{name}", own)

        return portable(event_tree(column.sql), field, self.setting)

    def _events(self, over: Column) -> Value:
        """Return the values of all events of a variable."""
        events = quoted(over.variable)
        if over.computed is None:
            value = self._of_event(over, events)
            return Value(value.sql, array_of(value.type))
        value = self._of_event(over, "e")
        return Value(f"transform({events}, e -> {value.sql})", array_of(value.type))

    # --- aggregates

    def _aggregate(self, tree: Aggregate) -> Value:
        events, function = self._events(tree.over), tree.function
        if tree.argument is None:
            return Value(f"size({events.sql})", INT)
        element = _element(events.type)
        if function in ("first", "last"):
            place = 1 if function == "first" else -1
            return Value(f"try_element_at({events.sql}, {place})", element)
        if function in ("min", "max"):
            values = events.sql
            if self.setting is not None and element.is_float:
                values, element = f"transform({values}, v -> nanvl(v, {_NAN}))", DOUBLE
            return Value(f"array_{function}({values})", element)
        known = f"filter({events.sql}, v -> v IS NOT NULL)"
        if function == "count":
            return Value(f"size({known})", INT)
        form = AGGREGATES[function].sql
        if form:
            return Value(form.format(known), DOUBLE)
        if self.setting is None:
            element = _element(sql_type(self._type(events.sql)))
        if function == "avg" and not element.is_decimal:
            return Value(f"({total_of(known, 'double')} / nullif(size({known}), 0))", DOUBLE)
        if element.is_decimal or (self.setting is not None and not element.is_number):
            return self._of_decimals(tree, known, element)
        if not element.is_whole:
            return Value(if_any(known, total_of(known, "double")), DOUBLE)
        total = total_of(known, "bigint")
        if self.setting is not None and self.setting.ansi:  # overflow is an error on Spark alone
            total = narrowed(total_of(known, "decimal(38, 0)"), "bigint")
        return Value(if_any(known, total), BIGINT)

    def _of_decimals(self, tree: Aggregate, known: str, element: SqlType) -> Value:
        """Return the SUM or AVG of decimals."""
        if self.setting is not None:
            what = f"{tree.function}({tree.argument})"
            raise self.setting.refused(what, "it adds decimals", "cast them to double")
        digits = element.of_decimal
        assert digits is not None
        written = decimal_total if tree.function == "sum" else decimal_mean
        return Value(written(known, digits), element)


def _element(array: SqlType) -> SqlType:
    (found,) = array.inner
    assert found is not None
    return found
