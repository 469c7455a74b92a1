# SPDX-License-Identifier: Apache-2.0
"""The events of many conditions, by their literals."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep.engines import literals
from pyflinkcep.eql.patterns import LOWER, UPPER
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.tree import EACH, Call, Column, Literal, Operation, Tree
from pyflinkcep.tables.field_values import EventFields
from pyflinkcep.tables.rule_rows import RuleTests
from tests.seeds import each_seed

JAVA: dict[str, list[str]] = {
    "a.b": ["a b", "axb"],
    "(?s)a.b": ["a b", "a\nb", "a\rb", "a\u2028b", "axb"],
    "(?is)A.B": ["a b", "a\nb", "a\rb", "a\u2028b", "axb"],
    "^foo$": ["foo", "foo\n", "foo\r", "foo\r\n", "foo\u2028"],
    "foo\r$": ["foo\r"],
    "(?m)^foo$": ["foo", "foo\n", "foo\r", "foo\r\n", "foo\u2028", "x\nfoo", "x\r\nfoo\ny"],
    "(?m)^$": ["\n\n", "a\n\nb"],
    "(?i)^k$": ["K", "k"],
    "(?i)^.s$": ["xS"],
    r"a\sb": ["a b", "a\nb", "a\rb"],
}
"""Regular expressions, and what Spark says fits them, of the texts here and 80 others."""

TEXTS = ("Abc", "abC x", "ÄB", "äb", "İ", "", "b", "x\ny")


def _events(rng: random.Random) -> list[dict[str, Any]]:
    choices = (*TEXTS, None)
    return [
        {
            "a": rng.choice(choices),
            "b": rng.choice(choices),
            "n": rng.choice([None, 1, 2]),
            "l": rng.choice([None, [], [rng.choice(TEXTS), rng.choice(choices)]]),
        }
        for _ in range(40)
    ]


def _test(rng: random.Random, value: Tree) -> Tree:
    fold = rng.choice(["", "lower", "translate"])
    if fold == "lower":
        value = Call("lower", (value,))
    elif fold:
        value = Call("translate", (value, Literal(UPPER), Literal(LOWER)))
    text = Literal(rng.choice(["a", "b", "abc", "äb", "x", "i", "", "abc x"]))
    return rng.choice(
        [
            Operation("=", (value, text)),
            Operation("in", (value, text, Literal("b"))),
            Operation("startswith", (value, text)),
            Call("endswith", (value, text)),
            Call("contains", (value, text)),
        ]
    )


def _tree(rng: random.Random, depth: int = 3) -> Tree:
    kind = rng.choice(["and", "or", "not", "test", "test", "any", "other"] if depth else ["test"])
    if kind in ("and", "or"):
        return Operation(kind, tuple(_tree(rng, depth - 1) for _ in range(rng.choice([2, 3]))))
    if kind == "not":
        return Operation("not", (_tree(rng, depth - 1),))
    if kind == "any":
        tests = tuple(_test(rng, EACH) for _ in range(rng.choice([1, 3])))
        inner = Call(
            "exists", (Column("`l`"), tests[0] if len(tests) == 1 else Operation("or", tests))
        )
        return Operation("coalesce", (inner, Literal(False)))
    if kind == "other":
        tree: Tree = Operation("=", (Column("`n`"), Literal(1)))
        fits = Call("rlike", (Column("`a`"), Literal("^[aA]")))
        some = Call("exists", (Column("`l`"), Call("rlike", (EACH, Literal("^[aA]")))))
        least = Operation("=", (Call("array_min", (Column("`l`"),)), Column("`a`")))
        return rng.choice([tree, fits, some, least, Operation("coalesce", (tree, Literal(False)))])
    return _test(rng, Column(rng.choice(["`a`", "`b`"])))


@pytest.mark.parametrize("pattern", JAVA)
def test_regular_expressions_are_those_of_java(pattern: str) -> None:
    """Of few rows, of many and of columns the same texts fit, lines and case as in Java."""
    texts = [*dict.fromkeys(text for own in JAVA.values() for text in own), "", "\u212a", "x\u017f"]
    many = [*texts, *(f"{number}" for number in range(80))]
    for given in (
        EventFields.of_rows([{"a": text} for text in texts]),
        EventFields.of_rows([{"a": text} for text in many]),
        EventFields.of_table(pa.table({"a": many})),
    ):
        held = given.holds(Call("rlike", (Column("`a`"), Literal(pattern))))
        assert sorted(many[at] for at in np.flatnonzero(held)) == sorted(JAVA[pattern])


@pytest.mark.parametrize("pattern", ["[[:alpha:]]", "[a-z&&[k]]", "x{,5}", "a{"])
def test_regular_expressions_that_are_others_in_arrow(pattern: str) -> None:
    """What Arrow would read as something else than Java is refused, of columns too."""
    fields = EventFields.of_table(pa.table({"a": ["x"]}))
    with pytest.raises(NotSupportedError, match="can only be evaluated by Spark"):
        fields.holds(Call("rlike", (Column("`a`"), Literal(pattern))))


def test_literals_that_no_text_has() -> None:
    """Half of a pair of UTF-16 is in no text."""
    half = Call("contains", (Column("`a`"), Literal("\ud800")))
    assert not len(RuleTests.of([half]).on(EventFields.of_rows([{"a": "x"}])).rows(0))


@pytest.mark.parametrize("plain", [False, True])
@each_seed(120)
def test_events_are_those_for_which_conditions_hold(
    seed: int, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What literals find is what each condition says of each value, null and arrays included."""
    if plain:
        monkeypatch.setattr(literals, "compiled_module", lambda: None)
    rng = random.Random(seed)
    events, trees = _events(rng), [_tree(rng) for _ in range(8)]
    table = pa.Table.from_pylist(events) if seed % 2 else None
    fields = EventFields.of_rows(events) if table is None else EventFields.of_table(table)
    rows = RuleTests.of(trees).on(fields)

    for number, tree in enumerate(trees):
        assert rows.rows(number).tolist() == np.flatnonzero(fields.holds(tree)).tolist()
