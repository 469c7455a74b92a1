# SPDX-License-Identifier: Apache-2.0
"""Writes calls of Java's library as Python."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from pyflinkcep.migrate.java.project import INT, UNKNOWN, unboxed
from pyflinkcep.migrate.meaning.reading import Findings
from pyflinkcep.migrate.meaning.tree import Binary, Call, Const, Expression, Lambda, Untranslatable

_OTHER = {'"': "'", "'": '"'}


def constant(value: object, quote: str = '"') -> str:
    r"""
    Return a constant as Python writes it, a string with fewer escapes if the other quote has them.

    Examples
    --------
    >>> print(constant("it's"), constant('say "no"'), constant("\\ \0"), constant(float("inf")))
    "it's" 'say "no"' "\\ \x00" float("inf")
    """
    if isinstance(value, str):
        quote = _OTHER[quote] if quote in value and _OTHER[quote] not in value else quote
        return f"{quote}{_escaped(value, quote)}{quote}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({quote}{value!r}{quote})"
    return repr(value)


def _escaped(value: str, quote: str) -> str:
    """Return the inside of a string literal."""
    return "".join(
        f"\\{char}" if char in ("\\", quote) else char if char.isprintable() else ascii(char)[1:-1]
        for char in value
    )


@attrs.frozen
class Inside:
    """A value inside of a text, as Python."""

    python: str


def f_string(pieces: Sequence[str | Inside], quote: str = '"') -> str | None:
    r"""
    Return texts and values between them as an f-string; None if Python 3.11 reads none such.

    Examples
    --------
    >>> print(f_string(['say "', Inside("name"), '" {}']))
    f"say \"{name}\" {{}}"
    """
    if not any(isinstance(piece, Inside) for piece in pieces):
        return constant("".join(piece for piece in pieces if isinstance(piece, str)), quote)
    written = []
    for piece in pieces:
        if isinstance(piece, str):
            written.append(_escaped(piece, quote).replace("{", "{{").replace("}", "}}"))
        elif any(char in piece.python for char in (quote, "\\", "#", "\n")):
            return None
        else:
            written.append(f"{{{' ' if piece.python.startswith('{') else ''}{piece.python}}}")
    return f"f{quote}{''.join(written)}{quote}"


_PIECE = re.compile(
    r"\\Q.*?\\E|\\[pP]\{\w+\}|\\u[0-9a-fA-F]{4}|\\.|\[\^?|\]|&&|\(\?<?\w*[:>=!)]?|.", re.DOTALL
)
_CLASSES = {
    r"\p{Alpha}": "a-zA-Z", r"\p{Digit}": "0-9", r"\p{Alnum}": "a-zA-Z0-9", r"\p{Lower}": "a-z",
    r"\p{Upper}": "A-Z", r"\p{Punct}": r"!-/:-@\[-`{-~",
}  # fmt: skip
_PLAIN = frozenset("dDwWsStnrfb0")
_LINE_ENDS = r"[^\n\r\u0085\u2028\u2029]"
_END = r"(?=(?:\r\n|[\n\r\u0085\u2028\u2029])?\Z)"
_GROUPS = frozenset({"(?:", "(?=", "(?!", "(?<=", "(?<!"})


def python_regex(pattern: str) -> str | None:
    r"""
    Return a regular expression with the same meaning, under ``re.ASCII``; None if it has none.

    Examples
    --------
    >>> python_regex(r"\d+-.*"), python_regex(r"[a-z&&[^b]]")
    ('\\d+-[^\\n\\r\\u0085\\u2028\\u2029]*', None)
    """
    found, inside = [], False
    for piece in _PIECE.findall(pattern):
        if piece == "&&" or (inside and piece in ("[", "[^")):
            return None
        if piece in _CLASSES:
            found.append(_CLASSES[piece] if inside else f"[{_CLASSES[piece]}]")
        elif piece.startswith(r"\Q"):
            found.append(re.escape(piece[2:-2]))
        elif piece.startswith(r"\u"):
            found.append(piece)
        elif piece[0] == "\\" and piece[1:2].isalnum():
            if piece[1] not in _PLAIN or piece[1] == "0" or (inside and piece[1] in "Sb"):
                return None
            found.append(piece)
        elif piece.startswith("(?"):
            named = piece.endswith(">") and piece.startswith("(?<")
            first = piece == "(?i)" and not found
            if piece not in _GROUPS and not named and not first:
                return None
            found.append(f"(?P{piece[2:]}" if named else piece)
        elif piece in ("[", "[^", "]"):
            inside = piece != "]"
            found.append(piece)
        elif piece == "." and not inside:
            found.append(_LINE_ENDS)
        elif piece in "^$" and not inside:
            found.append(r"\A" if piece == "^" else _END)
        else:
            found.append(piece)
    text = "".join(found)
    try:
        re.compile(text, re.ASCII)
    except (re.error, OverflowError):
        return None
    return text


ATOM, PLUS, COMPARED = 9, 6, 5
Operands = tuple[Expression, ...]


class PythonWriter(Protocol):
    """What writes expressions, as the writers of calls know it."""

    findings: Findings
    quote: str

    def constant(self, value: object) -> str:
        """Return a constant, a string with the quote that stands around none of it."""

    def inside(self) -> PythonWriter:
        """Return a writer of values inside of an f-string."""

    def use(self, name: str) -> str:
        """Return the name of a function of the runtime, which will be imported."""

    def write(self, of: Expression, level: int = 0) -> str:
        """Return an expression, in parentheses if it binds less tightly than a level."""

    def non_null(self, of: Expression) -> str:
        """Return a value; the function raises if it is null."""

    def is_known(self, of: Expression) -> bool:
        """Whether a value cannot be null."""


Writer = Callable[["PythonWriter", Operands], tuple[str, int]]
Compared = Callable[["PythonWriter", Operands], tuple[str, str, str]]
"""Writes a comparison: its left side, operator and right side."""


def helper(name: str, *more: object) -> Writer:
    """Return a writer of a call of a function of the runtime, with some constants at its end."""

    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        texts = [*map(writer.write, operands), *map(writer.constant, more)]
        return f"{writer.use(name)}({', '.join(texts)})", ATOM

    return write


def method(name: str) -> Writer:
    """Return a writer of a call of a method of Python."""

    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        first, *rest = operands
        texts = ", ".join(writer.write(operand) for operand in rest)
        return f"{writer.write(first, ATOM)}.{name}({texts})", ATOM

    return write


def function(name: str) -> Writer:
    """Return a writer of a call of a function of Python."""

    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        return f"{name}({', '.join(writer.write(operand) for operand in operands)})", ATOM

    return write


def dereferenced(writer: PythonWriter, whole: Expression) -> str:
    """Return a list; one of a match that is missing is an error."""
    if isinstance(whole, Call) and whole.name == "Map.get":
        inner, key = whole.operands
        return f"{writer.write(inner, ATOM)}[{writer.write(key)}]"
    return writer.write(whole, ATOM)


def events_of(writer: PythonWriter, of: Expression) -> str:
    """Return the events of a stage, to be read once; other values as they are."""
    if isinstance(of, Call) and of.name == "events":
        return f"ctx.getEventsForPattern({writer.write(of.operands[0])})"
    return dereferenced(writer, of)


def listed_again(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    """Write a list of values, which may be one already."""
    written = dereferenced(writer, operands[0])
    return (written if _is_new(operands[0]) else f"list({written})"), ATOM


_LISTS = frozenset({
    "List.of", "Stream.filter", "Stream.map", "Stream.flatMap", "Stream.concat", "events",
    "copy of", "Stream.toList", "Stream.takeWhile", "Stream.dropWhile",
})  # fmt: skip
"""Calls that make a list."""


def _is_new(of: Expression) -> bool:
    """Whether a value is a list that nothing else holds."""
    if isinstance(of, Call) and of.name in ("stream", "Stream.limit", "Stream.skip"):
        return _is_new(of.operands[0])
    return isinstance(of, Call) and of.name in _LISTS


def regex(writer: PythonWriter, pattern: Expression) -> str:
    """Return a regular expression of Java as Python writes it."""
    value = pattern.value if isinstance(pattern, Const) else None
    found = python_regex(value) if isinstance(value, str) else None
    if found is None:
        raise Untranslatable("a regular expression that Python reads differently")
    raw = '"' not in found and not found.endswith("\\") and found.isprintable()
    return f'r"{found}"' if raw else writer.constant(found)


def _each(writer: PythonWriter, of: Expression) -> tuple[str, str]:
    assert isinstance(of, Lambda)
    return of.parameters[0], writer.write(of.body, 2)


def _listed(writer: PythonWriter, operands: Operands) -> str:
    return ", ".join(writer.write(operand) for operand in operands)


def _filtered(writer: PythonWriter, operands: Operands) -> str:
    name, test = _each(writer, operands[1])
    return f"{name} for {name} in {writer.write(operands[0], 2)} if {test}"


def _mapped(writer: PythonWriter, operands: Operands) -> str:
    name, value = _each(writer, operands[1])
    return f"{value} for {name} in {writer.write(operands[0], 2)}"


def _flattened(writer: PythonWriter, operands: Operands) -> str:
    of, many = operands
    assert isinstance(many, Lambda)
    (name,) = many.parameters
    each = "one" if name != "one" else "inner"
    inner = dereferenced(writer, many.body)
    return f"{each} for {name} in {writer.write(of, 2)} for {each} in {inner}"


def _chained(writer: PythonWriter, operands: Operands) -> str:
    first, second = (writer.write(operand, 2) for operand in operands)
    return f"*{first}, *{second}"


IN_BRACKETS: dict[str, Callable[[PythonWriter, Operands], str]] = {
    "List.of": _listed, "Stream.filter": _filtered, "Stream.map": _mapped,
    "Stream.flatMap": _flattened, "Stream.concat": _chained,
}  # fmt: skip
"""By the name of a call that makes a list, what writes the inside of its brackets."""


def _bracketed(write: Callable[[PythonWriter, Operands], str]) -> Writer:
    return lambda writer, operands: (f"[{write(writer, operands)}]", ATOM)


def _quantified(word: str, negated: bool = False) -> Writer:
    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        name, test = _each(writer, operands[1])
        text = f"{word}({test} for {name} in {writer.write(operands[0], 2)})"
        return (f"not {text}", 4) if negated else (text, ATOM)

    return write


def _summed(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
    (of,) = operands
    inner = writer.write(of)
    if of.type.name == "DoubleStream":
        return f"{writer.use('stream_sum')}({inner})", ATOM
    wrap = writer.use("int32" if of.type.name == "IntStream" else "int64")
    return f"{wrap}(sum({inner}))", ATOM


def _extreme(word: str) -> Writer:
    def write(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
        if operands[0].type.name == "DoubleStream":
            return f"{writer.use('stream_' + word)}({writer.write(operands[0])})", ATOM
        return f"{word}({writer.write(operands[0])}, default=None)", ATOM

    return write


STREAMS: dict[str, Writer] = {
    **{name: _bracketed(write) for name, write in IN_BRACKETS.items()},
    "stream": lambda w, o: (dereferenced(w, o[0]), ATOM), "Stream.anyMatch": _quantified("any"),
    "Stream.allMatch": _quantified("all"), "Stream.noneMatch": _quantified("any", True),
    "Stream.count": function("len"), "Stream.toList": listed_again,
    "Stream.sum": _summed, "Stream.average": helper("stream_average"),
    "Stream.max": _extreme("max"), "Stream.min": _extreme("min"),
    "Stream.findFirst": helper("first_of"), "Stream.distinct": helper("distinct"),
    "Stream.limit": lambda w, o: (f"{w.write(o[0], ATOM)}[:{w.write(o[1])}]", ATOM),
    "Stream.skip": lambda w, o: (f"{w.write(o[0], ATOM)}[{w.write(o[1])}:]", ATOM),
}  # fmt: skip
"""By the name of the call, what writes it."""


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


def _group_part(writer: PythonWriter, operands: Operands) -> tuple[str, int]:
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
    "Matcher.group": method("group"), "List.containsAll": _contains_all,
    "List.subList": _group_part,
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
