# SPDX-License-Identifier: Apache-2.0
"""Methods of times, durations and big numbers."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.types import BOOLEAN, INT, LONG, STRING
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression

__all__ = ["time_call"]

_TIMES = (
    "Duration", "Instant", "Date", "Timestamp", "LocalDateTime", "ZonedDateTime", "LocalDate",
)  # fmt: skip
_DECIMAL = JavaType("BigDecimal")
_PARTS = {"getHour": "hour", "getMinute": "minute", "getSecond": "second", "getYear": "year",
          "getMonthValue": "month", "getDayOfMonth": "day"}  # fmt: skip
_DURATIONS = {"toMillis": 1, "getSeconds": 1000, "toSeconds": 1000, "toMinutes": 60_000,
              "toHours": 3_600_000, "toDays": 86_400_000}  # fmt: skip


def _of_time(owner: Expression, name: str, operands: tuple[Expression, ...]) -> Expression | None:
    if name in _DURATIONS and owner.type.name == "Duration" and not operands:
        match owner:
            case Call("Duration.of", (Const(value=int(count)), Const(value=int(unit)))):
                return Const(count * unit // _DURATIONS[name], LONG)
        return Call("Duration.to", (owner, Const(_DURATIONS[name], INT)), LONG)
    utc = (
        len(operands) == 1 and isinstance(operands[0], Const) and operands[0].value in ("UTC", "Z")
    )
    if name in ("atZone", "atOffset") and utc and owner.type.name == "Instant":
        return Call("copy", (owner,), JavaType("ZonedDateTime"))
    same = len(operands) == 1 and operands[0].type == owner.type
    if name in ("isAfter", "isBefore", "after", "before") and same:
        return Call(name.removeprefix("is").lower(), (owner, *operands), BOOLEAN)
    if name in _PARTS and owner.type.name in ("LocalDateTime", "ZonedDateTime", "LocalDate"):
        return Call(f"time.{_PARTS[name]}", (owner,), INT)
    if name in ("toEpochMilli", "getTime") and not operands:
        if isinstance(owner, Call) and owner.name == "time of millis":
            return owner.operands[0]
        return Call("millis of", (owner,), LONG)
    if name == "compareTo" and len(operands) == 1 and owner.type.name != "Duration":
        return Call("compare", (owner, *operands), INT)
    if name == "compareTo" and len(operands) == 1:
        return Call("compare", (owner, *operands), INT)
    return None


def time_call(owner: Expression, name: str, operands: tuple[Expression, ...]) -> Expression | None:
    """Return a method of a time, duration or BigDecimal; None for others."""
    if owner.type == _DECIMAL:
        return _of_decimal(owner, name, operands)
    return _of_time(owner, name, operands) if owner.type.name in _TIMES else None


def _of_decimal(
    owner: Expression, name: str, operands: tuple[Expression, ...]
) -> Expression | None:
    if name == "compareTo" and len(operands) == 1 and operands[0].type == _DECIMAL:
        return Call("compare", (owner, *operands), INT)
    if name in ("add", "subtract", "multiply") and len(operands) == 1:
        return Call(f"BigDecimal.{name}", (owner, *operands), owner.type)
    if name == "signum" and not operands:
        zero = Call("BigDecimal.of", (Const("0", STRING),), owner.type)
        return Call("compare", (owner, zero), INT)
    if name == "doubleValue":
        return Call("BigDecimal.doubleValue", (owner,), JavaType("double"))
    if name in ("intValue", "longValue") and not operands:
        return Call("BigDecimal.longValue", (owner,), LONG)
    return None
