# SPDX-License-Identifier: Apache-2.0
"""What a job does with events before the pattern, and tables of SQL."""

import pytest

from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.migrate.writing.tables import spark_expression, spark_type, table_of
from tests.migrate.test_jobs import job


def test_map_becomes_a_function(tmp_path):
    """A map that does more than parse JSON is a function of rows, with the schema of its result."""
    java = (
        'env.readTextFile("/in").map(line -> { String[] f = line.split(";"); Event e = new Event(); '
        "e.user = f[0].trim(); e.n = Integer.parseInt(f[1]); return e; })"
    )
    text, report = job(tmp_path, java)

    assert 'F.udf(map_events, EVENT, useArrow=False)(F.struct("*")).alias("row")' in text
    assert "TODO" not in text, report
    made = load(migrate([str(tmp_path)]).report.files[0])
    event = type("Row", (), {"value": " ann;3"})()
    assert made.map_events(event) == {"user": "ann", "n": 3, "at": 0}


def test_a_map_that_changes_its_event(tmp_path):
    """A map that sets fields of its event returns a changed copy; one that returns it is left out."""
    changed = "env.addSource(new Own()).map(e -> { e.n = e.n + 1; return e; })"
    text, _ = job(tmp_path, changed)
    made = load(migrate([str(tmp_path)]).report.files[0])

    assert "event = fields_of(event)" in text
    assert made.map_events({"user": "a", "n": 1, "at": 2}) == {"user": "a", "n": 2, "at": 2}
    assert "F.udf" not in job(tmp_path, "env.addSource(new Own()).map(e -> e)")[0]


@pytest.mark.parametrize(
    ("java", "python"),
    [
        (
            "env.addSource(new Own()).flatMap((Event e, Collector<Event> out) -> { out.collect(e); })",
            'F.inline(F.udf(collected(flat_map_events), f"array<struct<{EVENT}>>", useArrow=False)',
        ),
        (
            "env.addSource(new Own()).process(new ProcessFunction<Event, Event>() { public void "
            "processElement(Event e, Context c, Collector<Event> out) { if (e.n > 0) out.collect(e); } })",
            "collected(process_events)",
        ),
        (
            'env.addSource(new Own()).filter(e -> e.user.matches("[a-z]+"))',
            'events.where(F.udf(keeps_events, "boolean", useArrow=False)(F.struct("*")))',
        ),
        (
            "env.addSource(new Own()).assignTimestampsAndWatermarks(WatermarkStrategy.<Event>"
            "forMonotonousTimestamps().withTimestampAssigner((e, t) -> e.at)).map(e -> "
            "{ e.n = 0; return e; })",
            '"row.*", "event_time"',
        ),
        (
            "env.addSource(new Own()).process(new KeyedProcessFunction<String, Event, Event>() { public void "
            "processElement(Event e, Context c, Collector<Event> out) { c.timerService(); } })",
            'raise NotImplementedError("Job.java:',
        ),
    ],
)
def test_functions_before_the_pattern(tmp_path, java, python):
    """filter, flatMap and process become functions; what cannot be is a place to write."""
    assert python in job(tmp_path, java)[0]


def test_keys_of_texts_and_tuples(tmp_path):
    """A key that concatenates text, or makes a tuple, is an expression of SQL."""
    text, _ = job(tmp_path, key='e -> e.user + "-" + e.n')
    assert "concat(coalesce(user, 'null'), '-', CAST(n AS string))" in text
    text, _ = job(tmp_path, key="e -> Tuple2.of(e.user, e.n)")
    assert "named_struct('f0', user, 'f1', n)" in text


DDL = """CREATE TABLE IF NOT EXISTS `Tick` (
  symbol VARCHAR(9) NOT NULL COMMENT 'a, b',
  price DECIMAL(10, 2), -- with a comment
  at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  nested ROW<a INT, b ARRAY<STRING>>,
  total AS price * 2,
  WATERMARK FOR at AS at - INTERVAL '1' MINUTE,
  PRIMARY KEY (symbol) NOT ENFORCED
) WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'format' = 'json')"""


