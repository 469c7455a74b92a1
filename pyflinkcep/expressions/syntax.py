# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a SQL expression; each part knows its position in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import attrs

from pyflinkcep.expressions.template import joined

__all__ = ["Form", "Guard", "Syntax", "divides", "guards_of", "may_fail"]


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


# --- what is computed only in some cases


@attrs.frozen(eq=False)
class Guard:
    """
    A condition under which a part is computed.

    Attributes
    ----------
    parts : tuple of Syntax
        The condition; a value and what it is compared with, for CASE with a subject.
    form : tuple of str
        What stands before, between and after the condition and the value.
    """

    parts: tuple[Syntax, ...]
    form: tuple[str, str, str]

    def around(self, sql: Callable[[Syntax], str], value: str) -> str:
        """Return SQL that computes another only if it is asked for."""
        compared = [joined(("(", sql(part), ")")) for part in self.parts]
        condition = compared[0] if len(compared) == 1 else joined((compared[0], " = ", compared[1]))
        before, then, after = self.form
        return joined((before, condition, then, value, after))


_IF_TRUE = ("CASE WHEN ", " THEN ", " END")
_UNLESS_TRUE = ("CASE WHEN ", " THEN NULL ELSE ", " END")
_UNLESS_FALSE = ("CASE WHEN NOT ", " THEN NULL ELSE ", " END")
_IF_NULL = ("CASE WHEN ", " IS NULL THEN ", " END")
_AFTER = {"and": _UNLESS_FALSE, "or": _UNLESS_TRUE}
_CHOOSING = ("coalesce", "ifnull", "nvl")
_FAILING_CALLS = frozenset({
    "cast", "[]", "element_at", "mod", "pmod", "sqrt", "to_date", "to_timestamp", "date",
    "timestamp", "int", "integer", "bigint", "smallint", "tinyint", "double", "float", "decimal",
    "boolean", "to_number", "to_char", "make_date", "make_timestamp", "make_interval",
    "from_json", "parse_json", "elt", "conv", "assert_true", "raise_error", "unix_timestamp",
    "date_from_unix_date", "timestamp_seconds", "timestamp_millis", "timestamp_micros",
    "parse_url", "url_decode", "from_csv", "width_bucket", "next_day", "chr", "to_binary",
})  # fmt: skip
_FAILING = ("/", "%", "div")


def may_fail(part: Syntax) -> bool:
    """Whether a part divides, converts or looks up, which fails for some values."""
    return any(
        (node.form is Form.OPERATION and node.value in _FAILING)
        or (node.form is Form.CALL and node.value in _FAILING_CALLS)
        for node in part.walk()
    )


def divides(part: Syntax) -> bool:
    """Whether operators divide by something that may be 0: a part that can be taken apart there."""
    node = part.bare()
    if node.form not in (Form.OPERATION, Form.CASE):
        return False
    is_quotient = node.form is Form.OPERATION and node.value in _FAILING
    if is_quotient and node.operands[1].bare().form is not Form.LITERAL:
        return True
    return any(map(divides, node.operands))


def guards_of(tree: Syntax) -> dict[Syntax, tuple[Guard, ...]]:
    """
    Return the parts that SQL computes only in some cases, each with its guards, outermost first.

    Examples
    --------
    >>> from pyflinkcep.expressions.grammar import parsed
    >>> text = "v = 0 OR n > 1 / v"
    >>> tree = parsed(text)
    >>> (quotient,) = (part for part in tree.walk() if part.value == "/")
    >>> (guard,) = guards_of(tree)[quotient]
    >>> guard.around(lambda part: text[part.start : part.end], "1 / v")
    'CASE WHEN (v = 0) THEN NULL ELSE 1 / v END'
    """
    found: dict[Syntax, tuple[Guard, ...]] = {}
    waiting: list[tuple[Syntax, tuple[Guard, ...]]] = [(tree, ())]
    while waiting:
        part, guards = waiting.pop()
        if guards:
            found[part] = guards
        for operand, more in zip(part.operands, _guards_inside(part), strict=True):
            waiting.append((operand, (*guards, *more)))
    return found


def _guards_inside(part: Syntax) -> list[tuple[Guard, ...]]:
    """Return the guards that a part puts before each of its operands."""
    operands = part.operands
    if part.form is Form.OPERATION and part.value in _AFTER:
        return [(), _guards(operands[:1], _AFTER[part.value])]
    if part.form is Form.CALL and part.value in ("if", "iff") and len(operands) == 3:
        return [(), _guards(operands[:1], _IF_TRUE), _guards(operands[:1], _UNLESS_TRUE)]
    if part.form is Form.CALL and part.value in _CHOOSING:
        before = [Guard((operand,), _IF_NULL) for operand in operands]
        return [tuple(before[:at]) for at in range(len(operands))]
    if part.form is not Form.CASE:
        return [()] * len(operands)
    subject = operands[:1] if part.value[0] else ()
    found: list[tuple[Guard, ...]] = [()] * len(subject)
    passed: tuple[Guard, ...] = ()
    rest = operands[len(subject) :]
    for when in rest[0 : len(rest) - len(rest) % 2 : 2]:
        condition = (*subject, when)
        found += [passed, (*passed, *_guards(condition, _IF_TRUE))]
        passed = (*passed, *_guards(condition, _UNLESS_TRUE))
    return found + [passed] * (len(rest) % 2)


def _guards(condition: tuple[Syntax, ...], form: tuple[str, str, str]) -> tuple[Guard, ...]:
    """Return guards that are one condition: each part of an AND or OR says something by itself."""
    bare = condition[0].bare()
    joint = "or" if form is _UNLESS_TRUE else "and"
    if len(condition) > 1 or bare.form is not Form.OPERATION or bare.value != joint:
        return (Guard(condition, form),)
    return tuple(guard for part in bare.operands for guard in _guards((part,), form))
