# SPDX-License-Identifier: Apache-2.0
"""Programs whose fields are the leaves of a tree, for engines that look these up themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyflinkcep.expressions.program import Kind, Op
from pyflinkcep.expressions.template import joined
from pyflinkcep.expressions.tree import Aggregate, Column, Leaf
from pyflinkcep.expressions.typed import Typed

__all__ = ["Kinds", "LeafFields", "Leaves"]


class Leaves(Protocol):
    """
    Where the values of events come from.

    Attributes
    ----------
    unit : str
        What an event is called in messages.
    ends : str
        What the functions of its first and last value are called.
    """

    unit: str
    ends: str

    def knows(self, sql: str) -> bool:
        """Whether a value of one event has a type; without one it is always NULL."""

    def kind(self, sql: str) -> Kind:
        """Return the kind of a value of one event."""

    def cast(self, sql: str, kind: Kind) -> str:
        """Return the SQL of a value of one event cast to another kind."""

    def column(self, part: Column) -> Typed:
        """Return the instructions that push a value of one event."""

    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instructions that push an aggregate."""


class Kinds:
    """
    The types of values of one event.

    Parameters
    ----------
    kinds : mapping of str to Kind
        The types by SQL; other values are NULL in every event.

    Attributes
    ----------
    casts : dict of str to Kind
        The casts of values that were asked for, by their SQL.
    """

    unit = "event"
    ends = "first or last"

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = dict(kinds)
        self.casts: dict[str, Kind] = {}

    def knows(self, sql: str) -> bool:
        """Whether a value has a type."""
        return sql in self._kinds

    def kind(self, sql: str) -> Kind:
        """Return the kind of a value."""
        return self._kinds[sql]

    def cast(self, sql: str, kind: Kind) -> str:
        """Return the SQL of a value cast to another kind; one without a type stays NULL."""
        if not self.knows(sql) or self.kind(sql) is kind:
            return sql
        cast = joined(("cast(", sql, f" as {kind.value})"))
        self._kinds[cast] = self.casts[cast] = kind
        return cast


class LeafFields(Kinds):
    """
    Assigns a field to each leaf of trees.

    Attributes
    ----------
    leaves : dict of Leaf to int
        The leaves and their fields.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__(kinds)
        self.leaves: dict[Leaf, int] = {}

    def column(self, part: Column) -> Typed:
        """Return the instruction that pushes a value of one event."""
        return Typed([(Op.FIELD, self._field(part))], self.kind(part.sql or ""))

    def aggregate(self, part: Aggregate) -> Typed:
        """Return the instruction that pushes an aggregate."""
        if part.function == "count":
            kind = Kind.BIGINT
        else:
            is_float = part.function in ("avg", "stddev")
            kind = Kind.DOUBLE if is_float else self.kind(part.argument or "")
        return Typed([(Op.FIELD, self._field(part))], kind)

    def _field(self, leaf: Leaf) -> int:
        return self.leaves.setdefault(leaf, len(self.leaves))
