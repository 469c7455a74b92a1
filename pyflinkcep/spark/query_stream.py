# SPDX-License-Identifier: Apache-2.0
"""A query on a DataFrame: how time is told, and what becomes of the matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from pyflinkcep.adapters import as_process_function, flat_select_adapter, select_adapter
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.functions import PatternProcessFunction
from pyflinkcep.sase.as_pattern import as_pattern, why_no_pattern
from pyflinkcep.sase.evaluation import EVENT_LISTS, NFA, Evaluation, chosen
from pyflinkcep.sase.model import Form, Query
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.compressed import CompressedStream
from pyflinkcep.spark.pattern_stream import PatternStream
from pyflinkcep.spark.plan.compressed_query import CompressedQuery
from pyflinkcep.spark.plan.match_rows import match_rows
from pyflinkcep.spark.plan.outputs import parsed_schema
from pyflinkcep.spark.plan.query_explanation import query_explanation
from pyflinkcep.spark.plan.query_job import QueryJob, attribute_kinds, one_line, query_keys
from pyflinkcep.spark.plan.returns import returned
from pyflinkcep.spark.worker.consumers import FunctionConsumer

__all__ = ["QueryStream"]


@attrs.frozen(eq=False, kw_only=True)
class QueryStream:
    """
    A query applied to a DataFrame; made by :meth:`pyflinkcep.CEP.pattern`.

    It never changes: every method returns a changed copy or a result.
    """

    _dataframe: DataFrame
    _keys: tuple[str | Column, ...]
    _query: Query
    _type: str
    _evaluation: str
    _output: str
    _time_column: str | None = None

    def inEventTime(self, column: str | None = None) -> QueryStream:
        """
        Order events by a time of their own.

        Parameters
        ----------
        column : str, optional
            A column of type timestamp, timestamp_ntz, or bigint (epoch milliseconds). If not
            given, the one that ``withWatermark`` names on a stream.
        """
        return attrs.evolve(self, time_column=column)

    def explain(self) -> None:
        """
        Print how the query is going to run.

        Says which evaluation was chosen and why, where each condition is asked, what is
        dropped before the shuffle, and whether a stream without a key is cut into slices.
        """
        how, pattern = self._how(), self._as_pattern()
        job = self._job(how) if not self._dataframe.isStreaming else None
        print(query_explanation(self._query, how, pattern is not None, job))

    def toDF(self) -> DataFrame:
        """
        Return each match as a row.

        Returns
        -------
        DataFrame
            With RETURN, its columns. Else the key columns, those of ``[attr]`` among them;
            ``matchTimestamp``, the time of the last event; and for each variable an array of
            structs of the events' columns.

        Raises
        ------
        InputError
            If a column is missing or of a type that cannot serve.
        NotSupportedError
            If the DataFrame is a stream and no pattern has the matches of the query.
        """
        pattern = self._as_pattern()
        if pattern is not None:
            return returned(self._query, pattern.toDF())
        return returned(self._query, match_rows(self._job(self._how())))

    def select(
        self, function: Callable[[dict[str, list[Any]]], Any], schema: str | StructType
    ) -> DataFrame:
        """
        Make a row of each match.

        Parameters
        ----------
        function : PatternSelectFunction or callable
            Returns a row (tuple, dict or Row) for a match, a dict of variable to Rows.
        schema : str or StructType
            The schema of the rows.
        """
        return self._process(select_adapter(function, None, None), schema)

    def flatSelect(
        self, function: Callable[[dict[str, list[Any]], Any], None], schema: str | StructType
    ) -> DataFrame:
        """Make any number of rows of each match: ``function(match, out)`` collects them."""
        return self._process(flat_select_adapter(function, None, None), schema)

    def process(self, function: Any, schema: str | StructType) -> DataFrame:
        """Hand each match to a process function (match, ctx, out)."""
        return self._process(as_process_function(function), schema)

    def _process(self, function: PatternProcessFunction, schema: str | StructType) -> DataFrame:
        if self._query.having is not None:
            raise NotSupportedError(
                "HAVING with a function of the match", "filter in the function, or use toDF()"
            )
        pattern = self._as_pattern()
        if pattern is not None:
            return pattern.process(function, schema)
        job = self._job(self._how())
        keys = {key.name: key.column for key in job.source.keys}
        consumer = FunctionConsumer(function, parsed_schema(schema, "the output"), (), keys)
        return CepDataFrame(job.run(consumer), consumer.schemas, f"CEP: {job.source.pattern}")

    def compressed(self) -> CompressedStream:
        """
        Return all matches without listing them: to count, aggregate and unpack.

        Raises
        ------
        InvalidArgumentError
            If the query has HAVING, or not all matches are wanted.
        """
        if self._query.having is not None or self._output != "all":
            raise InvalidArgumentError(
                "compressed matches with HAVING or another output than all",
                'leave HAVING out, say output="all", and filter what unpack() returns',
            )
        name = NFA if self._query.form is Form.SEQ else EVENT_LISTS
        return CompressedStream(CompressedQuery(self._job(chosen(self._query, name))))

    # --- helpers

    def _how(self) -> Evaluation:
        return chosen(self._query, self._evaluation, self._output)

    def _job(self, how: Evaluation) -> QueryJob:
        if self._dataframe.isStreaming:
            why = why_no_pattern(self._query) or f"evaluation={how.name!r}"
            raise NotSupportedError(
                f"query {one_line(self._query)} on a stream: {why}",
                "on streams, queries run that are patterns too; see query.asPattern()",
            )
        return QueryJob.analyse(
            self._query,
            self._dataframe,
            self._keys,
            self._time_column,
            self._type,
            how.name,
            self._output,
        )

    def _as_pattern(self) -> PatternStream | None:
        """Return the job of the pattern with the same matches, where that is to be run."""
        is_chosen = self._evaluation == NFA or (
            self._evaluation == "auto"
            and (self._dataframe.isStreaming or self._how().name != EVENT_LISTS)
        )
        if not is_chosen or self._output != "all" or why_no_pattern(self._query) is not None:
            return None
        attribute_kinds(self._query, self._dataframe, self._type)
        pattern = as_pattern(self._query, self._type)
        return PatternStream(
            dataframe=self._dataframe,
            keys=query_keys(self._query, self._keys),
            pattern=pattern,
            time_column=self._time_column,
        )