def test_tables_are_understood():
    """Columns, computed and metadata columns, the watermark and the options of a table."""
    table = table_of(DDL)

    assert table is not None
    assert table.columns == [
        ("symbol", "string"),
        ("price", "decimal(10,2)"),
        ("nested", "struct<a:int,b:array<string>>"),
    ]
    assert table.computed == [("total", "price * 2")]
    assert table.metadata == [("at", "timestamp")]
    assert table.watermark == ("at", "1 minute")
    assert table.options["topic"] == "t"
    assert table.problems == []
    assert table_of("CREATE VIEW v AS SELECT 1") is None
    assert spark_type("MULTISET<INT>") is None
    assert spark_expression("TO_TIMESTAMP_LTZ(a + 1, 3)") == "timestamp_millis(a + 1)"


def test_tables_become_views(tmp_path):
    """A table that a clause reads is a view of a DataFrame, one that it fills a sink."""
    java = f"""
class Job {{
    public static void main(String[] a) {{
        TableEnvironment t = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        t.executeSql(\"\"\"
        {DDL}\"\"\");
        t.executeSql("CREATE TABLE Out (s STRING) WITH ('connector' = 'kafka', 'topic' = 'o', "
            + "'properties.bootstrap.servers' = 'h:2')");
        t.executeSql("INSERT INTO Out SELECT s FROM Tick MATCH_RECOGNIZE (ORDER BY at MEASURES A.symbol AS s PATTERN (A) DEFINE A AS A.price > 3)");
    }}
}}
"""
    (tmp_path / "Job.java").write_text(java, encoding="utf-8")
    report = migrate([str(tmp_path)]).report
    text = report.files[0].text

    assert 'read_tick(spark).createOrReplaceTempView("Tick")' in text
    assert 'F.col("timestamp").alias("at")' in text
    assert 'events.withWatermark("at", "1 minute")' in text
    assert '.option("topic", "o")' in text
    assert "TODO" not in text
    compile(text, "job", "exec")


def test_a_class_of_watermark_strategies(tmp_path):
    """The assigner and the delay of a strategy of the program's own class are known."""
    java = """
class Job {
    static class Event { public String user; public long at; }
    static class Marks implements WatermarkStrategy<Event> {
        public WatermarkGenerator<Event> createWatermarkGenerator(WatermarkGeneratorSupplier.Context c) {
            return new BoundedOutOfOrdernessWatermarks<>(Duration.ofSeconds(30));
        }
        public TimestampAssigner<Event> createTimestampAssigner(TimestampAssignerSupplier.Context c) {
            return (e, ts) -> e.at;
        }
    }
    static void run(StreamExecutionEnvironment env) {
        DataStream<Event> events = env.addSource(new Own()).assignTimestampsAndWatermarks(new Marks());
        CEP.pattern(events, Pattern.<Event>begin("a")).select(m -> "x").print();
    }
}
"""
    (tmp_path / "Job.java").write_text(java, encoding="utf-8")
    text = migrate([str(tmp_path)]).report.files[0].text

    assert 'withColumn("event_time", F.timestamp_millis("at"))' in text
    assert '"event_time", "30 seconds"' in text


def test_names_in_json(tmp_path):
    """Fields that annotations give other names in JSON are read by those."""
    java = """
class Job {
    static class Event { @JsonProperty("user_id") public String user; public long at; }
    static void run(StreamExecutionEnvironment env) {
        DataStream<Event> events = env.readTextFile("/in").map(s -> MAPPER.readValue(s, Event.class));
        CEP.pattern(events, Pattern.<Event>begin("a")).select(m -> "x").addSink(new SinkFunction<String>() {
            public void invoke(String s, Context c) { System.out.println(s); }
        });
    }
}
"""
    (tmp_path / "Job.java").write_text(java, encoding="utf-8")
    text = migrate([str(tmp_path)]).report.files[0].text

    assert 'EVENT_JSON = "user_id string, at bigint"' in text
    assert 'F.col("event.user_id").alias("user")' in text
    assert ".show(truncate=False)" in text  # an anonymous sink that prints


def test_anonymous_sinks_have_readable_names(tmp_path):
    """A sink of a class without a name is called by what it implements, not by its text."""
    sink = "addSink(new RichSinkFunction<String>() { public void invoke(String s, Context c) { client.send(s); } })"
    text, report = job(tmp_path, sink=sink)

    assert "the anonymous RichSinkFunction has no counterpart" in report
    assert "Override" not in text
