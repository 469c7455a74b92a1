# SPDX-License-Identifier: Apache-2.0
"""Programs of match expressions, their slots, and the functions generated of them."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from pyflinkcep.conditions import ExpressionCondition, IterativeCondition
from pyflinkcep.engines.flink.nfa import Expressions, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import ConditionError, InputError
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import Names, condition_of, sql_condition
from pyflinkcep.expressions.program import ALL, CompiledExpressions, Function, Kind, Slot, Type
from pyflinkcep.expressions.tree import (
    WHOLE,
    Aggregate,
    Column,
    Leaf,
    MatchExpression,
    leaves,
    rewritten,
)
from pyflinkcep.match_recognize.expressions import read_expression
from pyflinkcep.match_recognize.flink import flink_condition
from pyflinkcep.match_recognize.names import Names as MatchNames
from pyflinkcep.match_recognize.parser import parse_clause
from pyflinkcep.match_recognize.tokens import Source, tokenize
from pyflinkcep.matching.results import Results
from pyflinkcep.pattern import Pattern
from pyflinkcep.time import MAX_WATERMARK

KINDS = {
    "n": Kind.BIGINT, "m": Kind.BIGINT, "x": Kind.DOUBLE, "y": Kind.DOUBLE,
    "b": Kind.BOOLEAN, "s": Kind.STRING, "t": Kind.TIMESTAMP, "d": Kind.DATE, "1 + 2": Kind.BIGINT,
}  # fmt: skip


def compiled_from(text: str, ansi: bool = True) -> CompiledExpressions:
    """Compile one expression."""
    expression: Any = sql_condition(text)
    return compiled([("here", expression)], KINDS, ansi)


def program(text: str) -> str:
    """Return a program as text."""
    (code,) = compiled_from(text).programs.values()
    return " ".join(op.name if arg is None else f"{op.name}:{_said(arg)}" for op, arg in code)


def _said(argument: Any) -> str:
    return argument.name if isinstance(argument, Type) else repr(argument)


# --- the format


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x > max(a.x)", "FIELD:0 SLOT:0 GT:FLOAT"),
        ("n > max(a.x)", "FIELD:0 INT_TO_FLOAT SLOT:0 GT:FLOAT"),
        ("max(a.n) > 1 + 2", "SLOT:0 FIELD:1 GT:INT"),
        ("max(a.x) > 1", "SLOT:0 FLOAT:1.0 GT:FLOAT"),
        ("max(a.n) / 2 > 0.5", "SLOT:0 INT_TO_FLOAT FLOAT:2.0 DIV:FLOAT FLOAT:0.5 GT:FLOAT"),
        ("avg(a.n) > 0", "SLOT:0 SLOT:1 INT_TO_FLOAT DIV:FLOAT FLOAT:0.0 GT:FLOAT"),
        ("last(a.s) = 'q'", "SLOT:0 TEXT:'q' EQ:TEXT"),
        ("last(a.t) < t", "SLOT:0 FIELD:0 LT:INT"),
        ("b or last(a.b)", "FIELD:0 JUMP_IF_TRUE:2 SLOT:0 OR"),
        ("not (last(a.b) and b)", "SLOT:0 JUMP_IF_FALSE:2 FIELD:0 AND NOT"),
        ("last(a.n) is null", "SLOT:0 IS_NULL"),
        ("-last(a.n) % 3 <=> null", "SLOT:0 NEG:INT INT:3 MOD:INT NULL EQ_NULLSAFE:INT"),
        (
            "coalesce(first(a.n), 0.5, n) > 1",
            "SLOT:1 INT_TO_DECIMAL:0 JUMP_IF_NOT_NULL:4 DECIMAL:'0.5' JUMP_IF_NOT_NULL:2 "
            "FIELD:0 INT_TO_DECIMAL:0 DECIMAL:'1' GT:DECIMAL",
        ),
        (
            "last(a.n) * 0.25 = 0.5D",
            "SLOT:0 INT_TO_DECIMAL:0 DECIMAL:'0.25' MUL:DECIMAL DECIMAL_TO_FLOAT FLOAT:0.5 EQ:FLOAT",
        ),
        ("n + last(a.n, 1) > first(a.n, 2)", "FIELD:0 SLOT:1 ADD:INT SLOT:3 GT:INT"),
        ("abs(last(a.x)) > 1", "SLOT:0 ABS:FLOAT FLOAT:1.0 GT:FLOAT"),
        ("last(a.n) div 2 = 1", "SLOT:0 INT:2 INT_DIV:INT INT:1 EQ:INT"),
        ("last(a.s) || 'x' like 'a%'", "SLOT:0 TEXT:'x' CONCAT LIKE:'a%'"),
        ("last(a.n) in (1, n)", "SLOT:0 INT:1 EQ:INT JUMP_IF_TRUE:4 SLOT:0 FIELD:0 EQ:INT OR"),
        (
            "case when last(a.b) then n else 1 end > 0",
            "SLOT:0 JUMP_UNLESS:2 FIELD:1 JUMP:1 INT:1 INT:0 GT:INT",
        ),
        ("greatest(last(a.n), n) > 1", "SLOT:0 FIELD:0 GREATEST:INT INT:1 GT:INT"),
        ("t - last(a.t) < interval '5' minute", "FIELD:0 SLOT:0 SUB:INT INT:300000000 LT:INT"),
        (
            "timestampdiff(SECOND, last(a.t), t) < 5",
            "FIELD:0 SLOT:0 SUB:INT INT:1000000 INT_DIV:INT INT:5 LT:INT",
        ),
        ("datediff(d, last(a.d)) = 1", "FIELD:0 SLOT:0 SUB:INT INT:1 EQ:INT"),
        (
            "d - last(a.d) > interval 1 day",
            "FIELD:0 INT:86400000000 MUL:INT SLOT:0 "
            "INT:86400000000 MUL:INT SUB:INT INT:86400000000 GT:INT",
        ),
    ],
)
def test_programs(text: str, expected: str) -> None:
    """Expressions become the instructions that the format says, numbers converted explicitly."""
    assert program(text) == expected


def test_fields_and_slots_are_shared() -> None:
    """Equal SQL is one field, equal accumulators are one slot, across the pattern."""
    texts = ["x > avg(a.x) and count(a) > 1", "sum(a.x) > first(a.n)", "x < count(a.x)"]
    conditions: Any = [("here", sql_condition(text)) for text in texts]
    expressions = compiled(conditions, KINDS, True)

    assert [field.sql for field in expressions.fields] == ["x", "n"]
    assert expressions.slots == (
        Slot(Function.SUM, "a", 0, Type.FLOAT),
        Slot(Function.COUNT, "a", 0, Type.INT),
        Slot(Function.COUNT, "a", ALL, Type.INT),
        Slot(Function.FIRST, "a", 1, Type.INT, 2),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("avg(a.x)", "expected boolean, got double"),
        ("sum(a.s) > 1", "'sum(a.s)' needs bigint or double, got string"),
        ("avg(a.b) > 1", "needs bigint or double, got boolean"),
        ("last(a.s) > 1", "puts string and bigint together"),
        ("last(a.t) > d", "puts timestamp and date together"),
        ("last(a.b) = 1", "puts boolean and bigint together"),
        ("last(a.t) + n > t", "puts timestamp and bigint together"),
        ("last(a.n) or b", "needs boolean, got bigint"),
        ("not last(a.x)", "needs boolean, got double"),
        ("coalesce(last(a.x), s) > 1", "puts double and string together"),
        ("-last(a.s) > 1", "needs bigint or double, got string"),
        ("last(a.x) div 2 > 1", "needs bigint, got double"),
        ("last(a.n) like 'a%'", "needs string, got bigint"),
        ("last(a.s) || 1 = 'x'", "needs string, got bigint"),
        ("t - max(a.t) > interval 1 day", "'max(a.t)' is not one event's time"),
        ("coalesce(last(a.t), t) + interval 2 days > t", "together"),
        ("case when last(a.n) then 1 end = 1", "needs boolean, got bigint"),
        ("if(b, last(a.s), 1) = 's'", "puts string and bigint together"),
    ],
)
def test_types_that_do_not_go_together_are_refused(text: str, said: str) -> None:
    """The message names the condition and the part."""
    with pytest.raises(InputError) as caught:
        compiled_from(text)

    assert said in caught.value.message
    assert caught.value.message.startswith(f"here: the condition {text!r}")


# --- random expressions

INTS = st.sampled_from([None, 0, 1, -1, 2, 3, 7, 2**63 - 1, -(2**63)])
FLOATS = st.sampled_from([None, 0.0, -0.0, 0.5, -1.0, 3.0, math.nan, math.inf, -math.inf, 1e308])
EVENTS = st.fixed_dictionaries(
    {"n": INTS, "m": INTS, "x": FLOATS, "y": FLOATS, "b": st.sampled_from([None, 0, 1])}
)


@st.composite
def numbers(draw: Any, depth: int = 2) -> str:
    """Return an expression that is a number."""
    kinds = ["aggregate", "aggregate", "column", "literal", "offset"]
    match draw(st.sampled_from(kinds + ["operator"] * 3 * (depth > 0))):
        case "aggregate":
            function = draw(
                st.sampled_from([name for name, of in AGGREGATES.items() if not of.condition])
            )
            stage = draw(st.sampled_from(["a", "c", "match"]))
            return f"{function}({stage}.{draw(st.sampled_from('nmxy'))})"
        case "offset":
            place = f"{draw(st.sampled_from('ac'))}.{draw(st.sampled_from('nmxy'))}"
            return f"{draw(st.sampled_from(['first', 'last']))}({place}, {draw(st.integers(0, 3))})"
        case "column":
            return str(draw(st.sampled_from("nmxy")))
        case "literal":
            return str(draw(st.sampled_from(["0", "1", "-2", "0.5", "null"])))
    left, right = draw(numbers(depth - 1)), draw(numbers(depth - 1))
    forms = ["({} {op} {})"] * 5 + ["coalesce({}, {})", "-({})"]
    forms += ["round({} * 0.5D, 1)", "floor({} * 1D)", "power({}, {})", "pmod({}, {})", "sqrt({})"]
    forms += ["sign({})", "abs({})", "greatest({}, {})", "least({}, {})", "(count(a) div max(a.n))"]
    forms += ["case when {} > 1 then {} when b then 1 end", "if(last(a.b), {}, {})"]
    form = draw(st.sampled_from(forms))
    return str(form.format(left, right, op=draw(st.sampled_from("+-*/%"))))


@st.composite
def truths(draw: Any, depth: int = 2) -> str:
    """Return an expression that is a boolean."""
    if depth and draw(st.booleans()):
        left, right = draw(truths(depth - 1)), draw(truths(depth - 1))
        return str(draw(st.sampled_from([f"({left} and {right})", f"({left} or {right})",
                                         f"(not {left})"])))  # fmt: skip
    one, two, three = (draw(numbers()) for _ in range(3))
    sign = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
    return str(draw(st.sampled_from([f"({one} {sign} {two})"] * 4 + [
        f"({one} is null)", f"({one} between {two} and {three})", "b", "last(a.b)",
    ])))  # fmt: skip


@st.composite
def compiled_expressions(draw: Any) -> tuple[CompiledExpressions, list[str]]:
    """Return a compiled expression whose parts about one event are plain columns."""
    text = f"coalesce(max(a.n), 0) >= 0 and last(c.m) is null or {draw(truths())}"
    expression: Any = sql_condition(text)
    parts = [part for part in expression.event_parts() if part not in KINDS]
    kinds = {**KINDS, **{part: _kind_of(part) for part in parts}}
    try:
        return compiled([("here", expression)], kinds, draw(st.booleans())), parts
    except InputError:  # calculates with decimals
        reject()


def _kind_of(part: str) -> Kind:
    """Guess the kind of a part about one event; any will do that goes with the rest."""
    if part.startswith(("if", "case", "abs", "greatest", "least", "coalesce", "-")):
        return Kind.DOUBLE
    logical = any(word in part for word in ("=", "<", ">", "not", " and", " or ", " is "))
    return Kind.BOOLEAN if logical else Kind.DOUBLE


@given(
    compiled_expressions(), st.lists(st.tuples(st.sampled_from("acz"), EVENTS), max_size=5), EVENTS
)
def test_slots_are_kept_event_by_event(
    given_: Any, taken: list[tuple[str, dict[str, Any]]], event: dict[str, Any]
) -> None:
    """Slots that each event updates are those of all events at once."""
    expressions, parts = given_
    more = {part: 1 if _kind_of(part) is Kind.BOOLEAN else 2.5 for part in parts}

    def fields(row: dict[str, Any]) -> list[Any]:
        return [{**row, **more}[field.sql] for field in expressions.fields]

    functions = generated(expressions)
    (holds,) = functions.conditions.values()
    events = [(stage, fields(row)) for stage, row in taken]

    def incremental() -> bool:
        slots = functions.initial
        for stage, row in events:
            update = functions.updates.get(stage, functions.other)
            slots = slots if update is None else update(slots, row)
        return holds(fields(event), slots)

    def anew() -> bool:
        return holds(fields(event), accumulated(expressions, events))

    assert outcome(incremental) == outcome(anew)


def outcome(function: Any) -> object:
    """Return the result, or that there is an error."""
    try:
        return function()
    except ArithmeticError:
        return "error"


# --- in the automaton


class Counted:
    """The fields of events that are numbers, and how often they were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, event: Any) -> tuple[Any, ...]:
        self.asked += 1
        return (event,)


