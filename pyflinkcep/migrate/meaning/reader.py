# SPDX-License-Identifier: Apache-2.0
"""Reads Java's expressions."""

from __future__ import annotations

import attrs

from pyflinkcep.migrate.java.constants import constant_of
from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, read_type
from pyflinkcep.migrate.java.literals import literal_of
from pyflinkcep.migrate.java.source import Node, children, line_of, text_of
from pyflinkcep.migrate.java.types import (
    INT,
    UNKNOWN,
)
from pyflinkcep.migrate.java.written import is_assigned
from pyflinkcep.migrate.meaning.calls import method_call, on_value
from pyflinkcep.migrate.meaning.collectors import comparator
from pyflinkcep.migrate.meaning.enums import enum_field
from pyflinkcep.migrate.meaning.lambdas import read_lambda, read_switch
from pyflinkcep.migrate.meaning.objects import read_creation
from pyflinkcep.migrate.meaning.operators import Operators
from pyflinkcep.migrate.meaning.reading import as_type
from pyflinkcep.migrate.meaning.references import reference
from pyflinkcep.migrate.meaning.statements import read_statements
from pyflinkcep.migrate.meaning.tags import declared_tag, field_tag
from pyflinkcep.migrate.meaning.texts import object_text
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Const,
    Expression,
    Get,
    Lambda,
    Make,
    Statement,
    Untranslatable,
    field_of,
)
from pyflinkcep.migrate.meaning.utilities import CONSTANTS

__all__ = ["Reader"]

_ZEROS: dict[str, int | float | bool] = {
    "int": 0, "long": 0, "short": 0, "byte": 0, "double": 0.0, "float": 0.0, "boolean": False,
}  # fmt: skip


_OF_JAVA = frozenset({
    "Boolean", "Byte", "Character", "Short", "Integer", "Long", "Float", "Double", "Math", "String",
    "BigDecimal", "BigInteger", "Collections", "Comparator", "Duration", "Instant", "LocalDate",
    "LocalDateTime", "LocalTime", "RoundingMode", "StandardCharsets", "TimeZone",
    "ZoneOffset", "System",
})  # fmt: skip
"""Classes of Java's library, whose constants are no names of an enum of the program."""


