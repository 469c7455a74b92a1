package org.example.batches;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** Patterns that are put together from lists and by helpers. */
public class Batches {

    public static class Step {
        public String name;
        public int batch;
        public double yield;
        public long time;
    }

    private static final String[] ORDER = {"mix", "heat", "press", "cool"};

    private static SimpleCondition<Step> named(String name) {
        return SimpleCondition.of(step -> step.name.equals(name));
    }

    static Pattern<Step, ?> inOrder() {
        Pattern<Step, Step> pattern = Pattern.<Step>begin(ORDER[0]).where(named(ORDER[0]));
        for (int i = 1; i < ORDER.length; i++) {
            pattern = pattern.followedBy(ORDER[i]).where(named(ORDER[i]));
        }
        return pattern.within(Duration.ofMinutes(40));
    }

    static Pattern<Step, ?> bad(List<String> names) {
        List<String> all = new ArrayList<>();
        all.add("press");
        all.add("cool");
        Pattern<Step, ?> result = null;
        for (String name : all) {
            double least = name.equals("press") ? 0.5 : 0.25;
            SimpleCondition<Step> low = SimpleCondition.of(step -> step.name.equals(name) && step.yield < least);
            result = result == null ? Pattern.<Step>begin(name).where(low) : result.next(name).where(low);
        }
        return result;
    }

    static Pattern<Step, ?> repeated() {
        return withEnd(Pattern.<Step>begin("heat").where(named("heat")).times(2, 3), "cool");
    }

    private static Pattern<Step, ?> withEnd(Pattern<Step, ?> pattern, String end) {
        return pattern.followedBy(end).where(named(end)).where(SimpleCondition.of(step -> step.yield >= 0.75));
    }
}
