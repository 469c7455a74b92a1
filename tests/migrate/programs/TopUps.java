package org.example.topup;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.flink.api.common.eventtime.SerializableTimestampAssigner;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Prepaid balances that fall low and are not topped up. */
public class TopUps {

    private static final double LOW = 10;

    public static class Balance {
        private String id;
        private Double before;
        private Double after;
        private Long time;

        public String getId() { return id; }
        public Double getBefore() { return before; }
        public Double getAfter() { return after; }
        public Long getTime() { return time; }
    }

    public static Pattern<Balance, ?> topUp() {
        Pattern<Balance, Balance> low = Pattern.<Balance>begin("low", AfterMatchSkipStrategy.skipPastLastEvent())
            .where(new IterativeCondition<Balance>() {
                @Override
                public boolean filter(Balance balance, Context<Balance> ctx) {
                    return balance.getBefore() >= LOW && balance.getAfter() < LOW;
                }
            });
        Pattern<Balance, Balance> falls = low
            .next("falls")
            .where(new IterativeCondition<Balance>() {
                @Override
                public boolean filter(Balance balance, Context<Balance> ctx) {
                    return balance.getAfter().compareTo(balance.getBefore()) < 0;
                }
            })
            .oneOrMore()
            .optional();
        return falls
            .next("rise")
            .where(new IterativeCondition<Balance>() {
                @Override
                public boolean filter(Balance balance, Context<Balance> ctx) {
                    double gain = balance.getAfter() - balance.getBefore();
                    return gain > 0 && !Objects.equals(balance.getId(), "test");
                }
            })
            .within(Duration.ofHours(1));
    }

    public static void main(String[] args) throws Exception {
        final OutputTag<String> none = new OutputTag<String>("no top-up") {};
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Balance> balances = env
            .addSource(new BalanceSource("balances"))
            .assignTimestampsAndWatermarks(WatermarkStrategy
                .<Balance>forBoundedOutOfOrderness(Duration.ofMinutes(1))
                .withTimestampAssigner(new SerializableTimestampAssigner<Balance>() {
                    @Override
                    public long extractTimestamp(Balance balance, long recordTime) {
                        return balance.getTime();
                    }
                }));
        PatternStream<Balance> matches = CEP.pattern(
            balances.keyBy(new KeySelector<Balance, String>() {
                @Override
                public String getKey(Balance balance) throws Exception {
                    return balance.getId();
                }
            }),
            topUp());
        SingleOutputStreamOperator<String> topped = matches.process(new TopUpFunction(none));
        topped.print("topped up");
        topped.getSideOutput(none).print("none");
        env.execute("top-ups");
    }

    static class TopUpFunction extends PatternProcessFunction<Balance, String>
            implements TimedOutPartialMatchHandler<Balance> {
        private final OutputTag<String> tag;

        TopUpFunction(OutputTag<String> tag) {
            this.tag = tag;
        }

        @Override
        public void processMatch(Map<String, List<Balance>> match, Context ctx, Collector<String> out) {
            out.collect(match.get("rise").get(0).getId());
        }

        @Override
        public void processTimedOutMatch(Map<String, List<Balance>> match, Context ctx) {
            ctx.output(tag, match.get("low").get(0).getId());
        }
    }
}
