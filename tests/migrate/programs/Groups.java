package org.example.numbers;

import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.GroupPattern;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Groups of stages, on numbers without a key. */
public class Groups {

    public static class Number {
        public int value;
        public long ts;

        public Number() {}

        public Number(int value, long ts) {
            this.value = value;
            this.ts = ts;
        }
    }

    static SimpleCondition<Number> is(final int wanted) {
        return new SimpleCondition<Number>() {
            @Override
            public boolean filter(Number number) {
                return number.value == wanted;
            }
        };
    }

    static SimpleCondition<Number> between(int least, int most) {
        return SimpleCondition.of(number -> number.value >= least && number.value <= most);
    }

    static Pattern<Number, ?> twice() {
        Pattern<Number, Number> inner = Pattern.<Number>begin("one", AfterMatchSkipStrategy.skipToNext())
            .where(is(1))
            .followedBy("two")
            .where(is(2))
            .next("three")
            .where(is(3));
        return Pattern.<Number>begin("start")
            .where(is(0))
            .next(inner)
            .times(2)
            .consecutive()
            .followedBy("end")
            .where(is(9));
    }

    static Pattern<Number, ?> first() {
        GroupPattern<Number, Number> group = Pattern.begin(
            Pattern.<Number>begin("small").where(between(0, 4)).followedBy("big").where(between(5, 9)),
            AfterMatchSkipStrategy.skipToFirst("last"));
        return group.oneOrMore().optional().followedByAny("last").where(between(7, 7));
    }

    static Pattern<Number, ?> steps() {
        Pattern<Number, ?> pattern = Pattern.<Number>begin("step 1").where(is(1));
        for (int i = 2; i <= 4; i++) {
            pattern = pattern.followedBy("step " + i).where(is(i));
        }
        return pattern;
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Number> numbers = env.fromElements(
            new Number(0, 1), new Number(1, 2), new Number(2, 3), new Number(3, 4));
        CEP.pattern(numbers, steps()).inProcessingTime()
            .select((Map<String, List<Number>> match) -> match.size())
            .print();
        env.execute();
    }
}
