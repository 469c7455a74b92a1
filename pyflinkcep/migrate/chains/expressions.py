# SPDX-License-Identifier: Apache-2.0
"""Follows expressions: what is known of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import attrs

from pyflinkcep.migrate.chains.constants import (
    binary,
    by_field,
    changes,
    construct,
    converted,
    names_reached,
    numbered,
    parameter,
    tree_of,
    unset,
)
from pyflinkcep.migrate.chains.values import (
    Branch,
    Call,
    Code,
    Const,
    Gap,
    Header,
    Item,
    Link,
    Loop,
    Made,
    Scope,
    Skip,
    Stream,
    Symbol,
    TooLong,
    Unknown,
    Value,
)
from pyflinkcep.migrate.java.constants import LIMITS, least, literal_of, unary
from pyflinkcep.migrate.java.declarations import JavaClass, Method
from pyflinkcep.migrate.java.project import BOOLEAN, Project, unboxed
from pyflinkcep.migrate.java.source import (
    LITERALS,
    Node,
    children,
    declared_in,
    inside,
    is_stream_type,
    javadoc,
    line_of,
    simple_name,
    snake,
    text_of,
    type_arguments,
    written_in,
)
from pyflinkcep.migrate.meaning.tree import Choice, Unary
from pyflinkcep.migrate.translated import Note


class Watch:
    """Remembers the variables and patterns that code sees, to tell what it changed."""

    def __init__(self, scope: Scope, walker: Any) -> None:
        self.scope = scope
        self._holders: list[dict[Any, Value]] = [s.values for s in _chain(scope)]
        self._holders.append(walker.set_fields)
        self._values = {id(held): dict(held) for held in self._holders}
        links: list[Link] = walker.links
        self._links = {id(link): (link, len(link.items)) for link in links}

    def taken(self) -> tuple[dict[tuple[int, Any], Value], dict[int, list[Item]]]:
        """Return the variables and the calls that were added, and undo both."""
        changed: dict[tuple[int, Any], Value] = {}
        for held in self._holders:
            old = self._values[id(held)]
            for name, value in held.items():
                known = name in old or isinstance(name, tuple)
                if known and old.get(name) is not value:
                    changed[id(held), name] = value
            held.clear()
            held.update(old)
        added: dict[int, list[Item]] = {}
        for key, (link, length) in self._links.items():
            if len(link.items) > length:
                added[key] = link.items[length:]
                del link.items[length:]
        return changed, added

    def link(self, key: int) -> Link:
        """Return a pattern that was seen."""
        return self._links[key][0]

    def set(self, key: tuple[int, Any], value: Value) -> None:
        """Give a variable a value."""
        next(held for held in self._holders if id(held) == key[0])[key[1]] = value

    def old(self, key: tuple[int, Any]) -> Value:
        """Return what a variable held."""
        unknown = Unknown(Code(None, self.scope.source, self.scope))
        held: Value = self._values[key[0]].get(key[1], unknown)
        return held


class Fork(Watch):
    """The two branches of a conditional."""

    def __init__(self, scope: Scope, walker: Any, node: Node) -> None:
        super().__init__(scope, walker)
        self.node = node
        self._first: Any = ({}, {})

    def turn(self) -> None:
        """Go back to the beginning, for the second branch."""
        self._first = self.taken()

    def swap(self) -> None:
        """Go on with the first branch, and keep the second one."""
        second = self.taken()
        self._restore(self._first)
        self._first = second

    def _restore(self, state: Any) -> None:
        for key, value in state[0].items():
            self.set(key, value)
        for key, items in state[1].items():
            self.link(key).items.extend(items)

    def join(self, test: Symbol, walker: Any) -> None:
        """Let each variable hold what either branch gave it."""
        first, second = self._first, self.taken()
        for key in [*first[1], *(key for key in second[1] if key not in first[1])]:
            then, otherwise = first[1].get(key, ()), second[1].get(key, ())
            self.link(key).items.append(Branch(test, tuple(then), tuple(otherwise)))
        for key in [*first[0], *(key for key in second[0] if key not in first[0])]:
            old = self.old(key)
            values = first[0].get(key, old), second[0].get(key, old)
            known = next((v for v in values if isinstance(v, Const)), None)
            joined = walker.joined(test, *values, self.node, self.scope)
            if (
                joined is None
                and known is not None
                and isinstance(key[1], str)
                and any(isinstance(v, Unknown | Made) for v in values)
            ):
                joined = self._read_at_start(str(key[1]), known, walker)
            self.set(key, joined or self._unknown(old, walker))

    def _read_at_start(self, name: str, default: Const, walker: Any) -> Value | None:
        """Return a parameter for what is a constant, or read when the program starts."""
        if not default.is_plain:
            return None
        kind = str(default.type)
        what = f"{name} is a parameter: in Java {default.value!r} by default"
        walker.doubt(self.node, self.scope, what)
        of = (name, self.node.id, walker.frame)
        made: Symbol = walker.symbol(name, kind, of, default.value)
        return made

    def returned(
        self, test: Symbol, first: Value | None, second: Value | None, walker: Any
    ) -> Value | None:
        """Return what a method returns if both branches do."""
        then, otherwise = self._first, self.taken()
        for added, is_first in ((then[1], True), (otherwise[1], False)):
            for key, items in added.items():
                parts = (tuple(items), ()) if is_first else ((), tuple(items))
                self.link(key).items.append(Branch(test, *parts))
        if first is None or second is None:
            return None
        made = walker.joined(test, first, second, self.node, self.scope)
        return made or Unknown(Code(self.node, self.scope.source, self.scope))

    def _unknown(self, old: Value, walker: Any) -> Value:
        if isinstance(old, Unknown | Code):
            return Unknown(old) if isinstance(old, Code) else old
        return Unknown(Code(self.node, self.scope.source, self.scope))


def either(test: Symbol, first: Value, second: Value) -> Value | None:
    """Return the value that is one of two, as a test at run time decides."""
    if first is second:
        return first
    if isinstance(first, Const) and isinstance(second, Const):
        if first == second:
            return first
        a, b = tree_of(first), tree_of(second)
        if a is None or b is None or type(first.value) is not type(second.value):
            return None
        return Symbol(Choice(test.tree, a, b, a.type), test.names)
    if not (isinstance(first, Link) and isinstance(second, Link)):
        return None
    seen = {id(link): link for link in first.ancestors()}
    common = next((link for link in second.ancestors() if id(link) in seen), None)
    branch = Branch(test, tuple(first.flat(common)), tuple(second.flat(common)))
    begun = first.begun if common is None else common.begun
    kind_of_events = first.event_type or second.event_type
    joined = Link(common, [branch], begun, kind_of_events, first.name or second.name)
    joined.joined = (first, second)
    return joined


CHANGES = frozenset([
    "where", "or", "until", "subtype", "within", "optional", "oneOrMore", "timesOrMore", "times",
    "greedy", "allowCombinations", "consecutive",
])  # fmt: skip
"""The calls that change a pattern's last stage."""

