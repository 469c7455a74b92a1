# SPDX-License-Identifier: Apache-2.0
"""Java's expressions and statements, with names and types resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs

from pyflinkcep.migrate.java.constants import Const as Const
from pyflinkcep.migrate.java.declarations import BOOLEAN, JavaType
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.operations import Operation


class Untranslatable(ValueError):
    """Java that has no translation; the text says why."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


@attrs.frozen
class Var:
    """A variable, by its name in Python."""

    name: str
    type: JavaType


@attrs.frozen
class Captured:
    """A variable around, known when the pattern is built: what it was computed from."""

    name: str
    value: Expression
    type: JavaType


@attrs.frozen
class Get:
    """A field of an event or of an object in it."""

    owner: Expression
    name: str
    type: JavaType


@attrs.frozen
class Unary:
    """``!``, ``-`` or ``~``."""

    operator: str
    operand: Expression
    type: JavaType


@attrs.frozen
class Binary:
    """An operator of Java; both operands of arithmetic have its type after promotion."""

    operator: str
    left: Expression
    right: Expression
    type: JavaType


@attrs.frozen
class Cast:
    """A conversion, written or implied."""

    operand: Expression
    type: JavaType


@attrs.frozen
class Choice:
    """``condition ? yes : no``."""

    condition: Expression
    yes: Expression
    no: Expression
    type: JavaType


@attrs.frozen
class Is:
    """Whether an object is of one of some classes, which a column names."""

    operand: Expression
    column: str
    names: tuple[str, ...]
    type: JavaType = BOOLEAN


@attrs.frozen
class Call:
    """A method of Java's library, of Flink or the project, or what Java implies."""

    operation: Operation
    operands: tuple[Expression, ...]
    type: JavaType


@attrs.frozen
class Lambda:
    """A function with an expression as its body."""

    parameters: tuple[str, ...]
    body: Expression
    type: JavaType


@attrs.frozen
class Make:
    """A new object: its fields."""

    class_name: str
    fields: tuple[tuple[str, Expression], ...]
    type: JavaType


@attrs.frozen
class Aggregate:
    """A function over the events of a stage; its argument reads the variable ``element``."""

    function: str
    stage: str
    argument: Expression | None
    type: JavaType
    offset: int = 0


Expression = (
    Const | Var | Captured | Get | Unary | Binary | Cast | Choice | Is | Call | Lambda | Make
    | Aggregate
)  # fmt: skip


@attrs.frozen
class Let:
    """A new variable."""

    name: str
    type: JavaType
    value: Expression | None


@attrs.frozen
class Set:
    """An assignment to a variable, a field or an element."""

    target: Expression
    value: Expression


@attrs.frozen
class If:
    """A conditional statement."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@attrs.frozen
class ForEach:
    """A loop over elements."""

    name: str
    type: JavaType
    iterable: Expression
    body: tuple[Statement, ...]


@attrs.frozen
class While:
    """A loop while a condition holds; `update` runs after each turn."""

    condition: Expression
    body: tuple[Statement, ...]
    update: tuple[Statement, ...] = ()


@attrs.frozen
class Return:
    """The end of a function."""

    value: Expression | None


@attrs.frozen
class Do:
    """An expression for its effect."""

    value: Expression


@attrs.frozen
class Raise:
    """An error."""

    message: Expression | None


@attrs.frozen
class Try:
    """Statements, and others for errors in them, of some classes of Java."""

    body: tuple[Statement, ...]
    handler: tuple[Statement, ...]
    kinds: tuple[str, ...] = ("Exception",)


@attrs.frozen
class Break:
    """The end of a loop."""


@attrs.frozen
class Continue:
    """The end of a turn."""


Statement = Let | Set | If | ForEach | While | Return | Do | Raise | Try | Break | Continue


_PARTS: dict[type, tuple[str, ...]] = {
    Get: ("owner",), Unary: ("operand",), Cast: ("operand",), Is: ("operand",),
    Binary: ("left", "right"), Choice: ("condition", "yes", "no"), Lambda: ("body",),
    Aggregate: ("argument",),
}  # fmt: skip
"""The fields that have the expressions inside of one."""


def _inner(of: Expression) -> tuple[Expression, ...]:
    match of:
        case Call(operands=operands):
            return operands
        case Make(fields=fields):
            return tuple(value for _, value in fields)
        case Aggregate(argument=None):
            return ()
    return tuple(getattr(of, name) for name in _PARTS.get(type(of), ()))


def parts(of: Expression) -> Iterator[Expression]:
    """Yield an expression and all parts inside."""
    yield of
    for part in _inner(of):
        yield from parts(part)


def rewritten(of: Expression, leaf: Callable[[Expression], Expression | None]) -> Expression:
    """Return an expression with parts replaced where `leaf` returns another; not in aggregates."""
    found = leaf(of)
    if found is not None or isinstance(of, Aggregate):
        return of if found is None else found
    inner = tuple(rewritten(part, leaf) for part in _inner(of))
    match of:
        case Call():
            return attrs.evolve(of, operands=inner)
        case Make(fields=fields):
            names = (name for name, _ in fields)
            return attrs.evolve(of, fields=tuple(zip(names, inner, strict=True)))
    changes: dict[str, Any] = dict(zip(_PARTS.get(type(of), ()), inner, strict=True))
    return attrs.evolve(of, **changes) if changes else of


def field_of(owner: Expression, name: str, type_: JavaType) -> Expression:
    """Return a field of an object: of one that was just made, what it was given."""
    made = dict(owner.fields).get(name) if isinstance(owner, Make) else None
    return Get(owner, name, type_) if made is None else made


_OF_MATCHES = (ops.EVENTS, ops.TIMESTAMP, ops.PROCESSING_TIME)
"""Calls whose values are known when there is an event."""


def is_captured(of: Expression) -> bool:
    """Whether a value depends on nothing but what is known when the pattern is built."""
    leaves = [part for part in parts(of) if not _inner(part)]
    if any(isinstance(part, Call) and part.operation in _OF_MATCHES for part in parts(of)):
        return False
    plain = all(isinstance(leaf, Const | Captured) for leaf in leaves)
    return plain and any(isinstance(leaf, Captured) for leaf in leaves)


def _inside(of: Statement) -> tuple[Statement, ...]:
    match of:
        case If():
            return (*of.then, *of.otherwise)
        case ForEach():
            return of.body
        case While():
            return (*of.body, *of.update)
        case Try():
            return (*of.body, *of.handler)
    return ()


def all_statements(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield statements and all inside."""
    for one in statements:
        yield one
        yield from all_statements(_inside(one))


