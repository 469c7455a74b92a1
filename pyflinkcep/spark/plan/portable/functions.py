# SPDX-License-Identifier: Apache-2.0
"""The functions of one event that are known to have Spark's values on another engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.expressions.text import quoted_name
from pyflinkcep.spark.plan.portable.casts import text_of
from pyflinkcep.spark.plan.portable.values import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Setting,
    Value,
    common_type,
    has_floats,
    is_float,
    is_time,
)

__all__ = ["CONVERSIONS", "PARTS", "called", "element", "member"]

_TEXT, _WHOLE, _DAYS, _AT_LEAST_0, _DOUBLE, _DAY, _CLOCK, _INSTANT = (
    "text",
    "n",
    "days",
    "0",
    "x",
    "day",
    "t",
    "z",
)


@attrs.frozen
class _Known:
    """A function: the kinds of its arguments, the last of them for all others, and its result."""

    arguments: tuple[str, ...]
    result: DataType
    least: int = 0
    form: str = ""


def _of(*names: str, of: tuple[str, ...] = (_TEXT,), to: DataType = STRING) -> dict[str, _Known]:
    return {name: _Known(of, to, len(of)) for name in names}


_FUNCTIONS: Mapping[str, _Known] = {
    **_of("lower", "lcase", "upper", "ucase", "trim", "ltrim", "rtrim", "reverse"),
    **_of("md5", "sha1", "btrim"), **_of("sha2", of=(_TEXT, _WHOLE)),
    **_of("crc32", to=BIGINT), **_of("octet_length", "bit_length", to=INT),
    **_of("levenshtein", of=(_TEXT,) * 2, to=INT),
    **_of("length", "char_length", "character_length", "len", "ascii", to=INT),
    **_of("replace", "translate", of=(_TEXT,) * 3),
    **_of("endswith", "contains", of=(_TEXT,) * 2, to=BOOLEAN),
    **_of("instr", "locate", "position", of=(_TEXT,) * 2, to=INT),
    **_of("left", "right", "repeat", of=(_TEXT, _AT_LEAST_0)),
    **_of("substring", "substr", of=(_TEXT, _WHOLE)),
    **_of("split_part", "substring_index", of=(_TEXT, _TEXT, _WHOLE)),
    **_of("lpad", "rpad", of=(_TEXT, _AT_LEAST_0, _TEXT)),
    "concat_ws": _Known((_TEXT, _TEXT), STRING, 2),
    **_of("exp", "ln", "log10", "log2", of=(_DOUBLE,), to=DOUBLE),
    "nanvl": _Known((_DOUBLE, _DOUBLE), DOUBLE, 2),
    "isnan": _Known((_DOUBLE,), BOOLEAN, 1, "coalesce(isnan({0}), false)"),
    **_of("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear",
             "weekofyear", of=(_DAY,), to=INT),
    **_of("hour", "minute", "second", of=(_CLOCK,), to=INT),
    **_of("date_add", "date_sub", "dateadd", of=(_DAY, _DAYS), to=DATE),
    **_of("add_months", of=(_DAY, _DAYS), to=DATE), **_of("last_day", of=(_DAY,), to=DATE),
    **_of("unix_seconds", "unix_millis", "unix_micros", of=(_INSTANT,), to=BIGINT),
    **_of("timestamp_seconds", "timestamp_millis", "timestamp_micros", of=(_WHOLE,),
             to=TIMESTAMP),
    **_of("unix_date", of=(_DAY,), to=INT),
    **_of("date_from_unix_date", of=(_WHOLE,), to=DATE),
    **_of("make_date", of=(_WHOLE,) * 3, to=DATE),
    **_of("rand", "random", of=(), to=DOUBLE), **_of("uuid", of=()),
    **_of("current_date", "curdate", of=(), to=DATE),
    **_of("current_timestamp", "now", of=(), to=TIMESTAMP),
}  # fmt: skip

PARTS = {
    "YEAR": "year", "MONTH": "month", "DAY": "day", "HOUR": "hour", "MINUTE": "minute",
    "QUARTER": "quarter", "DOY": "dayofyear", "WEEK": "weekofyear",
}  # fmt: skip
"""The function of each part that EXTRACT takes of a time."""
CONVERSIONS = {
    "date": "date", "to_date": "date", "timestamp": "timestamp", "to_timestamp": "timestamp",
    "int": "int", "bigint": "bigint", "double": "double", "string": "string", "boolean": "boolean",
    "tinyint": "tinyint", "smallint": "smallint", "float": "float",
}  # fmt: skip
"""Functions of one argument that cast it."""
_TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_MOST = 1000
_BEFORE = "compute it as a column of the events, if this engine's own value will do"


def called(function: str, operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """
    Return a function with Spark's value.

    Raises
    ------
    NotSupportedError
        If it is not known to have that on the engine.
    """
    special = _SPECIAL.get(function)
    if special is not None:
        found = special(operands, setting, what)
        if found is not None:
            return found
    known = _FUNCTIONS.get(function)
    most = _MOST if function == "concat_ws" else len(known.arguments if known else ())
    if known is None or not known.least <= len(operands) <= most:
        raise _unknown(setting, what)
    kinds = [*known.arguments, *known.arguments[-1:] * (len(operands) - len(known.arguments))]
    given = [
        _argument(kind, value, setting, what) for kind, value in zip(kinds, operands, strict=True)
    ]
    form = known.form or f"{function}({', '.join(given)})"
    return Value(form.format(*given) if known.form else form, known.result)


def _unknown(setting: Setting, what: str) -> Exception:
    return setting.refused(what, "it is not known to have the same values", _BEFORE)


def _argument(kind: str, value: Value, setting: Setting, what: str) -> str:
    type_ = value.type
    if kind == _TEXT:
        return text_of(value, setting, what).sql
    if isinstance(type_, NullType):
        return value.sql
    if kind == _DOUBLE and not isinstance(type_, StringType) and not is_time(type_):
        return value.as_type(DOUBLE, setting).sql
    is_whole = isinstance(type_, IntegralType)
    if is_whole and (kind == _WHOLE or (kind == _DAYS and type_ != BIGINT)):
        return value.sql
    if kind == _AT_LEAST_0 and isinstance(value.literal, int) and value.literal >= 0:
        return value.sql
    if kind in (_DAY, _CLOCK, _INSTANT) and is_time(type_):
        if isinstance(type_, TimestampType) and kind != _INSTANT:
            setting.needs_utc(what)
        if kind == _INSTANT and not isinstance(type_, TimestampType):
            return value.as_type(TIMESTAMP, setting).sql
        return value.sql
    raise _unknown(setting, what)


# --- functions of their own


def _isnan(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    if len(operands) == 1 and is_float(operands[0].type):
        return Value(f"coalesce(isnan({operands[0].sql}), false)", BOOLEAN)
    return None


def _substring(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
    if len(operands) != 3:
        return None
    begins, length = (value.literal for value in operands[1:])
    if not (isinstance(begins, int) and isinstance(length, int) and begins >= 0 and length >= 0):
        raise setting.refused(
            what, "it counts from the end otherwise", "begin at 1 or later; write right(text, n)"
        )
    text = text_of(operands[0], setting, what).sql
    return Value(f"substring({text}, {begins}, {length})", STRING)


def _nvl2(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
    if len(operands) != 3:
        return None
    asked, known, other = operands
    type_ = common_type([known, other], setting, what)
    values = [value.as_type(type_, setting).sql for value in (known, other)]
    return Value(f"if({asked.sql} IS NOT NULL, {values[0]}, {values[1]})", type_)


def _size(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    if len(operands) == 1 and isinstance(operands[0].type, ArrayType | MapType):
        return Value(f"cast(size({operands[0].sql}) AS int)", INT)
    return None


def _holds(operands: Sequence[Value], setting: Setting, _what: str) -> Value | None:
    if len(operands) != 2:
        return None
    array, value = operands
    if not isinstance(array.type, ArrayType) or has_floats(array.type):
        return None
    value = value.as_type(array.type.elementType, setting)
    return Value(f"array_contains({array.sql}, {value.sql})", BOOLEAN)


def _array(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    type_ = common_type(operands, setting, what)
    values = [value.as_type(type_, setting).sql for value in operands]
    return Value(f"array({', '.join(values)})", ArrayType(type_))


def _struct(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    names = [value.sql[1:-1] for value in operands]
    if not all(value.sql == quoted_name(name) for value, name in zip(operands, names, strict=True)):
        return None
    fields = [StructField(name, value.type) for name, value in zip(names, operands, strict=True)]
    return Value(f"struct({', '.join(value.sql for value in operands)})", StructType(fields))


def _named_struct(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    names, values = [name.literal for name in operands[::2]], operands[1::2]
    if len(names) != len(values) or not all(isinstance(name, str) for name in names):
        return None
    fields = [StructField(str(name), value.type) for name, value in zip(names, values, strict=True)]
    return Value(f"named_struct({', '.join(o.sql for o in operands)})", StructType(fields))


def _element_at(function: str) -> Callable[[Sequence[Value], Setting, str], Value | None]:
    def found(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
        if len(operands) != 2:
            return None
        whole, key = operands
        type_ = _element_type(whole.type, setting, what)
        return Value(f"{function}({whole.sql}, {key.sql})", type_)

    return found


def _truncated(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
    if len(operands) != 2 or str(operands[0].literal).upper() not in _TRUNCATED:
        return None
    time = operands[1]
    if not is_time(time.type):
        return None
    if not isinstance(time.type, TimestampNTZType):
        setting.needs_utc(what)
    time = time.as_type(TIMESTAMP, setting)
    return Value(f"date_trunc({operands[0].sql}, {time.sql})", TIMESTAMP)


def _unix_time(operands: Sequence[Value], setting: Setting, _what: str) -> Value | None:
    if len(operands) != 1 or not is_time(operands[0].type):
        return None
    return Value(f"unix_seconds({operands[0].as_type(TIMESTAMP, setting).sql})", BIGINT)


_SPECIAL: dict[str, Callable[[Sequence[Value], Setting, str], Value | None]] = {
    "isnan": _isnan, "substring": _substring, "substr": _substring, "nvl2": _nvl2, "size": _size,
    "cardinality": _size, "struct": _struct, "named_struct": _named_struct,
    "array_contains": _holds, "array": _array,
    "date_trunc": _truncated,
    "element_at": _element_at("element_at"), "try_element_at": _element_at("try_element_at"),
    "unix_timestamp": _unix_time, "to_unix_timestamp": _unix_time,
}  # fmt: skip


# --- parts of values


def member(owner: Value, name: str, quoted: str, setting: Setting, what: str) -> Value:
    """Return a field of a struct."""
    if isinstance(owner.type, StructType):
        for field in owner.type:
            if field.name.casefold() == name.casefold():
                return Value(f"{owner.sql}.{quoted}", field.dataType)
    raise _unknown(setting, what)


def element(whole: Value, key: Value, setting: Setting, what: str) -> Value:
    """Return an element of an array or map."""
    return Value(f"{whole.sql}[{key.sql}]", _element_type(whole.type, setting, what))


def _element_type(type_: DataType, setting: Setting, what: str) -> DataType:
    if isinstance(type_, ArrayType):
        return type_.elementType
    if isinstance(type_, MapType) and not has_floats(type_.keyType):
        return type_.valueType
    raise _unknown(setting, what)
