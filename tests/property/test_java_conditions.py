# SPDX-License-Identifier: Apache-2.0
"""Translated conditions of Java hold for the events for which they hold in Java."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from pyflinkcep import Pattern
from pyflinkcep.conditions import ContextFunctionCondition
from pyflinkcep.migrate.functions.translator import Translator
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Source, parse_java
from pyflinkcep.migrate.meaning.translated import Translated
from pyflinkcep.tables.events import as_event
from pyflinkcep.testing import match
from tests.property.java_programs import Conditions, Loops, answers, event_class, events

pytest.importorskip("tree_sitter_java", reason="needs pyflinkcep[migrate]")

Run = list[int]


@attrs.frozen
class Context:
    """What a condition knows of a partial match."""

    taken: list[Any]

    def getEventsForPattern(self, name: str) -> list[Any]:
        return self.taken


def translated(body: str, *, sql: bool) -> Translated:
    """Return the translation of a condition with a body."""
    java = (
        f"{event_class()} class J {{ Object c = new IterativeCondition<Event>() {{ public boolean "
        f"filter(Event e, Context<Event> ctx) {{ {body} }} }}; }}"
    )
    source: Source = parse_java(java, "J.java")
    assert source.errors == []
    project = Project([source])
    declared = project.find("J")
    assert declared is not None
    return Translator(declared.fields["c"].value, source, project).condition(sql=sql)


def function_of(found: Translated) -> Callable[..., Any]:
    """Return the function that a translation defines."""
    names: dict[str, Any] = {}
    exec("\n".join([*sorted(found.imports), found.python or ""]), names)
    function: Callable[..., Any] = names[str(found.name)]
    return function


def by_python(found: Translated, given: list[Any], runs: list[Run]) -> str:
    """Return what a translated function says: T, F, or E for an exception."""
    function = function_of(found)
    uses_context = "ctx: Any" in (found.python or "")

    def one(run: Run) -> str:
        context = (Context([given[at] for at in run[:-1]]),) if uses_context else ()
        try:
            value = function(given[run[-1]], *context)
        except Exception:
            return "E"
        assert isinstance(value, bool)
        return "T" if value else "F"

    return "".join(map(one, runs))


def by_sql(text: str, given: list[Any], runs: list[Run]) -> str:
    """Return what SQL says when a pattern is matched."""
    if all(len(run) == 1 for run in runs):
        return _of_events(text, [given[run[0]] for run in runs])
    return "".join(_after_others(text, [given[at] for at in run]) for run in runs)


def _of_events(text: str, given: list[Any]) -> str:
    pattern = Pattern.begin("e").where(text)
    try:
        held = [id(found["e"][0]) for found in match(pattern, given)]
    except Exception:
        return "E" if len(given) == 1 else "".join(_of_events(text, [one]) for one in given)
    return "".join("T" if id(one) in held else "F" for one in given)


def _after_others(text: str, given: list[Any]) -> str:
    """Return whether a condition holds for the last event after the others were taken."""
    taken = given[:-1]

    def is_taken(_: Any, ctx: Any) -> bool:
        return len(list(ctx.getEventsForPattern("a"))) < len(taken)

    pattern = Pattern.begin("z").next("a").where(ContextFunctionCondition(is_taken))
    pattern = pattern.oneOrMore().consecutive().optional() if taken else Pattern.begin("z")
    if not taken:
        never = pattern.next("a").where(lambda _: False).optional()
        pattern = never
    pattern = pattern.next("e").where(text)
    try:
        found = match(pattern, [given[0], *given])
    except Exception:
        return "E"
    return "T" if any(len(one.get("a", [])) == len(taken) for one in found) else "F"


def compared(java: str, found: Translated, said: str) -> list[int]:
    """Return the runs for which a translation is wrong."""
    wrong = []
    for place, (want, got) in enumerate(zip(java, said, strict=True)):
        if found.sql is None:
            right = want == got
        elif want == "E":
            right = any("null" in note.what for note in found.notes) or got == "E"
        else:
            right = want == got or (got == "E" and any("bits" in n.what for n in found.notes))
        if not right:
            wrong.append(place)
    return wrong


def check(bodies: list[str], java: list[str], given: list[Any], runs: list[Run]) -> dict[str, int]:
    """Hold translations to what Java says; return how many there are of each kind."""
    records = [as_event(event) for event in given]
    failed: list[str] = []
    kinds = {"sql": 0, "python": 0, "stub": 0}
    for body, expected in zip(bodies, java, strict=True):
        for sql in (True, False):
            found = translated(body, sql=sql)
            if sql:
                kind = "stub" if found.stub else ("sql" if found.sql else "python")
                kinds[kind] += 1
            if found.stub or (sql and found.sql is None):
                continue
            said = (
                by_sql(found.sql, records, runs)
                if found.sql is not None
                else by_python(found, records, runs)
            )
            wrong = compared(expected, found, said)
            if wrong:
                at = wrong[0]
                events_ = [given[place] for place in runs[at]]
                failed.append(
                    f"{body}\n  -> {found.sql or found.python}\n  Java {expected[at]}, here "
                    f"{said[at]} for {events_}"
                )
    assert failed == [], f"{len(failed)} wrong:\n" + "\n".join(failed[:8])
    return kinds


_RANDOM = random.Random(20)
_EVENTS = events(_RANDOM, 30)
_SINGLE: list[Run] = [[place] for place in range(30)]
_AFTER: list[Run] = [[_RANDOM.randrange(30) for _ in range(size)] for size in (1, 2, 2, 3, 3, 4, 5)]
_CONDITIONS = Conditions(_RANDOM)
_LOOPS = Loops(_RANDOM)
_ALONE = [f"return {_CONDITIONS.condition(place % 3)};" for place in range(150)]
_WALKING = [_LOOPS.body() for _ in range(70)]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what Java says of all conditions, compiled once."""
    if shutil.which("javac") is None:
        pytest.skip("needs javac")
    folder = tmp_path_factory.mktemp("java")
    return answers(folder, [*_ALONE, *_WALKING], _EVENTS, [*_SINGLE, *_AFTER])


@pytest.mark.slow
def test_translated_conditions_mean_the_same(java: list[str]) -> None:
    """SQL and functions hold where the condition holds in Java, on extremes, nulls and NaN."""
    kinds = check(_ALONE, [line[:30] for line in java[:150]], _EVENTS, _SINGLE)

    assert kinds["stub"] == 0
    assert kinds["sql"] > 50


def test_translated_loops_mean_the_same(java: list[str]) -> None:
    """Loops, streams and early returns hold after other events as they do in Java."""
    kinds = check(_WALKING, [line[30:] for line in java[150:]], _EVENTS, _AFTER)

    assert kinds["stub"] <= 1
    assert kinds["sql"] > 12  # extremes, averages and comparisons of each event are functions
