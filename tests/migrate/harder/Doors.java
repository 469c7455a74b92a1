package doors;

import java.io.IOException;
import java.time.Duration;
import java.util.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.cep.*;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/** Named select function with a constructor, generic base classes, interfaces with defaults. */
public class Doors {
    interface HasBadge {
        String getBadge();
        default boolean isGuest() { return getBadge() != null && getBadge().startsWith("G"); }
    }

    public static class Swipe implements HasBadge {
        private String badge;
        private String door;
        private Integer floor;
        private long ts;
        private Result result = Result.DENIED;
        public enum Result { GRANTED, DENIED, EXPIRED }
        @Override public String getBadge() { return badge; }
        public void setBadge(String b) { badge = b; }
        public String getDoor() { return door; }
        public void setDoor(String d) { door = d; }
        public Integer getFloor() { return floor; }
        public void setFloor(Integer f) { floor = f; }
        public long getTs() { return ts; }
        public void setTs(long t) { ts = t; }
        public Result getResult() { return result; }
        public void setResult(Result r) { result = r; }
    }

    static abstract class EqualTo<V> extends SimpleCondition<Swipe> {
        protected final V wanted;
        EqualTo(V wanted) { this.wanted = wanted; }
        protected abstract V get(Swipe s);
        @Override public boolean filter(Swipe s) { return wanted.equals(get(s)); }
    }

    static class ResultIs extends EqualTo<Swipe.Result> {
        ResultIs(Swipe.Result r) { super(r); }
        @Override protected Swipe.Result get(Swipe s) { return s.getResult(); }
    }

    static class FloorIs extends EqualTo<Integer> {
        FloorIs(int floor) { super(floor); }
        @Override protected Integer get(Swipe s) { return s.getFloor(); }
    }

    static class Report implements PatternSelectFunction<Swipe, String> {
        private final String prefix;
        private final int most;
        Report(String prefix, int most) { this.prefix = prefix; this.most = most; }
        @Override
        public String select(Map<String, List<Swipe>> m) throws Exception {
            List<Swipe> denied = m.getOrDefault("denied", Collections.emptyList());
            String doors = "";
            int i = 0;
            for (Swipe s : denied) {
                if (i++ >= most) break;
                doors += (doors.isEmpty() ? "" : ",") + s.getDoor();
            }
            return prefix + m.get("granted").get(0).getBadge() + "@" + doors;
        }
    }

    static final Duration WINDOW = Duration.ofMinutes(2).plusSeconds(30);

    static Pattern<Swipe, ?> tailgating() {
        return Pattern.<Swipe>begin("denied")
            .where(new ResultIs(Swipe.Result.DENIED)).or(new ResultIs(Swipe.Result.EXPIRED))
            .times(2).optional()
            .followedBy("granted")
            .where(new ResultIs(Swipe.Result.GRANTED))
            .where(SimpleCondition.of(HasBadge::isGuest))
            .followedBy("other")
            .where(new FloorIs(3))
            .where(new IterativeCondition<Swipe>() {
                @Override
                public boolean filter(Swipe s, Context<Swipe> ctx) throws Exception {
                    Swipe g = ctx.getEventsForPattern("granted").iterator().next();
                    boolean later = s.getTs() > g.getTs();
                    boolean same = Objects.equals(s.getDoor(), g.getDoor());
                    return later ^ same || Math.abs(s.getFloor() - Optional.ofNullable(g.getFloor()).orElse(0)) > 1;
                }
            })
            .within(WINDOW);
    }

    static Pattern<Swipe, ?> withState() {
        return Pattern.<Swipe>begin("x").where(new RichIterativeCondition<Swipe>() {
            private Set<String> allowed;
            private int limit;
            @Override
            public void open(OpenContext c) throws Exception {
                allowed = new HashSet<>(Arrays.asList("d1", "d2"));
                limit = 2;
            }
            @Override
            public boolean filter(Swipe s, Context<Swipe> ctx) throws Exception {
                return allowed.contains(s.getDoor()) && s.getFloor() != null && s.getFloor() > limit;
            }
        }).oneOrMore().consecutive().within(Duration.ofSeconds(10));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        SingleOutputStreamOperator<Swipe> swipes = env.addSource(new SwipeSource(), "swipes").setParallelism(1)
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Swipe>forBoundedOutOfOrderness(Duration.ofSeconds(5))
                .withTimestampAssigner((s, t) -> s.getTs()));
        CEP.pattern(swipes.keyBy(s -> s.getBadge()), tailgating()).select(new Report("guest ", 3)).print();
        CEP.pattern(swipes.keyBy(Swipe::getDoor), withState()).select(m -> m.get("x").size() + " swipes").printToErr();
        env.execute("doors");
    }
}
