# SPDX-License-Identifier: Apache-2.0
"""The cases of the evaluator without Spark, asked of Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import EventReader
from pyflinkcep.expressions.tree import spark_sql
from tests.spark_sql_cases import EVENT, SCHEMA, VALUES

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("compiled_plans"),
]


def test_spark_gives_the_same_values(spark: SparkSession) -> None:
    """What the unit tests expect of the evaluator is what Spark says, of the text and its tree."""
    trees = {text: EventReader(text).part(parsed(text)) for text in VALUES}
    asked = {text: spark_sql(tree, lambda leaf: str(leaf.over.sql)) for text, tree in trees.items()}
    columns = [F.expr(text) for text in (*asked, *asked.values())]
    frame = spark.createDataFrame([tuple(EVENT.values())], SCHEMA)
    (row,) = frame.select(*(c.alias(str(n)) for n, c in enumerate(columns))).collect()

    for place, (text, sql) in enumerate(asked.items()):
        found = (text, row[place], sql, row[place + len(asked)])
        assert found == (text, VALUES[text], sql, VALUES[text])
        assert {type(row[place]), type(row[place + len(asked)])} == {type(VALUES[text])}, text
