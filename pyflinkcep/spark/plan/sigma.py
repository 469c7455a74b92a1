# SPDX-License-Identifier: Apache-2.0
"""Sigma rules on a DataFrame, analysed."""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from pyflinkcep.eql.conditions import FieldColumn, Fields
from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.sql_types import BIGINT, BOOLEAN, DOUBLE
from pyflinkcep.expressions.tree import Column, Tree, quoted_name
from pyflinkcep.matching.columns import PREFIX
from pyflinkcep.sigma import SigmaRules
from pyflinkcep.sigma.rule import SigmaRule
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan.analysis import first_line
from pyflinkcep.spark.plan.conditions import types_of
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from pyflinkcep.spark.plan.eql import fields_of
from pyflinkcep.spark.plan.job import map_in_arrow
from pyflinkcep.spark.plan.source import check_types
from pyflinkcep.spark.worker.sigma_task import SigmaTask
from pyflinkcep.tables.field_values import EventFields, FieldValues
from pyflinkcep.tables.rule_rows import RuleTests

_FACTS = ("rule", "title", "level")
_SAMPLES = {DOUBLE: 0.5, BIGINT: 1, BOOLEAN: True}


def alerts_of(events: DataFrame, rules: SigmaRules) -> DataFrame:
    """Return a row for each event and rule that it satisfies."""
    if rules.correlations:
        name = next(iter(rules.correlations))
        raise NotSupportedError(
            f"CEP.sigma: the correlation {name!r} needs several events",
            "read the rules alone here; run correlations by CEP.patterns, or by matchSigma",
        )
    engine = engine_of(events.sparkSession)
    if engine is not SPARK:
        raise NotSupportedError(
            f"CEP.sigma is not available on {engine.name}", "use Spark, or matchSigma in memory"
        )
    check_types(events.schema.fields, "column", "of Sigma rules")
    read = [*rules.rules.values()]
    fields = _fields(events.schema)
    probe = _probe(events.schema)
    sources = dict.fromkeys(rule.where for rule in read if rule.where is not None)
    names = {sql: f"{PREFIX}source{number}" for number, sql in enumerate(sources)}
    _check_sources(list(sources), events)
    asked = events.select(
        "*",
        *(F.coalesce(F.expr(sql), F.lit(False)).alias(name) for sql, name in names.items()),
    )
    task = SigmaTask(
        "Sigma rules",
        RuleTests.of(_checked(rule, fields, probe) for rule in read),
        pa.table(
            {
                "rule": pa.array([rule.name for rule in read], pa.string()),
                "title": pa.array([rule.title for rule in read], pa.string()),
                "level": pa.array([rule.level for rule in read], pa.string()),
            }
        ),
        [None if rule.where is None else names[rule.where] for rule in read],
        events.columns,
    )
    facts = [StructField(name, StringType(), name == "level") for name in _FACTS]
    schema = StructType([*facts, StructField("event", events.schema, False)])
    return map_in_arrow(asked, task.run, schema, "Sigma")


def _check_sources(sources: list[str], events: DataFrame) -> None:
    """Refuse SQL of log sources that is not true or false on the events."""
    hint = "write SQL on the DataFrame's columns in logsources, such as \"kind = 'process'\""

    def refusal(number: int, cause: Exception) -> CepError:
        what = f"CEP.sigma: the log source {sources[number]!r} cannot be evaluated"
        return InputError(f"{what}: {first_line(cause)}", hint)

    for sql, type_ in zip(sources, types_of(sources, events, refusal), strict=True):
        if not isinstance(type_, BooleanType):
            what = f"CEP.sigma: the log source {sql!r}: expected boolean, got "
            raise InputError(f"{what}{type_.simpleString()}", hint)


def _checked(rule: SigmaRule, fields: Fields, probe: EventFields) -> Tree:
    """Return the condition of a rule, which workers can compute of such events."""
    tree = rule.tree(fields)
    try:
        probe.answers(tree)
    except CepError as cause:
        raise NotSupportedError(
            f"CEP.sigma: rule {rule.name!r}: {cause.message}",
            "leave it out and ask it by where(rules.sql(…)), or make the column a text or integer",
        ) from cause
    return tree


def _probe(schema: StructType) -> EventFields:
    """Return an event of which conditions are asked before others: with numbers, without texts."""
    known = EventFields.of_table(arrow_schema(schema).empty_table())

    def read(path: str) -> FieldValues | str:
        found = known.values_of(path)
        if isinstance(found, str):
            return found
        bounds = None if found.bounds is None else np.array([0, 1])
        values = [_SAMPLES[found.type]] if found.type in _SAMPLES else []
        return FieldValues(values, np.array([len(values) - 1]), found.type, bounds)

    return EventFields(1, known, read)


def _fields(schema: StructType) -> Fields:
    """Return the fields of events, each read by its path, as workers read them."""
    found = fields_of(schema, "")
    known = {
        path: attrs.evolve(own, column=Column(quoted_name(path)))
        if isinstance(own, FieldColumn)
        else own
        for path, own in found.known.items()
    }
    return Fields(known)
