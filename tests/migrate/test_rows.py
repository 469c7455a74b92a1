# SPDX-License-Identifier: Apache-2.0
"""The rows that the functions of matches make, beside those of the original."""

from types import SimpleNamespace

import attrs
import pytest
from pyspark.sql import Row

from pyflinkcep.migrate.check.compare import compare, load, shown
from pyflinkcep.migrate.check.flink import Answer
from pyflinkcep.migrate.migration import migrate

JOB = """
class Job {
    static class Bid { public String user; public int price; public long at; }
    static class Alert {
        public String user; public int total; public long when;
        public Alert(String user, int total, long when) { this.user = user; this.total = total; this.when = when; }
    }
    static final OutputTag<String> LATE = new OutputTag<String>("late") {};
    public static void main(String[] args) throws Exception {
        DataStream<Bid> bids = env.addSource(new Own()).assignTimestampsAndWatermarks(WatermarkStrategy
            .<Bid>forMonotonousTimestamps().withTimestampAssigner((b, t) -> b.at * 1000L));
        Pattern<Bid, ?> rise = Pattern.<Bid>begin("a").where(SimpleCondition.of(b -> b.price > 1))
            .next("b").where(SimpleCondition.of(b -> b.price > 5)).within(Duration.ofSeconds(9));
        CEP.pattern(bids, rise).%s.print();
    }
}
"""
SELECT = """select(LATE, new PatternTimeoutFunction<Bid, String>() {
    public String timeout(Map<String, List<Bid>> m, long t) { return m.get("a").get(0).user + t; }
}, new PatternSelectFunction<Bid, Alert>() {
    public Alert select(Map<String, List<Bid>> m) {
        return new Alert(m.get("a").get(0).user, m.get("a").get(0).price + m.get("b").get(0).price, 0L);
    }
})"""
PROCESS = """process(new PatternProcessFunction<Bid, Alert>() {
    public void processMatch(Map<String, List<Bid>> m, Context ctx, Collector<Alert> out) {
        out.collect(new Alert(m.get("a").get(0).user, m.get("b").get(0).price, ctx.timestamp()));
        ctx.output(LATE, "seen");
    }
})"""
STUB = "select(m -> Library.unknown(m))"
BIDS = [("ann", 2, 1), ("bob", 7, 2), ("cid", 1, 3), ("dan", 3, 40)]


def compared(tmp_path, java, rows):
    """Compare a job with what Flink is said to answer."""
    (tmp_path / "Job.java").write_text(JOB % java, encoding="utf-8")
    file = migrate([str(tmp_path)]).report.files[0]
    checked, module = file.checked[0], load(file)
    bids = [dict(zip(("user", "price", "at"), bid, strict=True)) for bid in BIDS]
    matches = [{"match": {"a": [bids[0]], "b": [bids[1]]}}]
    timeouts = [{"match": {"a": [bids[3]]}, "timestamp": 49_000}]
    answer = Answer(bids, matches, timeouts, rows=rows)
    return compare(checked, getattr(module, checked.name), answer, module)


def test_rows_of_select_with_timeouts(tmp_path):
    """Objects of matches, and texts of timeouts under their tag, are compared with Flink's."""
    rows = [
        {"row": {"user": "ann", "total": 9, "when": 0}},
        {"row": {"value": "dan49000"}, "tag": "late"},
    ]
    found = compared(tmp_path, SELECT, rows)

    assert (found.text, found.rows) == ("", 2)
    assert shown([found]) == (
        ["check rise_pattern: the same 1 match, 1 timeout and 2 rows of 4 events"],
        True,
    )


def test_the_time_of_a_match_and_side_outputs(tmp_path):
    """A process function has the time of the last event, in milliseconds, and writes to tags."""
    rows = [
        {"row": {"user": "ann", "total": 7, "when": 2000}},
        {"row": {"value": "seen"}, "tag": "late"},
    ]

    assert compared(tmp_path, PROCESS, rows).text == ""


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "the translation has 2 rows more, the first: {"),
        ([{"row": {"user": "ann", "total": 8, "when": 0}}], "Flink has 1 row more, the first: {"),
    ],
)
def test_the_first_row_that_differs_is_shown(tmp_path, rows, text):
    """A row that only one of both has is a difference."""
    found = compared(tmp_path, SELECT, rows)

    assert found.text.startswith(text)
    assert shown([found])[1] is False


def test_rows_that_cannot_be_compared(tmp_path):
    """Without a translation, or without rows of Flink, the reason is shown; the rest is compared."""
    found = compared(tmp_path, STUB, None)
    lines, same = shown([found, attrs.evolve(found, unknown="X is unknown")])

    assert same
    assert lines == [
        "check rise_pattern: the same 1 match and 1 timeout of 4 events; their rows were not "
        "compared: not all of their functions are translated",
        "check rise_pattern: the same 1 match and 1 timeout of 4 events; their rows were not "
        "compared: X is unknown",
    ]


