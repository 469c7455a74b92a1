package org.example.rides;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.formats.json.JsonDeserializationSchema;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Rides that were started and not ended in time. */
public class LongRides {

    private static final OutputTag<Ride> TOO_LONG = new OutputTag<Ride>("too long") {};

    /** A ride begins or ends. */
    public static class Ride {
        public long rideId;
        public boolean isStart;
        public long eventTime;
        public Position position;

        public long getEventTimeMillis() {
            return eventTime;
        }
    }

    public static class Position {
        public float lon;
        public float lat;
    }

    private static Pattern<Ride, ?> longRide(int hours) {
        Pattern<Ride, Ride> start = Pattern.<Ride>begin("start");
        start.where(SimpleCondition.of(ride -> ride.isStart && ride.position.lat > 40.5f));
        return start
            .next("end")
            .where(new SimpleCondition<Ride>() {
                @Override
                public boolean filter(Ride ride) {
                    return !ride.isStart;
                }
            })
            .within(Duration.ofHours(hours));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(60_000);

        KafkaSource<Ride> source = KafkaSource.<Ride>builder()
            .setBootstrapServers("kafka-1:9092,kafka-2:9092")
            .setTopics("rides")
            .setGroupId("long-rides")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new JsonDeserializationSchema<>(Ride.class))
            .build();

        WatermarkStrategy<Ride> strategy = WatermarkStrategy
            .<Ride>forBoundedOutOfOrderness(Duration.ofSeconds(60))
            .withTimestampAssigner((ride, streamRecordTimestamp) -> ride.getEventTimeMillis());

        DataStream<Ride> rides = env.fromSource(source, strategy, "rides");

        SingleOutputStreamOperator<Ride> ended = CEP
            .pattern(rides.keyBy(ride -> ride.rideId), longRide(2))
            .process(new RideFunction());

        ended.getSideOutput(TOO_LONG).print();
        env.execute("Long rides");
    }

    private static class RideFunction extends PatternProcessFunction<Ride, Ride>
            implements TimedOutPartialMatchHandler<Ride> {
        @Override
        public void processMatch(Map<String, List<Ride>> match, Context ctx, Collector<Ride> out) {
        }

        @Override
        public void processTimedOutMatch(Map<String, List<Ride>> match, Context ctx) {
            Ride ride = match.get("start").get(0);
            ctx.output(TOO_LONG, ride);
        }
    }
}
