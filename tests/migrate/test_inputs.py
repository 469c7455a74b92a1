# SPDX-License-Identifier: Apache-2.0
"""What is read and written around a translation: watermarks, settings of sources, files and folders."""

import os

import pytest

from pyflinkcep.errors import InputError
from pyflinkcep.migrate.__main__ import main
from pyflinkcep.migrate.migration import migrate, write

JOB = """
public class Job {{
    public static class {event} {{ public String user; public int n; public long at; }}
    public static void main(String[] args) throws Exception {{
        Properties props = new Properties();
        {before}
        DataStream<{event}> evs = {source};
        Pattern<{event}, ?> p = Pattern.<{event}>begin("a"){first}.where(SimpleCondition.of(e -> e.n > 1));
        CEP.pattern(evs, p).select(m -> "x").print();
    }}
}}
"""


def translated(
    tmp_path,
    source='env.fromElements(new Ev("a", 1, 1L))',
    before="",
    first="",
    event="Ev",
    name="Job",
):
    """Return the report of a job."""
    file = tmp_path / f"{name}.java"
    text = JOB.format(source=source, before=before, first=first, event=event)
    file.write_text(text, encoding="utf-8")
    return migrate([str(file)]).report


WATERMARKS = """env.addSource(new Own()).assignTimestampsAndWatermarks(new AssignerWithPeriodicWatermarks<Ev>() {
    private final long lag = 7 * 1000; private long max = 0;
    public Watermark getCurrentWatermark() { return new Watermark(%s); }
    public long extractTimestamp(Ev e, long before) { max = Math.max(max, e.at); return e.at; } })"""


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("max - (60 * 1000 * 10)", "10 minutes"),
        ("max - 60 * 1000", "1 minute"),
        ("max - lag", "7 seconds"),
        ("max - lag - 1", "7001 milliseconds"),
        ("(max - 5_000L)", "5 seconds"),
        ("max", "0 seconds"),
    ],
)
def test_how_far_a_watermark_is_behind(tmp_path, written, said):
    """The delay is the value of what the expression takes off, computed as Java does."""
    report = translated(tmp_path, WATERMARKS % written)

    assert f'"event_time", "{said}"' in " ".join(report.files[0].text.split())


def test_a_watermark_of_the_clock_is_processing_time(tmp_path):
    """A watermark made of the machine's clock says nothing of the times of events."""
    report = translated(tmp_path, WATERMARKS % "System.currentTimeMillis() - 5000")

    assert ".inProcessingTime()" in report.files[0].text
    assert "watermarks follow the clock" in report.as_text()


def test_a_watermark_that_is_not_understood(tmp_path):
    """A delay that is not known is to be written."""
    report = translated(tmp_path, WATERMARKS % "max - rules.lag()")

    assert "is not known: '0 seconds' is assumed: write" in report.as_text()


KAFKA = 'KafkaSource.<Ev>builder().setTopics("t").setBootstrapServers("b:1")%s.build()'


def test_settings_of_kafka(tmp_path):
    """Settings are taken from the tree, quotes and all; what is not shown or known is noted."""
    jaas = 'props.setProperty("sasl.jaas.config", "Plain required username=\\\\"a\\\\";");'.replace(
        "\\\\", "\\"
    )
    before = jaas + 'props.put("ssl.key", secret());'
    source = KAFKA % ".setProperties(props).setStartingOffsets(Offsets.timestamp(3))"
    report = translated(tmp_path, f'env.fromSource({source}, W.none(), "k")', before)
    text = report.files[0].text

    assert "'Plain required username=\"a\";'" in text
    assert '.option("kafka.ssl.key", "TODO")' in text
    assert "setStartingOffsets() of the source is left out" in report.as_text()
    assert report.status == 1


SETTINGS = """
public class Settings {
    static final String SERVERS = "one:9092";
    static final Properties FILLED_ELSEWHERE = new Properties();
    static Properties of(String group) {
        Properties made = new Properties();
        made.setProperty("bootstrap.servers", SERVERS);
        made.put("group.id", group);
        return made;
    }
}
"""


