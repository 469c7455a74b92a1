# SPDX-License-Identifier: Apache-2.0
"""What reads an expression, as those who read a part of one know it."""

from __future__ import annotations

import builtins
import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import attrs

from pyflinkcep.migrate import runtime
from pyflinkcep.migrate.java.constants import converted, literal_of, promoted
from pyflinkcep.migrate.java.declarations import (
    BOOLEAN,
    INT,
    STRING,
    UNKNOWN,
    JavaClass,
    JavaType,
    Method,
    read_type,
)
from pyflinkcep.migrate.java.project import Project, chosen, column_names, filled
from pyflinkcep.migrate.java.source import Node, Source, children, line_of, snake_case, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.translated import Note
from pyflinkcep.migrate.meaning.tree import (
    Binary,
    Call,
    Captured,
    Cast,
    Choice,
    Const,
    Expression,
    Get,
    Lambda,
    Make,
    Unary,
    Untranslatable,
    Var,
    parts,
)

_SHARED = (
    runtime.__name__, "pyflinkcep.expressions.numbers", "pyflinkcep.expressions.sql_values",
    "pyflinkcep.time",
)  # fmt: skip
RUNTIME = frozenset(
    name
    for name, one in vars(runtime).items()
    if callable(one) and one.__module__ in _SHARED and name[0] != "_"
)
"""The names of what translated functions call."""


_USED = RUNTIME | {*dir(builtins), "event", "ctx", "match", "out", "math"}
"""What no variable hides: functions, parameters and modules."""


def python_name(name: str) -> str:
    """Return the name of a variable in Python, which shadows nothing that is used."""
    found = snake_case(name)
    is_taken = found == "l" or found in _USED  # l looks like 1
    is_taken = is_taken or keyword.iskeyword(found) or keyword.issoftkeyword(found)
    return f"{found}_" if is_taken else found


@attrs.define(eq=False)
class Findings:
    """What reading and writing an expression brings to light."""

    notes: list[Note] = attrs.field(factory=list)
    imports: set[str] = attrs.field(factory=set)
    helpers: dict[str, str] = attrs.field(factory=dict)
    helper_names: dict[int, str] = attrs.field(factory=dict)
    tags: dict[str, str | None] = attrs.field(factory=dict)
    aggregates: bool = False  # Whether loops may become aggregates, which only SQL has
    # Finds the function that an object is, by its node and place.
    resolve: Callable[[Node, Scope], Any] | None = None
    # The variables around that were read, whose values are known at run time alone.
    captured: dict[str, Expression] = attrs.field(factory=dict)
    # The variables that hold JSON that code reads itself.
    parsed: set[str] = attrs.field(factory=set)

    def note(self, file: str, line: int, what: str) -> None:
        """Add a note, once."""
        found = Note(file, line, what)
        if found not in self.notes:
            self.notes.append(found)


@attrs.define(eq=False)
class Scope:
    """The names that are known at a place."""

    source: Source  # The file
    within: JavaClass | None  # The class around
    project: Project  # All classes
    values: dict[str, Expression] = attrs.field(factory=dict)  # What variables stand for
    this: Expression | None = None  # The object whose members have no qualifier
    # The values of fields of the class around.
    fields: dict[str, Expression] = attrs.field(factory=dict)
    depth: int = 0  # How many calls have been followed
    # The class of the object whose method this is, which may override what `within` declares.
    dynamic: JavaClass | None = None
    # The fields that are local variables around a function, which only the function sees.
    around: frozenset[str] = frozenset()
    # What the type variables of the class stand for.
    types: dict[str, JavaType] = attrs.field(factory=dict)

    def declare(self, name: str, type_: JavaType) -> Var:
        """Add a variable; its name in Python is free."""
        python = python_name(name)
        taken = {value.name for value in self.values.values() if isinstance(value, Var)}
        around = (v.value for v in self.fields.values() if isinstance(v, Captured))
        taken |= {part.name for v in around for part in parts(v) if isinstance(part, Var)}
        before = self.values.get(name)
        while python in taken and not (isinstance(before, Var) and before.name == python):
            python += "_"
        variable = Var(python, type_)
        self.values[name] = variable
        return variable

    def inside(self) -> Scope:
        """Return a scope for a block inside."""
        return attrs.evolve(self, values=dict(self.values))


