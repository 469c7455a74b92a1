package weather2;

import java.time.*;
import java.util.*;
import java.util.stream.*;
import org.apache.flink.api.common.eventtime.*;
import org.apache.flink.cep.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.*;

public class Weather2 {
    sealed interface Obs permits Temp, Wind {
        String station();
        long at();
    }
    record Temp(String station, long at, double celsius) implements Obs {
        double fahrenheit() { return celsius * 9 / 5 + 32; }
    }
    record Wind(String station, long at, double speed, int degrees) implements Obs {
        boolean storm() { return speed >= 24.5; }
    }

    static SimpleCondition<Obs> hot(double limit) {
        return SimpleCondition.of(o -> o instanceof Temp t && t.fahrenheit() > limit);
    }

    static Pattern<Obs, ?> front() {
        return Pattern.<Obs>begin("hot").where(hot(86.0))
            .followedBy("wind").where(SimpleCondition.of(o -> {
                if (!(o instanceof Wind)) {
                    return false;
                }
                Wind w = (Wind) o;
                return w.storm() || (w.degrees() + 360) % 360 > 270;
            })).oneOrMore()
            .next("cold").where(new IterativeCondition<Obs>() {
                @Override
                public boolean filter(Obs o, Context<Obs> ctx) throws Exception {
                    if (o instanceof Temp t) {
                        double before = 0;
                        for (Obs h : ctx.getEventsForPattern("hot")) {
                            before = ((Temp) h).celsius();
                        }
                        return before - t.celsius() >= 8;
                    }
                    return false;
                }
            })
            .within(Duration.ofHours(3));
    }

    static Pattern<Obs, ?> calm() {
        return Pattern.<Obs>begin("a").subtype(Wind.class).where(SimpleCondition.of(w -> w.speed() < 2))
            .times(2)
            .next("b").where(SimpleCondition.of(o -> o instanceof Temp t ? t.celsius() > 20 : ((Wind) o).speed() > 5));
    }

    static Pattern<Obs, ?> night() {
        return Pattern.<Obs>begin("night").where(SimpleCondition.of(o -> {
            int hour = LocalDateTime.ofInstant(Instant.ofEpochMilli(o.at()), ZoneOffset.UTC).getHour();
            return hour >= 22 || hour < 6;
        })).where(SimpleCondition.of(o -> o.station().length() > 2 && "KXY".indexOf(o.station().charAt(0)) >= 0));
    }

    public static void main(String[] args) throws Exception {
        var env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Obs> obs = env.<Obs>fromData(List.of(new Temp("KX1", 1L, 31.0), new Wind("KX1", 2L, 30.0, 10)))
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Obs>forMonotonousTimestamps().withTimestampAssigner((o, t) -> o.at()));
        CEP.pattern(obs.keyBy(Obs::station), front()).select(m -> {
            List<Double> winds = m.get("wind").stream().map(o -> ((Wind) o).speed()).collect(Collectors.toList());
            double most = winds.stream().mapToDouble(w -> w).max().orElse(0);
            return most + " " + winds.stream().mapToDouble(w -> w).average().orElse(0) + " " + winds.size();
        }).print();
        CEP.pattern(obs.keyBy(Obs::station), calm()).select(m -> m.get("b").get(0).station()).print();
        CEP.pattern(obs.keyBy(Obs::station), night()).select(m -> "" + m.get("night").get(0).at()).print();
        env.execute();
    }
}
