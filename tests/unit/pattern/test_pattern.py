# SPDX-License-Identifier: Apache-2.0
"""Building patterns: what each call changes, and what the getters say."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from pyflinkcep import (
    AfterMatchSkipStrategy,
    CepError,
    GroupPattern,
    Pattern,
    Time,
    UnusedResultWarning,
    WithinType,
)
from pyflinkcep import AfterMatchSkipStrategy as Skip
from pyflinkcep.conditions import (
    BooleanConditions,
    RichAndCondition,
    RichOrCondition,
    SimpleCondition,
    SubtypeCondition,
)
from pyflinkcep.engines.flink.nfa.compiler import all_stages
from pyflinkcep.errors import InvalidArgumentError, SkipError
from pyflinkcep.pattern.stage import ConsumingStrategy, Quantifier, Times
from pyflinkcep.testing import match
from tests.shorthand import Named, matches, ms, parse, run

A, B, C = (Named((name,)) for name in "abc")


@pytest.mark.parametrize(
    ("arrow", "strategy"),
    [
        (">>", ConsumingStrategy.STRICT),
        ("->", ConsumingStrategy.SKIP_TILL_NEXT),
        ("->>", ConsumingStrategy.SKIP_TILL_ANY),
        ("!>>", ConsumingStrategy.NOT_NEXT),
        ("!->", ConsumingStrategy.NOT_FOLLOW),
    ],
)
def test_contiguity(arrow: str, strategy: ConsumingStrategy) -> None:
    """Each contiguity call starts a stage of its strategy that points back to the one before."""
    pattern = parse(f"start {arrow} next {arrow} end")
    chain = [(s.getName(), s.getQuantifier().consumingStrategy) for s in pattern.stages()]

    assert chain == [("start", ConsumingStrategy.STRICT), ("next", strategy), ("end", strategy)]


def test_links_end_at_the_first_stage() -> None:
    """``getPrevious`` leads from the last stage to the first, which has none before it."""
    end = parse("start >> next >> end")
    names = []
    stage: Pattern | None = end
    while stage is not None:
        names.append(stage.getName())
        stage = stage.getPrevious()

    assert names == ["end", "next", "start"]


def test_a_stage_without_condition_accepts_everything() -> None:
    """An unset condition reads as the one that always holds."""
    condition = Pattern.begin("start").getCondition()

    assert (type(condition), condition.filter(object(), None)) == (BooleanConditions, True)  # type: ignore[arg-type]


def test_where_joins_with_and() -> None:
    """The second ``where`` makes an and of both, in the order written."""
    condition = Pattern.begin("s").where(A).where(B).getCondition()

    assert (type(condition), condition.getNestedConditions()) == (RichAndCondition, (A, B))  # type: ignore[attr-defined]


def test_or_joins_with_or_left_first() -> None:
    """``where(A).or_(B).where(C)`` is (A or B) and C."""
    condition = Pattern.begin("s").where(A).or_(B).where(C).getCondition()

    assert repr(condition) == "((a or b) and c)"


def test_a_first_or_is_a_where() -> None:
    """``or_`` with nothing before it sets the condition."""
    condition = Pattern.begin("s").or_(A).getCondition()

    assert (condition, isinstance(condition, RichOrCondition)) == (A, False)


def test_subtype_is_a_condition() -> None:
    """``subtype`` sets a condition on the class, or joins it to those before."""
    alone = Pattern.begin("s").subtype(int).getCondition()
    joined = Pattern.begin("s").where(A).subtype(int).where(B).getCondition()

    assert (type(alone), repr(joined)) == (SubtypeCondition, "((a and is int) and b)")


@pytest.mark.parametrize(
    ("pattern", "times", "quantifier"),
    [
        ("a+", Times(1, 1), "LOOPING"),
        ("a+<5>", Times(1, 1, 5), "LOOPING"),
        ("a{3,}", Times(3, 3), "LOOPING"),
        ("a{3,}<7>", Times(3, 3, 7), "LOOPING"),
        ("a{2}", Times(2, 2), "TIMES"),
        ("a{2}<7>", Times(2, 2, 7), "TIMES"),
        ("a{2,4}", Times(2, 4), "TIMES"),
        ("a{2,4}<9>", Times(2, 4, 9), "TIMES"),
        ("a{0,2}", Times(1, 2), "TIMES, OPTIONAL"),
        ("a", None, "SINGLE"),
        ("a?", None, "SINGLE, OPTIONAL"),
        ("a?+", Times(1, 1), "LOOPING"),
        ("a+?", Times(1, 1), "LOOPING, OPTIONAL"),
        ("a+:greedy:greedy", Times(1, 1), "LOOPING, GREEDY"),
    ],
)
def test_quantifiers(pattern: str, times: Times | None, quantifier: str) -> None:
    """Each quantifier call gives its range of repetitions and its properties."""
    stage = parse(pattern)

    assert (stage.getTimes(), str(stage.getQuantifier()).split("]")[0]) == (
        times,
        f"Quantifier{{properties=[{quantifier}",
    )


@pytest.mark.parametrize(
    ("pattern", "inner"),
    [
        ("a+", ConsumingStrategy.SKIP_TILL_NEXT),
        ("a+:cons", ConsumingStrategy.STRICT),
        ("a+:any", ConsumingStrategy.SKIP_TILL_ANY),
        ("a{2}:cons", ConsumingStrategy.STRICT),
        ("a{2,3}:any", ConsumingStrategy.SKIP_TILL_ANY),
        ("a+:greedy:any", ConsumingStrategy.SKIP_TILL_ANY),
    ],
)
def test_inner_contiguity(pattern: str, inner: ConsumingStrategy) -> None:
    """Between repetitions contiguity is relaxed unless another one is asked for."""
    assert parse(pattern).getQuantifier().innerConsumingStrategy is inner


def test_until_is_kept() -> None:
    """``until`` is allowed after both looping quantifiers."""
    stages = [Pattern.begin("a").oneOrMore().until(A), Pattern.begin("a").timesOrMore(2).until(A)]

    assert [stage.getUntilCondition() for stage in stages] == [A, A]


def test_within() -> None:
    """Each kind of window is kept for itself; a later call overwrites, None changes nothing."""
    stage = (
        Pattern.begin("a")
        .within(timedelta(seconds=1))
        .within(Time.seconds(2))
        .within(timedelta(microseconds=3500), WithinType.PREVIOUS_AND_CURRENT)
        .within(None)
    )

    assert (
        stage.getWindowSize(),
        stage.getWindowSize(WithinType.FIRST_AND_LAST),
        stage.getWindowSize(WithinType.PREVIOUS_AND_CURRENT),
    ) == (2000, 2000, 3)


def test_no_window() -> None:
    """A stage without a window has None."""
    assert Pattern.begin("a").getWindowSize() is None


WINDOWED: dict[str, Callable[[Any, timedelta], Pattern]] = {
    "within": lambda p, window: p.within(window),
    "within previous": lambda p, window: p.within(window, WithinType.PREVIOUS_AND_CURRENT),
    "oneOrMore": lambda p, window: p.oneOrMore(window),
    "times": lambda p, window: p.times(2, window),
    "times from to": lambda p, window: p.times(1, 3, window),
    "timesOrMore": lambda p, window: p.timesOrMore(2, window),
}


@pytest.mark.parametrize("method", WINDOWED)
@pytest.mark.parametrize("window", [timedelta(0), timedelta(seconds=-5), timedelta(microseconds=9)])
@pytest.mark.parametrize("group", [False, True])
def test_windows_of_nothing_are_refused(method: str, window: timedelta, group: bool) -> None:
    """A window of zero or less, which is no window in Flink, is refused wherever it is set."""
    start: Pattern = Pattern.begin(Pattern.begin("a")) if group else Pattern.begin("a")
    with pytest.raises(InvalidArgumentError, match="expected a") as caught:
        WINDOWED[method](start, window)

    assert caught.value.hint is not None
    assert "leave the window out" in caught.value.hint


def test_the_skip_strategy_of_begin_counts() -> None:
    """The strategy is handed on from stage to stage; the one inside a group does not count."""
    skip, inner = AfterMatchSkipStrategy.skipToNext(), AfterMatchSkipStrategy.skipPastLastEvent()
    group = Pattern.begin("b", inner).next("c")
    pattern = Pattern.begin("a", skip).next(group).followedBy("d")

    assert [stage.getAfterMatchSkipStrategy() for stage in pattern.stages()] == [skip] * 3


def test_the_default_is_no_skip() -> None:
    """Without a strategy every match is emitted."""
    strategies = [p.getAfterMatchSkipStrategy() for p in (Pattern.begin("a"), parse("(a)"))]

    assert strategies == [AfterMatchSkipStrategy.noSkip()] * 2


@pytest.mark.parametrize("call", ["next", "followedBy", "followedByAny"])
def test_groups(call: str) -> None:
    """A pattern given instead of a name is one stage, named as all groups are."""
    inner = parse("b -> c")
    group: Any = getattr(Pattern.begin("a"), call)(inner)

    assert (type(group), group.getName(), group.getRawPattern() is inner, len(group.stages())) == (
        GroupPattern,
        "GroupPattern",
        True,
        2,
    )


def test_a_group_takes_what_is_about_repetition_and_time() -> None:
    """Quantifiers, optional, contiguity of repetitions, until and windows apply to groups."""
    group = parse("a -> (b -> c)+:cons?  until[u] within[5]")

    assert (str(group.getQuantifier()), group.getWindowSize(), repr(group.getUntilCondition())) == (
        "Quantifier{properties=[LOOPING, OPTIONAL], consumingStrategy=SKIP_TILL_NEXT, "
        "innerConsumingStrategy=STRICT}",
        5,
        "u",
    )


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a >> b -> c ->> d !>> e !-> f", "a ⇒ b → c ⇢ d ⇏ e ↛ f"),
        ("a+ -> b{2} -> c{2,3}? -> d{4,}", "a+ → b{2} → c{2,3}? → d{4,}"),
        ("z -> (a -> (b){2})+?", "z → (a → (b){2})+?"),
    ],
)
def test_description(pattern: str, text: str) -> None:
    """A pattern describes itself in one line, and that is its repr."""
    built = parse(pattern)

    assert (built.describe(), repr(built)) == (text, f"Pattern({text})")


def test_pickling() -> None:
    """A pattern of picklable conditions travels to workers as it is."""
    pattern = parse(
        "a -> (b{2} !-> c -> d)+ until[u] within[7]", AfterMatchSkipStrategy.skipToNext()
    )
    copy = pickle.loads(pickle.dumps(pattern))

    assert (copy.describe(), copy.getWindowSize(), copy.getAfterMatchSkipStrategy()) == (
        pattern.describe(),
        7,
        AfterMatchSkipStrategy.skipToNext(),
    )


def test_the_window_of_one_or_more_defaults_to_none() -> None:
    """``oneOrMore(None)`` is ``oneOrMore()``."""
    stages = [Pattern.begin("a").oneOrMore(), Pattern.begin("a").oneOrMore(None)]

    assert [stage.getTimes() for stage in stages] == [Times(1, 1), Times(1, 1)]


def test_quantifiers_compare_by_value() -> None:
    """Two quantifiers of the same properties and contiguity are equal."""
    stages = [parse("x -> a+?"), parse("y -> b+?"), parse("y ->> b+?")]
    first, second, third = (stage.getQuantifier() for stage in stages)

    assert (first == second, first == third, isinstance(first, Quantifier)) == (True, False, True)


# --- a pattern never changes


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.where(B),
        lambda p: p.or_(B),
        lambda p: p.subtype(int),
        lambda p: p.oneOrMore(),
        lambda p: p.times(2),
        lambda p: p.timesOrMore(2),
        lambda p: p.optional(),
        lambda p: p.within(timedelta(seconds=1)),
    ],
)
def test_a_call_leaves_the_pattern_as_it_was(change: Any) -> None:
    """Every method returns a changed copy, so two patterns may share a beginning."""
    start = Pattern.begin("a").where(A)
    before = (start.getCondition(), start.getQuantifier(), start.getTimes(), start.getWindowSize())
    changed = change(start)
    longer = changed.next("b")

    assert changed is not start
    assert longer.getPrevious() is changed
    assert before == (
        start.getCondition(),
        start.getQuantifier(),
        start.getTimes(),
        start.getWindowSize(),
    )


def test_a_cell_can_run_twice() -> None:
    """The same line gives the same pattern each time: conditions do not add up."""
    start = Pattern.begin("a").where(A)
    runs = [start.where(B).oneOrMore().next("c") for _ in range(2)]

    assert [repr(run.stages()[0].getCondition()) for run in runs] == ["(a and b)"] * 2


def test_two_patterns_with_one_beginning() -> None:
    """What is done to one pattern is not seen in another one with the same beginning."""
    start = Pattern.begin("a").where(A)
    often, once = start.times(3).next("b"), start.followedBy("c").within(timedelta(seconds=1))

    assert [p.describe() for p in (often, once, start)] == ["a{3} ⇒ b", "a → c", "a"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Pattern.begin("a", "SKIP"), "expected an AfterMatchSkipStrategy, got 'SKIP'"),  # type: ignore[call-overload]
        (lambda: Pattern.begin(3), "expected the name of a stage or a Pattern, got 3"),  # type: ignore[call-overload]
        (lambda: Pattern.begin("a").next(None), "name of a stage or a Pattern, got None"),  # type: ignore[call-overload]
        (lambda: Pattern.begin("a").times(True), "times: expected a whole number, got True"),
        (
            lambda: Pattern.begin("a").timesOrMore(1.5),  # type: ignore[arg-type]
            "timesOrMore: expected a whole number, got 1.5",
        ),
        (
            lambda: Pattern.begin("a").within(timedelta(1), "FIRST"),  # type: ignore[arg-type]
            "within: expected a WithinType, got 'FIRST'",
        ),
    ],
)
def test_arguments_of_another_kind(call: Any, message: str) -> None:
    """An argument that cannot be meant is refused where it is given."""
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        call()

    assert caught.value.hint


def test_numpy_numbers_are_counts() -> None:
    """Counts may come from NumPy."""
    stage = Pattern.begin("a").times(np.int64(2), np.int64(4))

    assert stage.getTimes() == Times(2, 4)


def test_long_patterns() -> None:
    """The number of stages is not bound by Python's recursion."""
    pattern = Pattern.begin("s")
    for number in range(3000):
        pattern = pattern.next(f"s{number}")

    assert (len(pattern.stages()), pattern.describe().count("⇒")) == (3001, 3000)


