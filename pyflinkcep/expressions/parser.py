# SPDX-License-Identifier: Apache-2.0
"""Splits SQL conditions into parts on one event and parts on the partial match."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs

from pyflinkcep.conditions import ExpressionCondition, IterativeCondition, RichAndCondition
from pyflinkcep.errors import InvalidArgumentError, counted
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.grammar import Form, Guard, Syntax, divides, guards_of, may_fail, parsed
from pyflinkcep.expressions.numbers import NUMBER_FUNCTIONS, ROUNDINGS, UNITS_US
from pyflinkcep.expressions.tokens import (
    SqlSyntaxError,
    interval_us,
    like_pattern,
    literal_value,
    string_value,
)
from pyflinkcep.expressions.tree import (
    FUNCTIONS,
    Aggregate,
    Call,
    Column,
    Interval,
    Literal,
    MatchExpression,
    Operation,
    Tree,
    called,
    joined,
    quoted_name,
)

_MOST_FIRST, _MOST_LAST = (1 << 31) - 1, 10_000
"""The greatest offsets of first() and last()."""


class Names:
    """Reads the names of one condition: aggregates are about stages, all else about the event."""

    shifts_inside = True
    """Whether an interval is added to a stage's time by Spark, inside the aggregate."""

    def __init__(self, text: str, stage: str = "") -> None:
        self.stage = stage
        self._where = f"stage {stage!r}: " if stage else ""
        self._text = text

    def refused(self, what: str, hint: str) -> InvalidArgumentError:
        """Make the error for something unsupported."""
        return InvalidArgumentError(
            f"{self._where}the condition {self._text!r}: {what}",
            hint,
            problem=what,
            stage=self.stage or None,
            condition=self._text,
        )

    def between(self, start: int, end: int) -> str:
        """Return the text between two positions, in the language of conditions over stages."""
        return self._text[start:end]

    def written(self, part: Syntax) -> str:
        """Return the text of a part."""
        return self.between(part.start, part.end)

    @property
    def text(self) -> str:
        """The text of the condition."""
        return self.between(0, len(self._text))

    # --- the events that parts read

    def aggregates(self, part: Syntax) -> Iterator[Syntax]:
        """Yield the outermost parts that are about the match, in the order of the text."""
        if self._is_aggregate(part):
            yield part
            return
        for operand in part.operands:
            yield from self.aggregates(operand)

    def is_about_event(self, part: Syntax) -> bool:
        """Whether a part reads only the current event."""
        if any(node.form is Form.OPAQUE and node.detail for node in part.walk()):
            return False  # such as first(a.x) IGNORE NULLS
        return next(self.aggregates(part), None) is None

    def _is_aggregate(self, part: Syntax) -> bool:
        return part.form is Form.CALL and part.value in AGGREGATES

    def owners(self, part: Syntax) -> Iterator[str]:
        """Yield the first names of qualified columns outside aggregates."""
        if self._is_aggregate(part):
            return
        if part.form is Form.COLUMN and len(part.value) > 1:
            yield part.value[0]
        for operand in part.operands:
            yield from self.owners(operand)

    def event_sql(self, part: Syntax) -> str:
        """Return a part about the event in Spark's form."""
        return self.written(part)

    # --- aggregates

    def aggregate(self, part: Syntax) -> Aggregate:
        """Return the operand of an aggregate."""
        text, function, operands = self.written(part), part.value, part.operands
        if part.detail:
            hint = "count distinct values in a Python function"
            raise self.refused(f"DISTINCT in {text!r}", hint)
        offset = self._offset(function, operands, text)
        if not operands:
            raise self.refused(f"{text!r} has 0 arguments", self._example(function))
        argument = operands[0].bare()
        is_stage = argument.form in (Form.STAR, Form.COLUMN) and len(argument.value) == 1
        if function == "count" and is_stage:  # its events are counted, not values
            return Aggregate(function, str(argument.value[0]), None, text)
        if any(node.form is Form.OPAQUE or self._is_aggregate(node) for node in argument.walk()):
            raise self.refused(
                f"{text!r} has an aggregate or a query inside",
                "write an expression over the columns of one stage",
            )
        return self._over(function, argument, text, offset)

    def inner(self, aggregate: Aggregate) -> str | None:
        """Return the argument of an aggregate for a function of it."""
        return aggregate.argument

    def _offset(self, function: str, operands: tuple[Syntax, ...], text: str) -> int:
        if len(operands) < 2:
            return 0
        if function not in ("first", "last") or len(operands) > 2:
            raise self.refused(
                f"{text!r} has {counted(len(operands), 'argument')}", self._example(function)
            )
        written = self.written(operands[1])
        if not written.isdecimal():
            meant = "second" if function == "first" else "last but one"
            raise self.refused(
                f"{text!r}: expected a whole number as offset, got {written!r}",
                f"write {function}(stage.column, 1) for the {meant}",
            )
        # last() keeps the value at each offset up to its own, for every partial match.
        most = _MOST_LAST if function == "last" else _MOST_FIRST
        if len(written) > len(str(most)) or int(written) > most:
            raise self.refused(
                f"{text!r}: expected an offset of at most {most}",
                "compare count(...) instead, or look at the events in a Python function",
            )
        return int(written)

    def _over(self, function: str, argument: Syntax, text: str, offset: int) -> Aggregate:
        columns = list(_free_columns(argument))
        if any(node.form is Form.STAR and node.value for node in argument.walk()):
            raise self.refused(f"{text!r}: * is for count", self._example(function))
        stages = list(dict.fromkeys(column.value[0] for column in columns))
        if not columns or any(len(column.value) == 1 for column in columns):
            raise self.refused(
                f"{text!r} does not say which stage it is over", self._example(function)
            )
        if len(stages) > 1:
            raise self.refused(
                f"{text!r} is over the stages {stages}",
                "combine two aggregates, as in avg(a.x) + avg(b.x)",
            )
        pieces, at = [], argument.start
        for column in columns:  # without the stage's name
            pieces.append(self.between(at, column.start))
            at = column.inner
        sql = "".join(pieces) + self.between(at, argument.end)
        condition = AGGREGATES[function].condition
        if condition:
            function, sql = "count", condition.format(f"({sql})")
        return Aggregate(function, stages[0], sql, text, offset)

    @staticmethod
    def _example(function: str) -> str:
        return f"write {function}(stage.column), with the name of a stage"


