# SPDX-License-Identifier: Apache-2.0
"""Times as text, files that are not what they seem, and names that are nearly right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import (
    InputError,
    InvalidArgumentError,
    Pattern,
    charts,
    funnel,
    match,
    matchRecognize,
    matchSase,
    textTime,
    trace,
    whyNot,
)

IN_OUT = (
    Pattern.begin("in").where("what = 'in'").next("out").where("what = 'out'")
    .within(timedelta(hours=1))
)  # fmt: skip
CSV = "who,at,what\nann,01.05.2024 10:30,out\nann,01.05.2024 10:00,in\nbob,,in\n"
LINES = (
    '{"who": "ann", "at": "2024-05-01T10:30:00.5Z", "what": "out"}\n'
    '{"who": "ann", "at": "2024-05-01T12:00:00.250+02:00", "what": "in"}\n'
)
GERMAN = textTime("at", "%d.%m.%Y %H:%M")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with files of texts."""
    (tmp_path / "shop.csv").write_text(CSV)
    (tmp_path / "shop.jsonl").write_text(LINES)
    return tmp_path


def test_times_as_text(folder: Path) -> None:
    """They order the events of lists, columns and files, for each function that takes a time."""
    path = folder / "shop.csv"
    rows = GERMAN.table(path).to_pylist()[:2]
    texts = [{**row, "at": f"{row['at']:%d.%m.%Y %H:%M}"} for row in rows]
    columns = {name: [row[name] for row in texts] for name in texts[0]}

    for events in (texts, columns, pa.table(columns)):
        assert len(match(IN_OUT, events, GERMAN, "who")) == 1
        assert len(trace(IN_OUT, events, GERMAN, "who").matches) == 1
        assert funnel(IN_OUT, events, GERMAN, "who").rows[1]["p50Ms"] == 30 * 60_000
        assert len(matchSase("PATTERN SEQ(in a, out b)", events, GERMAN, "what")) == 1
        (bar,) = charts.durations_chart(match(IN_OUT, events, GERMAN)).spec["data"]["values"]
        assert bar["from"] == 30
    assert whyNot(IN_OUT, path, GERMAN, "who").facts.input["without a time"] == 1


def test_iso_is_the_form_by_default(folder: Path) -> None:
    """Fractions and zones are read; a text without a zone is UTC; times stay as they are."""
    found = match(IN_OUT, folder / "shop.jsonl", textTime("at"), "who")
    moment = datetime(2024, 5, 1, 10, tzinfo=UTC)

    assert len(found) == 1
    assert textTime("at")({"at": "2024-05-01T10:00:00"}) == moment
    assert textTime("at")({"at": moment}) is moment
    assert textTime("at")({"at": None}) is None


def test_a_table_of_texts_has_timestamps(folder: Path) -> None:
    """Any function takes it, MATCH_RECOGNIZE too; numbers and timestamps stay as they are."""
    table = textTime("at").table(folder / "shop.jsonl")
    clause = "ORDER BY at MEASURES a.at AS t PATTERN (a b) WITHIN INTERVAL '1' HOUR"
    clause += " DEFINE a AS what = 'in', b AS what = 'out'"

    assert table.schema.field("at").type == pa.timestamp("us", "UTC")
    assert len(match(IN_OUT, table, "at", "who")) == 1
    assert len(matchRecognize(table, clause)) == 1
    assert textTime("at").table(table).equals(table)
    assert textTime("n").table({"n": [1.5]})["n"].to_pylist() == [1.5]
    with pytest.raises(InputError, match=r"ts is string; textTime\('ts'\)\.table\(events\)"):
        matchRecognize([{"ts": "x"}], "ORDER BY ts MEASURES a.ts AS t PATTERN (a)")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: match(IN_OUT, [{"at": "x"}], "at"), r"got 'x'\n\nHint: for times as text, write"),
        (
            lambda: match(Pattern.begin("a"), {"at": ["x"]}, "at"),
            r"got 'x'\n\nHint: for times as text",
        ),
        (lambda: match(IN_OUT, [{"at": "x"}], textTime("at")), r"expected ISO 8601, got 'x'"),
        (lambda: match(IN_OUT, [{"at": "x"}], GERMAN), r"expected %d.%m.%Y %H:%M, got 'x'"),
        (lambda: match(IN_OUT, [{"at": "1"}], textTime("at", "%Q")), "expected %Q, got '1'"),
        (lambda: match(IN_OUT, [{"at": "1"}], textTime("ta")), "did you mean 'at'?"),
        (lambda: textTime("ta").table([{"at": "1"}]), "did you mean 'at'?"),
        (lambda: textTime(3), "expected a field and its format as texts, got 3"),  # type: ignore
        (lambda: textTime("at", 3), "got 'at' and 3"),  # type: ignore[arg-type]
        (lambda: textTime("at", form="%d"), "did you mean 'format'?"),  # type: ignore[call-arg]
        (lambda: match(IN_OUT, [{"user": 1}], key="usr"), "did you mean 'user'?"),
        (lambda: match(IN_OUT, [{"user": 1}], key="what"), "pass the name of a field"),
        (lambda: trace(IN_OUT, [{"at": 1}], "ts"), "did you mean 'at'?"),
    ],
)
def test_what_is_no_time_is_refused(call: Any, words: str) -> None:
    """The message has the text, and what to write instead."""
    with pytest.raises((InputError, InvalidArgumentError), match=words):
        call()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '[{"n": 1}]', r"pass json\.load\(open\(path\)\)"),
        ("a.jsonl", '{"n": 1}\n{"n": "x"}', "changed from number to string"),
        ("a.csv", "", "Empty CSV file"),
        ("a.xlsx", "PK", r"of Parquet, CSV \(\.csv, \.tsv\) or JSON lines"),
        ("a.parquet", "PAR1", "read it yourself, and pass the table"),
    ],
)
def test_files_that_are_not_what_they_seem(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    """What cannot be read says how it was read, and what can be."""
    (tmp_path / name).write_text(text)

    with pytest.raises(InputError, match=words):
        match(IN_OUT, tmp_path / name)


def test_a_path_that_is_nearly_right(folder: Path) -> None:
    """The nearest file of the folder is named."""
    with pytest.raises(InvalidArgumentError, match=r"did you mean 'shop\.csv'\?"):
        match(IN_OUT, str(folder / "shp.csv"))
    with pytest.raises(InvalidArgumentError, match="pass the path of a file or folder of Parquet"):
        match(IN_OUT, "no/such/folder.csv")
