# SPDX-License-Identifier: Apache-2.0
"""The functions of one event that are known to have Spark's values on another engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pyflinkcep.expressions.sql_functions import FUNCTIONS
from pyflinkcep.expressions.sql_types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MAP,
    STRING,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    array_of,
)
from pyflinkcep.expressions.tree import quoted_name
from pyflinkcep.spark.plan.portable.casts import since_epoch, text_of
from pyflinkcep.spark.plan.portable.values import (
    RANGE,
    Setting,
    Value,
    chosen_type,
    common_type,
    failing_if,
    has_floats,
    listed,
)

_TAKEN = {
    **dict.fromkeys(
        ("lower", "lcase", "upper", "ucase", "trim", "ltrim", "rtrim", "btrim", "reverse",
         "octet_length", "bit_length", "length", "char_length", "character_length", "len",
         "ascii"), "s"),
    **dict.fromkeys(("replace", "translate"), "sss"),
    **dict.fromkeys(
        ("endswith", "contains", "instr", "locate", "position", "levenshtein"), "ss"),
    **dict.fromkeys(("left", "right", "repeat"), "s0"),
    **dict.fromkeys(("substring", "substr"), "si"),
    **dict.fromkeys(("split_part", "substring_index"), "ssi"),
    **dict.fromkeys(("lpad", "rpad"), "s0s"), "concat_ws": "ss", "nanvl": "xx", "isnan": "x",
    **dict.fromkeys(("md5", "sha1", "crc32"), "t"), "sha2": "ti",
    **dict.fromkeys(
        ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear",
         "weekday", "hour", "minute", "second", "last_day"), "c"),
    **dict.fromkeys(("date_add", "date_sub", "dateadd", "add_months"), "cn"),
    "unix_date": "d", **dict.fromkeys(("date_from_unix_date", "timestamp_micros"), "i"),
    "make_date": "iii",
    **dict.fromkeys(
        ("rand", "random", "uuid", "current_date", "curdate", "current_timestamp", "now"), ""),
}  # fmt: skip
"""
By function, what its arguments are: s anything with a text, t a text, i a whole number, n one of at
most 32 bits, 0 a literal from 0, x a number, c a time, d a date.
"""
_TYPES = {
    **dict.fromkeys(("bit_length", "levenshtein"), INT), "crc32": BIGINT,
    **dict.fromkeys(("md5", "sha1", "sha2", "split_part", "concat_ws", "uuid"), STRING),
    **dict.fromkeys(("nanvl", "rand", "random"), DOUBLE), "isnan": BOOLEAN,
    **dict.fromkeys(("timestamp_micros", "current_timestamp", "now"), TIMESTAMP),
    **dict.fromkeys(("current_date", "curdate"), DATE),
}  # fmt: skip
"""The types of those that are not computed in memory."""
_FORMS = {
    "isnan": "coalesce(isnan({0}), false)",
    "weekday": "cast(pmod(dayofweek({0}) + 5, 7) AS int)",
}
_TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def called(function: str, operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a function with Spark's value."""
    special = _SPECIAL.get(function)
    found = None if special is None else special(operands, setting, what)
    if found is not None:
        return found
    taken, count = _TAKEN.get(function), len(operands)
    if taken is None or not (count == len(taken) or (function == "concat_ws" and count > 2)):
        raise setting.unknown(what)
    taken += taken[-1:] * (count - len(taken))
    given = [_argument(of, value, setting, what) for of, value in zip(taken, operands, strict=True)]
    type_ = _TYPES.get(function) or FUNCTIONS[function].type_of([STRING for _ in given])
    assert type_ is not None
    return Value(_FORMS.get(function, f"{function}({', '.join(given)})").format(*given), type_)


def _argument(of: str, value: Value, setting: Setting, what: str) -> str:
    own = value.type
    if of == "s":
        return text_of(value, setting, what).sql
    if own == VOID or (of == "t" and own == STRING) or (of == "d" and own == DATE):
        return value.sql
    if of == "x" and own.is_number:
        return value.as_type(DOUBLE, setting).sql
    if of == "i" and own.is_whole:
        return value.sql if own.bits > 16 else value.as_type(INT, setting).sql
    if of == "n" and own.is_whole and own != BIGINT:
        return value.sql
    if of == "0" and isinstance(value.value, int) and value.value >= 0:
        return value.sql
    if of == "c" and own.is_time:
        setting.needs_utc(what, own)
        return value.sql
    raise setting.unknown(what)


# --- functions of their own

_Special = Callable[[Sequence[Value], Setting, str], Value | None]