def matches(
    pattern: Pattern, expressions: CompiledExpressions, events: list[Any], fields: Any
) -> list[dict[str, list[Any]]]:
    """Return the matches of a pattern over numbers."""
    generated_ = Expressions(generated(expressions), fields)
    rules = CepOperator(NFACompiler.compile(pattern), expressions=generated_)
    results, state = Results(rules.nfa.stages, False), rules.new_key()
    rules.process_events(None, state, list(range(1, len(events) + 1)), events, results)
    rules.advance_time(None, state, MAX_WATERMARK, results)
    return [match for _, _, match in results.take().results()]


def loop_then(last: str) -> Pattern:
    """Return the pattern: 0, ones directly after it, then a 2 of which an expression holds."""
    ones = Pattern.begin("s").where(lambda n: n == 0).next("up").where(lambda n: n == 1)
    return ones.oneOrMore().consecutive().next("b").where(lambda n: n == 2).where(last)


def test_loops_are_not_walked() -> None:
    """A condition asked at every step of a loop looks at each event twice: before and after."""
    text = "n >= coalesce(max(up.n), 0)"
    pattern = Pattern.begin("s").where(lambda n: n == -2).next("up").where(text)
    fields = Counted()
    found = matches(
        pattern.oneOrMore().consecutive(), compiled_from(text), [-2, *range(300)], fields
    )

    assert len(found) == 300
    assert fields.asked == 300 + 299


