# SPDX-License-Identifier: Apache-2.0
"""The errors for patterns that event lists cannot evaluate."""

from __future__ import annotations

from pyflinkcep.errors import NotSupportedError

__all__ = ["NotListedError", "refused"]


class NotListedError(NotSupportedError):
    """
    A pattern that lists cannot evaluate.

    Attributes
    ----------
    reason : str
        Why.
    """

    reason: str


def refused(why: str) -> NotListedError:
    """Return the error for a pattern that lists cannot evaluate."""
    error = NotListedError(
        f'evaluation="eventLists": {why}', 'leave evaluation out, or write evaluation="nfa"'
    )
    error.reason = why
    return error
