# SPDX-License-Identifier: Apache-2.0
"""Files of rules, in YAML or JSON, with the line of each of their parts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, get_args

import attrs

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.eql import Eql
from pyflinkcep.errors import (
    CepError,
    InputError,
    InvalidArgumentError,
    NotSupportedError,
    did_you_mean,
)
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.pattern import AfterMatchSkipStrategy, Pattern, WithinType
from pyflinkcep.pattern.display import SHOWN
from pyflinkcep.rules.document import DocumentError, Part, Path
from pyflinkcep.rules.pattern_reader import COMBINED, Registry, pattern_of, registry_of, told_at
from pyflinkcep.rules.rule import DROP, Definition, Found, Rule, RuleTest, WhenReplaced
from pyflinkcep.rules.sigma_correlation import SigmaCorrelation
from pyflinkcep.sase import SaseQuery, parse

_APPENDING = tuple(shown.method for shown in SHOWN.values())
_COUNTS = ("oneOrMore", "times", "timesOrMore")
_FLAGS = ("consecutive", "allowCombinations", "greedy", "optional")
_STAGE_KEYS = ("begin", *_APPENDING, "where", *_COUNTS, "until", *_FLAGS)
_SKIPS = ("noSkip", "skipToNext", "skipPastLastEvent")
_SKIPS_TO = ("skipToFirst", "skipToLast")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LENGTH = re.compile(r"(?:\d+(?:ms|[smhd]))+")


def listed_pattern(stages: Part, within: Part, gap: Part, skip: Part) -> Pattern:
    """Return the pattern of a list of stages."""
    strategy = _skip(skip)
    pattern = _pattern(stages, strategy)
    for window, kind in (
        (within, WithinType.FIRST_AND_LAST),
        (gap, WithinType.PREVIOUS_AND_CURRENT),
    ):
        if not window.is_none:
            with told_at(window):
                pattern = pattern.within(length(window), kind)
    return pattern


def length(part: Part) -> timedelta:
    """
    Return a length of time.

    Examples
    --------
    >>> length(Part("1h30m"))
    datetime.timedelta(seconds=5400)
    """
    text = part.text()
    if not _LENGTH.fullmatch(text):
        raise part.refused(
            f"expected a length of time, got {text!r}", "write a number and ms, s, m, h or d: 90s"
        )
    found = re.findall(r"(\d+)([a-z]+)", text)
    try:
        return timedelta(milliseconds=sum(int(size) * _UNITS_MS[unit] for size, unit in found))
    except (OverflowError, ValueError):  # of thousands of digits
        raise part.refused(f"{text!r:.80} is too long", "write a shorter time") from None


def check_keys(part: Part, known: tuple[str, ...]) -> Mapping[str, Any]:
    """Return an object, whose keys are among some."""
    given = part.mapping()
    for key in given:
        if key not in known:
            raise part[key].refused(
                f"the key {key!r} is not known",
                did_you_mean(f"{key}", known, f"the keys are {', '.join(known)}"),
            )
    return given


def _pattern(stages: Part, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
    made: Any = Pattern
    for number, stage in enumerate(stages.items()):
        given = check_keys(stage, _STAGE_KEYS)
        methods = ("begin",) if number == 0 else _APPENDING
        named = [method for method in methods if method in given]
        if len(named) != 1 or (number and "begin" in given):
            wanted = "begin" if number == 0 else f"one of {', '.join(_APPENDING)}"
            raise stage.refused(f"expected a stage with {wanted}", "write its name after it")
        what = _named(stage[named[0]])
        with told_at(stage):
            made = getattr(made, named[0])(what, *([] if number or skip is None else [skip]))
        made = _modified(made, stage)
    if made is Pattern:
        raise stages.refused("expected at least one stage", "write - begin: name")
    return made  # type: ignore[no-any-return]


def _named(part: Part) -> str | Pattern:
    """Return the name of a stage, or the pattern of a group."""
    if isinstance(part.value, str):
        return part.text()
    if not isinstance(part.value, Mapping):
        return _pattern(part)
    methods = tuple(COMBINED.values())
    given = check_keys(part, (*methods, "joinedBy"))
    named = [method for method in methods if method in given]
    if len(named) != 1:
        raise part.refused("expected oneOf or allOf", "write {oneOf: [[stages], [stages]]}")
    parts = [_pattern(inner) for inner in part[named[0]].items()]
    joined = {} if part["joinedBy"].is_none else {"joinedBy": part["joinedBy"].text()}
    with told_at(part):
        return getattr(Pattern, named[0])(*parts, **joined)  # type: ignore[no-any-return]


def _modified(pattern: Any, stage: Part) -> Pattern:
    """Return a pattern with what its last stage says."""
    where = stage["where"]
    if not where.is_none:
        pattern = _with_condition(pattern, "where", where)
    counts = [name for name in _COUNTS if not stage[name].is_none]
    for name in counts:
        with told_at(stage[name]):
            pattern = getattr(pattern, name)(*_numbers(stage[name], name))
    if not stage["until"].is_none:
        pattern = _with_condition(pattern, "until", stage["until"])
    for name in _FLAGS:
        if _is_set(stage[name]):
            with told_at(stage[name]):
                pattern = getattr(pattern, name)()
    return pattern  # type: ignore[no-any-return]


def _with_condition(pattern: Any, method: str, part: Part) -> Pattern:
    text = part.text()
    with told_at(part):
        parsed(text)
        return getattr(pattern, method)(text)  # type: ignore[no-any-return]


def _numbers(part: Part, method: str) -> list[int]:
    if method == "oneOrMore":
        if part.value is not True:
            raise part.refused(f"expected true, got {part.value!r}", "write oneOrMore: true")
        return []
    if isinstance(part.value, list) and method == "times":
        found = [number.whole() for number in part.items()]
        if len(found) != 2:
            raise part.refused(f"expected two numbers, got {found}", "write times: [2, 4]")
        return found
    return [part.whole()]


def _is_set(part: Part) -> bool:
    if part.value not in (None, True, False):
        raise part.refused(f"expected true or false, got {part.value!r}", "write true")
    return bool(part.value)


def _skip(part: Part) -> AfterMatchSkipStrategy | None:
    if part.is_none:
        return None
    if isinstance(part.value, str):
        made: AfterMatchSkipStrategy = getattr(AfterMatchSkipStrategy, part.choice(_SKIPS))()
        return made
    given = check_keys(part, _SKIPS_TO)
    if len(given) != 1:
        raise part.refused("expected one strategy", "write {skipToFirst: stage}")
    name = next(iter(given))
    to: AfterMatchSkipStrategy = getattr(AfterMatchSkipStrategy, name)(part[name].text())
    return to


_LANGUAGES = ("pattern", "query", "eql", "correlation")
_OF_STAGES = ("within", "gap", "skip")
_KEYS = ("rule", "version", "description", "key", "timestamp", "type", "whenReplaced", *_LANGUAGES,
         *_OF_STAGES, "conditions", "tests")  # fmt: skip
_TEST_KEYS = ("name", "events", "matches")
_ENDINGS = (".yml", ".yaml", ".json")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of an event at 0s."""


