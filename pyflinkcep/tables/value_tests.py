# SPDX-License-Identifier: Apache-2.0
"""Tests of one value against constants, for whole arrays of distinct values at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.eql.patterns import LOWER, UPPER
from pyflinkcep.expressions.sql_functions import matching
from pyflinkcep.expressions.tree import Call, Column, Literal, Operation, Tree
from pyflinkcep.matching.columns import Flags

_OF_TEXTS: dict[str, Callable[[Any, str], Any]] = {
    "=": pc.equal,
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
}
_OF_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


@attrs.frozen(eq=False, slots=False)
class DistinctValues:
    """Distinct values of one type, none of them null."""

    array: pa.Array

    @cached_property
    def _numbers(self) -> Any:
        return self.array.to_numpy(zero_copy_only=False)

    @cached_property
    def _folded(self) -> pa.Array:
        return pc.ascii_lower(self.array)

    @cached_property
    def is_text(self) -> bool:
        """Whether they are texts."""
        return bool(
            pa.types.is_string(self.array.type) or pa.types.is_large_string(self.array.type)
        )

    @property
    def is_number(self) -> bool:
        """Whether they are numbers that NumPy has."""
        return self.array.type in (pa.int64(), pa.float64())

    def holding(self, tree: Tree) -> Flags | None:
        """Return for which values a test holds; None for one that is asked value by value."""
        match tree:
            case Operation("and" | "or" as word, operands):
                found = [self.holding(part) for part in operands]
                known = [flags for flags in found if flags is not None]
                if len(known) < len(found):
                    return None
                every = np.stack(known)
                return np.asarray(every.all(axis=0) if word == "and" else every.any(axis=0))
            case Operation("=" | "<" | "<=" | ">" | ">=" as sign, (Column(), Literal(value))):
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if self.is_number and is_number:
                    compared: Flags = _OF_NUMBERS[sign](self._numbers, value)
                    # NaN is greater than all other numbers.
                    return compared | np.isnan(self._numbers) if sign in (">", ">=") else compared
            case Operation("in", (Column(), *items)) if self.is_number:
                values: list[Any] = [item.value for item in items if isinstance(item, Literal)]
                among: Flags = np.isin(self._numbers, [v for v in values if v is not None])
                return among
        return self._of_text(tree) if self.is_text else None

    def _of_text(self, tree: Tree) -> Flags | None:
        if not isinstance(tree, Operation | Call) or not tree.operands:
            return None
        texts = self._texts(tree.operands[0])
        given = [part.value for part in tree.operands[1:] if isinstance(part, Literal)]
        if texts is None or len(given) < len(tree.operands) - 1:
            return None
        name = tree.operator if isinstance(tree, Operation) else tree.function
        if name == "in" and all(isinstance(value, str) for value in given):
            return _flags(pc.is_in(texts, pa.array(given, texts.type)))
        if len(given) != 1 or not isinstance(given[0], str):
            return None
        if name == "rlike":
            return _fitting(texts, given[0])
        test = _OF_TEXTS.get(name)
        return None if test is None else _flags(test(texts, given[0]))

    def _texts(self, tree: Tree) -> pa.Array | None:
        """Return the texts that a test is about: those themselves, or in lower case."""
        match tree:
            case Column():
                return self.array
            case Call("translate", (Column(), Literal(old), Literal(new))):
                return self._folded if (old, new) == (UPPER, LOWER) else None
        return None


def _flags(found: pa.Array) -> Flags:
    flags: Flags = found.to_numpy(zero_copy_only=False).astype(np.bool_)
    return flags


def _fitting(texts: pa.Array, pattern: str) -> Flags:
    # Arrow's expressions know neither Python's classes nor which letters fold: wildcards alone.
    plain = pattern.replace(r"[\s\S]", "").replace(r"\\", "")
    if not plain.startswith("(?i)") and not any(f"\\{letter}" in plain for letter in "dDwWsS"):
        with suppress(pa.ArrowInvalid):  # nor more than 1000 repetitions
            return _flags(pc.match_substring_regex(texts, pattern))
    search = matching(pattern).search
    listed: Sequence[str] = texts.to_pylist()
    return np.fromiter((search(text) is not None for text in listed), np.bool_, len(listed))
