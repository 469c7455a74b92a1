# SPDX-License-Identifier: Apache-2.0
"""Numbers that stay the same from run to run: of keys, conditions and rules."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from pyflinkcep.eql import Eql
from pyflinkcep.eql.model import Field
from pyflinkcep.expressions.tree import Tree
from pyflinkcep.matching.columns import Ints, plain_numbers, values_of
from pyflinkcep.matching.keys import Hashes, encoded, mixed
from pyflinkcep.tables.eql_match import KeyNumbers, Narrowed
from pyflinkcep.tables.field_values import EventFields
from pyflinkcep.tables.values import grouping_key

_ODD = np.uint64(0x9E3779B97F4A7C15)


def number_of_text(text: str) -> int:
    """
    Return 64 bits of a text.

    Examples
    --------
    >>> number_of_text("n > 7")
    -7470590054511139296
    """
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def condition_code(condition: str | Tree) -> int:
    """Return the number of a condition, the same for whatever rules have it."""
    return number_of_text(condition if isinstance(condition, str) else f"EQL {condition!r}")


# --- keys


def _text(value: Any) -> str:
    """Return a text that is the same for values that are one key, whatever their types."""
    match value:
        case None:
            return "null"
        case bool():
            return f"{value}"
        case int() | float() | Decimal():
            if not math.isfinite(value):
                return f"{float(value)}"
            numerator, denominator = value.as_integer_ratio()
            return f"{numerator}/{denominator}"
        case str():
            return f"'{value}"
        case datetime():
            return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat()
        case list() | tuple():
            return "".join(f"[{len(own)} {own}" for own in map(_text, value))
        case dict():
            return _text([*value.items()])
    return f"{type(value).__name__} {value}"


def number_of_value(value: Any) -> int:
    """Return a number for a value, the same for equal ones."""
    return number_of_text(_text(grouping_key(value)))


def _hashes_of(values: Sequence[Any]) -> Hashes:
    numbers = [number_of_value(value) for value in values]
    return np.asarray(numbers, np.int64).view(np.uint64)


def _combined(parts: Sequence[Hashes], size: int) -> Ints:
    """Return one number for the parts of a key."""
    found = np.zeros(size, np.uint64)
    for part in parts:
        found = mixed(found + _ODD) ^ part
    return mixed(found).view(np.int64)


def key_hashes(table: pa.Table, names: Sequence[str]) -> Ints:
    """Return a number for the key of each event, which is some columns."""
    return _combined([_of_column(table.column(name)) for name in names], table.num_rows)


def _of_column(column: pa.ChunkedArray) -> Hashes:
    try:
        known = encoded(column)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return _hashes_of(values_of(column))
    found: Hashes = _hashes_of(values_of(known.dictionary))[plain_numbers(known.indices)]
    return found


class KeyHashes(KeyNumbers):
    """Numbers for keys of EQL that are the same for equal keys in any table."""

    def __init__(
        self,
        fields: EventFields,
        query: Eql,
        narrowed: Narrowed | None,
        known: dict[tuple[str, bool], Hashes],
    ) -> None:
        super().__init__(fields, query, narrowed)
        self._hashes = known  # The number of each value of fields, then that of null

    def _numbers(self, position: int, key: Field, codes: Ints) -> Ints:
        path = key.path
        if path not in self._paths[position]:
            return _hashes_of([None]).view(np.int64).repeat(len(codes))
        asked = path, self._are_doubles[position]
        if asked not in self._hashes:
            values = [*self._of(path).distinct, None]
            self._hashes[asked] = _hashes_of([*self._compared(position, values)])
        return self._hashes[asked][codes].view(np.int64)

    def _joined(self, parts: Sequence[Ints], size: int) -> Ints:
        return _combined([part.view(np.uint64) for part in parts], size)


def rule_code(name: str, version: int, facts: Mapping[str, Any]) -> int:
    """Return the number of a rule, another one if its state means something else."""
    return number_of_text(json.dumps([name, version, facts], sort_keys=True))
