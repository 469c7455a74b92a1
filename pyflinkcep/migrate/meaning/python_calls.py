# SPDX-License-Identifier: Apache-2.0
"""Writes calls of Java's library as Python."""

from __future__ import annotations

import re

from pyflinkcep.migrate.java.types import INT, UNKNOWN, unboxed
from pyflinkcep.migrate.meaning.constants import Inside, f_string
from pyflinkcep.migrate.meaning.python_groups import GROUPS
from pyflinkcep.migrate.meaning.python_streams import STREAMS
from pyflinkcep.migrate.meaning.python_writers import (
    ATOM,
    COMPARED,
    PLUS,
    Compared,
    Operands,
    PythonWriter,
    Writer,
    dereferenced,
    events_of,
    function,
    helper,
    listed_again,
    method,
    regex,
)
from pyflinkcep.migrate.meaning.tree import Binary, Call, Const, Expression, Untranslatable

__all__ = ["CALLS", "COMPARISONS", "TYPED_BOOL"]

TYPED_BOOL = frozenset({
    "is null", "equalsIgnoreCase", "isBlank", "matches", "same boxed", "isNaN", "has any",
    "StringUtils.isBlank", "StringUtils.isEmpty", "Iterator.hasNext",
    "Stream.anyMatch", "Stream.allMatch", "Stream.noneMatch", "parse boolean",
})  # fmt: skip
"""Calls whose Python text mypy knows to be a bool."""


def _contains(writer: PythonWriter, operands: Operands) -> tuple[str, str, str]:
    whole, part = operands
    return writer.write(part, PLUS), "in", writer.write(whole, PLUS)


