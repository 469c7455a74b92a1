# SPDX-License-Identifier: Apache-2.0
"""Python as text, laid out as a formatter would."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from datetime import timedelta

from pyflinkcep.migrate.meaning.constants import constant as quoted

__all__ = ["WIDTH", "call", "chain", "docstring", "indented", "literal", "quoted", "timed"]

WIDTH = 100


def timed(duration: timedelta) -> str:
    """
    Return a duration as Python, in its largest whole unit.

    Examples
    --------
    >>> timed(timedelta(minutes=90)), timed(timedelta(hours=48))
    ('timedelta(minutes=90)', 'timedelta(days=2)')
    """
    for unit in ("days", "hours", "minutes", "seconds", "milliseconds"):
        size = timedelta(**{unit: 1})
        if duration % size == timedelta(0) and duration:
            return f"timedelta({unit}={duration // size})"
    return "timedelta(0)" if not duration else f"timedelta(microseconds={duration.microseconds})"


def indented(text: str, by: int = 4) -> str:
    """Return lines moved to the right, empty ones unchanged."""
    return textwrap.indent(text, " " * by)


def docstring(summary: str, more: str = "") -> str:
    """Return a docstring, wrapped; in one line if it fits."""
    clean = re.sub(r"\s+", " ", summary).replace("\\", "\\\\").replace('"""', "'''").strip()
    clean = clean if clean.endswith(".") else f"{clean}."
    body = "\n\n".join(
        "\n".join(textwrap.wrap(re.sub(r"\s+", " ", part).strip(), WIDTH - 8))
        for part in re.split(r"\n\s*\n|<p>", more.replace("\\", "\\\\").replace('"""', "'''"))
        if part.strip()
    )
    if not body and len(clean) + 10 <= WIDTH:
        return f'"""{clean}"""'
    lines = "\n".join(textwrap.wrap(clean, WIDTH - 8))
    return f'"""\n{lines}' + (f"\n\n{body}" if body else "") + '\n"""'


def split_text(value: str, width: int) -> list[str]:
    """Return a long string literal as several that follow each other."""
    if len(quoted(value)) <= width or "\n" in value:
        return [quoted(value)]
    parts, rest = [], value
    while len(quoted(rest)) > width:
        at = rest.rfind(" ", 1, width - 4)
        if at <= 0:
            break
        parts.append(rest[: at + 1])
        rest = rest[at + 1 :]
    return [quoted(part) for part in [*parts, rest]]


def call(name: str, arguments: Sequence[str], indent: int) -> str:
    """
    Return a call, its arguments on lines of their own if it does not fit.

    Parameters
    ----------
    name : str
        What is called.
    arguments : sequence of str
        The arguments as Python.
    indent : int
        How far to the right it begins.
    """
    line = f"{name}({', '.join(arguments)})"
    if "\n" not in line and len(line) + indent <= WIDTH:
        return line
    if len(arguments) == 1 and len(arguments[0]) + indent + 4 > WIDTH:
        value = _string_in(arguments[0])
        if value is not None:
            parts = split_text(value, WIDTH - indent - 4)
            return f"{name}(\n" + "".join(f"    {part}\n" for part in parts) + ")"
    joined = ", ".join(arguments)
    if "\n" not in joined and len(joined) + indent + 4 <= WIDTH:
        return f"{name}(\n    {joined}\n)"
    body = "".join(indented(_fitting(a, indent + 4)) + ",\n" for a in arguments)
    return f"{name}(\n{body})"


def _fitting(argument: str, indent: int) -> str:
    value = _string_in(argument) if len(argument) + indent + 1 > WIDTH else None
    if value is not None:
        parts = split_text(value, WIDTH - indent - 5)
        if len(parts) > 1:
            return "(\n" + "".join(f"    {part}\n" for part in parts) + ")"
    return argument


def _string_in(python: str) -> str | None:
    """Return the string that an expression is; None for other expressions."""
    if not python.startswith(('"', "'")):
        return None
    found = ast.parse(python, mode="eval").body
    return found.value if isinstance(found, ast.Constant) and isinstance(found.value, str) else None


def chain(start: str, calls: Sequence[tuple[str, Sequence[str]]], prefix: str, indent: int) -> str:
    """
    Return calls on one another: in a line, or each on its own between brackets.

    Parameters
    ----------
    start : str
        What the first one is called on.
    calls : sequence of (str, sequence of str)
        Methods and arguments.
    prefix : str
        What stands before, such as ``return`` with a blank.
    indent : int
        How far to the right the statement begins.
    """
    line = start + "".join(f".{name}({', '.join(arguments)})" for name, arguments in calls)
    if "\n" not in line and len(prefix) + len(line) + indent <= WIDTH:
        return prefix + line
    if len(calls) < 2:
        name, arguments = calls[0] if calls else ("", ())
        return prefix + call(f"{start}.{name}", arguments, indent + len(prefix)) if calls else line
    if len(calls) == 2 and start.isidentifier():
        (first, given), (second, others) = calls
        owner = f"{start}.{first}({', '.join(given)}).{second}"
        if "\n" not in owner and len(prefix) + len(owner) + indent < WIDTH:
            return prefix + call(owner, others, indent + len(prefix))
    if "\n" not in line and len(line) + indent + 4 <= WIDTH:
        return f"{prefix}(\n    {line}\n)"
    rows = []
    for at, (name, arguments) in enumerate(calls):
        owner = f"{start}.{name}" if at == 0 else f".{name}"
        rows.append(call(owner, arguments, indent + 4))
    return f"{prefix}(\n" + indented("\n".join(rows)) + "\n)"


def literal(value: str, used: int) -> str:
    """Return a string literal, in several parts if it is long."""
    if len(quoted(value)) + used <= WIDTH:
        return quoted(value)
    parts = split_text(value, WIDTH - 4)
    return "(\n" + "".join(f"    {part}\n" for part in parts) + ")"
