# SPDX-License-Identifier: Apache-2.0
"""Calls with a function for each element: forEach of lists and maps, ifPresent."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import BOOLEAN, UNKNOWN
from pyflinkcep.migrate.meaning.collectors import element_of
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Const,
    Continue,
    Do,
    ForEach,
    If,
    Let,
    Return,
    Statement,
    Try,
    Unary,
    Untranslatable,
    While,
)
from pyflinkcep.migrate.meaning.walked import all_statements

__all__ = ["for_each_call", "if_present"]


def for_each_call(reader: Reading, node: Node) -> Statement | None:
    """Return ``xs.forEach(x -> …)`` as a loop."""
    if text_of(node.child_by_field_name("name")) != "forEach":
        return None
    arguments = children(node.child_by_field_name("arguments"))
    if len(arguments) == 1 and arguments[0].type == "method_reference":
        return _added_each(reader, node, arguments[0])
    if len(arguments) != 1 or arguments[0].type != "lambda_expression":
        return None
    names = children(arguments[0].child_by_field_name("parameters"))
    parameter = arguments[0].child_by_field_name("parameters")
    name = text_of(parameter if parameter.type == "identifier" else names[0])
    if len(names) == 2:
        return _pair_each(reader, node, arguments[0])
    iterable = reader.read(node.child_by_field_name("object"))
    inner = reader.within_block()
    element = element_of(iterable.type)
    variable = inner.scope.declare(name, element)
    statements = _turn(inner, arguments[0])
    return ForEach(variable.name, element, iterable, statements)


def _turn(reader: Reading, function: Node) -> tuple[Statement, ...]:
    """Return the statements of a lambda that a loop calls, which ``return`` goes on with."""
    body = function.child_by_field_name("body")
    return _going_on(reader.statements(children(body) if body.type == "block" else [body]))


def _going_on(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for one in statements:
        match one:
            case Return():
                found.append(Continue())
            case If():
                then, otherwise = _going_on(one.then), _going_on(one.otherwise)
                found.append(If(one.condition, then, otherwise))
            case ForEach() | While() if any(isinstance(s, Return) for s in all_statements((one,))):
                raise Untranslatable("return inside of a loop inside of forEach()")
            case Try() if any(isinstance(s, Return) for s in all_statements((one,))):
                raise Untranslatable("return inside of try inside of forEach()")
            case _:
                found.append(one)
    return tuple(found)


def if_present(reader: Reading, node: Node) -> Statement | None:
    """Return ``x.ifPresent(v -> …)`` as a conditional."""
    arguments = children(node.child_by_field_name("arguments"))
    if text_of(node.child_by_field_name("name")) != "ifPresent" or len(arguments) != 1:
        return None
    value = reader.read(node.child_by_field_name("object"))
    if arguments[0].type != "lambda_expression" or not value.type.name.startswith("Optional"):
        return None
    parameter = arguments[0].child_by_field_name("parameters")
    inner = reader.within_block()
    name = text_of(parameter if parameter.type == "identifier" else children(parameter)[0])
    variable = inner.scope.declare(name, element_of(value.type))
    body = arguments[0].child_by_field_name("body")
    statements = inner.statements(children(body) if body.type == "block" else [body])
    if any(isinstance(one, Return) for one in all_statements(statements)):
        raise reader.no(node, "return inside of ifPresent()")
    known = Unary("!", Call("is null", (variable,), BOOLEAN), BOOLEAN)
    held = Let(variable.name, variable.type, value)
    return If(Const(True, BOOLEAN), (held, If(known, statements)))


def _pair_each(reader: Reading, node: Node, function: Node) -> Statement:
    """Return ``map.forEach((k, v) -> …)`` as a loop."""
    whole = reader.read(node.child_by_field_name("object"))
    args = whole.type.args if len(whole.type.args) == 2 else (UNKNOWN, UNKNOWN)
    entry = JavaType("Entry", args)
    inner = reader.within_block()
    each = inner.scope.declare("entry", entry)
    names = children(function.child_by_field_name("parameters"))
    lets = []
    for place, getter in enumerate(("Entry.getKey", "Entry.getValue")):
        name = names[place].child_by_field_name("name") or names[place]
        variable = inner.scope.declare(text_of(name), args[place])
        lets.append(Let(variable.name, variable.type, Call(getter, (each,), args[place])))
    statements = _turn(inner, function)
    pairs = Call("Map.entrySet", (whole,), JavaType("Set", (entry,)))
    return ForEach(each.name, entry, pairs, (*lets, *statements))


def _added_each(reader: Reading, node: Node, reference: Node) -> Statement | None:
    """Return ``xs.forEach(list::add)`` as a loop."""
    owner, name = reference.children[0], text_of(reference.children[-1])
    if name != "add" or not reader.is_variable(text_of(owner)):
        return None
    iterable = reader.read(node.child_by_field_name("object"))
    inner = reader.within_block()
    each = inner.scope.declare("each", element_of(iterable.type))
    held = reader.read(owner)
    kind = "Set.add" if "Set" in held.type.name else "List.add"
    added = Call(kind, (held, each), JavaType("void"))
    return ForEach(each.name, each.type, iterable, (Do(added),))
