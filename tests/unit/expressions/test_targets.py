# SPDX-License-Identifier: Apache-2.0
"""Every node of a tree, and every operation of a program, is known in every target."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Any

import attrs
import numpy as np
import pytest

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.expressions import codegen
from pyflinkcep.expressions.arrays import (
    OPERATIONS,
    TextRanks,
    Values,
    by_ranks,
    columnar,
    computed,
)
from pyflinkcep.expressions.compiler import LeafFields, value_code
from pyflinkcep.expressions.evaluator import event_function
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.numbers import NUMBER_FUNCTIONS, NumberFunction, complete, rounded
from pyflinkcep.expressions.parser import EventReader
from pyflinkcep.expressions.program import OPERATORS, RULES, CompiledExpressions, Field, Kind, Op
from pyflinkcep.expressions.sql_functions import FUNCTIONS as SQL_FUNCTIONS
from pyflinkcep.expressions.tree import (
    FUNCTIONS,
    Call,
    Column,
    Literal,
    Operation,
    Tree,
    shown,
    spark_sql,
)
from pyflinkcep.expressions.values import function_of
from pyflinkcep.sase import parse

X, Y, S, NOTHING = Column("x", "a"), Column("y", "b"), Column("s", "a"), Column("u", "a")
KINDS = {"x": Kind.DOUBLE, "y": Kind.BIGINT, "s": Kind.STRING}
EVENT: dict[str, Any] = {"x": 6.25, "y": 3, "s": "abc", "u": None}
TRUTH = Operation(">", (X, Y))
VALUES: dict[str, tuple[tuple[Tree, ...], Any]] = {
    "+": ((X, Y), 9.25), "-": ((X, Y), 3.25), "*": ((X, Y), 18.75), "/": ((X, Literal(2)), 3.125),
    "%": ((X, Y), 0.25), "pmod": ((Operation("neg", (Y,)), Literal(2)), 1), "neg": ((Y,), -3),
    "=": ((X, Y), False), "<>": ((X, Y), True), "<": ((X, Y), False), "<=": ((Y, Y), True),
    ">": ((X, Y), True), ">=": ((Y, X), False), "and": ((TRUTH, TRUTH), True),
    "or": ((TRUTH, TRUTH), True), "not": ((TRUTH,), False), "is null": ((X,), False),
    "is not null": ((X,), True), "round": ((X, Literal(1)), 6.3), "truncate": ((X, Literal(1)), 6.2), "floor": ((X,), 6),
    "ceil": ((X,), 7), "sqrt": ((X,), 2.5), "sign": ((X,), 1.0), "power": ((X, Literal(2)), 39.0625),
    "exp": ((Literal(0),), 1.0), "ln": ((Literal(1),), 0.0), "log10": ((Literal(1000),), 3.0), "log2": ((Literal(8),), 3.0),
    "startswith": ((S, Literal("ab")), True), "abs": ((Operation("neg", (Y,)),), 3),
    "div": ((Operation("neg", (Literal(7),)), Literal(2)), -3), "<=>": ((X, NOTHING), False),
    "greatest": ((X, NOTHING, Y), 6.25), "least": ((X, Y, NOTHING), 3),
    "coalesce": ((NOTHING, S, Literal("z")), "abc"), "in": ((Y, Literal(1), X, Literal(3)), True),
    "case": ((Operation("not", (TRUTH,)), Literal(1), TRUTH, X), 6.25),
    "like": ((S, Literal("%b_")), True), "||": ((S, Literal("d")), "abcd"),
}  # fmt: skip
NUMBERS = {text: number for number, text in enumerate(["%b_", "ab", "abc", "abcd", "z"])}


@pytest.mark.parametrize("operator", VALUES)
def test_an_operator_has_one_value_in_every_target(operator: str) -> None:
    """Its program, on columns too, and its value in Python agree; Spark SQL and text exist."""
    operands, expected = VALUES[operator]
    tree = Operation(operator, operands)
    assert function_of(tree, lambda leaf: lambda event: event[leaf.over.sql])(EVENT) == expected
    fields = LeafFields(KINDS)
    value = value_code(tree, fields, "here")
    known = [str(leaf.over.sql) for leaf in fields.leaves]
    compare = value_code(Literal(expected), fields, "here").code
    equal = (*value.code, *compare, (Op.EQ, (value.kind or Kind.BIGINT).type))
    program = CompiledExpressions(tuple(Field(n, KINDS[n]) for n in known), (), {"t": equal}, True)
    holds = codegen.generated(program).conditions["t"]
    assert holds([EVENT[name] for name in known], ())
    assert shown(tree)
    assert spark_sql(tree, lambda leaf: str(leaf.over.sql))
    if operator != "||":  # makes texts that have no number
        fields = LeafFields(KINDS)
        code, ranks = tuple(value_code(by_ranks(tree), fields, "here").code), TextRanks(NUMBERS)
        columns = [
            Values(np.asarray([number_of(EVENT[str(leaf.over.sql)])])) for leaf in fields.leaves
        ]
        found = computed(columnar(code, ranks), columns.__getitem__, ranks)
        assert (found.data, np.any(found.nulls)) == (number_of(expected), False)


CALLS: dict[str, tuple[str, str, Any]] = {
    "upper(s)": ("upper(`s`)", "upper(s)", "ABC"),
    "cast(x as int)": ("cast(`x` AS int)", "cast(x as int)", 6),
    "xs[1]": ("`xs`[1]", "xs[1]", 2),
    "st.f.g": ("`st`.`f`.`g`", "st.f.g", 5),
    "date '2026-01-02'": ("cast('2026-01-02' AS date)", "cast('2026-01-02' as date)",
        date(2026, 1, 2)),
    "dateadd(DAY, y, date '2026-01-02')": ("dateadd(DAY, `y`, cast('2026-01-02' AS date))",
        "dateadd(DAY, y, cast('2026-01-02' as date))", datetime(2026, 1, 5)),
    "nvl2(n, 1, 2)": ("nvl2(`n`, 1, 2)", "nvl2(n, 1, 2)", 2),
    "count(distinct y)": ("count(DISTINCT `y`)", "count(distinct y)", None),
    "s like any ('a')": ("s like any ('a')", "", None),
}  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_a_call_has_one_meaning_in_every_target(text: str) -> None:
    """Spark SQL, text and a value in Python, or a refusal that says which part; no program."""
    tree = EventReader(text).part(parsed(text))
    sql, bare, expected = CALLS[text]
    assert isinstance(tree, Call)
    assert (spark_sql(tree, lambda leaf: str(leaf.over.sql)), shown(tree)) == (sql, text)
    assert shown(_without_text(tree)) == bare if bare else not tree.function
    event = {**EVENT, "xs": [1, 2], "st": {"f": {"g": 5}}, "n": None}
    if expected is None:
        with pytest.raises(NotSupportedError, match="can only be evaluated by Spark"):
            event_function(text)
    else:
        assert event_function(text)(event) == expected
    with pytest.raises(InputError, match="is computed from one event"):
        value_code(tree, LeafFields(KINDS), "here")


def _without_text(tree: Tree) -> Tree:
    if not isinstance(tree, Call):
        return tree
    return attrs.evolve(tree, operands=tuple(map(_without_text, tree.operands)), text="")


def number_of(value: Any) -> Any:
    return NUMBERS[value] if isinstance(value, str) else value


def test_every_function_is_known_everywhere() -> None:
    """A function that parsers read has a value above, and one for events in memory."""
    assert {*OPERATORS, *(operator for operator, *_ in FUNCTIONS.values())} <= {
        *VALUES,
        "nullif",
        "datediff",
    }
    for name, (_, least, most) in FUNCTIONS.items():
        if name in SQL_FUNCTIONS and name not in ("concat", "trunc"):
            assert (SQL_FUNCTIONS[name].least, SQL_FUNCTIONS[name].most) == (least, most)


def test_a_form_that_lacks_is_named() -> None:
    """A declared function without a form for a target is refused, with both names."""
    lacking = NumberFunction(compute=math.tan)
    with pytest.raises(TypeError, match=r"tan\(\) has no form for c$"):
        complete({"tan": lacking}, "compute", "c")


def test_lists_know_or_refuse_every_operation() -> None:
    """What lists compute is in their table, or value by value; only the others are refused."""
    refused = {Op.SLOT, Op.ADD_PASSING, Op.CONCAT, Op.LISTED, Op.AGGREGATE}
    replaced = {  # by columnar() and by_ranks()
        Op.TEXT, Op.STARTS_WITH, Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE, Op.JUMP_IF_NOT_NULL,
        Op.JUMP_UNLESS, Op.JUMP,
    }  # fmt: skip
    special = {
        Op.FIELD, Op.INT, Op.FLOAT, Op.NULL, Op.ROUND, Op.TRUNCATE, Op.PREFIX_END, Op.LIKE, Op.CHOOSE,
        Op.IS_NULL, Op.AND, Op.OR, Op.DECIMAL, Op.UNITS, Op.INT_TO_DECIMAL,
        Op.DECIMAL_TO_FLOAT, Op.DECIMAL_TO_INT, Op.FIT,
        *(Op[name.upper()] for name in NUMBER_FUNCTIONS),
    }  # fmt: skip
    assert set(Op) == refused | replaced | special | set(OPERATIONS)


def test_every_operation_has_rules() -> None:
    """What computes a value from values is in the one table; the rest pushes values or jumps."""
    pushes = {Op.FIELD, Op.SLOT, Op.INT, Op.FLOAT, Op.TEXT, Op.DECIMAL, Op.NULL}
    branches = {Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE, Op.JUMP_IF_NOT_NULL, Op.JUMP_UNLESS, Op.JUMP}
    assert set(Op) == {*RULES, *pushes, *branches, Op.CHOOSE}
    assert set(OPERATORS.values()) <= set(RULES)


def test_parts_know_where_they_stand() -> None:
    """Each node has its span in the text that was parsed."""
    text = "PATTERN SEQ(A a, B b) WHERE round(b.x + a.x, 1) > 12.5 AND b.s = 'q'"
    query = parse(text)
    whole, other = query.conditions
    assert [text[slice(*part.span)] for part in (whole, other)] == [
        "round(b.x + a.x, 1) > 12.5",
        "b.s = 'q'",
    ]
    assert isinstance(whole, Operation)
    function = whole.operands[0]
    assert isinstance(function, Operation)
    assert [text[slice(*part.span)] for part in function.operands] == ["b.x + a.x", "1"]


@pytest.mark.parametrize(
    ("number", "digits", "expected"),
    [(2.5, 0, 3.0), (-0.4, 0, 0.0), (1.005, 2, 1.01), (1234.5, -2, 1200.0), (1e300, 2, 1e300),
     (9.95, 1, 10.0), (5e-324, 3, 0.0), (0.15, 1, 0.2), (1.0, 900, 1.0), (99.0, -900, 0.0)],
)  # fmt: skip
def test_doubles_are_rounded_as_they_are_shown(number: float, digits: int, expected: float) -> None:
    """Halves go away from zero, by the shortest decimal that is the number."""
    found = rounded(number, digits)
    assert (found, re.sub("-?0.0", "0.0", repr(found))) == (expected, repr(expected))
