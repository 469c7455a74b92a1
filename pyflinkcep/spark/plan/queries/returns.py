# SPDX-License-Identifier: Apache-2.0
"""HAVING and RETURN as SQL over rows of matches: a variable is an array of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.numbers import MOST_DIGITS, Digits, averaged, summed
from pyflinkcep.expressions.parser import event_tree
from pyflinkcep.expressions.sql_types import BIGINT, DOUBLE, INT, SqlType, array_of
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
from pyflinkcep.spark.plan.analysis import sql_type
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.portable.sql import portable, setting_of
from pyflinkcep.spark.plan.portable.values import Setting, Value, narrowed

_NAN = "cast('NaN' AS double)"


@attrs.frozen
class PortableMatches:
    """Values of matches, whose variables are arrays of events."""

    types: Mapping[str, SqlType]  # The types of the columns of the matches
    setting: Setting  # What values depend on

    def sql(self, tree: Tree) -> str:
        """Return a value of a match as SQL."""
        return portable(tree, self._leaf, self.setting, zero_is_null=True).sql

    def events(self, over: Column) -> str:
        """Return the values of all events of a variable as SQL."""
        return self._events(over).sql

    def _leaf(self, leaf: Leaf) -> Value:
        if isinstance(leaf, Aggregate):
            return self._aggregate(leaf)
        place = -1 if leaf.index == LAST else 1
        event = f"try_element_at({quoted(leaf.variable)}, {place})"
        return self._of_event(leaf, event)

    def _of_event(self, column: Column, event: str) -> Value:
        type_ = _element(self.types[column.variable])
        if column.sql is None:
            return Value(event, type_)
        known = dict(zip(map(str.casefold, type_.fields), type_.inner, strict=True))

        def field(leaf: Leaf) -> Value:
            name = str(leaf.over.sql)
            own = known[attribute_of(name).casefold()]
            assert own is not None
            return Value(f"{event}.{name}", own)

        return portable(event_tree(column.sql), field, self.setting)

    def _events(self, over: Column) -> Value:
        events = quoted(over.variable)
        if over.computed is None:
            value = self._of_event(over, events)
            return Value(value.sql, array_of(value.type))
        value = self._of_event(over, "e")
        return Value(f"transform({events}, e -> {value.sql})", array_of(value.type))

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
            if element.is_float:
                values, element = f"transform({values}, v -> nanvl(v, {_NAN}))", DOUBLE
            return Value(f"array_{function}({values})", element)
        known = f"filter({events.sql}, v -> v IS NOT NULL)"
        if function == "count":
            return Value(f"size({known})", INT)
        if function == "sum" and element.is_whole and self.setting.ansi:
            return Value(
                _if_any(known, narrowed(_total(known, "decimal(38, 0)"), "bigint")), BIGINT
            )
        if function == "sum" and (element.is_float or element.is_whole):
            type_ = DOUBLE if element.is_float else BIGINT
            return Value(_if_any(known, _total(known, type_.sql)), type_)
        if function == "avg" and not element.is_decimal:
            return Value(f"({_total(known, 'double')} / nullif(size({known}), 0))", DOUBLE)
        form = AGGREGATES[function].sql
        if form:
            return Value(form.format(known), DOUBLE)
        raise self.setting.refused(
            f"{function}({tree.argument})", "it adds decimals", "cast them to double"
        )


def _element(array: SqlType) -> SqlType:
    (found,) = array.inner
    assert found is not None
    return found


def _if_any(known: str, total: str) -> str:
    return f"IF(size({known}) = 0, NULL, {total})"


def _total(known: str, type_: str) -> str:
    return f"aggregate({known}, cast(0 AS {type_}), (s, v) -> cast(s + v AS {type_}))"


def returned(query: Query, matches: DataFrame) -> DataFrame:
    """Return the rows of a query: matches that satisfy HAVING, with the columns of RETURN."""
    sql: Callable[[Tree], str] = _Sql(matches)
    events = _events
    if engine_of(matches.sparkSession) is not SPARK:
        types = {field.name: sql_type(field.dataType) for field in matches.schema}
        values = PortableMatches(types, setting_of(matches.sparkSession))
        sql, events = values.sql, values.events
    if query.having is not None:
        matches = matches.where(sql(query.having))
    if query.columns is None:
        return matches
    columns = [
        F.expr(events(column) if column is not None else sql(value)).alias(name)
        for name, value, column in (
            (c.name, c.value, _listed(query, c.value)) for c in query.columns
        )
    ]
    if query.event is not None:
        columns = [F.lit(query.event).alias(EVENT_TYPE), F.col(EVENT_TIME), *columns]
    return matches.select(*columns)


def _listed(query: Query, value: Tree) -> Column | None:
    """Return a value that there is one of for each event of a variable; None for others."""
    if not isinstance(value, Column) or value.index in (FIRST, LAST):
        return None
    return value if query.component(value.variable).takes_many else None


def _events(over: Column) -> str:
    events = quoted(over.variable)
    if over.computed is None:
        return events if over.sql is None else f"{events}.{over.sql}"
    return f"transform({events}, e -> {owned_sql(over, 'e')})"


@attrs.frozen
class _Sql:
    """Writes values of matches as SQL."""

    matches: DataFrame

    def __call__(self, tree: Tree) -> str:
        return spark_sql(mapped(tree, self._known), self._leaf, zero_is_null=True)

    def _known(self, made: Tree) -> Tree:
        """Return a part of a value without the functions that Spark lacks."""
        if not isinstance(made, Operation) or made.operator != "truncate":
            return made
        digits = int(spark_sql(made.operands[1], self._leaf)) if len(made.operands) > 1 else 0
        nearest, unit = f"round(v, {digits})", f"{Decimal(1).scaleb(-digits):f}BD"
        less = f"round(IF(v < 0, {nearest} + {unit}, {nearest} - {unit}), {digits})"
        cut = f"v -> IF(abs({nearest}) > abs(v), {less}, {nearest})"
        rounded = spark_sql(attrs.evolve(made, operator="round"), self._leaf, zero_is_null=True)
        type_ = self.matches.select(F.expr(rounded)).schema[0].dataType.simpleString()
        between = "cast(element_at(transform(array(", f"), {cut}), 1) AS {type_})"
        return Call("", made.operands[:1], between=between)

    def _leaf(self, leaf: Leaf) -> str:
        if isinstance(leaf, Aggregate):
            return self._aggregate(leaf)
        event = f"try_element_at({quoted(leaf.variable)}, {-1 if leaf.index == LAST else 1})"
        return event if leaf.sql is None else owned_sql(leaf, event)

    def _aggregate(self, tree: Aggregate) -> str:
        events, function = _events(tree.over), tree.function
        if tree.argument is None:
            return f"size({events})"
        if function in ("first", "last"):
            return f"try_element_at({events}, {1 if function == 'first' else -1})"
        known = f"filter({events}, v -> v IS NOT NULL)"
        if function == "count":
            return f"size({known})"
        form = AGGREGATES[function].sql
        if form:
            return form.format(known)
        if function in ("min", "max"):
            return f"array_{function}({events})"
        digits = self._digits(events)
        if digits is not None:
            of_decimals = _decimal_total if function == "sum" else _decimal_mean
            return of_decimals(known, digits)
        # Whole numbers have whole sums; floats are summed as doubles, and for an average all.
        first = f"(element_at({known}, 1) + 0L)"
        first += " / 1" if function == "avg" else ""
        rest = f"slice({known}, 2, greatest(size({known}) - 1, 0))"
        total = f"aggregate({rest}, {first}, (s, v) -> s + v)"
        total = f"IF(size({known}) = 0, NULL, {total})"
        return total if function == "sum" else f"({total} / nullif(size({known}), 0))"

    def _digits(self, events: str) -> Digits | None:
        """Return the digits of the decimals in an array; None if it has other values."""
        type_ = sql_type(self.matches.select(F.expr(events)).schema[0].dataType)
        return _element(type_).of_decimal


# --- decimals, exactly, though Spark's operators round what has more than 38 digits


_UNITS = Digits(MOST_DIGITS, 0)


def _shifted(value: str, scale: int, places: int, digits: Digits) -> str:
    """Return a decimal with its point some places to the right, in another type."""
    plain = f"replace(format_number({value}, {scale}), ',', '')"
    return f"cast(concat({plain}, 'E{places}') AS {digits.sql})"


def _units(known: str, digits: Digits) -> str:
    """Return the sum of decimals in units of their last digit; overflow is an error, or NULL."""
    unit = _shifted("v", digits.scale, digits.scale, _UNITS)
    return _total(f"transform({known}, v -> {unit})", _UNITS.sql)


def _decimal_total(known: str, digits: Digits) -> str:
    """Return the SUM of decimals."""
    found = summed(digits)
    if found.precision < MOST_DIGITS:
        return _if_any(known, _total(known, found.sql))
    return _if_any(known, _shifted(_units(known, digits), 0, -digits.scale, found))


_AT_ONCE = 18
"""Of so many digits, a quotient of a sum has enough to be rounded again."""


def _decimal_mean(known: str, digits: Digits) -> str:
    """Return the AVG of decimals: the quotient of whole numbers, and the remainder's own."""
    found, count = averaged(digits), f"size({known})"
    if digits.precision <= _AT_ONCE:
        total = _total(known, summed(digits).sql)
        return _if_any(known, f"cast({total} / {count} AS {found.sql})")
    more = found.scale - digits.scale
    part = f"cast((t % {count}) * {10**more}BD / {count} AS decimal(20,0))"
    # Six digits after the point, which a quotient of long decimals has.
    whole = _shifted(f"t - t % {count}", 0, -6, Digits(MOST_DIGITS, 6))
    whole = _shifted(f"{whole} / {count}", 6, 6 + more, _UNITS)
    mean = _shifted(f"cast({whole} + {part} AS {_UNITS.sql})", 0, -found.scale, found)
    units = _units(known, digits)
    return _if_any(known, f"element_at(transform(array({units}), t -> {mean}), 1)")
