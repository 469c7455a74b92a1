package kin;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.*;
import java.time.Duration;
import java.util.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.*;
import org.apache.flink.cep.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.CheckpointingMode;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.*;

/** Files of JSON lines, a bounded job. */
public class Kinesis {
    public static class Order {
        @JsonProperty("order_id") public String orderId;
        @JsonProperty("customer") public String customer;
        public String status;
        public double total;
        @JsonProperty("created_at") public long createdAt;
    }
    public static class Out { public String customer; public int orders; public double total;
        public Out() {}
        public Out(String customer, int orders, double total) { this.customer = customer; this.orders = orders; this.total = total; } }

    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.getCheckpointConfig().setCheckpointingMode(CheckpointingMode.EXACTLY_ONCE);
        FileSource<String> source = FileSource.forRecordStreamFormat(new TextLineInputFormat("UTF-8"), new Path("/data/orders")).build();
        DataStream<Order> orders = env.fromSource(source, WatermarkStrategy.noWatermarks(), "orders")
            .map(line -> MAPPER.readValue(line, Order.class))
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Order>forBoundedOutOfOrderness(Duration.ofMinutes(1)).withTimestampAssigner((o, t) -> o.createdAt));
        Pattern<Order, ?> cancelled = Pattern.<Order>begin("placed").where(SimpleCondition.of(o -> "PLACED".equals(o.status))).times(2)
            .followedBy("cancelled").where(SimpleCondition.of(o -> "CANCELLED".equals(o.status)))
            .within(Duration.ofHours(1));
        DataStream<Out> out = CEP.pattern(orders.keyBy(o -> o.customer), cancelled)
            .select(m -> new Out(m.get("placed").get(0).customer, m.get("placed").size(), m.get("placed").get(0).total + m.get("placed").get(1).total));
        out.map(o -> MAPPER.writeValueAsString(o))
            .sinkTo(FileSink.forRowFormat(new Path("/data/cancelled"), new SimpleStringEncoder<String>("UTF-8")).build());
        env.execute("orders");
    }
}
