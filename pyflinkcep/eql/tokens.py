# SPDX-License-Identifier: Apache-2.0
"""The words and symbols of EQL, and where something is wrong in a text."""

from __future__ import annotations

import re

from pyflinkcep.errors import CepError, InvalidArgumentError, NotSupportedError
from pyflinkcep.expressions.tokens import Token, TokenKind, place, tokenized

KEYWORDS = frozenset({
    "and", "any", "by", "false", "in", "in~", "join", "like", "like~", "maxspan", "not", "null",
    "of", "or", "regex", "regex~", "sample", "sequence", "true", "until", "where", "with",
})  # fmt: skip
"""Words that are no names, in lower case only; in backquotes, and after a dot, they are names."""

_EQL = re.compile(
    r'(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<raw>""".*?"""(?!"))|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<quoted>`(?:[^`]|``)+`)|(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_@][A-Za-z0-9_]*~?)|(?P<sign>!\[|==|!=|<=|>=|[<>:=+\-*/%.,()\[\]|?])",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{2,8})\}|(.))", re.DOTALL)
_ESCAPES = {
    "n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "'": "'",
}  # fmt: skip


def failure(
    text: str, span: tuple[int, int], what: str, hint: str, *, supported: bool = True
) -> CepError:
    """Return the error for a problem at a place in a query."""
    kind = InvalidArgumentError if supported else NotSupportedError
    return kind(f"{place(text, span[0])}: {what}", hint, problem=what, span=span)


def _unreadable(text: str, at: int) -> CepError:
    rest = text[at : at + 20].split("\n")[0]
    hints = {
        "'": ("texts are in double quotes", 'write "text"'),
        '"': (f"the text {rest} does not end", 'close it with "'),
        "`": (f"the name {rest} does not end", "close it with `"),
        "!": ("! is no operator", 'write "not", or "!=", or "![" for missing events'),
        "&": ("& is no operator", 'write "and"'),
    }
    has_no_meaning = f"{rest[:1]} has no meaning here", 'texts are in double quotes: "text"'
    what, hint = hints.get(rest[:1], has_no_meaning)
    return failure(text, (at, at + 1), what, hint)


def eql_tokens(text: str) -> list[Token]:
    """Return the tokens of a query; of names, only keywords are compared as words."""
    return [
        token._replace(word="")
        if token.kind is TokenKind.NAME and token.text not in KEYWORDS
        else token
        for token in tokenized(text, _EQL, _unreadable)
    ]


def eql_words(text: str) -> list[str]:
    """Return the words and signs of a query, which tell what it means whatever is between them."""
    return [
        text[token.start : token.end] if _needs_backquotes(text, token) else token.text
        for token in eql_tokens(text)
    ]


def _needs_backquotes(text: str, token: Token) -> bool:
    """Whether a name in backquotes would be a keyword, a literal or a sign without these."""
    if not text.startswith("`", token.start):
        return False
    bare = _EQL.fullmatch(token.text)
    return bare is not None and (bare.lastgroup != "name" or token.text in KEYWORDS)


def string_value(text: str, token: Token) -> str:
    """Return the value of a text literal."""
    if token.text.startswith('"""'):
        return token.text[3:-3]

    def unescaped(found: re.Match[str]) -> str:
        code = None if found[1] is None else int(found[1], 16)
        is_half = code is not None and 0xD800 <= code < 0xE000  # of a pair, and no character
        if (code is None and found[2] not in _ESCAPES) or (code or 0) > 0x10FFFF or is_half:
            start = token.start + 1 + found.start()
            what = f"the escape {found[0]} is unknown"
            hint = r'write \\ for a backslash, or """raw text""" without escapes'
            raise failure(text, (start, start + len(found[0])), what, hint)
        return _ESCAPES[found[2]] if code is None else chr(code)

    return _ESCAPE.sub(unescaped, token.text[1:-1])
