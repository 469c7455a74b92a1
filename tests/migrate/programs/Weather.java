package org.example.weather;

import java.util.List;
import java.util.Map;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.windowing.time.Time;

/** Patterns on tuples: station, millimetres of rain, time. */
public class Weather {

    static Pattern<Tuple3<String, Double, Long>, ?> storm() {
        return Pattern.<Tuple3<String, Double, Long>>begin("dry")
            .where(new SimpleCondition<Tuple3<String, Double, Long>>() {
                @Override
                public boolean filter(Tuple3<String, Double, Long> reading) {
                    return reading.f1 == 0;
                }
            })
            .next("rain")
            .where(new IterativeCondition<Tuple3<String, Double, Long>>() {
                @Override
                public boolean filter(Tuple3<String, Double, Long> reading, Context<Tuple3<String, Double, Long>> ctx) throws Exception {
                    double total = reading.f1;
                    for (Tuple3<String, Double, Long> before : ctx.getEventsForPattern("rain")) {
                        total += before.f1;
                    }
                    return reading.f1 > 0 && total < 20.0;
                }
            })
            .times(2)
            .consecutive()
            .within(Time.hours(6));
    }

    DataStream<Tuple2<String, Double>> storms(DataStream<Tuple3<String, Double, Long>> readings) {
        return CEP.pattern(readings.keyBy(0), storm())
            .select(new PatternSelectFunction<Tuple3<String, Double, Long>, Tuple2<String, Double>>() {
                @Override
                public Tuple2<String, Double> select(Map<String, List<Tuple3<String, Double, Long>>> match) {
                    List<Tuple3<String, Double, Long>> rain = match.get("rain");
                    return Tuple2.of(rain.get(0).f0, rain.get(0).f1 + rain.get(1).f1);
                }
            });
    }
}
