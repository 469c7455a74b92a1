# SPDX-License-Identifier: Apache-2.0
"""A bound on the partial matches of a key, as a guard against runaway patterns."""

from __future__ import annotations

import attrs

from pyflinkcep.errors import InvalidArgumentError, StateLimitError

__all__ = ["PartialMatchLimit", "too_many"]

_POLICIES = ("fail", "dropOldest")


@attrs.frozen
class PartialMatchLimit:
    """
    The most partial matches of a key, and the policy for more.

    Attributes
    ----------
    most : int, at least 1
        The bound; the start state does not count.
    policy : {"fail", "dropOldest"}
        Fail the job, or drop the partial matches that began first and count them.

    Notes
    -----
    Differs from Flink, which has no such bound.
    """

    most: int = attrs.field()
    policy: str = attrs.field(default="fail")

    @most.validator
    def _check_most(self, _: object, most: int) -> None:
        if not isinstance(most, int) or most < 1:
            raise InvalidArgumentError(
                f"maxPartialMatches={most!r}", "pass a number from 1, or None for no bound"
            )

    @policy.validator
    def _check_policy(self, _: object, policy: str) -> None:
        if policy not in _POLICIES:
            raise InvalidArgumentError(
                f"onTooManyPartialMatches={policy!r}", 'use "fail" or "dropOldest"'
            )


def too_many(limit: PartialMatchLimit, count: int, timestamp: int) -> StateLimitError:
    """Make the error for a key with too many partial matches."""
    return StateLimitError(
        f"{count} partial matches, maxPartialMatches is {limit.most}",
        "give the pattern a window or a stricter condition, "
        'or use onTooManyPartialMatches="dropOldest"',
        timestamp_ms=timestamp,
    )