def _free_columns(part: Syntax, bound: frozenset[str] = frozenset()) -> Iterator[Syntax]:
    """Yield the columns of a part, in the order of the text; no variables of lambdas."""
    if part.form is Form.COLUMN:
        if part.value[0] not in bound:
            yield part
    else:
        bound |= frozenset(part.value if part.form is Form.LAMBDA else ())
        for operand in part.operands:
            yield from _free_columns(operand, bound)


_ALLOWED = (
    "around aggregates there may be + - * / % div ||, comparisons, AND, OR, NOT, IS, IN, LIKE, "
    "BETWEEN, CASE, timestampdiff, intervals, "
    f"{', '.join(FUNCTIONS)}, literals, and anything about the event alone; compute other "
    "functions inside the aggregate, as in last(upper(up.name)), or write a Python function of "
    "(event, ctx)"
)
_SEE = "see Spark's documentation of the function"
_BINARY = (
    "+", "-", "*", "/", "%", "div", "||", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or",
)  # fmt: skip
_UNARY = ("neg", "not", "is null")
_INSIDE = frozenset({
    "cast", "[]", ".", ":", "lower", "lcase", "upper", "ucase", "trim", "ltrim", "rtrim", "btrim",
    "length", "char_length", "substring", "substr", "left", "right", "replace", "round", "bround",
    "floor", "ceil", "ceiling", "year", "quarter", "month", "day", "dayofmonth", "dayofweek",
    "dayofyear", "weekday", "weekofyear", "hour", "minute", "second", "extract", "date_part",
    "date", "to_date", "to_timestamp", "timestamp", "date_trunc", "trunc", "unix_timestamp",
    "unix_seconds", "unix_millis", "unix_micros", "unix_date", "date_add", "date_sub", "dateadd",
    "timestampadd", "add_months", "element_at", "get_json_object", "int", "bigint", "double",
    "string", "md5",
    *NUMBER_FUNCTIONS, "pow", "signum",
})  # fmt: skip
"""Functions that return NULL for NULL, so that f(last(a.x)) is last(f(a.x))."""

_LITERALS = (Form.LITERAL, Form.TYPED, Form.WORD, Form.INTERVAL)
_OF_ONE_EVENT = ("first", "last", "min", "max")
"""Aggregates whose value is that of one of the events."""