class RuleFileError(CepError, ValueError):
    """
    A rule that cannot be read, or does not find what its tests say.

    Parameters
    ----------
    file : str
        The file.
    line : int
        The line, from 1.
    problem : str
        What is wrong.
    hint : str, optional
        What to write instead.
    """

    def __init__(self, file: str, line: int, problem: str, hint: str | None = None) -> None:
        super().__init__(f"{file}:{line}: {problem}", hint, problem=problem)
        self.file = file
        self.line = line

    def __reduce__(self) -> tuple[type[RuleFileError], tuple[str, int, str, str | None]]:
        return type(self), (self.file, self.line, self.problem, self.hint)


@attrs.define
class Checked:
    """What became of the rules of a folder."""

    rules: list[Rule] = attrs.field(factory=list)  # Those that could be read
    tests: int = 0  # How many of their tests ran
    problems: list[RuleFileError] = attrs.field(factory=list)  # What is wrong, by file and line


def readRules(path: str | FilePath, conditions: Registry | None = None) -> list[Rule]:
    """
    Return the rules of a file, or of all files of a folder: YAML and JSON.

    Parameters
    ----------
    path : str or Path
        The file or folder.
    conditions : dict, optional
        The classes that documents of patterns name; see :meth:`pyflinkcep.Pattern.fromJson`.

    Returns
    -------
    list of Rule
        The rules in the order of files and of their text.

    Raises
    ------
    RuleFileError
        If a rule cannot be read, or two have the same name; with file and line.
    NotSupportedError
        If PyYAML is missing.
    InputError
        If there is no such file or folder.
    """
    checked = _read(path, conditions)
    if checked.problems:
        raise checked.problems[0]
    return checked.rules


