package inv;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.temporal.ChronoUnit;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.*;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

public class Inventory {
    public static class Movement {
        private String sku;
        private String warehouse;
        private Integer delta;
        private Instant at;
        private List<String> tags = new ArrayList<>();
        private Map<String, String> attributes = new HashMap<>();
        private Supplier supplier;

        public String getSku() { return sku; }
        public String getWarehouse() { return warehouse; }
        public Integer getDelta() { return delta; }
        public Instant getAt() { return at; }
        public List<String> getTags() { return tags; }
        public Map<String, String> getAttributes() { return attributes; }
        public Supplier getSupplier() { return supplier; }
        public boolean isOutgoing() { return delta != null && delta < 0; }

        static Movement parse(String line) {
            String[] f = line.split("\\|");
            Movement m = new Movement();
            m.sku = f[0];
            m.warehouse = f[1];
            m.delta = Integer.valueOf(f[2]);
            m.at = Instant.ofEpochMilli(Long.parseLong(f[3]));
            return m;
        }
    }

    public static class Supplier {
        private String name;
        private int rating;
        public String getName() { return name; }
        public int getRating() { return rating; }
    }

    static final Set<String> WATCHED = new HashSet<>(Arrays.asList("A1", "B2"));

    static class Shrinking extends IterativeCondition<Movement> {
        private final String stage;
        private final int least;

        Shrinking(String stage) { this(stage, 10); }

        Shrinking(String stage, int least) {
            this.stage = stage;
            this.least = least;
        }

        @Override
        public boolean filter(Movement m, Context<Movement> ctx) throws Exception {
            int sum = 0;
            int count = 0;
            Movement first = null;
            for (Movement x : ctx.getEventsForPattern(stage)) {
                if (first == null) {
                    first = x;
                }
                sum += x.getDelta();
                count += 1;
            }
            if (count == 0) return m.isOutgoing();
            int average = sum / count;
            return m.isOutgoing() && -m.getDelta() >= least && average < 0
                && Duration.between(first.getAt(), m.getAt()).toMinutes() < 5;
        }
    }

    static Pattern<Movement, ?> shrink() {
        return Pattern.<Movement>begin("out", AfterMatchSkipStrategy.skipToLast("out").throwExceptionOnMiss())
            .where(SimpleCondition.of(m -> WATCHED.contains(m.getSku()) && m.isOutgoing()))
            .oneOrMore()
            .followedBy("more")
            .where(new Shrinking("out"))
            .where(SimpleCondition.of(m -> m.getSupplier() != null && m.getSupplier().getRating() > 2
                && m.getSupplier().getName().trim().length() > 0))
            .within(Duration.ofMinutes(30));
    }

    static Pattern<Movement, ?> tagged() {
        return Pattern.<Movement>begin("tagged")
            .where(SimpleCondition.of(m -> m.getTags().stream().anyMatch(t -> t.startsWith("x")) || m.getTags().size() > 1))
            .next("attr")
            .where(SimpleCondition.of(m -> "red".equals(m.getAttributes().get("color"))
                || Integer.parseInt(m.getAttributes().getOrDefault("size", "0")) > 3))
            .where(new SimpleCondition<Movement>() {
                @Override
                public boolean filter(Movement m) {
                    String w = m.getWarehouse();
                    if (w == null || w.isBlank()) return false;
                    String code = w.substring(0, 1).toUpperCase();
                    return code.compareTo("M") < 0 || w.indexOf('-') > 0 || w.charAt(w.length() - 1) == 'z';
                }
            });
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        FileSource<String> files = FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path("/data/moves")).build();
        DataStream<Movement> moves = env.fromSource(files, WatermarkStrategy.noWatermarks(), "files")
            .map(Movement::parse)
            .filter(m -> m.getDelta() != 0)
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Movement>forMonotonousTimestamps()
                .withTimestampAssigner((m, t) -> m.getAt().toEpochMilli()));
        CEP.pattern(moves.keyBy(Movement::getSku), shrink()).process(new PatternProcessFunction<Movement, String>() {
            @Override
            public void processMatch(Map<String, List<Movement>> match, Context ctx, Collector<String> out) throws Exception {
                int total = match.get("out").stream().mapToInt(Movement::getDelta).sum();
                String where = match.get("out").stream().map(Movement::getWarehouse).filter(Objects::nonNull).sorted().distinct()
                    .collect(Collectors.joining("/", "[", "]"));
                Movement most = null;
                for (Movement one : match.get("out")) {
                    if (most == null || one.getDelta() < most.getDelta()) {
                        most = one;
                    }
                }
                if (most != null && total < 0) {
                    out.collect(where + " " + total + " " + most.getSku());
                }
            }
        }).print();
        CEP.pattern(moves, tagged()).select(m -> m.get("attr").get(0).getSku()).print();
        env.execute("inventory");
    }
}