class Operators:
    """Converts an expression to parts."""

    def __init__(
        self, names: Names, guards: Mapping[Syntax, tuple[Guard, ...]] | None = None
    ) -> None:
        self._names = names
        self._guards = guards or {}

    def part(self, tree: Syntax) -> Tree:
        """Return a part's meaning; raise InvalidArgumentError if unsupported."""
        node = tree.bare()
        leaf = self._leaf(node)
        if leaf is not None:
            return leaf
        if node.form is Form.CASE:
            return self._case(node)
        if node.form is Form.CALL:
            return self._call(node)
        if node.form is Form.OPERATION:
            return self._operation(node)
        return self._other(node)

    def _leaf(self, node: Syntax) -> Tree | None:
        """Return what is not taken apart; None for everything else."""
        names = self._names
        if names.is_about_event(node):
            constant = self._constant(node)
            if constant is not None:
                return constant
            if self.waits(node):
                return None
            return Column(self._event_sql(node), span=(node.start, node.end))
        return names.aggregate(node) if next(names.aggregates(node), None) is node else None

    def waits(self, node: Syntax) -> bool:
        """Whether a part about the event divides only if something about the match allows it."""
        is_known = self._names.is_about_event
        parts = (part for guard in self._guards.get(node, ()) for part in guard.parts)
        return divides(node) and not all(map(is_known, parts))

    def _event_sql(self, node: Syntax) -> str:
        """Return a part about the event, for all events; NULL for those that do not ask for it."""
        names = self._names
        sql = names.event_sql(node)
        for guard in reversed(self._guards.get(node, ())) if may_fail(node) else ():
            if all(map(names.is_about_event, guard.parts)):
                sql = guard.around(names.event_sql, sql)
        return sql

    def _other(
        self, node: Syntax, what: str = " around an aggregate", hint: str = _ALLOWED
    ) -> Tree:
        """Return a part that is not an operation; here, refuse it."""
        raise self._names.refused(f"{self._written(node)!r}{what}", hint)

    def _written(self, node: Syntax) -> str:
        return self._names.written(node)

    def _made(self, operator: str, node: Syntax, *operands: Tree) -> Operation:
        return Operation(operator, operands, self._written(node), (node.start, node.end))

    def _constant(self, node: Syntax) -> Literal | None:
        """Return a literal as a constant; None for anything else."""
        text = self._written(node)
        if node.form is Form.LITERAL:
            return Literal(literal_value(node.value), text)
        if node.form is Form.INTERVAL:
            length = interval_us(node.value)
            return None if length is None else Literal(Interval(length), text)
        return None

    # --- operators

    def _operation(self, node: Syntax) -> Tree:
        operator, operands = node.value, node.operands
        if operator in ("+", "-"):
            shifted = self._shifted(node)
            if shifted is not None:
                return shifted
        if operator in _BINARY or operator in _UNARY or operator == "in":
            return self._made(operator, node, *map(self.part, operands))
        if operator == "pos":
            return self.part(operands[0])
        if operator == "between":
            value, low, high = map(self.part, operands)
            above = self._made(">=", node, value, low)
            return self._made("and", node, above, self._made("<=", node, value, high))
        if operator in ("is true", "is false"):
            truth = Literal(operator == "is true", operator[3:])
            return self._made("<=>", node, self.part(operands[0]), truth)
        if operator == "like":
            return self._like(node)
        return self._other(node)

    def _like(self, node: Syntax) -> Tree:
        value, pattern = node.operands
        if pattern.form is not Form.LITERAL or pattern.value[0] not in "'\"rR":
            return self._other(
                node,
                ": expected a literal as the pattern",
                "write the pattern as a string, such as 'a%'",
            )
        escape = string_value(node.detail) if node.detail else "\\"
        normal = like_pattern(string_value(pattern.value), escape)
        if normal is None:
            return self._other(
                node,
                ": expected only % and _ to be escaped",
                f"write {escape}%, {escape}_ or {escape}{escape}",
            )
        constant = Literal(normal, self._written(pattern))
        return self._made("like", node, self.part(value), constant)

    def _shifted(self, node: Syntax) -> Tree | None:
        """Return an aggregate of times and a literal interval, computed inside the aggregate."""
        left, right = (side.bare() for side in node.operands)
        if left.form is Form.INTERVAL and node.value == "+":
            left, right = right, left
        if right.form is not Form.INTERVAL or left.form is Form.INTERVAL:
            return None
        if not self._names.shifts_inside and interval_us(right.value) is not None:
            return None
        shift = f"{node.value} {self._written(right)}"
        return self._inside(self.part(left), "(", f") {shift}", _OF_ONE_EVENT)

    # --- CASE and functions

    def _case(self, node: Syntax) -> Operation:
        has_subject, has_else = node.value
        operands = list(node.operands)
        subject = self.part(operands.pop(0)) if has_subject else None
        parts: list[Tree] = []
        last = len(operands) - (1 if has_else else 0)
        for place, operand in enumerate(operands):
            part = self.part(operand)
            if subject is not None and place < last and place % 2 == 0:
                part = self._made("=", operand, subject, part)
            parts.append(part)
        return self._made("case", node, *parts)

    def _call(self, node: Syntax) -> Tree:
        name, operands = node.value, node.operands
        if name in ("timestampdiff", "datediff", "date_diff") and len(operands) == 3:
            return self._difference(node)
        if name == "isnotnull" and len(operands) == 1:
            return self._made("not", node, self._made("is null", node, self.part(operands[0])))
        return self._function(node) if name in FUNCTIONS else self._inside_call(node)

    def _function(self, node: Syntax) -> Tree:
        """Return a function of values of several events; of one event, Spark computes it."""
        operator, least, most = FUNCTIONS[node.value]
        if not least <= len(node.operands) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            given = counted(len(node.operands), "argument")
            return self._other(node, f" has {given}, expected {wanted}", _SEE)
        inside = None if operator == "truncate" else self._inside_one(node)
        if inside is not None:
            return inside
        parts, others = [self.part(node.operands[0])], node.operands[1:]
        if operator not in ROUNDINGS:
            parts += map(self.part, others)
        elif others:
            digits = self._written(others[0]).replace(" ", "")
            if not digits.removeprefix("-").isdecimal():
                return self._inside_call(node)  # such as trunc(last(a.day), 'MM')
            parts.append(Literal(int(digits), digits))
        return called(operator, tuple(parts), self._written(node), (node.start, node.end))

    def _difference(self, node: Syntax) -> Tree:
        unit = str(node.operands[0].value).upper()
        if node.operands[0].form is not Form.WORD or unit not in UNITS_US:
            return self._other(
                node,
                f": expected one of {', '.join(UNITS_US)} as the unit",
                "use days: months and years have no fixed length",
            )
        between = self._made("timestampdiff", node, *map(self.part, node.operands[1:]))
        return attrs.evolve(between, detail=unit)

    def _inside_call(self, node: Syntax) -> Tree:
        """Return a function of one first() or last() and literals, computed inside it."""
        return self._inside_one(node) or self._other(node)

    def _inside_one(self, node: Syntax) -> Tree | None:
        """Return the same; None if it is not one."""
        inner = [o for o in node.operands if not self._names.is_about_event(o)]
        others = [o for o in node.operands if self._names.is_about_event(o)]
        literals = all(o.form in _LITERALS for o in others)
        if node.value not in _INSIDE or len(inner) != 1 or not literals:
            return None
        (operand,) = inner
        before = self._names.between(node.start, operand.start)
        after = self._names.between(operand.end, node.end)
        ends = _OF_ONE_EVENT[:2]
        return self._inside(self.part(operand), f"{before}(", f"){after}", ends)

    def _inside(
        self, part: Tree, before: str, after: str, functions: tuple[str, ...]
    ) -> Aggregate | None:
        """Return an aggregate of a function of its argument; None for other parts."""
        if not isinstance(part, Aggregate) or part.function not in functions:
            return None
        inner = self._names.inner(part)
        if inner is None:
            return None
        return attrs.evolve(part, argument=joined((before, inner, after)))


