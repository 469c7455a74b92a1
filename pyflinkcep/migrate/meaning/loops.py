# SPDX-License-Identifier: Apache-2.0
"""Loops over the events of a stage as aggregates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import (
    BOOLEAN,
    INT,
    LONG,
    UNKNOWN,
    is_floating,
    is_numeric,
    is_whole,
    unboxed,
)
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.tree import (
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
    If,
    Let,
    Return,
    Set,
    Statement,
    Unary,
    Untranslatable,
    Var,
    expressions_of,
    is_captured,
    parts,
    rewritten,
)


def text_literal(value: str) -> str:
    """Return a string as SQL writes it."""
    escapes = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
    return "'" + "".join(escapes.get(char, char) for char in value) + "'"


def stage_event(of: Expression) -> tuple[str, str, int] | None:
    """Return ``first`` or ``last``, stage and offset of an event that a stage has taken."""
    match of:
        case Aggregate(function="first" | "last" as function, argument=None):
            return function, of.stage, of.offset
        case Call(ops.FIRST, (Call(ops.EVENTS, (Const(value=str(stage)),)),)):
            return "first", stage, 0
        case Call(ops.LAST, (Call(ops.EVENTS, (Const(value=str(stage)),)),)):
            return "last", stage, 0
        case Call(ops.GET, (Call(ops.EVENTS, (Const(value=str(stage)),)), Const(value=int(n)))):
            return ("first", stage, n) if n >= 0 else None
        case Call(
            ops.GET,
            (
                Call(ops.EVENTS, (Const(value=str(stage)),)) as whole,
                Binary("-", Call(ops.SIZE, (same,)), Const(value=int(n))),
            ),
        ) if same == whole and n > 0:
            return "last", stage, n - 1
    return None


def chain(of: Expression, operator: str) -> list[Expression]:
    """Return the operands of an operator and of the same ones inside."""
    if isinstance(of, Binary) and of.operator == operator:
        return [*chain(of.left, operator), *chain(of.right, operator)]
    return [of]


def inner_of(of: Expression) -> Expression:
    """Return a value without conversions around it."""
    while isinstance(of, Cast) or (isinstance(of, Call) and of.operation is ops.NOT_NULL):
        of = of.operand if isinstance(of, Cast) else of.operands[0]
    return of


def bounded_by(of: Expression) -> Expression | None:
    """Return the value that a condition holds below a number, so that it is not NaN."""
    match of:
        case Binary("<" | "<=" | "==", value, Const(value=float() | int())):
            return inner_of(value)
        case Binary(">" | ">=" | "==", Const(value=float() | int()), value):
            return inner_of(value)
    return None


def may_be_nan(of: Expression) -> bool:
    """Whether a value may be NaN."""
    if isinstance(of, Const):
        return isinstance(of.value, float) and math.isnan(of.value)
    if is_captured(of):
        return False
    return is_floating(inner_of(of).type) or inner_of(of).type == UNKNOWN


def stage_free(of: Expression) -> bool:
    """Whether a value is about the event alone."""
    return not any(
        isinstance(part, Aggregate) or (isinstance(part, Call) and part.operation is ops.EVENTS)
        for part in parts(of)
    )


def average_of(of: Binary) -> Aggregate | None:
    """Return a sum of doubles divided by the number of the same events as an average."""
    if of.operator != "/":
        return None
    total, number = of.left, inner_of(of.right)
    if isinstance(number, Call) and number.operation is ops.SIZE:
        match number.operands[0]:
            case Call(ops.EVENTS, (Const(value=str(stage)),)):
                number = Aggregate("count", stage, None, number.type)
    match total, number:
        case Aggregate("sum", stage), Aggregate("count", other) if stage == other:
            if total.type.name == "double":
                return attrs.evolve(total, function="avg")
    return None


def is_empty_average(of: Expression) -> bool:
    """Whether a value is an average, which SQL has as NULL if there are no events."""
    return isinstance(of, Binary) and average_of(of) is not None


ELEMENT = "element"
"""The variable of an event inside an aggregate."""

Values = Mapping[str, Expression]
Replace = Callable[[Expression, Values], Expression]


def folded_loop(
    loop: ForEach, iterable: Expression, values: Values, replaced: Replace
) -> tuple[dict[str, Expression], tuple[Expression, Expression] | None]:
    """Return the variables after a loop, and a condition under which it returns, with the value."""
    if not (isinstance(iterable, Call) and iterable.operation is ops.EVENTS):
        raise Untranslatable("a loop over what is no stage")
    stage = iterable.operands[0]
    if not isinstance(stage, Const) or not isinstance(stage.value, str):
        raise Untranslatable("a loop over a stage whose name is not known")
    element = Var(ELEMENT, loop.type)
    inside = {**values, loop.name: element}
    folder = _Folder(stage.value, element, iterable, dict(values), inside, replaced)
    folder.statements(loop.body)
    return folder.after, folder.returned


@attrs.define(eq=False)
class _Folder:
    stage: str
    element: Var
    events: Expression
    after: dict[str, Expression]
    inside: dict[str, Expression]
    replaced: Replace
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
                    self.inside[name] = self._value(made)
                case Set(target=Var(name), value=value):
                    self._set(name, value, None, changed)
                case If(condition, (Return(value=result),), ()) if result is not None:
                    if place != len(body) - 1 or changed or self.returned is not None:
                        raise Untranslatable("a loop that returns")
                    self._returns(self._value(condition), self._value(result))
                case If(condition, (Set(target=Var(name), value=value),), ()):
                    self._set(name, value, condition, changed | {name})
                case _:
                    raise Untranslatable("a loop with other statements")

    def _value(self, of: Expression) -> Expression:
        return self.replaced(of, self.inside)

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
        test = self.replaced(condition, outside) if condition is not None else None
        inner = value.operand if isinstance(value, Cast) and is_whole(value.type) else value
        match inner:
            case Binary("+", Var(same), added) if same == name:
                found = self._summed(self.replaced(added, outside), value.type, before, test)
                self.after[name] = found
            case Binary("+", added, Var(same)) if same == name and is_whole(inner.type):
                found = self._summed(self.replaced(added, outside), value.type, before, test)
                self.after[name] = found
            case _ if test is None:
                self._taken("last", name, value, outside)
            case _:
                raise Untranslatable("a loop that sets a variable under a condition")

    def _summed(
        self, added: Expression, type_: JavaType, before: Expression, test: Expression | None
    ) -> Expression:
        checked = [added, *([test] if test is not None else [])]
        if not all(map(self._is_about_element, checked)):
            raise Untranslatable("a sum of what depends on other events")
        if is_floating(type_):
            is_zero = isinstance(before, Const) and before.value == 0
            if unboxed(type_).name != "double" or not is_zero:
                raise Untranslatable("a sum of doubles that does not begin with 0")
            zero: Expression = Const(0.0, JavaType("double"))
        else:
            widths = ("short", "byte", "char", "int", unboxed(type_).name)
            is_narrower = unboxed(added.type).name in widths
            if unboxed(type_) not in (INT, LONG) or not is_narrower:
                raise Untranslatable(f"a sum of {type_}")
            zero = Const(0, INT)
        type_ = unboxed(type_)
        if added == Const(1, INT) and test is None:
            total: Expression = Aggregate("count", self.stage, None, type_)
        else:
            if test is not None:
                added = Choice(test, added, zero, added.type)
            total = Aggregate("sum", self.stage, added, type_)
        if isinstance(before, Const) and before.value == 0:
            return total
        return Binary("+", before, total, type_)

    def _taken(self, function: str, name: str, value: Expression, names: Values) -> None:
        """Let a variable hold the first or last event, or a value of it."""
        before = self.after.get(name)
        taken = Aggregate(function, self.stage, None, self.element.type)
        found = self.replaced(value, names)
        if not self._is_about_element(found):
            raise Untranslatable("a loop that keeps what depends on other events")
        if found == self.element:
            if not (isinstance(before, Const) and before.value is None):
                raise Untranslatable("a loop that keeps an event instead of another")
            self.after[name] = taken
            return
        if before is None:
            raise Untranslatable("a loop that sets a variable without a value before")
        last = rewritten(found, lambda p: taken if p == self.element else None)
        is_empty = Call(ops.NO_ELEMENTS, (self.events,), BOOLEAN)
        self.after[name] = Choice(is_empty, before, last, last.type)

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
                values, returned = folded_loop(statement, iterable, values, replaced)
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
    if unboxed(yes.type) == BOOLEAN and unboxed(no.type) == BOOLEAN:
        if isinstance(yes, Const):
            if isinstance(no, Const):
                return condition if yes.value else negated(condition)
            return (
                Binary("||", condition, no, BOOLEAN)
                if yes.value
                else Binary("&&", negated(condition), no, BOOLEAN)
            )
        if isinstance(no, Const):
            return (
                Binary("||", negated(condition), yes, BOOLEAN)
                if no.value
                else Binary("&&", condition, yes, BOOLEAN)
            )
    type_ = yes.type if yes.type.name != "null" else no.type
    if is_numeric(yes.type) and is_numeric(no.type) and yes.type != no.type:
        type_ = yes.type if unboxed(yes.type).name in ("double", "float") else no.type
    return Choice(condition, yes, no, type_)


def negated(condition: Expression) -> Expression:
    """Return the negation of a condition."""
    if isinstance(condition, Unary) and condition.operator == "!":
        return condition.operand
    return attrs.evolve(Unary("!", condition, BOOLEAN))
