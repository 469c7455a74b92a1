# SPDX-License-Identifier: Apache-2.0
"""Refuses code that changes lists and maps which outlive it: of events, or from around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Cast,
    Const,
    Do,
    Expression,
    ForEach,
    Get,
    Let,
    Make,
    Set,
    Statement,
    Untranslatable,
    Var,
    parts,
)
from pyflinkcep.migrate.meaning.walked import all_statements, expressions_of

__all__ = ["checked_changes"]

_CHANGING = frozenset({
    "List.add", "List.addAll", "List.clear", "List.sort", "List.removeIf", "Set.add",
    "Set.addAll", "Map.put", "Map.putIfAbsent", "Map.merge", "Map.computeIfAbsent",
    "joiner.add",
})  # fmt: skip
_PARTS = frozenset({"List.get", "List.getFirst", "List.getLast", "Map.get", "Map.getOrDefault",
                    "Map.computeIfAbsent", "Map.values", "Map.entrySet", "Entry.getValue",
                    "not null", "copy"})  # fmt: skip
"""Calls that return a part of their first operand, not a copy."""
_LISTS: list[Expression] = [Const(None, JavaType("Map"))]
"""What a variable with lists holds, which is no new object."""


def checked_changes(of: Expression | Iterable[Statement], given: Iterable[str] = ()) -> None:
    """
    Raise Untranslatable if code changes a list or map, or an array, that it did not make.

    Parameters
    ----------
    of : Expression or iterable of Statement
        The code.
    given : iterable of str
        The variables whose lists are made for each call, such as those of a match.
    """
    statements = (Do(of),) if isinstance(of, Expression) else tuple(of)
    own = _own(statements, set(given))
    changes = [
        part
        for value in expressions_of(statements)
        for part in parts(value)
        if isinstance(part, Call) and part.name in _CHANGING
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
    if isinstance(root, Call) and root.name.startswith("joiner"):
        return  # a new one, in a chain of calls
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
            case Call(name=name, operands=operands) if name in _PARTS:
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
    return isinstance(root, Make | Const) or (isinstance(root, Call) and root.name != "events")
