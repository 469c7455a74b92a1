# SPDX-License-Identifier: Apache-2.0
"""SQL conditions are taken apart: what looks at one event, and what at the partial match."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pyflinkcep import InvalidArgumentError, MalformedPatternException, NotSupportedError, Pattern
from pyflinkcep.conditions import ExpressionCondition, RichAndCondition
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import InputError
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.evaluator import compared_in_match, compared_in_sql
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import column_owners, sql_condition
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tokens import SqlSyntaxError
from pyflinkcep.expressions.tree import MatchExpression


def taken_apart(text: str) -> tuple[str, str, list[str], list[str]]:
    """Return (what Spark answers, the match expression, its parts about one event, its stages)."""
    condition: Any = sql_condition(text)
    answered = ""
    if isinstance(condition, RichAndCondition):
        own, condition = condition.nestedConditions
        assert isinstance(own, ExpressionCondition)
        answered = own.text
    assert isinstance(condition, MatchExpression)
    return answered, condition.text, list(condition.event_parts()), list(condition.stages())


@pytest.mark.parametrize(
    ("text", "answered", "rest", "parts", "stages"),
    [
        ("price > avg(up.price)", "", "price > avg(up.price)", ["price", "price"], ["up"]),
        (
            "type = 1 AND price > avg(up.price)",
            "type = 1", "price > avg(up.price)", ["price", "price"], ["up"],
        ),
        (
            "(a = 1 and (x or y)) and max(up.z) > 1 and (z or min(up.z) < 0)",
            "a = 1 AND (x or y)",
            "max(up.z) > 1 AND (z or min(up.z) < 0)", ["z", "z", "z"], ["up", "up"],
        ),
        ("a = 1 or max(up.z) > 1", "", "a = 1 or max(up.z) > 1", ["a = 1", "z"], ["up"]),
        (
            "abs(price - 3) * 2 > last(up.price * up.volume)",
            "", "abs(price - 3) * 2 > last(up.price * up.volume)",
            ["abs(price - 3) * 2", "price * volume"], ["up"],
        ),
        ("count(up) > 1 or count(up.*) > 1", "", None, [], ["up", "up"]),
        ("COUNT(up.x) > 1", "", None, ["x"], ["up"]),
        ("max(cast(up.x as double)) > 0.5", "", None, ["cast(x as double)"], ["up"]),
        ("max(`a b`.`c d`.e) > 1", "", None, ["`c d`.e"], ["a b"]),
        ("max(up.a.b.c.d.e) > 1", "", None, ["a.b.c.d.e"], ["up"]),
        ("x * 0.5 > max(up.x / .25)", "", None, ["x * 0.5", "x / .25"], ["up"]),
        ("x between 1 and max(up.y)", "", None, ["x", "x", "y"], ["up"]),
        ("x not between min(up.y) and 9", "", None, ["x", "y", "x"], ["up"]),
        ("coalesce(last(up.y), x, -1) = 1", "", None, ["y", "x"], ["up"]),
        ("last(up.y) is not null and not last(up.y) = 1", "", None, ["y", "y"], ["up", "up"]),
        ("max(aggregate(up.xs, 0, (s, x) -> s + x)) > 1", "", None,
         ["aggregate(xs, 0, (s, x) -> s + x)"], ["up"]),
        ("exists(xs, x -> x.y > 3) <=> last(up.b)", "", None,
         ["exists(xs, x -> x.y > 3)", "b"], ["up"]),
        # Spark gets its part as it was written, whatever that is
        ("array(n,2)[0] = 3 AND count(z) >= 0", "array(n,2)[0] = 3", "count(z) >= 0", [], ["z"]),
        ("n >>> 1 = 2 and count(z) > 0", "n >>> 1 = 2", "count(z) > 0", [], ["z"]),
        ("substring(s from 1 for 1) = 'a' or count(z) > 0", "", None,
         ["substring(s from 1 for 1) = 'a'"], ["z"]),
        ("parse_json(js):n::int > last(z.x)", "", None, ["parse_json(js):n::int", "x"], ["z"]),
        ("n * 0.1 = 0.3 or count(z) > 0", "", None, ["n * 0.1 = 0.3"], ["z"]),
        ("a /* b */ > 1 -- c\n and count(z) > 0", "a /* b */ > 1", "count(z) > 0", [], ["z"]),
        ("max(substring(z.s from z.n for 1)) > s", "", None,
         ["substring(s from n for 1)", "s"], ["z"]),
        # a function of one event's value is computed inside
        ("cast(last(up.x) as int) > 1", "", None, ["cast((x) as int)"], ["up"]),
        ("last(up.x + 1)::int > 1", "", None, ["(x + 1)::int"], ["up"]),
        ("upper(first(up.s, 2)) = 'A'", "", None, ["upper((s))"], ["up"]),
        ("last(up.ts) + interval '1' month > ts", "", None,
         ["(ts) + interval '1' month", "ts"], ["up"]),
        ("timestampadd(MINUTE, 5, last(up.ts)) > ts", "", None,
         ["timestampadd(MINUTE, 5, (ts))", "ts"], ["up"]),
        ("sum(x) over (order by ts) > max(up.y)", "", None,
         ["sum(x) over (order by ts)", "y"], ["up"]),
    ],
)  # fmt: skip
def test_conditions_are_split(
    text: str, answered: str, rest: str | None, parts: list[str], stages: list[str]
) -> None:
    """A top-level AND is split; what looks at the event alone is computed as a whole by Spark."""
    assert taken_apart(text) == (answered, rest or text, parts, stages)


@pytest.mark.parametrize(
    "text",
    [
        "price > 3",
        "first = 1 and count > 2",
        "max_by(x, y) > 1",
        "sum(x) over (partition by y) > 1",
        "x > (select max(y) from t)",
        "max(up.x > 1",
        "max(up.x) > 1 as y",
        "max(up.x) > 1; select 1",
        "xs.max(1)[",
    ],
)
def test_other_strings_stay_what_they_are(text: str) -> None:
    """Without an aggregate over a stage, or where it cannot be read, the text is Spark's."""
    condition = sql_condition(text)

    assert (type(condition), repr(condition)) == (ExpressionCondition, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max(price) > 1", "'max(price)' does not say which stage it is over"),
        ("max(up.x + y) > 1", "does not say which stage it is over"),
        ("sum(1) > 1", "does not say which stage it is over"),
        ("count(*) > 1", "does not say which stage it is over"),
        ("sum(up.*) > 1", "'sum(up.*)': * is for count"),
        ("max(a.x + b.x) > 1", r"is over the stages ['a', 'b']"),
        ("count(distinct up.x) > 1", "DISTINCT in 'count(distinct up.x)'"),
        (
            "first(up.x, true) > 1",
            "'first(up.x, true)': expected a whole number as offset, got 'true'",
        ),
        ("sum() > 1", "has 0 arguments"),
        ("max(min(up.x)) > 1", "has an aggregate or a query inside"),
        ("max(lag(up.x) over (order by up.y)) > 1", "has an aggregate or a query inside"),
        ("max(up.x) filter (where up.y) > 1", "filter (where up.y)' around an aggregate"),
        ("first(up.x) ignore nulls > 1", "ignore nulls' around an aggregate"),
        ("sin(max(up.x)) > 1", "'sin(max(up.x))' around an aggregate"),
        ("cast(max(up.x) as int) > 1", "around an aggregate"),
        ("round(last(up.x), n) > 1", "around an aggregate"),
        ("max(up.x) in (select 1)", "around an aggregate"),
        ("last(up.s) rlike 'x'", "around an aggregate"),
        ("last(up.s) like s", "expected a literal as the pattern"),
        (r"last(up.s) like 'a\\x'", "expected only % and _ to be escaped"),
        ("timestampdiff(MONTH, last(up.t), t) > 1", "expected one of MICROSECOND"),
        ("abs(last(up.x), 1) > 1", "has 2 arguments, expected 1"),
        ("last(up.x, -1) > 1", "expected a whole number as offset, got '-1'"),
        ("last(up.x, 1000000000) > 1", "expected an offset of at most 10000"),
        ("first(up.x, 9999999999) > 1", "expected an offset of at most 2147483647"),
        (f"last(up.x, {'9' * 5000}) > 1", "expected an offset of at most 10000"),
        ("sum(up.x, 1) > 1", "has 2 arguments"),
    ],
)
def test_what_cannot_be_is_refused(text: str, said: str) -> None:
    """The builder refuses it at once, naming stage, condition and what to write."""
    with pytest.raises(InvalidArgumentError) as caught:
        Pattern.begin("up").where(text)

    assert str(caught.value).startswith(f"stage 'up': the condition {text!r}: ")
    assert said in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("max(upp.x) > 1", "looks at stage 'upp': expected one of ['a', 'up', 'b']", "'up'?"),
        ("max(n.x) > 1", "looks at stage 'n', which takes no events", "other than a NOT stage"),
        ("max(a.x) > up.x", "has a column of stage 'up' outside an aggregate", "last(up."),
    ],
)
def test_stages_are_checked_when_the_pattern_is_compiled(text: str, said: str, hint: str) -> None:
    """Only the whole pattern tells which stages there are; groups count."""
    group = Pattern.begin("up").where(text).next("b")
    pattern = Pattern.begin("a").notFollowedBy("n").followedBy(group)
    if "n." not in text:
        pattern = Pattern.begin("a").followedBy(group)

    with pytest.raises(MalformedPatternException) as caught:
        NFACompiler.compile(pattern)
    assert said in caught.value.message.replace("'a', 'n', ", "'a', ")
    assert hint in (caught.value.hint or "")


