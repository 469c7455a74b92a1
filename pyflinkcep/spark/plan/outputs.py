# SPDX-License-Identifier: Apache-2.0
"""The outputs of a job: their names and schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.functions import OutputTag, PatternProcessFunction, check_tag
from pyflinkcep.matching.columns import quoted
from pyflinkcep.matching.held_back import may_wait
from pyflinkcep.matching.results import MATCH_TIME
from pyflinkcep.spark.plan.analysis import first_line
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.consumers import MAIN, TAG, ColumnConsumer, MatchTimes

# The column of ``reached()`` with the time of the event with which a stage was reached.
STAGE_TIME = "stageTimestamp"


def parsed_schema(schema: object, what: str) -> T.StructType:
    """Return the schema of `what`, parsed by Spark if it is DDL."""
    parsed = _parsed(schema, what)
    if not parsed.fields:
        raise InvalidArgumentError(
            f"the schema of {what} has no columns",
            "write at least one, such as 'matched boolean': rows without columns are lost",
        )
    for names in _all_names(parsed):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InvalidArgumentError(
                f"the schema of {what} has two columns named {', '.join(map(repr, repeated))}",
                "give each column a name of its own",
            )
    return parsed


def _all_names(type_: T.DataType) -> Iterator[list[str]]:
    """Yield the names of a struct's fields, and those of the structs inside."""
    if isinstance(type_, T.StructType):
        yield type_.fieldNames()
        for field in type_.fields:
            yield from _all_names(field.dataType)
    elif isinstance(type_, T.ArrayType):
        yield from _all_names(type_.elementType)
    elif isinstance(type_, T.MapType):
        yield from _all_names(type_.keyType)
        yield from _all_names(type_.valueType)


def _parsed(schema: object, what: str) -> T.StructType:
    if isinstance(schema, T.StructType):
        return schema
    if not isinstance(schema, str):
        raise InvalidArgumentError(
            f"the schema of {what}: expected a DDL string or a StructType, got {schema!r}",
            "write it as 'user string, amount double'",
        )
    try:
        parsed = T.StructType.fromDDL(schema)
        return parsed if isinstance(parsed, T.StructType) else T.StructType().add("value", parsed)
    except Exception as cause:
        raise InvalidArgumentError(
            f"the schema of {what} is {schema!r}: {first_line(cause)}",
            "write it as 'user string, amount double'",
        ) from cause


def add_output(schemas: dict[str, T.StructType], name: str, schema: T.StructType) -> None:
    """Add a side output; names of outputs ignore case, as Spark's column names do."""
    if name.lower() == TAG:
        raise InvalidArgumentError(f"an output tag cannot be named {name!r}", "rename it")
    if name.lower() in map(str.lower, schemas):
        raise InvalidArgumentError(
            f"two outputs are named {name!r}", f"give each tag its own name, none of them {MAIN!r}"
        )
    schemas[name] = schema


def output_schemas(function: PatternProcessFunction, schema: object) -> dict[str, T.StructType]:
    """Return the schema of each output of a function, the main one first."""
    schemas = {MAIN: parsed_schema(schema, "the output")}
    for tag in function.outputTags:
        check_tag(tag)
        add_output(schemas, tag.name, parsed_schema(tag.schema, f"side output {tag.name!r}"))
    return schemas


def match_rows(
    source: EventSource,
    stages: Sequence[str],
    timeout_tag: OutputTag | None = None,
    nfa: NFA | None = None,
    of_query: bool = False,
) -> ColumnConsumer:
    """Return what makes rows of matches, and with a tag of timeouts; see :func:`match_schema`."""
    # `nfa` is that of a pattern, whose matches may wait; `of_query` if it is one written as a
    # query.
    schemas = {MAIN: match_schema(source, stages, MATCH_TIME)}
    if timeout_tag is not None:
        check_tag(timeout_tag)
        add_output(schemas, timeout_tag.name, match_schema(source, stages, "timeoutTimestamp"))
    keys = [key.column for key in source.keys]
    times = match_times(source, nfa, of_query=of_query)
    return ColumnConsumer(schemas, keys, stages, source.event_columns, times)


def match_times(source: EventSource, nfa: NFA | None, *, of_query: bool = False) -> MatchTimes:
    """Return the times of the matches of a pattern, or of a query."""
    is_last = of_query and nfa is not None and may_wait(nfa)
    return MatchTimes(source.time_unit, source.time_column, is_last)


def match_schema(source: EventSource, stages: Sequence[str], time_name: str) -> T.StructType:
    """Return the schema of matches as columns: the key, the time, and an array for each stage."""
    schema = source.dataframe.schema
    event = T.StructType([schema[name] for name in source.event_columns])
    time_type = (
        schema[source.time_column].dataType if source.time_column is not None else T.TimestampType()
    )
    fields = [T.StructField(key.name, key.type) for key in source.keys]
    fields.append(T.StructField(time_name, time_type if source.time_unit else T.LongType()))
    fields += [T.StructField(stage, T.ArrayType(event, False), False) for stage in stages]
    check_distinct(fields, f"pattern {source.pattern}: toDF()", "or use select()")
    return T.StructType(fields)


def check_distinct(fields: Iterable[T.StructField], what: str, or_else: str = "") -> None:
    """Refuse a result with columns of one name, which ignores case, as Spark's names do."""
    names = [field.name.lower() for field in fields]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        hint = f"rename the stage or the key column, {or_else}".rstrip(", ")
        raise InputError(f"{what} would have two columns named {repeated}", hint)


def tagged_events(events: DataFrame, output: str, schema: T.StructType) -> DataFrame:
    """Return events as rows of one of a job's outputs, in the schema of all; see `TAG`."""
    own = F.struct(*(F.col(quoted(name)) for name in events.columns))
    values = [
        F.lit(output) if field.name == TAG
        else own if field.name == output
        else F.lit(None).cast(field.dataType)
        for field in schema
    ]  # fmt: skip
    return events.select(*(v.alias(f.name) for v, f in zip(values, schema, strict=True)))
