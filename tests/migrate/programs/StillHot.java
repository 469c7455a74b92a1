package org.example.hot;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/** Devices that were cool, got hot, and are hot for at least a while. */
public class StillHot {

    static final int LIMIT = 50;

    public static class Measured {
        public int device;
        public int temperature;
        public long at;

        boolean hot() {
            return temperature >= LIMIT;
        }

        boolean cool() {
            return !hot();
        }
    }

    /** Enough time has passed since the first hot measurement. */
    static class HotForAWhile extends IterativeCondition<Measured> {
        private final long millis;

        HotForAWhile(Duration duration) {
            this.millis = duration.toMillis();
        }

        @Override
        public boolean filter(Measured value, Context<Measured> ctx) throws Exception {
            if (!value.hot()) {
                return false;
            }
            Measured first = ctx.getEventsForPattern("hot").iterator().next();
            return value.at - first.at >= millis;
        }
    }

    static Pattern<Measured, ?> stillHot() {
        return Pattern.<Measured>begin("cool", AfterMatchSkipStrategy.skipPastLastEvent())
            .where(SimpleCondition.of(m -> m.cool()))
            .next("hot")
            .where(SimpleCondition.of(Measured::hot))
            .oneOrMore()
            .consecutive()
            .next("still-hot-later")
            .where(new HotForAWhile(Duration.ofSeconds(4)));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Measured> measured = env.addSource(new Devices())
            .assignTimestampsAndWatermarks(WatermarkStrategy
                .<Measured>forBoundedOutOfOrderness(Duration.ofMillis(500))
                .withTimestampAssigner((m, t) -> m.at));
        CEP.pattern(measured.keyBy(m -> m.device), stillHot())
            .process(new PatternProcessFunction<Measured, Integer>() {
                @Override
                public void processMatch(Map<String, List<Measured>> match, Context ctx, Collector<Integer> out) {
                    out.collect(match.get("still-hot-later").get(0).temperature);
                }
            })
            .print();
        env.execute("still hot");
    }
}
