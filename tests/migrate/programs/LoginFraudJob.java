package org.example.security;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternFlatSelectFunction;
import org.apache.flink.cep.PatternFlatTimeoutFunction;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Raises an alert when an account is taken over: several failed logins, then one that works. */
public class LoginFraudJob {

    private static final int MANY = 3;
    private static final OutputTag<String> GAVE_UP = new OutputTag<String>("gave up") {};
    private static final OutputTag<LoginEvent> LATE = new OutputTag<LoginEvent>("late") {};

    /** What a login server reports. */
    public static class LoginEvent {
        public String userId;
        public String outcome;
        public long time;
        public int attempts;

        public LoginEvent() {}

        public String getUserId() { return userId; }
        public String getOutcome() { return outcome; }
        public long getTime() { return time; }
        public int getAttempts() { return attempts; }
    }

    /** An account that was probably taken over. */
    public static class Alert {
        public String userId;
        public long since;
        public int failures;

        public Alert() {}

        public Alert(String userId, long since, int failures) {
            this.userId = userId;
            this.since = since;
            this.failures = failures;
        }
    }

    /** Several failures in a row, then a success. */
    static Pattern<LoginEvent, ?> takeover() {
        Pattern<LoginEvent, ?> failures = Pattern.<LoginEvent>begin("failures", AfterMatchSkipStrategy.skipPastLastEvent())
            .where(new SimpleCondition<LoginEvent>() {
                @Override
                public boolean filter(LoginEvent event) {
                    return "failed".equals(event.getOutcome());
                }
            })
            .times(MANY)
            .consecutive();
        return failures
            .next("success")
            .where(SimpleCondition.of(event -> event.getOutcome().equals("success") && event.getAttempts() > 0))
            .within(Duration.ofMinutes(5));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(10_000L);

        DataStream<LoginEvent> logins = env
            .fromSource(LoginSource.kafka(), WatermarkStrategy
                .<LoginEvent>forBoundedOutOfOrderness(Duration.ofSeconds(20))
                .withTimestampAssigner((event, ts) -> event.getTime()), "logins");

        KeyedStream<LoginEvent, String> perUser = logins.keyBy(LoginEvent::getUserId);
        PatternStream<LoginEvent> matches = CEP.pattern(perUser, takeover()).sideOutputLateData(LATE);

        SingleOutputStreamOperator<Alert> alerts = matches.flatSelect(
            GAVE_UP,
            new PatternFlatTimeoutFunction<LoginEvent, String>() {
                @Override
                public void timeout(Map<String, List<LoginEvent>> match, long timestamp, Collector<String> out) {
                    out.collect(match.get("failures").get(0).getUserId());
                }
            },
            (Map<String, List<LoginEvent>> match, Collector<Alert> out) -> {
                List<LoginEvent> failures = match.get("failures");
                out.collect(new Alert(failures.get(0).getUserId(), failures.get(0).getTime(), failures.size()));
            });

        alerts.print();
        alerts.getSideOutput(GAVE_UP).print();
        env.execute("login fraud");
    }
}
