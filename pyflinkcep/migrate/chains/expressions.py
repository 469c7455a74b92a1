# SPDX-License-Identifier: Apache-2.0
"""Follows expressions, calls and constructors: what is known of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping
from datetime import timedelta
from typing import Any, ClassVar

import attrs

from pyflinkcep.migrate.chains import flow
from pyflinkcep.migrate.chains.values import (
    CHANGES,
    KEPT,
    Call,
    Code,
    Const,
    Link,
    Made,
    Scope,
    Skip,
    Stream,
    Symbol,
    Tag,
    TooLong,
    Unknown,
    Value,
    Watch,
    binary,
    converted,
    duration,
    either,
    forget,
    in_unit,
    names_reached,
    numbered,
    unset,
)
from pyflinkcep.migrate.java.constants import LIMITS, least, literal_of
from pyflinkcep.migrate.java.declarations import (
    BOOLEAN,
    JavaClass,
    JavaType,
    Method,
    type_arguments,
    written_type,
)
from pyflinkcep.migrate.java.project import Project, chosen, is_assigned
from pyflinkcep.migrate.java.source import (
    Node,
    children,
    inside,
    is_stream_type,
    javadoc,
    line_of,
    simple_name,
    snake,
    text_of,
)
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.python import folded
from pyflinkcep.migrate.meaning.reading import computed
from pyflinkcep.migrate.meaning.translated import PART, Note
from pyflinkcep.migrate.meaning.tree import Call as TreeCall
from pyflinkcep.migrate.meaning.tree import Unary, Var

STAGES = frozenset(["next", "followedBy", "followedByAny", "notNext", "notFollowedBy"])
"""The calls that add a stage."""

CONDITIONS = frozenset(["where", "or", "until"])
"""The calls with a condition."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9]?")
"""The name of a type that a method is given."""


def begin(walker: Expressions, call: Call) -> Link:
    """Return the pattern that a call of ``begin`` makes."""
    written = type_arguments(text_of(call.code.node.child_by_field_name("type_arguments")))
    kind = written[0] if written else None
    if kind is not None and _VARIABLE.fullmatch(kind):  # unless a class is called like that
        kind = kind if walker.project.find(kind, call.code.source) is not None else None
    link = Link(None, [call], call.code, kind)
    walker.links.append(link)
    _take_groups(link, call)
    return link


def called(walker: Expressions, link: Link, call: Call) -> Value | None:
    """Return what a call on a pattern returns: a further stage, or the same one, changed."""
    if call.method in STAGES:
        longer = Link(link, [call], link.begun, link.event_type)
        walker.links.append(longer)
        _take_groups(longer, call)
        return longer
    if call.method in CHANGES:
        link.items.append(call)
        return link
    return None


def _take_groups(link: Link, call: Call) -> None:
    for argument in call.arguments:
        if isinstance(argument, Link):
            argument.is_group = True
            link.event_type = link.event_type or argument.event_type


_LISTS = frozenset(["asList", "of", "stream"])
_READING = frozenset(["forEach", "containsAll", "lastIndexOf", "subList", "toArray", "copyOf"])
_READING_SETTINGS = ("get", "contains", "isEmpty", "size", "stringPropertyNames", "list")
_FUNCTIONS = ("lambda_expression", "method_reference", "object_creation_expression")


MOST_STEPS = 200_000
_CODE = frozenset(["lambda_expression", "method_reference", "class_literal"])
_WITHOUT_EFFECT = frozenset(["this", "super", "identifier", "scoped_identifier", "type_identifier"])


