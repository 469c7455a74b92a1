# SPDX-License-Identifier: Apache-2.0
"""Java's regular expressions as Python's."""

from __future__ import annotations

import re

__all__ = ["python_regex"]

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
    r"""
    Return a regular expression with the same meaning, under ``re.ASCII``; None if it has none.

    Examples
    --------
    >>> python_regex(r"\d+-.*"), python_regex(r"[a-z&&[^b]]")
    ('\\d+-[^\\n\\r\\u0085\\u2028\\u2029]*', None)
    """
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
