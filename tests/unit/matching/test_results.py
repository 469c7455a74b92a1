# SPDX-License-Identifier: Apache-2.0
"""Results in columns: how they are split."""

from __future__ import annotations

import numpy as np

from pyflinkcep.matching.results import Found


def test_results_are_split_by_their_events() -> None:
    """A part has at most so many events, or one result; together they are all results in order."""
    ends = np.array([2, 3, 9, 10, 10, 12])
    size = len(ends)
    stage_of, handles = np.zeros(12, np.int32), np.arange(12)
    found = Found(("x",), np.ones(size, np.uint8), np.arange(size), ends, stage_of, handles)
    parts = list(found.parts(3))

    assert [len(part) for part in parts] == [2, 1, 3]
    assert [part.handles.tolist() for part in parts] == [
        [0, 1, 2], [3, 4, 5, 6, 7, 8], [9, 10, 11],
    ]  # fmt: skip
    assert [part.times.tolist() for part in parts] == [[0, 1], [2], [3, 4, 5]]
    assert list(found.parts(12)) == [found]
