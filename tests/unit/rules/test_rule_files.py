# SPDX-License-Identifier: Apache-2.0
"""Files of rules: what is read, what is refused at which line, the tests in them, their schema."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import pyflinkcep.rules
from pyflinkcep import Eql, InputError, NotSupportedError, Pattern, SimpleCondition
from pyflinkcep.rules import Rule, RuleFileError, SigmaCorrelation, checkRules, readRules
from pyflinkcep.rules.__main__ import main
from pyflinkcep.rules.document import Part
from pyflinkcep.rules.rule_file import rule_of
from pyflinkcep.rules.rule_table import rule_to_document

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "rules.md"
SCHEMA = json.loads((Path(pyflinkcep.rules.__file__).parent / "schema.json").read_text("utf-8"))
HEAD = "rule: r\npattern:\n- begin: a\n  where: n = 1\n"

SIGMA = (
    "rule: s\n"
    "correlation: {type: event_count, rules: [f], timespan: 1m, condition: {gte: 2}}\n"
    "conditions:\n"
    "  f: n = 1\n"
)

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return what writes files of rules."""

    def written(text: str, name: str = "r.yml") -> Path:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return written


def valid(text: str) -> bool:
    """Whether the schema allows all rules of a text."""
    schema = jsonschema.Draft202012Validator(SCHEMA)
    return all(schema.is_valid(rule) for rule in yaml.safe_load_all(text))


def test_rules_of_the_page(write: Write) -> None:
    """The rules of the manual are read, find what their tests say, and fit the schema."""
    texts = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for number, text in enumerate(texts):
        write(text, f"{number}.yaml")
        assert valid(text)
    checked = checkRules(write("", "empty.yml").parent)

    assert [problem.message for problem in checked.problems] == []
    assert (len(checked.rules), checked.tests) == (5, 6)


ODD_STAGES = """
rule: r
key: [a, b]
pattern:
- begin:
  - begin: a
  - next: b
    times: [1, 2]
    allowCombinations: true
- followedBy: {oneOf: [[{begin: c}], [{begin: d}, {next: e}]]}
- followedByAny: {allOf: [[{begin: f}], [{begin: g}]], joinedBy: next}
- next: h
  oneOrMore: true
  greedy: true
  until: n > 3
- notNext: i
- followedBy: j
  timesOrMore: 2
  consecutive: true
  optional: false
within: 1h
gap: 90s
skip: {skipToLast: h}
"""


def test_every_key_of_stages(write: Write) -> None:
    """Stages are built by the methods of ``Pattern`` that they name, groups by lists in them."""
    (rule,) = readRules(write(ODD_STAGES))

    assert valid(ODD_STAGES)
    assert rule.key == ("a", "b")
    assert isinstance(rule.definition, Pattern)
    shown = "(a ⇒ b{1,2}) → (c | d ⇒ e) ⇢ (f &⇒ g) ⇒ h+ ⇏ i → j{2,}"
    assert rule.definition.describe() == shown
    assert rule.definition.getWindowSize() == 3_600_000
    assert rule.definition.getAfterMatchSkipStrategy().getPatternName() == "h"


def test_documents_in_files_of_json(write: Write) -> None:
    """A file of JSON may have a document of Flink as its pattern."""
    document = Pattern.begin("a").where("n = 1").toJson()
    text = json.dumps({"rule": "r", "version": 3, "pattern": document})
    (rule,) = readRules(write(text, "r.json"))

    assert valid(text)
    assert (rule.version, repr(rule.definition)) == (3, "Pattern(a)")


