# SPDX-License-Identifier: Apache-2.0
"""The matches of a translation beside those of the original."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.migrate.check.flink import Answer, Checked
from pyflinkcep.migrate.check.rows import Selected, translated_rows
from pyflinkcep.migrate.runtime import millis
from pyflinkcep.migrate.translation import columns_of
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.events import Record
from pyflinkcep.testing import match
from pyflinkcep.warned import TimeUnitWarning

__all__ = ["Difference", "answers_of", "compare", "typed_events"]


@attrs.frozen
class Difference:
    """
    The outcome of a comparison.

    Attributes
    ----------
    pattern : str
        The function of the pattern.
    events, matches, timeouts : int
        How many there were.
    text : str
        The first difference; empty if there is none.
    rows : int or None
        How many rows the program made of them; None if they were not compared.
    unknown : str
        Why the rows were not compared, if there are any.
    """

    pattern: str
    events: int
    matches: int
    timeouts: int
    text: str = ""
    rows: int | None = None
    unknown: str = ""


def compare(
    checked: Checked, make: Callable[[], Pattern], answer: Answer, module: Any = None
) -> Difference:
    """
    Run a translated pattern on the events that Flink had, and compare the answers.

    Parameters
    ----------
    checked : Checked
        The pattern.
    make : callable
        Returns it.
    answer : Answer
        That of Flink.
    module : module, optional
        Where the functions of its matches are, to compare their rows too.
    """
    if answer.error is not None:
        return Difference(checked.name, 0, 0, 0, f"Flink raised {answer.error}")
    try:
        matches, timeouts = answers_of(checked, make(), answer.events)
    except (CepError, LookupError) as error:
        text = f"the translation raised {getattr(error, 'message', error)}"
        return Difference(checked.name, len(answer.events), 0, 0, text)
    text = _first("match", [row["match"] for row in answer.matches], matches)
    text = text or _first("timeout", answer.timeouts, timeouts)
    found = Difference(
        checked.name, len(answer.events), len(answer.matches), len(answer.timeouts), text
    )
    if module is None or checked.selected is None or text:
        return found
    return _with_rows(found, checked.selected, module, checked, answer, (matches, timeouts))


def _with_rows(
    found: Difference,
    selected: Selected,
    module: Any,
    checked: Checked,
    answer: Answer,
    both: tuple[list[Any], list[Any]],
) -> Difference:
    """Return a comparison with that of the rows."""
    if answer.rows is None:
        return attrs.evolve(found, unknown=selected.problem or answer.no_rows)
    matches, timeouts = both
    times = [max(_time(e, checked) for events in m.values() for e in events) for m in matches]
    late = [(row["match"], row["timestamp"]) for row in timeouts]
    try:
        rows = translated_rows(selected, module, list(zip(matches, times, strict=True)), late)
    except Exception as error:
        text = f"the translation of the rows raised {type(error).__name__}: {error}"
        return attrs.evolve(found, text=text)
    text = _first("row", answer.rows, rows)
    return attrs.evolve(found, text=text, rows=len(answer.rows))


def answers_of(
    checked: Checked, pattern: Pattern, events: Sequence[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    """Return the matches and the timeouts of a translated pattern."""
    rows = typed_events(events, checked.schema)
    time: Any = None if checked.time is None else lambda event: _scaled(event, checked)
    key: Any = None
    if checked.keys:
        key = lambda event: tuple(str(_path(event, name)) for name in checked.keys)  # noqa: E731
    with warnings.catch_warnings():  # the original says that they are milliseconds
        warnings.simplefilter("ignore", TimeUnitWarning)
        found = match(pattern, rows, timestamp=time, key=key)
    timeouts = [{"match": t.match, "timestamp": t.timestamp} for t in found.timeouts]
    return list(found), timeouts


def _scaled(event: Any, checked: Checked) -> Any:
    """Return the time of an event: a moment, or epoch milliseconds."""
    time = _path(event, checked.time or "")
    return time * checked.scale if isinstance(time, int) else time


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
    missing, unexpected = wanted - had, had - wanted
    if missing:
        row = next(canonical(row) for row in expected if missing[canonical(row)])
        return f"Flink has {_times(sum(missing.values()), what)} more, the first: {row}"
    if unexpected:
        row = next(canonical(row) for row in got if unexpected[canonical(row)])
        more = _times(sum(unexpected.values()), what)
        return f"the translation has {more} more, the first: {row}"
    return ""


def _times(number: int, what: str) -> str:
    plural = "es" if what.endswith("h") else "s"
    return f"{number} {what}{plural if number != 1 else ''}"


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
    """
    Return events from JSON with the types of their columns.

    Examples
    --------
    >>> typed_events([{"day": "2024-05-06", "p": {"x": 1}}], "day date, p struct<x:double>")
    [{'day': datetime.date(2024, 5, 6), 'p': {'x': 1.0}}]
    """
    columns = [column.split(" ", 1) for column in columns_of(schema or "")]
    types = {name.strip("`"): type_ for name, type_ in columns}
    rows = []
    for event in events:
        row = dict.fromkeys(types) | dict(event)
        rows.append(Record((k, _typed(v, types.get(k, ""))) for k, v in row.items()))
    return rows


def _typed(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_.startswith("timestamp") and isinstance(value, str):
        return datetime.fromisoformat(value)
    if type_ == "date" and isinstance(value, str):
        return date.fromisoformat(value)
    if type_.startswith("decimal"):
        return Decimal(str(value))
    if type_ in ("double", "float") and isinstance(value, int):
        return float(value)
    if type_.startswith("struct<") and isinstance(value, Mapping):
        inner = [part.split(":", 1) for part in columns_of(type_[7:-1])]
        types = {name.strip(): kind.strip() for name, kind in inner}
        return Record((k, _typed(v, types.get(k, ""))) for k, v in value.items())
    if type_.startswith("array<") and isinstance(value, list):
        return [_typed(v, type_[6:-1]) for v in value]
    return value
