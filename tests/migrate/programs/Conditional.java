package org.example.conditional;

import java.time.Duration;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** Patterns that depend on what is known when the program runs. */
public class Conditional {

    public static class Reading {
        public double value;
        public String unit;
    }

    private final boolean strict;
    private final Duration window;

    public Conditional(boolean strict, Duration window) {
        this.strict = strict;
        this.window = window;
    }

    public Pattern<Reading, ?> rise() {
        Pattern<Reading, ?> pattern = Pattern.<Reading>begin("low").where(SimpleCondition.of(r -> r.value < 3.0));
        if (strict) {
            pattern = pattern.next("high");
        } else {
            pattern = pattern.followedBy("high");
        }
        pattern = pattern.where(SimpleCondition.of(r -> r.value > 7.0));
        return pattern.within(window);
    }

    public static Pattern<Reading, ?> repeated(int times, boolean withEnd) {
        Pattern<Reading, ?> pattern = Pattern.<Reading>begin("first").where(SimpleCondition.of(r -> r.unit.equals("K")));
        for (int i = 0; i < times; i++) {
            pattern = pattern.next("again" + i).where(SimpleCondition.of(r -> r.value >= 1));
        }
        if (withEnd) {
            pattern = pattern.notNext("end").where(SimpleCondition.of(r -> r.value < 0));
        }
        return pattern;
    }

    /** One of two patterns, by a flag of the program. */
    public static Pattern<Reading, ?> chosen(String mode) {
        if ("loose".equals(mode)) {
            return Pattern.<Reading>begin("a").where(SimpleCondition.of(r -> r.value == 1.0)).followedByAny("b");
        }
        return Pattern.<Reading>begin("a").where(SimpleCondition.of(r -> r.value == 2.0)).next("b");
    }

    public static Pattern<Reading, ?> known() {
        final boolean debug = false;
        String[] units = {"C", "F", "K"};
        Pattern<Reading, ?> pattern = null;
        for (String unit : units) {
            SimpleCondition<Reading> same = SimpleCondition.of(r -> unit.equals(r.unit));
            if (pattern == null) {
                pattern = Pattern.<Reading>begin(unit).where(same);
            } else {
                pattern = pattern.followedBy(unit).where(same);
            }
        }
        return debug ? pattern.optional() : pattern.within(Duration.ofMillis(30));
    }
}
