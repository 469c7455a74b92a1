# SPDX-License-Identifier: Apache-2.0
"""Follows expressions: what is known of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import attrs

from pyflinkcep.migrate.chains.branches import Watch, either
from pyflinkcep.migrate.chains.constants import (
    binary,
    converted,
    least,
    literal,
    parameter,
    tested,
    unary,
)
from pyflinkcep.migrate.chains.lookup import (
    LITERALS,
    is_stream_type,
    javadoc,
    simple_name,
    type_arguments,
)
from pyflinkcep.migrate.chains.objects import by_field, changes, construct, names_reached, unset
from pyflinkcep.migrate.chains.values import (
    Call,
    Code,
    Constant,
    Header,
    Link,
    Loop,
    Made,
    Scope,
    Skip,
    Stream,
    Symbol,
    Unknown,
    Value,
)
from pyflinkcep.migrate.java.constants import LIMITS
from pyflinkcep.migrate.java.declarations import JavaClass, Method
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, children, line_of, text_of
from pyflinkcep.migrate.java.types import BOOLEAN, unboxed
from pyflinkcep.migrate.meaning.tree import Unary
from pyflinkcep.migrate.translated import Note

__all__ = ["Expressions"]

_CODE = frozenset(["lambda_expression", "method_reference", "class_literal"])


@attrs.define(eq=False)
class Expressions:
    """
    Follows expressions.

    Attributes
    ----------
    project : Project
        All classes.
    links : list of Link
        The patterns that were made, each stage one.
    streams : list of Stream
        The streams, and what was done with them, in order.
    settings : list of Call
        What was set on the environment.
    notes : list of Note
        What could not be followed.
    """

    project: Project
    links: list[Link] = attrs.field(factory=list)
    streams: list[Stream] = attrs.field(factory=list)
    notes: list[Note] = attrs.field(factory=list)
    settings: list[Call] = attrs.field(factory=list)
    steps: int = 0
    depth: int = 0
    unsure: int = 0
    last: Node = None
    _fields: dict[tuple[int, str], Value] = attrs.field(factory=dict)
    _objects: dict[int, tuple[Made, Made]] = attrs.field(factory=dict)

    def run(
        self,
        method: Method,
        owner: JavaClass,
        arguments: Sequence[Value] | None = None,
        this: Made | None = None,
    ) -> Value | None:
        """Follow a method."""
        raise NotImplementedError

    # --- expressions

    def evaluate(self, node: Node | None, scope: Scope) -> Value:
        """Return what is known of the value of an expression."""
        self.steps += 1
        self.last = node
        if node is None or self.steps > 20_000:
            return Unknown(Code(node, scope.source, scope))
        if node.type in LITERALS:
            return literal(node) or Unknown(Code(node, scope.source, scope))
        if node.type in _CODE:
            return self.captured(node, scope)
        follow: Callable[[Node, Scope], Value | None] | None
        follow = getattr(self, f"_{node.type}", None)
        value: Value | None = None if follow is None else follow(node, scope)
        if value is not None:
            return value
        if node.type == "method_invocation":
            return Unknown(self.captured(node, scope))
        return Unknown(Code(node, scope.source, scope.snapshot()))

    def captured(self, node: Node, scope: Scope) -> Code:
        """Return code to be translated later, with what it sees now; ``this.x`` if x is hidden."""
        seen = scope.snapshot()
        owner = scope.owner
        while owner is not None:
            names = names_reached(node, owner) & set(owner.fields)
            for name in sorted(names):
                field = owner.fields[name]
                key = f"this.{name}" if name in seen.values else name
                value = None if field.is_constant else self.field(name, scope)
                if isinstance(value, Symbol | Constant):
                    seen.values.setdefault(key, value)
            owner = owner.outer
        return Code(node, scope.source, seen)

    def _this(self, _node: Node, scope: Scope) -> Value | None:
        return scope.object()

    def _parenthesized_expression(self, node: Node, scope: Scope) -> Value | None:
        parts = children(node)
        return self.evaluate(parts[0], scope) if parts else None

    _condition = _parenthesized_expression

    def _cast_expression(self, node: Node, scope: Scope) -> Value | None:
        value = self.evaluate(node.child_by_field_name("value"), scope)
        return converted(value, text_of(node.child_by_field_name("type")))

    def _identifier(self, node: Node, scope: Scope) -> Value | None:
        name = text_of(node)
        return scope.find(name) or self.field(name, scope)

    def _field_access(self, node: Node, scope: Scope) -> Value | None:
        owner, name = node.child_by_field_name("object"), text_of(node.child_by_field_name("field"))
        if owner.type == "this":
            return self.field(name, scope)
        if simple_name(text_of(owner)) == "Duration" and name == "ZERO":
            return Constant(timedelta(0))
        limit = LIMITS.get((text_of(owner), name))
        if limit is not None:
            return Constant(limit.value, limit.type.name)
        if name == "length":
            held = self.evaluate(owner, scope)
            if isinstance(held, Constant) and isinstance(held.value, tuple):
                return Constant(len(held.value))
        if owner.type in ("identifier", "field_access", "scoped_identifier"):
            declared = self.project.find(simple_name(text_of(owner)), scope.source)
            if declared is not None and scope.find(text_of(owner)) is None:
                if name in declared.fields:
                    return self.field_of(declared, name)
                if name in declared.constants:
                    return Code(node, scope.source, scope)
        held = self.evaluate(owner, scope)
        return self.member(held, name) if isinstance(held, Made) else None

    def member(self, made: Made, name: str) -> Value | None:
        """Return a field of an object, if its constructor only keeps what it is given."""
        if name in made.state:
            return made.state[name]
        declared = self.project.find(simple_name(made.type), made.code.source)
        if declared is None:
            return None
        given = by_field(declared, made, self.project)
        held = (given or {}).get(name) or self._constructed(declared, name, made, True)
        null = held is None and given is not None and unset(self.project.field(declared, name))
        return Constant(None) if null else held

    def field(self, name: str, scope: Scope) -> Value | None:
        """Return what a field of the class around, or a constant imported, holds."""
        this = scope.object()
        held = None if this is None else self.member(this, name)
        if held is not None:
            return held
        owner = scope.owner
        while owner is not None:
            extended: JavaClass | None = owner
            for _ in range(8):
                if extended is None:
                    break
                if name in extended.fields:
                    return self.field_of(extended, name)
                above = extended.superclass
                extended = None if above is None else self.project.find(above.name, scope.source)
            owner = owner.outer
        constant = self.project.constant_field(name, scope.source, scope.owner)
        return None if constant is None else self.field_of(constant[1], name)

    def field_of(self, owner: JavaClass, name: str) -> Value | None:
        """Return what a field holds at first."""
        key = (id(owner), name)
        if key not in self._fields:
            found = owner.fields[name]
            scope = Scope(owner.source, owner)
            where = Code(owner.node, owner.source, scope)
            self._fields[key] = Unknown(where)
            if found.value is not None:
                value = converted(self.evaluate(found.value, scope), str(found.type))
                node = found.value.parent.parent
                self._fields[key] = self.declared(value, name, str(found.type), node)
                if isinstance(value, Constant) and changes(owner, name, value, self.project):
                    self.doubt(node, scope, f"{name} is a parameter: Java assigns it while it runs")
                    self._fields[key] = parameter(name, str(found.type), value.value)
            elif (assigned := self._assigned(owner, name)) is not None:
                self._fields[key] = self.declared(assigned, name, str(found.type), owner.node)
            elif is_stream_type(str(found.type)):
                self._fields[key] = self.parameter_stream(where, name, str(found.type))
            elif str(found.type) in ("int", "long", "String", "boolean", "double", "Duration"):
                self._fields[key] = parameter(name, str(found.type))
        return self._fields[key]

    def _assigned(self, owner: JavaClass, name: str) -> Value | None:
        """Return what a constructor of a class makes of a field, its arguments unknown."""
        where = Code(owner.node, owner.source, Scope(owner.source, owner))
        return self._constructed(owner, name, Made(owner.name, (), where), False)

    def _constructed(self, owner: JavaClass, name: str, made: Made, given: bool) -> Value | None:
        """Return what a field holds after the constructor, which is followed once."""
        if id(made) not in self._objects:
            self._objects[id(made)] = (made, construct(self.run, owner, made, given=given))
        value = self._objects[id(made)][1].state.get(name)
        return value if isinstance(value, Link | Skip | Constant) else None

    def declared(self, value: Value, name: str, kind: str, node: Node) -> Value:
        """Return a value with the name and type of the variable that holds it."""
        if isinstance(value, Link | Stream):
            arguments = type_arguments(kind)
            if value.name is None:
                value.name = name
            if arguments and value.event_type is None:
                value.event_type = arguments[-1 if kind.startswith("Single") else 0]
            if isinstance(value, Link) and not value.documented:
                value.documented = "" if node is None else javadoc(node)
        return value

    def _binary_expression(self, node: Node, scope: Scope) -> Value | None:
        sign = text_of(node.child_by_field_name("operator"))
        left = self.evaluate(node.child_by_field_name("left"), scope)
        if isinstance(left, Constant) and (sign, bool(left.value)) in (("&&", False), ("||", True)):
            return left
        right = self.evaluate(node.child_by_field_name("right"), scope)
        if sign in ("==", "!=") and Constant(None) in (left, right):
            other = right if left == Constant(None) else left
            if not isinstance(other, Constant | Symbol | Unknown):
                return Constant(sign == "!=")
        return binary(sign, left, right)

    def _unary_expression(self, node: Node, scope: Scope) -> Value | None:
        sign = text_of(node.child_by_field_name("operator"))
        operand = node.child_by_field_name("operand")
        value = self.evaluate(operand, scope)
        if sign == "-" and isinstance(value, Unknown) and operand.type.endswith("integer_literal"):
            return least(text_of(operand))
        if isinstance(value, Symbol):
            type_ = BOOLEAN if sign == "!" else unboxed(value.tree.type)
            return Symbol(Unary(sign, value.tree, type_), value.names) if sign != "+" else value
        if not isinstance(value, Constant):
            return None
        return unary(sign, value)

    def _ternary_expression(self, node: Node, scope: Scope) -> Value | None:
        condition = self.evaluate(node.child_by_field_name("condition"), scope)
        then, otherwise = (node.child_by_field_name(f) for f in ("consequence", "alternative"))
        if isinstance(condition, Constant):
            return self.evaluate(then if condition.value else otherwise, scope)
        test = self.as_test(condition, node.child_by_field_name("condition"))
        values = []
        for side in (then, otherwise):
            watch = Watch(scope)
            values.append(self.evaluate(side, scope))
            watch.taken()
        return self.joined(test, *values)

    def joined(self, test: Symbol, first: Value, second: Value) -> Value | None:
        """Return the value that is one of two, as a test at run time decides."""
        made = either(test, first, second)
        if isinstance(made, Link) and made is not first:
            self.links.append(made)
        return made

    def _assignment_expression(self, node: Node, scope: Scope) -> Value | None:
        target = node.child_by_field_name("left")
        value = self.evaluate(node.child_by_field_name("right"), scope)
        sign = text_of(node.child_by_field_name("operator"))
        name = text_of(target).removeprefix("this.")
        if sign != "=":
            before = scope.find(name)
            value = (binary(sign[:-1], before, value) if before else None) or Unknown(
                Code(node, scope.source, scope)
            )
        this = scope.object()
        is_field = text_of(target).startswith("this.") or scope.find(name) is None
        if this is not None and is_field and "." not in name:
            this.state[name] = value if not self.unsure else Unknown(self.captured(node, scope))
            return value
        if target.type in ("identifier", "field_access") and "." not in name:
            kind = scope.type_of(name) or ""
            value = self.declared(converted(value, kind), name, kind, node.parent)
            scope.set(name, value)
        return value

    def _update_expression(self, node: Node, scope: Scope) -> Value | None:
        operand = children(node)[0]
        before = scope.find(text_of(operand))
        step = Constant(1 if "++" in text_of(node) else -1)
        after = binary("+", before, step) if isinstance(before, Constant) else None
        scope.set(text_of(operand), after or Unknown(Code(node, scope.source, scope)))
        return before

    def _array_creation_expression(self, node: Node, scope: Scope) -> Value | None:
        values = node.child_by_field_name("value")
        return None if values is None else self._array_initializer(values, scope)

    def _array_initializer(self, node: Node, scope: Scope) -> Value:
        return Constant(tuple(self._plain(part, scope) for part in children(node)))

    def _array_access(self, node: Node, scope: Scope) -> Value | None:
        values = self.evaluate(node.child_by_field_name("array"), scope)
        at = self.evaluate(node.child_by_field_name("index"), scope)
        return self._element(values, at)

    def _element(self, values: Value, at: Value) -> Value | None:
        if isinstance(values, Constant) and isinstance(at, Constant):
            try:
                found = values.value[at.value]  # type: ignore[index]
            except (TypeError, IndexError, KeyError):
                return None
            return found if isinstance(found, Value) else Constant(found)
        return None

    def _plain(self, node: Node, scope: Scope) -> object:
        """Return the plain value of an element of a list, or what is known of it."""
        value = self.evaluate(node, scope)
        return value.value if isinstance(value, Constant) else value

    # --- what is known at run time alone

    def as_test(self, condition: Value, node: Node) -> Symbol:
        """Return a condition as Python; as a parameter if it cannot be written."""
        return condition if isinstance(condition, Symbol) else tested(text_of(node))

    def repeated(
        self, node: Node, scope: Scope, header: Header | None, follow: Callable[[], object]
    ) -> None:
        """Follow the body of a loop once, and let patterns go through it at run time."""
        watch, streams = Watch(scope), len(self.streams)
        follow()
        if any(stream.call.method == "pattern" for stream in self.streams[streams:]):
            self.doubt(node, scope, "a pattern is applied in a loop: write the loop around it")
        changed, added = watch.taken()
        touches = [v for v in changed.values() if isinstance(v, Link)] or added
        if header is None and touches:
            self.doubt(node, scope, "a loop of which the source does not say how often it runs")
        header = header or Header()
        for key, items in added.items():
            watch.link(key).items.append(Loop(header, tuple(items)))
        for place, value in changed.items():
            old = watch.old(place)
            if isinstance(value, Link) and isinstance(old, Link):
                loop = Loop(header, tuple(value.flat(old)))
                looped = Link(old, [loop], old.begun, old.event_type, old.name)
                watch.set(place, looped)
                looped.joined = (value,)
                self.links.append(looped)
            else:
                watch.set(place, Unknown(Code(node, scope.source, scope)))

    def doubt(self, node: Node, scope: Scope, what: str) -> None:
        """Note that something could not be followed."""
        self.notes.append(Note(scope.source.file, line_of(node), what))

    # --- streams

    def parameter_stream(self, code: Code, name: str, kind: str) -> Stream:
        """Return a stream that a method is given."""
        arguments = type_arguments(kind)
        stream = Stream(Call("parameter", (), code), (), arguments[0] if arguments else None, name)
        self.streams.append(stream)
        return stream
