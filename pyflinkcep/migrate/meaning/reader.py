# SPDX-License-Identifier: Apache-2.0
"""Reads Java's expressions."""

from __future__ import annotations

import attrs

from pyflinkcep.migrate.java.constants import LIMITS, converted, least, literal_of
from pyflinkcep.migrate.java.declarations import BOOLEAN, INT, STRING, UNKNOWN, JavaClass, JavaType
from pyflinkcep.migrate.java.project import discriminator, filled, is_assigned
from pyflinkcep.migrate.java.source import Node, children, lambda_of, line_of, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.calls import (
    enum_field,
    is_value,
    method_call,
    object_text,
    read_creation,
    zero,
)
from pyflinkcep.migrate.meaning.library import CONSTANTS, STATIC
from pyflinkcep.migrate.meaning.python import folded
from pyflinkcep.migrate.meaning.reading import Reading, as_type, computed, parameters_of, tag_of
from pyflinkcep.migrate.meaning.statements import folded_body, read_switch
from pyflinkcep.migrate.meaning.tree import (
    Binary,
    Call,
    Const,
    Expression,
    Get,
    Is,
    Lambda,
    Unary,
    Untranslatable,
    Var,
    field_of,
)


def as_lambda(reader: Reader, node: Node, types: tuple[JavaType, ...]) -> Node:
    """Return the lambda that ``Type::method`` stands for, of values of some types."""
    owner, name = text_of(node.children[0]), text_of(node.children[-1])
    names = ("each",) if len(types) < 2 else ("a", "b")
    given = ", ".join(names)
    body, type_ = f"{owner}.{name}({given})", ""
    if name == "new":
        body = f"new {owner}({given})"
    elif not is_value(reader, node.children[0]):
        of, count = reader.class_named(owner), len(names)
        methods = reader.scope.project.overloads(of, name, count) if of is not None else []
        is_static = any("static" in one.modifiers for one in methods)
        if of is None and name != "toString":
            is_static = (owner, name, count) in STATIC
        if not is_static:
            body = f"{names[0]}.{name}({', '.join(names[1:])})"
            type_ = f"{owner} " if not types or types[0] == UNKNOWN else ""
    return lambda_of(f"({type_}{given}) -> {body}", reader.source.file, line_of(node))


_OF_JAVA = frozenset({
    "Boolean", "Byte", "Character", "Short", "Integer", "Long", "Float", "Double", "Math", "String",
    "BigDecimal", "BigInteger", "Collections", "Comparator", "Duration", "Instant", "LocalDate",
    "LocalDateTime", "LocalTime", "RoundingMode", "StandardCharsets", "TimeZone",
    "ZoneOffset", "System",
})  # fmt: skip
"""Classes of Java's library, whose constants are no names of an enum of the program."""


