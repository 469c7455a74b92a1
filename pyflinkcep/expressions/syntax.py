# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a SQL expression; each part knows its position in the text."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import attrs

__all__ = ["Form", "Syntax"]


class Form(Enum):
    """The form of a part of an expression."""

    LITERAL = "literal"
    """A number, string, true, false or null; `value` is how it is written."""
    TYPED = "typed literal"
    """``DATE '2026-01-01'``; `value` is the type and the string, as they are written."""
    INTERVAL = "interval"
    """``INTERVAL '5' MINUTE``; `value` is the text after the word."""
    COLUMN = "column"
    """Names with dots between; `value` is the tuple of them."""
    STAR = "star"
    """``*`` or ``a.*``; `value` is the tuple of names before the star."""
    WORD = "word"
    """A keyword used as an argument, such as a unit; `value` is the word."""
    CALL = "call"
    """A function; `value` is its name in lower case, or a postfix: ``cast [] . :``."""
    OPERATION = "operation"
    """An operator; `value` is it, in lower case."""
    CASE = "case"
    """CASE; `value` is (has a subject, has ELSE); operands are in the order of the text."""
    PAREN = "paren"
    """Parentheses around one operand."""
    LAMBDA = "lambda"
    """``x -> …``; `value` is the tuple of its variables."""
    OPAQUE = "opaque"
    """What only Spark reads: a subquery; a function with OVER, whose `value` is ``over``; one with
    FILTER and the like, whose `value` is its name and whose `detail` is ``distinct`` or ``other``.
    The operands of the last are its arguments, then calls of ``filter`` or ``order by``."""


@attrs.frozen(eq=False)
class Syntax:
    """
    A part of an expression.

    Attributes
    ----------
    form : Form
        Its form.
    value : object
        See :class:`Form`.
    operands : tuple of Syntax
        The parts inside.
    start, end : int
        Its position in the text.
    detail : str
        For a cast the type; for a field its name; for a call ``distinct``; for LIKE the escape
        literal.
    inner : int
        The position of the second name of a column or star; -1 if it has one name.
    """

    form: Form
    value: Any
    operands: tuple[Syntax, ...]
    start: int
    end: int
    detail: str = ""
    inner: int = -1

    def walk(self) -> Iterator[Syntax]:
        """Yield this part and all parts inside, in the order of the text."""
        yield self
        for operand in self.operands:
            yield from operand.walk()

    def bare(self) -> Syntax:
        """Return the part without the parentheses around it."""
        part = self
        while part.form is Form.PAREN:
            part = part.operands[0]
        return part
