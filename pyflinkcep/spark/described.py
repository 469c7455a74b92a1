# SPDX-License-Identifier: Apache-2.0
"""Letting Spark's UI, and its progress, show the pattern while an action on its result runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from pyspark.sql import DataFrameWriter, DataFrameWriterV2, SparkSession

__all__ = ["Described"]

_ACTIONS = frozenset(
    ["checkpoint", "collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty",
     "localCheckpoint", "show", "tail", "take", "toArrow", "toLocalIterator", "toPandas", "writeTo"]
)  # fmt: skip


@attrs.frozen(eq=False)
class Described:
    """
    What a result's jobs are called.

    Attributes
    ----------
    description : str
        What Spark's UI shows.
    session : SparkSession
        Where the jobs run.
    """

    description: str
    session: SparkSession

    def attribute(self, name: str, value: Any) -> Any:
        """Give an attribute of a DataFrame so that it tells the pattern, if it starts jobs."""
        if name in _ACTIONS:
            return self._call(value)
        return self._result(value)

    def _call(self, action: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(action)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self._told():
                return self._result(action(*args, **kwargs))

        return run

    def _result(self, value: Any) -> Any:
        is_writer = isinstance(value, DataFrameWriter | DataFrameWriterV2)
        return _Writer(self, value) if is_writer else value

    @contextmanager
    def _told(self) -> Iterator[None]:
        context = getattr(self.session, "_sc", None)
        if context is None:  # Spark Connect
            yield
            return
        before = context.getLocalProperty("spark.job.description")
        context.setLocalProperty("spark.job.description", self.description)
        try:
            yield
        finally:
            context.setLocalProperty("spark.job.description", before)


class _Writer:
    """A DataFrameWriter, old or new, each call of which tells the pattern."""

    def __init__(self, described: Described, writer: Any) -> None:
        self._described = described
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._writer, name)
        return self._described._call(value) if callable(value) else value

    def __dir__(self) -> list[str]:
        return dir(self._writer)
