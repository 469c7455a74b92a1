# SPDX-License-Identifier: Apache-2.0
"""Shows the pattern and the user's line in Spark's UI while an action on a result runs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import attrs
from pyspark.sql import DataFrameWriter, DataFrameWriterV2, SparkSession

from pyflinkcep.spark.arrow.internals import CallSite, spark_context
from pyflinkcep.spark.failures import raised_plainly

__all__ = ["JobName", "described"]

_ACTIONS = (
    "approxQuantile", "checkpoint", "collect", "corr", "count", "cov", "crosstab", "first",
    "foreach", "foreachPartition", "freqItems", "head", "isEmpty", "localCheckpoint", "show",
    "tail", "take", "toArrow", "toLocalIterator", "toPandas",
)  # fmt: skip
"""The methods of a DataFrame that start jobs."""
_WRITES = (
    "append", "create", "createOrReplace", "csv", "insertInto", "jdbc", "json", "orc", "overwrite",
    "overwritePartitions", "parquet", "replace", "save", "saveAsTable", "text", "xml",
)  # fmt: skip
"""The methods of a writer that start jobs."""


@attrs.frozen(eq=False)
class JobName:
    """
    The name of a result's jobs.

    Attributes
    ----------
    description : str
        The text in Spark's UI.
    session : SparkSession
        Where the jobs run.
    """

    description: str
    session: SparkSession

    @contextmanager
    def told(self, action: str) -> Iterator[None]:
        """Set the description while an action runs, and raise this package's errors as such."""
        with raised_plainly(), self._set(action):
            yield

    @contextmanager
    def _set(self, action: str) -> Iterator[None]:
        """Set the description; does nothing over Spark Connect."""
        context = spark_context(self.session)
        if context is None:
            yield
            return
        before = context.getLocalProperty("spark.job.description")
        context.setLocalProperty("spark.job.description", self.description)
        try:
            with CallSite(context, f"{action} at {_users_line()}"):
                yield
        finally:
            context.setLocalProperty("spark.job.description", before)


def _users_line() -> str:
    """Return the calling line outside this package; PySpark would name this file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(str(frame.f_globals.get("__name__", ""))):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


def _is_between(module: str) -> bool:
    return module == "contextlib" or module.split(".", 1)[0] in ("pyflinkcep", "pyspark")


def described(made: type[Any], kind: type[Any], job_name: Callable[[Any], JobName]) -> type[Any]:
    """
    Return a subclass of DataFrame whose actions and writers set the job description.

    Parameters
    ----------
    made : type
        The subclass, which gets the methods.
    kind : type
        The class whose methods they call.
    job_name : callable
        Returns the name of the jobs of an object of the class.
    """
    for name in _ACTIONS:
        if hasattr(kind, name):
            setattr(made, name, _telling(getattr(kind, name), job_name))

    def write(self: Any) -> DataFrameWriter:
        writer: DataFrameWriter = _telling_writer(kind.write.fget(self), job_name(self))
        return writer

    def writeTo(self: Any, table: str) -> DataFrameWriterV2:
        writer: DataFrameWriterV2 = _telling_writer(kind.writeTo(self, table), job_name(self))
        return writer

    made.write = property(write, doc=kind.write.__doc__)
    made.writeTo = functools.wraps(kind.writeTo)(writeTo)
    return made


def _telling(action: Callable[..., Any], job_name: Callable[[Any], JobName]) -> Any:
    @functools.wraps(action)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with job_name(self).told(action.__name__):
            return action(self, *args, **kwargs)

    return run


def _telling_writer(writer: Any, name: JobName) -> Any:
    """Return the writer as one of a subclass of its class."""
    kind: Any = type(writer)
    writer.__class__ = _writer_class(kind)
    writer._pyflinkcep_job_name = name
    return writer


@functools.cache
def _writer_class(kind: Any) -> Any:
    methods = {
        name: _telling(getattr(kind, name), lambda writer: writer._pyflinkcep_job_name)
        for name in _WRITES
        if hasattr(kind, name)
    }
    return type(kind.__name__, (kind,), {"__module__": kind.__module__, **methods})
