package claims;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Duration;
import java.time.LocalDate;
import java.util.*;
import java.util.stream.Collectors;
import lombok.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.*;
import org.apache.flink.cep.functions.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.*;
import org.apache.flink.util.Collector;

public class Claims {
    @Getter @Setter @NoArgsConstructor @AllArgsConstructor @ToString @EqualsAndHashCode
    public static class Claim {
        private String policy;
        private String type;
        private BigDecimal amount;
        private long filed;
        private List<Item> items;
        private Address address;
        private Boolean approved;
    }
    @Data @AllArgsConstructor @NoArgsConstructor
    public static class Item { private String name; private int count; private double price; }
    @Value
    public static class Address { String city; String zip; }
    @Data @Builder
    public static class Suspicion { private String policy; private int claims; private double total; private List<String> cities; private String reason; }

    static class Expensive extends IterativeCondition<Claim> {
        @Override
        public boolean filter(Claim c, Context<Claim> ctx) throws Exception {
            BigDecimal sum = BigDecimal.ZERO;
            for (Claim p : ctx.getEventsForPattern("first")) {
                sum = sum.add(p.getAmount());
            }
            return c.getAmount() != null && c.getAmount().compareTo(sum.multiply(new BigDecimal("1.5"))) > 0;
        }
    }

    static Pattern<Claim, ?> doubled() {
        return Pattern.<Claim>begin("first")
            .where(SimpleCondition.of(c -> c.getAmount() != null && c.getAmount().compareTo(BigDecimal.valueOf(100)) >= 0
                && !"void".equalsIgnoreCase(c.getType())))
            .where(SimpleCondition.of(c -> c.getAddress() != null && c.getAddress().getZip().matches("\\d{5}(-\\d{4})?")))
            .followedBy("second").where(new Expensive())
            .where(SimpleCondition.of(c -> Boolean.FALSE.equals(c.getApproved()) || c.getApproved() == null))
            .within(Duration.ofDays(30));
    }

    static Pattern<Claim, ?> itemized() {
        return Pattern.<Claim>begin("many")
            .where(SimpleCondition.of(c -> c.getItems() != null
                && c.getItems().stream().filter(i -> i.getCount() > 1).mapToDouble(i -> i.getCount() * i.getPrice()).sum() > 50))
            .next("same").where(new IterativeCondition<Claim>() {
                @Override
                public boolean filter(Claim c, Context<Claim> ctx) throws Exception {
                    Claim first = ctx.getEventsForPattern("many").iterator().next();
                    Set<String> names = first.getItems().stream().map(Item::getName).collect(Collectors.toSet());
                    return c.getItems() != null && c.getItems().stream().anyMatch(i -> names.contains(i.getName()));
                }
            });
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Claim> claims = env.addSource(new ClaimSource())
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Claim>forBoundedOutOfOrderness(Duration.ofHours(1)).withTimestampAssigner((c, t) -> c.getFiled()));
        CEP.pattern(claims.keyBy(Claim::getPolicy), doubled()).process(new PatternProcessFunction<Claim, Suspicion>() {
            @Override
            public void processMatch(Map<String, List<Claim>> m, Context ctx, Collector<Suspicion> out) throws Exception {
                List<Claim> all = new ArrayList<>(m.get("first"));
                all.addAll(m.get("second"));
                BigDecimal total = all.stream().map(Claim::getAmount).reduce(BigDecimal.ZERO, BigDecimal::add);
                out.collect(Suspicion.builder().policy(all.get(0).getPolicy()).claims(all.size())
                    .total(total.doubleValue())
                    .cities(all.stream().map(c -> c.getAddress().getCity()).distinct().sorted().collect(Collectors.toList()))
                    .reason(total.intValue() > 1000 ? "large" : "small").build());
            }
        }).print();
        CEP.pattern(claims.keyBy(Claim::getPolicy), itemized()).select(m -> m.get("same").get(0)).print();
        env.execute("claims");
    }
}