KEPT = frozenset([
    "get", "getFirst", "getLast", "size", "isEmpty", "contains", "indexOf", "stream", "iterator",
    "toString", "equals", "hashCode", "join", "println", "print", "printf", "info", "debug", "warn",
    "error", "trace", "log", "requireNonNull", "isNull", "nonNull", "format", "length",
])  # fmt: skip
"""The methods that neither change what they are called on nor what they are given."""


def forget(walker: Any, node: Node, scope: Scope) -> None:
    """
    Let all that code may change be unknown, as it is not followed.

    Variables, fields and elements that it assigns are unknown from here on; patterns that it
    changes have a gap there, and what it does with streams is a gap of the job.
    """
    code = Code(node, scope.source, scope)
    unknown = Unknown(code, lost=True)
    streams = False
    for body, is_own in _reached(node, scope.owner):
        for name in written_in(body) - declared_in(body):
            if is_own and scope.holder(name) is not None:
                scope.set(name, unknown)
            else:
                walker.set_field(name, unknown, scope)
        for call in inside(body, "method_invocation"):
            method = text_of(call.child_by_field_name("name"))
            given = children(call.child_by_field_name("arguments") or call)
            root = _root(call)
            for used in (root, *given):
                held = None if used is None else walker.held(used, scope)
                streams = streams or (isinstance(held, Stream) and used is root)
                if method in KEPT:
                    continue
                streams = streams or isinstance(held, Stream)
                if isinstance(held, Link) and (used is not root or method in CHANGES):
                    held.items.append(Gap(code))
                elif isinstance(held, Const) and isinstance(held.value, tuple):
                    walker.replaced(held, unknown, scope)
                elif isinstance(held, Made):
                    _lose_fields(walker, held, unknown)
    if streams:
        walker.gaps.append(code)


