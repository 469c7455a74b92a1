# SPDX-License-Identifier: Apache-2.0
"""EQL's functions, each as an expression of SQL's functions, so that every target has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import attrs

from pyflinkcep.eql.patterns import is_in_blocks, without_case
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.sql_types import BIGINT, BOOLEAN, DOUBLE, STRING, VOID, SqlType
from pyflinkcep.expressions.tree import Call, Literal, Operation, Tree


class Typed(NamedTuple):
    """An expression of SQL, and its type."""

    tree: Tree
    type: SqlType


Lower = Callable[[Sequence[Tree], Sequence[SqlType]], Typed]

NULL = Literal(None)
NOTHING = Typed(NULL, VOID)


@attrs.frozen(eq=False)
class EqlFunction:
    """A function: how it is written, what it takes, and what it is in SQL."""

    written: str
    arguments: str  # As shown to users
    takes: str  # A letter for each argument: text, number, boolean, any; the last repeats
    lower: Lower
    least: int
    most: int
    folds: bool = False  # Whether it has a form with ~
    strict: int = 1000  # How many arguments, from the first on, make it null if they are


def typed(
    function: EqlFunction,
    given: Sequence[Typed],
    ignore_case: bool,
    refuse: Callable[..., Exception],
) -> Typed:
    """Return a call of a function."""
    for place, (_, type_) in enumerate(given):
        wanted = function.takes[min(place, len(function.takes) - 1)]
        if type_ != VOID and not _KINDS[wanted][1](type_):
            raise refuse(
                f"{function.written}: expected {_KINDS[wanted][0]} as argument {place + 1}, got "
                f"{kind_name(type_)}",
                "write string(…)"
                if wanted == "t"
                else f"write {function.written}({function.arguments})",
            )
    if any(type_ == VOID for _, type_ in given[: function.strict]):
        return NOTHING
    trees = [tree for tree, _ in given]
    if ignore_case and function.written not in _FOLDED_INSIDE:
        trees = [without_case(tree) if type_ == STRING else tree for tree, type_ in given]
    elif ignore_case:
        trees.append(Literal("~"))
    return function.lower(trees, [type_ for _, type_ in given])


_FOLDED_INSIDE = ("between",)

_KINDS: dict[str, tuple[str, Callable[[SqlType], bool]]] = {
    "t": ("a text", lambda type_: type_ == STRING),
    "n": ("a number", lambda type_: type_.is_number),
    "b": ("a boolean", lambda type_: type_ == BOOLEAN),
    "a": ("a value", lambda _: True),
}


def kind_name(type_: SqlType) -> str:
    """Return what people call a type."""
    return next(name for name, is_kind in _KINDS.values() if is_kind(type_))


# --- parts of SQL


def op(operator: str, *operands: Tree) -> Operation:
    """Return an operator over operands."""
    return Operation(operator, operands)


def cast(tree: Tree, type_: str) -> Tree:
    """Return a cast."""
    return Call("cast", (tree,), type_)


def _case(*operands: Tree) -> Tree:
    return Operation("case", operands)


def _plus(tree: Tree, number: int) -> Tree:
    if isinstance(tree, Literal) and isinstance(tree.value, int):
        return Literal(tree.value + number)
    return op("+", tree, Literal(number))


def _length(text: Tree) -> Tree:
    return Literal(len(str(text.value))) if isinstance(text, Literal) else Call("length", (text,))


# --- numbers


def _arithmetic(name: str) -> Lower:
    def lower(trees: Sequence[Tree], types: Sequence[SqlType]) -> Typed:
        is_whole = all(type_.is_whole for type_ in types)
        type_ = BIGINT if is_whole else DOUBLE
        a, b = (
            tree if own == type_ else cast(tree, type_.name)
            for tree, own in zip(trees, types, strict=True)
        )
        if name in _TRIED:
            return Typed(Call(_TRIED[name], (a, b)), type_)
        divisor = op("case", op("<>", b, Literal(0)), b)  # by zero it is null
        if name == "modulo":
            return Typed(op("%", a, divisor), type_)
        if not is_whole:
            return Typed(op("/", a, divisor), type_)
        negated = Call("try_subtract", (cast(Literal(0), "bigint"), a))  # the least has none
        return Typed(_case(op("=", b, Literal(-1)), negated, op("div", a, divisor)), type_)

    return lower


_TRIED = {"add": "try_add", "subtract": "try_subtract", "multiply": "try_multiply"}
"""Where they fail, which numbers beyond 64 bits do, they are null: no event stops a job."""

_FRACTION = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\z"
_HEXADECIMAL = r"(?i)^[+-]?0x[0-9a-f]{1,15}\z"


def _number(trees: Sequence[Tree], _: Sequence[SqlType]) -> Typed:
    text = Call("trim", (trees[0],))
    base = trees[1] if len(trees) > 1 else NULL
    if not isinstance(base, Literal) or not (base.value is None or isinstance(base.value, int)):
        raise InvalidArgumentError("number: the base is no whole number", "write number(s, 16)")
    radix = base.value
    if radix is not None and not 2 <= radix <= 36:
        raise InvalidArgumentError(f"number: the base is {radix}", "write a base from 2 to 36")
    fraction = (Call("rlike", (text, Literal(_FRACTION))), cast(text, "double"))
    hexadecimal = (Call("rlike", (text, Literal(_HEXADECIMAL))), _digits(text, 16, 2))
    if radix is None:
        return Typed(_case(*hexadecimal, *fraction), DOUBLE)
    if radix == 10:
        return Typed(_case(*fraction), DOUBLE)
    known = "0123456789abcdefghijklmnopqrstuvwxyz"[:radix]
    own = (
        Call("rlike", (text, Literal(rf"(?i)^[+-]?[{known}]{{1,12}}\z"))),
        _digits(text, radix, 0),
    )
    return Typed(_case(*(hexadecimal if radix == 16 else ()), *own), DOUBLE)


def _digits(text: Tree, base: int, prefix: int) -> Tree:
    """Return the value of a sign, a prefix and digits to a base."""

    def value(sign: int) -> Tree:
        bare = Call("substring", (text, Literal(1 + sign + prefix)))
        return Call("value of digits", (bare, Literal(base)))

    starts = [op("startswith", text, Literal(sign)) for sign in "-+"]
    return _case(starts[0], op("neg", value(1)), starts[1], value(1), value(0))


# --- texts

_LAST_PLACE = 2**31 - 2
"""Beyond all texts, and still a number that SQL's functions of texts take, one more too."""


