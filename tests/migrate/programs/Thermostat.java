package org.example.home;

import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternTimeoutFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.timestamps.AscendingTimestampExtractor;
import org.apache.flink.streaming.api.windowing.time.Time;
import org.apache.flink.types.Either;

/** A job of the first years of Flink CEP: filter functions, and timeouts as Either. */
public class Thermostat {

    public static class Sample {
        public String room;
        public float degrees;
        public long stamp;
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Sample> samples = env
            .addSource(new RoomSource())
            .assignTimestampsAndWatermarks(new AscendingTimestampExtractor<Sample>() {
                @Override
                public long extractAscendingTimestamp(Sample sample) {
                    return sample.stamp;
                }
            })
            .name("samples");

        Pattern<Sample, ?> cooling = Pattern.<Sample>begin("warm")
            .where(new FilterFunction<Sample>() {
                @Override
                public boolean filter(Sample sample) throws Exception {
                    return sample.degrees > 21.5f;
                }
            })
            .followedBy("cool")
            .where(new FilterFunction<Sample>() {
                @Override
                public boolean filter(Sample sample) throws Exception {
                    return sample.degrees < 18;
                }
            })
            .within(Time.minutes(10));

        DataStream<Either<String, String>> both = CEP.pattern(samples.keyBy("room"), cooling)
            .select(
                new PatternTimeoutFunction<Sample, String>() {
                    @Override
                    public String timeout(Map<String, List<Sample>> match, long end) {
                        return match.get("warm").get(0).room;
                    }
                },
                new PatternSelectFunction<Sample, String>() {
                    @Override
                    public String select(Map<String, List<Sample>> match) {
                        return match.get("cool").get(0).room;
                    }
                });
        both.print();
        env.execute("thermostat");
    }
}
