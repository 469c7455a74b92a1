# SPDX-License-Identifier: Apache-2.0
"""The tree of all expressions: SQL over stages, conditions of queries, DEFINE and MEASURES.

Parsers build it, rewrites turn one tree into another, and each target has one function over it:
programs (:mod:`~pyflinkcep.expressions.compiler`), Python values
(:mod:`~pyflinkcep.expressions.values`), and text: :func:`shown` and :func:`spark_sql`. What runs
many times runs programs, for which types are decided once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import reduce
from ipaddress import AddressValueError, IPv6Address
from itertools import chain
from typing import Any

import attrs

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.numbers import NUMBER_FUNCTIONS, ROUNDINGS, UNITS_US, double_text

WHOLE = "match"
"""Instead of a stage: all events that the partial match has taken, in order."""

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
CONDITIONS = (
    *COMPARISONS, "and", "or", "not", "is null", "is not null", "like",
    "in", "startswith",
)  # fmt: skip
"""The operators whose results are conditions."""

_MANY = 50
_NAMED = {
    "floor": (1, 1), "ceil": (1, 1), "abs": (1, 1), "pmod": (2, 2), "startswith": (2, 2),
    "coalesce": (1, _MANY), "greatest": (2, _MANY), "least": (2, _MANY), "nullif": (2, 2),
    "datediff": (2, 2), **dict.fromkeys(ROUNDINGS, (1, 2)),
    **{name: (of.arity, of.arity) for name, of in NUMBER_FUNCTIONS.items()},
}  # fmt: skip
FUNCTIONS: dict[str, tuple[str, int, int]] = {
    **{name: (name, *counts) for name, counts in _NAMED.items()},
    **{alias: (name, of.arity, of.arity) for name, of in NUMBER_FUNCTIONS.items()
       for alias in of.aliases},
    "ceiling": ("ceil", 1, 1), "trunc": ("truncate", 1, 2), "ifnull": ("coalesce", 2, 2),
    "nvl": ("coalesce", 2, 2), "concat": ("||", 1, _MANY), "mod": ("%", 2, 2),
    "isnull": ("is null", 1, 1), "equal_null": ("<=>", 2, 2), "date_diff": ("datediff", 2, 2),
    "if": ("case", 3, 3), "iff": ("case", 3, 3),
}  # fmt: skip
"""
The functions of values of several events: the operator of each, and its least and most arguments.
"""

ALL = ""
"""The index of all events of a variable, as in ``a[].x``."""

Span = tuple[int, int]
"""Where a part begins and ends in the text."""

_NOWHERE: Span = (0, 0)


@attrs.frozen
class Interval:
    """An interval of days, hours, minutes and seconds, in microseconds."""

    microseconds: int


@attrs.frozen
class Moment:
    """A literal date or timestamp of a query."""

    text: str  # The date or timestamp as it was written
    is_date: bool  # Whether it is a date
    local: int  # The time of the local clock, since 1970; of a text with a zone the instant
    instant: int | None = None  # The time since the epoch; None for that of a clock in UTC


def _typed(value: Any) -> Any:
    return type(value), value


@attrs.frozen(cache_hash=True)
class Literal:
    """A literal and its text; in SQL, 0.8 is a Decimal, 0.8D and 8e-1 are floats."""

    value: int | float | str | bool | Decimal | Interval | Moment | None = attrs.field(eq=_typed)
    text: str = attrs.field(default="", eq=False)
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)


@attrs.frozen(cache_hash=True)
class Column:
    """A value of one event: a column, or what SQL computes from its columns."""

    sql: str | None  # SQL over the event's columns; None for the event itself
    variable: str = ""  # The variable that stands for the event; empty for the current event
    # For a variable that repeats, which of its events, as written in brackets.
    index: str | None = None
    text: str = attrs.field(default="", eq=False)  # How it is shown
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)
    # What the SQL computes, over columns of the event; None if it is not known as a tree, as for a
    # column.
    computed: Tree | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def attribute(self) -> str | None:
        """The name of the column, or SQL in parentheses; None for the event itself."""
        return None if self.sql is None else attribute_of(self.sql)

    @property
    def over(self) -> Column:
        """The column itself, as aggregates have one."""
        return self

    @property
    def at(self) -> int:
        """Where it begins in the text."""
        return self.span[0]


@attrs.frozen
class Aggregate:
    """A function over the events of a stage or variable."""

    function: str  # Its name in :data:`~pyflinkcep.expressions.aggregates.AGGREGATES`
    stage: str  # The stage as written, or :data:`WHOLE`
    # SQL over the columns of those events; None to count the events themselves.
    argument: str | None
    text: str = attrs.field(default="", eq=False)  # How it is shown
    offset: int = 0  # For first and last: the number of events from the beginning or the end
    with_event: bool = False  # Whether the current event counts as the last of those events
    index: str = ALL  # Which events of a variable, as written in brackets
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)
    # For first and last: how many events of the partition to move from there; negative to move
    # back. Only in MATCH_RECOGNIZE.
    shift: int = 0
    # Whether it is over all events of the match, not only those so far. Only in MATCH_RECOGNIZE.
    final: bool = False
    # What the argument computes; see :class:`Column`.
    computed: Tree | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def over(self) -> Column:
        """The column of each event."""
        return Column(self.argument, self.stage, self.index, span=self.span, computed=self.computed)


@attrs.frozen(cache_hash=True)
class Operation:
    r"""An operator over parts."""

    # With two operands ``+ - * / % div ||``, ``= <> < <= > >= <=>``, ``like`` (the second is a
    # Literal that has ``\`` as its escape), ``timestampdiff``, ``datediff``; with one ``neg``,
    # ``abs``, ``not``, ``is null`` and ``is not null``; with any number ``and``, ``or``,
    # ``coalesce``, ``greatest``, ``least``, ``in`` (a value, then the alternatives) and ``case``
    # (conditions and values in turn; an odd last one is for ELSE); and the :data:`FUNCTIONS`.
    operator: str
    operands: tuple[Tree, ...]  # Its operands
    text: str = attrs.field(default="", eq=False)  # How it is shown; empty if its operands say it
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)
    detail: str = ""  # For ``timestampdiff`` the unit


@attrs.frozen(cache_hash=True)
class Call:
    """What programs lack: a function of one event by its name, or another form of SQL."""

    # The name in lower case; ``cast``; ``.`` for a field of a struct, ``[]`` for an element of an
    # array or map; empty for what only Spark reads, which is its text, or has `between`.
    function: str
    operands: tuple[Tree, ...]  # Its arguments
    # For ``cast`` the type, for ``.`` the name of the field, for a function of a unit of time,
    # which is not among the operands, the unit; ``distinct``.
    detail: str = ""
    text: str = attrs.field(default="", eq=False)  # How it is shown; empty if its operands say it
    span: Span = attrs.field(default=_NOWHERE, eq=False, repr=False)
    # For what only Spark reads: the text before, between and after its operands.
    between: tuple[str, ...] = ()


EACH = Column("each", "->")
"""Each element of an array: the variable of ``exists``, a call of the array and a condition."""

Leaf = Column | Aggregate
Tree = Literal | Column | Aggregate | Operation | Call


def called(operator: str, operands: tuple[Tree, ...], text: str, span: Span) -> Tree:
    """Return a function of :data:`FUNCTIONS` as operations that every target has."""
    if operator == "nullif":
        same = Operation("=", operands, text, span)
        return Operation("case", (same, Literal(None, "NULL"), operands[0]), text, span)
    if operator == "||":
        return reduce(lambda a, b: Operation("||", (a, b), text, span), operands)
    return Operation(operator, operands, text, span)


def attribute_of(sql: str) -> str:
    """Return the name of a column that SQL consists of; otherwise the SQL."""
    is_name = len(sql) > 1 and sql[0] == sql[-1] == "`" and "`" not in sql[1:-1].replace("``", "")
    return sql[1:-1].replace("``", "`") if is_name else sql


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Yield the values of events that a tree reads, in order."""
    return (part for part in parts(tree) if isinstance(part, Leaf))