def checkRules(path: str | FilePath, conditions: Registry | None = None) -> Checked:
    """
    Read the rules of a file or folder and run the tests in them; see :func:`readRules`.

    Returns
    -------
    Checked
        The ``rules`` that could be read, how many ``tests`` ran, and all ``problems``, each with
        ``file``, ``line``, ``problem`` and ``hint``.
    """
    return _read(path, conditions, runs_tests=True)


def document_of(text: str | Mapping[str, Any], what: str) -> tuple[Any, Source]:
    """Return the document of a rule in a text of YAML or JSON, or as it was read from one."""
    if not isinstance(text, str):
        return text, Source(what, {})
    documents = list(_documents_of(text, what, _is_json(text)))
    if len(documents) != 1:
        found = f"expected one rule, got {len(documents)}"
        raise RuleFileError(what, 1, found, "write one document")
    ((document, lines),) = documents
    return document, Source(what, lines)


def rule_in(document: Any, source: Source, conditions: Registry) -> Rule:
    """Return the rule of a document; errors tell its lines."""
    try:
        return rule_of(Part(document), conditions)
    except DocumentError as error:
        raise source.error(error.path, error.problem, error.hint) from None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _read(
    path: str | FilePath, conditions: Registry | None, *, runs_tests: bool = False
) -> Checked:
    if not isinstance(path, str | PathLike):
        raise InvalidArgumentError(
            f"expected the path of a file or folder of rules, got {path!r}", "pass 'rules'"
        )
    checked, known = Checked(), registry_of(conditions)
    names: dict[str, str] = {}
    for file in _files(FilePath(path)):
        try:
            for document, lines in _documents(file):
                _add(checked, names, Source(f"{file}", lines), document, known, runs_tests)
        except RuleFileError as error:
            checked.problems.append(error)
    return checked


def _add(
    checked: Checked,
    names: dict[str, str],
    source: Source,
    document: Any,
    conditions: Registry,
    runs_tests: bool,
) -> None:
    """Add a rule, or what is wrong with it."""
    try:
        rule = rule_in(document, source, conditions)
    except RuleFileError as error:
        checked.problems.append(error)
        return
    where = f"{source.file}:{source.line(('rule',))}"
    if rule.name in names:
        problem = f"{rule.name!r} is the name of the rule at {names[rule.name]} too"
        checked.problems.append(source.error(("rule",), problem, "give each rule its own name"))
    names.setdefault(rule.name, where)
    checked.rules.append(rule)
    if runs_tests:
        checked.tests += len(rule.tests)
        for test, failure, hint in failures_of(rule):
            problem = f"rule {rule.name!r}, {failure}"
            checked.problems.append(source.error((*test.path, "matches"), problem, hint))