def _lose_fields(walker: Any, made: Made, unknown: Unknown) -> None:
    """Let the fields of an object of the program be unknown."""
    declared = walker.project.find(simple_name(made.type), made.code.source)
    for name in walker.project.all_fields(declared):
        made.state[name] = unknown


def _reached(node: Node, owner: Any) -> Iterator[tuple[Node, bool]]:
    """Yield code, and the methods of its class that it calls: whether it sees the variables."""
    yield node, True
    seen: set[str] = set()
    waiting = [node]
    while waiting and owner is not None:
        for call in inside(waiting.pop(), "method_invocation"):
            name, on = text_of(call.child_by_field_name("name")), call.child_by_field_name("object")
            if name in seen or not (on is None or on.type in ("this", "super")):
                continue
            seen.add(name)
            for method in owner.methods.get(name, []):
                if method.body is not None:
                    waiting.append(method.body)
                    yield method.body, False


def _root(call: Node) -> Node | None:
    """Return what a chain of calls begins with."""
    on = call.child_by_field_name("object")
    while on is not None and on.type in ("method_invocation", "array_access"):
        field = "object" if on.type == "method_invocation" else "array"
        on = on.child_by_field_name(field)
    return on


def _chain(scope: Scope | None) -> list[Scope]:
    found = []
    while scope is not None:
        found.append(scope)
        scope = scope.outer
    return found


MOST_STEPS = 200_000
_CODE = frozenset(["lambda_expression", "method_reference", "class_literal"])
_WITHOUT_EFFECT = frozenset(["this", "super", "identifier", "scoped_identifier", "type_identifier"])