def as_type(value: Expression, type_: JavaType) -> Expression:
    """Return a value as a variable of a type holds it."""
    have, want = value.type.unboxed, type_.unboxed
    if have == want or not want.is_numeric or not have.is_numeric:
        return value
    if isinstance(value, Const) and value.value is not None:
        constant = converted(Const(value.value, have), want)
        if constant is not None:
            return Const(constant.value, want)
    if want.is_floating or have.name == "char" or want.name == "char":
        return Cast(value, want)
    return value


_COMPARISONS = ("<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^")


def computed(op: str, left: Expression, right: Expression | None = None) -> Expression | None:
    """Return an operator over numbers or conditions, with Java's promotions; None for others."""
    a = left.type.unboxed
    if right is None:
        if op == "!":
            return Unary("!", left, BOOLEAN)
        if not a.is_numeric:
            return None
        type_ = JavaType(promoted(a.name, a.name))
        same = as_type(left, type_)
        return same if op == "+" else Unary(op, same, type_)
    b = right.type.unboxed
    if op in ("&&", "||") or (op in ("&", "|", "^", "==", "!=") and a == b == BOOLEAN):
        return Binary(op, left, right, BOOLEAN)
    if not (a.is_numeric and b.is_numeric):
        return None
    if op in ("<<", ">>", ">>>"):
        type_ = JavaType(promoted(a.name, a.name))
        return Binary(op, as_type(left, type_), as_type(right, INT), type_)
    type_ = JavaType(promoted(a.name, b.name))
    if op in ("==", "!=", *_COMPARISONS):
        as_ = a if a == b == JavaType("char") else type_
        return Binary(op, as_type(left, as_), as_type(right, as_), BOOLEAN)
    is_known = op in _ARITHMETIC
    return Binary(op, as_type(left, type_), as_type(right, type_), type_) if is_known else None


def element_of(type_: JavaType) -> JavaType:
    """Return the type of the elements of a list, array or stream."""
    if type_.dims:
        return JavaType(type_.name, type_.args, type_.dims - 1)
    return type_.args[0] if type_.args else UNKNOWN


def parameters_of(node: Node) -> list[tuple[str, JavaType]]:
    """Return the names and types of the parameters of a lambda."""
    found = node.child_by_field_name("parameters")
    if found is None:
        return []
    if found.type == "identifier":
        return [(text_of(found), UNKNOWN)]
    result = []
    for part in children(found):
        if part.type == "identifier":
            result.append((text_of(part), UNKNOWN))
        elif part.child_by_field_name("name") is not None:
            type_ = read_type(part.child_by_field_name("type"))
            result.append((text_of(part.child_by_field_name("name")), type_))
    return result


def tag_of(node: Node | None, declared: JavaType) -> Const | None:
    """Return ``new OutputTag<…>("name")`` of a declared type as a constant; None for others."""
    if node is None or node.type != "object_creation_expression":
        return None
    type_ = read_type(node.child_by_field_name("type"))
    arguments = children(node.child_by_field_name("arguments"))
    name = literal_of(arguments[0]) if arguments else None
    if type_.name != "OutputTag" or name is None or not isinstance(name.value, str):
        return None
    return Const(name.value, declared if declared.args and not type_.args else type_)


