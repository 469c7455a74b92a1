# SPDX-License-Identifier: Apache-2.0
"""
Operations that methods of Java become, and how Python and SQL write them.

A template of Python names operands ``a``, ``b``, ``c`` and ``d``, or ``*all``; names of the runtime
are imported where they are used. ``present(a)`` is `a` alone if it is known not to be null,
``held(a)`` is a list that a match has to have, ``regex(a)`` a regular expression as Python has it.
An operation without a template has a function that writes it, in ``python.py``.
"""

from __future__ import annotations

import attrs


@attrs.frozen(eq=False)
class Operation:
    """What a call does: two are the same only if they are one object."""

    name: str  # As messages have it
    python: str = ""  # A template of Python
    sql: str = ""  # A template of SQL, with operands {0}, {1}; only of the event's own values
    nullable: bool = False  # Whether the result may be null
    makes_list: bool = False  # Whether the result is a list that nothing else holds
    changes: bool = False  # Whether the first operand, a list or map, is changed
    has_effect: bool = False  # Whether it may not be computed twice, or at another place
    is_part: bool = False  # Whether the result is a part of the first operand, no copy


# --- what Java implies

NOT_NULL = Operation("not null", is_part=True)
IS_NULL = Operation("is null", "a is None")
EQUALS = Operation("equals")
SAME = Operation("Objects.equals")
SAME_BOXED = Operation("same boxed", "same_boxed(a, b)")
COMPARE = Operation("compare", "compare(a, b)")
COPY = Operation("copy", "a", is_part=True)
OR_ELSE = Operation("or else", "or_else(a, b)", nullable=True)
STEP = Operation("step", has_effect=True)
ORDINAL = Operation("ordinal", "ordinal(*all)")
ENUM_OF = Operation("enum of", "enum_of(*all)")
NAME_OF = Operation("name of", "present(a)")
ROW_OF = Operation("row of", "row_of(*all)")
ROWS_OF = Operation("rows of", "rows_of(*all)")
ARRAY_OF = Operation("array of", "[a] * b")
LOG = Operation("log", "log(*all)")
PRINT = Operation("print")

# --- of matches

EVENTS = Operation("events", "list(ctx.getEventsForPattern(a))", makes_list=True)
TIMESTAMP = Operation("ctx.timestamp", "ctx.timestamp()")
PROCESSING_TIME = Operation("ctx.currentProcessingTime", "ctx.currentProcessingTime()")
OUTPUT = Operation("ctx.output")
COLLECT = Operation("collect", "a.collect(b)")

# --- texts

CONCAT = Operation("concat")
APPEND = Operation("append")
TEXT = Operation("text")
TO_STRING = Operation("toString")
BUILDER = Operation("builder", "a")
CONTAINS = Operation("contains", "b in a", "contains({0}, {1})")
STARTS_WITH = Operation("startsWith", "a.startswith(b)", "startswith({0}, {1})")
ENDS_WITH = Operation("endsWith", "a.endswith(b)", "endswith({0}, {1})")
MATCHES = Operation("matches", "java_matches(a, regex(b))")
IS_EMPTY = Operation("isEmpty", "len(a) == 0")
EMPTY_OR_NULL = Operation("StringUtils.isEmpty", "not a")
BLANK_OR_NULL = Operation("StringUtils.isBlank", "a is None or is_a_blank(a)")
LOWER = Operation("toLowerCase", "a.lower()", "lower({0})")
UPPER = Operation("toUpperCase", "a.upper()", "upper({0})")
CHARS = Operation("chars", "chars(a)")
JOINING = Operation("joining", "joined(*all)")
JOINING_AFTER = Operation("joining", "c + joined(a, b)")
JOINING_AROUND = Operation("joining", "c + joined(a, b) + d")
REPLACE_ALL = Operation("replaceAll", "re.sub(regex(b), c, present(a))")
FORMAT = Operation("String.format", "java_format(*all)")
PARSE_BOOLEAN = Operation("parse boolean", "parse_boolean(a)")
PARSE = {
    "int": Operation("parse int", "parse_int(a, 32)"),
    "long": Operation("parse long", "parse_int(a, 64)"),
    "double": Operation("parse double", "parse_double(a)"),
}

# --- numbers

