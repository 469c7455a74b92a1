package bc;

import java.util.*;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.co.BroadcastProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.time.Time;
import org.apache.flink.util.Collector;

/** Rules that come as a broadcast stream. */
public class Broadcasted {
    public static class Event { public String id; public int level; public long ts; }
    public static class Rule { public String id; public int limit; }
    public static class Enriched { public String id; public int level; public int limit; public long ts;
        public Enriched() {}
        public Enriched(String id, int level, int limit, long ts) { this.id = id; this.level = level; this.limit = limit; this.ts = ts; } }

    static final MapStateDescriptor<String, Rule> RULES = new MapStateDescriptor<>("rules", Types.STRING, Types.POJO(Rule.class));

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Event> events = env.addSource(new EventSource());
        BroadcastStream<Rule> rules = env.addSource(new RuleSource()).broadcast(RULES);
        SingleOutputStreamOperator<Enriched> enriched = events.connect(rules)
            .process(new BroadcastProcessFunction<Event, Rule, Enriched>() {
                @Override
                public void processElement(Event e, ReadOnlyContext ctx, Collector<Enriched> out) throws Exception {
                    Rule r = ctx.getBroadcastState(RULES).get(e.id);
                    out.collect(new Enriched(e.id, e.level, r == null ? 10 : r.limit, e.ts));
                }
                @Override
                public void processBroadcastElement(Rule r, Context ctx, Collector<Enriched> out) throws Exception {
                    ctx.getBroadcastState(RULES).put(r.id, r);
                }
            });
        DataStream<Enriched> hot = enriched.process(new ProcessFunction<Enriched, Enriched>() {
            @Override
            public void processElement(Enriched e, Context ctx, Collector<Enriched> out) {
                if (e.level > 0) {
                    out.collect(e);
                }
            }
        });
        Pattern<Enriched, ?> p = Pattern.<Enriched>begin("a").where(SimpleCondition.of(e -> e.level > e.limit))
            .times(3).within(Time.minutes(1));
        CEP.pattern(hot.keyBy(e -> e.id), p)
            .select(m -> m.get("a").get(2).id)
            .keyBy(id -> id)
            .window(TumblingEventTimeWindows.of(Time.minutes(10)))
            .process(new ProcessWindowFunction<String, String, String, org.apache.flink.streaming.api.windowing.windows.TimeWindow>() {
                @Override
                public void process(String key, Context ctx, Iterable<String> ids, Collector<String> out) {
                    out.collect(key);
                }
            })
            .addSink(new org.apache.flink.streaming.api.functions.sink.RichSinkFunction<String>() {
                @Override
                public void invoke(String value, Context context) throws Exception {
                    System.out.println(value);
                }
            });
        env.execute("broadcast");
    }
}
