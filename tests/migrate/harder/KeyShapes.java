package keys;

import java.time.Duration;
import java.util.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.EventComparator;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Keys of several fields, and times in other units. */
public class KeyShapes {
    public static class Trade {
        public String symbol;
        public String venue;
        public int desk;
        public long seconds;
        public double price;
        public int size;
        public Trade() {}
        public String getSymbol() { return symbol; }
        public String getVenue() { return venue; }
        public int getDesk() { return desk; }
        public double getPrice() { return price; }
        public int getSize() { return size; }
        public double value() { return price * size; }
    }

    private static final long DAY = 1000 * 60 * 60 * 24;
    private static final int OVERFLOW = Integer.MAX_VALUE + 1;
    private static final long MONTH = 1000 * 60 * 60 * 24 * 30;
    private static final long MONTH_L = 1000L * 60 * 60 * 24 * 30;

    static Pattern<Trade, ?> rise() {
        return Pattern.<Trade>begin("low")
            .where(SimpleCondition.of(t -> t.getPrice() > 0 && t.getSize() > OVERFLOW && t.getSize() * 100L < MONTH_L))
            .next("high")
            .where(new IterativeCondition<Trade>() {
                @Override
                public boolean filter(Trade t, Context<Trade> ctx) throws Exception {
                    for (Trade low : ctx.getEventsForPattern("low")) {
                        if (low.getVenue().equals(t.getVenue()) && low.getDesk() == t.getDesk()) {
                            return t.value() > low.value() * 1.05;
                        }
                    }
                    return false;
                }
            })
            .within(Duration.ofMillis(DAY));
    }

    static Pattern<Trade, ?> never() {
        return Pattern.<Trade>begin("x")
            .where(SimpleCondition.of(t -> t.seconds * 1000 > MONTH))
            .times(3).allowCombinations()
            .within(Duration.ofSeconds(20));
    }

    static Pattern<Trade, ?> repeated() {
        return Pattern.<Trade>begin("a").where(SimpleCondition.of(t -> t.size > 1)).oneOrMore()
            .followedBy("b").where(new IterativeCondition<Trade>() {
                @Override
                public boolean filter(Trade t, Context<Trade> ctx) throws Exception {
                    int count = 0;
                    for (Trade a : ctx.getEventsForPattern("a")) {
                        if (a.venue.equals(t.venue)) {
                            count++;
                        }
                    }
                    return count >= 2 || t.size == 0;
                }
            }).within(Duration.ofSeconds(20));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Trade> trades = env.fromSource(Sources.trades(), WatermarkStrategy
            .<Trade>forBoundedOutOfOrderness(Duration.ofSeconds(2))
            .withTimestampAssigner((t, ts) -> t.seconds * 1000), "trades");
        CEP.pattern(trades.keyBy(t -> t.getSymbol() + "-" + t.getVenue()), rise())
            .select(m -> m.get("high").get(0).getSymbol()).print();
        CEP.pattern(trades.keyBy(new KeySelector<Trade, Tuple2<String, Integer>>() {
            @Override
            public Tuple2<String, Integer> getKey(Trade t) {
                return Tuple2.of(t.symbol, t.desk);
            }
        }), never(), new EventComparator<Trade>() {
            @Override
            public int compare(Trade a, Trade b) {
                return Double.compare(b.price, a.price);
            }
        }).select(m -> m.get("x").size()).print();
        CEP.pattern(trades.keyBy("symbol", "desk"), repeated()).select(m -> m.get("b").get(0)).print();
        env.execute();
    }
}
