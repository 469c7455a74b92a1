package org.example.clicks;

import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.time.Time;

/** Clicks as JSON objects without a class, from a socket. */
public class JsonClicks {

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        ObjectMapper mapper = new ObjectMapper();
        DataStream<JsonNode> clicks = env.socketTextStream("localhost", 9999).map(line -> mapper.readTree(line));
        Pattern<JsonNode, ?> pattern = Pattern.<JsonNode>begin("view")
            .where(SimpleCondition.of(click -> click.get("page").asText().startsWith("/product")))
            .followedBy("buy")
            .where(SimpleCondition.of(click -> click.get("page").asText().equals("/buy") && click.get("amount").asInt() > 2))
            .within(Time.minutes(5));
        CEP.pattern(clicks.keyBy(click -> click.get("user").asText()), pattern)
            .inProcessingTime()
            .select((Map<String, List<JsonNode>> match) -> match.get("buy").get(0).get("user").asText())
            .print();
        env.execute("clicks");
    }
}