@attrs.define(eq=False)
class Reader(Operators):
    """Reads the expressions at a place; what they need and lack goes to the findings."""

    def statements(self, nodes: list[Node]) -> tuple[Statement, ...]:
        """Return what statements mean, in the scope of the reader."""
        return read_statements(self, nodes)

    # --- expressions

    def read(self, node: Node | None) -> Expression:
        """Return what an expression means; raise Untranslatable if that is unknown."""
        if node is None or node.is_missing or node.type == "ERROR":
            raise Untranslatable("a syntax error", line_of(node) if node is not None else 0)
        literal = literal_of(node)
        if literal is not None:
            return Const(literal.value, literal.type)
        method = getattr(self, f"_{node.type}", None)
        if method is None:
            raise self.no(node, f"{node.type.replace('_', ' ')}: {text_of(node)[:60]}")
        found: Expression = method(node)
        return found

    def _parenthesized_expression(self, node: Node) -> Expression:
        return self.read(children(node)[0])

    def _identifier(self, node: Node) -> Expression:
        name = text_of(node)
        scope = self.scope
        if name in scope.values:
            return scope.values[name]
        if name in scope.fields:
            return scope.fields[name]
        if scope.this is not None:
            of = self.class_of(scope.this.type)
            field = scope.project.field(of, name) if of is not None else None
            if field is not None and "static" not in field.modifiers:
                return self.member(scope.this, name, node)
        constant = self._constant(node)
        if constant is not None:
            return constant
        found = self.enum_constant(name) or declared_tag(self, node)
        if found is not None:
            return found
        listed = self._constant_list(name)
        if listed is not None:
            return listed
        raise self.no(node, f"the value of {name} is not known here")

    def _constant(self, node: Node) -> Expression | None:
        scope = self.scope
        found = constant_of(node, self.source, scope.project, scope.within)
        return Const(found.value, found.type) if found is not None else None

    def _constant_list(self, name: str, of: JavaClass | None = None) -> Expression | None:
        """Return a constant that is not a plain value, such as ``List.of("a", "b")``."""
        scope = self.scope
        found = scope.project.constant_field(name, self.source, of or scope.within)
        if found is not None and found[0].type.name == "OutputTag":
            return None
        if found is None or scope.depth > 8:
            return None
        field, owner = found
        if field.value is None or "static" not in field.modifiers:
            return None
        at = self.at(owner.source, owner)
        if field.type.name == "Comparator":
            element = field.type.args[0] if field.type.args else UNKNOWN
            return attrs.evolve(comparator(at, field.value, element), type=field.type)
        at_field = self.at(owner.source, owner).argument(field.value, (field.type,))
        value = self.assigned(at_field, field.type)
        if isinstance(value, Call) and not value.operands:
            value = self._filled(name, value, owner)
            if not value.type.args:
                value = attrs.evolve(value, type=field.type)
        if isinstance(value, Call) and not value.operands:
            return None  # filled elsewhere
        if "final" not in field.modifiers and is_assigned(name, owner, scope.project):
            raise Untranslatable(f"{name} is assigned while the program runs")
        return value

    def _filled(self, name: str, value: Call, owner: JavaClass) -> Call:
        """Return a constant list or map with what the class puts into it where it is loaded."""
        added: list[Expression] = []
        body = owner.node.child_by_field_name("body")
        blocks = [part for part in children(body) if part.type == "static_initializer"]
        for statement in (s for block in blocks for s in children(children(block)[0])):
            call = children(statement)[0] if statement.type == "expression_statement" else None
            if call is None or call.type != "method_invocation":
                continue
            of, called = call.child_by_field_name("object"), call.child_by_field_name("name")
            if of is not None and text_of(of) == name and text_of(called) in ("put", "add"):
                at = self.at(owner.source, owner)
                added += [
                    at.argument(one) for one in children(call.child_by_field_name("arguments"))
                ]
        return attrs.evolve(value, operands=tuple(added))

    def _this(self, node: Node) -> Expression:
        if self.scope.this is None:
            raise self.no(node, "the object of the function itself is used as a value")
        return self.scope.this

    def _field_access(self, node: Node) -> Expression:
        owner, name = node.child_by_field_name("object"), text_of(node.child_by_field_name("field"))
        if owner.type == "this":
            if f"this.{name}" in self.scope.fields:
                return self.scope.fields[f"this.{name}"]
            if name in self.scope.fields:
                return self.scope.fields[name]
            if self.scope.this is None:
                return self._identifier(node.child_by_field_name("field"))
        if not self._is_value(owner):
            constant = self._constant(node)
            if constant is not None:
                return constant
            of = self.class_named(text_of(owner))
            library = CONSTANTS.get((text_of(owner).rsplit(".", 1)[-1], name))
            if of is None and library is not None:
                return library
            listed = self._constant_list(name, of) if of is not None else None
            if listed is not None:
                return listed
            tag = field_tag(self.scope.project.field(of, name)) if of is not None else None
            if tag is not None:
                return tag
            if of is not None and of.kind == "enum" and name in of.constants:
                return Const(name, JavaType(of.name))
            if text_of(owner) in _OF_JAVA:
                raise self.no(node, f"{text_of(node)} has no translation")
            if text_of(owner)[:1].isupper() and of is None and name.isupper():
                self.note(node, f"{text_of(node)} is not in the sources: taken as an enum's name")
                return Const(name, JavaType(text_of(owner).rsplit(".", 1)[-1]))
        value = self.read(owner)
        if value.type.dims and name == "length":
            return Call("List.size", (value,), INT)
        return self.member(value, name, node)

    def member(self, value: Expression, name: str, node: Node) -> Expression:
        """Return a field of an object."""
        of = self.class_of(value.type)
        field = self.scope.project.field(of, name) if of is not None else None
        if field is not None and of is not None and of.kind == "enum":
            held = enum_field(self, value, of, name)
            if held is None:
                raise self.no(node, f"the field {name} of the enum {of.name}")
            return held
        if field is not None:
            return field_of(value, name, self.type_of_member(value.type, field.type))
        if value.type.name.startswith("Tuple") and name[:1] == "f" and name[1:].isdecimal():
            args = value.type.args
            place = int(name[1:])
            return Get(value, name, args[place] if place < len(args) else UNKNOWN)
        self.note(node, f"the type of the field {name} is not in the sources")
        return Get(value, name, UNKNOWN)

    def _is_value(self, node: Node) -> bool:
        if node.type == "identifier":
            return self.is_variable(text_of(node))
        return node.type != "field_access" or self._is_value(node.child_by_field_name("object"))

    # --- functions and objects

    def _method_invocation(self, node: Node) -> Expression:
        return method_call(self, node)

    def call(self, owner: Expression, name: str, arguments: list[Node], node: Node) -> Expression:
        """Return what a method of a value returns."""
        return on_value(self, owner, name, arguments, node)

    def text_of_object(self, value: Expression, node: Node) -> Expression:
        """Return the text of an object of the project; other values unchanged."""
        return object_text(self, value, node)

    def _lambda_expression(self, node: Node) -> Expression:
        return self.function(node, ())

    def _method_reference(self, node: Node) -> Expression:
        return self.function(node, ())

    def function(self, node: Node, types: tuple[JavaType, ...]) -> Lambda:
        """Return a lambda or method reference as a function of values of some types."""
        if node.type == "method_reference":
            return reference(self, node, types)
        return read_lambda(self, node, types)

    def _array_initializer(self, node: Node) -> Expression:
        items = tuple(self.read(item) for item in children(node))
        element = items[0].type if items else UNKNOWN
        return Call("List.of", items, attrs.evolve(element, dims=element.dims + 1))

    def _array_creation_expression(self, node: Node) -> Expression:
        values = node.child_by_field_name("value")
        type_ = read_type(node.child_by_field_name("type"))
        if values is None:
            size = node.child_by_field_name("dimensions")
            zero = _ZEROS.get(type_.name)
            if size is None or len(children(node)) != 2:
                raise self.no(node, "an array without values")
            count = as_type(self.read(children(size)[0]), INT)
            first = Const(zero, type_) if zero is not None else Const(None, JavaType("null"))
            return Call("array of", (first, count), attrs.evolve(type_, dims=1))
        dims = attrs.evolve(type_, dims=type_.dims + 1)
        return attrs.evolve(self._array_initializer(values), type=dims)

    def _array_access(self, node: Node) -> Expression:
        array = self.read(node.child_by_field_name("array"))
        index = as_type(self.read(node.child_by_field_name("index")), INT)
        element = attrs.evolve(array.type, dims=max(0, array.type.dims - 1))
        return Call("List.get", (array, index), element)

    def _switch_expression(self, node: Node) -> Expression:
        return read_switch(self, node)

    def _object_creation_expression(self, node: Node) -> Expression:
        return read_creation(self, node)

    def _class_literal(self, node: Node) -> Expression:
        return Const(text_of(node).removesuffix(".class"), JavaType("Class"))

    def new(self, class_name: str, fields: dict[str, Expression]) -> Make:
        """Return a new object."""
        return Make(class_name, tuple(fields.items()), JavaType(class_name))
