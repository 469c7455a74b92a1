# SPDX-License-Identifier: Apache-2.0
"""Follows calls and constructors: of Flink, of the program, and of Java's own classes."""

from __future__ import annotations

from datetime import timedelta

import attrs

from pyflinkcep.migrate.chains import flow, patterns
from pyflinkcep.migrate.chains.constants import as_java, binary, duration, in_unit
from pyflinkcep.migrate.chains.expressions import Expressions
from pyflinkcep.migrate.chains.lookup import simple_name, type_arguments
from pyflinkcep.migrate.chains.values import (
    Call,
    Code,
    Constant,
    Link,
    Made,
    Scope,
    Skip,
    Stream,
    Symbol,
    Tag,
    Value,
)
from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method
from pyflinkcep.migrate.java.overloads import chosen
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import STRING
from pyflinkcep.migrate.meaning.tree import Call as TreeCall
from pyflinkcep.migrate.meaning.tree import Const

__all__ = ["Invocations"]

_LISTS = frozenset(["asList", "of", "stream"])


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
            label = str(first.value) if isinstance(first, Constant) else text_of(node)
            return Tag(label, rows[0] if rows else "", code)
        if body:
            return code
        values = self.arguments(node, scope)
        if name in ("ArrayList", "LinkedList", "HashSet", "LinkedHashSet"):
            return values[0] if values and isinstance(values[0], Constant) else Constant(())
        return Made(name, values, code)

    def _method_invocation(self, node: Node, scope: Scope) -> Value | None:
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
            return patterns.called(self, value, call)
        if isinstance(value, Stream):
            return flow.called(self, value, call)
        if isinstance(value, Skip):
            return Skip(value.method, value.stage, True) if name.startswith("throw") else value
        if isinstance(value, Made):
            return self._made(value, call, node, scope)
        if isinstance(value, Constant):
            return self._of_constant(value, call, owner, scope)
        if isinstance(value, Symbol) and name == "equals" and arguments:
            return binary("==", value, arguments[0])
        return flow.consumed(self, value, call)

    def _static(self, node: Node, kind: str, name: str, scope: Scope, code: Code) -> Value | None:
        """Return what a static method of a class returns."""
        declared = self.project.find(kind, scope.source)
        if declared is not None and name in declared.methods:
            return self._own(node, name, declared, scope)
        if kind in ("SimpleCondition", "RichIterativeCondition") and name == "of":
            return self.captured(node, scope)
        arguments = self.arguments(node, scope)
        call = Call(name, arguments, code)
        if kind in ("Pattern", "GroupPattern") and name == "begin":
            return patterns.begin(self, call)
        if kind == "CEP" and name == "pattern":
            return flow.cep_pattern(self, call)
        if kind in ("Duration", "Time"):
            return self._duration(name, arguments, node)
        if kind.isupper() and name.startswith("to") and len(arguments) == 1:
            return in_unit(kind, name, arguments[0])
        if kind == "AfterMatchSkipStrategy":
            return Skip(name, arguments[0] if arguments else None)
        if kind in ("Arrays", "List", "Set", "Stream") and name in _LISTS:
            values = [v.value if isinstance(v, Constant) else v for v in arguments]
            return Constant(tuple(values))
        if kind == "String" and name == "valueOf" and arguments:
            return binary("+", Constant(""), arguments[0])
        if declared is not None:
            return None
        made = Made(f"{kind}.{name}", arguments, code)
        return flow.consumed(self, made, call) or made

    def _duration(self, name: str, arguments: tuple[Value, ...], node: Node) -> Value | None:
        values = [v.value if isinstance(v, Constant) else None for v in arguments]
        given = node.child_by_field_name("arguments")
        if len(values) == 2 and values[1] is None:
            values[1] = text_of(children(given)[1])
        found = duration(name, values)
        if found is not None:
            return Constant(found)
        amount = arguments[0] if arguments else None
        if isinstance(amount, Symbol):
            unit = name.removeprefix("of").lower()
            unit = "milliseconds" if unit in ("millis", "milliseconds") else unit
            operands = (Const(unit, STRING), amount.tree)
            return Symbol(TreeCall("timedelta", operands, JavaType("Duration")), amount.names)
        return None

    def _own(self, node: Node, name: str, owner: JavaClass | None, scope: Scope) -> Value | None:
        """Follow a method of the program."""
        arguments = self.arguments(node, scope)
        this = scope.object()
        own = None if this is None else self.project.find(simple_name(this.type), scope.source)
        if own is not None and owner is not None and self.project.is_a(own, owner.name):
            owner = own  # which may override the method
        found = self.method(owner, name, arguments)
        if found is None:
            return None
        this = None if "static" in found[0].modifiers else this
        value = self.run(found[0], found[1], arguments, this)
        if isinstance(value, Stream) and value.name == name:
            value.name = None
        return value

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

    def _made(self, value: Made, call: Call, node: Node, scope: Scope) -> Value | None:
        declared = self.project.find(value.type, scope.source)
        if declared is not None:
            found = self.method(declared, call.method, call.arguments)
            if found is not None:
                return self.run(*found, call.arguments, value)
            getter = self.project.getter(declared, call.method)
            return None if getter is None else self.member(value, getter.name)
        return flow.built(self, value, call)

    def _of_constant(self, value: Constant, call: Call, owner: Node, scope: Scope) -> Value | None:
        """Return what a method of text, of a list or of a duration returns."""
        arguments = [a.value if isinstance(a, Constant) else a for a in call.arguments]
        held = value.value
        if isinstance(held, tuple):
            if call.method in ("add", "addLast") and owner.type == "identifier":
                scope.set(text_of(owner), Constant((*held, *arguments[-1:])))
                return Constant(True)
            if call.method in ("get", "getFirst"):
                return self._element(value, Constant(arguments[0] if arguments else 0))
            if call.method == "size":
                return Constant(len(held))
            return Constant(held) if call.method in ("stream", "toList", "iterator") else None
        first = arguments[0] if arguments else None
        if isinstance(held, str) and call.method == "equals" and isinstance(first, Symbol):
            return binary("==", first, value)
        if isinstance(held, str):
            return _of_text(held, call.method, arguments)
        if isinstance(held, timedelta) and call.method in ("toMilliseconds", "toMillis"):
            return Constant(held // timedelta(milliseconds=1))
        if isinstance(held, timedelta) and call.method in ("plus", "minus"):
            more = first if isinstance(first, timedelta) else None
            return None if more is None else Constant(held + more * _SIGNS[call.method])
        if isinstance(held, timedelta) and call.method.startswith(("plus", "minus")):
            sign = call.method[: len("plus") if call.method.startswith("plus") else len("minus")]
            more = duration(f"of{call.method.removeprefix(sign)}", list(arguments))
            return None if more is None else Constant(held + more * _SIGNS[sign])
        return value if call.method in ("intValue", "longValue", "toString", "getName") else None


def type_of(value: Value) -> str:
    """Return the Java type of a value; ``?`` if it is not known."""
    known = as_java(value) if isinstance(value, Constant) else None
    if known is not None:
        return known.type.name
    match value:
        case Constant(value=timedelta()):
            return "Duration"
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
        return Constant(held == arguments[0])
    if method in ("toLowerCase", "toUpperCase") and not arguments:
        return Constant(held.lower() if method == "toLowerCase" else held.upper())
    if method in ("trim", "strip", "stripIndent"):
        return Constant(held.strip() if method != "stripIndent" else held)
    if method == "concat" and arguments and isinstance(arguments[0], str):
        return Constant(held + arguments[0])
    if method in ("isEmpty", "length", "name"):
        return Constant({"isEmpty": not held, "length": len(held), "name": held}[method])
    if method in ("formatted",) and all(isinstance(a, int | str) for a in arguments):
        try:
            return Constant(held % tuple(arguments))
        except (TypeError, ValueError):
            return None
    return None