def mapped(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """Return a tree in which each part is changed, after the parts inside it."""
    if isinstance(tree, Operation | Call):
        tree = attrs.evolve(tree, operands=tuple(mapped(part, change) for part in tree.operands))
    return change(tree)


def rewritten(tree: Tree, leaf: Callable[[Leaf], Tree]) -> Tree:
    """Return a tree with other leaves."""
    return mapped(tree, lambda part: leaf(part) if isinstance(part, Leaf) else part)


def parts(tree: Tree) -> Iterator[Tree]:
    """Yield a tree and all parts inside, in order."""
    yield tree
    if isinstance(tree, Operation | Call):
        for operand in tree.operands:
            yield from parts(operand)


class MatchExpression(IterativeCondition):
    """
    A SQL expression over the event and what the partial match has taken before it.

    Written as ``where("price > avg(up.price)")``: inside ``first``, ``last``, ``count``, ``sum``,
    ``min``, ``max`` and ``avg`` a stage's name before a column refers to the events that the
    partial match has taken for that stage, and ``match`` to all that it has taken; ``last(up.price,
    1)`` is the last but one. The engine computes parts that read one event only; the aggregates are
    updated with each event taken. NULL counts as false.
    """

    def __init__(
        self, text: str, tree: Tree, owners: Iterable[str] = (), own_stage: str = ""
    ) -> None:
        self.text = text
        self.tree = tree
        self.owners = frozenset(owners)
        self.stage = own_stage
        counts_event = any(isinstance(p, Aggregate) and p.with_event for p in leaves(tree))
        self.key = f"{own_stage}: {text}" if counts_event else text

    def filter(self, value: Any, ctx: Any) -> bool:
        """Raise: only an engine can evaluate the parts on one event."""
        raise NotSupportedError(
            f"the condition {self.text!r} can only be evaluated on Spark",
            "run the pattern on a DataFrame with CEP.pattern(...), "
            "or write the condition as a function of (event, ctx)",
        )

    def event_parts(self) -> Iterator[str]:
        """Yield the SQL of everything that is computed from one event, in order."""
        for leaf in leaves(self.tree):
            sql = leaf.sql if isinstance(leaf, Column) else leaf.argument
            if sql is not None:
                yield sql

    def stages(self) -> Iterator[str]:
        """Yield the stages that the aggregates name."""
        yield from (part.stage for part in leaves(self.tree) if isinstance(part, Aggregate))

    def __repr__(self) -> str:
        return self.text


class SqlTemplate(str):
    """SQL with places for a value that is known later; as text, it is what to show to people."""

    __slots__ = ("pieces", "shown")

    pieces: tuple[str, ...]
    shown: str

    def __new__(cls, pieces: tuple[str, ...], shown: str) -> SqlTemplate:
        """Return the SQL."""
        made = super().__new__(cls, shown.join(pieces))
        made.pieces, made.shown = pieces, shown
        return made

    def __getnewargs__(self) -> tuple[tuple[str, ...], str]:  # type: ignore[override]
        """Return what it is made of, for copies."""
        return self.pieces, self.shown

    def filled(self, sql: str) -> str:
        """Return the SQL with SQL in its places."""
        return sql.join(self.pieces)


def joined(parts: Iterable[str]) -> str:
    """Return SQL made of parts: a template if one of them is."""
    pieces, shown = [""], ""
    for part in parts:
        inner: tuple[str, ...] = (part,)
        if isinstance(part, SqlTemplate):
            inner, shown = part.pieces, part.shown
        pieces[-1] += inner[0]
        pieces += inner[1:]
    return SqlTemplate(tuple(pieces), shown) if len(pieces) > 1 else pieces[0]


# --- text, as people read it and as Spark SQL

_WORD = re.compile(r"[^\W\d]\w*")
_RESERVED = ("not", "null")
_LOGIC = ("and", "or")
_ARITHMETIC = ("+", "-", "*", "/", "%", "||")


def shown(tree: Tree) -> str:
    """Return the text of a condition or a value."""
    if tree.text:
        return tree.text
    if isinstance(tree, Literal):
        return str(tree.value)
    if isinstance(tree, Column):
        return _column(tree)
    if isinstance(tree, Aggregate):
        return f"{tree.function}({_column(tree.over)})"
    if isinstance(tree, Call):
        return _call(tree, list(map(shown, tree.operands)))
    operator, operands = tree.operator, tree.operands
    if operator in _LOGIC:
        return f" {operator.upper()} ".join(map(_factor, operands))
    if operator == "not":
        return f"NOT {_factor(operands[0])}"
    if operator in ("is null", "is not null"):
        return f"{shown(operands[0])} {operator.upper()}"
    if operator == "neg":
        return f"-{_operand(operands[0])}"
    if operator in _ARITHMETIC:
        return f" {operator} ".join(map(_operand, operands))
    if operator in COMPARISONS:
        return f" {operator} ".join(map(shown, operands))
    if operator == "case":
        return _case(list(map(shown, operands)))
    return f"{operator}({', '.join(map(shown, operands))})"


def _call(tree: Call, operands: list[str], *, is_sql: bool = False) -> str:
    """Return a call, for people or as Spark SQL."""
    match tree.function:
        case "" if tree.between:
            pairs = zip(tree.between, operands, strict=False)
            return "".join([*chain.from_iterable(pairs), tree.between[-1]])
        case "":
            return tree.text
        case ".":
            return f"{operands[0]}.{quoted_name(tree.detail) if is_sql else tree.detail}"
        case "[]":
            return f"{operands[0]}[{operands[1]}]"
        case "cast" | "try_cast":
            return f"{tree.function}({operands[0]} {'AS' if is_sql else 'as'} {tree.detail})"
        case "~":
            return f"(~ {operands[0]})"
        case "exists":
            return f"exists({operands[0]}, each -> {operands[1]})"
        case name if name in UNNAMED and is_sql:
            return f"({UNNAMED[name].sql(*operands)})"
        case operator if operator in _BITS:
            return f"({operands[0]} {operator} {operands[1]})"
    if tree.detail == "distinct":
        return f"{tree.function}({'DISTINCT' if is_sql else 'distinct'} {', '.join(operands)})"
    return f"{tree.function}({', '.join([tree.detail, *operands] if tree.detail else operands)})"


def _case(operands: list[str]) -> str:
    pairs = zip(operands[::2], operands[1::2], strict=False)
    branches = [f"WHEN {condition} THEN {value}" for condition, value in pairs]
    otherwise = [f"ELSE {operands[-1]}"] if len(operands) % 2 else []
    return " ".join(["CASE", *branches, *otherwise, "END"])


def _factor(condition: Tree) -> str:
    text = shown(condition)
    is_logic = isinstance(condition, Operation) and condition.operator in _LOGIC
    return f"({text})" if is_logic else text


def _operand(tree: Tree) -> str:
    text = shown(tree)
    negative = isinstance(tree, Literal) and text.startswith("-")
    return f"({text})" if isinstance(tree, Operation) or negative else text


def _column(tree: Column) -> str:
    if not tree.variable:
        return tree.sql or ""
    index = "" if tree.index is None else f"[{tree.index}]"
    attribute = "" if tree.attribute is None else f".{written_name(tree.attribute)}"
    return f"{written_name(tree.variable)}{index}{attribute}"


def written_name(name: str) -> str:
    """Return a name as text has it: in backticks unless it is a plain word."""
    is_plain = _WORD.fullmatch(name) is not None and name.lower() not in _RESERVED
    return name if is_plain else quoted_name(name)


def quoted_name(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


_SIGNS = (
    "+", "-", "*", "/", "%", "div", "||", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or",
    "like",
)  # fmt: skip
_AFTER = ("is null", "is not null")
_BEFORE = {"not": "NOT", "neg": "-"}
_BITS = ("&", "|", "^", "<<", ">>", ">>>")
_DIVISIONS = ("/", "%")


def spark_sql(tree: Tree, leaf: Callable[[Leaf], str], *, zero_is_null: bool = False) -> str:
    """Return a tree of a query as Spark SQL."""
    if isinstance(tree, Literal):
        return literal_sql(tree.value)
    if tree == EACH:
        return "each"
    if isinstance(tree, Leaf):
        return leaf(tree)
    operands = [spark_sql(part, leaf, zero_is_null=zero_is_null) for part in tree.operands]
    if isinstance(tree, Call):
        return _call(tree, operands, is_sql=True)
    operator = tree.operator
    if operator in _AFTER:
        return f"({operands[0]} {operator.upper()})"
    if operator in _BEFORE:
        return f"({_BEFORE[operator]} {operands[0]})"
    if zero_is_null and operator in _DIVISIONS:
        divisor = tree.operands[1]
        # Any literal but zero stays as it is, for it has other digits than a value.
        if not isinstance(divisor, Literal) or divisor.value == 0:
            operands[1] = f"nullif({operands[1]}, 0)"
        return f"({operands[0]} {operator} {operands[1]})"
    if operator in _SIGNS:
        return f"({f' {operator.upper()} '.join(operands)})"
    if operator == "in":
        return f"({operands[0]} IN ({', '.join(operands[1:])}))"
    if operator == "case":
        return f"({_case(operands)})"
    unit = [tree.detail] if tree.detail else []
    return f"{operator}({', '.join([*unit, *operands])})"


def literal_sql(value: Any) -> str:
    """Return a literal as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return text_sql(value)
    if isinstance(value, Interval):
        days, rest = divmod(value.microseconds, UNITS_US["DAY"])
        return f"INTERVAL {value.microseconds} MICROSECONDS" if rest else f"INTERVAL {days} DAYS"
    if isinstance(value, Moment):
        return f"{'DATE' if value.is_date else 'TIMESTAMP'} {text_sql(value.text)}"
    if isinstance(value, Decimal):
        return f"{value}BD"
    return f"{value!r}D" if isinstance(value, float) else str(value)


def text_sql(value: str) -> str:
    """Return a text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# --- functions that Spark SQL has no name for: in Python, and what they are in its SQL


@attrs.frozen(eq=False)
class Unnamed:
    """A function of values that are not NULL."""

    compute: Callable[..., Any]
    type: str  # Of its values
    sql: Callable[..., str]  # Its SQL, of that of its arguments


def _ipv6_digits(address: str) -> str:
    """Return the 32 hexadecimal digits of an address; nothing for what is none."""
    try:
        return "" if "%" in address else IPv6Address(address).packed.hex()
    except AddressValueError:
        return ""


_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_GROUP = "[0-9a-fA-F]{1,4}"
_OLD = rf"(?:{_OCTET}[.]){{3}}{_OCTET}"


def _ipv6_forms() -> str:
    """Return a regular expression for an address: eight groups, the last two maybe as IPv4."""
    forms = [f"(?:{_GROUP}:){{7}}{_GROUP}", f"(?:{_GROUP}:){{6}}{_OLD}"]
    for before in range(8):
        left = f"{_GROUP}(?::{_GROUP}){{{before - 1}}}" if before else ""
        forms.append(
            f"{left}::(?:{_GROUP}(?::{_GROUP}){{0,{6 - before}}})?" if before < 7 else f"{left}::"
        )
        if before < 6:
            forms.append(f"{left}::(?:{_GROUP}:){{0,{5 - before}}}{_OLD}")
    return "|".join(forms)


def _ipv6_digits_sql(address: str) -> str:
    # Names for what is used several times are variables of transform: first the address with an
    # IPv4 part at its end as two groups, then what stands before and after ::, then the groups.
    old = r"^(.*:)([0-9]+)[.]([0-9]+)[.]([0-9]+)[.]([0-9]+)$"
    before, *octets = (f"regexp_extract(a, '{old}', {n})" for n in range(1, 6))
    high, low = (f"hex(cast({octets[n]} AS int) * 256 + {octets[n + 1]})" for n in (0, 2))
    new = f"CASE WHEN a RLIKE '{old}' THEN concat({before}, {high}, ':', {low}) ELSE a END"
    sides = "transform(split(b, '::'), s -> filter(split(s, ':'), g -> g <> ''))"
    zeros = "array_repeat('0', 8 - size(p[0]) - size(p[1]))"
    groups = f"CASE WHEN size(p) = 1 THEN p[0] ELSE concat(p[0], {zeros}, p[1]) END"
    digits = f"array_join(transform({groups}, g -> lpad(lower(g), 4, '0')), '')"
    parts = f"transform(transform(array({address}), a -> {new}), b -> {sides})"
    found = f"transform({parts}, p -> {digits})[0]"
    is_address = f"{address} RLIKE '^(?:{_ipv6_forms()})$'"
    return f"CASE WHEN {is_address} THEN {found} WHEN {address} IS NOT NULL THEN '' END"


UNNAMED = {
    "ipv6 digits": Unnamed(_ipv6_digits, "string", _ipv6_digits_sql),
    "text of fraction": Unnamed(double_text, "string", lambda x: f"cast({x} AS string)"),
    "value of digits": Unnamed(
        lambda digits, base: float(int(digits, base)),
        "double",
        lambda digits, base: f"cast(conv({digits}, {base}, 10) AS double)",
    ),
}
"""By the name of their calls."""
