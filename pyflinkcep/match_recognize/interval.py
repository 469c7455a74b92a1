# SPDX-License-Identifier: Apache-2.0
"""Reads the interval of WITHIN."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.match_recognize.tokens import Source, tokenize
from pyflinkcep.match_recognize.tree import Clause

__all__ = ["standard_window_ms", "window_ms"]

_UNITS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}
_SMALL = {"MILLISECOND": 1}
_ORDER = list(_UNITS)
_SPLIT = re.compile(r"[ :]")
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_MESSAGE = (
    "Only constant intervals with millisecond resolution are supported as time constraints "
    "of patterns."
)
_HINT = "write INTERVAL '5' MINUTE, or INTERVAL '0 01:30:00' DAY TO SECOND"


def window_ms(clause: Clause, source: Source) -> int:
    """
    Return the milliseconds of WITHIN, rounded down; 0 for none.

    Parameters
    ----------
    clause : Clause
        The clause; its interval is ``INTERVAL '5' MINUTE``, ``INTERVAL '0 00:01:00' DAY TO
        SECOND`` or ``INTERVAL '5 minutes'``.
    source : Source
        The statement.

    Raises
    ------
    NotSupportedError
        If it is not an interval, is negative, is zero only when rounded, or has months or years.
    """
    if clause.within is None:
        return 0
    start, end = clause.within.span
    tokens = tokenize(Source(clause.within.text))
    refused = source.error(_MESSAGE, _HINT, start, end, NotSupportedError)
    words = [token.text for token in tokens[1:]]
    if not tokens[0].is_word("INTERVAL") or not words:
        raise refused
    value = words.pop(0).strip("'\"").strip()
    if not words:
        value, _, unit = value.partition(" ")
        words = [unit.strip()]
    units = _field_names(words)
    if units is None or value.startswith("-"):
        raise refused
    if len(units) == 1:
        return _milliseconds([value], units, refused)
    first, last = (_ORDER.index(unit) for unit in units if unit in _ORDER)
    return _milliseconds(_SPLIT.split(value), _ORDER[first : last + 1], refused)


def standard_window_ms(clause: Clause, source: Source) -> int:
    """Return the milliseconds of WITHIN under the standard's meaning, where zero is refused too."""
    window = window_ms(clause, source)
    if clause.within is not None and window == 0:
        start, end = clause.within.span
        message = f"WITHIN: expected an interval longer than zero, got {clause.within.text}"
        raise source.error(message, "leave WITHIN out if there is no window", start, end)
    return window


def _field_names(words: Sequence[str]) -> list[str] | None:
    """Return the one or two units, without plural and precision; None if they are not units."""
    text = re.sub(r"\(\d+(,\d+)?\)", "", "".join(f" {word}" for word in words).replace(" (", "("))
    text = re.sub(r"\( ?\d+ ?(, ?\d+ ?)?\)", "", text)
    names = [name.upper().rstrip("S") for name in text.split()]
    if len(names) == 1 and names[0] in {**_UNITS, **_SMALL}:
        return names
    if len(names) == 3 and names[1] == "TO" and {names[0], names[2]} <= set(_ORDER):
        return [names[0], names[2]] if _ORDER.index(names[0]) < _ORDER.index(names[2]) else None
    return None


def _milliseconds(values: Sequence[str], units: Sequence[str], refused: Exception) -> int:
    if len(values) != len(units) or not all(map(_NUMBER.fullmatch, values)):
        raise refused
    sizes = {**_UNITS, **_SMALL}
    total = sum(Fraction(value) * sizes[unit] for value, unit in zip(values, units, strict=True))
    if 0 < total < 1:
        raise refused
    return int(total)