@attrs.define(eq=False)
class Expressions:
    """Follows expressions."""

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
    set_fields: dict[tuple[int, str], Value] = attrs.field(factory=dict)
    steps: int = 0
    depth: int = 0
    unsure: int = 0
    frame: int = 0
    callers: list[Scope] = attrs.field(factory=list)
    _symbols: dict[str, object] = attrs.field(factory=dict)
    _counters: list[str] = attrs.field(factory=list)
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

    def switched(self, node: Node, scope: Scope) -> Value | None:
        """Return the value of a switch."""
        raise NotImplementedError

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
            return Unknown(Code(node, scope.source, scope))
        if node.type in LITERALS:
            return literal_of(node) or Unknown(Code(node, scope.source, scope))
        if node.type in _CODE:
            return self.captured(node, scope)
        follow: Callable[[Node, Scope], Value | None] | None
        if node.type == "switch_expression":
            return self.switched(node, scope) or Unknown(Code(node, scope.source, scope))
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
            return Const(timedelta(0))
        limit = LIMITS.get((text_of(owner), name))
        if limit is not None:
            return limit
        if name == "length":
            held = self.evaluate(owner, scope)
            if isinstance(held, Const) and isinstance(held.value, tuple):
                return Const(len(held.value))
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
        return Const(None) if null else held

    def field(self, name: str, scope: Scope) -> Value | None:
        """Return what a field of the class around, or a constant imported, holds."""
        this = scope.object()
        held = None if this is None else self.member(this, name)
        if held is not None:
            return held
        owner = self._declaring(name, scope)
        return None if owner is None else self.field_of(owner, name)

    def _declaring(self, name: str, scope: Scope) -> JavaClass | None:
        """Return the class that declares a field which code sees."""
        owner: JavaClass | None = scope.owner
        while owner is not None:
            extended: JavaClass | None = owner
            for _ in range(8):
                if extended is None:
                    break
                if name in extended.fields:
                    return extended
                above = extended.superclass
                extended = None if above is None else self.project.find(above.name, scope.source)
            owner = owner.outer
        constant = self.project.constant_field(name, scope.source, scope.owner)
        return None if constant is None else constant[1]

    def set_field(self, name: str, value: Value, scope: Scope) -> None:
        """Give a field of the object, or of a class around, a value."""
        this, owner = scope.object(), self._declaring(name, scope)
        is_static = owner is not None and "static" in owner.fields[name].modifiers
        if this is not None and not is_static:
            this.state[name] = self._if_sure(value, scope)
        elif owner is not None:
            self.set_fields[id(owner), name] = value
        else:
            scope.set(name, value)

    def _if_sure(self, value: Value, scope: Scope) -> Value:
        """Return a value for what no branch remembers: unknown if it may not be reached."""
        return Unknown(Code(None, scope.source, scope)) if self.unsure else value

    def assign(self, target: Node, value: Value, scope: Scope) -> None:
        """Give a variable, a field or an element a value."""
        name = text_of(target).removeprefix("this.")
        if target.type == "identifier" and scope.holder(name) is not None:
            scope.set(name, value)
        elif target.type == "identifier" or (target.type == "field_access" and "." not in name):
            self.set_field(name, value, scope)
        elif target.type == "field_access":
            owner = target.child_by_field_name("object")
            held = self.held(owner, scope)
            declared = self.project.find(simple_name(text_of(owner)), scope.source)
            if isinstance(held, Made):
                held.state[text_of(target.child_by_field_name("field"))] = self._if_sure(
                    value, scope
                )
            elif held is None and declared is not None:
                self.set_fields[id(declared), name.rsplit(".", 1)[-1]] = value
        elif target.type == "array_access":
            held = self.evaluate(target.child_by_field_name("array"), scope)
            unknown = Unknown(Code(target, scope.source, scope))
            if isinstance(held, Const):
                self.replaced(held, unknown, scope)

    def held(self, node: Node, scope: Scope) -> Value | None:
        """Return what a variable or field holds; None for other expressions."""
        name = text_of(node).removeprefix("this.")
        if node.type == "this":
            return scope.object()
        plain = node.type == "identifier" or (node.type == "field_access" and "." not in name)
        if not plain:
            return self._field_access(node, scope) if node.type == "field_access" else None
        found = scope.find(name) if node.type == "identifier" else None
        return found or self.field(name, scope)

    def replaced(self, old: Value, new: Value, scope: Scope) -> None:
        """Let all that holds a list hold what became of it."""
        this = scope.object()
        near: list[dict[Any, Value]] = [self.set_fields]
        far: list[dict[Any, Value]] = [self._fields, *([this.state] if this is not None else [])]
        for number, one in enumerate([scope, *self.callers]):
            around: Scope | None = one
            while around is not None:
                (far if number else near).append(around.values)
                around = around.outer
        for holders, value in ((near, new), (far, self._if_sure(new, scope))):
            for holder in holders:
                for name, held in holder.items():
                    if held is old:
                        holder[name] = value

    def field_of(self, owner: JavaClass, name: str) -> Value | None:
        """Return what a field holds: what it was set to, or else what it holds at first."""
        key = (id(owner), name)
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
                if isinstance(value, Const) and changes(owner, name, value, self.project):
                    self.doubt(node, scope, f"{name} is a parameter: Java assigns it while it runs")
                    self._fields[key] = self.symbol(name, str(found.type), key, value.value)
            elif (assigned := self._assigned(owner, name)) is not None:
                self._fields[key] = self.declared(assigned, name, str(found.type), owner.node)
            elif is_stream_type(str(found.type)):
                self._fields[key] = self.parameter_stream(where, name, str(found.type))
            elif str(found.type) in ("int", "long", "String", "boolean", "double", "Duration"):
                self._fields[key] = self.symbol(name, str(found.type), key)
        return self._fields[key]

    def _assigned(self, owner: JavaClass, name: str) -> Value | None:
        """Return what a constructor of a class makes of a field, its arguments unknown."""
        where = Code(owner.node, owner.source, Scope(owner.source, owner))
        return self._constructed(owner, name, Made(owner.name, (), where), False)

    def _constructed(self, owner: JavaClass, name: str, made: Made, given: bool) -> Value | None:
        """Return what a field holds after the constructor, which is followed once."""
        if id(made) not in self._objects:
            empty = attrs.evolve(made, state={})
            self._objects[id(made)], self._objects[id(empty)] = (made, empty), (empty, empty)
            construct(self.run, owner, empty, given=given)
        value = self._objects[id(made)][1].state.get(name)
        return value if isinstance(value, Link | Skip | Const | Symbol) else None

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
            type_ = BOOLEAN if sign == "!" else unboxed(value.tree.type)
            return Symbol(Unary(sign, value.tree, type_), value.names) if sign != "+" else value
        if not isinstance(value, Const):
            return None
        return unary(sign, value)

    def _ternary_expression(self, node: Node, scope: Scope) -> Value | None:
        condition = self.evaluate(node.child_by_field_name("condition"), scope)
        then, otherwise = (node.child_by_field_name(f) for f in ("consequence", "alternative"))
        if isinstance(condition, Const):
            taken, left = (then, otherwise) if condition.value else (otherwise, then)
            self.idle.append(Code(left, scope.source, scope))
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
            call = Call("choose", (), Code(node, scope.source, scope))
            self.streams.append(Stream(call, (first, second), first.event_type, first.name))
            return self.streams[-1]
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
            value = (binary(sign[:-1], before, value) if before else None) or Unknown(
                Code(node, scope.source, scope)
            )
        kind = scope.type_of(name) or ""
        if kind and "." not in name:
            value = self.declared(converted(value, kind), name, kind, node.parent)
        self.assign(target, value, scope)
        return value

    def _update_expression(self, node: Node, scope: Scope) -> Value | None:
        operand = children(node)[0]
        before = self.held(operand, scope)
        step = Const(1 if "++" in text_of(node) else -1)
        after = binary("+", before, step) if isinstance(before, Const) else None
        self.assign(operand, after or Unknown(Code(node, scope.source, scope)), scope)
        return before

    def _array_creation_expression(self, node: Node, scope: Scope) -> Value | None:
        values = node.child_by_field_name("value")
        return None if values is None else self._array_initializer(values, scope)

    def _array_initializer(self, node: Node, scope: Scope) -> Value:
        return Const(tuple(self._plain(part, scope) for part in children(node)))

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

    def _plain(self, node: Node, scope: Scope) -> object:
        """Return the plain value of an element of a list, or what is known of it."""
        value = self.evaluate(node, scope)
        return value.value if isinstance(value, Const) else value

    # --- what is known at run time alone

    def symbol(self, name: str, kind: str, of: object, default: object = None) -> Symbol:
        """Return a parameter, whose name no other value has that is known at run time alone."""
        wanted = made = snake(name)
        while self._symbols.setdefault(made, of) != of:
            made = numbered(wanted, made)
        return parameter(made, kind, default)

    def counter(self, name: str, kind: str) -> Symbol:
        """Return the variable of a loop, whose name no parameter and no loop around has."""
        wanted = made = snake(name)
        while made in self._counters or self._symbols.setdefault(made, "loop") != "loop":
            made = numbered(wanted, made)
        return parameter(made, kind)

    def identity(self, node: Node, scope: Scope) -> object:
        """Return what tells the value of an expression from others: its text and variables."""
        names = sorted({text_of(name) for name in inside(node, "identifier")})
        held = [(name, scope.find(name)) for name in names]
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
            return Symbol(Unary("!", made.tree, BOOLEAN), made.names)
        if any(inside(node, "assignment_expression", "update_expression")):
            what = "a test that also changes what it reads is a parameter here"
            self.doubt(node, scope, f"{what}: write that part of the job")
        name = snake(text_of(node).replace("()", "").rsplit(".", 1)[-1])[:40].rstrip("_")
        return self.symbol(
            name.removeprefix("get_") or "test", "boolean", self.identity(node, scope)
        )

    def repeated(
        self, node: Node, scope: Scope, header: Header | None, follow: Callable[[], object]
    ) -> None:
        """Follow the body of a loop once, and let patterns go through it at run time."""
        watch, streams = Watch(scope, self), len(self.streams)
        self.unsure += 1
        outcome = follow()
        self.unsure -= 1
        if outcome is not None:  # it may end early
            watch.taken()
            forget(self, node, scope)
            return
        if any(stream.call.method == "pattern" for stream in self.streams[streams:]):
            self.doubt(node, scope, "a pattern is applied in a loop: write the loop around it")
        changed, added = watch.taken()
        touches = any(isinstance(v, Link) for v in changed.values()) or bool(added)
        if header is None and touches:
            self.doubt(node, scope, "a loop of which the source does not say how often it runs")
        code = Code(node, scope.source, scope)
        for key, items in added.items():
            item = Gap(code) if header is None else Loop(header, tuple(items))
            watch.link(key).items.append(item)
        for place, value in changed.items():
            old = watch.old(place)
            if isinstance(value, Link) and isinstance(old, Link) and old in value.ancestors():
                again = value.flat(old)
                item = Gap(code) if header is None else Loop(header, tuple(again))
                looped = Link(old, [item], old.begun, old.event_type, old.name)
                watch.set(place, looped)
                looped.joined = (value,)
                self.links.append(looped)
            else:
                watch.set(place, Unknown(code))

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
