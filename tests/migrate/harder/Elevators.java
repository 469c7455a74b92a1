package lifts;

import java.time.Duration;
import java.util.*;
import java.util.function.Predicate;
import org.apache.flink.api.common.eventtime.*;
import org.apache.flink.cep.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.types.Either;

/** The old form with Either; generic helper methods; static nested classes. */
public class Elevators {
    public interface Timed { long getTime(); }

    public static class Base<T extends Comparable<T>> implements Timed {
        protected T id;
        protected long time;
        public T getId() { return id; }
        public void setId(T id) { this.id = id; }
        @Override public long getTime() { return time; }
        public void setTime(long time) { this.time = time; }
    }

    public static class Floor extends Base<String> {
        private int number;
        private boolean doorOpen;
        private double load;
        private char zone;
        public int getNumber() { return number; }
        public void setNumber(int number) { this.number = number; }
        public boolean isDoorOpen() { return doorOpen; }
        public void setDoorOpen(boolean open) { this.doorOpen = open; }
        public double getLoad() { return load; }
        public void setLoad(double load) { this.load = load; }
        public char getZone() { return zone; }
        public void setZone(char zone) { this.zone = zone; }
    }

    private static <T extends Timed> WatermarkStrategy<T> strategy(Duration delay) {
        return WatermarkStrategy.<T>forBoundedOutOfOrderness(delay).withTimestampAssigner((e, t) -> e.getTime());
    }

    private static SimpleCondition<Floor> on(Predicate<Floor> test) {
        return SimpleCondition.of(test::test);
    }

    private static boolean overloaded(Floor f) {
        return f.getLoad() > 630.0 || (f.getZone() == 'B' && f.getLoad() > 400);
    }

    static Pattern<Floor, Floor> stuck() {
        Pattern<Floor, Floor> begun = Pattern.<Floor>begin("arrived").where(SimpleCondition.of(Floor::isDoorOpen));
        begun.where(SimpleCondition.of(f -> f.getNumber() != 0));
        Pattern<Floor, Floor> loaded = begun.next("loaded").where(SimpleCondition.of(Elevators::overloaded));
        return loaded
            .notNext("left").where(SimpleCondition.of(f -> !f.isDoorOpen()))
            .followedBy("again").where(new IterativeCondition<Floor>() {
                @Override
                public boolean filter(Floor f, Context<Floor> ctx) throws Exception {
                    Floor arrived = null;
                    for (Floor a : ctx.getEventsForPattern("arrived")) {
                        arrived = a;
                    }
                    return arrived != null && arrived.getNumber() == f.getNumber()
                        && Character.isLetter(f.getZone()) && f.getTime() - arrived.getTime() <= 30_000;
                }
            })
            .within(Duration.ofMinutes(1));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStreamSource<Floor> source = env.addSource(new FloorSource());
        KeyedStream<Floor, String> floors = source.assignTimestampsAndWatermarks(Elevators.<Floor>strategy(Duration.ofSeconds(3)))
            .keyBy(Base::getId);
        PatternStream<Floor> stuck = CEP.pattern(floors, stuck());
        DataStream<Either<String, Integer>> both = stuck.select(
            (PatternTimeoutFunction<Floor, String>) (m, ts) -> "timeout " + m.get("arrived").get(0).getId(),
            (PatternSelectFunction<Floor, Integer>) m -> m.get("again").get(0).getNumber());
        both.filter(Either::isLeft).map(Either::left).print();
        both.filter(e -> e.isRight()).map(e -> e.right()).print();
        env.execute();
    }
}
