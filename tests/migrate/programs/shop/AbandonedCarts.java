package org.example.shop;

import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternTimeoutFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.TimeCharacteristic;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.timestamps.BoundedOutOfOrdernessTimestampExtractor;
import org.apache.flink.streaming.api.windowing.time.Time;
import org.apache.flink.streaming.connectors.kafka.FlinkKafkaConsumer;
import org.apache.flink.streaming.connectors.kafka.FlinkKafkaProducer;
import org.apache.flink.util.OutputTag;

/**
 * Finds carts that are left: a product viewed often goes into the cart, and is not paid within half
 * an hour.
 *
 * @author nobody
 */
public class AbandonedCarts {

    private static final OutputTag<String> FORGOTTEN = new OutputTag<String>("forgotten") {};

    public static void main(String[] args) throws Exception {
        final StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setStreamTimeCharacteristic(TimeCharacteristic.EventTime);

        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", "broker:9092");
        properties.setProperty("group.id", "carts");

        DataStream<ShopEvent> events = env
            .addSource(new FlinkKafkaConsumer<>("shop", new SimpleStringSchema(), properties))
            .map(line -> new ObjectMapper().readValue(line, ShopEvent.class))
            .assignTimestampsAndWatermarks(new BoundedOutOfOrdernessTimestampExtractor<ShopEvent>(Time.seconds(15)) {
                @Override
                public long extractTimestamp(ShopEvent element) {
                    return element.getAt();
                }
            });

        Pattern<ShopEvent, ?> abandoned = Pattern.<ShopEvent>begin(Limits.VIEWED)
            .where(new SimpleCondition<ShopEvent>() {
                @Override
                public boolean filter(ShopEvent event) {
                    return event.getAction().equals(Action.VIEW);
                }
            })
            .timesOrMore(2)
            .followedBy(Limits.LEFT)
            .where(new InCart())
            .where(new IterativeCondition<ShopEvent>() {
                @Override
                public boolean filter(ShopEvent event, Context<ShopEvent> ctx) throws Exception {
                    for (ShopEvent viewed : ctx.getEventsForPattern(Limits.VIEWED)) {
                        if (viewed.getProduct().equals(event.getProduct())) {
                            return true;
                        }
                    }
                    return false;
                }
            })
            .followedBy("paid")
            .where(new IterativeCondition<ShopEvent>() {
                @Override
                public boolean filter(ShopEvent event, Context<ShopEvent> ctx) {
                    return event.getAction() == Action.PAY;
                }
            })
            .within(Time.milliseconds(Limits.HALF_HOUR));

        SingleOutputStreamOperator<String> paid = CEP.pattern(events.keyBy("session"), abandoned)
            .select(
                FORGOTTEN,
                new PatternTimeoutFunction<ShopEvent, String>() {
                    @Override
                    public String timeout(Map<String, List<ShopEvent>> match, long end) {
                        if (!match.containsKey(Limits.LEFT)) {
                            return "nothing in the cart";
                        }
                        return "forgotten: " + match.get(Limits.LEFT).get(0).getProduct();
                    }
                },
                new PatternSelectFunction<ShopEvent, String>() {
                    @Override
                    public String select(Map<String, List<ShopEvent>> match) {
                        return match.get("paid").get(0).getSession() + " paid after "
                            + match.get(Limits.VIEWED).size() + " views";
                    }
                });

        paid.getSideOutput(FORGOTTEN)
            .addSink(new FlinkKafkaProducer<>("broker:9092", "reminders", new SimpleStringSchema()));
        paid.print();
        env.execute("abandoned carts");
    }
}
