package org.example.payments;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.EventComparator;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;

/** Card payments that look like fraud. */
public class Payments {

    public enum Kind { ONLINE, SHOP, CASH, REFUND }

    public static class Payment {
        public String card;
        public Kind kind;
        public double amount;
        public String country;
        public boolean chip;
        public int retries;
        public long time;

        public boolean isAbroad() {
            return !"DE".equals(country);
        }
    }

    private static final double SMALL = 2.5;
    private static final List<String> RISKY = Arrays.asList("XX", "YY");

    /** A small payment tests the card; then comes a large one. */
    static Pattern<Payment, ?> cardTest(double factor) {
        return Pattern.<Payment>begin("test")
            .where(SimpleCondition.of(p -> p.amount > 0 && p.amount <= SMALL))
            .followedBy("large")
            .where(new IterativeCondition<Payment>() {
                @Override
                public boolean filter(Payment payment, Context<Payment> ctx) throws Exception {
                    double small = ctx.getEventsForPattern("test").iterator().next().amount;
                    return payment.amount > small * factor;
                }
            })
            .within(Duration.ofMinutes(15));
    }

    static Pattern<Payment, ?> travels() {
        Pattern<Payment, ?> home = Pattern.<Payment>begin("home").where(new AtHome());
        return home
            .next("abroad")
            .where(SimpleCondition.of(p -> p.isAbroad() && p.kind != Kind.ONLINE))
            .next("cash")
            .where(new SimpleCondition<Payment>() {
                @Override
                public boolean filter(Payment p) throws Exception {
                    boolean cash = p.kind == Kind.CASH;
                    boolean much = p.amount * 1.05 > 40.0;
                    if (!cash) {
                        return false;
                    } else if (RISKY.contains(p.country)) {
                        return true;
                    }
                    return much && !p.chip;
                }
            });
    }

    static Pattern<Payment, ?> average() {
        return Pattern.<Payment>begin("usual")
            .where(SimpleCondition.of(p -> p.kind.equals(Kind.SHOP) || p.kind == Kind.CASH))
            .times(3)
            .followedBy("unusual")
            .where(new IterativeCondition<Payment>() {
                @Override
                public boolean filter(Payment payment, Context<Payment> ctx) throws Exception {
                    double total = 0.0;
                    int number = 0;
                    for (Payment usual : ctx.getEventsForPattern("usual")) {
                        total += usual.amount;
                        number += 1;
                    }
                    return number > 0 && payment.amount > 2 * (total / number);
                }
            })
            .within(Duration.ofDays(1));
    }

    static Pattern<Payment, ?> refunds() {
        return Pattern.<Payment>begin("paid")
            .where(SimpleCondition.of(p -> p.kind != Kind.REFUND))
            .followedBy("back")
            .where(SimpleCondition.of(p -> p.kind == Kind.REFUND))
            .where(new IterativeCondition<Payment>() {
                @Override
                public boolean filter(Payment refund, Context<Payment> ctx) throws Exception {
                    for (Payment paid : ctx.getEventsForPattern("paid")) {
                        if (Math.abs(paid.amount - refund.amount) < 0.01) {
                            return true;
                        }
                    }
                    return false;
                }
            })
            .notFollowedBy("again")
            .where(SimpleCondition.of(p -> p.retries > 0 && p.retries / 2 == 1))
            .within(Duration.ofMinutes(30));
    }

    static class AtHome extends SimpleCondition<Payment> {
        private static final long serialVersionUID = 1L;

        @Override
        public boolean filter(Payment p) {
            return p.country != null && p.country.equals("DE");
        }
    }

    DataStream<String> large(DataStream<Payment> payments) {
        EventComparator<Payment> byAmount = (first, second) -> Double.compare(first.amount, second.amount);
        return CEP.pattern(payments.keyBy(p -> p.card), cardTest(10), byAmount)
            .select(new PatternSelectFunction<Payment, String>() {
                @Override
                public String select(Map<String, List<Payment>> match) {
                    return match.get("large").get(0).card;
                }
            });
    }
}
