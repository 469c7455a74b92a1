# SPDX-License-Identifier: Apache-2.0
"""The marks of event times in the metadata of columns: Spark's own, and that of matches."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampType,
)

from pyflinkcep.spark.arrow.internals import WATERMARK_DELAY

_HANDED_ON = "pyflinkcep.handedOn"
"""Marks a time of matches, of any type, that the watermark handed on is never ahead of."""


def marks(type_: DataType, delay_ms: int) -> dict[str, Any]:
    """Return the metadata of a column of matches that the watermark handed on is never ahead of."""
    if isinstance(type_, TimestampType):  # Spark has no other event times
        return {_HANDED_ON: True, WATERMARK_DELAY: delay_ms}
    return {_HANDED_ON: True}


def is_event_time(field: StructField) -> bool:
    """Whether a column is marked, by Spark or by :func:`marks`."""
    return not {_HANDED_ON, WATERMARK_DELAY}.isdisjoint(field.metadata or {})


def is_of_matches(field: StructField) -> bool:
    """Whether a column is marked by :func:`marks`."""
    return _HANDED_ON in (field.metadata or {})


def without_marks(type_: Any) -> Any:
    """
    Return a schema, or another type, without marks.

    The events of matches and late events are older than the watermark: Spark would take a column of
    theirs for an event time, and drop their rows as late.
    """
    if isinstance(type_, StructType):
        return StructType([_unmarked(field) for field in type_.fields])
    if isinstance(type_, ArrayType):
        return ArrayType(without_marks(type_.elementType), type_.containsNull)
    if isinstance(type_, MapType):
        key, value = without_marks(type_.keyType), without_marks(type_.valueType)
        return MapType(key, value, type_.valueContainsNull)
    return type_


def _unmarked(field: StructField) -> StructField:
    known = (field.metadata or {}).items()
    metadata = {key: value for key, value in known if key not in (_HANDED_ON, WATERMARK_DELAY)}
    return StructField(field.name, without_marks(field.dataType), field.nullable, metadata)
