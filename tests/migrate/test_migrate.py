# SPDX-License-Identifier: Apache-2.0
"""Programs of Java become modules of Python."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from pyflinkcep.migrate.__main__ import main
from pyflinkcep.migrate.check.compare import compare
from pyflinkcep.migrate.checking import load
from pyflinkcep.migrate.java import source
from pyflinkcep.migrate.migration import migrate, write
from pyflinkcep.testing import match
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


def test_nine_conditions_in_ten_are_translated(translated):
    """Of the conditions of all programs at least 90 % are no stubs, most of them SQL."""
    report, _ = translated
    conditions = sum(file.conditions for file in report.files)
    stubs = sum(file.text.count("raise not_translated(") for file in report.files)

    assert len(report.files) >= 25
    assert conditions >= 100
    assert stubs <= conditions / 10
    assert sum(file.sql for file in report.files) >= conditions * 0.75


def test_modules_pass_the_linter(translated):
    """What is written passes ruff as it is without any configuration."""
    pytest.importorskip("ruff")
    _, folder = translated
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


JOB = """
import org.apache.flink.cep.CEP;
class Job {{
    public static class Event {{ public String user; public int n; public long at; }}
    public static void main(String[] args) throws Exception {{
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        {before}
        DataStream<Event> events = {source};
        Pattern<Event, ?> rise = Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.n > 3));
        SingleOutputStreamOperator<String> rows = CEP.pattern(events.keyBy({key}), rise).select(m -> "x"{typed});
        rows.{sink};
    }}
}}
"""


def job(
    tmp_path,
    source="env.addSource(new Own())",
    key="e -> e.user",
    sink="print()",
    before="",
    typed="",
):
    """Return the module of a job, and its report."""
    file = tmp_path / "Job.java"
    text = JOB.format(source=source, key=key, sink=sink, before=before, typed=typed)
    file.write_text(text, encoding="utf-8")
    report = migrate([str(file)]).report
    return report.files[0].text, report.as_text()


@pytest.mark.parametrize(
    ("java", "python"),
    [
        ('env.socketTextStream("h", 9).map(s -> mapper.readValue(s, Event.class))', '"host", "h"'),
        ('env.addSource(new FlinkKafkaConsumer<>("t", schema, p))', '.option("subscribe", "t")'),
        ("env.fromElements(new Event())", "createDataFrame"),
        ('env.readTextFile("/in").map(s -> gson.fromJson(s, Event.class))', '.load("/in")'),
        ("env.addSource(new Own()).filter(e -> e.n > 0)", '.where("n > 0")'),
        (
            "env.addSource(new Own()).assignTimestampsAndWatermarks(WatermarkStrategy.<Event>"
            "forBoundedOutOfOrderness(Duration.ofMinutes(2)).withTimestampAssigner((e, t) -> e.at))",
            '"event_time", "2 minutes"',
        ),
        (
            "env.addSource(new Own()).assignTimestampsAndWatermarks(new AscendingTimestampExtractor"
            "<Event>() { public long extractAscendingTimestamp(Event e) { return e.at * 1000; } })",
            '"timestamp_millis(at * 1000',
        ),
    ],
)
def test_sources(tmp_path, java, python):
    """A source, and what is done with its events, become their counterparts on Spark."""
    assert python in job(tmp_path, source=java)[0]


@pytest.mark.parametrize(
    ("java", "python"),
    [
        ("print()", 'format("console")'),
        ('writeAsText("/out")', '.option("path", "/out")'),
        ('addSink(new FlinkKafkaProducer<>("b:1", "t", s))', '.option("topic", "t")'),
        ("addSink(new Own())", "foreachBatch(write_rows)"),
        (
            'sinkTo(KafkaSink.<String>builder().setBootstrapServers("b:1").setRecordSerializer('
            'KafkaRecordSerializationSchema.builder().setTopic("t").build()).build())',
            '.option("topic", "t")',
        ),
    ],
)
def test_sinks(tmp_path, java, python):
    """A sink becomes its counterpart on Spark, or a function to write."""
    assert python in job(tmp_path, sink=java)[0]


@pytest.mark.parametrize(
    "key",
    [
        "e -> e.user",
        '"user"',
        "new KeySelector<Event, String>() { public String getKey(Event e) { return e.user; } }",
    ],
)
def test_keys(tmp_path, key):
    """A key by a lambda, a name or a selector becomes a column."""
    assert 'keyBy(events, "user")' in job(tmp_path, key=key)[0]


@pytest.mark.parametrize(
    "information",
    [
        "Types.STRING",
        "org.apache.flink.api.common.typeinfo.Types.STRING",
        "TypeInformation.of(String.class)",
    ],
)
def test_a_type_of_rows_is_no_function(tmp_path, information):
    """The type of the rows that follows a select function is no second function."""
    text = job(tmp_path, typed=f", {information}")[0]

    assert "found.select(select_rows, ROWS)" in text
    assert "not_translated" not in text


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


def test_an_insert_becomes_rows_to_write(tmp_path):
    """INSERT INTO before a clause is left out, and the report says where the rows go."""
    text = '''
from pyflink.table import TableEnvironment
t_env.execute_sql("""INSERT INTO alerts SELECT * FROM logins MATCH_RECOGNIZE (
  PARTITION BY u ORDER BY ts MEASURES A.ts AS t PATTERN (A) DEFINE A AS A.x = 1);""")
'''
    (tmp_path / "job.py").write_text(text, encoding="utf-8")
    report = migrate([str(tmp_path)]).report

    assert 'ALERTS_SQL = """\n    SELECT * FROM logins' in report.files[0].text
    assert "INSERT INTO alerts: write the rows there" in report.as_text()


