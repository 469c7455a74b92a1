# SPDX-License-Identifier: Apache-2.0
"""
The rules for NULL, NaN, division by zero, the range of whole numbers, and casts.

One table for every target: Python (:mod:`~pyflinkcep.expressions.codegen`), arrays
(:mod:`~pyflinkcep.expressions.arrays`), values without a schema
(:mod:`~pyflinkcep.expressions.values`), and C, for which ``kernel/opcodes.py`` writes it as
``kernel/src/base/rules.h``. A target implements each kind of :class:`Nulls` once.
"""

from __future__ import annotations

from enum import IntEnum

import attrs

from pyflinkcep.expressions.number_functions import NUMBER_FUNCTIONS
from pyflinkcep.expressions.program import Kind, Op

OVERFLOW = "overflow: the result does not fit bigint"
BY_ZERO = "division by zero"


class Nulls(IntEnum):
    """What NULL does to the result of an operation."""

    SPREADS = 0
    """The result is NULL if an operand is."""
    YIELDS = 1
    """The result is the other operand."""
    EQUALS = 2
    """NULL is equal to NULL and to nothing else; the result is never NULL."""
    DECIDES = 3
    """AND and OR: NULL, unless the other operand decides."""
    ASKED = 4
    """The result says whether the operand is NULL."""


@attrs.frozen
class Rule:
    """The rules of an operation."""

    operands: int  # The number of its operands
    nulls: Nulls = Nulls.SPREADS  # What NULL does
    divides: bool = False  # Whether a second operand of zero is an error with ANSI, otherwise NULL
    of_positive: bool = False  # Whether the result is NULL for zero and negative numbers
    is_truth: bool = False  # Whether the result is a truth value
    # Whether a whole result may be out of range: an error with ANSI, otherwise it wraps around.
    has_range: bool = False


_COMPARISON = Rule(2, is_truth=True)
_NUMBER = Rule(2, has_range=True)
_EXTREME = Rule(2, Nulls.YIELDS)
_DECISION = Rule(2, Nulls.DECIDES, is_truth=True)

RULES: dict[Op, Rule] = {
    Op.INT_TO_FLOAT: Rule(1),
    Op.TRUTH_TO_INT: Rule(1),
    Op.NEG: Rule(1, has_range=True),
    Op.ABS: Rule(1, has_range=True),
    Op.ADD: _NUMBER,
    Op.SUB: _NUMBER,
    Op.MUL: _NUMBER,
    Op.ADD_PASSING: Rule(2, Nulls.YIELDS, has_range=True),
    Op.DIV: Rule(2, divides=True),
    Op.INT_DIV: Rule(2, divides=True, has_range=True),
    Op.MOD: Rule(2, divides=True),
    Op.PMOD: Rule(2, divides=True),
    Op.FLOOR: Rule(1),
    Op.CEIL: Rule(1),
    Op.ROUND: Rule(1),
    Op.TRUNCATE: Rule(1),
    **{
        Op[name.upper()]: Rule(of.arity, of_positive=of.of_positive)
        for name, of in NUMBER_FUNCTIONS.items()
    },
    Op.LT: _COMPARISON,
    Op.LE: _COMPARISON,
    Op.GT: _COMPARISON,
    Op.GE: _COMPARISON,
    Op.EQ: _COMPARISON,
    Op.NE: _COMPARISON,
    Op.EQ_NULLSAFE: Rule(2, Nulls.EQUALS, is_truth=True),
    Op.LEAST: _EXTREME,
    Op.GREATEST: _EXTREME,
    Op.OR_ELSE: _EXTREME,
    Op.NOT: Rule(1, is_truth=True),
    Op.AND: _DECISION,
    Op.OR: _DECISION,
    Op.IS_NULL: Rule(1, Nulls.ASKED, is_truth=True),
    Op.CONCAT: Rule(2),
    Op.LIKE: Rule(1, is_truth=True),
    Op.STARTS_WITH: Rule(2, is_truth=True),
    Op.PREFIX_END: Rule(1),
    Op.UNITS: Rule(1),
    Op.INT_TO_DECIMAL: Rule(1),
    Op.DECIMAL_TO_FLOAT: Rule(1),
    Op.DECIMAL_TO_INT: Rule(1),
    Op.FIT: Rule(1),
    Op.LISTED: Rule(1),
    Op.AGGREGATE: Rule(1),
}
"""The rules of every operation that computes a value from values."""

