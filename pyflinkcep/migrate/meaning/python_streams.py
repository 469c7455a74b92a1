# SPDX-License-Identifier: Apache-2.0
"""Writes streams as Python: lists and comprehensions."""

from __future__ import annotations

from collections.abc import Callable

from pyflinkcep.migrate.meaning.python_writers import (
    ATOM,
    Operands,
    PythonWriter,
    Writer,
    dereferenced,
    function,
    helper,
    listed_again,
)
from pyflinkcep.migrate.meaning.tree import Expression, Lambda

__all__ = ["IN_BRACKETS", "STREAMS"]


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