def test_the_whole_match_is_no_stage() -> None:
    """``match`` stands for all stages, so none can have that name where it is used."""
    pattern = Pattern.begin("a").next("b").where("x > avg(match.x)")
    assert NFACompiler.compile(pattern).atoms

    with pytest.raises(MalformedPatternException, match="means the whole match"):
        NFACompiler.compile(Pattern.begin("match").next("b").where("x > avg(match.x)"))


def test_struct_columns_are_no_stages() -> None:
    """A dot outside of an aggregate is no mistake where no stage has that name."""
    pattern = Pattern.begin("a").where("address.zip = last(a.address.zip)")

    assert [atom.expression for atom in NFACompiler.compile(pattern).atoms] == [
        "address.zip = last(a.address.zip)"
    ]
    assert column_owners("x.y > 3 and f(z.w.v) and u") == {"x", "z"}


def test_expressions_travel() -> None:
    """They are pickled as data and look like their text."""
    condition = sql_condition("price > avg(up.price)")
    copy = pickle.loads(pickle.dumps(condition))

    assert (repr(copy), copy.tree) == ("price > avg(up.price)", condition.tree)  # type: ignore[attr-defined]


def test_only_spark_evaluates_them() -> None:
    """Asked for itself, without an engine, it is refused with what to write instead."""
    condition = Pattern.begin("a").next("b").where("x > max(a.x)").getCondition()

    with pytest.raises(NotSupportedError, match=r"'x > max\(a.x\)' can only be evaluated on Spark"):
        condition.filter({"x": 1}, None)  # type: ignore[arg-type]


