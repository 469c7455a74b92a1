# SPDX-License-Identifier: Apache-2.0
"""The functions of one event that are known to have Spark's values on another engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    IntegralType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.expressions.text import quoted_name
from pyflinkcep.spark.plan.portable.casts import text_of
from pyflinkcep.spark.plan.portable.times import since_epoch
from pyflinkcep.spark.plan.portable.values import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    RANGE,
    STRING,
    TIMESTAMP,
    Setting,
    Value,
    chosen_type,
    common_type,
    failing_if,
    has_floats,
    is_float,
    is_time,
)

_TEXT, _STRING, _WHOLE, _DAYS, _AT_LEAST_0, _DOUBLE, _DAY, _CLOCK, _DATE = (
    "text",
    "string",
    "n",
    "days",
    "0",
    "x",
    "day",
    "t",
    "date",
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
    **_of("btrim"), **_of("md5", "sha1", of=(_STRING,)), **_of("sha2", of=(_STRING, _WHOLE)),
    **_of("crc32", of=(_STRING,), to=BIGINT), **_of("octet_length", "bit_length", to=INT),
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
    "nanvl": _Known((_DOUBLE, _DOUBLE), DOUBLE, 2),
    "isnan": _Known((_DOUBLE,), BOOLEAN, 1, "coalesce(isnan({0}), false)"),
    **_of("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear",
             "weekofyear", of=(_DAY,), to=INT),
    **_of("hour", "minute", "second", of=(_CLOCK,), to=INT),
    **_of("date_add", "date_sub", "dateadd", of=(_DAY, _DAYS), to=DATE),
    **_of("add_months", of=(_DAY, _DAYS), to=DATE), **_of("last_day", of=(_DAY,), to=DATE),
    "weekday": _Known((_DAY,), INT, 1, "cast(pmod(dayofweek({0}) + 5, 7) AS int)"),
    **_of("timestamp_micros", of=(_WHOLE,), to=TIMESTAMP),
    **_of("unix_date", of=(_DATE,), to=INT),
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
    """Return a function with Spark's value."""
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
    if isinstance(type_, NullType) or (kind == _STRING and isinstance(type_, StringType)):
        return value.sql
    if kind == _DOUBLE and isinstance(type_, NumericType):
        return value.as_type(DOUBLE, setting).sql
    is_whole = isinstance(type_, IntegralType)
    if is_whole and kind == _WHOLE and isinstance(type_, ByteType | ShortType):
        return value.as_type(INT, setting).sql
    if is_whole and (kind == _WHOLE or (kind == _DAYS and type_ != BIGINT)):
        return value.sql
    if kind == _AT_LEAST_0 and isinstance(value.literal, int) and value.literal >= 0:
        return value.sql
    if kind == _DATE and isinstance(type_, DateType):
        return value.sql
    if kind in (_DAY, _CLOCK) and is_time(type_):
        if isinstance(type_, TimestampType):
            setting.needs_utc(what)
        return value.sql
    raise _unknown(setting, what)


# --- functions of their own

_Special = Callable[[Sequence[Value], Setting, str], Value | None]


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
    type_ = chosen_type([known, other], setting, what)
    values = [value.as_type(type_, setting).sql for value in (known, other)]
    return Value(f"if({asked.sql} IS NOT NULL, {values[0]}, {values[1]})", type_)


def _size(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    if len(operands) == 1 and isinstance(operands[0].type, ArrayType | MapType):
        return Value(f"cast(size({operands[0].sql}) AS int)", INT)
    return None


def _holds(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
    if len(operands) != 2:
        return None
    array, value = operands
    if not isinstance(array.type, ArrayType) or isinstance(value.type, NullType):
        return None
    own = array.type.elementType
    type_ = common_type([Value("", own), Value(value.sql, value.type)], setting, what)
    if has_floats(type_) or isinstance(own, StringType) != isinstance(value.type, StringType):
        return None
    array, value = array.as_type(ArrayType(type_), setting), value.as_type(type_, setting)
    found = f"array_contains({array.sql}, {value.sql})"
    unknown = f"size(filter({array.sql}, v -> v IS NULL)) > 0"
    return Value(f"if(({found}) OR NOT ({unknown}), {found}, NULL)", BOOLEAN)


def _array(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    type_ = chosen_type(operands, setting, what)
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
        type_ = _element_type(whole, key, setting, what)
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


def _since_epoch(micros: int) -> _Special:
    """Return the function of the time since the epoch, in units of some microseconds."""

    def units(operands: Sequence[Value], setting: Setting, _what: str) -> Value | None:
        if len(operands) != 1 or not isinstance(operands[0].type, TimestampType | TimestampNTZType):
            return None
        return since_epoch(operands[0].as_type(TIMESTAMP, setting), micros)

    return units


def _unix_timestamp(operands: Sequence[Value], setting: Setting, _what: str) -> Value | None:
    if len(operands) != 1 or not is_time(operands[0].type):
        return None
    micros = since_epoch(operands[0].as_type(TIMESTAMP, setting), 1).sql
    return Value(f"({micros} div 1000000L)", BIGINT)  # before 1970 too, Spark leaves the rest off


def _at(micros: int) -> _Special:
    """Return the function of the time so many units of some microseconds after the epoch."""

    def time(operands: Sequence[Value], setting: Setting, _what: str) -> Value | None:
        if len(operands) != 1 or not isinstance(operands[0].type, IntegralType):
            return None
        number, most = operands[0].as_type(BIGINT, setting).sql, RANGE // micros
        bad = f"{number} > {most} OR {number} < -{most}"
        count = failing_if(bad, number, "overflow: no such time")
        return Value(f"timestamp_micros({count} * {micros}L)", TIMESTAMP)

    return time


_SPECIAL: dict[str, _Special] = {
    "isnan": _isnan, "substring": _substring, "substr": _substring, "nvl2": _nvl2, "size": _size,
    "cardinality": _size, "struct": _struct, "named_struct": _named_struct,
    "array_contains": _holds, "array": _array,
    "date_trunc": _truncated,
    "element_at": _element_at("element_at"), "try_element_at": _element_at("try_element_at"),
    "unix_seconds": _since_epoch(10**6), "unix_millis": _since_epoch(10**3),
    "unix_micros": _since_epoch(1),
    "unix_timestamp": _unix_timestamp, "to_unix_timestamp": _unix_timestamp,
    "timestamp_seconds": _at(10**6), "timestamp_millis": _at(10**3),
}  # fmt: skip


# --- parts of values


def member(owner: Value, name: str, quoted: str, setting: Setting, what: str) -> Value:
    """Return a field of a struct."""
    if isinstance(owner.type, StructType):
        for field in owner.type:
            if field.name.casefold() == name.casefold():
                sql = f"{owner.sql}.{quoted}"  # of a NULL struct, what Arrow has in its place
                return Value(f"if({owner.sql} IS NULL, NULL, {sql})", field.dataType)
    raise _unknown(setting, what)


def element(whole: Value, key: Value, setting: Setting, what: str) -> Value:
    """Return an element of an array or map."""
    return Value(f"{whole.sql}[{key.sql}]", _element_type(whole, key, setting, what))


def _element_type(whole: Value, key: Value, setting: Setting, what: str) -> DataType:
    type_ = whole.type
    if isinstance(type_, ArrayType) and isinstance(key.type, IntegralType):
        return type_.elementType
    if isinstance(type_, MapType) and not has_floats(type_.keyType):
        own = Value("", type_.keyType)
        if isinstance(key.type, NullType) or common_type([own, key], setting, what) == own.type:
            return type_.valueType
    raise _unknown(setting, what)
