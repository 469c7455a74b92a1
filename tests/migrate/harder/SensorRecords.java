package iot;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public class SensorRecords {

    public enum Status { OK, WARN, FAIL }

    public record Reading(String sensor, Status status, double value, long ts, int retries) {
        public boolean bad() {
            return status != Status.OK;
        }
        public int severity() {
            return switch (status) {
                case OK -> 0;
                case WARN -> 1;
                case FAIL -> 2 + retries;
            };
        }
    }

    public record Alarm(String sensor, int count, double worst, String text) {}

    private static SimpleCondition<Reading> atLeast(int severity) {
        return SimpleCondition.of(r -> r.severity() >= severity);
    }

    private static IterativeCondition<Reading> rising(String stage) {
        return new IterativeCondition<>() {
            @Override
            public boolean filter(Reading r, Context<Reading> ctx) throws Exception {
                double last = Double.NEGATIVE_INFINITY;
                for (var before : ctx.getEventsForPattern(stage)) {
                    last = before.value();
                }
                return r.value() > last;
            }
        };
    }

    static Pattern<Reading, ?> build(boolean strict) {
        var start = Pattern.<Reading>begin("first", strict
                ? AfterMatchSkipStrategy.skipToNext()
                : AfterMatchSkipStrategy.noSkip())
            .where(SimpleCondition.of(Reading::bad));
        Pattern<Reading, Reading> p = start;
        String[] names = {"second", "third"};
        String before = "first";
        for (String name : names) {
            p = strict ? p.next(name) : p.followedBy(name);
            p = p.where(atLeast(1)).where(rising(before));
            before = name;
        }
        return p.within(Duration.ofSeconds(90));
    }

    static Pattern<Reading, ?> spike() {
        return Pattern.<Reading>begin("base")
            .where(SimpleCondition.of(r -> r.status() == Status.OK))
            .oneOrMore().greedy()
            .next("spike")
            .where(new IterativeCondition<Reading>() {
                @Override
                public boolean filter(Reading r, Context<Reading> ctx) throws Exception {
                    int n = 0;
                    double mean = 0;
                    double m2 = 0;
                    for (Reading b : ctx.getEventsForPattern("base")) {
                        n++;
                        double delta = b.value() - mean;
                        mean += delta / n;
                        m2 += delta * (b.value() - mean);
                    }
                    if (n < 2) {
                        return false;
                    }
                    double sd = Math.sqrt(m2 / (n - 1));
                    return Math.abs(r.value() - mean) > 3 * sd;
                }
            });
    }

    public static void main(String[] args) throws Exception {
        var env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Reading> readings = env.addSource(new ReadingSource())
            .assignTimestampsAndWatermarks(WatermarkStrategy
                .<Reading>forBoundedOutOfOrderness(Duration.ofMillis(500))
                .withTimestampAssigner((r, previous) -> r.ts()));
        var keyed = readings.keyBy(Reading::sensor);
        CEP.pattern(keyed, build(true)).select(SensorRecords::alarm).print();
        CEP.pattern(keyed, spike()).select(match -> {
            Reading spike = match.get("spike").get(0);
            var text = """
                Sensor %s jumped to %.2f
                after %d readings""".formatted(spike.sensor(), spike.value(), match.get("base").size());
            return new Alarm(spike.sensor(), match.get("base").size(), spike.value(), text);
        }).print();
        env.execute("sensors");
    }

    private static Alarm alarm(Map<String, List<Reading>> match) {
        double worst = match.values().stream().flatMap(List::stream).mapToDouble(Reading::value).max().orElse(0);
        String level = switch (match.get("third").get(0).status()) {
            case FAIL -> "failed";
            case WARN -> "warned";
            default -> "fine";
        };
        return new Alarm(match.get("first").get(0).sensor(), match.size(), worst, level);
    }
}
