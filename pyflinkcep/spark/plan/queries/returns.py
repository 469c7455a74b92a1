# SPDX-License-Identifier: Apache-2.0
"""HAVING and RETURN as SQL over rows of matches: a variable is an array of events."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.expressions.spark_sql import spark_sql
from pyflinkcep.expressions.tree import Aggregate, Column, Leaf, Tree
from pyflinkcep.matching.columns import quoted
from pyflinkcep.sase.computed import owned_sql
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Query
from pyflinkcep.sase.tree import FIRST, LAST
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.portable.sql import setting_of
from pyflinkcep.spark.plan.queries.deviation import deviation
from pyflinkcep.spark.plan.queries.portable_returns import PortableMatches

__all__ = ["returned"]


def returned(query: Query, matches: DataFrame) -> DataFrame:
    """Return the rows of a query: matches that satisfy HAVING, with the columns of RETURN."""
    sql, events = _sql, _events
    if engine_of(matches.sparkSession) is not SPARK:
        types = {field.name: field.dataType for field in matches.schema}
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


def _sql(tree: Tree) -> str:
    return spark_sql(tree, _leaf, zero_is_null=True)


def _leaf(leaf: Leaf) -> str:
    if isinstance(leaf, Aggregate):
        return _aggregate(leaf)
    event = f"try_element_at({quoted(leaf.variable)}, {-1 if leaf.index == LAST else 1})"
    return event if leaf.sql is None else owned_sql(leaf, event)


def _aggregate(tree: Aggregate) -> str:
    events, function = _events(tree.over), tree.function
    if tree.argument is None:
        return f"size({events})"
    if function in ("first", "last"):
        return f"try_element_at({events}, {1 if function == 'first' else -1})"
    known = f"filter({events}, v -> v IS NOT NULL)"
    if function == "count":
        return f"size({known})"
    if function == "stddev":
        return deviation(known)
    if function in ("min", "max"):
        return f"array_{function}({events})"
    # Whole numbers have whole sums; every other number is summed as double, and for an average all.
    first = f"(element_at({known}, 1) + 0L)"
    first += " / 1" if function == "avg" else ""
    rest = f"slice({known}, 2, greatest(size({known}) - 1, 0))"
    total = f"aggregate({rest}, {first}, (s, v) -> s + v)"
    total = f"IF(size({known}) = 0, NULL, {total})"
    return total if function == "sum" else f"({total} / nullif(size({known}), 0))"
