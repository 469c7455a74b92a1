# SPDX-License-Identifier: Apache-2.0
"""Parameters of a statement, ``:name`` and ``?``, replaced by literals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyflinkcep.errors import CepError, InvalidArgumentError, counted
from pyflinkcep.match_recognize.tokens import Source, Token, closing, is_at, tokenize

__all__ = ["with_parameters"]


def with_parameters(text: str, args: Mapping[str, Any] | Sequence[Any] | None) -> str:
    r"""
    Return a statement with its parameters replaced.

    Parameters
    ----------
    text : str
        The statement; in PATTERN, ``?`` is a quantifier.
    args : mapping of str, or sequence, or None
        The values of ``:name``, or those of each ``?`` in order.

    Raises
    ------
    InvalidArgumentError
        If a value is missing, left over, or has no SQL literal; the message names the place.

    Examples
    --------
    >>> with_parameters("DEFINE A AS v > :low AND k = :k", {"low": 3, "k": "it's"})
    "DEFINE A AS v > 3 AND k = 'it\\'s'"
    """
    if args is None:
        return text
    if isinstance(args, str) or not isinstance(args, Mapping | Sequence):
        raise InvalidArgumentError(
            f"args: expected a dict or a list, got {type(args).__name__}",
            'write args={"low": 3} for :low, or args=[3] for ?',
        )
    source = Source(text)
    values = iter(()) if isinstance(args, Mapping) else iter(args)
    pieces, at = [], 0
    for token, name in _markers(tokenize(source), source):
        value = _named(args, name, token, source) if name else _next(args, values, token, source)
        pieces += [text[at : token.start], _literal(value, token, source)]
        at = token.end + len(name)
    left = list(values)
    if left:
        raise InvalidArgumentError(
            f"args has {counted(len(left), 'value')} more than the statement has ?",
            "leave them out",
        )
    return "".join(pieces) + text[at:]


def _markers(tokens: Sequence[Token], source: Source) -> Iterator[tuple[Token, str]]:
    """Yield the signs that begin parameters, each with its name; none for ``?``."""
    at = 0
    while at < len(tokens):
        if is_at(tokens, at, "PATTERN", "("):
            at = closing(tokens, at + 1, source)
        token, following = tokens[at], tokens[at + 1 : at + 2]
        if token.is_symbol("?"):
            yield token, ""
        elif token.is_symbol(":") and not (at and _goes_on(tokens[at - 1], token)):
            for name in following:
                if name.kind == "word" and name.start == token.end:
                    yield token, name.text
        at += 1


def _goes_on(before: Token, colon: Token) -> bool:
    """Whether a colon is a path into the value before it, or part of a cast."""
    ends_value = before.kind != "symbol" or before.text in ")]:"
    return before.end == colon.start and ends_value


def _named(args: Any, name: str, token: Token, source: Source) -> Any:
    if isinstance(args, Mapping) and name in args:
        return args[name]
    known = ", ".join(map(str, args)) if isinstance(args, Mapping) else "without names"
    raise _error(f"no value for :{name}", f"args are {known or 'empty'}", token, source)


def _next(args: Any, values: Iterator[Any], token: Token, source: Source) -> Any:
    for value in values:
        return value
    what = (
        "names, and none for ?" if isinstance(args, Mapping) else f"{counted(len(args), 'value')}"
    )
    raise _error("no value for ?", f"args has {what}", token, source)


def _error(message: str, hint: str, token: Token, source: Source) -> CepError:
    return source.error(message, hint, token.start, token.end)


def _literal(value: Any, token: Token, source: Source) -> str:
    """Return a value as Spark's SQL; naive times are local, as in PySpark."""
    item = getattr(value, "item", None)
    if item is not None and type(value).__module__ == "numpy":
        value = item()
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return f"{value}L" if abs(value) >= 1 << 31 else str(value)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"
        case Decimal() if value.is_finite():
            return f"{value:f}BD"
        case str():
            written = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{written}'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"TIMESTAMP '{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case timedelta():
            return f"INTERVAL '{value / timedelta(seconds=1):.6f}' SECOND"
        case list() | tuple():
            return f"array({', '.join(_literal(one, token, source) for one in value)})"
    raise _error(
        f"a parameter is {type(value).__name__}",
        "pass a number, string, boolean, date, datetime, timedelta, Decimal, bytes or a list",
        token,
        source,
    )