@attrs.define(eq=False)
class Reading(ABC):
    """What the reader of expressions is for those who read a part of one with it."""

    scope: Scope  # What names mean
    findings: Findings  # Gets what was found on the way
    event_type: JavaType = UNKNOWN  # The class of events
    result_type: JavaType = UNKNOWN  # What the function around returns

    @property
    def source(self) -> Source:
        """The file."""
        return self.scope.source

    def no(self, node: Node, what: str) -> Untranslatable:
        """Make the error for something without a translation."""
        return Untranslatable(what, line_of(node))

    def type_at(self, node: Node | None) -> JavaType:
        """Return the type that a node writes, with types in place of variables."""
        return filled(read_type(node), self.scope.types)

    def type_of_member(self, owner: JavaType, type_: JavaType) -> JavaType:
        """Return the type of a member of an object, whose class may have type variables."""
        of = self.class_of(owner) if owner.args else None
        given = {} if of is None else dict(zip(of.variables, owner.args, strict=False))
        return filled(type_, given)

    def note(self, node: Node, what: str) -> None:
        """Add a note about a node."""
        self.findings.note(self.source.file, line_of(node), what)

    def class_named(self, name: str) -> JavaClass | None:
        """Return the class of the project that a name means."""
        return self.scope.project.find(name, self.source, self.scope.within)

    def class_of(self, type_: JavaType) -> JavaClass | None:
        """Return the class of the project that a type is."""
        return None if type_.dims else self.class_named(type_.name)

    @staticmethod
    def unboxed(value: Expression) -> Expression:
        """Return a value that is not null: Java fails where it is."""
        if not value.type.is_boxed:
            return value
        return Call(ops.NOT_NULL, (value,), value.type.unboxed)

    @abstractmethod
    def read(self, node: Node | None) -> Expression:
        """Return what an expression means; raise Untranslatable if that is unknown."""

    @abstractmethod
    def function(self, node: Node, types: tuple[JavaType, ...]) -> Lambda:
        """Return a lambda or method reference as a function of values of some types."""

    @abstractmethod
    def operation(self, op: str, left: Expression, right: Expression, node: Node) -> Expression:
        """Return an operator over two values, with Java's promotions."""

    def cast(self, value: Expression, type_: JavaType) -> Expression:
        """Return a value cast to a type."""
        have, want = value.type.unboxed, type_.unboxed
        if want.is_numeric and have.is_numeric and have != want:
            found = as_type(value, want)
            if found is not value:
                return found
            narrows = want.is_whole and promoted(have.name, want.name) == have.name
            is_plain = isinstance(value, Const | Get | Var) and not narrows
            return attrs.evolve(value, type=type_) if is_plain else Cast(value, want)
        if isinstance(value, Get | Var | Call) and not have.is_numeric:
            return attrs.evolve(value, type=type_)
        return value

    def choice(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        """Return a choice, with Java's common type of both sides."""
        if isinstance(condition, Const):
            return yes if condition.value else no
        a, b = yes.type, no.type
        if a.unboxed == b.unboxed and a != b:
            return Choice(condition, self.unboxed(yes), self.unboxed(no), a.unboxed)
        type_ = b.boxed if a.name == "null" else a.boxed if b.name == "null" else a
        if a.is_numeric and b.is_numeric and a.unboxed != b.unboxed:
            type_ = JavaType(promoted(a.unboxed.name, b.unboxed.name))
            if JavaType("char") in (a, b) and any(isinstance(x, Const) for x in (yes, no)):
                type_ = JavaType("char")  # of a constant, as far as a char holds it
            yes, no = (as_type(self.unboxed(side), type_) for side in (yes, no))
        return Choice(condition, yes, no, type_)

    # --- places and names

    def is_variable(self, name: str) -> bool:
        """Whether a name is that of a variable or field rather than of a class."""
        scope = self.scope
        if name in scope.values or name in scope.fields:
            return True
        of = self.class_of(scope.this.type) if scope.this is not None else scope.within
        is_field = of is not None and scope.project.field(of, name) is not None
        constant = scope.project.constant_field(name, self.source, scope.within)
        return is_field or constant is not None or self.enum_constant(name) is not None

    def enum_constant(self, name: str) -> Const | None:
        """Return the constant of an enum that a simple name means; None if it means none."""
        around = self.scope.within
        while around is not None:
            if around.kind == "enum" and name in around.constants:
                return Const(name, JavaType(around.name))
            around = around.outer
        for full in (self.source.imports.get(name, ""), *self.source.wildcards):
            of = self.class_named(full.removesuffix("." + name)) if full else None
            if of is not None and of.kind == "enum" and name in of.constants:
                return Const(name, JavaType(of.name))
        return None

    def at(self, source: Source, within: JavaClass | None, **names: Any) -> Self:
        """Return a reader at another place."""
        depth = self.scope.depth + 1
        scope = Scope(source, within, self.scope.project, depth=depth, **names)
        return type(self)(scope, self.findings, self.event_type)

    def within_block(self) -> Self:
        """Return a reader of a block inside."""
        return attrs.evolve(self, scope=self.scope.inside())

    def method(
        self, of: JavaClass, name: str, arguments: Sequence[Node | Expression]
    ) -> Method | None:
        """Return the method that a call means; raise Untranslatable if it may be one of several."""
        return self.one_of(self.scope.project.overloads(of, name, len(arguments)), name, arguments)

    def constructor(self, of: JavaClass, arguments: Sequence[Node | Expression]) -> Method | None:
        """Return the constructor that a call means; None if the class has none such."""
        declared = [m for m in of.methods.get(of.name, []) if m.takes(len(arguments))]
        exact = [m for m in declared if len(m.parameters) == len(arguments)]
        return self.one_of(exact or declared, of.name, arguments)

    def one_of(
        self, methods: Sequence[Method], name: str, arguments: Sequence[Node | Expression]
    ) -> Method | None:
        """Return the method that Java calls with some arguments; None if there is none."""
        if len(methods) < 2:
            return methods[0] if methods else None
        types = [one.type if isinstance(one, Expression) else self._type(one) for one in arguments]
        found = chosen(methods, types, self.scope.project)
        if found is None:
            raise Untranslatable(f"which of several {name}() is called")
        return found

    def _type(self, argument: Node) -> JavaType:
        try:
            return self.within_block().argument(argument).type
        except Untranslatable:
            return UNKNOWN

    def argument(self, node: Node, types: tuple[JavaType, ...] = ()) -> Expression:
        """Return an argument or assigned value, which may be a function."""
        if node.type in ("lambda_expression", "method_reference"):
            return self.function(node, types[0].args if types else ())
        return self.read(node)

    def packed(self, method: Method, values: list[Expression]) -> list[Expression]:
        """Return arguments with those for a last parameter of any number as one array."""
        first = len(method.parameters) - 1
        if not method.spreads or (len(values) == first + 1 and values[first].type.dims):
            return values
        type_ = method.parameters[first][1]
        return [*values[:first], Call(ops.LIST, tuple(values[first:]), type_)]

    def assigned(self, value: Expression, type_: JavaType) -> Expression:
        """Return a value as a variable of a type holds it; better known types are kept."""
        if isinstance(value, Var) and value.type.name in ("StringBuilder", "StringBuffer"):
            raise Untranslatable(f"two variables may hold the {value.type} {value.name}")
        if type_ == UNKNOWN or type_.name in ("void", "Object"):
            return value
        if value.type.is_boxed and (type_.is_numeric or type_ == BOOLEAN) and not type_.is_boxed:
            return as_type(self.unboxed(value), type_)
        return self.cast_known(as_type(value, type_), type_)

    def as_row(self, value: Expression, type_: JavaType) -> Expression:
        """Return an event, or a list of events, as fields of a row that has their columns alone."""
        is_list = type_.name in ("List", "Collection", "Iterable", "Set") and len(type_.args) == 1
        of = self.class_of(type_.args[0] if is_list else type_)
        is_null = isinstance(value, Const) and value.value is None
        if of is None or of.kind == "enum" or is_null or isinstance(value, Make):
            return value
        if is_list and isinstance(value, Call) and value.operation is ops.LIST:
            return value
        names = tuple(Const(name, STRING) for name in column_names(of, self.scope.project))
        return Call(ops.ROWS_OF if is_list else ops.ROW_OF, (value, *names), value.type)

    def cast_known(self, value: Expression, type_: JavaType) -> Expression:
        """Return a value of unknown type as one of a known type."""
        unknown = value.type == UNKNOWN or value.type.name == "Object"
        if unknown and type_ != UNKNOWN and isinstance(value, Get | Var | Call):
            return attrs.evolve(value, type=type_)
        return value
