# SPDX-License-Identifier: Apache-2.0
"""The types of SQL: by name, beside each other, and of what operators give."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import attrs

from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.numbers import (
    NUMBER_FUNCTIONS,
    ROUNDINGS,
    Digits,
    averaged,
    digits_of_value,
    of_operation,
    rounded_digits,
    summed,
    whole_digits,
    wider_digits,
)
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tree import CONDITIONS, Call, Interval, Literal, Moment, Operation, Tree

_NAME = re.compile(r"([a-z_]+)(?:\((\d+)(?:,(\d+))?\))?")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_ALIASES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "dec": "decimal", "numeric": "decimal", "timestamp_ltz": "timestamp", "bool": "boolean",
}  # fmt: skip
_KINDS = {
    **dict.fromkeys(_BITS, Kind.BIGINT),
    "float": Kind.DOUBLE, "double": Kind.DOUBLE, "decimal": Kind.DECIMAL,
    "timestamp": Kind.TIMESTAMP, "timestamp_ntz": Kind.TIMESTAMP_NTZ, "date": Kind.DATE,
    "boolean": Kind.BOOLEAN, "string": Kind.STRING,
    "interval day": Kind.INTERVAL, "interval": Kind.INTERVAL,
}  # fmt: skip


@attrs.frozen
class SqlType:
    """A type of values."""

    # Its name without parameters, such as ``int``, ``decimal``, ``interval day`` or ``array``.
    name: str
    # The digits of a decimal, and how many of them are after the point; 0 digits if unknown.
    digits: int = 0
    scale: int = 0
    # The types of elements, of key and value, or of fields, as far as they are known.
    inner: tuple[SqlType | None, ...] = ()
    fields: tuple[str, ...] = ()  # The names of the fields of a struct

    @property
    def kind(self) -> Kind | None:
        """What programs call it; None for a type that they lack."""
        digits = self.of_decimal
        return _KINDS.get(self.name) if digits is None else Kind.decimal(digits)

    @property
    def sql(self) -> str:
        """The type in SQL, as Spark writes it."""
        inner = ["" if type_ is None else type_.sql for type_ in self.inner]
        if self.fields:
            inner = [f"{name}:{type_}" for name, type_ in zip(self.fields, inner, strict=True)]
        if inner:
            return f"{self.name}<{','.join(inner)}>"
        if self.digits:
            return f"{self.name}({self.digits},{self.scale})"
        return Kind.INTERVAL.value if self.name == "interval" else self.name

    @property
    def of_decimal(self) -> Digits | None:
        """The digits of a decimal; None of other types, and if they are not known."""
        return Digits(self.digits, self.scale) if self.digits else None

    @property
    def bits(self) -> int:
        """The size of a whole number or float; 0 for other types."""
        return {**_BITS, "float": 32, "double": 64}.get(self.name, 0)

    @property
    def has_map(self) -> bool:
        """Whether it is a map or has one inside, which nothing compares."""
        return self.name == MAP or any(own is not None and own.has_map for own in self.inner)

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.name in _BITS

    @property
    def is_float(self) -> bool:
        """Whether its values may be NaN."""
        return self.name in ("float", "double")

    @property
    def is_decimal(self) -> bool:
        """Whether its values are decimals."""
        return self.name == "decimal"

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.is_whole or self.is_float or self.is_decimal

    @property
    def is_time(self) -> bool:
        """Whether its values are dates or timestamps."""
        return self.name in ("date", "timestamp", "timestamp_ntz")

    def fitted(self, value: Any) -> Any:
        """Return a whole number; raise ArithmeticError if it is out of range."""
        if -(1 << self.bits - 1) <= value < 1 << self.bits - 1:
            return value
        raise ArithmeticError(f"overflow: the result does not fit {self.name}")


VOID, BOOLEAN, STRING, BINARY = map(SqlType, ("void", "boolean", "string", "binary"))
INT, BIGINT, FLOAT, DOUBLE = map(SqlType, ("int", "bigint", "float", "double"))
DATE, TIMESTAMP, TIMESTAMP_NTZ = map(SqlType, ("date", "timestamp", "timestamp_ntz"))
DAYS, INTERVAL = SqlType("interval day"), SqlType("interval")
ARRAY, MAP, STRUCT = "array", "map", "struct"
"""The names of the types of collections."""
WITHOUT_KIND = (ARRAY, BINARY.name, MAP, STRUCT)
"""The names of the types with which nothing is computed."""

_WHOLE = tuple(map(SqlType, _BITS))


def array_of(element: SqlType | None) -> SqlType:
    """Return the type of arrays."""
    return SqlType(ARRAY, inner=(element,))


def cast_type(written: str) -> SqlType | None:
    """Return a type as users write it; None for one of which Spark alone has values."""
    found = _NAME.fullmatch(written.lower().replace(" ", ""))
    name = "" if found is None else _ALIASES.get(found[1], found[1])
    if (
        found is None
        or name not in _KINDS
        or name == "interval"
        or (found[2] and name != "decimal")
    ):
        return None
    return (
        SqlType(name, int(found[2] or 10), int(found[3] or 0))
        if name == "decimal"
        else SqlType(name)
    )


def of_kind(kind: Kind | None) -> SqlType | None:
    """Return the widest type of a kind."""
    if kind is not None and kind.is_decimal:
        return decimal_of(kind.digits)
    names = (
        "bigint", "double", "timestamp", "timestamp_ntz", "date", "boolean", "string", "interval",
    )  # fmt: skip
    return next((SqlType(name) for name in names if _KINDS[name] is kind), None)


def aggregate_type(function: str, of: SqlType | None) -> SqlType | None:
    """Return the type of an aggregate of values."""
    if function in ("sum", "avg") and of is not None and of.name == "decimal":
        digits = summed if function == "sum" else averaged
        return decimal_of(of.of_decimal and digits(of.of_decimal))
    known = AGGREGATES.get(function)  # others are leaves of MATCH_RECOGNIZE
    result = None if known is None else known.result
    if function in ("sum", "avg") and of in (DAYS, INTERVAL):
        return INTERVAL
    if result is not None or function != "sum" or of is None:
        return of if result is None else of_kind(result)
    return BIGINT if of.is_whole else DOUBLE


def decimal_of(digits: Digits | None) -> SqlType:
    """Return the type of decimals of some digits; None if these are not known."""
    return SqlType("decimal") if digits is None else SqlType("decimal", *digits)


def literal_type(literal: Literal) -> SqlType | None:
    """Return the type of a literal."""
    value, suffix = literal.value, literal.text[-1:].upper()
    if value is None or isinstance(value, bool | str):
        return VOID if value is None else BOOLEAN if isinstance(value, bool) else STRING
    if isinstance(value, int):
        if suffix in ("Y", "S", "L"):
            return {"Y": _WHOLE[0], "S": _WHOLE[1], "L": BIGINT}[suffix]
        return INT if -(1 << 31) <= value < 1 << 31 else BIGINT
    if isinstance(value, float):
        return FLOAT if suffix == "F" and "x" not in literal.text.lower() else DOUBLE
    if isinstance(value, Decimal):
        return decimal_of(digits_of_value(value))
    if isinstance(value, Interval):
        parts = re.search(r"hour|minute|second|:", literal.text, re.IGNORECASE)
        return INTERVAL if parts or not literal.text else DAYS
    return DATE if isinstance(value, Moment) and value.is_date else None


# --- what values have in common


def common_type(a: SqlType | None, b: SqlType | None) -> SqlType | None:
    """Return the type that two values have beside each other; None if none is known."""
    if a is None or b is None or a == b:
        return a if a == b else None
    if VOID in (a, b):
        return b if a == VOID else a
    if a.is_number and b.is_number:
        return _common_number(a, b)
    if STRING in (a, b):
        other = b if a == STRING else a
        if other.is_number:
            return BIGINT if other.is_whole else DOUBLE
        return other if other.is_time or other in (BOOLEAN, BINARY) else None
    if a.is_time and b.is_time:
        return TIMESTAMP if TIMESTAMP in (a, b) else TIMESTAMP_NTZ
    if {a, b} == {DAYS, INTERVAL}:
        return INTERVAL
    if a.name == b.name and len(a.inner) == len(b.inner) and a.fields == b.fields:
        pairs = [common_type(*pair) for pair in zip(a.inner, b.inner, strict=True)]
        return None if None in pairs else SqlType(a.name, inner=tuple(pairs), fields=a.fields)
    return None


def _common_number(a: SqlType, b: SqlType) -> SqlType | None:
    if a.is_whole and b.is_whole:
        return max(a, b, key=lambda type_: type_.bits)
    if a.is_float or b.is_float:
        return DOUBLE
    digits, others = _as_decimal(a).of_decimal, _as_decimal(b).of_decimal
    return decimal_of(digits and others and wider_digits(digits, others))


def _as_decimal(type_: SqlType) -> SqlType:
    """Return the type of decimals that whole numbers become."""
    return SqlType("decimal", _DIGITS[type_.name], 0) if type_.is_whole else type_


def wider(types: Iterable[SqlType | None]) -> SqlType | None:
    """Return the type that all values have beside each other; a double if one certainly is."""
    found = list(types)
    numbers = [type_ for type_ in found if type_ is None or type_.is_number or type_ == VOID]
    if DOUBLE in found and len(numbers) == len(found):
        return DOUBLE
    if None in found and len(numbers) == len(found):
        return next((SqlType("decimal") for type_ in found if type_ and type_.digits), None)
    common: SqlType | None = VOID if found else None
    for type_ in found:
        common = common_type(common, type_)
    return common


# --- operators


def operation_type(part: Operation, types: Sequence[SqlType | None]) -> SqlType | None:
    """Return the type of the value of an operation; None if it is not known."""
    operator = part.operator
    if operator in CONDITIONS:
        return BOOLEAN
    if operator in NUMBER_FUNCTIONS:
        return DOUBLE
    if operator == "||":
        is_array = any(type_ is not None and type_.name == ARRAY for type_ in types)
        return wider(types) if is_array else BINARY if set(types) == {BINARY} else STRING
    if operator in ("timestampdiff", "datediff"):
        return BIGINT if operator == "timestampdiff" else INT
    choices = alternatives(part)
    if choices:
        places = {id(choice): type_ for choice, type_ in zip(part.operands, types, strict=True)}
        return wider([places[id(choice)] for choice in choices])
    first = types[0]
    if operator in ("neg", "abs"):
        return DOUBLE if first in (STRING, VOID) else first
    if operator in ("floor", "ceil"):
        if first is None or first.name != "decimal":
            return first and BIGINT
        return decimal_of(first.of_decimal and whole_digits(first.of_decimal))
    if operator in ROUNDINGS:
        digits = part.operands[1] if len(part.operands) > 1 else Literal(0)
        return rounded_type(first, digits)
    return _arithmetic_type(operator, part.operands, types)


def rounded_type(of: SqlType | None, digits: Tree) -> SqlType | None:
    """Return the type of a rounded number."""
    if of is None or of.name != "decimal":
        return DOUBLE if of in (STRING, VOID) else of
    given = digits.value if isinstance(digits, Literal) else ""
    count = 0 if given is None else given
    known = of.of_decimal if isinstance(count, int) else None
    return decimal_of(known and rounded_digits(known, int(str(count))))


def _arithmetic_type(
    operator: str, operands: Sequence[Tree], types: Sequence[SqlType | None]
) -> SqlType | None:
    a, b = types
    if a is None or b is None:
        return DOUBLE if DOUBLE in types and operator != "div" else None
    if operator == "div":
        return BIGINT
    if VOID in (a, b):
        if a == b or (operator == "/" and a == VOID and b.name == "decimal"):
            return DOUBLE
        a, b = (b, b) if a == VOID else (a, a)
        if operator == "+" and a in (DATE, TIMESTAMP):
            return TIMESTAMP
    if STRING in (a, b) and (a.is_number or b.is_number):
        common = common_type(a, b)
        return DOUBLE if operator == "/" else common
    if not a.is_number or not b.is_number:
        return _type_of_times(operator, a, b)
    common = common_type(a, b)
    if common is not None and common.name == "decimal":
        digits = list(map(digits_beside, operands, (a, b)))
        known = [one for one in digits if one is not None]
        return decimal_of(of_operation(operator, *known) if len(known) == len(digits) else None)
    return DOUBLE if operator == "/" else common


def beside(operands: Sequence[Tree], types: Sequence[SqlType | None]) -> tuple[SqlType | None, ...]:
    """Return types; beside a decimal, a literal whole number is one of the digits that it needs."""
    if not any(type_ is not None and type_.name == "decimal" for type_ in types):
        return tuple(types)
    return tuple(
        decimal_of(digits_beside(part, type_)) if type_ is not None and type_.is_whole else type_
        for part, type_ in zip(operands, types, strict=True)
    )


def digits_beside(part: Tree | None, type_: SqlType | None) -> Digits | None:
    """Return the digits that an operand has beside a decimal; None if they are not known."""
    is_tiny = type_ is not None and type_.name == "tinyint"  # whose literals Spark takes for any
    if isinstance(part, Literal) and isinstance(part.value, int) and not is_tiny:
        return digits_of_value(part.value)
    return None if type_ is None else _as_decimal(type_).of_decimal


def _type_of_times(operator: str, a: SqlType, b: SqlType) -> SqlType | None:
    if DATE in (a, b) and (a.is_whole or b.is_whole):
        return DATE if operator == "+" or (operator == "-" and a == DATE) else None
    a_length, b_length = a in (DAYS, INTERVAL), b in (DAYS, INTERVAL)
    if operator == "-" and (a.is_time or b.is_time) and not b_length:
        return DAYS if a == b == DATE or {a, b} == {DATE, STRING} else INTERVAL
    if a_length and b_length:
        return common_type(a, b)
    if operator in ("+", "-") and (a_length or b_length):
        time, length = (b, a) if a_length else (a, b)
        if time == DATE:
            return DATE if length == DAYS else TIMESTAMP
        is_moved = time.is_time or (time == STRING and not (a_length and operator == "-"))
        return time if is_moved else None
    return INTERVAL if a_length or b_length else None


def alternatives(tree: Tree) -> tuple[Tree, ...]:
    """Return the parts of which one is the value of a choice; none if it is something else."""
    if isinstance(tree, Call):
        return tree.operands[1:] if tree.function == "nvl2" else ()
    if not isinstance(tree, Operation):
        return ()
    if tree.operator in ("coalesce", "greatest", "least"):
        return tree.operands
    if tree.operator != "case":
        return ()
    pairs = len(tree.operands) // 2
    return (*tree.operands[1 : 2 * pairs : 2], *tree.operands[2 * pairs :])
