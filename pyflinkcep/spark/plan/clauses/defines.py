# SPDX-License-Identifier: Apache-2.0
"""The types of what DEFINE reads, as Spark knows them."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, NullType, StructField, StructType

from pyflinkcep.engines.rows.defines import error_of
from pyflinkcep.engines.rows.plan import StandardClause
from pyflinkcep.errors import CepError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.leaves import LEAF
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.scalar import condition_leaves
from pyflinkcep.spark.plan.clauses.measures import argument_types, type_of_measure, values_of
from pyflinkcep.spark.plan.expressions import kind_of

__all__ = ["SparkTypes"]


@attrs.frozen(eq=False)
class SparkTypes:
    """
    See :class:`~pyflinkcep.engines.rows.defines.RowTypes`.

    Attributes
    ----------
    dataframe : DataFrame
        The input.
    names : Names
        The names of the clause.
    """

    dataframe: DataFrame
    names: Names

    def kinds(self, read: StandardClause) -> dict[str, Kind]:
        """Return the types of the conditions' arguments."""
        errors: dict[str, Callable[[str, str], CepError]] = {}
        for variable, expression in read.conditions.items():
            for sql in read.arguments_of(condition_leaves(expression)):
                errors.setdefault(sql, error_of(self.names, variable, expression))
        kinds = {}
        for sql, type_ in argument_types(self.dataframe, errors).items():
            kind = Kind.STRING if isinstance(type_, NullType) else kind_of(type_)
            if kind is None:
                raise errors[sql](
                    f"{sql} is {type_.simpleString()}",
                    "use a number, boolean, string, date, timestamp or day-time interval",
                )
            kinds[sql] = kind
        return kinds

    def check(self, variable: str, expression: Expression) -> None:
        """Refuse a condition that is none."""
        error = error_of(self.names, variable, expression)
        values = values_of({variable: expression}, self.names, self.dataframe, NullType(), "DEFINE")
        columns = {
            leaf: (f"{LEAF}{number}", value.type)
            for number, (leaf, value) in enumerate(values.items())
        }
        schema = StructType([StructField(*column) for column in columns.values()])
        empty = self.dataframe.sparkSession.createDataFrame([], schema)
        type_ = type_of_measure(empty, variable, expression, columns, self.names, "DEFINE")
        if not isinstance(type_, BooleanType):
            raise error(
                f"not a condition: expected boolean, got {type_.simpleString()}",
                "compare it with a value",
            )
