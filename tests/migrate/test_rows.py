# SPDX-License-Identifier: Apache-2.0
"""The rows that the functions of matches make, beside those of the original."""

import attrs
import pytest

from pyflinkcep.migrate.check.compare import compare
from pyflinkcep.migrate.check.flink import Answer
from pyflinkcep.migrate.checking import load, shown
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
