# SPDX-License-Identifier: Apache-2.0
"""What an EQL query says, as data; conditions are trees, in the words of the language."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from pyflinkcep.expressions.tree import Column, Span, Tree, leaves

OPTIONAL = "?"
"""The variable of a column that may be missing in the input."""


@attrs.frozen
class Field:
    """A field by its path, such as ``process.name``."""

    path: str
    optional: bool = False  # Whether the input may lack it
    span: Span = attrs.field(default=(0, 0), eq=False, repr=False)

    @classmethod
    def of(cls, column: Column) -> Field:
        """Return the field that a column of a condition is."""
        return cls(column.attribute or "", column.variable == OPTIONAL, column.span)


@attrs.frozen
class Filter:
    """Events of a category that satisfy a condition."""

    category: str | None  # None for any
    condition: Tree

    def fields(self) -> Iterator[Field]:
        """Yield the fields that the condition reads."""
        return (Field.of(leaf) for leaf in leaves(self.condition) if isinstance(leaf, Column))


@attrs.frozen
class Step:
    """A step of a sequence."""

    filter: Filter
    keys: tuple[Field, ...]  # The sequence's, then its own
    is_missing: bool = False  # Whether there must be no such event
    runs: int = 1


@attrs.frozen
class Pipe:
    """A part of the matches."""

    is_head: bool  # Whether it is the first ones; otherwise the last
    count: int

    def __str__(self) -> str:
        return f"{'head' if self.is_head else 'tail'} {self.count}"


@attrs.frozen
class EqlModel:
    """A query: single events, or a sequence of steps."""

    steps: tuple[Step, ...]  # Of single events one, without keys
    is_sequence: bool
    until: Step | None = None
    maxspan: int | None = None  # In milliseconds
    pipes: tuple[Pipe, ...] = ()

    @property
    def expanded(self) -> tuple[Step, ...]:
        """The steps, repetitions written out."""
        return tuple(step for step in self.steps for _ in range(step.runs))

    @property
    def every(self) -> tuple[Step, ...]:
        """The steps and ``until``."""
        return self.steps if self.until is None else (*self.steps, self.until)
