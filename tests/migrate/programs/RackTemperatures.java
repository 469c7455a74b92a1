package org.example.racks;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternFlatSelectFunction;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/** Warns of racks that stay hot, and raises an alert if warnings get hotter. */
public class RackTemperatures {

    private static final double THRESHOLD = 75.0;

    public static abstract class RackEvent {
        private int rack;
        private long time;

        public int getRack() { return rack; }
        public void setRack(int rack) { this.rack = rack; }
        public long getTime() { return time; }
        public void setTime(long time) { this.time = time; }
    }

    public static class Temperature extends RackEvent {
        private double degrees;

        public double getDegrees() { return degrees; }
        public void setDegrees(double degrees) { this.degrees = degrees; }
        public boolean isHot() { return degrees > THRESHOLD; }
    }

    public static class Power extends RackEvent {
        private double watts;

        public double getWatts() { return watts; }
        public void setWatts(double watts) { this.watts = watts; }
    }

    public static class Warning {
        public int rack;
        public double average;
        public long time;

        public Warning() {}

        public Warning(int rack, double average, long time) {
            this.rack = rack;
            this.average = average;
            this.time = time;
        }

        public int getRack() { return rack; }
        public double getAverage() { return average; }
        public long getTime() { return time; }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();

        DataStream<RackEvent> readings = env
            .addSource(new RackSource(10, 500))
            .assignTimestampsAndWatermarks(WatermarkStrategy
                .<RackEvent>forMonotonousTimestamps()
                .withTimestampAssigner((reading, ts) -> reading.getTime()));

        Pattern<RackEvent, ?> hotTwice = Pattern.<RackEvent>begin("First Event")
            .subtype(Temperature.class)
            .where(new IterativeCondition<Temperature>() {
                @Override
                public boolean filter(Temperature value, Context<Temperature> ctx) throws Exception {
                    return value.getDegrees() >= THRESHOLD;
                }
            })
            .next("Second Event")
            .subtype(Temperature.class)
            .where(new IterativeCondition<Temperature>() {
                @Override
                public boolean filter(Temperature value, Context<Temperature> ctx) throws Exception {
                    return value.isHot();
                }
            })
            .within(Duration.ofSeconds(10));

        PatternStream<RackEvent> matches = CEP.pattern(readings.keyBy(r -> r.getRack()), hotTwice);

        DataStream<Warning> warnings = matches.select(new PatternSelectFunction<RackEvent, Warning>() {
            @Override
            public Warning select(Map<String, List<RackEvent>> pattern) throws Exception {
                Temperature first = (Temperature) pattern.get("First Event").get(0);
                Temperature second = (Temperature) pattern.get("Second Event").get(0);
                return new Warning(first.getRack(), (first.getDegrees() + second.getDegrees()) / 2, second.getTime());
            }
        });

        Pattern<Warning, ?> rising = Pattern.<Warning>begin("first", AfterMatchSkipStrategy.skipToNext())
            .next("second")
            .where(new IterativeCondition<Warning>() {
                @Override
                public boolean filter(Warning warning, Context<Warning> ctx) throws Exception {
                    Warning first = ctx.getEventsForPattern("first").iterator().next();
                    return warning.getAverage() > first.getAverage();
                }
            })
            .within(Duration.ofSeconds(20));

        DataStream<String> alerts = CEP.pattern(warnings.keyBy(Warning::getRack), rising)
            .flatSelect(new PatternFlatSelectFunction<Warning, String>() {
                @Override
                public void flatSelect(Map<String, List<Warning>> pattern, Collector<String> out) {
                    Warning first = pattern.get("first").get(0);
                    Warning second = pattern.get("second").get(0);
                    if (second.getAverage() - first.getAverage() > 1.5) {
                        out.collect("rack " + second.getRack() + " heats up");
                    }
                }
            });

        warnings.print();
        alerts.print();
        env.execute("rack temperatures");
    }
}