@attrs.define(eq=False)
class Expressions:
    """Follows expressions."""

    run: ClassVar[Callable[..., Value | None]]  # Follows the statements of a method
    project: Project  # All classes
    links: list[Link] = attrs.field(factory=list)  # The patterns that were made, each stage one
    # The streams, and what was done with them, in order.
    streams: list[Stream] = attrs.field(factory=list)
    notes: list[Note] = attrs.field(factory=list)  # What could not be followed
    settings: list[Call] = attrs.field(factory=list)  # What was set on the environment
    # What is done with streams, or with patterns elsewhere, in code that is not followed.
    gaps: list[Code] = attrs.field(factory=list)
    idle: list[Code] = attrs.field(factory=list)  # The code that is known not to be reached
    # What static fields were set to, by class and name.
    set_fields: dict[tuple[JavaClass, str], Value] = attrs.field(factory=dict)
    steps: int = 0
    depth: int = 0
    unsure: int = 0
    frame: int = 0
    callers: list[Scope] = attrs.field(factory=list)
    _symbols: dict[str, object] = attrs.field(factory=dict)
    _counters: list[str] = attrs.field(factory=list)
    _fields: dict[tuple[JavaClass, str], Value] = attrs.field(factory=dict)
    # The fields that constructors set, of an object, or of a class with unknown arguments.
    _objects: dict[JavaClass | Made, dict[str, Value] | None] = attrs.field(factory=dict)

    # --- expressions

    def step(self) -> None:
        """Count a step; raise an error if there are too many."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLong(f"following it takes more than {MOST_STEPS:,} steps")

    def evaluate(self, node: Node | None, scope: Scope) -> Value:
        """Return what is known of the value of an expression."""
        self.step()
        if node is None:
            return scope.unknown(node)
        if node.type in _CODE:
            return self.captured(node, scope)
        if node.type in ("true", "false") or node.type.endswith("_literal"):
            return literal_of(node) or scope.unknown(node)
        follow: Callable[[Node, Scope], Value | None] | None
        follow = getattr(self, f"_{node.type}", None)
        if follow is None and node.type not in _WITHOUT_EFFECT:
            forget(self, node, scope)
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
                if isinstance(value, Symbol | Const):
                    seen.values.setdefault(key, value)
            owner = owner.outer
        return Code(node, scope.source, seen)

    def _parenthesized_expression(self, node: Node, scope: Scope) -> Value | None:
        parts = children(node)
        return self.evaluate(parts[0], scope) if parts else None

    _condition = _parenthesized_expression

    def _cast_expression(self, node: Node, scope: Scope) -> Value | None:
        value = self.evaluate(node.child_by_field_name("value"), scope)
        return converted(value, text_of(node.child_by_field_name("type")))

    def _field_access(self, node: Node, scope: Scope) -> Value | None:
        owner, name = node.child_by_field_name("object"), text_of(node.child_by_field_name("field"))
        if owner.type == "this":
            return self.field(name, scope)
        if simple_name(text_of(owner)) == "Duration" and name == "ZERO":
            return Const(timedelta(0))
        limit = LIMITS.get((text_of(owner), name))
        if limit is not None:
            return limit
        if owner.type in ("identifier", "field_access", "scoped_identifier"):
            declared = self.project.find(simple_name(text_of(owner)), scope.source)
            if declared is not None and text_of(owner) not in scope.values:
                if name in declared.fields:
                    return self.field_of(declared, name)
                if name in declared.constants:
                    return scope.code(node)
        held = self.evaluate(owner, scope)
        if name == "length" and isinstance(held, Const) and isinstance(held.value, tuple):
            return Const(len(held.value))
        return self.member(held, name) if isinstance(held, Made) else None

    def member(self, made: Made, name: str) -> Value | None:
        """Return a field of an object, as its constructor leaves it."""
        if name in made.state:
            return made.state[name]
        declared = self.project.find(simple_name(made.type), made.code.source)
        if declared is None:
            return None
        state = self.constructed(declared, made)
        held = None if state is None else state.get(name)
        null = state is not None and name not in state and unset(self.project.field(declared, name))
        return Const(None) if null else None if isinstance(held, Unknown) else held

    def field(self, name: str, scope: Scope) -> Value | None:
        """Return what a field of the class around, or a constant imported, holds."""
        this = scope.this
        held = None if this is None else self.member(this, name)
        if held is not None:
            return held
        owner = self._declaring(name, scope)
        return None if owner is None else self.field_of(owner, name)

    def _declaring(self, name: str, scope: Scope) -> JavaClass | None:
        """Return the class that declares a field which code sees."""
        found = self.project.constant_field(name, scope.source, scope.owner)
        return None if found is None else found[1]

    def set_field(self, name: str, value: Value, scope: Scope) -> None:
        """Give a field of the object, or of a class around, a value."""
        this, owner = scope.this, self._declaring(name, scope)
        is_static = owner is not None and "static" in owner.fields[name].modifiers
        if this is not None and not is_static:
            this.state[name] = self._if_sure(value, scope)
        elif owner is not None:
            self.set_fields[owner, name] = value
        else:
            scope.set(name, value)

    def _if_sure(self, value: Value, scope: Scope) -> Value:
        """Return a value for what no branch remembers: unknown if it may not be reached."""
        return scope.unknown(None) if self.unsure else value

    def assign(self, target: Node, value: Value, scope: Scope) -> None:
        """Give a variable, a field or an element a value."""
        name = text_of(target).removeprefix("this.")
        if target.type == "identifier" and name in scope.values:
            scope.set(name, value)
        elif target.type == "identifier" or (target.type == "field_access" and "." not in name):
            self.set_field(name, value, scope)
        elif target.type == "field_access":
            owner = target.child_by_field_name("object")
            held = self.held(owner, scope)
            declared = self.project.find(simple_name(text_of(owner)), scope.source)
            if isinstance(held, Made):
                field = text_of(target.child_by_field_name("field"))
                held.state[field] = self._if_sure(value, scope)
            elif held is None and declared is not None:
                self.set_fields[declared, name.rsplit(".", 1)[-1]] = value
        elif target.type == "array_access":
            held = self.evaluate(target.child_by_field_name("array"), scope)
            unknown = scope.unknown(target)
            if isinstance(held, Const):
                self.replaced(held, unknown, scope)

    def held(self, node: Node, scope: Scope) -> Value | None:
        """Return what a variable or field holds; None for other expressions."""
        name = text_of(node).removeprefix("this.")
        if node.type == "this":
            return scope.this
        plain = node.type == "identifier" or (node.type == "field_access" and "." not in name)
        if not plain:
            return self._field_access(node, scope) if node.type == "field_access" else None
        found = scope.values.get(name) if node.type == "identifier" else None
        return found or self.field(name, scope)

    _this = _identifier = held

    def replaced(self, old: Value, new: Value, scope: Scope) -> None:
        """Let all that holds a list hold what became of it."""
        this = scope.this
        own = [] if this is None else [this.state]
        near: list[MutableMapping[Any, Value]] = [self.set_fields]
        far: list[MutableMapping[Any, Value]] = [self._fields, *own]
        for number, one in enumerate([scope, *self.callers]):
            (far if number else near).extend(one.values.maps)
        for holders, value in ((near, new), (far, self._if_sure(new, scope))):
            for holder in holders:
                for name, held in holder.items():
                    if held is old:
                        holder[name] = value

    def field_of(self, owner: JavaClass, name: str) -> Value | None:
        """Return what a field holds: what it was set to, or else what it holds at first."""
        key = (owner, name)
        if key in self.set_fields:
            return self.set_fields[key]
        if key not in self._fields:
            found = owner.fields[name]
            scope = Scope(owner.source, owner)
            where = Code(owner.node, owner.source, scope)
            self._fields[key] = Unknown(where)
            if found.value is not None:
                value = converted(self.evaluate(found.value, scope), str(found.type))
                node = found.value.parent.parent
                self._fields[key] = self.declared(value, name, str(found.type), node)
                kept = "static" not in found.modifiers or "final" in found.modifiers
                plain = isinstance(value, Const) and value.is_plain and not kept
                if isinstance(value, Const) and plain and is_assigned(name, owner, self.project):
                    self.doubt(node, scope, f"{name} is a parameter: Java assigns it while it runs")
                    self._fields[key] = self.symbol(name, str(found.type), key)
            elif (assigned := self._assigned(owner, name)) is not None:
                self._fields[key] = self.declared(assigned, name, str(found.type), owner.node)
            elif is_stream_type(str(found.type)):
                self._fields[key] = self.parameter_stream(where, name, str(found.type))
            elif str(found.type) in ("int", "long", "String", "boolean", "double", "Duration"):
                self._fields[key] = self.symbol(name, str(found.type), key)
        return self._fields[key]

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
        if isinstance(left, Const) and (sign, bool(left.value)) in (("&&", False), ("||", True)):
            return left
        right = self.evaluate(node.child_by_field_name("right"), scope)
        if sign in ("==", "!=") and Const(None) in (left, right):
            other = right if left == Const(None) else left
            if not isinstance(other, Const | Symbol | Unknown):
                return Const(sign == "!=")
        return binary(sign, left, right)

    def _unary_expression(self, node: Node, scope: Scope) -> Value | None:
        sign = text_of(node.child_by_field_name("operator"))
        operand = node.child_by_field_name("operand")
        value = self.evaluate(operand, scope)
        if sign == "-" and isinstance(value, Unknown) and operand.type.endswith("integer_literal"):
            return least(text_of(operand))
        if isinstance(value, Symbol):
            made = computed(sign, value.tree)
            return None if made is None else Symbol(made)
        return folded(sign, value) if isinstance(value, Const) else None

    def _ternary_expression(self, node: Node, scope: Scope) -> Value | None:
        condition = self.evaluate(node.child_by_field_name("condition"), scope)
        then, otherwise = (node.child_by_field_name(f) for f in ("consequence", "alternative"))
        if isinstance(condition, Const):
            taken, left = (then, otherwise) if condition.value else (otherwise, then)
            self.idle.append(scope.code(left))
            return self.evaluate(taken, scope)
        test = self.as_test(condition, node.child_by_field_name("condition"), scope)
        values = []
        self.unsure += 1
        for side in (then, otherwise):
            watch = Watch(scope, self)
            values.append(self.evaluate(side, scope))
            changed, added = watch.taken()
            if changed or added:
                forget(self, side, scope)
        self.unsure -= 1
        return self.joined(test, values[0], values[1], node, scope)

    def joined(
        self, test: Symbol, first: Value, second: Value, node: Node, scope: Scope
    ) -> Value | None:
        """Return the value that is one of two, as a test at run time decides."""
        if isinstance(first, Stream) and isinstance(second, Stream) and first is not second:
            call = Call("choose", (), scope.code(node))
            return flow.added(self, Stream(call, (first, second), first.event_type, first.name))
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
            before = self.held(target, scope)
            value = (binary(sign[:-1], before, value) if before else None) or scope.unknown(node)
        kind = scope.types.get(name) or ""
        if kind and "." not in name:
            value = self.declared(converted(value, kind), name, kind, node.parent)
        self.assign(target, value, scope)
        return value

    def _update_expression(self, node: Node, scope: Scope) -> Value | None:
        operand = children(node)[0]
        before = self.held(operand, scope)
        step = Const(1 if "++" in text_of(node) else -1)
        after = binary("+", before, step) if isinstance(before, Const) else None
        self.assign(operand, after or scope.unknown(node), scope)
        return before

    def _array_creation_expression(self, node: Node, scope: Scope) -> Value | None:
        values = node.child_by_field_name("value")
        return None if values is None else self._array_initializer(values, scope)

    def _array_initializer(self, node: Node, scope: Scope) -> Value:
        values = [self.evaluate(part, scope) for part in children(node)]
        return Const(tuple(one.value if isinstance(one, Const) else one for one in values))

    def _array_access(self, node: Node, scope: Scope) -> Value | None:
        values = self.evaluate(node.child_by_field_name("array"), scope)
        at = self.evaluate(node.child_by_field_name("index"), scope)
        return self._element(values, at)

    def _element(self, values: Value, at: Value) -> Value | None:
        if isinstance(values, Const) and isinstance(at, Const):
            try:
                found = values.value[at.value]
            except (TypeError, IndexError, KeyError):
                return None
            return found if isinstance(found, Value) else Const(found)
        return None

    # --- what is known at run time alone

    def symbol(self, name: str, kind: str, of: object) -> Symbol:
        """Return a parameter, whose name no other value has that is known at run time alone."""
        wanted = made = snake(name)
        while self._symbols.setdefault(made, of) != of:
            made = numbered(wanted, made)
        return Symbol(Var(made, written_type(kind)))

    def counter(self, name: str, kind: str) -> Symbol:
        """Return the variable of a loop, whose name no parameter and no loop around has."""
        wanted = made = snake(name)
        while made in self._counters or self._symbols.setdefault(made, "loop") != "loop":
            made = numbered(wanted, made)
        return Symbol(Var(made, written_type(kind)))

    def identity(self, node: Node, scope: Scope) -> object:
        """Return what tells the value of an expression from others: its text and variables."""
        names = sorted({text_of(name) for name in inside(node, "identifier")})
        held = [(name, scope.values.get(name)) for name in names]
        return (text_of(node), tuple((name, value) for name, value in held if value is not None))

    def as_test(self, condition: Value, node: Node, scope: Scope) -> Symbol:
        """Return a condition as Python; as a parameter if it cannot be written."""
        return condition if isinstance(condition, Symbol) else self.tested(node, scope)

    def tested(self, node: Node, scope: Scope) -> Symbol:
        """Return the parameter for a condition that is known at run time alone."""
        while node.type in ("parenthesized_expression", "condition") and children(node):
            node = children(node)[0]
        if node.type == "unary_expression" and text_of(node).startswith("!"):
            made = self.tested(node.child_by_field_name("operand"), scope)
            return Symbol(Unary("!", made.tree, BOOLEAN))
        if any(inside(node, "assignment_expression", "update_expression")):
            what = "a test that also changes what it reads is a parameter here"
            self.doubt(node, scope, f"{what}: {PART}")
        name = snake(text_of(node).replace("()", "").rsplit(".", 1)[-1])[:40].rstrip("_")
        return self.symbol(
            name.removeprefix("get_") or "test", "boolean", self.identity(node, scope)
        )

    def doubt(self, node: Node, scope: Scope, what: str) -> None:
        """Note that something could not be followed."""
        self.notes.append(Note(scope.source.file, line_of(node), what))

    # --- streams

    def parameter_stream(self, code: Code, name: str, kind: str) -> Stream:
        """Return a stream that a method is given."""
        arguments = type_arguments(kind)
        events = arguments[0] if arguments else None
        return flow.added(self, Stream(Call("parameter", (), code), (), events, name))

    # --- calls and constructors

    def arguments(self, node: Node, scope: Scope) -> tuple[Value, ...]:
        """Return the values of a call's arguments."""
        given = children(node.child_by_field_name("arguments"))
        return tuple(self.evaluate(part, scope) for part in given)

    def _object_creation_expression(self, node: Node, scope: Scope) -> Value | None:
        kind = text_of(node.child_by_field_name("type"))
        name = simple_name(kind)
        body = any(part.type == "class_body" for part in children(node))
        code = self.captured(node, scope)
        if name == "OutputTag":
            values = self.arguments(node, scope)
            first = values[0] if values else None
            rows = type_arguments(kind)
            label = str(first.value) if isinstance(first, Const) else text_of(node)
            return Tag(label, rows[0] if rows else "", code)
        if body:
            return code
        values = self.arguments(node, scope)
        if name in ("ArrayList", "LinkedList", "HashSet", "LinkedHashSet"):
            given = values[0].value if values and isinstance(values[0], Const) else ()
            return Const(given if isinstance(given, tuple) else ())
        if self.project.find(name, scope.source) is None:
            for part in children(node.child_by_field_name("arguments")):
                if part.type in _FUNCTIONS:
                    forget(self, part, scope)
        return Made(name, values, code)

    def _assigned(self, owner: JavaClass, name: str) -> Value | None:
        """Return what a constructor of a class makes of a field, its arguments unknown."""
        if owner not in self._objects:
            where = Code(owner.node, owner.source, Scope(owner.source, owner))
            made = Made(owner.name, (), where)
            self._objects[owner] = made.state
            for constructor in owner.methods.get(owner.name, [])[:1]:
                self.run(constructor, owner, None, made)
        value = (self._objects[owner] or {}).get(name)
        return value if isinstance(value, Link | Skip | Const | Symbol) else None

    def constructed(self, declared: JavaClass, made: Made) -> dict[str, Value] | None:
        """Return the fields of an object after its constructor, followed once; None if unknown."""
        if made not in self._objects:
            this = attrs.evolve(made, state={})
            self._objects[made] = self._objects[this] = this.state
            sure, self.unsure = self.unsure, 0
            if not self.construct(declared, this, made.arguments):
                self._objects[made] = None
            self.unsure = sure
        return self._objects[made]

    def construct(self, declared: JavaClass, this: Made, arguments: tuple[Value, ...]) -> bool:
        """Give an object the fields that a constructor sets; return whether there is one."""
        named = [m for m in declared.methods.get(declared.name, []) if m.body is not None]
        fitting = [m for m in named if len(m.parameters) == len(arguments)]
        if fitting:
            types = [JavaType(type_of(value)) for value in arguments]
            first = chosen(fitting, types, self.project) or fitting[0]
            self.run(first, declared, arguments, this)
            return True
        own = {n: field for n, field in declared.fields.items() if "static" not in field.modifiers}
        if len(own) != len(arguments):
            return False
        for (name, field), value in zip(own.items(), arguments, strict=True):
            this.state[name] = converted(value, str(field.type))  # of a record, or by Lombok
        return bool(own) or declared.kind == "class"

    def _explicit_constructor_invocation(self, node: Node, scope: Scope) -> None:
        """Follow ``this(…)`` or ``super(…)``."""
        this, owner = scope.this, scope.owner
        above = None if owner is None else owner.superclass
        if text_of(node.child_by_field_name("constructor")) == "super":
            owner = None if above is None else self.project.find(above.name, scope.source)
        arguments = self.arguments(node, scope)
        if this is not None and owner is not None:
            self.construct(owner, this, arguments)

    def _method_invocation(self, node: Node, scope: Scope) -> Value | None:
        value, is_followed = self._called(node, scope)
        if not is_followed:
            self._not_followed(node, scope)
        return value

    def _not_followed(self, node: Node, scope: Scope) -> None:
        """Forget what a call may do with what it is given."""
        name = text_of(node.child_by_field_name("name"))
        for part in children(node.child_by_field_name("arguments")):
            held = self.held(part, scope)
            if isinstance(held, Link) and name not in KEPT:
                what = f"a pattern is handed to {name}(): {PART}"
                self.doubt(node, scope, what)
            elif isinstance(held, Const) and isinstance(held.value, tuple) and name not in KEPT:
                self.replaced(held, scope.unknown(node, lost=True), scope)
            elif part.type in _FUNCTIONS:
                forget(self, part, scope)

    def _called(self, node: Node, scope: Scope) -> tuple[Value | None, bool]:
        """Return what a call returns, and whether it is known what it does."""
        name = text_of(node.child_by_field_name("name"))
        owner = node.child_by_field_name("object")
        if owner is None or owner.type in ("this", "super"):
            return self._own(node, name, scope.owner, scope)
        written = text_of(owner)
        code = scope.code(node)
        if owner.type in ("identifier", "field_access", "scoped_identifier"):
            kind = simple_name(written)
            if written not in scope.values and kind[:1].isupper():
                made = self._static(node, kind, name, scope, code)
                if made is not None:
                    return made
        value = self.evaluate(owner, scope)
        arguments = self.arguments(node, scope)
        call = Call(name, arguments, code)
        if isinstance(value, Link):
            return called(self, value, call), True
        if isinstance(value, Stream):
            return flow.called(self, value, call), True
        if isinstance(value, Skip):
            thrown = Skip(value.method, value.stage, True) if name.startswith("throw") else value
            return thrown, True
        if isinstance(value, Made):
            return self._made(value, call, node, scope)
        if isinstance(value, Const):
            return self._of_constant(value, call, scope)
        if isinstance(value, Symbol) and name == "equals" and arguments:
            return binary("==", value, arguments[0]), True
        return flow.consumed(self, value, call), False

    def _static(
        self, node: Node, kind: str, name: str, scope: Scope, code: Code
    ) -> tuple[Value | None, bool] | None:
        """Return what a static method of a class returns; None if it is not one."""
        declared = self.project.find(kind, scope.source)
        if declared is not None and name in declared.methods:
            return self._own(node, name, declared, scope)
        if kind in ("SimpleCondition", "RichIterativeCondition") and name == "of":
            return self.captured(node, scope), True
        arguments = self.arguments(node, scope)
        call = Call(name, arguments, code)
        if kind in ("Pattern", "GroupPattern") and name == "begin":
            return begin(self, call), True
        if kind == "CEP" and name == "pattern":
            return flow.cep_pattern(self, call), True
        if kind in ("Duration", "Time"):
            return self._duration(name, arguments, node), True
        if kind.isupper() and name.startswith("to") and len(arguments) == 1:
            return in_unit(kind, name, arguments[0]), True
        if kind == "AfterMatchSkipStrategy":
            return Skip(name, arguments[0] if arguments else None), True
        if kind in ("Arrays", "List", "Set", "Stream") and name in _LISTS:
            values = [v.value if isinstance(v, Const) else v for v in arguments]
            return Const(tuple(values)), True
        if kind == "String" and name == "valueOf" and arguments:
            return binary("+", Const(""), arguments[0]), True
        if declared is not None:
            return None
        made = Made(f"{kind}.{name}", arguments, code)
        return flow.consumed(self, made, call) or made, False

    def _duration(self, name: str, arguments: tuple[Value, ...], node: Node) -> Value | None:
        values = [v.value if isinstance(v, Const) else None for v in arguments]
        given = node.child_by_field_name("arguments")
        if len(values) == 2 and values[1] is None:
            values[1] = text_of(children(given)[1])
        found = duration(name, values)
        if found is not None:
            return Const(found)
        amount = arguments[0] if arguments else None
        unit = name.removeprefix("of").lower()
        operation = ops.TIMEDELTAS.get("milliseconds" if unit == "millis" else unit)
        if isinstance(amount, Symbol) and operation is not None:
            tree = TreeCall(operation, (amount.tree,), JavaType("Duration"))
            return Symbol(tree)
        return None

    def _own(
        self, node: Node, name: str, owner: JavaClass | None, scope: Scope
    ) -> tuple[Value | None, bool]:
        """Follow a method of the program; return its value, and whether there is one."""
        arguments = self.arguments(node, scope)
        this = scope.this
        own = None if this is None else self.project.find(simple_name(this.type), scope.source)
        if own is not None and owner is not None and self.project.is_a(own, owner.name):
            owner = own  # which may override the method
        found = self.method(owner, name, arguments)
        if found is None:
            return None, False
        this = None if "static" in found[0].modifiers else this
        value = self._run_from(scope, found, arguments, this)
        if isinstance(value, Stream) and value.name == name:
            value.name = None
        return value, True

    def _run_from(
        self,
        scope: Scope,
        found: tuple[Method, JavaClass],
        arguments: tuple[Value, ...],
        this: Made | None,
    ) -> Value | None:
        """Follow a method with the variables of its callers at hand."""
        self.callers.append(scope)
        try:
            return self.run(*found, arguments, this)
        finally:
            self.callers.pop()

    def method(
        self, owner: JavaClass | None, name: str, arguments: tuple[Value, ...]
    ) -> tuple[Method, JavaClass] | None:
        """Return a method of a class, of what it extends, or of the classes around it."""
        while owner is not None:
            named = self.project.overloads(owner, name, len(arguments))
            written = [m for m in named if m.body is not None]
            if written:
                types = [JavaType(type_of(value)) for value in arguments]
                found = chosen(written, types, self.project)
                return None if found is None else (found, found.owner)
            owner = owner.outer
        return None

    def _made(self, value: Made, call: Call, node: Node, scope: Scope) -> tuple[Value | None, bool]:
        declared = self.project.find(value.type, scope.source)
        if declared is not None:
            found = self.method(declared, call.method, call.arguments)
            if found is not None:
                return self._run_from(scope, found, call.arguments, value), True
            getter = self.project.getter(declared, call.method)
            return None if getter is None else self.member(value, getter.name), getter is not None
        if value.type == "Properties" and not call.method.startswith(_READING_SETTINGS):
            name = f"{call.method}()"
            held: Value = scope.unknown(node)
            match call.method, call.arguments:
                case (("setProperty" | "put"), (Const(value=str(key)), given)):
                    name, held = key, given
            value.state[name] = self._if_sure(held, scope)
            return None, True
        return flow.built(self, value, call), False

    def _of_constant(self, value: Const, call: Call, scope: Scope) -> tuple[Value | None, bool]:
        """Return what a method of text, of a list or of a duration returns."""
        if not isinstance(value.value, tuple):
            return self._of_plain(value, call), False
        arguments = [a.value if isinstance(a, Const) else a for a in call.arguments]
        held = value.value
        if call.method in ("add", "addLast") and len(arguments) == 1:
            self.replaced(value, Const((*held, *arguments)), scope)
            return Const(True), True
        if call.method in ("get", "getFirst"):
            return self._element(value, Const(arguments[0] if arguments else 0)), True
        if call.method == "size":
            return Const(len(held)), True
        if call.method in ("stream", "toList", "iterator"):
            return Const(held), True
        if call.method not in KEPT and call.method not in _READING:
            self.replaced(value, Unknown(call.code, lost=True), scope)
        return None, False

    def _of_plain(self, value: Const, call: Call) -> Value | None:
        """Return what a method of text or of a duration returns."""
        if call.method == "equals" and call.arguments:
            return binary("==", call.arguments[0], value)
        if call.method == "length" and isinstance(value.value, str):
            return Const(len(value.value))
        held, moved = value.value, re.fullmatch(r"(plus|minus)(\w*)", call.method)
        if isinstance(held, timedelta) and call.method in ("toMilliseconds", "toMillis"):
            return Const(held // timedelta(milliseconds=1))
        if isinstance(held, timedelta) and moved is not None:
            given = [a.value if isinstance(a, Const) else a for a in call.arguments]
            more = duration(f"of{moved[2]}", given) if moved[2] else next(iter(given), None)
            sign = 1 if moved[1] == "plus" else -1
            return Const(held + more * sign) if isinstance(more, timedelta) else None
        return value if call.method in ("intValue", "longValue", "toString", "name") else None


_TYPES: dict[type, str] = {Link: "Pattern", Stream: "DataStream", Skip: "AfterMatchSkipStrategy"}


def type_of(value: Value) -> str:
    """Return the Java type of a value; ``?`` if it is not known."""
    if isinstance(value, Const):
        return value.type.name
    if isinstance(value, Symbol | Made):
        return simple_name(value.type)
    return _TYPES.get(type(value), "?")
