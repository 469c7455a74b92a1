# SPDX-License-Identifier: Apache-2.0
"""Constants, f-strings and regular expressions as Python writes them, and texts as SQL does."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import attrs

_OTHER = {'"': "'", "'": '"'}


def constant(value: object, quote: str = '"') -> str:
    """Return a constant as Python writes it, a string in the quotes that need fewer escapes."""
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
    """Return texts and values between them as an f-string; None if Python 3.11 reads none such."""
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


_PIECE = re.compile(
    r"\\Q.*?\\E|\\[pP]\{\w+\}|\\u[0-9a-fA-F]{4}|\\.|\[\^?|\]|&&|\(\?<?\w*[:>=!)]?|.", re.DOTALL
)
_CLASSES = {
    r"\p{Alpha}": "a-zA-Z", r"\p{Digit}": "0-9", r"\p{Alnum}": "a-zA-Z0-9", r"\p{Lower}": "a-z",
    r"\p{Upper}": "A-Z", r"\p{Punct}": r"!-/:-@\[-`{-~",
}  # fmt: skip
_PLAIN = frozenset("dDwWsStnrfb0")
_LINE_ENDS = r"[^\n\r\u0085\u2028\u2029]"
_END = r"(?=(?:\r\n|[\n\r\u0085\u2028\u2029])?\Z)"
_GROUPS = frozenset({"(?:", "(?=", "(?!", "(?<=", "(?<!"})


def python_regex(pattern: str) -> str | None:
    """Return a regular expression that means the same under ``re.ASCII``; None for others."""
    found, inside = [], False
    for piece in _PIECE.findall(pattern):
        if piece == "&&" or (inside and piece in ("[", "[^")):
            return None
        if piece in _CLASSES:
            found.append(_CLASSES[piece] if inside else f"[{_CLASSES[piece]}]")
        elif piece.startswith(r"\Q"):
            found.append(re.escape(piece[2:-2]))
        elif piece.startswith(r"\u"):
            found.append(piece)
        elif piece[0] == "\\" and piece[1:2].isalnum():
            if piece[1] not in _PLAIN or piece[1] == "0" or (inside and piece[1] in "Sb"):
                return None
            found.append(piece)
        elif piece.startswith("(?"):
            named = piece.endswith(">") and piece.startswith("(?<")
            first = piece == "(?i)" and not found
            if piece not in _GROUPS and not named and not first:
                return None
            found.append(f"(?P{piece[2:]}" if named else piece)
        elif piece in ("[", "[^", "]"):
            inside = piece != "]"
            found.append(piece)
        elif piece == "." and not inside:
            found.append(_LINE_ENDS)
        elif piece in "^$" and not inside:
            found.append(r"\A" if piece == "^" else _END)
        else:
            found.append(piece)
    text = "".join(found)
    try:
        re.compile(text, re.ASCII)
    except (re.error, OverflowError):
        return None
    return text