@attrs.define(eq=False)
class Reader(Reading):
    """Reads the expressions at a place; what they need and lack goes to the findings."""

    # --- operators

    def _binary_expression(self, node: Node) -> Expression:
        operator = text_of(node.child_by_field_name("operator"))
        left = self.read(node.child_by_field_name("left"))
        right = self.read(node.child_by_field_name("right"))
        return self.operation(operator, left, right, node)

    def operation(self, op: str, left: Expression, right: Expression, node: Node) -> Expression:
        """Return an operator over two values, with Java's promotions."""
        if isinstance(left, Const) and isinstance(right, Const):
            found = folded(op, left, right)
            if found is not None:
                return found
        a, b = left.type.unboxed, right.type.unboxed
        if op in ("==", "!="):
            return self._equality(op, left, right, node)
        if op == "+" and STRING in (left.type, right.type):
            texts = tuple(object_text(self, side, node) for side in (left, right))
            return Call(ops.CONCAT, texts, STRING)
        made = computed(op, left, right)
        if made is not None:
            return made
        if op in ("<", "<=", ">", ">=") and UNKNOWN in (a, b):
            return Binary(op, left, right, BOOLEAN)
        if op in "+-*" and UNKNOWN in (a, b) and all(t == UNKNOWN or t.is_numeric for t in (a, b)):
            self.note(node, f"types are not known in {text_of(node)[:60]}: no overflow is assumed")
            floating = JavaType("double")
            type_ = floating if a.is_floating or b.is_floating else UNKNOWN
            return Binary(op, left, right, type_)
        raise self.no(node, f"{a} {op} {b} in {text_of(node)[:60]}")

    def _equality(self, op: str, left: Expression, right: Expression, node: Node) -> Expression:
        a, b = left.type.unboxed, right.type.unboxed
        null = JavaType("null")
        if null in (a, b):
            tested = right if a == null else left
            if isinstance(tested, Call) and tested.operation is ops.EVENTS:
                return Const(op == "!=", BOOLEAN)
            found: Expression = Call(ops.IS_NULL, (tested,), BOOLEAN)
            return found if op == "==" else Unary("!", found, BOOLEAN)
        primitive = not (left.type.is_boxed and right.type.is_boxed)
        made = computed(op, left, right) if primitive else None
        if made is not None:
            return made
        if primitive and BOOLEAN in (a, b):
            return Binary(op, left, right, BOOLEAN)
        if isinstance(left, Const) and isinstance(right, Const) and a == JavaType("Class"):
            return Const((left.value == right.value) == (op == "=="), BOOLEAN)
        literals = [side for side in (left, right) if isinstance(side, Const)]
        if UNKNOWN in (a, b) and literals and literals[0].type.is_numeric:
            return Binary(op, left, right, BOOLEAN)
        literals = [] if JavaType("Class") in (a, b) else literals
        enum = JavaType("Class") in (a, b) or any(
            (of := self.class_of(t)) is not None and of.kind == "enum" for t in (a, b)
        )
        if not enum and not any(s.type.name not in ("?", "String") for s in literals):
            self.note(
                node, f"{text_of(node)[:60]} compares references in Java; here, values are compared"
            )
        if left.type.is_boxed and left == right and isinstance(left, Get):
            same: Expression = Const(True, BOOLEAN)
        elif left.type.is_boxed and right.type.is_boxed:
            same = Call(ops.SAME_BOXED, (left, right), BOOLEAN)
        else:
            same = Call(ops.SAME, (left, right), BOOLEAN)
        return same if op == "==" else Unary("!", same, BOOLEAN)

    def _unary_expression(self, node: Node) -> Expression:
        operator = text_of(node.child_by_field_name("operator"))
        inner = node.child_by_field_name("operand")
        whole = literal_of(inner)
        if operator == "-" and whole is None and "integer" in inner.type:
            return least(text_of(inner))
        operand = self.read(inner)
        held = folded(operator, operand) if isinstance(operand, Const) else None
        made = held or computed(operator, operand)
        if made is not None:
            return made
        raise self.no(node, f"{operator} of {operand.type.unboxed} in {text_of(node)[:60]}")

    def _update_expression(self, node: Node) -> Expression:
        """Return ``i++`` or ``++i``: the counter changes where its value is read."""
        operand = self.read(children(node)[0])
        if not isinstance(operand, Var) or not operand.type.is_whole:
            raise self.no(node, f"update expression: {text_of(node)[:60]}")
        step = Const(1 if "++" in text_of(node) else -1, INT)
        later = text_of(node)[-1] in "+-"
        return Call(ops.STEP, (operand, step, Const(later, BOOLEAN)), operand.type.unboxed)

    def _cast_expression(self, node: Node) -> Expression:
        type_ = self.type_at(node.child_by_field_name("type"))
        return self.cast(self.read(node.child_by_field_name("value")), type_)

    def _ternary_expression(self, node: Node) -> Expression:
        names = ("condition", "consequence", "alternative")
        condition, yes, no = (self.read(node.child_by_field_name(name)) for name in names)
        return self.choice(condition, yes, no)

    def _instanceof_expression(self, node: Node) -> Expression:
        value = self.read(node.child_by_field_name("left"))
        right = node.child_by_field_name("right")
        if right is None:
            raise self.no(node, f"a pattern in {text_of(node)[:60]}")
        name = node.child_by_field_name("name")
        if name is not None:
            self.scope.values[text_of(name)] = self.cast(value, self.type_at(right))
        return self.is_a(value, self.type_at(right), node)

    def is_a(self, value: Expression, type_: JavaType, node: Node) -> Expression:
        """Return whether an object is of a class, as its column of classes says."""
        of = self.class_of(type_)
        if of is None:
            raise self.no(node, f"the class {type_} is not in the sources")
        have = self.class_of(value.type)
        if have is not None and any(one is of for one in self.scope.project.lineage(have)):
            return Unary("!", Call(ops.IS_NULL, (value,), BOOLEAN), BOOLEAN)
        kinds = (of, *self.scope.project.subclasses(of))
        names = tuple(one.name for one in kinds if "abstract" not in one.annotations)
        return Is(value, discriminator(of, self.scope.project), names or (of.name,))

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
        found = self._constant(name) or self.enum_constant(name)
        if found is not None:
            return found
        raise self.no(node, f"the value of {name} is not known here")

    def _constant(self, name: str, of: JavaClass | None = None) -> Expression | None:
        """Return what a final or static field always holds; None for others."""
        found = self.scope.project.constant_field(name, self.source, of or self.scope.within)
        if found is None or found[0].value is None or self.scope.depth > 20:
            return None
        field, owner = found
        if field.type.name == "OutputTag":
            return tag_of(field.value, field.type)
        is_static = "static" in field.modifiers
        try:
            value = self.at(owner.source, owner).argument(field.value, (field.type,))
        except Untranslatable:
            if is_static:
                raise
            return None
        is_plain = isinstance(value, Const) and "final" in field.modifiers
        if isinstance(value, Const) and is_plain:
            return converted(value, field.type) or value
        if not is_static or (isinstance(value, Call) and not value.operands):
            return None  # filled elsewhere
        if "final" not in field.modifiers and is_assigned(name, owner, self.scope.project):
            raise Untranslatable(f"{name} is assigned while the program runs")
        return self.assigned(value, field.type)

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
            of = self.class_named(text_of(owner))
            constant: Expression | None = LIMITS.get((text_of(owner), name))
            if constant is None and of is not None:
                constant = self._constant(name, of)
            if constant is not None:
                return constant
            library = CONSTANTS.get((text_of(owner).rsplit(".", 1)[-1], name))
            if of is None and library is not None:
                return library
            if of is not None and of.kind == "enum" and name in of.constants:
                return Const(name, JavaType(of.name))
            if text_of(owner) in _OF_JAVA:
                raise self.no(node, f"{text_of(node)} has no translation")
            if text_of(owner)[:1].isupper() and of is None and name.isupper():
                self.note(node, f"{text_of(node)} is not in the sources: taken as an enum's name")
                return Const(name, JavaType(text_of(owner).rsplit(".", 1)[-1]))
        value = self.read(owner)
        if value.type.dims and name == "length":
            return Call(ops.SIZE, (value,), INT)
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
        if value.type.dims:
            raise self.no(node, f"{name} of an array")
        self.note(node, f"the type of the field {name} is not in the sources")
        return Get(value, name, UNKNOWN)

    def _is_value(self, node: Node) -> bool:
        if node.type == "identifier":
            return self.is_variable(text_of(node))
        return node.type != "field_access" or self._is_value(node.child_by_field_name("object"))

    # --- functions and objects

    _method_invocation = method_call
    _object_creation_expression = read_creation

    def _lambda_expression(self, node: Node) -> Expression:
        return self.function(node, ())

    _method_reference = _lambda_expression

    def function(self, node: Node, types: tuple[JavaType, ...]) -> Lambda:
        """Return a lambda or method reference as a function of values of some types."""
        if node.type == "method_reference":
            node = as_lambda(self, node, types)
        if node.type != "lambda_expression":
            raise self.no(node, f"{text_of(node)[:60]} as a function")
        inner = self.within_block()
        names = []
        for place, (name, type_) in enumerate(parameters_of(node)):
            given = types[place] if place < len(types) else UNKNOWN
            type_ = filled(type_, self.scope.types)
            names.append(inner.scope.declare(name, given if type_ == UNKNOWN else type_).name)
        body = node.child_by_field_name("body")
        value = folded_body(inner, body) if body.type == "block" else inner.read(body)
        return Lambda(tuple(names), value, value.type)

    def _array_initializer(self, node: Node) -> Expression:
        items = tuple(self.read(item) for item in children(node))
        element = items[0].type if items else UNKNOWN
        return Call(ops.LIST, items, attrs.evolve(element, dims=element.dims + 1))

    def _array_creation_expression(self, node: Node) -> Expression:
        values = node.child_by_field_name("value")
        type_ = self.type_at(node.child_by_field_name("type"))
        if values is None:
            size = node.child_by_field_name("dimensions")
            if size is None or len(children(node)) != 2:
                raise self.no(node, "an array without values")
            count = as_type(self.read(children(size)[0]), INT)
            return Call(ops.ARRAY_OF, (zero(type_), count), attrs.evolve(type_, dims=1))
        dims = attrs.evolve(type_, dims=type_.dims + 1)
        return attrs.evolve(self._array_initializer(values), type=dims)

    def _array_access(self, node: Node) -> Expression:
        array = self.read(node.child_by_field_name("array"))
        index = as_type(self.read(node.child_by_field_name("index")), INT)
        element = attrs.evolve(array.type, dims=max(0, array.type.dims - 1))
        return Call(ops.GET, (array, index), element)

    def _switch_expression(self, node: Node) -> Expression:
        return folded_body(self, tuple(read_switch(self, node, is_value=True)))

    def _class_literal(self, node: Node) -> Expression:
        return Const(text_of(node).removesuffix(".class"), JavaType("Class"))
