# SPDX-License-Identifier: Apache-2.0
"""Checks that functions of Python that were written use no names that nothing defines."""

from __future__ import annotations

import builtins
import symtable
from collections.abc import Iterable

from pyflinkcep.migrate.meaning.scope import Findings, snake_case
from pyflinkcep.migrate.meaning.tree import Untranslatable, Var, parts

__all__ = ["checked_names", "tag_constant"]

_DEFINED = frozenset({*dir(builtins), "Any"})  # all that is written imports Any


def tag_constant(tag: str) -> str:
    """
    Return the constant of an output tag.

    Examples
    --------
    >>> tag_constant("still-hot")
    'STILL_HOT'
    """
    return snake_case(tag).upper().strip("_")


def checked_names(lines: list[str], parameters: Iterable[str], findings: Findings) -> list[str]:
    """
    Return the body of a function as it was written; of Java that is broken it may be none.

    Parameters
    ----------
    lines : list of str
        The body.
    parameters : iterable of str
        The parameters of the function.
    findings : Findings
        What it may use: imports, constants of tags, and expressions over variables around it.

    Raises
    ------
    Untranslatable
        If it is not Python, or uses names that nothing defines.

    Examples
    --------
    >>> checked_names(["return event.n + e.n"], ["event"], Findings())
    Traceback (most recent call last):
        ...
    pyflinkcep.migrate.meaning.tree.Untranslatable: the value of e is not known here
    """
    body = "\n".join(f"    {line}" for line in [*lines, "pass"]).replace("\0", "?")
    python = f"def written({', '.join(parameters)}):\n{body}"
    try:
        table = symtable.symtable(python, "<written>", "exec")
    except SyntaxError as error:
        raise Untranslatable(f"it has no meaning ({error.msg})") from error
    given = {tag_constant(tag) for tag in findings.tags} | _imported(findings.imports)
    for value in findings.captured.values():
        given |= {part.name for part in parts(value) if isinstance(part, Var)}
    unknown = sorted(_free(table) - given - _DEFINED)
    if unknown:
        raise Untranslatable(f"the value of {', '.join(unknown)} is not known here")
    return lines


def _imported(statements: set[str]) -> set[str]:
    """Return the names that import statements define."""
    names = (name for one in statements for name in one.rpartition("import ")[2].split(","))
    return {name.rpartition(" as ")[2].strip().partition(".")[0] for name in names}


def _free(table: symtable.SymbolTable) -> set[str]:
    """Return the names that are read of the module around."""
    found, waiting = set(), [table]
    while waiting:
        one = waiting.pop()
        waiting += one.get_children()
        symbols = one.get_symbols()
        found |= {s.get_name() for s in symbols if s.is_referenced() and s.is_global()}
    return found