_OF_UNITS = ("timestampadd", "dateadd", "date_add")
_OPERATORS = ("&", "|", "^", "~", "<<", ">>", ">>>", "rlike", "regexp", "ilike")
_TIMES = ("date", "timestamp", "timestamp_ntz")


class EventReader(Operators):
    """Converts SQL about one event to a tree: what conditions over several refuse is a Call."""

    def __init__(self, text: str, given: Mapping[Syntax, int] | None = None) -> None:
        super().__init__(Names(text))
        self._given = given or {}

    def part(self, tree: Syntax) -> Tree:
        """Return a part's meaning."""
        node = tree
        while node not in self._given and node.form is Form.PAREN:
            node = node.operands[0]
        if node in self._given:
            return Column(None, index=str(self._given[node]), text=self._written(node))
        return super().part(node)

    def _leaf(self, node: Syntax) -> Tree | None:
        if node.form is not Form.COLUMN:
            return self._constant(node)
        first, *fields = node.value
        found: Tree = Column(quoted_name(first), text=first, span=(node.start, node.end))
        for field in fields:
            found = Call(".", (found,), field, self._written(node), (node.start, node.end))
        return found

    def _shifted(self, node: Syntax) -> Tree | None:
        return None

    def _function(self, node: Syntax) -> Tree:
        is_cut = FUNCTIONS[node.value][0] == "truncate"  # which Spark lacks
        return self._function_of_event(node) if is_cut else super()._function(node)

    def _inside_one(self, node: Syntax) -> Tree | None:
        return None  # each part is computed by itself

    def _other(self, node: Syntax, _what: str = "", _hint: str = "") -> Tree:
        if node.form is Form.CALL:
            return self._function_of_event(node)
        if node.form is Form.TYPED:
            return self._typed(node)
        if node.form is Form.OPERATION and node.value in _OPERATORS and not node.detail:
            parts = tuple(map(self.part, node.operands))
            return Call(node.value, parts, "", self._written(node), (node.start, node.end))
        return self._opaque(node)

    def _opaque(self, node: Syntax) -> Call:
        return Call("", (), "", self._written(node), (node.start, node.end))

    def _function_of_event(self, node: Syntax) -> Tree:
        name, operands, detail = node.value, node.operands, node.detail
        if name in _OF_UNITS and len(operands) == 3:
            unit, operands = operands[0], operands[1:]
            detail = str(unit.value).upper()
            if unit.form is not Form.WORD or detail not in UNITS_US:
                return self._opaque(node)
        elif name == ":":
            return self._opaque(node)
        parts = tuple(map(self.part, operands))
        return Call(name, parts, detail, self._written(node), (node.start, node.end))

    def _typed(self, node: Syntax) -> Call:
        type_, text = node.value
        if type_.lower() not in _TIMES:
            return self._opaque(node)
        value = Literal(string_value(text), text)
        return Call("cast", (value,), type_, self._written(node), (node.start, node.end))


