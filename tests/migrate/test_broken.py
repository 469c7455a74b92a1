# SPDX-License-Identifier: Apache-2.0
"""Files that are odd, broken or large: a report or a clear error, and in time."""

import random
import time
from pathlib import Path

from pyflinkcep.migrate.migration import migrate

PROGRAMS = Path(__file__).parent / "programs"
HARDER = Path(__file__).parent / "harder"
_ODD = [
    "(",
    ")",
    "{",
    "}",
    ";",
    '"',
    "'",
    "/*",
    "->",
    "::",
    "<",
    ">",
    "\x00",
    "é",
    "\\",
    "@",
    ".",
    "null",
]


def mutated(text, chosen):
    """Return a program with a few random changes: parts left out, doubled, moved or made odd."""
    for _ in range(chosen.randrange(1, 5)):
        start = chosen.randrange(len(text))
        end = min(len(text), start + chosen.randrange(1, 200))
        kind = chosen.randrange(6)
        if kind == 0:
            text = text[:start] + text[end:]
        elif kind == 1:
            text = text[:end] + text[start:end] + text[end:]
        elif kind == 2:
            text = text[:start] + chosen.choice(_ODD) + text[start:]
        elif kind == 3:
            text = text[: max(start, 50)]
        elif kind == 4:
            other = chosen.randrange(len(text))
            text = text[:start] + text[other : other + 80] + text[end:]
        else:
            words = sorted({word for word in text.split() if word.isidentifier()})
            text = text.replace(chosen.choice(words), chosen.choice(words), 3)
    return text


def test_broken_files_have_a_report(tmp_path):
    """200 programs with random changes: each has a module that is Python, or says what is wrong."""
    chosen = random.Random(24)
    programs = sorted([*PROGRAMS.rglob("*.java"), *HARDER.rglob("*.java")])
    for number in range(200):
        text = chosen.choice(programs).read_text(encoding="utf-8")
        changed = mutated(text, chosen)
        (tmp_path / f"Program{number}.java").write_text(changed, encoding="utf-8")

    report = migrate([str(tmp_path)]).report
    for file in report.files:
        if file.module is not None:
            compile(file.text, file.file, "exec")

    assert report.read == 200
    assert [
        note for file in report.files for note in file.errors if "followed (" in note.what
    ] == []
    assert all([report.as_text(), report.as_markdown(), report.as_json()])


def test_a_large_project_takes_seconds(tmp_path):
    """20,000 lines of Java, most of them about something else, are read in a few seconds."""
    program = (PROGRAMS / "WebSessions.java").read_text(encoding="utf-8")
    methods = "".join(
        f"    public int m{n}(int x) {{\n        int y = x * {n};\n        return y + 1;\n    }}\n"
        for n in range(47)
    )
    for number in range(95):
        text = f"package other;\npublic class Other{number} {{\n{methods}}}\n"
        (tmp_path / f"Other{number}.java").write_text(text, encoding="utf-8")
    for number in range(8):
        text = program.replace("WebSessions", f"WebSessions{number}")
        (tmp_path / f"WebSessions{number}.java").write_text(text, encoding="utf-8")
    lines = sum(len(p.read_text().splitlines()) for p in tmp_path.iterdir())

    start = time.perf_counter()
    report = migrate([str(tmp_path)]).report
    seconds = time.perf_counter() - start

    assert lines > 19_000
    assert sum(len(file.patterns) for file in report.files) == 40
    assert seconds < 12, seconds
