# SPDX-License-Identifier: Apache-2.0
"""All matches of a query on a DataFrame, counted, aggregated and unpacked without being listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    DecimalType,
    DoubleType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from pyflinkcep.compact.matches import Measured, read_measure
from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.spark.plan.compressed_pattern import CompressedPattern
from pyflinkcep.spark.plan.compressed_query import CompressedQuery
from pyflinkcep.spark.plan.outputs import match_schema
from pyflinkcep.spark.worker.count_task import COUNT_TEXT

__all__ = ["CompressedStream"]


@attrs.frozen(eq=False)
class CompressedStream:
    """
    All matches of a query or a pattern on a bounded DataFrame, however many there are.

    Made by ``CEP.pattern(events, query).inEventTime(…).compressed()``.
    """

    _matches: CompressedQuery | CompressedPattern

    def count(self) -> int:
        """Return the number of matches, exactly, however large."""
        rows = self._totals(()).select(COUNT_TEXT).collect()
        return sum(int(row[0]) for row in rows)

    def aggregate(self, *texts: str) -> DataFrame:
        """
        Return aggregates over the events that variables have in all matches.

        Parameters
        ----------
        *texts : str
            ``count(*)``, ``count(b)``, ``sum(b.x) AS v``, ``avg``, ``min``, ``max``. An event
            counts once for every match that it is in; NULL is skipped.

        Returns
        -------
        DataFrame
            For each key and event that completes matches the key, ``matchTimestamp``, ``count``
            as decimal(38,0), null beyond 38 digits with ``count_log10`` beside it, and the
            columns.

        Raises
        ------
        InvalidArgumentError
            If a text is not an aggregate over a variable of the query.
        InputError
            If an attribute is not a column.
        """
        variables = self._matches.variables
        return self._totals([read_measure(text, variables) for text in texts]).drop(COUNT_TEXT)

    def unpack(self, limit: int | None = None) -> DataFrame:
        """
        Return matches as rows like ``toDF()``; the rest is never built.

        Parameters
        ----------
        limit : int, at least 0, optional
            How many at most; all if not given.
        """
        if limit is not None and limit < 0:
            raise InvalidArgumentError(f"unpack(limit={limit})", "give 0 or more, or no limit")
        listed = self._matches.rows(limit)
        return listed if limit is None else listed.limit(limit)

    def _totals(self, measured: Sequence[Measured]) -> DataFrame:
        fields = [
            *match_schema(self._matches.source, [], "matchTimestamp").fields,
            StructField("count", DecimalType(38, 0)),
            StructField("count_log10", DoubleType(), False),
            StructField(COUNT_TEXT, StringType(), False),
            *(StructField(m.name, self._type(m)) for m in measured),
        ]
        return self._matches.totals(measured, StructType(fields))

    def _type(self, measured: Measured) -> Any:
        if measured.function == "count":
            return DecimalType(38, 0)
        columns = self._matches.source.dataframe.schema
        if measured.attribute not in columns.fieldNames():
            raise InputError(
                f"the attribute {measured.attribute!r} is not a column",
                f"the columns are {columns.fieldNames()}",
            )
        found = columns[str(measured.attribute)].dataType
        is_whole = isinstance(found, IntegralType)
        if measured.function == "avg":
            return DoubleType()
        if measured.function == "sum":
            return DecimalType(38, 0) if is_whole else DoubleType()
        if isinstance(found, StringType):
            return found
        return LongType() if is_whole else DoubleType()
