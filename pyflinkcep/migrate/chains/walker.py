# SPDX-License-Identifier: Apache-2.0
"""Follows the statements of a method; what is known of its variables decides where it goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import attrs

from pyflinkcep.migrate.chains import flow
from pyflinkcep.migrate.chains.expressions import Expressions
from pyflinkcep.migrate.chains.values import (
    Const,
    Fork,
    Gap,
    Header,
    Link,
    Loop,
    Made,
    Scope,
    Stream,
    Symbol,
    Unknown,
    Value,
    Watch,
    binary,
    converted,
    forget,
    list_name,
    tree_of,
)
from pyflinkcep.migrate.java.declarations import INT, JavaClass, JavaType, Method
from pyflinkcep.migrate.java.source import Node, children, inside, is_stream_type, javadoc, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.translated import PART
from pyflinkcep.migrate.meaning.tree import Call as TreeCall

MOST_ROUNDS = 2_000
DEEPEST = 24


@attrs.frozen
class _Returned:
    """A method that ends, with its value."""

    value: Value | None


@attrs.frozen
class _Jump:
    """A ``break`` or ``continue``, or an end that is not known."""

    kind: str


_Outcome = _Returned | _Jump
_ENDED = _Jump("throw")
_UNSURE = _Jump("unsure")
"""What may end a method or a loop, or may not."""
_PLAIN: dict[str, _Outcome | None] = {
    "throw_statement": _ENDED, "break_statement": _Jump("break"),
    "continue_statement": _Jump("continue"),
    **dict.fromkeys(["class_declaration", "record_declaration", "enum_declaration",
                     "interface_declaration", "assert_statement", ";"]),
}  # fmt: skip
"""What statements that have no effect do; Java checks no assertion unless it is asked to."""
_BODIES = ("method_declaration", "constructor_declaration", "lambda_expression")


_READ = frozenset([
    "int", "long", "double", "float", "boolean", "Integer", "Long", "Double", "String", "Boolean",
])  # fmt: skip
"""Types of values that become parameters if the program reads them when it starts."""

_VAGUE = frozenset(["pattern", "p", "result", "res", "ceppattern", "pat"])
"""Names of variables that say less than that of their method."""


def _is_vague(name: str) -> bool:
    """Whether a name says no more than that it is a pattern."""
    return re.sub(r"^(get|build|create|make)|Pattern$", "", name).lower() in ("", *_VAGUE)


_PRIMITIVES = _READ | {
    "short", "byte", "char", "Short", "Byte", "Float", "Character", "Duration", "Time",
}  # fmt: skip


@attrs.define(eq=False)
class Walker(Expressions):
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
        scope = Scope(owner.source, owner, this=this)
        if self.depth >= DEEPEST or method.body is None:
            self._not_run(method, arguments or (), scope)
            return None
        first = len(method.parameters) - 1
        if arguments is not None and method.spreads:
            rest = [a.value if isinstance(a, Const) else a for a in arguments[first:]]
            arguments = [*arguments[:first], Const(tuple(rest))]
        for at, (name, type_) in enumerate(method.parameters):
            kind = str(type_)
            given = arguments[at] if arguments is not None and at < len(arguments) else None
            read = isinstance(given, Made | Unknown) and kind in _PRIMITIVES
            if given is None or read:  # a program's argument is read where it is handed on
                given = self._parameter(method, scope, name, kind, given)
            scope.set(name, converted(given, kind), kind)
        self.depth += 1
        outer, self.frame = self.frame, self.steps
        try:
            returned = self.statement(method.body, scope)
        finally:
            self.depth -= 1
            self.frame = outer
        if returned is _UNSURE:
            forget(self, method.body, scope)
        value = returned.value if isinstance(returned, _Returned) else None
        if isinstance(value, Link) and (value.name is None or not _is_vague(method.name)):
            in_class = _is_vague(method.name) and owner.outer is not None
            value.name = owner.name if in_class else method.name
            value.documented = javadoc(method.node) or value.documented
        if isinstance(value, Link) and value.event_type is None and method.type.args:
            events = method.type.args[0].name
            is_class = len(events) > 2 or self.project.find(events, owner.source) is not None
            value.event_type = events if is_class else None  # T is not a class
        if isinstance(value, Stream) and value.event_type is None and method.type.args:
            value.event_type = str(method.type.args[0])
        return value

    def _not_run(self, method: Method, arguments: Sequence[Value], scope: Scope) -> None:
        """Forget what a method that is not followed does with what it is given."""
        where = scope.code(method.node)
        if method.body is not None:
            forget(self, method.body, scope)
        for given in arguments:
            if isinstance(given, Link):
                given.items.append(Gap(where))
            elif isinstance(given, Stream):
                self.gaps.append(where)
            elif isinstance(given, Const) and isinstance(given.value, tuple):
                self.replaced(given, Unknown(where), scope)

    def _parameter(
        self, method: Method, scope: Scope, name: str, kind: str, given: Value | None = None
    ) -> Value:
        code = scope.code(method.node)
        if kind in _PRIMITIVES:
            if isinstance(given, Unknown) and given.lost:
                self.doubt(method.node, scope, _LOST)
            of = (method.name, name) if given is None else given
            return self.symbol(name, kind, of)
        if is_stream_type(kind):
            return self.parameter_stream(code, name, kind)
        return Unknown(code)

    # --- statements

    def statement(self, node: Node, scope: Scope) -> _Outcome | None:
        """Follow a statement; return how it ends, if nothing after it is reached."""
        self.step()
        if node.type in _PLAIN:
            return _PLAIN[node.type]
        follow: Callable[[Node, Scope], _Outcome | None]
        follow = getattr(self, f"_{node.type}", self._lost)
        return follow(node, scope)

    def _lost(self, node: Node, scope: Scope) -> _Outcome | None:
        """Forget a statement that is not followed."""
        forget(self, node, scope)
        return _UNSURE if any(_leaves(end, node) for end in inside(node, *_JUMPS)) else None

    def _block(self, node: Node, scope: Scope) -> _Outcome | None:
        return self._all(children(node), scope.inside())

    _constructor_body = _block

    def _all(self, nodes: Sequence[Node], scope: Scope) -> _Outcome | None:
        for at, node in enumerate(nodes):
            if node.type == "if_statement":
                rest = nodes[at + 1 :]
                returned, followed = self._if(node, scope, rest)
                if followed:
                    return returned
            else:
                returned = self.statement(node, scope)
            if returned is not None:
                return returned
        return None

    def _local_variable_declaration(self, node: Node, scope: Scope) -> None:
        kind = text_of(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            name = text_of(declarator.child_by_field_name("name"))
            value_node = declarator.child_by_field_name("value")
            code = scope.code(declarator)
            value = Unknown(code) if value_node is None else self.evaluate(value_node, scope)
            if value_node is not None and kind in _READ and isinstance(value, Unknown | Made):
                value = self._read_at_start(value_node, name, kind, value, scope)
            if isinstance(value, Made) and "." in value.type and is_stream_type(kind):
                value = flow.elsewhere(self, value.code)
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
        default = next((found for found in defaults if isinstance(found, Const)), None)
        if default is not None:
            self.doubt(node, scope, f"{name} is a parameter: in Java {default.value!r} by default")
        return self.symbol(name, kind, (name, self.identity(node, scope)))

    def _expression_statement(self, node: Node, scope: Scope) -> None:
        for part in children(node):
            self.evaluate(part, scope)

    def _return_statement(self, node: Node, scope: Scope) -> _Outcome:
        parts = children(node)
        if not parts and self.depth == 1:
            return _ENDED  # the program goes no further
        return _Returned(self.evaluate(parts[0], scope) if parts else None)

    def _if_statement(self, node: Node, scope: Scope) -> _Outcome | None:
        return self._if(node, scope, ())[0]

    def _if(self, node: Node, scope: Scope, rest: Sequence[Node]) -> tuple[_Outcome | None, bool]:
        """Follow a conditional; also what follows, if one of its branches ends the method."""
        condition = self.evaluate(node.child_by_field_name("condition"), scope)
        then = node.child_by_field_name("consequence")
        otherwise = node.child_by_field_name("alternative")
        if isinstance(condition, Const):
            chosen, left = (then, otherwise) if condition.value else (otherwise, then)
            if left is not None:
                self.idle.append(scope.code(left))
            return None if chosen is None else self.statement(chosen, scope), False
        test = self.as_test(condition, node.child_by_field_name("condition"), scope)
        fork, streams = Fork(scope, self, node), len(self.streams)
        self.unsure += 1
        first = self.statement(then, scope)
        fork.turn()
        second = None if otherwise is None else self.statement(otherwise, scope)
        self.unsure -= 1
        if first is _ENDED or second is _ENDED:
            if first is not _ENDED:
                fork.swap()
            return (second if first is _ENDED else first), False
        if any(stream.call.method in flow.SINKS for stream in self.streams[streams:]):
            self.gaps.append(scope.code(node))
        if first is None and second is None:
            fork.join(test)
            return None, False
        if not all(side is None or isinstance(side, _Returned) for side in (first, second)):
            fork.taken()
            return _UNSURE, False
        followed = first is None or second is None
        self.unsure += 1
        if second is None:
            second = self._all(rest, scope)
        elif first is None:
            fork.swap()
            first = self._all(rest, scope)
            fork.swap()
        self.unsure -= 1
        return self._both(fork, test, node, first, second), followed

    def _both(
        self, fork: Fork, test: Symbol, node: Node, first: _Outcome | None, second: _Outcome | None
    ) -> _Outcome | None:
        """Return how a method ends of which one branch, or both, return."""
        if _ENDED in (first, second):
            if first is not _ENDED:
                fork.swap()
            return second if first is _ENDED else first
        values = [side.value for side in (first, second) if isinstance(side, _Returned)]
        if len(values) == 2:
            fork.join(test, variables=False)
            first_value, second_value = values
            if first_value is None or second_value is None:
                return _Returned(None)
            made = self.joined(test, first_value, second_value, node, fork.scope)
            return _Returned(made or fork.scope.unknown(node))
        last = node.parent.parent is not None and node.parent.parent.type in _BODIES
        if values == [None] and last and None in (first, second):  # either is the method's end
            fork.join(test)
            return _Returned(None)
        fork.taken()
        return _UNSURE

    def _for_statement(self, node: Node, scope: Scope) -> _Outcome | None:
        inner = scope.inside()
        for part in node.children_by_field_name("init"):
            if part.type == "local_variable_declaration":
                self._local_variable_declaration(part, inner)
            else:
                self.evaluate(part, inner)
        return self._turns(node, inner)

    def _turns(self, node: Node, scope: Scope) -> _Outcome | None:
        """Follow a loop as long as its condition is known to hold."""
        condition = node.child_by_field_name("condition")
        for _ in range(MOST_ROUNDS):
            test = Const(True) if condition is None else self.evaluate(condition, scope)
            if not isinstance(test, Const):
                return self._repeated(node, scope, self._counted(node, scope))
            if not test.value:
                return None
            ends, returned = self._round(node, scope)
            if ends:
                return returned
            for part in node.children_by_field_name("update"):
                self.evaluate(part, scope)
        self.doubt(node, scope, f"a loop of more than {MOST_ROUNDS:,} rounds")
        return self._lost(node, scope)

    def _repeated(self, node: Node, scope: Scope, header: Header | None) -> _Outcome | None:
        """Follow a loop's body once, and let patterns go through it as often as is known then."""
        watch, streams = Watch(scope, self), len(self.streams)
        self._counters += [] if header is None else [header.counter]
        self.unsure += 1
        ends, returned = self._round(node, scope)
        self.unsure -= 1
        del self._counters[len(self._counters) - (header is not None) :]
        if ends:  # it may end early
            watch.taken()
            forget(self, node, scope)
            return None if returned is None else _UNSURE
        if any(stream.call.method == "pattern" for stream in self.streams[streams:]):
            self.doubt(node, scope, "a pattern is applied in a loop: write the loop around it")
        changed, added = watch.taken()
        if header is None and (added or any(isinstance(v, Link) for v in changed.values())):
            self.doubt(node, scope, "a loop of which the source does not say how often it runs")
        code = scope.code(node)
        for link, items in added.items():
            link.items.append(Gap(code) if header is None else Loop(header, tuple(items)))
        for place, value in changed.items():
            old = watch.old(place)
            watch.set(place, Unknown(code))
            if isinstance(value, Link) and isinstance(old, Link) and old in value.ancestors():
                item = Gap(code) if header is None else Loop(header, tuple(value.flat(old)))
                looped = Link(old, [item], old.begun, old.event_type, old.name, joined=(value,))
                self.links.append(looped)
                watch.set(place, looped)
        return None

    def _round(self, node: Node, scope: Scope) -> tuple[bool, _Outcome | None]:
        """Follow the body of a loop; return whether the loop ends there, and how."""
        outcome = self.statement(node.child_by_field_name("body"), scope)
        if isinstance(outcome, _Jump):
            if outcome.kind in ("break", "continue"):
                return outcome.kind == "break", None
            if outcome is _UNSURE:
                left = self._lost(node, scope)
                return True, left if any(inside(node, "return_statement")) else None
        return outcome is not None, outcome

    def _counted(self, node: Node, scope: Scope) -> Header | None:
        """Return the header of a loop that counts from a number up to another one."""
        header = self._range(node, scope)
        if header is None and node.type == "for_statement":
            for name, held in scope.values.maps[0].items():  # no longer what it began with
                if isinstance(held, Const) and type(held.value) is int:
                    scope.set(name, self.symbol(name, "int", (node.id, self.frame)), "int")
        return header

    def _range(self, node: Node, scope: Scope) -> Header | None:
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
        first = scope.values.get(left)
        last = self.evaluate(condition.child_by_field_name("right"), scope)
        most = binary("+", last, Const(1)) if sign == "<=" and last is not None else last
        start, end = tree_of(first), tree_of(most)
        if start is None or end is None:
            return None
        counter = self.counter(left, "int")
        scope.set(left, counter, "int")
        over = TreeCall(ops.RANGE, (start, end), JavaType("IntStream", (INT,)))
        return Header(next(iter(counter.names)), Symbol(over))

    def _enhanced_for_statement(self, node: Node, scope: Scope) -> _Outcome | None:
        values = self.evaluate(node.child_by_field_name("value"), scope)
        name = text_of(node.child_by_field_name("name"))
        kind = text_of(node.child_by_field_name("type"))
        if isinstance(values, Const) and isinstance(values.value, tuple):
            for value in values.value:
                inner = scope.inside()
                inner.set(name, value if isinstance(value, Value) else Const(value), kind)
                ends, returned = self._round(node, inner)
                if ends:
                    return returned
            return None
        inner = scope.inside()
        header: Header | None = None
        if not isinstance(values, Symbol) and kind in _PRIMITIVES:
            over_node = node.child_by_field_name("value")
            if isinstance(values, Unknown) and values.lost:
                self.doubt(node, scope, _LOST)
            named = list_name(text_of(over_node))
            values = self.symbol(named, f"List<{kind}>", self.identity(over_node, scope))
        if isinstance(values, Symbol):
            counter = self.counter(name, kind)
            inner.set(name, counter, kind)
            header = Header(next(iter(counter.names)), values)
        else:
            inner.set(name, scope.unknown(node), kind)
        return self._repeated(node, inner, header)

    _while_statement = _turns

    def _try_statement(self, node: Node, scope: Scope) -> _Outcome | None:
        """Follow what is tried, as if nothing were thrown; what is caught is not followed."""
        outcome = self.statement(node.child_by_field_name("body"), scope)
        for part in children(node):
            if part.type == "catch_clause":
                forget(self, part, scope)
                returned = [children(found) for found in inside(part, "return_statement")]
                others = [given for given in returned if given and text_of(given[0]) != "null"]
                outcome = _UNSURE if others else outcome
            elif part.type == "finally_clause":
                outcome = self.statement(children(part)[0], scope) or outcome
        return outcome

    def _synchronized_statement(self, node: Node, scope: Scope) -> _Outcome | None:
        return self.statement(node.child_by_field_name("body"), scope)


_LOST = f"it is changed in code that is not followed, so it became a parameter: {PART}"
_LOOPS = frozenset(["for_statement", "enhanced_for_statement", "while_statement", "do_statement"])
_JUMPS = ("return_statement", "break_statement", "continue_statement")


def _leaves(end: Node, code: Node) -> bool:
    """Whether a jump goes out of code."""
    around = {"break_statement": _LOOPS | {"switch_expression"}, "continue_statement": _LOOPS}
    inner = around.get(end.type, frozenset())
    found = end
    while found.id != code.id:
        found = found.parent
        if found.type in inner or found.type in _BODIES:  # of a lambda, or of another class
            return False
    return True
