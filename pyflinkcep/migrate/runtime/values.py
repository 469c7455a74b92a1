# SPDX-License-Identifier: Apache-2.0
"""Comparisons, streams, iterators and times."""

from __future__ import annotations

import functools
import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyflinkcep.migrate.runtime.numbers import int64, java_max, java_min, present
from pyflinkcep.migrate.runtime.strings import compare_text, text


def compare(a: Any, b: Any) -> int:
    """
    Return -1, 0 or 1, as ``Double.compare`` does: NaN is the greatest, and 0.0 above -0.0.

    Examples
    --------
    >>> compare(1, 2), compare(float("nan"), 1.0), compare(0.0, -0.0)
    (-1, 1, 1)
    """
    a, b = present(a), present(b)
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return int(math.isnan(a)) - int(math.isnan(b))
        if a == b == 0:
            return int((math.copysign(1, a) - math.copysign(1, b)) / 2)
    return int(a > b) - int(a < b)


def stream_sum(values: Iterable[float]) -> float:
    """Return the sum of doubles as ``DoubleStream.sum`` computes it, with compensation."""
    total = compensation = simple = 0.0
    for value in values:
        simple += value
        changed = value - compensation
        velvel = total + changed
        compensation = (velvel - total) - changed
        total = velvel
    result = total - compensation
    return simple if math.isnan(result) and math.isinf(simple) else result


def stream_average(values: Iterable[Any]) -> float | None:
    """Return the average as ``average()`` of a stream does; None if there is no value."""
    listed = list(values)
    if not listed:
        return None
    if all(isinstance(value, int) for value in listed):
        return float(int64(sum(listed))) / len(listed)
    return stream_sum(listed) / len(listed)


def same_boxed(a: Any, b: Any) -> bool:
    """Whether ``==`` holds for two boxed values: from -128 to 127 they are the same objects."""
    if a is None or b is None or isinstance(a, bool):
        return a is b or bool(a == b)
    if isinstance(a, int) and isinstance(b, int):
        return a == b and -128 <= a <= 127
    return isinstance(a, str) and bool(a == b) and len(a) == 1 and ord(a) < 128


def equal_floats(a: float | None, b: float | None) -> bool:
    """Whether ``equals`` holds for two doubles, or both are null."""
    return a is b if a is None or b is None else compare(a, b) == 0


def stream_max(values: Iterable[float]) -> float | None:
    """Return the greatest double; None if there is none."""
    found: float | None = None
    for value in values:
        found = value if found is None else java_max(found, value)
    return found


def stream_min(values: Iterable[float]) -> float | None:
    """Return the least double; None if there is none."""
    found: float | None = None
    for value in values:
        found = value if found is None else java_min(found, value)
    return found


def first_of(values: Iterable[Any]) -> Any:
    """Return the first value; None if there is none."""
    return next(iter(values), None)


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return values without those that were there before."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def joined(values: Iterable[Any], separator: str = "") -> str:
    """Return the texts of values with a separator between."""
    return separator.join(map(text, values))


def item(values: Sequence[Any], index: int) -> Any:
    """Return an element; raise for an index below zero, as Java does."""
    if index < 0:
        raise IndexError(f"IndexOutOfBoundsException: index {index}")
    return values[index]


