# SPDX-License-Identifier: Apache-2.0
"""
Match expressions as data: fields of events, accumulators of partial matches, and programs.

A pattern's match expressions (:class:`~pyflinkcep.expressions.tree.MatchExpression`) share one
:class:`CompiledExpressions`. It has three parts.

**Fields** are the values of one event: field ``i`` is a SQL expression over the event's columns,
computed by the engine. In the matching core a value is an INT (64 bits, signed), a FLOAT (64 bits),
a TEXT, a DECIMAL or a LIST, or NULL; the type is known beforehand:

===================================  =======  ==========================================
kind of the field, as Spark has it   type     value
===================================  =======  ==========================================
bigint (every integral type)         INT      the number
boolean                              INT      0 or 1
timestamp, timestamp_ntz             INT      microseconds since the epoch
date                                 INT      days since the epoch
interval day to second               INT      microseconds
double (float too)                   FLOAT    the number
decimal of up to 15 digits           FLOAT    the nearest double; never calculated with
other decimals, those summed         DECIMAL  a decimal.Decimal
string                               TEXT     a str; compared code point by code point
===================================  =======  ==========================================

**Slots** are the values of a partial match: accumulators over the events it took for a stage, in
one tuple. Before the first event a COUNT is 0 and every other slot is NULL. When the match takes an
event for a stage, the slots of that stage and of the whole match, and no others, change as the
table says, reading only slots as they were *before* the event.

=============  ===============================================================================
COUNT          one more, if `field` is ALL or not NULL
FIRST          the field's value, NULL too, if slot `source` was `offset`; else as it was
LAST           the field's value, NULL too, if `offset` is 0; else what slot `source` was
MEAN           the field's value x if it was NULL, else m + (x - m) / (n + 1) for what it was,
               m, and what slot `source`, a COUNT, was, n; as it was if the value is NULL
MOMENT         itself plus d * (d - d / (n + 1)), d being x - m: the squared distances from the
               mean of slot `source`, a MEAN of the same field; at first x * (x - x)
SUM            the field's value if it was NULL, else their sum; as it was if the value is NULL.
               An INT field of a FLOAT slot is converted first. INT sums overflow as ADD does.
LIST           a tuple of the field's values, of the type of the slot, in order; as it was if the
               value is NULL
MIN, MAX       the field's value if it was NULL or the value is less (greater), by the order that
               LT and GT have; as it was if the value is NULL
=============  ===============================================================================

`source` of FIRST counts all events of the same stage: FIRST at offset `n` is of event number `n`,
from 0. `source` of LAST at offset `n` is LAST at offset `n - 1` of the same field: together they
are a shift register.

**Programs** compute an expression from the fields of the current event and the slots of the partial
match. A program is a tuple of (opcode, operand) for a machine with a stack; it leaves one INT, and
holds if that is not 0 and not NULL. The operand `type` is a :class:`Type`: the type of all
operands, which never differ. NULL has no type and stands where any type does.

==========================  ===================================================================
FIELD i, SLOT i             push field `i` of the event, slot `i` of the match
INT n, FLOAT x, TEXT s      push a constant
NULL                        push NULL
DECIMAL d                   push a constant, of which `d` is the text
INT_TO_FLOAT                convert the top; NULL stays NULL
UNITS s                     pop a FLOAT, a decimal of `s` digits after the point; push the INT that
                            counts units of the last one
INT_TO_DECIMAL s            pop an INT, push the DECIMAL of which it counts units
DECIMAL_TO_FLOAT, _INT      convert the top; an INT out of range wraps around, with `ansi` too
FIT t                       pop a DECIMAL, push it with the digits of a type, as `t` says:
                            "12,2", "12,0,ROUND_FLOOR", "12,0,ROUND_HALF_UP,-2"; too many before
                            the point are an overflow with `ansi`, NULL without it
LISTED                      pop a FLOAT, push a LIST of it; ADD_PASSING joins two
AGGREGATE s                 pop a LIST, push the FLOAT that the aggregate `s` makes of it, or NULL
NEG, ABS type               pop a, push -a, the magnitude of a (INT, FLOAT)
ADD, SUB, MUL type          pop b, pop a, push a + b, a - b, a * b (INT, FLOAT)
DIV FLOAT                   pop b, pop a, push a / b (FLOAT only)
INT_DIV INT                 pop b, pop a, push a / b without its fraction (INT only)
MOD type                    pop b, pop a, push the remainder with the sign of a (INT, FLOAT: fmod)
PMOD type                   as MOD, but of a remainder r below zero push (r + b) MOD b (INT, FLOAT)
                            ADD to PMOD, NEG, ABS of DECIMALs are exact, DIV has 77 digits
FLOOR, CEIL                 pop a FLOAT, push the INT below, above it; 0 for NaN
ROUND n, TRUNCATE n         pop a FLOAT, push it with `n` digits after the point: the nearest, of
                            two the one away from 0, or the next one towards 0
SQRT, SIGN, POWER, …        pop as many FLOATs as the function of :data:`NUMBER_FUNCTIONS` with this
                            name takes, push its FLOAT, or NULL
ADD_PASSING type            as ADD, but if one is NULL push the other (INT, FLOAT)
LEAST, GREATEST type        pop b, pop a, push b if it is less (greater) than a, by the order of LT
                            and GT, else a; if one is NULL push the other (INT, FLOAT, TEXT)
LT, LE, GT, GE, EQ, NE      pop b, pop a, push INT 1 or 0 (INT, FLOAT, TEXT). NaN equals itself
and type                    and is greater than every other number; -0.0 equals 0.0.
EQ_NULLSAFE type            as EQ, but 1 if both are NULL and 0 if one is; never NULL
NOT, AND, OR                push INT 1, 0 or NULL; of INT, every number but 0 being true:
                            0 AND NULL is 0, 1 OR NULL is 1, NOT NULL is NULL
IS_NULL                     pop a, push INT 1 or 0
CONCAT                      pop b, pop a, push the TEXT a followed by b; NULL if one is NULL
LIKE s                      pop a TEXT, push INT 1 or 0: whether it is like `s`, in which ``%``
                            stands for any text, ``_`` for one code point, and what follows a
                            backslash for itself; NULL stays NULL
STARTS_WITH                 pop b, pop a, push INT 1 or 0: whether the TEXT a begins with b
PREFIX_END                  pop a TEXT, push the least text after all that begin with it; only where
                            texts are numbers (:func:`pyflinkcep.expressions.arrays.columnar`)
OR_ELSE                     pop b, pop a, push a; if a is NULL push b
CHOOSE                      pop b, pop a, pop c, push a if c is true, else b
TRUTH_TO_INT                pop a truth value, push INT 1 or 0; NULL stays NULL. These three are
                            only for many rows at once, which cannot jump
                            (:mod:`pyflinkcep.expressions.arrays`)
JUMP_IF_FALSE n             skip the next `n` instructions if the top is 0; it stays
JUMP_IF_TRUE n              skip the next `n` if the top is neither 0 nor NULL; it stays
JUMP_IF_NOT_NULL n          skip the next `n` if the top is not NULL, and leave it; else pop it
JUMP_UNLESS n               pop a, skip the next `n` if it is 0 or NULL
JUMP n                      skip the next `n`
==========================  ===================================================================

Arithmetic and comparisons with NULL yield NULL (unless stated otherwise) without further effects:
``NULL / 0`` is NULL. Otherwise, with `ansi`, an INT result out of range is an error ("overflow")
and so is DIV, INT_DIV, MOD or PMOD by zero ("division by zero"), of INT and of FLOAT; without it
INT results wrap around in two's complement (FLOOR and CEIL stop at the ends of the range), and
division by zero yields NULL. A SUM that overflowed is an error in every expression evaluated on the
partial match from then on. FLOAT arithmetic is IEEE's, with infinities and NaN; NEG and ABS of -2⁶³
and -2⁶³ INT_DIV -1 overflow, -2⁶³ MOD -1 is 0.

Jumps only go forward and are nested like the expression: ``a AND b`` is *a*, JUMP_IF_FALSE, *b*,
AND; ``a OR b`` is *a*, JUMP_IF_TRUE, *b*, OR; ``coalesce(a, b)`` is *a*, JUMP_IF_NOT_NULL, *b*;
``CASE WHEN c THEN a ELSE b END`` is *c*, JUMP_UNLESS over *a* and JUMP, *a*, JUMP over *b*, *b*.
``avg(x)`` is a FLOAT SUM, a COUNT, INT_TO_FLOAT, DIV, and NULL if the count is 0, because the
sum is NULL then. ``stddev(x)`` is the SQRT of MOMENT DIV (COUNT - 1), or NULL unless COUNT > 1.
Decimals of up to 18 digits are calculated with as INTs that count units of the last digit:
``0.25 * p`` of a price is INT 25, *p*, UNITS 2, MUL; those of more as DECIMALs. Which digits a
result has is said in :mod:`pyflinkcep.expressions.numbers`.

This module is the specification. :mod:`pyflinkcep.expressions.codegen` runs programs in Python,
``kernel/src/base/machine.c`` and ``values.c`` in C; they must be changed together. The rules for
NULL, NaN, division by zero, ranges and casts are one table for these targets, for arrays
(:mod:`~pyflinkcep.expressions.arrays`) and for values without a schema
(:mod:`~pyflinkcep.expressions.values`): each implements each kind of :class:`Nulls` once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, IntEnum

import attrs

from pyflinkcep.expressions.numbers import NUMBER_FUNCTIONS, Digits

ALL = -1
"""Instead of a field: count events, whatever they hold."""


class Type(IntEnum):
    """The type of a value in the machine."""

    INT = 0
    FLOAT = 1
    TEXT = 2
    DECIMAL = 3
    LIST = 4


EXACT_DIGITS = 15
"""Decimals of up to this many digits have distinct nearest doubles, which compare as they do."""


class Kind(Enum):
    """The type of a value in SQL."""

    BIGINT = "bigint"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    DATE = "date"
    INTERVAL = "interval day to second"
    DECIMAL = "decimal"
    """Of digits that are not known; :meth:`decimal` makes the others."""

    @classmethod
    def _missing_(cls, value: object) -> Kind | None:
        """Make the kind of decimals of some digits, each once, also when it is unpickled."""
        found = re.fullmatch(r"decimal\((\d+),(\d+)\)(?: exact)?", str(value))
        if found is None:
            return None
        made = object.__new__(cls)
        made._name_, made._value_ = f"DECIMAL_{found[1]}_{found[2]}", str(value)
        kind = cls._value2member_map_.setdefault(str(value), made)
        assert isinstance(kind, Kind)
        return kind

    @classmethod
    def decimal(cls, digits: Digits, *, exact: bool = False) -> Kind:
        """Return the kind of decimals of some digits."""
        return cls(digits.sql + " exact" * exact)

    @property
    def digits(self) -> Digits | None:
        """The digits of a decimal; None for other kinds, and if they are not known."""
        if not self._value_.startswith("decimal("):
            return None
        precision, scale = re.findall(r"\d+", self._value_)
        return Digits(int(precision), int(scale))

    @property
    def is_decimal(self) -> bool:
        """Whether it is a decimal, of any digits."""
        return self._value_.startswith("decimal")

    @property
    def family(self) -> Kind:
        """The kind without the digits of a decimal."""
        return Kind.DECIMAL if self.is_decimal else self

    @property
    def type(self) -> Type:
        """The type that represents it."""
        if self is Kind.DOUBLE:
            return Type.FLOAT
        if self.is_decimal:
            digits = self.digits
            is_short = digits is not None and digits.precision <= EXACT_DIGITS
            return Type.FLOAT if is_short and not self._value_.endswith("exact") else Type.DECIMAL
        return Type.TEXT if self is Kind.STRING else Type.INT


class Function(IntEnum):
    """What a slot accumulates."""

    COUNT = 0
    FIRST = 1
    LAST = 2
    SUM = 3
    MIN = 4
    MAX = 5
    MEAN = 6
    MOMENT = 7
    LIST = 8


class Op(IntEnum):
    """The opcodes of programs; after those below come functions of numbers, by their names."""

    _ignore_ = "codes name code"

    FIELD = 0
    SLOT = 1
    INT = 2
    FLOAT = 3
    TEXT = 4
    NULL = 5
    INT_TO_FLOAT = 6
    TRUTH_TO_INT = 7
    DECIMAL = 8
    NEG = 10
    ADD = 11
    SUB = 12
    MUL = 13
    DIV = 14
    MOD = 15
    ABS = 16
    INT_DIV = 17
    ADD_PASSING = 18
    PMOD = 19
    LT = 20
    LE = 21
    GT = 22
    GE = 23
    EQ = 24
    NE = 25
    EQ_NULLSAFE = 26
    LEAST = 27
    GREATEST = 28
    NOT = 30
    AND = 31
    OR = 32
    IS_NULL = 33
    JUMP_IF_FALSE = 40
    JUMP_IF_TRUE = 41
    JUMP_IF_NOT_NULL = 42
    JUMP_UNLESS = 43
    JUMP = 44
    OR_ELSE = 45
    CHOOSE = 46
    CONCAT = 50
    LIKE = 51
    STARTS_WITH = 52
    PREFIX_END = 53
    FLOOR = 60
    CEIL = 61
    ROUND = 62
    TRUNCATE = 63
    UNITS = 66
    INT_TO_DECIMAL = 67
    DECIMAL_TO_FLOAT = 68
    DECIMAL_TO_INT = 69
    FIT = 70
    LISTED = 71
    AGGREGATE = 72
    codes = vars()
    for code, name in enumerate(NUMBER_FUNCTIONS, 80):
        codes[name.upper()] = code


Instruction = tuple[Op, int | float | str | None]
Code = tuple[Instruction, ...]


@attrs.frozen
class Field:
    """A value of an event."""

    sql: str  # The expression over the event's columns
    kind: Kind  # Its type

    @property
    def stored(self) -> str:
        """What stored state calls it: its SQL, and the type if values are stored as decimals."""
        return self.sql + (f" as {self.kind.value}" if self.kind.type is Type.DECIMAL else "")


@attrs.frozen
class Slot:
    """An accumulator of a partial match."""

    function: Function  # What it accumulates
    stage: str  # The stage whose events it sees, by its name in matches; ``match`` for all stages
    field: int  # The field of those events, or :data:`ALL`
    type: Type  # The type of its value
    # For FIRST the slot that counts all events of the stage; for LAST at an offset from 1, the slot
    # of LAST at the previous offset; for MEAN the COUNT, for MOMENT the MEAN of its field.
    # Otherwise -1.
    source: int = -1
    offset: int = 0  # For FIRST the number of events from the beginning, for LAST from the end


@attrs.frozen
class CompiledExpressions:
    """All match expressions of a pattern; see the module."""

    fields: tuple[Field, ...]  # The values of an event
    slots: tuple[Slot, ...]  # The values of a partial match
    programs: dict[str, Code]  # The program of each match expression, by its text
    ansi: bool  # Whether overflow and division by zero are errors

    def slots_of(self, key: str) -> frozenset[int]:
        """Return the slots that an expression depends on, now or once more events are taken."""
        # Of two partial matches that agree in all of them, no event makes different ones. A FIRST
        # at offset 0 never changes again.
        found: set[int] = set()
        waiting = [int(slot or 0) for op, slot in self.programs[key] if op is Op.SLOT]
        while waiting:
            number = waiting.pop()
            found.add(number)
            slot = self.slots[number]
            settled = slot.function is Function.FIRST and slot.offset == 0
            if slot.source >= 0 and not settled:
                waiting.append(slot.source)
        return frozenset(found)


def update_code(slots: Sequence[Slot], fields: Sequence[Field], number: int) -> Code:
    """Return the program of a slot's value after an event that the match takes for its stage."""
    slot, own = slots[number], (Op.SLOT, number)
    if slot.field == ALL:
        return (own, (Op.INT, 1), (Op.ADD, Type.INT))
    new: list[Instruction] = [(Op.FIELD, slot.field)]
    if slot.type is Type.FLOAT and fields[slot.field].kind.type is Type.INT:
        new.append((Op.INT_TO_FLOAT, None))
    match slot.function:
        case Function.COUNT:
            return (own, *new, (Op.IS_NULL, None), (Op.NOT, None), (Op.ADD, Type.INT))
        case Function.FIRST:  # the event if it is the one, otherwise an earlier event
            is_it = [(Op.SLOT, slot.source), (Op.INT, slot.offset), (Op.EQ, Type.INT)]
            return (*is_it, (Op.JUMP_UNLESS, len(new) + 1), *new, (Op.JUMP, 1), own)
        case Function.LAST:
            return ((Op.SLOT, slot.source),) if slot.offset else (*new,)
        case Function.MIN | Function.MAX:
            is_least = slot.function is Function.MIN
            return (own, *new, (Op.LEAST if is_least else Op.GREATEST, slot.type))
        case Function.LIST:
            return (own, *new, (Op.LISTED, None), (Op.ADD_PASSING, Type.LIST))
        case Function.SUM:
            return (own, *new, (Op.ADD_PASSING, slot.type))
    is_mean = slot.function is Function.MEAN
    mean = number if is_mean else slot.source
    distance: list[Instruction] = [
        *new, (Op.SLOT, mean), (Op.JUMP_IF_NOT_NULL, 1), (Op.FLOAT, 0.0), (Op.SUB, Type.FLOAT),
    ]  # fmt: skip
    step: list[Instruction] = [
        *distance, (Op.SLOT, slots[mean].source), (Op.INT, 1), (Op.ADD, Type.INT),
        (Op.INT_TO_FLOAT, None), (Op.DIV, Type.FLOAT),
    ]  # fmt: skip
    if not is_mean:
        step = [*distance, *distance, *step, (Op.SUB, Type.FLOAT), (Op.MUL, Type.FLOAT)]
    return (own, *step, (Op.ADD_PASSING, Type.FLOAT))


