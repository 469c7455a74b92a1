# SPDX-License-Identifier: Apache-2.0
"""The words that keywords of the API take, for type checkers and editors."""

from __future__ import annotations

from typing import Literal

__all__ = [
    "Contiguity",
    "Dialect",
    "EvaluationOfPattern",
    "EvaluationOfQuery",
    "OnNullKey",
    "OnPatternChange",
    "OnTooManyPartialMatches",
    "Output",
]

Contiguity = Literal["next", "followedBy", "followedByAny"]
"""How one pattern follows another."""

Dialect = Literal["flink", "standard"]
"""The meaning of ``MATCH_RECOGNIZE``."""

EvaluationOfPattern = Literal["auto", "nfa", "eventLists"]
"""How the matches of a pattern are found."""

EvaluationOfQuery = Literal["auto", "nfa", "backtracking", "eventLists"]
"""How the matches of a query are found."""

OnNullKey = Literal["fail", "drop"]
"""What becomes of an event whose key or time is null."""

OnPatternChange = Literal["fail", "restart"]
"""What becomes of a checkpoint of another pattern."""

OnTooManyPartialMatches = Literal["fail", "dropOldest"]
"""What becomes of a key with more partial matches than allowed."""

Output = Literal["all", "onePerStart", "nonOverlapping"]
"""Which matches of a query are returned."""
