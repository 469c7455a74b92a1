# SPDX-License-Identifier: Apache-2.0
"""Sigma rules of files: what they mean on events, as SQL, and what is refused."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from pyflinkcep import Pattern, SigmaRules, match, matchSigma, sigmaRules
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError

pytest.importorskip("sigma.rule")
pytestmark = pytest.mark.filterwarnings("ignore:all Sigma rules run:UserWarning")


def rule(detection: str, name: str = "r", more: str = "") -> str:
    """Return a rule with a detection, by default with the condition ``s``."""
    condition = "" if "condition:" in detection else "\ncondition: s"
    own = textwrap.indent(textwrap.dedent(detection).strip() + condition, "  ")
    source = "" if "logsource" in more else "logsource: {category: process}\n"
    return f"title: A {name}\nname: {name}\n{source}{more}\ndetection:\n{own}\n"


def read(*sources: Any, **options: Any) -> SigmaRules:
    """Read rules that run on all events."""
    return sigmaRules(sources, **{"logsources": "ignore", **options})


def held(detection: str, events: list[dict[str, Any]], **options: Any) -> list[int]:
    """Return which events satisfy a rule."""
    found = matchSigma(read(rule(detection), **options), events)
    return [events.index(event) for [event] in found.get("r", [])]


TEXTS = [{"f": value} for value in ("Cmd.exe", r"C:\cmd.exe -c", "a*b", None, "")]


@pytest.mark.parametrize(
    ("detection", "expected"),
    [
        ("s: {f: cmd.EXE}", [0]),
        ("s: {f|cased: Cmd.exe}", [0]),
        ("s: {f|cased: cmd.exe}", []),
        ("s: {f|contains: CMD}", [0, 1]),
        ("s: {f|endswith: '.exe'}", [0]),
        ("s: {f|startswith: 'c:\\'}", [1]),
        ("s: {f: '*cmd*-C'}", [1]),
        ("s: {f: 'c?d.exe'}", [0]),
        ("s: {f: 'a\\*b'}", [2]),
        ("s: {f: ''}", [4]),
        ("s: {f: null}", [3]),
        ("s: {f|exists: true}", [0, 1, 2, 4]),
        ("s: {f|exists: false}", [3]),
        ("s: {f: '*'}", [0, 1, 2, 4]),
        ("s: {f|re: '^[A-Z][a-z]+[.]'}", [0]),
        ("s: {f|re|i: '^c(?:md|:)'}", [0, 1]),
        ("s: {f|re: '^[^[&&]{,7}$'}", [0, 2, 4]),
        ("s: {f|re: '[]*]b$|{'}", [2]),
        ("s: {f|re: '^[[:alpha:]*_]+$'}", [2]),
        ("s: {f|re: '[[:space:]][[:punct:]]'}", [1]),
        ("s: {f|contains|all: [cmd, ' -']}", [1]),
        ("s: {f: [cmd.exe, 'a\\*b']}", [0, 2]),
        ("s: {f|contains: cmd}\ncondition: not s", [2, 4]),
        ("s: {f|contains: cmd}\no: {f|contains: '-c'}\ncondition: s and not o", [0]),
        ("s_1: {f: cmd.exe}\ns_2: {f: ''}\ncondition: 1 of s_*", [0, 4]),
        ("s: {f|windash|contains: ' -c'}", [1]),
    ],
)
def test_texts(detection: str, expected: list[int]) -> None:
    """Texts fit as a whole, case aside, and a comparison of nothing is neither true nor false."""
    assert held(detection, TEXTS) == expected


@pytest.mark.parametrize(
    ("detection", "expected"),
    [
        ("s: {n: 5}", [0]),
        ("s: {n|gte: 5}", [0, 1]),
        ("s: {n|lt: 5}", [2]),
        ("s: {t: 5}", [1]),
        ("s: {t|gt: 4}", [1]),
        ("s: {b: true}", [0]),
        ("s: {n|contains: '0'}", [1]),
        ("s: {a|fieldref: c}", [0]),
        ("s: {a|fieldref|startswith: c}", [0, 1]),
        ("s: {l: x}", [0]),
        ("s: {l|startswith: y}", [0, 1]),
    ],
)
def test_other_values(detection: str, expected: list[int]) -> None:
    """Numbers compare with texts that write them; of an array any value counts."""
    events = [
        {"n": 5, "t": "x", "b": True, "a": "p", "c": "p", "l": ["x", "y"]},
        {"n": 10, "t": "5", "b": False, "a": "pq", "c": "p", "l": ["yes"]},
        {"n": 1, "t": None, "b": None, "a": None, "c": "q", "l": []},
    ]

    assert held(detection, events) == expected


@pytest.mark.parametrize("detection", ["s: {l|fieldref: c}", "s: {c|fieldref|endswith: l}"])
def test_arrays_and_other_fields(detection: str) -> None:
    """An array is not compared with another field: the refusal names the rule and the field."""
    with pytest.raises(NotSupportedError, match="r: 'l' is an array"):
        held(detection, [{"l": ["x", "y"], "c": "y"}])


def test_blocks_of_addresses() -> None:
    """Addresses are in blocks of both kinds; what is none is in no block."""
    events = [{"ip": ip} for ip in ("10.1.2.3", "11.0.0.1", "fe80::1", "host", None)]

    assert held("s: {ip|cidr: 10.0.0.0/8}", events) == [0]
    assert held("s: {ip|cidr: ['10.0.0.0/8', 'fe80::/10']}", events) == [0, 2]
    assert held("s: {ip|cidr: 10.0.0.0/8}\ncondition: not s", events) == [1, 2, 3]


def test_free_text_needs_columns() -> None:
    """Keywords are looked for in the columns given, and refused without."""
    events = [{"m": "a Failed login", "o": "x"}, {"m": "ok", "o": "FAILED"}, {"m": "ok", "o": "ok"}]

    assert held("s: [failed]", events, raw=["m", "o"]) == [0, 1]
    with pytest.raises(NotSupportedError, match="r: it looks for the text failed"):
        held("s: [failed]", events)


def test_log_sources() -> None:
    """A rule sees the events of its log source, by the entry with the most names."""
    rules = [
        rule("s: {f: x}", "one", "logsource: {category: process, product: windows}"),
        rule("s: {f: x}", "two", "logsource: {product: linux, service: auditd}"),
    ]
    known = {"process": "k = 'p'", "process/windows": "k = 'w'", "*/linux/*": "true"}
    events = [{"f": "x", "k": kind} for kind in "pw"]

    found = matchSigma(sigmaRules(rules, logsources=known), events)
    assert [[event["k"] for [event] in found[name]] for name in ("one", "two")] == [
        ["w"],
        ["p", "w"],
    ]
    with pytest.warns(UserWarning, match="1 Sigma rule refused, see refused: two: its log source"):
        some = sigmaRules(rules, logsources={"process": "true"})
    assert '"type' in str(some.refused["two"].hint)
    assert "*/linux/auditd" in str(some.refused["two"])
    with pytest.warns(UserWarning, match="run on all events"):
        sigmaRules(rules, logsources="ignore")


def test_names_of_fields() -> None:
    """Fields are renamed, found within others, refused by name, or null if that is asked."""
    events = [{"process": {"line": "x"}}]
    detection = "s: {CommandLine: x}"

    assert held(detection, events, fields={"CommandLine": "process.line"}) == [0]
    with pytest.raises(InputError, match="r: the events have no field 'CommandLine'"):
        held(detection, events)
    assert held(detection, events, missing="null") == []
    assert held("s: {CommandLine: null}", events, missing="null") == [0]


def test_filters_and_pipelines() -> None:
    """Filters among the rules restrict them; a pipeline of pySigma is applied first."""
    from sigma.processing.pipeline import ProcessingPipeline

    text = """
    title: Not ours
    logsource: {category: process}
    filter:
      rules: [r]
      ours: {u: root}
      condition: not ours
    """
    events = [{"g": "x", "u": "root"}, {"g": "x", "u": "ann"}]
    pipeline = ProcessingPipeline.from_yaml(
        "transformations:\n- {type: field_name_mapping, mapping: {f: g}}"
    )

    found = matchSigma(read(rule("s: {f: x}"), textwrap.dedent(text), pipeline=pipeline), events)
    assert found == {"r": [[events[1]]]}


COUNT = """
title: Many
name: many
correlation:
  type: event_count
  rules: [r]
  group-by: [u]
  timespan: 1m
  condition: {gte: 2}
