# SPDX-License-Identifier: Apache-2.0
"""Writes constants, and texts with values in them, as Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

__all__ = ["Inside", "constant", "f_string"]

_OTHER = {'"': "'", "'": '"'}


def constant(value: object, quote: str = '"') -> str:
    r"""
    Return a constant as Python writes it, a string with fewer escapes if the other quote has them.

    Examples
    --------
    >>> print(constant("it's"), constant('say "no"'), constant("\\ \0"), constant(float("inf")))
    "it's" 'say "no"' "\\ \x00" float("inf")
    """
    if isinstance(value, str):
        quote = _OTHER[quote] if quote in value and _OTHER[quote] not in value else quote
        return f"{quote}{_escaped(value, quote)}{quote}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({quote}{value!r}{quote})"
    return repr(value)


def _escaped(value: str, quote: str) -> str:
    """Return the inside of a string literal."""
    return "".join(
        f"\\{char}" if char in ("\\", quote) else char if char.isprintable() else ascii(char)[1:-1]
        for char in value
    )


@attrs.frozen
class Inside:
    """A value inside of a text, as Python."""

    python: str


def f_string(pieces: Sequence[str | Inside], quote: str = '"') -> str | None:
    r"""
    Return texts and values between them as an f-string; None if Python 3.11 reads none such.

    Examples
    --------
    >>> print(f_string(['say "', Inside("name"), '" {}']))
    f"say \"{name}\" {{}}"
    """
    if not any(isinstance(piece, Inside) for piece in pieces):
        return constant("".join(piece for piece in pieces if isinstance(piece, str)), quote)
    written = []
    for piece in pieces:
        if isinstance(piece, str):
            written.append(_escaped(piece, quote).replace("{", "{{").replace("}", "}}"))
        elif any(char in piece.python for char in (quote, "\\", "#", "\n")):
            return None
        else:
            written.append(f"{{{' ' if piece.python.startswith('{') else ''}{piece.python}}}")
    return f"f{quote}{''.join(written)}{quote}"
