# SPDX-License-Identifier: Apache-2.0
"""What single functions of expressions return."""

from __future__ import annotations

from decimal import Decimal

from pyflinkcep.conditions import RichAndCondition
from pyflinkcep.expressions.arrays import never_fails
from pyflinkcep.expressions.codegen import unbranched
from pyflinkcep.expressions.evaluator import compared_in_sql, event_condition, event_function
from pyflinkcep.expressions.grammar import guards_of, parsed
from pyflinkcep.expressions.numbers import (
    Digits,
    computed,
    decimal_aggregate,
    digits_of_value,
    mean,
    of_operation,
)
from pyflinkcep.expressions.parser import sql_condition
from pyflinkcep.expressions.program import Instruction, Kind, Op, Type, floats_compared
from pyflinkcep.expressions.sql_types import DATE, INT, STRING, TIMESTAMP, cast_type, common_type
from pyflinkcep.expressions.tokens import (
    interval_us,
    like_pattern,
    literal_value,
    slip,
    string_value,
    tokenized,
)
from pyflinkcep.expressions.tree import Literal, Operation, SqlTemplate, joined
from pyflinkcep.expressions.values import function_of
from pyflinkcep.match_recognize.statement import with_parameters


def test_tokens_and_literals() -> None:
    """Texts are cut, and literals have the values that Spark gives them."""
    tokens = tokenized("`a b`.x >= 1.5D -- so")
    assert [token.text for token in tokens] == ["a b", ".", "x", ">=", "1.5D", ""]
    assert slip("n in [1, 5]") == "write a list in parentheses: IN (1, 5)"
    assert slip("s = 'a;'") is None
    assert string_value(r"'it''s \u0041\%'") == "it's A\\%"
    literals = [literal_value(text) for text in ("7", "-7L", "0.80", "1e3", ".5D", "true", "null")]
    assert literals == [7, -7, Decimal("0.80"), 1000.0, 0.5, True, None]
    assert interval_us("'5' MINUTE") == 300_000_000
    assert interval_us("'1 02:00:00' DAY TO SECOND") == 93_600_000_000
    assert interval_us("2 YEARS") is None
    assert like_pattern("50!%_", "!") == "50\\%_"


def test_texts_made_of_parts() -> None:
    """Places in SQL, and parameters of statements, are filled."""
    sql = joined(("lower(", SqlTemplate(("", ""), "CLASSIFIER()"), ")"))
    assert isinstance(sql, SqlTemplate)
    assert (sql, sql.filled("'A'")) == ("lower(CLASSIFIER())", "lower('A')")
    given = with_parameters("DEFINE A AS v > :low AND k = :k", {"low": 3, "k": "it's"})
    assert given == "DEFINE A AS v > 3 AND k = 'it\\'s'"


def test_trees_and_guards() -> None:
    """A part that is computed only in some cases is told under which condition."""
    assert parsed("a + b * 2 > 1").operands[0].value == "+"
    text = "v = 0 OR n > 1 / v"
    tree = parsed(text)
    (quotient,) = (part for part in tree.walk() if part.value == "/")
    (guard,) = guards_of(tree)[quotient]
    sql = guard.around(lambda part: text[part.start : part.end], "1 / v")
    assert sql == "CASE WHEN (v = 0) THEN NULL ELSE 1 / v END"
    condition = sql_condition("type = 1 AND price > avg(up.price)")
    assert isinstance(condition, RichAndCondition)
    assert repr(condition) == "(type = 1 and price > avg(up.price))"


def test_conditions_of_events() -> None:
    """SQL about one event is evaluated, and taken apart."""
    holds = event_condition("kind = 'a' AND price BETWEEN 1 AND 2.5")
    assert holds({"kind": "a", "price": 2})
    assert not holds({"kind": "a", "price": None})
    assert event_function("coalesce(a, b) * 2")({"a": None, "b": 4}) == 8
    kind, price = compared_in_sql("kind = 'a' and price * 2 > 9", {"kind": "b", "price": 5})
    assert (kind.holds, kind.values) == (False, (("kind", "b"),))
    assert (price.holds, price.values) == (True, (("price * 2", 10),))
    three = function_of(Operation("+", (Literal(1), Literal(2))), lambda _: lambda _: None)
    assert three(None) == 3


def test_digits_and_decimals() -> None:
    """Digits are those of Spark: of literals, of results, of sums and averages."""
    assert digits_of_value(Decimal("-0.050")) == Digits(3, 3)
    assert digits_of_value(Decimal("1e3")) == Digits(4, 0)
    assert digits_of_value(0) == Digits(1, 0)
    assert of_operation("/", Digits(12, 2), Digits(1, 0)).sql == "decimal(16,6)"
    third = Decimal("0.333333")
    assert str(decimal_aggregate("avg", Decimal("1.00"), 3, Digits(10, 2))) == str(third)
    assert str(mean(Decimal("1.00"), 3)) == str(third)
    assert str(computed("/", Decimal(1), Decimal(3), Digits(16, 6))) == str(third)
    kind = Kind.decimal(Digits(12, 2))
    assert kind.digits is not None
    assert (kind.value, kind.digits.scale, kind.type) == ("decimal(12,2)", 2, Type.FLOAT)


def test_types() -> None:
    """Types are read as users write them, and have a type in common, or none."""
    decimal, long = cast_type("DECIMAL(5, 2)"), cast_type("long")
    assert decimal is not None
    assert long is not None
    assert (decimal.scale, long.name) == (2, "bigint")
    number, time = common_type(INT, STRING), common_type(DATE, TIMESTAMP)
    assert number is not None
    assert time is not None
    assert (number.name, time.name, common_type(INT, DATE)) == ("bigint", "timestamp", None)


def test_programs() -> None:
    """Of ``coalesce(x, 0) > 1``, and of ten times a number."""
    jump: Instruction = (Op.JUMP_IF_NOT_NULL, 1)
    code = (Op.FIELD, 0), jump, (Op.INT, 0), (Op.INT, 1), (Op.GT, Type.INT)
    assert [op.name for op, _ in unbranched(code)] == ["FIELD", "INT", "OR_ELSE", "INT", "GT"]
    tenfold = (Op.FIELD, 0), (Op.INT, 10), (Op.MUL, Type.INT)
    assert never_fails(tenfold, {0: (-5, 5)})
    assert not never_fails(tenfold, {0: (0, 2**62)})
    assert floats_compared(Op.GE, "x", "y") == "((y <= x) or (x != x))"