# --- the rules of operations, which kernel/opcodes.py writes for C

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
    """An operation: its rules, and what it is in SQL and in Python."""

    operands: int  # The number of its operands
    sql: str = ""  # SQL's operator or function
    # What Python says of the operands ``{a}`` and ``{b}``, which are not NULL, for a row and for
    # columns; empty for what is a function.
    form: str = ""
    row: str = ""  # What it says for a row alone
    nulls: Nulls = Nulls.SPREADS  # What NULL does
    divides: bool = False  # Whether a second operand of zero is an error with ANSI, otherwise NULL
    of_positive: bool = False  # Whether the result is NULL for zero and negative numbers
    is_truth: bool = False  # Whether the result is a truth value
    # Whether a whole result may be out of range: an error with ANSI, otherwise it wraps around.
    has_range: bool = False


RULES: dict[Op, Rule] = {
    Op.INT_TO_FLOAT: Rule(1, row="float({a})"),
    Op.TRUTH_TO_INT: Rule(1, row="1 if {a} else 0"),
    Op.NEG: Rule(1, "neg", "-{a}", has_range=True),
    Op.ABS: Rule(1, "abs", "abs({a})", has_range=True),
    Op.ADD: Rule(2, "+", "{a} + {b}", has_range=True),
    Op.SUB: Rule(2, "-", "{a} - {b}", has_range=True),
    Op.MUL: Rule(2, "*", "{a} * {b}", has_range=True),
    Op.ADD_PASSING: Rule(2, "", "{a} + {b}", nulls=Nulls.YIELDS, has_range=True),
    Op.DIV: Rule(2, "/", "{a} / {b}", divides=True),
    Op.INT_DIV: Rule(2, "div", divides=True, has_range=True),
    Op.MOD: Rule(2, "%", divides=True),
    Op.PMOD: Rule(2, "pmod", divides=True),
    **{Op[name.upper()]: Rule(1, name) for name in ("floor", "ceil", "round", "truncate")},
    **{
        Op[name.upper()]: Rule(of.arity, name, of_positive=of.of_positive)
        for name, of in NUMBER_FUNCTIONS.items()
    },
    Op.LT: Rule(2, "<", "{a} < {b}", is_truth=True),
    Op.LE: Rule(2, "<=", "{a} <= {b}", is_truth=True),
    Op.GT: Rule(2, ">", "{a} > {b}", is_truth=True),
    Op.GE: Rule(2, ">=", "{a} >= {b}", is_truth=True),
    Op.EQ: Rule(2, "=", "{a} == {b}", is_truth=True),
    Op.NE: Rule(2, "<>", "{a} != {b}", is_truth=True),
    Op.EQ_NULLSAFE: Rule(2, "<=>", "{a} == {b}", nulls=Nulls.EQUALS, is_truth=True),
    Op.LEAST: Rule(2, "least", nulls=Nulls.YIELDS),
    Op.GREATEST: Rule(2, "greatest", nulls=Nulls.YIELDS),
    Op.OR_ELSE: Rule(2, nulls=Nulls.YIELDS),
    Op.NOT: Rule(1, "not", row="not {a}", is_truth=True),
    Op.AND: Rule(2, "and", nulls=Nulls.DECIDES, is_truth=True),
    Op.OR: Rule(2, "or", nulls=Nulls.DECIDES, is_truth=True),
    Op.IS_NULL: Rule(1, "is null", nulls=Nulls.ASKED, is_truth=True),
    Op.CONCAT: Rule(2, "||", row="{a} + {b}"),
    Op.LIKE: Rule(1, "like", is_truth=True),
    Op.STARTS_WITH: Rule(2, "startswith", row="{a}.startswith({b})", is_truth=True),
    **dict.fromkeys((Op.PREFIX_END, Op.UNITS, Op.INT_TO_DECIMAL, Op.DECIMAL_TO_INT), Rule(1)),
    **dict.fromkeys((Op.FIT, Op.AGGREGATE), Rule(1)),
    Op.DECIMAL_TO_FLOAT: Rule(1, row="float({a})"),
    Op.LISTED: Rule(1, row="({a},)"),
}
"""The rules of every operation that computes a value from values."""

OPERATORS: dict[str, Op] = {rule.sql: op for op, rule in RULES.items() if rule.sql}
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
    """Return a comparison of two floats, by default in Python."""
    and_, or_, not_ = logic
    if op is Op.NE:
        return f"({not_}{floats_compared(Op.EQ, a, b, logic)})"
    if op in _SWAPPED:
        op, a, b = _SWAPPED[op], b, a
    return FLOATS[op].format(a=a, b=b, and_=and_, or_=or_)


def like_regex(pattern: str) -> re.Pattern[str]:
    r"""Return the regular expression of a LIKE pattern whose escape character is ``\``."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    forms = {"%": ".*", "_": "."}
    text = "".join(forms.get(part, re.escape(part[-1])) for part in parts)
    return re.compile(text, re.DOTALL)


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
