# SPDX-License-Identifier: Apache-2.0
"""Parts of jobs without a counterpart are marked, or in the report: nothing is dropped silently."""

import pytest

from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.testing import match

JOB = """
public class Job {{
    public static class Ev {{ public String user; public int n; public long at; }}
    {members}
    public static void main(String[] args) throws Exception {{
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Ev> evs = env.addSource(new Own());
        DataStream<Ev> others = env.addSource(new Others());
        Pattern<Ev, ?> p = Pattern.<Ev>begin("a").where(SimpleCondition.of(e -> e.n > 1));
        {body}
    }}
}}
"""
FOUND = 'DataStream<String> found = CEP.pattern({}, p).select(m -> "x");'


def job(tmp_path, body, members=""):
    """Return the report of a job, and its module's text."""
    file = tmp_path / "Job.java"
    file.write_text(JOB.format(body=body, members=members), encoding="utf-8")
    report = migrate([str(file)]).report
    return report, report.files[0].text


@pytest.mark.parametrize(
    ("body", "function"),
    [
        ("DataStream<Ev> given = AsyncDataStream.unorderedWait(evs, new Rich(), 9, SECONDS);",
         "unordered_wait_given"),
        ("DataStream<Ev> given = evs.keyBy(e -> e.user).process(new KeyedProcessFunction<String, Ev, Ev>()"
         " { private ValueState<Integer> seen; public void processElement(Ev e, Context c, Collector<Ev>"
         " o) { seen.update(1); o.collect(e); } });", "process_given"),
        ("DataStream<Ev> given = evs.connect(others.broadcast(rules)).process(new Rules());",
         "connect_events"),
        ("DataStream<Ev> given = evs.keyBy(e -> e.user).window(W.of(5)).trigger(new Mine()).reduce(new R());",
         "trigger_events"),
        ("DataStream<Ev> given = evs.join(others).where(a).equalTo(b).window(w).apply(new J());",
         "join_events"),
        ("IterativeStream<Ev> given = evs.iterate();", "iterate_given"),
    ],
)  # fmt: skip
def test_streams_before_a_pattern(tmp_path, body, function):
    """What a job does with events without a counterpart is a function that raises, with the Java."""
    report, text = job(tmp_path, body + FOUND.format("given") + "found.print();")

    assert f"def {function}(" in text
    assert "is not translated" in text.split(f"def {function}(")[1]
    assert f"write {function}()" in report.as_text()
    assert "keyBy(given" not in text
    assert report.status == 1


def test_the_other_stream_of_a_call(tmp_path):
    """A function that remains to be written is given the other streams too, with their sources."""
    body = "DataStream<Ev> given = evs.connect(others).process(new Rules());" + FOUND.format(
        "given"
    )
    report, text = job(tmp_path, body + "found.print();")

    assert "connect_events(events, read_others(spark))" in text
    assert "the source Others has no counterpart" in report.as_text()


def test_results_that_are_united(tmp_path):
    """Matches of two patterns in one stream are both written."""
    body = FOUND.format("evs") + (
        'DataStream<String> more = CEP.pattern(others, p).select(m -> "y");'
        "found.union(more).print();"
    )
    _, text = job(tmp_path, body)

    assert "find_more(" in text
    assert "found.unionByName(more)" in text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("it.closeWith(evs.filter(e -> e.n > 3));", "closeWith() of a stream is left out"),
        ('t.createTemporaryView("alerts", found);', "createTemporaryView() of a stream"),
        ('t.executeSql("INSERT INTO s SELECT * FROM alerts");', "without MATCH_RECOGNIZE"),
        ("evs.addSink(new Raw());", "addSink() of a stream is left out"),
        ("evs.print();", "print() of events without a pattern is left out"),
        ('CEP.pattern(evs, p).select((m, t) -> "late", m -> "x").print();', "Either has no"),
    ],
)
def test_ends_without_a_counterpart(tmp_path, body, said):
    """What a job does besides, without a counterpart, is in the report."""
    report, _ = job(tmp_path, FOUND.format("evs") + "found.print();" + body)

    assert said in report.as_text()


