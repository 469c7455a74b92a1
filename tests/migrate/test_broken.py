# SPDX-License-Identifier: Apache-2.0
"""Files that are odd, broken or large: a report or a clear error, and in time."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyflinkcep.migrate.chains.values import Const, Unknown
from pyflinkcep.migrate.java.declarations import INT
from pyflinkcep.migrate.meaning.python import checked_names
from pyflinkcep.migrate.meaning.reading import Findings
from pyflinkcep.migrate.meaning.tree import Binary, Untranslatable, Var
from pyflinkcep.migrate.migration import migrate, write
from pyflinkcep.migrate.writing.inputs import rows_of

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


def undefined(folder):
    """Return what ruff says of names that nothing defines, and of what is not Python."""
    options = ["--isolated", "--no-cache", "--quiet", "--select=F821", "--output-format=concise"]
    command = [sys.executable, "-m", "ruff", "check", *options, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_broken_files_have_a_report(tmp_path):
    """200 programs with random changes: each has a module whose names are defined, or says what is wrong."""
    chosen = random.Random(24)
    programs = sorted([*PROGRAMS.rglob("*.java"), *HARDER.rglob("*.java")])
    for number in range(200):
        text = chosen.choice(programs).read_text(encoding="utf-8")
        changed = mutated(text, chosen)
        (tmp_path / f"Program{number}.java").write_text(changed, encoding="utf-8")

    report = migrate([str(tmp_path)]).report
    write(report, tmp_path / "out")

    assert undefined(tmp_path / "out") == ""
    assert report.read == 200
    assert [
        note for file in report.files for note in file.errors if "followed (" in note.what
    ] == []
    assert all([report.as_text(), report.as_markdown(), report.as_json()])


BROKEN = """
class Job {
    static class Ev { public List<Integer> n; Ev(List<Integer> n) { this.n = n; } }
    static class Of extends IterativeCondition<Ev> {
        private final Ev ev;
        Of(Ev ev) { this.ev = ev; }
        public boolean filter(Ev e, Context<Ev> ctx) throws Exception { return e.n > ev.n; }
    }
    static final Duration WINDOW = Duration.ofMinion { of(1) };
    static class Own implements PatternSelectFunction<Ev, Integer> {
        private final Function<Ev, Integer> of = e -> e.n.max;
        public Integer select(Map<String, List<Ev>> m) { return of.apply(); }
    }
    public static void main(String[] args) throws Exception {
        tEnv.executeSql("CREATE TABLE T (n INT, k AS n + 1, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
            + "WITH ('connector' = 'none')");
        tEnv.executeSql("SELECT M.a FROM T MATCH_RECOGNIZE (ORDER BY ts MEASURES A.n AS a "
            + "PATTERN (A) DEFINE A AS A.n > 1) AS M").print();
        Pattern<Ev, ?> p = Pattern.<Ev>begin("a").where(new Of(1)).within(WINDOW);
        CEP.pattern(env.fromElements(new Ev(List.of(of(m), 1))), p).select(new Own()).print();
    }
}
"""


def test_names_without_a_value_are_not_written(tmp_path):
    """A function that is called with too little, fields of a number, unknown tables and events: all raise or are marked."""
    (tmp_path / "Job.java").write_text(BROKEN, encoding="utf-8")
    report = migrate([str(tmp_path)]).report
    write(report, tmp_path / "out")
    text = report.files[0].text

    assert undefined(tmp_path / "out") == ""
    assert text.count("raise not_translated('") == 2
    assert "events = t_source(spark)" in text
    assert ".within(within_window)" in text
    assert 'raise NotImplementedError("Job.java:15: read the table T")' in text
    assert [what in report.as_text() for what in ("n of 1", "a function of 1 with 0")] == [True] * 2
    assert "the elements are not constants" in report.as_text()


@pytest.mark.parametrize("held", [Unknown(None), (Unknown(None),), (Const(3),), object()])
def test_elements_are_constants_or_none_are_written(held):
    """An element that is not known before the program runs is never written as what stands for it."""
    assert rows_of(None, (Const("a"), Const(held))) is None
    assert rows_of(None, (Const('a"b'), Const(None))) == ["('a\"b',)", "(None,)"]


@pytest.mark.parametrize(
    ("lines", "why"),
    [(["return e.n"], "the value of e is not known here"), (["return 0.n"], "it has no meaning")],
)
def test_bodies_that_use_unknown_names(lines, why):
    """What is written is checked: names have to be parameters, imports, tags or given around."""
    found = Findings(
        imports={"from pyflinkcep.migrate.runtime import present"},
        tags={"too-late": None},
        captured={"least": Binary("+", Var("low", INT), Const(1, INT), INT)},
    )
    good = ["for x in event.xs:", "    ctx.output(TOO_LATE, present(x) + int(low) + 1)"]

    assert checked_names(good, ("event", "ctx"), found) is good
    with pytest.raises(Untranslatable, match=why):
        checked_names([*good, *lines], ("event", "ctx"), found)


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
