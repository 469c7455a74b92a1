# SPDX-License-Identifier: Apache-2.0
"""The table of rules in every target; that Spark has the same answers is asked of Spark."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np
import pytest

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.expressions import codegen
from pyflinkcep.expressions.arrays import TextRanks, Values, by_ranks, columnar, holding
from pyflinkcep.expressions.compiler import LeafFields, condition_code
from pyflinkcep.expressions.evaluator import event_function, machine_value
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.parser import EventReader
from pyflinkcep.expressions.program import Code, CompiledExpressions, Field, Kind, Op, Type
from pyflinkcep.expressions.sql_types import of_kind
from pyflinkcep.expressions.tree import Literal, Operation, Tree
from pyflinkcep.expressions.values import function_of
from pyflinkcep.kernel.module import compiled_module
from tests.expression_rules import CASES, CASTS, DECIMAL_CASES, DECIMALS, ERROR, OVERFLOWS
from tests.expression_rules import VALUES as EVERY
from tests.unit.kernel.random_programs import NAME
from tests.unit.kernel.test_expressions import kernel_answer

VALUES = EVERY | {name: (Kind(type_), value) for name, (type_, value) in DECIMALS.items()}
KINDS = {f"`{name}`": kind for name, (kind, _) in VALUES.items()}
RANKS = TextRanks({text: number for number, text in enumerate(["", "aa", "ab"])})


def same(found: Any, expected: Any) -> bool:
    """Whether two values are equal, NaN being equal to itself."""
    is_nan = found != found and expected != expected
    return type(found) is type(expected) and (is_nan or bool(found == expected))


def tree_of(text: str) -> Tree:
    if "trunc" not in text:
        return EventReader(text).part(parsed(text))
    rounded = re.sub("trunc(ate)?", "round", text)  # which is of one event too
    return _truncated(EventReader(rounded).part(parsed(rounded)))


def _truncated(tree: Tree) -> Tree:
    if not isinstance(tree, Operation):
        return tree
    operator = tree.operator.replace("round", "truncate")
    return attrs.evolve(tree, operator=operator, operands=tuple(map(_truncated, tree.operands)))


def value_of(leaf: Any) -> Any:
    return VALUES[str(leaf.attribute)][1]


def compiled(tree: Tree, *, ansi: bool = False) -> tuple[CompiledExpressions, list[Any]]:
    """Return a condition as a program, and the fields that it reads."""
    fields = LeafFields(KINDS)
    code = condition_code(tree, fields, "here")
    named = tuple(Field(str(leaf.over.sql), KINDS[str(leaf.over.sql)]) for leaf in fields.leaves)
    values = [machine_value(value_of(f), KINDS[str(f.over.sql)]) for f in fields.leaves]
    return CompiledExpressions(named, (), {NAME: code}, ansi), values


def columns_of(tree: Tree) -> tuple[Code, list[Values]]:
    """Return a condition as a program of columns of one row."""
    fields = LeafFields(KINDS)
    code = columnar(condition_code(by_ranks(tree), fields, "here"), RANKS, is_condition=True)
    kinds = [KINDS[str(leaf.over.sql)] for leaf in fields.leaves]
    values = [machine_value(value_of(f), k) for f, k in zip(fields.leaves, kinds, strict=True)]
    numbers = [RANKS.numbers[v] if isinstance(v, str) else v for v in values]
    dtypes = {Type.FLOAT: float, Type.DECIMAL: object}
    return code, [
        Values(np.asarray([v or 0], dtypes.get(kind.type, np.int64)), np.asarray([v is None]))
        for v, kind in zip(numbers, kinds, strict=True)
    ]


_PLAIN = {
    Op.LIKE, Op.DECIMAL, Op.UNITS, Op.INT_TO_DECIMAL, Op.DECIMAL_TO_FLOAT, Op.DECIMAL_TO_INT,
    Op.FIT,
}  # fmt: skip


def join_holds(code: Code, columns: list[Values]) -> bool:
    """Whether a join in C has its only row."""
    module, own = compiled_module(), np.arange(1)
    assert module is not None
    program = tuple((int(op), operand) for op, operand in code)
    fields = tuple((0, column.data, ~column.nulls) for column in columns)
    step = (0, -1, -1, True, None, (program,))
    join = module.Join(((own, own, None),), False, fields, (step,), -1)
    return bool(join.rows(np.empty((2, 1), np.int64)))


@pytest.mark.parametrize(("text", "expected"), [*CASES.items(), *OVERFLOWS.items()])
def test_a_rule_is_the_same_in_every_target(text: str, expected: Any) -> None:
    """As a program in Python and in C, of one row and of columns, and as a value in memory."""
    tree = tree_of(text)
    found = Operation("<=>", (tree, Literal(expected, "expected")), text)
    program, row = compiled(found)
    assert codegen.generated(program).conditions[NAME](row, ())
    if compiled_module() is not None:
        assert kernel_answer(program, [], [row])
    if "||" not in text:
        code, columns = columns_of(found)
        assert holding(code, 1, columns.__getitem__, RANKS).tolist() == [True]
        if compiled_module() is not None and _PLAIN.isdisjoint(op for op, _ in code):
            code = tuple((op, v) for op, v in code if op is not Op.PREFIX_END)
            assert "startswith" in text or join_holds(code, columns)
    in_memory = function_of(tree, lambda leaf: lambda _: value_of(leaf), zero_is_null=True)
    if text not in OVERFLOWS:
        assert same(in_memory(None), expected)


@pytest.mark.parametrize(("text", "expected"), DECIMAL_CASES.items())
def test_decimals_are_exact_in_every_target(text: str, expected: Any) -> None:
    """Up to 38 digits, and with Spark's digits where a decimal is the result."""
    tree = tree_of(text)
    found = Operation("<=>", (tree, Literal(expected, "expected")), text)
    program, row = compiled(found)
    assert codegen.generated(program).conditions[NAME](row, ())
    if compiled_module() is not None:
        assert kernel_answer(program, [], [row])
    code, columns = columns_of(found)
    assert holding(code, 1, columns.__getitem__, RANKS).tolist() == [True]
    types = lambda leaf: of_kind(KINDS[str(leaf.over.sql)])  # noqa: E731
    in_memory = function_of(tree, lambda f: lambda _: value_of(f), zero_is_null=True, types=types)
    value = outcome(in_memory)
    assert value.startswith("overflow") or value == repr(expected)


