# SPDX-License-Identifier: Apache-2.0
"""The explanation of how a pattern will run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame

from pyflinkcep.engines.choice import Evaluation
from pyflinkcep.engines.flink.bridge import why_plain
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import Relevance, warnings_of
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.matching.columns import spark_atoms
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.plan.file_scan import plain_relation
from pyflinkcep.spark.plan.patterns.prefilter import relevance_of
from pyflinkcep.spark.plan.source import watermark_column
from pyflinkcep.spark.plan.watermark import StreamWatermark, in_sections
from pyflinkcep.spark.worker.runtime import job_name
from pyflinkcep.time import duration_text

_OBJECT = re.compile(r"<(?:[\w.<>]+\.)?(\w+) object at 0x[0-9a-f]+>")
_COLUMN = re.compile(r"Column<'(.*)'>")
# The ways to use matches, by whether they need timeouts and whether they show the next event.
_RESULTS = {
    "process()": (False, True),
    "toDF(), select(), flatSelect(), funnel() and reached()": (False, False),
    "process() with timeouts": (True, True),
    "toDF(), select() and flatSelect() with timeouts": (True, False),
}

_MOST_SHOWN = 8


def explanation(
    pattern: Pattern,
    dataframe: DataFrame,
    keys: Sequence[str | Column],
    time: str | None,
    unfiltered: str = "",
    evaluations: Mapping[str, Evaluation] | None = None,
) -> str:
    """Explain how a pattern will run."""
    nfas = {wanted: NFACompiler.compile(pattern, wanted) for wanted in (False, True)}
    nfa = nfas[False]
    decided = {
        how: Relevance(frozenset(), unfiltered)
        if unfiltered
        else relevance_of(nfas[timeouts], shows_next)
        for how, (timeouts, shows_next) in _RESULTS.items()
    }
    filtered, reason = list(_filter_lines(nfa, decided)), why_plain(nfa)
    kind = "unbounded" if dataframe.isStreaming else "bounded"
    names = ", ".join(_COLUMN.sub(r"\1", str(key)) for key in keys)
    order = time or watermark_column(dataframe)
    watermark = []
    if dataframe.isStreaming and order in dataframe.columns:
        watermark = [f"watermark: {StreamWatermark.of(dataframe, order)}"]
    files = []
    if dataframe.isStreaming and plain_relation(dataframe) is not None:
        files = ["files: read by workers themselves if these know all conditions on one event"]
    if dataframe.isStreaming and any(found.droppable for found in decided.values()):
        filtered.append("in Python, once the watermark has seen them; late ones are counted")
    sections = {
        job_name(nfa.description): [
            f"input: {kind}, {f'key {names}' if keys else 'no key'}, "
            f"ordered by {order or 'nothing yet: call inEventTime(...)'}",
            *files,
            *watermark,
            f"window: {', '.join(_windows(nfa))}",
            f"after a match: {_plain(repr(nfa.skip_strategy))}",
            *_evaluated(evaluations or {}),
            # Workers use the same if installed like the driver.
            f"matched {f'in Python: {reason}' if reason else 'by the compiled kernel'}",
        ],
        "States (T takes the event, I ignores it, P also tries the next state)": [
            _plain(str(table.state))
            for table in reversed(nfa.tables.values())
            if not table.is_final
        ],
        "Conditions": _table(_condition_rows(nfa)),
        "Dropped before the shuffle": filtered,
        "Warnings": list(warnings_of(nfa)),
    }
    return in_sections(sections)


def _plain(text: str) -> str:
    """Name objects without a text of their own by their class."""
    return _OBJECT.sub(r"\1", text)


def _evaluated(evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """Merge the lines that are alike for all ways to use matches."""
    if len({how.name for how in evaluations.values()}) == 1:
        evaluations = dict(list(evaluations.items())[:1])
    for how in dict.fromkeys(evaluations.values()):
        ways = [way for way, found in evaluations.items() if found == how]
        for_some = f" for {', '.join(ways)}" if len(ways) < len(evaluations) else ""
        yield f"evaluation{for_some}: {how.name} ({how.reason})"
        others = " or ".join(name for name in how.candidates if name != how.name)
        if others:
            yield f"where events say that it costs less: the query that it is, by {others}"


# --- windows


def _windows(nfa: NFA) -> Iterator[str]:
    if nfa.window_time > 0:
        yield f"{duration_text(nfa.window_time)} from the first event to the last"
    for name, gap in nfa.window_times.items():
        yield f"{duration_text(gap)} since the previous event at {name}"
    if nfa.window_time <= 0 and not nfa.window_times:
        yield "none"


# --- conditions


def _condition_rows(nfa: NFA) -> list[tuple[str, str, str]]:
    in_spark = spark_atoms(nfa)
    rows = []
    stages = list(dict.fromkeys(atom.stage for atom in reversed(nfa.atoms)))
    for atom in sorted(nfa.atoms, key=lambda atom: stages.index(atom.stage)):
        if atom in in_spark:
            where = "in Spark, before Python sees the event"
        elif atom.expression is not None:
            where = "per partial match, incrementally"
        elif atom.bit:
            where = "in Python, at most once per event"
        else:
            where = "in Python, for each partial match waiting there"
        rows.append((atom.stage, _text(atom), where))
    return rows or [("(none)", "every event is taken", "")]


def _text(atom: Atom) -> str:
    return _plain(repr(atom.condition))


def _table(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in rows]


# --- what is dropped


def _filter_lines(nfa: NFA, decided: dict[str, Relevance]) -> Iterator[str]:
    """Yield what is dropped, merged for alike ways of using matches."""
    for relevance in dict.fromkeys(decided.values()):
        ways = [how for how, found in decided.items() if found == relevance]
        what = _dropped(nfa, relevance)
        yield what if len(ways) == len(decided) else f"for {', '.join(ways)}: {what}"


def _dropped(nfa: NFA, relevance: Relevance) -> str:
    if not relevance.droppable:
        return f"no event: {_plain(relevance.reason)}"
    atoms = spark_atoms(nfa)
    kinds = [
        " and ".join(_text(atom) for atom in reversed(atoms) if bits & atom.bit)
        for bits in sorted(relevance.droppable)
    ]
    said = ["events for which no condition in Spark holds"] if 0 in relevance.droppable else []
    said += [f"events for which only {kind} holds" for kind in kinds if kind]
    if len(said) > _MOST_SHOWN:
        said[_MOST_SHOWN:] = [f"and {len(said) - _MOST_SHOWN} more combinations"]
    return ", ".join(said)
