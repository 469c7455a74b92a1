# SPDX-License-Identifier: Apache-2.0
"""Trees as Python functions, by the types of columns; where one is unknown, by those of its values.

They evaluate conditions on events in memory, HAVING and RETURN of matches there, and conditions of
DEFINE that no program can say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_DOWN, Decimal
from functools import reduce
from typing import Any, NamedTuple

import attrs

from pyflinkcep.errors import InputError, NotSupportedError, counted, did_you_mean
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.codegen import scalar
from pyflinkcep.expressions.numbers import (
    EXACT,
    UNITS_US,
    Digits,
    averaged,
    common,
    decimal_aggregate,
    digits_of_value,
    overflow_of,
    summed,
)
from pyflinkcep.expressions.program import (
    OPERATORS,
    RULES,
    Cast,
    Nulls,
    Op,
    Type,
    cast_rule,
    like_regex,
)
from pyflinkcep.expressions.sql_functions import (
    CASTS,
    FIELDS,
    FUNCTIONS,
    fitting,
    is_unit,
    joined,
    time_between,
    to_digits,
)
from pyflinkcep.expressions.sql_types import (
    ARRAY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTERVAL,
    MAP,
    STRING,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    alternatives,
    array_of,
    beside,
    cast_type,
    common_type,
    digits_beside,
    literal_type,
    operation_type,
    rounded_type,
    wider,
)
from pyflinkcep.expressions.sql_values import (
    alike,
    arithmetic,
    cast_value,
    compared,
    greater,
    is_equal,
    is_same,
    kind_name,
    lesser,
    moved,
    negated,
    passed,
    short_float,
    truth,
)
from pyflinkcep.expressions.tree import (
    COMPARISONS,
    UNNAMED,
    Call,
    Interval,
    Leaf,
    Literal,
    Moment,
    Operation,
    Tree,
    leaves,
    shown,
)
from pyflinkcep.expressions.tree import FUNCTIONS as OF_SEVERAL

Function = Callable[[Any], Any]
"""The value of a part, given what its leaves are read from."""


def column(name: str) -> Function:
    """Return a function that reads a column of an event."""
    return lambda event: member(event, name)


def member(owner: Any, name: str) -> Any:
    """Return a column of an event, or a field of a struct; names are compared as in Spark."""
    found = _exact_member(owner, name)
    if found is _MISSING:
        names = _names_of(owner)
        same = [other for other in names if other.casefold() == name.casefold()]
        if len(same) != 1:
            otherwise = f"its columns are {names}"
            if isinstance(owner, _WITHOUT_FIELDS):
                names, otherwise = [], "write lambda value: value > 1 where an event is a value"
            raise InputError(
                f"the event {_short(owner)} has no column {name!r}",
                did_you_mean(name, names, otherwise),
            )
        found = _exact_member(owner, same[0])
    return _of_python(found)


def given(place: int) -> Function:
    """Return a function that reads one of a sequence of values."""
    return lambda values: _of_python(values[place])


def _of_python(found: Any) -> Any:
    """Return a value, a NumPy scalar as Python's."""
    item = getattr(found, "item", None)
    return item() if callable(item) and not isinstance(found, Mapping) else found


_MISSING = object()
_WITHOUT_FIELDS = (bool, int, float, str, bytes, list, set, type(None))


def _exact_member(owner: Any, name: str) -> Any:
    if isinstance(owner, Mapping):
        return owner[name] if name in owner else _MISSING  # noqa: SIM401 - a field may be get
    return getattr(owner, name, _MISSING)


def _names_of(owner: Any) -> list[str]:
    if isinstance(owner, Mapping):
        return [str(name) for name in owner]
    names: Iterable[str] = (
        getattr(owner, "_fields", None) or getattr(owner, "__fields__", None) or ()
    )
    return list(names) or [name for name in dir(owner) if not name.startswith("_")]


def _short(event: Any) -> str:
    text = repr(event)
    return text if len(text) < 80 else text[:77] + "..."


