package rollups;

import java.time.Duration;
import java.util.*;
import org.apache.flink.api.common.eventtime.*;
import org.apache.flink.api.common.functions.*;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.java.tuple.*;
import org.apache.flink.cep.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.*;

/** Two inputs joined by union, a pattern on the alerts of another pattern, tuples all over. */
public class Rollups {
    public static class Cpu { public String host; public double load; public long t; }
    public static class Mem { public String host; public long free; public long t; }

    static DataStream<Tuple4<String, String, Double, Long>> unify(DataStream<Cpu> cpu, DataStream<Mem> mem) {
        DataStream<Tuple4<String, String, Double, Long>> a = cpu
            .map(c -> Tuple4.of(c.host, "cpu", c.load, c.t))
            .returns(Types.TUPLE(Types.STRING, Types.STRING, Types.DOUBLE, Types.LONG));
        DataStream<Tuple4<String, String, Double, Long>> b = mem
            .map(m -> new Tuple4<>(m.host, "mem", (double) m.free, m.t))
            .returns(new TypeHint<Tuple4<String, String, Double, Long>>() {});
        return a.union(b);
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Cpu> cpu = env.addSource(new CpuSource());
        DataStream<Mem> mem = env.addSource(new MemSource());
        SingleOutputStreamOperator<Tuple4<String, String, Double, Long>> all = unify(cpu, mem)
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Tuple4<String, String, Double, Long>>forBoundedOutOfOrderness(Duration.ofSeconds(4))
                .withTimestampAssigner((x, ts) -> x.f3));
        Pattern<Tuple4<String, String, Double, Long>, ?> both = Pattern.<Tuple4<String, String, Double, Long>>begin("cpu")
            .where(SimpleCondition.of(x -> x.f1.equals("cpu") && x.f2 > 0.9))
            .followedBy("mem").where(SimpleCondition.of(x -> x.f1.equals("mem") && x.f2 < 1024.0 * 1024))
            .where(new IterativeCondition<Tuple4<String, String, Double, Long>>() {
                @Override
                public boolean filter(Tuple4<String, String, Double, Long> x, Context<Tuple4<String, String, Double, Long>> ctx) throws Exception {
                    for (Tuple4<String, String, Double, Long> c : ctx.getEventsForPattern("cpu")) {
                        return x.f3 - c.f3 <= 5_000;
                    }
                    return true;
                }
            })
            .within(Duration.ofSeconds(10));
        DataStream<Tuple3<String, Double, Long>> alerts = CEP.pattern(all.keyBy(x -> x.f0), both)
            .select(m -> Tuple3.of(m.get("cpu").get(0).f0, m.get("cpu").get(0).f2, m.get("mem").get(0).f3))
            .returns(Types.TUPLE(Types.STRING, Types.DOUBLE, Types.LONG));
        Pattern<Tuple3<String, Double, Long>, ?> again = Pattern.<Tuple3<String, Double, Long>>begin("one")
            .next("two").where(new IterativeCondition<Tuple3<String, Double, Long>>() {
                @Override
                public boolean filter(Tuple3<String, Double, Long> x, Context<Tuple3<String, Double, Long>> ctx) throws Exception {
                    return x.f1 > ctx.getEventsForPattern("one").iterator().next().f1;
                }
            }).within(Duration.ofMinutes(1));
        CEP.pattern(alerts.keyBy(x -> x.f0), again)
            .select(m -> m.get("two").get(0).f0 + " rises")
            .filter(s -> !s.startsWith("test"))
            .map(s -> "ALERT " + s.toUpperCase())
            .print();
        env.execute("rollups");
    }
}