class Iterator:
    """
    An iterator that knows whether there is another element.

    Examples
    --------
    >>> iterator = Iterator([1])
    >>> iterator.has_next(), iterator.next(), iterator.has_next()
    (True, 1, False)
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)
        self._at = 0

    def has_next(self) -> bool:
        """Whether there is another element."""
        return self._at < len(self._values)

    def next(self) -> Any:
        """Return the next element; raise if there is none."""
        self._at += 1
        return self._values[self._at - 1]


def row_of(value: Any, *names: str) -> Any:
    """
    Return some fields of an event, which may have others; None for null.

    Examples
    --------
    >>> row_of({"user": "ann", "n": 2, "event_time": 7}, "user", "n")
    ('ann', 2)
    """
    if value is None:
        return None
    by_name = isinstance(value, dict | tuple)
    return tuple(value[name] if by_name else getattr(value, name) for name in names)


def fields_of(value: Any) -> Any:
    """Return an event as a dict that may be changed."""
    as_dict = getattr(value, "asDict", None)
    return dict(value) if as_dict is None else as_dict()


def rows_of(values: Iterable[Any] | None, *names: str) -> list[Any] | None:
    """Return some fields of each of some events."""
    return None if values is None else [row_of(value, *names) for value in values]


def current_millis() -> int:
    """Return the wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def values_of(match: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return a match of plain values with these in place of the events that have them."""
    return {stage: [event.value for event in events] for stage, events in match.items()}


def enum_of(name: str | None, *names: str) -> str:
    """Return the constant of an enum that has a name."""
    if present(name) not in names:
        raise ValueError(f"no constant is named {name!r}, but {', '.join(names)}")
    return present(name)


def ordinal(value: str | None, *names: str) -> int:
    """Return the place of a constant in its enum."""
    return names.index(present(value))


def millis(value: Any) -> int:
    """Return a time or duration in milliseconds."""
    known = present(value)
    if isinstance(known, int):
        return known
    if isinstance(known, timedelta):
        return known // timedelta(milliseconds=1)
    if isinstance(known, datetime):
        aware = known if known.tzinfo is not None else known.replace(tzinfo=UTC)
        return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if isinstance(known, date):
        return (known.toordinal() - date(1970, 1, 1).toordinal()) * 86_400_000
    raise TypeError(f"expected a time, got {known!r}")


def of_millis(value: int) -> timedelta:
    """Return a duration of milliseconds."""
    return timedelta(milliseconds=value)


def log(level: str, message: Any, *values: Any) -> None:
    """Write to the log of translated functions; ``{}`` stands for the next value."""
    pieces = text(message).split("{}")
    given: Sequence[Any] = values[: len(pieces) - 1]
    texts = [*map(text, given), *(["{}"] * (len(pieces) - 1 - len(given)))]
    joined = pieces[0] + "".join(t + p for t, p in zip(texts, pieces[1:], strict=True))
    logging.getLogger("pyflinkcep.migrated").log(getattr(logging, level.upper()), "%s", joined)


def time_of(value: int) -> datetime:
    """Return the time that is some milliseconds after 1970, in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)


def json_text(value: Any) -> str:
    """Return a map or an event as JSON without blanks."""
    return json.dumps(_jsonable(value), separators=(",", ":"), ensure_ascii=False, default=text)


def _jsonable(value: Any) -> Any:
    as_dict = getattr(value, "asDict", None)
    if as_dict is not None:
        value = as_dict()
    if isinstance(value, dict):
        return {key: _jsonable(one) for key, one in value.items()}
    return [_jsonable(one) for one in value] if isinstance(value, list | tuple | set) else value


class JsonObject(dict[str, Any]):
    """An object of JSON, whose missing members are None."""

    def __missing__(self, key: str) -> Any:
        return None


def json_object(value: str | None, names: dict[str, str] | None = None) -> Any:
    """
    Return the object that a text of JSON is, with other names for some of its members.

    Examples
    --------
    >>> found = json_object('{"user": "ann"}')
    >>> found["user"], found["age"]
    ('ann', None)
    """
    found = json.loads(present(value), object_hook=JsonObject)
    if names and isinstance(found, dict):
        return JsonObject({str(names.get(name, name)): member for name, member in found.items()})
    return found


def json_item(value: Any, key: str | int) -> Any:
    """
    Return a member of an object or array of JSON, or a field of a row; None if there is none.

    Examples
    --------
    >>> json_item([1, 2], 1), json_item([1, 2], 2), json_item(json_object('{"a": 3}'), "a")
    (2, None, 3)
    """
    known = present(value)
    if isinstance(known, dict):
        return known.get(key)
    if isinstance(key, int):
        return known[key] if isinstance(known, list) and 0 <= key < len(known) else None
    return getattr(known, key, None)