def test_errors_carry_facts() -> None:
    """Nobody has to read a message: problem, part, stage, condition and span are fields."""
    with pytest.raises(SqlSyntaxError) as syntax:
        parsed("a >\n> 1")
    assert (syntax.value.problem, syntax.value.span) == ("expected a value, got '>'", (4, 5))
    with pytest.raises(InvalidArgumentError) as refused:
        Pattern.begin("up").next("b").where("sum(x) > 1")
    error = refused.value
    assert (error.stage, error.condition) == ("b", "sum(x) > 1")
    assert error.problem == "'sum(x)' does not say which stage it is over"
    condition: Any = sql_condition("x > last(up.s)", "b")
    with pytest.raises(InputError) as types:
        compiled([("here", condition)], {"x": Kind.BIGINT, "s": Kind.STRING}, True)
    facts = types.value.stage, types.value.part, types.value.problem
    assert facts == ("b", "x > last(up.s)", "puts bigint and string together")


@pytest.mark.parametrize(
    "text",
    ["(" * 2000 + "last(up.n) > 0" + ")" * 2000, "last(up.n) > 0" + " + 1" * 3000,
     "not " * 2000 + "last(up.n) > 0", "n" + "[0]" * 2000 + " > 0", "abs(" * 900 + "n" + ")" * 900],
)  # fmt: skip
def test_what_is_nested_too_deep_is_refused_by_name(text: str) -> None:
    """Python's stack is never exhausted, whatever nests: parentheses, operators, functions."""
    with pytest.raises(SqlSyntaxError, match="is nested more than 60 deep"):
        parsed(text)


