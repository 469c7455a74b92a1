# SPDX-License-Identifier: Apache-2.0
"""A generated job, from files to files: bounded, and as a stream to its end."""

import json
import re
import runpy

import pytest

from pyflinkcep.migrate.migration import migrate, write
from pyflinkcep.testing import match

JOB = """
public class Orders {{
    public static class Order {{
        @JsonProperty("customer_id") public String customer;
        public String status;
        public double total;
        public long at;
    }}
    public static class Refund {{
        public String customer; public int orders; public double total;
        public Refund(String customer, int orders, double total) {{
            this.customer = customer; this.orders = orders; this.total = total;
        }}
    }}
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws Exception {{
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        FileSource<String> files = FileSource
            .forRecordStreamFormat(new TextLineInputFormat(), new Path("{source}")){continuously}.build();
        DataStream<Order> orders = env.fromSource(files, WatermarkStrategy.noWatermarks(), "files")
            .filter(line -> !line.trim().isEmpty())
            .map(line -> MAPPER.readValue(line, Order.class))
            .assignTimestampsAndWatermarks(WatermarkStrategy
                .<Order>forBoundedOutOfOrderness(Duration.ofSeconds(5)).withTimestampAssigner((o, t) -> o.at));
        Pattern<Order, ?> refunds = Pattern.<Order>begin("placed").where(SimpleCondition.of(o -> o.status.equals("placed")))
            .times(2)
            .followedBy("refund").where(new IterativeCondition<Order>() {{
                public boolean filter(Order o, Context<Order> ctx) throws Exception {{
                    double sum = 0;
                    for (Order p : ctx.getEventsForPattern("placed")) {{ sum += p.total; }}
                    return o.status.equals("refund") && o.total > sum / 2;
                }}
            }})
            .within(Duration.ofMinutes(10));
        SingleOutputStreamOperator<Refund> rows = CEP.pattern(orders.keyBy(o -> o.customer), refunds).select(m -> new Refund(
            m.get("refund").get(0).customer, m.get("placed").size(), m.get("refund").get(0).total));
        rows.map(r -> MAPPER.writeValueAsString(r))
            .sinkTo(FileSink.forRowFormat(new Path("{sink}"), new SimpleStringEncoder<String>("UTF-8")).build());
        env.execute("refunds");
    }}
}}
"""


def events():
    """Return orders of two customers, and a last one by which every other one is in time."""
    rows = []
    for n in range(30):
        status = "refund" if n % 5 == 4 else "placed"
        total = float(n * 7 % 11)
        rows.append(
            {"customer_id": "ab"[n % 2], "status": status, "total": total, "at": n * 20_000}
        )
    return [*rows, {"customer_id": "z", "status": "none", "total": 0.0, "at": 10_000_000}]


@pytest.mark.parametrize("continuously", ["", ".monitorContinuously(Duration.ofSeconds(1))"])
def test_a_generated_job_runs_to_its_end(spark, tmp_path, monkeypatch, continuously):
    """Bounded and as a stream, a job writes the rows of the matches that match() has in memory."""
    from pyspark.sql.streaming import DataStreamWriter

    source, sink = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    lines = "\n\n".join(map(json.dumps, events()))
    (source / "part.jsonl").write_text(lines, encoding="utf-8")
    java = JOB.format(source=source, sink=sink, continuously=continuously)
    (tmp_path / "Orders.java").write_text(java, encoding="utf-8")
    made = migrate([str(tmp_path)]).report
    text = made.files[0].text
    assert re.search("TODO|not_translated", text) is None, made.as_text()
    write(made, tmp_path / "jobs")
    module = runpy.run_path(str(tmp_path / "jobs" / "orders.py"))
    start = DataStreamWriter.start

    def started(writer):
        """Start a query that ends with its input, and keeps what it knows in a folder of its own."""
        kept = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return start(kept.trigger(availableNow=True))

    monkeypatch.setattr(DataStreamWriter, "start", started)

    spark.streams.resetTerminated()  # else the job hears of queries of other tests that failed
    module["main"](spark)
    for query in spark.streams.active:
        query.awaitTermination()

    rows = [{**row, "customer": row["customer_id"]} for row in events()]
    found = match(module["refunds_pattern"](), rows, timestamp="at", key="customer")
    expected = [
        {"customer": m["refund"][0].customer, "orders": 2, "total": m["refund"][0].total}
        for m in found
    ]
    written = [
        json.loads(line)
        for file in sink.glob("part-*")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    assert ("readStream" in text) is bool(continuously)
    assert sorted(map(str, written)) == sorted(map(str, expected))
    assert len(expected) > 3
