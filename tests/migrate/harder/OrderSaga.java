package saga;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.*;
import org.apache.flink.api.common.accumulators.IntCounter;
import org.apache.flink.api.common.eventtime.SerializableTimestampAssigner;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternTimeoutFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.SinkFunction;
import org.apache.flink.streaming.connectors.kafka.FlinkKafkaConsumer;
import org.apache.flink.streaming.connectors.kafka.FlinkKafkaProducer;
import org.apache.flink.util.OutputTag;

public class OrderSaga {
    /** A sealed family of events. */
    public static abstract class OrderEvent {
        protected String orderId;
        protected long time;
        public String getOrderId() { return orderId; }
        public long getTime() { return time; }
        public void setOrderId(String id) { this.orderId = id; }
        public void setTime(long t) { this.time = t; }
    }
    public static class Created extends OrderEvent {
        private int items;
        public int getItems() { return items; }
        public void setItems(int n) { items = n; }
    }
    public static class Paid extends OrderEvent {
        private double amount;
        private String method;
        public double getAmount() { return amount; }
        public void setAmount(double a) { amount = a; }
        public String getMethod() { return method; }
        public void setMethod(String m) { method = m; }
    }
    public static class Shipped extends OrderEvent {
        private String carrier;
        public String getCarrier() { return carrier; }
        public void setCarrier(String c) { carrier = c; }
    }

    static class CountingMap extends RichMapFunction<OrderEvent, OrderEvent> {
        private final IntCounter counter = new IntCounter();
        @Override
        public OrderEvent map(OrderEvent e) {
            counter.add(1);
            return e;
        }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        Properties props = new Properties();
        props.setProperty("bootstrap.servers", "kafka:9092");
        props.setProperty("group.id", "saga");
        DataStream<String> lines = env.addSource(new FlinkKafkaConsumer<>("orders", new SimpleStringSchema(), props));
        DataStream<OrderEvent> events = lines.map(new OrderParser()).map(new CountingMap())
            .assignTimestampsAndWatermarks(WatermarkStrategy.<OrderEvent>forBoundedOutOfOrderness(Duration.ofSeconds(5))
                .withTimestampAssigner(new SerializableTimestampAssigner<OrderEvent>() {
                    @Override
                    public long extractTimestamp(OrderEvent e, long before) {
                        return e.getTime();
                    }
                }));
        Pattern<OrderEvent, ?> fulfilled = Pattern.<OrderEvent>begin("created").subtype(Created.class)
            .where(SimpleCondition.of(c -> c.getItems() > 0))
            .followedBy("paid").subtype(Paid.class)
            .where(new SimpleCondition<Paid>() {
                @Override
                public boolean filter(Paid p) {
                    return p.getAmount() > 0 && ("card".equalsIgnoreCase(p.getMethod()) || p.getMethod().matches("pay[a-z]+"));
                }
            })
            .notFollowedBy("cancelled")
            .where(SimpleCondition.of(e -> e instanceof Paid && ((Paid) e).getAmount() < 0))
            .followedBy("shipped")
            .where(new SimpleCondition<OrderEvent>() {
                @Override
                public boolean filter(OrderEvent e) {
                    return e instanceof Shipped s && s.getCarrier() != null && s.getCarrier().length() == 3;
                }
            })
            .within(Duration.ofHours(48));

        OutputTag<String> late = new OutputTag<String>("late-orders") {};
        SingleOutputStreamOperator<String> done = CEP.pattern(events.keyBy(OrderEvent::getOrderId), fulfilled)
            .select(late,
                new PatternTimeoutFunction<OrderEvent, String>() {
                    @Override
                    public String timeout(Map<String, List<OrderEvent>> m, long ts) {
                        String stage = m.containsKey("paid") ? "paid" : "created";
                        return m.get("created").get(0).getOrderId() + " stuck after " + stage + " at " + ts;
                    }
                },
                new PatternSelectFunction<OrderEvent, String>() {
                    @Override
                    public String select(Map<String, List<OrderEvent>> m) {
                        Paid paid = (Paid) m.get("paid").get(0);
                        long took = (m.get("shipped").get(0).getTime() - m.get("created").get(0).getTime()) / 1000;
                        StringBuilder sb = new StringBuilder();
                        sb.append(paid.getOrderId()).append(' ').append(paid.getAmount()).append(" in ").append(took).append('s');
                        return sb.toString();
                    }
                });
        done.addSink(new FlinkKafkaProducer<>("kafka:9092", "done", new SimpleStringSchema()));
        done.getSideOutput(late).addSink(new SinkFunction<String>() {
            @Override
            public void invoke(String value, Context context) {
                System.err.println("LATE " + value);
            }
        });
        env.execute("saga");
    }

    static class OrderParser implements MapFunction<String, OrderEvent> {
        private static final ObjectMapper MAPPER = new ObjectMapper();
        @Override
        public OrderEvent map(String line) throws Exception {
            JsonNode node = MAPPER.readTree(line);
            switch (node.get("type").asText()) {
                case "created":
                    Created c = new Created();
                    c.setOrderId(node.get("id").asText());
                    c.setTime(node.get("time").asLong());
                    c.setItems(node.get("items").asInt());
                    return c;
                case "paid":
                    Paid p = new Paid();
                    p.setOrderId(node.get("id").asText());
                    p.setTime(node.get("time").asLong());
                    p.setAmount(node.get("amount").asDouble());
                    p.setMethod(node.get("method").asText());
                    return p;
                default:
                    Shipped s = new Shipped();
                    s.setOrderId(node.get("id").asText());
                    s.setTime(node.get("time").asLong());
                    s.setCarrier(node.get("carrier").asText());
                    return s;
            }
        }
    }
}
