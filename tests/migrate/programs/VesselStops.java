package org.example.vessels;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;

/** Ships that turn sharply, drift or stop. */
public class VesselStops {

    public static class Heading {
        public int course;
        public Double speed;
    }

    public static class Signal {
        private int vessel;
        private long time;
        private Heading heading;
        private String status;

        public int getVessel() { return vessel; }
        public long getTime() { return time; }
        public Heading getHeading() { return heading; }
        public String getStatus() { return status; }
    }

    /** A turn of more than a right angle since any of the signals before. */
    public static Pattern<Signal, ?> sharpTurn() {
        return Pattern.<Signal>begin("any", AfterMatchSkipStrategy.skipPastLastEvent())
            .oneOrMore()
            .followedBy("turned")
            .where(new IterativeCondition<Signal>() {
                @Override
                public boolean filter(Signal signal, Context<Signal> ctx) throws Exception {
                    for (Signal before : ctx.getEventsForPattern("any")) {
                        int turn = Math.abs(signal.getHeading().course - before.getHeading().course);
                        if (Math.min(turn, 360 - turn) > 90) {
                            return true;
                        }
                    }
                    return false;
                }
            })
            .within(Duration.ofSeconds(240));
    }

    public static Pattern<Signal, ?> drifting() {
        return Pattern.<Signal>begin("moving")
            .where(new SimpleCondition<Signal>() {
                @Override
                public boolean filter(Signal signal) {
                    Double speed = signal.getHeading().speed;
                    return speed != null && speed > 5;
                }
            })
            .next("slow")
            .where(SimpleCondition.of(s -> s.getHeading().speed != null && s.getHeading().speed <= 5
                && s.getHeading().speed > 0.5))
            .times(2, 4)
            .greedy()
            .followedBy("stopped")
            .where(SimpleCondition.of(s -> s.getHeading().speed == null || s.getHeading().speed <= 0.5))
            .or(SimpleCondition.of(s -> "moored".equalsIgnoreCase(s.getStatus())))
            .within(Duration.ofMinutes(20));
    }

    public static Pattern<Signal, ?> silent() {
        return Pattern.<Signal>begin("last")
            .where(SimpleCondition.of(s -> s.getStatus() != null && !s.getStatus().isEmpty()))
            .notFollowedBy("heard")
            .where(SimpleCondition.of(s -> s.getStatus() == null || s.getStatus().length() > 3))
            .within(Duration.ofHours(1));
    }

    public static class Turn {
        public int vessel;
        public Heading from;
        public List<Heading> all;
    }

    public DataStream<Turn> turns(KeyedStream<Signal, Integer> signals) {
        return CEP.pattern(signals, sharpTurn()).select(new PatternSelectFunction<Signal, Turn>() {
            @Override
            public Turn select(Map<String, List<Signal>> match) {
                Turn turn = new Turn();
                turn.vessel = match.get("turned").get(0).getVessel();
                turn.from = match.get("any").get(0).getHeading();
                turn.all = new ArrayList<>();
                for (Signal signal : match.get("any")) {
                    turn.all.add(signal.getHeading());
                }
                return turn;
            }
        });
    }
}
