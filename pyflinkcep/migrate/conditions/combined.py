# SPDX-License-Identifier: Apache-2.0
"""Conditions made of others: both, either, or the opposite."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import attrs

from pyflinkcep.migrate.meaning.scope import snake_case
from pyflinkcep.migrate.translated import Note, Translated

__all__ = ["combined"]


def combined(word: str, made: Sequence[Translated], name: str) -> Translated:
    """
    Return conditions as one.

    Parameters
    ----------
    word : {"and", "or", "not"}
        What holds of them.
    made : sequence of Translated
        The conditions: all with SQL, or all as functions.
    name : str
        The name of the function, if it is one.

    Examples
    --------
    >>> combined("and", [Translated(sql="a = 1"), Translated(sql="b = 2")], "both").sql
    '(a = 1) AND (b = 2)'
    """
    notes: dict[Note, None] = {note: None for one in made for note in one.notes}
    common = Translated(
        imports=frozenset(line for one in made for line in one.imports),
        notes=tuple(notes),
        columns=tuple(column for one in made for column in one.columns),
        captured=tuple(dict.fromkeys(java for one in made for java in one.captured)),
        stub=any(one.stub for one in made),
    )
    texts = [one.sql for one in made if one.sql is not None]
    if len(texts) == len(made):
        sql = f" {word.upper()} ".join(f"({text})" for text in texts)
        sql = f"NOT coalesce({texts[0]}, false)" if word == "not" else sql
        return attrs.evolve(common, sql=sql)
    name = snake_case(name)
    calls = [f"{one.name}({_arguments(one)})" for one in made]
    written = f"not {calls[0]}" if word == "not" else f" {word} ".join(calls)
    inner = "\n\n".join((one.python or "").strip() for one in made)
    needs_context = any("ctx" in _arguments(one) for one in made)
    arguments = "event: Any, ctx: Any" if needs_context else "event: Any"
    doc = {"and": "all", "or": "any", "not": "not"}[word]
    head = f'def {name}({arguments}) -> bool:\n    """Whether {doc} of the conditions hold."""\n\n'
    body = textwrap.indent(f"{inner}\n\nreturn {written}\n", "    ")
    return attrs.evolve(common, name=name, python=f"{head}{body}")


def _arguments(made: Translated) -> str:
    first = (made.python or "").split(") ->", 1)[0]
    return "event, ctx" if "ctx" in first else "event"
