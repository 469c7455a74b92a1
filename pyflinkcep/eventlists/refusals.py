# SPDX-License-Identifier: Apache-2.0
"""The errors of patterns that ordered lists of events do not answer."""

from __future__ import annotations

from pyflinkcep.errors import NotSupportedError

__all__ = ["reason", "refused"]

_BEGIN = 'evaluation="eventLists": '


def refused(why: str) -> NotSupportedError:
    """Return the error of a pattern that lists do not answer."""
    return NotSupportedError(f"{_BEGIN}{why}", 'leave evaluation out, or write evaluation="nfa"')


def reason(refusal: NotSupportedError) -> str:
    """Return what such an error was made of."""
    return refusal.message.removeprefix(_BEGIN)