"""


def test_correlations_of_files(tmp_path: Path) -> None:
    """Correlations name rules by name, id or title; rules without generate do not alert."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "rules.yml").write_text(f"{rule('s: {f: x}')}---\n{COUNT}")
    events = [{"f": "x", "u": "ann", "t": n} for n in range(3)]
    rules = read(tmp_path)

    assert matchSigma(rules, events, timestamp="t") == {"many": [events[:2]]}
    generating = read(rule("s: {f: x}"), COUNT + "  generate: true\n")
    assert len(matchSigma(generating, events, timestamp="t")["r"]) == 3
    own = {"type": "temporal", "rules": ["A r"], "timespan": "1s"}
    assert matchSigma(own, events, rules, timestamp="t") == [[event] for event in events]
    with pytest.raises(InvalidArgumentError, match="unknown rule 'q'"):
        matchSigma({**own, "rules": ["q"]}, events, rules)


def test_rules_as_sql() -> None:
    """SQL of a rule is what patterns and DataFrames take, with the types of columns."""
    text = rule('s: {f|contains: "it\'s", n: 5}')
    rules = sigmaRules([text], logsources={"process": "k = 'p'"})
    sql = rules.sql({"f": "string", "n": "bigint", "k": "string"})["r"]
    events = [{"f": "It's", "n": 5, "k": kind} for kind in "pq"]

    assert sql == "(k = 'p') AND (contains(lower(`f`), 'it\\'s') AND (`n` = 5))"
    assert match(Pattern.begin("a").where(sql), events) == [{"a": [events[0]]}]
    with pytest.raises(InputError, match="no field 'n'"):
        rules.sql(["f"])


