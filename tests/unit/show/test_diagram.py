# SPDX-License-Identifier: Apache-2.0
"""Pictures of patterns, queries and clauses."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pyflinkcep import (
    AfterMatchSkipStrategy,
    Diagram,
    InvalidArgumentError,
    Pattern,
    WithinType,
    diagram,
    parse,
)
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.show.model import Box, Choice, Frame, Graph, Row
from tests.shorthand import parse as pattern_of
from tests.unit.show.support import boxes, overlapping, points, size, texts

SCRIPT = "<script>alert('x')</script>"
HOSTILE = f'{SCRIPT} & "quoted" ]]> %%{{init}}%% \\ #lt; `'
LONG = "a name of sixty characters, which is as long as users write"


def chain(count: int) -> Pattern:
    """Return a pattern of many stages, each with a loop and a long condition."""
    pattern = Pattern.begin("s0")
    for number in range(1, count):
        text = f"price > {number} and name like '%abc%' and volume between {number} and 1000000"
        pattern = pattern.followedBy(f"stage {number}").where(text).oneOrMore().greedy()
    return pattern


def wide_group() -> Pattern:
    """Return a loop over a group that needs several lines."""
    inside = Pattern.begin("g0")
    for number in range(1, 12):
        inside = inside.next(f"inner stage number {number}").optional()
    return Pattern.begin("z").followedBy(inside).oneOrMore().followedByAny("last")


PATTERNS = {
    "one stage": Pattern.begin("a"),
    "fifteen stages": chain(15),
    "nested groups": pattern_of("z -> (a !>> b >> (c ->> d{2,4}:any)+ -> e?){2}? -> f within[5]"),
    "long names": Pattern.begin(LONG).next(LONG + "2").where("x" * 200).followedBy("数据流" * 20),
    "hostile": Pattern.begin(HOSTILE).where(HOSTILE).notFollowedBy("\u0000\ud800\n<b>").next("c"),
    "wide group": wide_group(),
}
QUERY = parse(
    "PATTERN SEQ(Stock a, ~News n, Stock+ b[]) WHERE skip_till_next_match(a, b[]) "
    "{ [symbol] AND a.volume > 10 AND b[i].price > a.price } WITHIN 1 hour RETURN a.price"
)
CLAUSE = diagram(
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY u ORDER BY ts MEASURES A.x AS y "
    "AFTER MATCH SKIP PAST LAST ROW PATTERN (^ A (B | C D)* {- E+? -} PERMUTE(F, G)?) "
    "WITHIN INTERVAL '1' HOUR DEFINE B AS B.price > A.price)"
)
DRAWN = {
    **{name: pattern.diagram() for name, pattern in PATTERNS.items()},
    **{f"{name}, automaton": p.diagram(automaton=True) for name, p in PATTERNS.items()},
    "query": QUERY.diagram(),
    "clause": CLAUSE,
}
each_picture = pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN.keys())


def row(drawn: Diagram) -> Row:
    """Return the stages of a picture."""
    assert isinstance(drawn.drawn, Row)
    return drawn.drawn


# --- what is shown


def test_stages_stand_in_a_line_with_all_that_decides() -> None:
    """A stage has its conditions, how often it matches and how it follows; windows are below."""
    skip = AfterMatchSkipStrategy.skipToLast("b")
    pattern = (
        Pattern.begin("a", skip)
        .where("x = 1")
        .where("y = 2")
        .next("b")
        .timesOrMore(2, timedelta(seconds=3))
        .consecutive()
        .greedy()
        .until("x = 9")
        .notFollowedBy("n")
        .where("x = 5")
        .followedByAny("c")
        .times(2, 4)
        .optional()
        .within(timedelta(seconds=4), WithinType.PREVIOUS_AND_CURRENT)
        .within(timedelta(minutes=5))
    )
    drawn = pattern.diagram()

    assert row(drawn).parts == (
        Box("a", ("x = 1", "and y = 2")),
        Box("b", ("any event", "until x = 9"), "2 or more, consecutive, greedy, gaps < 3 s"),
        Box("n", ("x = 5",), absent=True),
        Box("c", ("any event",), "2 to 4 times", "optional"),
    )
    assert [(link.kind, link.text, link.note) for link in row(drawn).links] == [
        ("strict", "next", ""),
        ("not", "notFollowedBy", ""),
        ("any", "followedByAny", "gap < 4 s"),
    ]
    assert row(drawn).notes == ("within 5 min of the first event",)
    assert drawn.notes == ("after a match: skipToLast('b')",)


@pytest.mark.parametrize(
    "skip",
    [
        AfterMatchSkipStrategy.skipToNext(),
        AfterMatchSkipStrategy.skipPastLastEvent(),
        AfterMatchSkipStrategy.skipToFirst("a"),
        AfterMatchSkipStrategy.skipToLast("a"),
    ],
)
def test_the_skip_strategy_is_written_as_users_write_it(skip: AfterMatchSkipStrategy) -> None:
    """The note names the method that makes the strategy."""
    (note,) = Pattern.begin("a", skip).diagram().notes
    called = eval(f"AfterMatchSkipStrategy.{note.removeprefix('after a match: ')}")

    assert called == skip


def test_groups_have_a_frame() -> None:
    """A group is a frame around its stages, which repeats or is optional as a whole."""
    _, group, _ = row(PATTERNS["nested groups"].diagram()).parts

    assert isinstance(group, Frame)
    assert (group.repeats, group.optional) == ("2 times", "optional")
    assert [type(part).__name__ for part in group.row.parts] == ["Box", "Box", "Frame", "Box"]


def test_a_query_is_drawn() -> None:
    """A condition stands at the last component that it compares; the rest is below."""
    drawn = QUERY.diagram()

    assert row(drawn).parts == (
        Box("a", ("type Stock", "a.volume > 10")),
        Box("n", ("type News",), absent=True),
        Box("b", ("type Stock", "b[i].price > a.price"), "1 or more"),
    )
    assert [link.text for link in row(drawn).links] == ["not", "skip till next"]
    assert drawn.notes == (
        "[symbol]: equal in all events",
        "within 1 h of the first event, inclusive",
        "returns a_price",
    )
    assert QUERY._repr_html_().startswith("<svg")


def test_a_composed_query_is_drawn() -> None:
    """Alternatives, parts in any order and optional parts of a query have their form."""
    query = parse("PATTERN SEQ(A a, (B b | SEQ(C c, D d))?, AND(E e, F+ f[]), G* g[])")
    a, choice, both, last = row(query.diagram()).parts

    assert isinstance(choice, Frame)
    assert (choice.optional, type(choice.row.parts[0]).__name__) == ("optional", "Choice")
    assert isinstance(both, Frame)
    assert (both.caption, both.row.links[0].text) == ("in any order", "and")
    assert (a, last) == (Box("a", ("type A",)), Box("g", ("type G",), "1 or more", "optional"))
    assert overlapping(boxes(query.diagram().svg)) == []


def test_a_clause_is_drawn() -> None:
    """Alternatives, groups, exclusions, permutations and anchors of PATTERN have their form."""
    start, a, choice, excluded, permuted = row(CLAUSE).parts

    assert isinstance(choice, Frame)
    assert isinstance(choice.row.parts[0], Choice)
    assert (choice.repeats, choice.optional) == ("1 or more", "optional")
    assert [start, a] == [Box("^", ("start of the partition",)), Box("A", ("any row",))]
    assert isinstance(excluded, Frame)
    assert excluded.caption == "left out of the output"
    assert excluded.row.parts == (Box("E", ("any row",), "1 or more, as few as possible"),)
    assert isinstance(permuted, Frame)
    assert (permuted.caption, permuted.optional) == ("in any order", "optional")
    assert "B.price > A.price" in texts(CLAUSE.svg)
    assert CLAUSE.notes[-1] == "after a match: skip past last row"


@pytest.mark.parametrize(
    ("given", "title"),
    [
        (Pattern.begin("a").next("b"), "a ⇒ b"),
        (QUERY, "PATTERN SEQ(Stock a, ~(News n), Stock+ b[])"),
        ("PATTERN A; B", "PATTERN A; B"),
        ("PATTERN (A B{2})", "PATTERN ((A B{2}))"),
    ],
)
def test_anything_that_matches_can_be_drawn(given: Pattern | str, title: str) -> None:
    """A pattern, a query, and the text of a query or a clause have a picture."""
    assert repr(diagram(given)) == f"Diagram({title})"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "expected a pattern, a query or their text, got int"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) , u MATCH_RECOGNIZE (PATTERN (B))",
            "one MATCH_RECOGNIZE, got several",
        ),
        ("PATTERN (A", "parenthesis"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: str, message: str) -> None:
    """Other things are refused with a hint."""
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        diagram(given)

    assert caught.value.hint


def test_the_automaton_has_every_edge_that_can_be_taken() -> None:
    """Each state and each edge is drawn, those whose condition never holds left out."""
    pattern = pattern_of("a -> b+:greedy until[u] !-> c -> d? within[9]")
    graph = pattern.diagram(automaton=True).drawn
    nfa = NFACompiler.compile(pattern)
    edges = [
        (edge.source.name, edge.target.name, edge.action.value.lower())
        for table in nfa.tables.values()
        for edge in table.state.transitions
        if table.kind.value != "Stop" and repr(edge.condition) != "not true"
    ]
    assert isinstance(graph, Graph)
    names = {
        node.name: table.name
        for node, table in zip(graph.nodes, reversed(nfa.tables.values()), strict=True)
    }

    drawn = [(names[edge.source], names[edge.target], edge.kind) for edge in graph.edges]
    assert sorted(drawn) == sorted(edges)
    assert graph.nodes[0].kind == "start"
    assert not any("true" in edge.text for edge in graph.edges)


# --- how it looks


@each_picture
def test_pictures_are_sound(drawn: Diagram) -> None:
    """A picture is well-formed, no stage covers another, and nothing lies outside of it."""
    width, height = size(drawn.svg)
    outside = [(x, y) for x, y in points(drawn.svg) if not (0 <= x <= width and 0 <= y <= height)]

    assert (overlapping(boxes(drawn.svg)), outside) == ([], [])
    assert width < 1300


def test_what_users_wrote_stays_text() -> None:
    """Names and conditions cannot become elements, attributes or script, in any form."""
    pattern, name = PATTERNS["hostile"], Pattern.begin(SCRIPT).diagram()
    for drawn in (pattern.diagram(), pattern.diagram(automaton=True)):
        tags = {element.tag for element in ElementTree.fromstring(drawn.svg).iter()}
        assert {tag for tag in tags if "script" in tag} == set()
        quoted = re.sub(r'"[^"]*"', '""', drawn.mermaid)
        assert "script" not in quoted
        assert "%%{" not in drawn.mermaid
        assert "script" not in re.sub(r'"(?:[^"\\]|\\.)*"', '""', drawn.dot)
    assert "<script" not in pattern._repr_html_()
    assert "".join(texts(name.svg)).startswith(SCRIPT)


def test_light_and_dark() -> None:
    """Every colour has a dark counterpart, and stands in the elements for programs without CSS."""
    svg = PATTERNS["nested groups"].diagram().svg
    light, dark = re.findall(r"\.cep\{(--cep-[^}]*)\}", svg)[:2]
    used = set(re.findall(r"cep-(?:s-)?(\w+)[ \"]", re.sub(r"<style>.*?</style>", "", svg)))
    colours = [set(re.findall(r"--cep-(\w+):", rules)) for rules in (light, dark)]

    assert colours[0] == colours[1] >= used - {"sans", "mono"}
    assert "prefers-color-scheme:dark" in svg
    assert re.search(r'<rect [^>]*class="cep-paper" fill="#ffffff"', svg)


@each_picture
def test_mermaid_and_dot_have_every_stage(drawn: Diagram) -> None:
    """The other forms have the same nodes, each declared once, and frames that are closed."""
    mermaid, dot = drawn.mermaid.split("\n"), drawn.dot.split("\n")
    nodes = [line.split()[0] for line in dot if re.match(r" +[ns]\d+ \[", line)]
    declared = [found[1] for line in mermaid if (found := re.match(r" +([ns]\d+)[\[({]", line))]

    assert mermaid[0] == "flowchart LR"
    assert nodes == declared
    assert len(set(nodes)) == len(nodes) > 0
    assert sum("subgraph" in line for line in mermaid) == sum(
        line.strip() == "end" for line in mermaid
    )
    assert sum(line.endswith(("{", ";")) and "{ " in line for line in dot) + 1 == sum(
        line.strip() == "}" for line in dot
    )


# --- files


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("p.svg", "<svg"), ("p.html", "<!doctype"), ("p.mmd", "flowchart"), ("p.dot", "digraph")],
)
def test_pictures_are_saved(tmp_path: Path, name: str, beginning: str) -> None:
    """The end of a file's name decides its form."""
    Pattern.begin("a").diagram().save(tmp_path / name)

    assert (tmp_path / name).read_text(encoding="utf-8").startswith(beginning)


def test_other_forms_are_refused(tmp_path: Path) -> None:
    """A picture of points would need another package."""
    with pytest.raises(InvalidArgumentError, match=r"save: expected a name that ends in \.svg"):
        Pattern.begin("a").diagram().save(tmp_path / "p.png")
    for path in (None, 3, b"p.svg", ["p.svg"]):
        with pytest.raises(InvalidArgumentError, match="save: expected a name that ends in"):
            Pattern.begin("a").diagram().save(path)  # type: ignore[arg-type]
