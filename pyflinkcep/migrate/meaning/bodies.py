# SPDX-License-Identifier: Apache-2.0
"""Bodies of functions as one expression, or as functions inside the one that calls them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyflinkcep.migrate.java.declarations import JavaType, Method
from pyflinkcep.migrate.java.project import UNKNOWN
from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.loops import folded
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.python_statements import Statements
from pyflinkcep.migrate.meaning.reading import snake_case
from pyflinkcep.migrate.meaning.statements import read_block
from pyflinkcep.migrate.meaning.tree import (
    Aggregate,
    Call,
    Cast,
    Const,
    Do,
    Expression,
    ForEach,
    Get,
    Lambda,
    Let,
    Make,
    Set,
    Statement,
    Untranslatable,
    Var,
    all_statements,
    expressions_of,
    parts,
    rewritten,
)

if TYPE_CHECKING:
    from pyflinkcep.migrate.meaning.reader import Reader

_LISTS: list[Expression] = [Const(None, JavaType("Map"))]
"""What a variable with lists holds, which is no new object."""


def checked_changes(of: Expression | Iterable[Statement], given: Iterable[str] = ()) -> None:
    """Raise Untranslatable if code changes a list or map, or an array, that it did not make."""
    statements = (Do(of),) if isinstance(of, Expression) else tuple(of)
    own = _own(statements, set(given))
    changes = [
        part
        for value in expressions_of(statements)
        for part in parts(value)
        if isinstance(part, Call) and part.operation.changes
    ]
    shared = {_root(one.operands[0])[0] for one in changes if _takes_others(one, own)}
    for change in changes:
        changed = change.operands[0]
        _check(changed, own)
        if not isinstance(changed, Var) and _root(changed)[0] in shared:
            raise Untranslatable("an element of a list is changed that others have too")
    for one in all_statements(statements):
        if isinstance(one, Set) and isinstance(one.target, Call):
            _check(one.target.operands[0], own)


def _takes_others(change: Call, own: Mapping[str, list[Expression]]) -> bool:
    """Whether a list or map gets a list that the code did not make."""
    for value in change.operands[1:]:
        root, field = _root(value)
        many = value.type.dims or value.type.name in ("List", "Set", "Map", "Collection", "?")
        if many and isinstance(root, Var) and (field or root.name not in own):
            return True
    return False


def _check(changed: Expression, own: Mapping[str, list[Expression]]) -> None:
    root, field = _root(changed)
    held = own.get(root.name) if isinstance(root, Var) else None
    if held is None or (field and not all(isinstance(value, Make) for value in held)):
        raise Untranslatable("a list or map is changed that is kept from call to call")


def _root(of: Expression) -> tuple[Expression, bool]:
    """Return what holds a value, and whether a field of an object is on the way."""
    field = False
    while True:
        match of:
            case Get(owner=owner):
                of, field = owner, True
            case Cast(operand=operand):
                of = operand
            case Call(operation, operands) if operation.is_part:
                of = operands[0]
            case _:
                return of, field


def _own(statements: tuple[Statement, ...], given: set[str]) -> dict[str, list[Expression]]:
    """Return the variables that hold nothing but what the code makes itself, and what that is."""
    held: dict[str, list[Expression]] = {}
    for one in all_statements(statements):
        if isinstance(one, Let) and one.value is not None:
            held.setdefault(one.name, []).append(one.value)
        elif isinstance(one, Set) and isinstance(one.target, Var):
            held.setdefault(one.target.name, []).append(one.value)
        elif isinstance(one, ForEach):
            held.setdefault(one.name, []).append(one.iterable)
    own = set(held)
    while True:
        kept = {name for name in own if all(_is_own(value, own | given) for value in held[name])}
        if kept == own:
            return {name: held.get(name, []) for name in own} | dict.fromkeys(given, _LISTS)
        own = kept


def _is_own(value: Expression, own: set[str]) -> bool:
    root, field = _root(value)
    if isinstance(root, Var):
        return root.name in own and not field
    if field:
        return isinstance(root, Make)
    return isinstance(root, Make | Const) or (
        isinstance(root, Call) and root.operation is not ops.EVENTS
    )


def folded_body(reader: Reader, body: Node) -> Expression:
    """Return a block that returns a value as an expression; raise Untranslatable otherwise."""
    found = folded(read_block(reader, body))
    if not reader.findings.aggregates and has_aggregates(found):
        raise Untranslatable("a loop in an expression")
    return found


def has_aggregates(of: Expression) -> bool:
    """Whether loops have become aggregates, which only SQL has."""
    return any(isinstance(part, Aggregate) for part in parts(of))


def value_of_body(
    inner: Reader, method: Method, values: list[Expression], reader: Reader
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
    return Call(ops.helper(called), (*([owner] if owner else []), *values), method.type)


def function_called(
    reader: Reader, owner: Expression, values: list[Expression], node: Node
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


def combined(reader: Reader, owner: Lambda, name: str, arguments: list[Node], node: Node) -> Lambda:
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


def _helper(inner: Reader, method: Method) -> str:
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


def helper_lines(reader: Reader) -> list[str]:
    """Return the lines of the functions that a body calls, and forget them."""
    found: list[str] = []
    for text in reader.findings.helpers.values():
        found += [*text.splitlines(), ""]
    reader.findings.helpers.clear()
    reader.findings.helper_names.clear()
    return found
