# SPDX-License-Identifier: Apache-2.0
"""``oneOf`` and ``allOf``: what they return, and what is refused by name."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, CepError, GroupPattern, Pattern, WithinType
from pyflinkcep.conditions import SimpleCondition
from pyflinkcep.engines.flink.nfa.compiler.nfa_compiler import all_stages
from pyflinkcep.pattern.stage import ConsumingStrategy
from tests.shorthand import ms, parse

GAP = WithinType.PREVIOUS_AND_CURRENT


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a -> (b | c >> d){2} -> e", "a → (b | c ⇒ d){2} → e"),
        ("(b & c)+?", "(b & c)+?"),
        ("(b &>> c) ->> (d &->> e)", "(b &⇒ c) ⇢ (d &⇢ e)"),
        ("((| a) | (b & c))", "((a) | (b & c))"),
    ],
)
def test_how_they_are_shown(text: str, shown: str) -> None:
    """Alternatives are joined by a bar, patterns in any order by an ampersand."""
    assert repr(parse(text)) == f"Pattern({shown})"


def test_they_are_groups() -> None:
    """The methods that take a group take them as the stage itself, quantifier and window too."""
    choice = Pattern.oneOf(parse("a"), parse("b")).oneOrMore().within(ms(5))
    for method, strategy in (
        ("next", ConsumingStrategy.STRICT),
        ("followedBy", ConsumingStrategy.SKIP_TILL_NEXT),
        ("followedByAny", ConsumingStrategy.SKIP_TILL_ANY),
    ):
        stage = getattr(parse("s"), method)(choice)

        assert stage.getQuantifier().consumingStrategy is strategy
        assert stage.getTimes() == choice.getTimes()
        assert stage.getWindowSize() == 5
        assert [part.getName() for part in stage.getParts()] == ["a", "b"]
    skip = AfterMatchSkipStrategy.skipToNext()
    assert Pattern.begin(choice, skip).getAfterMatchSkipStrategy() == skip
    with pytest.raises(CepError, match="group of one pattern"):
        choice.getRawPattern()


def test_conditions_inside_are_replaced() -> None:
    """What replaces conditions reaches every part, in the pattern and in what is shown of it."""
    always = SimpleCondition.of(bool)
    pattern = parse("z -> (a | b -> (c & d))").with_conditions(lambda _: always)
    stages = [stage for stage in all_stages(pattern) if not isinstance(stage, GroupPattern)]

    assert [stage.getCondition() for stage in stages] == [always] * 5
    assert pattern._repr_html_().count(f"<td>{always!r}</td>") == 5


def test_they_can_be_sent() -> None:
    """A pattern with groups is the same after it was pickled."""
    pattern = parse("a -> (b | c) -> (d & e)")

    assert repr(pickle.loads(pickle.dumps(pattern))) == repr(pattern)


def test_pictures() -> None:
    """Alternatives are drawn below one another, patterns in any order in a frame that says so."""
    picture = parse("a -> (b | c){2} -> (d &>> e -> f)").diagram()

    assert "in any order" in picture.svg
    assert "one of" in picture.svg
    assert picture.mermaid.count("-->") + picture.mermaid.count("== ") > 0
    assert parse("(a | b) -> c").diagram(automaton=True).svg.startswith("<svg")


def test_tables() -> None:
    """The table of a pattern says how a group combines its parts."""
    table = parse("z -> (a | b)")._repr_html_()

    assert "<td>oneOf</td>" in table


a, b = parse("a"), parse("b")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Pattern.oneOf(), "oneOf: expected at least one Pattern"),
        (lambda: Pattern.allOf(), "allOf: expected at least one Pattern"),
        (lambda: Pattern.oneOf("a"), "oneOf: expected a Pattern, got 'a'"),
        (lambda: Pattern.allOf(a, b, joinedBy="notNext"), "expected joinedBy to be one of"),
        (
            lambda: Pattern.allOf(*(parse(f"s{n}") for n in range(7))),
            r"7 patterns have 5,040 orders: expected at most 6 patterns \(720 orders\)",
        ),
        (lambda: parse("(a? | b?)"), "several alternatives may match without an event"),
        (lambda: parse("(a? | b)?"), "an alternative may match without an event"),
        (lambda: parse("(a? | b){0,2}"), "an alternative may match without an event"),
        (lambda: parse("(a? & b)"), r"allOf: \(a\?\) may match without an event"),
        (lambda: parse("(a | b within[5])"), r"oneOf: \(b\) has a window of its own"),
        (lambda: parse("(a | (b -> c within[5] -> d))"), "has a window of its own"),
        (lambda: parse("(a | b !-> c)"), "ends with the NOT stage 'c'"),
        (lambda: parse("(a & (b !-> c))"), "ends with the NOT stage 'c'"),
        (lambda: parse("(a & b{2}<5>)"), "has a window for the gaps of its repetitions"),
        (lambda: parse("(a | b) gap[5]"), "oneOf: expected no window for gaps on the whole"),
        (lambda: parse("(a | b){2}<5>"), "oneOf: expected no window for gaps on the whole"),
        (lambda: parse("(a & b)+<5>"), "allOf: expected no window for gaps on the whole"),
        (lambda: parse("(a | b){2}:greedy"), "Option not applicable to group pattern"),
        (lambda: parse("(a+:greedy | b) -> c?"), "cannot be preceded by greedy"),
        (lambda: parse("z+:greedy").followedBy(parse("(a | b)?")), "cannot be preceded by greedy"),
        (lambda: parse("(a? | b) !-> c -> d"), "optional path to NOT condition"),
        (lambda: Pattern.oneOf(a, b).where(lambda e: True), "does not support where clause"),
        (
            lambda: Pattern.oneOf(Pattern.begin("a", AfterMatchSkipStrategy.skipToNext())),
            "has a skip strategy, which is about whole matches",
        ),
    ],
)
def test_refusals(build: Callable[[], Any], message: str) -> None:
    """What Flink's automaton cannot say, or says alike, is refused by name, with a hint."""
    with pytest.raises(CepError, match=message) as caught:
        build()
    assert "Hint: " in str(caught.value)


def test_a_window_of_the_whole() -> None:
    """A window is set on the group, or on a later stage, and not given to a part."""
    assert Pattern.oneOf(a, b).within(timedelta(seconds=1)).getWindowSize() == 1000
    assert parse("(a gap[5] | b gap[5])").getParts()[0].getWindowSize(GAP) == 5  # type: ignore[attr-defined]
