# SPDX-License-Identifier: Apache-2.0
"""A bound on the partial matches of a key, as a guard against runaway patterns."""

from __future__ import annotations

import attrs

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError, StateLimitError

__all__ = ["PartialMatchLimit", "compressed_with_limit", "less_held", "too_many"]

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
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise InvalidArgumentError(
                f"maxPartialMatches={most!r}", "pass a number from 1, or None for no bound"
            )

    @policy.validator
    def _check_policy(self, _: object, policy: str) -> None:
        if policy not in _POLICIES:
            raise InvalidArgumentError(
                f"onTooManyPartialMatches={policy!r}", 'use "fail" or "dropOldest"'
            )

    @classmethod
    def of(cls, most: int | None, policy: str) -> PartialMatchLimit | None:
        """Return the limit of two settings; None without one, for which a policy is refused."""
        if most is None and policy != "fail":
            raise InvalidArgumentError(
                f"onTooManyPartialMatches={policy!r} without maxPartialMatches",
                "write maxPartialMatches=100_000, the most partial matches of a key, too",
            )
        return None if most is None else cls(most, policy)


def too_many(
    limit: PartialMatchLimit, count: int, timestamp: int, is_compressible: bool
) -> StateLimitError:
    """
    Make the error for a key with too many partial matches.

    `is_compressible` says whether the matches of the pattern can be counted without listing them.
    """
    return StateLimitError(
        f"{count} partial matches, maxPartialMatches is {limit.most}",
        f"{less_held(is_compressible)}, "
        'or use onTooManyPartialMatches="dropOldest", which loses matches',
        timestamp_ms=timestamp,
    )


def compressed_with_limit() -> NotSupportedError:
    """Make the error for a bound on partial matches of which equal ones are merged."""
    return NotSupportedError(
        "compressed matches do not support maxPartialMatches, which bounds those that are listed",
        "leave it out: equal partial matches are merged",
    )


def less_held(is_compressible: bool) -> str:
    """Return what to write in place of a pattern that holds too much."""
    counts = "count or aggregate the matches with .compressed(), which does not list them, "
    stricter = "give the pattern a shorter window or a stricter condition"
    return counts + stricter if is_compressible else stricter