def _isnan(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    if len(operands) == 1 and operands[0].type.is_float:
        return Value(f"coalesce(isnan({operands[0].sql}), false)", BOOLEAN)
    return None


def _substring(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
    if len(operands) != 3:
        return None
    begins, length = (value.value for value in operands[1:])
    if not (isinstance(begins, int) and isinstance(length, int) and begins >= 0 and length >= 0):
        raise setting.refused(
            what, "it counts from the end otherwise", "begin at 1 or later; write right(text, n)"
        )
    text = text_of(operands[0], setting, what).sql
    return Value(f"substring({text}, {begins}, {length})", STRING)


def _nvl2(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
    if len(operands) != 3:
        return None
    asked, *others = operands
    type_ = chosen_type(others, setting, what)
    known, other = (value.as_type(type_, setting).sql for value in others)
    return Value(f"if({asked.sql} IS NOT NULL, {known}, {other})", type_)


def _size(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    if len(operands) == 1 and operands[0].type.name in (ARRAY, MAP):
        return Value(f"cast(size({operands[0].sql}) AS int)", INT)
    return None


def _holds(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
    if len(operands) != 2:
        return None
    array, value = operands
    own = array.type.inner[0] if array.type.name == ARRAY else None
    if own is None or value.type == VOID:
        return None
    type_ = common_type([Value("", own), Value(value.sql, value.type)], setting, what)
    if has_floats(type_) or (own == STRING) != (value.type == STRING):
        return None
    array, value = array.as_type(array_of(type_), setting), value.as_type(type_, setting)
    found = f"array_contains({array.sql}, {value.sql})"
    unknown = f"size(filter({array.sql}, v -> v IS NULL)) > 0"
    return Value(f"if(({found}) OR NOT ({unknown}), {found}, NULL)", BOOLEAN)


def _array(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    type_ = chosen_type(operands, setting, what)
    values = [value.as_type(type_, setting) for value in operands]
    return Value(f"array({listed(values)})", array_of(type_))


def _struct(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    names = [value.sql[1:-1] for value in operands]
    if not all(value.sql == quoted_name(name) for value, name in zip(operands, names, strict=True)):
        return None
    return Value(f"struct({listed(operands)})", _of_fields(names, operands))


def _named_struct(operands: Sequence[Value], _setting: Setting, _what: str) -> Value | None:
    names, values = [name.value for name in operands[::2]], operands[1::2]
    if len(names) != len(values) or not all(isinstance(name, str) for name in names):
        return None
    return Value(f"named_struct({listed(operands)})", _of_fields(names, values))


def _of_fields(names: Sequence[str], values: Sequence[Value]) -> SqlType:
    return SqlType(STRUCT, inner=tuple(value.type for value in values), fields=tuple(names))


def _element_at(
    function: str, operands: Sequence[Value], setting: Setting, what: str
) -> Value | None:
    if len(operands) != 2:
        return None
    whole, key = operands
    return Value(f"{function}({listed(operands)})", _element_type(whole, key, setting, what))


def _truncated(operands: Sequence[Value], setting: Setting, what: str) -> Value | None:
    if len(operands) != 2 or str(operands[0].value).upper() not in _TRUNCATED:
        return None
    time = operands[1]
    if not time.type.is_time:
        return None
    if time.type != TIMESTAMP_NTZ:
        setting.needs_utc(what)
    time = time.as_type(TIMESTAMP, setting)
    return Value(f"date_trunc({operands[0].sql}, {time.sql})", TIMESTAMP)


def _since_epoch(
    micros: int, operands: Sequence[Value], setting: Setting, _what: str
) -> Value | None:
    """Return the time since the epoch, in units of some microseconds."""
    if len(operands) != 1 or operands[0].type not in (TIMESTAMP, TIMESTAMP_NTZ):
        return None
    return since_epoch(operands[0].as_type(TIMESTAMP, setting), micros)


def _unix_timestamp(operands: Sequence[Value], setting: Setting, _what: str) -> Value | None:
    if len(operands) != 1 or not operands[0].type.is_time:
        return None
    micros = since_epoch(operands[0].as_type(TIMESTAMP, setting), 1).sql
    return Value(f"({micros} div 1000000L)", BIGINT)  # before 1970 too, Spark leaves the rest off


def _at(micros: int, operands: Sequence[Value], setting: Setting, _what: str) -> Value | None:
    """Return the time so many units of some microseconds after the epoch."""
    if len(operands) != 1 or not operands[0].type.is_whole:
        return None
    number, most = operands[0].as_type(BIGINT, setting).sql, RANGE // micros
    bad = f"{number} > {most} OR {number} < -{most}"
    count = failing_if(bad, number, "overflow: no such time")
    return Value(f"timestamp_micros({count} * {micros}L)", TIMESTAMP)


_SPECIAL: dict[str, _Special] = {
    "isnan": _isnan, "substring": _substring, "substr": _substring, "nvl2": _nvl2, "size": _size,
    "cardinality": _size, "struct": _struct, "named_struct": _named_struct,
    "array_contains": _holds, "array": _array, "date_trunc": _truncated,
    **{name: partial(_element_at, name) for name in ("element_at", "try_element_at")},
    **{f"unix_{unit}": partial(_since_epoch, micros)
       for unit, micros in (("seconds", 10**6), ("millis", 10**3), ("micros", 1))},
    "unix_timestamp": _unix_timestamp, "to_unix_timestamp": _unix_timestamp,
    "timestamp_seconds": partial(_at, 10**6), "timestamp_millis": partial(_at, 10**3),
}  # fmt: skip


# --- parts of values


def member(owner: Value, name: str, setting: Setting, what: str) -> Value:
    """Return a field of a struct."""
    for field, type_ in zip(owner.type.fields, owner.type.inner, strict=False):
        if field.casefold() == name.casefold() and type_ is not None:
            sql = f"{owner.sql}.{quoted_name(name)}"  # of a NULL struct, what Arrow has there
            return Value(f"if({owner.sql} IS NULL, NULL, {sql})", type_)
    raise setting.unknown(what)


def element(whole: Value, key: Value, setting: Setting, what: str) -> Value:
    """Return an element of an array or map."""
    return Value(f"{whole.sql}[{key.sql}]", _element_type(whole, key, setting, what))


def _element_type(whole: Value, key: Value, setting: Setting, what: str) -> SqlType:
    keys, found = whole.type.inner[0] if whole.type.inner else None, None
    if whole.type.name == ARRAY and key.type.is_whole:
        found = keys
    elif (
        whole.type.name == MAP
        and keys is not None
        and not has_floats(keys)
        and (key.type == VOID or common_type([Value("", keys), key], setting, what) == keys)
    ):
        found = whole.type.inner[1]
    if found is None:
        raise setting.unknown(what)
    return found