def test_slots_are_made_without_recursion() -> None:
    """The first question about a long way computes all of it."""
    text = "n < count(up.n)"
    size, fields = 20_000, Counted()
    found = matches(loop_then(text), compiled_from(text), [0, *([1] * size), 2], fields)

    assert [len(match["up"]) for match in found] == [size]
    assert fields.asked == 1 + size


@pytest.mark.parametrize(
    "text",
    [
        f"{' + '.join(['last(a.x)'] * 200)} = 200",
        f"{'coalesce(' * 50}last(a.x){', 7)' * 50} = 1",
        f"{'case when last(a.x) > 0 then ' * 50}last(a.x){' else 7 end' * 50} = 1",
        f"{'not ' * 50}(last(a.x) = 1)",
        f"{'abs(' * 50}last(a.x){')' * 50} = 1",
    ],
)
def test_deep_expressions_are_several_functions(text: str) -> None:
    """Python's own limit of nested parentheses is none for expressions."""
    found = sql_condition(text, "b")
    assert isinstance(found, MatchExpression)
    expressions = compiled([("b", found)], {"x": Kind.BIGINT}, True)
    functions = generated(expressions)
    (holds,) = functions.conditions.values()

    assert holds((), functions.updates["a"](functions.initial, (1,)))


def test_errors_name_stage_and_time() -> None:
    """Overflow and division by zero are errors of the condition, where they are errors."""
    text = "n / last(a.n) > 1"
    pattern = Pattern.begin("a").next("b").where(text)

    with pytest.raises(ConditionError) as caught:
        matches(pattern, compiled_from(text), [0, 1], lambda n: (n,))
    assert "the condition 'n / last(a.n) > 1' failed. division by zero" in str(caught.value)
    assert (caught.value.stage, caught.value.timestamp_ms) == ("b", 2)
    assert matches(pattern, compiled_from(text, ansi=False), [0, 1], lambda n: (n,)) == []


