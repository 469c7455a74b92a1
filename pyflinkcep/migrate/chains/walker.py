# SPDX-License-Identifier: Apache-2.0
"""Follows the statements of a method; what is known of its variables decides where it goes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from pyflinkcep.migrate.chains import flow
from pyflinkcep.migrate.chains.branches import Fork
from pyflinkcep.migrate.chains.constants import binary, converted, listed, parameter, tree_of
from pyflinkcep.migrate.chains.invocations import Invocations
from pyflinkcep.migrate.chains.lookup import inside, is_stream_type, javadoc, snake
from pyflinkcep.migrate.chains.values import (
    Code,
    Constant,
    Header,
    Link,
    Made,
    Scope,
    Stream,
    Symbol,
    Unknown,
    Value,
)
from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import INT
from pyflinkcep.migrate.meaning.tree import Call as TreeCall

__all__ = ["Walker"]

MOST_STEPS = 20_000
MOST_ROUNDS = 200
DEEPEST = 24


@attrs.frozen
class _Returned:
    value: Value | None


_READ = frozenset(
    ["int", "long", "double", "float", "boolean", "Integer", "Long", "Double", "String", "Boolean"]
)
"""Types of values that become parameters if the program reads them when it starts."""

_VAGUE = frozenset(["pattern", "p", "result", "res", "ceppattern", "pat"])
"""Names of variables that say less than that of their method."""


def _is_vague(name: str) -> bool:
    """Whether a name says no more than that it is a pattern."""
    return re.sub(r"^(get|build|create|make)|Pattern$", "", name).lower() in ("", *_VAGUE)


_PRIMITIVES = frozenset(
    [
        "int",
        "long",
        "short",
        "byte",
        "double",
        "float",
        "boolean",
        "char",
        "Integer",
        "Long",
        "Short",
        "Byte",
        "Double",
        "Float",
        "Boolean",
        "Character",
        "String",
        "Duration",
        "Time",
    ]
)


@attrs.define(eq=False)
class Walker(Invocations):
    """
    Follows methods; collects the patterns and streams that they make.

    It never runs anything: a value is known because the source says it, or it is not known.
    """

    def run(
        self,
        method: Method,
        owner: JavaClass,
        arguments: Sequence[Value] | None = None,
        this: Made | None = None,
    ) -> Value | None:
        """Follow a method; without arguments its parameters are known at run time alone."""
        if self.depth >= DEEPEST or method.body is None:
            return None
        scope = Scope(owner.source, owner, this=this)
        first = len(method.parameters) - 1
        if arguments is not None and method.spreads:
            rest = [a.value if isinstance(a, Constant) else a for a in arguments[first:]]
            arguments = [*arguments[:first], Constant(tuple(rest))]
        for at, (name, type_) in enumerate(method.parameters):
            kind = str(type_)
            given = arguments[at] if arguments is not None and at < len(arguments) else None
            read = isinstance(given, Made | Unknown) and kind in _PRIMITIVES
            if (
                given is None or read
            ):  # as a program's argument, which is read where it is handed on
                given = self._parameter(method, scope, name, kind, given)
            scope.set(name, converted(given, kind), kind)
        self.depth += 1
        try:
            returned = self.statement(method.body, scope)
        finally:
            self.depth -= 1
        value = returned.value if isinstance(returned, _Returned) else None
        if isinstance(value, Link) and (value.name is None or not _is_vague(method.name)):
            in_class = _is_vague(method.name) and owner.outer is not None
            value.name = owner.name if in_class else method.name
            value.documented = javadoc(method.node) or value.documented
        if isinstance(value, Link) and value.event_type is None and method.type.args:
            events = method.type.args[0].name
            value.event_type = events if len(events) > 2 else None  # T is not a class
        if isinstance(value, Stream) and value.event_type is None and method.type.args:
            value.event_type = str(method.type.args[0])
        return value

    def _parameter(
        self, method: Method, scope: Scope, name: str, kind: str, given: Value | None = None
    ) -> Value:
        code = Code(method.node, scope.source, scope)
        if kind in _PRIMITIVES:
            return parameter(name, kind, None if given is None else default_of(given))
        if is_stream_type(kind):
            return self.parameter_stream(code, name, kind)
        return Unknown(code)

    # --- statements

    def statement(self, node: Node, scope: Scope) -> _Returned | None:
        """Follow a statement; return what the method returns if it ends here."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            return _Returned(None)
        follow = getattr(self, f"_{node.type}", None)
        if follow is not None:
            found: _Returned | None = follow(node, scope)
            return found
        return None

    def _block(self, node: Node, scope: Scope) -> _Returned | None:
        return self._all(children(node), Scope(scope.source, scope.owner, scope))

    _constructor_body = _block

    def _all(self, nodes: Sequence[Node], scope: Scope) -> _Returned | None:
        for at, node in enumerate(nodes):
            if node.type == "if_statement":
                returned = self._if(node, scope, nodes[at + 1 :])
                if returned is not None:
                    return returned if returned is not _DONE else None
                continue
            returned = self.statement(node, scope)
            if returned is not None:
                return returned
        return None

    def _local_variable_declaration(self, node: Node, scope: Scope) -> None:
        kind = text_of(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            name = text_of(declarator.child_by_field_name("name"))
            value_node = declarator.child_by_field_name("value")
            code = Code(declarator, scope.source, scope)
            value = Unknown(code) if value_node is None else self.evaluate(value_node, scope)
            if value_node is not None and kind in _READ and isinstance(value, Unknown | Made):
                value = self._read_at_start(value_node, name, kind, value, scope)
            if isinstance(value, Made) and "." in value.type and is_stream_type(kind):
                value = flow.made_elsewhere(self, value)
            value = self.declared(converted(value, kind), name, kind, node)
            scope.set(name, value, kind)

    def _read_at_start(self, node: Node, name: str, kind: str, value: Value, scope: Scope) -> Value:
        """Return a value that the program reads when it starts, such as an argument."""
        choices: Sequence[Node] = ()
        if node.type == "ternary_expression":
            choices = [node.child_by_field_name(part) for part in ("consequence", "alternative")]
        elif node.type == "method_invocation":
            called = text_of(node.child_by_field_name("name"))
            if kind == "String" and not called.startswith(("get", "required")):
                return value
            choices = children(node.child_by_field_name("arguments"))[1:][-1:]
        else:
            return value
        defaults = [self.evaluate(choice, scope) for choice in choices]
        default = next((found for found in defaults if isinstance(found, Constant)), None)
        if default is not None:
            self.doubt(node, scope, f"{name} is a parameter: in Java {default.value!r} by default")
        return parameter(name, kind, None if default is None else default.value)

    def _expression_statement(self, node: Node, scope: Scope) -> None:
        for part in children(node):
            self.evaluate(part, scope)

    def _return_statement(self, node: Node, scope: Scope) -> _Returned:
        parts = children(node)
        return _Returned(self.evaluate(parts[0], scope) if parts else None)

    def _throw_statement(self, node: Node, scope: Scope) -> _Returned:
        return _Returned(None)

    def _if_statement(self, node: Node, scope: Scope) -> _Returned | None:
        returned = self._if(node, scope, ())
        return None if returned is _DONE else returned

    def _if(self, node: Node, scope: Scope, rest: Sequence[Node]) -> _Returned | None:
        """Follow a conditional, and with it what follows if one of its branches returns."""
        condition = self.evaluate(node.child_by_field_name("condition"), scope)
        then = node.child_by_field_name("consequence")
        otherwise = node.child_by_field_name("alternative")
        if isinstance(condition, Constant):
            chosen = then if condition.value else otherwise
            return None if chosen is None else self.statement(chosen, scope)
        test = self.as_test(condition, node.child_by_field_name("condition"))
        fork = Fork(scope)
        self.unsure += 1
        first = self.statement(then, scope)
        fork.turn()
        second = None if otherwise is None else self.statement(otherwise, scope)
        self.unsure -= 1
        if first is None and second is None:
            fork.join(test, self)
            return None
        if second is None:
            second = self._all(rest, scope)
        elif first is None:
            fork.swap()
            first = self._all(rest, scope)
            fork.swap()
        values = [None if side is None else side.value for side in (first, second)]
        joined = fork.returned(test, values[0], values[1], self)
        return _Returned(joined) if joined is not None else _DONE

    def _for_statement(self, node: Node, scope: Scope) -> _Returned | None:
        inner = Scope(scope.source, scope.owner, scope)
        for part in node.children_by_field_name("init"):
            if part.type == "local_variable_declaration":
                self._local_variable_declaration(part, inner)
            else:
                self.evaluate(part, inner)
        condition = node.child_by_field_name("condition")
        for _ in range(MOST_ROUNDS):
            test = Constant(True) if condition is None else self.evaluate(condition, inner)
            if not isinstance(test, Constant):
                counted = self._counted(node, inner)
                if counted is None:  # what it counts is no longer what it began with
                    for name, held in inner.values.items():
                        if isinstance(held, Constant) and type(held.value) is int:
                            inner.set(name, parameter(name, "int"), "int")
                self.repeated(node, inner, counted, lambda: self._round(node, inner))
                return None
            if not test.value:
                return None
            returned = self._round(node, inner)
            if returned is not None:
                return None if returned is _DONE else returned
            for part in node.children_by_field_name("update"):
                self.evaluate(part, inner)
        return None

    def _round(self, node: Node, scope: Scope) -> _Returned | None:
        return self.statement(node.child_by_field_name("body"), scope)

    def _break_statement(self, node: Node, scope: Scope) -> _Returned:
        return _DONE

    def _counted(self, node: Node, scope: Scope) -> Header | None:
        """Return the header of a loop that counts from a number up to another one."""
        inits = node.children_by_field_name("init")
        condition = node.child_by_field_name("condition")
        update = " ".join(text_of(part) for part in node.children_by_field_name("update"))
        if len(inits) != 1 or condition is None or condition.type != "binary_expression":
            return None
        names = [
            text_of(n.child_by_field_name("name")) for n in inside(inits[0], "variable_declarator")
        ]
        sign = text_of(condition.child_by_field_name("operator"))
        left = text_of(condition.child_by_field_name("left"))
        if names != [left] or sign not in ("<", "<=") or "++" not in update:
            return None
        first = scope.find(left)
        last = self.evaluate(condition.child_by_field_name("right"), scope)
        most = binary("+", last, Constant(1)) if sign == "<=" and last is not None else last
        start, end = tree_of(first), tree_of(most)
        if start is None or end is None:
            return None
        scope.set(left, parameter(left, "int"), "int")
        used = [value.names for value in (first, last) if isinstance(value, Symbol)]
        over = TreeCall("range", (start, end), JavaType("IntStream", (INT,)))
        return Header(snake(left), Symbol(over, tuple(name for some in used for name in some)))

    def _enhanced_for_statement(self, node: Node, scope: Scope) -> _Returned | None:
        values = self.evaluate(node.child_by_field_name("value"), scope)
        name = text_of(node.child_by_field_name("name"))
        kind = text_of(node.child_by_field_name("type"))
        if isinstance(values, Constant) and isinstance(values.value, tuple):
            for value in values.value[:MOST_ROUNDS]:
                inner = Scope(scope.source, scope.owner, scope)
                inner.set(name, value if isinstance(value, Value) else Constant(value), kind)
                returned = self._round(node, inner)
                if returned is not None:
                    return None if returned is _DONE else returned
            return None
        inner = Scope(scope.source, scope.owner, scope)
        header: Header | None = None
        if not isinstance(values, Symbol) and kind in _PRIMITIVES:
            values = listed(text_of(node.child_by_field_name("value")), kind)
        if isinstance(values, Symbol):
            inner.set(name, parameter(name, kind), kind)
            header = Header(snake(name), values)
        else:
            inner.set(name, Unknown(Code(node, scope.source, scope)), kind)
        self.repeated(node, inner, header, lambda: self._round(node, inner))
        return None

    def _while_statement(self, node: Node, scope: Scope) -> _Returned | None:
        for _ in range(MOST_ROUNDS):
            test = self.evaluate(node.child_by_field_name("condition"), scope)
            if not isinstance(test, Constant):
                self.repeated(node, scope, None, lambda: self._round(node, scope))
                return None
            if not test.value:
                return None
            returned = self._round(node, scope)
            if returned is not None:
                return None if returned is _DONE else returned
        return None

    def _try_statement(self, node: Node, scope: Scope) -> _Returned | None:
        for resources in (p for p in children(node) if p.type == "resource_specification"):
            for resource in children(resources):
                value = resource.child_by_field_name("value")
                if value is not None:
                    self.evaluate(value, scope)
        return self.statement(node.child_by_field_name("body"), scope)

    _try_with_resources_statement = _try_statement

    def _synchronized_statement(self, node: Node, scope: Scope) -> _Returned | None:
        return self.statement(node.child_by_field_name("body"), scope)

    def _switch_expression(self, node: Node, scope: Scope) -> _Returned | None:
        test = self.evaluate(node.child_by_field_name("condition"), scope)
        groups = children(node.child_by_field_name("body"))
        if isinstance(test, Code) and test.node.type == "field_access":  # a constant of an enum
            test = Constant(text_of(test.node.child_by_field_name("field")))
        if not isinstance(test, Constant):
            self.doubt(node, scope, "a switch over what is known at run time alone")
            return None
        running = False
        for group in groups:
            labels = [p for p in children(group) if p.type == "switch_label"]
            cases = [case for label in labels for case in children(label)]
            default = any(not children(label) for label in labels)
            values = [self.evaluate(case, scope) for case in cases]
            same = any(isinstance(v, Constant) and v.value == test.value for v in values)
            named = any(text_of(case) == test.value for case in cases)
            running = running or same or named or default
            if running:
                body = [p for p in children(group) if p.type != "switch_label"]
                returned = self._all(body, scope)
                if returned is not None:
                    return None if returned is _DONE else returned
                if group.type == "switch_rule":
                    return None
        return None

    def _labeled_statement(self, node: Node, scope: Scope) -> _Returned | None:
        return self.statement(children(node)[-1], scope)


def default_of(value: Value) -> object:
    """Return the default in ``params.getInt("limit", 4)``; None if there is none."""
    last = value.arguments[-1] if isinstance(value, Made) and len(value.arguments) > 1 else None
    return last.value if isinstance(last, Constant) else None


_DONE = _Returned(None)
