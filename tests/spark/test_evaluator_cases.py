# SPDX-License-Identifier: Apache-2.0
"""The cases of the evaluator without Spark, asked of Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark_sql_cases import EVENT, SCHEMA, VALUES

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("compiled_plans"),
]


def test_spark_gives_the_same_values(spark: SparkSession) -> None:
    """What the unit tests expect of the evaluator is what Spark says."""
    columns = [F.expr(text).alias(str(place)) for place, text in enumerate(VALUES)]
    frame = spark.createDataFrame([tuple(EVENT.values())], SCHEMA)
    (row,) = frame.select(*columns).collect()

    found = {text: row[place] for place, text in enumerate(VALUES)}
    assert {text: value for text, value in found.items() if value != VALUES[text]} == {}
