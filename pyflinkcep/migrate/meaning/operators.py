# SPDX-License-Identifier: Apache-2.0
"""Reads Java's operators, with its promotions of numbers."""

from __future__ import annotations

import attrs

from pyflinkcep.migrate.java.constants import binary as folded_binary
from pyflinkcep.migrate.java.constants import promoted
from pyflinkcep.migrate.java.constants import unary as folded_unary
from pyflinkcep.migrate.java.declarations import JavaType, read_type
from pyflinkcep.migrate.java.literals import Constant, literal_of
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import (
    BOOLEAN,
    INT,
    STRING,
    UNKNOWN,
    discriminator,
    is_boxed,
    is_floating,
    is_numeric,
    is_whole,
    unboxed,
)
from pyflinkcep.migrate.meaning.reading import Reading, as_type
from pyflinkcep.migrate.meaning.tree import (
    Binary,
    Call,
    Cast,
    Choice,
    Const,
    Expression,
    Get,
    Is,
    Unary,
    Var,
)
from pyflinkcep.migrate.meaning.type_patterns import of_pattern

__all__ = ["Operators"]

_COMPARISONS = ("<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>")


@attrs.define(eq=False)
class Operators(Reading):
    """Reads operators."""

    def _binary_expression(self, node: Node) -> Expression:
        operator = text_of(node.child_by_field_name("operator"))
        left = self.read(node.child_by_field_name("left"))
        right = self.read(node.child_by_field_name("right"))
        return self.operation(operator, left, right, node)

    def operation(self, op: str, left: Expression, right: Expression, node: Node) -> Expression:
        """Return an operator over two values, with Java's promotions."""
        if isinstance(left, Const) and isinstance(right, Const):
            found = folded_binary(
                op, Constant(left.value, left.type), Constant(right.value, right.type)
            )
            if found is not None:
                return Const(found.value, found.type)
        a, b = unboxed(left.type), unboxed(right.type)
        if op in ("&&", "||"):
            return Binary(op, left, right, BOOLEAN)
        if op in ("==", "!="):
            return self._equality(op, left, right, node)
        if op == "+" and STRING in (left.type, right.type):
            texts = tuple(self.text_of_object(side, node) for side in (left, right))
            return Call("concat", texts, STRING)
        if op in ("&", "|", "^") and a == b == BOOLEAN:
            return Binary(op, left, right, BOOLEAN)
        if op in _COMPARISONS and is_numeric(a) and is_numeric(b):
            type_ = JavaType(promoted(a.name, b.name))
            if a == b == JavaType("char"):
                type_ = a
            return Binary(op, as_type(left, type_), as_type(right, type_), BOOLEAN)
        if op in _COMPARISONS and UNKNOWN in (a, b):
            return Binary(op, left, right, BOOLEAN)
        if op in _ARITHMETIC and is_numeric(a) and is_numeric(b):
            if op in ("<<", ">>", ">>>"):
                type_ = JavaType(promoted(a.name, a.name))
                return Binary(op, as_type(left, type_), as_type(right, INT), type_)
            type_ = JavaType(promoted(a.name, b.name))
            return Binary(op, as_type(left, type_), as_type(right, type_), type_)
        if op in "+-*" and UNKNOWN in (a, b) and all(t == UNKNOWN or is_numeric(t) for t in (a, b)):
            self.note(node, f"types are not known in {text_of(node)[:60]}: no overflow is assumed")
            floating = JavaType("double")
            type_ = floating if is_floating(a) or is_floating(b) else UNKNOWN
            return Binary(op, left, right, type_)
        raise self.no(node, f"{a} {op} {b} in {text_of(node)[:60]}")

    def _equality(self, op: str, left: Expression, right: Expression, node: Node) -> Expression:
        a, b = unboxed(left.type), unboxed(right.type)
        null = JavaType("null")
        if null in (a, b):
            tested = right if a == null else left
            if isinstance(tested, Call) and tested.name == "events":
                return Const(op == "!=", BOOLEAN)
            found: Expression = Call("is null", (tested,), BOOLEAN)
            return found if op == "==" else Unary("!", found, BOOLEAN)
        primitive = not (is_boxed(left.type) and is_boxed(right.type))
        if primitive and is_numeric(a) and is_numeric(b):
            type_ = JavaType(promoted(a.name, b.name))
            if a == b == JavaType("char"):
                type_ = a
            return Binary(op, as_type(left, type_), as_type(right, type_), BOOLEAN)
        if primitive and BOOLEAN in (a, b):
            return Binary(op, left, right, BOOLEAN)
        if isinstance(left, Const) and isinstance(right, Const) and a == JavaType("Class"):
            return Const((left.value == right.value) == (op == "=="), BOOLEAN)
        literals = [side for side in (left, right) if isinstance(side, Const)]
        if UNKNOWN in (a, b) and literals and is_numeric(literals[0].type):
            return Binary(op, left, right, BOOLEAN)
        literals = [] if JavaType("Class") in (a, b) else literals
        enum = JavaType("Class") in (a, b) or any(
            (of := self.class_of(t)) is not None and of.kind == "enum" for t in (a, b)
        )
        if not enum and not any(s.type.name not in ("?", "String") for s in literals):
            self.note(
                node,
                f"{text_of(node)[:60]} compares references in Java; here, values are compared",
            )
        if is_boxed(left.type) and left == right and isinstance(left, Get):
            same: Expression = Const(True, BOOLEAN)
        elif is_boxed(left.type) and is_boxed(right.type):
            same = Call("same boxed", (left, right), BOOLEAN)
        else:
            same = Call("Objects.equals", (left, right), BOOLEAN)
        return same if op == "==" else Unary("!", same, BOOLEAN)

    def _unary_expression(self, node: Node) -> Expression:
        operator = text_of(node.child_by_field_name("operator"))
        inner = node.child_by_field_name("operand")
        whole = literal_of(inner)
        if operator == "-" and whole is None and "integer" in inner.type:
            digits = text_of(inner).replace("_", "").rstrip("lL")  # the least int or long
            type_ = JavaType("long" if text_of(inner)[-1] in "lL" else "int")
            return Const(-int(digits), type_)
        operand = self.read(inner)
        type_ = unboxed(operand.type)
        if isinstance(operand, Const):
            found = folded_unary(operator, Constant(operand.value, operand.type))
            if found is not None:
                return Const(found.value, found.type)
        if operator == "!":
            return Unary("!", operand, BOOLEAN)
        if is_numeric(type_) and operator in "+-~":
            type_ = JavaType(promoted(type_.name, type_.name))
            operand = as_type(operand, type_)
            return operand if operator == "+" else Unary(operator, operand, type_)
        raise self.no(node, f"{operator} of {type_} in {text_of(node)[:60]}")

    def _update_expression(self, node: Node) -> Expression:
        """Return ``i++`` or ``++i``: the counter changes where its value is read."""
        operand = self.read(children(node)[0])
        if not isinstance(operand, Var) or not is_whole(operand.type):
            raise self.no(node, f"update expression: {text_of(node)[:60]}")
        step = Const(1 if "++" in text_of(node) else -1, INT)
        later = text_of(node)[-1] in "+-"
        return Call("step", (operand, step, Const(later, BOOLEAN)), unboxed(operand.type))

    def _assignment_expression(self, node: Node) -> Expression:
        """Return ``x = value`` as a value: the variable changes where it is read."""
        target = self.read(node.child_by_field_name("left"))
        if text_of(node.child_by_field_name("operator")) != "=" or not isinstance(target, Var):
            raise self.no(node, f"assignment expression: {text_of(node)[:60]}")
        value = self.argument(node.child_by_field_name("right"), (target.type,))
        return Call("assign", (target, self.assigned(value, target.type)), target.type)

    def _cast_expression(self, node: Node) -> Expression:
        type_ = self.type_at(node.child_by_field_name("type"))
        return self.cast(self.read(node.child_by_field_name("value")), type_)

    def cast(self, value: Expression, type_: JavaType) -> Expression:
        """Return a value cast to a type."""
        have, want = unboxed(value.type), unboxed(type_)
        if is_numeric(want) and is_numeric(have) and have != want:
            converted_ = as_type(value, want)
            widens = (
                is_whole(have) and is_whole(want) and promoted(have.name, want.name) != have.name
            )
            if converted_ is value and not widens and is_whole(want):
                return Cast(value, want)
            return (
                converted_
                if converted_ is not value
                else attrs.evolve(value, type=type_)
                if (isinstance(value, Const | Get | Var))
                else Cast(value, want)
            )
        if isinstance(value, Get | Var | Call) and not is_numeric(have):
            return attrs.evolve(value, type=type_)
        return value

    def _ternary_expression(self, node: Node) -> Expression:
        names = ("condition", "consequence", "alternative")
        condition, yes, no = (self.read(node.child_by_field_name(name)) for name in names)
        return self.choice(condition, yes, no)

    def choice(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        """Return a choice, with Java's common type of both sides."""
        if isinstance(condition, Const):
            return yes if condition.value else no
        a, b = yes.type, no.type
        if unboxed(a) == unboxed(b) and a != b:
            return Choice(condition, self.unboxed(yes), self.unboxed(no), unboxed(a))
        type_ = a if a.name != "null" else b
        if is_numeric(a) and is_numeric(b) and unboxed(a) != unboxed(b):
            type_ = JavaType(promoted(unboxed(a).name, unboxed(b).name))
            yes, no = (as_type(self.unboxed(side), type_) for side in (yes, no))
        return Choice(condition, yes, no, type_)

    def _instanceof_expression(self, node: Node) -> Expression:
        value = self.read(node.child_by_field_name("left"))
        right = node.child_by_field_name("right")
        if right is None:
            return of_pattern(self, node.child_by_field_name("pattern"), value)
        name = node.child_by_field_name("name")
        if name is not None:
            self.scope.values[text_of(name)] = self.cast(value, read_type(right))
        return self.is_a(value, read_type(right), node)

    def is_a(self, value: Expression, type_: JavaType, node: Node) -> Expression:
        """Return whether an object is of a class, as its column of classes says."""
        of = self.class_of(type_)
        if of is None:
            raise self.no(node, f"the class {type_} is not in the sources")
        have = self.class_of(value.type)
        if have is not None and any(one is of for one in self.scope.project.lineage(have)):
            return Unary("!", Call("is null", (value,), BOOLEAN), BOOLEAN)
        kinds = (of, *self.scope.project.subclasses(of))
        names = tuple(one.name for one in kinds if "abstract" not in one.annotations)
        return Is(value, discriminator(of, self.scope.project), names or (of.name,))