def ends(statements: Sequence[Statement]) -> bool:
    """Whether what follows some statements does not run."""
    return bool(statements) and isinstance(statements[-1], Return | Raise | Continue | Break)


def expressions_of(statements: Iterable[Statement]) -> Iterator[Expression]:
    """Yield the expressions in statements; of an assignment to a variable, only its value."""
    for one in all_statements(statements):
        match one:
            case Let(value=value) | Return(value=value) | Do(value=value):
                if value is not None:
                    yield value
            case Set():
                yield one.value
                if not isinstance(one.target, Var):
                    yield one.target
            case If(condition=condition) | While(condition=condition):
                yield condition
            case ForEach(iterable=iterable):
                yield iterable
            case Raise(message=message) if message is not None:
                yield message


def calls_in(statements: Iterable[Statement]) -> Iterator[Call]:
    """Yield the calls in statements."""
    found = (part for one in expressions_of(statements) for part in parts(one))
    return (part for part in found if isinstance(part, Call))


def non_null_if(condition: Expression, holds: bool) -> frozenset[Expression]:
    """Return what cannot be null if a condition holds, or does not hold."""
    return frozenset(_facts(condition, holds))


def _facts(of: Expression, holds: bool) -> Iterator[Expression]:
    match of:
        case Unary(operator="!", operand=operand):
            yield from _facts(operand, not holds)
        case Call(ops.IS_NULL, (operand,)) if not holds:
            yield operand
        case Call(ops.HAS_ANY, (whole,)) if holds:
            yield whole
        case Call(ops.NO_ELEMENTS, (whole,)) if not holds:
            yield whole
        case Call(ops.EQUALS | ops.SAME, (a, b)) if holds:
            yield from (a, b) if isinstance(b, Const) or isinstance(a, Const) else (a,)
        case Binary(operator="&&", left=left, right=right) if holds:
            yield from _facts(left, True)
            yield from _facts(right, True)
        case Binary(operator="||", left=left, right=right) if not holds:
            yield from _facts(left, False)
            yield from _facts(right, False)


def text_pieces(of: Iterable[Expression]) -> Iterator[Expression]:
    """Yield what is put together to a text, also that of texts inside."""
    for one in of:
        is_inner = isinstance(one, Call) and one.operation is ops.CONCAT
        yield from text_pieces(one.operands) if isinstance(one, Call) and is_inner else (one,)


ELEMENT = "element"
"""The variable of an event inside an aggregate."""


def stage_free(of: Expression) -> bool:
    """Whether a value is about the event alone."""
    return not any(
        isinstance(part, Aggregate) or (isinstance(part, Call) and part.operation is ops.EVENTS)
        for part in parts(of)
    )
