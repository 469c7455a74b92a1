package org.example.machines;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.java.utils.ParameterTool;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Two kinds of machines in one stream; two patterns over it. */
public abstract class Machines {

    enum State { RUNNING, IDLE, BROKEN }

    public static class Report {
        long id;
        State state;
        State before;
        int load;
        Integer errors;
        long when;

        public long getId() { return id; }
        public State getState() { return state; }
        public int getLoad() { return load; }
        public long getWhen() { return when; }
    }

    static final class Breaks extends SimpleCondition<Report> {
        private final int most;

        Breaks(int most) {
            this.most = most;
        }

        @Override
        public boolean filter(Report report) {
            if (report.state == State.BROKEN && report.before != State.BROKEN) {
                return true;
            }
            return report.errors != null && report.errors > most;
        }
    }

    private static Pattern<Report, ?> start(String name) {
        return Pattern.<Report>begin(name).where(SimpleCondition.of(r -> r.getState() == State.RUNNING));
    }

    static Pattern<Report, ?> breakdown() {
        return start("fine").oneOrMore().greedy().consecutive()
            .next("broken").where(new Breaks(12))
            .within(Duration.ofMinutes(30));
    }

    static Pattern<Report, ?> overload() {
        return start("run")
            .followedBy("full")
            .where(SimpleCondition.of(r -> r.getLoad() > 90 && r.getLoad() % 10 != 0))
            .times(1, 3)
            .followedBy("less")
            .where(new IterativeCondition<Report>() {
                @Override
                public boolean filter(Report report, Context<Report> ctx) throws Exception {
                    int highest = Integer.MIN_VALUE;
                    for (Report full : ctx.getEventsForPattern("full")) {
                        highest = Math.max(highest, full.getLoad());
                    }
                    return report.getLoad() < highest / 2;
                }
            })
            .within(Duration.ofMinutes(15));
    }

    static Pattern<Report, ?> idle() {
        Pattern<Report, Report> idle = Pattern.begin("idle");
        idle = idle.where(SimpleCondition.of((Report r) -> State.IDLE.equals(r.state)));
        idle = idle.timesOrMore(2).allowCombinations();
        return idle.notFollowedBy("busy").where(SimpleCondition.of(r -> r.load >= 50)).within(Duration.ofMinutes(3));
    }

    public static void main(String[] args) throws Exception {
        ParameterTool parameters = ParameterTool.fromArgs(args);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Report> north = env.addSource(new MachineSource("north"));
        DataStream<Report> south = env.addSource(new MachineSource("south"));
        DataStream<Report> reports = north.union(south)
            .filter(report -> report.id >= 0)
            .assignTimestampsAndWatermarks(WatermarkStrategy
                .<Report>forBoundedOutOfOrderness(Duration.ofSeconds(90))
                .withTimestampAssigner((report, time) -> report.getWhen()));
        PatternStream<Report> broken = CEP.pattern(reports.keyBy(Report::getId), breakdown());
        broken.select((Map<String, List<Report>> match) -> "machine " + match.get("broken").get(0).getId())
            .print();
        CEP.pattern(reports.keyBy(Report::getId), overload())
            .select((Map<String, List<Report>> match) -> match.get("less").get(0).getId())
            .writeAsText("/data/overloads");
        env.execute("machines");
    }
}
