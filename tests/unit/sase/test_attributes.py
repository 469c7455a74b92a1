# SPDX-License-Identifier: Apache-2.0
"""What SQL computes from one event, as SQL over a stage or the fields of a struct."""

from __future__ import annotations

import pytest

from pyflinkcep.expressions.tree import Column, leaves
from pyflinkcep.sase import parse
from pyflinkcep.sase.attributes import owned_sql

OWNED = {
    "a.`x y` = b.s": "e.`x y`",
    "upper(a.s) = 'X'": "(upper ( e.`s` ))",
    "concat(a.s, a.`t u`, '`', 'it''s') = b.s": "(concat ( e.`s` , e.`t u` , '`' , 'it\\'s' ))",
    "a.u.v[0].`w x`['k''`'] = 1": "(e.`u`.`v`[0].`w x`['k\\'`'])",
    "upper(a.u.v) = 'X'": "(upper ( (e.`u`.`v`) ))",
    "a.s LIKE 'x`%'": "(cast ( e.`s` like 'x`%' as int ))",
    "lower(a.s) LIKE 'q%'": "(cast ( (lower ( e.`s` )) like 'q%' as int ))",
    "a.s || a.t.u = 'k'": "((e.`s` || (e.`t`.`u`)))",
    "size(filter(a.xs, `y` -> `y` <=> 1)) > 0": "(size ( filter ( e.`xs` , `y` -> `y` <=> 1 ) ))",
    "hash(a.x < -1, a.y) > 0": "(hash ( e.`x` < - 1 , e.`y` ))",
}


@pytest.mark.parametrize(("condition", "expected"), OWNED.items())
def test_columns_of_the_event_get_an_owner_and_nothing_else_does(
    condition: str, expected: str
) -> None:
    """Not what is in a text, a field of a struct, or a variable of a lambda in backticks."""
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {condition}")
    value = next(leaves(query.conditions[0]))
    assert owned_sql(value.over, "e") == expected
    assert str(value.over.sql) == expected.replace("e.`", "`")


def test_a_path_names_its_column() -> None:
    """A field or element gives its column of RETURN a name, any other function a number."""
    asked = "a.u.v[0].`w x`['k'''], upper(a.s), b.s, b.`(x`.y, max(c[].u['k']), c[1].u.v"
    query = parse(f"PATTERN SEQ(A a, B b, C+ c[]) RETURN {asked}")
    names = [column.name for column in query.columns or ()]
    assert names == ["a_u_v_0_w_x_k", "_2", "b_s", "b_x_y", "_5", "_6"]
    assert isinstance(query.columns[0].value, Column) if query.columns else False