FUNCTIONS = """
class Functions {
    public static class Event { public String name; public int n; public long at; }
    static class All<T> implements PatternFlatSelectFunction<T, T> {
        public void flatSelect(Map<String, List<T>> m, Collector<T> out) {
            for (List<T> some : m.values()) for (T one : some) out.collect(one);
        }
    }
    static class First<K> implements PatternFlatSelectFunction<Event, Tuple2<String, K>> {
        final K k;
        First(K k) { this.k = k; }
        public void flatSelect(Map<String, List<Event>> m, Collector<Tuple2<String, K>> out) {
            K mine = k;
            out.collect(Tuple2.of(m.get("a").get(0).name, mine));
        }
    }
    static void run(DataStream<Event> events, String mode) {
        AfterMatchSkipStrategy skip = Skips.byName(mode);
        Pattern<Event, ?> p = Pattern.<Event>begin("a", skip).where(SimpleCondition.of(e -> e.n > 0));
        CEP.pattern(events, p).%s.print();
    }
}
"""
EVENT = {"name": "x", "n": 3, "at": 7, "event_time": 9}
AS_EVENT = ([("x", 3, 7)], "name string, n int, at bigint")
OLD = "new Pattern%sFunction<Event, %s>() { public %s throws Exception { %s } }"

OF_MATCHES = {
    "flatSelect(new All<Event>())": AS_EVENT,
    "flatSelect(new All<>())": AS_EVENT,
    "flatSelect(new First<Integer>(7))": ([("x", 7)], "f0 string, f1 int"),
    'flatSelect(new First<String>("k"))': ([("x", "k")], "f0 string, f1 string"),
    'select(m -> { Map<String, List<Event>> c = new HashMap<>(m); c.remove("b"); return c.get("a").get(0).name + c.size(); })': (
        None, "value string"),
    'select(m -> { Map<String, List<Event>> c = new HashMap<>(m); return c.get("a").get(0).name + c.size(); })': (
        [("x1",)], "value string"),
    "select(m -> m.get(\"a\").get(0))": AS_EVENT,
    "select(" + OLD % ("Select", "String", "String select(Map<String, Event> m)",
        'return m.get("a").name + m.size();') + ")": ([("x1",)], "value string"),
    "flatSelect(" + OLD % ("FlatSelect", "Event", "void flatSelect(Map<String, Event> m, Collector<Event> out)",
        "for (Event e : m.values()) { out.collect(e); }") + ")": AS_EVENT,
}  # fmt: skip


@pytest.mark.parametrize(("java", "case"), OF_MATCHES.items())
def test_functions_of_any_generation(tmp_path, java, case):
    """Functions with type variables, of maps with one event a stage, and of copies make Java's rows."""
    (tmp_path / "Functions.java").write_text(FUNCTIONS % java, encoding="utf-8")
    made = migrate([str(tmp_path)]).report.files[0]
    module = load(made)
    function = next(
        value
        for name, value in vars(module).items()
        if name.startswith(("select_", "flat_select_"))
    )
    rows, ddl = case
    given = {"a": [Row(**EVENT)]}
    if rows is None:
        assert made.stubs
        return
    found = []
    out = SimpleNamespace(collect=found.append)
    if "flat" in function.__name__:
        function(given, out)
    else:
        found.append(function(given))

    assert found == rows
    assert next(value for name, value in vars(module).items() if value == ddl)
    assert "p_pattern(by_name_mode: AfterMatchSkipStrategy) -> Pattern:" in made.text


def test_events_in_results_have_a_time_where_a_pattern_follows(tmp_path):
    """Rows have as many values as their schema has columns, also where matches are matched again."""
    java = """
    class Twice {
        public static class Event { public String name; public int n; public long at; }
        public static void main(String[] args) throws Exception {
            DataStream<Event> events = env.addSource(new Own()).assignTimestampsAndWatermarks(WatermarkStrategy
                .<Event>forMonotonousTimestamps().withTimestampAssigner((e, t) -> e.at));
            Pattern<Event, ?> p = Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.n > 0)).next("b");
            DataStream<Event> firsts = CEP.pattern(events, p).select(m -> m.get("a").get(0));
            CEP.pattern(firsts, p).select(m -> m.get("b").get(0).name).print();
        }
    }
    """
    (tmp_path / "Twice.java").write_text(java, encoding="utf-8")
    made = migrate([str(tmp_path)]).report.files[0]
    module = load(made)

    row = module.timed_firsts({"a": [Row(**EVENT)], "b": [Row(**EVENT | {"event_time": 11})]})

    assert row == ("x", 3, 7, 11)
    assert 'EVENT + ", event_time timestamp"' in made.text


def test_side_outputs_of_functions_of_rows_are_written_by_hand(tmp_path):
    """A DataFrame has no side outputs: those of other functions than of matches are marked."""
    java = """
    class Sides {
        public static class Event { public String name; public int n; public long at; }
        public static void main(String[] args) throws Exception {
            OutputTag<String> odd = new OutputTag<String>("odd") {};
            DataStream<Event> events = env.addSource(new Own());
            Pattern<Event, ?> p = Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.n > 0));
            SingleOutputStreamOperator<String> found = CEP.pattern(events, p).select(m -> m.get("a").get(0).name);
            SingleOutputStreamOperator<String> marked = found.process(new Marks(odd));
            marked.getSideOutput(odd).print();
            found.name("x").getSideOutput(odd).print();
        }
    }
    """
    (tmp_path / "Sides.java").write_text(java, encoding="utf-8")
    text = migrate([str(tmp_path)]).report.files[0].text

    assert text.count(".getSideOutput(") == 1
    assert "found.getSideOutput(ODD)" in text
    assert "def get_side_output_events(_rows: DataFrame) -> DataFrame:" in text