def test_fields_of_structs_as_sql() -> None:
    """Fields of structs are known by their path, as the types of a DataFrame say them."""
    rules = read(rule("s: {p.q.line: x, p.n: 5}"))
    types = {
        "id": "int",
        "p": "struct<q:struct<d:decimal(5,2),line:string>,n:int>",
        "m": "map<a,b>",
    }
    sql = rules.sql(types)["r"]

    assert sql == "((lower(`p`.`q`.`line`) = 'x') AND (`p`.`n` = 5))"
    event = {"p": {"q": {"line": "X"}, "n": 5}}
    assert match(Pattern.begin("a").where(sql), [event]) == [{"a": [event]}]
    assert "`p.n`" in read(rule("s: {p.n: 5}")).sql({"p.n": "int"})["r"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (rule("s: {f: x}\ncondition: s | count() by u > 5"), "pipe syntax"),
        (rule("s: {f: x}\ncondition: t"), "t"),
        (rule("s: {f|nosuch: x}"), "nosuch"),
        (rule("s: {f|re: '['}"), "r: "),
        ("title: x\nlogsource: {category: a}\n", "x: "),
        ("- a\n- b\n", "expected a rule"),
        ("a: [\n", "rule 1: "),
    ],
)
def test_refusals(text: str, why: str) -> None:
    """A rule that is wrong is refused by its name, and the others are read."""
    with pytest.warns(UserWarning, match="1 Sigma rule refused"):
        rules = read(text, rule("s: {f: x}", "good"))
    (refused,) = rules.refused.values()
    assert why in str(refused)
    assert refused.hint
    assert list(rules.rules) == ["good"]


def test_placeholders_are_refused() -> None:
    """A placeholder needs a list of values, and is named."""
    with pytest.raises(NotSupportedError, match="r: it has the placeholder %admins%"):
        held("s: {f|expand: '%admins%'}", TEXTS)


def test_what_a_refused_rule_stops() -> None:
    """A correlation of a refused rule says why that was refused."""
    with pytest.warns(UserWarning, match="refused"):
        rules = read(rule("s: {f: x}\ncondition: t"), COUNT)

    with pytest.raises(InvalidArgumentError, match=r"^r: "):
        matchSigma(rules, [{"f": "x", "u": "a"}])


def test_two_rules_of_one_name() -> None:
    """The second is refused, with where it is."""
    with pytest.warns(UserWarning, match="another rule 'r'"):
        assert list(read(rule("s: {f: x}"), rule("s: {f: y}")).rules) == ["r"]


def _named(lines: str, value: str = "x") -> str:
    """Return a rule by what names it."""
    return f"{lines}\nlogsource: {{category: p}}\ndetection: {{s: {{f: {value}}}, condition: s}}\n"