def test_json_is_no_yaml(write: Write) -> None:
    """A file of JSON has JSON's numbers, texts and tabs; its errors have their lines too."""
    test = '{"events": {"x": {"timestamp": "0s", "n": 1e3}}, "matches": [{"a": "x"}]}'
    stages = '[{"begin": "a", "where": "n = 1000"}]'
    text = f'{{\n\t"rule": "r \\ud83d\\ude00",\n\t"pattern": {stages},\n\t"tests": [{test}]}}'
    checked = checkRules(write(text, "r.json"))
    wrong = checkRules(write(text.replace("begin", "bgin"), "r.json"))
    broken = checkRules(write(text[:-1], "r.json"))

    assert [problem.message for problem in checked.problems] == []
    assert [rule.name for rule in checked.rules] == ["r \U0001f600"]
    assert [problem.line for problem in wrong.problems] == [3]
    assert [problem.problem[:9] for problem in broken.problems] == ["no JSON: "]
    assert broken.problems[0].line == 4


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("rule: r\nrule: s\n", 2, "the key 'rule' is there twice"),
        ("rule: [", 1, "no YAML: "),
        ("- 1\n", 1, "expected an object, got [1]"),
        ("pattern: []\n", 1, "expected a text, got nothing"),
        ("rule: r\n", 1, "expected one of pattern, query, eql, correlation, got none"),
        (
            HEAD + "query: x\n",
            1,
            "expected one of pattern, query, eql, correlation, got pattern and query",
        ),
        (HEAD.replace("where", "wher"), 4, "the key 'wher' is not known"),
        (HEAD.replace("n = 1", "n = = 1"), 4, "'n = = 1': "),
        (HEAD + "- begin: b\n", 5, "expected a stage with one of next, "),
        (HEAD + "- next: b\n  times: 0\n", 6, "You should give a positive number"),
        (HEAD + "- next: b\n  times: [1]\n", 6, "expected two numbers, got [1]"),
        (HEAD + "- next: b\n  oneOrMore: 3\n", 6, "expected true, got 3"),
        (HEAD + "- next: b\n  greedy: true\n", 6, "Option not applicable to singleton"),
        (HEAD + "- next: b\n  optional: often\n", 6, "expected true or false, got 'often'"),
        (HEAD + "- next: {some: [b]}\n", 5, "the key 'some' is not known"),
        (HEAD + "- next: {joinedBy: next}\n", 5, "expected oneOf or allOf"),
        (HEAD + "- next: a\n", 2, "Duplicate pattern name: a"),
        (HEAD + "within: 5 minutes\n", 5, "expected a length of time, got '5 minutes'"),
        (HEAD + f"within: {10**15}d\n", 5, f"'{10**15}d' is too long"),
        (HEAD + f"within: {'9' * 5000}d\n", 5, f"'{'9' * 79} is too long"),
        (HEAD + "skip: later\n", 5, "'later' is not known"),
        (HEAD + "skip: {skipToFirst: a, skipToLast: a}\n", 5, "expected one strategy"),
        ("rule: r\nquery: SEQ(\n", 2, "line 1"),
        ("rule: r\nquery: PATTERN SEQ(A a)\nwithin: 5s\n", 3, "within belongs to a list of stages"),
        ("rule: r\neql: any where\n", 2, "line 1, column 10: "),
        ("rule: r\neql: any where true\nkey: a\n", 3, "eql names its key by itself"),
        (SIGMA + "key: a\n", 5, "correlation names its key by itself"),
        (SIGMA.replace("gte", "geq"), 2, "correlation: unknown bound 'geq'"),
        (SIGMA.replace("[f]", "[g]"), 2, "correlation: unknown rule 'g'"),
        (SIGMA.replace("n = 1", "n = = 1"), 4, "'n = = 1': "),
        (HEAD + "conditions: {}\n", 5, "conditions belong to a correlation"),
        ("rule: r\nquery: &q PATTERN SEQ(A a)\ndescription: *q\n", 3, "an alias of YAML is not"),
        (HEAD + "tests:\n- events: {x: {timestamp: 0s, n: 1}}\n  matches:\n  - {a: y}\n", 8, "'y'"),
        (HEAD + "tests:\n- events: {no: {timestamp: 0s}}\n", 6, "expected a text as label"),
        (HEAD + "tests:\n- events: {x: {n: 1}}\n", 6, "expected a text, got nothing"),
        (HEAD + "tests:\n- events: {x: {timestamp: 9999999d}}\n", 6, "'9999999d' is too far"),
        (HEAD + "tests:\n- events: {x: {timestamp: 0s}}\n", 6, "a test without matches"),
        (HEAD + "---\n" + HEAD, 6, "'r' is the name of the rule at "),
    ],
)
def test_refusals(write: Write, text: str, line: int, problem: str) -> None:
    """What is wrong is refused with file and line."""
    file = write(text)
    with pytest.raises(RuleFileError) as refused:
        readRules(file)
    error = refused.value

    assert (error.file, error.line) == (f"{file}", line), error
    assert error.problem.startswith(problem), error
    assert error.hint or problem == "no YAML: "


