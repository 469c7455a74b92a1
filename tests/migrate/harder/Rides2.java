package rides2;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.SinkFunction;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** A job as an object: source and sink are given. */
public class Rides2 {
    private final SourceFunction<RideEvent> source;
    private final SinkFunction<RideEvent> sink;
    private static final OutputTag<RideEvent> timedout = new OutputTag<RideEvent>("timedout") {};

    public Rides2(SourceFunction<RideEvent> source, SinkFunction<RideEvent> sink) {
        this.source = source;
        this.sink = sink;
    }

    public static class RideEvent {
        public long rideId;
        public boolean isStart;
        public long eventTime;
        public float startLon;
        public short passengerCnt;
        public long getEventTimeMillis() { return eventTime; }
    }

    public JobExecutionResult execute() throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<RideEvent> rides = env.addSource(source);
        WatermarkStrategy<RideEvent> watermarkStrategy = WatermarkStrategy
            .<RideEvent>forBoundedOutOfOrderness(Duration.ofSeconds(60))
            .withTimestampAssigner((ride, streamRecordTimestamp) -> ride.getEventTimeMillis());
        var keyed = rides.assignTimestampsAndWatermarks(watermarkStrategy).keyBy(ride -> ride.rideId);
        Pattern<RideEvent, RideEvent> ongoing = Pattern.<RideEvent>begin("start")
            .where(new SimpleCondition<>() {
                @Override
                public boolean filter(RideEvent ride) {
                    return ride.isStart;
                }
            })
            .next("end")
            .where(new SimpleCondition<>() {
                @Override
                public boolean filter(RideEvent ride) {
                    return !ride.isStart;
                }
            });
        PatternStream<RideEvent> stream = CEP.pattern(keyed, ongoing.within(Duration.ofHours(2)));
        SingleOutputStreamOperator<RideEvent> longRides = stream.process(new Alerts());
        longRides.getSideOutput(timedout).addSink(sink);
        longRides.addSink(sink);
        return env.execute("Long rides");
    }

    public static void main(String[] args) throws Exception {
        Rides2 job = new Rides2(new RideGenerator(), new LogSink<>());
        job.execute();
    }

    private static class Alerts extends PatternProcessFunction<RideEvent, RideEvent> implements TimedOutPartialMatchHandler<RideEvent> {
        @Override
        public void processMatch(Map<String, List<RideEvent>> map, Context context, Collector<RideEvent> out) {
            RideEvent start = map.get("start").get(0);
            RideEvent end = map.get("end").get(0);
            if (tooLong(start, end)) {
                out.collect(end);
            }
        }

        private boolean tooLong(RideEvent a, RideEvent b) {
            return Duration.ofMillis(b.eventTime - a.eventTime).compareTo(Duration.ofHours(1)) > 0;
        }

        @Override
        public void processTimedOutMatch(Map<String, List<RideEvent>> map, Context context) {
            RideEvent start = map.get("start").get(0);
            context.output(timedout, start);
        }
    }
}