IS_NAN = Operation("isNaN", "math.isnan(a)", "isnan({0})")
ABS = Operation("Math.abs", "abs(a)", "abs({0})")
ABS_INT = Operation("Math.abs", "java_abs(a, 32)")
ABS_LONG = Operation("Math.abs", "java_abs(a, 64)")
ROUND = Operation("Math.round", "java_round(a, 64)")
ROUND_FLOAT = Operation("Math.round", "java_round(a, 32)")
MAX = Operation("Math.max", "java_max(a, b)", "greatest({0}, {1})")
MIN = Operation("Math.min", "java_min(a, b)", "least({0}, {1})")
POW = Operation("Math.pow", "java_pow(a, b)")
DECIMAL = Operation("BigDecimal")

# --- times

TIME_OF_MILLIS = Operation("time of millis", "time_of(a)")
MILLIS_OF = Operation("millis of", "millis(a)")
DURATION = Operation("Duration.of", "of_millis(a * b)")

# --- lists and maps

LIST = Operation("List.of", "[*all]", makes_list=True)
LIST_OF = Operation("copy of", makes_list=True)
SET = Operation("Set.of")
MAP = Operation("Map.of")
MAP_OF = Operation("copy of map", "dict(a)")
SIZE = Operation("List.size", "len(held(a))")
NO_ELEMENTS = Operation("List.isEmpty", "len(a) == 0")
HAS_ANY = Operation("has any", "bool(a)")
HAS = Operation("List.contains", "b in a")
MEETS = Operation("List.meets", "any(one in b for one in a)")
GET = Operation("List.get", nullable=True, is_part=True)
FIRST = Operation("List.getFirst", is_part=True)
LAST = Operation("List.getLast", "held(a)[-1]", is_part=True)
ADD = Operation("List.add", "a.append(b)", changes=True)
ADD_ALL = Operation("List.addAll", "a.extend(b)", changes=True)
CLEAR = Operation("List.clear", "a.clear()", changes=True)
REMOVE_IF = Operation("List.removeIf", changes=True)
SORT = Operation("List.sort", changes=True)
ADD_TO_SET = Operation("Set.add", "added(a, b)", changes=True, has_effect=True)
ADD_ALL_TO_SET = Operation("Set.addAll", "a.update(b)", changes=True)
ITERATOR = Operation("iterator", "Iterator(a)")
NEXT = Operation("Iterator.next", "a.next()", has_effect=True)
HAS_NEXT = Operation("Iterator.hasNext", "a.has_next()")
RANGE = Operation("range")
RANGE_TO_LAST = Operation("rangeClosed")
MAP_GET = Operation("Map.get", "a.get(b)", nullable=True, is_part=True)
PUT = Operation("Map.put", "a.update({b: c})", changes=True)
MERGE = Operation("Map.merge", "merged(*all)", changes=True, has_effect=True)
COMPUTE = Operation("Map.computeIfAbsent", "computed(a, b, c)", changes=True, has_effect=True,
                    is_part=True)  # fmt: skip
ENTRIES = Operation("Map.entrySet", "a.items()", is_part=True)
KEY = Operation("Entry.getKey", "held(a)[0]")
VALUE = Operation("Entry.getValue", "a[1]", is_part=True)

# --- streams: lists

STREAM = Operation("stream", "held(a)")
FILTER = Operation("Stream.filter", makes_list=True)
MAPPED = Operation("Stream.map", makes_list=True)
FLAT_MAPPED = Operation("Stream.flatMap", makes_list=True)
ANY_MATCH = Operation("Stream.anyMatch")
ALL_MATCH = Operation("Stream.allMatch")
NONE_MATCH = Operation("Stream.noneMatch")
LIMIT = Operation("Stream.limit", "a[:b]")
SKIP = Operation("Stream.skip", "a[b:]")
COUNT = Operation("Stream.count", "len(a)")
TO_LIST = Operation("Stream.toList", makes_list=True)
TO_SET = Operation("Stream.toSet")
SUM = Operation("Stream.sum")
REDUCED = Operation("Stream.reduce", "reduced(a, b)")

# --- JSON

JSON = Operation("json", "json_text(a)")
JSON_OF = Operation("json of")
JSON_ITEM = Operation("json item", "json_item(a, b)", nullable=True)
JSON_FIND = Operation("json find", "json_find(a, b)", nullable=True)
JSON_AS = Operation("json as", "json_as(*all)")
JSON_IS = Operation("json is", "json_is(a, b)")

TIMEDELTAS = {
    unit: Operation(f"timedelta of {unit}", f"timedelta({unit}=a)")
    for unit in ("milliseconds", "seconds", "minutes", "hours", "days")
}
