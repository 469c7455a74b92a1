# SPDX-License-Identifier: Apache-2.0
"""Bodies of functions as one expression, or as functions inside the one that calls them."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaType, Method
from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.java.types import UNKNOWN
from pyflinkcep.migrate.meaning.changes import checked_changes
from pyflinkcep.migrate.meaning.folding import folded
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.python_statements import Statements
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.scope import snake_case
from pyflinkcep.migrate.meaning.statements import read_block
from pyflinkcep.migrate.meaning.tree import (
    Aggregate,
    Call,
    Const,
    Expression,
    Lambda,
    Untranslatable,
    Var,
    parts,
    rewritten,
)

__all__ = ["folded_body", "function_called", "has_aggregates", "helper_lines", "value_of_body"]


def folded_body(reader: Reading, body: Node) -> Expression:
    """Return a block that returns a value as an expression; raise Untranslatable otherwise."""
    found = folded(read_block(reader, body))
    if not reader.findings.aggregates and has_aggregates(found):
        raise Untranslatable("a loop in an expression")
    return found


def has_aggregates(of: Expression) -> bool:
    """Whether loops have become aggregates, which only SQL has."""
    return any(
        isinstance(part, Aggregate) or (isinstance(part, Call) and part.name in _OF_SQL)
        for part in parts(of)
    )


_OF_SQL = ("any", "greatest", "least")


def value_of_body(
    inner: Reading, method: Method, values: list[Expression], reader: Reading
) -> Expression:
    """Return the value of a method for some arguments."""
    owner = inner.scope.this
    for (name, type_), value in zip(method.parameters, values, strict=True):
        inner.scope.values[name] = reader.assigned(value, type_)
    inner.result_type = method.type
    inner.event_type = reader.event_type
    called = reader.findings.helper_names.get(method.node.id)
    if called is None:
        try:
            return reader.cast_known(folded_body(inner, method.body), method.type)
        except Untranslatable:
            called = _helper(inner, method)
    return Call(f"helper {called}", (*([owner] if owner else []), *values), method.type)


def function_called(
    reader: Reading, owner: Expression, values: list[Expression], node: Node
) -> Expression:
    """Return what a function that is an object returns for some arguments."""
    if isinstance(owner, Lambda):
        if len(owner.parameters) != len(values):
            raise reader.no(node, f"a function of {len(owner.parameters)} with {len(values)}")
        given = dict(zip(owner.parameters, values, strict=True))
        return rewritten(owner.body, lambda p: given.get(p.name) if isinstance(p, Var) else None)
    number = owner.value if isinstance(owner, Const) else None
    if not isinstance(number, int) or reader.scope.depth > _MOST:
        raise reader.no(node, "a function that is not known here")
    function = reader.findings.objects[number]
    inner = reader.at(function.source, function.within, fields=dict(function.fields))
    inner.local_methods = function.methods
    for (name, type_), value in zip(function.parameters, values, strict=False):
        inner.scope.values[name] = reader.cast_known(value, type_)
    if function.is_block:
        return folded_body(inner, function.body)
    return inner.read(function.body)


def combined(
    reader: Reading, owner: Lambda, name: str, arguments: list[Node], node: Node
) -> Lambda:
    """Return what ``and``, ``or`` or ``negate`` of a predicate makes."""
    if name == "negate" and not arguments:
        return Lambda(owner.parameters, reader.negated(owner.body), owner.type)
    other = reader.argument(arguments[0]) if len(arguments) == 1 else None
    if not isinstance(other, Lambda) or len(other.parameters) != len(owner.parameters):
        raise reader.no(node, f"a predicate and what is not known in {name}()")
    parameters = [
        next((p for p in parts(owner.body) if isinstance(p, Var) and p.name == one), None)
        or Var(one, UNKNOWN)
        for one in owner.parameters
    ]
    second = function_called(reader, other, [*parameters], node)
    body = reader.operation({"and": "&&", "or": "||"}[name], owner.body, second, node)
    return Lambda(owner.parameters, body, owner.type)


_MOST = 12
"""How deep calls of functions are followed."""


def _helper(inner: Reading, method: Method) -> str:
    """Write a method as a function of Python; return its name."""
    findings = inner.findings
    name = "_" + snake_case(method.name)
    while name in findings.helper_names.values():
        name += "_"
    findings.helper_names[method.node.id] = name
    parameters = []
    if inner.scope.this is not None:
        this = inner.scope.declare("this", inner.scope.this.type)
        inner.scope.values.pop("this")
        inner.scope.this = this
        parameters.append(this.name)
    for java, type_ in method.parameters:
        parameters.append(inner.scope.declare(java, type_).name)
    try:
        statements = read_block(inner, method.body)
        checked_changes(statements)
        body = Statements(Python(findings)).block(statements)
    except Untranslatable:
        findings.helper_names.pop(method.node.id)
        raise
    returns = "None" if method.type == JavaType("void") else "Any"
    head = f"def {name}({', '.join(f'{one}: Any' for one in parameters)}) -> {returns}:"
    findings.helpers[name] = "\n".join([head, *(f"    {line}" for line in body or ["pass"])])
    return name


def helper_lines(reader: Reading) -> list[str]:
    """Return the lines of the functions that a body calls, and forget them."""
    found: list[str] = []
    for text in reader.findings.helpers.values():
        found += [*text.splitlines(), ""]
    reader.findings.helpers.clear()
    reader.findings.helper_names.clear()
    return found
