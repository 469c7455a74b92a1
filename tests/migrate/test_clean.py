# SPDX-License-Identifier: Apache-2.0
"""What is written is as a person would have it: clean, short, and the same on every machine."""

import ast
import subprocess
import sys

import pytest

from pyflinkcep.migrate.migration import migrate, write

pytestmark = pytest.mark.slow

JAVA = """
/** Watches heaters. */
class Heaters {
    static class Event { public String name; public String kind; public int n; public long at; }
    // Pattern<Event, ?> old = Pattern.<Event>begin("a");
    // old.next("b").where(SimpleCondition.of(e -> e.n > 3));
    %s
    static Pattern<Event, ?> heaters() {
        return Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.name.equals("x")))
            .next("b").where(SimpleCondition.of(e -> e.kind.equals("y") && !e.name.equals("z")))
            .next("c").where(SimpleCondition.of(e -> Library.check(e)))
            .next("d").where(SimpleCondition.of(e -> ("a" + "b" + e.name).length() > 3 && !(e.kind == null)))
            .next("e").where(SimpleCondition.of(e -> !e.name.matches("[x]+") || (e.n > 1) == false));
    }
    // A sentence about the job.
    // Pattern<Event, ?> old = Pattern.<Event>begin("a");
    // old.next("b").where(SimpleCondition.of(e -> e.n > 3));
    static void run(DataStream<Event> events, int l) {
        // old.followedBy("c");
        Pattern<Event, ?> p = Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.n > l)).times(l);
        CEP.pattern(events, p).select(new PatternSelectFunction<Event, String>() {
            public String select(Map<String, List<Event>> m) throws Exception {
                int unused = 3;
                String text = "a" + "b";
                for (Event one : m.get("a")) { if (one.n > 3) { text += one.name; } else { text += null; } }
                try { return text + Integer.parseInt("3"); } catch (Exception error) { return "error"; }
            }
        }).print();
    }
}
"""
LINES = "\n".join(
    f"    * Line {n} of a long story about heaters, their owners and rooms." for n in range(50)
)
COMMENT = f"/**\n{LINES}\n    */"


def written(tmp_path):
    """Translate the program into a folder; return the report and the module."""
    source = tmp_path / "src"
    source.mkdir()
    (source / "Heaters.java").write_text(JAVA % COMMENT, encoding="utf-8")
    report = migrate([str(source)]).report
    write(report, tmp_path / "out")
    return report.files[0], (tmp_path / "out" / "heaters.py").read_text(encoding="utf-8")


def test_modules_are_clean_for_a_linter(tmp_path):
    """Ruff has nothing to say by its defaults; mypy is asked in ``tests/test_tooling.py``."""
    written(tmp_path)
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", out],
        cwd=out, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_comments_become_short_docstrings(tmp_path):
    """A docstring has the first sentences of a comment, and nothing that is commented out."""
    _, text = written(tmp_path)
    documented = (ast.FunctionDef, ast.ClassDef, ast.Module)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    docstrings = [ast.get_docstring(node) or "" for node in nodes]

    assert max(len(docstring.splitlines()) for docstring in docstrings) < 10
    assert any("Line 0 of a long story" in docstring for docstring in docstrings)
    assert not any("old" in docstring or "Event>" in docstring for docstring in docstrings)


def test_modules_name_files_not_folders_of_a_machine(tmp_path):
    """What is left to write names the file and line, wherever the tool was run."""
    _, text = written(tmp_path)

    assert str(tmp_path) not in text
    assert "not_translated('Heaters.java:" in text


def test_values_that_may_be_null_are_noted_once(tmp_path):
    """One note says what becomes of null, for all fields of a file."""
    file, _ = written(tmp_path)
    nulls = [note.what for note in file.notes if "NullPointerException" in note.what]

    assert len(nulls) == 1
    assert nulls[0].startswith("where name or kind is null")
