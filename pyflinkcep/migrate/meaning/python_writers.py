# SPDX-License-Identifier: Apache-2.0
"""Writers of calls, for the tables of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyflinkcep.migrate.meaning.regex import python_regex
from pyflinkcep.migrate.meaning.scope import Findings
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Untranslatable

__all__ = [
    "ATOM", "COMPARED", "PLUS", "Compared", "Operands", "PythonWriter", "Writer", "dereferenced",
    "events_of", "function", "helper", "listed_again", "method", "regex",
]  # fmt: skip

ATOM, PLUS, COMPARED = 9, 6, 5
Operands = tuple[Expression, ...]


class PythonWriter(Protocol):
    """What writes expressions, as the writers of calls know it."""

    findings: Findings
    quote: str

    def constant(self, value: object) -> str:
        """Return a constant, a string with the quote that stands around none of it."""

    def inside(self) -> PythonWriter:
        """Return a writer of values inside of an f-string."""

    def use(self, name: str) -> str:
        """Return the name of a function of the runtime, which will be imported."""

    def write(self, of: Expression, level: int = 0) -> str:
        """Return an expression, in parentheses if it binds less tightly than a level."""

    def non_null(self, of: Expression) -> str:
        """Return a value; the function raises if it is null."""

    def is_known(self, of: Expression) -> bool:
        """Whether a value cannot be null."""


Writer = Callable[["PythonWriter", Operands], tuple[str, int]]
Compared = Callable[["PythonWriter", Operands], tuple[str, str, str]]
"""Writes a comparison: its left side, operator and right side."""


def helper(name: str, *more: object) -> Writer:
    """Return a writer of a call of a function of the runtime, with some constants at its end."""

    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        texts = [*map(writer.write, operands), *map(writer.constant, more)]
        return f"{writer.use(name)}({', '.join(texts)})", ATOM

    return write


def method(name: str) -> Writer:
    """Return a writer of a call of a method of Python."""

    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        first, *rest = operands
        texts = ", ".join(writer.write(operand) for operand in rest)
        return f"{writer.write(first, ATOM)}.{name}({texts})", ATOM

    return write


def function(name: str) -> Writer:
    """Return a writer of a call of a function of Python."""

    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        return f"{name}({', '.join(writer.write(operand) for operand in operands)})", ATOM

    return write


def dereferenced(writer: PythonWriter, whole: Expression) -> str:
    """Return a list; one of a match that is missing is an error."""
    if isinstance(whole, Call) and whole.name == "Map.get":
        inner, key = whole.operands
        return f"{writer.write(inner, ATOM)}[{writer.write(key)}]"
    return writer.write(whole, ATOM)


def events_of(writer: PythonWriter, of: Expression) -> str:
    """Return the events of a stage, to be read once; other values as they are."""
    if isinstance(of, Call) and of.name == "events":
        return f"ctx.getEventsForPattern({writer.write(of.operands[0])})"
    return dereferenced(writer, of)


def listed_again(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    """Write a list of values, which may be one already."""
    written = dereferenced(writer, operands[0])
    return (written if _is_new(operands[0]) else f"list({written})"), ATOM


_LISTS = frozenset({
    "List.of", "Stream.filter", "Stream.map", "Stream.flatMap", "Stream.concat", "events",
    "copy of", "Stream.toList", "Stream.takeWhile", "Stream.dropWhile",
})  # fmt: skip
"""Calls that make a list."""


def _is_new(of: Expression) -> bool:
    """Whether a value is a list that nothing else holds."""
    if isinstance(of, Call) and of.name in ("stream", "Stream.limit", "Stream.skip"):
        return _is_new(of.operands[0])
    return isinstance(of, Call) and of.name in _LISTS


def regex(writer: PythonWriter, pattern: Expression) -> str:
    """Return a regular expression of Java as Python writes it."""
    value = pattern.value if isinstance(pattern, Const) else None
    found = python_regex(value) if isinstance(value, str) else None
    if found is None:
        raise Untranslatable("a regular expression that Python reads differently")
    raw = '"' not in found and not found.endswith("\\") and found.isprintable()
    return f'r"{found}"' if raw else writer.constant(found)
