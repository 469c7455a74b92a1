package captured;

import java.time.Duration;
import java.util.*;
import java.util.regex.Pattern;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.java.utils.ParameterTool;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Conditions that capture values which are known at run time alone. */
public class Captured {
    public static class Visit {
        public String user;
        public String url;
        public int status;
        public long time;
        public double cost;
        public String getUrl() { return url; }
        public int getStatus() { return status; }
    }

    static final List<String> BOTS = Arrays.asList("crawler", "spider");
    static final Map<String, Integer> LIMITS = Map.of("/a", 3, "/b", 5);

    static org.apache.flink.cep.pattern.Pattern<Visit, ?> pattern(String prefix, int limit, double share, boolean strict, long gap) {
        int twice = limit * 2;
        String wanted = prefix + "/login";
        return org.apache.flink.cep.pattern.Pattern.<Visit>begin("first")
            .where(SimpleCondition.of(v -> v.url.startsWith(prefix) && v.status >= limit + 1))
            .next("second")
            .where(SimpleCondition.of(v -> v.getUrl().equals(wanted) || v.getStatus() == twice))
            .followedBy("third")
            .where(new IterativeCondition<Visit>() {
                @Override
                public boolean filter(Visit v, Context<Visit> ctx) throws Exception {
                    double sum = 0;
                    for (Visit f : ctx.getEventsForPattern("first")) {
                        sum += f.cost;
                    }
                    if (strict) {
                        return v.cost > sum * share;
                    }
                    return v.cost >= sum && v.time - ctx.timestamp() < gap;
                }
            })
            .followedBy("fourth")
            .where(SimpleCondition.of(v -> v.url.matches("^/shop/\\d+$") && !BOTS.contains(v.user)))
            .where(SimpleCondition.of(v -> LIMITS.getOrDefault(v.url, 1) <= v.status))
            .within(Duration.ofSeconds(60));
    }

    public static void main(String[] args) throws Exception {
        ParameterTool p = ParameterTool.fromArgs(args);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Visit> visits = env.addSource(new VisitSource());
        CEP.pattern(visits.keyBy(v -> v.user),
                pattern(p.get("prefix"), p.getInt("limit", 4), p.getDouble("share"), p.getBoolean("strict", true), 60 * 1000))
            .select(m -> m.get("first").get(0).user + " " + m.get("fourth").size())
            .print();
        env.execute("visits");
    }
}
