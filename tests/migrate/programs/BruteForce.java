package org.example.login;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternFlatSelectFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.time.Time;
import org.apache.flink.util.Collector;

public class BruteForce {

    public static class Record {
        public String source;
        public String action;
        public Map<String, String> fields = new HashMap<>();
        public long time;

        public String getSource() { return source; }
        public String getAction() { return action; }
        public Map<String, String> getFields() { return fields; }
    }

    static final String FAILURES = "5 or more failures";

    public DataStream<String> attach(KeyedStream<Record, String> records) {
        Pattern<Record, ?> pattern = Pattern.<Record>begin(FAILURES, AfterMatchSkipStrategy.skipPastLastEvent())
            .where(new IterativeCondition<Record>() {
                @Override
                public boolean filter(Record value, Context<Record> ctx) {
                    return value.getAction().equals("login")
                        && "failure".equals(value.getFields().get("result"));
                }
            })
            .timesOrMore(5)
            .notNext("no reset")
            .where(new IterativeCondition<Record>() {
                @Override
                public boolean filter(Record value, Context<Record> ctx) {
                    return value.action.startsWith("reset");
                }
            })
            .next("a success")
            .where(new IterativeCondition<Record>() {
                @Override
                public boolean filter(Record value, Context<Record> ctx) {
                    return value.action.equals("login") && value.fields.get("result").equals("success");
                }
            })
            .within(Time.milliseconds(20));

        return CEP.pattern(records, pattern).flatSelect(new PatternFlatSelectFunction<Record, String>() {
            @Override
            public void flatSelect(Map<String, List<Record>> map, Collector<String> out) {
                List<Record> failures = map.get(FAILURES);
                out.collect(failures.size() + " failures of " + failures.get(0).getSource());
            }
        });
    }
}