# --- conditions in a language in which stages are known, as in MATCH_RECOGNIZE


def with_event(part: Leaf) -> Leaf:
    """Return a value for which the event at hand is one of stage a."""
    own = isinstance(part, Aggregate) and part.stage in ("a", WHOLE)
    return attrs.evolve(part, with_event=True) if own else part


def defined(text: str) -> MatchExpression:
    """Return the condition of stage a, whose event at hand counts."""
    condition = condition_of(parsed(text), Names(text, "a"))
    assert isinstance(condition, MatchExpression)
    return MatchExpression(text, rewritten(condition.tree, with_event), (), "a")


def of_clause(text: str) -> IterativeCondition:
    """Return the condition of the variable A of a clause with Flink's meaning."""
    columns = ("n", "m", "items")
    source = Source(f"PATTERN (A C) DEFINE A AS {text}")
    clause = parse_clause(tokenize(source), source, len(source.text))
    names = MatchNames.of(clause, source, columns, None, standard=False)
    return flink_condition(read_expression(clause.definitions[0].condition, names, "A"), "A")


def once_taken(part: Leaf) -> Aggregate:
    """Return a value in terms of a match that has taken the event at hand."""
    if isinstance(part, Column):
        return Aggregate("last", WHOLE, part.sql)
    return attrs.evolve(part, with_event=False)


