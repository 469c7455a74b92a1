# SPDX-License-Identifier: Apache-2.0
"""Programs of Java become modules of Python."""

import json
import runpy
from pathlib import Path

import pytest

from pyflinkcep.migrate.__main__ import main
from pyflinkcep.migrate.check.compare import compare
from pyflinkcep.migrate.checking import load
from pyflinkcep.migrate.migration import migrate, write
from tests.migrate.record import restored

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """Return the report of all programs, and the folder with their modules."""
    folder = tmp_path_factory.mktemp("translated")
    report = migrate([str(PROGRAMS)]).report
    write(report, folder)
    return report, folder


def test_every_program_becomes_a_module(translated):
    """Each program with a pattern becomes a module whose patterns can be built."""
    report, folder = translated

    assert [file.errors for file in report.files if file.errors] == []
    for file in report.files:
        names = runpy.run_path(str(folder / f"{file.module}.py"))
        assert [name for name in file.patterns if name not in names] == []


def test_the_exit_status_says_what_remains(tmp_path, capsys):
    """The command writes modules and reports, and returns 1 if something remains to be written."""
    status = main([str(PROGRAMS / "LongRides.java"), "--out", str(tmp_path)])

    assert status in (0, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "long_rides.py",
        "report.json",
        "report.md",
    ]
    assert "LongRides.java" in capsys.readouterr().out


def test_a_missing_file_is_an_error(tmp_path, capsys):
    """A name that is no file is an error in one line, and the status is 2."""
    assert main([str(tmp_path / "Missing.java")]) == 2
    assert "no file or folder" in capsys.readouterr().err


def recorded_patterns():
    """Return the names of the recorded patterns."""
    return {
        (path.stem, name): stored
        for path in sorted((Path(__file__).parent / "recorded").glob("*.json"))
        for name, stored in json.loads(path.read_text(encoding="utf-8")).items()
    }


def test_patterns_answer_like_the_originals(translated):
    """Each pattern has the matches and timeouts that the original had on a real Flink."""
    report, _ = translated
    patterns = recorded_patterns()
    differences, matches = {}, 0

    for file in report.files:
        module = load(file)
        for one in file.checked:
            stored = patterns.pop((file.module, one.name), None)
            if stored is not None:
                found = compare(one, getattr(module, one.name), restored(stored))
                matches += found.matches + found.timeouts
                if found.text:
                    differences[file.module, one.name] = found.text

    assert differences == {}
    assert list(patterns) == []
    assert matches > 500