def _counting(rule: str, lines: str = "title: C") -> str:
    """Return a correlation that alerts for each event of a rule."""
    own = f"type: event_count, rules: [{rule}], timespan: 1m, condition: {{gte: 1}}"
    return f"{lines}\ncorrelation: {{{own}}}\n"


_ONE, _TWO = (f"929a690e-bef0-4204-a928-ef5e620d6fc{digit}" for digit in "cd")


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([_named("title: a\nname: b"), _named("title: c\nname: a", "y")], "y"),
        ([_named("title: c\nname: a", "y"), _named("title: a\nname: b")], "y"),
        ([_named(f"title: a\nid: {_ONE}"), _named(f"title: d\nid: {_TWO}", "y")], "x"),
        ([_named("title: 'a'\nname: 'q''\"`; é'", "y")], "y"),
    ],
    ids=["name after title", "name before title", "title alone", "odd name"],
)
def test_names_go_before_titles(texts: list[str], found: str) -> None:
    """What has a name is meant by it, whatever else has this as title, in any order."""
    events = [{"f": "x"}, {"f": "y"}]
    alerts = matchSigma(read(*texts, _counting("a")), events)
    assert alerts["C"] == [[{"f": found}]]


def test_titles_of_several() -> None:
    """A title that several rules have names none of them; their ids do."""
    texts = [_named(f"title: T\nid: {_ONE}"), _named(f"title: T\nid: {_TWO}", "y")]
    with pytest.raises(InvalidArgumentError, match="C: 'T' is the title of several rules") as told:
        matchSigma(read(*texts, _counting("T")), [{"f": "x"}])
    assert _ONE in (told.value.hint or "")
    assert matchSigma(read(*texts, _counting(_TWO)), [{"f": "y"}]) == {"C": [[{"f": "y"}]]}


def test_correlations_without_names(tmp_path: Path) -> None:
    """They are told apart by where they are, in alerts as in errors."""
    for name in ("one.yml", "two.yml"):
        (tmp_path / name).write_text(_counting("r", "status: test"))
    rules = read(rule("s: {f: x}"), str(tmp_path))
    alerts = matchSigma(rules, [{"f": "x"}])
    assert [*alerts] == [*rules.correlations] == [f"{tmp_path / n}" for n in ("one.yml", "two.yml")]
    unnamed = {"type": "temporal", "rules": ["correlation"], "timespan": "1s"}
    count = {"type": "event_count", "rules": ["r"], "timespan": "1s", "condition": {"gte": 1}}
    assert matchSigma(unnamed, [{"f": "x"}], {"correlation": count, "r": "f = 'x'"})


def test_each_refusal_is_kept() -> None:
    """Refused filters and rules of one name do not hide each other, nor refuse what is right."""
    wrong = "name: r\nlogsource: {category: p}\nfilter: {rules: [r], s: {f: x}, condition: t}\n"
    again = [_named(f"title: other {n}\nname: r") for n in range(3)]
    with pytest.warns(UserWarning, match="5 Sigma rules refused"):
        rules = read(wrong, wrong, "---\n".join([rule("s: {f: x}"), *again]), _counting("other 2"))
    assert [*rules.rules] == ["r"]
    assert [*rules.refused] == [
        "the filter r",
        "the filter r (2)",
        *(f"r in rule 3{n}" for n in ("", " (2)", " (3)")),
    ]
    with pytest.raises(InvalidArgumentError, match="there is another rule 'r'"):
        matchSigma(rules, [{"f": "x"}])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nowhere", "ignore"), "no Sigma rules at 'nowhere'"),
        (([], None), "logsources: expected a dict of texts"),
        (([], {"process": 1}), "logsources: expected a dict of texts"),
        (([], "ignore", {"f": 1}), "a dict of texts as fields"),
        (([], "ignore", None, "drop"), "missing"),
        (([], "ignore", None, "null", "message"), "a list of columns as raw"),
        (([3], "ignore"), "expected paths or texts as source, got 3"),
    ],
)
def test_arguments(arguments: Any, why: str) -> None:
    """Arguments of the wrong kind are refused."""
    with pytest.raises(InvalidArgumentError, match=why):
        sigmaRules(*arguments)