OVERRIDE = """
    static abstract class Base<T> {
        abstract Pattern<T, ?> pattern();
        void run(DataStream<T> in) { CEP.pattern(in, pattern()).select(m -> "x").print(); }
    }
    static class Mine extends Base<Ev> {
        Pattern<Ev, ?> pattern() { return Pattern.<Ev>begin("mine").where(SimpleCondition.of(e -> e.n > 3)); }
    }
"""


def test_a_method_that_a_class_overrides(tmp_path):
    """A job in a class to extend is followed with the methods of the class that extends it."""
    report, text = job(tmp_path, "new Mine().run(evs);", OVERRIDE)
    make = getattr(load(report.files[0]), "mine_pattern", None) or load(report.files[0]).pattern

    assert "could not be followed" not in report.as_text()
    assert len(match(make(), [{"user": "a", "n": n, "at": n} for n in (3, 4)])) == 1
    assert "not_translated" not in text


@pytest.mark.parametrize("most", ["args.length", "Limits.most()"])
def test_a_pattern_that_is_applied_in_a_loop(tmp_path, most):
    """Its function has the counter as a parameter, and the report says that the loop is left out."""
    body = (
        f"for (int i = 0; i < {most}; i++) {{ final int least = i;"
        'Pattern<Ev, ?> q = Pattern.<Ev>begin("q" + i).where(SimpleCondition.of(e -> e.n > least));'
        "CEP.pattern(evs, q).select(m -> least).print(); }"
    )
    report, text = job(tmp_path, body)
    found = match(load(report.files[0]).q_pattern(3), [{"user": "a", "n": n} for n in (3, 4)])

    assert [list(one) for one in found] == [["q3"]]
    assert "def main(spark: SparkSession, i: int)" in text
    assert "a pattern is applied in a loop: write the loop" in report.as_text()


COUNTED = """
    static void each(DataStream<Ev> in, int count) {
        for (int i = 0; i < count; i++) {
            Pattern<Ev, ?> q = Pattern.<Ev>begin("q" + i).where(SimpleCondition.of(e -> e.n > 1));
            for (int k = i; k < count; k++) { q = q.next("k" + k); }
            CEP.pattern(in, q).select(m -> "x").print();
        }
    }
"""


def test_a_loop_inside_of_one_that_is_left_out(tmp_path):
    """Of two loops the inner one, which builds the pattern, is written; both end where Java says."""
    report, _ = job(tmp_path, "", COUNTED)
    found = match(
        load(report.files[0]).q_pattern(i=1, count=3),
        [{"user": "a", "n": n} for n in (3, 1, 1)],
    )

    assert [list(one) for one in found] == [["q1", "k1", "k2"]]


STATE = """
    static class Holds extends IterativeCondition<Ev> {
        private int seen;
        public boolean filter(Ev e, Context<Ev> ctx) throws Exception {
            %s
        }
    }
"""


@pytest.mark.parametrize(
    "java",
    [
        "PriorityQueue<Integer> q = new PriorityQueue<>(); q.add(e.n); return q.poll() > 3;",
        "seen++; return seen % 3 == 0;",
        "return new Random().nextInt(10) > e.n;",
        'outer: for (Ev x : ctx.getEventsForPattern("a")) { while (true) continue outer; } return true;',
        'return (int) e.getClass().getField("n").get(e) > 3;',
        "return Registry.instance().allows(e);",
        "return e instanceof Object o && Library.check(o);",
    ],
)
def test_conditions_without_a_counterpart_raise(tmp_path, java):
    """A condition with state, chance, reflection or libraries raises with its Java, file and line."""
    body = (
        'Pattern<Ev, ?> q = Pattern.<Ev>begin("a").where(new Holds());'
        'CEP.pattern(evs, q).select(m -> "x").print();'
    )
    report, text = job(tmp_path, body, STATE % java)

    assert "raise not_translated('" in text
    assert "Job.java:" in text
    assert java.split("; ")[0].split(";")[0] in text
    assert report.status == 1
