# SPDX-License-Identifier: Apache-2.0
"""Java's numbers and strings in Python, for translated functions."""

# isort: off
# fmt: off
from pyflinkcep.migrate.runtime.numbers import (
    decimal, div_float, div_int, float32, int32, int64, java_abs, java_math, java_max, java_min,
    java_pow, java_round, kept_if, mapped, narrowed, not_translated, or_else, present,
    rem_float, rem_int, to_float32, truncated,
)
from pyflinkcep.migrate.runtime.strings import (
    char_at, char_is, chars, compare_text, equals_ignore_case, float_text,
    index_of, is_a_blank, is_blank_or_null, java_format, java_matches, java_split,
    last_index_of, length, parse_boolean, parse_double, parse_int, replace_text,
    substring, text, time_text, trim,
)
from pyflinkcep.migrate.runtime.values import (
    Iterator, added, collected, compare, computed, current_millis, distinct, enum_of,
    equal_floats, fields_of, first_of, in_order, index_in, item, joined, json_as, json_find,
    json_is, json_item, json_object, json_text, log, merged, millis, of_millis, ordinal,
    reduced, row_of, rows_of, same_boxed, stream_average, stream_max, stream_min, stream_sum,
    time_of, values_of,
)

__all__ = [
    "Iterator", "added", "char_at", "char_is", "chars", "collected", "compare",
    "compare_text", "computed", "current_millis", "decimal", "distinct", "div_float", "div_int",
    "enum_of", "equal_floats", "equals_ignore_case", "fields_of", "first_of", "float32",
    "float_text", "in_order", "index_in", "index_of", "int32", "int64", "is_a_blank",
    "is_blank_or_null", "item", "java_abs", "java_format", "java_matches",
    "java_math", "java_max", "java_min", "java_pow", "java_round", "java_split", "joined",
    "json_as", "json_find", "json_is", "json_item", "json_object", "json_text", "kept_if",
    "last_index_of", "length", "log", "mapped", "merged", "millis", "narrowed",
    "not_translated", "of_millis", "or_else", "ordinal", "parse_boolean", "parse_double",
    "parse_int", "present", "reduced", "rem_float", "rem_int", "replace_text", "row_of",
    "rows_of", "same_boxed", "stream_average", "stream_max", "stream_min",
    "stream_sum", "substring", "text", "time_of", "time_text", "to_float32",
    "trim", "truncated", "values_of",
]
