package sessions;

import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Views of a shop by session, with a small library of conditions and a builder of patterns. */
public class Sessions {
    public enum Action { VIEW, ADD, REMOVE, PAY, LOGOUT }

    public static class Hit implements Serializable {
        private String session;
        private Action action;
        private String product;
        private Integer quantity;
        private double price;
        private long millis;
        private boolean mobile;

        public String getSession() { return session; }
        public Action getAction() { return action; }
        public String getProduct() { return product; }
        public Integer getQuantity() { return quantity; }
        public double getPrice() { return price; }
        public long getMillis() { return millis; }
        public boolean isMobile() { return mobile; }
        public double total() { return quantity == null ? 0 : quantity * price; }
        @Override public String toString() { return "Hit{" + action + " " + product + '}'; }
    }

    /** Conditions. */
    static final class Conditions {
        private Conditions() {}
        static SimpleCondition<Hit> is(Action action) {
            return new SimpleCondition<Hit>() {
                @Override public boolean filter(Hit hit) { return hit.getAction() == action; }
            };
        }
        static SimpleCondition<Hit> anyOf(Action... actions) {
            return SimpleCondition.of(hit -> {
                for (Action a : actions) {
                    if (hit.getAction() == a) {
                        return true;
                    }
                }
                return false;
            });
        }
        static IterativeCondition<Hit> sameProductAs(String stage) {
            return new IterativeCondition<Hit>() {
                @Override public boolean filter(Hit hit, Context<Hit> ctx) throws Exception {
                    Iterator<Hit> it = ctx.getEventsForPattern(stage).iterator();
                    while (it.hasNext()) {
                        Hit other = it.next();
                        if (other.getProduct() != null && other.getProduct().equals(hit.getProduct())) {
                            return true;
                        }
                    }
                    return false;
                }
            };
        }
        static IterativeCondition<Hit> worth(final double limit) {
            return new IterativeCondition<Hit>() {
                @Override public boolean filter(Hit hit, Context<Hit> ctx) throws Exception {
                    double sum = hit.total();
                    for (Hit added : ctx.getEventsForPattern("added")) {
                        sum += added.total();
                    }
                    return sum >= limit;
                }
            };
        }
    }

    /** Builds patterns. */
    static class PatternBuilder {
        private final String first;
        private Duration window = Duration.ofMinutes(30);
        private AfterMatchSkipStrategy skip = AfterMatchSkipStrategy.noSkip();

        PatternBuilder(String first) { this.first = first; }
        PatternBuilder within(Duration d) { this.window = d; return this; }
        PatternBuilder skipping(AfterMatchSkipStrategy s) { this.skip = s; return this; }
        Pattern<Hit, ?> abandoned() {
            return Pattern.<Hit>begin(first, skip)
                .where(Conditions.is(Action.ADD))
                .oneOrMore()
                .notFollowedBy("paid")
                .where(Conditions.is(Action.PAY))
                .within(window);
        }
    }

    static Pattern<Hit, ?> regret() {
        return Pattern.<Hit>begin("added").where(Conditions.is(Action.ADD)).oneOrMore().greedy()
            .followedBy("removed").where(Conditions.is(Action.REMOVE)).where(Conditions.sameProductAs("added"))
            .where(Conditions.worth(100))
            .within(Duration.ofMinutes(5));
    }

    static Pattern<Hit, ?> browsing() {
        return Pattern.<Hit>begin("views")
            .where(Conditions.anyOf(Action.VIEW, Action.ADD)).where(SimpleCondition.of(Hit::isMobile))
            .times(2, 3)
            .next("end").where(new SimpleCondition<Hit>() {
                @Override public boolean filter(Hit hit) {
                    return hit.getAction().ordinal() >= Action.PAY.ordinal() || hit.getAction().name().startsWith("LOG");
                }
            })
            .within(Duration.ofSeconds(40));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Hit> hits = env.addSource(new HitSource()).assignTimestampsAndWatermarks(
            WatermarkStrategy.<Hit>forBoundedOutOfOrderness(Duration.ofSeconds(3)).withTimestampAssigner((h, t) -> h.getMillis()));
        OutputTag<String> left = new OutputTag<String>("left") {};
        Pattern<Hit, ?> abandoned = new PatternBuilder("added").within(Duration.ofMinutes(2))
            .skipping(AfterMatchSkipStrategy.skipPastLastEvent()).abandoned();
        SingleOutputStreamOperator<String> out = CEP.pattern(hits.keyBy(Hit::getSession), abandoned)
            .flatSelect(left,
                (Map<String, List<Hit>> m, long ts, Collector<String> o) -> o.collect(ts + " " + m.get("added")),
                (Map<String, List<Hit>> m, Collector<String> o) -> {
                    for (Hit h : m.get("added")) {
                        o.collect(h.toString());
                    }
                });
        out.print();
        out.getSideOutput(left).print();
        CEP.pattern(hits.keyBy(Hit::getSession), regret()).select(m -> {
            Hit most = m.get("added").get(0);
            for (Hit one : m.get("added")) { if (one.total() > most.total()) { most = one; } }
            return most.getProduct() + "/" + Optional.ofNullable(m.get("removed").get(0).getQuantity()).map(q -> q * 2).orElse(-1);
        }).print();
        CEP.pattern(hits.keyBy(Hit::getSession), browsing()).select(m -> m.get("views").get(1).getAction().name()).print();
        env.execute("sessions");
    }
}