def element(whole: Any, key: Any) -> Any:
    """Return the element of an array at an index, or of a map under a key."""
    if isinstance(whole, Mapping):
        return whole.get(key)
    if isinstance(whole, str | bytes) or not hasattr(whole, "__len__"):
        raise InputError(
            f"expected an array or a map, of which [{key!r}] is a part, got {_short(whole)}",
            "write substring(text, 1, 1) for a part of a text",
        )
    try:
        if key >= 0:
            return whole[key]
    except (IndexError, TypeError) as cause:
        raise InputError(
            f"expected an index below {len(whole)}, got {key!r}", "test size()"
        ) from cause
    raise InputError(f"expected an index from 0, got {key!r}", "use element_at() on Spark")


def always_null(_: Any) -> None:
    """Return NULL, for any event."""


def spread(functions: tuple[Function, ...], compute: Callable[..., Any]) -> Function:
    """Return a function that is NULL if an operand is; those after it are not computed."""
    # With an operand that is always NULL none is computed, as Spark's optimizer has it.
    if always_null in functions:
        return always_null
    if len(functions) == 1:
        return _of_one(functions[0], compute)
    if len(functions) == 2:
        return _of_two(*functions, compute)

    def value(events: Any) -> Any:
        values = []
        for of in functions:
            found = of(events)
            if found is None:
                return None
            values.append(found)
        return compute(*values)

    return value


def _by_divisor(functions: tuple[Function, ...], compute: Callable[..., Any]) -> Function:
    """Return a division, which is NULL by NULL before the dividend is computed."""
    dividend, divisor = functions
    return spread((divisor, dividend), lambda by, value: compute(value, by))


def _joining(functions: tuple[Function, ...], compute: Callable[..., Any]) -> Function:
    """Return what is NULL if an operand is, after all have been computed."""

    def value(events: Any) -> Any:
        values = [of(events) for of in functions]
        return None if None in values else compute(*values)

    return value


def _of_one(of: Function, compute: Callable[..., Any]) -> Function:
    def value(events: Any) -> Any:
        a = of(events)
        return None if a is None else compute(a)

    return value


def _of_two(first: Function, second: Function, compute: Callable[..., Any]) -> Function:
    def value(events: Any) -> Any:
        a = first(events)
        if a is None:
            return None
        b = second(events)
        return None if b is None else compute(a, b)

    return value


def _yielding(functions: tuple[Function, ...], compute: Callable[..., Any]) -> Function:
    """Return a function of the operands that are not NULL, two at a time."""

    def value(events: Any) -> Any:
        known = [v for v in (of(events) for of in functions) if v is not None]
        return reduce(compute, known) if known else None

    return value


NULLS: dict[Nulls, Callable[[tuple[Function, ...], Callable[..., Any]], Function]] = {
    Nulls.SPREADS: spread,
    Nulls.YIELDS: _yielding,
    Nulls.EQUALS: lambda of, _: lambda events: is_same(of[0](events), of[1](events)),
}
"""By what NULL does, the function of operands and of what to compute of values that are known."""


def decided(functions: tuple[Function, ...], decisive: bool) -> Function:
    """Return AND or OR; what is after an operand that decides is not computed."""

    def value(events: Any) -> bool | None:
        found: bool | None = not decisive
        for of in functions:
            own = truth(of(events))
            if own is decisive:
                return decisive
            found = found if own is not None else None
        return found

    return value


# --- branches


def _among(functions: tuple[Function, ...]) -> Function:
    """Return IN: equal to one of the others, which an OR of equations would say."""
    value, *items = functions
    if not items:
        return spread((value,), lambda _: False)
    return decided(tuple(spread((value, item), is_equal) for item in items), True)


def _chosen(functions: tuple[Function, ...]) -> Function:
    """Return CASE."""
    branches = list(zip(functions[::2], functions[1::2], strict=False))
    otherwise: Function = functions[-1] if len(functions) % 2 else lambda _: None

    def value(events: Any) -> Any:
        for condition, then in branches:
            if truth(condition(events)):
                return then(events)
        return otherwise(events)

    return value


