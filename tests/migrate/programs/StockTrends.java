package org.example.stocks;

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

public class StockTrends {

    public record Tick(String symbol, double price, int volume, long ts) {}

    /** Prices that rise above their average, and then fall below where they began. */
    public static Pattern<Tick, ?> swing() {
        return Pattern.<Tick>begin("start", AfterMatchSkipStrategy.skipPastLastEvent())
            .where(SimpleCondition.of(tick -> tick.volume() > 10))
            .next("rise")
            .where(new IterativeCondition<Tick>() {
                @Override
                public boolean filter(Tick tick, Context<Tick> ctx) throws Exception {
                    double sum = 0;
                    int count = 0;
                    for (Tick earlier : ctx.getEventsForPattern("start")) {
                        sum += earlier.price();
                        count++;
                    }
                    for (Tick earlier : ctx.getEventsForPattern("rise")) {
                        sum += earlier.price();
                        count++;
                    }
                    return tick.price() > sum / count;
                }
            })
            .oneOrMore()
            .greedy()
            .next("fall")
            .where(new IterativeCondition<Tick>() {
                @Override
                public boolean filter(Tick tick, Context<Tick> ctx) throws Exception {
                    for (Tick first : ctx.getEventsForPattern("start")) {
                        return tick.price() < first.price();
                    }
                    return false;
                }
            })
            .within(Duration.ofMinutes(10));
    }

    /** Much is sold at falling prices. */
    public static Pattern<Tick, ?> sellOff() {
        return Pattern.<Tick>begin("falling")
            .where(new IterativeCondition<Tick>() {
                @Override
                public boolean filter(Tick value, Context<Tick> ctx) throws Exception {
                    Tick last = null;
                    for (Tick t : ctx.getEventsForPattern("falling")) {
                        last = t;
                    }
                    return last == null || value.price() < last.price();
                }
            })
            .times(3)
            .allowCombinations()
            .followedBy("much")
            .where(new IterativeCondition<Tick>() {
                @Override
                public boolean filter(Tick value, Context<Tick> ctx) throws Exception {
                    long total = value.volume();
                    for (Tick t : ctx.getEventsForPattern("falling")) {
                        total = total + t.volume();
                    }
                    return total > 60;
                }
            })
            .within(Duration.ofSeconds(30));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Tick> ticks = env
            .fromElements(
                new Tick("HILL", 10.0, 20, 1000L),
                new Tick("HILL", 11.5, 5, 2000L),
                new Tick("HILL", 12.0, 7, 3000L),
                new Tick("HILL", 9.0, 30, 4000L),
                new Tick("DALE", 3.25, 12, 4500L))
            .assignTimestampsAndWatermarks(WatermarkStrategy
                .<Tick>forBoundedOutOfOrderness(Duration.ofSeconds(1))
                .withTimestampAssigner((tick, time) -> tick.ts()));
        DataStream<String> found = CEP.pattern(ticks.keyBy(Tick::symbol), swing())
            .select((Map<String, List<Tick>> match) -> {
                Tick start = match.get("start").get(0);
                Tick fall = match.get("fall").get(0);
                return start.symbol() + ": " + start.price() + " to " + fall.price();
            });
        found.print();
        env.execute();
    }
}
