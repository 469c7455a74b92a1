import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.TimeCharacteristic;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.timestamps.AscendingTimestampExtractor;
import org.apache.flink.streaming.api.windowing.time.Time;
import org.apache.flink.util.Collector;
import java.util.*;

/** Old style: tuples from a text file of "host,bytes,time" lines. */
public class TupleTraffic {
    static final int FACTOR = 3;

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setStreamTimeCharacteristic(TimeCharacteristic.EventTime);
        DataStream<Tuple3<String, Integer, Long>> traffic = env
            .readTextFile("/data/traffic.csv")
            .filter(new FilterFunction<String>() {
                @Override
                public boolean filter(String line) {
                    return !line.startsWith("#") && line.length() > 0;
                }
            })
            .map(new MapFunction<String, Tuple3<String, Integer, Long>>() {
                @Override
                public Tuple3<String, Integer, Long> map(String line) throws Exception {
                    String[] parts = line.split(",");
                    return new Tuple3<>(parts[0].trim(), Integer.parseInt(parts[1]), Long.parseLong(parts[2]));
                }
            })
            .assignTimestampsAndWatermarks(new AscendingTimestampExtractor<Tuple3<String, Integer, Long>>() {
                @Override
                public long extractAscendingTimestamp(Tuple3<String, Integer, Long> t) {
                    return t.f2;
                }
            });

        Pattern<Tuple3<String, Integer, Long>, ?> burst = Pattern
            .<Tuple3<String, Integer, Long>>begin("calm")
            .where(new SimpleCondition<Tuple3<String, Integer, Long>>() {
                @Override
                public boolean filter(Tuple3<String, Integer, Long> t) throws Exception {
                    return t.f1 < 100 && t.f1 >= 0;
                }
            })
            .next("burst")
            .where(new IterativeCondition<Tuple3<String, Integer, Long>>() {
                @Override
                public boolean filter(Tuple3<String, Integer, Long> t, Context<Tuple3<String, Integer, Long>> ctx) throws Exception {
                    Tuple3<String, Integer, Long> calm = ctx.getEventsForPattern("calm").iterator().next();
                    return t.f1 > FACTOR * calm.f1 && t.f2 - calm.f2 < 5000L;
                }
            })
            .times(2)
            .within(Time.seconds(10));

        PatternStream<Tuple3<String, Integer, Long>> found = CEP.pattern(
            traffic.keyBy(new KeySelector<Tuple3<String, Integer, Long>, String>() {
                @Override
                public String getKey(Tuple3<String, Integer, Long> t) throws Exception {
                    return t.f0;
                }
            }), burst);

        DataStream<Tuple2<String, Integer>> result = found.select(
            new PatternSelectFunction<Tuple3<String, Integer, Long>, Tuple2<String, Integer>>() {
                @Override
                public Tuple2<String, Integer> select(Map<String, List<Tuple3<String, Integer, Long>>> p) throws Exception {
                    int total = 0;
                    for (Tuple3<String, Integer, Long> t : p.get("burst")) {
                        total += t.f1;
                    }
                    return new Tuple2<>(p.get("calm").get(0).f0, total);
                }
            });
        result
            .flatMap(new FlatMapFunction<Tuple2<String, Integer>, String>() {
                @Override
                public void flatMap(Tuple2<String, Integer> t, Collector<String> out) {
                    if (t.f1 > 1000) {
                        out.collect("LARGE " + t.f0);
                    }
                    out.collect(t.f0 + "=" + t.f1);
                }
            })
            .writeAsText("/data/out");
        env.execute("traffic");
    }
}