@pytest.mark.slow
def test_chains_of_and_and_or_have_no_end() -> None:
    """A chain is not deep, and keeps its order and its places in the text."""
    for word in ("or", "and"):
        text = f" {word} ".join(f"last(up.n) = {number}" for number in range(1500))
        condition: Any = sql_condition(text)
        assert compiled([("here", condition)], {"n": Kind.BIGINT}, True).programs
    tree = parsed("a or b or c")
    assert [(part.start, part.end) for part in tree.walk()] == [
        (0, 11),
        (0, 6),
        (0, 1),
        (5, 6),
        (10, 11),
    ]


# --- which values a condition compared


EVENT = {"kind": "b", "price": 5, "note": None, "tag": ["x"]}
TAKEN = {"up": [{"price": 2}, {"price": 4}], "low": [{"price": 1}]}
ORDER = [*TAKEN["low"], *TAKEN["up"]]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("kind = 'a'", [("kind = 'a'", False, {"kind": "b"})]),
        (
            "price > 3 AND (kind = 'a' OR note IS NULL)",
            [
                ("price > 3", True, {"price": 5}),
                ("(kind = 'a' OR note IS NULL)", True, {"kind": "b", "note": None}),
            ],
        ),
        ("price * 2 >= 11 - price", None),
        ("note > 1", [("note > 1", False, {"note": None})]),
        ("price BETWEEN 6 AND 9", None),
        ("NOT price IN (1, 5)", None),
        ("upper(kind) LIKE 'A%'", None),
    ],
)
def test_each_part_of_a_condition_says_what_it_compared(
    text: str, parts: list[tuple[str, bool, dict[str, Any]]] | None
) -> None:
    """AND is taken apart; each part has its answer and the values beside its literals."""
    found = compared_in_sql(text, EVENT)

    if parts is None:
        assert found
        assert all(part.values for part in found)
    else:
        own = [(part.text.strip("()"), part.holds, dict(part.values)) for part in found]
        assert own == [(text.strip("()"), holds, values) for text, holds, values in parts]


@pytest.mark.parametrize(
    "text", ["no such SQL", "missing > 1", "my_function(kind) = 1", "1 / 0 > 1"]
)
def test_what_only_spark_can_say_has_no_values(text: str) -> None:
    """A trace does not fail for what it cannot show."""
    assert compared_in_sql(text, EVENT) == ()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("price > avg(up.price)", {"price": 5, "avg(up.price)": 3.0}),
        ("price < last(up.price)", {"price": 5, "last(up.price)": 4}),
        ("price < last(up.price, 1)", {"price": 5, "last(up.price, 1)": 2}),
        ("price < first(up.price, 1)", {"price": 5, "first(up.price, 1)": 4}),
        ("count(up.*) = 3", {"count(up.*)": 2}),
        ("price = sum(match.price)", {"price": 5, "sum(match.price)": 7}),
        ("price > max(down.price)", {"price": 5, "max(down.price)": None}),
    ],
)
def test_sql_over_stages_says_what_the_partial_match_had(text: str, values: dict[str, Any]) -> None:
    """Aggregates have their value over the events taken."""
    condition = sql_condition(text, "now")
    assert isinstance(condition, MatchExpression)
    (found,) = compared_in_match(condition, EVENT, TAKEN, ORDER)

    assert dict(found.values) == values
