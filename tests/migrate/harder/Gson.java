package gs;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.*;
import org.apache.flink.cep.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.*;
import org.apache.flink.streaming.api.functions.timestamps.BoundedOutOfOrdernessTimestampExtractor;
import org.apache.flink.streaming.api.windowing.time.Time;
import org.apache.flink.streaming.util.serialization.SimpleStringSchema;
import org.apache.flink.streaming.connectors.kafka.*;

class GsonJob {
    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        Properties p = new Properties();
        p.put("bootstrap.servers", "b:9092");
        DataStream<JsonObject> events = env.addSource(new FlinkKafkaConsumer<>("in", new SimpleStringSchema(), p))
            .map(line -> new JsonParser().parse(line).getAsJsonObject())
            .filter(o -> o.has("user"))
            .assignTimestampsAndWatermarks(new BoundedOutOfOrdernessTimestampExtractor<JsonObject>(Time.seconds(10)) {
                @Override
                public long extractTimestamp(JsonObject o) {
                    return o.get("ts").getAsLong();
                }
            });
        Pattern<JsonObject, ?> pattern = Pattern.<JsonObject>begin("fail")
            .where(new SimpleCondition<JsonObject>() {
                @Override public boolean filter(JsonObject o) { return o.get("type").getAsString().equals("fail") && o.get("code").getAsInt() >= 400; }
            }).times(3)
            .followedBy("ok").where(new IterativeCondition<JsonObject>() {
                @Override public boolean filter(JsonObject o, Context<JsonObject> ctx) throws Exception {
                    if (!o.get("type").getAsString().equals("ok")) return false;
                    for (JsonObject f : ctx.getEventsForPattern("fail")) {
                        if (f.get("geo").getAsJsonObject().get("country").getAsString().equals(o.get("geo").getAsJsonObject().get("country").getAsString())) return false;
                    }
                    return true;
                }
            }).within(Time.minutes(2));
        CEP.pattern(events.keyBy(o -> o.get("user").getAsString()), pattern)
            .select(new PatternSelectFunction<JsonObject, String>() {
                @Override public String select(Map<String, List<JsonObject>> m) {
                    JsonObject r = new JsonObject();
                    r.addProperty("user", m.get("ok").get(0).get("user").getAsString());
                    r.addProperty("count", m.get("fail").size());
                    return new Gson().toJson(r);
                }
            }).addSink(new FlinkKafkaProducer<>("b:9092", "out", new SimpleStringSchema()));
        env.execute("gson");
    }
}
