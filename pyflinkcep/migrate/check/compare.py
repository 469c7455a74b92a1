# SPDX-License-Identifier: Apache-2.0
"""The matches and rows of a translation beside those of the original."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from pyflinkcep.errors import CepError, InputError, TimeUnitWarning, counted
from pyflinkcep.functions import (
    OutputTag,
    TimedOutPartialMatchHandler,
    as_process_function,
    collect_returned,
    flat_select_adapter,
    select_adapter,
)
from pyflinkcep.migrate.check.flink import (
    Answer,
    Checked,
    CompileError,
    Event,
    Selected,
    Written,
    run_on_flink,
)
from pyflinkcep.migrate.java.project import Project, columns_of, struct_fields
from pyflinkcep.migrate.runtime import float32, millis
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.match import Run
from pyflinkcep.time import clock_ms

Events = Mapping[str, Sequence[Any]]
Timed = Sequence[tuple[Events, int]]


@attrs.frozen
class Difference:
    """The outcome of a comparison."""

    pattern: str  # The function of the pattern
    # How many there were.
    events: int
    matches: int
    timeouts: int
    text: str = ""  # The first difference; empty if there is none
    # How many rows the program made of them; None if they were not compared.
    rows: int | None = None
    unknown: str = ""  # Why the rows were not compared, if there are any


def compare(
    checked: Checked, make: Callable[[], Pattern], answer: Answer, module: Any = None
) -> Difference:
    """Run a translated pattern on the events that Flink had, and compare the answers."""
    found = Difference(checked.name, len(answer.events), 0, 0)
    if answer.error is not None:
        return attrs.evolve(found, text=f"Flink raised {answer.error}")
    try:
        matches, timeouts = answers_of(checked, make(), answer.events)
    except (CepError, LookupError) as error:
        text = f"the translation raised {getattr(error, 'message', error)}"
        return attrs.evolve(found, text=text)
    found = attrs.evolve(found, matches=len(answer.matches), timeouts=len(answer.timeouts))
    text = _first("match", [row["match"] for row in answer.matches], matches)
    text = text or _first("timeout", answer.timeouts, timeouts)
    selected = checked.selected
    if module is None or selected is None or text:
        return attrs.evolve(found, text=text)
    if answer.rows is None:
        return attrs.evolve(found, unknown=selected.problem or answer.no_rows)
    times = [max(_time(e, checked) for events in m.values() for e in events) for m in matches]
    late = [(row["match"], row["timestamp"]) for row in timeouts]
    try:
        rows = translated_rows(selected, module, list(zip(matches, times, strict=True)), late)
    except Exception as error:
        text = f"the translation of the rows raised {type(error).__name__}: {error}"
        return attrs.evolve(found, text=text)
    return attrs.evolve(found, text=_first("row", answer.rows, rows), rows=len(answer.rows))


@attrs.define
class _Output:
    """Collects rows, and those of side outputs, as objects with their columns."""

    columns: tuple[str, ...]
    rows: list[dict[str, Any]] = attrs.field(factory=list)
    now: int = 0

    def collect(self, record: Any) -> None:
        """Take a row."""
        self.rows.append({"row": _named(record, self.columns)})

    def output(self, tag: OutputTag, value: Any) -> None:
        """Take a row of a side output."""
        columns = tuple(columns_of(tag.schema)) if isinstance(tag.schema, str) else ()
        self.rows.append({"row": _named(value, columns), "tag": tag.name})

    def timestamp(self) -> int:
        """Return the time of the match."""
        return self.now

    def currentProcessingTime(self) -> int:  # noqa: N802
        """Return the wall clock."""
        return clock_ms()


def _named(record: Any, columns: tuple[str, ...]) -> Any:
    """Return a row as an object with its columns."""
    if isinstance(record, Mapping):
        return record
    if hasattr(record, "asDict"):
        return record.asDict(recursive=True)
    values = record if isinstance(record, tuple) else (record,)
    return dict(zip(columns, values, strict=False))


def translated_rows(
    selected: Selected, module: Any, matches: Timed, timeouts: Timed
) -> list[dict[str, Any]]:
    """Return the rows that the translated functions make."""
    given = getattr(module, selected.function)
    given = given() if isinstance(given, type) else given
    wrap = select_adapter if selected.kind == "select" else flat_select_adapter
    names = (selected.tag, selected.timeout) if selected.timeout else ()
    timed = [getattr(module, name) for name in names]
    function = as_process_function(given) if selected.kind == "process" else wrap(given, *timed)
    out = _Output(selected.columns)
    function.open(None)
    for found, now in matches:
        out.now = now
        collect_returned(function.processMatch(found, out, out), out, repr(function))
    if isinstance(function, TimedOutPartialMatchHandler):
        for found, now in timeouts:
            out.now = now
            function.processTimedOutMatch(found, out)
    function.close()
    return out.rows


def answers_of(
    checked: Checked, pattern: Pattern, events: Sequence[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    """Return the matches and the timeouts of a translated pattern."""
    rows = typed_events(events, checked.schema)
    at: Any = None if checked.time is None else lambda event: _scaled(event, checked)
    key: Any = None
    if checked.keys:
        key = lambda event: tuple(str(_path(event, name)) for name in checked.keys)  # noqa: E731
    with warnings.catch_warnings():  # the original says that they are milliseconds
        warnings.simplefilter("ignore", TimeUnitWarning)
        found = Run.of(pattern, list(rows), at, key, None).matches(by_windows=False)
    timeouts = [{"match": t.match, "timestamp": t.timestamp} for t in found.timeouts]
    return list(found), timeouts


def _scaled(event: Any, checked: Checked) -> Any:
    """Return the time of an event: a moment, or epoch milliseconds."""
    found = _path(event, checked.time or "")
    return found * checked.scale if isinstance(found, int) else found


def _time(event: Any, checked: Checked) -> int:
    """Return the time of an event in epoch milliseconds; 0 if it is only a place."""
    return 0 if checked.time is None else millis(_scaled(event, checked))


def _path(event: Any, path: str) -> Any:
    for name in path.split("."):
        event = event[name]
    return event


def _first(what: str, expected: Sequence[Any], got: Sequence[Any]) -> str:
    """Return the first difference between two lists, whose order does not matter."""
    wanted, had = Counter(map(canonical, expected)), Counter(map(canonical, got))
    for whose, more, rows in (
        ("Flink", wanted - had, expected), ("the translation", had - wanted, got),
    ):  # fmt: skip
        if more:
            row = next(canonical(row) for row in rows if more[canonical(row)])
            plural = f"{what}es" if what.endswith("h") else ""
            number = counted(sum(more.values()), what, plural)
            return f"{whose} has {number} more, the first: {row}"
    return ""


def canonical(value: Any) -> str:
    """Return a value as text, the same for equal numbers and times of any type."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        known = {k: value[k] for k in value}  # a column may be named items
        return {str(k): _plain(v) for k, v in known.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, Decimal | float) and value == value and abs(float(value)) < 2**63:
        return int(value) if value == int(value) else float(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        moment = _MOMENT.fullmatch(value)
        return datetime.fromisoformat(value).isoformat() if moment else value
    return value if isinstance(value, int | float) else str(value)


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?")


def typed_events(events: Sequence[Mapping[str, Any]], schema: str | None) -> list[Record]:
    """Return events from JSON with the types of their columns."""
    types = columns_of(schema or "")
    return [_record(dict.fromkeys(types) | dict(event), types) for event in events]


def _record(values: Mapping[str, Any], types: Mapping[str, str]) -> Record:
    return Record((name, _typed(value, types.get(name, ""))) for name, value in values.items())


def _typed(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_.startswith("timestamp") and isinstance(value, str):
        return datetime.fromisoformat(value)
    if type_ == "date" and isinstance(value, str):
        return date.fromisoformat(value)
    if type_.startswith("decimal"):
        return Decimal(str(value))
    if type_ in ("double", "float") and isinstance(value, int | float):
        return float(value) if type_ == "double" else float32(float(value))
    if type_.startswith("struct<") and isinstance(value, Mapping):
        return _record(value, struct_fields(type_))
    if type_.startswith("array<") and isinstance(value, list):
        return [_typed(v, type_[6:-1]) for v in value]
    return value


def read_events(file: Path) -> list[Event]:
    """Return the events of a file of JSON lines."""
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
        return run_on_flink(project, able, given, jars)
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
