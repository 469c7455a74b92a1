package meters;

import java.time.*;
import java.util.*;
import org.apache.flink.api.common.eventtime.*;
import org.apache.flink.api.common.functions.*;
import org.apache.flink.cep.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

public final class Meters {
    public static class Meter {
        public String id; public String kind; public double kwh; public long at; public int quality; public LocalDateTime local;
        public Meter() {}
        public Meter(String id, String kind, double kwh, long at, int quality) { this.id = id; this.kind = kind; this.kwh = kwh; this.at = at; this.quality = quality; }
    }
    public static class Use {
        public String id; public double watts; public boolean night; public long at;
        public Use() {}
        public Use(String id, double watts, boolean night, long at) { this.id = id; this.watts = watts; this.night = night; this.at = at; }
    }
    static class ToUse implements MapFunction<Meter, Use> {
        private final double factor;
        ToUse(double factor) { this.factor = factor; }
        @Override public Use map(Meter m) {
            boolean night = m.kind.equals("NT");
            double watts = m.kwh * 1000 * factor;
            if (m.quality < 0) { watts = 0; }
            return new Use(m.id, watts, night, m.at);
        }
    }
    static class Split implements FlatMapFunction<Use, Use> {
        @Override public void flatMap(Use u, Collector<Use> out) {
            if (u.watts <= 0) return;
            out.collect(u);
            if (u.watts > 5000) { out.collect(new Use(u.id + "!", u.watts / 2, u.night, u.at + 1)); }
        }
    }
    static boolean isNight(Use u) { return u.night; }

    static Pattern<Use, ?> rising(int n) {
        Pattern<Use, Use> p = Pattern.<Use>begin("u0").where(SimpleCondition.of(u -> u.watts > 10));
        for (int i = 1; i < n; i++) {
            final int k = i;
            p = p.next("u" + i).where(new IterativeCondition<Use>() {
                @Override public boolean filter(Use u, Context<Use> ctx) throws Exception {
                    for (Use before : ctx.getEventsForPattern("u" + (k - 1))) { return u.watts > before.watts * (1 + k / 10.0); }
                    return false;
                }
            });
        }
        return p.within(Duration.ofSeconds(n * 10L));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Use> uses = env.fromData(new Meter("m", "HT", 0.5, 1, 0), new Meter("m", "NT", 0.7, 2, 0))
            .filter(m -> m.quality >= 0 || m.kwh > 100)
            .map(new ToUse(1.5))
            .flatMap(new Split())
            .filter(Meters::isNight)
            .map(u -> { u.id = u.id.toUpperCase(); return u; })
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Use>forGenerator(ctx -> new Lagging()).withTimestampAssigner((u, t) -> u.at));
        CEP.pattern(uses.keyBy(u -> u.id), rising(3)).select(m -> m.get("u2").get(0).watts).print();
        env.execute();
    }

    static class Lagging implements WatermarkGenerator<Use> {
        private long max = Long.MIN_VALUE + 3000;
        @Override public void onEvent(Use u, long ts, WatermarkOutput out) { max = Math.max(max, ts); }
        @Override public void onPeriodicEmit(WatermarkOutput out) { out.emitWatermark(new Watermark(max - 3000)); }
    }
}