OPERATORS: dict[str, Op] = {
    "=": Op.EQ, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE,
    "<=>": Op.EQ_NULLSAFE, "+": Op.ADD, "-": Op.SUB, "*": Op.MUL, "/": Op.DIV, "%": Op.MOD,
    "div": Op.INT_DIV, "pmod": Op.PMOD, "neg": Op.NEG, "abs": Op.ABS,
    "floor": Op.FLOOR, "ceil": Op.CEIL, "round": Op.ROUND, "truncate": Op.TRUNCATE,
    "not": Op.NOT, "and": Op.AND, "or": Op.OR, "is null": Op.IS_NULL, "least": Op.LEAST,
    "greatest": Op.GREATEST, "||": Op.CONCAT, "like": Op.LIKE, "startswith": Op.STARTS_WITH,
    **{name: Op[name.upper()] for name in NUMBER_FUNCTIONS},
}  # fmt: skip
"""The operations of SQL's operators and functions that have one."""

TRUTHS = frozenset(op for op, rule in RULES.items() if rule.is_truth)
"""The operations whose results are truth values."""

# --- the order of floats: NaN equals itself and is greater than all other numbers

FLOATS = {
    Op.LT: "(({a} < {b}) {or_} (({b} != {b}) {and_} ({a} == {a})))",
    Op.LE: "(({a} <= {b}) {or_} ({b} != {b}))",
    Op.EQ: "(({a} == {b}) {or_} (({a} != {a}) {and_} ({b} != {b})))",
}
"""Comparisons of ``{a}`` and ``{b}``; the others are made of these."""

_SWAPPED = {Op.GT: Op.LT, Op.GE: Op.LE}

WORDS = ("and", "or", "not ")
"""The logic of Python."""
BITS = ("&", "|", "~")
"""The logic of arrays, and in C of numbers without branches."""


def floats_compared(op: Op, a: str, b: str, logic: tuple[str, str, str] = WORDS) -> str:
    """
    Return a comparison of two floats, by default in Python.

    Examples
    --------
    >>> floats_compared(Op.GE, "x", "y")
    '((y <= x) or (x != x))'
    """
    and_, or_, not_ = logic
    if op is Op.NE:
        return f"({not_}{floats_compared(Op.EQ, a, b, logic)})"
    if op in _SWAPPED:
        op, a, b = _SWAPPED[op], b, a
    return FLOATS[op].format(a=a, b=b, and_=and_, or_=or_)


# --- casts


class Cast(IntEnum):
    """What a cast does to a value; of NULL it is NULL. What it refuses is NULL without ANSI."""

    KEPT = 0
    """The value itself."""
    CUT = 1
    """The whole number towards zero; refused are NaN, infinities and numbers out of range, which
    without ANSI become zero and the ends of the range, or wrap around."""
    NEAREST = 2
    """The nearest double or float; infinite if it is out of range."""
    ROUNDED = 3
    """The nearest decimal, halves away from zero; refused with too many digits before the point."""
    ASKED = 4
    """Whether the number is not zero; true for NaN."""
    READ = 5
    """What the text says without blanks and control characters around; other texts are refused."""
    WRITTEN = 6
    """Its text."""
    CLOCK = 7
    """The same day or clock time; the time of a day is midnight."""
    BY_SPARK = 8
    """What only Spark computes, for it depends on the session or on Java's forms of numbers."""


_NUMERIC = (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL)
_INSTANTS = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
_TO_NUMBERS = {Kind.BIGINT: Cast.CUT, Kind.DOUBLE: Cast.NEAREST, Kind.DECIMAL: Cast.ROUNDED}

CASTS: dict[tuple[Kind, Kind], Cast] = {
    **{(source, to): rule for source in (*_NUMERIC, Kind.BOOLEAN)
       for to, rule in _TO_NUMBERS.items()},
    **{(source, Kind.BOOLEAN): Cast.ASKED for source in _NUMERIC},
    **{(source, to): Cast.BY_SPARK for source in (*_NUMERIC, Kind.BOOLEAN) for to in _INSTANTS},
    **{(Kind.STRING, to): Cast.READ
       for to in (*_NUMERIC, Kind.BOOLEAN, Kind.DATE, *_INSTANTS)},
    **{(source, Kind.STRING): Cast.WRITTEN
       for source in (Kind.BIGINT, Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE, *_INSTANTS)},
    **{(source, Kind.STRING): Cast.BY_SPARK for source in (Kind.DOUBLE, Kind.INTERVAL)},
    **{(source, to): Cast.CLOCK for source in (Kind.DATE, *_INSTANTS)
       for to in (Kind.DATE, *_INSTANTS)},
    **{(source, to): Cast.BY_SPARK for source in (*_INSTANTS, Kind.INTERVAL) for to in _NUMERIC},
    (Kind.STRING, Kind.STRING): Cast.KEPT,
    (Kind.BOOLEAN, Kind.BOOLEAN): Cast.KEPT,
}  # fmt: skip
"""By the kinds of value and result; Spark refuses all others."""


def cast_rule(of: Kind | None, to: Kind | None) -> Cast | None:
    """Return what a cast of decimals of any digits, or of other kinds, does; None if none does."""
    return None if of is None or to is None else CASTS.get((of.family, to.family))
