# SPDX-License-Identifier: Apache-2.0
"""EQL queries, read and checked."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.eql.model import EqlModel
from pyflinkcep.eql.parser import parsed
from pyflinkcep.eql.tokens import eql_tokens
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.tree import written_name
from pyflinkcep.time import duration_text


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise InvalidArgumentError(
            f"Eql: expected a text, got {type(given).__name__}", 'write Eql("any where true")'
        )
    return given


@attrs.frozen(repr=False)
class Eql:
    """
    A query of Elastic's Event Query Language, read and checked.

    Parameters
    ----------
    text : str
        The query: ``category where condition``, or ``sequence by key [ … ] [ … ]``.

    Raises
    ------
    InvalidArgumentError
        If the text is no query; the message has line and column, and ``span`` the place.
    NotSupportedError
        If it has what is not supported, named with what to write instead.

    Examples
    --------
    >>> Eql('process where name == "cmd.exe" | head 5')
    Eql('process where name == "cmd.exe" | head 5')
    """

    text: str = attrs.field(converter=_text)
    model: EqlModel = attrs.field(init=False, eq=False)

    @model.default
    def _read(self) -> EqlModel:
        return parsed(self.text)

    @property
    def words(self) -> str:
        """The words of the text, whatever stands between them."""
        return " ".join(
            self.text[token.start : token.end] for token in eql_tokens(self.text)
        ).strip()

    def __repr__(self) -> str:
        return f"Eql({self.text!r})"

    def explain(self) -> None:
        """
        Print what the query says: its steps with their keys, and how long runs are kept.

        Examples
        --------
        >>> Eql('sequence by user [process where true] [file where size > 9] | head 3').explain()
        EQL sequence
          1. process by user
          2. file by user
        maxspan: none, so what began is kept until another takes its place
        at most one run for each key and step
        | head 3
        """
        print("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        model = self.model
        if not model.is_sequence:
            first = model.steps[0].filter.category
            lines = ["EQL on single events", f"  {'any' if first is None else first}"]
            return lines + [f"| {pipe}" for pipe in model.pipes]
        lines = ["EQL sequence"]
        for number, step in enumerate(model.steps, 1):
            lines.append(f"  {number}. {_shown(step)}")
        if model.until is not None:
            lines.append(f"  until {_shown(model.until)}")
        if model.maxspan is None:
            lines.append("maxspan: none, so what began is kept until another takes its place")
        else:
            lines.append(f"maxspan: {duration_text(model.maxspan)}")
        lines.append("at most one run for each key and step")
        return lines + [f"| {pipe}" for pipe in model.pipes]


def _shown(step: Any) -> str:
    category = "any" if step.filter.category is None else written_name(step.filter.category)
    keys = ", ".join(("?" if key.optional else "") + key.path for key in step.keys)
    return "".join(
        (
            "missing " if step.is_missing else "",
            category,
            f" by {keys}" if keys else "",
            f", {step.runs} times" if step.runs > 1 else "",
        )
    )
