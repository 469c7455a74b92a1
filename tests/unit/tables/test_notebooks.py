# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of matches and rows: a table, escaped, cut, and saying so."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import Pattern, match, matchRecognize, matchSase
from pyflinkcep.charts import timeline_chart

AB = Pattern.begin("a").where("n < 5").oneOrMore().next("b").where("n > 5")
LOG = [{"user": "<i>", "n": n} for n in (1, 2, 9)]


def rows(found: Any) -> list[list[str]]:
    """Return the cells of a table of HTML, its caption first."""
    html = found._repr_html_()
    caption = re.findall("<caption>(.*?)</caption>", html)
    lines = re.findall("<tr>(.*?)</tr>", html)
    return [caption, *(re.findall("<t[hd]>(.*?)</t[hd]>", line) for line in lines)]


@pytest.mark.parametrize("events", [LOG, pa.Table.from_pylist(LOG)], ids=["list", "table"])
def test_matches(events: Any) -> None:
    """Each is a row: its key, then the events of each stage; texts of users stay texts."""
    user = "user=&#x27;&lt;i&gt;&#x27;"

    assert rows(match(AB, events, key="user")) == [
        ["2 matches"],
        ["user", "a", "b"],
        ["&lt;i&gt;", f"{user}, n=1<br>{user}, n=2", f"{user}, n=9"],
        ["&lt;i&gt;", f"{user}, n=2", f"{user}, n=9"],
    ]
    assert rows(match(AB, events, key=["user", "n"])) == [["0 matches"], [],]  # fmt: skip
    assert rows(match(AB, events, key=lambda event: event.user))[1] == ["key", "a", "b"]
    assert rows(match(AB, events))[1] == ["a", "b"]


def test_many_are_cut() -> None:
    """It has twenty rows, five events of a stage, and says that there are more."""
    long = [{"n": 1}] * 30 + [{"n": 9}]
    found = rows(match(AB, long))

    assert found[0] == ["30 matches, the first 20"]
    assert len(found) == 22
    assert found[2][0].split("<br>") == ["n=1"] * 5 + ["and 25 more"]


def test_rows_and_queries() -> None:
    """The output of a clause is a table too, and so are the matches of a query on any events."""
    clause = "ORDER BY n MEASURES a.n AS first, a.user AS u PATTERN (a) DEFINE a AS n < 2"
    query = "PATTERN SEQ(x a, x b) WHERE skip_till_any_match AND [user]"
    columns = {"type": ["x", "x"], "user": ["ann", "ann"]}

    assert rows(matchRecognize(LOG, clause)) == [["1 row"], ["first", "u"], ["1", "&lt;i&gt;"]]
    listed = matchSase(query, [{"type": "x", "user": "ann"}] * 2)
    for found in (matchSase(query, columns), listed):
        assert rows(found) == [
            ["1 match"],
            ["user", "a", "b"],
            ["ann", *["type=&#x27;x&#x27;, user=&#x27;ann&#x27;"] * 2],
        ]
    assert json.loads(json.dumps(listed)) == listed
    timed = matchSase(query, [{"type": "x", "user": "ann", "at": at} for at in (0, 5)], "at")
    assert [value["time"] for value in timeline_chart(timed).spec["data"]["values"]] == [0, 5]
