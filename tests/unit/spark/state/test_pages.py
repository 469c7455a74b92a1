# SPDX-License-Identifier: Apache-2.0
"""Pages whose keys all have the same number of numbers."""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep.errors import StateFormatError
from pyflinkcep.spark.state.pages import Page

_SCHEMA = pa.schema([("key", pa.string())])


def _page(lengths: list[int], numbers: list[int]) -> Page:
    empty = Page.empty(_SCHEMA, _SCHEMA)
    return attrs.evolve(empty, lengths=np.asarray(lengths), numbers=np.asarray(numbers, np.int64))


def test_fields_are_what_comes_after_the_version() -> None:
    """Each key's numbers are a row without the version; a page without keys has no rows."""
    assert _page([3, 3], [1, 4, 5, 1, 6, 7]).fields("a query", 1, 2).tolist() == [[4, 5], [6, 7]]
    assert _page([], []).fields("a query", 1, 2).tolist() == []


@pytest.mark.parametrize(
    ("lengths", "numbers", "what"),
    [
        ([2, 2], [1, 4, 2, 4], "state of a query in format 2, this release reads format 1"),
        ([1, 2], [1, 1, 4], "a key of a query does not have 2 numbers"),
    ],
)
def test_other_versions_and_damage_are_refused(
    lengths: list[int], numbers: list[int], what: str
) -> None:
    """A key of another version, or with too few numbers, is refused with what it belongs to."""
    with pytest.raises(StateFormatError, match=what):
        _page(lengths, numbers).fields("a query", 1, 1)