BRANCHES: dict[str, Callable[[tuple[Function, ...]], Function]] = {
    "coalesce": lambda functions: (
        lambda events: next(
            (found for found in (of(events) for of in functions) if found is not None), None
        )
    ),
    "in": _among,
    "case": _chosen,
    "is not null": lambda functions: lambda events: functions[0](events) is not None,
}
"""The operators that are jumps, or several operations, in a program."""


_ARITHMETIC = ("+", "-", "*", "/", "%", "div", "pmod", "||")


class Typed(NamedTuple):
    """A function of events, and the type of its values; None if it is unknown."""

    function: Function
    type: SqlType | None


LeafTypes = Callable[[Leaf], SqlType | None]


def function_of(tree: Tree, leaf: Callable[[Leaf], Function], **more: Any) -> Function:
    """Return the function of :func:`typed_function`, without its type."""
    return typed_function(tree, leaf, **more).function


def typed_function(
    tree: Tree,
    leaf: Callable[[Leaf], Function],
    *,
    zero_is_null: bool = False,
    where: str = "",
    types: LeafTypes = lambda _: None,
    zone: tzinfo | None = None,
) -> Typed:
    """Return a function that computes the value of a tree, and the value's type."""
    return _Maker(leaf, zero_is_null, where, types, zone).typed(tree)


