# SPDX-License-Identifier: Apache-2.0
"""What variants of a pattern make of the same events, and how that is told and drawn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, CepError, Pattern, compare, match
from pyflinkcep.pattern.variants import variants
from tests.unit.show.support import points, size, texts

A = Pattern.begin("a").where("x = 'a'")
AB = A.followedBy("b").where("x = 'b'")
LOOP = AB.oneOrMore().followedBy("c").where("x = 'c'")
SKIP = AfterMatchSkipStrategy


def letters(text: str) -> list[dict[str, str]]:
    return [{"x": letter} for letter in text]


@pytest.mark.parametrize(
    "pattern",
    [
        AB,
        LOOP.within(timedelta(minutes=1)),
        AB.times(2).greedy().next("c"),
        AB.oneOrMore().next("c").optional(),
        A.next("b").oneOrMore().allowCombinations().until("x = 'z'").followedBy("c"),
        A.notNext("n").where("x = 'n'").followedBy(Pattern.begin("b").next("c")).oneOrMore(),
        A.notFollowedBy("b").where("x = 'b'").within(timedelta(milliseconds=3)),
        Pattern.begin(Pattern.oneOf(A, Pattern.begin("b"))).followedByAny("c"),
        Pattern.begin("a", SKIP.skipPastLastEvent()).oneOrMore().followedBy("b").where("x = 'b'"),
    ],
    ids=str,
)
def test_variants_have_the_matches_of_match(pattern: Pattern) -> None:
    """What is told of the pattern, and of each variant, is what match finds; each is another."""
    events = letters("abxbacbnac")
    told = {row["variant"]: row["found"] for row in compare(pattern, events).rows}
    found = {"as written": match(pattern, events)}
    for what in ("contiguity", "quantifiers", "skip"):
        for name, variant in variants(pattern, what):  # type: ignore[arg-type]
            assert (variant.describe(), variant._repr_html_()) != (
                pattern.describe(), pattern._repr_html_()
            )  # fmt: skip
            try:
                found[name] = match(variant, events)
            except CepError:
                assert name not in told

    assert told.keys() == found.keys()
    assert len(told) > 4
    for name, matches in found.items():
        own = [{s: [events[n] for n in ns] for s, ns in one.items()} for one in told[name]]
        assert own == matches, name


def names(pattern: Pattern, what: Any) -> list[str]:
    return [name for name, _ in variants(pattern, what)]


def test_what_is_varied() -> None:
    """Each stage follows in each other way, and has each other quantifier that may stand there."""
    assert names(LOOP, "contiguity") == [
        "next('b')", "followedByAny('b')", "next('c')", "followedByAny('c')"
    ]  # fmt: skip
    assert names(AB.times(2).consecutive().greedy().optional(), "quantifiers")[2:] == [
        "once on 'b'", "without greedy() on 'b'", "without consecutive() on 'b'",
        "without optional() on 'b'",
    ]  # fmt: skip
    assert names(AB.oneOrMore().until("x = 'c'"), "quantifiers")[-3:] == [
        "allowCombinations() on 'b'", "without until() on 'b'", "optional() on 'b'"
    ]  # fmt: skip
    assert names(LOOP, "skip") == [
        "skipToNext()", "skipPastLastEvent()", "skipToFirst('a')", "skipToFirst('b')",
        "skipToLast('b')", "skipToFirst('c')",
    ]  # fmt: skip
    assert "greedy() on 'b'" not in names(AB.oneOrMore().next("c").optional(), "quantifiers")
    assert "optional() on 'a'" not in names(A.notNext("n").next("c"), "quantifiers")
    assert "noSkip()" in names(Pattern.begin("a", SKIP.skipToNext()), "skip")
    group = A.next(Pattern.begin("b").followedBy("c"))
    assert names(group, "contiguity") == [
        "followedBy((b → c))", "followedByAny((b → c))", "next('c')", "followedByAny('c')"
    ]  # fmt: skip
    assert names(A.notNext("n").next("c"), "contiguity")[0] == "notFollowedBy('n')"


def test_alike_variants_are_told_together() -> None:
    """What is the same has one line, and so has what differs in the same way."""
    text = compare(LOOP, letters("abbxbc"), vary=("contiguity", "skip")).text()

    assert "  followedByAny('b')  6 matches: also a 0, b 4, c 5 | " in text
    assert "  next('c')           1 match: without a 0, b 1, c 5 | a 0, b 1 2, c 5\n" in text
    assert "  the same with next('b'), followedByAny('c')\n" in text
    assert "  skipToNext()  1 match: without" in text
    assert (
        "likewise skipPastLastEvent(), skipToFirst('b'), skipToLast('b'), skipToFirst('c')" in text
    )
    assert "Quantifiers" not in text


def test_many_matches_are_cut() -> None:
    """Eight matches of the pattern are told, four of each difference."""
    text = compare(A.followedByAny("b").where("x = 'b'"), letters("a" + "b" * 12)).text()

    assert "  and 4 more\n" in text
    assert "1 match: without a 0, b 2 | a 0, b 3 | a 0, b 4 | a 0, b 5 | 7 more\n" in text


def test_patterns_by_name() -> None:
    """They are compared with the first."""
    named = {"until": AB.oneOrMore().until("x = 'x'"), "all": AB.oneOrMore()}
    found = compare(named, letters("abxb"))

    assert [(row["variant"], row["matches"], row["more"]) for row in found.rows] == [
        ("until", 1, []), ("all", 2, ["a 0, b 1 3"])
    ]  # fmt: skip
    assert "\nOthers\n  all  2 matches: also a 0, b 1 3" in found.text()


def test_when_matches_come_out() -> None:
    """A match that comes out with another event is told, and the event that it needs on a stream."""
    held = Pattern.begin("a", SKIP.skipToNext()).where("x = 'a'").oneOrMore()
    held = held.followedBy("b").where("x = 'b'").within(timedelta(milliseconds=9))
    events = [{"x": x, "t": t} for x, t in (("a", 0), ("a", 5), ("b", 6), ("b", 7), ("x", 99))]
    text = compare(held, events, "t", vary="skip").text()

    assert "match 0: a 0 1, b 2; on a stream once event 3 has come" in text
    end = A.notFollowedBy("b").where("x = 'b'").within(timedelta(milliseconds=9))
    assert "a 0, when its window was over\n" in compare(end, events[:1], "t").text()
    last = compare(AB, events[:3], "t").text()
    assert "once a later event has come" in last
    late = [{"x": x, "t": t} for x, t in (("b", 50), ("a", 10), ("x", 70))]
    assert "on a stream event 1 would be late" in compare(A, late, "t").text()
    delayed = compare(A, late, "t", delayThreshold=timedelta(milliseconds=45)).text()
    assert "match 0: a 1; on a stream once event 2 has come" in delayed


def test_what_makes_too_many_partial_matches_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a variant has at least the matches that were found until then."""
    monkeypatch.setattr("pyflinkcep.tables.reports._STEPS", 150)
    pattern = AB.oneOrMore().within(timedelta(minutes=1))
    text = compare(pattern, letters("a" + "b" * 12), vary="quantifiers").text()

    (line,) = (line for line in text.splitlines() if "allowCombinations()" in line)
    assert "at least" in line
    assert "without" not in line
    assert line.endswith("; stopped at too many partial matches")


