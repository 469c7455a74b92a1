# SPDX-License-Identifier: Apache-2.0
"""Reads the text between the parentheses of PATTERN."""

from __future__ import annotations

from collections.abc import Sequence

from pyflinkcep.errors import CepError, InvalidArgumentError
from pyflinkcep.match_recognize.tokens import Source, Token, as_name
from pyflinkcep.match_recognize.tree import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Part,
    Permutation,
    Quantified,
    Variable,
)

__all__ = ["parse_pattern"]

_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_HINT = "write variables, | ( ) {- -} ^ $ PERMUTE and the quantifiers * + ? {n,m}"
_MOST_TIMES = 1_000_000
_DEEPEST = 100


def parse_pattern(tokens: Sequence[Token], source: Source, end: int) -> Part:
    """
    Read a pattern.

    Parameters
    ----------
    tokens : sequence of Token
        The tokens between the parentheses.
    source : Source
        The statement.
    end : int
        Where the pattern ends in it.

    Raises
    ------
    InvalidArgumentError
        If it is not a pattern.
    """
    parser = _Parser(tokens, source, end)
    part = parser.alternation()
    if parser.token is not None:
        raise parser.error(f"unexpected {parser.token.text!r} in PATTERN")
    return part


class _Parser:
    def __init__(self, tokens: Sequence[Token], source: Source, end: int) -> None:
        self._tokens = tokens
        self._source = source
        self._end = end
        self._at = 0
        self._depth = 0

    @property
    def token(self) -> Token | None:
        """The next token, None at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def error(self, message: str, hint: str = _HINT, start: int | None = None) -> CepError:
        """Make an error about the next token, or the part that began at an offset."""
        token = self.token
        end = self._end if token is None else token.end
        if start is None:
            start = self._end if token is None else token.start
        return self._source.error(message, hint, start, end, InvalidArgumentError)

    def alternation(self) -> Part:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.error(
                f"PATTERN is nested more than {_DEEPEST} deep", "use fewer parentheses"
            )
        start = self._start()
        parts = [self._concatenation()]
        while self._take("|"):
            parts.append(self._concatenation())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts), self._span(start))

    def _concatenation(self) -> Part:
        start, parts = self._start(), []
        while self.token is not None and not self._ends():
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts), self._span(start))

    def _ends(self) -> bool:
        """Whether a concatenation ends before the next token."""
        return any(self._sees(*end) for end in (("|",), (")",), (",",), ("-", "}")))

    def _factor(self) -> Part:
        start = self._start()
        part = self._primary()
        bounds = self._quantifier()
        if bounds is None:
            return part
        low, high, began = bounds
        greedy = not self._take("?")
        written = self._source.text[began : self._before()]
        return Quantified(part, low, high, greedy, written, self._span(start))

    def _primary(self) -> Part:
        start = self._start()
        for symbol in "^$":
            if self._take(symbol):
                return Anchor(symbol == "$", self._span(start))
        if self._take("{", "-"):
            inner = self.alternation()
            self._expect("-", "}", start=start)
            return Exclusion(inner, self._span(start))
        if self._take("("):
            inner = self.alternation()
            self._expect(")", start=start)
            return inner
        token = None if self.token is None else as_name(self.token)
        if token is None or not token.is_identifier:
            raise self.error(f"expected a variable in PATTERN, got {_named(token)}")
        self._at += 1
        if token.is_word("PERMUTE") and self._take("("):
            parts = [self.alternation()]
            while self._take(","):
                parts.append(self.alternation())
            self._expect(")", start=start)
            return Permutation(tuple(parts), self._span(start))
        return Variable(token.text, (token.start, token.end))

    # --- quantifiers

    def _quantifier(self) -> tuple[int, int | None, int] | None:
        start = self._start()
        for symbol, (low, high) in _QUANTIFIERS.items():
            if self._take(symbol):
                return low, high, start
        if self._sees("{", "-") or not self._take("{"):
            return None
        least = self._number()
        if self._take(","):
            most = self._number()
        elif least is None:
            raise self.error(f"expected a number in {{ }}, got {_named(self.token)}")
        else:
            most = least
        self._expect("}", start=start)
        if most is not None and (least or 0) > most:
            raise self.error(
                f"The to should be a number greater than or equal to from: {least}.",
                f"write {{{most},{least}}}",
                start,
            )
        return least or 0, most, start

    def _number(self) -> int | None:
        token = self.token
        if token is None or token.kind != "number":
            return None
        is_short = token.text.isdecimal() and len(token.text) <= len(str(_MOST_TIMES))
        if not is_short or int(token.text) > _MOST_TIMES:
            raise self.error(
                f"expected a whole number up to {_MOST_TIMES}, got {token.text}",
                "write {n}, {n,}, {n,m} or {,m}",
            )
        self._at += 1
        return int(token.text)

    # --- tokens

    def _start(self) -> int:
        return self._end if self.token is None else self.token.start

    def _before(self) -> int:
        """Return where the last token taken ends."""
        return self._tokens[self._at - 1].end if self._at else self._start()

    def _span(self, start: int) -> tuple[int, int]:
        return start, max(start, self._before())

    def _sees(self, *symbols: str) -> bool:
        following = self._tokens[self._at : self._at + len(symbols)]
        return len(following) == len(symbols) and all(
            token.is_symbol(symbol) for token, symbol in zip(following, symbols, strict=True)
        )

    def _take(self, *symbols: str) -> bool:
        if not self._sees(*symbols):
            return False
        self._at += len(symbols)
        return True

    def _expect(self, *symbols: str, start: int) -> None:
        if not self._take(*symbols):
            wanted = "".join(symbols)
            raise self.error(
                f"expected {wanted!r} in PATTERN, got {_named(self.token)}",
                f"close the part that begins at {self._source.place(start)}",
            )


def _named(token: Token | None) -> str:
    return "the end of PATTERN" if token is None else repr(token.text)
