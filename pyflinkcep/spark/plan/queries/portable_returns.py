# SPDX-License-Identifier: Apache-2.0
"""HAVING and RETURN on an engine that is not Spark; see :mod:`pyflinkcep.spark.plan.portable`."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from pyspark.sql.types import ArrayType, DataType, IntegralType, StructType

from pyflinkcep.expressions.event_reader import EventReader
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.tree import Aggregate, Column, Leaf, Tree
from pyflinkcep.matching.columns import quoted
from pyflinkcep.sase.tree import LAST
from pyflinkcep.spark.plan.portable.casts import narrowed
from pyflinkcep.spark.plan.portable.sql import portable
from pyflinkcep.spark.plan.portable.values import BIGINT, DOUBLE, INT, Setting, Value, is_float
from pyflinkcep.spark.plan.queries.deviation import deviation

__all__ = ["PortableMatches"]

_NAN = "cast('NaN' AS double)"


@attrs.frozen
class PortableMatches:
    """
    Values of matches, whose variables are arrays of events.

    Attributes
    ----------
    types : mapping of str to DataType
        The types of the columns of the matches.
    setting : Setting
        What values depend on.
    """

    types: Mapping[str, DataType]
    setting: Setting

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
        return self._of_event(leaf, event, self._event_type(leaf))

    def _event_type(self, column: Column) -> StructType:
        type_ = self.types[column.variable]
        assert isinstance(type_, ArrayType)
        assert isinstance(type_.elementType, StructType)
        return type_.elementType

    def _of_event(self, column: Column, event: str, type_: StructType) -> Value:
        if column.sql is None:
            return Value(event, type_)
        known = {field.name.casefold(): field.dataType for field in type_}

        def field(leaf: Leaf) -> Value:
            name = str(leaf.over.sql)
            return Value(f"{event}.{name}", known[name[1:-1].replace("``", "`").casefold()])

        return portable(EventReader(column.sql).part(parsed(column.sql)), field, self.setting)

    def _events(self, over: Column) -> Value:
        type_ = self._event_type(over)
        events = quoted(over.variable)
        if over.sql is None:
            return Value(events, ArrayType(type_))
        if over.computed is None:
            field = self._of_event(over, events, type_)
            return Value(field.sql, ArrayType(field.type))
        value = self._of_event(over, "e", type_)
        return Value(f"transform({events}, e -> {value.sql})", ArrayType(value.type))

    def _aggregate(self, tree: Aggregate) -> Value:
        events, function = self._events(tree.over), tree.function
        if tree.argument is None:
            return Value(f"size({events.sql})", INT)
        assert isinstance(events.type, ArrayType)
        element = events.type.elementType
        if function in ("first", "last"):
            place = 1 if function == "first" else -1
            return Value(f"try_element_at({events.sql}, {place})", element)
        if function in ("min", "max"):
            values = events.sql
            if is_float(element):
                values, element = f"transform({values}, v -> nanvl(v, {_NAN}))", DOUBLE
            return Value(f"array_{function}({values})", element)
        known = f"filter({events.sql}, v -> v IS NOT NULL)"
        if function == "count":
            return Value(f"size({known})", INT)
        if function == "sum" and isinstance(element, IntegralType) and self.setting.ansi:
            return Value(
                _if_any(known, narrowed(_total(known, "decimal(38, 0)"), "bigint")), BIGINT
            )
        if function == "sum" and (is_float(element) or isinstance(element, IntegralType)):
            type_ = DOUBLE if is_float(element) else BIGINT
            return Value(_if_any(known, _total(known, type_.simpleString())), type_)
        if function == "avg":
            return Value(f"({_total(known, 'double')} / nullif(size({known}), 0))", DOUBLE)
        if function == "stddev":
            return Value(deviation(known), DOUBLE)
        raise self.setting.refused(
            f"{function}({tree.argument})", "it adds decimals", "cast them to double"
        )


def _if_any(known: str, total: str) -> str:
    return f"IF(size({known}) = 0, NULL, {total})"


def _total(known: str, type_: str) -> str:
    return f"aggregate({known}, cast(0 AS {type_}), (s, v) -> cast(s + v AS {type_}))"
