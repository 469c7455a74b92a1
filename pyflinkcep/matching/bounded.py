# SPDX-License-Identifier: Apache-2.0
"""Bounded events through a matcher, portion by portion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from pyflinkcep.matching.matcher import PatternMatcher, Store
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Stretches

__all__ = ["Portion", "matched"]


@attrs.frozen(eq=False)
class Portion:
    """
    Some sorted events; events of one key and one time are never in two portions.

    Attributes
    ----------
    store : Store
        Where the handles lead.
    stretches : Stretches
        The events, split by key.
    continues : bool
        Whether they begin with the last key of the portion before.
    last_key : object
        Their last key, for errors.
    """

    store: Store
    stretches: Stretches
    continues: bool
    last_key: Any


def matched(matcher: PatternMatcher, portions: Iterable[Portion]) -> Iterator[Found]:
    """Yield what a matcher finds in sorted events, as it comes."""
    key: Any = None
    for portion in portions:
        matcher.set_events(portion.store)
        yield from matcher.run(portion.stretches, portion.continues, key)
        key = portion.last_key
        portion.store.keep(matcher.live())
        del portion  # or its events would stay in memory while the next ones are made
    yield matcher.finish(key)
