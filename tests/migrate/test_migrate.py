# SPDX-License-Identifier: Apache-2.0
"""Programs of Java become modules of Python."""

import runpy
from pathlib import Path

import pytest

from pyflinkcep.migrate.__main__ import main
from pyflinkcep.migrate.migration import migrate, write

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
