# SPDX-License-Identifier: Apache-2.0
"""Reads lambdas and switch expressions."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaType, read_type
from pyflinkcep.migrate.java.project import filled
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import UNKNOWN
from pyflinkcep.migrate.meaning.bodies import folded_body
from pyflinkcep.migrate.meaning.cases import case_labels, is_case
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import (
    Expression,
    Lambda,
)
from pyflinkcep.migrate.meaning.type_patterns import of_case

__all__ = ["parameters_of", "read_lambda", "read_switch"]


def parameters_of(node: Node) -> list[tuple[str, JavaType]]:
    """Return the names and types of the parameters of a lambda."""
    found = node.child_by_field_name("parameters")
    if found is None:
        return []
    if found.type == "identifier":
        return [(text_of(found), UNKNOWN)]
    result = []
    for part in children(found):
        if part.type == "identifier":
            result.append((text_of(part), UNKNOWN))
        elif part.child_by_field_name("name") is not None:
            type_ = read_type(part.child_by_field_name("type"))
            result.append((text_of(part.child_by_field_name("name")), type_))
    return result


def read_lambda(reader: Reading, node: Node, types: tuple[JavaType, ...]) -> Lambda:
    """Return a lambda inside an expression, whose body has to be one."""
    if node.type != "lambda_expression":
        raise reader.no(node, f"{text_of(node)[:60]} as a function")
    inner = reader.within_block()
    names = []
    for place, (name, type_) in enumerate(parameters_of(node)):
        given = types[place] if place < len(types) else UNKNOWN
        type_ = filled(type_, reader.scope.types)
        variable = inner.scope.declare(name, given if type_ == UNKNOWN else type_)
        names.append(variable.name)
    body = node.child_by_field_name("body")
    value = folded_body(inner, body) if body.type == "block" else inner.read(body)
    return Lambda(tuple(names), value, value.type)


def read_switch(reader: Reading, node: Node) -> Expression:
    """Return a switch expression as choices."""
    tested = reader.read(node.child_by_field_name("condition"))
    otherwise: Expression | None = None
    cases: list[tuple[Expression, Expression]] = []
    for rule in children(node.child_by_field_name("body")):
        if rule.type != "switch_rule":
            raise reader.no(node, "a switch expression with ':'")
        label, body = children(rule)[0], children(rule)[-1]
        inner = reader.within_block()
        is_kind = of_case(inner, label, tested)
        if body.type == "expression_statement":
            value = inner.read(children(body)[0])
        elif body.type == "block":
            value = folded_body(inner, body)
        else:
            raise reader.no(body, "a switch expression that throws")
        if is_kind is not None:
            cases.append((is_kind, value))
            continue
        labels = case_labels(reader, label, tested)
        if labels is None:
            otherwise = value
        else:
            cases.append((is_case(tested, labels), value))
    if otherwise is None:
        if not cases:
            raise reader.no(node, "a switch expression without cases")
        otherwise = cases.pop()[1]
    for condition, value in reversed(cases):
        otherwise = reader.choice(condition, value, otherwise)
    return otherwise
