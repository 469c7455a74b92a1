# SPDX-License-Identifier: Apache-2.0
"""
Records what the original programs answer on a real Flink, for the tests.

Run it with ``python -m tests.migrate.record FOLDER [PROGRAM…]``, where FOLDER has Flink's jars.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.migrate.check.compare import answers_of, canonical, compare, load
from pyflinkcep.migrate.check.flink import Answer, Checked, Written, run_on_flink
from pyflinkcep.migrate.migration import Migration, migrate
from tests.migrate.random_events import random_events

HERE = Path(__file__).parent
PROGRAMS, RECORDED = [HERE / "programs", HERE / "harder"], HERE / "recorded"


_ALONE = ("", "its key is computed")
"""What does not keep a pattern from being compared: without a key, both have all events."""


def chosen_events(made: Migration, file: Written, checked: Checked) -> list[dict[str, Any]]:
    """Return random events on which the translation has some, but not too many answers."""
    module = load(file)
    best: list[dict[str, Any]] = []
    most = -1
    for seed in range(40):
        events = random_events(made.project, file, checked, seed)
        try:
            matches, timeouts = answers_of(checked, getattr(module, checked.name)(), events)
        except (CepError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            continue
        number = len(matches) * 30 + len(timeouts)
        if most < number and len(matches) + len(timeouts) <= 300:
            best, most = events, number
    if most < 60:
        best = led_events(made, file, checked) or best
    return best or random_events(made.project, file, checked, 0)


def led_events(made: Migration, file: Written, checked: Checked) -> list[dict[str, Any]]:
    """Return events of which each one leads partial matches on: new ones, or like those before."""
    make = getattr(load(file), checked.name)
    pattern = make()
    if not pattern.getWindowSize():
        pattern = pattern.within(timedelta(days=36_500))
    chosen = random.Random(24)
    pool = [
        event
        for seed in range(8)
        for event in random_events(made.project, file, checked, seed, 100)
    ]
    found: list[dict[str, Any]] = []
    reached = (0, 0)
    for step in range(40):
        choices: list[tuple[tuple[int, int], list[dict[str, Any]]]] = []
        for _ in range(120):
            one = chosen.choice(pool)
            if found and chosen.random() < 0.6:
                like = chosen.choice(found)
                one = {n: v if chosen.random() < 0.35 else like[n] for n, v in one.items()}
            events = [*found, later(one, found, checked)]
            try:
                matches, timeouts = answers_of(checked, pattern, events)
            except (CepError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                continue
            depth = max((sum(map(len, t["match"].values())) for t in timeouts), default=0)
            choices.append(((len(matches), depth), events))
        if not choices:
            return found
        best = max(choices, key=lambda choice: choice[0])
        if best[0] >= reached or step % 4 == 3:
            reached, found = best
        if reached[0] >= 6:
            break
    return found


def later(event: dict[str, Any], before: list[dict[str, Any]], checked: Checked) -> dict[str, Any]:
    """Return an event a little after those before it, with the key of the first one."""
    if not before:
        return event
    first, last = before[0], before[-1]
    kept = {key: first[key] for key in checked.keys if key in first}
    time = checked.time
    if time in event and isinstance(event[time], int):
        kept[time] = last[time] + 1 + event[time] % 50
    elif time in event:
        kept[time] = max(str(event[time]), str(last[time]))
    return {**event, **kept}


def recorded(answer: Answer) -> dict[str, Any]:
    """Return an answer with events by their place."""
    places: dict[str, int] = {}
    for place, event in enumerate(answer.events):
        places.setdefault(canonical(event), place)

    def stages(row: dict[str, Any]) -> dict[str, list[int]]:
        return {s: [places[canonical(e)] for e in events] for s, events in row["match"].items()}

    return {
        "events": answer.events,
        "matches": [stages(row) for row in answer.matches],
        "timeouts": [
            {"match": stages(row), "timestamp": row["timestamp"]} for row in answer.timeouts
        ],
        **({} if answer.rows is None else {"rows": answer.rows}),
    }


def restored(stored: dict[str, Any]) -> Answer:
    """Return a recorded answer."""
    events = stored["events"]

    def stages(match: dict[str, list[int]]) -> dict[str, list[Any]]:
        return {stage: [events[place] for place in places] for stage, places in match.items()}

    return Answer(
        events,
        [{"match": stages(match)} for match in stored["matches"]],
        [
            {"match": stages(row["match"]), "timestamp": row["timestamp"]}
            for row in stored["timeouts"]
        ],
        rows=stored.get("rows"),
    )


def stored_answers(module: str) -> dict[str, Any]:
    """Return the answers that were recorded before, whose events are taken again."""
    file = RECORDED / f"{module}.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def main(jars: str, *only: str) -> None:
    """Record the answers of all programs, or of some; show what differs."""
    made = migrate([str(folder) for folder in PROGRAMS])
    RECORDED.mkdir(exist_ok=True)
    for file in made.report.files:
        able = [attrs.evolve(one, problem="") for one in file.checked if one.problem in _ALONE]
        if not able or (only and file.module not in only):
            continue
        kept = stored_answers(file.module or "")
        events = {
            one.name: kept[one.name]["events"]
            if kept.get(one.name, {}).get("matches")
            else chosen_events(made, file, one)
            for one in able
        }
        try:
            answers = run_on_flink(made.project, able, events, Path(jars))
        except CepError as error:
            print(f"{file.module}: {error}")
            continue
        module, stored = load(file), {}
        for one in able:
            answer = answers[one.name]
            outcome = compare(one, getattr(module, one.name), answer, module)
            print(
                f"{file.module}.{one.name}: {outcome.matches} matches, {outcome.timeouts} timeouts",
                f"{outcome.rows} rows",
                outcome.text[:600] or outcome.unknown[:300],
                flush=True,
            )
            if answer.error is None:
                stored[one.name] = recorded(answer)
        text = json.dumps(stored, ensure_ascii=False, separators=(",", ":")).replace(
            '{"events"', '\n{"events"'
        )
        (RECORDED / f"{file.module}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