def outcome(function: Any) -> str:
    """Return a value or an error as text."""
    try:
        return repr(function(None))
    except ArithmeticError as error:
        return str(error)


@pytest.mark.parametrize("text", OVERFLOWS)
def test_what_overflows_is_an_error(text: str) -> None:
    """With ANSI, and always of values in memory."""
    tree = tree_of(text)
    program, row = compiled(Operation("<=>", (tree, Literal(None, "null")), text), ansi=True)
    with pytest.raises(ArithmeticError, match="overflow"):
        codegen.generated(program).conditions[NAME](row, ())
    with pytest.raises(ArithmeticError, match="overflow"):
        function_of(tree, lambda leaf: lambda _: value_of(leaf))(None)


def cast_in_memory(value: Any, type_: str) -> Any:
    """Return a value that is cast, ERROR, or None if only Spark casts it."""
    try:
        return event_function(f"cast(v as {type_})")({"v": value})
    except InputError:
        return ERROR
    except NotSupportedError:
        return None


@pytest.mark.parametrize(("value", "type_"), CASTS)
def test_a_cast_of_a_value_in_memory(value: Any, type_: str) -> None:
    """Texts by Spark's grammar, NaN, infinities and ranges: with ANSI, its default."""
    assert same(cast_in_memory(value, type_), CASTS[value, type_])