def test_properties_are_followed_through_methods(tmp_path):
    """Properties that a method makes are settings, with constants; those filled elsewhere are noted."""
    (tmp_path / "Settings.java").write_text(SETTINGS, encoding="utf-8")
    for given in ('Settings.of("g")', "Settings.FILLED_ELSEWHERE"):
        source = f'env.addSource(new FlinkKafkaConsumer<>("t", new EvSchema(), {given}))'
        translated(tmp_path, source, name=f"Job{len(given)}")
    known, lost = (one for one in migrate([str(tmp_path)]).report.files)
    assert '.option("kafka.bootstrap.servers", "one:9092")' in known.text
    assert '.option("kafka.group.id", "g")' in known.text
    assert "the properties Settings.FILLED_ELSEWHERE of the source is left out" in "".join(
        note.what for note in lost.notes
    )


def test_a_type_that_every_event_has(tmp_path):
    """``subtype`` of the class of the events is no condition."""
    report = translated(tmp_path, first=".subtype(Ev.class)")

    assert "type =" not in report.files[0].text
    assert "holds for every event" in report.as_text()


def test_a_class_of_one_letter(tmp_path):
    """A class that is called like a type variable is a class."""
    report = translated(tmp_path, 'env.fromElements(new E("a", 1, 1L))', event="E")

    assert '.where("n > 1")' in report.files[0].text
    assert report.status == 0


def test_a_second_run_keeps_what_was_changed(tmp_path):
    """A run writes over what an earlier one wrote, but not over changes, other files, or links."""
    out = tmp_path / "out"
    write(translated(tmp_path), out)
    write(translated(tmp_path, first=".times(2)"), out)
    assert ".times(2)" in (out / "job.py").read_text()

    (out / "job.py").write_text("mine = 1\n")
    with pytest.raises(InputError, match=r"job\.py"):
        write(translated(tmp_path), out)
    assert (out / "job.py").read_text() == "mine = 1\n"

    (tmp_path / "elsewhere").write_text("kept\n")
    (out / "job.py").unlink()
    (out / "job.py").symlink_to(tmp_path / "elsewhere")
    assert main([str(tmp_path / "Job.java"), "--out", str(out)]) == 2
    assert main([str(tmp_path / "Job.java"), "--out", str(out), "--force"]) == 0
    assert (tmp_path / "elsewhere").read_text() == "kept\n"
    assert "def p_pattern" in (out / "job.py").read_text()


def test_folders_that_are_skipped(tmp_path):
    """A folder of tests, or of what is built, is not read; the report says so if it has patterns."""
    for folder in ("src/test/java", "build", "src/test2"):
        (tmp_path / folder).mkdir(parents=True)
    translated(tmp_path / "src/test/java")
    translated(tmp_path / "src/test2")
    report = migrate([str(tmp_path)]).report

    assert report.read == 1
    assert [note.file for note in report.skipped] == [str(tmp_path / "src" / "test")]
    assert "name it to translate it" in report.as_text()
    assert report.status == 0


@pytest.mark.parametrize("name", ["Typing", "Json", "Pyspark", "Pandas", "Attr", "Pyflinkcep"])
def test_no_module_hides_another(tmp_path, name):
    """A module is never called like one of the standard library, or one that a job imports."""
    assert translated(tmp_path, name=name).files[0].module == f"{name.lower()}_job"


def test_a_pipe_is_refused(tmp_path):
    """What is no regular file is not read, since it may never end."""
    os.mkfifo(tmp_path / "Job.java")

    assert "not a regular file" in migrate([str(tmp_path)]).report.as_text()


def test_classes_nested_too_deeply(tmp_path):
    """Thousands of classes in each other are an error of their file; the others are translated."""
    deep = "".join(f"class A{n} {{" for n in range(5_000)) + "}" * 5_000
    (tmp_path / "Deep.java").write_text(deep)
    report = translated(tmp_path)
    report = migrate([str(tmp_path)]).report

    assert "nested too deeply" in report.as_text()
    assert [file.module for file in report.files if file.module] == ["job"]
