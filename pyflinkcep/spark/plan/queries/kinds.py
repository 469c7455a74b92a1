# SPDX-License-Identifier: Apache-2.0
"""The types of the columns that a query reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StringType

from pyflinkcep.engines.table import queried_attributes
from pyflinkcep.errors import InputError, did_you_mean
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.spark_sql import literal_sql
from pyflinkcep.sase.computed import is_computed
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.moments import literal_moments, with_instants
from pyflinkcep.sase.types import check_types, copied_attributes, one_line, output_attributes
from pyflinkcep.spark.plan.analysis import first_line
from pyflinkcep.spark.plan.asked import types_of
from pyflinkcep.spark.plan.kinds import common_kind, is_long_decimal
from pyflinkcep.warned import LongDecimalWarning, Place

__all__ = ["attribute_kinds", "in_session_zone"]

_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


def attribute_kinds(query: Query, dataframe: DataFrame, type_column: str) -> dict[str, Kind]:
    """
    Return the types of the attributes that a query's conditions read.

    Raises
    ------
    InputError
        If an attribute or the type is not a column, or is of an unsupported type, or values of
        different types are compared or combined.
    """
    name = one_line(query)
    _check_type_column(dataframe, type_column, name)
    asked = queried_attributes(query)
    computed = [attribute for attribute in asked if is_computed(attribute)]
    given_out = [attribute for attribute in output_attributes(query) if is_computed(attribute)]
    _check_outputs(query, dataframe, name)
    copies = copied_attributes(query, computed=True)
    computed = list(dict.fromkeys([*computed, *given_out, *copies]))
    types = _computed_types(dataframe, computed, name)
    outputs = {**_output_kinds(query, dataframe), **_known(types, given_out)}
    types |= {a: _column_type(dataframe, a, name) for a in asked if a not in types}
    kinds = {a: _kind_of(types[a], a, name) for a in asked}
    _warn_of_digits(query, [a for a in asked if is_long_decimal(types[a])])
    return {**kinds, **check_types(query, {**outputs, **kinds})}


def _check_outputs(query: Query, dataframe: DataFrame, name: str) -> None:
    """Refuse HAVING and RETURN of an attribute that is no column, in whatever case."""
    columns = {column.lower() for column in dataframe.columns}
    for attribute in (*output_attributes(query), *copied_attributes(query)):
        if not is_computed(attribute) and attribute.lower() not in columns:
            _column_type(dataframe, attribute, name)


def _warn_of_digits(query: Query, attributes: Iterable[str]) -> None:
    """Warn of decimals that conditions compare; ``[attr]`` compares them digit by digit."""
    by_key = () if query.is_global else query.equal
    beside = set(queried_attributes(attrs.evolve(query, equal=())))
    compared = [name for name in attributes if name in beside or name not in by_key]
    if compared:
        text = (
            f"query {one_line(query)}: compares {' and '.join(compared)}, of more than 15 digits, "
            "as doubles: those that differ in later digits only are equal. Write [attr] for equal "
            "keys, or cast both to string, or to bigint if they have no fraction; cast both to "
            "double if that is what you want"
        )
        Place.here().warn(text, LongDecimalWarning)


def in_session_zone(query: Query, dataframe: DataFrame) -> Query:
    """Return a query whose literal timestamps are those of the session's clock."""
    every = list(dict.fromkeys(literal_moments(query)))
    if not every:
        return query
    asked = [
        f"unix_micros({sql}), cast({sql} AS timestamp_ntz)"
        for sql in (f"cast({literal_sql(moment)} AS timestamp)" for moment in every)
    ]
    row = dataframe.sparkSession.sql(f"SELECT {', '.join(asked)}").collect()[0]
    known = {
        moment: attrs.evolve(
            moment, instant=row[2 * n], local=(row[2 * n + 1] - _EPOCH) // _MICROSECOND
        )
        for n, moment in enumerate(every)
    }
    return with_instants(query, known.__getitem__)


def _output_kinds(query: Query, dataframe: DataFrame) -> dict[str, Kind]:
    """Return the types of the columns with which HAVING and RETURN compute, if they have one."""
    columns = {field.name: field.dataType for field in dataframe.schema}
    return _known(columns, [name for name in output_attributes(query) if name in columns])


def _known(types: Mapping[str, DataType], names: Iterable[str]) -> dict[str, Kind]:
    found = {name: common_kind(types[name]) for name in names}
    return {name: kind for name, kind in found.items() if kind is not None}


def _check_type_column(dataframe: DataFrame, name: str, query: str) -> None:
    if name not in dataframe.columns:
        raise InputError(
            f"query {query}: no type column {name!r}",
            "name the column that holds an event's type: CEP.pattern(..., type='kind')",
        )
    found = dataframe.schema[name].dataType
    if common_kind(found) is not Kind.STRING:
        raise InputError(
            f"query {query}: expected the type column {name!r} to be string, "
            f"got {found.simpleString()}",
            "cast it, or name another one",
        )


def _column_type(dataframe: DataFrame, attribute: str, query: str) -> DataType:
    if attribute in dataframe.columns:
        return dataframe.schema[attribute].dataType
    raise InputError(
        f"query {query}: the attribute {attribute!r} is not a column",
        did_you_mean(attribute, dataframe.columns, f"the columns are {dataframe.columns}"),
    )


def _computed_types(
    dataframe: DataFrame, attributes: Sequence[str], query: str
) -> dict[str, DataType]:
    """Return the types of expressions; refuse what Spark cannot compute, and aggregates."""

    def refusal(number: int, cause: Exception) -> InputError:
        return InputError(
            f"query {query}: {attributes[number]} cannot be evaluated: {first_line(cause)}",
            f"the columns are {dataframe.columns}",
        )

    return dict(zip(attributes, types_of(attributes, dataframe, refusal), strict=True))


def _kind_of(found: DataType, attribute: str, query: str) -> Kind:
    kind = common_kind(found)
    if kind is not None:
        return kind
    problem, hint = "", "use a number, string, boolean, date or timestamp"
    if isinstance(found, StringType):
        problem = ", and strings are compared byte by byte here"
        hint = "cast it to string before CEP.pattern, or lower(...) of it if case does not matter"
    raise InputError(
        f"query {query}: the attribute {attribute!r} is {found.simpleString()}{problem}", hint
    )
