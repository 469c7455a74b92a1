package org.example.service;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.RichIterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.util.Collector;

/** Calls between services: slow ones after errors, and circles. */
public class Service {

    public static class Call {
        public String from;
        public String to;
        public long micros;
        public boolean ok;
        public long time;
    }

    interface Rule {
        Pattern<Call, ?> pattern();
    }

    static class SlowAfterError implements Rule {
        private static final long SLOW = 1_500_000L;

        @Override
        public Pattern<Call, ?> pattern() {
            return Pattern.<Call>begin("error")
                .where(SimpleCondition.of(c -> !c.ok))
                .followedBy("slow")
                .where(SimpleCondition.of(c -> c.ok))
                .where(SimpleCondition.of(c -> c.micros >= SLOW || c.micros / 1000L > 900L && c.from.isEmpty()))
                .oneOrMore()
                .optional()
                .next("fine")
                .where(SimpleCondition.of(c -> c.ok && c.micros < SLOW))
                .within(Duration.ofSeconds(45));
        }
    }

    static class Circle implements Rule {
        @Override
        public Pattern<Call, ?> pattern() {
            return Pattern.<Call>begin("first")
                .next("second")
                .where(new RichIterativeCondition<Call>() {
                    @Override
                    public boolean filter(Call call, Context<Call> ctx) throws Exception {
                        for (Call first : ctx.getEventsForPattern("first")) {
                            if (!call.from.equals(first.to)) {
                                return false;
                            }
                        }
                        return true;
                    }
                })
                .next("third")
                .where(new IterativeCondition<Call>() {
                    @Override
                    public boolean filter(Call call, Context<Call> ctx) throws Exception {
                        Call first = ctx.getEventsForPattern("first").iterator().next();
                        Call second = ctx.getEventsForPattern("second").iterator().next();
                        boolean closed = call.to.equals(first.from);
                        return closed && call.from.equals(second.to) && call.time - first.time < 20_000;
                    }
                });
        }
    }

    DataStream<String> apply(DataStream<Call> calls) {
        Rule rule = new Circle();
        return CEP.pattern(calls, rule.pattern()).process(new PatternProcessFunction<Call, String>() {
            @Override
            public void processMatch(Map<String, List<Call>> match, Context ctx, Collector<String> out) {
                StringBuilder path = new StringBuilder();
                for (List<Call> stage : match.values()) {
                    path.append(stage.get(0).from).append(" > ");
                }
                out.collect(path.toString());
            }
        });
    }
}