@pytest.mark.parametrize(
    "text",
    [
        "rule: r\n",
        HEAD.replace("where", "wher"),
        HEAD + "- begin: b\n",
        HEAD + "- next: b\n  times: [1]\n",
        HEAD + "within: 5 minutes\n",
        HEAD + "skip: later\n",
        HEAD + "query: x\n",
        "rule: r\nquery: x\nwithin: 5s\n",
        "rule: r\neql: any where true\nkey: a\n",
        HEAD + "tests:\n- events: {}\n",
    ],
)
def test_the_schema_refuses(text: str) -> None:
    """The schema refuses what readers refuse by its form."""
    assert valid(HEAD)
    assert valid(SIGMA)
    assert not valid(text)


FAILING = HEAD + (
    "tests:\n"
    "- name: one\n"
    "  events: {x: {timestamp: 0s, n: 1}}\n"
    "  matches: []\n"
    "- events: {x: {timestamp: 0s, m: 1}}\n"
    "  matches: []\n"
)


def test_tests_that_fail(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """A test says what was found instead; an error of a condition is a failure like others."""
    file = write(FAILING)
    status = main(["check", f"{file.parent}"])
    lines = capsys.readouterr().out.splitlines()

    assert status == 1
    assert (
        lines[0] == f"{file}:8: rule 'r', test 'one': expected the matches [], got [{{'a': ['x']}}]"
    )
    assert lines[1].startswith(f"{file}:10: rule 'r', test '2': ")
    assert lines[-1] == "1 rule, 2 tests, 2 problems"


def test_all_files_are_checked(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read does not hide what is wrong with others; nothing found is an error."""
    write("rule: [", "a.yml")
    write("rule: r\n", "b.json")
    write(HEAD, "c.yaml")
    (file,) = [write("", "d.yml")]
    file.write_bytes(b"\xff")
    checked = checkRules(file.parent)

    assert [Path(problem.file).name for problem in checked.problems] == ["a.yml", "b.json", "d.yml"]
    assert [rule.name for rule in checked.rules] == ["r"]
    with pytest.raises(InputError, match="there is no such file or folder"):
        readRules(file.parent / "missing")
    assert main(["check", f"{file.parent / 'missing'}"]) == 2
    assert "no such file" in capsys.readouterr().err
    (file.parent / "empty").mkdir()
    assert main(["check", f"{file.parent / 'empty'}"]) == 2


def test_without_pyyaml(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PyYAML the refusal says what to install."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(NotSupportedError, match=r"pyflinkcep\[rules\]"):
        readRules(write(HEAD))


RETURNED = """
rule: r
key: user
query: PATTERN SEQ(A a, B b) RETURN a.n + b.n AS total
tests:
- events:
    a: {timestamp: 0s, type: A, user: u, n: 1}
    other: {timestamp: 1s, type: B, user: v, n: 5}
    b: {timestamp: 2s, type: B, user: u, n: 2}
  matches:
  - {total: 3}
"""


def test_queries_with_return(write: Write) -> None:
    """What a query returns is compared by its columns, and keys keep its matches apart."""
    checked = checkRules(write(RETURNED))

    assert [problem.message for problem in checked.problems] == []
    assert checked.tests == 1


@pytest.mark.parametrize(
    ("user", "problem"), [("{}", "has no 'user'"), ("{user: {n: 1}}", "got dict")]
)
def test_keys_that_events_lack(write: Write, user: str, problem: str) -> None:
    """A key that events of a query lack, or that cannot be compared, fails its test like others."""
    event = "{timestamp: 0s, type: A, "
    test = f"tests:\n- events: {{a: {event}{user[1:]}}}\n  matches: []\n"
    checked = checkRules(write("rule: r\nkey: user\nquery: PATTERN SEQ(A a)\n" + test))

    assert len(checked.problems) == 1
    assert problem in checked.problems[0].message


def _fingerprint(where: str, **more: Any) -> str:
    pattern = Pattern.begin("a").where(where).next("b").where("n > last(a.n) + 1")
    return Rule("r", pattern, **more).fingerprint


@pytest.mark.parametrize(
    "where", ["n=1 AND m = 'x'", 'n = 1 and (m == "x")', " n =\n1 AND  m = 'x'"]
)
def test_fingerprints_last(where: str) -> None:
    """A fingerprint does not depend on layout, name, version and description."""
    expected = _fingerprint("n = 1 AND m = 'x'", key=("k",))

    assert _fingerprint(where, key=("k",), version=4, description="d") == expected
    assert re.fullmatch(r"[0-9a-f]{32}", expected)


@pytest.mark.parametrize(
    ("where", "key"),
    [("n = 1 AND m = 'X'", "k"), ("n = 1L AND m = 'x'", "k"), ("n = 1 AND m = 'x'", "j"),
     ("n = 1 OR m = 'x'", "k"), ("n = 1 AND `M` = 'x'", "k")],
)  # fmt: skip
def test_fingerprints_change(where: str, key: str) -> None:
    """It changes with each value, type, operator and key."""
    assert _fingerprint(where, key=(key,)) != _fingerprint("n = 1 AND m = 'x'", key=("k",))


def test_texts_in_what_only_spark_reads() -> None:
    """Spaces count in texts, and nowhere else, also in SQL that only Spark reads."""
    one, other, same = (
        _fingerprint(f"exists(tags,{space}v -> v = '{text}')")
        for space, text in (("", "a b"), ("", "a  b"), (" \n", "a b"))
    )

    assert one == same != other


@pytest.mark.parametrize(
    ("other", "query"),
    [
        ("any where `null` == 1", "any where null == 1"),
        ("`any` where true", "any where true"),
        ('any where a == `"b"`', 'any where a == "b"'),
        ("any where a == `1`", "any where a == 1"),
    ],
)
def test_backquotes_that_mean_something(other: str, query: str) -> None:
    """A name in backquotes that is a keyword or a literal without these is not the same in EQL."""
    assert Rule("r", Eql(other)).fingerprint != Rule("r", Eql(query)).fingerprint
    assert (
        Rule("r", Eql("any where `a` == 1")).fingerprint
        == Rule("r", Eql("any where a == 1")).fingerprint
    )


def test_fingerprints_of_whole_files_of_sigma() -> None:
    """Dates, which YAML reads as such, stand in files of Sigma and are no hindrance."""
    counted = {"type": "event_count", "rules": ["f"], "timespan": "1s", "condition": {"gte": 1}}
    whole = {"title": "t", "date": date(2026, 11, 28), "correlation": counted}
    own = Rule("r", SigmaCorrelation(whole, {"f": "n = 1"}))

    assert own.fingerprint == rule_of(Part(rule_to_document(own)), {}).fingerprint


def test_fingerprints_of_queries_and_documents(write: Write) -> None:
    """A document and a list of stages of the same pattern have one; a query has that of its text."""
    (listed,) = readRules(write(HEAD))
    read = Pattern.fromJson(json.dumps(listed.definition.toJson()))  # type: ignore[union-attr]
    queries = ["PATTERN SEQ(A a, B b)", "pattern  SEQ(A  a,B b)", "PATTERN SEQ(A a, C b)"]
    found = [readRules(write(f"rule: q\nquery: {query}"))[0].fingerprint for query in queries]
    events = ["any where x == 1", "any  where x==1 // one", "any where x == 2"]
    eql = [Rule("e", Eql(query)).fingerprint for query in events]

    assert Rule("s", read).fingerprint == listed.fingerprint
    assert found[0] == found[1] != found[2]
    assert eql[0] == eql[1] != eql[2]
    sigma = [
        readRules(write(text))[0].fingerprint
        for text in (SIGMA, SIGMA.replace("n = 1", "(n=1)"), SIGMA.replace("n = 1", "n = 2"))
    ]
    assert sigma[0] == sigma[1] != sigma[2]
    with pytest.raises(NotSupportedError, match="is Python, and no data"):
        _ = Rule("f", Pattern.begin("a").where(SimpleCondition.of(bool))).fingerprint
