# SPDX-License-Identifier: Apache-2.0
"""A pattern as a table."""

from __future__ import annotations

import re

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from tests.shorthand import Named, ms, parse


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
