package org.example.accounts;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternTimeoutFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.formats.json.JsonDeserializationSchema;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.OutputTag;

/** Accounts that were probably taken over. */
public class AccountTakeover {

    private static final OutputTag<String> GAVE_UP = new OutputTag<String>("gave up") {};
    private static final int MANY = 3;

    /** What the login servers report. */
    public static class Login {
        public String user;
        public String result;
        public String country;
        public long time;
    }

    public static class Alert {
        public String user;
        public int failures;
        public String country;

        public Alert(String user, int failures, String country) {
            this.user = user;
            this.failures = failures;
            this.country = country;
        }
    }

    /** Several failures, then a success from a country in which none of them was. */
    static Pattern<Login, ?> takeover() {
        return Pattern.<Login>begin("failures", AfterMatchSkipStrategy.skipPastLastEvent())
            .where(SimpleCondition.of(login -> login.result.equals("failed")))
            .timesOrMore(MANY)
            .greedy()
            .next("success")
            .where(SimpleCondition.of(login -> login.result.equals("ok")))
            .where(new IterativeCondition<Login>() {
                @Override
                public boolean filter(Login login, Context<Login> ctx) throws Exception {
                    for (Login failure : ctx.getEventsForPattern("failures")) {
                        if (failure.country.equals(login.country)) {
                            return false;
                        }
                    }
                    return true;
                }
            })
            .within(Duration.ofMinutes(5));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        KafkaSource<Login> source = KafkaSource.<Login>builder()
            .setBootstrapServers("kafka:9092")
            .setTopics("logins")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new JsonDeserializationSchema<>(Login.class))
            .build();
        DataStream<Login> logins = env.fromSource(
            source,
            WatermarkStrategy
                .<Login>forBoundedOutOfOrderness(Duration.ofSeconds(20))
                .withTimestampAssigner((login, recordTime) -> login.time),
            "logins");

        SingleOutputStreamOperator<Alert> alerts = CEP
            .pattern(logins.keyBy(login -> login.user), takeover())
            .select(
                GAVE_UP,
                new PatternTimeoutFunction<Login, String>() {
                    @Override
                    public String timeout(Map<String, List<Login>> match, long end) {
                        return match.get("failures").get(0).user;
                    }
                },
                new PatternSelectFunction<Login, Alert>() {
                    @Override
                    public Alert select(Map<String, List<Login>> match) {
                        Login success = match.get("success").get(0);
                        return new Alert(success.user, match.get("failures").size(), success.country);
                    }
                });

        alerts.addSink(new PagerSink("https://pager.example.org"));
        alerts.getSideOutput(GAVE_UP).print();
        env.execute("account takeover");
    }
}
