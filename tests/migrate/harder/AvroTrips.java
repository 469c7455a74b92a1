package trips;

import java.time.Duration;
import java.time.Instant;
import java.util.*;
import org.apache.flink.api.common.eventtime.*;
import org.apache.flink.cep.*;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.formats.avro.AvroDeserializationSchema;
import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

public class AvroTrips {
    /** As the Avro compiler writes it, shortened. */
    public static class Trip {
        private CharSequence driver;
        private CharSequence city;
        private int passengers;
        private float fare;
        private long startedAt;
        private Long endedAt;

        public Trip() {}
        public CharSequence getDriver() { return driver; }
        public void setDriver(CharSequence value) { this.driver = value; }
        public CharSequence getCity() { return city; }
        public void setCity(CharSequence value) { this.city = value; }
        public int getPassengers() { return passengers; }
        public void setPassengers(int value) { this.passengers = value; }
        public float getFare() { return fare; }
        public void setFare(float value) { this.fare = value; }
        public long getStartedAt() { return startedAt; }
        public void setStartedAt(long value) { this.startedAt = value; }
        public Long getEndedAt() { return endedAt; }
        public void setEndedAt(Long value) { this.endedAt = value; }

        public static Builder newBuilder() { return new Builder(); }

        public static class Builder {
            private final Trip made = new Trip();
            public Builder setDriver(CharSequence v) { made.driver = v; return this; }
            public Builder setCity(CharSequence v) { made.city = v; return this; }
            public Builder setFare(float v) { made.fare = v; return this; }
            public Trip build() { return made; }
        }
    }

    private final double factor;
    private final Duration window;

    public AvroTrips(double factor, Duration window) {
        this.factor = factor;
        this.window = window;
    }

    Pattern<Trip, Trip> pattern() {
        return Pattern.<Trip>begin("cheap")
            .where(new SimpleCondition<Trip>() {
                private static final long serialVersionUID = 7L;
                private static final float LIMIT = 8.5f;
                @Override
                public boolean filter(Trip trip) {
                    return trip.getFare() < LIMIT && trip.getPassengers() % 2 == 1;
                }
            })
            .followedBy("dear")
            .where(new IterativeCondition<Trip>() {
                @Override
                public boolean filter(Trip trip, Context<Trip> ctx) throws Exception {
                    Iterator<Trip> before = ctx.getEventsForPattern("cheap").iterator();
                    if (!before.hasNext()) {
                        return false;
                    }
                    Trip cheap = before.next();
                    boolean ended = trip.getEndedAt() != null && trip.getEndedAt() > cheap.getStartedAt();
                    return ended && trip.getFare() / 2 > cheap.getFare()
                        && trip.getCity().toString().equals(cheap.getCity().toString());
                }
            })
            .within(Duration.ofMinutes(20));
    }

    public void run(StreamExecutionEnvironment env, DataStream<Trip> trips) {
        DataStream<Trip> timed = trips.assignTimestampsAndWatermarks(new TripWatermarks());
        SingleOutputStreamOperator<String> out = CEP.pattern(timed.keyBy(t -> t.getDriver().toString()), pattern())
            .inEventTime()
            .sideOutputLateData(new OutputTag<Trip>("too-late") {})
            .process(new Counting());
        out.print();
    }

    static class TripWatermarks implements WatermarkStrategy<Trip> {
        @Override
        public WatermarkGenerator<Trip> createWatermarkGenerator(WatermarkGeneratorSupplier.Context context) {
            return new BoundedOutOfOrdernessWatermarks<>(Duration.ofSeconds(30));
        }
        @Override
        public TimestampAssigner<Trip> createTimestampAssigner(TimestampAssignerSupplier.Context context) {
            return (trip, ts) -> trip.getStartedAt();
        }
    }

    static class Counting extends PatternProcessFunction<Trip, String> implements TimedOutPartialMatchHandler<Trip> {
        private transient Counter alerts;
        private final OutputTag<String> tag = new OutputTag<String>("gone") {};

        @Override
        public void open(Configuration config) {
            alerts = getRuntimeContext().getMetricGroup().counter("alerts");
        }

        @Override
        public void processMatch(Map<String, List<Trip>> match, Context ctx, Collector<String> out) throws Exception {
            alerts.inc();
            for (Map.Entry<String, List<Trip>> entry : match.entrySet()) {
                for (Trip trip : entry.getValue()) {
                    out.collect(entry.getKey() + ": " + trip.getDriver() + " " + trip.getFare());
                }
            }
        }

        @Override
        public void processTimedOutMatch(Map<String, List<Trip>> match, Context ctx) throws Exception {
            alerts.inc();
            ctx.output(tag, "gone at " + ctx.timestamp());
        }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        KafkaSource<Trip> source = KafkaSource.<Trip>builder()
            .setBootstrapServers("localhost:9092").setTopics("trips", "trips-old")
            .setValueOnlyDeserializer(AvroDeserializationSchema.forSpecific(Trip.class)).build();
        new AvroTrips(2.0, Duration.ofMinutes(20)).run(env,
            env.fromSource(source, WatermarkStrategy.noWatermarks(), "trips"));
        env.execute("trips");
    }
}
