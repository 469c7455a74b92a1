package org.example.parking;

import java.time.Duration;
import java.time.Instant;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** Cars that enter, stay and leave. */
public class Parking {

    public static class Passage {
        public String plate;
        public boolean inwards;
        public int gate;
        public double weight;
        public long time;
    }

    private static final String IN = "in";
    private static final String OUT = "out";

    public static Pattern<Passage, Passage> visit() {
        Pattern<Passage, Passage> in = Pattern.<Passage>begin(IN, AfterMatchSkipStrategy.skipToNext());
        in.where(SimpleCondition.of(p -> p.inwards));
        Pattern<Passage, Passage> out = in.followedBy(OUT);
        out.where(SimpleCondition.of(p -> !p.inwards));
        out.within(Duration.ofHours(2));
        return out;
    }

    public static Pattern<Passage, ?> swapped() {
        return Pattern.<Passage>begin(IN)
            .where(SimpleCondition.of(p -> p.inwards && p.gate <= 3))
            .followedByAny(OUT)
            .where(SimpleCondition.of(p -> !p.inwards))
            .where(new IterativeCondition<Passage>() {
                @Override
                public boolean filter(Passage p, Context<Passage> ctx) throws Exception {
                    int passages = 0;
                    double heaviest = 0;
                    for (Passage in : ctx.getEventsForPattern(IN)) {
                        passages++;
                        if (in.weight > heaviest) {
                            heaviest = in.weight;
                        }
                    }
                    return passages == 1 && Math.abs(p.weight - heaviest) > 1.0;
                }
            })
            .within(Duration.ofMinutes(90));
    }

    public static Pattern<Passage, ?> queue() {
        return Pattern.<Passage>begin("queue", AfterMatchSkipStrategy.skipToFirst("queue").throwExceptionOnMiss())
            .where(SimpleCondition.of(p -> p.gate == 2 || p.gate == 4))
            .times(3)
            .followedBy("free")
            .where(SimpleCondition.of(p -> (p.gate & 1) == 1))
            .within(Duration.ofMinutes(10));
    }
}