@st.composite
def aggregates(draw: Any) -> str:
    """Return an aggregate of MATCH_RECOGNIZE, in which the event at hand may count."""
    where = draw(st.sampled_from(["a.", "c.", "match."])) + draw(st.sampled_from("nmxy"))
    function = draw(st.sampled_from([name for name, of in AGGREGATES.items() if not of.condition]))
    offset = f", {draw(st.integers(0, 3))}" if function in ("first", "last") else ""
    return str(
        draw(st.sampled_from([f"{function}({where}{offset})", f"last({where})", "count(match)"]))
    )


@given(
    st.lists(aggregates(), min_size=3, max_size=3),
    st.lists(st.tuples(st.sampled_from("acz"), EVENTS), max_size=5),
    EVENTS,
)
def test_the_event_at_hand_counts(
    drawn: list[str], taken: list[tuple[str, dict[str, Any]]], event: dict[str, Any]
) -> None:
    """What is about the own stage, or about the match, is as if the event were taken already."""
    one, two, three = drawn
    text = f"({one} <=> {two} or {one} > {three}) and count(c.n) >= 0"
    condition = defined(text)
    expressions = compiled([("here", condition)], KINDS, False)
    without = MatchExpression(text, rewritten(condition.tree, once_taken))
    plain = compiled([("here", without)], KINDS, False)

    def fields(of: CompiledExpressions, row: dict[str, Any]) -> list[Any]:
        return [row.get(field.sql) for field in of.fields]

    (expected,) = generated(plain).conditions.values()
    (holds,) = generated(expressions).conditions.values()
    slots = accumulated(expressions, [(stage, fields(expressions, row)) for stage, row in taken])
    after = [(stage, fields(plain, row)) for stage, row in [*taken, ("a", event)]]

    wanted = expected([], accumulated(plain, after))
    assert (holds(fields(expressions, event), slots), wanted) == (wanted, wanted)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("last(A.n) > 3", "n > 3"),
        ("LAST(A.n + 1, 0) * 2 = last(m)", "(n + 1) * 2 = m"),
        ("exists(last(A.items), a -> a.n > last(A.n))", "exists(items, a -> a.n > n)"),
        ("PREV(A.n, 0) > 3 AND n < 5", "n > 3 AND n < 5"),
    ],
)
def test_the_last_event_that_counts_is_the_one_at_hand(text: str, sql: str) -> None:
    """last(own.x) reaches Spark as x: Spark's own last would be an aggregate over all events."""
    condition = of_clause(text)

    assert isinstance(condition, ExpressionCondition)
    assert condition.text == sql


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A.n > AVG(C.n)", [("n", None, False), ("n", "C", False)]),
        ("COUNT(*) > m", [(None, WHOLE, True), ("m", None, False)]),
        ("FIRST((n), 2) < SUM(A.n + 1)", [("n", WHOLE, True), ("n + 1", "A", True)]),
        ("PREV(LAST(C.m, 1), 0) = m", [("m", "C", False), ("m", None, False)]),
    ],
)
def test_values_of_a_clause_are_those_of_stages(text: str, read: list[Any]) -> None:
    """By the text of each argument stored state knows its values."""
    condition = of_clause(text)

    assert isinstance(condition, MatchExpression)
    assert condition.text == text.replace("PREV(LAST(C.m, 1), 0)", "LAST(C.m, 1)")
    assert [
        (part.sql, None, False)
        if isinstance(part, Column)
        else (part.argument, part.stage, part.with_event)
        for part in leaves(condition.tree)
    ] == read


