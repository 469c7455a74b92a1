# SPDX-License-Identifier: Apache-2.0
"""Queries and patterns on a table of events, by any evaluation; matches are positions."""

from pyflinkcep.evaluation.queries import (
    MatchPositions,
    compressed_matches,
    list_frames,
    match_arrays,
    query_matches,
)

__all__ = ["MatchPositions", "compressed_matches", "list_frames", "match_arrays", "query_matches"]
