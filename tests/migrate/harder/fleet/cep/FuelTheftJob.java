package com.acme.fleet.cep;

import com.acme.fleet.model.FuelAlert;
import com.acme.fleet.model.Telemetry;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.utils.ParameterTool;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds trucks that lose fuel while they stand. */
public class FuelTheftJob {
    private static final Logger LOG = LoggerFactory.getLogger(FuelTheftJob.class);
    private static final OutputTag<String> ABANDONED = new OutputTag<String>("abandoned") {};

    public static void main(String[] args) throws Exception {
        ParameterTool params = ParameterTool.fromArgs(args);
        String brokers = params.get("brokers", "localhost:9092");
        final double limit = params.getDouble("limit", Thresholds.MIN_DROP);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(30_000);
        env.setParallelism(4);

        KafkaSource<Telemetry> source = KafkaSource.<Telemetry>builder()
            .setBootstrapServers(brokers)
            .setTopics("telemetry")
            .setGroupId("fuel-theft")
            .setStartingOffsets(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(new TelemetrySchema())
            .build();

        DataStream<Telemetry> telemetry = env.fromSource(
            source,
            WatermarkStrategy.<Telemetry>forBoundedOutOfOrderness(Duration.ofSeconds(15))
                .withTimestampAssigner((event, ts) -> event.getTimestamp())
                .withIdleness(Duration.ofMinutes(1)),
            "telemetry");

        PatternStream<Telemetry> matches = CEP.pattern(
            telemetry.filter(t -> t.getTruckId() != null && !t.getTruckId().isEmpty())
                .keyBy(Telemetry::getTruckId),
            theft());

        SingleOutputStreamOperator<FuelAlert> alerts = matches.process(new TheftFunction());
        alerts.getSideOutput(ABANDONED).print("abandoned");

        KafkaSink<FuelAlert> sink = KafkaSink.<FuelAlert>builder()
            .setBootstrapServers(brokers)
            .setRecordSerializer(KafkaRecordSerializationSchema.<FuelAlert>builder()
                .setTopic("fuel-alerts")
                .setValueSerializationSchema(new AlertSchema())
                .build())
            .setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
            .build();
        alerts.sinkTo(sink).name("alerts to kafka");
        env.execute("Fuel theft");
    }

    static Pattern<Telemetry, ?> theft() {
        return Pattern.<Telemetry>begin(Thresholds.STOPPED, AfterMatchSkipStrategy.skipPastLastEvent())
            .where(SimpleCondition.of(t -> t.getKind() == Telemetry.Kind.STOPPED && t.getSpeed() < 0.5))
            .timesOrMore(Thresholds.MIN_STOPS).consecutive()
            .followedBy("opened")
            .where(new SimpleCondition<Telemetry>() {
                @Override
                public boolean filter(Telemetry t) {
                    switch (t.getKind()) {
                        case DOOR_OPEN:
                        case DOOR_CLOSED:
                            return true;
                        default:
                            return t.hasCode("CAP_OPEN");
                    }
                }
            })
            .optional()
            .followedBy("drop")
            .where(new FuelDropCondition(Thresholds.MIN_DROP))
            .within(Duration.ofMillis(Thresholds.WINDOW_MS));
    }

    /** Makes an alert of a match. */
    public static class TheftFunction extends PatternProcessFunction<Telemetry, FuelAlert>
            implements TimedOutPartialMatchHandler<Telemetry> {
        @Override
        public void processMatch(Map<String, List<Telemetry>> match, Context ctx, Collector<FuelAlert> out) {
            List<Telemetry> stops = match.get(Thresholds.STOPPED);
            Telemetry first = stops.get(0);
            Telemetry drop = match.get("drop").iterator().next();
            double lost = stops.get(stops.size() - 1).getFuel() == null
                ? 0 : stops.get(stops.size() - 1).getFuel() - drop.getFuel();
            LOG.info("truck {} lost {}", first.getTruckId(), lost);
            out.collect(new FuelAlert(first.getTruckId(), lost, first.getTimestamp(), drop.getTimestamp(),
                String.format("%s lost %.1f litres at %s", first.getTruckId(), lost,
                    match.containsKey("opened") ? "an open door" : "night")));
        }

        @Override
        public void processTimedOutMatch(Map<String, List<Telemetry>> match, Context ctx) {
            Telemetry first = match.get(Thresholds.STOPPED).get(0);
            ctx.output(ABANDONED, first.getTruckId() + " stood from " + first.getTimestamp());
        }
    }

    /** JSON of the bus. */
    public static class TelemetrySchema implements DeserializationSchema<Telemetry> {
        private static final ObjectMapper MAPPER = new ObjectMapper();

        @Override
        public Telemetry deserialize(byte[] message) throws IOException {
            return MAPPER.readValue(message, Telemetry.class);
        }

        @Override
        public boolean isEndOfStream(Telemetry next) {
            return false;
        }

        @Override
        public TypeInformation<Telemetry> getProducedType() {
            return TypeInformation.of(Telemetry.class);
        }
    }

    public static class AlertSchema implements SerializationSchema<FuelAlert> {
        @Override
        public byte[] serialize(FuelAlert alert) {
            return alert.toString().getBytes();
        }
    }
}