# --- slots of match expressions, each computed anew from all events that were taken


def order(a: Any, b: Any) -> int:
    """Compare as Spark does: NaN is equal to itself and greater than all other numbers."""
    if isinstance(a, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) - math.isnan(b)
    return (a > b) - (a < b)


def fitted(number: int, ansi: bool) -> int:
    """Let an integer overflow."""
    if -(2**63) <= number < 2**63:
        return number
    if ansi:
        raise OverflowError
    return (number + 2**63) % 2**64 - 2**63


def accumulated(expressions: CompiledExpressions, events: Any) -> tuple[Any, ...]:
    """Return every slot, from all events (stage, fields)."""
    return tuple(_slot(expressions, slot, events) for slot in expressions.slots)


def _slot(expressions: CompiledExpressions, slot: Slot, events: Any) -> Any:
    seen = [fields for stage, fields in events if slot.stage in (stage, WHOLE)]
    if slot.field == ALL:
        return len(seen)
    given = [fields[slot.field] for fields in seen]
    if slot.type == Type.FLOAT and expressions.fields[slot.field].kind.type == Type.INT:
        given = [None if v is None else float(v) for v in given]
    if slot.function in (Function.FIRST, Function.LAST):
        in_order = given if slot.function is Function.FIRST else given[::-1]
        return in_order[slot.offset] if slot.offset < len(given) else None
    known = [v for v in given if v is not None]
    if slot.function is Function.COUNT:
        return len(known)
    if not known:
        return None
    if slot.function is Function.LIST:
        return tuple(known)
    if slot.function in (Function.MEAN, Function.MOMENT):
        mean, moment = known[0], known[0] * (known[0] - known[0])
        for count, value in enumerate(known[1:], 2):
            far, mean = value - mean, mean + (value - mean) / count
            moment += far * (far - far / count)
        return mean if slot.function is Function.MEAN else moment
    found = known[0]
    for value in known[1:]:
        if slot.function is Function.SUM:
            found = found + value
            found = fitted(found, expressions.ansi) if slot.type == Type.INT else found
        else:
            wanted = -1 if slot.function is Function.MIN else 1
            found = value if order(value, found) == wanted else found
    return found
