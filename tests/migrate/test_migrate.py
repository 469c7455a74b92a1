# SPDX-License-Identifier: Apache-2.0
"""Programs of Java become modules of Python."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from pyflinkcep.migrate.__main__ import main
from pyflinkcep.migrate.check.compare import compare, load
from pyflinkcep.migrate.java import source
from pyflinkcep.migrate.migration import migrate, write
from tests.migrate.record import restored

PROGRAMS = Path(__file__).parent / "programs"
HARDER = Path(__file__).parent / "harder"
"""Programs with more of Java around their patterns, of which fewer conditions can be SQL."""


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """Return the report of all programs, and the folder with their modules."""
    folder = tmp_path_factory.mktemp("translated")
    report = migrate([str(PROGRAMS), str(HARDER)]).report
    write(report, folder)
    return report, folder


@pytest.mark.slow
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


@pytest.mark.slow
def test_patterns_answer_like_the_originals(translated):
    """Each pattern has the matches, timeouts and rows that the original had on a real Flink."""
    report, _ = translated
    patterns = recorded_patterns()
    idle = [name for name, one in patterns.items() if not one["matches"] + one["timeouts"]]
    differences, matches, rows = {}, 0, 0

    for file in report.files:
        module = load(file)
        for one in file.checked:
            stored = patterns.pop((file.module, one.name), None)
            if stored is not None:
                found = compare(one, getattr(module, one.name), restored(stored), module)
                matches += found.matches + found.timeouts
                rows += found.rows or 0
                if found.text:
                    differences[file.module, one.name] = found.text

    assert differences == {}
    assert list(patterns) == []
    assert idle == []
    assert matches > 2_000
    assert rows > 500


def test_nine_conditions_in_ten_are_translated(translated):
    """Of the conditions of all programs at least 90 % are no stubs, most of them SQL."""
    report, _ = translated
    plain = [file for file in report.files if "/harder/" not in file.file]
    for files, sql in ((plain, 0.75), (report.files, 0.6)):
        conditions = sum(file.conditions for file in files)
        stubs = sum(file.text.count("raise not_translated(") for file in files)

        assert len(files) >= 24
        assert conditions >= 100
        assert stubs <= conditions / 10
        assert sum(file.sql for file in files) >= conditions * sql


def test_modules_pass_the_linter(translated):
    """What is written passes ruff as it is without any configuration."""
    pytest.importorskip("ruff")
    _, folder = translated
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


def test_other_languages_are_refused(tmp_path):
    """Scala and Kotlin are refused with the reason, and the status is not 0."""
    (tmp_path / "Job.scala").write_text("import org.apache.flink.cep.scala.CEP", encoding="utf-8")
    (tmp_path / "Job.kt").write_text("import org.apache.flink.cep.CEP", encoding="utf-8")
    report = migrate([str(tmp_path)]).report

    assert [note.what.split(":")[0] for note in report.refused] == [
        "Kotlin is not read",
        "Scala is not read",
    ]
    assert report.status == 2


def test_a_difference_is_shown(translated):
    """The first match that only one of both has is shown."""
    report, _ = translated
    file = next(file for file in report.files if file.module == "account_takeover")
    checked = file.checked[0]
    stored = recorded_patterns()["account_takeover", checked.name]
    answer = restored(stored)
    answer.timeouts.pop()
    found = compare(checked, getattr(load(file), checked.name), answer)

    assert found.text.startswith("the translation has 1 timeout more, the first: {")


INSERT = """class Job { public static void main(String[] args) {
  t.executeSql("INSERT INTO alerts SELECT * FROM logins MATCH_RECOGNIZE (PARTITION BY u ORDER BY ts "
    + "MEASURES A.ts AS t PATTERN (A) DEFINE A AS A.x = 1);");
} }"""


def test_an_insert_becomes_rows_to_write(tmp_path):
    """INSERT INTO before a clause is left out, and the report says where the rows go."""
    (tmp_path / "Job.java").write_text(INSERT, encoding="utf-8")
    report = migrate([str(tmp_path)]).report

    assert 'ALERTS_SQL = """\n    SELECT * FROM logins' in report.files[0].text
    assert "INSERT INTO alerts: write the rows there" in report.as_text()


def test_all_queries_start_before_the_job_waits(tmp_path):
    """A statement does not wait for its rows before what the job does besides has begun."""
    pattern = 'CEP.pattern(e, Pattern.<E>begin("a")).select(m -> m.get("a").get(0).name).print();'
    head = "DataStream<E> e = env.addSource(new Own());"
    java = INSERT.replace("\n} }", f"\n{head} {pattern} }} }} class E {{ public String name; }}")
    (tmp_path / "Job.java").write_text(java, encoding="utf-8")
    text = migrate([str(tmp_path)]).report.files[0].text

    assert text.count(".start()") == 2
    assert text.rindex(".start()") < text.index("awaitAnyTermination")
    assert text.count("awaitAnyTermination") == 1


def test_pyflink_is_not_read(tmp_path):
    """A file of PyFlink with a clause is named in the report, and the status is not 0."""
    text = 'from pyflink.table import X\nt.execute_sql("SELECT * FROM a MATCH_RECOGNIZE (…)")\n'
    (tmp_path / "job.py").write_text(text, encoding="utf-8")
    (tmp_path / "Job.java").write_text(INSERT, encoding="utf-8")
    report = migrate([str(tmp_path)]).report

    assert "job.py: PyFlink is not read" in report.as_text()
    assert report.status == 1


def test_without_tree_sitter(monkeypatch, capsys):
    """Without the extra the command says what to install, and returns 2."""
    source._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)

    assert main([str(PROGRAMS / "LongRides.java")]) == 2
    assert "pip install 'pyflinkcep[migrate]'" in capsys.readouterr().err


def test_nothing_is_left_out_silently(tmp_path):
    """Matches that go where nothing can be followed are in the report, with the status 1."""
    java = """
class Unused {
    static void run(DataStream<String> words) {
        Pattern<String, ?> word = Pattern.<String>begin("a").where(SimpleCondition.of(w -> w.equals("x")));
        Helper.handle(CEP.pattern(words, word));
    }
}
"""
    (tmp_path / "Unused.java").write_text(java, encoding="utf-8")
    report = migrate([str(tmp_path)]).report

    assert report.files[0].patterns == ["word_pattern"]
    assert "what becomes of the matches could not be followed" in report.as_text()
    assert report.status == 1