_MAY_AGGREGATE = re.compile(rf"\b(?:{'|'.join(AGGREGATES)})\s*\(", re.IGNORECASE)


def sql_condition(text: str, stage: str = "") -> IterativeCondition:
    """Make a condition from a SQL string."""
    if not _MAY_AGGREGATE.search(text):
        return ExpressionCondition(text)
    try:
        tree = parsed(text)
    except SqlSyntaxError:  # Spark knows more
        return ExpressionCondition(text)
    names = Names(text, stage)
    return ExpressionCondition(text) if names.is_about_event(tree) else condition_of(tree, names)


def condition_of(tree: Syntax, names: Names) -> IterativeCondition:
    """Make a condition from SQL that is parsed."""
    operators = Operators(names, guards_of(tree))
    conjuncts = list(_conjuncts(tree))
    own = [p for p in conjuncts if names.is_about_event(p) and not operators.waits(p)]
    rest = [part for part in conjuncts if part not in own]
    answered = ExpressionCondition(" AND ".join(map(names.event_sql, own))) if own else None
    if not rest:
        assert answered is not None
        return answered
    joined = " AND ".join(map(names.written, rest))
    parts = tuple(map(operators.part, rest))
    matching = parts[0] if len(parts) == 1 else Operation("and", parts, joined)
    whole = joined if own else names.text
    owners = (owner for part in rest for owner in names.owners(part))
    expression = MatchExpression(whole, matching, owners, names.stage)
    return expression if answered is None else RichAndCondition(answered, expression)


def column_owners(text: str) -> set[str]:
    """Return the first names of the qualified columns of an SQL string."""
    try:
        tree = parsed(text)
    except InvalidArgumentError:
        return set()
    return set(Names(text).owners(tree))


def _conjuncts(tree: Syntax) -> Iterator[Syntax]:
    bare = tree.bare()
    if bare.form is Form.OPERATION and bare.value == "and":
        yield from _conjuncts(bare.operands[0])
        yield from _conjuncts(bare.operands[1])
    else:
        yield tree


def event_tree(text: str) -> Tree:
    """Return the tree of SQL about one event."""
    return EventReader(text).part(parsed(text))
