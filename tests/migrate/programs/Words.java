package org.example.words;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Patterns on plain text. */
public class Words {

    static Pattern<String, ?> question() {
        return Pattern.<String>begin("who")
            .where(SimpleCondition.of(word -> word.toLowerCase().equals("who") || word.equals("what")))
            .next("is")
            .where(SimpleCondition.of(word -> word.equals("is")))
            .followedBy("end")
            .where(SimpleCondition.of(word -> word.endsWith("?") && word.length() > 1));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<String> words = env.fromCollection(Arrays.asList("Who", "is", "there?", "what", "is", "this?"));
        CEP.pattern(words, question())
            .select((Map<String, List<String>> match) -> match.get("end").get(0))
            .print();
        env.execute();
    }
}
