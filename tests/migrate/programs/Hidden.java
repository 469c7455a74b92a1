package org.example.hidden;

import java.util.List;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import com.example.rules.Engine;
import com.example.rules.Rule;

/** What cannot be translated: a rule engine, and patterns made of rules at run time. */
public class Hidden {

    public static class Item {
        public String name;
        public int size;
    }

    static Pattern<Item, ?> byEngine(Engine engine) {
        return Pattern.<Item>begin("engine")
            .where(new IterativeCondition<Item>() {
                @Override
                public boolean filter(Item item, Context<Item> ctx) throws Exception {
                    return engine.evaluate(item);
                }
            })
            .next("plain")
            .where(SimpleCondition.of(item -> item.size > 3));
    }

    static Pattern<Item, ?> byRules(List<Rule> rules) {
        Pattern<Item, ?> pattern = Pattern.<Item>begin("start");
        for (Rule rule : rules) {
            pattern = pattern.next(rule.getName()).where(rule.toCondition());
        }
        return pattern;
    }
}
