# SPDX-License-Identifier: Apache-2.0
"""Aggregates of Spark over the rows of matches, which workers hand on as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.match_recognize.leaves import NUMBER, Leaf, item, parts_of
from pyflinkcep.matching.columns import quoted
from pyflinkcep.spark.plan.analysis import first_line, is_about
from pyflinkcep.spark.plan.engine import SPARK, engine_of

__all__ = ["with_folds"]

_ROW, _WHOLE, _ITEM = "__cep_row", "__cep_whole", "__cep_item"
_FOLD = "__cep_fold"

_OF_ORDER = (
    "INVALID_WITHIN_GROUP_EXPRESSION",
    "INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX",
)
"""What Spark says of aggregates that WITHIN GROUP does not fit."""

_ELSEWHERE = (
    "array_agg", "collect_list", "collect_set", "listagg", "string_agg", "count", "bool_and",
    "bool_or", "every", "some", "any", "max_by", "min_by", "stddev",
    "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop",
)  # fmt: skip
"""Those that have Spark's values on other engines."""

_Error = Callable[[str, str], CepError]


def with_folds(
    result: DataFrame, folds: Mapping[Leaf, _Error], values: Mapping[Leaf, tuple[str, DataType]]
) -> tuple[DataFrame, dict[Leaf, tuple[str, DataType]]]:
    """
    Add a column for each fold.

    Each row of the result is grouped by itself, its array taken apart, so that Spark's aggregates
    see the rows of its match. Folds over the same rows are computed together.

    Parameters
    ----------
    result : DataFrame
        What workers took from matches.
    folds : mapping of Leaf to callable
        The folds, each with the function that makes its error from message and hint.
    values : mapping of Leaf to (str, DataType)
        The columns of what workers took.

    Returns
    -------
    tuple of (DataFrame, dict)
        The result with more columns, and the column and type of each fold.

    Raises
    ------
    CepError
        If Spark cannot compute a fold.
    """
    by_array: dict[str, list[Leaf]] = {}
    for leaf in folds:
        by_array.setdefault(values[parts_of(leaf)[0]][0], []).append(leaf)
    if not by_array:
        return result, {}
    names = {leaf: f"{_FOLD}{number}" for number, leaf in enumerate(folds)}
    columns = list(result.columns)
    rows = result.select(F.monotonically_increasing_id().alias(_ROW), "*")
    for array, leaves in by_array.items():
        taken = rows.select(
            _ROW,
            F.struct(*(F.col(quoted(name)) for name in columns)).alias(_WHOLE),
            F.explode_outer(F.col(quoted(array))).alias(_ITEM),
        )
        computed = {names[leaf]: _computed(taken, leaf, values, folds[leaf]) for leaf in leaves}
        grouped = taken.groupBy(_ROW).agg(
            F.first(_WHOLE).alias(_WHOLE), *(one.alias(name) for name, one in computed.items())
        )
        rows = grouped.select(_ROW, f"{_WHOLE}.*", *computed)
        columns += computed
    schema = rows.schema
    return rows, {leaf: (name, schema[name].dataType) for leaf, name in names.items()}


def _computed(
    taken: DataFrame, leaf: Leaf, values: Mapping[Leaf, tuple[str, DataType]], error: _Error
) -> Column:
    fold, number = leaf.fold, [values[part][0] for part in parts_of(leaf)[1:]]
    assert fold is not None

    def name(piece: int) -> str:
        return f"{_WHOLE}.{number[0]}" if piece == NUMBER else f"{_ITEM}.{item(piece)}"

    engine = engine_of(taken.sparkSession)
    if engine is not SPARK and fold.name not in _ELSEWHERE:
        raise NotSupportedError(
            f"{engine.name} is not known to have Spark's values of {fold.name}",
            "write ARRAY_AGG, and compute with the array",
        )
    sql = fold.rendered(name)
    # Without rows it is NULL in the standard, and empty in Spark.
    column = F.expr(f"nullif({sql}, array())" if fold.name == "array_agg" else sql)
    try:
        taken.groupBy(_ROW).agg(column)
    except Exception as cause:
        hint = "see Spark's page of the aggregate"
        if is_about(cause, *_OF_ORDER):
            hint = "write sort_array(ARRAY_AGG(x)), or LISTAGG for texts"
        raise error(f"Spark cannot compute it: {first_line(cause)}", hint) from cause
    return column
