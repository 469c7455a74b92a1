# SPDX-License-Identifier: Apache-2.0
"""Writes statements as Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

import attrs

from pyflinkcep.migrate.java.project import is_floating
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.tree import (
    Break,
    Call,
    Const,
    Continue,
    Do,
    Expression,
    ForEach,
    Get,
    If,
    Let,
    Make,
    Raise,
    Return,
    Set,
    Statement,
    Try,
    Untranslatable,
    Var,
    While,
    all_statements,
    ends,
    expressions_of,
    non_null_if,
    parts,
)

_ZEROS = {"int": "0", "long": "0", "double": "0.0", "float": "0.0", "boolean": "False"}


@attrs.define(eq=False)
class Statements:
    """Writes the statements of one function."""

    python: Python  # Writes the expressions
    result: str = "row"  # ``bool`` for conditions, ``int`` for comparators, ``row`` for others
    row: Callable[[Expression], str] | None = None  # Writes a row
    output: Callable[[Call], str] | None = None  # Writes a call of ``ctx.output``
    _read: set[str] = attrs.field(factory=set)
    _declared: set[str] = attrs.field(factory=set)

    def block(self, statements: tuple[Statement, ...]) -> list[str]:
        """Return the lines of a function's body."""
        self._read = set(_names_read(statements))
        self.python.made |= set(_names_made(statements))
        return self._lines(statements)

    def _lines(self, statements: Iterable[Statement]) -> list[str]:
        found: list[str] = []
        before = self.python.known
        for statement in statements:
            found += self._one(statement)
            if isinstance(statement, If) and ends(statement.then) and not statement.otherwise:
                facts = non_null_if(statement.condition, False)
                self.python.known |= facts
            if isinstance(statement, Return | Raise | Break | Continue):
                break
        self.python.known = before
        return found

    def _inner(self, statements: Iterable[Statement], facts: frozenset[Expression]) -> list[str]:
        before = self.python.known
        self.python.known = before | facts
        lines = self._lines(statements) or ["pass"]
        self.python.known = before
        return [f"    {line}" for line in lines]

    def _one(self, of: Statement) -> list[str]:
        write = self.python.write
        match of:
            case Let():
                return self._let(of)
            case Set():
                return self._set(of)
            case If():
                return self._if(of)
            case ForEach():
                return self._for_each(of)
            case While():
                return self._while(of)
            case Return(value=None):
                return ["return"]
            case Return(value=value) if value is not None:
                if self.result == "bool":
                    return [f"return {self.python.condition(value)}"]
                if self.result == "int":
                    return [f"return int({write(value)})"]
                return [f"return {self._row(value)}"]
            case Do(value=value):
                return [self._do(value)]
            case Raise(message=message):
                inner = write(message) if message is not None else ""
                return [f"raise RuntimeError({inner})"]
            case Try():
                body, handler = (self._inner(part, frozenset()) for part in (of.body, of.handler))
                name = " as error" if "error" in _names_read(of.handler) else ""
                return ["try:", *body, f"except {self._errors(of.kinds)}{name}:", *handler]
            case Break():
                return ["break"]
            case Continue():
                return ["continue"]
        raise Untranslatable(f"{type(of).__name__} in Python")

    def _errors(self, kinds: tuple[str, ...]) -> str:
        """Return the errors of Python that stand for some of Java."""
        names = sorted({name for kind in kinds for name in _ERRORS.get(kind, _ANY)})
        if "FunctionError" in names:
            self.python.findings.imports.add("from pyflinkcep import FunctionError")
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def _row(self, value: Expression) -> str:
        return self.python.write(value) if self.row is None else self.row(value)

    def _do(self, value: Expression) -> str:
        if isinstance(value, Call) and value.operation is ops.COLLECT:
            out, row = value.operands
            return f"{self.python.write(out)}.collect({self._row(row)})"
        if isinstance(value, Call) and value.operation is ops.OUTPUT and self.output is not None:
            return self.output(value)
        if isinstance(value, Call) and value.operation is ops.ADD_TO_SET:
            return self.python.filled("a.add(b)", *value.operands)
        return self.python.write(value)

    def _let(self, of: Let) -> list[str]:
        if of.name not in self._read:
            kept = of.value is not None and any(isinstance(p, Call) for p in parts(of.value))
            return [f"_ = {self.python.write(of.value)}"] if kept and of.value is not None else []
        annotation = self._annotation(of)
        if of.value is None:
            zero = _ZEROS.get(of.type.name, "None") if not of.type.dims else "None"
            return [f"{of.name}{annotation} = {zero}"]
        written = self.python.write(of.value)
        if is_floating(of.type) and isinstance(of.value, Const) and isinstance(of.value.value, int):
            written = repr(float(of.value.value))
        return [f"{of.name}{annotation} = {written}"]

    def _annotation(self, of: Let) -> str:
        """Return the annotation of a variable where it is declared for the first time."""
        if of.name in self._declared:
            return ""
        self._declared.add(of.name)
        return ": Any"

    def _set(self, of: Set) -> list[str]:
        target, value = of.target, of.value
        if isinstance(target, Var) and target.name not in self._read:
            return []
        written = self.python.write(value)
        if isinstance(target, Get) and not (
            isinstance(target.owner, Var) and target.owner.name in self.python.made
        ):
            raise Untranslatable(f"a field of an event is changed: {target.name}")
        if isinstance(target, Call) and target.operation is ops.GET:
            return [f"{self.python.filled('a[b]', *target.operands)} = {written}"]
        return [f"{self.python.write(target)} = {written}"]

    def _if(self, of: If, word: str = "if") -> list[str]:
        condition = self.python.write(of.condition)
        then = self._inner(of.then, non_null_if(of.condition, True))
        lines = [f"{word} {condition}:", *then]
        if not of.otherwise:
            return lines
        facts = non_null_if(of.condition, False)
        if len(of.otherwise) == 1 and isinstance(of.otherwise[0], If):
            before = self.python.known
            self.python.known = before | facts
            lines += self._if(of.otherwise[0], "elif")
            self.python.known = before
            return lines
        return [*lines, "else:", *self._inner(of.otherwise, facts)]

    def _for_each(self, of: ForEach) -> list[str]:
        iterable = ast.unparse(self.python.events(of.iterable))
        name = of.name if of.name in _names_read(of.body) else "_"
        self._declared.add(name)
        return [f"for {name} in {iterable}:", *self._inner(of.body, frozenset())]

    def _while(self, of: While) -> list[str]:
        if of.update and _continues(of.body):
            raise Untranslatable("continue in a loop with a counter")
        body = self._inner((*of.body, *of.update), frozenset())
        return [f"while {self.python.write(of.condition)}:", *body]