def _string(trees: Sequence[Tree], types: Sequence[SqlType]) -> Typed:
    if types[0] == STRING:
        return Typed(trees[0], STRING)
    if types[0] == DOUBLE:
        return Typed(Call("text of fraction", (trees[0],)), STRING)
    return Typed(cast(trees[0], "string"), STRING)


def _concat(trees: Sequence[Tree], types: Sequence[SqlType]) -> Typed:
    texts = [_string([tree], [type_]).tree for tree, type_ in zip(trees, types, strict=True)]
    return Typed(reduce(lambda a, b: op("||", a, b), texts), STRING)


def _starts(trees: Sequence[Tree], _: Sequence[SqlType]) -> Typed:
    return Typed(op("startswith", *trees), BOOLEAN)


def _ends(trees: Sequence[Tree], _: Sequence[SqlType]) -> Typed:
    return Typed(Call("endswith", tuple(trees)), BOOLEAN)


def _contains(trees: Sequence[Tree], _: Sequence[SqlType]) -> Typed:
    text, part = trees
    found = Call("contains", (text, part))
    if isinstance(part, Literal) and part.value != "":
        return Typed(found, BOOLEAN)
    is_there = op("<>", part, Literal(""))  # of nothing it is false, though not of null
    return Typed(_case(found, is_there, op("not", found), Literal(False)), BOOLEAN)


def _index(trees: Sequence[Tree], types: Sequence[SqlType]) -> Typed:
    text, part = trees[:2]
    start = Literal(0) if len(trees) < 3 or types[2] == VOID else trees[2]
    if isinstance(start, Literal) and isinstance(start.value, int | float):
        start = Literal(min(max(start.value, 0), _LAST_PLACE))
    else:
        start = op("greatest", op("coalesce", start, Literal(0)), Literal(0))
        start = op("least", start, Literal(_LAST_PLACE))
    place = Call("locate", (part, text, cast(_plus(start, 1), "int")))
    found = _case(op(">", place, Literal(0)), _plus(place, -1))
    if isinstance(part, Literal) and part.value != "":
        return Typed(cast(found, "bigint"), BIGINT)
    empty = _case(op("<=", start, Call("length", (text,))), start)
    return Typed(cast(_case(op("=", part, Literal("")), empty, found), "bigint"), BIGINT)


def _substring(trees: Sequence[Tree], types: Sequence[SqlType]) -> Typed:
    text = trees[0]
    size = Call("length", (text,))

    def place(at: int, otherwise: Tree) -> Tree:
        if len(trees) <= at or types[at] == VOID:
            return otherwise
        tree = trees[at]
        if isinstance(tree, Literal) and isinstance(tree.value, int):
            if tree.value >= 0:
                return Literal(min(tree.value, _LAST_PLACE))
            return op("greatest", op("+", size, tree), Literal(0))
        given = op("coalesce", tree, otherwise)
        counted = op("greatest", op("+", size, given), Literal(0))
        within = op("least", given, Literal(_LAST_PLACE))
        return _case(op("<", given, Literal(0)), counted, within)

    start, end = place(1, Literal(0)), place(2, size)
    if isinstance(start, Literal) and start.value == 0:
        length = end
    else:
        length = op("greatest", op("-", end, start), Literal(0))
    cut = Call("substring", (text, _as_int(_plus(start, 1)), _as_int(length)))
    return Typed(cut, STRING)