# --- a pattern as a table


def cells(pattern: Pattern) -> list[list[str]]:
    """Return the texts of a table's rows."""
    rows = re.findall(r"<tr>(.*?)</tr>", pattern._repr_html_())
    return [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in rows]


def test_a_row_for_each_stage() -> None:
    """Each stage has its name, how it follows, how often it matches, and its condition."""
    assert cells(parse("a >> b+:greedy until[u] ->> c[*]{2,3}:cons !-> d")) == [
        ["stage", "follows", "how often", "condition"],
        ["a", "", "1", "a"],
        ["b", "directly after", "+, greedy", "b until u"],
        ["c", "any time after", "{2,3}, consecutive", "any event"],
        ["d", "not before the next", "1", "d"],
    ]


def test_groups_are_indented() -> None:
    """The stages of a group come below it, indented."""
    assert cells(parse("z -> (a !>> b){2}:any"))[2:] == [
        ["group", "some time after", "{2}, all combinations", ""],
        ["\u2003a", "", "1", "a"],
        ["\u2003b", "not directly after", "1", "b"],
    ]


def test_windows_and_skip_strategy_are_below() -> None:
    """What is about the whole pattern follows the table, groups' windows named as such."""
    skip = AfterMatchSkipStrategy.skipToFirst("a")
    html = parse("a within[5] -> (b gap[7])", skip)._repr_html_()

    assert html.split("</table>")[1].removesuffix("</details>") == (
        "<p>each match within 5 ms (set on &#x27;a&#x27;)<br>"
        "each gap between events of the group within 7 ms (set on &#x27;b&#x27;)<br>"
        "after a match: SkipToFirstStrategy(patternName=&#x27;a&#x27;, "
        "shouldThrowException=False)</p>"
    )