def json_find(value: Any, name: str) -> Any:
    """
    Return the first member of a name, at any depth; None if there is none.

    Examples
    --------
    >>> json_find(json_object('{"a": {"b": [{"c": 1}]}}'), "c")
    1
    """
    found = value.get(name) if isinstance(value, dict) else None
    if found is not None:
        return found
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((one for part in inner if (one := json_find(part, name)) is not None), None)


def json_as(value: Any, kind: str, *default: Any) -> Any:
    """
    Return a value of JSON as one of a type of Java, as ``asText()`` and ``asInt()`` do.

    Examples
    --------
    >>> json_as(5, "String"), json_as("12", "int"), json_as("x", "int"), json_as(None, "int", 7)
    ('5', 12, 0, 7)
    """
    if value is None and default:
        return default[0]
    known = present(value)
    if kind == "String":
        return (default[0] if default else "") if isinstance(known, dict | list) else text(known)
    if kind == "boolean":
        return known == "true" if isinstance(known, str) else bool(known)
    try:
        number = float(known) if kind == "double" else math.trunc(float(known))
    except (TypeError, ValueError, OverflowError):
        return default[0] if default else 0.0 if kind == "double" else 0
    is_exact = isinstance(known, int) and kind != "double"
    return int(known) if is_exact else number


def json_is(value: Any, kind: str) -> bool:
    """
    Whether a value of JSON is of a kind.

    Examples
    --------
    >>> json_is("a", "text"), json_is(True, "number"), json_is(1.5, "number")
    (True, False, True)
    """
    if isinstance(present(value), bool):
        return kind == "boolean"
    types: dict[str, tuple[type, ...]] = {
        "text": (str,), "number": (int, float), "int": (int,), "double": (float,),
        "array": (list,), "object": (dict,), "boolean": (),
    }  # fmt: skip
    return isinstance(value, types[kind])


class Rows:
    """Takes the rows of one event, as ``Collector`` does."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def collect(self, row: Any) -> None:
        """Add a row."""
        self.rows.append(row)


def collected(function: Callable[[Any, Any], None]) -> Callable[[Any], list[Any]]:
    """
    Return a function of an event that returns the rows that another one collects.

    Examples
    --------
    >>> collected(lambda event, out: out.collect(event + 1))(2)
    [3]
    """

    def rows(event: Any) -> list[Any]:
        out = Rows()
        function(event, out)
        return out.rows

    return rows


def natural_order(a: Any, b: Any) -> int:
    """
    Return a negative number, 0 or a positive one, as ``compareTo`` does.

    Examples
    --------
    >>> natural_order("a", "b"), natural_order(2, 2), natural_order(True, False)
    (-1, 0, 1)
    """
    return compare_text(a, b) if isinstance(a, str) else compare(a, b)


def in_order(values: Iterable[Any]) -> list[Any]:
    """
    Return values in their order.

    Examples
    --------
    >>> in_order([3, 1, 2])
    [1, 2, 3]
    """
    return sorted(values, key=functools.cmp_to_key(natural_order))


def reduced(values: Iterable[Any], function: Callable[[Any, Any], Any]) -> Any:
    """Return values combined by a function; None if there is none."""
    listed = list(values)
    return functools.reduce(function, listed) if listed else None


def merged(of: dict[Any, Any], key: Any, value: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Combine a value of a map with another one; return the new value."""
    before = of.get(key)
    of[key] = value if before is None else function(before, value)
    return of[key]


def computed(of: dict[Any, Any], key: Any, function: Callable[[Any], Any]) -> Any:
    """Return a value of a map, made and kept if there is none."""
    if of.get(key) is None:
        of[key] = function(key)
    return of[key]


def added(of: set[Any], value: Any) -> bool:
    """Add a value to a set; return whether it is new."""
    is_new = value not in of
    of.add(value)
    return is_new


def index_in(values: list[Any], value: Any) -> int:
    """Return the first place of a value; -1 if it is not there."""
    return values.index(value) if value in values else -1
