# SPDX-License-Identifier: Apache-2.0
"""The names of streams' counters, which must differ within a query."""

from __future__ import annotations

import hashlib
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.spark.arrow.internals import analysed_plan
from pyflinkcep.spark.plan.watermark import streaming_nodes

__all__ = ["check_counters_name", "counters_name"]

_pickler: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]

_named: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
"""The owner of each name in a session. On the driver only: it is unknown beforehand whether two
results will meet in one query, and Spark refuses a query with two counters of one name."""


def counters_name(name: str, events: DataFrame, *settings: object) -> str:
    """
    Return a name for a job's counters that is unique in the session.

    Parameters
    ----------
    name : str
        The name of the job. The first job gets it; later ones with that name get a number appended.
    events : DataFrame
        What the job reads.
    settings : objects
        What the job does. A job made again, as when a notebook cell runs twice, keeps its name.
    """
    taken = _taken(events)
    named = _named.setdefault(events.sparkSession, {})
    digest = hashlib.sha256(_pickler.dumps(settings))
    digest.update(str(events.semanticHash()).encode())
    job = digest.hexdigest()
    names = (f"{name} ({number})" if number > 1 else name for number in count(1))
    found = next(free for free in names if free not in taken and named.get(free, job) == job)
    named[found] = job
    return found


def check_counters_name(name: str, events: DataFrame) -> str:
    """
    Return the name that a user chose for a job's counters.

    Raises
    ------
    InvalidArgumentError
        If a job that makes its events has the same.
    """
    if name in _taken(events):
        raise InvalidArgumentError(
            f"two patterns of a query are named {name!r}",
            "give each a name of its own: Spark finds counters by name",
        )
    return name


def _taken(events: DataFrame) -> set[str]:
    """Return the names of the counters of jobs below."""
    below = analysed_plan(events)
    nodes = () if below is None else streaming_nodes(below)
    return {node.name() for node in nodes if node.nodeName() == "CollectMetrics"}