def test_what_users_wrote_is_escaped() -> None:
    """Names and conditions are text, not HTML."""
    pattern = Pattern.begin("<a>").where("x < 3 & y").where(Named(("q",))).within(ms(1))

    assert cells(pattern)[1] == ["&lt;a&gt;", "", "1", "(x &lt; 3 &amp; y and q)"]


# --- ``start.where(...)`` on a line of its own is warned of, and nothing else is


DROPPED: list[Callable[[Pattern], Any]] = [
    lambda p: p.where(lambda e: e > 2),
    lambda p: p.or_("x > 2"),
    lambda p: p.oneOrMore(),
    lambda p: p.where(lambda e: e > 2).oneOrMore(),
]
USES: list[Callable[[Pattern], Any]] = [
    lambda p: p.next("b"),
    lambda p: p.where("x = 1"),
    lambda p: Pattern.begin(p),
    lambda p: p.stages(),
    lambda p: match(p, [1]),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("drop", DROPPED)
def test_a_dropped_result_is_warned_of(drop: Any, use: Any) -> None:
    """A pattern that is used after the result of a call on it was dropped warns, once."""
    start = Pattern.begin("a")
    drop(start)
    with pytest.warns(UnusedResultWarning, match=r"\(\.\.\.\) at test_pattern.py:\d+ was dropped"):
        kept = use(start)

    assert use(start) is not kept


def test_the_warning_points_to_the_user() -> None:
    """The warning is on the user's line, and says what to write."""
    start = Pattern.begin("a")
    start.where(lambda e: e > 2)
    with pytest.warns(UnusedResultWarning, match=r"Write pattern = pattern.where\(") as caught:
        start.next("b")

    assert caught[0].filename == __file__


def test_a_dropped_call_on_an_earlier_stage() -> None:
    """In Flink a call on an earlier stage changes the longer pattern too; here it is warned of."""
    start = Pattern.begin("a")
    pattern = start.next("b")
    start.where(lambda e: e > 2)

    with pytest.warns(UnusedResultWarning):
        match(pattern, [1, 2])


def test_what_a_notebook_shows_it_keeps() -> None:
    """A result that was only shown, which a notebook keeps, counts as dropped."""
    start = Pattern.begin("a")
    out = start.where("x > 2")
    assert out._repr_html_()

    with pytest.warns(UnusedResultWarning):
        start.next("b")


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.next("b"),
        lambda p: p.oneOrMore(),
        lambda p: p.getCondition(),
        lambda p: p.describe(),
        lambda p: match(p, [1]),
        lambda p: None,
    ],
)
def test_what_is_kept_or_used_is_fine(use: Any) -> None:
    """Results that have a name, or were used, are not warned of."""
    start = Pattern.begin("a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strict = start.where(lambda e: e > 2)
        use(strict)
        start.next("b")
        start = start.oneOrMore()
        match(start, [1])


def test_a_refused_call_is_not_a_dropped_one() -> None:
    """A call that raised has no result that could be dropped."""
    start = Pattern.begin("a")
    with pytest.raises(ValueError, match="expected a condition"):
        start.where(3)  # type: ignore[arg-type]

    assert start.next("b").describe() == "a ⇒ b"


def test_a_travelling_pattern_forgets() -> None:
    """What was dropped on the driver is not warned of again in the workers."""
    start = Pattern.begin("a")
    start.where("x > 2")
    copy = pickle.loads(pickle.dumps(start))

    assert copy.next("b").describe() == "a ⇒ b"


# --- ``oneOf`` and ``allOf``: what they return, and what is refused by name


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


# --- after-match skip strategies, by themselves and on matches


PATH = {"a": [(1, 0), (3, 0)], "b": [(4, 0), (4, 1)]}


@pytest.mark.parametrize(
    ("strategy", "pruning_id", "pruned"),
    [
        (Skip.noSkip(), None, ""),
        (Skip.skipToNext(), (1, 0), "before at"),
        (Skip.skipPastLastEvent(), (4, 1), "before at"),
        (Skip.skipToFirst("b"), (4, 0), "before"),
        (Skip.skipToLast("a"), (3, 0), "before"),
        (Skip.skipToLast("b"), (4, 1), "before"),
        (Skip.skipToFirst("c"), None, ""),
    ],
)
def test_what_is_discarded(strategy: Skip, pruning_id: Any, pruned: str) -> None:
    """Each strategy finds its event in the match and discards what began before, or at, it."""
    found = strategy.pruning_id([PATH])
    names = []
    if found is not None:
        timestamp, counter = found
        starts = {
            "before": (timestamp, counter - 1),
            "at": found,
            "after": (timestamp, counter + 1),
        }
        names = [name for name, start in starts.items() if strategy.should_prune(start, found)]

    assert (found, " ".join(names)) == (pruning_id, pruned)


def test_only_no_skip_discards_nothing() -> None:
    """``isSkipStrategy`` is false for ``noSkip`` alone."""
    strategies = [
        Skip.noSkip(),
        Skip.skipToNext(),
        Skip.skipPastLastEvent(),
        Skip.skipToFirst("a"),
        Skip.skipToLast("a"),
    ]

    assert [s.isSkipStrategy() for s in strategies] == [False, True, True, True, True]


def test_names() -> None:
    """Strategies that skip to a stage give its name, the others none."""
    strategies = [Skip.skipToFirst("a"), Skip.skipToLast("b"), Skip.skipToNext(), Skip.noSkip()]

    assert [s.getPatternName() for s in strategies] == ["a", "b", None, None]


def test_strategies_compare_by_value() -> None:
    """Kind, stage and strictness make a strategy."""
    one = Skip.skipToFirst("a")

    assert [
        one == other
        for other in (
            Skip.skipToFirst("a"),
            Skip.skipToFirst("b"),
            Skip.skipToLast("a"),
            one.throwExceptionOnMiss(),
        )
    ] == [True, False, False, False]


def test_strictness_is_a_copy() -> None:
    """``throwExceptionOnMiss`` leaves the strategy it is called on as it was."""
    lenient = Skip.skipToLast("a")
    strict = lenient.throwExceptionOnMiss()

    assert (lenient.shouldThrowException, strict.shouldThrowException) == (False, True)


def test_a_strict_strategy_needs_its_stage() -> None:
    """A match without the stage is an error that shows the match's event ids."""
    with pytest.raises(SkipError) as caught:
        run("a -> b? -> c", "a c", Skip.skipToFirst("b").throwExceptionOnMiss())
    message = caught.value.message

    assert (message.split(" found match ")[0], caught.value.stage) == (
        "Could not skip to b. No such element in the",
        "b",
    )


def test_a_strict_strategy_must_get_on() -> None:
    """To skip to the first event of the match would find the same match again."""
    with pytest.raises(SkipError) as caught:
        run("a -> b", "a b", Skip.skipToFirst("a").throwExceptionOnMiss())

    assert (caught.value.message, bool(caught.value.hint)) == (
        "Could not skip to first element of a match.",
        True,
    )


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Skip.noSkip(), "{a1 a2 a3} {a2 a3 a4} {a3 a4 a5} {a4 a5 a6}"),
        (Skip.skipToNext(), "{a1 a2 a3} {a2 a3 a4} {a3 a4 a5} {a4 a5 a6}"),
        (Skip.skipPastLastEvent(), "{a1 a2 a3} {a4 a5 a6}"),
        (Skip.skipToFirst("a"), "{a1 a2 a3} {a2 a3 a4} {a3 a4 a5} {a4 a5 a6}"),
        (Skip.skipToLast("a"), "{a1 a2 a3} {a3 a4 a5}"),
    ],
)
def test_strategies_on_a_count(strategy: Skip, expected: str) -> None:
    """Where the next match may begin depends on the strategy."""
    assert matches("a{3}", "a1 a2 a3 a4 a5 a6", strategy) == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Skip.noSkip(), "{a b1 c1} {a b2 c1} {a b1 c2} {a b2 c2}"),
        (Skip.skipToNext(), "{a b1 c1}"),
        (Skip.skipToFirst("b"), "{a b1 c1}"),
        (Skip.skipToFirst("c"), "{a b1 c1}"),
    ],
)
def test_strategies_on_combinations(strategy: Skip, expected: str) -> None:
    """Of matches with one first event a skip strategy leaves the first."""
    assert matches("a ->> b ->> c", "a b1 b2 c1 c2", strategy) == expected


@pytest.mark.parametrize(
    "strategy", [Skip.noSkip(), Skip.skipToNext(), Skip.skipToFirst("a").throwExceptionOnMiss()]
)
def test_pickling_of_skip_strategies(strategy: Skip) -> None:
    """A strategy survives pickling."""
    assert pickle.loads(pickle.dumps(strategy)) == strategy