@attrs.frozen(eq=False)
class _Maker:
    """Makes the functions of the parts of a tree."""

    _leaf: Callable[[Leaf], Function]
    _zero_is_null: bool
    _where: str
    _types: LeafTypes
    _zone: tzinfo | None

    def typed(self, tree: Tree) -> Typed:
        """Return the function of a part, and its type."""
        if isinstance(tree, Literal):
            value: Any = tree.value
            if isinstance(value, Interval):
                value = timedelta(microseconds=value.microseconds)
            elif isinstance(value, Moment):
                value = TimeText(value)
            function = always_null if value is None else lambda _: value
            return Typed(function, literal_type(tree))
        if isinstance(tree, Leaf):
            return Typed(self._leaf(tree), self._types(tree))
        if isinstance(tree, Call):
            return self._call(tree)
        return self._operation(tree, [self.typed(part) for part in tree.operands])

    def _only_spark(self, tree: Tree, what: str = "") -> NotSupportedError:
        return NotSupportedError(
            f"{self._where}{what or repr(shown(tree))} can only be evaluated by Spark",
            "run the pattern on a DataFrame, or write the condition as a function of the event",
            part=shown(tree),
        )

    # --- what values have in common

    def _as(self, part: Typed, type_: SqlType | None) -> Function:
        """Return the function of a part, whose values are of a type."""
        change = self._change(part.type, type_)
        return part.function if change is None else spread((part.function,), change)

    def _change(self, own: SqlType | None, type_: SqlType | None) -> Callable[[Any], Any] | None:
        """Return what makes values of a type those of another; None if they are."""
        if type_ is None or own in (type_, VOID):
            return None
        if type_.name == "double":
            if own is None or own.is_number:
                return _as_double
            return self._reading(type_, own)
        if type_.name == "decimal":
            return _as_decimal if own is None or not type_.digits else self._reading(type_, own)
        if BINARY in (own, type_) and STRING in (own, type_):
            return _text_of if type_ == STRING else str.encode
        if own is not None and own.is_whole and type_.is_whole:
            return type_.fitted if own.bits > type_.bits else None
        if own is None or own.kind is type_.kind is not None:
            return None
        if type_.name == ARRAY and own.name == ARRAY:
            inner = self._change(own.inner[0], type_.inner[0])
            return inner and (lambda values: [v if v is None else inner(v) for v in values])
        return self._reading(type_, own) if type_.kind is not None else None

    def _reading(self, type_: SqlType, own: SqlType | None = None) -> Callable[[Any], Any]:
        """Return a cast; refuse one that only Spark computes."""
        if cast_rule(None if own is None else own.kind, type_.kind) is Cast.BY_SPARK:
            raise NotSupportedError(
                f"{self._where}a cast of {own and own.name} to {type_.name} can only be "
                "evaluated by Spark",
                "run it on a DataFrame, or use values of the same type",
            )
        return lambda value: cast_value(value, type_, self._zone)

    def _alike(self, parts: Sequence[Typed]) -> tuple[Function, ...]:
        """Return the functions of parts, with values of what their types have in common."""
        common = wider(part.type for part in parts)
        return tuple(self._as(part, common) for part in parts)

    # --- operators

    def _operation(self, tree: Operation, parts: list[Typed]) -> Typed:
        operator = tree.operator
        type_ = operation_type(tree, [part.type for part in parts])
        choices = [id(choice) for choice in alternatives(tree)]
        if choices:
            pairs = zip(tree.operands, parts, strict=True)
            functions = tuple(
                self._as(part, type_) if id(operand) in choices else part.function
                for operand, part in pairs
            )
        elif operator in COMPARISONS:
            types = beside(tree.operands, [part.type for part in parts])
            functions = self._alike(list(map(Typed, [part.function for part in parts], types)))
        elif operator == "in":
            functions = self._alike(parts)
        elif operator == "||" and type_ != STRING:
            return Typed(spread(self._alike(parts), FUNCTIONS["concat"].compute), type_)
        elif operator in ("||", "like", "startswith"):
            functions = tuple(self._argument(part, STRING) for part in parts)
        elif operator == "timestampdiff":
            functions = tuple(self._as(part, part.type and TIMESTAMP) for part in parts)
        elif operator in FUNCTIONS and FUNCTIONS[operator].same:
            functions = self._alike(parts)
        elif operator in FUNCTIONS and operator not in _ARITHMETIC:
            takes = FUNCTIONS[operator].taken
            functions = tuple(
                self._argument(part, takes(n, part.type)) for n, part in enumerate(parts)
            )
        else:
            functions = tuple(part.function for part in parts)
        return Typed(self._computed(tree, parts, functions, type_), type_)

    def _computed(
        self,
        tree: Operation,
        parts: list[Typed],
        functions: tuple[Function, ...],
        type_: SqlType | None,
    ) -> Function:
        operator = tree.operator
        if operator in BRANCHES:
            return BRANCHES[operator](functions)
        if operator == "like":
            pattern = tree.operands[1]
            assert isinstance(pattern, Literal)
            fits = like_regex(str(pattern.value)).fullmatch
            return spread(functions[:1], _refusing("like", lambda text: fits(text) is not None))
        if operator not in OPERATORS:
            if operator == "datediff":
                return spread(functions, FUNCTIONS[operator].compute)
            return spread(functions, lambda a, b: time_between(tree.detail, a, b))
        op = OPERATORS[operator]
        rule = RULES[op]
        if rule.nulls is Nulls.DECIDES:
            truths = (self._as(p, BOOLEAN if p.type == STRING else None) for p in parts)
            return decided(tuple(truths), op is Op.OR)
        if rule.nulls is Nulls.ASKED:
            return lambda events: functions[0](events) is None
        if operator in _ARITHMETIC and operator != "||":
            functions, compute = self._arithmetic(operator, tree.operands, parts, type_)
        else:
            compute = _fitted(self._operator(operator), type_)
        if operator == "||":
            return _joining(functions, compute)
        if rule.divides and self._zero_is_null:
            divide, compute = compute, lambda a, b: None if b == 0 else divide(a, b)
        if rule.divides:
            return _by_divisor(functions, compute)
        return NULLS[rule.nulls](functions, compute)

    def _operator(self, operator: str) -> Callable[..., Any]:
        """Return the function of an operator on values that are not NULL."""
        if operator in COMPARISONS:  # what an order says beside 0: negative for left before right
            holds = scalar(OPERATORS[operator], Type.INT, ansi=True)
            return lambda a, b: holds(compared(a, b), 0)
        if operator == "||":
            return lambda a, b: arithmetic(operator, a, b)
        return _STRICT.get(operator) or _refusing(operator, FUNCTIONS[operator].compute)

    def _arithmetic(
        self,
        operator: str,
        operands: Sequence[Tree],
        parts: list[Typed],
        type_: SqlType | None,
    ) -> tuple[tuple[Function, ...], Callable[..., Any]]:
        """Return the operands of a calculation and its function, by the type of the result."""
        functions = tuple(part.function for part in parts)
        types = [part.type for part in parts]
        if type_ is None or type_.name == "decimal" or (operator == "div" and STRING not in types):
            digits = [*map(digits_beside, operands, types)]
            return functions, lambda a, b: arithmetic(operator, a, b, digits)
        if STRING in types and type_.is_number:
            functions = tuple(self._as(part, wider(types)) for part in parts)
        elif STRING in types and type_ == INTERVAL and operator in ("*", "/"):
            functions = tuple(self._as(p, DOUBLE if p.type == STRING else None) for p in parts)
        elif operator == "-" and set(types) == {TIMESTAMP, TIMESTAMP_NTZ}:
            pass  # by what both clocks show
        elif operator == "-" and all(t == STRING or (t and t.is_time) for t in types):
            functions = self._alike(parts)
        elif type_ == STRING:  # a text that is a time, moved
            written = self._reading(STRING)
            functions = tuple(self._as(p, TIMESTAMP if p.type == STRING else None) for p in parts)
            return functions, lambda a, b: written(arithmetic(operator, a, b))
        elif type_ == TIMESTAMP and DATE in types:
            functions = tuple(
                self._as(part, TIMESTAMP if part.type == DATE else None) for part in parts
            )
        return functions, _fitted(lambda a, b: arithmetic(operator, a, b), type_)

    # --- functions of one event

    def _call(self, tree: Call) -> Typed:
        name, detail = tree.function, tree.detail
        if name == "extract" and len(tree.operands) == 2:
            field = FIELDS.get(tree.operands[0].text.lower())
            if field is None:
                raise self._only_spark(tree)
            name, tree = field, Call(field, tree.operands[1:], "", tree.text)
        if not name or detail == "distinct":
            raise self._only_spark(tree)
        parts = [self.typed(part) for part in tree.operands]
        count = len(parts)
        if name in UNNAMED:
            of = UNNAMED[name]
            return Typed(spread(tuple(p.function for p in parts), of.compute), SqlType(of.type))
        if name in ("cast", "try_cast"):
            return self._cast(tree, parts[0], detail, name == "try_cast")
        if name in CASTS and count == 1 and not detail:
            return self._cast(tree, parts[0], CASTS[name], False)
        if name == ".":
            return self._member(parts[0], detail)
        if name == "[]":
            return self._element(*parts)
        if name in ("ilike", "rlike", "regexp", "regexp_like") and count == 2:
            return self._matched(tree, parts)
        if name in _TRIES and count == 2:
            return self._tried(tree, _TRIES[name], parts)
        if name in ("trunc", "date_trunc") and count == 2 and not detail:
            return self._cut(name, parts)
        if detail in UNITS_US and count == 2:
            return self._shifted(name, timedelta(microseconds=UNITS_US[detail]), *parts)
        return self._with_nulls(name, parts) or self._function(tree, name, parts)

    def _with_nulls(self, name: str, parts: list[Typed]) -> Typed | None:
        """Return a function that NULL does not make NULL; None for all others."""
        match name, parts:
            case "isnan", [part]:
                of = self._argument(part, DOUBLE)
                return Typed(lambda e: (x := of(e)) is not None and x != x, BOOLEAN)
            case "nanvl", [part, instead]:
                is_short = part.type == FLOAT and instead.type in (FLOAT, VOID)
                common: SqlType | None = FLOAT if is_short else DOUBLE
                first, other = self._argument(part, common), self._argument(instead, common)
                # The other value of a number is not asked.
                return Typed(lambda e: x if (x := first(e)) is None or x == x else other(e), common)
            case "nvl2", [part, *choices] if len(choices) == 2:
                common = wider(choice.type for choice in choices)
                asked, ways = part.function, [self._as(choice, common) for choice in choices]
                return Typed(lambda e: ways[asked(e) is None](e), common)
            case "array", _:
                items = self._alike(parts)
                of_items = array_of(wider(part.type for part in parts))
                return Typed(lambda e: [of(e) for of in items], of_items)
            case "concat_ws", [_, *_]:
                separator, *texts = map(self._texts, parts)
                return Typed(lambda e: joined(separator(e), tuple(t(e) for t in texts)), STRING)
        return None

    def _cut(self, name: str, parts: list[Typed]) -> Typed:
        """Return trunc() or date_trunc(); of an unknown unit the time is not computed."""
        function, of_time = FUNCTIONS[name], name == "date_trunc"
        type_ = function.type_of(())
        given = tuple(self._argument(p, function.taken(n, p.type)) for n, p in enumerate(parts))
        whole = spread(given, _refusing(name, function.compute))
        unit = given[0 if of_time else 1]

        def value(events: Any) -> Any:
            text = unit(events)
            return whole(events) if text is not None and is_unit(text, of_time) else None

        return Typed(value, type_)

    def _shifted(self, name: str, unit: timedelta, number: Typed, time: Typed) -> Typed:
        """Return a time some units later; of a date or text it is a timestamp."""
        type_ = TIMESTAMP if time.type in (DATE, STRING) else time.type
        operands = (self._argument(number, BIGINT), self._as(time, type_))
        is_clock = unit % timedelta(days=1) == timedelta(0)
        move = moved if is_clock else passed  # though an interval's days are always the clock's
        compute = _refusing(name, lambda count, time: move(time, count * unit))
        return Typed(spread(operands, compute), type_)

    def _function(self, tree: Call, name: str, parts: list[Typed]) -> Typed:
        """Return a function of the table."""
        function, count = FUNCTIONS.get(name), len(parts)
        if function is None or tree.detail:
            refused = self._only_spark(tree, f"the function {name}()")
            known = (*FUNCTIONS, *OF_SEVERAL)
            refused.hint = did_you_mean(name, known, refused.hint or "")
            raise refused
        if not function.least <= count <= function.most:
            raise self._only_spark(tree, f"{name}() with {counted(count, 'argument')}")
        if function.by_element:
            parts = self._beside_element(*parts)
        types = [part.type for part in parts]
        if not function.reads and STRING in types:
            raise self._only_spark(tree, f"{name}() of a text")
        type_ = function.type_of(types)
        if name in ("round", "bround"):
            type_ = rounded_type(types[0], tree.operands[1] if count > 1 else Literal(0))
        if function.same:
            functions = self._alike(parts)
        else:
            wanted = [function.taken(place, type_) for place, type_ in enumerate(types)]
            functions = tuple(map(self._argument, parts, wanted))
        compute = function.compute
        if function.by_bits:
            functions = (self._argument(parts[0], type_), *functions[1:])
            compute = compute(64 if type_ is None else type_.bits)
        return Typed(spread(functions, _refusing(name, _fitted(compute, type_))), type_)

    def _beside_element(self, array: Typed, value: Typed) -> list[Typed]:
        """Return an array and a value, cast to what its elements and the value have in common."""
        if array.type is None or array.type.name != ARRAY or value.type is None:
            return [array, value]
        common = common_type(array.type.inner[0], value.type)
        if common is None:
            return [array, value]
        whole = array_of(common)
        return [Typed(self._as(array, whole), whole), Typed(self._as(value, common), common)]

    def _argument(self, part: Typed, type_: SqlType | None) -> Function:
        """Return an argument as the type that a function takes; of an unknown type as it is."""
        if part.type is not None:
            is_other = part.type.inner and type_ == STRING
            return part.function if is_other else self._as(part, type_)
        return (
            spread((part.function,), self._reading(TIMESTAMP))
            if type_ == TIMESTAMP
            else part.function
        )

    def _texts(self, part: Typed) -> Function:
        """Return a text, or an array of texts."""
        is_array = part.type is not None and part.type.name == ARRAY
        return self._argument(part, array_of(STRING) if is_array else STRING)

    def _matched(self, tree: Call, parts: list[Typed]) -> Typed:
        """Return ILIKE, or a regular expression, which is refused now if it is a literal."""
        functions = tuple(self._argument(part, STRING) for part in parts)
        pattern = tree.operands[1]
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            if tree.function == "ilike":
                raise self._only_spark(tree)
            return Typed(spread(functions, FUNCTIONS["rlike"].compute), BOOLEAN)
        if tree.function == "ilike":
            fits = like_regex(pattern.value.lower()).fullmatch
            holds = _refusing("ilike", lambda text: fits(text.lower()) is not None)
            return Typed(spread(functions[:1], holds), BOOLEAN)
        holds = _refusing(tree.function, fitting(pattern.value))
        return Typed(spread(functions[:1], holds), BOOLEAN)

    def _tried(self, tree: Call, operator: str, parts: list[Typed]) -> Typed:
        """Return a calculation that is NULL where it would fail."""
        operation = Operation(operator, tree.operands, tree.text)
        type_ = operation_type(operation, [part.type for part in parts])
        functions, compute = self._arithmetic(operator, tree.operands, parts, type_)
        caught: tuple[type[Exception], ...] = (ArithmeticError,)
        if STRING in (part.type for part in parts):
            caught = (ArithmeticError, InputError)  # also the cast of the text

        def tried(events: Any) -> Any:
            for constant in constants:  # which Spark computes before
                constant(events)
            try:
                return computed(events)
            except caught:
                return None

        pairs = zip(functions, tree.operands, strict=True)
        constants = [function for function, operand in pairs if not any(leaves(operand))]
        if len(constants) == len(functions):
            constants = []  # all of it is computed before, and caught
        divides = RULES[OPERATORS[operator]].divides
        computed = (_by_divisor if divides else spread)(functions, compute)
        if computed is always_null:
            return Typed(computed, type_)
        return Typed(tried if len(caught) > 1 else _tried_alone(functions, compute, divides), type_)

    def _member(self, part: Typed, name: str) -> Typed:
        """Return a field of a struct, of each struct of an array, or of a key."""
        own = part.type
        if own is not None and own.name == MAP:
            return self._element(part, Typed(lambda _: name, STRING))
        is_array = own is not None and own.name == ARRAY
        of = own.inner[0] if own is not None and is_array else own
        field = None
        if of is not None and of.name == STRUCT:
            types = dict(zip(map(str.casefold, of.fields), of.inner, strict=True))
            field = types.get(name.casefold())
        if is_array:
            return Typed(
                spread(
                    (part.function,),
                    lambda values: [v if v is None else member(v, name) for v in values],
                ),
                None if field is None else array_of(field),
            )
        return Typed(spread((part.function,), lambda value: member(value, name)), field)

    def _element(self, part: Typed, key: Typed) -> Typed:
        own = part.type
        if own is None or not own.inner:
            return Typed(spread((part.function, key.function), element), None)
        wanted = own.inner[0] if own.name == MAP else None
        return Typed(spread((part.function, self._as(key, wanted)), element), own.inner[-1])

    def _cast(self, tree: Call, of: Typed, written: str, is_tried: bool) -> Typed:
        refused, type_ = self._only_spark(tree, f"a cast to {written}"), cast_type(written)
        if type_ is None:
            raise refused
        if of.type == type_ or (of.type == BINARY and type_ == STRING):
            return Typed(self._as(of, type_), type_)
        if of.type is not None and of.type.kind is None and of.type != VOID:
            raise refused

        def cast(value: Any) -> Any:
            try:
                return cast_value(value, type_, self._zone)
            except NotImplementedError as cause:
                raise refused from cause
            except InputError:
                if is_tried:
                    return None
                raise

        return Typed(spread((of.function,), cast), type_)