def _concat(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    pieces, inside = _pieces(operands), writer.inside()
    texts = [
        piece.value if isinstance(piece, Const) and isinstance(piece.value, str)
        else Inside(text_of_value(inside, piece))
        for piece in pieces
    ]  # fmt: skip
    found = f_string(texts, writer.quote)
    return (_added(writer, pieces), PLUS) if found is None else (found, ATOM)


def _pieces(operands: Operands) -> list[Expression]:
    found: list[Expression] = []
    for operand in operands:
        if isinstance(operand, Call) and operand.name == "concat":
            found += _pieces(operand.operands)
        else:
            found.append(operand)
    return found


def _added(writer: PythonWriter, pieces: list[Expression]) -> str:
    texts = [
        writer.write(piece, PLUS) if _is_text(piece) and isinstance(piece, Const)
        else text_of_value(writer, piece, always=True)
        for piece in pieces
    ]  # fmt: skip
    return " + ".join(texts)


def _is_text(of: Expression) -> bool:
    return isinstance(of, Const) and isinstance(of.value, str)


def text_of_value(writer: PythonWriter, of: Expression, *, always: bool = False) -> str:
    """Return a value as the text that Java makes of it."""
    type_ = unboxed(of.type).name
    if isinstance(of, Const) and type_ in ("int", "long") and not always:
        return writer.write(of)
    if type_ in ("String", "StringBuilder", "StringBuffer", "char") and writer.is_known(of):
        return writer.write(of, PLUS)
    if type_ in ("int", "long", "short", "byte") and not always and writer.is_known(of):
        return writer.write(of)
    return _as_text(writer, type_, writer.write(of))


def _as_text(writer: PythonWriter, type_: str, written: str) -> str:
    """Return a value of a Java type as the text that Java makes of it."""
    if type_ in _TIMES:
        return f"{writer.use('time_text')}({written}, {writer.constant(type_)})"
    if type_ in ("ZonedDateTime", "OffsetDateTime", "Calendar"):
        raise Untranslatable(f"the text of a {type_}")
    return f"{writer.use('float_text' if type_ == 'float' else 'text')}({written})"


_TIMES = ("Timestamp", "Date", "Instant", "LocalDateTime", "LocalDate", "Duration")


def _text(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    return text_of_value(writer, operands[0], always=True), ATOM


def _to_string(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    (of,) = operands
    if of.type.name in ("String", "StringBuilder", "StringBuffer"):
        return writer.non_null(of), ATOM
    if writer.is_known(of):
        return text_of_value(writer, of, always=True), ATOM
    return _as_text(writer, unboxed(of.type).name, writer.non_null(of)), ATOM


def _matches(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    whole, pattern = operands
    written = regex(writer, pattern)
    return f"{writer.use('java_matches')}({writer.write(whole)}, {written})", ATOM


def _split(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    whole, pattern, *limit = operands
    texts = [writer.write(whole), regex(writer, pattern), *map(writer.write, limit)]
    return f"{writer.use('java_split')}({', '.join(texts)})", ATOM


def _replaced(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    whole, pattern, other = operands
    plain = isinstance(other, Const) and not set(str(other.value)) & set("$\\")
    if not plain:
        raise Untranslatable("replaceAll() with groups")
    writer.findings.imports.add("import re")
    return (
        f"re.sub({regex(writer, pattern)}, {writer.write(other)}, {writer.non_null(whole)})",
        ATOM,
    )


def _absolute(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    (of,) = operands
    bits = {"int": 32, "long": 64}.get(unboxed(of.type).name)
    if bits is None:
        return f"abs({writer.write(of)})", ATOM
    return f"{writer.use('java_abs')}({writer.write(of)}, {bits})", ATOM


def _rounded(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    (of,) = operands
    bits = 32 if unboxed(of.type).name == "float" else 64
    return f"{writer.use('java_round')}({writer.write(of)}, {bits})", ATOM


def _math(name: str) -> Writer:
    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        writer.findings.imports.add("import math")
        return f"math.{name}({', '.join(writer.write(operand) for operand in operands)})", ATOM

    return write


def _java_math(name: str) -> Writer:
    return helper("java_math", name)


def _compared(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    return f"{writer.use('compare')}({', '.join(writer.write(o) for o in operands)})", ATOM


def _parsed(name: str, bits: int) -> Writer:
    return helper(name, bits) if bits else helper(name)


def _events(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    return f"list({events_of(writer, Call('events', operands, UNKNOWN))})", ATOM


def _item(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    whole, index = operands
    if index == Const(0, INT) and isinstance(whole, Call) and whole.name == "events":
        return _first(writer, operands)
    written = dereferenced(writer, whole)
    if isinstance(index, Const) and isinstance(index.value, int) and index.value >= 0:
        return f"{written}[{index.value}]", ATOM
    size = _last_of(whole, index)
    if size:
        return f"{written}[-{size}]", ATOM
    return f"{writer.use('item')}({written}, {writer.write(index)})", ATOM


def _size(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    return f"len({dereferenced(writer, operands[0])})", ATOM


def _last_of(whole: Expression, index: Expression) -> int:
    """Return n for ``size() - n`` of the same list; otherwise 0."""
    match index:
        case Binary("-", Call(name="List.size", operands=(same,)), Const(value=int(n))):
            return n if same == whole and n > 0 else 0
    return 0


def _first(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    if isinstance(operands[0], Call) and operands[0].name == "events":
        return f"next(iter({events_of(writer, operands[0])}))", ATOM
    return f"{dereferenced(writer, operands[0])}[0]", ATOM


def _last(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    return f"{dereferenced(writer, operands[0])}[-1]", ATOM


def _is_empty(writer: PythonWriter, operands: Operands) -> tuple[str, str, str]:
    return f"len({writer.write(operands[0])})", "==", "0"


def _has_any(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    return f"bool({writer.write(operands[0])})", ATOM


def _part(name: str) -> Writer:
    return lambda writer, operands: (f"{writer.write(operands[0], ATOM)}.{name}", ATOM)


def _decimal(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    writer.findings.imports.add("from decimal import Decimal")
    digits = operands[0].value if isinstance(operands[0], Const) else None
    if isinstance(digits, str) and digits.lstrip("-").isdigit():
        return f"Decimal({int(digits)})", ATOM
    return f"Decimal({writer.write(operands[0])})", ATOM


def _plain(text: str) -> Writer:
    return lambda _, __: (text, ATOM)


def _or_else(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    a, b = operands
    return f"{writer.use('or_else')}({writer.write(a)}, {writer.write(b)})", ATOM


def _first_written(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    return writer.write(operands[0], PLUS), PLUS


_FORMATS = re.compile(r"%[-+0 ,#]*\d*(?:\.\d+)?(.|\n|)")


def _formatted(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    pattern = operands[0].value if isinstance(operands[0], Const) else None
    kinds = _FORMATS.findall(pattern) if isinstance(pattern, str) else [""]
    if not set(kinds) <= set("sdfxXcbn%"):
        raise Untranslatable("String.format() with an unusual pattern")
    return helper("java_format")(writer, operands)


def _json_of(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    text, *names = (writer.write(operand) for operand in operands)
    pairs = [f"{key}: {value}" for key, value in zip(names[::2], names[1::2], strict=True)]
    more = f", {{{', '.join(pairs)}}}" if pairs else ""
    return f"{writer.use('json_object')}({text}{more})", ATOM


def _logged(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    return helper("log")(writer, operands)


def _printed(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    texts = [text_of_value(writer, operand, always=True) for operand in operands]
    return f"print({', '.join(texts)})", ATOM


def _optional_map(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    of, function = operands
    return f"{writer.use('mapped')}({writer.write(of)}, {writer.write(function)})", ATOM


def _optional_filter(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    of, function = operands
    return f"{writer.use('kept_if')}({writer.write(of)}, {writer.write(function)})", ATOM


def _stepped(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    counter, step, later = operands
    name, by = writer.write(counter), step.value if isinstance(step, Const) else 1
    wrap = writer.use("int32" if unboxed(counter.type).name == "int" else "int64")
    sign = "+" if by == 1 else "-"
    written = f"({name} := {wrap}({name} {sign} 1))"
    if later == Const(True, later.type):
        return f"{written} {'-' if by == 1 else '+'} 1", PLUS
    return written, ATOM


def _in_unit(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    """Write a duration in a unit: Java rounds its seconds down, and larger units towards zero."""
    of, unit = operands
    size = unit.value if isinstance(unit, Const) and isinstance(unit.value, int) else 1
    millis = f"{writer.use('millis')}({writer.write(of)})"
    if size == 1:
        return millis, ATOM
    if size == 1000:
        return f"{millis} // 1000", 7
    return f"{writer.use('div_int')}({millis} // 1000, {size // 1000})", ATOM


def _timedelta(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    unit, amount = operands
    writer.findings.imports.add("from datetime import timedelta")
    assert isinstance(unit, Const)
    return f"timedelta({unit.value}={writer.write(amount)})", ATOM


def _assigned(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    target, value = operands
    return f"({writer.write(target)} := {writer.write(value)})", ATOM


def _output(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    raise Untranslatable("ctx.output() in an expression")


COMPARISONS: dict[str, Compared] = {
    "is null": lambda w, o: (w.write(o[0], PLUS), "is", "None"),
    "contains": _contains, "List.contains": _contains, "Map.containsKey": _contains,
    "Map.containsValue": lambda w, o: (
        w.write(o[1], PLUS), "in", f"{w.write(o[0], ATOM)}.values()"),
    "isEmpty": _is_empty, "List.isEmpty": _is_empty,
}  # fmt: skip
"""By the name of the call, what writes it as a comparison, which ``!`` turns."""

CALLS: dict[str, Writer] = {
    "equalsIgnoreCase": helper("equals_ignore_case"),
    "startsWith": method("startswith"), "endsWith": method("endswith"), "matches": _matches,
    "isBlank": helper("is_a_blank"), "length": helper("length"),
    "toLowerCase": method("lower"), "toUpperCase": method("upper"), "trim": helper("trim"),
    "strip": helper("strip_white"), "substring": helper("substring"),
    "charAt": helper("char_at"), "indexOf": helper("index_of"),
    "lastIndexOf": helper("last_index_of"), "replace": helper("replace_text"),
    "concat": _concat, "compareTo": helper("compare_text"),
    "compareToIgnoreCase": helper("compare_text", True), "hashCode": helper("java_hash"),
    "split": _split, "replaceAll": _replaced,
    "repeat": lambda w, o: (f"{w.write(o[0], 7)} * {w.write(o[1], 7)}", 7),
    "text": _text, "toString": _to_string, "name of": lambda w, o: (w.non_null(o[0]), ATOM),
    "builder": _first_written, "same boxed": helper("same_boxed"), "compare": _compared,
    "isNaN": _math("isnan"), "isInfinite": _math("isinf"), "parse int": _parsed("parse_int", 32),
    "parse long": _parsed("parse_int", 64), "parse double": _parsed("parse_double", 0),
    "parse boolean": helper("parse_boolean"), "ordinal": helper("ordinal"),
    "enum of": helper("enum_of"), "joiner": helper("StringJoiner"),
    "joiner.add": method("add"),
    "StringUtils.isEmpty": lambda w, o: (f"not {w.write(o[0], 4)}", 4),
    "StringUtils.isBlank": helper("is_blank_or_null"), "String.format": _formatted,
    "Math.abs": _absolute, "Math.max": helper("java_max"), "Math.min": helper("java_min"),
    "Math.round": _rounded, "Math.pow": helper("java_pow"),
    **{f"Math.{name}": _java_math(name) for name in (
        "sqrt", "floor", "ceil", "exp", "log", "log10", "sin", "cos", "tan", "hypot", "signum",
        "toRadians", "toDegrees", "atan2", "asin", "acos", "atan", "rint", "cbrt",
    )},
    "events": _events, "ctx.timestamp": _plain("ctx.timestamp()"),
    "ctx.currentProcessingTime": _plain("ctx.currentProcessingTime()"),
    "System.currentTimeMillis": helper("current_millis"), "millis of": helper("millis"),
    "Duration.of": lambda w, o: (
        f"{w.use('of_millis')}({w.write(o[0], 7)} * {w.write(o[1])})", ATOM),
    "Duration.between": lambda w, o: (f"{w.write(o[1], PLUS)} - {w.write(o[0], 7)}", PLUS),
    "Duration.to": _in_unit, "timedelta": _timedelta,
    "after": lambda w, o: (f"{w.write(o[0], PLUS)} > {w.write(o[1], PLUS)}", COMPARED),
    "before": lambda w, o: (f"{w.write(o[0], PLUS)} < {w.write(o[1], PLUS)}", COMPARED),
    **{f"time.{name}": _part(name) for name in (
        "hour", "minute", "second", "year", "month", "day")},
    "BigDecimal.of": _decimal, "BigDecimal.doubleValue": function("float"),
    "BigDecimal.longValue": function("int"),
    **{f"BigDecimal.{name}": helper("decimal", name) for name in (
        "add", "subtract", "multiply")},
    "row of": helper("row_of"), "rows of": helper("rows_of"),
    "copy": lambda w, o: (w.write(o[0], ATOM), ATOM),
    "time of millis": helper("time_of"), "Optional.map": _optional_map,
    "Optional.flatMap": _optional_map, "Optional.filter": _optional_filter,
    **{f"Character.{name}": helper("char_is", name) for name in (
        "isDigit", "isLetter", "isLetterOrDigit", "isUpperCase", "isLowerCase", "isWhitespace",
    )},
    "json": helper("json_text"), "json of": _json_of, "json item": helper("json_item"),
    "json find": helper("json_find"), "json as": helper("json_as"), "json is": helper("json_is"),
    "or else": _or_else, "append": _concat,
    "List.get": _item, "List.size": _size,
    "List.getFirst": _first, "List.getLast": _last,
    "List.add": method("append"), "List.addAll": method("extend"),
    "List.clear": method("clear"), "copy of": listed_again, "has any": _has_any,
    "iterator": helper("Iterator"), "Iterator.next": method("next"),
    "Iterator.hasNext": method("has_next"), "Map.get": method("get"),
    "Map.getOrDefault": method("get"),
    "Map.keySet": method("keys"), "Map.values": method("values"),
    "Map.entrySet": method("items"), "Entry.getKey": _first,
    "Entry.getValue": lambda w, o: (f"{w.write(o[0], ATOM)}[1]", ATOM),
    "Map.put": lambda w, o: (
        f"{w.write(o[0], ATOM)}.update({{{w.write(o[1])}: {w.write(o[2])}}})", ATOM),
    **STREAMS, **GROUPS,
    "step": _stepped, "assign": _assigned,
    "collect": lambda w, o: (f"{w.write(o[0], ATOM)}.collect({w.write(o[1])})", ATOM),
    "ctx.output": _output, "log": _logged, "print": _printed,
}  # fmt: skip
"""By the name of the call, what writes it."""
