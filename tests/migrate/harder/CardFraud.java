package bank;

import java.io.Serializable;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.*;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.flink.api.common.eventtime.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.cep.*;
import org.apache.flink.cep.functions.*;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Card fraud: small probes, then a large payment. */
public class CardFraud {

    public static class Payment implements Serializable {
        public String card;
        public String merchant;
        public double amount;
        public int country;
        public long at;
        public Boolean chip;

        public Payment() {}

        public Payment(String card, String merchant, double amount, int country, long at, Boolean chip) {
            this.card = card;
            this.merchant = merchant;
            this.amount = amount;
            this.country = country;
            this.at = at;
            this.chip = chip;
        }

        public String getCard() { return card; }
        public String getMerchant() { return merchant; }
        public double getAmount() { return amount; }
        public int getCountry() { return country; }
        public long getAt() { return at; }
        public Boolean getChip() { return chip; }
        public Optional<String> merchantName() { return Optional.ofNullable(merchant); }
    }

    private static final int SMALL = 5;

    static final class LargeAfterProbes extends RichIterativeCondition<Payment> {
        private final double factor;
        private transient double least;

        LargeAfterProbes(double factor) {
            this.factor = factor;
        }

        @Override
        public void open(org.apache.flink.api.common.functions.OpenContext context) {
            least = 100.0;
        }

        @Override
        public boolean filter(Payment p, Context<Payment> ctx) throws Exception {
            double sum = StreamSupport.stream(ctx.getEventsForPattern("probes").spliterator(), false)
                .mapToDouble(Payment::getAmount)
                .sum();
            return p.getAmount() > Math.max(least, sum * factor);
        }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Payment> payments = env
            .fromData(
                new Payment("a", "shop", 1.0, 49, 1000L, true),
                new Payment("a", "shop", 2.5, 49, 2000L, false),
                new Payment("a", "cafe", 3.0, 33, 3000L, null),
                new Payment("a", "gold", 900.0, 1, 4000L, false))
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<Payment>forMonotonousTimestamps()
                    .withTimestampAssigner((p, t) -> p.at));

        Pattern<Payment, ?> probes = Pattern.<Payment>begin("probes")
            .where(SimpleCondition.of(p -> p.getAmount() <= SMALL))
            .times(2, 4)
            .within(Duration.ofSeconds(30), WithinType.PREVIOUS_AND_CURRENT)
            .followedBy("large")
            .where(new LargeAfterProbes(2.0))
            .where(SimpleCondition.of(p -> !Boolean.TRUE.equals(p.getChip())))
            .where(new IterativeCondition<Payment>() {
                @Override
                public boolean filter(Payment p, Context<Payment> ctx) throws Exception {
                    Set<Integer> countries = new HashSet<>();
                    for (Payment probe : ctx.getEventsForPattern("probes")) {
                        countries.add(probe.getCountry());
                    }
                    return !countries.contains(p.getCountry());
                }
            });

        Pattern<Payment, ?> sameShop = Pattern.<Payment>begin("first")
            .where(SimpleCondition.of(p -> p.merchantName().map(String::toLowerCase).orElse("").startsWith("s")))
            .next("second")
            .where(new IterativeCondition<Payment>() {
                @Override
                public boolean filter(Payment p, Context<Payment> ctx) throws Exception {
                    return StreamSupport.stream(ctx.getEventsForPattern("first").spliterator(), false)
                        .anyMatch(f -> Objects.equals(f.getMerchant(), p.getMerchant()) && p.getAmount() >= f.getAmount());
                }
            })
            .within(Duration.ofMinutes(1));

        KeyedStream<Payment, String> byCard = payments.keyBy(p -> p.card);
        final OutputTag<Tuple3<String, Double, Long>> partial =
            new OutputTag<>("partial", Types.TUPLE(Types.STRING, Types.DOUBLE, Types.LONG));

        SingleOutputStreamOperator<String> alerts = CEP.pattern(byCard, probes).flatSelect(
            partial,
            new PatternFlatTimeoutFunction<Payment, Tuple3<String, Double, Long>>() {
                @Override
                public void timeout(Map<String, List<Payment>> m, long time, Collector<Tuple3<String, Double, Long>> out) {
                    double sum = m.get("probes").stream().mapToDouble(p -> p.amount).sum();
                    out.collect(Tuple3.of(m.get("probes").get(0).card, sum, time));
                }
            },
            new PatternFlatSelectFunction<Payment, String>() {
                @Override
                public void flatSelect(Map<String, List<Payment>> m, Collector<String> out) {
                    String merchants = m.get("probes").stream().map(Payment::getMerchant).distinct().collect(Collectors.joining(", "));
                    out.collect(String.format("card %s: %d probes at %s", m.get("large").get(0).card, m.get("probes").size(), merchants));
                }
            });
        alerts.print();
        alerts.getSideOutput(partial).print();
        CEP.pattern(byCard, sameShop).select((PatternSelectFunction<Payment, String>) m ->
            m.get("first").get(0).getCard() + ":" + m.get("second").get(0).getAmount()).print();
        env.execute();
    }
}