def failures_of(rule: Rule) -> Iterator[tuple[RuleTest, str, str | None]]:
    """Run the tests of a rule; yield those that fail, with what is wrong and a hint."""
    for test in rule.tests:
        try:
            failure, hint = rule.failure(test), None
        except CepError as error:
            failure, hint = error.message, error.hint
        if failure is not None:
            yield test, f"test {test.name!r}: {failure}", hint


@attrs.frozen
class Source:
    """A file, and the lines of the parts of one of its rules."""

    file: str
    lines: Mapping[Path, int]

    def line(self, path: Path) -> int:
        """Return the line of a part, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, path: Path, problem: str, hint: str | None) -> RuleFileError:
        """Make the error for a part."""
        return RuleFileError(self.file, self.line(path), problem, hint)


# --- a rule


def rule_of(document: Part, conditions: Registry) -> Rule:
    """Return the rule of a document."""
    given = check_keys(document, _KEYS)
    name = document["rule"].text()
    version = 1 if document["version"].is_none else document["version"].whole()
    definition = _definition(document, conditions)
    tests = document["tests"].items()
    timestamp = _text(document["timestamp"], "timestamp")
    return Rule(
        name,
        definition,
        _key(document["key"]),
        version,
        timestamp,
        _text(document["type"], "type"),
        _text(document["description"], "") if given.get("description") else "",
        tuple(_test(test, number, timestamp, definition) for number, test in enumerate(tests, 1)),
        whenReplaced=_when_replaced(document["whenReplaced"]),
    )


def _when_replaced(part: Part) -> WhenReplaced:
    known = {name: name for name in get_args(WhenReplaced)}
    return DROP if part.is_none else known[part.choice(known)]


def _definition(document: Part, conditions: Registry) -> Definition:
    languages = [name for name in _LANGUAGES if not document[name].is_none]
    if len(languages) != 1:
        raise document.refused(
            f"expected one of {', '.join(_LANGUAGES)}, got {' and '.join(languages) or 'none'}",
            "write what the rule finds, in one language",
        )
    part = document[languages[0]]
    is_listed = languages[0] == "pattern" and isinstance(part.value, list)
    for name in () if is_listed else _OF_STAGES:
        if not document[name].is_none:
            raise document[name].refused(f"{name} belongs to a list of stages", "leave it out")
    if not document["conditions"].is_none and languages[0] != "correlation":
        raise document["conditions"].refused("conditions belong to a correlation", "leave them out")
    if languages[0] == "pattern":
        stages = (document[name] for name in _OF_STAGES)
        pattern = listed_pattern(part, *stages) if is_listed else pattern_of(part, conditions)
        with told_at(part):
            NFACompiler.compile(pattern)
        return pattern
    names_key = {"eql": "sequence by key", "correlation": "group-by: [key]"}
    if languages[0] in names_key and not document["key"].is_none:
        raise document["key"].refused(
            f"{languages[0]} names its key by itself", f"write it there: {names_key[languages[0]]}"
        )
    if languages[0] == "correlation":
        return _correlation(part, document["conditions"])
    text = part.text()
    with told_at(part):
        return Eql(text) if languages[0] == "eql" else parse(text)


def _correlation(part: Part, conditions: Part) -> SigmaCorrelation:
    rules = conditions.mapping()
    for name, rule in rules.items():
        if not isinstance(rule, Mapping):
            text = conditions[name].text()
            with told_at(conditions[name]):
                parsed(text)
    with told_at(part):
        return SigmaCorrelation(part.mapping(), rules)


def _text(part: Part, otherwise: str) -> str:
    return otherwise if part.is_none else part.text()


def _key(part: Part) -> tuple[str, ...]:
    if part.is_none:
        return ()
    return (part.text(),) if isinstance(part.value, str) else tuple(p.text() for p in part.items())


def _test(test: Part, number: int, timestamp: str, definition: Definition) -> RuleTest:
    check_keys(test, _TEST_KEYS)
    events: dict[str, Mapping[str, Any]] = {}
    for label in test["events"].mapping():
        event = test["events"][label]
        time = event[timestamp]
        if not isinstance(label, str):
            raise event.refused(f"expected a text as label, got {label!r}", "write it in quotes")
        events[label] = {**event.mapping(), timestamp: _time(time)}
    if "matches" not in test.mapping():
        raise test.refused("a test without matches", "write matches: [] if nothing is found")
    matches = tuple(_found(found, events, definition) for found in test["matches"].items())
    name = f"{number}" if test["name"].is_none else test["name"].text()
    return RuleTest(name, events, matches, test.path)


def _time(part: Part) -> datetime:
    if isinstance(part.value, datetime):
        return part.value
    try:
        return _BEGIN + length(part)
    except OverflowError:
        raise part.refused(f"{part.value!r} is too far", "write a shorter time") from None


def _found(part: Part, events: Mapping[str, Any], definition: Definition) -> Found:
    """Return a match that is expected."""
    if isinstance(definition, Eql | SigmaCorrelation):
        return [None if one.is_none else one.choice(events) for one in part.items()]
    if isinstance(definition, SaseQuery) and definition.columns is not None:
        return dict(part.mapping())
    return _labels(part, events)


def _labels(found: Part, events: Mapping[str, Any]) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for stage in found.mapping():
        part = found[stage]
        parts = [part] if isinstance(part.value, str) else list(part.items())
        labels[stage] = [one.choice(events) for one in parts]
    return labels


# --- files


def _files(path: FilePath) -> list[FilePath]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file or folder", "pass a file or a folder")
    return [path]


def _documents(file: FilePath) -> Iterator[tuple[Any, Mapping[Path, int]]]:
    """Yield the documents of a file, with the line of each part."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise RuleFileError(f"{file}", 1, f"it cannot be read: {cause}") from None
    yield from _documents_of(text, f"{file}", file.suffix == ".json")


