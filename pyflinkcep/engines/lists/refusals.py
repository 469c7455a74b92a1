# SPDX-License-Identifier: Apache-2.0
"""The errors for patterns that event lists cannot evaluate."""

from __future__ import annotations

from pyflinkcep.errors import NotSupportedError

__all__ = ["reason", "refused"]

_BEGIN = 'evaluation="eventLists": '


def refused(why: str) -> NotSupportedError:
    """Return the error for a pattern that lists cannot evaluate."""
    return NotSupportedError(f"{_BEGIN}{why}", 'leave evaluation out, or write evaluation="nfa"')


def reason(refusal: NotSupportedError) -> str:
    """Return the reason in such an error."""
    return refusal.message.removeprefix(_BEGIN)
