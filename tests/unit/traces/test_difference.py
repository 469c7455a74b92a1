# SPDX-License-Identifier: Apache-2.0
"""What is different between two answers of whyNot, and how that is told and drawn."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep import InvalidArgumentError, Pattern, whyNot
from tests.unit.show.support import points, size, texts

LOGIN = Pattern.begin("fail").where("r = 'fail'").next("ok").where("r = 'ok'")


def why(pattern: Pattern, words: str) -> Any:
    return whyNot(pattern, [{"r": word} for word in words.split()])


def changes(found: Any) -> dict[str, str]:
    return {row["text"]: row["change"] for row in found.rows}


def test_another_day() -> None:
    """What a condition holds for no more is gone, and the values that there are instead are told."""
    found = why(LOGIN, "fail ok x").compare(why(LOGIN, "FAIL ok x"), ("yesterday", "today"))

    assert changes(found) == {
        "matches": "gone", "events": "", "fail": "gone", "ok": "gone",
        "fail: r = 'fail'": "gone", "ok: r = 'ok'": "",
    }  # fmt: skip
    assert "yesterday   today" in found.text()
    assert "Advice for today\n  * No event satisfies \"r = 'fail'\" of 'fail'. The most fr" in str(
        found
    )
    assert "'FAIL' (1)" in found.text()


def test_another_pattern() -> None:
    """Both patterns are named, and a condition that changed is beside what it was."""
    other = Pattern.begin("fail").where("r LIKE 'f%'").followedBy("ok").where("r = 'ok'")
    found = why(LOGIN, "fail x ok").compare(why(other, "fail x ok"))

    assert found.text().startswith("before: fail ⇒ ok\nafter: fail → ok\n")
    assert changes(found)["fail: r = 'fail' → r LIKE 'f%'"] == ""
    assert changes(found)["after 'fail': did not fit, may not be skipped"] == "gone"
    assert changes(found)["matches"] == "new"
    longer = LOGIN.next("end").where("r = 'end'")
    assert changes(why(LOGIN, "fail ok end").compare(why(longer, "fail ok end")))["end"] == "new"


def test_shares_are_compared_not_counts() -> None:
    """Twice the events with the same shares are no change, ten points or half as much again are."""
    once, twice = why(LOGIN, "fail ok x x"), why(LOGIN, " ".join(["fail ok x x"] * 2))
    same = changes(once.compare(twice))

    assert same["events"] == same["matches"] == "more"
    assert {same["fail"], same["ok"], same["fail: r = 'fail'"]} == {""}
    rare, less = why(LOGIN, "fail " + "x " * 30), why(LOGIN, "fail " + "x " * 60)
    assert changes(rare.compare(less))["fail: r = 'fail'"] == "less"
    assert changes(less.compare(rare))["fail: r = 'fail'"] == "more"


def test_nothing_and_nothing() -> None:
    """Without events there is nothing to tell, and no division by it."""
    found = why(LOGIN, "").compare(why(LOGIN, ""))

    assert set(changes(found).values()) == {""}
    assert "0 of 0" in found.text()
    assert "Advice" not in found.text()


def test_picture() -> None:
    """All lies inside the picture, and names of users stay text."""
    script = "</script><b>"
    other = Pattern.begin(script).where("r = 'fail'")
    found = why(LOGIN, "fail x").compare(why(other, "fail x"), ("then", script))
    svg = found.diagram().svg
    width, height = size(svg)

    assert [p for p in points(svg) if not (0 <= p[0] <= width and 0 <= p[1] <= height)] == []
    assert {"then", script, "new", "gone"} <= set(texts(svg))
    assert "<b>" not in found._repr_html_()
    assert "<td>gone</td>" in found._repr_html_()


@pytest.mark.parametrize(
    ("other", "names", "words"),
    [
        ([], ("a", "b"), r"expected what whyNot\(\) returns, got \[\]"),
        (why(LOGIN, "x"), ("a",), r"expected two names, got \('a',\)"),
        (why(LOGIN, "x"), "ab", "expected two names, got 'ab'"),
        (why(LOGIN, "x"), (1, 2), "expected two names"),
    ],
)
def test_what_cannot_be_compared_is_refused(other: Any, names: Any, words: str) -> None:
    """The message says what was given."""
    with pytest.raises(InvalidArgumentError, match=words):
        why(LOGIN, "x").compare(other, names)
    with pytest.raises(InvalidArgumentError, match="did you mean 'names'"):
        why(LOGIN, "x").compare(why(LOGIN, "x"), name=names)