def test_without_tree_sitter(monkeypatch, capsys):
    """Without the extra the command says what to install, and returns 2."""
    source._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)

    assert main([str(PROGRAMS / "LongRides.java")]) == 2
    assert "pip install 'pyflinkcep[migrate]'" in capsys.readouterr().err


PARAMETERS = """
class Limits {
    public static class Ev { public double v; public int n; }
    private final int most;
    Limits(int most) { this.most = most; }
    Pattern<Ev, ?> above(double limit, int times) {
        Pattern<Ev, ?> pattern = Pattern.<Ev>begin("high")
            .where(SimpleCondition.of(e -> e.v > limit && e.n <= most));
        for (int i = 1; i <= times; i++) {
            final int wanted = i;
            pattern = pattern.next("n" + i).where(SimpleCondition.of(e -> e.n == wanted));
        }
        return pattern.next("end").where(new IterativeCondition<Ev>() {
            public boolean filter(Ev e, Context<Ev> ctx) throws Exception {
                int odd = 0;
                for (Ev high : ctx.getEventsForPattern("high")) {
                    if (high.n % 2 == 1) { odd += 2; } else { odd--; }
                }
                return odd < most;
            }
        });
    }
}
"""


def test_values_of_run_time_become_parameters(tmp_path):
    """Numbers that conditions and loops capture become parameters of the pattern's function."""
    (tmp_path / "Limits.java").write_text(PARAMETERS, encoding="utf-8")
    file = migrate([str(tmp_path)]).report.files[0]
    pattern = load(file).above_pattern(limit=3.0, most=9, times=2)
    events = [{"v": 3.5, "n": 9}, {"v": 0.0, "n": 1}, {"v": 0.0, "n": 2}, {"v": 0.0, "n": 0}]

    assert [len(found) for found in match(pattern, events)] == [4]
    assert match(load(file).above_pattern(limit=3.5, most=9, times=2), events) == []
    assert file.notes == []


def test_an_argument_with_a_default_becomes_a_parameter(tmp_path):
    """A number of the command line becomes a parameter, whose default in Java is told."""
    before = "final double most = args.length > 0 ? Double.parseDouble(args[0]) : 7;"
    (tmp_path / "Job.java").write_text(
        JOB.format(
            source="env.addSource(new Own())",
            key="e -> e.user",
            sink="print()",
            before=before,
            typed="",
        ).replace("e.n > 3", "e.n > most"),
        encoding="utf-8",
    )
    report = migrate([str(tmp_path)]).report

    assert "def rise_pattern(most: float) -> Pattern:" in report.files[0].text
    assert 'parser.add_argument("--most"' in report.files[0].text
    assert "most is a parameter: in Java 7 by default" in report.as_text()


NESTED = """
class Trips {
    public record Place(String city, int zone) {}
    public static class Trip {
        public String car; public Place from; public List<String> tags; public long at;
        public Trip(String car, Place from, List<String> tags, long at) {
            this.car = car; this.from = from; this.tags = tags; this.at = at;
        }
    }
    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Trip> trips = env.fromElements(
            new Trip("a", new Place("Berlin", 7 / -2), Arrays.asList("x", "y"), 1L), new Trip("b", null, null, 2L))
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Trip>forBoundedOutOfOrderness(Duration.ZERO)
                .withTimestampAssigner((e, t) -> e.at));
        Pattern<Trip, ?> any = Pattern.<Trip>begin("a").where(SimpleCondition.of(e -> e.at > 0));
        CEP.pattern(trips.keyBy(e -> e.car), any).select(m -> m.get("a").get(0).car).print();
    }
}
"""


def test_elements_with_objects_in_them(tmp_path):
    """Events that a program lists become rows: objects in them, lists, and what is null."""
    (tmp_path / "Trips.java").write_text(NESTED, encoding="utf-8")
    file = migrate([str(tmp_path)]).report.files[0]

    assert '("a", ("Berlin", -3), ["x", "y"], 1),' in file.text
    assert '("b", None, None, 2),' in file.text
    assert file.notes == []


HALVES = """
class Halves {
    public static class Ev { public int n; }
    Pattern<Ev, ?> some(int times) {
        return Pattern.<Ev>begin("a").where(SimpleCondition.of(e -> e.n > 0)).times(4 + times / 2);
    }
}
"""


def test_whole_numbers_of_run_time_divide_towards_zero(tmp_path):
    """Arithmetic with a parameter is Java's."""
    (tmp_path / "Halves.java").write_text(HALVES, encoding="utf-8")
    pattern = load(migrate([str(tmp_path)]).report.files[0]).some_pattern

    assert [len(found["a"]) for found in match(pattern(times=-3), [{"n": 1}] * 3)] == [3]
    assert [len(found["a"]) for found in match(pattern(times=1), [{"n": 1}] * 4)] == [4]


ASSIGNER = """
class Assigner implements AssignerWithPeriodicWatermarks<Job.Event> {
    private final long lag = 5_000L;
    private long max = 0;
    public long extractTimestamp(Job.Event e, long before) { max = Math.max(max, e.at); return e.at; }
    public Watermark getCurrentWatermark() { return new Watermark(max - lag); }
}
"""


def test_an_assigner_of_its_own_class(tmp_path):
    """An old assigner in a class of its own gives the column of the time and the delay."""
    (tmp_path / "Assigner.java").write_text(ASSIGNER, encoding="utf-8")
    java = "env.addSource(new Own()).assignTimestampsAndWatermarks(new Assigner())"
    (tmp_path / "Job.java").write_text(
        JOB.format(source=java, key="e -> e.user", sink="print()", before="", typed=""),
        encoding="utf-8",
    )
    text = migrate([str(tmp_path)]).report.files[0].text

    assert 'F.timestamp_millis("at")' in text
    assert '"event_time", "5 seconds"' in text


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
