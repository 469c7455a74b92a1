# SPDX-License-Identifier: Apache-2.0
"""Patterns on Spark: the plans, and what runs on the workers."""

from pyflinkcep.spark.cep import CEP, keyBy
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.pattern_stream import PatternStream
from pyflinkcep.spark.plan.source import KeyedDataFrame

__all__ = ["CEP", "CepDataFrame", "KeyedDataFrame", "PatternStream", "keyBy"]