def _names_read(statements: Iterable[Statement]) -> Iterator[str]:
    for one in expressions_of(statements):
        yield from (part.name for part in parts(one) if isinstance(part, Var))


def _names_made(statements: Iterable[Statement]) -> Iterator[str]:
    for one in all_statements(statements):
        if isinstance(one, Let) and one.value is not None and _is_made(one.value):
            yield one.name
        elif isinstance(one, Set) and isinstance(one.target, Var) and _is_made(one.value):
            yield one.target.name


def _is_made(of: Expression) -> bool:
    """Whether a value is a new object, or one of JSON: a dict."""
    return isinstance(of, Make) or (isinstance(of, Call) and of.operation is ops.JSON_OF)


_ERRORS = {
    "NumberFormatException": ("ValueError",),
    "IllegalArgumentException": ("ValueError",),
    "DateTimeParseException": ("ValueError",),
    "IndexOutOfBoundsException": ("IndexError",),
    "ArrayIndexOutOfBoundsException": ("IndexError",),
    "StringIndexOutOfBoundsException": ("IndexError",),
    "NoSuchElementException": ("LookupError", "StopIteration"),
    "ArithmeticException": ("ArithmeticError",),
    "NullPointerException": ("AttributeError", "FunctionError", "TypeError"),
    "ClassCastException": ("AttributeError", "TypeError"),
}
_ANY = (
    "ArithmeticError", "AttributeError", "FunctionError", "LookupError", "RuntimeError",
    "StopIteration", "TypeError", "ValueError",
)  # fmt: skip


def _continues(statements: Iterable[Statement]) -> bool:
    return any(isinstance(one, Continue) for one in all_statements(statements))
