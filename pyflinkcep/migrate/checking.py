# SPDX-License-Identifier: Apache-2.0
"""``--check``: the original on a real Flink beside the translation, on the same events."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from pyflinkcep.errors import InputError, counted
from pyflinkcep.migrate.check.compare import Difference, compare
from pyflinkcep.migrate.check.flink import Answer, Checked, CompileError, Event, run_on_flink
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.types import discriminator
from pyflinkcep.migrate.program import Written

__all__ = ["check", "load", "read_events", "shown"]


def read_events(file: Path) -> list[Event]:
    """
    Return the events of a file of JSON lines.

    Raises
    ------
    InputError
        If it cannot be read, or a line is not an object of JSON.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}", "pass a file of JSON lines") from error
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError as error:
            raise InputError(f"{file}:{number}: not JSON: {error}", "write an object") from error
        if not isinstance(event, dict):
            raise InputError(f"{file}:{number}: expected an object", 'write {"field": value, …}')
        events.append(event)
    return events


def check(
    project: Project, files: Iterable[Written], events: Sequence[Event], jars: Path
) -> list[Difference]:
    """
    Run the patterns of files on a real Flink and translated, and return what differs.

    This compiles and runs the Java.

    Parameters
    ----------
    project : Project
        The program.
    files : iterable of Written
        Its translated files.
    events : sequence of dict
        The events, for every pattern the same.
    jars : Path
        The folder with Flink's jars.
    """
    found: list[Difference] = []
    for file in files:
        found += _not_compared(file)
        module = load(file)
        for able in _batches(file):
            answers = _answers(project, able, events, jars)
            for one in able:
                answer = answers[one.name]
                if isinstance(answer, CompileError):
                    text = f"not compared: {answer.message}"
                    found.append(Difference(one.name, 0, 0, 0, text))
                else:
                    found.append(compare(one, getattr(module, one.name), answer, module))
    return found


def _answers(
    project: Project, able: Sequence[Checked], events: Sequence[Event], jars: Path
) -> Mapping[str, Answer | CompileError]:
    """Return the answers of Flink: of each pattern alone, if they do not compile together."""
    given = {one.name: events for one in able}
    try:
        return run_on_flink(project, able, given, jars, discriminators(project))
    except CompileError as error:
        if len(able) == 1:
            return {able[0].name: error}
    return {
        name: found
        for one in able
        for name, found in _answers(project, [one], events, jars).items()
    }


def _batches(file: Written) -> list[list[Checked]]:
    """Return the patterns that can be compared; one that is applied twice is in two batches."""
    batches: list[list[Checked]] = []
    for one in file.checked:
        if not one.problem:
            free = (b for b in batches if all(other.name != one.name for other in b))
            batch = next(free, None)
            if batch is None:
                batches.append(batch := [])
            batch.append(one)
    return batches


def _not_compared(file: Written) -> list[Difference]:
    """Return the patterns of a file that cannot be run alone, with the reason."""
    reasons = {one.name: one.problem for one in file.checked}
    found = []
    for name in file.patterns:
        reason = reasons.get(name, "it has parameters, or is not made in one place")
        if reason:
            found.append(Difference(name, 0, 0, 0, f"not compared: {reason}"))
    return found


def discriminators(project: Project) -> Mapping[str, str]:
    """Return for each class with subclasses the column that holds the class."""
    return {
        declared.name: discriminator(declared, project)
        for declared in project.classes
        if project.subclasses(declared)
    }


def load(file: Written) -> ModuleType:
    """Return the module of a translated file, without writing it."""
    module = ModuleType(file.module or "translated")
    sys.modules[module.__name__] = module
    exec(compile(file.text, f"{file.module}.py", "exec"), vars(module))
    return module


def shown(differences: Iterable[Difference]) -> tuple[list[str], bool]:
    """Return a line for each pattern, and whether all are the same."""
    lines, same = [], True
    for one in differences:
        same = same and not one.text
        numbers = [
            counted(one.matches, "match", "matches"),
            counted(one.timeouts, "timeout"),
            *([] if one.rows is None else [counted(one.rows, "row")]),
        ]
        listed = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
        what = one.text or f"the same {listed} of {counted(one.events, 'event')}"
        what += f"; their rows were not compared: {one.unknown}" if one.unknown else ""
        lines.append(f"check {one.pattern}: {what}")
    return lines, same
