import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternFlatSelectFunction;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/** Events are maps of names to values. */
public class MapEvents {
    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Map<String, Object>> events = env.socketTextStream("localhost", 9999)
            .map(new MapFunction<String, Map<String, Object>>() {
                @Override
                public Map<String, Object> map(String line) {
                    String[] f = line.split(";");
                    Map<String, Object> event = new HashMap<>();
                    event.put("user", f[0]);
                    event.put("action", f[1]);
                    event.put("value", Double.parseDouble(f[2]));
                    return event;
                }
            });
        Pattern<Map<String, Object>, ?> p = Pattern.<Map<String, Object>>begin("login")
            .where(SimpleCondition.of(e -> "login".equals(e.get("action"))))
            .followedBy("transfer")
            .where(new SimpleCondition<Map<String, Object>>() {
                @Override
                public boolean filter(Map<String, Object> e) {
                    return e.containsKey("action") && e.get("action").equals("transfer")
                        && (Double) e.get("value") > 1000.0;
                }
            })
            .within(Duration.ofMinutes(5));
        PatternStream<Map<String, Object>> s = CEP.pattern(events.keyBy(e -> (String) e.get("user")), p).inProcessingTime();
        s.flatSelect(new PatternFlatSelectFunction<Map<String, Object>, String>() {
            @Override
            public void flatSelect(Map<String, List<Map<String, Object>>> m, Collector<String> out) {
                out.collect(m.get("login").get(0).get("user") + " moved " + m.get("transfer").get(0).get("value"));
            }
        }).print();
        env.execute();
    }
}
