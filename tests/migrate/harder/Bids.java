package auction;

import java.time.Duration;
import java.util.*;
import java.util.function.BiPredicate;
import java.util.stream.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.*;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

public class Bids {
    public static class Bid {
        public String auction;
        public String bidder;
        public long cents;
        public long time;
        public Byte channel;
        public short round;
    }

    public static class Result {
        public String auction;
        public List<String> bidders = new ArrayList<>();
        public Map<String, Long> best = new HashMap<>();
        public double average;
        public boolean fast;
    }

    enum Level {
        LOW(100), MID(1_000), HIGH(10_000);
        private final int cents;
        Level(int cents) { this.cents = cents; }
        int cents() { return cents; }
        static Level of(long amount) {
            for (Level l : values()) {
                if (amount <= l.cents) return l;
            }
            return HIGH;
        }
    }

    abstract static class Compare extends IterativeCondition<Bid> {
        abstract String stage();
        abstract boolean compare(Bid before, Bid now);
        @Override
        public boolean filter(Bid bid, Context<Bid> ctx) throws Exception {
            boolean any = false;
            for (Bid before : ctx.getEventsForPattern(stage())) {
                any = true;
                if (!compare(before, bid)) {
                    return false;
                }
            }
            return any;
        }
    }

    static class Higher extends Compare {
        @Override String stage() { return "bids"; }
        @Override boolean compare(Bid before, Bid now) { return now.cents > before.cents; }
    }

    static class SameBidder extends Compare {
        @Override String stage() { return "bids"; }
        @Override boolean compare(Bid before, Bid now) { return now.bidder.equals(before.bidder); }
    }

    static Pattern<Bid, ?> war() {
        return Pattern.<Bid>begin("bids")
            .where(SimpleCondition.of(b -> b.cents > Level.LOW.cents() && b.round <= 3))
            .where(new IterativeCondition<Bid>() {
                @Override
                public boolean filter(Bid bid, Context<Bid> ctx) throws Exception {
                    long highest = 0;
                    for (Bid b : ctx.getEventsForPattern("bids")) {
                        highest = Math.max(highest, b.cents);
                    }
                    return bid.cents > highest;
                }
            })
            .timesOrMore(2).greedy().until(SimpleCondition.of(b -> b.channel != null && b.channel == 9))
            .next("last")
            .where(new Higher()).where(new SameBidder())
            .within(Duration.ofSeconds(40));
    }

    static Pattern<Bid, ?> slow() {
        return Pattern.<Bid>begin("a").where(SimpleCondition.of(b -> (b.cents & 1) == 0 && b.cents >> 2 > 5))
            .followedBy("b").where(new IterativeCondition<Bid>() {
                @Override
                public boolean filter(Bid bid, Context<Bid> ctx) throws Exception {
                    List<Bid> all = new ArrayList<>();
                    ctx.getEventsForPattern("a").forEach(all::add);
                    if (all.isEmpty()) {
                        return false;
                    }
                    Bid first = all.get(0);
                    long distinct = all.stream().map(x -> x.bidder).distinct().count();
                    OptionalDouble mean = all.stream().mapToLong(x -> x.cents).average();
                    return bid.time - first.time > 2_000 && distinct == 1 && mean.isPresent() && bid.cents < mean.getAsDouble();
                }
            }).within(Duration.ofSeconds(40));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Bid> bids = env.addSource(new BidSource("bids", 17)).uid("bids").name("Bids")
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Bid>forBoundedOutOfOrderness(Duration.ofSeconds(1))
                .withTimestampAssigner((b, t) -> b.time));
        CEP.pattern(bids.keyBy(b -> b.auction), war()).process(new PatternProcessFunction<Bid, Result>() {
            @Override
            public void processMatch(Map<String, List<Bid>> match, Context ctx, Collector<Result> out) {
                Result r = new Result();
                List<Bid> all = match.get("bids");
                r.auction = all.get(0).auction;
                r.bidders = all.stream().map(b -> b.bidder).collect(Collectors.toList());
                for (Bid b : all) {
                    r.best.merge(b.bidder, b.cents, Math::max);
                }
                r.average = all.stream().mapToLong(b -> b.cents).average().orElse(0);
                r.fast = match.get("last").get(0).time - all.get(all.size() - 1).time < 1000;
                out.collect(r);
            }
        }).print();
        CEP.pattern(bids.keyBy(b -> b.auction), slow()).select(m -> {
            Map<String, Long> counts = new HashMap<>();
            for (Bid b : m.get("a")) { counts.merge(b.bidder, 1L, Long::sum); }
            return counts.entrySet().stream().map(e -> e.getKey() + "x" + e.getValue()).sorted().collect(Collectors.joining(","));
        }).print();
        env.execute("bids");
    }
}
