# SPDX-License-Identifier: Apache-2.0
"""The names of the columns that a job adds to the events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.program import CompiledExpressions

__all__ = [
    "BITS",
    "HASH",
    "MATCHED",
    "OWN",
    "POSITION",
    "PREFIX",
    "RANK",
    "SLICE",
    "VALUE",
    "WHOLE",
    "WINDOW",
    "Flags",
    "Ints",
    "field_names",
    "quoted",
    "refuse_reserved",
    "spark_atoms",
]

PREFIX = "__cep_"
"""The prefix of our own columns."""

BITS = f"{PREFIX}bits"
"""The column with a bit for each condition that Spark evaluated; set if it holds. Further columns,
with a number after the name, have the bits that do not fit.
"""

HASH = f"{PREFIX}hash"
"""The column with the key's hash."""

MATCHED = f"{PREFIX}matched"
"""The column that tells whether a row is of a match, if the output has others as well."""

POSITION = f"{PREFIX}position"
"""The column with an event's position in the source, which orders equal times."""

RANK = f"{PREFIX}rank"
"""The column with an event's place among those of its key, if an engine that keeps no order has
numbered them.
"""

VALUE = f"{PREFIX}value"
"""The prefix of the columns of fields; the field's number follows."""

SLICE = f"{PREFIX}slice"
"""The column with the number of an event's time slice."""

OWN = f"{PREFIX}own"
"""The column that tells whether the event is in the slice itself, not only around it."""

WHOLE = f"{PREFIX}whole"
"""The column with most columns of an event: a list of one struct, null if no stage can take it."""

WINDOW = f"{PREFIX}window"
"""The column with the start of a window that the event is in, in epoch milliseconds."""

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


def quoted(name: str) -> str:
    """
    Return a column name quoted for Spark's parser, including dots.

    Examples
    --------
    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def refuse_reserved(names: Iterable[str], where: str) -> None:
    """
    Refuse columns of the user's with names of our own.

    Parameters
    ----------
    names : iterable of str
        The columns.
    where : str
        The pattern or clause.

    Raises
    ------
    InputError
        If a name begins with :data:`PREFIX`.
    """
    reserved = [name for name in names if name.startswith(PREFIX)]
    if reserved:
        raise InputError(
            f"{where}: the column names {reserved} begin with {PREFIX!r}",
            "rename them: names like that are used inside the job",
        )


def field_names(expressions: CompiledExpressions | None) -> tuple[str, ...]:
    """Return the names of the columns of the fields that match expressions use."""
    return tuple(
        f"{VALUE}{number}" for number in range(len(expressions.fields) if expressions else 0)
    )


def spark_atoms(nfa: NFA) -> list[Atom]:
    """Return the conditions of a pattern that Spark evaluates; each has a bit in :data:`BITS`."""
    return [atom for atom in nfa.atoms if isinstance(atom.condition, ExpressionCondition)]
