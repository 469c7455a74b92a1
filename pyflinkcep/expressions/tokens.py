# SPDX-License-Identifier: Apache-2.0
"""Spark SQL's words and symbols, each with its position in the text."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from pyflinkcep.errors import InvalidArgumentError

__all__ = ["SqlSyntaxError", "Token", "TokenKind", "slip", "string_value", "tokenized"]


class SqlSyntaxError(InvalidArgumentError):
    """SQL that cannot be parsed; the message and the span say where."""


class TokenKind(Enum):
    """The kind of a token."""

    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    SIGN = "sign"
    END = "end of text"


class Token(NamedTuple):
    """
    A word or symbol.

    Attributes
    ----------
    kind : TokenKind
        Its kind; names in backquotes are names.
    text : str
        Its text as written; names in backquotes without these.
    start, end : int
        Its position: ``text[start:end]``.
    quoted : bool
        Whether it is a name in backquotes, and so never a keyword.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    quoted: bool = False

    def is_word(self, *words: str) -> bool:
        """Whether the token is one of these keywords, in upper case."""
        return self.kind is TokenKind.NAME and not self.quoted and self.text.upper() in words

    def is_sign(self, *signs: str) -> bool:
        """Whether the token is one of these signs."""
        return self.kind is TokenKind.SIGN and self.text in signs


_STRING = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\""""
_TOKENS = re.compile(
    rf"""
      (?P<space>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<string>{_STRING})
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDFlsydf]|bd)?(?![\w]))
    | (?P<name>\w+)
    | (?P<sign><=>|>>>|<<|>>|<>|!=|<=|>=|==|=>|->|::|\|\||\|>|[-+*/%=<>!~&|^.,:;()\[\]{{}}?@\#$])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "raw": TokenKind.STRING,
    "string": TokenKind.STRING,
    "number": TokenKind.NUMBER,
    "name": TokenKind.NAME,
    "sign": TokenKind.SIGN,
}


_SLIPS = tuple(
    (re.compile(found, re.IGNORECASE), hint)
    for found, hint in (
        (r";\s*$", "leave out the semicolon"),
        (r"[‘’“”„«»]", "write straight quotes: 'text'"),
        (r"&&", "write AND for &&"),
        (r"={3}", "write = for ==="),
        (r"=!|!\s+=|<\s+>|/=", "write <> or !="),
        (r"=>", "write >= for =>"),
        (r"=<", "write <= for =<"),
        (r"\bin\s*[\[{]", "write a list in parentheses: IN (1, 5)"),
        (r"\bis\s+none\b|\bisnull\b(?!\s*\()|[!=]=?\s*none\b", "write IS NULL, or IS NOT NULL"),
        (r"\bis\s+not\s+none\b|\bnotnull\b", "write IS NOT NULL"),
        (r"\?\?", "write coalesce(a, b) for a ?? b"),
        (r"=?~", "write RLIKE, or LIKE"),
        (r"\bbetween\b[^()]*,", "write BETWEEN 1 AND 5"),
        (r"^\s*(where|if)\b(?!\s*\()", "write the condition alone"),
        (r"'\w+'\w", "double a quote inside of a text: 'it''s'"),
    )
)


def slip(text: str) -> str | None:
    """
    Return what to write instead if a text that is not SQL has a well-known slip; None if not.

    Examples
    --------
    >>> slip("n in [1, 5]"), slip("s = 'a;'")
    ('write a list in parentheses: IN (1, 5)', None)
    """
    code = re.sub(_STRING, "''", text)
    return next((hint for found, hint in _SLIPS if found.search(code)), None)


def tokenized(text: str) -> list[Token]:
    """
    Return the tokens of a text without spaces and comments; the last is of kind END.

    Raises
    ------
    SqlSyntaxError
        If a character begins no token, or a string or quoted name does not end.

    Examples
    --------
    >>> [token.text for token in tokenized("`a b`.x >= 1.5D -- so")]
    ['a b', '.', 'x', '>=', '1.5D', '']
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKENS.match(text, at)
        if found is None:
            raise SqlSyntaxError(
                f"{text!r}: expected a word or sign at position {at + 1}, got {text[at]!r}",
                slip(text) or "close strings with ' and quoted names with `",
                problem=f"expected a word or sign, got {text[at]!r}",
                span=(at, at + 1),
            )
        kind = str(found.lastgroup)
        if kind == "quoted":
            name = found[0][1:-1].replace("``", "`")
            tokens.append(Token(TokenKind.NAME, name, at, found.end(), True))
        elif kind != "space":
            tokens.append(Token(_KINDS[kind], found[0], at, found.end()))
        at = found.end()
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return tokens


_ESCAPES = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7]|.)", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def string_value(written: str) -> str:
    r"""
    Return the value of a string literal, with escapes resolved as in Spark.

    Examples
    --------
    >>> string_value(r"'it''s \u0041\%'")
    "it's A\\%"
    """
    if written[0] in "rR":
        return written[2:-1]
    quote = written[0]
    return _ESCAPES.sub(_unescaped, written[1:-1].replace(quote * 2, quote))


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16)) if escape[0] in "uU" else chr(int(escape, 8))
    if escape in "%_":
        return "\\" + escape  # resolved by LIKE
    return _CONTROLS.get(escape, escape)