_TRIES = {
    "try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%",
}  # fmt: skip
"""The functions that are NULL where an operator fails."""


def _tried_alone(
    functions: tuple[Function, ...], compute: Callable[..., Any], divides: bool
) -> Function:
    """Return a calculation that is NULL where it fails, but whose operands may fail."""

    def tried(*values: Any) -> Any:
        try:
            return compute(*values)
        except ArithmeticError:
            return None

    return (_by_divisor if divides else spread)(functions, tried)


def _refusing(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that says which values it does not take."""

    def refusing(*values: Any) -> Any:
        try:
            return compute(*values)
        except (TypeError, AttributeError, ValueError) as cause:
            kinds = " and ".join(map(kind_name, values))
            raise InputError(f"{name}() does not take {kinds}", "cast its arguments") from cause

    return refusing


def _text_of(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as cause:
        raise NotSupportedError(
            f"bytes that are not UTF-8 as a text, {value!r}, can only be evaluated by Spark",
            "run it on a DataFrame, or leave such bytes out",
        ) from cause


def _as_double(value: Any) -> Any:
    return float(value) if isinstance(value, int | Decimal) else value


def _as_decimal(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


def _fitted(compute: Callable[..., Any], type_: SqlType | None) -> Callable[..., Any]:
    """Return a calculation whose results are in the range of their type."""
    if type_ is None or not ((type_.is_whole and type_.bits < 64) or type_.name == "float"):
        return compute
    fit = short_float if type_.name == "float" else type_.fitted

    def fitted(*values: Any) -> Any:
        found = compute(*values)
        return found if found is None else fit(found)

    return fitted


class TimeText(str):
    """A literal date or timestamp as text, which fits every kind of time it is compared with."""

    moment: Moment

    def __new__(cls, moment: Moment) -> TimeText:
        """Return the text of a literal."""
        made = super().__new__(cls, moment.text)
        made.moment = moment
        return made

    @property
    def time(self) -> date:
        """The time alone: a date, or a time in UTC."""
        since = timedelta(microseconds=self.moment.local)
        time = datetime(1970, 1, 1, tzinfo=UTC) + since
        return time.date() if self.moment.is_date else time


_STRICT: dict[str, Callable[..., Any]] = {
    "not": lambda a: not truth(a),
    "neg": negated,
    "truncate": lambda x, digits=0: to_digits(x, digits, ROUND_DOWN),
    "greatest": lambda a, b: greater(*alike(a, b)),
    "least": lambda a, b: lesser(*alike(a, b)),
}


def aggregated(function: str, values: Sequence[Any], type_: SqlType | None = None) -> Any:
    """Return an aggregate of values of a type, as far as it is known; NULL of too few."""
    if function in ("first", "last"):
        return values[0 if function == "first" else -1] if values else None
    known = [value for value in values if value is not None]
    aggregate = AGGREGATES[function]
    if len(known) < aggregate.least:
        return None
    if function == "count":
        return len(known)
    if aggregate.of_list is not None:
        return aggregate.of_list(list(map(float, known)))
    if function in ("min", "max"):
        return reduce(greater if function == "max" else lesser, known)
    if isinstance(known[0], Decimal):
        digits = None if type_ is None else type_.of_decimal
        return _of_decimals(function, known, digits or common(list(map(digits_of_value, known))))
    total = known[0] + 0.0 if isinstance(known[0], float) else known[0]  # not -0.0, as in Spark
    if function == "avg":
        total = arithmetic("/", total, 1)  # whole numbers are added as doubles
    for value in known[1:]:
        total = arithmetic("+", total, value)
    return total if function == "sum" else arithmetic("/", total, len(known))


def _of_decimals(function: str, values: Sequence[Any], digits: Digits) -> Decimal:
    """Return a SUM or AVG of decimals."""
    total = reduce(EXACT.add, map(Decimal, values))
    found = decimal_aggregate(function, total, len(values), digits)
    if found is None:
        raise ArithmeticError(overflow_of((summed if function == "sum" else averaged)(digits)))
    return found
