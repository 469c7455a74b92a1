# SPDX-License-Identifier: Apache-2.0
"""The job around a pattern: sources, sinks, keys, times, and values of run time."""

import pytest

from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.testing import match

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


SHAPES = """
class Shapes {
    static class Shape { public int id; }
    static class Circle extends Shape { public double r; Circle(int id, double r) { this.id = id; this.r = r; } }
    static class Square extends Shape { public double a; Square(int id, double a) { this.id = id; this.a = a; } }
    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        Pattern<Shape, ?> both = Pattern.<Shape>begin("c").subtype(Circle.class)
            .next("s").subtype(Square.class).where(SimpleCondition.of(s -> s.a < 5))
            .within(Duration.ofHours(1).plusMinutes(30).minus(Duration.ofMinutes(1)));
        CEP.pattern(env.fromElements(new Circle(1, 2.0), new Square(2, 3.0)), both)
            .select(m -> "x").print();
    }
}
"""


def test_elements_of_several_classes_are_events_of_the_pattern(tmp_path):
    """The columns are those of the pattern's class and its subclasses; durations add up."""
    (tmp_path / "Shapes.java").write_text(SHAPES, encoding="utf-8")
    text = migrate([str(tmp_path)]).report.files[0].text

    assert 'SHAPE = "type string, id int, r double, a double"' in text
    assert ".within(timedelta(minutes=89))" in text


def test_a_generator_is_a_place_to_write(tmp_path):
    """A generator of events makes rows that only its function knows."""
    generator = (
        "env.fromSource(new DataGeneratorSource<>(make, 9, TypeInformation.of(Event.class)), "
        'WatermarkStrategy.noWatermarks(), "events")'
    )
    text, report = job(tmp_path, source=generator)

    assert "raise NotImplementedError" in text
    assert "DataGeneratorSource has no counterpart" in report


def test_a_stream_with_the_name_of_an_import(tmp_path):
    """The columns of a stream called f do not hide the functions of Spark, called F."""
    java = SHAPES.replace("CEP.pattern(env", "DataStream<String> f = CEP.pattern(env").replace(
        '"x").print()', '"x"); f.print()'
    )
    (tmp_path / "Shapes.java").write_text(java, encoding="utf-8")
    text = migrate([str(tmp_path)]).report.files[0].text

    assert 'F_2 = "value string"' in text
    assert "from pyspark.sql import functions as F" in text
    assert "select(select_f, F_2)" in text