def _as_int(tree: Tree) -> Tree:
    return tree if isinstance(tree, Literal) else cast(tree, "int")


def _between(trees: Sequence[Tree], types: Sequence[SqlType]) -> Typed:
    text, left, right = trees[:3]
    ignore_case, greedy = len(trees) > len(types), trees[3] if len(types) > 3 else Literal(False)

    def seen(tree: Tree) -> Tree:
        return without_case(tree) if ignore_case else tree

    begin = Call("locate", (seen(left), seen(text)))
    rest = Call("substring", (text, _as_int(op("+", begin, _length(left)))))
    next_ = Call("locate", (seen(right), seen(rest)))
    last = Call("locate", (Call("reverse", (seen(right),)), Call("reverse", (seen(rest),))))

    def upto(place: Tree, length: Tree) -> Tree:
        cut = Call("substring", (rest, Literal(1), _as_int(length)))
        return _case(op(">", place, Literal(0)), cut, Literal(""))

    rest_size = Call("length", (rest,))
    by_next = upto(next_, _plus(next_, -1))
    by_last = upto(last, _plus(op("-", op("-", rest_size, last), _length(right)), 1))
    if isinstance(greedy, Literal):
        chosen = by_last if greedy.value else by_next
    else:
        chosen = _case(greedy, by_last, op("not", greedy), by_next)
    # What is null makes neither condition true.
    found = _case(op(">", begin, Literal(0)), chosen, op("=", begin, Literal(0)), Literal(""))
    if isinstance(right, Literal) and isinstance(greedy, Literal):
        return Typed(found, STRING)
    known = [op("is not null", tree) for tree in (right, greedy)]
    return Typed(_case(op("and", *known), found), STRING)


def _is_in_blocks(trees: Sequence[Tree], _: Sequence[SqlType]) -> Typed:
    blocks = [tree.value for tree in trees[1:] if isinstance(tree, Literal)]
    if len(blocks) < len(trees) - 1:
        raise InvalidArgumentError(
            "cidrMatch: a block that is no constant", 'write cidrMatch(ip, "10.0.0.0/8")'
        )
    return Typed(is_in_blocks(trees[0], map(str, blocks)), BOOLEAN)


_MANY = 1000


def _of(
    written: str,
    takes: str,
    lower: Lower,
    least: int,
    most: int,
    arguments: str,
    folds: bool = False,
    strict: int = _MANY,
) -> EqlFunction:
    return EqlFunction(written, arguments, takes, lower, least, most, folds, strict)


_ROWS = (
    *(_of(name, "n", _arithmetic(name), 2, 2, "a, b") for name in
      ("add", "subtract", "multiply", "divide", "modulo")),
    _of("between", "tttb", _between, 3, 4, "s, left, right, greedy", folds=True),
    _of("cidrMatch", "t", _is_in_blocks, 2, _MANY, 'ip, "10.0.0.0/8"'),
    _of("concat", "a", _concat, 1, _MANY, "a, b"),
    _of("endsWith", "t", _ends, 2, 2, "s, part", folds=True),
    _of("indexOf", "ttn", _index, 2, 3, "s, part, start", folds=True, strict=2),
    _of("length", "t", lambda trees, _: Typed(Call("length", tuple(trees)), BIGINT), 1, 1, "s"),
    _of("number", "tn", _number, 1, 2, "s, base", strict=1),
    _of("startsWith", "t", _starts, 2, 2, "s, part", folds=True),
    _of("string", "a", _string, 1, 1, "x"),
    _of("stringContains", "t", _contains, 2, 2, "s, part", folds=True),
    _of("substring", "tn", _substring, 2, 3, "s, start, end", strict=1),
)  # fmt: skip

FUNCTIONS = {function.written.lower(): function for function in _ROWS}
"""By name in lower case."""

_ARRAYS = "test any value of the field: a field is about all of its values"
REFUSED = {
    "wildcard": 'write x : ("a*", "b*")',
    "match": 'write x regex "…"',
    "safe": "write ?field for a field that may be missing",
    "arraycontains": _ARRAYS, "arraycount": _ARRAYS, "arraysearch": _ARRAYS,
}  # fmt: skip
"""Functions of other implementations, and what to write instead."""
