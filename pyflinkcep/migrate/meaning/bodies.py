# SPDX-License-Identifier: Apache-2.0
"""Bodies of functions as one expression, or as functions inside the one that calls them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from pyflinkcep.migrate.java.declarations import BOOLEAN, INT, LONG, JavaType, Method
from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.python import Python, Statements
from pyflinkcep.migrate.meaning.reading import Reading, snake_case
from pyflinkcep.migrate.meaning.statements import read_block
from pyflinkcep.migrate.meaning.tree import (
    ELEMENT,
    Aggregate,
    Binary,
    Break,
    Call,
    Cast,
    Choice,
    Const,
    Do,
    Expression,
    ForEach,
    Get,
    If,
    Lambda,
    Let,
    Make,
    Return,
    Set,
    Statement,
    Unary,
    Untranslatable,
    Var,
    all_statements,
    expressions_of,
    parts,
    rewritten,
    stage_free,
)

Values = Mapping[str, Expression]


def folded_loop(
    loop: ForEach, iterable: Expression, values: Values
) -> tuple[dict[str, Expression], tuple[Expression, Expression] | None]:
    """Return the variables after a loop, and a condition under which it returns, with the value."""
    if not (isinstance(iterable, Call) and iterable.operation is ops.EVENTS):
        raise Untranslatable("a loop over what is no stage")
    stage = iterable.operands[0]
    if not isinstance(stage, Const) or not isinstance(stage.value, str):
        raise Untranslatable("a loop over a stage whose name is not known")
    element = Var(ELEMENT, loop.type)
    inside = {**values, loop.name: element}
    folder = _Folder(stage.value, element, dict(values), inside)
    folder.statements(loop.body)
    return folder.after, folder.returned


@attrs.define(eq=False)
class _Folder:
    stage: str
    element: Var
    after: dict[str, Expression]
    inside: dict[str, Expression]
    returned: tuple[Expression, Expression] | None = None

    def statements(self, body: tuple[Statement, ...]) -> None:
        changed = set(_assigned(body))
        match body:
            case (Set(target=Var(name), value=value), Break()):
                self._taken("first", name, value, self.inside)
                return
        for place, one in enumerate(body):
            match one:
                case Let(name=name, value=made) if made is not None:
                    self.inside[name] = replaced(made, self.inside)
                case Set(target=Var(name), value=value):
                    self._set(name, value, None, changed)
                case If(condition, (Return(value=result),), ()) if result is not None:
                    if place != len(body) - 1 or changed or self.returned is not None:
                        raise Untranslatable("a loop that returns")
                    self._returns(replaced(condition, self.inside), replaced(result, self.inside))
                case If(condition, (Set(target=Var(name), value=value),), ()):
                    self._set(name, value, condition, changed | {name})
                case _:
                    raise Untranslatable("a loop with other statements")

    def _is_about_element(self, of: Expression) -> bool:
        """Whether a value depends on the event of the loop and constants alone."""
        names = {part.name for part in parts(of) if isinstance(part, Var)}
        return names <= {ELEMENT} and stage_free(of)

    # --- assignments

    def _set(
        self, name: str, value: Expression, condition: Expression | None, changed: set[str]
    ) -> None:
        before = self.after.get(name)
        if before is None:
            raise Untranslatable("a loop that sets a variable without a value before")
        outside = {k: v for k, v in self.inside.items() if k not in changed}
        test = replaced(condition, outside) if condition is not None else None
        inner = value.operand if isinstance(value, Cast) and value.type.is_whole else value
        match inner:
            case Binary("+", Var(same), added) if same == name:
                found = self._summed(replaced(added, outside), value.type, before, test)
                self.after[name] = found
            case Binary("+", added, Var(same)) if same == name and inner.type.is_whole:
                found = self._summed(replaced(added, outside), value.type, before, test)
                self.after[name] = found
            case _ if test is None:
                self._taken("last", name, value, outside)
            case _:
                raise Untranslatable("a loop that sets a variable under a condition")

    def _summed(
        self, added: Expression, type_: JavaType, before: Expression, test: Expression | None
    ) -> Expression:
        if not all(map(self._is_about_element, [added, *([] if test is None else [test])])):
            raise Untranslatable("a sum of what depends on other events")
        type_, begins = type_.unboxed, isinstance(before, Const) and before.value == 0
        narrower = added.type.unboxed.name in ("short", "byte", "char", "int", type_.name)
        if not (begins if type_.name == "double" else type_ in (INT, LONG) and narrower):
            raise Untranslatable(f"a sum of {type_}, or of doubles that does not begin with 0")
        if test is not None:
            zero = Const(0.0, type_) if type_.name == "double" else Const(0, INT)
            added = Choice(test, added, zero, added.type)
        total = Aggregate("sum", self.stage, added, type_)
        if added == Const(1, INT):
            total = Aggregate("count", self.stage, None, type_)
        return total if begins else Binary("+", before, total, type_)

    def _taken(self, function: str, name: str, value: Expression, names: Values) -> None:
        """Let a variable hold the first or last event, or a value of it."""
        before = self.after.get(name)
        taken = Aggregate(function, self.stage, None, self.element.type)
        found = replaced(value, names)
        if found != self.element or not (isinstance(before, Const) and before.value is None):
            raise Untranslatable("a loop that keeps what is no event")
        self.after[name] = taken

    # --- returns

    def _returns(self, condition: Expression, value: Expression) -> None:
        if any(isinstance(p, Var) and p.name == ELEMENT for p in parts(value)):
            raise Untranslatable("a loop that returns a value of one event")
        if not self._is_about_element(condition):
            raise Untranslatable("a loop that compares each event with others")
        one = Choice(condition, Const(1, INT), Const(0, INT), INT)
        found = Aggregate("sum", self.stage, one, LONG)
        self.returned = Binary(">", found, Const(0, LONG), BOOLEAN), value


def _assigned(body: tuple[Statement, ...]) -> Iterator[str]:
    for one in body:
        if isinstance(one, Set) and isinstance(one.target, Var):
            yield one.target.name


_MOST_PARTS = 400


def folded(statements: tuple[Statement, ...]) -> Expression:
    """Return statements that return a value as an expression; raise Untranslatable otherwise."""
    for part in (p for one in expressions_of(statements) for p in parts(one)):
        if isinstance(part, Call) and part.operation.has_effect:
            raise Untranslatable("an expression that changes something")
    found = _fold(statements, {})
    if found is None:
        raise Untranslatable("a function that may return nothing")
    return found


def replaced(of: Expression, values: Values) -> Expression:
    """Return an expression with what its variables stand for."""
    return rewritten(of, lambda part: values.get(part.name) if isinstance(part, Var) else None)


def _fold(statements: tuple[Statement, ...], values: Values) -> Expression | None:
    for place, statement in enumerate(statements):
        rest = statements[place + 1 :]
        match statement:
            case Let(value=None):
                values = {name: v for name, v in values.items() if name != statement.name}
            case Let(value=value) if value is not None:
                values = {**values, statement.name: replaced(value, values)}
            case Set(target=Var(name=name)):
                values = {**values, name: replaced(statement.value, values)}
            case Return(value=value):
                return None if value is None else replaced(value, values)
            case If():
                return _branched(statement, rest, values)
            case ForEach():
                iterable = replaced(statement.iterable, values)
                values, returned = folded_loop(statement, iterable, values)
                if returned is not None:
                    after = _fold(rest, values)
                    return None if after is None else choose(*returned, after)
            case Do(value=Call(ops.LOG | ops.PRINT)):
                raise Untranslatable("it writes to a log")
            case _:
                raise Untranslatable(f"{type(statement).__name__.lower()} in an expression")
    return None


def _branched(of: If, rest: tuple[Statement, ...], values: Values) -> Expression | None:
    condition = replaced(of.condition, values)
    yes, no = (_fold((*branch, *rest), values) for branch in (of.then, of.otherwise))
    if yes is None or no is None:
        return None
    found = choose(condition, yes, no)
    if sum(1 for _ in parts(found)) > _MOST_PARTS:
        raise Untranslatable("a function with too many branches")
    return found


def choose(condition: Expression, yes: Expression, no: Expression) -> Expression:
    """Return one of two values; of booleans, as ``&&`` and ``||`` where that is the same."""
    if isinstance(condition, Const):
        return yes if condition.value else no
    if yes == no:
        return yes
    if yes.type.unboxed == BOOLEAN and no.type.unboxed == BOOLEAN:
        for value, other, test in ((yes, no, condition), (no, yes, negated(condition))):
            if isinstance(value, Const):
                if isinstance(other, Const):
                    return test if value.value else negated(test)
                if value.value:
                    return Binary("||", test, other, BOOLEAN)
                return Binary("&&", negated(test), other, BOOLEAN)
    type_ = yes.type if yes.type.name != "null" else no.type
    if yes.type.is_numeric and no.type.is_numeric and yes.type != no.type:
        type_ = yes.type if yes.type.unboxed.name in ("double", "float") else no.type
    return Choice(condition, yes, no, type_)


def negated(condition: Expression) -> Expression:
    """Return the negation of a condition."""
    if isinstance(condition, Unary) and condition.operator == "!":
        return condition.operand
    return Unary("!", condition, BOOLEAN)


_LISTS: list[Expression] = [Const(None, JavaType("Map"))]
"""What a variable with lists holds, which is no new object."""


def checked_changes(statements: tuple[Statement, ...]) -> None:
    """Raise Untranslatable if code changes a list or map, or an array, that it did not make."""
    own = _own(statements, {"match"})
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


def folded_body(reader: Reading, body: Node | tuple[Statement, ...]) -> Expression:
    """Return a block that returns a value as an expression; raise Untranslatable otherwise."""
    found = folded(body if isinstance(body, tuple) else read_block(reader, body))
    if not reader.findings.aggregates and has_aggregates(found):
        raise Untranslatable("a loop in an expression")
    return found


def has_aggregates(of: Expression) -> bool:
    """Whether loops have become aggregates, which only SQL has."""
    return any(isinstance(part, Aggregate) for part in parts(of))


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
    return Call(ops.helper(called), (*([owner] if owner else []), *values), method.type)


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
    place = function.scope
    inner = reader.at(place.source, place.within, fields={**place.fields}, methods=place.methods)
    for (name, type_), value in zip(function.parameters, values, strict=False):
        inner.scope.values[name] = reader.cast_known(value, type_)
    if function.is_block:
        return folded_body(inner, function.body)
    return inner.read(function.body)


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