def _documents_of(text: str, file: str, is_json: bool) -> Iterator[tuple[Any, Mapping[Path, int]]]:
    """Yield the documents of a text, with the line of each part."""
    try:
        yaml = import_module("yaml")
    except ImportError as cause:
        raise NotSupportedError(
            "files of rules need PyYAML, which is not installed", 'pip install "pyflinkcep[rules]"'
        ) from cause
    try:
        # Not all of JSON's numbers, texts and tabs are YAML's: there that tells the lines alone.
        document = json.loads(text) if is_json else None
        loader = yaml.SafeLoader(text.replace("\t", " ") if is_json else text)
        while loader.check_node():
            root = loader.get_node()
            if root.tag.endswith(":null"):
                continue
            lines: dict[Path, int] = {}
            _number(root, (), lines, file, set())
            yield document if is_json else loader.construct_document(root), lines
    except (yaml.YAMLError, RecursionError, ValueError) as cause:
        if isinstance(cause, CepError):
            raise
        mark = getattr(cause, "problem_mark", None)
        problem = getattr(cause, "problem", None) or f"{cause}"
        line = getattr(cause, "lineno", 1) if mark is None else mark.line + 1
        kind = "JSON" if is_json else "YAML"
        raise RuleFileError(file, line, f"no {kind}: {problem}") from None


def _number(node: Any, path: Path, lines: dict[Path, int], file: str, seen: set[int]) -> None:
    """Note the lines of a node and all inside; refuse a key that is there twice, and aliases."""
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if id(node) in seen:
        raise RuleFileError(
            file, lines[path], "an alias of YAML is not read", "write its value out"
        )
    seen.add(id(node))
    if isinstance(node.value, str):
        return
    if node.id == "sequence":
        for number, item in enumerate(node.value):
            _number(item, (*path, number), lines, file, seen)
        return
    for key, value in node.value:
        below = (*path, key.value if isinstance(key.value, str) else "?")
        if below in lines:
            raise RuleFileError(
                file, key.start_mark.line + 1, f"the key {key.value!r} is there twice", "keep one"
            )
        lines[below] = key.start_mark.line + 1
        _number(value, below, lines, file, seen)