@pytest.mark.parametrize("text", ["", "ab", "abbxbc" * 5, "a" * 70], ids=len)
def test_pictures(text: str) -> None:
    """All lies inside the picture; names of users stay text, in the table of notebooks as well."""
    script = "</script><b>"
    pattern = Pattern.begin(script).where("x = 'a'").oneOrMore().followedBy("b").where("x = 'b'")
    found = compare({script: pattern, "other": AB}, letters(text))
    svg = found.diagram().svg
    width, height = size(svg)

    assert [p for p in points(svg) if not (0 <= p[0] <= width and 0 <= p[1] <= height)] == []
    assert "<script" not in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert script in texts(svg)
    assert ("the first 60 of 70 events" in texts(svg)) == (len(text) == 70)
    assert f"<td>{len(found.outcomes[1].found)} match" in found._repr_html_()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compare(3, []), "compare: expected a Pattern, got 3"),  # type: ignore
        (lambda: compare({}, []), r"expected patterns by name, got \{\}"),
        (lambda: compare({1: A}, []), "expected patterns by name, got {1: "),  # type: ignore
        (lambda: compare({"a": A, "b": "x"}, []), "got 'x'\n\nHint: write compare"),  # type: ignore
        (lambda: compare(A, [], vary="skips"), "vary"),  # type: ignore[arg-type]
        (lambda: compare(A, [], vary=3), "expected vary to be names, got 3"),  # type: ignore
        (lambda: compare(A, [], vary=["skip", 3]), "vary"),  # type: ignore[list-item]
        (lambda: compare(A, "no.csv"), "where there is nothing"),
        (lambda: compare(A, [{"y": 1}]), "has no column 'x'"),
        (lambda: compare(A, [{"x": 1, "t": "x"}], "t"), "for times as text"),
    ],
)
def test_what_cannot_be_compared_is_refused(call: Any, words: str) -> None:
    """The message says what was given, and what to write."""
    with pytest.raises(CepError, match=words) as caught:
        call()
    assert caught.value.hint
