# SPDX-License-Identifier: Apache-2.0
"""Follows calls and constructors: of Flink, of the program, and of Java's own classes."""

from __future__ import annotations

import re
from datetime import timedelta

import attrs

from pyflinkcep.migrate.chains import flow
from pyflinkcep.migrate.chains.constants import binary, duration, in_unit
from pyflinkcep.migrate.chains.expressions import CHANGES, KEPT, Expressions, forget
from pyflinkcep.migrate.chains.values import (
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
    Unknown,
    Value,
)
from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method
from pyflinkcep.migrate.java.project import STRING, chosen
from pyflinkcep.migrate.java.source import Node, children, simple_name, text_of, type_arguments
from pyflinkcep.migrate.meaning.tree import Call as TreeCall

STAGES = frozenset(["next", "followedBy", "followedByAny", "notNext", "notFollowedBy"])
"""The calls that add a stage."""

CONDITIONS = frozenset(["where", "or", "until"])
"""The calls with a condition."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9]?")
"""The name of a type that a method is given."""


def begin(walker: Expressions, call: Call) -> Link:
    """Return the pattern that a call of ``begin`` makes."""
    types = call.code.node.child_by_field_name("type_arguments")
    written = type_arguments(text_of(types)) if types is not None else []
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
    if call.method == "getName":
        first = link.items[0] if link.items else None
        if isinstance(first, Call) and first.arguments:
            return first.arguments[0]
    if call.method == "getPrevious":
        return link.previous
    if call.method in ("getAfterMatchSkipStrategy", "getWindowSize", "getWindowTime"):
        return None
    return Const(None) if call.method == "toString" else None


def _take_groups(link: Link, call: Call) -> None:
    for argument in call.arguments:
        if isinstance(argument, Link):
            argument.is_group = True
            link.event_type = link.event_type or argument.event_type


_LISTS = frozenset(["asList", "of", "stream"])
_READING = frozenset(["forEach", "containsAll", "lastIndexOf", "subList", "toArray", "copyOf"])
_FUNCTIONS = ("lambda_expression", "method_reference", "object_creation_expression")


@attrs.define(eq=False)
class Invocations(Expressions):
    """Follows calls."""

    def arguments(self, node: Node, scope: Scope) -> tuple[Value, ...]:
        """Return the values of a call's arguments."""
        given = node.child_by_field_name("arguments")
        return tuple(self.evaluate(part, scope) for part in children(given)) if given else ()

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
                what = f"a pattern is handed to {name}(): write that part of the job"
                self.doubt(node, scope, what)
            elif isinstance(held, Const) and isinstance(held.value, tuple) and name not in KEPT:
                self.replaced(held, Unknown(Code(node, scope.source, scope), lost=True), scope)
            elif part.type in _FUNCTIONS:
                forget(self, part, scope)

    def _called(self, node: Node, scope: Scope) -> tuple[Value | None, bool]:
        """Return what a call returns, and whether it is known what it does."""
        name = text_of(node.child_by_field_name("name"))
        owner = node.child_by_field_name("object")
        if owner is None or owner.type in ("this", "super"):
            return self._own(node, name, scope.owner, scope)
        written = text_of(owner)
        code = Code(node, scope.source, scope)
        if owner.type in ("identifier", "field_access", "scoped_identifier"):
            kind = simple_name(written)
            if scope.find(written) is None and kind[:1].isupper():
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
        if isinstance(amount, Symbol):
            unit = name.removeprefix("of").lower()
            unit = "milliseconds" if unit in ("millis", "milliseconds") else unit
            operands = (Const(unit, STRING), amount.tree)
            return Symbol(TreeCall("timedelta", operands, JavaType("Duration")), amount.names)
        return None

    def _own(
        self, node: Node, name: str, owner: JavaClass | None, scope: Scope
    ) -> tuple[Value | None, bool]:
        """Follow a method of the program; return its value, and whether there is one."""
        arguments = self.arguments(node, scope)
        this = scope.object()
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
                return None if found is None else (found, found.owner or owner)
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
        arguments = [a.value if isinstance(a, Const) else a for a in call.arguments]
        held = value.value
        first = arguments[0] if arguments else None
        if isinstance(held, str) and call.method == "equals" and isinstance(first, Symbol):
            return binary("==", first, value)
        if isinstance(held, str):
            return _of_text(held, call.method, arguments)
        if isinstance(held, timedelta) and call.method in ("toMilliseconds", "toMillis"):
            return Const(held // timedelta(milliseconds=1))
        if isinstance(held, timedelta) and call.method in ("plus", "minus"):
            more = first if isinstance(first, timedelta) else None
            return None if more is None else Const(held + more * _SIGNS[call.method])
        if isinstance(held, timedelta) and call.method.startswith(("plus", "minus")):
            sign = call.method[: len("plus") if call.method.startswith("plus") else len("minus")]
            more = duration(f"of{call.method.removeprefix(sign)}", list(arguments))
            return None if more is None else Const(held + more * _SIGNS[sign])
        return value if call.method in ("intValue", "longValue", "toString", "getName") else None


def type_of(value: Value) -> str:
    """Return the Java type of a value; ``?`` if it is not known."""
    match value:
        case Const():
            return value.type.name
        case Symbol() | Made():
            return simple_name(value.type)
        case Link():
            return "Pattern"
        case Stream():
            return "DataStream"
        case Skip():
            return "AfterMatchSkipStrategy"
    return "?"


_SIGNS = {"plus": 1, "minus": -1}


def _of_text(held: str, method: str, arguments: list[object]) -> Value | None:
    if method == "equals" and arguments and isinstance(arguments[0], str):
        return Const(held == arguments[0])
    if method in ("toLowerCase", "toUpperCase") and not arguments:
        return Const(held.lower() if method == "toLowerCase" else held.upper())
    if method in ("trim", "strip", "stripIndent"):
        return Const(held.strip() if method != "stripIndent" else held)
    if method == "concat" and arguments and isinstance(arguments[0], str):
        return Const(held + arguments[0])
    if method in ("isEmpty", "length", "name"):
        return Const({"isEmpty": not held, "length": len(held), "name": held}[method])
    if method in ("formatted",) and all(isinstance(a, int | str) for a in arguments):
        try:
            return Const(held % tuple(arguments))
        except (TypeError, ValueError):
            return None
    return None
