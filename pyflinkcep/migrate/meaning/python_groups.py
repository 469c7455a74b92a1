# SPDX-License-Identifier: Apache-2.0
"""Writes orders, groups, maps and regular expressions as Python."""

from __future__ import annotations

from pyflinkcep.migrate.meaning.python_streams import IN_BRACKETS
from pyflinkcep.migrate.meaning.python_writers import (
    ATOM,
    Operands,
    PythonWriter,
    Writer,
    dereferenced,
    function,
    helper,
    method,
    regex,
)
from pyflinkcep.migrate.meaning.tree import Call, Const, Untranslatable

__all__ = ["GROUPS"]


def _map_of(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    texts = [writer.write(operand) for operand in operands]
    pairs = (f"{key}: {value}" for key, value in zip(texts[::2], texts[1::2], strict=True))
    return f"{{{', '.join(pairs)}}}", ATOM


def _set_of(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    texts = [writer.write(operand) for operand in operands]
    return f"{{{', '.join(texts)}}}" if texts else "set()", ATOM


def _matcher(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    of, whole = operands
    if not isinstance(of, Call) or of.name != "regex":
        raise Untranslatable("a regular expression that is not known here")
    return (
        f"{writer.use('Matcher')}({regex(writer, of.operands[0])}, {writer.non_null(whole)})",
        ATOM,
    )


def _contains_all(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    whole, others = (writer.write(operand, 2) for operand in operands)
    return f"all(one in {whole} for one in {others})", ATOM


def _meets(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    first, second = (writer.write(operand, 2) for operand in operands)
    return f"any(one in {second} for one in {first})", ATOM


def _part(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    whole, first, last = operands
    start = "" if first == Const(0, first.type) else writer.write(first)
    return f"{dereferenced(writer, whole)}[{start}:{writer.write(last)}]", ATOM


def _while(name: str) -> Writer:
    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        of, test = operands
        writer.findings.imports.add(f"from itertools import {name}")
        return f"list({name}({writer.write(test)}, {writer.write(of)}))", ATOM

    return write


def _sorted_in_place(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    of, order = operands
    whole = writer.write(of, ATOM)
    return f"{whole}[:] = {writer.use('in_order')}({whole}, {writer.write(order)})", 0


def _removed(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    of, test = operands
    whole = writer.write(of, ATOM)
    inner = writer.write(test, ATOM)
    return f"{whole}[:] = [one for one in {whole} if not {inner}(one)]", 0


def _as_set(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    (of,) = operands
    while isinstance(of, Call) and of.name == "stream":
        (of,) = of.operands
    if isinstance(of, Call) and of.name in IN_BRACKETS and of.operands:
        return f"{{{IN_BRACKETS[of.name](writer, of.operands)}}}", ATOM
    return f"set({writer.write(operands[0])})", ATOM


def _range(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    first, last = operands
    start = "" if first == Const(0, first.type) else f"{writer.write(first)}, "
    return f"range({start}{writer.write(last)})", ATOM


def _joined(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    texts = [writer.write(operand) for operand in operands]
    if len(texts) < 3:
        return f"{writer.use('joined')}({', '.join(texts)})", ATOM
    written = f"{texts[2]} + {writer.use('joined')}({', '.join(texts[:2])})"
    return (f"{written} + {texts[3]}" if len(texts) > 3 else written), 6


GROUPS: dict[str, Writer] = {
    "Map.of": _map_of, "copy of map": function("dict"), "Set.of": _set_of, "matcher": _matcher,
    "Matcher.matches": method("matches"), "Matcher.find": method("find"),
    "Matcher.group": method("group"), "List.containsAll": _contains_all, "List.subList": _part,
    "List.indexOf": helper("index_in"), "List.sort": _sorted_in_place, "List.removeIf": _removed,
    "Set.add": helper("added"), "Set.addAll": method("update"),
    "Map.putIfAbsent": method("setdefault"), "Map.merge": helper("merged"),
    "Map.computeIfAbsent": helper("computed"),
    "Stream.takeWhile": _while("takewhile"),
    "Stream.dropWhile": _while("dropwhile"),
    "Stream.sorted": helper("in_order"), "Stream.maxBy": helper("greatest_by"),
    "Stream.minBy": helper("least_by"), "Stream.reduce": helper("reduced"),
    "Stream.joining": _joined, "Stream.toSet": _as_set,
    "List.meets": _meets,
    "bit count": lambda w, o: (f"({w.write(o[0], 7)} & 0xFFFFFFFF).bit_count()", ATOM),
    "Math.floorMod": lambda w, o: (f"{w.write(o[0], 7)} % {w.write(o[1], 8)}", 7),
    "Math.floorDiv": lambda w, o: (f"{w.write(o[0], 7)} // {w.write(o[1], 8)}", 7),
    "compared by": lambda w, o: (f"({w.write(o[0])})({w.write(o[1])}, {w.write(o[2])})", ATOM),
    "array of": lambda w, o: (f"[{w.write(o[0])}] * {w.write(o[1], 7)}", 7),
    "chars": helper("chars"),
    "range": _range,
    "grouped": helper("grouped"), "as map": helper("as_map"),
    "natural order": lambda w, _: (w.use("natural_order"), ATOM),
    "order by": helper("order_by"), "reversed order": helper("reversed_order"),
    "then order": helper("then_order"),
}  # fmt: skip
"""By the name of the call, what writes it."""
